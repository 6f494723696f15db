"""Rates of projects and options of single ones: 429 says what is used up and when to come again, and nobody else notices."""

import concurrent.futures
import threading
import time

import pytest

from bodies import Pprof, simple
from gate import flamegate


def limited(reply, name):
    assert reply.status == 429 and reply.json()["code"] == "resource_exhausted", reply
    assert name in reply.json()["message"], reply
    assert 1 <= int(reply.headers["retry-after"]) <= 3600
    return int(reply.headers["retry-after"])


def test_requests(make_gate):
    gate = make_gate("rates: { requests: 2, burst: 2s }\n")
    send = lambda: gate.ingest(simple().gz())
    assert [send().status for _ in range(4)] == [200] * 4
    wait = limited(send(), "rates.requests = 2 a second (4 at once)")
    assert gate.count("flamegate_requests_refused_total", reason="rate_limited") == 1
    assert gate.read("services").status == 200  # reading is another matter
    time.sleep(wait)
    assert send().status == 200


def test_bytes_before_the_body_and_behind_it(make_gate):
    gate = make_gate("rates: { bytes: 1KiB, burst: 1s }\nlimits: { body: 10KiB }\n")
    small, filling = simple().gz(), Pprof().add(["main"] + ["f%03d" % i for i in range(200)], 1).raw()
    assert 3000 < len(filling) < 10000
    assert gate.ingest(filling).status == 200
    with gate.wire() as wire:  # the length alone tells: no body is waited for
        head = "POST /ingest?name=shop&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: 10000\r\n\r\n" % gate.key
        limited(wire.send(head.encode()).reply(), "rates.bytes")
    assert gate.ingest(small).status == 200
    chunked = {"Transfer-Encoding": "chunked"}
    body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (filling[:3000], filling[3000:])) + b"0\r\n\r\n"
    assert gate.send("/ingest?name=shop&format=pprof", body, chunked).status in (200, 429)
    gate.until(lambda: gate.send("/ingest?name=shop&format=pprof", body, chunked).status, 429)


def test_new_stacks(make_gate):
    gate = make_gate("rates: { new_stacks: 50, burst: 1s }\nlimits: { samples: 50 }\n")
    fresh = lambda n: gate.ingest(_stacks(n * 40, 40))
    known = _stacks(0, 40)
    assert gate.ingest(known).status == 200
    assert [gate.ingest(known).status for _ in range(20)] == [200] * 20
    replies = [fresh(n) for n in range(1, 8)]
    assert 429 in [r.status for r in replies] and replies[0].status == 200
    limited([r for r in replies if r.status == 429][0], "rates.new_stacks")


def _stacks(first, n):
    p = Pprof()
    for i in range(first, first + n):
        p.add(["main", "f%d" % i], 1)
    return p.gz()


def test_options_of_a_project(make_gate):
    gate = make_gate("rates: { requests: 1, burst: 1s }\nlimits: { samples: 10 }\nprojects: { big: { rates: { requests: 0 }, limits: { samples: 100 } } }\n")
    big = gate.create("server", "big", "--project", "big")
    gate.until(lambda: gate.ingest(_stacks(0, 50), key=big).status, 200)
    assert [gate.ingest(_stacks(0, 50), key=big).status for _ in range(5)] == [200] * 5
    reply = gate.ingest(_stacks(0, 50))
    assert reply.status == 400 and "limits.samples" in reply.text and "10" in reply.text
    limited(gate.ingest(_stacks(0, 5)), "rates.requests")
    gate.configure("rates: { requests: 1, burst: 1s }\nlimits: { samples: 10 }\nprojects: { big: { limits: { samples: 20 } } }\n")
    gate.until(lambda: gate.ingest(_stacks(0, 50), key=big).status in (400, 429), True)


@pytest.mark.parametrize("text, says", [
    ("projects: { a: { limits: { body: 1MiB } } }", "limits.body"), ("projects: { a: { limits: { samples: 1KiB } } }", "number"), ("projects: { a: { nothing: { x: 1 } } }", "nothing.x"),
    ("projects: { a: 5 }", "map"), ("projects: [a]", "map"), ("projects: { a/b: { rates: { requests: 1 } } }", "a/b"), ("projects: { a: { limits: { samples: 99999999999 } } }", "bounds"),
    ("rates: { bytes: 5 }", "size"), ("rates: { burst: 1ms }", "bounds")])
def test_what_is_refused(tmp_path, text, says):
    file = tmp_path / "c.yaml"
    file.write_text(text + "\n")
    done = flamegate("--config", file, "check-config")
    assert done.returncode == 78 and says in done.stderr, done.stderr


def test_a_flood_of_one_project(make_gate):
    """A sends as fast as it can, far over its rate; B sends steadily: nothing of B's is refused or late."""
    gate = make_gate("projects: { flood: { rates: { requests: 20, burst: 1s } } }\n")
    flood = gate.create("server", "flood", "--project", "flood")
    gate.until(lambda: gate.ingest(simple().gz(), key=flood).status, 200)
    stop, counts = threading.Event(), {}

    def pour():
        while not stop.is_set():
            status = gate.ingest(simple().gz(), key=flood).status
            counts[status] = counts.get(status, 0) + 1

    def steady():
        took = []
        for _ in range(40):
            start = time.monotonic()
            assert gate.ingest(simple().gz()).status == 200
            took.append(time.monotonic() - start)
            time.sleep(0.02)
        return took

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        floods = [pool.submit(pour) for _ in range(6)]
        try:
            took = pool.submit(steady).result()
        finally:
            stop.set()
        [f.result() for f in floods]
    assert counts[429] > counts[200] > 0
    assert max(took) < 2
