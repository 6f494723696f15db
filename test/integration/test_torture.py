"""Two replicas behind a real HAProxy under a steady load of the corpus, while each part of the deployment dies in its own way. Every
upload is one of its own and is repeated until it is acknowledged, so the totals must come out exact, whatever happened in between.
`make torture` lets two things happen at a time."""

import concurrent.futures
import itertools
import os
import signal
import subprocess
import tempfile
import threading
import time

import pytest

from bodies import Pprof, push
from cluster import SERVICES, Cluster, Load, ask
from gate import PROTO, PUSH, basic
from postgres import Postgres
from redis import Redis
from test_shares import both

PAIRS = os.environ.get("FLAMEGATE_TORTURE") == "pairs"


class Deployment:
    """What the faults below work on."""

    def __init__(self, make_gate, folder, prepare=None):
        self.postgres, self.redis = Postgres().start(), Redis().start()
        self.database_is_up = threading.Lock()  # a server that is down cannot be copied
        self.lacked = (0, 0)  # since when, and until when, the last database to take over lacks what the one before it had
        self.cluster = Cluster(make_gate, folder, self.postgres.create(), self.redis.create(), prepare=prepare, errors=("store=", "store is away"))

    def until_asked(self, sql):
        """Something else may keep the database down for a while."""
        end = time.monotonic() + 15
        while True:
            try:
                return self.postgres.ask(sql)
            except AssertionError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def close(self):
        self.cluster.close()
        self.postgres.close()
        self.redis.close()


@pytest.fixture
def deployment(make_gate, tmp_path):
    made = Deployment(make_gate, tmp_path)
    yield made
    made.close()


def kill_replica(d):
    """In the middle of whatever it does."""
    for i in (1, 0):
        d.cluster.gates[i].kill()
        time.sleep(0.5)
        d.cluster.restart(i)
        time.sleep(0.7)


def database_crashes(d):
    with d.database_is_up:
        d.postgres.stop("immediate")
        time.sleep(1.5)
        d.postgres.start()


def database_stands_still(d):
    d.postgres.signal(signal.SIGSTOP)
    time.sleep(4 if PAIRS else 10)  # longer than any deadline of the store; once for as long as it may take
    d.postgres.signal(signal.SIGCONT)


def connections_are_cut(d):
    for _ in range(3):
        d.until_asked("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
        time.sleep(0.5)


def fails_over(d):
    """To a copy that lacks the last second of what was acknowledged."""
    with d.database_is_up:
        first, copy = d.postgres, d.postgres.standby()
        copy.start()
        time.sleep(0.5)
        assert copy.ask("SELECT status FROM pg_stat_wal_receiver") == ["streaming"]
        since = time.monotonic() - 0.2  # with what was on its way
        copy.stop("fast")
        time.sleep(1)
        first.stop("immediate")
        d.lacked = (since, time.monotonic())
        copy.port, d.postgres = first.port, copy
        copy.start()
        copy.promote()
        first.close()


def shares_crash(d):
    """Redis keeps nothing over a restart."""
    d.redis.kill()
    time.sleep(1)
    d.redis.start()


def shares_are_emptied(d):
    for _ in range(2):
        try:
            d.redis.ask("FLUSHALL")
        except OSError:
            pass  # it is dead, and so as empty
        time.sleep(1)


FAULTS = [kill_replica, database_crashes, database_stands_still, connections_are_cut, fails_over, shares_crash, shares_are_emptied]
CASES = [pair for pair in itertools.combinations(FAULTS, 2)] if PAIRS else [(f,) for f in FAULTS]


def shares_agree(cluster):
    """Both replicas answer from Redis what the profiles add up to; the minutes before the last one are there again."""
    for gate in cluster.gates:
        gate.until(lambda: gate.count("flamegate_share_store_healthy"), 1, 10)
        for i in range(SERVICES):
            for t in gate.get("types", service="svc%d" % i, from_="now-2h")["types"]:
                assert both(gate, service="svc%d" % i, type=t["id"], from_="now-2h")["total"] == t["total"]


@pytest.mark.parametrize("faults", CASES, ids=lambda fs: "+".join(f.__name__ for f in fs))
def test_exact_after(deployment, faults):
    with Load(deployment.cluster) as load:
        time.sleep(1)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for happening in [pool.submit(f, deployment) for f in faults]:
                happening.result()
        deployment.cluster.until_ready()
        time.sleep(1)
    # What the new database lacks is sent again by the replica that had sent it: not by one that has been killed since, by design.
    may_lack = load.told_between(*deployment.lacked) if {kill_replica, fails_over} <= set(faults) else ()
    deployment.cluster.check(load, may_lack=may_lack)
    shares_agree(deployment.cluster)
    print("%d uploads, answers %s" % (len(load.sent), load.statuses))


@pytest.mark.skipif(PAIRS, reason="alone only")
def test_impatient_clients(deployment):
    """Clients give up after 2 s while the database stutters, and repeat what they sent, at the other replica as it comes."""
    with Load(deployment.cluster, patience=2) as load:
        for _ in range(3):
            time.sleep(0.5)
            deployment.postgres.signal(signal.SIGSTOP)
            time.sleep(2.4)
            deployment.postgres.signal(signal.SIGCONT)
        time.sleep(1)
    deployment.cluster.check(load)


def small_disk(gate):
    """The spool's folder on a disk with room for a little more than one segment."""
    folder = os.path.join(gate.dir, "data", "spool")
    os.makedirs(folder, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", folder], check=True)


def may_mount(tmp="/tmp"):
    with tempfile.TemporaryDirectory(dir=tmp) as folder:
        ok = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True).returncode == 0
        return ok and subprocess.run(["umount", folder]).returncode == 0


@pytest.mark.skipif(PAIRS or not may_mount(), reason="alone only; wants to mount a tmpfs")
def test_spool_on_a_full_disk(make_gate, tmp_path):
    """While the database stands still the spool fills its disk: uploads are refused, not lost, and taken again afterwards."""
    d = Deployment(make_gate, tmp_path, small_disk)
    try:
        with Load(d.cluster, clients=12, pause=0) as load:
            time.sleep(1)
            d.postgres.signal(signal.SIGSTOP)
            until = time.monotonic() + 20
            while not load.statuses.get(503) and time.monotonic() < until:
                time.sleep(0.2)
            time.sleep(1)
            d.postgres.signal(signal.SIGCONT)
            d.cluster.until_ready()
            time.sleep(1)
        assert load.statuses.get(503), load.statuses
        d.cluster.check(load)
    finally:
        d.close()
        for gate in d.cluster.gates:
            subprocess.run(["umount", "-l", os.path.join(gate.dir, "data", "spool")], check=True)


class Siblings:
    """One body, sent 16 at a time: none can be told from its retry but by who was told."""

    def __init__(self, cluster):
        self.cluster, self.sent, self.acknowledged, self.lock = cluster, 0, 0, threading.Lock()
        self.body = push([({"__name__": "process_cpu", "service_name": "twins"}, [Pprof(types=(("cpu", "nanoseconds"),), time_ns=0).add(["main"], [1]).gz()])])

    def one(self, _):
        with self.lock:
            self.sent += 1
        try:
            reply = ask(self.cluster.proxy.address, "POST", PUSH, self.body, {**PROTO, **basic("", self.cluster.gates[0].key)}, 30)
        except OSError:
            return
        with self.lock:
            self.acknowledged += reply.status == 200

    def total(self):
        return self.cluster.gates[0].get("functions", service="twins", type="cpu", from_="now-2h")["total"]


@pytest.mark.skipif(PAIRS, reason="alone only")
def test_siblings(deployment):
    siblings = Siblings(deployment.cluster)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(siblings.one, range(320)))
        assert siblings.acknowledged == siblings.sent == 320
        deployment.cluster.gates[0].until(siblings.total, 320, 10)
        happening = pool.submit(database_crashes, deployment)
        for _ in range(10):
            list(pool.map(siblings.one, range(16)))
        happening.result()
        deployment.cluster.until_ready()
        list(pool.map(siblings.one, range(16)))
    end = time.monotonic() + 10
    while not siblings.acknowledged <= siblings.total() <= siblings.sent and time.monotonic() < end:
        time.sleep(0.2)
    assert siblings.acknowledged <= siblings.total() <= siblings.sent
