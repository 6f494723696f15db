#!/usr/bin/env python3
"""What the deployment with PostgreSQL and Redis does, on one machine: usage: deployment.py OUT GATE (called by run.sh).

The mix: of ten uploads one is large (1 MB gzip, 8,000 samples), five are Go CPU profiles (39 KB, 659 samples), four small ones as an
eBPF profiler sends them (60 samples). PostgreSQL is durable as it comes (fsync, synchronous_commit). The baseline is what a plain
schema would do with the same samples: a row for each (time, service, series, stack id, value), by COPY in binary, with the index that its
reads need. BENCH_QUICK=1: less of everything."""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "test", "integration"), os.path.join(ROOT, "bench")]

from postgres import PROGRAMS, Postgres  # noqa: E402
from table import line  # noqa: E402

OUT, GATE = sys.argv[1:3]
QUICK = bool(os.environ.get("BENCH_QUICK"))
SECONDS = 3 if QUICK else 8
HOURS = 3 if QUICK else 24
SERVICES = 10
MIX = [os.path.join(OUT, "bodies", name + ".open") for name in ["large-1m"] + ["real-cpu-15s"] * 5 + ["ebpf"] * 4]
SMALL = os.path.join(OUT, "bodies", "real-cpu-15s.open")
MIX_SAMPLES = (8000 + 5 * 659 + 4 * 60) / 10
TICK = os.sysconf("SC_CLK_TCK")


def say(text):
    if sys.stderr.isatty():
        print("bench: " + text, file=sys.stderr)


def ticks(pid, children):
    with open("/proc/%d/stat" % pid) as f:
        v = f.read().rsplit(")", 1)[1].split()
    return sum(map(int, v[11:15 if children else 13]))


def tree_cpu(pid):
    """CPU seconds of a process and all its children, those that have ended included."""
    total = ticks(pid, True)
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        for child in map(int, f.read().split()):
            try:
                total += ticks(child, True)
            except OSError:
                pass
    return total / TICK


class Redis:
    def __init__(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                         "--maxmemory-policy", "noeviction"], stdout=subprocess.DEVNULL, cwd=OUT)

    def address(self):
        return "redis://127.0.0.1:%d/0" % self.port

    def bytes(self):
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"INFO memory\r\n")
            text = s.recv(1 << 16).decode()
        return int(text.split("used_memory:")[1].split()[0])

    def close(self):
        self.process.kill()
        self.process.wait()


class Gate:
    def __init__(self, name, samples, shares, memory="256MiB"):
        folder = os.path.join(OUT, "data-" + name)
        subprocess.run(["rm", "-rf", folder])
        os.makedirs(folder)
        self.conf, self.ports, self.log = (os.path.join(OUT, name + end) for end in (".yaml", ".ports", ".log"))
        with open(os.path.join(folder, "hash.key"), "w") as f:
            f.write("a made-up key of the bench, equal on all replicas\n")
        with open(self.conf, "w") as f:
            f.write("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: %s\nkeys_file: %s/keys.yaml\nhash_key_file: %s/hash.key\nsamples: \"%s\"\nshares: \"%s\"\n"
                    "accept_window: { past: 25h }\nanonymous: { project: bench, may: [send, read] }\nlog: { level: warn }\nmemory: %s\n" % (folder, folder, folder, samples, shares, memory))
        self.start()

    def start(self):
        if os.path.exists(self.ports):
            os.unlink(self.ports)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([GATE, "--config", self.conf, "serve", "--port-file", self.ports], stdout=log, stderr=log)
        for _ in range(200):
            if os.path.exists(self.ports) and len(open(self.ports).read().split("\n")) > 2:
                break
            time.sleep(0.05)
        self.at, self.admin = open(self.ports).read().split("\n")[:2]

    def stop(self):
        self.process.terminate()
        self.process.wait(60)

    def metric(self, name):
        text = urllib.request.urlopen("http://%s/metrics" % self.admin, timeout=10).read().decode()
        return sum(float(row.rsplit(" ", 1)[1]) for row in text.splitlines() if row.split("{")[0].split(" ")[0] == name)

    def load(self, *args):
        done = subprocess.run([os.path.join(OUT, "load"), "-u", self.at, "-p", str(self.process.pid), *map(str, args)], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def query_ms(self, target, times):
        took = []
        for _ in range(times):
            start = time.monotonic()
            reply = urllib.request.urlopen("http://%s/api/v1/%s" % (self.at, target), timeout=60)
            reply.read()
            took.append((time.monotonic() - start) * 1e3)
        return sorted(took)[len(took) // 2]


def at_the_store(pg):
    """Profiles per second of one writer, and of three at once."""
    binary = os.path.join(OUT, "store")
    for writers, goals in ((1, {"warm": 3000, "every stack new": 1000}), (3, {})):
        address = pg.create()
        running = [subprocess.Popen([binary, address, str(i + 1)], stdout=subprocess.PIPE, text=True, cwd=ROOT) for i in range(writers)]
        rates = {}
        for p in running:
            for row in p.communicate(timeout=300)[0].splitlines():
                what, _, rest = row[9:].partition("  ")
                if "profiles/s" in rest:
                    rates[what] = rates.get(what, 0) + float(rest.split()[0])
        for what, rate in rates.items():
            goal = next((g for word, g in goals.items() if what.endswith(word)), None)
            line("store, %d writer%s, %s: profiles/s" % (writers, "s"[: writers > 1], what), rate, "%.0f", goal, True)


def sizes(pg, database):
    """Bytes on disk by table, partitions and their indexes included."""
    rows = pg.ask("SELECT split_part(relname, '_c', 1), sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace GROUP BY 1", database)
    return {name: int(size) for name, size in (r.split("|") for r in rows)}


def end_to_end(pg, redis, main):
    """Uploads through HTTP into PostgreSQL and Redis, and what the two spend on them."""
    address = pg.create()
    database = address.rsplit("/", 1)[1]
    gate = Gate("mix", address, redis.address() if redis else "null:")
    gate.load("-k", "ingest", "-b", ",".join(MIX), "-c", 16, "-d", 1, "-a", "warm")
    pg_before, redis_before, wal = tree_cpu(main), redis and tree_cpu(redis.process.pid), pg.ask("SELECT pg_current_wal_lsn()")[0]
    before = sizes(pg, database)
    run = gate.load("-k", "ingest", "-b", ",".join(MIX), "-c", 64, "-d", SECONDS, "-a", "mix", "-S", 42)
    time.sleep(2)  # shares are on their way
    n = run["ok"]
    spent = tree_cpu(main) - pg_before
    wal = int(pg.ask("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '%s')" % wal)[0].split(".")[0])
    disk = {k: v - before.get(k, 0) for k, v in sizes(pg, database).items()}
    line("end to end, the mix, 64 connections: uploads/s", run["rps"], "%.0f", 600, True)
    line("    p50 ms", run["p50_ms"], "%.1f")
    line("    p99 ms", run["p99_ms"], "%.1f")
    line("    gateway's CPU ms per upload", run["cpu_ms"], "%.2f")
    line("    PostgreSQL's CPU ms per upload", spent / n * 1e3, "%.2f")
    line("    WAL KiB per upload", wal / n / 1024, "%.1f")
    if redis:
        line("    Redis' CPU ms per upload", (tree_cpu(redis.process.pid) - redis_before) / n * 1e3, "%.3f", 0.05)
    line("    disk, rows and records, bytes per sample", disk["profile"] / n / MIX_SAMPLES, "%.1f", 11.5)
    line("    disk, with symbols, bytes per sample", (disk["profile"] + disk.get("symbols", 0)) / n / MIX_SAMPLES, "%.1f", 15)
    gate.stop()
    gate = Gate("mix", pg.create(), redis.address() if redis else "null:", "1GiB")
    gate.load("-k", "ingest", "-b", ",".join(MIX), "-c", 16, "-d", 1, "-a", "warm")
    line("    with memory: 1GiB, in which more of the large ones fit at a time: uploads/s",
         gate.load("-k", "ingest", "-b", ",".join(MIX), "-c", 64, "-d", SECONDS, "-a", "mix", "-S", 42)["rps"], "%.0f")
    gate.stop()
    return spent / n / MIX_SAMPLES, disk["profile"] / n / MIX_SAMPLES


def copy_binary(rows):
    out = [b"PGCOPY\n\xff\r\n\0", struct.pack(">ii", 0, 0)]
    field = struct.pack(">i", 8)
    for row in rows:
        out.append(struct.pack(">h", 5) + b"".join(field + struct.pack(">q", v) for v in row))
    return b"".join(out + [struct.pack(">h", -1)])


def baseline(pg, main, ours_cpu, ours_disk):
    """Of equal samples: a row each."""
    database = pg.create().rsplit("/", 1)[1]
    pg.ask("CREATE TABLE sample (time_us bigint NOT NULL, service bigint NOT NULL, series bigint NOT NULL, stack bigint NOT NULL, value bigint NOT NULL);"
           "CREATE INDEX ON sample (service, time_us)", database)
    profiles, samples = 200 if QUICK else 600, int(MIX_SAMPLES)
    before, size = tree_cpu(main), 0
    for first in range(0, profiles, 20):  # a transaction for every twenty
        data = copy_binary((first * 1000 + p, p % SERVICES, p % 40, (p * 7919 + i * 2654435761) & (1 << 62) - 1, i * 10000000) for p in range(first, first + 20) for i in range(samples))
        subprocess.run([os.path.join(PROGRAMS, "psql"), "-X", "-q", "-h", pg.dir, "-p", str(pg.port), "-U", "postgres", "-d", database,
                        "-c", "\\copy sample FROM pstdin WITH (FORMAT binary)"], input=data, check=True)
    cpu = (tree_cpu(main) - before) / profiles / samples
    size = sizes(pg, database)["sample"] / profiles / samples
    line("baseline, COPY of a row per sample: disk over ours", size / ours_disk, "%.1f", 6, True)
    line("baseline, COPY of a row per sample: PostgreSQL's CPU over ours", cpu / ours_cpu, "%.1f", 6, True)


def latencies(pg, redis):
    """Ten services with four uploads a minute each; questions about the last hour and about all of it."""
    address = pg.create()
    database = address.rsplit("/", 1)[1]
    gate = Gate("day", address, redis.address() if redis else "null:")
    until = time.time()
    raw = HOURS * 240
    for i in range(SERVICES):
        say("filling in service %d of %d" % (i + 1, SERVICES))
        run = gate.load("-k", "ingest", "-b", SMALL, "-c", 32, "-d", 60, "-n", raw, "-s", HOURS * 3600, "-S", 4, "-a", "svc%d" % i)
        assert run["ok"] == raw, run
    before = sizes(pg, database)
    say("hours are compacted")
    asked = time.time()
    gate.process.send_signal(signal.SIGHUP)
    while time.time() < asked + 240 and (gate.metric("flamegate_hours_last_look_timestamp_seconds") <= asked or gate.metric("flamegate_hours_pending") > 0):
        time.sleep(0.2)
    done = gate.metric("flamegate_hours_profiles_total")
    line("disk, compacted hours of Go CPU profiles, bytes per sample", sizes(pg, database)["hour"] / max(done, 1) / 659, "%.2f", 2.5)
    line("disk, rows and records of Go CPU profiles, bytes per sample", before["profile"] / SERVICES / raw / 659, "%.1f", 11.5)
    for temperature in ("cold", "warm"):
        for hours in (1, HOURS):
            window = "from=%d&until=%d" % (until - hours * 3600 + 120, until)
            for name, target, goal in (("functions", "functions?service=svc3&", 60), ("overview", "overview?service=svc3&", None),
                                       ("flame graph", "flamegraph?service=svc3&", {("warm", 1): 250, ("cold", 1): 900}.get((temperature, hours), 400)),
                                       ("services", "services?", None), ("types", "types?service=svc3&", None)):
                if temperature == "cold":
                    gate.stop()
                    pg.stop("fast")
                    try:
                        with open("/proc/sys/vm/drop_caches", "w") as f:
                            f.write("3")
                    except OSError:
                        pass
                    pg.start()
                    gate.start()
                    gate.query_ms("services?service=nobody", 1)
                ms = gate.query_ms(target + window, 1 if temperature == "cold" else 5)
                line("%s of 1 service, %d h, %s: ms" % (name, hours, temperature) if "service=" in target else "%s, %d h, %s: ms" % (name, hours, temperature),
                     ms, "%.0f", goal if temperature == "warm" or name == "flame graph" else None)
    if redis:
        line("Redis, bytes for all of it, MiB", redis.bytes() / (1 << 20), "%.1f")
    gate.stop()


def main():
    pg, redis = Postgres(), None
    pg.more = "shared_buffers = 256MB\nmax_wal_size = 2GB\nautovacuum_naptime = 1min\n"
    pg.start()
    try:
        redis = Redis() if not os.environ.get("BENCH_NO_REDIS") else None
        with open(os.path.join(pg.data, "postmaster.pid")) as f:
            first = int(f.readline())
        print("PostgreSQL and Redis beside the gateway, on the same %d cores" % os.cpu_count())
        at_the_store(pg)
        cpu, disk = end_to_end(pg, redis, first)
        baseline(pg, first, cpu, disk)
        latencies(pg, redis)
    finally:
        if redis:
            redis.close()
        pg.close()


main()
