"""kill -9 at random points under load: what was acknowledged is there, once; what was not, once after its retry."""

import concurrent.futures
import random
import threading
import time

from bodies import Pprof, push
from gate import PROTO, PUSH, basic


class Load:
    """Clients that each send uploads of their own, and remember which were acknowledged."""

    def __init__(self, gate, clients, rng):
        self.gate, self.rng = gate, rng
        self.clients = clients
        self.sent, self.acknowledged = {}, set()
        self.lock = threading.Lock()
        self.count = 0

    def next(self):
        with self.lock:
            n = self.count
            self.count += 1
            body = Pprof(types=(("cpu", "nanoseconds"),)).add(["main", "u%d" % n], [1000 + n]).gz()
            self.sent[n] = body
            return n, body

    def one(self, n, body):
        reply = self.gate.ingest(body, name="load")
        if reply.status == 200:
            with self.lock:
                self.acknowledged.add(n)
        return reply.status

    def client(self):
        try:
            while True:
                self.one(*self.next())
        except OSError:
            return  # killed
        except Exception as e:  # http.client's own, all for a connection that ended
            assert "HTTP" in type(e).__name__ or "Remote" in type(e).__name__ or "Status" in type(e).__name__ or "Incomplete" in type(e).__name__, e

    def until_killed(self, seconds):
        with concurrent.futures.ThreadPoolExecutor(self.clients) as pool:
            running = [pool.submit(self.client) for _ in range(self.clients)]
            time.sleep(seconds)
            self.gate.kill()
            for r in running:
                r.result()


def counted(gate):
    rows, _ = gate.rows(service="load", type="cpu")
    return {int(name[1:]): row[0] for (name, _), row in rows.items() if name[0] == "u"}


def test_kill_at_random_points(make_gate):
    rng = random.Random(20261130)
    gate = make_gate(start=False)
    load = Load(gate, 8, rng)
    for round_ in range(6):
        gate.start()
        retried = {n for n in load.sent if n not in load.acknowledged}
        before = counted(gate)
        for n in load.acknowledged:
            assert before.get(n) == 1000 + n, "acknowledged %d is %s after kill %d" % (n, before.get(n), round_)
        for n in before:
            assert before[n] == 1000 + n, "%d counted twice" % n
        for n in sorted(retried):
            assert load.one(n, load.sent[n]) == 200
        load.until_killed(rng.uniform(0.1, 0.7))
    gate.start()
    for n in set(load.sent) - load.acknowledged:
        assert load.one(n, load.sent[n]) == 200
    assert len(load.acknowledged) == len(load.sent) > 100
    gate.until(lambda: counted(gate), {n: 1000 + n for n in load.sent})


def test_acknowledged_siblings_survive(make_gate):
    """Byte-equal uploads without an identity, each acknowledged: all of them count, also after a crash later on."""
    gate = make_gate()
    body = push([({"__name__": "process_cpu", "service_name": "ebpf"}, [Pprof(types=(("cpu", "nanoseconds"),)).add(["main", "work"], [5]).gz()])])
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: gate.push(body).status, range(32)))
    assert replies == [200] * 32
    total = lambda: gate.get("functions", service="ebpf", type="cpu")["total"]
    gate.until(total, 32 * 5)
    gate.kill()
    gate.start()
    assert total() == 32 * 5
    gate.stop()
    gate.start()
    assert total() == 32 * 5
    assert gate.push(body).status == 200
    gate.until(total, 33 * 5)


def test_marks_never_count_more_than_was_sent(make_gate):
    """Siblings under kill -9: acknowledged in groups before the last <= counted <= sent, and at least one."""
    rng = random.Random(5)
    gate = make_gate(start=False)
    body = Pprof(types=(("cpu", "nanoseconds"),)).add(["main"], [1]).gz()
    sent = acknowledged = 0
    lock = threading.Lock()

    def client():
        nonlocal sent, acknowledged
        try:
            while True:
                with lock:
                    sent += 1
                if gate.send("/ingest?name=twins&format=pprof", body).status == 200:
                    with lock:
                        acknowledged += 1
        except Exception:
            return

    for _ in range(3):
        gate.start()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            running = [pool.submit(client) for _ in range(4)]
            time.sleep(rng.uniform(0.2, 0.5))
            gate.kill()
            for r in running:
                r.result()
    gate.start()
    total = gate.get("functions", service="twins", type="cpu")["total"]
    assert total <= sent
    # Of each killed process only its last group, at most the four in flight and the four before them, may lack its mark.
    assert total >= acknowledged - 3 * 8
    assert total >= 1
