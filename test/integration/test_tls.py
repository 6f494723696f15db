"""TLS on a listener, with real clients: what is spoken, who is let in, files that change, and bytes that are no TLS at all."""

import os
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest
import requests

from certs import Authority, SecureWire, client
from gate import Wire

FOLDED = b"main;work 3\n"
LISTEN = "listen: [{address: 127.0.0.1:0, tls: {cert_file: %s, key_file: %s%s}}]\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"), "ours")


@pytest.fixture(scope="module")
def pair(authority):
    return authority.sign("server")


@pytest.fixture
def secure(make_gate, pair):
    return make_gate(LISTEN % (*pair, ""))


def failures(gate, reason):
    return gate.count("flamegate_tls_handshake_failures_total", reason=reason)


def upload(gate, body=FOLDED, close=False):
    return ("POST /ingest?name=shop&format=folded HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n%s\r\n"
            % (gate.key, len(body), "Connection: close\r\n" if close else "")).encode() + body


def url(gate, path):
    return "https://127.0.0.1:%d%s" % (gate.address[1], path)


# --- clients ---


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_on_one_connection(secure, authority, version):
    with SecureWire(secure.address, client(authority, version=version)) as wire:
        assert wire.socket.version() == {ssl.TLSVersion.TLSv1_2: "TLSv1.2", ssl.TLSVersion.TLSv1_3: "TLSv1.3"}[version]
        assert wire.socket.selected_alpn_protocol() == "http/1.1"
        for _ in range(20):
            assert wire.send(upload(secure)).reply().status == 200
        assert wire.send(upload(secure) * 10) and all(wire.reply().status == 200 for _ in range(10))
        assert wire.send(upload(secure, close=True)).reply().status == 200
        assert wire.socket.recv(1) == b""  # a close_notify: python raises on an end without one
    assert secure.count("flamegate_tls_handshakes_total") == 1


def test_requests_library_and_curl(secure, authority):
    for _ in range(2):
        reply = requests.post(url(secure, "/ingest?name=shop&format=folded"), FOLDED, headers={"x-flamegate-token": secure.key}, verify=authority.cert, timeout=10)
        assert reply.status_code == 200
    done = subprocess.run(["curl", "-sS", "--cacert", authority.cert, "-u", "any:" + secure.reader, url(secure, "/api/v1/functions?service=shop")],
                          capture_output=True, text=True, timeout=20)
    assert '"main"' in done.stdout, done


def test_s_client_resumes(secure, authority, tmp_path):
    session = str(tmp_path / "session")
    base = ["openssl", "s_client", "-connect", "127.0.0.1:%d" % secure.address[1], "-CAfile", authority.cert, "-quiet", "-verify_return_error", "-no_ign_eof"]
    ask = b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    for more in (["-sess_out", session], ["-sess_in", session]):
        p = subprocess.Popen(base + more, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        p.stdin.write(ask)
        p.stdin.flush()
        out = p.stdout.read()
        p.stdin.close()
        p.wait(10)
        assert b"200 OK" in out and b"ready" in out, out


def test_large_both_ways(secure, authority):
    lines = b"".join(b"main;f%d;g%d;%s 1\n" % (i, i % 7, b"x" * 60) for i in range(60000))
    with SecureWire(secure.address, client(authority), timeout=60) as wire:
        assert wire.send(upload(secure, lines)).reply().status == 200
        wire.send(("GET /api/v1/functions?service=shop&limit=1000000 HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\n\r\n" % secure.reader).encode())
        time.sleep(0.3)  # more than the kernel's buffers hold waits for us
        reply = wire.reply()
        assert reply.status == 200 and len(reply.body) > 4 << 20
        assert len(reply.json()["functions"]) > 60000
        assert wire.send(upload(secure)).reply().status == 200


def test_byte_by_byte(secure, authority):
    """Records and handshake messages arrive in the smallest pieces."""
    context = client(authority)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with Wire(secure.address) as wire:
        def push():
            for b in outgoing.read():
                wire.send(bytes([b]))

        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                push()
                incoming.write(wire.socket.recv(1 << 16))
        tls.write(upload(secure))
        push()
        while True:
            try:
                assert tls.read(1 << 16).startswith(b"HTTP/1.1 200")
                break
            except ssl.SSLWantReadError:
                incoming.write(wire.socket.recv(1 << 16))


def test_first_request_with_the_last_handshake_message(secure, authority):
    context = client(authority)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with Wire(secure.address) as wire:
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        wire.send(outgoing.read())
        while True:
            incoming.write(wire.socket.recv(1 << 16))
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                pass
        tls.write(upload(secure))
        wire.send(outgoing.read())  # Finished and the request in one segment
        text = b""
        while not text:
            incoming.write(wire.socket.recv(1 << 16))
            try:
                text = tls.read(1 << 16)
            except ssl.SSLWantReadError:
                pass
        assert text.startswith(b"HTTP/1.1 200")


def test_half_close_after_an_upload_is_answered(secure, authority):
    """The client says that it sends no more (close_notify), and reads on."""
    with SecureWire(secure.address, client(authority)) as wire:
        wire.send(upload(secure))
        raw = wire.socket
        raw.settimeout(5)
        try:
            raw.unwrap()  # sends ours, waits for theirs: the answer comes first
            got = b""
        except ssl.SSLError as e:
            assert "DATA_AFTER_CLOSE_NOTIFY" in str(e).upper() or "data after" in str(e), e
            got = b"answered"
        assert got == b"answered"
    secure.until(lambda: secure.count("flamegate_profiles_accepted_total"), 1)


def test_end_without_close_notify(secure, authority):
    with SecureWire(secure.address, client(authority)) as wire:
        assert wire.send(upload(secure)).reply().status == 200
        os.close(wire.socket.detach())  # only the socket's end
    secure.until(lambda: secure.count("flamegate_connections_closed_total", reason="peer"), 1)


# --- who is refused ---


def test_old_versions_are_refused(secure):
    done = subprocess.run(["openssl", "s_client", "-connect", "127.0.0.1:%d" % secure.address[1], "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
                          input=b"", capture_output=True, timeout=10)
    assert b"Cipher is (NONE)" in done.stdout or done.returncode != 0
    secure.until(lambda: failures(secure, "protocol_version"), 1)


def test_no_renegotiation(secure, authority):
    p = subprocess.Popen(["openssl", "s_client", "-connect", "127.0.0.1:%d" % secure.address[1], "-tls1_2", "-CAfile", authority.cert],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(0.3)
    p.stdin.write(b"R\n")
    p.stdin.flush()
    time.sleep(0.3)
    try:
        p.stdin.close()
    except BrokenPipeError:
        pass
    out = p.stdout.read()
    p.wait(10)
    assert b"no renegotiation" in out, out[-600:]
    assert secure.count("flamegate_tls_handshakes_total") == 1


def test_only_h2_is_refused(secure, authority):
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        SecureWire(secure.address, client(authority, alpn=("h2",)))
    with SecureWire(secure.address, client(authority, alpn=("h2", "http/1.1"))) as wire:
        assert wire.socket.selected_alpn_protocol() == "http/1.1"
    with SecureWire(secure.address, client(authority, alpn=())) as wire:
        assert wire.send(upload(secure)).reply().status == 200
    secure.until(lambda: failures(secure, "alpn"), 1)


def test_client_that_does_not_trust_us(secure, tmp_path):
    with pytest.raises(ssl.SSLCertVerificationError):
        SecureWire(secure.address, client(Authority(tmp_path, "other")))
    secure.until(lambda: failures(secure, "client_alert"), 1)


def test_plain_http_is_told(secure):
    reply = secure.ingest(FOLDED, format="folded")
    assert reply.status == 400 and "https://" in reply.json()["message"]
    assert reply.headers["connection"] == "close"
    assert failures(secure, "plain_http") == 1
    with Wire(secure.address) as wire:  # nothing behind it is a second request
        wire.send(upload(secure) + upload(secure))
        assert wire.reply().status == 400 and wire.closed()


def test_tls_to_a_plain_listener(gate, authority):
    with pytest.raises(ssl.SSLError):
        SecureWire(gate.address, client(authority))
    gate.until(lambda: gate.count("flamegate_requests_total", code="400"), 1)


def test_silence_and_dripping_end_with_the_head_timer(make_gate, pair, authority):
    gate = make_gate(LISTEN % (*pair, "") + "timeouts: {head: 1s}\n")
    hello = client_hello(authority)
    start = time.monotonic()
    silent, dripping = Wire(gate.address), Wire(gate.address)
    for b in hello[:60]:
        dripping.send(bytes([b]))
        time.sleep(0.02)
        if time.monotonic() - start > 0.9:
            break
    assert silent.closed(4) and dripping.closed(4)
    assert 0.9 < time.monotonic() - start < 4
    silent.close(), dripping.close()
    with SecureWire(gate.address, client(authority)) as wire:  # the handshake does not stop the clock of the head
        assert wire.send(b"GET /readyz HTTP/1.1\r\n").closed(3)
    assert failures(gate, "timeout") == 2 and gate.count("flamegate_connections_closed_total", reason="head_timeout") == 3


def test_client_that_never_reads_is_cut(make_gate, pair, authority):
    gate = make_gate(LISTEN % (*pair, "") + "timeouts: {write: 1s}\n")
    body = b"".join(b"main;f%d;%s 1\n" % (i, b"x" * 100) for i in range(60000))
    with SecureWire(gate.address, client(authority), timeout=60) as wire:
        assert wire.send(upload(gate, body)).reply().status == 200
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.send(("GET /api/v1/functions?service=shop&limit=1000000 HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\n\r\n" % gate.reader).encode())
        gate.until(lambda: gate.count("flamegate_connections_closed_total", reason="write_timeout"), 1, 20)


# --- client certificates ---


def test_client_certificates(make_gate, pair, authority, tmp_path):
    ours, theirs = Authority(tmp_path, "clients"), Authority(tmp_path, "strangers")
    good, bad = ours.sign("agent"), theirs.sign("stranger")
    gate = make_gate(LISTEN % (*pair, ", client_ca_file: " + ours.cert))
    with SecureWire(gate.address, client(authority, good)) as wire:
        assert wire.send(upload(gate)).reply().status == 200
    for cert in (None, bad):
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            with SecureWire(gate.address, client(authority, cert)) as wire:
                wire.send(upload(gate)).reply()
    gate.until(lambda: failures(gate, "client_certificate"), 2)
    assert gate.count("flamegate_profiles_accepted_total") == 1

    optional = make_gate(LISTEN % (*pair, ", client_ca_file: %s, client_certificate: optional" % ours.cert))
    for cert in (None, good):
        with SecureWire(optional.address, client(authority, cert)) as wire:
            assert wire.send(upload(optional)).reply().status == 200
    with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
        with SecureWire(optional.address, client(authority, bad)) as wire:
            wire.send(upload(optional)).reply()


# --- files that change ---


def serial(gate, context):
    with SecureWire(gate.address, context) as wire:
        return wire.socket.getpeercert()["serialNumber"]


def test_files_change_as_a_configmap_does(make_gate, tmp_path):
    """The data folder is a link that moves; old connections live on; a bad pair keeps the old one; CA and certificate change together."""
    authority, clients = Authority(tmp_path, "ours"), [Authority(tmp_path, "clients%d" % i) for i in range(2)]
    agents = [c.sign("agent%d" % i) for i, c in enumerate(clients)]
    for i in range(2):
        folder = tmp_path / ("..%d" % i)
        folder.mkdir()
        cert, key = authority.sign("server%d" % i, days=30 + 10 * i)
        shutil.copy(cert, folder / "tls.crt"), shutil.copy(key, folder / "tls.key"), shutil.copy(clients[i].cert, folder / "ca.crt")
    bad = tmp_path / "..2"
    bad.mkdir()
    shutil.copy(tmp_path / "..0" / "tls.crt", bad / "tls.crt"), shutil.copy(tmp_path / "..1" / "tls.key", bad / "tls.key")
    shutil.copy(clients[0].cert, bad / "ca.crt")
    data = tmp_path / "..data"

    def point(to):
        os.symlink(to, tmp_path / "new")
        os.rename(tmp_path / "new", data)

    point("..0")
    gate = make_gate(LISTEN % (data / "tls.crt", data / "tls.key", ", client_ca_file: %s" % (data / "ca.crt")))
    until = lambda: gate.count("flamegate_tls_cert_not_after_timestamp_seconds")
    first = until()
    assert 29 * 86400 < first - time.time() < 31 * 86400
    with SecureWire(gate.address, client(authority, agents[0])) as old:
        assert old.send(upload(gate)).reply().status == 200
        before = old.socket.getpeercert()["serialNumber"]
        point("..2")
        gate.until(lambda: gate.count("flamegate_tls_last_reload_successful"), 0)
        assert serial(gate, client(authority, agents[0])) == before and until() == first
        point("..1")
        gate.until(lambda: gate.count("flamegate_tls_last_reload_successful"), 1)
        assert until() > first + 9 * 86400
        assert serial(gate, client(authority, agents[1])) != before
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)):
            with SecureWire(gate.address, client(authority, agents[0])) as wire:
                wire.send(upload(gate)).reply()
        assert old.send(upload(gate)).reply().status == 200
    assert "not reloaded" in gate.log()


def test_check_config_opens_the_files(make_gate, pair, tmp_path):
    gate = make_gate(LISTEN % (pair[0], tmp_path / "none.key", ""), start=False, keys=False)
    done = gate.run("check-config")
    assert done.returncode == 78 and "none.key" in done.stderr, done
    done = gate.run("serve")
    assert done.returncode == 1 and "none.key" in done.stdout + done.stderr


def test_healthcheck(make_gate, pair):
    gate = make_gate(start=False)
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    gate.configure((LISTEN % (*pair, "")).replace("127.0.0.1:0", "127.0.0.1:%d" % port) + "admin: off\n")
    assert gate.run("healthcheck").returncode == 1
    gate.start()
    assert gate.run("healthcheck").returncode == 0
    gate.stop()


def test_proxy_header_comes_before_tls(make_gate, pair, authority):
    gate = make_gate((LISTEN % (*pair, "")).replace("}}]", "}, proxy_protocol: true}]") + "trusted_proxies: [127.0.0.1/32]\n")
    with SecureWire(gate.address, client(authority), before=b"PROXY TCP4 203.0.113.9 127.0.0.1 4711 443\r\n") as wire:
        assert wire.send(upload(gate)).reply().status == 200
    with pytest.raises((ssl.SSLError, ConnectionError)):
        SecureWire(gate.address, client(authority))


# --- bytes that are no TLS ---


def client_hello(authority):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = client(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_noise_at_the_handshake(secure, authority):
    """Random bytes, cut and mutated hellos, resets: each counted once, none answered with more than an alert, and the gateway goes on."""
    rng = random.Random(5)
    hello = client_hello(authority)
    sent = 300
    for i in range(sent):
        data = bytearray(hello)
        kind = i % 5
        if kind == 0:
            data = bytearray(rng.randbytes(rng.choice((1, 5, 80, 5000))))
        elif kind == 1:
            data = data[:rng.randrange(1, len(data))]
        elif kind == 2:
            for _ in range(rng.randrange(1, 12)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        elif kind == 3:
            data = data + rng.randbytes(200)
        else:
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randrange(1, 40))
        with Wire(secure.address) as wire:
            try:
                wire.send(bytes(data))
                if rng.random() < 0.3:
                    wire.reset()
                    continue
                wire.socket.settimeout(0.02)
                wire.socket.recv(1 << 14)
            except (OSError, EOFError):
                pass
    secure.until(lambda: secure.count("flamegate_connections", state="head"), 0)
    m = secure.metrics()
    ended = secure.count("flamegate_tls_handshakes_total", m) + secure.count("flamegate_tls_handshake_failures_total", m)
    assert ended == sent
    with SecureWire(secure.address, client(authority)) as wire:
        assert wire.send(upload(secure)).reply().status == 200


def test_many_handshakes_at_once_and_a_plain_listener_beside_them(make_gate, pair, authority):
    gate = make_gate("listen: [127.0.0.1:0, {address: 127.0.0.1:0, tls: {cert_file: %s, key_file: %s}}]\n" % pair)
    secure_port = [int(line.split("address=127.0.0.1:")[1].split()[0]) for line in gate.log().splitlines()
                   if "event=listening" in line and "for=clients" in line][1]
    problems = []

    def dial():
        try:
            for _ in range(10):
                with SecureWire(("127.0.0.1", secure_port), client(authority)) as wire:
                    if wire.send(upload(gate)).reply().status != 200:
                        problems.append("status")
        except Exception as e:
            problems.append(repr(e))

    threads = [threading.Thread(target=dial) for _ in range(16)]
    for t in threads:
        t.start()
    with gate.wire() as plain:
        for _ in range(50):
            assert plain.send(upload(gate)).reply().status == 200
    for t in threads:
        t.join()
    assert not problems, problems[:3]
    assert gate.count("flamegate_tls_handshakes_total") == 160
    assert gate.count("flamegate_profiles_accepted_total") == 210
