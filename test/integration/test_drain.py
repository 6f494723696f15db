"""The end of a process: not ready at once, still accepting for the delay, what is under way is finished, then exit 0."""

import signal
import socket
import time

import pytest

from gate import basic

FOLDED = b"main;work 3\n"


def head(gate, length=len(FOLDED)):
    return ("POST /ingest?name=shop HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, length)).encode()


def refused(gate):
    try:
        socket.create_connection(gate.address, 1).close()
        return False
    except ConnectionRefusedError:
        return True


def ready(gate):
    return gate.request("GET", "/readyz").status


def end(gate, within=10):
    code = gate.process.wait(within)
    gate.process = None
    return code


def test_delay(make_gate):
    gate = make_gate("drain_delay: 1s\n")
    assert ready(gate) == 200
    with gate.wire() as kept:
        assert kept.send(head(gate) + FOLDED).reply().status == 200
        start = time.monotonic()
        gate.process.send_signal(signal.SIGTERM)
        gate.until(lambda: ready(gate), 503, 0.8)
        assert gate.request("GET", "/healthz").status == 200
        assert gate.ingest(FOLDED, format="folded").status == 200  # a balancer that has not noticed yet
        reply = kept.send(head(gate) + FOLDED).reply()
        assert reply.status == 200
        assert reply.headers.get("connection", "").lower() == "close"
    assert end(gate) == 0
    assert 0.9 < time.monotonic() - start < 5
    assert refused(gate)
    gate.start()
    assert gate.get("functions", service="shop")["total"] == 9 * 10**7


def test_under_way_is_finished(make_gate):
    gate = make_gate("drain_delay: 200ms\n")
    with gate.wire() as slow:
        slow.send(head(gate) + FOLDED[:4])
        gate.until(lambda: gate.count("flamegate_inflight_requests") > 1, True)  # besides the one that asks
        gate.process.send_signal(signal.SIGTERM)
        time.sleep(0.6)
        assert gate.process.poll() is None
        assert refused(gate)
        reply = slow.send(FOLDED[4:]).reply()
        assert reply.status == 200 and reply.headers.get("connection", "").lower() == "close"
        assert slow.closed()
    assert end(gate) == 0
    gate.start()
    assert gate.get("functions", service="shop")["total"] == 3 * 10**7


def test_idle_connections_do_not_hold_it_up(make_gate):
    gate = make_gate()
    wires = [gate.wire() for _ in range(50)]
    try:
        for wire in wires[:25]:
            assert wire.send(head(gate) + FOLDED).reply().status == 200
        start = time.monotonic()
        gate.process.send_signal(signal.SIGTERM)
        assert end(gate) == 0
        assert time.monotonic() - start < 3
        assert all(wire.closed(1) for wire in wires)
    finally:
        for wire in wires:
            wire.close()


def test_everything_acknowledged_is_there_after_a_term_under_load(make_gate):
    import threading

    gate = make_gate("drain_delay: 300ms\n")
    acknowledged, problems = [], []

    def client(n):
        i = 0
        while True:
            try:
                reply = gate.ingest(b"main;c%d_%d 1\n" % (n, i), format="folded")
            except OSError:
                return
            except Exception as e:
                problems.append(repr(e))
                return
            if reply.status != 200:
                problems.append(repr(reply))
                return
            acknowledged.append("c%d_%d" % (n, i))
            i += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    time.sleep(0.4)
    gate.process.send_signal(signal.SIGTERM)
    assert end(gate) == 0
    for t in threads:
        t.join()
    assert not problems, problems
    gate.start()
    names = {name for name, _ in gate.rows(service="shop")[0]}
    assert set(acknowledged) <= names and len(acknowledged) > 20


def test_second_signal_ends_it_now(make_gate):
    gate = make_gate("drain_delay: 30s\n")
    gate.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    start = time.monotonic()
    gate.process.send_signal(signal.SIGTERM)
    assert end(gate, 5) in (0, 1, -signal.SIGTERM)
    assert time.monotonic() - start < 3


def test_interrupt_is_a_term_too(make_gate):
    gate = make_gate()
    gate.process.send_signal(signal.SIGINT)
    assert end(gate) == 0


def test_ready_within_a_moment(make_gate):
    gate = make_gate(start=False)
    gate.start()
    gate.stop()
    start = time.monotonic()
    gate.start()
    while ready(gate) != 200:
        assert time.monotonic() - start < 3
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("signal_number", [signal.SIGPIPE, signal.SIGHUP])
def test_other_signals_do_not_end_it(gate, signal_number):
    gate.process.send_signal(signal_number)
    time.sleep(0.1)
    assert gate.request("GET", "/healthz", None, basic("", gate.key)).status == 200
