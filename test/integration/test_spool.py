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


def missing(gate, load):
    """How many uploads of the load are not there, or not as they were sent."""
    got = counted(gate)
    return sum(got.get(n) != value for n, value in load.sent.items()) + sum(n not in load.sent for n in got)


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
    assert missing(gate, load) == 0
    gate.assert_memory()


def test_killed_with_a_full_spool(make_gate, server):
    gate = make_gate(samples=server.create())
    gate.errors_expected.append(DOWN)
    for i in range(5):
        assert gate.ingest(simple(value=1).gz()).status == 200
    drained(gate)  # a slow machine may have spooled some of them, while the tables were made
    server.signal(signal.SIGSTOP)
    assert gate.ingest(simple("slow", value=1000).gz()).status == 200
    server.signal(signal.SIGCONT)
    gate.until(lambda: spool(gate, "records"), 0)
    server.stop("immediate")
    with Timed([gate], 8) as load:
        time.sleep(1.5)
    for i in range(4):
        assert gate.ingest(simple(value=10).gz()).status == 200  # equal ones: their marks are here as well
    time.sleep(0.3)
    gate.kill()
    gate.start()
    assert load.statuses.keys() == {200} and not load.cut, (load.statuses, load.cut)
    # What has been put already is in the same segment, and which entries were is known to the process that died alone: it is
    # counted as waiting, and put, once more, under the attempt that it had. That changes nothing: see the totals.
    gate.until(lambda: spool(gate, "records") in (len(load.sent) + 4, len(load.sent) + 5), True)
    assert gate.ingest(simple(value=10).gz()).status == 200
    gate.kill()
    server.start()
    gate.start()
    drained(gate)
    assert missing(gate, load) == 0
    assert 5 + 40 <= total(gate) - 1000 <= 5 + 50  # the last one's mark may have died with the process


@pytest.mark.parametrize("conf", ["", "spool: {max_bytes: 0B}\n"], ids=["spool", "no spool"])
def test_failover_to_a_copy_that_lacks_the_last_transactions(make_gate, server, conf):
    """What was acknowledged and committed at the lost server, and the marks of it, is put again."""
    gate = make_gate(conf, samples=server.create())
    gate.errors_expected.append(DOWN)
    assert gate.ingest(simple("before", 1).gz()).status == 200
    server.copy()
    gate.until(lambda: ready(gate) and gate.ingest(simple("there", 1).gz()).status, 200, 15)
    for _ in range(6):
        assert gate.ingest(simple("equal", 100).gz()).status == 200
    with Load([gate], 4) as load:
        time.sleep(1)
        server.fail_over()
        gate.until(lambda: gate.count("flamegate_store_healthy"), 1, 15)
        time.sleep(0.5)
    assert not load.wrong and len(load.sent) > 100
    drained(gate)
    gate.until(lambda: missing(gate, load), 0)
    gate.until(lambda: gate.rows(service="shop", type="cpu")[0][("equal", "")][0], 600)


def test_marks_that_a_crash_of_the_database_took_are_written_again(make_gate, server):
    gate = make_gate(samples=server.create())
    gate.errors_expected.append(DOWN)
    for i in range(20):
        assert gate.ingest(simple(value=10).gz()).status == 200
    server.stop("immediate")  # at once: the last marks are not on the disk
    server.start()
    gate.until(lambda: gate.count("flamegate_store_healthy"), 1, 15)
    gate.until(lambda: total(gate), 200)


def test_a_full_spool_turns_uploads_away(make_gate, server):
    gate = make_gate("spool: {max_bytes: 512KiB, after: 200ms}\n", samples=server.create())
    gate.errors_expected.append(DOWN)
    server.stop("immediate")
    with Timed([gate], 4) as load:
        gate.until(lambda: load.statuses.get(503, 0) > 5, True, 15)
        assert not load.wrong, load.wrong[:3]  # 503 only, with Retry-After
        assert spool(gate, "full") == 1 and 0 < spool(gate, "bytes") <= 512 << 10
        assert ready(gate) == 503
        server.start()
        gate.until(lambda: ready(gate), 200, 15)
        time.sleep(1)
    assert not load.wrong and load.acknowledged == set(load.sent)
    drained(gate)
    assert missing(gate, load) == 0
    assert gate.count("flamegate_spool_groups_total", outcome="full") > 0


def test_a_directory_belongs_to_one_process(make_gate, server):
    one = make_gate(samples=server.create())
    two = make_gate(start=False, keys=False, samples=one.samples)
    two.configure('data_dir: "%s"\nhash_key_file: "%s"\n' % (os.path.join(one.dir, "data"), os.path.join(one.dir, "data", "hash.key")))
    done = two.run("serve", timeout=20)
    assert done.returncode == 1 and "another process" in done.stderr + done.stdout, done


def test_the_command_lists_and_verifies(make_gate, server):
    gate = make_gate(samples=server.create())
    gate.errors_expected.append(DOWN)
    assert "0" in gate.run("spool", "ls").stdout.splitlines()[-1].split()
    server.stop("immediate")
    for i in range(3):
        assert gate.ingest(simple("f%d" % i, 10).gz()).status == 200
    gate.until(lambda: gate.run("spool", "ls").stdout.splitlines()[-1].split()[2:], ["3", "3", "3"])  # groups, profiles, marks
    gate.kill()
    done = gate.run("spool", "verify")
    assert done.returncode == 0 and "3 profiles, 3 marks: whole" in done.stdout, done
    (path,) = segments(gate)
    with open(path, "r+b") as f:
        f.seek(40)
        byte = f.read(1)
        f.seek(40)
        f.write(bytes([byte[0] ^ 1]))
    done = gate.run("spool", "verify", "--dir", folder(gate))
    assert done.returncode == 1 and os.path.basename(path) + ": entry at byte 8" in done.stdout, done
    assert "damaged" in gate.run("spool", "ls").stdout
    # The gateway cuts what cannot be read, says so, and goes on.
    server.start()
    gate.start()
    gate.until(lambda: spool(gate, "corrupt_total"), 1)
    assert "damaged at byte 8" in gate.log() and gate.ingest(simple("g", 1).gz()).status == 200
    drained(gate)
    for bad in ((), ("put",), ("ls", "x"), ("verify", "--dir")):
        assert gate.run("spool", *bad).returncode == 2
