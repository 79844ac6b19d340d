"""Manifests and workflows in examples/ and .github/, by the schemas of the systems that read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
JOB = yaml.safe_load((ROOT / "examples" / "shards" / "kubernetes.yaml").read_text(encoding="utf-8"))
WORKFLOWS = {
    "examples/ci/github.yml": "vendor.github-workflows",
    "examples/shards/github.yml": "vendor.github-workflows",
    "examples/ci/gitlab.yml": "vendor.gitlab-ci",
    ".github/workflows/versions.yml": "vendor.github-workflows",
    "action.yml": "vendor.github-actions",
}


def check(path: Path, schema: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-m", "check_jsonschema", "--builtin-schema", schema, path]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_job_is_one_of_kubernetes() -> None:
    kubernetes_validate.validate(JOB, "1.37", strict=True)


@pytest.mark.parametrize("key", ["completionmode", "backoffLimitPerIndexes"])
def test_unknown_keys_of_a_job_are_refused(key: str) -> None:
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**JOB, "spec": {**JOB["spec"], key: 1}}, "1.37", strict=True)


@pytest.mark.quick(1)
@pytest.mark.parametrize(("path", "schema"), WORKFLOWS.items())
def test_workflows(path: str, schema: str, tmp_path: Path) -> None:
    done = check(ROOT / path, schema)
    assert done.returncode == 0, done.stdout
    spoilt = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    spoilt["runs" if "runs" in spoilt else "jobs" if "jobs" in spoilt else "gate"] = 1
    (tmp_path / "spoilt.yml").write_text(yaml.safe_dump(spoilt), encoding="utf-8")
    assert check(tmp_path / "spoilt.yml", schema).returncode == 1
