"""`go tool pprof` opens what we give back, the original, the rebuilt and the merged one, and its sums are ours."""

import gzip
import os
import re
import shutil
import subprocess

import pytest

from bodies import CPU, HEAP, Pprof, Profile, sha256
from corpus import captures
from postgres import OVER_POSTGRES

from test_corpus import WINDOW, find_new, lab  # noqa: F401  (lab is a fixture)

GO = shutil.which("go") or ("/usr/lib/go/bin/go" if os.path.exists("/usr/lib/go/bin/go") else None)
pytestmark = pytest.mark.skipif(GO is None, reason="no Go toolchain: `make setup` installs golang-go")


def drops_empty_stacks():
    """Older tools leave out samples without a location (Debian 12's Go 1.19 does)."""
    said = subprocess.run([GO, "version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.search(r"go(\d+)\.(\d+)", said).groups())) < (1, 20)


class Tool:
    """What `go tool pprof -raw` and `-top` say of one file."""

    def __init__(self, path):
        self.path = str(path)
        self.sums = None

    def run(self, *args):
        env = dict(os.environ, PPROF_NO_BROWSER="1", PPROF_TMPDIR=os.path.dirname(self.path))
        done = subprocess.run([GO, "tool", "pprof", *args, self.path], capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    def totals(self):
        """(type, unit) -> sum over -raw's sample lines."""
        if self.sums is not None:
            return self.sums
        lines = iter(self.run("-raw").splitlines())
        for line in lines:
            if line == "Samples:":
                break
        names = [tuple(re.sub(r"\[dflt\]", "", n).split("/")) for n in next(lines).split()]
        sums = [0] * len(names)
        for line in lines:
            if line == "Locations":
                break
            found = re.match(r"((?:\s*-?\d+)+):", line)
            if found:
                for i, v in enumerate(found.group(1).split()):
                    sums[i] += int(v)
        self.sums = dict(zip(names, sums))
        return self.sums

    def top(self, index, unit):
        """function -> (flat, cum) of everything, in base units."""
        text = self.run("-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-sample_index=" + index, "-unit=" + unit)
        rows = {}
        for line in text.splitlines():
            found = re.match(r"\s*(-?[\d.]+)(?:ns|B)?\s+\S+%\s+\S+%\s+(-?[\d.]+)(?:ns|B)?\s+\S+%\s{2}(.*)", line)
            if found:
                name = re.sub(r" \(inline\)$", "", found.group(3))
                flat, cum = rows.get(name, (0, 0))
                rows[name] = (flat + float(found.group(1)), cum + float(found.group(2)))
        return rows


def fetch(gate, tmp_path, path, **params):
    reply = gate.read(path, **params)
    assert reply.status == 200, (path, reply)
    file = tmp_path / (path.replace("/", "-") + ".pb.gz")
    file.write_bytes(reply.body)
    return reply, Tool(file)


def compare(gate, tool, types, **params):
    """The tool's totals and every function's flat and cum are what our list says."""
    sums = tool.totals()
    for t in types:
        rows, answer = gate.rows(type=t["id"], **params)
        unseen = rows.get(("[no stack]", ""), (0, 0))[0] if drops_empty_stacks() else 0
        assert sums[t["name"], t["unit"]] + unseen == answer["total"] == t["total"], t
    unit = {"nanoseconds": "ns", "bytes": "B"}.get(t["unit"], t["unit"])
    top = tool.top(t["name"], unit)
    by_name = {}
    for (name, _), (own, total) in rows.items():
        by_name.setdefault(name, []).append((own, total))
    checked = 0
    for name, ours in by_name.items():
        if len(ours) == 1 and name in top and "0x" not in name:
            assert top[name] == ours[0], (t["id"], name)
            checked += 1
    assert checked >= len(by_name) // 2 or not by_name
    return checked


CHOSEN = ["pyroscope-go-1.5.0/001", "pyroscope-go-1.5.0/002", "pyroscope-node-0.6.4/001", "pyroscope-node-0.2.9/001", "pyroscope-python-1.4.0/001",
          "alloy-1.18.0-devel/005", "alloy-1.18.0-devel/007", "push-connect-go-1.21.1/010", "pyroscope-rust-2.1.5/001", "curl-7.88.1/009"]


def test_captures(lab, tmp_path):  # noqa: F811
    known, checked = {}, 0
    for capture in captures():
        if capture.name not in CHOSEN:
            continue
        assert capture.replay(lab).status == 200
        new = find_new(lab, known, len(capture.profiles()))
        known.update(new)
        inner = {sha256(b): b for b in capture.inner()}
        for ident in new:
            types = lab.get("types", profile=ident)["types"]
            if OVER_POSTGRES:
                assert lab.original(ident) is None
            else:
                reply, original = fetch(lab, tmp_path, "profiles/%s/original" % ident)
                assert sha256(reply.body) in inner
                assert reply.headers["content-type"] == "application/octet-stream"
                assert reply.headers["content-disposition"].startswith("attachment")
                assert reply.headers["x-content-type-options"] == "nosniff"
            reply, rebuilt = fetch(lab, tmp_path, "profiles/%s/pprof" % ident)
            assert reply.body[:2] == b"\x1f\x8b"
            checked += compare(lab, rebuilt, types, profile=ident)
            if capture.payload != "folded" and not OVER_POSTGRES:
                theirs, ours = original.totals(), rebuilt.totals()
                if capture.name != "pyroscope-node-0.2.9/001":  # microseconds became nanoseconds
                    assert theirs == ours, capture.name
                assert sum(theirs.values()) <= sum(ours.values())
    assert checked > 200

    # One merged file of a service in the window holds all types of all its profiles.
    types = lab.get("types", service="lab/shop", **WINDOW)["types"]
    assert len(types) > 5
    for t in types:
        reply, merged = fetch(lab, tmp_path, "merge.pb.gz", service="lab/shop", type=t["id"], **WINDOW)
        assert Profile(reply.body).totals[t["name"], t["unit"]] == t["total"]
    assert merged.totals()[t["name"], t["unit"]] == t["total"]
    compare(lab, merged, [t], service="lab/shop", **WINDOW)


def test_merge_of_many(gate, tmp_path):
    """Three uploads with common stacks, labels, inlining and recursion; merged, the tool and our own reader agree."""
    whole = {}
    for i in range(3):
        p = Pprof(HEAP, 524288, ("space", "bytes"))
        p.add(["main", ("work", "w.go", 10 + i), ("alloc", "a.go", 3)], [1, 100, 1, 50 + i], {"region": "eu"}, {"bytes": 48})
        p.add(["main", "main", ("work", "w.go", 10), "main"], [2, 7 * i, 0, 0])
        p.add([p.inlined(["tiny", "small"]), "main"][::1], [3, 30, 0, 0])
        assert gate.ingest(p.gz()).status == 200
        for k, v in Profile(p.raw()).totals.items():
            whole[k] = whole.get(k, 0) + v
    reply, tool = fetch(gate, tmp_path, "merge.pb.gz", service="shop")
    assert tool.totals() == Profile(reply.body).totals == whole
    types = gate.get("types", service="shop")["types"]
    assert len(types) == 4
    for t in types:
        compare(gate, tool, [t], service="shop")
    back = Profile(reply.body)
    assert any(("region", "eu") in labels for _, labels, _ in back.samples)
    assert any(("bytes", 48) in labels for _, labels, _ in back.samples)


def test_opens_by_url(make_gate, tmp_path):
    """As the documentation says: go tool pprof http://…/merge.pb.gz"""
    gate = make_gate("anonymous: { project: default, may: [read] }\n")
    assert gate.ingest(Pprof(CPU).add(["main", "work"], [3, 30_000_000]).gz()).status == 200
    url = "http://%s:%d/api/v1/merge.pb.gz?service=shop" % gate.address
    env = dict(os.environ, PPROF_TMPDIR=str(tmp_path))
    done = subprocess.run([GO, "tool", "pprof", "-top", url], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    assert "work" in done.stdout and "30ms" in done.stdout


@pytest.mark.embedded("originals are off")
def test_original_without_gzip_and_with(gate):
    raw = Pprof().add(["main"], 3).raw()
    for body in (raw, gzip.compress(raw, 9, mtime=5), gzip.compress(raw[:20]) + gzip.compress(raw[20:])):
        before = {p["id"] for p in gate.profiles()}
        assert gate.ingest(body, name="s%d" % len(before)).status == 200
        (ident,) = {p["id"] for p in gate.profiles()} - before
        assert gate.read("profiles/%s/original" % ident).body == body


def test_originals_off(make_gate):
    gate = make_gate("originals: { max_bytes: 0B }\n")
    assert gate.ingest(Pprof().add(["main"], 3).gz()).status == 200
    ident = gate.profiles()[0]["id"]
    reply = gate.read("profiles/%s/original" % ident)
    assert reply.status == 404 and reply.json()["code"] == "not_found" and "off" in reply.json()["message"]
    assert Profile(gate.read("profiles/%s/pprof" % ident).body).totals["cpu", "nanoseconds"] == 3
