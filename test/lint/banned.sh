#!/bin/sh
# Functions that do not know the size of what they write, or hide errors; notes without an end; names that say nothing.
failed=0
report() { [ -z "$2" ] || { printf '%s:\n%s\n' "$1" "$2"; failed=1; }; }
code='codecs backends auth conf gateway test bench'
grep_c() { grep -rnE --include='*.[ch]' --include='*.def' "$@" $code; }

report 'banned functions' "$(grep_c '(^|[^a-zA-Z0-9_>.])(strcpy|strcat|sprintf|vsprintf|strncpy|strncat|strtok|gets|alloca|atoi|atol|atoll|system)[[:space:]]*\(')"
report 'notes without an end' "$(grep -rnE '(TODO|FIXME|XXX:|HACK:)' --include='*.[ch]' --include='*.py' --include='*.sh' --include='*.def' $code Makefile README.md 2>/dev/null | grep -v '^test/lint/')"
report 'names that say nothing' "$(find $code -type f | grep -E '/(.*_)?(util|utils|common|helper|helpers|misc)(_[^/]*)?\.(c|h|py|sh)$')"
report 'codecs/, auth/ and conf/ do not log or print' "$(grep -nE '(^|[^a-z_])(printf|fprintf|perror|puts|log_(error|warn|info|debug))[[:space:]]*\(' $(find codecs auth conf -name '*.c' ! -name key_command.c) | grep -v 'assertion failed')"
report 'struct typedefs' "$(grep -nE '^typedef (struct|enum|union)[^(]*$' $(find codecs backends auth conf gateway -name '*.[ch]'))"
exit $failed
