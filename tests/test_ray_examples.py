"""examples/ray: read by Ray's own checks and by the schema of Kubernetes. No cluster was started from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES, RAY = ROOT / "examples" / "ray", ROOT / ".venv" / "ray"
CLUSTER = yaml.safe_load((EXAMPLES / "cluster.yaml").read_text(encoding="utf-8"))
JOB = yaml.safe_load((EXAMPLES / "kuberay.yaml").read_text(encoding="utf-8"))
GROUPS = [JOB["spec"]["rayClusterSpec"]["headGroupSpec"], *JOB["spec"]["rayClusterSpec"]["workerGroupSpecs"]]
needs_ray = pytest.mark.skipif(not (RAY / "ray").is_dir(), reason="no Ray in .venv/ray: scripts/setup dev installs it")

# What `ray up` does with a file before it looks for a machine.
UP = """
import json, sys
from ray.autoscaler._private.util import prepare_config, validate_config
config = prepare_config(json.load(sys.stdin))
validate_config(config)
print(json.dumps(config["available_node_types"]))
"""
# How Ray's autoscaler reads the cluster that KubeRay makes.
READ = """
import json, sys
from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr
from ray.autoscaler._private.util import validate_config
config = _derive_autoscaling_config_from_ray_cr(json.load(sys.stdin))
validate_config(config)
print(json.dumps(config["available_node_types"]))
"""
# https://ray-project.github.io/kuberay/reference/api/
KNOWN = {
    "job": {"entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "rayClusterSpec"},
    "cluster": {"rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs"},
    "group": {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"},
}


def by_ray(program: str, config: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], input=json.dumps(config), env={**os.environ, "PYTHONPATH": str(RAY)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@needs_ray
@pytest.mark.slow
def test_ray_up_takes_the_cluster() -> None:
    done = by_ray(UP, CLUSTER)
    assert done.returncode == 0, done.stderr
    (nodes,) = json.loads(done.stdout.splitlines()[-1]).values()
    assert nodes["min_workers"] == len(CLUSTER["provider"]["worker_ips"])
    spoilt = by_ray(UP, {**CLUSTER, "setup_command": "ls"})
    assert spoilt.returncode == 1
    assert "setup_command" in spoilt.stderr


@needs_ray
@pytest.mark.slow
def test_ray_reads_the_cluster_of_kuberay() -> None:
    done = by_ray(READ, {"metadata": {"name": "karat", "namespace": "default"}, "spec": JOB["spec"]["rayClusterSpec"]})
    assert done.returncode == 0, done.stderr
    nodes = json.loads(done.stdout.splitlines()[-1])
    assert nodes["headgroup"]["resources"]["CPU"] == 0, "no trial runs beside the driver"
    assert (nodes["agents"]["min_workers"], nodes["agents"]["max_workers"]) == (1, 16)


def test_keys_of_the_job_are_those_of_kuberay() -> None:
    assert (JOB["apiVersion"], JOB["kind"], set(JOB)) == (
        "ray.io/v1",
        "RayJob",
        {"apiVersion", "kind", "metadata", "spec"},
    )
    assert set(JOB["spec"]) <= KNOWN["job"]
    assert set(JOB["spec"]["rayClusterSpec"]) <= KNOWN["cluster"]
    assert JOB["spec"]["rayClusterSpec"]["authOptions"] == {"mode": "token"}
    assert all(set(group) <= KNOWN["group"] for group in GROUPS)
    assert all(isinstance(value, str) for group in GROUPS for value in group["rayStartParams"].values())


@pytest.mark.parametrize("group", GROUPS, ids=["head", "workers"])
def test_pods_are_those_of_kubernetes(group: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "karat"}, **group["template"]}
    kubernetes_validate.validate(pod, "1.37", strict=True)
    volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
    mounts = {mount["name"] for mount in pod["spec"]["containers"][0].get("volumeMounts", [])}
    assert mounts == volumes


@needs_ray
def test_the_cluster_of_kuberay_names_the_version_of_ray_that_is_tested() -> None:
    (folder,) = RAY.glob("ray-*.dist-info")
    assert folder.name == f"ray-{JOB['spec']['rayClusterSpec']['rayVersion']}.dist-info"
