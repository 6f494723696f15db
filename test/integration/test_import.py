"""`flamegate import`: what an embedded store holds, carried over into another store, exactly and as often as one likes."""

import os
import shutil

import pytest

from bodies import Pprof, push, simple
from corpus import captures
from gate import flamegate


def answers(gate):
    """What people see of everything, but for when they asked."""
    out = {}
    names = [s["service"] for s in gate.get("services", from_="now-20d", kernel="true")["services"]]
    for path, service in [("services", None)] + [(p, n) for n in names for p in ("types", "labels", "flamegraph", "functions")]:
        out[path, service] = gate.get(path, service=service, from_="now-20d", limit=100000)
        for f in out[path, service].get("functions", []):
            del f["line"]  # without a start line: that of some frame
        del out[path, service]["from"], out[path, service]["until"], out[path, service]["covered"]
    for name in names:
        out["profiles", name] = [{k: v for k, v in p.items() if k != "stored"} for p in gate.profiles(service=name, from_="now-20d")]
    return out


@pytest.fixture
def old(make_gate):
    """An embedded store with the corpus, siblings, a lost answer and two projects in it; stopped."""
    gate = make_gate('samples: "sqlite:"\naccept_window: off\nretention: { default: 90d }\n')
    for c in captures():
        if c.taken:
            for payload in c.inner()[:1]:
                gate.ingest(payload, name=c.name.split("/")[0], format="folded" if c.payload == "folded" else "pprof", **{"from": "now"})
    body = push([({"__name__": "process_cpu", "service_name": "twins"}, [simple(value=5).gz()])])
    assert [gate.push(body).status for _ in range(3)] == [200] * 3
    retried = simple("lost", 9).gz()
    for _ in range(2):
        gate.wire().send(b"POST /ingest?name=lost&format=pprof HTTP/1.1\r\nHost: x\r\nx-flamegate-token: %s\r\nContent-Length: %d\r\n\r\n%s" % (gate.key.encode(), len(retried), retried)).close()
    gate.settled()
    assert gate.ingest(retried, name="lost").status == 200
    other = gate.create("server", "other", "--project", "other")
    gate.other = gate.create("reader", "other-reader", "--project", "other")
    gate.run("key", "list")
    gate.until(lambda: gate.get("functions", service="lost")["total"], 9)
    gate.stop()
    gate.start()
    assert gate.ingest(simple(value=77).gz(), name="theirs", key=other).status == 200
    gate.until(lambda: gate.get("functions", service="twins")["total"], 15)
    gate.before = answers(gate)
    gate.stop()
    return gate


def moved(make_gate, old, samples):
    """A gateway on another store, with the keys and the hash key of the old one."""
    new = make_gate("accept_window: off\nretention: { default: 90d }\n", start=False, keys=False, samples=samples)
    shutil.copy(old.keys_file, new.keys_file)
    os.makedirs(os.path.join(new.dir, "data"))
    shutil.copy(os.path.join(old.dir, "data", "hash.key"), os.path.join(new.dir, "data", "hash.key"))
    new.key, new.reader, new.admin = old.key, old.reader, old.admin
    return new


@pytest.mark.parametrize("to", ["postgres", "sqlite"])
def test_everything_comes_along(make_gate, old, postgres, to):
    new = moved(make_gate, old, postgres.create() if to == "postgres" else "sqlite:")
    for round_ in range(2):  # the second changes nothing
        done = new.run("import", os.path.join(old.dir, "data"), timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("imported ") and int(done.stdout.split()[1]) > 30, done.stdout
    new.start()
    after = answers(new)
    assert after.keys() == old.before.keys()
    for what in after:
        assert after[what] == old.before[what], what
    assert new.get("functions", service="lost")["total"] == 9
    assert new.read("functions", key=old.other, service="theirs").json()["total"] == 77


def test_says_what_is_wrong(make_gate, old, tmp_path):
    new = moved(make_gate, old, "sqlite:")
    data = os.path.join(old.dir, "data")
    done = new.run("import", tmp_path / "nothing")
    assert done.returncode == 1 and "nothing" in done.stderr, done.stderr
    os.remove(os.path.join(new.dir, "data", "hash.key"))
    done = new.run("import", data)
    assert done.returncode == 1 and "another hash_key_file" in done.stderr, done.stderr
    old.start()
    shutil.copy(os.path.join(old.dir, "data", "hash.key"), os.path.join(new.dir, "data", "hash.key"))
    done = new.run("import", data)
    assert done.returncode == 1 and "stop its gateway" in done.stderr, done.stderr
    assert flamegate("import").returncode == 2
