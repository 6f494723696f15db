"""/metrics: every line by a strict reading of the text format, the names of operations.md 3, and as many rows whatever clients send."""

import http.client
import math
import re

from bodies import simple
from gate import basic

SAMPLE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\n"])*",?)*)\})? (-?[\d.]+(?:e[+-]?\d+)?|NaN|[+-]Inf)')
NAMES = """requests_total request_duration_seconds request_body_bytes received_bytes_total profiles_received_total profiles_accepted_total
profiles_refused_total profiles_failed_total store_groups_total store_group_duration_seconds store_healthy spool_bytes loop_lag_seconds
connections_opened_total connections_closed_total inflight_requests inflight_bytes inflight_bytes_limit queue_size queue_capacity connections
config_last_reload_successful config_last_reload_success_timestamp_seconds ready build_info""".split()
PROCESS = "cpu_seconds_total resident_memory_bytes virtual_memory_bytes open_fds max_fds start_time_seconds".split()


def scrape(gate):
    c = http.client.HTTPConnection(*gate.admin_address, timeout=10)
    c.request("GET", "/metrics")
    text = c.getresponse().read().decode()
    c.close()
    return text


def parse(text):
    """family -> {(name, labels): value}; asserts the format."""
    families, kinds, helps, now = {}, {}, set(), None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            now = line.split(" ", 3)[2]
            assert now not in helps and line.split(" ", 3)[3], line
            helps.add(now)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == now and name not in kinds and kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
            kinds[name], families[name] = kind, {}
        else:
            m = SAMPLE.fullmatch(line)
            assert m, "not a sample: %r" % line
            suffixes = ("_bucket", "_sum", "_count") if kinds[now] == "histogram" else ("",)
            assert m[1] in [now + s for s in suffixes], "%s stands under %s" % (m[1], now)
            row = (m[1], tuple(sorted(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[2] or ""))))
            assert row not in families[now], "twice: " + line
            families[now][row] = float(m[3])
    assert helps == set(kinds)
    for name, kind in kinds.items():
        if kind == "histogram":
            check_histogram(name, families[name])
    return families


def check_histogram(name, rows):
    series = {}
    for (row, labels), value in rows.items():
        if row == name + "_bucket":
            bound = dict(labels)["le"]
            series.setdefault(tuple(x for x in labels if x[0] != "le"), []).append((float(bound.replace("+Inf", "inf")), value))
    for labels, buckets in series.items():
        assert buckets == sorted(buckets) and buckets[-1][0] == math.inf and [v for _, v in buckets] == sorted(v for _, v in buckets)
        assert rows[(name + "_count", labels)] == buckets[-1][1] and (name + "_sum", labels) in rows


def test_names_and_format(gate):
    body = simple("f", 1).gz()
    assert gate.ingest(body).status == 200 and gate.ingest(b"no profile").status == 400 and gate.push(b"\xff").status == 400
    families = parse(scrape(gate))
    missing = [n for n in NAMES if "flamegate_" + n not in families] + [n for n in PROCESS if "process_" + n not in families]
    assert not missing, missing
    value = lambda name, **labels: families[name.split("!")[0]][(name.replace("!", ""), tuple(sorted(labels.items())))]
    assert value("flamegate_received_bytes_total", route="ingest", stage="wire") == len(body) + len(b"no profile")
    assert value("flamegate_received_bytes_total", route="ingest", stage="decompressed") >= len(body) / 2
    assert value("flamegate_request_body_bytes!_count", route="ingest", stage="wire") >= 1
    assert 0 < value("process_open_fds") < value("process_max_fds") and value("process_resident_memory_bytes") > 1 << 20
    with open("/proc/%d/stat" % gate.process.pid) as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/stat") as f:
        boot = int(re.search(r"btime (\d+)", f.read())[1])
    assert abs(value("process_start_time_seconds") - boot - ticks / 100) < 2


def test_rows_do_not_grow_with_what_clients_say(gate):
    """10,000 requests of different paths, methods, agents, services, users and formats, accepted and refused: the same rows as for a few."""
    body = simple("f", 1).gz()

    def send(c, i):
        for method, path, data in (("GET", "/p%d" % i, None), ("POST", "/ingest?name=s%d&format=f%d" % (i, i), b"x"), ("POST", "/ingest?name=s%d" % i, body if i % 20 == 0 else b"x"),
                                   ("M%d" % i if i % 50 == 0 else "DELETE", "/api/v1/x%d" % i, None)):
            c.request(method, path, data, {**AUTH, "User-Agent": "agent/%d" % i, "X-Scope-OrgID": "tenant%d" % i, "Accept": "x/%d" % i})
            r = c.getresponse()
            r.read()
            if r.will_close:
                c.close()


    AUTH = basic("any", gate.key)
    c = http.client.HTTPConnection(*gate.address, timeout=30)
    for i in range(100):
        send(c, i)
    scrape(gate)  # has rows of its own
    before = {row for rows in parse(scrape(gate)).values() for row in rows}
    for i in range(100, 2600):
        send(c, i)
    c.close()
    after = {row for rows in parse(scrape(gate)).values() for row in rows}
    assert after == before, sorted(after ^ before)[:10]
