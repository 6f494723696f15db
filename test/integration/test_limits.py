"""Every bound holds while the bytes still stream in, is named where it refuses, and costs no memory: peak resident memory stays
under twice `memory` through all of it."""

import gzip

import pytest

from bodies import BOUNDARY, MULTIPART, Pprof, MiB, block, multipart, number, push, simple, tag, varint, zeros_gz, zstd_zeros
from gate import JSON, PROTO, PUSH

BOMB = 129 * MiB


@pytest.fixture
def gate(make_gate):
    gate = make_gate()
    yield gate
    gate.assert_memory()
    assert gate.ingest(b"main 1\n", name="after", format="folded").status == 200  # and it lives


def refused(reply, status, *words):
    assert reply.status == status, reply
    error = reply.json()
    assert error["code"] == "invalid_argument"
    for word in words:
        assert word in error["message"], error
    return reply


def fill(raw, size):
    """A pprof made exactly `size` bytes long by a field that nobody knows."""
    for slack in range(1, 12):
        n = size - len(raw) - slack
        body = raw + block(99, bytes(n))
        if len(body) == size:
            return body
    raise AssertionError


def request(gate, body, framing, expect):
    lines = ["POST /ingest?name=shop&format=pprof HTTP/1.1", "Host: x", "x-flamegate-token: " + gate.key]
    lines += ["Expect: 100-continue"] if expect else []
    lines += ["Transfer-Encoding: chunked" if framing == "chunked" else "Content-Length: %d" % len(body)]
    with gate.wire(60) as wire:
        wire.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        if expect:
            status, _ = wire.head() if framing == "chunked" or len(body) <= 16 * MiB else (0, 0)
            assert status in (0, 100)
            if status == 0:
                return wire.reply()
        try:
            if framing == "chunked":
                step = 1 << 18
                for at in range(0, len(body), step):
                    piece = body[at : at + step]
                    wire.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
                wire.send(b"0\r\n\r\n")
            else:
                wire.send(body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return wire.reply()


@pytest.mark.parametrize("expect", [False, True])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_body_to_the_byte(gate, framing, expect):
    body = fill(simple(value=3).raw(), 16 * MiB)
    assert request(gate, body, framing, expect).status == 200
    assert gate.rows(service="shop", type="samples")[1]["total"] == 3
    refused(request(gate, body + b"\0", framing, expect), 413, "limits.body", "16")
    assert len(gate.profiles()) == 1


def test_own_body_limit(make_gate):
    gate = make_gate("limits: { body: 2KiB }\n")
    assert gate.ingest(fill(simple().raw(), 2048)).status == 200
    refused(gate.ingest(fill(simple().raw(), 2049)), 413, "limits.body")
    refused(gate.push(push([({"service_name": "x"}, [fill(simple().raw(), 2048)])])), 413, "limits.body")


class TestBombs:
    """129 MiB of zeros, in each place that unpacks: 413 naming limits.inflated."""

    def test_payload(self, gate):
        refused(gate.ingest(zeros_gz(BOMB)), 413, "limits.inflated")

    def test_part(self, gate):
        refused(gate.ingest(multipart([("profile", zeros_gz(BOMB))]), format=None, headers=MULTIPART), 413, "limits.inflated")

    def test_field(self, gate):
        refused(gate.push(push([({"service_name": "x"}, [zeros_gz(BOMB)])])), 413, "limits.inflated")

    def test_json_field(self, gate):
        from bodies import push_json

        refused(gate.push(push_json([({"service_name": "x"}, [zeros_gz(BOMB)])]), JSON), 413, "limits.inflated")

    @pytest.mark.parametrize("target", ["/ingest?name=x&format=pprof", "/ingest?name=x", PUSH])
    @pytest.mark.parametrize("coding", ["gzip", "zstd"])
    def test_content_encoding(self, gate, target, coding):
        body = zeros_gz(BOMB) if coding == "gzip" else zstd_zeros(BOMB)
        reply = gate.send(target, body, {"Content-Encoding": coding, **(PROTO if target == PUSH else {})})
        refused(reply, 413, "limits.inflated")  # though zeros are malformed long before they are many

    @pytest.mark.parametrize("coding", ["gzip", "zstd"])
    def test_content_encoding_of_well_formed_filling(self, gate, coding):
        """The same where every byte is legal: only the limit can end it."""
        import zlib

        unit = block(99, bytes(MiB - 6))
        if coding == "gzip":
            c = zlib.compressobj(6, zlib.DEFLATED, 31)
            body = c.compress(simple().raw()) + b"".join(c.compress(unit) for _ in range(129)) + c.flush()
        else:
            # One unknown field of 129 MiB, the head of it stored, the zeros as runs.
            from bodies import _zstd

            step = 128 << 10
            start = simple().raw() + tag(99, 2) + varint(BOMB)
            body = _zstd([(0, len(start), start)] + [(1, step, b"\0")] * (BOMB // step))
        assert len(body) < 16 * MiB
        refused(gate.ingest(body, headers={"Content-Encoding": coding}), 413, "limits.")  # inflated, or decoded for the original

    def test_bomb_in_a_bomb(self, gate):
        refused(gate.ingest(gzip.compress(zeros_gz(BOMB)), headers={"Content-Encoding": "gzip"}), 413, "limits.inflated")

    def test_zstd_that_promises_too_much(self, gate):
        # A frame that declares a terabyte, and one whose window is 2 GiB: never allocated for.
        huge = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x51\0\0" + bytes(10)
        window = b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x51\0\0" + bytes(10)
        for body in (huge, window):
            reply = gate.ingest(body, headers={"Content-Encoding": "zstd"})
            assert reply.status in (400, 413), reply


class TestEmptyMessages:
    """16 MiB of messages of no bytes decode to hundreds of megabytes unless decoded memory is what is bounded."""

    @pytest.mark.parametrize("field", [1, 2, 3, 4, 5, 6, 11, 13])
    def test_pprof(self, gate, field):
        unit = tag(field, 2) + b"\0"
        body = unit * (16 * MiB // len(unit))
        reply = gate.ingest(body)
        assert reply.status in (400, 413), reply
        if field in (2, 4, 5, 6):
            assert "limits." in reply.json()["message"], reply

    def test_series(self, gate):
        reply = gate.push((tag(1, 2) + b"\0") * (8 * MiB))
        assert reply.status in (400, 413), reply

    def test_samples_of_a_series(self, gate):
        inner = (tag(2, 2) + b"\0") * (4 * MiB)
        reply = gate.push(block(1, block(1, block(1, b"service_name") + block(2, b"x")) + inner))
        assert reply.status in (200, 400, 413), reply

    def test_json_brackets(self, gate):
        for body in (b"[" * (8 * MiB), b'{"series":' + b"[" * (8 * MiB), b'{"series":[' + b"{}," * (4 * MiB) + b"{}]}", b'{"x":' * (2 * MiB)):
            reply = gate.push(body, JSON)
            assert reply.status in (400, 413), reply


class TestManyStacks:
    """5 million distinct one-frame stacks."""

    def test_pprof(self, gate):
        from bodies import block as b

        def rows(before, after):
            """before id after, for ids of three bytes as varints padded to that length."""
            low = [bytes([i & 127 | 128, i >> 7 | 128]) for i in range(1 << 14)]
            return b"".join(before + v + bytes([high]) + after for high in range(128) for v in low)

        samples = rows(b"\x12\x08\x0a\x03", b"\x12\x01\x01")
        locations = rows(b"\x22\x08\x08", b"\x18\x01\x1a\x00")  # 2^21 ids: two ways of using each make 4 million
        head = b(1, number(1, 1) + number(2, 2))
        tail = b"".join(b(6, s) for s in (b"", b"samples", b"count"))
        body = gzip.compress(head + samples + locations + tail, 6)
        assert len(body) < 16 * MiB
        refused(gate.ingest(body), 400, "limits.samples", "200000")

    def test_folded(self, gate):
        body = gzip.compress(b"".join(b"f%x 1\n" % i for i in range(5_000_000)), 1)
        assert len(body) < 16 * MiB + 1, len(body)
        refused(gate.ingest(body, format="folded", headers={"Content-Encoding": "gzip"}), 400, "limits.samples", "200000")

    def test_exactly_the_limit(self, make_gate):
        gate = make_gate("limits: { samples: 1000 }\n")
        lines = [b"f%d 1\n" % i for i in range(1001)]
        assert gate.ingest(b"".join(lines[:1000]), format="folded").status == 200
        refused(gate.ingest(b"".join(lines), format="folded"), 400, "limits.samples", "1000")
        pprof = Pprof()
        for i in range(1001):
            pprof.add(["f%d" % i], 1)
        refused(gate.ingest(pprof.gz()), 400, "limits.samples", "1000")
        gate.until(lambda: gate.rows(service="shop")[1]["total"], 1000 * 10**7)


def test_two_hundred_thousand_samples_are_fine(gate):
    body = gzip.compress(b"".join(b"main;f%x 1\n" % i for i in range(200_000)), 1)
    assert gate.ingest(body, format="folded", headers={"Content-Encoding": "gzip"}).status == 200
    answer = gate.get("functions", service="shop", limit=10)
    assert answer["total"] == 200_000 * 10**7
    assert sum(f["self"] for f in answer["functions"]) + answer["other"]["self"] == answer["total"]
    assert answer["other"]["functions"] == 200_001 - 10


class TestDepth:
    def test_deep_stacks_keep_their_leaves(self, gate):
        stack = ["f%d" % i for i in range(5000)]
        assert gate.ingest(Pprof().add(stack, [1, 10]).gz()).status == 200
        rows, answer = gate.rows(service="shop", type="cpu")
        assert answer["total"] == 10
        assert rows["f4999", ""] == [10, 10]
        names = {name for name, _ in rows}
        assert "[truncated]" in names and "f0" not in names
        assert len(names) == 1024

    def test_folded(self, gate):
        assert gate.ingest(";".join("f%d" % i for i in range(3000)).encode() + b" 2\n", format="folded").status == 200
        rows, answer = gate.rows(service="shop")
        assert answer["total"] == 2 * 10**7 and rows["f2999", ""] == [2 * 10**7] * 2
        assert len(rows) == 1024

    def test_just_deep_enough(self, gate):
        stack = ["f%d" % i for i in range(1024)]
        assert gate.ingest(Pprof().add(stack, [1, 10]).gz()).status == 200
        rows, _ = gate.rows(service="shop", type="cpu")
        assert len(rows) == 1024 and rows["f0", ""] == [0, 10]


def test_ten_thousand_parts(gate):
    parts = [("p%d" % i, b"x") for i in range(10_000)] + [("profile", simple().gz())]
    reply = refused(gate.ingest(multipart(parts), format=None, headers=MULTIPART), 400, "limits.parts")
    assert "1000" in reply.text
    assert gate.ingest(multipart(parts[-900:]), format=None, headers=MULTIPART).status == 200


def test_many_profiles_in_one_request(gate):
    body = push([({"service_name": "s"}, [simple(value=1).raw() for _ in range(1001)])])
    refused(gate.push(body), 400, "limits.profiles")
    assert gate.push(push([({"service_name": "many"}, [(simple(value=1).raw(), "id-%d" % i) for i in range(1000)])])).status == 200
    assert gate.get("functions", service="many", type="samples")["total"] == 1000


class TestLabels:
    def test_of_a_series(self, gate):
        name = lambda n: "app{" + ",".join("l%d=v" % i for i in range(n)) + "}"
        body = b"main 1\n"
        assert gate.ingest(body, name=name(25), format="folded").status == 200
        refused(gate.ingest(body, name=name(60), format="folded"), 400, "limits.labels")
        refused(gate.ingest(body, name="app{a=%s}" % ("v" * 2049), format="folded"), 400, "limits.label_value")
        assert gate.ingest(body, name="app{a=%s}" % ("v" * 2048), format="folded").status == 200
        refused(gate.ingest(body, name="app{%s=v}" % ("a" * 1025), format="folded"), 400, "limits.label_name")

    def test_of_a_sample(self, gate):
        pprof = lambda n: Pprof().add(["main"], 1, {"k%d" % i: "v" for i in range(n)}).gz()
        assert gate.ingest(pprof(100)).status == 200
        refused(gate.ingest(pprof(101)), 400, "limits.sample_labels")


class TestNumbers:
    def test_largest_ids(self, gate):
        """Ids are names: any 64-bit number but 0, up to 2^64 - 1."""
        top = (1 << 64) - 1
        s = ["", "cpu", "nanoseconds", "big", "main"]
        raw = block(1, number(1, 1) + number(2, 2))
        for ident, name in ((top, 3), (top - 1, 4)):
            raw += block(5, number(1, ident) + number(2, name)) + block(4, number(1, ident) + block(4, number(1, ident) + number(2, 7)))
        raw += block(2, block(1, varint(top) + varint(top - 1)) + block(2, varint(42)))
        raw += b"".join(block(6, x.encode()) for x in s)
        assert gate.ingest(raw).status == 200
        assert gate.rows(service="shop")[0] == {("big", ""): [42, 42], ("main", ""): [0, 42]}

    def test_sums_saturate(self, gate):
        most = (1 << 63) - 1
        assert gate.ingest(Pprof(types=(("cpu", "nanoseconds"),)).add(["a"], [most]).add(["b"], [most]).gz()).status == 200
        assert gate.get("functions", service="shop")["total"] == most

    def test_negative_becomes_zero(self, gate):
        assert gate.ingest(Pprof().add(["a"], [-5, 10]).add(["b"], [-1, -(1 << 63)]).add(["c"], [3, 4]).gz()).status == 200
        assert gate.rows(service="shop", type="cpu")[0] == {("a", ""): [10, 10], ("c", ""): [4, 4]}
        assert gate.rows(service="shop", type="samples")[0] == {("c", ""): [3, 3]}


class TestGarbage:
    @pytest.mark.parametrize("body", [
        b"# HELP x y\n# TYPE x gauge\n",
        b"<!doctype html><html></html>",
        b"{}",
        b"\x12\x80\x80\x80\x80\x80\x80\x80\x80\x40",
        b"\x08" + b"\x80" * 11,
        b"\x0b\x0c",
        b"\x00" * 100,
        b"\xff" * 4096,
        simple().raw()[:-3],
        simple().raw() + b"\x12",
    ], ids=lambda b: repr(b[:8]))
    def test_is_400(self, gate, body):
        refused(gate.ingest(body), 400)

    def test_random(self, gate):
        import random

        noise = random.Random(7)
        for size in (1, 2, 100, 5000, MiB):
            refused(gate.ingest(noise.randbytes(size)), 400)

    def test_bit_flips_never_break_it(self, gate):
        import random

        rng = random.Random(11)
        raw = Pprof().add(["main", "work"], [1, 10], {"k": "v"}).add(["main"], [2, 20]).raw()
        for _ in range(300):
            body = bytearray(raw)
            for _ in range(rng.randint(1, 4)):
                body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
            assert gate.ingest(bytes(body)).status in (200, 400, 413)

    def test_broken_references(self, gate):
        """Never 200 while no sample survived; with some left, those count."""
        types = block(1, number(1, 1) + number(2, 2))
        table = b"".join(block(6, s) for s in (b"", b"cpu", b"nanoseconds", b"main"))
        lost = block(2, block(1, varint(9)) + block(2, varint(5)))
        kept = block(5, number(1, 1) + number(2, 3)) + block(4, number(1, 1) + block(4, number(1, 1))) + block(2, block(1, varint(1)) + block(2, varint(6)))
        refused(gate.ingest(types + lost + table), 400)
        assert gate.ingest(types + lost + kept + table, name="some").status == 200
        assert gate.rows(service="some")[0] == {("main", ""): [6, 6]}
        refused(gate.ingest(types + kept), 400)  # no string table at all
        refused(gate.ingest(block(1, number(1, 99) + number(2, 2)) + kept + table), 400)

    def test_values_must_match_types(self, gate):
        refused(gate.ingest(Pprof().add(["a"], [1]).raw()), 400)
        refused(gate.ingest(Pprof().add(["a"], [1, 2, 3]).raw()), 400)
        refused(gate.ingest(Pprof(types=(("cpu", "nanoseconds"), ("cpu", "nanoseconds"))).add(["a"], [1, 2]).raw()), 400)
        refused(gate.ingest(block(6, b"") + block(2, block(2, varint(1)))), 400)

    def test_bad_strings(self, gate):
        for bad in (b"\xd6\x14\x50\x8c\x2e\xa7", b"\xed\xa0\x80"):
            refused(gate.ingest(simple().raw() + block(6, bad)), 400)

    def test_empty_is_fine(self, gate):
        assert gate.ingest(b"").status == 200
        assert gate.ingest(Pprof().raw()).status == 200
        assert gate.ingest(Pprof().add(["a"], 0).gz()).status == 200
        assert gate.ingest(multipart([("profile", b"")]), format=None, headers=MULTIPART).status == 200
        assert gate.ingest(b"", format="folded").status == 200
        assert gate.profiles() == []

    def test_broken_multipart(self, gate):
        whole = multipart([("profile", simple().gz())])
        for body in (whole[:30], whole[: len(whole) // 2], b"no boundary at all", whole.replace(BOUNDARY.encode(), b"other")):
            refused(gate.ingest(body, format=None, headers=MULTIPART), 400)
        refused(gate.ingest(whole, format=None, headers={"Content-Type": "multipart/form-data"}), 400, "boundary")
        refused(gate.ingest(multipart([("profile", simple().gz()), ("sample_type_config", b"{not json")]), format=None, headers=MULTIPART), 400)
        reply = refused(gate.ingest(multipart([("profile", simple().gz()), ("prev_profile", simple().gz())]), format=None, headers=MULTIPART), 400)
        assert "prev_profile" in reply.text
        assert gate.profiles() == []


class TestConnectionsPerAddress:
    CONF = "limits: { connections_per_address: 3 }\n"

    @staticmethod
    def hello(wire, address=None):
        """A PROXY header, if there is one, and a request that is answered; whether it is."""
        header = "PROXY TCP4 %s 192.0.2.200 1000 80\r\n" % address if address else ""
        try:
            return wire.send((header + "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").encode()).reply().status == 200
        except (EOFError, OSError):
            return False

    def test_one_more_is_closed(self, make_gate):
        gate = make_gate(self.CONF)
        held = [gate.wire() for _ in range(3)]
        assert all(map(self.hello, held))
        for _ in range(5):
            with gate.wire() as wire:
                assert not self.hello(wire)
        assert all(map(self.hello, held))
        gate.until(lambda: gate.count("flamegate_connections_closed_total", reason="address_limit"), 5)
        held.pop().close()
        gate.settled()
        gate.until(lambda: self.hello(gate.wire()), True)
        for wire in held:
            wire.close()

    def test_by_the_address_of_the_proxy_header(self, make_gate):
        gate = make_gate(self.CONF + 'listen: [{ address: "127.0.0.1:0", proxy_protocol: true }]\n')
        held = [gate.wire() for _ in range(6)]
        assert [self.hello(w, "192.0.2.%d" % (i % 2)) for i, w in enumerate(held)] == [True] * 6
        assert [self.hello(gate.wire(), "192.0.2.%d" % i) for i in range(3)] == [False, False, True]
        for wire in held:
            wire.close()

    def test_trusted_proxies_are_many_clients(self, make_gate):
        gate = make_gate(self.CONF + "trusted_proxies: [127.0.0.0/8]\n")
        held = [gate.wire() for _ in range(10)]
        assert all(map(self.hello, held))
        for wire in held:
            wire.close()


class TestServicesAndSeries:
    def test_known_ones_go_on(self, make_gate):
        gate = make_gate("limits: { services: 2, series: 3 }\n")
        send = lambda name: gate.ingest(simple().gz(), name=name)
        assert [send(n).status for n in ("a", "b", "a", "a{pod=1}")] == [200] * 4
        refused(send("c"), 400, "limits.services 2", '"c"', "2 today")
        refused(send("a{pod=2}"), 400, "limits.series 3", "3 series")
        assert [send(n).status for n in ("a", "b", "a{pod=1}")] == [200] * 3
        assert gate.count("flamegate_profiles_refused_total", reason="services_limit") == 1
        assert gate.count("flamegate_profiles_refused_total", reason="series_limit") == 1
        other = gate.create("server", "other", "--project", "other")
        gate.until(lambda: gate.ingest(simple().gz(), name="c", key=other).status, 200)

    def test_of_a_batch_the_rest_is_stored(self, make_gate):
        gate = make_gate("limits: { services: 1 }\n")
        series = lambda name: ({"__name__": "process_cpu", "service_name": name}, [simple(name).gz()])
        reply = gate.push(push([series("first"), series("second"), series("first")]))
        assert reply.status == 400 and (reply.json()["stored"], reply.json()["refused"]) == (2, 1), reply
        assert "limits.services" in reply.text

    def test_a_reload_raises_it(self, make_gate):
        gate = make_gate("limits: { services: 1 }\n")
        assert gate.ingest(simple().gz(), name="a").status == 200
        assert gate.ingest(simple().gz(), name="b").status == 400
        gate.configure("limits: { services: 2 }\n")
        gate.until(lambda: gate.ingest(simple().gz(), name="b").status, 200)
        assert gate.ingest(simple().gz(), name="c").status == 400


class TestTold:
    """Each refusal names its limit, the limit's value and what was seen, and counts with a fixed reason."""

    CONF = "limits: { body: 64KiB, inflated: 128KiB, samples: 100, profiles: 3, parts: 5, field: 2KiB, head: 8KiB, headers: 20, decoded: 1MiB }\n"

    @pytest.fixture
    def small(self, make_gate):
        return make_gate(self.CONF)

    @pytest.mark.parametrize("status,reason,words,send", [
        (413, "body_size_limit_exceeded", ("limits.body = 65536", "65537"), lambda g: g.ingest(bytes(65537))),
        (413, "decompressed_size", ("limits.inflated (131072", "so far"), lambda g: g.ingest(zeros_gz(MiB))),
        (400, "samples_limit", ("limits.samples (100)", "101 seen"), lambda g: g.ingest(b"".join(b"f%d 1\n" % i for i in range(150)), format="folded")),
        (400, "profiles_limit", ("limits.profiles (3)", "4 seen"), lambda g: g.push(push([({"service_name": "x"}, [simple().gz()] * 5)]))),
        (400, "parts_limit", ("limits.parts (5)", "6 seen"), lambda g: g.ingest(multipart([("p%d" % i, b"x") for i in range(9)]), format=None, headers=MULTIPART)),
        (413, "profile_size_limit", ("limits.field (2048", "3000"), lambda g: g.ingest(block(6, b"x" * 3000))),
        (413, "profile_size_limit", ("limits.decoded", "so far"), lambda g: g.ingest(gzip.compress((tag(4, 2) + b"\0") * 65000))),
        (431, "head_too_large", ("limits.headers = 20", "21 seen"), lambda g: g.ingest(b"m 1\n", format="folded", headers={"X-%d" % i: "y" for i in range(30)})),
        (431, "head_too_large", ("limits.head = 8192", "so far"), lambda g: g.ingest(b"m 1\n", format="folded", headers={"X": "y" * 9000})),
        (414, "bad_framing", ("limits.head", "so far"), lambda g: g.ingest(b"m 1\n", format="folded", x="y" * 5000)),
    ], ids=lambda x: x if isinstance(x, str) else "")
    def test_as_a_whole(self, small, status, reason, words, send):
        refused(send(small), status, *words)
        assert small.count("flamegate_requests_refused_total", reason=reason) == 1
        assert small.count("flamegate_requests_refused_total") == 1

    def test_cut_stacks_are_counted(self, make_gate):
        gate = make_gate("limits: { depth: 10 }\n")
        assert gate.ingest(b"%s 1\n%s 2\nmain 3\n" % (b";".join([b"a"] * 20), b";".join([b"b"] * 11)), format="folded").status == 200
        assert gate.count("flamegate_truncated_stacks_total") == 2


def test_strings(make_gate):
    gate = make_gate("limits: { strings: 100 }\n")
    profile = lambda n: Pprof(types=(("cpu", "nanoseconds"),)).add(["f%d" % i for i in range(n)], 1).gz()
    assert gate.ingest(profile(90)).status == 200
    refused(gate.ingest(profile(120)), 400, "limits.strings (100)", "101 seen")
    assert gate.count("flamegate_requests_refused_total", reason="strings_limit") + gate.count("flamegate_profiles_refused_total", reason="strings_limit") == 1
