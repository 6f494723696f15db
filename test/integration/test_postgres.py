"""Samples in PostgreSQL behind the real binary: a database that is away, that dies under load, and that two gateways share."""

import concurrent.futures
import http.client
import os
import shutil
import signal
import threading
import time

import pytest

from bodies import Pprof, push, simple
from gate import ROOT, basic, flamegate

BARE = "spool: {max_bytes: 0B}\n"  # what the store does by itself; with the spool: test_spool.py
DOWN = "store=postgres"  # what a store that is away may say as an error


@pytest.fixture
def server(postgres):
    """The session's server, running again whatever a test did to it."""
    yield postgres
    if not postgres.running():
        postgres.start()


def ready(gate):
    return gate.request("GET", "/readyz").status


def total(gate, service="shop"):
    return gate.get("functions", service=service, type="cpu")["total"]


def twin(make_gate, gate, conf=""):
    """Another replica: the same database, hash key and keys, a folder of its own."""
    other = make_gate(conf, start=False, keys=False, samples=gate.samples)
    os.makedirs(os.path.join(other.dir, "data"))
    shutil.copy(os.path.join(gate.dir, "data", "hash.key"), os.path.join(other.dir, "data", "hash.key"))
    shutil.copy(gate.keys_file, other.keys_file)
    other.key, other.reader, other.admin = gate.key, gate.reader, gate.admin
    return other.start()


def lost(gate, body):
    """An upload whose client has gone before its answer."""
    head = "POST /ingest?name=shop&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, len(body))
    gate.wire().send(head.encode() + body).close()


class Load:
    """Clients over several gateways that each send uploads of their own until they get a 200, at whichever gateway is next."""

    def __init__(self, gates, clients, patience=None):
        self.gates, self.clients, self.patience = gates, clients, patience
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.sent, self.acknowledged, self.statuses, self.wrong, self.cut = {}, set(), {}, [], set()

    def one(self, n, body, try_):
        gate = self.gates[(n + try_) % len(self.gates)]
        try:
            reply = gate.request("POST", "/ingest?name=load&format=pprof", body, basic("", gate.key), timeout=self.patience or 30)
        except (OSError, http.client.HTTPException):
            with self.lock:
                self.cut.add(n)  # no answer
            return False
        with self.lock:
            self.statuses[reply.status] = self.statuses.get(reply.status, 0) + 1
            if reply.status == 200:
                self.acknowledged.add(n)
            elif reply.status != 503 or int(reply.headers.get("retry-after", 0)) < 1:
                self.wrong.append(reply)
        return reply.status == 200

    def client(self, first):
        n = first
        while not self.stop.is_set():
            body = Pprof(types=(("cpu", "nanoseconds"),)).add(["main", "u%d" % n], [1000 + n]).gz()
            with self.lock:
                self.sent[n] = 1000 + n
            for try_ in range(200):
                if self.one(n, body, try_):
                    break
                time.sleep(0.1)
            n += self.clients

    def __enter__(self):
        self.pool = concurrent.futures.ThreadPoolExecutor(self.clients)
        self.running = [self.pool.submit(self.client, i) for i in range(self.clients)]
        return self

    def __exit__(self, *_):
        self.stop.set()
        for r in self.running:
            r.result()
        self.pool.shutdown()


def counted(gate):
    rows, _ = gate.rows(service="load", type="cpu")
    return {int(name[1:]): row[0] for (name, _), row in rows.items() if name[0] == "u"}


def test_starts_while_the_database_is_away(make_gate, server):
    address = server.create()
    server.stop("fast")
    gate = make_gate(BARE, samples=address, start=False)
    gate.errors_expected.append(DOWN)
    gate.start()
    reply = gate.request("GET", "/readyz")
    assert reply.status == 503 and "store" in reply.text, reply
    assert gate.request("GET", "/healthz").status == 200
    start = time.monotonic()
    reply = gate.ingest(simple(value=7).gz())
    assert reply.status == 503 and int(reply.headers["retry-after"]) >= 1 and "store" in reply.json()["message"], reply
    assert time.monotonic() - start < 5
    assert gate.read("services").status == 503
    server.start()
    gate.until(lambda: ready(gate), 200, 15)
    assert gate.ingest(simple(value=7).gz()).status == 200
    gate.until(lambda: total(gate), 7)


def test_crash_of_the_database_under_load(make_gate, server):
    """Every upload is one of its own, so none of the known limits applies: each is there, once, to the last unit."""
    gate = make_gate(BARE, samples=server.create())
    gate.errors_expected.append(DOWN)
    with Load([gate], 8) as load:
        for _ in range(2):
            time.sleep(1)
            server.stop("immediate")
            time.sleep(1.5)
            server.start()
            gate.until(lambda: ready(gate), 200, 15)
        time.sleep(1)
    assert not load.wrong, load.wrong[:3]
    assert load.acknowledged == set(load.sent) and len(load.sent) > 50
    assert load.statuses.get(503) or load.cut, "the crashes were not felt"
    gate.until(lambda: counted(gate), load.sent)
    gate.assert_memory()
    gate.stop()
    gate.start()
    assert counted(gate) == load.sent


def test_siblings_through_a_crash_of_the_database(make_gate, server):
    """Byte-equal uploads without an identity: acknowledged <= counted <= sent, but for marks that the crash took (design.md 6)."""
    gate = make_gate(BARE, samples=server.create())
    gate.errors_expected.append(DOWN)
    body = Pprof(types=(("cpu", "nanoseconds"),)).add(["main"], [1]).gz()
    clients = 6
    lock, stop, sums = threading.Lock(), threading.Event(), {"sent": 0, "acknowledged": 0}

    def client():
        while not stop.is_set():
            with lock:
                sums["sent"] += 1
            status = gate.ingest(body).status
            assert status in (200, 503)
            with lock:
                sums["acknowledged"] += status == 200
            if status == 503:
                time.sleep(0.1)

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client) for _ in range(clients)]
        time.sleep(0.7)
        server.stop("immediate")
        server.start()
        gate.until(lambda: ready(gate), 200, 15)
        time.sleep(0.7)
        stop.set()
        for r in running:
            r.result()
    assert sums["acknowledged"] > 10 * clients
    # A crash may take the marks behind the last commit that waited for the disk: at most those of the last two groups.
    least = sums["acknowledged"] - 2 * clients
    time.sleep(0.5)
    got = total(gate)
    assert least <= got <= sums["sent"], sums


def test_two_gateways_see_and_count_as_one(make_gate, server):
    one = make_gate(samples=server.create())
    two = twin(make_gate, one)
    for i, gate in enumerate((one, two)):
        assert gate.ingest(simple("f%d" % i, 10 + i).gz()).status == 200
    for gate in (one, two):
        gate.until(lambda: total(gate), 21)
        assert {p["id"] for p in gate.profiles()} == {p["id"] for p in one.profiles()}
    # The answer is lost at one, the retry goes to the other.
    for i in range(10):
        body = simple("r%d" % i, 100).gz()
        lost((one, two)[i % 2], body)
        assert (two, one)[i % 2].ingest(body).status == 200
    time.sleep(0.3)
    for gate in (one, two):
        gate.until(lambda: total(gate), 1021)
    # Equal uploads, each acknowledged, over both: all count.
    body = push([({"__name__": "process_cpu", "service_name": "ebpf"}, [simple(value=5).gz()])])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert {r.status for r in pool.map(lambda i: (one, two)[i % 2].push(body), range(32))} == {200}
    for gate in (one, two):
        gate.until(lambda: total(gate, "ebpf"), 32 * 5)
    # With an identity of its own an upload counts once, wherever it was sent.
    body = push([({"__name__": "process_cpu", "service_name": "java"}, [(simple(value=5).gz(), "one-id")])])
    for gate in (one, two, one, two):
        assert gate.push(body).status == 200
    for gate in (one, two):
        gate.until(lambda: total(gate, "java"), 5)


def test_retries_over_two_gateways_under_load(make_gate, server):
    """A gateway is killed; its clients go on at the other one. Equal is what was acknowledged; memory stays bounded."""
    one = make_gate("memory: 64MiB\n", samples=server.create())
    two = twin(make_gate, one)
    with Load([one, two], 8) as load:
        time.sleep(1)
        one.kill()
        time.sleep(0.5)
        one.start()
        load.gates = [one, two]
        time.sleep(1)
    assert not load.wrong, load.wrong[:3]
    assert load.acknowledged == set(load.sent) and len(load.sent) > 50
    for gate in (one, two):
        gate.until(lambda: counted(gate), load.sent)
    one.assert_memory(2 * (64 << 20))
    two.assert_memory()


def test_impatient_clients_of_a_database_that_stands_still(make_gate, server):
    """Clients give up after a second and retry at the other gateway; each upload counts once."""
    one = make_gate(BARE, samples=server.create())
    two = twin(make_gate, one, BARE)
    one.errors_expected.append(DOWN)
    two.errors_expected.append(DOWN)
    with Load([one, two], 8, patience=1) as load:
        time.sleep(0.7)
        server.signal(signal.SIGSTOP)
        try:
            time.sleep(3)
        finally:
            server.signal(signal.SIGCONT)
        time.sleep(1)
    assert not load.wrong, load.wrong[:3]
    assert load.cut and load.acknowledged == set(load.sent) and len(load.sent) > 50
    for gate in (one, two):
        gate.until(lambda: ready(gate), 200, 15)
        gate.until(lambda: counted(gate), load.sent)


def test_ten_that_start_at_once(make_gate, server):
    """An empty database and ten gateways: one schema, nobody fails."""
    first = make_gate(samples=server.create(), start=False)
    os.makedirs(os.path.join(first.dir, "data"), exist_ok=True)
    with open(os.path.join(first.dir, "data", "hash.key"), "w") as f:
        f.write("a made-up key for ten replicas\n")
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        gates = list(pool.map(lambda i: first.start() if i == 0 else twin(make_gate, first), range(10)))
    for gate in gates:
        gate.until(lambda: ready(gate), 200, 15)
        assert gate.ingest(simple(value=1, time_ns=0).gz()).status == 200
    first.until(lambda: total(first), 10)


def test_cold_symbols_at_three_replicas(make_gate, server):
    """All three meet the same new stacks at the same time, and write them: nobody waits for another's lock in a circle."""
    first = make_gate(samples=server.create())
    gates = [first, twin(make_gate, first), twin(make_gate, first)]

    def send(i):
        round_, gate = divmod(i, 3)
        p = Pprof(types=(("cpu", "nanoseconds"),), time_ns=0)
        for stack in range(400):
            p.add(["main", "r%d" % round_, "s%d" % (stack * 7 % 400), "leaf%d" % (stack % 50)], [1 + i])
        return gates[gate].ingest(p.gz(), name="cold%d" % (round_ % 2)).status

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        assert set(pool.map(send, range(90))) == {200}
    deadlocks = int(server.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = '%s'" % first.samples.rsplit("/", 1)[1])[0])
    print("deadlocks: %d" % deadlocks)
    assert deadlocks == 0
    first.until(lambda: sum(total(first, "cold%d" % i) for i in range(2)), sum(400 * (1 + i) for i in range(90)))


def test_another_hash_key_refuses_to_start(make_gate, server):
    gate = make_gate(samples=server.create())
    assert gate.ingest(simple().gz()).status == 200
    other = make_gate(start=False, samples=gate.samples)
    done = other.run("serve")
    assert done.returncode == 1
    assert "hash_key_file" in done.stderr and "another key" in done.stderr, done.stderr
    assert ready(gate) == 200


def test_by_name_of_the_host(make_gate, server):
    gate = make_gate(samples=server.create().replace("postgres://", "postgresql://").replace("127.0.0.1", "localhost"))
    assert gate.ingest(simple(value=7).gz()).status == 200
    gate.until(lambda: total(gate), 7)


def test_sample_configuration():
    path = os.path.join(ROOT, "conf", "flamegate-postgres.yaml")
    done = flamegate("--config", path, "check-config")
    assert done.returncode == 0, done.stderr


def test_hash_key_file_must_be_given(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text("memory: 64MiB\nsamples: postgres://u:secret@h/d\n")
    done = flamegate("--config", path, "check-config")
    assert done.returncode == 78 and "conf.yaml:2:10: " in done.stderr and "hash_key_file" in done.stderr, done.stderr
    assert "secret" not in done.stdout + done.stderr
    path.write_text("hash_key_file: /x\nsamples: postgres://u:secret@h/d\n")
    assert flamegate("--config", path, "check-config").returncode == 0
