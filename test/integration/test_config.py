"""The configuration: check-config, the sample, --help, reloading by SIGHUP, and the command line around it."""

import json
import os
import re
import signal
import time

import pytest

from bodies import block, simple
from gate import ROOT, bearer, flamegate

SAMPLE = os.path.join(ROOT, "conf", "flamegate.yaml")
GOOD = "limits: { body: 2KiB }\n"


def check(tmp_path, text, **kw):
    path = tmp_path / "conf.yaml"
    path.write_text(text)
    return flamegate("--config", path, "check-config", **kw)


def test_defaults_are_good():
    assert flamegate("check-config", cwd="/tmp").returncode == 0


def test_sample_is_good():
    done = flamegate("--config", SAMPLE, "check-config")
    assert done.returncode == 0, done.stderr


def test_sample_names_every_option():
    """Each option of --help stands in the sample with the default that --help shows."""
    help_text = flamegate("--help").stdout
    with open(SAMPLE) as f:
        sample = f.read()
    for name in ("listen", "admin", "data_dir", "accept_window", "retention", "memory", "limits", "timeouts", "drain_delay", "log"):
        assert name in help_text and name in sample, name


@pytest.mark.parametrize("text", [
    "", "# nothing\n", "memory: 64MiB\n", "listen: [127.0.0.1:1, '127.0.0.1:2']\n", "admin: off\n", "accept_window: off\n",
    "accept_window: { past: off, future: 1h }\n", "retention: { default: 3d, projects: { a: 1d }, services: { checkout: 30d, a/b: 7d } }\n",
    "roles: [ingest]\n", "samples: 'null:'\n", '{"memory": "64MiB", "log": {"format": "json"}}', "data_dir: ${HOME}/x\n", "timeouts: { head: 500ms, body: 1m }\n",
])
def test_good(tmp_path, text):
    done = check(tmp_path, text)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text, where, word", [
    ("nonsense: 1\n", "1:1", "nonsense"),
    ("limits:\n  bodi: 1MiB\n", "2:3", "bodi"),
    ("memory: 64MiB\nmemory: 32MiB\n", "2:1", "memory"),
    ("memory: 64\n", "1:9", ""),
    ("memory: 64 parsecs\n", "1:9", ""),
    ("memory: -1MiB\n", "1:9", ""),
    ("memory: 99999999999999999999GiB\n", "1:9", ""),
    ("drain_delay: 10\n", "1:14", ""),
    ("drain_delay: 10MiB\n", "1:14", ""),
    ("drain_delay: [10s]\n", "1:14", ""),
    ("limits: 5\n", "1:9", ""),
    ("listen: nowhere\n", "1:9", ""),
    ("listen: 127.0.0.1:99999\n", "1:9", ""),
    ("log: { level: loud }\n", "1:15", ""),
    ("roles: [ingest, dance]\n", "1:17", ""),
    ("memory: &a 64MiB\n", "1:9", ""),
    ("memory: *a\n", "1:9", ""),
    ("memory: !!str 64MiB\n", "1:9", ""),
    ("data_dir: ${FLAMEGATE_NOT_SET}\n", "1:11", "FLAMEGATE_NOT_SET"),
    ("samples: oracle://x\n", "1:10", ""),
    ("- a\n- b\n", "1:1", ""),
    ("memory: 64MiB\n---\nmemory: 32MiB\n", "", ""),
    ("memory: [\n", "", ""),
    ("memory:\t64MiB\n\t- x\n", "", ""),
])
def test_bad(tmp_path, text, where, word):
    done = check(tmp_path, text)
    assert done.returncode == 78, (done.stdout, done.stderr)
    said = done.stdout + done.stderr
    assert re.search(r"conf\.yaml:\d+:\d+: ", said), said
    if where:
        assert "conf.yaml:%s: " % where in said, said
    assert word in said


def test_every_error_is_listed(tmp_path):
    done = check(tmp_path, "nonsense: 1\nmemory: lots\nlimits:\n  body: 5 cows\n  depth: 0\ntimeouts: { head: never }\n")
    assert done.returncode == 78
    lines = re.findall(r"conf\.yaml:(\d+):", done.stdout + done.stderr)
    assert sorted(set(lines)) == ["1", "2", "4", "5", "6"]


def test_environment(tmp_path):
    assert check(tmp_path, "memory: ${MY_MEMORY}\n", env={"MY_MEMORY": "64MiB"}).returncode == 0
    assert check(tmp_path, "memory: ${MY_MEMORY}\n", env={"MY_MEMORY": "64MiB\nlisten: x"}).returncode == 78
    assert flamegate("check-config", env={"FLAMEGATE_CONFIG": "/nonexistent.yaml"}).returncode == 78
    bad = tmp_path / "bad.yaml"
    bad.write_text("x: 1\n")
    assert flamegate("check-config", env={"FLAMEGATE_CONFIG": str(bad)}).returncode == 78


def test_file_twins(tmp_path):
    address = tmp_path / "address"
    address.write_text("null:\n")
    assert check(tmp_path, "samples_file: %s\n" % address).returncode == 0
    assert check(tmp_path, "samples_file: %s.not\n" % address).returncode == 78
    assert check(tmp_path, "samples_file: %s\nsamples: 'null:'\n" % address).returncode == 78


def test_serve_refuses_a_bad_one(tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text("nonsense: 1\n")
    done = flamegate("--config", path, "serve")
    assert done.returncode == 78 and "nonsense" in done.stderr


def test_command_line():
    assert flamegate("--help").returncode == 0
    assert "check-config" in flamegate("--help").stdout
    done = flamegate("version")
    assert done.returncode == 0 and re.search(r"\d", done.stdout)
    for args in ([], ["dance"], ["serve", "--nonsense"], ["--config"], ["key"], ["key", "dance"]):
        done = flamegate(*args)
        assert done.returncode == 2, (args, done.returncode, done.stderr)
        assert done.stderr


def test_healthcheck(make_gate):
    gate = make_gate()
    with open(gate.conf_file) as f:
        text = f.read()
    text = text.replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:%d" % gate.address[1]).replace("admin: 127.0.0.1:0", "admin: 127.0.0.1:%d" % gate.admin_address[1])
    with open(gate.conf_file, "w") as f:
        f.write(text)
    assert gate.run("healthcheck").returncode == 0
    gate.stop()
    assert gate.run("healthcheck").returncode == 1


def test_port_in_use_is_an_error_not_a_crash(gate, tmp_path):
    path = tmp_path / "conf.yaml"
    path.write_text("listen: 127.0.0.1:%d\nadmin: off\ndata_dir: %s\nkeys_file: %s\nhash_key_file: %s/k\n" % (gate.address[1], tmp_path, gate.keys_file, tmp_path))
    done = flamegate("--config", path, "serve")
    assert done.returncode == 1 and str(gate.address[1]) in done.stderr


class TestReload:
    def hup(self, gate):
        before = os.path.getsize(gate.log_file)
        gate.process.send_signal(signal.SIGHUP)
        gate.until(lambda: "reload" in gate.log(before).lower() or "config" in gate.log(before).lower(), True)
        return gate.log(before)

    def test_good(self, gate):
        body = simple().raw() + block(99, bytes(2000))
        assert gate.ingest(body).status == 200
        with open(gate.conf_file, "a") as f:
            f.write(GOOD)
        self.hup(gate)
        gate.until(lambda: gate.ingest(body).status, 413)
        assert gate.metrics()["flamegate_config_last_reload_successful"] == 1
        assert gate.ingest(simple().gz()).status == 200

    def test_bad_keeps_the_old_one(self, gate):
        with open(gate.conf_file, "a") as f:
            f.write("limits: { body: 2KiB, depth: 0 }\n")
        gate.errors_expected.append("conf")
        said = self.hup(gate)
        gate.until(lambda: gate.metrics()["flamegate_config_last_reload_successful"], 0)
        assert re.search(r"conf\.yaml:\d+:\d+", said + gate.log())
        assert gate.ingest(b"main;" + b"x" * 5000 + b" 1\n", format="folded").status == 200
        gate.configure()
        gate.process.send_signal(signal.SIGHUP)
        gate.until(lambda: gate.metrics()["flamegate_config_last_reload_successful"], 1)

    def test_under_load(self, gate):
        """Reloads between requests of open connections: nothing is refused, nothing lost."""
        import threading

        stop = threading.Event()
        sent = []

        def client():
            while not stop.is_set():
                sent.append(gate.ingest(b"main;work 1\n", format="folded").status)

        threads = [threading.Thread(target=client) for _ in range(3)]
        for t in threads:
            t.start()
        for _ in range(10):
            gate.process.send_signal(signal.SIGHUP)
            time.sleep(0.05)
        stop.set()
        for t in threads:
            t.join()
        assert set(sent) == {200} and len(sent) > 10
        gate.until(lambda: gate.get("functions", service="shop")["total"], len(sent) * 10**7)

    def test_restart_only_options_are_named(self, gate):
        gate.configure("prefixes: [/other]\n")
        assert "prefixes" in self.hup(gate)


def test_key_creation_needs_no_running_gateway(make_gate):
    gate = make_gate(start=False)
    assert os.path.exists(gate.keys_file)
    gate.start()
    assert gate.request("GET", "/otlp/v1/validate", None, bearer(gate.key)).status == 200


def test_log_as_json(make_gate):
    gate = make_gate("log: { format: json, level: debug }\n")
    assert gate.ingest(simple().gz()).status == 200
    assert gate.ingest(b"junk \xff").status == 400
    gate.stop()
    lines = [json.loads(line) for line in gate.log().splitlines()]
    assert {"time", "level", "event"} <= set(lines[0])
    assert {"listening", "serving"} <= {line["event"] for line in lines}
    assert gate.key not in gate.log()


def test_null_store(make_gate):
    """For benchmarks: takes everything, keeps nothing."""
    gate = make_gate("samples: 'null:'\nshares: 'null:'\n")
    assert gate.ingest(simple().gz()).status == 200
    assert gate.get("functions", service="shop")["total"] == 0
    assert gate.profiles() == []


def test_one_role(make_gate):
    gate = make_gate("roles: [ingest]\n")
    assert gate.ingest(simple().gz()).status == 200
    assert gate.read("services").status == 404
    gate.stop()
    gate.configure("roles: [query]\n")
    gate.start()
    assert gate.ingest(simple().gz()).status == 404
    gate.until(lambda: gate.get("functions", service="shop", type="cpu")["total"], 7)
