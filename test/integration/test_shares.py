"""Function shares by minute: what they answer equals what merging the profiles answers, whatever has happened to a minute."""

import random
import time

import pytest

from bodies import CPU, Pprof

MINUTE = 60 * 10**9


def upload(gate, rng, minute, service="shop"):
    """A profile of one minute, with recursion, an empty stack and frames that other profiles have too."""
    p = Pprof(time_ns=minute + rng.randrange(MINUTE), types=CPU)
    for _ in range(rng.randrange(1, 12)):
        stack = ["f%d" % rng.randrange(9) for _ in range(rng.randrange(0, 7))]
        p.add(stack, [rng.randrange(1, 50), rng.randrange(1, 10**9)])
    return p.gz()


def both(gate, **params):
    """The same question answered from shares and by merging (own code needs stacks)."""
    shares = gate.get("functions", service="shop", limit=10**6, **params)
    merged = gate.get("functions", service="shop", limit=10**6, own="true", **params)
    for answer in (shares, merged):
        answer["other"].pop("own", None)
        answer.pop("no_own_code", None)
        for row in answer["functions"]:
            row.pop("own", None)
            row.pop("own_share", None)
        answer["functions"].sort(key=lambda row: (row["function"], row["file"]))
    return shares, merged


def same(gate, **params):
    shares, merged = both(gate, **params)
    assert shares == merged
    return shares["total"]


@pytest.fixture
def hour():
    return (time.time_ns() // MINUTE - 30) * MINUTE


@pytest.mark.parametrize("conf", ["", 'shares: "null:"'])
def test_equal_to_merging(make_gate, hour, conf):
    gate = make_gate(conf)
    rng = random.Random(7)
    for _ in range(40):
        assert gate.ingest(upload(gate, rng, hour + rng.randrange(20) * MINUTE)).status == 200
    for window in ({}, {"from": hour, "until": hour + 5 * MINUTE}, {"from": hour + 7 * MINUTE, "until": hour + 8 * MINUTE}):
        window = {k: v // 10**9 for k, v in window.items()}
        for kind in (None, "cpu", "samples"):
            same(gate, type=kind, **window)
    assert same(gate) > 0
    assert same(gate, sort="total") > 0
    gate.stop()
    gate.start()
    assert same(gate) > 0


def test_a_minute_with_a_surplus_copy_is_merged(gate, hour):
    rng = random.Random(8)
    body = upload(gate, rng, hour)
    assert gate.ingest(upload(gate, rng, hour)).status == 200
    assert gate.ingest(upload(gate, rng, hour + MINUTE)).status == 200
    head = "POST /ingest?name=shop&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n"
    for _ in range(5):
        gate.wire().send((head % (gate.key, len(body))).encode() + body).reset()
    assert gate.ingest(body).status == 200
    gate.settled()
    time.sleep(0.3)
    assert len(gate.profiles()) == 3
    same(gate)


def test_after_kill(gate, hour):
    rng = random.Random(9)
    for i in range(12):
        assert gate.ingest(upload(gate, rng, hour + i % 3 * MINUTE)).status == 200
    gate.process.kill()
    gate.process.wait()
    gate.start()
    assert same(gate) > 0
