#!/usr/bin/env python3
"""What hour compaction brings: usage: hours.py OUT GATE [sqlite|postgres] (called by run.sh).

One service on four pods, 240 uploads an hour for a day, each of 50 to 2,000 stacks out of 20,000 (most of them often), 10 to 60 frames deep.
Answers are read as single profiles and, once compacted, as hours. BENCH_QUICK=1: three hours of it."""
import http.client
import math
import os
import random
import shutil
import signal
import statistics
import sys
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT, GATE = sys.argv[1:3]
os.environ["FLAMEGATE"] = os.path.abspath(GATE)
sys.path[:0] = [os.path.join(ROOT, "test", "integration"), os.path.join(ROOT, "bench")]

from gate import Gate, basic  # noqa: E402
from postgres import Postgres  # noqa: E402
from table import line  # noqa: E402

SAMPLES = sys.argv[3] if len(sys.argv) > 3 else "sqlite"
HOURS = 3 if os.environ.get("BENCH_QUICK") else 24
AN_HOUR, STACKS, ROUNDS = 240, 20000, 7


def stack(i, random):
    root = random.Random(i // 4)
    frames = ["f%d" % root.randint(0, 2973) for _ in range(root.randint(10, 60))]
    return ";".join(frames[:-1] + ["g%d" % (i % 977) if i % 4 else frames[-1]])


def fill(gate, base):
    """Samples sent."""
    chance = random.Random(7)
    pool = [stack(i, random) for i in range(STACKS)]
    connection = http.client.HTTPConnection(*gate.address)
    samples = 0
    for i in range(HOURS * AN_HOUR):
        n = int(math.exp(chance.uniform(math.log(50), math.log(2000))))
        chosen = {int(STACKS * chance.random() ** 3) for _ in range(n)}
        samples += len(chosen)
        at = base + i * 3600 // AN_HOUR
        query = urllib.parse.urlencode({"name": "svc.cpu{pod=p%d}" % (i % 4), "format": "folded", "from": at, "until": at + 15})
        connection.request("POST", "/ingest?" + query, "\n".join("%s %d" % (pool[s], chance.randint(1, 30)) for s in chosen), basic("any", gate.key))
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 200
    return samples


def answers(gate, base, what, goals):
    for hours in (1, HOURS):
        for path in ("flamegraph", "functions", "overview", "services"):
            took = []
            for _ in range(ROUNDS):
                start = time.monotonic()
                reply = gate.read(path, service="svc", **{"from": base, "until": base + hours * 3600})
                took.append((time.monotonic() - start) * 1e3)
                assert reply.status == 200, reply
            line("%s, %d h, from %s: ms" % (path, hours, what), statistics.median(took), "%.1f", goals.get((path, hours)))


folder = os.path.abspath(os.path.join(OUT, "hours"))
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(os.path.join(folder, "data"))
server = Postgres().start() if SAMPLES == "postgres" else None
samples_address = server.create() if server else None
gate = Gate(folder, "accept_window: { past: 3d }\n", samples=samples_address).start()
try:
    base = (time.time_ns() // (3600 * 10**9) - HOURS - 1) * 3600
    samples = fill(gate, base)
    answers(gate, base, "profiles", {})
    start = time.monotonic()
    gate.process.send_signal(signal.SIGHUP)
    while gate.count("flamegate_hours_compacted_total", outcome="done") < HOURS or gate.metrics()["flamegate_hours_pending"]:
        assert time.monotonic() - start < 60, gate.log()
        time.sleep(0.02)
    m = gate.metrics()
    line("compaction, ms per hour of %d profiles" % AN_HOUR, (time.monotonic() - start) * 1e3 / HOURS, "%.1f")
    line("profiles, bytes per sample", m['flamegate_hours_bytes_total{stage="profiles"}'] / samples, "%.2f", 11.5)
    line("hours, bytes per sample of their profiles", m['flamegate_hours_bytes_total{stage="hours"}'] / samples, "%.2f", 2.5)
    answers(gate, base, "hours", {("flamegraph", HOURS): 400, ("flamegraph", 1): 250})
    if server:
        tables = server.ask("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname ~ '^hour_c'", samples_address.rsplit("/", 1)[1])
        line("hours, bytes on disk per sample of their profiles", int(tables[0]) / samples, "%.2f", 2.5)
finally:
    gate.stop()
    if server:
        server.close()
    shutil.rmtree(folder)
