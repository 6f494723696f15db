"""Answers that nobody reads: their memory is bounded, and who reads is served beside them."""

import socket
import time

import pytest

from bodies import MiB

LARGE = b"".join(b"main;a_function_with_a_rather_long_name_%d 1\n" % i for i in range(8000))
ASK = "GET /api/v1/functions?service=shop&limit=100000 HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\n\r\n"


def deaf(gate):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(gate.address)
    s.sendall((ASK % gate.reader).encode())
    return s


@pytest.fixture
def gate(make_gate):
    gate = make_gate("memory: 64MiB\nlimits: { decoded: 32MiB }\ntimeouts: { write: 60s }\n")
    assert gate.ingest(LARGE, format="folded").status == 200
    return gate


def test_the_deaf_give_way(gate):
    """8 MiB of answers at most; those who have not read for a second are cut for others, and until then others are asked to wait."""
    size = len(gate.request("GET", "/api/v1/functions?service=shop&limit=100000", headers={"x-flamegate-token": gate.reader}).body)
    assert size > MiB // 2
    clients = [deaf(gate) for _ in range(60)]
    used = lambda: gate.count("flamegate_memory_bytes", account="answers")
    gate.until(lambda: gate.count("flamegate_requests_refused_total", reason="shed") > 0, True)
    assert MiB < used() <= 8 * MiB
    time.sleep(3)  # what their kernels took at once has become a slow pace
    # On a slow machine some of the deaf have only just got theirs.
    gate.until(lambda: gate.read("functions", service="shop", limit=100000).status, 200, within=15)
    for _ in range(10):
        time.sleep(0.05)
        rows, _ = gate.rows(service="shop")
        assert len(rows) == 8001
        assert used() <= 8 * MiB
    cut = gate.count("flamegate_connections_closed_total", reason="unread")
    assert 1 <= cut < len(clients), cut
    gate.assert_memory()
    for s in clients:
        s.close()
    gate.until(used, 0)
