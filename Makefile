# Flamegate. Two commands matter: `make run` and `make test`; both install what is missing.
# SAN=address,undefined builds with sanitizers (into a folder of its own); WERROR=1 is what CI sets.
CC      ?= gcc
BUILD   := build$(if $(SAN),/$(subst $(comma),-,$(SAN)))
comma   := ,
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wpointer-arith -Wcast-qual
ALL_C    = -std=c11 -D_GNU_SOURCE $(WARN) -fno-omit-frame-pointer -fno-common -I. -I$(BUILD) -I/usr/share/include/llhttp $(CFLAGS) \
           $(if $(WERROR)$(CI),-Werror) $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
LIBS    := -luv -lisal -ldeflate -lzstd -ljansson -lyaml -lsodium -lpcre2-8 -lsqlite3 -lpthread -lm
FOLDERS := codecs backends auth conf gateway
src      = $(filter-out gateway/main.c,$(wildcard $(1)/*.c $(1)/*/*.c))
obj      = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))

all: $(BUILD)/flamegate

# One archive a folder: a test links only what it needs, and the direction of dependencies shows at link time.
define folder
$(BUILD)/$(1).a: $$(call obj,$(1))
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))

LLHTTP := $(patsubst %,$(BUILD)/llhttp/%.o,api http llhttp)
$(BUILD)/llhttp.a: $(LLHTTP)
	ar rcs $@ $^
$(BUILD)/llhttp/%.o: /usr/share/llhttp/%.c
	@mkdir -p $(@D)
	$(CC) -O2 -g -I/usr/share/include/llhttp $(if $(SAN),-fsanitize=$(SAN)) -c $< -o $@

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(ALL_C) -MMD -MP -c $< -o $@

ARCHIVES_all      := $(patsubst %,$(BUILD)/%.a,gateway backends auth conf codecs llhttp)
ARCHIVES_codecs   := $(BUILD)/codecs.a
ARCHIVES_backends := $(BUILD)/backends.a $(BUILD)/codecs.a
ARCHIVES_auth     := $(BUILD)/auth.a $(BUILD)/codecs.a
ARCHIVES_conf     := $(BUILD)/conf.a $(BUILD)/codecs.a
ARCHIVES_gateway  := $(ARCHIVES_all)

$(BUILD)/flamegate: $(BUILD)/gateway/main.o $(ARCHIVES_all)
	$(CC) $(ALL_C) $< -Wl,--start-group $(ARCHIVES_all) -Wl,--end-group $(LIBS) -o $@

# test/unit/FOLDER/test_x.c -> build/test/unit/FOLDER/test_x, with that folder's archives.
.SECONDEXPANSION:
$(BUILD)/test/unit/%: $(BUILD)/test/unit/%.o $$(ARCHIVES_$$(word 1,$$(subst /, ,$$*)))
	$(CC) $(ALL_C) $< -Wl,--start-group $(ARCHIVES_$(word 1,$(subst /, ,$*))) -Wl,--end-group $(LIBS) -lcmocka -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all
.SECONDARY:
