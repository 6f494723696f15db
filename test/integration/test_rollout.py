"""Two replicas on one PostgreSQL behind HAProxy with the configuration of conf/: they are restarted one after the other, under load, and
once with TLS behind the proxy and a new configuration and certificate every second; no client sees any of it, and everything that was
acknowledged is there. ROLLOUTS=10 for the long form (`make rollouts`)."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

from certs import Authority
from gate import ROOT

ROLLOUTS = int(os.environ.get("ROLLOUTS", "2"))
CLIENTS = 6


def reader(port, key):
    """How many profiles the two have between them."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    c.request("GET", "/api/v1/functions?service=shop", headers={"x-flamegate-token": key})
    answer = json.loads(c.getresponse().read())
    c.close()
    return answer["profiles"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Proxy:
    def __init__(self, folder, gates, tls):
        with open(os.path.join(ROOT, "conf", "haproxy.cfg")) as f:
            text = f.read()
        self.port, stats = free_port(), os.path.join(str(folder), "stats")
        servers = "".join("    server f%d 127.0.0.1:%d%s\n" % (i, g.address[1], " ssl verify none" if tls else "") for i, g in enumerate(gates))
        for old, new in (("bind :80", "bind 127.0.0.1:%d" % self.port), ("inter 2s", "inter 200ms"), ("    timeout connect 5s\n", "    timeout connect 5s\n    timeout check 3s\n"), (re.search(r"    server .*\n", text).group(), servers)):
            assert old in text
            text = text.replace(old, new)
        path = os.path.join(str(folder), "haproxy.cfg")
        with open(path, "w") as f:
            f.write("global\n    stats socket %s\n" % stats + text)
        self.stats = stats
        self.process = subprocess.Popen(["haproxy", "-db", "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def up(self):
        """Which servers it sends requests to."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            try:
                s.connect(self.stats)
            except OSError:
                return []
            s.sendall(b"show stat\n")
            text = b"".join(iter(lambda: s.recv(1 << 16), b"")).decode()
        return [row.split(",")[1] for row in text.splitlines() if row.startswith("flamegate,f") and row.split(",")[17] == "UP"]

    def wait(self, wanted, within=10):
        until = time.monotonic() + within
        while self.up() != wanted:
            assert time.monotonic() < until, (self.up(), wanted)
            time.sleep(0.02)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Load:
    """Clients with a connection each, as long as it lasts; whatever is not a 200 is an error."""

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.errors, self.acknowledged, self.stopping = [], 0, False
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(CLIENTS)]
        for t in self.threads:
            t.start()

    def run(self, n):
        c, i = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20), 0
        while not self.stopping:
            i += 1
            try:
                c.request("POST", "/ingest?name=shop&format=folded", b"main;c%d;i%d 1\n" % (n, i), {"x-flamegate-token": self.key})
                r = c.getresponse()
                body = r.read()
                if r.status != 200:
                    self.errors.append((r.status, body))
                else:
                    self.acknowledged += 1
            except (OSError, http.client.HTTPException) as e:
                self.errors.append(repr(e))
                c.close()
            time.sleep(0.003)

    def stop(self):
        self.stopping = True
        for t in self.threads:
            t.join()


class Certificates:
    """Two pairs, and a link to one of them that moves."""

    def __init__(self, folder):
        authority = Authority(folder, "ours")
        for i in range(2):
            pair = authority.sign("server%d" % i)
            os.mkdir(folder / str(i))
            shutil.copy(pair[0], folder / str(i) / "tls.crt"), shutil.copy(pair[1], folder / str(i) / "tls.key")
        self.folder, self.now = folder, 1
        self.change()

    def change(self):
        self.now = 1 - self.now
        os.symlink(str(self.now), self.folder / "next")
        os.rename(self.folder / "next", self.folder / "data")


@pytest.fixture(params=["plain", "tls"])
def replicas(make_gate, postgres, tmp_path, request):
    store = postgres.create()
    made, certificates = [], Certificates(tmp_path) if request.param == "tls" else None
    form = "listen: {address: 127.0.0.1:%%d, tls: {cert_file: %s/data/tls.crt, key_file: %s/data/tls.key}}\n" % (tmp_path, tmp_path) if certificates else "listen: 127.0.0.1:%d\n"
    for i in range(2):
        shared = "keys_file: %s\nhash_key_file: %s\n" % (made[0].keys_file, os.path.join(made[0].dir, "data", "hash.key")) if made else ""
        gate = make_gate(form % free_port() + "drain_delay: 800ms\nmax_connection_age: 2s\n" + shared, samples=store, keys=not made)
        made.append(gate)
    proxy = Proxy(tmp_path, made, certificates)
    try:
        proxy.wait(["f0", "f1"])
        yield made, proxy, certificates
    finally:
        proxy.stop()


def test_rolling_restart(replicas):
    gates, proxy, certificates = replicas
    reloading = certificates is not None
    load = Load(proxy.port, gates[0].key)
    done = threading.Event()

    def reload():
        text, i = {g: open(g.conf_file).read() for g in gates}, 0
        while not done.wait(1):
            i += 1
            certificates.change()
            for g in gates:
                with open(g.conf_file, "w") as f:
                    f.write(text[g] + "limits: {depth: %d}\n" % (500 + i))
                if i % 2 and g.process:  # the other times its watching must do
                    g.process.send_signal(signal.SIGHUP)

    other = threading.Thread(target=reload)
    if reloading:
        other.start()
    try:
        time.sleep(0.5)
        for _ in range(ROLLOUTS):
            for i, gate in enumerate(gates):
                process, gate.process = gate.process, None  # no more reloads for this one
                process.send_signal(signal.SIGTERM)
                assert process.wait(15) == 0
                gate.start()
                proxy.wait(["f0", "f1"])
                time.sleep(0.2)
        time.sleep(0.3)
    finally:
        done.set()
        load.stop()
        if reloading:
            other.join()
    assert not load.errors, (len(load.errors), load.errors[:5])
    assert load.acknowledged > 200 * ROLLOUTS
    get = lambda: reader(proxy.port, gates[0].reader)
    gates[0].until(get, load.acknowledged)
    if reloading:
        assert all(g.log().count("configuration reloaded") >= 2 and g.log().count("certificate loaded") >= 3 and "not reloaded" not in g.log() for g in gates)
