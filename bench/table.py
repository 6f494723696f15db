#!/usr/bin/env python3
"""Print the table of bench/run.sh from what it measured: usage: table.py DIRECTORY"""
import collections
import json
import os
import re
import statistics
import sys

BODIES = ("real-cpu-15s", "real-heap", "large-1m", "large-4m", "large-4m-lab2560")
# uploads per CPU-second with the null store that we want to reach
GOALS = {"real-cpu-15s": 1000, "large-1m": 60, "large-4m": 15}


def read(path):
    runs = collections.defaultdict(list)
    with open(path) as f:
        for line in f:
            run = json.loads(line)
            runs[run["label"]].append(run)
    return runs


class Results:
    def __init__(self, directory):
        self.directory = directory
        self.runs = read(os.path.join(directory, "results.jsonl"))

    def median(self, label, key="value"):
        """None where nothing was measured, or where no request was answered."""
        values = [r[key] for r in self.runs[label] if r.get(key) is not None and r.get("ok", 1)]
        return statistics.median(values) if values else None

    def microseconds(self, label):
        value = self.median(label, "cpu_ms")
        return None if value is None else value * 1e3

    def failures(self):
        for label, runs in self.runs.items():
            for r in runs:
                if r.get("failed") or (r.get("err") and label != "flood/over"):
                    yield "%s: %d of %d failed %s %s" % (label, r.get("err", 0), r.get("err", 0) + r.get("ok", 0),
                                                          json.dumps(r.get("errors", {})), r.get("first_error", ""))


def show(value, form="%.0f"):
    return "-" if value is None else form % value


def verdict(value, goal, more_is_better):
    if value is None:
        return "not measured"
    return "reached" if (value >= goal if more_is_better else value <= goal) else "MISSED"


def line(what, value, form, goal=None, more_is_better=False):
    text = "%-58s %12s" % (what, show(value, form))
    if goal is not None:
        text += "   goal %s %-8g %s" % (">=" if more_is_better else "<=", goal, verdict(value, goal, more_is_better))
    print(text)


def costs(r):
    print("CPU per upload in us (user + kernel, all threads), and uploads per CPU-second; every upload is another one")
    print("%-17s %8s | %8s %7s | %8s %7s %8s %7s | %8s %7s %9s | %s" % (
        "body", "gzip B", "inflate", "nginx", "null", "x floor", "per CPUs", "peak MB", "sqlite", "x null", "uploads/s", "null/nginx"))
    for body in BODIES:
        size = os.path.getsize(os.path.join(r.directory, "bodies", body + ".pb.gz"))
        inflate, nginx = r.median("inflate/" + body), r.microseconds("nginx/" + body)
        null, sqlite = r.microseconds("null/" + body), r.microseconds("sqlite/" + body)
        ratio = null / (inflate + nginx) if null and inflate and nginx else None
        peak = r.median("null/" + body, "hwm_kb")
        print("%-17s %8d | %8s %7s | %8s %7s %8s %7s | %8s %7s %9s | %s" % (
            body, size, show(inflate), show(nginx), show(null), show(ratio, "%.2f"), show(1e6 / null if null else None, "%.1f"),
            show(peak / 1024 if peak else None), show(sqlite), show(sqlite / null if sqlite and null else None, "%.2f"),
            show(r.median("sqlite/" + body, "rps"), "%.1f"), show(null / nginx if null and nginx else None, "%.1f")))
    print("floor = bare ISA-L inflate of the same bytes + nginx reading and dropping them; null: decoded, identified, sealed, not stored\n")


def null_goals(r):
    null = {b: r.microseconds("null/" + b) for b in BODIES}
    floor = (r.median("inflate/real-cpu-15s") or 0) + (r.microseconds("nginx/real-cpu-15s") or 0)
    line("null, 39 KB body: CPU over floor", null["real-cpu-15s"] / floor if null["real-cpu-15s"] and floor else None, "%.2f", 5)
    for body, goal in GOALS.items():
        line("null, %s: uploads per CPU-second" % body, 1e6 / null[body] if null[body] else None, "%.1f", goal, True)
    push = r.microseconds("null-push/real-cpu-15s")
    line("null, 39 KB body as Push: uploads per CPU-second", 1e6 / push if push else None, "%.1f")
    labels = null["large-4m-lab2560"] / null["large-4m"] if null["large-4m-lab2560"] and null["large-4m"] else None
    line("null, large-4m-lab2560 over large-4m", labels, "%.2f", 1.3)


def sqlite_goals(r):
    line("sqlite, 64 connections: uploads/s", r.median("c64", "rps"), "%.0f", 600, True)
    line("sqlite, 64 connections: p99 ms", r.median("c64", "p99_ms"), "%.1f", 250)
    line("sqlite, 1 connection: p50 ms", r.median("c1", "p50_ms"), "%.2f", 5)
    many = r.median("fill-many", "ok")
    for query in ("overview", "functions", "flamegraph"):
        line("%s over 1 h of 240 profiles: p50 ms" % query, r.median(query + "/240", "p50_ms"), "%.1f")
        line("%s over 1 h of %s profiles: p50 ms" % (query, show(many)), r.median(query + "/many", "p50_ms"), "%.1f")


def lag_goals(r):
    for store in ("null", "sqlite"):
        line("loop lag p99 ms, 4 x 16 MiB + small ones, %s" % store, lag(r, store), "%.2f", 10)
        seconds, starved = r.median("small/" + store, "secs"), r.median("starved/" + store)
        print("    %s large ones a second; small ones p50 %s ms, p99 %s ms; the loop waited for a core %s %% of the time" % (
            show(r.median("big/" + store, "rps"), "%.1f"), show(r.median("small/" + store, "p50_ms"), "%.1f"),
            show(r.median("small/" + store, "p99_ms"), "%.1f"), show(starved / seconds / 10 if seconds and starved is not None else None)))


def slow_goals(r):
    kinds = r.runs["slow"][0]["kinds"]
    for kind, k in kinds.items():
        print("    %-10s %5d clients, %5d cut, %d early, %d late, %d answered; between %.1f s and %.1f s" % (
            kind, k["n"], k["cut"], k["early"], k["late"], k["answered"], k["first"], k["last"]))
    wrong = sum(k["n"] - k["cut"] + k["early"] + k["late"] + k["answered"] for k in kinds.values())
    line("slow clients that were not cut by their timer", wrong, "%d", 0)
    alone, beside = r.median("healthy/alone", "p99_ms"), r.median("healthy/slow", "p99_ms")
    line("50 healthy clients: p99 ms without slow ones", alone, "%.1f")
    line("50 healthy clients: p99 ms beside them", beside, "%.1f")
    line("    ratio", beside / alone if alone and beside else None, "%.2f", 2)


def buckets(path):
    found = {}
    if os.path.exists(path):
        with open(path) as f:
            for text in f:
                m = re.match(r'flamegate_loop_lag_seconds_bucket\{.*le="([^"]+)".*\} (\S+)', text)
                if m:
                    found[float(m.group(1).replace("+Inf", "inf"))] = float(m.group(2))
    return found


def lag(r, store):
    """p99 in ms, between two scrapes of the histogram: linear inside the bucket, as Prometheus does it."""
    before, after = (buckets(os.path.join(r.directory, "lag-%s.%s" % (store, when))) for when in ("before", "after"))
    counts = [(le, n - before.get(le, 0)) for le, n in sorted(after.items())]
    if not counts or counts[-1][1] <= 0:
        return None
    want, low, below = counts[-1][1] * 0.99, 0.0, 0.0
    for le, n in counts:
        if n >= want:
            return 1e3 * (low if le == float("inf") else low + (le - low) * (want - below) / (n - below))
        low, below = le, n
    return None


def main():
    r = Results(sys.argv[1])
    # a section that this run left out is left out here, too
    if "inflate/real-cpu-15s" in r.runs:
        costs(r)
        null_goals(r)
    if "c64" in r.runs:
        sqlite_goals(r)
    if "small/null" in r.runs:
        lag_goals(r)
    for kind, goal in (("plain", 8192), ("tls", None)):
        if "idle/" + kind in r.runs:
            line("%s idle connections, %s: bytes of memory each" % (show(r.median("idle/" + kind, "connections")), kind), r.median("idle/" + kind), "%.0f", goal)
            line("    opened and asked once, per second", r.median("idle/" + kind, "per_second"), "%.0f")
    if "slow" in r.runs:
        slow_goals(r)
    if "accepted" in r.runs:
        taken = r.microseconds("accepted")
        line("an upload of 39 KB, taken: CPU us", taken, "%.0f")
        for what, name in (("token", "a wrong token"), ("length", "a length over limits.body"), ("rate", "a rate that is used up")):
            refused = r.microseconds("refused/" + what)
            if refused:
                line("refused for %s: times cheaper" % name, taken / refused if taken else None, "%.1f", 10, True)
                line("    requests/s", r.median("refused/" + what, "rps"), "%.0f")
    if "ledger/on" in r.runs:
        with_entry, without = r.microseconds("ledger/on"), r.microseconds("ledger/off")
        line("an upload of 39 KB with its entry in the ledger, x without", with_entry / without if without else None, "%.3f", 1.05)
    if "steady/alone" in r.runs:
        alone, beside = r.median("steady/alone", "p99_ms"), r.median("steady/beside", "p99_ms")
        line("a project that sends steadily: p99 ms alone", alone, "%.1f")
        line("    beside another's flood: p99 ms", beside, "%.1f")
        line("    ratio", beside / alone if alone and beside else None, "%.2f", 2)
        line("    its errors", r.median("steady/beside", "err"), "%.0f", 0)
        line("    429 a second to the other", r.median("flood/over", "rps"), "%.0f")
    if "ready" in r.runs:
        line("ready after exec, ms", r.median("ready"), "%.1f", 100)
    failures = list(r.failures())
    if failures:
        print("\nnot all requests were answered with 200:")
        for text in failures:
            print("  " + text)


if __name__ == "__main__":
    main()
