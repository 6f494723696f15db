"""The whole server against clients that do everything wrong, over real sockets. NOISE_SECONDS and NOISE_SEED for the long form (`make
fuzz-server`, which runs it on a binary with sanitizers)."""

import os
import random
import signal
import threading
import time

from certs import Authority, SecureWire, client
from noise import Noise

SECONDS = float(os.environ.get("NOISE_SECONDS", "5"))
SEED = int(os.environ.get("NOISE_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)


def clients_addresses(gate):
    """The addresses of all listeners for clients, in the order of the configuration."""
    return [("127.0.0.1", int(line.split("address=127.0.0.1:")[1].split()[0])) for line in gate.log(gate.log_start).splitlines()
            if "event=listening" in line and "for=clients" in line]


def three_listeners(authority):
    """In the clear, with TLS, with TLS behind a PROXY header."""
    tls = "tls: {cert_file: %s, key_file: %s}" % authority.sign("server")
    return "listen: [127.0.0.1:0, {address: 127.0.0.1:0, %s}, {address: 127.0.0.1:0, %s, proxy_protocol: true}]\n" % (tls, tls)


def test_noise(make_gate, tmp_path):
    print("seed", SEED)
    authority = Authority(tmp_path, "ours")
    gate = make_gate(three_listeners(authority) + "timeouts: {head: 500ms, body: 1s, idle: 500ms, write: 1s}\noriginals: {max_bytes: 16MiB}\n")
    plain, tls, proxied = clients_addresses(gate)
    noises = [Noise(gate, [(plain, None, False), (tls, authority, False), (proxied, authority, True)], SEED + i) for i in range(4)]
    threads = [threading.Thread(target=n.run, args=(SECONDS,)) for n in noises]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        assert gate.process.poll() is None, (SEED, gate.log()[-4000:])
        gate.process.send_signal(signal.SIGHUP)
        time.sleep(min(1, SECONDS / 4))
    assert gate.process.poll() is None, (SEED, gate.log()[-4000:])
    assert sum(n.sent for n in noises) > 20 * SECONDS
    gate.until(lambda: gate.count("flamegate_connections"), 1, 10)  # the one that asks
    m = gate.metrics()
    assert gate.count("flamegate_inflight_bytes", m) == 0 and gate.count("flamegate_memory_bytes", m, account="connections") < 2048, m  # the question itself
    with SecureWire(tls, client(authority)) as wire:
        assert wire.send(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n").reply().status == 200
    assert gate.ingest(b"main;work 3\n", format="folded").status == 200
