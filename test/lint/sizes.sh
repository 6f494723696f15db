#!/bin/sh
# A header fits a screen (120 lines), a source file can be read in one go (500). In test/ and bench/ longer ones are only named.
failed=0
check() { # LIMIT PATTERN
    for f in $(find codecs backends auth conf gateway test bench -name "$2"); do
        n=$(wc -l <"$f")
        [ "$n" -gt "$1" ] || continue
        case $f in
        test/* | bench/*) echo "note: $f has $n lines (over $1)" ;;
        *) echo "$f has $n lines, over $1: split it by noun"; failed=1 ;;
        esac
    done
}
check 120 '*.h'
check 500 '*.c'
n=$(wc -l <Makefile)
[ "$n" -le 150 ] || { echo "Makefile has $n lines, over 150"; failed=1; }
exit $failed
