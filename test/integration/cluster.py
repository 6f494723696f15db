"""Replicas of the gateway as they are deployed: one PostgreSQL (and Redis) behind them, a real HAProxy in front, and clients that send
the corpus and do not give up. What was sent, and what was acknowledged, is known to the last unit."""

import http.client
import itertools
import os
import random
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

from bodies import push
from corpus import captures
from gate import PROTO, PUSH, ROOT, Reply, basic

MEMORY = 256 << 20
SERVICES = 4


class Upload:
    """A body of the corpus, and what each type of it adds up to."""

    def __init__(self, name, payload, route, params, totals):
        self.name, self.payload, self.route, self.params, self.totals = name, payload, route, params, totals

    def request(self, service, mark):
        """(target, body, headers) under this service; the label `u` makes it an upload of its own."""
        if self.route == "push":
            labels = {"__name__": "process_cpu", "service_name": service, "u": mark}
            return PUSH, push([(labels, [self.payload])]), PROTO
        params = {**self.params, "name": '%s{u=%s}' % (service, mark)}
        return "/ingest?" + urllib.parse.urlencode(params), self.payload, {}


def uploads(largest=1 << 20):
    """Every profile of the corpus that is taken, in the order of the corpus."""
    out = []
    for capture in captures():
        if not capture.taken:
            continue
        inner, profiles = capture.inner(), capture.profiles()
        if len(inner) != len(profiles):
            continue  # an empty one among them
        for payload, (_, _, types) in zip(inner, profiles):
            if len(payload) > largest:
                continue
            folded = capture.payload == "folded"
            params = {"format": "folded", "sampleRate": capture.query.get("sampleRate", "100")} if folded else {"format": "pprof"}
            totals = {kind: total for kind, _, total, _, _ in types if total}
            out.append(Upload(capture.name, payload, "ingest", params, totals))
    assert len(out) > 40
    return out


class Proxy:
    """HAProxy with conf/haproxy.cfg, the replicas' addresses in it."""

    def __init__(self, folder, gates):
        with open(os.path.join(ROOT, "conf", "haproxy.cfg")) as f:
            text = f.read()
        assert "option abortonclose" in text
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.address = s.getsockname()
        text = text.replace("bind :80\n", "bind %s:%d\n" % self.address).replace("check inter 2s", "check inter 200ms")
        servers = "".join("    server f%d %s:%d\n" % (i, *g.address) for i, g in enumerate(gates))
        text, n = re.subn(r"    server f1 127.0.0.1:4040\n(    server .*\n)*", servers, text)
        assert n == 1
        self.file = os.path.join(str(folder), "haproxy.cfg")
        with open(self.file, "w") as f:
            f.write(text)
        self.process = subprocess.Popen(["haproxy", "-q", "-f", self.file])

    def close(self):
        self.process.kill()
        self.process.wait()


class Cluster:
    """make_gate makes the replicas. What the corpus says of its time is too old for them, so that profiles have the time of their arrival. Their addresses stay the same over restarts, as the proxy wants it."""

    def __init__(self, make_gate, folder, samples, shares=None, replicas=2, conf="", prepare=None, errors=("store=",)):
        self.gates = []
        with socket.socket() as a, socket.socket() as b:
            a.bind(("127.0.0.1", 0))
            b.bind(("127.0.0.1", 0))
            ports = [s.getsockname()[1] for s in (a, b)]
        for i in range(replicas):
            first = self.gates[0] if i else None
            text = "listen: 127.0.0.1:%d\nmemory: %dB\naccept_window: { past: 10m }\n%s" % (ports[i] if i < 2 else 0, MEMORY, conf)
            gate = make_gate(text, start=False, keys=first is None, samples=samples, shares=shares)
            if first:
                os.makedirs(os.path.join(gate.dir, "data"))
                shutil.copy(os.path.join(first.dir, "data", "hash.key"), os.path.join(gate.dir, "data", "hash.key"))
                shutil.copy(first.keys_file, gate.keys_file)
                gate.key, gate.reader, gate.admin = first.key, first.reader, first.admin
            gate.errors_expected += errors
            if prepare:
                prepare(gate)
            gate.start()
            self.gates.append(gate)
        self.proxy = Proxy(folder, self.gates)
        self.pids = [g.process.pid for g in self.gates]
        self.until_ready()

    def until_ready(self, within=20):
        end = time.monotonic() + within
        for gate in self.gates:
            while gate.request("GET", "/readyz").status != 200:
                assert time.monotonic() < end, "a replica does not recover: " + gate.log()[-2000:]
                time.sleep(0.1)
        while self.through("GET", "/readyz") != 200:
            assert time.monotonic() < end, "the proxy sends nothing on"
            time.sleep(0.1)

    def through(self, method, target):
        try:
            return ask(self.proxy.address, method, target, None, {}, 5).status
        except (OSError, http.client.HTTPException):
            return 0

    def restart(self, i):
        """After gates[i].kill()."""
        self.gates[i].start()
        self.pids[i] = self.gates[i].process.pid

    def totals(self):
        """(service, type) -> sum, as the first replica reads it."""
        gate = self.gates[0]
        out = {}
        for i in range(SERVICES):
            for t in gate.get("types", service="svc%d" % i, from_="now-2h")["types"]:
                key = ("svc%d" % i, t["name"])
                out[key] = out.get(key, 0) + t["total"]
        return {k: v for k, v in out.items() if v}

    def check(self, load, within=30, may_lack=()):
        """Everything that was sent was acknowledged in the end, and each upload counts once, but for those of may_lack, which may be missing.
        Nobody was restarted but on purpose."""
        assert not load.wrong, load.wrong[:3]
        assert load.acknowledged == set(load.sent) and len(load.sent) > 20, (len(load.acknowledged), len(load.sent))
        wanted, least = load.totals(), load.totals(may_lack)
        end = time.monotonic() + (5 if may_lack else within)
        while (got := self.totals()) != wanted and time.monotonic() < end:
            time.sleep(0.2)
        if any(not least.get(k, 0) <= got.get(k, 0) <= wanted.get(k, 0) for k in {*got, *wanted}):
            raise AssertionError("%s\n%s" % ({k: (got.get(k), wanted.get(k)) for k in {*got, *wanted} if got.get(k) != wanted.get(k)}, self.differences(load)))
        for gate, pid in zip(self.gates, self.pids):
            assert gate.process.poll() is None and gate.process.pid == pid, "a replica ended: " + gate.log()[-2000:]
            gate.assert_memory(2 * MEMORY)

    def differences(self, load):
        """Which uploads are missing or count more than once."""
        seen = {}
        for i in range(SERVICES):
            for p in self.gates[0].profiles(service="svc%d" % i, from_="now-2h", limit=1000):
                seen[p["labels"].get("u")] = seen.get(p["labels"].get("u"), 0) + 1
        wrong = {u: seen.get(str(u), 0) for u in load.sent if seen.get(str(u), 0) != 1}
        return ["upload %s (%s) counts %d times, answers %s" % (u, load.sent[u][1].name, n, load.answers.get(u)) for u, n in list(wrong.items())[:10]]

    def close(self):
        self.proxy.close()


def ask(address, method, target, body, headers, timeout):
    c = http.client.HTTPConnection(*address, timeout=timeout)
    try:
        c.request(method, target, body, headers)
        r = c.getresponse()
        return Reply(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
    finally:
        c.close()


class Load:
    """Clients that send through the proxy and repeat each upload until it is acknowledged."""

    def __init__(self, cluster, clients=6, patience=30, pause=0.02, seed=1):
        self.cluster, self.clients, self.patience, self.pause = cluster, clients, patience, pause
        self.bodies, self.rng = uploads(), random.Random(seed)
        self.numbers, self.lock, self.stop = itertools.count(), threading.Lock(), threading.Event()
        self.sent, self.acknowledged, self.answers, self.wrong, self.statuses, self.told_at = {}, set(), {}, [], {}, {}

    def note(self, n, status, reply=None):
        with self.lock:
            self.answers.setdefault(n, []).append(status)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200:
                self.acknowledged.add(n)
                self.told_at[n] = time.monotonic()
            elif reply and reply.headers.get("content-type") == "application/json":  # ours: the proxy's own pages are HTML
                if status != 503 or int(reply.headers.get("retry-after", 0)) < 1:
                    self.wrong.append(reply)

    def one(self, n, service, upload):
        target, body, headers = upload.request(service, n)
        try:
            reply = ask(self.cluster.proxy.address, "POST", target, body, {**headers, **basic("", self.cluster.gates[0].key)}, self.patience)
        except (OSError, http.client.HTTPException) as e:
            self.note(n, type(e).__name__)
            return False
        self.note(n, reply.status, reply)
        return reply.status == 200

    def client(self):
        while not self.stop.is_set():
            with self.lock:
                n = next(self.numbers)
                service, upload = "svc%d" % (n % SERVICES), self.rng.choice(self.bodies)
                self.sent[n] = (service, upload)
            until = time.monotonic() + 60
            while not self.one(n, service, upload) and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(self.pause)

    def told_between(self, since, until):
        """The uploads that were acknowledged then."""
        return {n for n, at in self.told_at.items() if since <= at <= until}

    def totals(self, without=()):
        out = {}
        for service, upload in (sent for n, sent in self.sent.items() if n not in without):
            for kind, total in upload.totals.items():
                out[service, kind] = out.get((service, kind), 0) + total
        return out

    def __enter__(self):
        self.threads = [threading.Thread(target=self.client, daemon=True) for _ in range(self.clients)]
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for t in self.threads:
            t.join(90)
            assert not t.is_alive()
