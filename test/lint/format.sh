#!/bin/sh
# Every C file is as clang-format-14 writes it with the .clang-format of this tree.
files=$(find codecs backends auth conf gateway test bench -name '*.[ch]' 2>/dev/null)
[ -n "$files" ] || exit 0
out=$(clang-format-14 --dry-run $files 2>&1 | sed -n 's/^\([^ :]*\):.*\[-Wclang-format-violations\]$/\1/p' | sort | uniq -c)
[ -z "$out" ] || { printf 'not formatted (count of places, file); run clang-format-14 -i on them:\n%s\n' "$out"; exit 1; }
