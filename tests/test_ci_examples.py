"""action.yml and examples/ci: valid YAML, sound shell, inputs that exist, and commands that karat knows."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import click
import pytest
import yaml

from karat.__main__ import main
from karat.cli import cli

ROOT = Path(__file__).resolve().parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITHUB = yaml.safe_load((ROOT / "examples" / "ci" / "github.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {
    **{name: step["run"] for name, step in STEPS.items() if "run" in step},
    **{f"gitlab {key}": "\n".join(GITLAB["gate"][key]) for key in ("before_script", "script", "after_script")},
}
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash: the action's steps are written for it")


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_sound_shell(name):
    done = subprocess.run(["bash", "-n"], input=SCRIPTS[name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_expression_is_written_into_a_script():
    """`${{ … }}` in a script is code that whoever names a branch or a title can write."""
    assert [name for name, script in SCRIPTS.items() if "${{" in script] == []


def test_inputs_and_steps_that_are_used_exist():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {step["id"] for step in ACTION["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.([\w-]+)", text)) <= ids
    for key, written in re.findall(r"steps\.(\w+)\.outputs\.(\w+)", text):
        script = next(step["run"] for step in ACTION["runs"]["steps"] if step.get("id") == key)
        assert f"{written}=" in script
    for step in STEPS.values():
        used = set(re.findall(r"\$\{?([A-Z_]+)", step.get("run", "")))
        set_in_shell = {name for name in used if name.startswith(("GITHUB_", "RUNNER_"))}
        assert used - set_in_shell <= set(step.get("env", {})), step["name"]


def test_the_example_gives_inputs_that_the_action_has():
    (step,) = [step for step in GITHUB["jobs"]["gate"]["steps"] if step.get("id") == "karat"]
    assert set(step["with"]) <= set(ACTION["inputs"])


def commands() -> list[tuple[str, ...]]:
    """Every command line of karat in the scripts; variables stay as they are."""
    found = []
    for script in SCRIPTS.values():
        for line in script.replace("\\\n", " ").splitlines():
            match = re.match(r"\s*(?:- )?karat (.*?)(?:\s(?:\|\||&&|>|#).*)?$", line)
            if match:
                found.append(tuple(shlex.split(match[1])))
    return found


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_every_command_line_is_one_that_karat_reads(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "experiment.yaml").touch()
    given = [word for word in words[1:] if word != "${options[@]}"]
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    command.make_context(words[0], ["experiment.yaml" if word == "$EXPERIMENT" else word for word in given])


# The steps, carried out ---------------------------------------------------------------------------------------------

EXPERIMENT = """
name: sums
dataset: {path: questions.jsonl}
agent: {type: floor}
judge: {type: overlap}
conditions: {a: {}}
execution: {num_repetitions: 1}
gate: {max: {failed: 0}}
"""
GH = """#!/usr/bin/env python3
import json, os, sys
with open("gh.jsonl", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["api", "--paginate"]:
    print(os.environ.get("OLD", ""), end="")
"""


@pytest.fixture
def job(tmp_path):
    """`job(STEP, VARIABLE=value)`: carries out a step as the runner does; gives code, output and what it set."""
    rows = "".join(json.dumps({"question": f"{n}?", "answer": str(n)}) + "\n" for n in range(3))
    (tmp_path / "questions.jsonl").write_text(rows, encoding="utf-8")
    (tmp_path / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "temp").mkdir()
    os.symlink(sys.executable, tmp_path / "bin" / "python3")

    def step(name, **variables):
        outputs = tmp_path / "outputs"
        outputs.write_text("", encoding="utf-8")
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
            "HOME": str(tmp_path), "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_REPOSITORY": "someone/something",
        }  # fmt: skip
        empty = dict.fromkeys(STEPS[name].get("env", {}), "")
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
            cwd=tmp_path, env={**environment, **empty, "RESULTS": "results", **variables}, capture_output=True,
            text=True, check=False, timeout=120,
        )  # fmt: skip
        lines = outputs.read_text(encoding="utf-8").splitlines()
        return done.returncode, done.stdout + done.stderr, dict(line.split("=", 1) for line in lines)

    return step


@pytest.mark.slow
def test_the_action_runs_decides_and_comments(job, tmp_path):
    code, _, made = job("Run the experiment", EXPERIMENT="experiment.yaml")
    assert (code, made["run"]) == (0, made["new"])
    assert (tmp_path / made["run"] / "run.json").is_file()

    code, shown, set_by_gate = job("Decide the thresholds", RUN=made["run"], MIN="a.completeness=5\n\nclarity=1\n")
    assert code == 2  # an unknown metric is the workflow's mistake, and no verdict
    assert "no metric is called 'clarity'" in shown
    assert "verdict" not in set_by_gate

    code, shown, set_by_gate = job(
        "Decide the thresholds", RUN=made["run"], MIN="a.completeness=3\nfactual_adherence=1\n"
    )
    assert (code, set_by_gate["verdict"]) == (0, "undecided")  # the last step ends the job
    assert shown.startswith("::warning title=karat gate%3A undecided::completeness at least 3 under a")
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("### Gate undecided")

    for old, method in (("", "POST"), ("77\n", "PATCH")):
        code, _, _ = job("Comment on the pull request", MARKDOWN=set_by_gate["markdown"], NUMBER="12", OLD=old)
        call = json.loads((tmp_path / "gh.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        assert (code, call[:3]) == (0, ["api", "--method", method])
        assert call[3].endswith("issues/comments/77" if old else "issues/12/comments")


@pytest.mark.parametrize(
    ("verdict", "undecided", "code"),
    [("passed", "fail", 0), ("failed", "warn", 1), ("undecided", "fail", 4), ("undecided", "warn", 0), ("", "warn", 1)],
)
def test_the_job_ends_as_the_gate_decided(job, verdict, undecided, code):
    assert job("End as the gate decided", VERDICT=verdict, UNDECIDED=undecided)[0] == code


def test_an_experiment_that_cannot_be_run_fails_the_job(job, tmp_path):
    code, shown, made = job("Run the experiment", EXPERIMENT="nowhere.yaml")
    assert (code, made) == (2, {})
    assert "there is no such file" in shown


@pytest.mark.quick(1)
@pytest.mark.parametrize("text", ["$(touch pwned)", "`touch pwned`", "; touch pwned", '"; touch pwned; "', "--help"])
def test_what_inputs_hold_is_never_run(job, tmp_path, text):
    everywhere = dict.fromkeys(("MIN", "MAX", "MAX_DROP", "BASELINE", "RUN"), text)
    assert job("Decide the thresholds", **everywhere)[0] == 2
    job("Run the experiment", EXPERIMENT=text)
    job("Fetch the baseline", BRANCH=text, ARTIFACT=text)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.slow
def test_a_run_that_is_there_is_taken(job, tmp_path):
    assert main(["run", str(tmp_path / "experiment.yaml"), "--results", str(tmp_path / "results"), "--quiet"]) == 0
    assert job("Run the experiment", GIVEN="latest")[2] == {"run": "latest"}
    assert job("Decide the thresholds", RUN="latest")[2]["verdict"] == "passed"
