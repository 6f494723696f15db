"""Folded text: counts, the period, the name that chooses the type, odd lines."""

import pytest

from gate import basic

TEXT = b"main;work;leaf 3\nmain;work 1\nmain 2\n"


def refused(reply, *words):
    assert reply.status == 400, reply
    error = reply.json()
    assert error["code"] == "invalid_argument"
    for word in words:
        assert word in error["message"], error


def rows(gate, **kw):
    return {name: row for (name, _), row in gate.rows(**kw)[0].items()}


@pytest.mark.parametrize("rate, period", [(None, 10**7), ("100", 10**7), ("17", 58823529), ("97", 10309278), ("1000000000", 1), ("junk", 10**7), ("-5", 10**7), ("1.5", 10**7)])
def test_rate(gate, rate, period):
    """count x floor(1e9 / sampleRate) ns of cpu; a bad rate is 100."""
    extra = {"sampleRate": rate} if rate else {}
    assert gate.ingest(TEXT, format="folded", **extra).status == 200
    assert rows(gate, service="shop") == {"leaf": [3 * period] * 2, "work": [period, 4 * period], "main": [2 * period, 6 * period]}
    answer = gate.get("functions", service="shop")
    assert answer["total"] == 6 * period
    assert (answer["type"]["id"], answer["type"]["unit"]) == ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "nanoseconds")


def test_rate_zero_is_no_scaling(gate):
    assert gate.ingest(TEXT, format="folded", sampleRate="0").status == 200
    answer = gate.get("functions", service="shop")
    assert (answer["total"], answer["type"]["name"], answer["type"]["unit"]) == (6, "samples", "count")


@pytest.mark.parametrize("name, service, type_id, factor", [
    ("shop", "shop", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("shop.cpu", "shop", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("shop.itimer", "shop", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("a.b.cpu{}", "a.b", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("shop.wall", "shop", "wall:wall:nanoseconds:cpu:nanoseconds", 10**7),
    ("shop.alloc_objects", "shop", "memory:alloc_objects:count::", 1),
    ("shop.inuse_space", "shop", "memory:inuse_space:bytes::", 1),
    ("shop.goroutines", "shop", "goroutine:goroutines:count::", 1),
    ("shop.mutex_duration", "shop", "mutex:delay:nanoseconds::", 1),
    ("shop.block_count", "shop", "block:contentions:count::", 1),
    ("shop.exceptions", "shop", "exceptions:samples:count::", 1),
    ("shop.live", "shop", "memory:live:count::", 1),
    ("my.service", "my.service", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("payments.api{}", "payments.api", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
    ("app.cpu{service_name=other}", "other", "process_cpu:cpu:nanoseconds:cpu:nanoseconds", 10**7),
])
def test_suffix(gate, name, service, type_id, factor):
    assert gate.ingest(TEXT, name=name, format="folded").status == 200
    answer = gate.get("functions", service=service)
    assert (answer["total"], answer["type"]["id"]) == (6 * factor, type_id)


@pytest.mark.parametrize("text, counts", [
    (b"a;b 1\r\na;b 2\r\n", {"b": 3, "a": 0}),
    (b"a;b 1", {"b": 1, "a": 0}),
    (b"\n\na;b 1\n\n", {"b": 1, "a": 0}),
    (b"# a comment\n\nmain;foo 3\nmain;foo 2\r\n", {"foo": 5, "main": 0}),
    (b"a frame (x.py:5);other frame 4\n", {"other frame": 4, "a frame (x.py:5)": 0}),
    (b"a;a;b;a 2\n", {"a": 2, "b": 0}),
    ("größe;✓ 1\n".encode(), {"✓": 1, "größe": 0}),
])
def test_lines(gate, text, counts):
    assert gate.ingest(text, format="folded").status == 200
    got = rows(gate, service="shop")
    assert {k: v[0] for k, v in got.items()} == {k: v * 10**7 for k, v in counts.items()}


def test_recursion_counts_once(gate):
    assert gate.ingest(b"a;b;a;b;a 2\n", format="folded").status == 200
    assert rows(gate, service="shop") == {"a": [2 * 10**7] * 2, "b": [0, 2 * 10**7]}


def test_empty_stack(gate):
    """py-spy's ` 1`: a value of no function, part of the total."""
    assert gate.ingest(b" 1\nmain 3\n", format="folded").status == 200
    got, answer = gate.rows(service="shop")
    assert answer["total"] == 4 * 10**7
    assert got.get(("[no stack]", ""), [10**7])[0] == 10**7
    assert sum(v[0] for v in got.values()) + answer["other"]["self"] == 4 * 10**7


@pytest.mark.parametrize("count", [b"-256", b"1.5", b"+3", b"9223372036854775808", b"1e3", b"x", b"0x10"])
def test_bad_counts_name_their_line(gate, count):
    refused(gate.ingest(b"main 1\n\nmain;foo " + count + b"\nmain 1\n", format="folded"), "line 3")
    assert gate.profiles() == []


def test_count_less_line(gate):
    refused(gate.ingest(b"main;foo 3\nmain;bar\nmain 2\n", format="folded"), "line 2")


def test_zero_counts(gate):
    assert gate.ingest(b"main 0\n", format="folded").status == 200
    assert gate.profiles() == []
    assert gate.ingest(b"main 0\nwork 5\n", format="folded").status == 200
    assert gate.get("functions", service="shop")["total"] == 5 * 10**7


def test_not_text(gate):
    refused(gate.ingest(b"main;\xff\xfe 3\n", format="folded"))
    refused(gate.ingest(b"\x1f\x8b\x08\0\0\0", format="folded"))


def test_gzip_is_sniffed(gate):
    """A relay drops the Content-Encoding header, but not the gzip."""
    import gzip

    assert gate.ingest(gzip.compress(TEXT), format="folded").status == 200
    assert gate.ingest(gzip.compress(TEXT), format=None, headers={"Content-Encoding": "gzip"}).status == 200
    gate.until(lambda: gate.get("functions", service="shop")["total"], 12 * 10**7)


def test_saturation(gate):
    assert gate.ingest(b"a 9223372036854775807\nb 9223372036854775807\n", format="folded").status == 200
    assert gate.get("functions", service="shop")["total"] == 2**63 - 1


class TestName:
    @pytest.mark.parametrize("name, service, labels", [
        ("foo{}", "foo", {}),
        ("foo{a=1,}", "foo", {"a": "1"}),
        (" foo { bar = 1 , baz = 2 } ", "foo", {"bar": "1", "baz": "2"}),
        ('foo{a="x"}', "foo", {"a": '"x"'}),
        ("foo{a=b=c}", "foo", {"a": "b=c"}),
        ("foo{a=1,a=2}", "foo", {"a": "2"}),
        ("foo{a.b=1,host.name=x y/z+:}", "foo", {"a.b": "1", "host.name": "x y/z+:"}),
        ("foo{a=1} tail", "foo", {"a": "1"}),
        ("foo{a=1}b=2}", "foo", {"a": "1", "b": "2"}),
        ("foo{region=,cluster=c}", "foo", {"cluster": "c"}),
        ("foo{service_name=two words}", "two words", {}),
    ])
    def test_good(self, gate, name, service, labels):
        assert gate.ingest(TEXT, name=name, format="folded").status == 200
        listed = gate.profiles()[0]
        assert listed["service"] == service
        got = {k: v for k, v in listed["labels"].items() if k not in ("service_name", "app_name", "pyroscope_spy") and not k.startswith("__")}
        assert got == labels

    @pytest.mark.parametrize("name", ["", "{a=b}", "  ", "a\x01b", "foo{a,b=c}", "foo{=c}", "foo{a b=c}", "foo{é=c}"])
    def test_bad(self, gate, name):
        refused(gate.ingest(TEXT, name=name, format="folded"))

    def test_missing(self, gate):
        refused(gate.send("/ingest?format=folded", TEXT), "name")
        refused(gate.send("/ingest", TEXT), "name")

    def test_raw_braces_plus_and_semicolon(self, gate):
        assert gate.send("/ingest?name=foo{a=x+y,b=%7E}&spyName=gospy&units=&aggregationType=&whatever=1", TEXT).status == 200
        labels = gate.profiles()[0]["labels"]
        assert (labels["a"], labels["b"]) == ("x y", "~")

    def test_unknown_format_is_folded(self, gate):
        assert gate.ingest(TEXT, format="xyz").status in (200, 400)


@pytest.mark.parametrize("n, status", [(30, 200), (31, 400)])
def test_only_labels_that_were_sent_count(gate, n, status):
    """limits.labels is about the braces: service_name and pyroscope_spy come on top."""
    name = "app{%s}" % ",".join("l%d=x" % i for i in range(n))
    reply = gate.ingest(b"main 1\n", name=name, format="folded", spyName="rbspy")
    assert reply.status == status and (status == 200 or "limits.labels" in reply.json()["message"])


def test_session_id_is_kept(gate):
    assert gate.ingest(b"main 1\n", name="app{__session_id__=a1,__other__=x}", format="folded").status == 200
    labels = gate.profiles()[0]["labels"]
    assert labels["__session_id__"] == "a1" and "__other__" not in labels
