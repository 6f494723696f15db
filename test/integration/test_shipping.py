"""What ships beside the binary: image, manifests, chart, compose lab, systemd unit, HAProxy. No container engine and no helm are needed:
each file is held to the sources, to the binary's libraries and to `check-config`, and the image's root is run in a chroot."""

import copy
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse

import jsonschema
import pytest
import yaml

from gate import BINARY, ROOT, flamegate

CHART = os.path.join(ROOT, "conf/helm/flamegate")
MANIFESTS = ("embedded.yaml", "replicas.yaml")
SECRETS = "/run/secrets/flamegate"


def read(path):
    with open(os.path.join(ROOT, path)) as f:
        return f.read()


def good_config(text, tmp_path):
    """check-config of a configuration that names files of a container: they are here in tmp_path."""
    for name, content in (("samples", "postgres://user:password@host/database\n"), ("shares", "redis://user:password@host\n"), ("hash.key", "0123456789abcdef" * 4), ("keys.yaml", "")):
        (tmp_path / name).write_text(content)
    file = tmp_path / "flamegate.yaml"
    file.write_text(text.replace(SECRETS, str(tmp_path)).replace("/data", str(tmp_path / "data")))
    done = flamegate("--config", file, "check-config")
    assert done.returncode == 0, done.stderr
    return yaml.safe_load(text)


def seconds(text):
    n, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(n) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def stopping(config):
    """The longest that a stop may take."""
    default = lambda name: re.search(r'"%s", \w+, \w+, "(\w+)"' % name, read("conf/options.def")).group(1)
    stuck = int(re.search(r"STUCK_MS = (\d+)", read("gateway/serve.c")).group(1)) / 1000
    return sum(seconds(config.get(name, default(name))) for name in ("drain_delay", "shutdown_timeout")) + stuck


def mebibytes(text):
    n, unit = re.fullmatch(r"(\d+)([MG])i?B?", text, re.I).groups()
    return int(n) * {"m": 1, "g": 1024}[unit.lower()]


# --- Dockerfile ---
def stages():
    """Per stage its instructions, (name, arguments)."""
    text = re.sub(r"^#.*\n", "", read("Dockerfile"), flags=re.M).replace("\\\n", " ")
    out = []
    for line in text.splitlines():
        if line.strip():
            name, rest = line.split(None, 1)
            if name == "FROM":
                out.append([])
            out[-1].append((name, rest))
    return out


def installed(stage):
    line = next(rest for name, rest in stage if name == "RUN" and "apt-get install" in rest)
    words = re.search(r"apt-get install (.*?)(?:&&|$)", line).group(1).split()
    return {w for w in words if not w.startswith("-")}


def copied(stage):
    return [rest.split()[:-1] for name, rest in stage if name == "COPY" and "--from=" not in rest]


@functools.lru_cache(None)
def owner(path):
    """The Debian package of a file; the link's own name first, as packages of before the merged /usr have it."""
    for p in (path, os.path.realpath(path), "/usr" + path, re.sub("^/usr", "", path), re.sub("^/usr", "", os.path.realpath(path))):
        done = subprocess.run(["dpkg", "-S", p], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    raise AssertionError("no package has " + path)


def closure(packages):
    """With all that they depend on, as it is installed here."""
    lines = subprocess.run(["dpkg-query", "-Wf", "${Package}\t${Provides}\t${Depends}, ${Pre-Depends}\n"], capture_output=True, text=True, check=True).stdout
    names = lambda text: re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)", text)
    needs = {}
    for package, provides, depends in (line.split("\t") for line in lines.splitlines()):
        for name in [package, *names(provides)]:
            needs.setdefault(name, set()).update([package, *names(depends)])
    seen, todo = set(), set(packages)
    while todo:
        seen |= todo
        todo = set().union(*(needs.get(p, set()) for p in todo)) - seen
    return seen


def libraries():
    """(name, path) of each library that the loader maps."""
    return re.findall(r"(\S+) => (/\S+)", subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout)


plain_build = pytest.mark.skipif(os.path.dirname(BINARY) != os.path.join(ROOT, "build"), reason="the image has the plain build")


def test_image_copies_what_is_there():
    allowed = [line[1:] for line in read(".dockerignore").splitlines() if line.startswith("!")]
    for stage in stages():
        for source in sum(copied(stage), []):
            assert os.path.exists(os.path.join(ROOT, source)), source
            assert source.split("/")[0] in allowed, source + " is not in .dockerignore"


@plain_build
def test_image_builds_from_what_it_copies():
    """Every file of ours that the compiler read for the binary is in a folder that the build stage has."""
    folders = {os.path.join(s, "") for s in sum(copied(stages()[0]), [])}
    used = set()
    for folder in re.search(r"^FOLDERS := (.*)", read("Makefile"), re.M).group(1).split():
        for file in glob.glob(os.path.join(ROOT, "build", folder, "**/*.d"), recursive=True):
            with open(file) as f:
                used.update(w for w in f.read().replace("\\\n", " ").split() if w[0] != "/" and not w.endswith(":"))
    assert len(used) > 100
    assert not {u for u in used if not any(u.startswith(f) for f in folders)}


def test_image_installs_what_the_build_needs():
    build = installed(stages()[0])
    assert build <= set(re.search(r"^PACKAGES := (.*?[^\\])\n", read("Makefile"), re.M | re.S).group(1).replace("\\\n", " ").split())
    have = closure(build)
    for lib in re.search(r"^LIBS\s*:= (.*)", read("Makefile"), re.M).group(1).split():
        file = subprocess.run(["gcc", "-print-file-name=lib%s.so" % lib[2:]], capture_output=True, text=True, check=True).stdout.strip()
        assert not os.path.isabs(file) or owner(os.path.normpath(file)) in have, lib
    headers = set()
    for folder in sum(copied(stages()[0]), [])[1:]:
        for file in glob.glob(os.path.join(ROOT, folder, "**/*.[ch]"), recursive=True):
            headers.update(re.findall(r"^#include <(.*)>", read(file), re.M))
    paths = ("/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/postgresql", "/usr/share/include/llhttp")
    found = {h: next((os.path.join(p, h) for p in paths if os.path.exists(os.path.join(p, h))), None) for h in headers}
    assert {owner(p) for p in found.values() if p} <= have
    assert any(owner(p) == "libxxhash-dev" for p in found.values() if p)  # a library that only headers ask for


@plain_build
def test_image_installs_exactly_the_libraries():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", BINARY], capture_output=True, text=True, check=True).stdout)
    paths = dict(libraries())
    assert installed(stages()[-1]) == {owner(paths[n]) for n in needed if n in paths} - {"libc6"}
    behind = {owner(path) for _, path in libraries()}
    assert behind <= closure(installed(stages()[-1]) | {"libc6"})


def test_image_runs_as_nobody_and_without_a_shell():
    final = stages()[-1]
    values = dict(final)
    assert values["USER"] == "65532:65532"
    assert values["VOLUME"] == values["WORKDIR"] == "/data"
    assert json.loads(values["ENTRYPOINT"]) + json.loads(values["CMD"]) == ["/usr/local/bin/flamegate", "serve"]
    assert json.loads(values["HEALTHCHECK"].split("CMD", 1)[1]) == ["/usr/local/bin/flamegate", "healthcheck"]
    assert [name for name, _ in final].index("USER") > max(i for i, (name, _) in enumerate(final) if name == "RUN")
    targets = [rest.split()[-1] for name, rest in final if name == "COPY"]
    assert values["ENV"] == "FLAMEGATE_CONFIG=/etc/flamegate/flamegate.yaml" and "/etc/flamegate/flamegate.yaml" in targets


# Runs inside of new network and mount namespaces, as root: the image's root, read-only but for /data.
IN_A_ROOT = r"""
import fcntl, http.client, json, os, signal, socket, struct, subprocess, sys, time
root, program = sys.argv[1], "/usr/local/bin/flamegate"
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
for args in (["--bind", root, root], ["-o", "remount,ro,bind", root], ["--bind", root + "-data", root + "/data"]):
    subprocess.run(["mount", *args], check=True)
def enter():
    os.chroot(root); os.chdir("/data"); os.setgroups([]); os.setgid(65532); os.setuid(65532)
def run(*args, **kw):
    return subprocess.Popen([program, *args], preexec_fn=enter, env={"FLAMEGATE_CONFIG": "/etc/flamegate/flamegate.yaml"}, text=True, stdout=subprocess.PIPE, **kw)
out = {"before": run("healthcheck", stderr=subprocess.DEVNULL).wait()}
key = run("key", "create", "--name", "shop", "--type", "server", stderr=subprocess.DEVNULL).communicate()[0].strip()
server = run("serve")
until = time.monotonic() + 15
while run("healthcheck", stderr=subprocess.DEVNULL).wait() != 0 and time.monotonic() < until and server.poll() is None:
    time.sleep(0.1)
out["healthcheck"] = run("healthcheck").wait()
out["user"] = os.stat("/proc/%d" % server.pid).st_uid
c = http.client.HTTPConnection("127.0.0.1", 4040, timeout=10)
c.request("POST", "/ingest?name=shop&format=folded", "main;work 7\n", {"Authorization": "Bearer " + key})
out["status"] = c.getresponse().status
c.close()
server.send_signal(signal.SIGINT)  # like SIGTERM, without drain_delay
out["end"] = server.wait(15)
print(json.dumps(out))
"""


def namespaces():
    """Whether this process may make them: not inside of a chroot or an unprivileged container."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--net", "--mount", "--propagation", "private", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not namespaces(), reason="a chroot, namespaces and another user need root on a real machine")
@plain_build
def test_image_root_runs_read_only(tmp_path):
    root, data = tmp_path / "root", tmp_path / "root-data"
    loader = re.search(r"^\s*(/\S*ld-linux\S*)", subprocess.run(["ldd", BINARY], capture_output=True, text=True).stdout, re.M).group(1)
    files = {"/usr/local/bin/flamegate": BINARY, "/etc/flamegate/flamegate.yaml": os.path.join(ROOT, "conf/image.yaml"), loader: loader}
    for to, source in {**files, **{path: path for _, path in libraries()}}.items():
        os.makedirs(os.path.dirname(str(root) + to), exist_ok=True)
        shutil.copy(source, str(root) + to)
    (root / "data").mkdir()
    data.mkdir()
    os.chown(data, 65532, 65532)
    for folder in (tmp_path, *tmp_path.parents):  # pytest's folders are root's alone
        if folder.stat().st_uid == 0 and folder != folder.parent and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    done = subprocess.run(["unshare", "--net", "--mount", "--propagation", "private", sys.executable, "-c", IN_A_ROOT, str(root)],
                          stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"before": 1, "healthcheck": 0, "user": 65532, "status": 200, "end": 0}
    assert {p.name for p in data.iterdir()} >= {"hash.key", "keys.yaml"}
    assert not list((root / "data").iterdir())


def test_image_configuration(tmp_path):
    config = good_config(read("conf/image.yaml"), tmp_path)
    assert config["listen"] == "0.0.0.0:4040" and config["admin"] == "0.0.0.0:4041"
    assert dict(stages()[-1])["EXPOSE"] == "4040 4041"


# --- Kubernetes ---
def objects(name):
    return list(yaml.safe_load_all(read("conf/kubernetes/" + name)))


def only(objs, kind):
    found = [o for o in objs if o["kind"] == kind]
    assert len(found) == 1, kind
    return found[0]


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest_configuration(name, tmp_path):
    objs = objects(name)
    text = only(objs, "ConfigMap")["data"]["flamegate.yaml"]
    config = good_config(text, tmp_path)
    work = only(objs, "StatefulSet" if name == "embedded.yaml" else "Deployment")
    pod = work["spec"]["template"]
    assert pod["metadata"]["annotations"]["checksum/config"] == hashlib.sha256(text.encode()).hexdigest()
    assert pod["spec"]["terminationGracePeriodSeconds"] > stopping(config) + 5
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    assert mebibytes(limits["memory"]) > 2 * mebibytes(config["memory"])
    if name == "embedded.yaml":
        assert work["spec"]["replicas"] == 1 and config["samples"] == "sqlite:"
    else:
        assert config["samples_file"] and "replicas" not in work["spec"]


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifest_hangs_together(name):
    objs = objects(name)
    assert len({(o["kind"], o["metadata"]["name"]) for o in objs}) == len(objs)
    work = next(o for o in objs if o["kind"] in ("StatefulSet", "Deployment"))
    spec = work["spec"]["template"]["spec"]
    labels = work["spec"]["template"]["metadata"]["labels"].items()
    container = spec["containers"][0]
    ports = {p["name"]: p["containerPort"] for p in container["ports"]}
    assert ports == {"http": 4040, "metrics": 4041}
    chosen = {"Service": lambda o: o["spec"]["selector"], "PodDisruptionBudget": lambda o: o["spec"]["selector"]["matchLabels"],
              "NetworkPolicy": lambda o: o["spec"]["podSelector"]["matchLabels"]}
    for o in objs:
        if o["kind"] in chosen:
            assert chosen[o["kind"]](o).items() <= labels, o["kind"]
        if o["kind"] == "Service":
            assert all(p["targetPort"] in ports for p in o["spec"]["ports"])
        if o["kind"] == "HorizontalPodAutoscaler":
            assert o["spec"]["scaleTargetRef"]["kind"] == work["kind"]
    assert work["spec"]["selector"]["matchLabels"].items() <= labels
    for spread in spec.get("topologySpreadConstraints", []):
        assert spread["labelSelector"]["matchLabels"].items() <= labels
    volumes = {v["name"] for v in spec["volumes"]} | {v["metadata"]["name"] for v in work["spec"].get("volumeClaimTemplates", [])}
    assert volumes == {m["name"] for m in container["volumeMounts"]}
    assert spec["serviceAccountName"] == only(objs, "ServiceAccount")["metadata"]["name"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 65532
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    probes = {p: container[p]["httpGet"]["path"] for p in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert probes == {"startupProbe": "/healthz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}  # a store's absence ends no pod


# --- Helm ---
def templates():
    return {os.path.basename(p): read(p) for p in glob.glob(CHART + "/templates/*")}


def values():
    return yaml.safe_load(read(CHART + "/values.yaml"))


def schema():
    return json.loads(read(CHART + "/values.schema.json"))


def paths_of(tree, prefix=()):
    for key, value in tree.items():
        yield prefix + (key,)
        if isinstance(value, dict):
            yield from paths_of(value, prefix + (key,))


def used_values():
    return {tuple(m.split(".")) for text in templates().values() for m in re.findall(r"\.Values\.([A-Za-z.]*[A-Za-z])", text)}


def test_chart_values_are_there_and_used():
    """Every path that a template reads is in values.yaml and its schema, and every value is read by some template."""
    known, used = set(paths_of(values())), used_values()
    assert used <= known
    for path in used:
        node = schema()
        for part in path:
            node = node["properties"][part]
    assert {p for p in known if not any(p == u[:len(p)] or u == p[:len(u)] for u in used)} == set()
    assert set(schema()["properties"]) - {"global"} == set(values())


@pytest.mark.parametrize("name", sorted(os.path.basename(p) for p in glob.glob(CHART + "/templates/*")))
def test_chart_template_is_balanced(name):
    text = templates()[name]
    actions = re.findall(r"\{\{-?\s*(.*?)\s*-?\}\}", text, re.S)
    assert text.count("{{") == text.count("}}") == len(actions) > 0
    depth = 0
    for action in actions:
        word = action.split()[0]
        depth += (word in ("if", "with", "range", "define")) - (word == "end")
        assert depth >= (word == "else"), action
        assert action.count("(") == action.count(")") and action.count('"') % 2 == 0, action
    assert depth == 0
    defined = re.findall(r'define "(.*?)"', "".join(templates().values()))
    assert set(re.findall(r'include "(.*?)"', text)) <= set(defined)
    assert len(defined) == len(set(defined))


def test_chart_values_meet_their_schema():
    jsonschema.Draft7Validator.check_schema(schema())
    check = jsonschema.Draft7Validator(schema())
    assert [e.message for e in check.iter_errors(values())] == []
    for change in ({"store": "postgres"}, {"store": "redis"}, {"replicas": 3}, {"config": {"listen": "0.0.0.0:1"}}, {"terminationGracePeriodSeconds": 30},
                   {"image": {"repository": ""}}, {"replicaCount": 0}, {"service": {"port": "http"}}):
        assert list(check.iter_errors({**values(), **change})), change
    assert check.is_valid({**values(), "store": "postgres", "existingSecret": "flamegate"})


def chart_config(chosen):
    """The define of flamegate.yaml with these values: the if, else, with and toYaml that it uses, and nothing more."""
    text = re.search(r'\{\{- define "flamegate.config" -\}\}\n(.*?)\n\{\{- end \}\}\n\n', templates()["_helpers.tpl"], re.S).group(1)
    true = {"if .Values.existingSecret": bool(chosen["existingSecret"]), 'if eq .Values.store "postgres"': chosen["store"] == "postgres",
            "if .Values.redis.enabled": chosen["redis"]["enabled"], "with .Values.config": bool(chosen["config"])}
    out, taken = [], []
    for line in text.split("\n"):
        action = re.fullmatch(r"\{\{-? (.*) \}\}", line)
        word = action and action.group(1)
        if word == "end":
            taken.pop()
        elif word == "else":
            taken[-1] = not taken[-1]
        elif word and word != "toYaml .":
            taken.append(true[word])
        elif all(taken):
            out.append(yaml.safe_dump(chosen["config"]).strip() if word else line)
    assert not taken
    return "\n".join(out) + "\n"


@pytest.mark.parametrize("change", [{}, {"existingSecret": "keys"}, {"store": "postgres", "existingSecret": "all"}, {"store": "postgres", "existingSecret": "all", "redis": {"enabled": True}}, {"config": {}}])
def test_chart_configuration(change, tmp_path):
    chosen = {**copy.deepcopy(values()), **change}
    config = good_config(chart_config(chosen), tmp_path)
    assert ("samples_file" in config) == (chosen["store"] == "postgres") and ("shares_file" in config) == chosen["redis"]["enabled"]
    assert chosen["terminationGracePeriodSeconds"] > stopping(config) + 5
    assert mebibytes(chosen["resources"]["limits"]["memory"]) > 2 * mebibytes(config.get("memory", "256MiB"))


def test_chart_carries_the_version_of_the_binary():
    chart = yaml.safe_load(read(CHART + "/Chart.yaml"))
    version = flamegate("version").stdout.split()[1]
    assert chart["appVersion"] == version
    for name in MANIFESTS:
        assert "image: flamegate:%s\n" % version in read("conf/kubernetes/" + name)


# --- compose ---
def test_compose_hangs_together(tmp_path):
    folder = os.path.join(ROOT, "conf/compose")
    services = yaml.safe_load(read("conf/compose/compose.yaml"))["services"]
    config = good_config(read("conf/compose/flamegate.yaml"), tmp_path)
    assert os.path.exists(os.path.join(folder, services["flamegate"]["build"], "Dockerfile"))
    for service in services.values():
        for volume in service["volumes"]:
            if volume.startswith("."):
                assert os.path.isfile(os.path.join(folder, volume.split(":")[0])), volume
    assert services["flamegate"]["read_only"] and seconds(services["flamegate"]["stop_grace_period"]) > stopping(config) + 5
    assert all(p.startswith("127.0.0.1:") for p in services["flamegate"]["ports"])  # nobody is asked for a key
    alloy = read("conf/compose/config.alloy")
    assert alloy.count("{") == alloy.count("}") and 'env = "lab"' in alloy and '"service_name" = "alloy"' in alloy
    url = urllib.parse.urlsplit(re.search(r'url = "(.*)"', alloy).group(1))
    assert url.hostname in services and url.port == int(config["listen"].split(":")[1]) and url.path == "/pyroscope"


def test_compose_lab_needs_no_keys(make_gate):
    """The lab's own configuration, but for the addresses of a container: what Alloy sends is read back by the line in compose.yaml."""
    own = yaml.safe_load(read("conf/compose/flamegate.yaml"))
    gate = make_gate(yaml.safe_dump({k: v for k, v in own.items() if k in ("anonymous", "drain_delay")}), keys=False)
    sent = gate.request("POST", "/pyroscope/ingest?" + urllib.parse.urlencode({"name": "alloy{env=lab}", "format": "folded"}), b"main;work 300\n")
    assert sent.status == 200, sent
    url = urllib.parse.urlsplit(re.search(r"curl -g '(.*)'", read("conf/compose/compose.yaml")).group(1))
    until = time.monotonic() + 5
    answer = gate.request("GET", url.path + "?" + url.query)
    while "work" not in answer.text and time.monotonic() < until:
        time.sleep(0.1)
        answer = gate.request("GET", url.path + "?" + url.query)
    assert answer.status == 200 and "work" in answer.text, answer


# --- systemd ---
def unit():
    pairs = [line.split("=", 1) for line in read("conf/systemd/flamegate.service").splitlines() if "=" in line and line[0] != "#"]
    return {k: [v for name, v in pairs if name == k] for k, _ in pairs}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")
def test_unit_is_understood(tmp_path):
    file = tmp_path / "flamegate.service"
    file.write_text(read("conf/systemd/flamegate.service").replace("/usr/local/bin/flamegate", BINARY))
    done = subprocess.run(["systemd-analyze", "verify", str(file)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "flamegate.service" not in done.stderr, done.stderr


def test_unit_fits_the_binary(tmp_path):
    u = unit()
    commands = [c.split()[1] for name in ("ExecStartPre", "ExecStart", "ExecReload") for c in u[name] if "flamegate" in c]
    assert commands == ["check-config", "serve", "check-config"]
    assert seconds(u["TimeoutStopSec"][0]) > stopping({}) + 5
    # Its paths: the sample configuration, whose relative ones are below the state folder.
    assert u["WorkingDirectory"] == ["/var/lib/" + u["StateDirectory"][0]]
    assert u["Environment"] == ["FLAMEGATE_CONFIG=/etc/flamegate/flamegate.yaml"]
    for code in u["RestartPreventExitStatus"][0].split():
        (tmp_path / "bad.yaml").write_text("nothing: like this\n")
        args = ("serve", "--nonsense") if code == "2" else ("--config", tmp_path / "bad.yaml", "serve")
        assert flamegate(*args).returncode == int(code)


# --- HAProxy ---
def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_haproxy_sample(gate, tmp_path):
    """The sample is good, hides no client's abort, and carries uploads and queries, errors as they are."""
    text = read("conf/haproxy.cfg")
    defaults = text.split("\ndefaults\n", 1)[1].split("\n\n", 1)[0]
    assert "option abortonclose" in defaults and "retry-on" not in re.sub("#.*", "", text)
    assert min(seconds(t) for t in re.findall(r"timeout (?:client|server) (\S+)", text)) > 60  # timeouts.body
    assert subprocess.run(["haproxy", "-c", "-q", "-f", os.path.join(ROOT, "conf/haproxy.cfg")], timeout=20).returncode == 0
    port = free_port()
    assert text.count("bind :80\n") == 1 and text.count("127.0.0.1:4040") == 1
    file = tmp_path / "haproxy.cfg"
    file.write_text(text.replace("bind :80\n", "bind 127.0.0.1:%d\n" % port).replace("127.0.0.1:4040", "127.0.0.1:%d" % gate.address[1]))
    proxy = subprocess.Popen(["haproxy", "-q", "-f", str(file)])
    behind, gate.address = gate.address, ("127.0.0.1", port)
    try:
        until = time.monotonic() + 10
        while True:
            try:
                if gate.request("GET", "/readyz").status == 200:
                    break
            except OSError:
                pass
            assert time.monotonic() < until
            time.sleep(0.05)
        assert gate.ingest(b"main;work 300\n", format="folded").status == 200
        assert gate.ingest(b"main;work 300\n", format="folded", key="wrong").status == 401
        assert gate.ingest(b"\x1f\x8bnot gzip").status == 400
        assert gate.read("services").status == 200
    finally:
        proxy.terminate()
        proxy.wait(10)
        gate.address = behind
