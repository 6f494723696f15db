#!/bin/sh
# A client library is used in one file (libyaml and libsodium in two: folders that know nothing of each other), so that what it does to us is contained there.
failed=0
check() { # HOW-MANY HEADER
    files=$(grep -rlE "^[[:space:]]*#[[:space:]]*include[[:space:]]+[<\"]$2[>\"]" --include='*.[ch]' codecs backends auth conf gateway)
    n=$(printf '%s' "$files" | grep -c .)
    [ "$n" -le "$1" ] || { printf '<%s> is included by %d files, not %d:\n%s\n' "$2" "$n" "$1" "$files"; failed=1; }
}
check 1 '(isa-l/)?igzip_lib\.h'
check 1 'zlib\.h'
check 1 'libdeflate\.h'
check 1 'zstd\.h'
check 1 'sqlite3\.h'
check 1 'llhttp\.h'
check 2 'yaml\.h'
check 1 'jansson\.h'
check 1 'pcre2\.h'
check 2 'sodium\.h'
check 1 'xxhash\.h'
check 1 'libpq-fe\.h'
check 1 'hiredis/.*'
check 1 'openssl/ssl\.h'
check 1 'hiredis/.*'
# codecs/, auth/ and conf/ know of no loop.
uv=$(grep -rlE '#[[:space:]]*include[[:space:]]+<uv\.h>' codecs auth conf)
[ -z "$uv" ] || { printf '<uv.h> has no place in:\n%s\n' "$uv"; failed=1; }
exit $failed
