"""Function shares in Redis: read from there where they hold just what counts, added up from the profiles where they do not, and put again
by themselves when Redis has lost them."""

import os
import shutil
import struct
import time

import pytest

from bodies import Pprof, push
from gate import flamegate
from test_shares import MINUTE, both, check, random_profile


@pytest.fixture(autouse=True)
def running(redis):
    """Again, whatever a test did to it."""
    yield
    if redis.process.poll() is not None:
        redis.start()


@pytest.fixture(params=["postgres", "sqlite"])
def samples(request, postgres):
    return postgres.create() if request.param == "postgres" else "sqlite:"


@pytest.fixture
def gate(make_gate, samples, redis):
    gate = make_gate(samples=samples, shares=redis.create())
    gate.db = int(gate.shares.rsplit("/", 1)[1])
    return gate


@pytest.fixture
def other(gate, make_gate, samples):
    """A second replica, where the samples can be shared."""
    if samples == "sqlite:":
        pytest.skip("one process per folder")
    other = make_gate(start=False, keys=False, samples=gate.samples, shares=gate.shares)
    os.makedirs(os.path.join(other.dir, "data"))
    shutil.copy(os.path.join(gate.dir, "data", "hash.key"), os.path.join(other.dir, "data", "hash.key"))
    shutil.copy(gate.keys_file, other.keys_file)
    other.key, other.reader, other.admin = gate.key, gate.reader, gate.admin
    return other.start()


def send(gate, n, start=0, service="shop"):
    for i in range(start, start + n):
        p = Pprof(types=(("cpu", "nanoseconds"),), time_ns=0)
        for j in range(40):
            p.add(["main", "a%d" % (j % 7), ("f%d" % j, "f.go", j, 3)], [100 + i])
        assert gate.ingest(p.gz(), name=service).status == 200


def minutes(gate, redis):
    """{key: {writer: packed}}"""
    out = {}
    for key in redis.ask("KEYS", "fs:*:m:*", db=gate.db):
        flat = redis.ask("HGETALL", key, db=gate.db)
        out[key] = dict(zip(flat[::2], flat[1::2]))
    return out


def fields(gate, redis):
    return sum(map(len, minutes(gate, redis).values()))


def zigzag(data, at):
    shift = value = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def totals(gate, redis):
    """What all minutes add up to, as Redis has it: n as varint, then the grand total."""
    sums = []
    for writers in minutes(gate, redis).values():
        for packed in writers.values():
            _, at = zigzag(packed, 0)
            total, _ = zigzag(packed, at)
            sums.append(total >> 1)
    return sum(sums)


def spoil(gate, redis):
    """Another grand total in every minute, under the same check: who shows it has read it there."""
    for key, writers in minutes(gate, redis).items():
        for writer, packed in writers.items():
            _, at = zigzag(packed, 0)
            _, end = zigzag(packed, at)
            redis.ask("HSET", key, writer, packed[:at] + b"\x02" + packed[end:], db=gate.db)


def total(gate, **more):
    return gate.get("functions", service="shop", type="cpu", **more)["total"]


def test_answers_come_from_there(gate, redis):
    send(gate, 10)
    wanted = sum(40 * (100 + i) for i in range(10))
    gate.until(lambda: totals(gate, redis), wanted)
    assert both(gate, service="shop", type="cpu")["total"] == wanted
    spoil(gate, redis)
    assert total(gate) < wanted  # read there
    assert total(gate, match="{}") == wanted


def test_what_does_not_fit_is_added_up(gate, redis):
    """A retry's copy in it, a writer missing, garbage: never a wrong answer."""
    body = Pprof(types=(("cpu", "nanoseconds"),), time_ns=0).add(["main"], [7]).gz()
    for _ in range(3):
        head = "POST /ingest?name=shop&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, len(body))
        gate.wire().send(head.encode() + body).close()
    gate.settled()
    assert gate.ingest(body).status == 200
    gate.until(lambda: both(gate, service="shop", type="cpu")["total"], 7)
    time.sleep(1.5)
    assert both(gate, service="shop", type="cpu")["total"] == 7
    send(gate, 3)
    wanted = 7 + sum(40 * (100 + i) for i in range(3))
    time.sleep(1.5)
    for key, writers in minutes(gate, redis).items():
        for writer, packed in writers.items():
            for bad in (packed[:-1], b"", packed + b"x", bytes(len(packed)), struct.pack("<Q", 2**63)):
                redis.ask("HSET", key, writer, bad, db=gate.db)
                assert both(gate, service="shop", type="cpu")["total"] == wanted
    redis.ask("FLUSHDB", db=gate.db)
    assert both(gate, service="shop", type="cpu")["total"] == wanted


@pytest.mark.parametrize("how", ["flush", "kill"])
def test_what_is_lost_comes_back(gate, redis, how):
    send(gate, 5)
    wanted = sum(40 * (100 + i) for i in range(5))
    gate.until(lambda: totals(gate, redis), wanted)
    if how == "flush":
        redis.ask("FLUSHALL")
    else:
        redis.kill()
        gate.until(lambda: gate.count("flamegate_share_store_healthy"), 0)
        answer = gate.get("functions", service="shop", type="cpu")
        assert answer["total"] == wanted and "away" in answer["notes"][0]
        send(gate, 5, 5)  # nobody waits for it
        wanted = sum(40 * (100 + i) for i in range(10))
        assert total(gate) == wanted
        redis.start()
    gate.until(lambda: totals(gate, redis), wanted, 10)
    gate.until(lambda: gate.count("flamegate_share_store_healthy"), 1, 10)
    assert gate.count("flamegate_share_store_emptied_total") >= 1
    answer = gate.get("functions", service="shop", type="cpu")
    assert answer["total"] == wanted and "notes" not in answer
    spoil(gate, redis)
    assert total(gate) < wanted


def test_one_that_does_not_answer(gate, redis):
    send(gate, 5)
    wanted = sum(40 * (100 + i) for i in range(5))
    gate.until(lambda: totals(gate, redis), wanted)
    redis.stand_still()
    try:
        start = time.monotonic()
        assert total(gate) == wanted
        assert time.monotonic() - start < 4
        gate.until(lambda: gate.count("flamegate_share_store_healthy"), 0, 8)
        start = time.monotonic()
        for i in range(5):
            send(gate, 1, 5 + i)
            assert total(gate) == sum(40 * (100 + k) for k in range(6 + i))
        assert time.monotonic() - start < 2
    finally:
        redis.go_on()
    gate.until(lambda: gate.count("flamegate_share_store_healthy"), 1, 10)
    gate.until(lambda: totals(gate, redis), sum(40 * (100 + i) for i in range(10)), 10)


def test_two_replicas_add_up(gate, other, redis):
    for i in range(6):
        send((gate, other)[i % 2], 2, 2 * i)
    wanted = sum(40 * (100 + i) for i in range(12))
    gate.until(lambda: totals(gate, redis), wanted)
    assert both(gate, service="shop", type="cpu")["total"] == both(other, service="shop", type="cpu")["total"] == wanted
    assert fields(gate, redis) >= 2
    spoil(gate, redis)
    assert total(gate) == total(other) < wanted


def test_random_uploads(gate, redis):
    import random

    rng = random.Random(4)
    start = (time.time_ns() - 10 * MINUTE) // MINUTE * MINUTE
    for _ in range(40):
        body = random_profile(rng, start + rng.randrange(5 * MINUTE))
        for _ in range(rng.choice([1, 1, 2])):
            assert gate.ingest(body, name=rng.choice(["a", "a{pod=1}", "b{pod=2}"])).status == 200
    time.sleep(2.2)
    check(gate, start)


def test_siblings_through_push(gate, redis):
    body = push([({"__name__": "process_cpu", "service_name": "shop"}, [Pprof(types=(("cpu", "nanoseconds"),)).add(["main"], [5]).gz()])])
    assert [gate.push(body).status for _ in range(20)] == [200] * 20
    gate.until(lambda: totals(gate, redis), 100)
    gate.until(lambda: both(gate, service="shop", type="cpu")["total"], 100)


def test_restart_leaves_what_is_there(gate, redis):
    """Another process has other fields in the same minutes."""
    send(gate, 3)
    gate.stop()  # puts what it has
    assert totals(gate, redis) == sum(40 * (100 + i) for i in range(3))
    gate.start()
    send(gate, 3, 3)
    wanted = sum(40 * (100 + i) for i in range(6))
    gate.until(lambda: totals(gate, redis), wanted)
    assert both(gate, service="shop", type="cpu")["total"] == wanted


def test_wrong_password(make_gate, redis):
    address = redis.create().replace("made-up", "wrong")
    gate = make_gate(samples="sqlite:", shares=address)
    send(gate, 2)
    assert total(gate) == 40 * 201
    gate.until(lambda: "ev=away" in gate.log(), True)
    assert "WRONGPASS" in gate.log() and "wrong pass" not in gate.log()


@pytest.mark.parametrize("address, says", [("redis://", "host"), ("redis://h:0", "port"), ("redis://h:x/1", "port"), ("redis://h/x", "database"), ("redis://h/1?a=b", "parameters"), ("rediss://h", "TLS"), ("redis://[::1", "]")])
def test_addresses_that_are_none(tmp_path, address, says):
    file = tmp_path / "c.yaml"
    file.write_text('shares: "%s"\nhash_key_file: /x\n' % address)
    done = flamegate("--config", file, "check-config")
    assert done.returncode == 78 and says in done.stderr, done.stderr


def test_hash_key_file_must_be_given(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text('shares: "redis://localhost"\n')
    done = flamegate("--config", file, "check-config")
    assert done.returncode == 78 and "hash_key_file" in done.stderr


def test_by_its_socket(make_gate, redis):
    address = redis.create().replace("127.0.0.1:%d/%d" % (redis.port, redis.made), redis.dir + "/socket")
    gate = make_gate(samples="sqlite:", shares=address)
    gate.until(lambda: gate.count("flamegate_share_store_healthy"), 1)
