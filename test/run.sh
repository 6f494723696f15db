#!/bin/sh
# Runs what `make test` has built: unit tests and fuzz corpora side by side, then the integration tests against the real binary, and
# those that count and read once more over PostgreSQL and Redis.
# The last line is the sum of all. Usage: test/run.sh BUILD
set -u
build=$1
logs=$build/test/logs
rm -rf "$logs"
mkdir -p "$logs"
export BUILD="$build" LOGS="$logs"
export ASAN_OPTIONS="${ASAN_OPTIONS:-allocator_may_return_null=1}"

# One program: its output in a log, its numbers in a file of their own. cmocka counts its tests; any other program is one test.
one='
name=$(printf %s "${1#"$BUILD"/}" | tr / -)
corpus=
case $1 in */fuzz_*) corpus=test/fuzz/corpus/${1##*/fuzz_} ;; esac
timeout 300 "$1" $corpus >"$LOGS/$name.log" 2>&1
rc=$?
passed=$(sed -n "s/^\[  PASSED  \] \([0-9]*\) test(s)\..*/\1/p" "$LOGS/$name.log" | awk "{n += \$1} END {print n + 0}")
failed=$(sed -n "s/^\[  FAILED  \] \([0-9]*\) test(s), listed below.*/\1/p" "$LOGS/$name.log" | awk "{n += \$1} END {print n + 0}")
[ $rc = 0 ] || [ "$failed" -gt 0 ] || failed=1
[ "$passed$failed" != 00 ] || passed=1
echo "$passed $failed" >"$LOGS/$name.count"
if [ $rc = 0 ]; then echo "ok   $name ($passed)"; else echo "FAIL $name (exit $rc)"; grep -vE "^\[ (RUN|      OK)" "$LOGS/$name.log" | tail -40; fi
'
find "$build/test/unit" "$build/test/fuzz" -type f -perm -u+x \( -name 'test_*' -o -name 'fuzz_*' \) ! -name '*.*' 2>/dev/null | sort |
    while read -r program; do
        # A program whose source is gone is a leftover of an older tree.
        [ -f "${program#"$build"/}.c" ] && echo "$program"
    done | xargs -r -P "${JOBS:-2}" -n 1 sh -c "$one" one

passed=0 failed=0 skipped=0
for count in "$logs"/*.count; do
    [ -f "$count" ] || continue
    read -r p f <"$count"
    passed=$((passed + p)) failed=$((failed + f))
done

count_of() { # WORD: the number before it in pytest's closing line
    sed -n "s/.*[^0-9]\([0-9][0-9]*\) $1.*/\1/p" "$logs/pytest.last" | grep . || echo 0
}
run_pytest() { # NAME WORKERS ARGUMENTS: adds what it counts
    log=$logs/$1.log workers=$2
    shift 2
    FLAMEGATE="$(pwd)/$build/flamegate" "${PYTHON:-/usr/bin/python3}" -m pytest -q -rs -p no:cacheprovider -n "$workers" --dist loadfile "$@" 2>&1 | tee "$log"
    tail -n 1 "$log" | sed 's/^/ /' >"$logs/pytest.last"
    if grep -qE '[0-9]+ (passed|failed|skipped|error)' "$logs/pytest.last"; then
        failed=$((failed + $(count_of failed) + $(count_of error)))
        passed=$((passed + $(count_of passed))) skipped=$((skipped + $(count_of skipped)))
    else
        failed=$((failed + 1)) # it did not even come to an end
    fi
}
over_postgres='query shares retry corpus push folded time pprof_oracle crash hours'
if [ -n "$(find test/integration test/live -name 'test_*.py' 2>/dev/null | head -n 1)" ]; then
    # What wants the whole machine for itself comes first, alone; most of the others wait.
    run_pytest pytest-large 1 test/integration/test_large.py
    run_pytest pytest $((${JOBS:-2} * 2)) test --ignore test/integration/test_large.py
    echo "over PostgreSQL and Redis: $over_postgres"
    # shellcheck disable=SC2046 # words are meant
    FLAMEGATE_SAMPLES=postgres FLAMEGATE_SHARES=redis run_pytest pytest-postgres $((${JOBS:-2} * 2)) $(printf 'test/integration/test_%s.py ' $over_postgres)
fi
[ $((passed + failed)) -gt 0 ] || failed=1
printf '%d passed, %d failed' "$passed" "$failed"
[ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
echo
[ "$failed" = 0 ]
