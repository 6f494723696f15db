"""The spool behind the real binary: while PostgreSQL is away uploads are answered 200 and kept here, and every one of them is in the
database afterwards, once."""

import os
import signal
import threading
import time

import pytest

from bodies import Pprof, simple
from test_postgres import DOWN, Load, counted, ready, server, total  # noqa: F401 (server is a fixture)


def spool(gate, what):
    return gate.count("flamegate_spool_" + what)


def folder(gate):
    return os.path.join(gate.dir, "data", "spool")


def segments(gate):
    return sorted(os.path.join(folder(gate), f) for f in os.listdir(folder(gate)) if f.endswith(".spool"))


def drained(gate, within=20):
    gate.until(lambda: spool(gate, "groups"), 0, within)
    gate.until(lambda: spool(gate, "bytes"), 0, within)


class Timed(Load):
    """Keeps the longest time to an answer."""

    slowest = 0

    def one(self, n, body, try_):
        start = time.monotonic()
        ok = super().one(n, body, try_)
        with self.lock:
            self.slowest = max(self.slowest, time.monotonic() - start)
        return ok


def test_starts_and_takes_uploads_while_the_database_is_away(make_gate, server):
    address = server.create()
    server.stop("fast")
    gate = make_gate(samples=address, start=False)
    gate.errors_expected.append(DOWN)
    gate.start()
    assert ready(gate) == 200
    start = time.monotonic()
    for i in range(5):
        assert gate.ingest(simple(value=7).gz()).status == 200
    assert time.monotonic() - start < 3
    assert spool(gate, "records") == 5 and spool(gate, "in_use") == 1
    assert gate.read("services").status == 503
    server.start()
    drained(gate)
    gate.until(lambda: total(gate), 35)  # equal ones, each acknowledged: their marks came along
    assert not segments(gate)


@pytest.mark.parametrize("how", ["stop", "stand still"])
def test_database_away_under_load(make_gate, server, how):
    gate = make_gate(samples=server.create())
    gate.errors_expected.append(DOWN)
    with Timed([gate], 8) as load:
        time.sleep(1)
        if how == "stop":
            server.stop("immediate")
        else:
            server.signal(signal.SIGSTOP)
        try:
            time.sleep(4)
        finally:
            if how == "stop":
                server.start()
            else:
                server.signal(signal.SIGCONT)
        time.sleep(1)
    assert load.statuses.keys() == {200} and not load.cut, (load.statuses, load.cut)
    assert load.slowest < 3 and len(load.sent) > 200, (load.slowest, len(load.sent))
    assert spool(gate, "groups_total") > 0
    drained(gate)
    assert counted(gate) == load.sent
    gate.assert_memory()


def test_killed_with_a_full_spool(make_gate, server):
    gate = make_gate(samples=server.create())
    gate.errors_expected.append(DOWN)
    for i in range(5):
        assert gate.ingest(simple(value=1).gz()).status == 200
    time.sleep(0.3)
    server.stop("immediate")
    with Timed([gate], 8) as load:
        time.sleep(1.5)
    for i in range(4):
        assert gate.ingest(simple(value=10).gz()).status == 200  # equal ones: their marks are here as well
    time.sleep(0.3)
    gate.kill()
    gate.start()
    assert load.statuses.keys() == {200} and not load.cut, (load.statuses, load.cut)
    gate.until(lambda: spool(gate, "records"), len(load.sent) + 4)
    assert gate.ingest(simple(value=10).gz()).status == 200
    gate.kill()
    server.start()
    gate.start()
    drained(gate)
    assert counted(gate) == load.sent
    assert total(gate) >= 5 + 40
