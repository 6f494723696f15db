"""Sixty-four heavy uploads at once: none is refused, and memory stays bounded."""

import collections
import concurrent.futures
import threading

import pytest

from bodies import Large
from gate import SANITIZED


@pytest.fixture(scope="module")
def large():
    return Large()


def test_64_connections_at_once(make_gate, large):
    gate = make_gate()
    count = 8 if SANITIZED else 64
    bodies = [large.body() for _ in range(count)]
    assert all(3_700_000 < len(b) < 4_400_000 for b in bodies)
    together = threading.Barrier(count)

    def send(i):
        with gate.wire(120) as wire:
            head = "POST /ingest?name=heavy%%7Bn=%d%%7D&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n"
            together.wait()
            wire.send((head % (i, gate.key, len(bodies[i]))).encode() + bodies[i])
            return wire.reply().status

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        statuses = collections.Counter(pool.map(send, range(count)))
    assert statuses == {200: count}
    gate.assert_memory()
    profiles = gate.profiles(limit=1000)
    assert len({p["id"] for p in profiles}) == count
    for p in profiles[:: count // 4]:
        assert gate.get("functions", profile=p["id"], type="cpu", limit=5)["total"] == large.total * 10**7
    totals = {t["name"]: t["total"] for t in gate.get("types", service="heavy")["types"]}
    assert totals == {"samples": count * large.total, "cpu": count * large.total * 10**7}
    gate.assert_memory()


def test_small_ones_pass_between(make_gate, large):
    """While large bodies are worked on, a small upload is still quick."""
    import time

    gate = make_gate()
    bodies = [large.body() for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        heavy = [pool.submit(gate.ingest, b, "heavy") for b in bodies]
        slowest = 0
        while not all(f.done() for f in heavy):
            start = time.monotonic()
            assert gate.ingest(b"main 1\n", name="light", format="folded").status == 200
            slowest = max(slowest, time.monotonic() - start)
        assert [f.result().status for f in heavy] == [200] * 8
    assert slowest < 3, slowest
