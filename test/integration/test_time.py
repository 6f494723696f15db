"""Whose time counts, what lies outside of the window, and how a question's window is read."""

import datetime
import time

import pytest

from bodies import Pprof, push, simple

S = 10**9
FOLDED = b"main 1\n"


def at(gate):
    """The one profile's time, in ns."""
    found = gate.profiles(from_="1960-01-01T00:00:00Z", until="2100-01-01T00:00:00Z")
    assert len(found) == 1
    return ns(found[0]["time"])


def ns(text):
    base, _, rest = text.rstrip("Z").partition(".")
    moment = datetime.datetime.fromisoformat(base).replace(tzinfo=datetime.timezone.utc)
    return int(moment.timestamp()) * S + int((rest + "0" * 9)[:9])


def rfc(n):
    return datetime.datetime.fromtimestamp(n // S, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + ".%09dZ" % (n % S)


class TestProfileTime:
    def test_time_nanos_to_the_nanosecond(self, gate):
        t = time.time_ns() - 3600 * S + 123
        assert gate.ingest(simple(time_ns=t).gz(), **{"from": "1"}).status == 200
        assert at(gate) == t

    def test_two_a_millisecond_apart_stay_two(self, gate):
        t = time.time_ns()
        for shift in (0, 10**6, 10**6 + 1):
            assert gate.ingest(simple(time_ns=t + shift).gz(), **{"from": str(t // S)}).status == 200
        assert len(gate.profiles()) == 3

    @pytest.mark.parametrize("own", [0, 300_000_000, 1_700_000_000_000_000, -5, (1 << 63) - 1])
    def test_1970_and_absurd_count_as_absent(self, gate, own):
        """On /ingest `from` takes over; without it, arrival."""
        start = time.time_ns() // S - 60
        assert gate.ingest(simple(time_ns=own).gz(), **{"from": str(start)}).status == 200
        assert at(gate) == start * S

    def test_absent_is_arrival(self, gate):
        before = time.time_ns()
        assert gate.ingest(simple(time_ns=0).gz()).status == 200
        assert before - S <= at(gate) <= time.time_ns()

    @pytest.mark.parametrize("digits", [10, 13, 16, 19])
    def test_from_by_digits(self, gate, digits):
        t = time.time_ns() - 100 * S
        scale = 10 ** (19 - digits)
        assert gate.ingest(FOLDED, format="folded", **{"from": str(t // scale)}).status == 200
        assert at(gate) == t // scale * scale

    @pytest.mark.parametrize("text, back", [("now-5m", 300), ("now-1h", 3600), ("now-10s", 10), ("now", 0), ("", 0), ("junk", 0), ("1700000000.5", 0)])
    def test_from_in_words(self, gate, text, back):
        assert gate.ingest(FOLDED, format="folded", **{"from": text}).status == 200
        assert abs(time.time_ns() - back * S - at(gate)) < 5 * S

    def test_from_after_until_is_fine(self, gate):
        now = time.time_ns() // S
        assert gate.ingest(FOLDED, format="folded", **{"from": str(now), "until": str(now - 10)}).status == 200
        assert at(gate) == now * S


class TestAcceptWindow:
    LABELS = {"__name__": "process_cpu", "service_name": "shop"}

    def push(self, gate, t):
        return gate.push(push([(self.LABELS, [simple(time_ns=t).gz()])]))

    def test_push_outside_is_400_with_both_bounds(self, gate):
        now = time.time_ns()
        for t in (now - 25 * 3600 * S, now + 11 * 60 * S, 300_000_000, 1_700_000_000_000_000, (1 << 63) - 1):
            reply = self.push(gate, t)
            assert reply.status == 400 and reply.json()["code"] == "invalid_argument", t
            assert "window" in reply.json()["message"], reply
        assert gate.profiles(from_="1960-01-01T00:00:00Z", until="2100-01-01T00:00:00Z") == []
        assert gate.count("flamegate_profiles_refused_total", reason="not_in_ingestion_window") == 5

    def test_push_inside(self, gate):
        now = time.time_ns()
        for t in (now - 23 * 3600 * S, now + 9 * 60 * S, now):
            assert self.push(gate, t).status == 200

    def test_push_zero_is_arrival(self, gate):
        before = time.time_ns()
        assert self.push(gate, 0).status == 200
        assert before - S <= at(gate) <= time.time_ns()

    def test_ingest_old_takes_from_else_arrival(self, gate):
        before = time.time_ns()
        assert gate.ingest(simple(time_ns=before - 400 * 86400 * S).gz()).status in (200, 400)

    def test_off(self, make_gate):
        gate = make_gate("accept_window: off\nretention: { default: 90d }\n")
        for back in (25, 48, 24 * 80):
            assert self.push(gate, time.time_ns() - back * 3600 * S).status == 200
        assert len(gate.profiles(from_="now-89d")) == 3

    def test_one_side(self, make_gate):
        gate = make_gate("accept_window: { past: off, future: 1m }\n")
        assert self.push(gate, time.time_ns() - 30 * 3600 * S).status == 200
        assert self.push(gate, time.time_ns() + 120 * S).status == 400


class TestQuestions:
    def test_whole_minutes(self, gate):
        answer = gate.get("functions", from_="2026-11-30T10:00:20Z", until="2026-11-30T10:05:01Z")
        assert (ns(answer["from"]), ns(answer["until"])) == (ns("2026-11-30T10:00:00Z"), ns("2026-11-30T10:06:00Z"))
        answer = gate.get("functions", from_="2026-11-30T10:00:00Z", until="2026-11-30T10:05:00Z")
        assert (ns(answer["from"]), ns(answer["until"])) == (ns("2026-11-30T10:00:00Z"), ns("2026-11-30T10:05:00Z"))

    @pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
    def test_unix_time_by_digits(self, gate, scale):
        t = ns("2026-11-30T10:00:00Z") // S
        answer = gate.get("functions", from_=t * scale, until=(t + 60) * scale)
        assert (ns(answer["from"]), ns(answer["until"])) == (t * S, (t + 60) * S)

    @pytest.mark.parametrize("text, back", [("now-1h", 3600), ("now-15m", 900), ("now-30s", 30), ("now-2d", 172800)])
    def test_relative(self, gate, text, back):
        answer = gate.get("functions", from_=text, until="now")
        assert 0 <= time.time_ns() - back * S - ns(answer["from"]) < 63 * S
        assert ns(answer["from"]) % (60 * S) == 0 and ns(answer["until"]) % (60 * S) == 0

    def test_offsets_and_fractions(self, gate):
        answer = gate.get("functions", from_="2026-11-30T12:00:00+02:00", until="2026-11-30T10:01:00.000000001Z")
        assert (ns(answer["from"]), ns(answer["until"])) == (ns("2026-11-30T10:00:00Z"), ns("2026-11-30T10:02:00Z"))

    def test_default_is_the_last_hour(self, gate):
        answer = gate.get("functions")
        assert 3600 * S <= ns(answer["until"]) - ns(answer["from"]) <= 3660 * S

    @pytest.mark.parametrize("bad", ["yesterday-ish", "2026-13-01T00:00:00Z", "2026-11-30", "now-", "now-5parsecs", "-5", "99999999999999999999"])
    def test_bad(self, gate, bad):
        for name in ("from", "until"):
            reply = gate.read("functions", **{name: bad})
            assert reply.status == 400 and name in reply.json()["message"], (bad, reply)

    def test_until_before_from(self, gate):
        reply = gate.read("functions", from_="now", until="now-1h")
        assert reply.status == 400

    def test_half_open(self, make_gate):
        gate = make_gate("accept_window: off\nretention: { default: 90d }\n")
        start = (time.time_ns() // S // 3600 - 2) * 3600 * S
        for t in (start - 1, start, start + 60 * S - 1, start + 60 * S):
            assert gate.ingest(simple(value=1, time_ns=t).gz()).status == 200
        window = {"from_": rfc(start), "until": rfc(start + 60 * S)}
        assert gate.get("functions", service="shop", type="cpu", **window)["total"] == 2
        assert sorted(ns(p["time"]) for p in gate.profiles(**window)) == [start, start + 60 * S - 1]
        parts = [gate.get("functions", service="shop", type="cpu", from_=rfc(start + i * 60 * S), until=rfc(start + (i + 1) * 60 * S))["total"] for i in (-1, 0, 1)]
        assert parts == [1, 2, 1]


def test_over_midnight(make_gate):
    """A window over two days reads both of their files, and a group never mixes them up."""
    gate = make_gate("accept_window: off\nretention: { default: 90d }\n")
    midnight = time.time_ns() // S // 86400 * 86400 * S
    body = push([({"__name__": "process_cpu", "service_name": "shop"}, [simple("n%d" % i, 1, time_ns=midnight + i * S).gz() for i in range(-5, 5)])])
    assert gate.push(body).status == 200
    window = {"from_": rfc(midnight - 60 * S), "until": rfc(midnight + 60 * S)}
    rows, answer = gate.rows(service="shop", type="cpu", **window)
    assert answer["total"] == 10 and len(rows) == 11 and rows["root", ""] == [0, 10]
    assert gate.get("functions", service="shop", type="cpu", from_=rfc(midnight - 60 * S), until=rfc(midnight))["total"] == 5


def test_retention_per_service(make_gate):
    """What has outlived its service's days goes, what has not stays."""
    gate = make_gate("accept_window: off\nretention: { default: 30d, services: { brief: 1d } }\n")
    old = time.time_ns() - 5 * 86400 * S
    for service in ("brief", "long"):
        assert gate.ingest(simple(value=1, time_ns=old).gz(), name=service).status == 200
    assert gate.get("functions", service="long", type="cpu", from_="now-10d")["total"] == 1
    gate.stop()
    gate.start()
    gate.until(lambda: gate.get("functions", service="brief", from_="now-10d")["total"], 0)
    assert gate.get("functions", service="long", type="cpu", from_="now-10d")["total"] == 1
