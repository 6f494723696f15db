"""Hours that were compacted: every answer is the same before and after, to the last unit; what comes late is counted at once."""

import glob
import os
import shutil
import signal
import sqlite3
import time

import pytest

from bodies import HEAP, Pprof, Profile, push
from gate import SANITIZED
from test_query import own, shop_profile

S = 10**9
HOUR = 3600 * S


def iso(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ns // S))


def heap_profile(factor, time_ns):
    p = Pprof(HEAP, 524288, ("space", "bytes"), time_ns=time_ns, duration_ns=15 * S)
    return p.add(own("main", "load"), [5 * factor, 5000 * factor, 2, 2000]).add(own("main"), [1, 100, 1, 100])


def traced_profile(factor, time_ns):
    p = shop_profile(factor, time_ns)
    for i in range(4):
        p.add(own("main", "serve", "traced"), [factor + i, (factor + i) * 10_000_000], {"trace_id": "%032x" % (factor * 97 + i), "span_id": "%016x" % i})
    return p


def fill(gate, base, hours):
    """Services with pods, several types, siblings and repeated content, near and at the edges of hours. Behind the look that comes with the
    start, so that nothing is compacted until it is told to, within the minute."""
    gate.until(lambda: gate.metrics()["flamegate_hours_last_look_timestamp_seconds"] > 0, True, within=20)
    for h in range(hours):
        at = base + h * HOUR
        for n, minute in enumerate((0, 3, 29, 57, 59)):
            t = at + minute * 60 * S + n * S
            for pod in ("web-%d" % (h % 3), "web-7"):
                labels = "checkout{env=lab,pod=%s,hostname=node-%s}" % (pod, pod)
                assert gate.ingest(traced_profile(n + h + 1, t).gz(), name=labels, spyName="gospy").status == 200
                assert gate.ingest(heap_profile(n + 1, t).gz(), name=labels, spyName="gospy").status == 200
            p = Pprof(time_ns=t, duration_ns=0).add(own("loop", "bill"), [3 + n, 30 + n])
            assert gate.ingest(p.gz(), name="billing{env=prod}", spyName="ebpfspy").status == 200
        # byte-equal siblings, told each: both count; half of them on the other side of the hour's edge
        sibling = Pprof(time_ns=at + HOUR - 2 * S, duration_ns=4 * S).add(["kernel", "idle"], [h + 1, h + 7]).gz()
        series = {"__name__": "process_cpu", "service_name": "ebpf", "instance": "10.0.0.%d:4041" % h}
        for _ in range(3):
            assert gate.push(push([(series, [(sibling, None)])])).status == 200
    # siblings count once their marks are there
    gate.until(lambda: gate.get("types", service="ebpf", from_=iso(base), until_=iso(base + hours * HOUR)).get("profiles"), 3 * hours)


def windows(base, hours):
    return [
        {"from": iso(base), "until": iso(base + hours * HOUR)},
        {"from": iso(base - 30 * 60 * S), "until": iso(base + hours * HOUR + 17 * 60 * S)},
        {"from": iso(base + 20 * 60 * S), "until": iso(base + HOUR + HOUR // 2)},
        {"from": iso(base + HOUR), "until": iso(base + 2 * HOUR)},
    ]


QUESTIONS = [
    ("services", {}), ("types", {}), ("types", {"service": "checkout"}), ("labels", {}), ("labels/env", {}), ("labels/pod", {}),
    ("labels/endpoint", {}), ("labels/trace_id", {}), ("labels/service_name", {}), ("labels", {"service": "checkout", "type": "alloc_space"}),
    ("overview", {}), ("overview", {"service": "checkout"}), ("functions", {"service": "checkout"}), ("functions", {"own": "true"}),
    ("functions", {"service": "checkout", "type": "inuse_space"}), ("functions", {"service": "ebpf"}), ("functions", {"service": "billing", "sort": "own"}),
    ("functions", {"match": '{env="lab"}'}), ("functions", {"match": '{pod="web-7"}'}), ("functions", {"match": '{endpoint="/pay"}'}),
    ("functions", {"match": '{service_name=~"check.*",env!="prod"}', "type": "cpu"}),
    ("flamegraph", {}), ("flamegraph", {"service": "checkout"}), ("flamegraph", {"service": "checkout", "format": "folded"}),
    ("function", {"service": "checkout", "function": "checkout"}), ("timeline", {}), ("timeline", {"step": "1h"}),
    ("timeline", {"step": "2h", "by": "service_name"}), ("timeline", {"step": "1h", "by": "env"}), ("timeline", {"step": "1h", "by": "pod", "service": "checkout"}),
    ("timeline", {"step": "1h", "by": "endpoint", "service": "checkout"}), ("timeline", {"step": "1h", "by": "hostname"}), ("timeline", {"step": "15m"}),
    ("profiles", {"limit": 1000}), ("overview", {"format": "text"}), ("services", {"format": "text"}),
]


def ask(gate, base, hours):
    """Everything, as one table of answers. pprof is compared by what it says."""
    answers = {}
    for window in windows(base, hours):
        for path, params in QUESTIONS:
            reply = gate.read(path, **params, **{k + "_": v for k, v in window.items()})
            assert reply.status == 200, (path, params, window, reply)
            text = params.get("format") in ("text", "folded")
            value = reply.text if text else reply.json()
            if path == "functions":
                for f in value["functions"]:
                    f.pop("line", None)
            if params.get("format") == "folded":
                value = sorted(value.splitlines())
            answers[path, str(params), str(window)] = value
        for params in ({}, {"service": "checkout"}, {"match": '{env="lab"}'}):
            reply = gate.read("merge.pb.gz", **params, **{k + "_": v for k, v in window.items()})
            assert reply.status == 200, (params, window, reply)
            p = Profile(reply.body)
            answers["merge.pb.gz", str(params), str(window)] = (
                p.types, p.time_ns, p.duration_ns, p.period, p.period_type, sorted(map(str, p.samples)), p.totals)
    return answers


def differences(before, after):
    return {k: (before[k], after[k]) for k in before if before[k] != after[k]}


def compacted(gate, more_than=0, within=40):
    """Waits until nothing is due any more and more hours than that have been done."""
    gate.process.send_signal(signal.SIGHUP)
    end = time.monotonic() + within
    while time.monotonic() < end:
        m = gate.metrics()
        done = gate.count("flamegate_hours_compacted_total", m, outcome="done")
        if done > more_than and m["flamegate_hours_pending"] == 0:
            assert gate.count("flamegate_hours_compacted_total", m, outcome="failed") == 0, gate.log()
            return done
        time.sleep(0.1)
    raise AssertionError("nothing was compacted: " + gate.log()[-2000:])


def base_of(hours):
    return (time.time_ns() // HOUR - hours - 1) * HOUR


def test_same_answers_before_and_after(make_gate):
    gate = make_gate()
    hours, base = 3, base_of(3)
    fill(gate, base, hours)
    before = ask(gate, base, hours)
    assert gate.count("flamegate_hours_compacted_total", outcome="done") == 0
    done = compacted(gate)
    after = ask(gate, base, hours)
    assert not differences(before, after)
    m = gate.metrics()
    assert 0 < m['flamegate_hours_bytes_total{stage="hours"}']
    # an upload into a compacted hour counts at once, and once it is compacted again
    late = base + HOUR + 31 * 60 * S
    assert gate.ingest(shop_profile(5, late).gz(), name="checkout{env=lab,pod=late}", spyName="gospy").status == 200
    with_late = ask(gate, base, hours)
    whole = {"from_": iso(base), "until_": iso(base + hours * HOUR)}
    assert gate.get("types", service="checkout", **whole)["profiles"] == 2 * 2 * 5 * hours + 1
    assert with_late != after
    compacted(gate, done)
    assert not differences(with_late, ask(gate, base, hours))
    # and after a crash
    gate.kill()
    gate.start()
    assert not differences(with_late, ask(gate, base, hours))


# Questions of whole hours that need no single profile.
def of_hours(answers, window):
    raw = ("profiles", "labels", "labels/pod", "labels/trace_id")  # names of instance labels go with single profiles
    return {k: v for k, v in answers.items() if k[2] == str(window) and k[0] not in raw and "pod" not in k[1]
            and "hostname" not in k[1] and "endpoint" not in k[1] and "15m" not in k[1]
            and k[:2] != ("timeline", "{}")}


def test_hours_stand_alone(make_gate):
    """With the single profiles taken away by hand, what whole hours can answer stays the same."""
    gate = make_gate()
    hours, base = 3, base_of(3)
    fill(gate, base, hours)
    before = ask(gate, base, hours)
    compacted(gate)
    gate.stop()
    if gate.samples:
        gate.ask("DELETE FROM profile")
    for path in glob.glob(os.path.join(gate.dir, "data", "samples", "*.db")):
        db = sqlite3.connect(path)
        db.execute("DELETE FROM body")
        db.execute("DELETE FROM profile")
        db.commit()
        db.close()
    gate.start()
    after = ask(gate, base, hours)
    for window in (windows(base, hours)[0], windows(base, hours)[3]):
        assert len(of_hours(before, window)) > 15
        wrong = differences(of_hours(before, window), of_hours(after, window))
        assert not wrong, sorted(wrong)


def at_clock(gate, offset_s):
    """From the next start on the gateway's wall clock is that much behind."""
    library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    assert library, "`make setup` installs faketime"
    gate.wrapper = ["env", "LD_PRELOAD=" + library[0], "FAKETIME=-%d" % offset_s, "FAKETIME_DONT_FAKE_MONOTONIC=1"] if offset_s else []


def ask_file(gate, base, question):
    path = glob.glob(os.path.join(gate.dir, "data", "samples", "c*-%s.db" % iso(base)[:10]))[0]
    db = sqlite3.connect(path)
    row = db.execute(question).fetchone()
    db.close()
    return row and row[0]


def meta(gate, base, key):
    return ask_file(gate, base, "SELECT value FROM meta WHERE key = '%s'" % key)


def free_pages(gate, base):
    return ask_file(gate, base, "PRAGMA freelist_count")


def raw_rows(gate):
    if gate.samples:
        return int(gate.ask("SELECT count(*) FROM profile")[0])
    rows = 0
    for path in glob.glob(os.path.join(gate.dir, "data", "samples", "*.db")):
        db = sqlite3.connect(path)
        rows += db.execute("SELECT count(*) FROM profile").fetchone()[0] + db.execute("SELECT count(*) FROM body").fetchone()[0]
        db.close()
    return rows


@pytest.mark.skipif(SANITIZED, reason="faketime's own condition variables are unknown to ThreadSanitizer, and it must be loaded behind ASan")
def test_single_profiles_go_before_their_hours(make_gate):
    gate = make_gate("retention: { default: 15d, raw: 2d }\naccept_window: { past: 2d }\n", start=False)
    days, hours = 5, 3
    base = (base_of(hours) - days * 24 * HOUR) // (24 * HOUR) * 24 * HOUR  # from midnight on
    at_clock(gate, days * 86400)
    gate.start()
    fill(gate, base, hours)
    whole, cut = windows(base, hours)[0], windows(base, hours)[2]
    before = ask(gate, base, hours)
    ident = gate.profiles(from_=iso(base), until_=iso(base + HOUR))[0]["id"]
    compacted(gate)
    assert raw_rows(gate) > 0
    gate.stop()
    at_clock(gate, 0)
    gate.start()
    if gate.samples:  # told of to every replica first, for two minutes and a half
        gate.until(lambda: gate.ask("SELECT day FROM raw_gone WHERE NOT gone"), [iso(base)[:10]], within=20)
        assert raw_rows(gate) > 0
        gate.ask("UPDATE raw_gone SET told_ns = told_ns - 150000000000")
        gate.process.send_signal(signal.SIGHUP)
    gate.until(lambda: raw_rows(gate), 0, within=20)
    if not gate.samples:
        gate.until(lambda: meta(gate, base, "raw"), "done", within=20)
        assert free_pages(gate, base) == 0  # the disk has its space back
    after = ask(gate, base, hours)
    wrong = differences(of_hours(before, whole), of_hours(after, whole))
    assert not wrong, sorted(wrong)
    # a window that cuts hours is made one of whole hours, and says so
    answer = gate.get("functions", service="checkout", from_=cut["from"], until_=cut["until"])
    assert (answer["from"][:19], answer["until"][:19]) == (iso(base)[:19], iso(base + 2 * HOUR)[:19])
    assert answer["profiles"] == 2 * 5 * 2
    # what needs single profiles begins where they do
    assert gate.profiles(from_=whole["from"], until_=whole["until"]) == []
    assert gate.get("labels/pod", from_=whole["from"])["from"] > whole["until"]
    reply = gate.read("profiles/" + ident)
    assert reply.status == 404 and "expired" in reply.json()["message"]
    # after a restart it is still known
    gate.stop()
    gate.start()
    assert not differences(after, ask(gate, base, hours))
    # what still comes for such a day counts beside its hours, and takes nothing from them; so does what is beside midnight
    gate.configure("retention: { default: 15d }\naccept_window: { past: 15d }\n")
    gate.stop()
    gate.start()
    day = base // (24 * HOUR) * 24 * HOUR
    for late in (base + HOUR + 31 * 60 * S, day + 24 * HOUR + 60 * S, day - 60 * S):
        assert gate.ingest(shop_profile(5, late).gz(), name="checkout{env=lab,pod=late}", spyName="gospy").status == 200
    for _ in range(2):
        around = gate.get("types", service="checkout", from_=iso(day - HOUR), until_=iso(day + 25 * HOUR))
        assert around["profiles"] == 2 * 2 * 5 * hours + 3
        gate.process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
    assert gate.count("flamegate_hours_compacted_total", outcome="failed") == 0
    if not gate.samples:  # another store gets single profiles alone, and is told so
        gate.stop()
        other = make_gate(start=False)
        os.makedirs(os.path.join(other.dir, "data"), exist_ok=True)
        shutil.copy(os.path.join(gate.dir, "data", "hash.key"), os.path.join(other.dir, "data", "hash.key"))
        done = other.run("import", os.path.join(gate.dir, "data"), timeout=60)
        assert done.returncode == 0 and "the hours of 1 days" in done.stdout, done


def test_retention_follows_a_reload(make_gate):
    """A service's days from the next upload on; what is there already goes with its class."""
    gate = make_gate("retention: { default: 15d }\n")
    assert gate.ingest(shop_profile().gz(), name="one").status == 200
    gate.configure("retention: { default: 15d, projects: { default: 7d }, services: { two: 30d } }\n")
    gate.process.send_signal(signal.SIGHUP)
    gate.until(lambda: "configuration reloaded" in gate.log(), True)
    assert gate.ingest(shop_profile().gz(), name="one").status == 200
    assert gate.ingest(shop_profile().gz(), name="two").status == 200
    assert gate.get("services")["services"]
    if not gate.samples:
        found = {os.path.basename(p).split("-")[0] for p in glob.glob(os.path.join(gate.dir, "data", "samples", "*.db"))}
        assert found == {"c15", "c7", "c30"}
    assert gate.get("overview", service="one")["profiles"] == 2


def without_bodies(gate):
    """Takes the samples of hours and of profiles away by hand: what is answered still needs none of them."""
    for path in glob.glob(os.path.join(gate.dir, "data", "samples", "*.db")):
        db = sqlite3.connect(path)
        db.execute("DELETE FROM body")
        db.execute("DELETE FROM hour_body")
        db.commit()
        db.close()


@pytest.mark.embedded("takes rows out of the embedded store")
def test_shares_of_hours(make_gate, redis):
    """Compacted hours are in Redis too, and functions come from there alone; a Redis that lost them makes no difference."""
    gate = make_gate(samples="sqlite:", shares=redis.create())
    hours, base = 3, base_of(3)
    fill(gate, base, hours)
    window = {"from_": iso(base), "until_": iso(base + hours * HOUR)}
    questions = [(s, t) for s, types in (("checkout", ("cpu", "samples", "alloc_space", "inuse_space")), ("billing", ("cpu",)), ("ebpf", ("cpu",)))
                 for t in types]
    before = {q: gate.rows(service=q[0], type=q[1], **window) for q in questions}
    compacted(gate)
    after = {q: gate.rows(service=q[0], type=q[1], **window) for q in questions}
    assert not differences(before, after)
    number = int(gate.shares.rsplit("/", 1)[1])
    keys = lambda: sorted(redis.ask("KEYS", "fs:*:h:*", db=number))
    put = keys()
    assert len(put) >= hours * len(questions)
    # a Redis that has lost everything gets its hours again, at the next look
    redis.ask("FLUSHDB", db=number)
    assert not differences(before, {q: gate.rows(service=q[0], type=q[1], **window) for q in questions})
    gate.until(lambda: gate.metrics()["flamegate_share_store_emptied_total"], 1, within=10)
    gate.process.send_signal(signal.SIGHUP)
    gate.until(keys, put, within=10)
    gate.stop()
    without_bodies(gate)
    gate.start()
    alone = {q: gate.rows(service=q[0], type=q[1], **window) for q in questions}
    assert not differences(before, alone)
    assert gate.read("flamegraph", service="checkout", **window).status == 503  # it does need them


@pytest.mark.embedded("makes a file of the embedded store one of its first version")
def test_files_of_the_first_version(make_gate):
    """They are read as they are, and get hours once they are written to."""
    gate = make_gate()
    hours, base = 2, base_of(2)
    fill(gate, base, hours)
    before = ask(gate, base, hours)
    gate.stop()
    for path in glob.glob(os.path.join(gate.dir, "data", "samples", "*.db")):
        db = sqlite3.connect(path)
        db.executescript("DROP TABLE dirty; DROP TABLE hour; DROP TABLE hour_body; UPDATE meta SET value = '1' WHERE key = 'version'")
        db.close()
    gate.start()
    assert not differences(before, ask(gate, base, hours))
    for h in range(hours + 2):  # whichever days these hours are in
        assert gate.ingest(shop_profile(1, base + h * HOUR).gz(), name="wakes").status == 200
    before = ask(gate, base, hours)
    compacted(gate)
    assert not differences(before, ask(gate, base, hours))


def test_killed_at_any_point(make_gate):
    """Wherever a kill hits compaction, every answer is that of the profiles, and the hours get done."""
    gate = make_gate()
    hours, base = 3, base_of(3)
    fill(gate, base, hours)
    before = ask(gate, base, hours)
    for delay in (0.0, 0.005, 0.01, 0.02, 0.04, 0.08):
        gate.process.send_signal(signal.SIGHUP)
        time.sleep(delay)
        gate.kill()
        gate.start()
    compacted(gate, -1)
    wrong = differences(before, ask(gate, base, hours))
    assert not wrong, sorted(wrong)
