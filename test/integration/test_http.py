"""The front door's HTTP: framing, keep-alive, pipelining, Expect, refusals that can be read, timers, routes and the shapes of errors."""

import concurrent.futures
import json
import socket
import time

import pytest

from bodies import MULTIPART, multipart, push, simple, zstd_raw
from gate import PROTO, PUSH, basic

FOLDED = b"main;work 3\nmain 1\n"


def head(gate, target="/ingest?name=shop", method="POST", version="1.1", key=True, **headers):
    lines = ["%s %s HTTP/%s" % (method, target, version), "Host: x"]
    lines += ["x-flamegate-token: " + gate.key] if key else []
    lines += ["%s: %s" % (k.replace("_", "-"), v) for k, v in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def good(gate, body=FOLDED, **kw):
    return head(gate, Content_Length=len(body), **kw) + body


def is_error(reply, status, code, *words):
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/json"
    error = reply.json()
    assert error["code"] == code, error
    for word in words:
        assert word in error["message"], error
    return reply


def uploads(gate):
    return len(gate.profiles())


def test_keep_alive_serves_many(gate):
    with gate.wire() as wire:
        for _ in range(20):
            assert wire.send(good(gate)).reply().status == 200
        assert wire.send(head(gate, "/healthz", "GET")).reply().status == 200
    gate.until(lambda: uploads(gate), 20)
    assert gate.count("flamegate_connections_opened_total") < 30


def test_pipelined_requests_are_answered_in_order(gate):
    with gate.wire() as wire:
        wire.send(good(gate) + head(gate, "/nowhere", "GET") + good(gate, b"a x\n") + good(gate) + head(gate, "/healthz", "GET"))
        assert [wire.reply().status for _ in range(5)] == [200, 404, 400, 200, 200]


def test_pipelined_byte_by_byte(gate):
    with gate.wire() as wire:
        for byte in good(gate) + good(gate, key=False) + good(gate):
            wire.send(bytes([byte]))
        assert wire.reply().status == 200
        assert wire.reply().status == 401


@pytest.mark.parametrize("cuts", [[19], [1] * 19, [5, 9, 5]])
def test_chunked(gate, cuts):
    assert sum(cuts) == len(FOLDED)
    with gate.wire() as wire:
        wire.send(head(gate, Transfer_Encoding="chunked"))
        at = 0
        for i, size in enumerate(cuts):
            extension = b";a=b" if i == 0 else b""
            wire.send(b"%x%s\r\n" % (size, extension) + FOLDED[at : at + size] + b"\r\n")
            at += size
        wire.send(b"0\r\n\r\n")
        assert wire.reply().status == 200
        assert wire.send(good(gate)).reply().status == 200
    gate.until(lambda: gate.rows(service="shop")[1]["total"], 2 * 4 * 10**7)


@pytest.mark.parametrize("raw", [
    b"5\nhello\n0\n\n",
    b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    b'5;a="x\rb"\r\nhello\r\n0\r\n\r\n',
    b"zz\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
    b"5\r\nhelloXX0\r\n\r\n",
])
def test_bad_chunking_is_400_and_close(gate, raw):
    with gate.wire() as wire:
        wire.send(head(gate, Transfer_Encoding="chunked") + raw)
        is_error(wire.reply(), 400, "invalid_argument")
        assert wire.closed()
    assert uploads(gate) == 0


@pytest.mark.parametrize("lines, status", [
    ("Content-Length: 6\r\nTransfer-Encoding: chunked", 400),
    ("Transfer-Encoding: chunked\r\nContent-Length: 6", 400),
    ("Content-Length: 5\r\nContent-Length: 6", 400),
    ("Content-Length: +6", 400),
    ("Content-Length: 6, 6", 400),
    ("Content-Length: 0x6", 400),
    ("Transfer-Encoding: gzip, chunked", 501),
    ("Transfer-Encoding: identity", 501),
    ("Transfer-Encoding : chunked", 400),
    ("X Y: z", 400),
    ("\x00: z", 400),
    ("Content-Length: 99999999999999999999999", 400),
])
def test_framing_is_never_repaired(gate, lines, status):
    with gate.wire() as wire:
        wire.send(b"POST /ingest?name=x HTTP/1.1\r\nHost: x\r\nx-flamegate-token: " + gate.key.encode() + b"\r\n" + lines.encode() + b"\r\n\r\n0\r\n\r\nG")
        reply = wire.reply()
        assert reply.status in ((status, 400, 413) if status == 501 or "9999" in lines else (status,)), reply
        assert reply.json()["code"] in ("invalid_argument", "unimplemented")
        assert wire.closed()
    assert uploads(gate) == 0


def test_no_length_is_an_empty_body_or_411(gate):
    with gate.wire() as wire:
        assert wire.send(head(gate)).reply().status in (200, 411)


def test_http_1_0_is_served_and_closed(gate):
    with gate.wire() as wire:
        assert wire.send(good(gate, version="1.0")).reply().status == 200
        assert wire.closed()
    with gate.wire() as wire:
        wire.send(head(gate, version="1.0", Transfer_Encoding="chunked", Connection="keep-alive") + b"5\r\nmain \r\n0\r\n\r\n")
        wire.reply()
        assert wire.closed()


@pytest.mark.parametrize("raw, status", [
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505),
    (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
    (b"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"GET / FTP/1.1\r\n\r\n", 400),
    (b"GET / HTTP/1.1\nHost: x\n\n", 400),
])
def test_not_our_protocol(gate, raw, status):
    with gate.wire() as wire:
        reply = wire.send(raw).reply()
        if b"Host: y" not in raw:
            assert reply.status == status, reply
        else:
            assert reply.status in (400, 404), reply  # two Host headers
        assert reply.json()["code"] in ("unimplemented", "invalid_argument")


def test_long_heads(gate):
    with gate.wire() as wire:
        wire.send(b"GET /" + b"a" * (1 << 20) + b" HTTP/1.1\r\n")
        assert wire.reply().status in (414, 431)
        assert wire.closed()
    with gate.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (1 << 20))
        is_error(wire.reply(), 431, "invalid_argument")
    with gate.wire() as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(5000)) + b"\r\n")
        is_error(wire.reply(), 431, "invalid_argument")


class TestExpect:
    def test_continue_comes_after_the_token(self, gate):
        with gate.wire() as wire:
            wire.send(head(gate, Content_Length=len(FOLDED), Expect="100-continue"))
            assert wire.head()[0] == 100
            assert wire.send(FOLDED).reply().status == 200

    def test_final_status_instead(self, gate):
        for request, status in [
            (head(gate, key=False, Content_Length=9, Expect="100-continue"), 401),
            (head(gate, "/nowhere", Content_Length=9, Expect="100-continue"), 404),
            (head(gate, Content_Length=99 << 20, Expect="100-continue"), 413),
            (head(gate, Content_Length=9, Expect="the-unexpected"), 417),
            (head(gate, "/ingest?name=", Content_Length=9, Expect="100-continue"), 400),
            (head(gate, "/ingest?name=x&format=jfr", Content_Length=9, Expect="100-continue"), 415),
        ]:
            with gate.wire() as wire:
                interim = []
                assert wire.send(request).reply(interim).status == status, request
                assert interim == []

    def test_never_to_http_1_0(self, gate):
        with gate.wire() as wire:
            interim = []
            wire.send(head(gate, version="1.0", Content_Length=len(FOLDED), Expect="100-continue") + FOLDED)
            assert wire.reply(interim).status == 200 and interim == []


def test_refusal_is_readable_while_the_client_writes(gate):
    """A client that only reads after its last byte still finds the answer, not a reset."""
    for request, status in [(head(gate, key=False, Content_Length=8 << 20), 401), (head(gate, Content_Length=64 << 20), 413)]:
        with gate.wire() as wire:
            wire.send(request)
            try:
                for _ in range(128):
                    wire.send(bytes(1 << 16))
            except (BrokenPipeError, ConnectionResetError):
                pass  # it drains a bounded amount only; what was answered must be there to read all the same
            assert wire.reply().status == status


def test_refusal_with_a_small_body_leaves_no_reset(gate):
    with gate.wire() as wire:
        wire.send(good(gate, bytes(300_000), key=False))
        assert wire.reply().status == 401


def test_half_close_still_gets_its_answer(gate):
    with gate.wire() as wire:
        wire.send(good(gate))
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.reply().status == 200
        assert wire.closed()
    assert uploads(gate) == 1
    with gate.wire() as wire:  # in the middle of a body: nothing to answer, nothing stored
        wire.send(good(gate)[:-1])
        wire.socket.shutdown(socket.SHUT_WR)
        assert wire.closed()
    assert uploads(gate) == 1


class TestTimers:
    CONF = "timeouts: { head: 600ms, body: 900ms, idle: 700ms }\n"

    def cut(self, gate, raw, step=None):
        """Seconds until the gateway closes, without any answer; `step` bytes trickle meanwhile."""
        start = time.monotonic()
        with gate.wire() as wire:
            wire.send(raw)
            wire.socket.settimeout(0.1)
            while time.monotonic() - start < 8:
                try:
                    data = wire.socket.recv(1000)
                    assert data == b"", data
                    break
                except socket.timeout:
                    if step:
                        try:
                            wire.send(step)
                        except OSError:
                            break
                except ConnectionResetError:
                    break
        return time.monotonic() - start

    def test_slow_ones_are_cut_without_an_answer(self, make_gate):
        gate = make_gate(self.CONF)
        slow = {
            "silent": (b"", None),
            "slow head": (b"POST /in", b"x"),
            "slow body": (head(gate, Content_Length=9999), b"a"),
            "stuck body": (head(gate, Content_Length=9999) + b"main", None),
            "slow chunk": (head(gate, Transfer_Encoding="chunked"), b"1\r\na\r\n"),
        }
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            running = {name: pool.submit(self.cut, gate, *how) for name, how in slow.items()}
            time.sleep(0.3)
            assert gate.ingest(FOLDED, format="folded").status == 200  # the others notice nothing
            for name, future in running.items():
                assert 0.3 < future.result() < 4, name

    def test_many_slow_bodies_keep_nobody_out(self, make_gate):
        """What has sent a few bytes holds no memory of admission, however many of it there are."""
        gate = make_gate("memory: 64MiB\nlimits: { decoded: 16MiB, inflated: 16MiB }\ntimeouts: { admission: 500ms }\n")
        slow = [gate.wire().send(head(gate, Content_Length=9999) + b"main;a 1\n" * 10) for _ in range(400)]
        for _ in range(5):
            assert gate.ingest(FOLDED, format="folded").status == 200
            for wire in slow[::7]:
                wire.send(b"m")
        assert gate.metrics()["flamegate_admission_waiting"] == 0
        body = b"main;a 1\n" * 2000
        first = slow[0].send(body[: 9999 - 90 - 5])
        assert first.reply().status in (200, 400)
        for wire in slow:
            wire.close()

    def test_stalled_bodies_are_cut_when_others_wait(self, make_gate):
        """Their own time is a minute; who holds memory and is not worth it goes after ten seconds, once somebody wants in."""
        gate = make_gate("memory: 64MiB\nlimits: { decoded: 16MiB, inflated: 16MiB }\ntimeouts: { admission: 1s }\n")
        stalled = [gate.wire().send(head(gate, Content_Length=9999) + b"main;a 1\n" * 600) for _ in range(200)]
        gate.until(lambda: gate.metrics()["flamegate_admission_waiting"], 0)
        assert gate.ingest(FOLDED, format="folded").status == 503
        gate.until(lambda: gate.ingest(FOLDED, format="folded").status, 200, within=14)
        assert gate.count("flamegate_connections_closed_total", reason="slow") > 0
        for wire in stalled:
            wire.close()

    def test_idle(self, make_gate):
        gate = make_gate(self.CONF)
        with gate.wire() as wire:
            assert wire.send(good(gate)).reply().status == 200
            start = time.monotonic()
            assert wire.closed(5)
            assert 0.4 < time.monotonic() - start < 4

    def test_an_answer_that_nobody_takes(self, make_gate):
        """A large answer, and a client that does not read: cut by the write timer; one that reads slowly gets all of it."""
        gate = make_gate("timeouts: { write: 800ms }\n")
        assert gate.ingest(b"".join(b"main;function_%d 1\n" % i for i in range(60_000)), format="folded").status == 200
        ask = "GET /api/v1/functions?service=shop&limit=100000 HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\n\r\n" % gate.reader
        cut = lambda: gate.count("flamegate_connections_closed_total", reason="write_timeout")
        with gate.wire() as deaf:
            deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.send(ask.encode())
            gate.until(cut, 1, 8)
        with gate.wire() as slow:
            slow.send(ask.encode())
            status, headers = slow.head()
            left = int(headers["content-length"]) - len(slow.buffer)
            assert status == 200 and left > 4 << 20
            while left > 0:
                time.sleep(0.2)
                data = slow.socket.recv(1 << 20)
                assert data, "cut while reading"
                left -= len(data)
        assert cut() == 1

    def test_a_steady_client_is_not_cut(self, make_gate):
        """Bytes that keep coming within the body's time, each request with a time of its own."""
        gate = make_gate(self.CONF)
        with gate.wire() as wire:
            for _ in range(3):
                raw = good(gate)
                for i in range(0, len(raw), 40):
                    wire.send(raw[i : i + 40])
                    time.sleep(0.04)
                assert wire.reply().status == 200


def test_five_hundred_silent_connections(gate):
    """They cost little, and nobody else notices them."""
    wires = [gate.wire() for _ in range(500)]
    try:
        gate.until(lambda: gate.count("flamegate_connections") >= 500, True)
        start = time.monotonic()
        for _ in range(10):
            assert gate.ingest(FOLDED, format="folded").status == 200
        assert time.monotonic() - start < 3
        gate.assert_memory(64 << 20)
    finally:
        for wire in wires:
            wire.close()
    gate.until(lambda: gate.count("flamegate_connections") < 5, True)


class TestRoutes:
    @pytest.mark.parametrize("path", ["/ingest", "/pyroscope/ingest", "//ingest", "/pyroscope//ingest", "//pyroscope///ingest"])
    def test_ingest(self, gate, path):
        assert gate.send(path + "?name=shop", FOLDED).status == 200

    @pytest.mark.parametrize("path", [PUSH, "/pyroscope" + PUSH, "/" + PUSH, "/pyroscope/" + PUSH])
    def test_push(self, gate, path):
        body = push([({"__name__": "process_cpu", "service_name": "shop"}, [simple().gz()])])
        assert gate.send(path, body, PROTO).status == 200

    def test_prefixes_are_configured(self, make_gate):
        gate = make_gate("prefixes: [/a, /b/c]\n")
        for path, status in [("/a/ingest", 200), ("/b/c/ingest", 200), ("/b//c/ingest", 200), ("/ingest", 200), ("/pyroscope/ingest", 404), ("/b/ingest", 404)]:
            assert gate.send(path + "?name=shop", FOLDED).status == status, path
        assert gate.request("GET", "/a/api/v1/services", None, basic("", gate.reader)).status == 200

    def test_never_redirects(self, gate):
        for path in ("/ingest/", "/pyroscope", "/pyroscope/", "//", "/ingest//"):
            assert gate.send(path, FOLDED).status in (400, 404, 405), path

    def test_404_names_the_way(self, gate):
        for path in ("/ingestion", "/api/v1/nothing", "/pyroscope/pyroscope/ingest"):
            is_error(gate.send(path, b""), 404, "unimplemented")
        is_error(gate.send("/v1/profiles", b""), 404, "unimplemented", "/ingest")

    def test_405(self, gate):
        for path, allow in [("/ingest?name=x", "POST"), (PUSH, "POST")]:
            for method in ("GET", "PUT", "DELETE", "OPTIONS"):
                reply = is_error(gate.request(method, path, b"" if method == "PUT" else None, basic("", gate.key)), 405, "unimplemented")
                assert reply.headers["allow"] == allow
        reply = is_error(gate.send("/api/v1/services", b"", key=gate.reader), 405, "unimplemented")
        assert "GET" in reply.headers["allow"]

    def test_head_of_a_get(self, gate):
        with gate.wire() as wire:
            wire.send(head(gate, "/healthz", "HEAD") + head(gate, "/healthz", "GET"))
            status, _ = wire.head()
            assert status in (200, 405)

    def test_health(self, gate):
        for path in ("/healthz", "/readyz", "/ready"):
            assert gate.request("GET", path).status == 200
            assert gate.request("GET", path, None, {"Connection": "close"}).status == 200
        with pytest.raises(AssertionError):
            assert gate.request("GET", "/metrics").status == 200, "only on the admin listener"

    def test_metrics_are_prometheus_text(self, gate):
        gate.ingest(FOLDED, format="folded")
        m = gate.metrics()
        assert gate.count("flamegate_profiles_accepted_total", m) == 1
        assert gate.count("flamegate_requests_total", m, code="200") >= 1
        assert any(k.startswith("flamegate_build_info{") for k in m)
        assert m["flamegate_ready"] == 1


class TestTypes:
    def test_push_takes_only_its_types(self, gate):
        for kind in ("text/plain", "application/x-protobuf", "application/protobuf", "application/connect+proto", "multipart/form-data; boundary=x"):
            reply = is_error(gate.send(PUSH, b"", {"Content-Type": kind}), 415, "unimplemented")
            assert "application/proto" in reply.headers["accept-post"]
        is_error(gate.send(PUSH, b""), 415, "unimplemented")
        for kind in ("application/grpc", "application/grpc+proto", "application/grpc-web+proto"):
            is_error(gate.send(PUSH, b"", {"Content-Type": kind}), 415, "unimplemented", "gRPC")

    @pytest.mark.parametrize("kind", ["application/proto", "APPLICATION/PROTO", "application/proto; v=1"])
    def test_parameters_and_case_do_not_matter(self, gate, kind):
        body = push([({"service_name": "shop"}, [simple().gz()])])
        assert gate.send(PUSH, body, {"Content-Type": kind}).status == 200

    @pytest.mark.parametrize("kind", ['multipart/form-data; boundary="a b"', "Multipart/Form-Data; charset=utf-8; Boundary=--x"])
    def test_multipart_boundaries(self, gate, kind):
        boundary = "a b" if "a b" in kind else "--x"
        assert gate.ingest(multipart([("profile", simple().gz())], boundary), format=None, headers={"Content-Type": kind}).status == 200
        assert gate.rows(service="shop", type="samples")[1]["total"] == 7

    def test_multipart_with_format_pprof_is_unwrapped(self, gate):
        assert gate.ingest(multipart([("profile", simple().gz())]), headers=MULTIPART).status == 200
        assert gate.rows(service="shop", type="samples")[1]["total"] == 7

    def test_formats(self, gate):
        for name in ("jfr", "trie", "tree", "lines", "speedscope"):
            is_error(gate.ingest(b"x", format=name), 415, "unimplemented", name)
        for name in ("folded", "collapsed", "groups", None):
            assert gate.ingest(FOLDED, format=name).status == 200
        for path in ("/v1development/profiles", "/v1/profiles"):
            assert gate.send(path, b"{}", {"Content-Type": "application/json"}).status in (404, 415)

    def test_content_encoding(self, gate):
        raw = simple().raw()
        import gzip

        once, twice = gzip.compress(raw), gzip.compress(gzip.compress(raw))
        for body, coding in [(raw, None), (once, None), (once, "gzip"), (twice, "gzip"), (zstd_raw(raw), "zstd"), (zstd_raw(once), "zstd"), (raw, "identity")]:
            assert gate.ingest(body, headers={"Content-Encoding": coding} if coding else {}).status == 200, coding
        # Byte-equal payloads that were each acknowledged: all count.
        gate.until(lambda: gate.rows(service="shop", type="samples")[1]["total"], 7 * 7)
        is_error(gate.ingest(raw, headers={"Content-Encoding": "gzip"}), 400, "invalid_argument")
        is_error(gate.ingest(raw, headers={"Content-Encoding": "zstd"}), 400, "invalid_argument")
        is_error(gate.ingest(twice, headers={"Content-Encoding": "gzip, gzip"}), 400, "invalid_argument")
        reply = is_error(gate.ingest(raw, headers={"Content-Encoding": "br"}), 415, "unimplemented", "br")
        assert {"gzip", "zstd"} <= {s.strip() for s in reply.headers["accept-encoding"].split(",")}

    def test_gzip_oddities(self, gate):
        import gzip

        raw = simple().raw()
        for k in (0, 1, len(raw) // 2, len(raw)):  # several members are one stream
            assert gate.ingest(gzip.compress(raw[:k]) + gzip.compress(raw[k:])).status == 200, k
        assert gate.ingest(gzip.compress(raw) + bytes(512)).status == 200  # padding
        whole = gzip.compress(raw)
        flipped = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
        for bad in (b"\x1f\x8b\x08", whole[:-8], whole[:-1], flipped, b"\x1f\x8b plain text", whole + b"garbage"):
            is_error(gate.ingest(bad), 400, "invalid_argument")
        with gate.wire() as wire:  # a good connection survives a bad body
            wire.send(good(gate, flipped, target="/ingest?name=shop&format=pprof"))
            assert wire.reply().status == 400
            assert wire.send(good(gate)).reply().status == 200

    def test_four_layers_are_too_many(self, gate):
        import gzip

        raw = simple().raw()
        z = gzip.compress
        assert gate.ingest(z(z(z(raw))), headers={"Content-Encoding": "gzip"}).status == 200
        is_error(gate.ingest(z(z(z(z(raw)))), headers={"Content-Encoding": "gzip"}), 400, "invalid_argument")


def test_errors_do_not_echo_controls(gate):
    reply = gate.send("/ingest?name=a%0d%0aX-Evil:%201%1b%5b31m", FOLDED)
    assert reply.status == 400 and "x-evil" not in reply.headers
    assert not any(b < 32 for b in reply.body)
    json.loads(reply.body)
