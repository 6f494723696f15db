"""The chart as Helm renders it, held to its values schema and to the API schemas of Kubernetes. Helm's engine is a Go module
(test/chart), the schemas are those that kubernetes-validate carries; both are fetched by their ordinary clients, at pinned versions."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from gate import ROOT, flamegate
from test_live import once, run

CHART = os.path.join(ROOT, "conf", "helm", "flamegate")
VALIDATE = "1.37.0"
VERSIONS = ("1.29", "1.37")
REPLICAS = {"store": "postgres", "existingSecret": "all", "redis": {"enabled": True}}
VALUES = {
    "as it comes": {},
    "with a secret": {"existingSecret": "keys"},
    "without a volume": {"persistence": {"enabled": False}},
    "replicas": REPLICAS,
    "one replica": {**REPLICAS, "replicaCount": 1},
    "everything": {
        **REPLICAS,
        "fullnameOverride": "edge",
        "autoscaling": {"enabled": True, "minReplicas": 3, "maxReplicas": 7, "targetCPUUtilizationPercentage": 50},
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}], "metricsFrom": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]},
        "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}},
        "service": {"type": "LoadBalancer", "port": 80, "annotations": {"a": "b"}},
        "serviceAccount": {"create": True, "name": "someone", "annotations": {"role": "x"}},
        "imagePullSecrets": [{"name": "pull"}],
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "podAnnotations": {"x": "y"},
        "podLabels": {"team": "edge"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "edge", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}},
        "priorityClassName": "high",
        "extraEnv": [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
        "config": {"memory": "512MiB", "limits": {"body": "32MiB"}},
    },
}
CHECK = """
import json, sys, kubernetes_validate
for version in sys.argv[1:]:
    for name, document in DOCUMENTS:
        try:
            kubernetes_validate.validate(document, version, strict=True)
        except Exception as e:
            print(version, name, document["kind"], e)
"""


@pytest.fixture(scope="module")
def renders():
    """What Helm makes of all VALUES: name -> its documents; and of values that it must refuse."""
    if not shutil.which("go"):
        pytest.skip("no Go toolchain here")
    binary = os.path.join(ROOT, "build", "chart", "render")
    done = subprocess.run(["go", "build", "-o", binary, "."], cwd=os.path.join(ROOT, "test", "chart"), capture_output=True, text=True, timeout=400,
                          env=dict(os.environ, GOTOOLCHAIN="local"))
    if done.returncode and any(s in done.stderr for s in ("requires go", "requires a newer Go", "invalid go version", "unknown directive")):
        pytest.skip("this machine's Go is too old for Helm's engine: " + done.stderr.strip().splitlines()[0])
    assert done.returncode == 0, done.stderr

    def render(*values):
        out = subprocess.run([binary, CHART], input=json.dumps(values), capture_output=True, text=True, timeout=60)
        assert out.returncode == 0, out.stderr
        return json.loads(out.stdout)

    return render


def documents(rendering):
    assert not rendering["error"], rendering["error"]
    return [(name, d) for name, text in sorted(rendering["files"].items()) if name.endswith(".yaml") for d in yaml.safe_load_all(text) if d]


def kubernetes(all_documents):
    """What the schemas say against them. Custom resources have none there."""
    folder = once("kubernetes-validate-" + VALIDATE, lambda folder: (
        run([sys.executable, "-m", "venv", folder]),
        run([folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "kubernetes-validate==" + VALIDATE, "typing_extensions==4.12.2"])))
    mine = [(n, d) for n, d in all_documents if d["kind"] != "ServiceMonitor"]
    script = "import json\nDOCUMENTS = json.loads(%r)\n" % json.dumps(mine) + CHECK
    return run([folder + "/bin/python", "-", *VERSIONS], input=script)


@pytest.fixture(scope="module")
def rendered(renders):
    return dict(zip(VALUES, map(documents, renders(*VALUES.values()))))


def one(rendered, name, kind):
    found = [d for _, d in rendered[name] if d["kind"] == kind]
    assert len(found) == 1, (name, kind, len(found))
    return found[0]


def test_kubernetes_takes_all_of_it(rendered):
    assert kubernetes([(name + ": " + n, d) for name in rendered for n, d in rendered[name]]) == ""


def test_kubernetes_would_say_so(rendered):
    """The check is none that lets everything through."""
    bad = one(rendered, "replicas", "Deployment")
    bad = {**bad, "spec": {**bad["spec"], "replicas": "two", "colour": "red"}}
    assert "two" in kubernetes([("bad", bad)]) or "colour" in kubernetes([("bad", bad)])


@pytest.mark.parametrize("name", ["embedded.yaml", "replicas.yaml"])
def test_manifests(name):
    with open(os.path.join(ROOT, "conf", "kubernetes", name)) as f:
        assert kubernetes([(name, d) for d in yaml.safe_load_all(f) if d]) == ""


def test_kinds(rendered):
    kinds = {name: {d["kind"] for _, d in rendered[name]} for name in rendered}
    assert kinds["as it comes"] == {"StatefulSet", "Service", "ConfigMap", "ServiceAccount"}
    assert kinds["replicas"] == {"Deployment", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget"}
    assert kinds["one replica"] == kinds["replicas"] - {"PodDisruptionBudget"}
    assert kinds["everything"] == kinds["replicas"] | {"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor"}


def test_values_reach_their_places(rendered):
    deployment = one(rendered, "everything", "Deployment")
    assert "replicas" not in deployment["spec"]  # the autoscaler's
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"]["team"] == "edge" and pod["metadata"]["annotations"]["x"] == "y"
    container = pod["spec"]["containers"][0]
    assert {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}} in container["env"]
    assert container["securityContext"]["readOnlyRootFilesystem"] and pod["spec"]["securityContext"]["runAsUser"] == 65532
    assert len(pod["spec"]["topologySpreadConstraints"]) == 2
    assert all(c["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items() for c in pod["spec"]["topologySpreadConstraints"])
    assert pod["spec"]["serviceAccountName"] == "someone" == one(rendered, "everything", "ServiceAccount")["metadata"]["name"]
    monitor = one(rendered, "everything", "ServiceMonitor")
    services = [d for _, d in rendered["everything"] if d["kind"] == "Service"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (watched,) = [s for s in services if monitor["spec"]["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items()]
    assert {e["port"] for e in monitor["spec"]["endpoints"]} <= {p["name"] for p in watched["spec"]["ports"]}
    assert len(services) == 2 and all(s["spec"]["selector"].items() <= pod["metadata"]["labels"].items() for s in services)
    assert one(rendered, "everything", "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


def test_a_new_configuration_restarts_pods(renders, rendered):
    (changed,) = renders({**REPLICAS, "config": {"memory": "300MiB"}})
    checksum = lambda d: d["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
    before = one(rendered, "replicas", "Deployment")
    after = [d for _, d in documents(changed) if d["kind"] == "Deployment"][0]
    assert checksum(before) != checksum(after)


def test_the_binary_takes_the_configuration(rendered, tmp_path):
    for name in rendered:
        text = one(rendered, name, "ConfigMap")["data"]["flamegate.yaml"]
        (tmp_path / "samples").write_text("postgres://flamegate@db/flamegate")
        (tmp_path / "shares").write_text("redis://redis")
        (tmp_path / "hash.key").write_text("a made-up key of more than thirty-two bytes\n")
        file = tmp_path / "flamegate.yaml"
        file.write_text(text.replace("/run/secrets/flamegate", str(tmp_path)))
        done = flamegate("--config", file, "check-config", env={"PASSWORD": "x"})
        assert done.returncode == 0, (name, done.stderr)


@pytest.mark.parametrize("values, says", [({"store": "redis"}, "store"), ({"store": "postgres"}, "existingSecret"), ({"replicas": 3}, "replicas"), ({"config": {"listen": "x"}}, "listen")])
def test_helm_refuses(renders, values, says):
    (rendering,) = renders(values)
    assert says in rendering["error"], rendering
