"""Who the client of a request is: X-Forwarded-For from trusted proxies, and the PROXY protocol per listener."""

import concurrent.futures
import re
import socket
import struct
import subprocess
import time

import pytest

from gate import BINARY, Wire

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
TRUST = "trusted_proxies: [127.0.0.0/8, 10.0.0.0/8, 'fd00::/8']\nlog: {level: debug, fold: 0s}\n"
PROXY = "listen: [{ address: '127.0.0.1:0', proxy_protocol: true }, '127.0.0.1:0']\nlog: {level: debug, fold: 0s}\ntimeouts: { head: 700ms }\n"


def ask(target="/ingest?name=x", *headers):
    """A request that is refused, so that the log says whose it was."""
    return "\r\n".join(["GET %s HTTP/1.1" % target, "Host: x", *headers, "", ""]).encode()


def clients(gate):
    return re.findall(r"refused.* client=\"?([^\s\"]+)", gate.log())


def v2(command, family, addresses=b"", tlvs=b""):
    return SIGNATURE + bytes([0x20 | command, family]) + struct.pack(">H", len(addresses + tlvs)) + addresses + tlvs


V4 = socket.inet_aton("192.0.2.1") + socket.inet_aton("192.0.2.2") + struct.pack(">HH", 4711, 80)
V6 = socket.inet_pton(socket.AF_INET6, "2001:db8::1") + socket.inet_pton(socket.AF_INET6, "::1") + struct.pack(">HH", 4711, 80)
GOOD = {
    "v1 TCP4": (b"PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\r\n", "192.0.2.1"),
    "v1 TCP6": (b"PROXY TCP6 2001:db8::1 ::1 4711 80\r\n", "2001:db8::1"),
    "v1 UNKNOWN": (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    "v2 TCP4": (v2(1, 0x11, V4), "192.0.2.1"),
    "v2 TCP6": (v2(1, 0x21, V6), "2001:db8::1"),
    "v2 TCP4 and TLVs": (v2(1, 0x11, V4, b"\x04\0\x0a" + bytes(10) + b"\x02\0\3x.y"), "192.0.2.1"),
    "v2 3000 bytes of TLVs": (v2(1, 0x11, V4, bytes(3000)), "192.0.2.1"),
    "v2 UNSPEC": (v2(1, 0, b"", b"\x04\0\0"), "127.0.0.1"),
    "v2 LOCAL": (v2(0, 0), "127.0.0.1"),
}
BAD = {
    "a request": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "bare LF": b"PROXY TCP4 192.0.2.1 192.0.2.2 4711 80\n",
    "no ports": b"PROXY TCP4 192.0.2.1 192.0.2.2\r\n",
    "another family": b"PROXY TCP4 2001:db8::1 ::1 1 2\r\n",
    "endless line": b"PROXY UNKNOWN " + b"x" * 200,
    "version 3": v2(1, 0x11, V4).replace(b"\x21\x11", b"\x31\x11"),
    "command 2": v2(2, 0x11, V4),
    "too short": v2(1, 0x21, V4),
    "64 KiB": SIGNATURE + b"\x21\x11\xff\xff" + V4,
    "nearly the signature": b"\r\n\r\n\0\r\nQUIT\r\x21\x11\0\x0c" + V4,
}


def test_x_forwarded_for(make_gate):
    gate = make_gate(TRUST)
    wanted = []
    for client, *lines in [
        ("198.51.100.7", "1.1.1.1, 198.51.100.7"),
        ("198.51.100.7", "1.1.1.1, 198.51.100.7", "10.1.1.1,10.2.2.2"),
        ("2001:db8::5", "[2001:db8::5]:99, ::ffff:10.3.3.3, fd00::1"),
        ("10.1.1.1", "198.51.100.7, garbage, 10.1.1.1"),
        ("127.0.0.1", "198.51.100.7, garbage"),
        ("127.0.0.1",),
    ]:
        with gate.wire() as wire:
            assert wire.send(ask("/ingest?name=x", *("X-Forwarded-For: " + line for line in lines))).reply().status == 405
        wanted.append(client)
    assert clients(gate) == wanted
    gate.configure("log: {level: debug, fold: 0s}\n")  # nobody is trusted any more: at once, without a restart
    gate.process.send_signal(1)
    gate.until(lambda: "reloaded" in gate.log() or "config" in gate.log(), True)
    time.sleep(0.2)
    with gate.wire() as wire:
        wire.send(ask("/ingest?name=x", "X-Forwarded-For: 198.51.100.7")).reply()
    assert clients(gate)[-1] == "127.0.0.1"


def test_proxy_header_names_the_client(make_gate):
    gate = make_gate(PROXY)
    for name, (header, client) in GOOD.items():
        with gate.wire() as wire:  # the request in the same packet, a second one behind it
            wire.send(header + ask() + ask("/healthz"))
            assert [wire.reply().status, wire.reply().status] == [405, 200], name
            assert clients(gate)[-1] == client, name
        with gate.wire() as wire:  # in small pieces
            for i in range(0, len(header), 1 + len(header) // 40):
                wire.send(header[i : i + 1 + len(header) // 40])
                time.sleep(0.001)
            assert wire.send(ask()).reply().status == 405, name
            assert clients(gate)[-1] == client, name
    body = b"main;work 3\n"
    with gate.wire() as wire:  # and it is a connection like any other
        wire.send(GOOD["v2 TCP6"][0] + ("POST /ingest?name=shop HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n" % (gate.key, len(body))).encode() + body)
        assert wire.reply().status == 200


def test_proxy_header_is_mandatory_and_exact(make_gate):
    gate = make_gate(PROXY)
    for name, raw in BAD.items():
        with gate.wire() as wire:
            wire.send(raw)
            assert wire.closed(3), name  # without a byte of an answer
    assert gate.count("flamegate_connections_closed_total", reason="proxy_header") == len(BAD)
    assert gate.metrics()["flamegate_requests_received_total"] == 2  # the scrapes themselves
    second = re.findall(r"listening.* address=\"?([\d.:]+)", gate.log())[1].split(":")  # the other listener takes no such header
    with Wire((second[0], int(second[1]))) as wire:
        assert wire.send(ask("/healthz")).reply().status == 200
    for header, _ in GOOD.values():
        with Wire((second[0], int(second[1]))) as wire:
            assert wire.send(header + ask("/healthz")).reply().status == 400
            assert wire.closed()


def test_proxy_header_has_a_deadline(make_gate):
    gate = make_gate(PROXY)
    pieces = [b"", b"PROXY TCP4 ", SIGNATURE, v2(1, 0x11, V4, bytes(900))[:500], GOOD["v1 TCP4"][0], GOOD["v1 TCP4"][0] + b"GET / HT"]

    def cut(piece):
        start = time.monotonic()
        with gate.wire() as wire:
            wire.send(piece)
            assert wire.closed(5), piece
        return time.monotonic() - start

    with concurrent.futures.ThreadPoolExecutor(len(pieces)) as pool:
        for piece, seconds in zip(pieces, pool.map(cut, pieces)):
            assert 0.5 < seconds < 3, piece
    assert gate.count("flamegate_connections_closed_total", reason="head_timeout") == len(pieces)
    for piece in pieces[1:4]:  # half of one, and the end
        with gate.wire() as wire:
            wire.send(piece)
            wire.socket.shutdown(socket.SHUT_WR)
            assert wire.closed(3)


def test_proxy_header_only_from_trusted_proxies(make_gate):
    gate = make_gate(PROXY + "trusted_proxies: [10.0.0.0/8]\n")
    with gate.wire() as wire:
        assert wire.closed(3)
    assert gate.count("flamegate_connections_closed_total", reason="proxy_header") == 1
    gate = make_gate(PROXY + "trusted_proxies: [127.0.0.1, 192.0.2.1]\n")
    with gate.wire() as wire:  # a chain: the header's client is a proxy of ours, too
        wire.send(GOOD["v1 TCP4"][0] + ask("/ingest?name=x", "X-Forwarded-For: 203.0.113.1, 198.51.100.7")).reply()
    assert clients(gate) == ["198.51.100.7"]


def test_healthcheck_of_a_proxy_listener(make_gate, tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    gate = make_gate("listen: { address: '127.0.0.1:%d', proxy_protocol: true }\nadmin: off\n" % port)
    assert gate.run("healthcheck").returncode == 0


@pytest.mark.parametrize("text, where", [
    ("listen: { address: a:1, proxy_protocol: maybe }\n", "1:41"),
    ("trusted_proxies: [10.0.0.1/8]\n", "1:19"),
])
def test_check_config_says_where(tmp_path, text, where):
    file = tmp_path / "f.yaml"
    file.write_text(text)
    done = subprocess.run([BINARY, "--config", str(file), "check-config"], capture_output=True, text=True, timeout=10)
    assert done.returncode == 78 and "f.yaml:%s" % where in done.stderr + done.stdout, done
