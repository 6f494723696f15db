"""For a while everything at once: uploads of all kinds, queries, TLS, clients that go wrong, reloads. Then connections, memory, descriptors and
threads are where they were, and the books balance. SOAK_SECONDS=600 for the long form (`make soak`)."""

import http.client
import os
import re
import signal
import threading
import time

from bodies import push, simple
from certs import Authority, SecureWire, client
from gate import SANITIZED
from noise import Noise
from test_noise import clients_addresses, three_listeners

SECONDS = float(os.environ.get("SOAK_SECONDS", "6"))
WARM = 3  # enough for every body to have been seen, and every part to have its memory
GROWTH = 24 << 20  # of resident memory: what malloc keeps between two moments
CONF = "timeouts: {head: 500ms, body: 2s, idle: 500ms, write: 1s}\noriginals: {max_bytes: 16MiB}\nmemory: 128MiB\nmax_requests_per_connection: 50\n"


def resources(gate):
    pid = gate.process.pid
    with open("/proc/%d/status" % pid) as f:
        status = f.read()
    field = lambda name: int(re.search(name + r":\s+(\d+)", status).group(1))
    names = []
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            names.append(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            pass  # closed in between
    segments = [n for n in names if "/originals/" in n]
    assert len(segments) <= 16, segments  # so many stay open, whatever is written
    return {"descriptors": len(names) - len(segments), "threads": field("Threads"), "resident": field("VmRSS") << 10}


class Steady:
    """Good clients; every answer of theirs must be a 200."""

    def __init__(self, gate, tls, authority):
        self.gate, self.tls, self.context, self.wrong, self.done, self.stopping = gate, tls, client(authority), [], 0, False
        many = b"".join(b"main;f%d;g%d 1\n" % (i, i % 50) for i in range(2000))
        pprof = simple().gz()
        self.sends = [
            lambda: gate.ingest(many, format="folded"),
            lambda: gate.ingest(pprof),
            lambda: gate.push(push([({"service_name": "shop", "__name__": "process_cpu"}, [pprof] * 5)])),
            lambda: gate.read("functions", service="shop"),
            lambda: gate.read("overview"),
            self.secure,
        ]

    def secure(self):
        body = b"main;work 3\n"
        text = ("POST /ingest?name=shop&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (self.gate.key, len(body))).encode() + body
        with SecureWire(self.tls, self.context) as wire:
            replies = [wire.send(text).reply() for _ in range(3)]
            return max(replies, key=lambda r: r.status)

    def run(self):
        i = 0
        while not self.stopping:
            i += 1
            try:
                reply = self.sends[i % len(self.sends)]()
                if reply.status != 200:
                    self.wrong.append(repr(reply))
            except (OSError, http.client.HTTPException, EOFError) as e:
                self.wrong.append(repr(e))
            self.done += 1
            time.sleep(0.02)


def load(gate, addresses, authority, seconds, seed):
    plain, tls, proxied = addresses
    steady = [Steady(gate, tls, authority) for _ in range(2)]
    noise = Noise(gate, [(plain, None, False), (tls, authority, False), (proxied, authority, True)], seed)
    threads = [threading.Thread(target=s.run) for s in steady] + [threading.Thread(target=noise.run, args=(seconds, 0.005))]
    for t in threads:
        t.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        gate.process.send_signal(signal.SIGHUP)
        time.sleep(1)
    for s in steady:
        s.stopping = True
    for t in threads:
        t.join()
    wrong = [w for s in steady for w in s.wrong]
    assert not wrong, (len(wrong), wrong[:5])
    return sum(s.done for s in steady)


def quiet(gate):
    gate.until(lambda: gate.count("flamegate_connections"), 1, 10)
    gate.until(lambda: gate.count("flamegate_store_queue") + gate.count("flamegate_inflight_requests"), 1, 10)
    time.sleep(0.3)
    return resources(gate)


def test_soak(make_gate, tmp_path):
    authority = Authority(tmp_path, "ours")
    gate = make_gate(three_listeners(authority) + CONF)
    addresses = clients_addresses(gate)
    load(gate, addresses, authority, WARM, 1)
    before, accounts = quiet(gate), gate.metrics()
    assert load(gate, addresses, authority, SECONDS, 2) > 10 * SECONDS
    after, now = quiet(gate), gate.metrics()
    print(before, after)
    assert after["descriptors"] <= before["descriptors"] + 4, (before, after)  # a file of another day
    assert after["threads"] == before["threads"], (before, after)
    assert SANITIZED or after["resident"] < before["resident"] + GROWTH, (before, after)
    for account, slack in (("requests", 0), ("connections", 2048), ("queries", 0), ("records", 256 << 10)):  # the last: queues that have grown
        name = 'flamegate_memory_bytes{account="%s"}' % account
        assert now[name] <= accounts[name] + slack, (account, accounts[name], now[name])
    assert not gate.settled()
    c = lambda name: gate.count("flamegate_" + name)
    assert c("tls_handshakes_total") > 0 and c("profiles_accepted_total") > 0 and c("profiles_refused_total") > 0
