#!/bin/sh
# Fuzzes each target for FUZZ_SECONDS, two at a time, starting from its corpus; the tree's corpus is not written to.
# Usage: test/fuzz/run.sh FOLDER-OF-PROGRAMS [NAME...]. Inputs that fail are left in FOLDER/findings.
set -u
folder=$1
shift
mkdir -p "$folder/findings"
export FOLDER="$folder" SECONDS_EACH="${FUZZ_SECONDS:-60}"

one='
name=${1##*/fuzz_}
new=$FOLDER/corpus-$name
mkdir -p "$new"
dict=
[ ! -f "test/fuzz/$name.dict" ] || dict=-dict=test/fuzz/$name.dict
"$1" -max_total_time="$SECONDS_EACH" -timeout=20 -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$FOLDER/findings/$name-" $dict \
    "$new" "test/fuzz/corpus/$name" >"$FOLDER/$name.log" 2>&1
rc=$?
runs=$(sed -n "s/^Done \([0-9]*\) runs.*/\1/p" "$FOLDER/$name.log")
if [ $rc = 0 ]; then echo "ok   fuzz $name: ${runs:-?} runs"; else echo "FAIL fuzz $name (exit $rc), $FOLDER/$name.log:"; tail -40 "$FOLDER/$name.log"; exit 1; fi
'
if [ $# -gt 0 ]; then
    for name in "$@"; do echo "$folder/fuzz_$name"; done
else
    find "$folder" -maxdepth 1 -type f -perm -u+x -name 'fuzz_*' ! -name '*.*' | sort
fi | xargs -r -P 2 -n 1 sh -c "$one" one
