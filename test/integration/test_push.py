"""PushRequest, protobuf and JSON: what is taken, in any order and coding, and what is said about a batch that is good in part."""

import gzip
import json

import pytest

from bodies import MULTIPART, Pprof, Profile, block, multipart, number, push, push_json, simple, tag, varint, zstd_raw
from gate import JSON, PROTO, PUSH
from postgres import OVER_POSTGRES

SHOP = {"__name__": "process_cpu", "service_name": "shop", "env": "lab"}


def total(gate, service="shop", type="cpu"):
    return gate.get("functions", service=service, type=type)["total"]


class TestAnswers:
    @pytest.mark.parametrize("kind, body", [
        ("application/proto", b""),
        ("application/json", b"{}"),
        ("application/json; charset=utf-8", b"{}"),
    ])
    def test_content_type_is_the_request_s(self, gate, kind, body):
        make = push if "proto" in kind else push_json
        reply = gate.send(PUSH, make([(SHOP, [simple().gz()])]), {"Content-Type": kind})
        assert (reply.status, reply.headers["content-type"], reply.body) == (200, kind, body)
        assert "content-encoding" not in reply.headers

    def test_gzip_only_if_asked(self, gate):
        body = push_json([(SHOP, [simple().gz()])])
        reply = gate.send(PUSH, body, {**JSON, "Accept-Encoding": "gzip"})
        assert reply.status == 200
        if reply.headers.get("content-encoding") == "gzip":
            assert gzip.decompress(reply.body) == b"{}"
        else:
            assert reply.body == b"{}"

    @pytest.mark.parametrize("headers", [{"Connect-Protocol-Version": "1", "Connect-Timeout-Ms": "9999"}, {"Connect-Timeout-Ms": "1000000"}, {}])
    def test_connect_headers(self, gate, headers):
        assert gate.push(push([(SHOP, [simple().gz()])]), headers).status == 200

    @pytest.mark.parametrize("headers", [{"Connect-Protocol-Version": "2"}, {"Connect-Timeout-Ms": "soon"}, {"Connect-Timeout-Ms": "99999999999"}])
    def test_bad_connect_headers(self, gate, headers):
        reply = gate.push(push([(SHOP, [simple().gz()])]), headers)
        assert reply.status == 400 and reply.json()["code"] == "invalid_argument"
        assert reply.headers["content-type"] == "application/json"

    @pytest.mark.parametrize("body", [b"", push([]), push([(SHOP, [])])])
    def test_nothing_in_it(self, gate, body):
        """An empty message is "no profiles received" upstream; an empty body is an honestly empty upload here."""
        reply = gate.push(body)
        assert reply.status in (200, 400)
        if reply.status == 400:
            assert "no profiles" in reply.json()["message"]
        assert gate.profiles() == []


class TestLayers:
    @pytest.mark.parametrize("inner", ["raw", "gz"])
    @pytest.mark.parametrize("outer", [None, "gzip", "zstd"])
    @pytest.mark.parametrize("codec", ["proto", "json"])
    def test_all(self, gate, inner, outer, codec):
        payload = getattr(simple(value=5), inner)()
        body = (push if codec == "proto" else push_json)([(SHOP, [payload])])
        body = {"gzip": gzip.compress, "zstd": zstd_raw, None: bytes}[outer](body)
        headers = {"Content-Type": "application/" + codec, **({"Content-Encoding": outer} if outer else {})}
        assert gate.send(PUSH, body, headers).status == 200
        assert total(gate) == 5
        ident = gate.profiles()[0]["id"]
        assert gate.original(ident) == (None if OVER_POSTGRES else payload)


    @pytest.mark.parametrize("codec", ["proto", "json"])
    def test_header_dropped_by_a_relay(self, gate, codec):
        body = gzip.compress((push if codec == "proto" else push_json)([(SHOP, [simple(value=5).gz()])]))
        assert gate.send(PUSH, body, {"Content-Type": "application/" + codec}).status == 200
        form = gzip.compress(multipart([("profile", simple(value=6).gz())]))
        assert gate.ingest(form, format=None, headers=MULTIPART).status == 200
        assert total(gate) == 11


class TestOrder:
    def test_labels_after_samples(self, gate):
        sample = block(2, block(1, simple(value=5).gz()))
        labels = b"".join(block(1, block(1, k.encode()) + block(2, v.encode())) for k, v in SHOP.items())
        assert gate.push(block(1, sample + labels)).status == 200
        assert total(gate) == 5

    def test_id_before_and_after(self, gate):
        labels = b"".join(block(1, block(2, v.encode()) + block(1, k.encode())) for k, v in SHOP.items())
        payload = simple(value=5).gz()
        assert gate.push(block(1, labels + block(2, block(2, b"one") + block(1, payload)))).status == 200
        assert gate.push(block(1, labels + block(2, block(1, payload) + block(2, b"two")))).status == 200
        assert total(gate) == 10

    def test_unknown_fields_everywhere(self, gate):
        junk = block(55, b"x") + tag(56, 0) + b"\1" + tag(57, 1) + bytes(8) + tag(58, 5) + bytes(4)
        sample = block(2, junk + block(1, simple(value=5).raw() + junk) + junk)
        labels = b"".join(block(1, junk + block(1, k.encode()) + block(2, v.encode())) for k, v in SHOP.items())
        assert gate.push(junk + block(1, junk + labels + sample + block(3, junk)) + junk).status == 200
        assert total(gate) == 5

    def test_long_lengths(self, gate):
        """Lengths padded to five bytes are legal."""
        def padded(field, payload):
            n = len(payload)
            return tag(field, 2) + bytes([n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127 | 128, 128, 0]) + payload

        labels = b"".join(padded(1, padded(1, k.encode()) + padded(2, v.encode())) for k, v in SHOP.items())
        assert gate.push(padded(1, labels + padded(2, padded(1, simple(value=5).raw())))).status == 200
        assert total(gate) == 5

    def test_pprof_in_any_order_and_unpacked(self, gate):
        p = Pprof().add(["main", "work"], [1, 10]).add(["main"], [2, 20])
        from bodies import fields

        pieces = []
        for f, v in fields(p.raw()):
            if f == 2:  # a sample, its numbers one by one
                out = b""
                for g, w in fields(v):
                    from bodies import unpack

                    out += b"".join(tag(g, 0) + varint(x) for x in unpack(w))
                pieces.append(block(2, out))
            else:
                pieces.append(block(f, v) if isinstance(v, bytes) else tag(f, 0) + varint(v))
        # String order must hold; everything else is turned round.
        strings = [x for x in pieces if x[0] == tag(6, 2)[0]]
        types = [x for x in pieces if x[0] == tag(1, 2)[0]]
        rest = [x for x in pieces if x not in strings and x not in types]
        body = b"".join(rest[::-1] + strings + types)
        assert gate.push(push([(SHOP, [body])])).status == 200
        assert gate.rows(service="shop", type="cpu")[0] == {("work", ""): [10, 10], ("main", ""): [20, 30]}

    @pytest.mark.parametrize("size", [1, 7, 1000])
    def test_any_cut(self, gate, size):
        body = push([(SHOP, [simple(value=5).gz(), simple("other", 6).raw()]), (dict(SHOP, service_name="b"), [simple(value=9).gz()])])
        with gate.wire() as wire:
            wire.send(("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/proto\r\nTransfer-Encoding: chunked\r\n\r\n" % (PUSH, gate.key)).encode())
            for at in range(0, len(body), size):
                piece = body[at : at + size]
                wire.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
            assert wire.send(b"0\r\n\r\n").reply().status == 200
        assert (total(gate), total(gate, "b")) == (11, 9)


class TestPartial:
    def test_good_ones_are_stored(self, gate):
        bad = b"\x0a\xff\xff not a pprof"
        body = push([
            (SHOP, [simple(value=1).gz(), bad, simple(value=2).gz()]),
            (dict(SHOP, service_name="second"), [simple(value=4).gz()]),
            ({"service_name": "third", "bad name!": ""}, [bad]),
        ])
        reply = gate.push(body)
        assert reply.status == 400 and reply.headers["content-type"] == "application/json"
        error = reply.json()
        assert error["code"] == "invalid_argument"
        assert (error["stored"], error["refused"]) == (3, 2)
        assert len(error["reasons"]) in (1, 2) and all(error["reasons"])
        assert (total(gate), total(gate, "second")) == (3, 4)
        assert gate.count("flamegate_profiles_accepted_total") == 3
        assert gate.count("flamegate_profiles_refused_total") == 2

    def test_all_bad(self, gate):
        reply = gate.push(push([(SHOP, [b"\xff\xff", b"{}"])]))
        assert reply.status == 400
        assert reply.json().get("stored", 0) == 0 and reply.json().get("refused", 2) == 2
        assert gate.profiles() == []

    def test_a_broken_end_stores_nothing(self, gate):
        body = push([(SHOP, [simple().gz()])])
        for cut in (body[:-1], body + b"\x0a", body + b"\x0a\xff\xff\xff\xff\x0f", gzip.compress(body)[:-3]):
            headers = {"Content-Encoding": "gzip"} if cut[:1] == b"\x1f" else {}
            assert gate.push(cut, headers).status == 400
        assert gate.profiles() == []

    def test_an_empty_profile_among_others(self, gate):
        body = push([(SHOP, [Pprof().raw(), simple(value=3).gz(), b""])])
        assert gate.push(body).status == 200
        assert total(gate) == 3 and len(gate.profiles()) == 1


class TestLabels:
    def test_service(self, gate):
        for labels, service in [
            ({"__name__": "process_cpu", "service_name": " spaced name "}, "spaced name"),
            ({"__name__": "process_cpu", "service_name": "lab/shop"}, "lab/shop"),
            ({"__name__": "process_cpu", "service_name": "größe ✓"}, "größe ✓"),
            ({"__name__": "process_cpu"}, "unknown_service"),
        ]:
            assert gate.push(push([(labels, [simple(value=5).gz()])])).status == 200
            assert total(gate, service) == 5

    def test_name_chooses_the_type_id(self, gate):
        assert gate.push(push([(dict(SHOP, __name__="my_metric"), [simple().gz()])])).status == 200
        assert {t["id"] for t in gate.get("types", service="shop")["types"]} == {"my_metric:samples:count:cpu:nanoseconds", "my_metric:cpu:nanoseconds:cpu:nanoseconds"}

    def test_without_name(self, gate):
        assert gate.push(push([({"service_name": "shop"}, [simple(value=5).gz()])])).status == 200
        ids = {t["id"] for t in gate.get("types", service="shop")["types"]}
        assert "process_cpu:cpu:nanoseconds:cpu:nanoseconds" in ids, ids

    def test_duplicates(self, gate):
        """Real .NET and Rust clients send a name twice: equal values are one, of different ones the last counts."""
        pairs = list(SHOP.items())
        assert gate.push(push([(pairs + [("env", "lab"), ("env", "prod")], [simple().gz()])])).status == 200
        assert gate.profiles()[0]["labels"]["env"] == "prod"

    def test_delta_false_is_kept(self, gate):
        from bodies import HEAP

        assert gate.push(push([(dict(SHOP, __name__="memory", __delta__="false"), [simple(types=HEAP, period_type=("space", "bytes")).gz()])])).status == 200
        assert total(gate, type="alloc_space") == 7

    def test_delta_true_refuses_what_adds_up(self, gate):
        from bodies import HEAP

        reply = gate.push(push([(dict(SHOP, __name__="memory", __delta__="true"), [simple(types=HEAP, period_type=("space", "bytes")).gz()])]))
        kept = {t["name"] for t in gate.get("types", service="shop")["types"]}
        assert kept == {"inuse_objects", "inuse_space"}, (reply, kept)

    def test_labels_are_read_back(self, gate):
        labels = dict(SHOP, pod="web-1", **{"host.name": "h ü", "empty": ""})
        assert gate.push(push([(labels, [simple().gz()])])).status == 200
        found = gate.profiles()[0]["labels"]
        assert found["pod"] == "web-1" and found["host.name"] == "h ü" and found["env"] == "lab"
        assert gate.get("labels/pod")["values"] == ["web-1"]
        assert {"pod", "env", "host.name"} <= set(gate.get("labels")["names"])


class TestJson:
    def send(self, gate, text):
        return gate.push(text if isinstance(text, bytes) else text.encode(), JSON)

    def test_spellings(self, gate):
        import base64

        raw = simple(value=5).gz()
        plain = base64.b64encode(raw).decode()
        for payload in (plain, plain.rstrip("="), base64.urlsafe_b64encode(raw).decode(), plain.replace("/", "\\/").replace("+", "\\u002b")):
            text = '{"series":[{"labels":[{"name":"service_name","value":"shop"},{"name":"__name__","value":"process_cpu"}],"samples":[{"rawProfile":"%s"}]}]}' % payload
            assert self.send(gate, text).status == 200
        gate.until(lambda: total(gate), 20)

    def test_order_snake_case_and_unknown(self, gate):
        import base64

        payload = base64.b64encode(simple(value=5).gz()).decode()
        text = """ { "other": [1, {"a": [null, true, -1.5e3]}], "series" : [ { "samples": [ { "ID": "x-1", "raw_profile": "%s", "more": {} } ],
                 "labels": [ {"value": "sh\\u006fp", "name": "service_name"} ], "annotations": [] } ] } """ % payload
        assert self.send(gate, text).status == 200
        assert total(gate) == 5

    @pytest.mark.parametrize("text", [
        "", "{", "[]", '"x"', '{"series":{}}', '{"series":[1]}', '{"series":[{"samples":[{"rawProfile":"%%%"}]}]}', '{"series":[{"samples":[{"rawProfile":5}]}]}',
        '{"series":[]} x', '{"series":[],}', "{'series':[]}", '{"series":[{"labels":[{"name":"\\ud800","value":"x"}]}]}', '{"series":[{"labels":[{"name":"a\x01","value":"x"}]}]}',
    ])
    def test_bad(self, gate, text):
        reply = self.send(gate, text)
        assert reply.status == 400 and reply.json()["code"] == "invalid_argument", reply

    def test_deep_nesting(self, gate):
        assert self.send(gate, '{"x":' + "[" * 50 + "]" * 50 + ',"series":[]}').status in (200, 400)
        assert self.send(gate, '{"x":' + "[" * 100_000 + "]" * 100_000 + "}").status == 400


def test_rebuilt_pprof_holds_every_type(gate):
    p = Pprof().add(["main", ("work", "w.go", 12)], [1, 10], {"k": "v"}, {"bytes": 64}).add(["main"], [2, 20])
    assert gate.push(push([(SHOP, [p.gz()])])).status == 200
    back = Profile(gate.read("profiles/%s/pprof" % gate.profiles()[0]["id"]).body)
    assert back.totals == {("samples", "count"): 3, ("cpu", "nanoseconds"): 30}
    assert back.functions(1) == {("work", "w.go"): [10, 10], ("main", ""): [20, 30]}
    assert any(dict(s[1]) == {"k": "v", "bytes": 64} for s in back.samples), back.samples
    assert (back.time_ns, back.duration_ns, back.period) == (p.time_ns, 10**10, 10**7)
