"""Clients that do everything wrong at random: bytes cut, changed, doubled and joined, resets and half closes at any moment, in the clear, inside
TLS, below TLS, and behind PROXY headers. What they send starts from requests that are good."""

import random
import socket
import ssl
import struct
import time

from bodies import MULTIPART, multipart, push, push_json, simple
from certs import client
from gate import PUSH

TIMES = 0.05  # at most so long for an answer that nobody needs


def request(method, target, headers, body=b"", chunked=False):
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: x"] + ["%s: %s" % kv for kv in headers.items()]
    if chunked:
        cut = len(body) // 3
        body = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:cut], body[cut:]) if p) + b"0\r\n\r\n"
        lines.append("Transfer-Encoding: chunked")
    elif body or method == "POST":
        lines.append("Content-Length: %d" % len(body))
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def good_requests(gate):
    """Every kind of request, with credentials that hold."""
    key, reader = {"x-flamegate-token": gate.key}, {"x-flamegate-token": gate.reader}
    pprof, labels = simple().gz(), {"service_name": "noise", "__name__": "process_cpu"}
    out = [
        request("POST", "/ingest?name=noise&format=folded", key, b"main;work 3\n"),
        request("POST", "/ingest?name=noise&format=folded", key, b"main;work 3\n" * 40, chunked=True),
        request("POST", "/ingest?name=noise", key, pprof),
        request("POST", "/ingest?name=noise", {**key, **MULTIPART}, multipart([("profile", pprof)])),
        request("POST", PUSH, {**key, "Content-Type": "application/proto"}, push([(labels, [pprof] * 3)])),
        request("POST", PUSH, {**key, "Content-Type": "application/json"}, push_json([(labels, [pprof])])),
        request("POST", "/ingest?name=noise", {**key, "Expect": "100-continue"}, pprof),
        request("POST", "/ingest?name=noise", {"x-flamegate-token": "wrong"}, pprof),
    ]
    for path in ("overview", "functions", "flamegraph", "profiles", "series"):
        out.append(request("GET", "/api/v1/%s?service=noise" % path, reader))
    return out + [request(m, t, {}) for m, t in (("GET", "/readyz"), ("HEAD", "/healthz"), ("OPTIONS", "/ingest"), ("GET", "/nothing/../x"))]


def mutate(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 2, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            del data[at:at + rng.randrange(1, 30)]
        elif kind == 2:
            data[at:at] = rng.randbytes(rng.randrange(1, 30))
        elif kind == 3:
            data[at:at] = rng.choice((b"\r\n", b"\n", b"\r", b"\0", b":", b" ", b"0\r\n\r\n", b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"))
        elif kind == 4:
            data[at:at] = data[:rng.randrange(len(data) + 1)]
        elif data:
            data[at % len(data)] = rng.randrange(256)
    return bytes(data)


class Noise:
    """One client after the other. listeners: (address, TLS authority or None, whether a PROXY header is due)."""

    def __init__(self, gate, listeners, seed):
        self.rng, self.listeners, self.sent = random.Random(seed), listeners, 0
        self.good = good_requests(gate)
        self.contexts = {}

    def run(self, seconds, pause=0.0):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.one()
            time.sleep(pause)

    def one(self):
        rng = self.rng
        address, authority, proxied = rng.choice(self.listeners)
        text = b"".join(mutate(rng, rng.choice(self.good)) if rng.random() < 0.7 else rng.choice(self.good) for _ in range(rng.choice((1, 1, 1, 2, 5))))
        header = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" if proxied else b""
        self.sent += 1
        with socket.create_connection(address, 5) as s:
            try:
                self.pieces(s, mutate(rng, header) if rng.random() < 0.1 else header)
                if authority and rng.random() < 0.9:
                    self.secure(s, authority, text)
                else:
                    self.pieces(s, text)
                self.end(s)
            except (OSError, ssl.SSLError):
                pass

    def pieces(self, s, data):
        """In one go, or in some parts."""
        rng, at = self.rng, 0
        while at < len(data):
            n = len(data) - at if rng.random() < 0.5 else rng.randrange(1, len(data) - at + 1)
            s.sendall(data[at:at + n])
            at += n
            if rng.random() < 0.02:
                time.sleep(0.01)

    def secure(self, s, authority, text):
        """A handshake, the text in records; now and then the records themselves are not what they should be."""
        rng = self.rng
        context = self.contexts.setdefault(id(authority), client(authority))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        s.settimeout(2)
        spoil = lambda data: mutate(rng, data) if rng.random() < 0.1 else data
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.pieces(s, spoil(outgoing.read()))
                data = s.recv(1 << 14)
                if not data:
                    return
                incoming.write(data)
        while text:
            n = rng.choice((len(text), 1, 100, 5000))
            tls.write(text[:n])
            text = text[n:]
            if rng.random() < 0.2:
                self.pieces(s, spoil(outgoing.read()))
        if rng.random() < 0.3:
            try:
                tls.unwrap()  # close_notify, ours
            except ssl.SSLError:
                pass
        self.pieces(s, spoil(outgoing.read()))

    def end(self, s):
        """Reads a little, or not; goes quietly, half, or with a reset."""
        rng = self.rng
        if rng.random() < 0.2:
            s.shutdown(socket.SHUT_WR)
        if rng.random() < 0.7:
            s.settimeout(rng.random() * TIMES)
            s.recv(1 << 16)
        if rng.random() < 0.3:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
