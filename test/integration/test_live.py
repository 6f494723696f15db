"""Real SDKs profile small programs against the real binary: the overview names the right function, within a few points of what the
program measured of itself. The SDKs are installed by their ordinary clients, at pinned versions, under build/live."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys

import pytest

from gate import ROOT, Gate

SOURCE = os.path.join(ROOT, "test", "live")
CACHE = os.path.join(ROOT, "build", "live")
POINTS = 0.03  # besides what so many samples at 100 Hz may be off


def run(args, **kw):
    done = subprocess.run(args, capture_output=True, text=True, timeout=kw.pop("timeout", 240), **kw)
    assert done.returncode == 0, "%s: %s" % (" ".join(args), (done.stdout + done.stderr)[-3000:])
    return done.stdout


def once(folder, make):
    """Makes a folder of the cache whole, or not at all."""
    final = os.path.join(CACHE, folder)
    if not os.path.exists(os.path.join(final, "ready")):
        shutil.rmtree(final, ignore_errors=True)
        os.makedirs(final)
        make(final)
        open(os.path.join(final, "ready"), "w").close()
    return final


class Missing(Exception):
    """A toolchain that this machine lacks, or has too old."""


class Python:
    def __init__(self, name, version, age):
        self.name, self.version, self.age = name, version, age
        self.hot, self.cold = "slow_function", "fast_function"

    def install(self):
        def make(folder):
            run([sys.executable, "-m", "venv", folder])
            run([folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "pyroscope-io==" + self.version])

        self.folder = once("python-" + self.version, make)

    def command(self):
        return [self.folder + "/bin/python", os.path.join(SOURCE, "shop.py"), self.name, self.age]


class Node:
    name, version = "live-node", "0.6.4"
    hot, cold = "slowFunction", "fastFunction"

    def install(self):
        if not shutil.which("npm") or not shutil.which("node"):
            raise Missing("no Node.js here: `make setup` installs nodejs and npm")
        version = run(["node", "--version"]).strip()
        if int(version.lstrip("v").split(".")[0]) < 20:
            raise Missing("@pyroscope/nodejs %s wants Node.js 20, this is %s" % (self.version, version))

        def make(folder):
            with open(folder + "/package.json", "w") as f:
                json.dump({"name": "live", "private": True, "dependencies": {"@pyroscope/nodejs": self.version}}, f)
            run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=folder)

        self.folder = once("node-" + self.version, make)
        shutil.copy(os.path.join(SOURCE, "shop.js"), self.folder)

    def command(self):
        return ["node", os.path.join(self.folder, "shop.js"), self.name]


class Go:
    name = "live-go"
    hot, cold = "main.slowFunction", "main.fastFunction"

    def install(self):
        if not shutil.which("go"):
            raise Missing("no Go toolchain here")
        folder = os.path.join(CACHE, "go")
        os.makedirs(folder, exist_ok=True)
        done = subprocess.run(["go", "build", "-o", folder + "/shop", "."], cwd=os.path.join(SOURCE, "go"), capture_output=True, text=True, timeout=240,
                              env=dict(os.environ, GOTOOLCHAIN="local"))
        said = done.stderr
        if done.returncode and ("requires go" in said or "requires a newer Go" in said or "invalid go version" in said or "unknown directive" in said):
            raise Missing("this machine's Go is too old for pyroscope-go: " + said.strip().splitlines()[0])
        assert done.returncode == 0, said
        self.folder = folder

    def command(self):
        return [self.folder + "/shop", self.name]


SDKS = {
    "python-1.4.0": (Python("live-python-newest", "1.4.0", "newest"), 14),
    "python-0.8.16": (Python("live-python-old", "0.8.16", "old"), 24),
    "node-0.6.4": (Node(), 14),
    "go-1.5.0": (Go(), 14),
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Every SDK once, side by side, against one gateway: {sdk: what its program measured, or the exception}."""
    def installed(sdk):
        try:
            sdk.install()
        except Exception as e:
            return e

    def ran(sdk, seconds):
        # Without preemption by signals: Go would charge its entry, runtime.asyncPreempt, instead of the loop that it stopped.
        env = dict(os.environ, GODEBUG="asyncpreemptoff=1", FLAMEGATE_URL="http://%s:%d/pyroscope" % gate.address, FLAMEGATE_KEY=gate.key, SECONDS=str(seconds))
        try:
            return json.loads(run(sdk.command(), env=env).strip().splitlines()[-1])
        except Exception as e:
            return e

    with concurrent.futures.ThreadPoolExecutor(len(SDKS)) as pool:
        problems = dict(zip(SDKS, pool.map(lambda s: installed(s[0]), SDKS.values())))
        gate = Gate(tmp_path_factory.mktemp("live")).start()
        going = {k: pool.submit(ran, *SDKS[k]) for k in SDKS if problems[k] is None}
        results = {k: going[k].result() if k in going else problems[k] for k in SDKS}
    yield gate, results
    gate.stop()


def parts(function):
    """Node's profiler names functions FILE:NAME:LINE."""
    return function.split(":")


@pytest.mark.parametrize("name", SDKS)
def test_overview_names_the_right_function(fleet, name):
    gate, results = fleet
    sdk, measured = SDKS[name][0], results[name]
    if isinstance(measured, Missing):
        pytest.skip(str(measured))
    if isinstance(measured, Exception):
        raise measured
    truth = measured[sdk.hot] / sum(measured.values())
    assert 0.6 < truth < 0.9, measured

    overview = gate.get("overview", service=sdk.name, from_="now-10m")
    assert overview["type"]["name"] == "cpu" and overview["type"]["unit"] == "nanoseconds"
    assert overview["total"] > 2 * 10**9, "seconds of CPU"
    assert sdk.hot in parts(overview["top"]["function"]), overview["sentence"]
    points = POINTS + 3 * (0.25 * 0.75 / (overview["total"] / 10**7)) ** 0.5
    assert abs(overview["top"]["share"] - truth) < points, (overview["sentence"], truth)
    assert sdk.hot in overview["sentence"] and sdk.name in overview["sentence"]
    assert overview["own"] is None or sdk.hot in parts(overview["own"]["function"])

    functions = gate.get("functions", service=sdk.name, from_="now-10m", type=overview["type"]["id"], limit=1000)["functions"]
    cold = sum(f["self_share"] for f in functions if sdk.cold in parts(f["function"]))
    assert abs(cold - (1 - truth)) < points
    labels = gate.get("labels/env", service=sdk.name, from_="now-10m")["values"]
    assert labels == ["live"]
