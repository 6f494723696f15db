#!/bin/sh
# One table: what an upload costs, stage by stage and as a whole, beside what this machine needs at least for the same bytes.
# Medians of several rounds in which all contenders take turns, so that what else the machine does hits all of them alike.
# usage: run.sh [parts] [costs] [durable] [lag] [idle] [slow] [ready] [hours] [refusals] [flood] [ledger] [deployment]; all of them without arguments. BENCH_QUICK=1: one short round.
# Writes to build/bench only; talks to 127.0.0.1 only; every load ends by itself.
set -eu
cd "$(dirname "$0")/.."
out=build/bench
gate=${FLAMEGATE:-build/flamegate}
python=${PYTHON:-/usr/bin/python3}
results=$out/results.jsonl
bodies="real-cpu-15s real-heap large-1m large-4m large-4m-lab2560"
small=$out/bodies/real-cpu-15s.open
if [ -n "${BENCH_QUICK:-}" ]; then
    rounds=1 long=1 floor=0.3 many=2000 flood=3
else
    rounds=3 long=1.5 floor=0.4 many=10000 flood=8
fi
pids=

say() { if [ -t 2 ]; then echo "bench: $*" >&2; fi; }
stop() { for p in $pids; do kill -KILL "$p" 2>/dev/null || :; wait "$p" 2>/dev/null || :; done; pids=; }
trap stop EXIT
trap 'exit 1' INT TERM

build() {
    flags="-std=c11 -D_GNU_SOURCE -Wall -Wextra -O2 -g -I."
    cc=${CC:-gcc}
    mkdir -p $out
    $cc $flags bench/load.c bench/upload.c bench/server.c -ldeflate -o $out/load
    $cc $flags bench/inflate_floor.c bench/upload.c -lisal -ldeflate -o $out/inflate_floor
    $cc $flags bench/ready.c -o $out/ready
    $cc $flags bench/idle.c bench/server.c -lssl -lcrypto -o $out/idle
    libraries="-luv -lisal -ldeflate -lzstd -ljansson -lyaml -lsodium -lpcre2-8 -lsqlite3 -lpq -lhiredis -lssl -lcrypto -lpthread -lm"
    [ ! -e bench/stages.c ] || $cc $flags bench/stages.c build/codecs.a $libraries -o $out/stages
    [ ! -e bench/store.c ] || $cc $flags bench/store.c build/backends.a build/codecs.a $libraries -o $out/store
    $python bench/bodies.py $out/bodies ${BENCH_BODIES:-} >$out/bodies.log
}

# The load runs on the first core and what is measured in CPU time on the second one, where there are two.
if [ "$(nproc)" -gt 1 ]; then on_first="taskset -c 0" on_second="taskset -c 1"; else on_first= on_second=; fi

free_port() { $python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# gate_start NAME STORE PIN: sets gate_pid, gate_at, gate_admin.
gate_start() {
    rm -rf $out/data-$1 $out/$1.ports
    mkdir -p $out/data-$1
    cat >$out/$1.yaml <<EOF
listen: ${gate_listen:-127.0.0.1:0}
admin: 127.0.0.1:0
data_dir: $out/data-$1
keys_file: $out/data-$1/keys.yaml
hash_key_file: $out/data-$1/hash.key
samples: "$2"
shares: "${gate_shares:-$2}"
anonymous: { project: bench, may: [send, read] }
log: { level: warn }
${gate_more:-}
EOF
    $3 "$gate" --config $out/$1.yaml serve --port-file $out/$1.ports >$out/$1.log 2>&1 &
    gate_pid=$!
    pids="$pids $gate_pid"
    for _ in $(seq 100); do [ -s $out/$1.ports ] && break; sleep 0.05; done
    [ -s $out/$1.ports ] || { echo "bench: $1 did not start:"; cat $out/$1.log; exit 1; }
    gate_at=$(sed -n 1p $out/$1.ports)
    gate_admin=$(sed -n 2p $out/$1.ports)
}

# Reads the whole body into memory and drops it: Debian's nginx can do that with its echo module; without it, `return` drops
# the body while it comes.
nginx_start() {
    mkdir -p $out/nginx
    port=$(free_port)
    module=/usr/lib/nginx/modules/ngx_http_echo_module.so
    if [ -e $module ]; then load="load_module $module;" answer='echo_read_request_body; echo -n "";'; else load= answer='return 200;'; fi
    cat >$out/nginx/nginx.conf <<EOF
$load
daemon off; master_process off; error_log stderr crit; pid nginx.pid;
events { worker_connections 1024; }
http {
    access_log off; client_max_body_size 32m; client_body_buffer_size 32m; keepalive_requests 100000000;
    client_body_temp_path t; proxy_temp_path t; fastcgi_temp_path t; uwsgi_temp_path t; scgi_temp_path t;
    server { listen 127.0.0.1:$port; location / { $answer } }
}
EOF
    $on_second nginx -p "$PWD/$out/nginx" -c nginx.conf 2>$out/nginx/log &
    nginx_pid=$!
    nginx_at=127.0.0.1:$port
    pids="$pids $nginx_pid"
    sleep 0.3
}

load() { # LABEL ARGUMENT...; a failed load is a line in the results, too
    label=$1
    shift
    $on_first $out/load -l "$label" "$@" >>$results || echo "{\"label\":\"$label\",\"failed\":true}" >>$results
}
note() { printf '{"label":"%s","value":%s}\n' "$1" "$2" >>$results; }

# What each body costs: inflating alone, nginx, us without and with a store.
costs() {
    nginx_start
    gate_start null null: "$on_second"
    null_at=$gate_at null_pid=$gate_pid
    gate_start sqlite sqlite: ""
    for round in $(seq $rounds); do
        for b in $bodies; do
            say "round $round of $rounds, $b"
            file=$out/bodies/$b.open
            connections=8
            [ "$b" = real-cpu-15s ] && connections=16
            note "inflate/$b" "$($on_second $out/inflate_floor $file $floor)"
            load "nginx/$b" -k sink -u $nginx_at -b $file -c $connections -d $floor -p $nginx_pid
            load "null/$b" -k ingest -a $b -u $null_at -b $file -c $connections -d $long -p $null_pid
            load "sqlite/$b" -k ingest -a $b -u $gate_at -b $file -c $connections -d $long -p $gate_pid
        done
        load "null-push/real-cpu-15s" -k push -u $null_at -b $small -c 16 -d $long -p $null_pid
    done
    stop
}

# Durable answers under load and alone; then an hour of profiles to read back.
durable() {
    gate_start durable sqlite: ""
    for round in $(seq $rounds); do
        say "sqlite, round $round of $rounds"
        load c64 -k ingest -u $gate_at -b $small -c 64 -d $long -a load -p $gate_pid
        load c1 -k ingest -u $gate_at -b $small -c 1 -d $floor -a load -p $gate_pid
    done
    say "filling in $many profiles"
    start=$(date +%s)
    load fill-240 -k ingest -u $gate_at -b $small -c 8 -d 20 -n 240 -s 3600 -S 1 -a hour240 -p $gate_pid
    load fill-many -k ingest -u $gate_at -b $small -c 64 -d 45 -n $many -s 3600 -S 42 -a hourmany -p $gate_pid
    window="from=$((start - 3660))&until=$((start + 180))"
    for q in overview functions flamegraph; do
        say "$q"
        load "$q/240" -k get -u "$gate_at/api/v1/$q?service=hour240&$window" -d 5 -n 9 -p $gate_pid
        load "$q/many" -k get -u "$gate_at/api/v1/$q?service=hourmany&$window" -d 8 -n 5 -p $gate_pid
    done
    curl -s "$gate_at/api/v1/overview?service=hourmany&$window" >$out/overview.json || :
    stop
}

# How long the loop's thread (the process's first one) was ready to run but had no core, in ms since its start.
starved() { awk '{ printf "%.0f\n", $2 / 1e6 }' /proc/$gate_pid/task/$gate_pid/schedstat; }

lag() { # STORE: the loop's lag while four clients send 16 MiB each and a fifth small ones
    say "loop lag with $1"
    gate_start lag "$1:" ""
    $on_first $out/load -l "big/$1" -k ingest -u $gate_at -b $out/bodies/huge-16m.pb -c 4 -d $flood -a big -p $gate_pid >>$results &
    big=$!
    sleep 0.2
    curl -s "http://$gate_admin/metrics" >$out/lag-$1.before || :
    before=$(starved)
    load "small/$1" -k ingest -u $gate_at -b $small -c 1 -d $flood -a small
    note "starved/$1" $(($(starved) - before))
    curl -s "http://$gate_admin/metrics" >$out/lag-$1.after || :
    wait $big || :
    stop
}

# What a kept connection costs in resident memory, in the clear and with TLS.
idle() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $out/tls.key -out $out/tls.pem -days 30 -subj /CN=localhost 2>/dev/null
    for kind in plain tls; do
        say "$many idle connections, $kind"
        [ $kind = plain ] || gate_listen="{address: 127.0.0.1:0, tls: {cert_file: $out/tls.pem, key_file: $out/tls.key}}"
        gate_start idle null: "$on_second"
        $on_first $out/idle ${gate_at#*:} $many $gate_pid $kind idle/$kind >>$results || echo "{\"label\":\"idle/$kind\",\"failed\":true}" >>$results
        gate_listen=
        stop
    done
}

# What it costs to refuse an upload, beside taking it: a wrong token, and a length that is over the limit.
refusals() {
    say "refusals"
    gate_start refusals null: "$on_second"
    for round in $(seq $rounds); do
        load accepted -k ingest -u $gate_at -b $small -c 16 -d $long -p $gate_pid
        load refused/token -k ingest -u $gate_at -b $small -c 16 -d $long -p $gate_pid -H "Authorization: Bearer nobody" -e 401
    done
    stop
    gate_more="limits: { body: 16KiB }" gate_start refusals null: "$on_second"
    for round in $(seq $rounds); do
        load refused/length -k ingest -u $gate_at -b $small -c 16 -d $long -p $gate_pid -e 413
    done
    stop
}

# An upload with and without its entry in the upload ledger.
ledger() {
    say "upload ledger"
    gate_start ledger-off null: "$on_second"
    off_at=$gate_at off_pid=$gate_pid
    gate_shares=sqlite:
    gate_start ledger-on null: "$on_second"
    gate_shares=
    for round in $(seq $rounds); do
        load ledger/off -k ingest -u $off_at -b $small -c 16 -d $long -p $off_pid
        load ledger/on -k ingest -u $gate_at -b $small -c 16 -d $long -p $gate_pid
        load ledger/off -k ingest -u $off_at -b $small -c 16 -d $long -p $off_pid
    done
    stop
}

# One project far over its rate from 32 connections, another that sends steadily: what does that one notice?
flood() {
    say "flood"
    gate_more="token_headers: [x-flamegate-token]
projects: { flood: { rates: { requests: 100, burst: 1s } } }"
    gate_start flood sqlite: ""
    gate_more=
    key=$("$gate" --config $out/flood.yaml key create --name flood --type server --project flood 2>/dev/null)
    sleep 1
    load steady/alone -k ingest -u $gate_at -b $small -c 8 -i 100 -d $flood -a steady -p $gate_pid
    $on_first $out/load -l flood/over -k ingest -u $gate_at -b $small -c 32 -i 5 -d $((flood + 1)) -a flood -e 429 \
        -H "x-flamegate-token: $key" >>$results &
    pouring=$!
    sleep 0.5
    load steady/beside -k ingest -u $gate_at -b $small -c 8 -i 100 -d $flood -a steady -p $gate_pid
    wait $pouring || :
    stop
}

# 1,000 slow clients of each kind beside 50 healthy ones, which send five uploads a second each: all are cut by their timer, and the healthy ones notice little.
slow() {
    say "slow clients"
    slow_n=1000
    [ -z "${BENCH_QUICK:-}" ] || slow_n=100
    gate_more="memory: 8GiB # room for all answers that nobody reads: their timer is what cuts them
timeouts: { head: 10s, body: 15s, write: 10s }"
    gate_start slow sqlite: ""
    gate_more=
    $python -c 'for i in range(4000): print("main;a_function_with_a_long_name_%d 1" % i)' >$out/deaf.txt
    curl -sf --data-binary @$out/deaf.txt "$gate_at/ingest?name=deaf" >/dev/null || :
    load healthy/alone -k ingest -u $gate_at -b $small -c 50 -i 200 -d $flood -a alone -p $gate_pid
    ulimit -n "$(ulimit -Hn)"
    $on_first $python bench/slow.py $gate_at $slow_n 5 "/api/v1/functions?service=deaf&limit=100000" \
        "silent=10,head=10,body=15,chunks=15,extension=15,trailers=15,deaf=10" >>$results &
    many=$!
    pids="$pids $many"
    sleep 5 # until all are there: 1,000 large answers are work like any other
    load healthy/slow -k ingest -u $gate_at -b $small -c 50 -i 200 -d 9 -a slow -p $gate_pid
    wait $many || :
    curl -s "http://$gate_admin/metrics" >$out/slow.metrics || :
    stop
}

ready() {
    say "start"
    gate_start ready sqlite: ""
    stop
    port=$(free_port)
    sed -i "s/^listen: .*/listen: 127.0.0.1:$port/" $out/ready.yaml
    for round in $(seq $((rounds * 2 + 1))); do
        note ready "$($out/ready $port "$gate" --config $out/ready.yaml serve 2>>$out/ready.log || echo null)"
    done
}

# PostgreSQL and Redis behind it: prints its own table.
# A day of one service, as profiles and as hours: prints its own table.
hours() {
    $python bench/hours.py $out "$gate" sqlite
    say "the same in PostgreSQL"
    $python bench/hours.py $out "$gate" postgres
}

deployment() { $python bench/deployment.py $out "$gate"; }

# The parts on their own: decoding stage by stage, and the store without HTTP in front of it.
parts() {
    for part in stages store; do
        [ -x $out/$part ] || continue
        say $part
        files=
        [ $part = store ] || for b in $bodies; do files="$files $out/bodies/$b.pb.gz"; done
        timeout 30 $on_second $out/$part $files || echo "bench: $part failed"
        echo
    done
}

build
: >$results
rm -f $out/lag-*
[ -x "$gate" ] || { echo "bench: $gate is missing: make all"; exit 1; }
for section in ${*:-parts costs durable lag idle slow ready hours refusals flood ledger deployment}; do
    case $section in
    lag) lag null; lag sqlite ;;
    parts | costs | durable | idle | slow | ready | hours | refusals | flood | ledger | deployment) $section ;;
    *) echo "bench: no section $section"; exit 2 ;;
    esac
done
$python bench/table.py $out
