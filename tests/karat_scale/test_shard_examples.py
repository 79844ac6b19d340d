"""examples/shards: each way to run shards on several machines, as far as it can be run on one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import karat

SHARDS = Path(__file__).resolve().parents[2] / "examples" / "shards"
KUBERNETES = yaml.safe_load((SHARDS / "kubernetes.yaml").read_text())
GITHUB = yaml.safe_load((SHARDS / "github.yml").read_text())
EXPERIMENT = """
dataset: {path: questions.jsonl}
agent: {type: floor}
scorers: [equals]
conditions: {a: {}, b: {}}
execution: {num_repetitions: 2}
"""

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash: the examples are written for it")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [json.dumps({"question": f"q{number}", "answer": "a"}) + "\n" for number in range(10)]
    (tmp_path / "questions.jsonl").write_text("".join(rows))
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT)
    for script in SHARDS.glob("*.sh"):
        shutil.copy(script, tmp_path)
    return tmp_path


def bash(folder: Path, *command: str, **variables: str) -> str:
    """Its output; the environment has the `karat` of this Python first on its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(folder), **variables}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def merged(folder: Path) -> None:
    """Every trial was asked once, by some shard."""
    said = bash(folder, "bash", "-c", "karat runs merge shards/* --json")
    run = karat.open(folder / json.loads(said)["run"])
    answers = [event.trial for event in run.events() if isinstance(event, karat.Answer)]
    assert len(answers) == len(set(answers)) == 40
    assert run.status() == "done"


@pytest.mark.parametrize("script", sorted(path.name for path in SHARDS.glob("*.sh")))
def test_scripts_are_sound(script: str) -> None:
    done = subprocess.run(["bash", "-n", SHARDS / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("parallel") is None, reason="GNU parallel is not installed")
def test_gnu_parallel(folder: Path) -> None:
    bash(folder, "bash", "-c", "parallel -j 2 bash shard.sh {} 3 ::: $(seq 3)")
    merged(folder)


@pytest.mark.slow
def test_an_array_of_slurm_continues_what_was_preempted(folder: Path) -> None:
    """Where no Slurm is: the script, once for each task of the array."""
    array = re.search(r"^#SBATCH --array=1-(\d+)$", (folder / "slurm.sh").read_text(), re.MULTILINE)
    assert array is not None
    for task in ("1", "2", "3"):
        bash(folder, "bash", "slurm.sh", SLURM_ARRAY_TASK_ID=task, SLURM_ARRAY_TASK_COUNT="3")
    (journal,) = folder.glob("shards/2/*/journal.jsonl")
    lines = journal.read_bytes()
    journal.write_bytes(lines[: len(lines) // 2])  # as a task that was killed leaves it
    bash(folder, "bash", "slurm.sh", SLURM_ARRAY_TASK_ID="2", SLURM_ARRAY_TASK_COUNT="3")
    assert len(list(folder.glob("shards/2/*/"))) == 1
    merged(folder)


@pytest.mark.slow
def test_an_indexed_job_of_kubernetes(folder: Path) -> None:
    """Its command, once for each index, where the volumes are a folder."""
    job = KUBERNETES["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert job["completionMode"] == "Indexed"
    assert pod["restartPolicy"] == "Never"  # as `backoffLimitPerIndex` needs
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    command = [part.replace("/scripts/", "") for part in container["command"]]
    for index in range(job["completions"]):
        bash(folder, *command, JOB_COMPLETION_INDEX=str(index))
    merged(folder)


@pytest.mark.slow
def test_a_matrix_of_github(folder: Path) -> None:
    shard, merge = GITHUB["jobs"]["shard"], GITHUB["jobs"]["merge"]
    (step,) = [step for step in shard["steps"] if "--shard" in step.get("run", "")]
    for number in shard["strategy"]["matrix"]["shard"]:
        bash(folder, "bash", "-c", step["run"], SHARD=str(number))
    merged(folder)
    for step in merge["steps"]:
        if step.get("run", "").startswith("karat"):
            bash(folder, "bash", "-c", step["run"], GITHUB_STEP_SUMMARY=str(folder / "summary.md"))
    assert "equals" in (folder / "summary.md").read_text()


def test_no_expression_is_written_into_a_script() -> None:
    """`${{ … }}` in a script is code that whoever names a branch or a title can write."""
    steps = [step for job in GITHUB["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
