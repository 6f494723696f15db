# Flamegate. Two commands matter: `make run` and `make test`; both install what is missing.
# SAN=address,undefined builds with sanitizers, in a folder of its own; WERROR=1 (or CI=true) turns warnings into errors.
CC      := $(if $(filter default,$(origin CC)),gcc,$(CC))
PYTHON  ?= /usr/bin/python3
comma   := ,
BUILD   := build$(if $(FUZZ),/fuzz)$(if $(SAN),/$(subst $(comma),-,$(SAN)))
JOBS    ?= $(shell nproc)
CFLAGS  ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wpointer-arith -Wcast-qual
SANITIZE = $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)$(if $(FUZZ), -fsanitize=fuzzer-no-link)
ALL_C    = -std=c11 -D_GNU_SOURCE $(WARN) -fno-omit-frame-pointer -fno-common -I. -I$(BUILD) -I/usr/share/include/llhttp -I/usr/include/postgresql \
           $(CFLAGS) $(if $(WERROR)$(CI),-Werror) $(SANITIZE)
LIBS    := -luv -lisal -ldeflate -lzstd -ljansson -lyaml -lsodium -lpcre2-8 -lsqlite3 -lpq -lhiredis -lssl -lcrypto -lpthread -lm
FOLDERS := codecs backends auth conf gateway
src      = $(filter-out gateway/main.c,$(wildcard $(1)/*.c $(1)/*/*.c))
obj      = $(patsubst %.c,$(BUILD)/%.o,$(call src,$(1)))

# By name, with what the tests need. Node.js and Go are taken from Debian only where the machine has none.
PACKAGES := gcc libc6-dev make git ca-certificates curl \
	libuv1-dev libisal-dev libdeflate-dev libzstd-dev libjansson-dev libyaml-dev libsodium-dev libpcre2-dev libsqlite3-dev libpq-dev libhiredis-dev libssl-dev libxxhash-dev node-llhttp \
	libcmocka-dev clang-14 libclang-rt-14-dev clang-format-14 nanopb libnanopb-dev protobuf-compiler \
	python3 python3-pytest python3-pytest-xdist python3-requests python3-yaml python3-jsonschema python3-protobuf python3-venv python3-pip \
	sqlite3 postgresql pgbouncer zstd nginx-light libnginx-mod-stream haproxy redis-server procps faketime
SUDO     := $(if $(filter 0,$(shell id -u)),,sudo)

all: $(BUILD)/flamegate

# In two steps, so that what an installation brings is seen by the build behind it.
run: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@exec conf/run.sh $(BUILD)/flamegate

test: setup
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j$(JOBS) WERROR=1 all unit-tests replays
	@PYTHON=$(PYTHON) JOBS=$(JOBS) test/run.sh $(BUILD)

setup:
	@have=$$(dpkg-query -Wf '$${Package}:$${db:Status-Status} ' $(PACKAGES) 2>/dev/null); missing=; \
	for p in $(PACKAGES); do case " $$have" in *" $$p:installed "*) ;; *) missing="$$missing $$p" ;; esac; done; \
	command -v node >/dev/null || missing="$$missing nodejs npm"; \
	command -v go >/dev/null || missing="$$missing golang-go"; \
	[ -z "$$missing" ] || { echo "installing$$missing"; \
	  $(SUDO) apt-get update -q && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing && \
	  for s in nginx haproxy postgresql pgbouncer redis-server; do \
	    case "$$missing" in *$$s*) $(SUDO) systemctl disable -q --now $$s 2>/dev/null || true ;; esac; done; } # tools of bench/ and test/, not services

lint:
	@test/lint/run.sh

# Every fuzz target for a minute, two at a time, under clang's sanitizers. Findings stay in build/fuzz/.../findings.
fuzz: setup
	@$(MAKE) --no-print-directory -j$(JOBS) FUZZ=1 SAN=address,undefined CC=clang-14 replays
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-60} test/fuzz/run.sh build/fuzz/address-undefined/test/fuzz

# Long forms of integration tests: everything at once for ten minutes; ten rolling restarts; noise on all sockets of a binary with sanitizers for five minutes.
soak rollouts: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@SOAK_SECONDS=$${SOAK_SECONDS:-600} ROLLOUTS=$${ROLLOUTS:-10} FLAMEGATE=$(CURDIR)/$(BUILD)/flamegate $(PYTHON) -m pytest -q -s -p no:cacheprovider test/integration/test_$(@:rollouts=rollout).py
fuzz-server: setup
	@$(MAKE) --no-print-directory -j$(JOBS) SAN=address,undefined all
	@NOISE_SECONDS=$${NOISE_SECONDS:-300} ASAN_OPTIONS=allocator_may_return_null=1 FLAMEGATE=$(CURDIR)/build/address-undefined/flamegate $(PYTHON) -m pytest -q -s -p no:cacheprovider test/integration/test_noise.py

# Two misfortunes of the deployment at a time, every pair of them; some ten minutes.
torture: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@FLAMEGATE_TORTURE=pairs FLAMEGATE="$(CURDIR)/$(BUILD)/flamegate" $(PYTHON) -m pytest -v -p no:cacheprovider test/integration/test_torture.py

bench: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@bench/run.sh

clean:
	rm -rf build

# One archive a folder: a test links only what it needs, and the direction of dependencies shows at link time.
define folder
$(BUILD)/$(1).a: $$(call obj,$(1))
	@rm -f $$@
	@ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))

LLHTTP := $(patsubst %,$(BUILD)/llhttp/%.o,api http llhttp)
$(BUILD)/llhttp.a: $(LLHTTP)
	@ar rcs $@ $^
$(BUILD)/llhttp/%.o: /usr/share/llhttp/%.c
	@mkdir -p $(@D)
	@$(CC) -O2 -g -DLLHTTP_STRICT_MODE=1 -I/usr/share/include/llhttp $(SANITIZE) -c $< -o $@

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) $(ALL_C) -MMD -MP -c $< -o $@

ARCHIVES_all      := $(patsubst %,$(BUILD)/%.a,gateway backends auth conf codecs llhttp)
ARCHIVES_codecs   := $(BUILD)/codecs.a
ARCHIVES_backends := $(BUILD)/backends.a $(BUILD)/codecs.a
ARCHIVES_auth     := $(BUILD)/auth.a $(BUILD)/codecs.a
ARCHIVES_conf     := $(BUILD)/conf.a $(BUILD)/codecs.a
ARCHIVES_gateway  := $(ARCHIVES_all)
link               = $(CC) $(ALL_C) $(1) -Wl,--start-group $(2) -Wl,--end-group $(LIBS)

$(BUILD)/flamegate: $(BUILD)/gateway/main.o $(ARCHIVES_all)
	@echo "LD $@"
	@$(call link,$<,$(ARCHIVES_all)) -o $@

# What tests share: nanopb's code for test/proto/*.proto (include "test/proto/x.pb.h") and the second opinions in test/oracle/*.c.
PROTOS  := $(wildcard test/proto/*.proto)
PB_H    := $(patsubst %.proto,$(BUILD)/%.pb.h,$(PROTOS))
SUPPORT := $(BUILD)/test/support.a
$(SUPPORT): $(patsubst %.proto,$(BUILD)/%.pb.o,$(PROTOS)) $(patsubst %.c,$(BUILD)/%.o,$(wildcard test/oracle/*.c))
	@mkdir -p $(@D)
	@rm -f $@
	@ar rcs $@ $^
$(BUILD)/test/proto/%.pb.c $(BUILD)/test/proto/%.pb.h: test/proto/%.proto $(wildcard test/proto/*.options)
	@mkdir -p $(@D)
	@PATH=/usr/bin:$$PATH nanopb_generator.py -q -I test/proto -D $(@D) $(<F)
$(BUILD)/test/proto/%.pb.o: $(BUILD)/test/proto/%.pb.c
	@$(CC) -O2 -g $(SANITIZE) -c $< -o $@
TEST_C  := $(wildcard test/unit/*/*.c test/fuzz/*.c test/oracle/*.c)
$(patsubst %.c,$(BUILD)/%.o,$(TEST_C)): | $(PB_H)

# test/unit/FOLDER/test_x.c -> build/test/unit/FOLDER/test_x, with that folder's archives; test_x_fault.c replaces malloc and its like.
FAULT := -Wl,--wrap=malloc$(comma)--wrap=calloc$(comma)--wrap=realloc
unit-tests: $(patsubst %.c,$(BUILD)/%,$(wildcard test/unit/*/test_*.c))
.SECONDEXPANSION:
$(BUILD)/test/unit/%: $(BUILD)/test/unit/%.o $(SUPPORT) $$(ARCHIVES_$$(word 1,$$(subst /, ,$$*)))
	@$(call link,$<,$(SUPPORT) $(ARCHIVES_$(word 1,$(subst /, ,$*)))) $(if $(filter %_fault,$*),$(FAULT)) -lcmocka -lprotobuf-nanopb -o $@

# test/fuzz/fuzz_x.c is a libFuzzer target under `make fuzz`; everywhere else it replays its corpus. Codecs' archive unless named here.
FUZZES_conf := conf
FUZZES_keys := auth
FUZZES_http := gateway
FUZZES_proxy := gateway
FUZZES_selector := gateway
FUZZES_spool := backends
fuzzed       = $(ARCHIVES_$(or $(FUZZES_$(1)),codecs))
replays: $(patsubst %.c,$(BUILD)/%,$(wildcard test/fuzz/fuzz_*.c))
$(BUILD)/test/fuzz/fuzz_%: $(BUILD)/test/fuzz/fuzz_%.o $(if $(FUZZ),,$(BUILD)/test/fuzz/replay.o) $(SUPPORT) $$(call fuzzed,$$*)
	@$(call link,$(filter %.o,$^),$(SUPPORT) $(call fuzzed,$*)) $(if $(FUZZ),-fsanitize=fuzzer) -lprotobuf-nanopb -o $@

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
.PHONY: all run test setup lint fuzz fuzz-server soak rollouts bench torture clean unit-tests replays
.SECONDARY:
