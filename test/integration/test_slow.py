"""Slow clients of every kind, beside healthy ones: each is cut by its own timer, without an answer, none early; nobody else notices."""

import os
import socket
import sys
import threading
import time

from gate import ROOT

sys.path.insert(0, os.path.join(ROOT, "bench"))
import slow  # noqa: E402

TIMERS = {"silent": 1, "head": 1, "header lines": 1, "empty lines": 1, "body": 1.5, "stuck body": 1.5, "chunks": 1.5, "extension": 1.5, "trailers": 1.5, "deaf": 1.2}
REASONS = {"head_timeout": 4, "body_timeout": 5, "write_timeout": 1}  # kinds of each
CONF = "timeouts: { head: 1s, body: 1500ms, write: 1200ms, idle: 1300ms }\nmemory: 1GiB\n"  # room for all of the large answers
N = 10
LARGE = b"".join(b"main;function_with_a_long_name_%d 1\n" % i for i in range(20_000))


def test_each_kind_is_cut_by_its_timer(make_gate):
    gate = make_gate(CONF)
    assert gate.ingest(LARGE, format="folded").status == 200
    done, seconds = threading.Event(), []

    def healthy():
        while not done.is_set():
            start = time.monotonic()
            assert gate.ingest(b"main;work 3\n", name="healthy", format="folded").status == 200
            seconds.append(time.monotonic() - start)
            time.sleep(0.02)

    threads = [threading.Thread(target=healthy) for _ in range(3)]
    for t in threads:
        t.start()
    target = "/api/v1/functions?service=shop&limit=100000"
    # Both keys: an upload counts with the first one that is good for it.
    clients = slow.run(gate.address, N, 0.15, [k for k in TIMERS if k != "deaf"], headers=b"x-flamegate-token: %s\r\n" % gate.key.encode(), longest=12)
    clients += slow.run(gate.address, N, 0.15, ["deaf"], target, b"x-flamegate-token: %s\r\n" % gate.reader.encode(), longest=12)
    done.set()
    for t in threads:
        t.join()
    for kind, row in slow.summary(clients, TIMERS).items():
        assert row["n"] == row["cut"] == N and not row["early"] and not row["late"] and not row["answered"], (kind, row)
    for reason, kinds in REASONS.items():
        assert gate.count("flamegate_connections_closed_total", reason=reason) == kinds * N, reason
    assert len(seconds) > 50 and max(seconds) < 2


def test_an_answer_taken_in_drops_is_cut(make_gate):
    """A hundred bytes now and then are no progress, and what the kernel took at once is none either; a slow but steady reader gets it all."""
    gate = make_gate(CONF)
    assert gate.ingest(LARGE, format="folded").status == 200
    ask = "GET /api/v1/functions?service=shop&limit=100000 HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\n\r\n" % gate.reader
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(gate.address)
        s.sendall(ask.encode())
        start = time.monotonic()
        try:
            while time.monotonic() - start < 10:
                assert s.recv(100) != b""
                time.sleep(0.1)
        except ConnectionResetError:
            pass
        assert 1 < time.monotonic() - start < 6
    assert gate.count("flamegate_connections_closed_total", reason="write_timeout") == 1


def test_who_was_refused_and_drips_on_is_cut(make_gate):
    """The answer is there, and two seconds to fetch it."""
    gate = make_gate(CONF)
    with gate.wire() as wire:
        wire.send(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n")
        assert wire.reply().status == 404
        start = time.monotonic()
        try:
            while time.monotonic() - start < 6:
                wire.send(b"a")
                time.sleep(0.1)
        except OSError:
            pass
        assert 1.5 < time.monotonic() - start < 4
