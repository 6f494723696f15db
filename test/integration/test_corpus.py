"""The captured requests of real clients, byte for byte: taken or refused by name, and read back to the last unit."""

import collections
import glob
import json
import os
import time

import pytest

from corpus import captures
from gate import bearer
from postgres import OVER_POSTGRES

WINDOW = {"from_": "2026-11-30T00:00:00Z", "until": "2026-12-01T12:00:00Z"}
LAST_DAY = 1796083200 + 80 * 86400
CONF = """\
accept_window: off
retention: { default: 90d }
prefixes: [/pyroscope, /profiles, /base]
anonymous: { project: default, may: [send, read] }
"""
# What the message of a refusal must name.
NAMED = {"otlp proto": "OTLP", "otlp json": "OTLP", "multipart jfr": "JFR", "push grpc": "gRPC", "v8 cpuprofile (not a format of /ingest)": "cpuprofile"}


@pytest.fixture
def lab(make_gate):
    """Knows the credentials of the captures, which are too short for `key create`."""
    gate = make_gate(CONF, start=False)
    with open(gate.keys_file) as f:
        text = f.read()
    for name, secret in (("lab-basic", "lab-password"), ("lab-bearer", "lab-token")):
        done = gate.run("key", "hash", input=secret + "\n")
        assert done.returncode == 0, done.stderr
        text += "- { name: %s, project: default, type: server, hash: \"%s\" }\n" % (name, done.stdout.strip())
    with open(gate.keys_file, "w") as f:
        f.write(text)
    if time.time() > LAST_DAY or "FLAMEGATE_FAKETIME" in os.environ:
        # Ninety days of retention are the most there is, and the captures keep their times: the gateway lives in their week.
        library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        assert library, "the captures are too old to be kept without faketime: `make setup` installs it"
        gate.wrapper = ["env", "LD_PRELOAD=" + library[0], "FAKETIME=@2026-12-01 06:00:00", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
    return gate.start()


def ids(gate):
    return {p["id"]: p for p in gate.profiles(**WINDOW, limit=1000)}


def find_new(gate, known, wanted):
    """Ids that were not there before. (An equal copy is listed once its mark is committed.)"""
    for _ in range(200):
        now = ids(gate)
        new = [i for i in now if i not in known]
        if len(new) == wanted:
            return {i: now[i] for i in new}
    raise AssertionError("%d new profiles instead of %d" % (len(new), wanted))


def check_type(gate, capture, ident, row, expected):
    kind, unit, total, selfs, totals = expected
    where = "%s %s" % (capture.name, kind)
    answer = gate.get("functions", profile=ident, type=row["id"], limit=100000)
    assert (answer["total"], answer["type"]["unit"]) == (total, unit), where
    found = collections.defaultdict(list)
    for f in answer["functions"]:
        found[f["function"]].append(f)
    assert sum(f["self"] for f in answer["functions"]) + answer["other"]["self"] == total, where
    checked = 0
    for name, value in selfs.items():
        assert sum(f["self"] for f in found[name]) == value, "%s self of %s" % (where, name)
        checked += 1
    for name, value in totals.items():
        if len(found[name]) == 1:
            assert found[name][0]["total"] == value, "%s total of %s" % (where, name)
            checked += 1
    return checked


def test_taken_and_read_back_exactly(lab):
    known, rows, sums, taken = {}, 0, collections.Counter(), 0
    for capture in captures():
        if not capture.taken:
            continue
        reply = capture.replay(lab)
        assert reply.status == 200, (capture.name, reply)
        taken += 1
        if "push" in capture.payload:
            assert reply.headers["content-type"] == capture.content_type, capture.name
            assert reply.body == (b"{}" if "json" in capture.payload else b""), capture.name
        else:
            assert reply.body == b"", capture.name
        wanted = capture.profiles()
        new = find_new(lab, known, len(wanted))
        left = dict(new)
        for service, name, types in wanted:
            # Which of the new ones this is: by service and types, and where a request has several alike, by their totals.
            for ident, profile in left.items():
                found = {(t["name"], t["unit"]): t for t in lab.get("types", profile=ident)["types"]}
                if profile["service"] == service and {k: t["total"] for k, t in found.items()} == {(k, u): total for k, u, total, _, _ in types}:
                    break
            else:
                raise AssertionError("%s: no profile of %s with %s, but %s" % (capture.name, service, [t[:3] for t in types], left))
            del left[ident]
            for expected in types:
                row = found[expected[:2]]
                if name:
                    assert row["id"].startswith(name + ":"), (capture.name, row["id"])
                rows += check_type(lab, capture, ident, row, expected)
                sums[service, row["id"]] += expected[2]
        known.update(new)
        kept = [lab.original(i) for i in new]
        assert set(kept) <= ({None} if OVER_POSTGRES else set(capture.inner())) and len(kept) == len(wanted), capture.name
    assert taken == 65
    assert rows > 1500

    # And all of them together, per service and type over the whole window.
    for (service, type_id), total in sums.items():
        assert lab.get("functions", service=service, type=type_id, **WINDOW)["total"] == total, (service, type_id)
    listed = {s["service"]: s["profiles"] for s in lab.get("services", **WINDOW)["services"]}
    assert listed == collections.Counter(p["service"] for p in known.values())


def test_other_formats_are_refused_by_name(lab):
    refused = 0
    for capture in captures():
        if capture.taken or not capture.http1:
            continue
        reply = capture.replay(lab)
        assert reply.status == 415, (capture.name, reply)
        assert reply.headers["content-type"] == "application/json"
        error = json.loads(reply.body)
        assert error["code"] == "unimplemented"
        assert NAMED.get(capture.payload, capture.payload).lower() in error["message"].lower(), (capture.name, error)
        refused += 1
    assert refused == 37
    assert lab.profiles(**WINDOW) == []


def test_http2_preface_is_505(lab):
    seen = 0
    for capture in captures():
        if capture.http1:
            continue
        with lab.wire() as wire:
            wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
            reply = wire.reply()
            assert reply.status == 505 and reply.json()["code"] == "unimplemented"
            assert wire.closed()
        seen += 1
    assert seen == 5


def test_strangers_are_refused_before_their_body(make_gate):
    """The same captures at a gateway that does not know their keys: 401, and nothing of the body is needed for it."""
    gate = make_gate(CONF.replace("anonymous", "#"))
    for capture in captures()[::6]:
        if capture.http1 and capture.taken:
            with gate.wire() as wire:
                assert wire.send(capture.head()).reply().status == 401, capture.name
    assert gate.request("POST", "/ingest?name=x", b"a 1\n", bearer("no-such-token")).status == 401
