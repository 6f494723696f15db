"""More uploads than memory: those that cannot be let in are told so in time, memory stays bounded, and nothing stays stuck."""

import collections
import concurrent.futures
import time

import pytest

from gate import SANITIZED

CONF = "memory: 64MiB\nlimits: { decoded: 16MiB, inflated: 16MiB }\ntimeouts: { admission: 500ms }\n"
SMALL = b"main;work 1\n"


def hold(gate, n):
    """An upload that has sent all but its last bytes, and now does nothing."""
    lines = b"".join(b"main;f%d_%d_%s 1\n" % (n, i, b"x" * 40) for i in range(4000))
    wire = gate.wire()
    wire.send(("POST /ingest?name=held HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, len(lines) + 8)).encode())
    wire.socket.settimeout(0.2)
    try:
        wire.send(lines)
    except OSError:
        pass  # not let in: the gateway does not read it
    wire.socket.settimeout(10)
    return wire


@pytest.fixture
def full(make_gate):
    """Held by as many stalled uploads as it takes until a small one is not let in."""
    gate = make_gate(CONF)
    wires = []
    while len(wires) < 200:
        wires += [hold(gate, len(wires) + i) for i in range(8)]
        if gate.ingest(SMALL, format="folded").status == 503:
            break
    yield gate, wires
    for wire in wires:
        wire.close()
    gate.until(lambda: gate.ingest(SMALL, format="folded").status, 200)
    gate.until(lambda: gate.metrics()["flamegate_inflight_bytes"], 0)
    gate.assert_memory(2 * (64 << 20))


def test_refused_in_time_and_politely(full):
    gate, wires = full
    assert len(wires) >= 16
    start = time.monotonic()
    reply = gate.ingest(SMALL, format="folded")
    assert reply.status == 503 and reply.json()["code"] == "unavailable"
    assert int(reply.headers["retry-after"]) >= 1
    assert 0.4 < time.monotonic() - start < 3
    assert gate.request("GET", "/healthz").status == 200  # the loop itself is not held up
    assert gate.get("services")["services"] is not None
    assert gate.metrics()["flamegate_inflight_bytes"] <= gate.metrics()["flamegate_inflight_bytes_limit"]
    assert gate.count("flamegate_requests_total", code="503") >= 1


def test_those_inside_can_finish(full):
    gate, wires = full
    ended = collections.Counter()
    for wire in wires:
        try:
            wire.send(b"main 1\n\n")
            ended[wire.reply().status] += 1
        except (OSError, EOFError):
            ended["closed"] += 1
    assert ended[200] >= 8 and set(ended) <= {200, 503, "closed"}, ended
    gate.until(lambda: len(gate.profiles(service="held", limit=1000)), ended[200])


@pytest.mark.skipif(SANITIZED, reason="a matter of seconds")
def test_waiting_ones_that_leave_make_no_trouble(full):
    gate, _ = full
    gone = [gate.wire().send(b"POST /ingest?name=x HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: 5\r\n\r\n" % gate.key.encode()) for _ in range(50)]
    for i, wire in enumerate(gone):
        wire.reset() if i % 2 else wire.close()
    gate.until(lambda: gate.metrics()["flamegate_admission_waiting"], 0)


def test_other_projects_get_in(full):
    """One project's stalled crowd, of which new ones are refused, is not in another's way."""
    gate, _ = full
    other = gate.create("server", "other", "--project", "other")
    gate.until(lambda: gate.ingest(SMALL, format="folded", key=other).status != 401, True)
    larger = b"".join(b"main;f%d 1\n" % i for i in range(4_000))
    waits, ended = [], collections.Counter()
    for i in range(30):
        start = time.monotonic()
        ended[gate.ingest(larger if i % 10 == 0 else SMALL, format="folded", key=other).status] += 1
        waits.append(time.monotonic() - start)
    assert ended == {200: 30} and (SANITIZED or max(waits) < 0.4), (ended, waits)
    assert gate.ingest(SMALL, format="folded").status == 503


def test_projects_take_turns(make_gate):
    """One project's crowd does not starve another's single upload."""
    gate = make_gate(CONF.replace("500ms", "5s"))
    other = gate.create("server", "other", "--project", "other")
    gate.until(lambda: gate.ingest(SMALL, format="folded", key=other).status, 200)
    body = b"".join(b"main;f%d 1\n" % i for i in range(20_000))
    with concurrent.futures.ThreadPoolExecutor(33) as pool:
        crowd = [pool.submit(gate.ingest, body.replace(b"f", b"g%d_" % i), "crowd", "folded") for i in range(32)]
        time.sleep(0.05)
        assert gate.ingest(SMALL, format="folded", key=other).status == 200
        assert {c.result().status for c in crowd} == {200}
    gate.assert_memory(2 * (64 << 20))


def test_a_second_process_keeps_off(gate):
    """Two gateways on one data_dir would undo each other's work: the second does not start."""
    done = gate.run("serve")
    assert done.returncode == 1 and "in use" in done.stderr
    assert gate.ingest(SMALL, format="folded").status == 200
