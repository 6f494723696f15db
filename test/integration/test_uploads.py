"""The upload ledger: every upload leaves an entry that says what became of it, whoever may see it sees it, from every replica, and no
upload waits for it."""

import gzip
import json
import os
import re
import shutil
import socket
import threading
import time

import pytest

from bodies import CPU, MULTIPART, Pprof, multipart, push, push_json, simple, zeros_gz
from gate import JSON, PROTO, PUSH, basic

FIELDS = ["time", "key", "verdict", "status", "reason", "message", "route", "format", "bytes", "inflated", "service", "types", "client", "retry_of"]
FOLDED = b"main;work 7\n"
DAY = 86400 * 10**9
LIMITS = "limits: { body: 64KiB, inflated: 256KiB, field: 64KiB, samples: 100, sample_labels: 3, labels: 4, label_name: 40, label_value: 50, profiles: 5 }\n"
CPU_ID = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
SAMPLES_ID = "process_cpu:samples:count:cpu:nanoseconds"


def ledger(gate, **params):
    return gate.get("uploads", **params)["uploads"]


def newest(gate, **params):
    return ledger(gate, **params)[0]


def folded(gate, body=FOLDED, name="shop", **kw):
    return gate.ingest(body, name=name, format="folded", **kw)


def many_samples(n):
    p = Pprof(CPU)
    for i in range(n):
        p.add(["root", "f%d" % i], [1, 1])
    return p.gz()


def one(labels, *payloads):
    return push([(labels, list(payloads))])


GOOD = simple().gz()
SHOP = {"service_name": "shop", "__name__": "process_cpu"}
NOW = time.time_ns

# what is sent -> status, verdict, reason, service, format
CASES = {
    "folded": (lambda g: folded(g), 200, "accepted", "", "shop", "folded"),
    "suffix cut": (lambda g: folded(g, name="shop.cpu{env=lab}"), 200, "accepted", "", "shop", "folded"),
    "service by label": (lambda g: folded(g, name="app{service_name=billing}"), 200, "accepted", "", "billing", "folded"),
    "pprof": (lambda g: g.ingest(GOOD), 200, "accepted", "", "shop", "pprof"),
    "multipart": (lambda g: g.ingest(multipart([("profile", GOOD)]), headers=MULTIPART), 200, "accepted", "", "shop", "multipart"),
    "push": (lambda g: g.push(one(SHOP, GOOD)), 200, "accepted", "", "shop", "push-proto"),
    "push json": (lambda g: g.send(PUSH, push_json([(SHOP, [GOOD])]), JSON), 200, "accepted", "", "shop", "push-json"),
    "push without a service": (lambda g: g.push(one({"__name__": "process_cpu"}, GOOD)), 200, "accepted", "", "unknown_service", "push-proto"),
    "empty body": (lambda g: folded(g, b""), 200, "accepted", "empty_profiles", "shop", "folded"),
    "all samples zero": (lambda g: g.ingest(simple(value=0).gz()), 200, "accepted", "empty_profiles", "shop", "pprof"),
    "no samples": (lambda g: g.ingest(Pprof(CPU).gz()), 200, "accepted", "empty_profiles", "shop", "pprof"),
    "multipart without a profile": (lambda g: g.ingest(multipart([("other", b"x")]), headers=MULTIPART), 200, "accepted", "empty_profiles", "shop", "multipart"),
    "format": (lambda g: g.ingest(b"x", format="jfr"), 415, "refused", "unsupported_media_type", "shop", ""),
    "push type": (lambda g: g.send(PUSH, b"x", {"Content-Type": "text/plain"}), 415, "refused", "unsupported_media_type", "", ""),
    "otlp": (lambda g: g.send("/v1development/profiles", b"x"), 415, "refused", "unsupported_media_type", "", ""),
    "coding": (lambda g: folded(g, headers={"Content-Encoding": "br"}), 415, "refused", "unsupported_encoding", "shop", ""),
    "two types": (lambda g: two_types(g), 400, "refused", "bad_request", "shop", ""),
    "expectation": (lambda g: folded(g, headers={"Expect": "202-ok"}), 417, "refused", "bad_framing", "shop", ""),
    "torn gzip": (lambda g: g.ingest(GOOD[:-9]), 400, "refused", "bad_encoding", "shop", "pprof"),
    "no pprof": (lambda g: g.ingest(b"# HELP x y\n"), 400, "refused", "malformed_profile", "shop", "pprof"),
    "no pprof in a push": (lambda g: g.push(one(SHOP, b"# HELP x y\n")), 400, "refused", "malformed_profile", "shop", "push-proto"),
    "no push": (lambda g: g.push(b"\xff\xff"), 400, "refused", "malformed_profile", "", "push-proto"),
    "folded line": (lambda g: folded(g, b"main\n"), 400, "refused", "malformed_profile", "shop", "folded"),
    "no name": (lambda g: folded(g, name=""), 400, "refused", "invalid_labels", "", "folded"),
    "labels": (lambda g: folded(g, name="sh\x01op{a=1}"), 400, "refused", "invalid_labels", "sh\x01op", "folded"),
    "many labels": (lambda g: folded(g, name="shop{a=1,b=2,c=3,d=4,e=5,f=6}"), 400, "refused", "max_label_names_per_series", "shop", "folded"),
    "long value": (lambda g: folded(g, name="shop{a=%s}" % ("v" * 51)), 400, "refused", "label_value_too_long", "shop", "folded"),
    "long name": (lambda g: g.push(one({**SHOP, "n" * 41: "v"}, GOOD)), 400, "refused", "label_name_too_long", "shop", "push-proto"),
    "old": (lambda g: g.push(one(SHOP, simple(time_ns=NOW() - 3 * DAY).gz())), 400, "refused", "not_in_ingestion_window", "shop", "push-proto"),
    "empty push": (lambda g: g.push(b""), 400, "refused", "no_profiles", "", "push-proto"),
    "samples": (lambda g: g.ingest(many_samples(101)), 400, "refused", "samples_limit", "shop", "pprof"),
    "sample labels": (lambda g: g.ingest(Pprof(CPU).add(["a"], 1, {"l%d" % i: "v" for i in range(4)}).gz()), 400, "refused", "sample_labels_limit", "shop", "pprof"),
    "profiles": (lambda g: g.push(one(SHOP, *[GOOD] * 6)), 400, "refused", "profiles_limit", "", "push-proto"),
    "body, as announced": (lambda g: folded(g, bytes(65 << 10)), 413, "refused", "body_size_limit_exceeded", "shop", ""),
    "body, as it came": (lambda g: chunked(g, b"main;x 1\n" * 10000), 413, "refused", "body_size_limit_exceeded", "shop", "folded"),
    "inflated": (lambda g: g.ingest(zeros_gz(300 << 10)), 413, "refused", "decompressed_size", "shop", "pprof"),
    "a batch in part": (lambda g: g.push(push([(SHOP, [GOOD, b"junk", simple(time_ns=1).gz()]), ({"service_name": "other"}, [simple("x").gz()])])), 400, "partial",
                        "malformed_profile", "shop", "push-proto"),
    "browser key": (lambda g: folded(g, key=g.browser), 403, "refused", "permission_denied", "shop", ""),
    "reader key": (lambda g: folded(g, key=g.reader), 403, "refused", "permission_denied", "shop", ""),
}


def two_types(gate):
    with gate.wire() as wire:
        wire.send(b"POST /ingest?name=shop HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Type: text/plain\r\nContent-Type: text/html\r\n"
                  b"Content-Length: 0\r\n\r\n" % gate.key.encode())
        return wire.reply()


def chunked(gate, body):
    with gate.wire() as wire:
        wire.send(b"POST /ingest?name=shop&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
                  % (gate.key.encode(), len(body), body))
        return wire.reply()


@pytest.fixture
def lab(make_gate):
    gate = make_gate(LIMITS)
    gate.browser = gate.create("browser")
    gate.until(lambda: gate.request("GET", "/otlp/v1/validate", None, basic("", gate.browser)).status, 200)
    return gate


def test_every_verdict_and_reason(lab):
    for at, (name, (send, status, verdict, reason, service, form)) in enumerate(CASES.items()):
        reply = send(lab)
        assert reply.status == status, (name, reply)
        rows = ledger(lab)
        assert len(rows) == at + 1, name  # one each, there at once
        row = rows[0]
        got = [row[k] for k in ("status", "verdict", "reason", "service", "format")]
        assert got == [status, verdict, reason, service, form], (name, row)
        assert list(row)[: len(FIELDS)] == FIELDS
        assert bool(row["message"]) == (row["reason"] != ""), (name, row)
        if status != 200:
            assert reply.json()["message"].startswith(row["message"]) or row["message"] in reply.json()["message"], (name, row, reply)
        assert row["profiles"] == row["stored"] + row["empty"] + row["refused"] + row["failed"], row
        assert (row["stored"] > 0) == (verdict in ("accepted", "partial") and reason != "empty_profiles"), (name, row)
        assert row["types"] == sorted(row["types"]) or row["stored"], row
    counts = {v: len(ledger(lab, verdict=v)) for v in ("accepted", "partial", "refused", "failed", "cut")}
    assert sum(counts.values()) == len(CASES) and counts["partial"] == 1
    assert lab.count("flamegate_ledger_entries_total", outcome="kept") == len(CASES)
    assert lab.count("flamegate_ledger_entries_total") == len(CASES)


def test_what_an_entry_says(gate):
    before = time.time()
    body = Pprof(CPU).add(["main", "f"], [3, 30]).add(["main", "g"], [4, 40]).raw()
    packed = gzip.compress(body)
    agent = {"User-Agent": "Alloy/v1.11.0 (linux; binary)"}
    reply = gate.push(one({**SHOP, "env": "lab"}, packed), agent)
    assert reply.status == 200
    row = newest(gate)
    assert row["key"] == "server" and row["route"] == "push" and row["client"] == "Alloy/v1.11.0"
    assert row["bytes"] == len(one({**SHOP, "env": "lab"}, packed)) and row["inflated"] >= len(body)
    assert set(row["types"]) == {CPU_ID, SAMPLES_ID} and row["retry_of"] is None
    assert gate.key not in json.dumps(row)
    at = time.mktime(time.strptime(row["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert before - 2 < at < time.time() + 2
    shown = gate.get("profiles/" + row["profile"])  # from the ledger to the profile
    assert shown["service"] == row["service"] and shown["time"] == row["first"] == row["last"]
    assert sorted(shown["types"]) == sorted(row["types"])

    assert gate.ingest(body, name="shop.cpu{env=lab}", headers={"User-Agent": "curl"}).status == 200
    row = newest(gate)
    assert (row["name"], row["client"], row["inflated"]) == ("shop.cpu{env=lab}", "curl", len(body))


def test_200_but_no_data(gate):
    """Each way to get a 200 and see nothing is told by one request."""
    hours_ago = NOW() - 20 * 3600 * 10**9
    assert gate.push(one(SHOP, simple(time_ns=hours_ago).gz())).status == 200
    assert gate.ingest(simple(value=0).gz(), name="zero").status == 200
    assert folded(gate, name="renamed.alloc_space").status == 200
    assert folded(gate, b"# only a comment\n", name="comment").status == 200
    assert gate.get("functions", service="shop")["profiles"] == 0
    row = newest(gate, service="shop")
    assert row["verdict"] == "accepted" and row["first"] == row["last"]
    assert gate.get("functions", service="shop", **{"from": row["first"], "until": row["last"][:-1].replace(row["last"][-4:-1], "999") + "Z"})["profiles"] == 1
    assert "0" in newest(gate, service="zero")["message"] and newest(gate, service="zero")["empty"] == 1
    row = newest(gate, service="renamed")
    assert row["name"] == "renamed.alloc_space" and row["types"] == ["memory:alloc_space:bytes::"], row
    assert newest(gate, service="comment")["reason"] == "empty_profiles"


def test_a_retry_names_the_attempt_before(gate):
    body = simple("again").gz()
    for _ in range(3):
        assert gate.ingest(body, name="again").status == 200
    assert gate.ingest(simple("fresh").gz(), name="fresh").status == 200
    third, second, first = ledger(gate, service="again")
    assert first["retry_of"] is None and second["retry_of"] == first["time"] and third["retry_of"] == second["time"]
    assert newest(gate, service="fresh")["retry_of"] is None
    assert newest(gate, service="again", limit=1)["retry_of"] == second["time"]  # found beyond what is shown


def test_failed(make_gate):
    gate = make_gate("spool: { max_bytes: 0B }\n", samples="postgres://nobody@127.0.0.1:1/none", shares="sqlite:")
    assert folded(gate).status == 503
    row = newest(gate)
    assert (row["status"], row["verdict"], row["reason"], row["failed"]) == (503, "failed", "store_unavailable", 1), row


def test_shed(make_gate):
    gate = make_gate("memory: 32MiB\nlimits: { body: 4MiB, decoded: 8MiB, inflated: 8MiB }\ntimeouts: { admission: 200ms }\n")
    wires = []
    line = b"main;%s 1\n" % (b"x" * 60)
    status = 200
    while status == 200 and len(wires) < 200:
        wire = gate.wire()
        wire.socket.settimeout(0.2)
        wires.append(wire)
        try:
            wire.send(b"POST /ingest?name=held HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: 400000\r\n\r\n" % gate.key.encode() + line * 4000)
        except OSError:
            pass
        status = folded(gate, name="small").status
    assert status == 503
    row = newest(gate, service="small")
    assert (row["status"], row["verdict"], row["reason"]) == (503, "refused", "shed"), row
    for wire in wires:
        wire.close()
    gate.until(lambda: len(ledger(gate, verdict="cut", limit=1000)) > 0, True)


def test_caps_of_a_project(make_gate):
    gate = make_gate("limits: { services: 1 }\n")
    assert folded(gate, name="first").status == 200
    reply = folded(gate, name="second")
    row = newest(gate)
    assert row["status"] == reply.status >= 400 and row["verdict"] == "refused" and row["service"] == "second", row
    assert row["message"] in reply.json()["message"] and "limits.services" in row["message"], row


def begun(gate, name, n=100):
    wire = gate.wire()
    return wire.send(b"POST /ingest?name=%s&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\nmain;" %
                     (name.encode(), gate.key.encode(), n))


def test_cut(make_gate):
    gate = make_gate("timeouts: { body: 300ms }\n")
    wire = begun(gate, "gone")
    time.sleep(0.1)
    wire.close()
    gate.until(lambda: [r["reason"] for r in ledger(gate, service="gone")], ["peer"])
    row = newest(gate, service="gone")
    assert row["status"] is None and row["verdict"] == "cut" and row["bytes"] == 5 and "5 bytes" in row["message"]
    with begun(gate, "slow"):
        gate.until(lambda: [r["reason"] for r in ledger(gate, service="slow")], ["body_timeout"])
    # Whose client goes while the store works: stored all the same, and it says so.
    wire = gate.wire()
    wire.send(b"POST /ingest?name=hasty&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n%s" % (gate.key.encode(), len(FOLDED), FOLDED))
    wire.reset()
    gate.until(lambda: len(ledger(gate, service="hasty")) , 1)
    row = newest(gate, service="hasty")
    assert row["verdict"] == ("accepted" if row["status"] else "cut"), row
    if row["stored"] and row["verdict"] == "cut":
        assert "stored" in row["message"], row


def test_cut_by_shutdown_and_kept_over_a_restart(make_gate):
    gate = make_gate("shutdown_timeout: 1s\n")
    assert folded(gate).status == 200
    wire = begun(gate, "half")
    time.sleep(0.1)
    gate.stop()
    wire.close()
    gate.start()
    assert [(r["verdict"], r["reason"]) for r in ledger(gate)] == [("cut", "shutdown"), ("accepted", "")]


def test_who_sees_what(gate):
    keys = {n: gate.create("server", n) for n in ("one", "two")}
    other = {t: gate.create(t, "other-" + t, "--project", "other") for t in ("server", "reader", "admin")}
    browser = gate.create("browser")
    gate.until(lambda: gate.request("GET", "/otlp/v1/validate", None, basic("", browser)).status, 200)
    for n, key in [*keys.items(), ("other", other["server"])]:
        for _ in range(2):
            assert folded(gate, name=n, key=key).status == 200
    assert folded(gate, key="f" * 43).status == 401  # nobody's: it is counted, not kept
    seen = lambda key, **p: sorted({r["key"] for r in gate.read("uploads", key=key, **p).json()["uploads"]})
    assert seen(keys["one"]) == ["one"] and seen(keys["two"]) == ["two"]
    assert seen(keys["one"], key_="two") == []
    for key in (gate.reader, gate.admin):
        assert seen(key) == ["one", "two"] and seen(key, service="two") == ["two"]
    for t in other:
        assert seen(other[t]) == ["other-server"]
    assert gate.read("uploads", key=browser).status == 403
    assert gate.request("GET", "/api/v1/uploads").status == 401
    assert gate.count("flamegate_requests_total", route="ingest", code="401") == 1
    assert gate.count("flamegate_ledger_entries_total", outcome="kept") == 6
    # Validation points to it, for those who may look.
    where = lambda key: gate.request("GET", "/otlp/v1/validate", None, basic("", key)).json().get("uploads")
    assert where(browser) is None
    for key in (gate.key, gate.reader, gate.admin):
        assert gate.request("GET", "/pyroscope" + where(key), None, basic("", key)).status == 200


def test_anonymous(make_gate):
    gate = make_gate("anonymous: { project: lab, may: [send, read] }\n")
    assert gate.request("POST", "/ingest?name=x&format=folded", FOLDED).status == 200
    assert gate.request("GET", "/api/v1/uploads").json()["uploads"][0]["key"] == "anonymous"
    assert ledger(gate) == []  # of the key's project


def test_filters(gate):
    for i in range(5):
        assert folded(gate, name="s%d" % (i % 2)).status == 200
    assert folded(gate, b"bad\n", name="s1").status == 400
    assert [r["service"] for r in ledger(gate)] == ["s1", "s0", "s1", "s0", "s1", "s0"]
    assert len(ledger(gate, service="s0")) == 3 and len(ledger(gate, service="s")) == 0
    assert [r["status"] for r in ledger(gate, verdict="refused")] == [400]
    assert len(ledger(gate, reason="malformed_profile", key_="server")) == 1 and ledger(gate, key_="serve") == []
    assert len(ledger(gate, limit=2)) == 2 and ledger(gate, limit=2) == ledger(gate)[:2]
    assert len(ledger(gate, **{"from": "now-1m"})) == 6 and ledger(gate, **{"from": "now-2h", "until": "now-1h"}) == []
    answer = gate.get("uploads", **{"from": "now-2h", "until": "now-1h"})
    assert answer["from"] < answer["until"] and answer["uploads"] == []
    for wrong in ({"verdict": "good"}, {"limit": "0"}, {"limit": "x"}, {"from": "yesterday"}, {"nosuch": "1"}, {"match": "{}"}, {"format": "dot"}):
        reply = gate.read("uploads", **wrong)
        assert reply.status == 400 and list(wrong)[0] in reply.json()["message"], (wrong, reply)
    assert gate.request("POST", "/api/v1/uploads", b"", basic("", gate.reader)).headers["allow"] == "GET, HEAD"
    # A PushRequest of several services is found by each.
    assert gate.push(push([({"service_name": "p%d" % i}, [simple().gz()]) for i in range(20)])).status == 200
    row = newest(gate, service="p15")
    assert len(row["services"]) + row["more_services"] == 20 and row["service"] == "p0" and row["stored"] == 20


def test_hostile_bytes(gate):
    names = ["a\x1b[31mred\x7f\u0085\u202e", "q\"uo\\te\nnew\rline\ttab", "caf\u00e9 \U0001f525", "x" * 3000]
    for name in names:
        folded(gate, name=name)
        gate.push(one({"service_name": name}, b"\x1b]0;pwn\x07\xff\xfe"))
    folded(gate, b"\x1b[2Jbad line\xff\n", name="raw", headers={"User-Agent": "evil\"}/1.0\t<script> ("})
    with gate.wire() as wire:
        wire.send(b"POST /ingest?name=%ff%fe%00%1b HTTP/1.1\r\nHost: x\r\nUser-Agent: \xc2\x9b31m/1\r\nx-flamegate-token: " + gate.key.encode() + b"\r\nContent-Length: 1\r\n\r\n\x1b")
        wire.reply()
    for form in ("json", "text"):
        reply = gate.read("uploads", format=form)
        text = reply.body.decode()  # valid UTF-8
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), form
        assert all(len(line) <= 100 for line in text.splitlines()) or form == "json"
    rows = ledger(gate)
    assert len(rows) == 2 * len(names) + 2
    assert all(len(r["message"].encode()) <= 250 and len(r["service"].encode()) <= 250 and len(r["client"]) <= 64 for r in rows)
    assert rows[1]["client"] == 'evil"}/1.0' and rows[0]["client"] == ""


def test_text(gate):
    assert folded(gate).status == 200
    assert folded(gate, b"bad\n", name="billing").status == 400
    text = gate.read("uploads", format="text").text.splitlines()
    assert text[0] == "2 uploads · all services · the last ones"
    assert "billing" in text[2] and "400 refused" in text[2] and text[3].strip().startswith("malformed_profile: folded text, line 1")
    assert "shop" in text[4] and "200 accepted" in text[4]
    assert gate.read("uploads", headers={"Accept": "text/plain"}).text.splitlines() == text


def test_cap(make_gate):
    gate = make_gate("uploads: { keep: 100 }\n")
    for i in range(250):
        assert folded(gate, name="n%d" % i).status == 200
    for i in range(20):
        folded(gate, b"bad\n", name="b%d" % i)
    rows = ledger(gate, limit=1000)
    good = [r["service"] for r in rows if r["verdict"] == "accepted"]
    assert 100 <= len(good) <= 200 and good == ["n%d" % i for i in range(249, 249 - len(good), -1)]
    assert len(rows) - len(good) == 20  # neither kind pushes the other out
    assert gate.get("uploads")["keep"] == 100


@pytest.mark.parametrize("conf", ["shares: 'null:'\n", "uploads: { keep: 0 }\n"])
def test_none_are_kept(make_gate, conf):
    gate = make_gate(conf)
    assert folded(gate).status == 200
    answer = gate.get("uploads")
    assert answer["uploads"] == [] and answer["keep"] == 0 and "no uploads are kept" in answer["note"]
    assert "no uploads are kept" in gate.read("uploads", format="text").text
    assert not os.path.exists(os.path.join(gate.dir, "data", "uploads.sqlite"))


def test_without_a_place_for_it(make_gate):
    """A ledger that cannot be written costs no upload."""
    gate = make_gate(start=False, shares="sqlite:")
    os.makedirs(os.path.join(gate.dir, "data", "uploads.sqlite"))
    gate.start()
    for _ in range(3):
        assert folded(gate).status == 200
    gate.until(lambda: gate.metrics()["flamegate_ledger_healthy"], 0)
    assert gate.metrics()["flamegate_ledger_waiting"] == 3
    assert gate.read("uploads").status == 503 and int(gate.read("uploads").headers["retry-after"]) >= 1
    assert gate.log().count("ev=away") == 1
    os.rmdir(os.path.join(gate.dir, "data", "uploads.sqlite"))
    gate.until(lambda: gate.read("uploads").status == 200 and len(ledger(gate)), 3)


@pytest.fixture
def replicas(make_gate, redis, postgres):
    one = make_gate(samples=postgres.create(), shares=redis.create())
    two = make_gate(start=False, keys=False, samples=one.samples, shares=one.shares)
    os.makedirs(os.path.join(two.dir, "data"))
    shutil.copy(os.path.join(one.dir, "data", "hash.key"), os.path.join(two.dir, "data", "hash.key"))
    shutil.copy(one.keys_file, two.keys_file)
    two.key, two.reader, two.admin = one.key, one.reader, one.admin
    yield one, two.start()
    if redis.process.poll() is not None:
        redis.start()


def test_replicas_say_the_same(replicas, redis):
    one, two = replicas
    for i in range(10):
        assert folded((one, two)[i % 2], name="n%d" % i).status == 200
    assert folded(one, b"bad\n").status == 400
    body = simple("twice").gz()
    assert one.ingest(body, name="twice").status == two.ingest(body, name="twice").status == 200
    two.until(lambda: len(ledger(two)), 13)
    one.until(lambda: len(ledger(one)), 13)
    assert ledger(one) == ledger(two)
    second, first = ledger(one, service="twice")
    assert second["retry_of"] == first["time"] and first["retry_of"] is None  # over replicas
    redis.kill()
    times = []
    for i in range(20):
        start = time.monotonic()
        assert folded(one, name="away%d" % i).status == 200
        times.append(time.monotonic() - start)
    assert max(times) < 1, times
    reply = one.read("uploads")
    assert reply.status == 503 and int(reply.headers["retry-after"]) >= 1 and "ledger" in reply.json()["message"], reply
    one.until(lambda: one.metrics()["flamegate_ledger_waiting"], 20)
    redis.start()
    # A Redis without a disk has lost the old ones; those that waited come.
    one.until(lambda: two.read("uploads").status == 200 and len({r["service"] for r in ledger(two) if r["service"].startswith("away")}), 20, 15)


def test_a_flood_of_refusals(make_gate):
    """Ten thousand refused uploads as fast as they can be sent: the loop stays free, and every one is kept, or counted as lost."""
    gate = make_gate()
    n, lanes = 10_000, 4
    wrong = ("POST /ingest?name=flood&format=jfr HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: 0\r\n\r\n" % gate.key).encode()

    def flood():
        with gate.wire(60) as wire:
            def read():
                left = n // lanes
                tail = b""
                while left:
                    data = wire.socket.recv(1 << 16)
                    assert data
                    left -= (tail + data).count(b"HTTP/1.1 415 ") - tail.count(b"HTTP/1.1 415 ")
                    tail = (tail + data)[-12:]
            reader = threading.Thread(target=read)
            reader.start()
            for _ in range(n // lanes // 50):
                wire.socket.sendall(wrong * 50)
            reader.join()

    threads = [threading.Thread(target=flood) for _ in range(lanes)]
    start = time.monotonic()
    for t in threads:
        t.start()
    waits = []
    while any(t.is_alive() for t in threads):
        at = time.monotonic()
        assert gate.request("GET", "/healthz").status == 200
        waits.append(time.monotonic() - at)
        time.sleep(0.01)
    took = time.monotonic() - start
    m = gate.metrics()
    assert gate.count("flamegate_requests_total", m, route="ingest", code="415") == n
    gate.until(lambda: gate.metrics()["flamegate_ledger_waiting"], 0, 10)
    gate.until(lambda: gate.count("flamegate_ledger_entries_total"), n)
    waits.sort()
    print("%.0f/s, healthz median %.1f ms, worst %.1f ms" % (n / took, waits[len(waits) // 2] * 1e3, waits[-1] * 1e3))
    assert waits[len(waits) // 2] < 0.5
    assert len(ledger(gate, limit=100)) == 100
