"""Reading: every endpoint of /api/v1, its errors, exact totals whatever is cut, selectors, text of at most 100 columns."""

import json
import re
import time

import pytest

from bodies import CPU, HEAP, Pprof, Profile, push, simple
from gate import basic

S = 10**9
COMMON = {"from", "until", "service", "type", "total", "average", "profiles", "series", "covered", "samples"}


def own(*names):
    """Frames of a Go program: own code, then library code."""
    return [(n, "/src/shop/%s.go" % n, 10) if "." not in n else (n, "/usr/local/go/src/%s.go" % n.split(".")[0], 20) for n in names]


# (stack root first, samples, labels)
WORK = [
    (("main", "serve", "checkout", "json.Marshal"), 40, {"endpoint": "/pay"}),
    (("main", "serve", "checkout", "json.Marshal", "strconv.Itoa"), 10, {"endpoint": "/pay"}),
    (("main", "serve", "checkout"), 20, {"endpoint": "/pay"}),
    (("main", "serve", "search", "sort.Sort"), 15, {"endpoint": "/find"}),
    (("main", "serve", "search"), 5, {"endpoint": "/find"}),
    (("main", "walk", "walk", "walk"), 7, {}),
    (("runtime.gcBgMarkWorker", "runtime.scanobject"), 3, {}),
]


def shop_profile(factor=1, time_ns=None):
    p = Pprof(time_ns=time_ns)
    for stack, n, labels in WORK:
        p.add(own(*stack), [n * factor, n * factor * 10_000_000], labels)
    return p


@pytest.fixture
def shop(gate):
    """Two pods of a shop, a second service, and the sums a Python reader finds in them."""
    gate.sent = []
    for pod, factor in (("web-1", 1), ("web-2", 3)):
        p = shop_profile(factor)
        assert gate.ingest(p.gz(), name="checkout{env=lab,pod=%s}" % pod, spyName="gospy").status == 200
        gate.sent.append(Profile(p.raw()))
    heap = Pprof(HEAP, 524288, ("space", "bytes")).add(own("main", "load"), [5, 5000, 2, 2000]).add(own("main"), [1, 100, 1, 100])
    assert gate.ingest(heap.gz(), name="checkout{env=lab,pod=web-1}", spyName="gospy").status == 200
    assert gate.ingest(simple("other", 9).gz(), name="billing{env=prod}").status == 200
    return gate


def expected(profiles, index=1):
    rows = {}
    for p in profiles:
        for k, (s, t) in p.functions(index).items():
            row = rows.setdefault(k, [0, 0])
            row[0] += s
            row[1] += t
    return rows


class TestFunctions:
    def test_all_rows(self, shop):
        rows, answer = shop.rows(service="checkout", type="cpu")
        assert rows == expected(shop.sent)
        assert COMMON <= set(answer)
        assert (answer["total"], answer["profiles"], answer["series"]) == (400 * 10**7, 2, 2)
        assert answer["type"] == {"id": "process_cpu:cpu:nanoseconds:cpu:nanoseconds", "name": "cpu", "unit": "nanoseconds", "aggregation": "sum"}
        assert answer["other"] == {"functions": 0, "self": 0, **({"own": answer["other"]["own"]} if "own" in answer["other"] else {})}
        for f in answer["functions"]:
            assert f["self_share"] == pytest.approx(f["self"] / answer["total"], abs=1e-9)
            assert f["total_share"] == pytest.approx(f["total"] / answer["total"], abs=1e-9)

    def test_recursion_counts_once(self, shop):
        rows, _ = shop.rows(service="checkout", type="samples")
        assert rows["walk", "/src/shop/walk.go"] == [28, 28]

    @pytest.mark.parametrize("limit", [1, 2, 5, 100])
    @pytest.mark.parametrize("sort", ["self", "total", "own"])
    def test_cut_leaves_totals_alone(self, shop, limit, sort):
        answer = shop.get("functions", service="checkout", type="cpu", limit=limit, sort=sort)
        assert len(answer["functions"]) == min(limit, 10)
        assert answer["total"] == 400 * 10**7
        assert sum(f["self"] for f in answer["functions"]) + answer["other"]["self"] == answer["total"]
        assert len(answer["functions"]) + answer["other"]["functions"] == 10
        values = [f[sort] for f in answer["functions"]]
        assert values == sorted(values, reverse=True)
        if sort == "own":
            assert sum(f["own"] for f in answer["functions"]) + answer["other"]["own"] + answer["no_own_code"] == answer["total"]

    def test_own_code_is_a_partition(self, shop):
        answer = shop.get("functions", service="checkout", type="samples", sort="own", limit=100)
        found = {f["function"]: f["own"] for f in answer["functions"] if f["own"]}
        assert found == {"checkout": 280, "search": 80, "walk": 28}
        assert answer["no_own_code"] == 12
        flags = {f["function"]: f["own_code"] for f in answer["functions"]}
        assert flags["checkout"] and flags["main"] and not flags["json.Marshal"] and not flags["runtime.scanobject"]

    def test_own_beside_another_order(self, shop):
        answer = shop.get("functions", service="checkout", type="samples", sort="self", own="true", limit=100)
        assert sum(f["own"] for f in answer["functions"]) + answer["no_own_code"] + answer["other"].get("own", 0) == 400

    def test_one_profile(self, shop):
        for p in shop.profiles(service="checkout"):
            if p["labels"]["pod"] == "web-2":
                types = {t["name"]: t for t in shop.get("types", profile=p["id"])["types"]}
                if "cpu" in types:
                    answer = shop.get("functions", profile=p["id"], type="samples", limit=100)
                    assert answer["total"] == 300 and answer["profiles"] == 1

    def test_types_are_never_added_up(self, shop):
        assert shop.get("functions", service="checkout", type="alloc_space")["total"] == 5100
        assert shop.get("functions", service="checkout", type="inuse_objects")["total"] == 3
        assert shop.get("functions", service="checkout")["type"]["name"] == "cpu", "the primary one"


class TestAverage:
    def test_level(self, gate):
        """inuse_* are states: the sum is exact, the level is total x series / profiles."""
        for pod, values in (("a", (100, 300)), ("b", (1000, 3000))):
            for v in values:
                p = Pprof(HEAP, 524288, ("space", "bytes")).add(["main"], [1, 10, 1, v])
                assert gate.ingest(p.gz(), name="s{pod=%s}" % pod).status == 200
        answer = gate.get("functions", service="s", type="inuse_space")
        assert (answer["total"], answer["profiles"], answer["series"], answer["type"]["aggregation"]) == (4400, 4, 2, "average")
        assert answer["average"] == pytest.approx(2200)
        assert gate.get("functions", service="s", type="alloc_space")["type"]["aggregation"] == "sum"


class TestSelectors:
    @pytest.mark.parametrize("match, total", [
        ('{pod="web-1"}', 100), ('{pod="web-2"}', 300), ('{pod!="web-2"}', 100), ('{pod=~"web-.*"}', 400), ('{pod=~"web"}', 0), ('{pod!~"web-1|x"}', 300),
        ('{env="lab",pod="web-1"}', 100), ('{env="lab",pod="nope"}', 0), ("{}", 400), ('{nolabel=""}', 400), ('{nolabel!=""}', 0), ('{pod="web-1",}', 100),
        ("{pod='web-1'}", 100), ("{pod=`web-1`}", 100), ('{"pod"="web-1"}', 100), ('{service_name="checkout"}', 400), ('{service_name="billing"}', 0),
        ('{endpoint="/pay"}', 280), ('{endpoint=~"/.*"}', 360), ('{endpoint="/pay",pod="web-1"}', 70), ('{endpoint=""}', 40), ('{endpoint!="/pay"}', 120),
        (' { pod = "web-1" , env != "x" } ', 100), ('{pod="web\\u002d1"}', 100),
    ])
    def test_good(self, shop, match, total):
        answer = shop.get("functions", service="checkout", type="samples", match=match)
        assert answer["total"] == total

    @pytest.mark.parametrize("match", ["", "{pod}", '{pod="web-1"', '{pod=web-1}', '{="x"}', '{pod=="x"}', '{pod=~"("}', '{pod="x"} y', '{pod="x",,}', '{pod="\\q"}', "{" * 1000])
    def test_bad(self, shop, match):
        reply = shop.read("functions", service="checkout", match=match)
        assert reply.status == 400 and reply.json()["code"] == "invalid_argument" and "match" in reply.json()["message"], reply

    def test_regex_bombs_end(self, shop):
        start = time.monotonic()
        reply = shop.read("functions", service="checkout", match='{pod=~"(a*)*(b*)*(x+x+)+y"}')
        assert reply.status in (200, 400) and time.monotonic() - start < 5

    def test_without_service(self, shop):
        answer = shop.get("functions", type="samples", match='{env="prod"}')
        assert answer["total"] == 9
        assert shop.get("functions", type="samples")["total"] == 409


class TestLists:
    def test_services(self, shop):
        services = shop.get("services")["services"]
        assert [s["service"] for s in services] == ["checkout", "billing"]
        first = services[0]
        assert first["profiles"] == 3 and first["kind"] == "application"
        assert first["first"] <= first["last"]
        assert {"samples", "types"} <= set(first)

    def test_kernel_threads_are_hidden(self, gate):
        p = Pprof(types=(("cpu", "nanoseconds"),)).add(["kthread", "worker"], [5])
        for service in ("kworker/0:1", "checkout"):
            assert gate.push(push([({"__name__": "process_cpu", "service_name": service, "comm": service}, [p.gz()])])).status == 200
        shown = {s["service"] for s in gate.get("services", kernel="true")["services"]}
        assert shown == {"kworker/0:1", "checkout"}

    def test_types(self, shop):
        types = {t["name"]: t for t in shop.get("types", service="checkout")["types"]}
        assert set(types) == {"samples", "cpu", "alloc_objects", "alloc_space", "inuse_objects", "inuse_space"}
        assert types["cpu"]["primary"] and types["cpu"]["total"] == 400 * 10**7 and types["cpu"]["profiles"] == 2
        assert types["cpu"]["group"] == "CPU time" and types["alloc_space"]["group"] == "memory"
        assert types["inuse_space"]["id"] == "memory:inuse_space:bytes:space:bytes"
        assert types["inuse_space"]["aggregation"] == "average" and types["inuse_space"]["total"] == 2100

    def test_labels(self, shop):
        names = shop.get("labels", service="checkout")["names"]
        assert {"env", "pod"} <= set(names) and names == sorted(names)
        assert shop.get("labels/pod", service="checkout")["values"] == ["web-1", "web-2"]
        assert shop.get("labels/env")["values"] == ["lab", "prod"]
        assert shop.get("labels/nothing")["values"] == []

    def test_profiles(self, shop):
        listed = shop.profiles()
        assert len(listed) == 4
        times = [p["time"] for p in listed]
        assert times == sorted(times, reverse=True)
        for p in listed:
            assert re.fullmatch(r"[0-9a-f]{32}", p["id"])
            assert {"duration", "service", "labels", "types", "samples", "bytes", "format"} <= set(p)
            one = shop.get("profiles/" + p["id"])
            one = one.get("profile", one)
            assert one["id"] == p["id"] and one["service"] == p["service"] and one["time"] == p["time"]

    def test_pages(self, gate):
        for i in range(25):
            assert gate.ingest(simple("f%d" % i, 1).gz()).status == 200
        seen, cursor, pages = [], None, 0
        while True:
            answer = gate.get("profiles", limit=7, **({"cursor": cursor} if cursor else {}))
            seen += [p["id"] for p in answer["profiles"]]
            pages += 1
            cursor = answer.get("next")
            if not cursor:
                break
        assert pages == 4 and len(seen) == len(set(seen)) == 25

    def test_rules(self, shop):
        assert shop.get("rules")["rules"]


class TestOverview:
    def test_sentence(self, shop):
        answer = shop.get("overview", service="checkout", type="cpu")
        assert answer["top"]["function"] == "json.Marshal" and answer["top"]["share"] == pytest.approx(0.4)
        assert answer["own"]["function"] == "checkout" and answer["own"]["share"] == pytest.approx(0.7)
        assert "checkout" in answer["sentence"] and re.search(r"40(\.0)? %", answer["sentence"]) and "json.Marshal" in answer["sentence"]
        assert any(c["function"] == "json.Marshal" for c in answer["callees"])

    def test_nothing_there(self, shop):
        answer = shop.get("overview", service="nobody")
        assert answer["total"] == 0 and answer["sentence"]

    def test_text(self, shop):
        text = shop.read("overview", service="checkout", type="cpu", format="text").text
        assert "json.Marshal" in text.splitlines()[0]


class TestFlamegraph:
    def levels(self, answer):
        """[(depth, x, total, self, name)] with absolute x, checked for containment."""
        nodes = []
        for depth, level in enumerate(answer["levels"]):
            end = 0
            assert len(level) % 4 == 0
            for i in range(0, len(level), 4):
                x, total, self_, name = level[i : i + 4]
                x += end
                end = x + total
                assert total >= 0 and self_ >= 0
                nodes.append((depth, x, total, self_, answer["names"][name]))
        return nodes

    @pytest.mark.parametrize("limit", [None, 5, 2])
    def test_levels_add_up(self, shop, limit):
        answer = shop.get("flamegraph", service="checkout", type="cpu", limit=limit)
        assert answer["names"][0] == "total"
        nodes = self.levels(answer)
        assert nodes[0] == (0, 0, answer["total"], 0, "total") and answer["total"] == 400 * 10**7
        assert sum(n[3] for n in nodes) + 0 == answer["total"]
        assert max(n[3] for n in nodes) == answer["max_self"]
        by_depth = {}
        for n in nodes:
            by_depth.setdefault(n[0], []).append(n)
        for depth in range(1, len(by_depth)):
            for n in by_depth[depth]:
                parents = [p for p in by_depth[depth - 1] if p[1] <= n[1] and n[1] + n[2] <= p[1] + p[2]]
                assert len(parents) >= 1, n
        for depth, level in by_depth.items():
            for p in level:
                children = sum(n[2] for n in by_depth.get(depth + 1, []) if p[1] <= n[1] and n[1] + n[2] <= p[1] + p[2])
                assert p[3] + children == p[2], p
        assert set(answer["cut"]) == {"value", "nodes"}
        if limit is None:
            assert answer["cut"] == {"value": 0, "nodes": 0}
        else:
            assert answer["cut"]["nodes"] > 0
            assert sum(n[3] for n in nodes if n[4] == "other") == answer["cut"]["value"]

    def test_order(self, gate):
        """A node's own time first, then its children by name."""
        assert gate.ingest(b"a 1\na;b 2\nc;d 4\n", format="folded", sampleRate="1000000000").status == 200
        answer = gate.get("flamegraph", service="shop")
        nodes = self.levels(answer)
        assert [(d, x, t, s, n) for d, x, t, s, n in nodes] == [(0, 0, 7, 0, "total"), (1, 0, 3, 1, "a"), (1, 3, 4, 0, "c"), (2, 1, 2, 2, "b"), (2, 3, 4, 4, "d")]

    def test_empty(self, shop):
        answer = shop.get("flamegraph", service="nobody")
        assert answer["total"] == 0 and answer["levels"] == [[0, 0, 0, 0]] and answer["names"] == ["total"]

    def test_folded(self, shop):
        reply = shop.read("flamegraph", service="checkout", type="samples", format="folded")
        assert reply.status == 200 and reply.headers["content-type"].startswith("text/plain")
        found = {}
        for line in reply.text.splitlines():
            stack, _, value = line.rpartition(" ")
            found[stack] = found.get(stack, 0) + int(value)
        assert found == {";".join(s): n * 4 for s, n, _ in WORK}

    def test_folded_comes_back_in(self, shop):
        text = shop.read("flamegraph", service="checkout", type="cpu", format="folded").body
        assert shop.ingest(text, name="copy", format="folded", sampleRate="1000000000").status == 200
        rows, answer = shop.rows(service="copy")
        assert answer["total"] == 400 * 10**7
        assert rows["json.Marshal", ""] == [160 * 10**7, 200 * 10**7]

    def test_pprof(self, shop):
        reply = shop.read("flamegraph", service="checkout", type="cpu", format="pprof")
        assert reply.status == 200 and Profile(reply.body).totals["cpu", "nanoseconds"] == 400 * 10**7

    def test_speedscope(self, shop):
        reply = shop.read("flamegraph", service="checkout", type="samples", format="speedscope")
        assert reply.status == 200
        doc = json.loads(reply.body)
        assert doc["$schema"] == "https://www.speedscope.app/file-format-schema.json"
        assert sum(doc["profiles"][0]["weights"]) == 400
        frames = [f["name"] for f in doc["shared"]["frames"]]
        stacks = {}
        for sample, weight in zip(doc["profiles"][0]["samples"], doc["profiles"][0]["weights"]):
            key = ";".join(frames[i] for i in sample)
            stacks[key] = stacks.get(key, 0) + weight
        assert stacks == {";".join(s): n * 4 for s, n, _ in WORK}

    def test_dot(self, gate):
        assert gate.ingest(b'a"b;c\\d 3\n<x>;c\\d 1\n', format="folded", sampleRate="1000000000").status == 200
        reply = gate.read("flamegraph", service="shop", format="dot")
        assert reply.status == 200 and reply.text.lstrip().startswith("digraph")
        assert reply.text.count("{") == reply.text.count("}")


class TestText:
    @pytest.mark.parametrize("path, params", [
        ("functions", {}), ("functions", {"sort": "own"}), ("flamegraph", {}), ("overview", {}), ("services", {}), ("types", {}), ("profiles", {}), ("labels", {}),
        ("function", {"function": "checkout", "file": "/src/shop/checkout.go"}),
    ])
    def test_fits(self, shop, path, params):
        long = Pprof().add([("deep/" * 60 + "fn%d" % i, "/x/" * 60 + "f.go", 5) for i in range(70)], [1, 10**7])
        assert shop.ingest(long.gz(), name="checkout{pod=%s}" % ("p" * 300)).status == 200
        for reply in (shop.read(path, service="checkout" if path != "services" else None, format="text", **params),
                      shop.read(path, {"Accept": "text/plain"}, service="checkout" if path != "services" else None, **params)):
            assert reply.status == 200, reply
            assert reply.headers["content-type"].startswith("text/plain")
            assert reply.text.endswith("\n")
            for line in reply.text.splitlines():
                assert len(line) <= 100, line

    def test_functions(self, shop):
        lines = shop.read("functions", service="checkout", type="cpu", format="text", limit=3).text.splitlines()
        assert "checkout" in lines[0] and "cpu" in lines[0]
        assert re.search(r"self\s+total", lines[1])
        assert re.match(r"\s*40(\.0)? %\s+50(\.0)? %.*json\.Marshal", lines[2]), lines
        assert any("more" in line for line in lines[5:])

    def test_controls_are_escaped(self, gate):
        assert gate.ingest("a\x1b[31mred;b\x9b1m 3\n".encode(), format="folded").status == 200
        for path in ("functions", "flamegraph", "overview"):
            body = gate.read(path, service="shop", format="text").text
            assert not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in body), (path, body)
        assert {n for n, _ in gate.rows(service="shop")[0]} == {"a\x1b[31mred", "b\x9b1m"}


class TestFunction:
    def test_callers_and_callees(self, shop):
        answer = shop.get("function", service="checkout", type="samples", function="checkout", file="/src/shop/checkout.go")
        callers = {c["function"]: c["value"] for c in answer["callers"]}
        callees = {c["function"]: c["value"] for c in answer["callees"]}
        assert callers == {"serve": 280} and callees == {"json.Marshal": 200}

    def test_library_function_names_its_own_caller(self, shop):
        answer = shop.get("function", service="checkout", type="samples", function="json.Marshal", file="/usr/local/go/src/json.go")
        caller = answer["own_caller"]
        assert (caller["function"] if isinstance(caller, dict) else caller) == "checkout"

    def test_recursive_edges_count_once(self, shop):
        answer = shop.get("function", service="checkout", type="samples", function="walk", file="/src/shop/walk.go")
        assert {c["function"]: c["value"] for c in answer["callers"]} == {"main": 28, "walk": 28}


class TestErrors:
    @pytest.mark.parametrize("path, params, word", [
        ("functions", {"nonsense": "1"}, "nonsense"), ("functions", {"sort": "color"}, "sort"), ("functions", {"limit": "-1"}, "limit"), ("functions", {"limit": "x"}, "limit"),
        ("functions", {"format": "xml"}, "format"), ("flamegraph", {"format": "png"}, "format"), ("services", {"kernel": "perhaps"}, "kernel"),
        ("functions", {"profile": "xyz"}, "profile"), ("function", {}, "function"), ("profiles", {"cursor": "%%%"}, "cursor"),
    ])
    def test_400_names_the_parameter(self, shop, path, params, word):
        reply = shop.read(path, **params)
        assert reply.status == 400 and reply.json()["code"] == "invalid_argument", reply
        assert word in reply.json()["message"]

    def test_unknown_service_is_empty(self, shop):
        for path in ("functions", "flamegraph", "overview", "types", "profiles", "labels"):
            answer = shop.get(path, service="nobody")
            assert all(not v for k, v in answer.items() if k in ("functions", "types", "profiles", "names") and path != "flamegraph")

    def test_unknown_type_is_400_or_empty(self, shop):
        reply = shop.read("functions", service="checkout", type="nothing:of:the:kind:x")
        assert reply.status in (200, 400)

    def test_ambiguous_type(self, gate):
        p = simple(value=3).gz()
        for name in ("process_cpu", "other_cpu"):
            assert gate.push(push([({"__name__": name, "service_name": "s"}, [p])])).status == 200
        reply = gate.read("functions", service="s", type="cpu")
        assert reply.status == 400 and "type" in reply.json()["message"]
        assert gate.get("functions", service="s", type="other_cpu:cpu:nanoseconds:cpu:nanoseconds")["total"] == 3

    def test_missing_upload(self, shop):
        for path in ("profiles/" + "0" * 32, "profiles/" + "0" * 32 + "/original", "profiles/" + "0" * 32 + "/pprof"):
            reply = shop.read(path)
            assert reply.status == 404 and reply.json()["code"] == "not_found"
        for path in ("profiles/xyz", "profiles/" + "0" * 32 + "/nothing"):
            assert shop.read(path).status in (400, 404)

    def test_encoded_parameters(self, shop):
        assert shop.ingest(simple(value=4).gz(), name="x{service_name=a b&c/ü}").status == 200
        assert shop.get("functions", service="a b&c/ü", type="samples")["total"] == 4
        for bad in ("/api/v1/functions?service=%zz", "/api/v1/functions?service=%ff"):
            assert shop.request("GET", bad, None, basic("", shop.reader)).status in (200, 400)


class TestTimeline:
    def test_points_add_up(self, shop):
        answer = shop.get("timeline", service="checkout", type="samples", step="1m")
        assert sum(v for s in answer["series"] for _, v in s["points"]) == 400
        by = shop.get("timeline", service="checkout", type="samples", step="1m", by="pod")
        sums = {s["labels"]["pod"]: sum(v for _, v in s["points"]) for s in by["series"]}
        assert sums == {"web-1": 100, "web-2": 300}


def test_concurrent_reading_and_writing(gate):
    """Totals seen while uploads go on only ever grow, by whole uploads."""
    import concurrent.futures

    def write(n):
        return [gate.ingest(simple("f%d-%d" % (n, i), 10).gz()).status for i in range(15)]

    def read(_):
        seen = []
        for _ in range(15):
            seen.append(gate.get("functions", service="shop", type="samples")["total"])
        return seen

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, n) for n in range(4)]
        readers = [pool.submit(read, n) for n in range(4)]
        assert all(s == 200 for w in writers for s in w.result())
        for r in readers:
            seen = r.result()
            assert seen == sorted(seen) and all(v % 10 == 0 for v in seen)
    assert gate.get("functions", service="shop", type="samples")["total"] == 600


def test_merge_is_every_type(gate):
    for i in range(3):
        assert gate.ingest(Pprof(CPU).add(["main", "f%d" % i], [i + 1, (i + 1) * 10]).gz()).status == 200
    assert Profile(gate.read("merge.pb.gz", service="shop").body).totals == {("samples", "count"): 6, ("cpu", "nanoseconds"): 60}
