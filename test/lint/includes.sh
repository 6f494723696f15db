#!/bin/sh
# Includes go one way between the folders (design.md 1): a folder names only its own headers and the contracts below it.
bad() { # FOLDER 'what it may include'
    grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]+"' --include='*.[ch]' "$1" | grep -vE "include[[:space:]]+\"($2)\""
}
out=$(
    bad codecs 'codecs/[a-z0-9_/]+\.(h|def)'
    bad auth 'auth/[a-z0-9_/]+\.(h|def)|codecs/(base|limits)\.h'
    bad conf 'conf/[a-z0-9_/]+\.(h|def)|codecs/(base|limits)\.h'
    bad backends 'backends/[a-z0-9_/]+\.(h|def)|codecs/(record|merge|shares|symbols|profile|profile_pack|instance|types|pack|hash|idmap|crc32c|base|limits)\.h'
    bad gateway 'gateway/[a-z0-9_/]+\.(h|def|inc)|codecs/[a-z0-9_/]+\.h|backends/(backend|groups|hours|hour_runner|spans|shares|spool|uploads|spool_walk|sqlite_walk|day)\.h|auth/(auth|key_command)\.h|conf/conf\.h'
)
[ -z "$out" ] || { printf 'includes against the direction of design.md 1:\n%s\n' "$out"; exit 1; }
