"""Job folders of Harbor and trajectories in ATIF become runs with their rewards and failures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means

from karat.errors import BadDataset
from karat.records import Answer, Failure, ToolCall, Usage
from karat_imports.imported import format_of

JOB = FILES / "harbor"
CLAUDE, TERMINUS = "claude-code · anthropic/claude-haiku-4-5", "terminus-2 · openai/gpt-5.4"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return Path(shutil.copytree(JOB, tmp_path / "job"))


def changed(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_job_is_a_run_with_agents_as_conditions_and_attempts_as_repetitions(tmp_path: Path) -> None:
    made = imported("harbor", tmp_path, JOB)
    info = made.run.info
    assert (info.name, info.plan.conditions, info.plan.samples, info.plan.repetitions) == (
        "terminal-bench", (CLAUDE, TERMINUS), 2, 2,
    )  # fmt: skip
    assert means(made) == {(CLAUDE, "reward"): (0.25, 3), (TERMINUS, "reward"): (1.0, 1)}
    assert made.findings.notes == ["job harbor: 7 of 8 trials are here"]
    assert findings(made) == {("left out", "scores of a trial that failed"): 1}


def test_an_exception_is_a_failure_of_its_class_and_a_verified_timeout_has_its_reward(tmp_path: Path) -> None:
    made = imported("harbor", tmp_path, JOB)
    found = {(one.sample, one.condition, one.stage, one.cls, one.kind) for one in made.run.events_of(Failure)}
    assert found == {
        ("slow-build", CLAUDE, "score", "judge", "error"),
        ("hello-file", TERMINUS, "agent", "agent", "error"),
        ("slow-build", TERMINUS, "agent", "infrastructure", "timeout"),
    }
    late = next(one for one in made.run.events_of(Answer) if one.sample == "slow-build" and one.repetition == 0)
    assert (late.condition, late.text) == (CLAUDE, "Still building.")


def test_the_trajectory_gives_the_answer_the_calls_and_their_results(tmp_path: Path) -> None:
    answer = next(imported("harbor", tmp_path, JOB).run.events_of(Answer))
    (reply,) = answer.replies
    assert (answer.sample, answer.seconds, answer.started) == ("hello-file", 30.0, "2026-10-01T10:00:00+00:00")
    assert (reply.text, reply.reasoning, reply.dollars) == ("The file is there.", "A file is missing.", 0.02)
    assert (reply.model, reply.agent) == ("anthropic/claude-haiku-4-5", "claude-code 2.1.62")
    assert reply.usage == Usage(input_tokens=1000, output_tokens=50, cache_read_tokens=400)
    assert reply.tool_calls == (
        ToolCall(tool="Bash", input={"command": "ls"}, result="README"),
        ToolCall(tool="Write", input={"path": "hello.txt"}, result="written"),
    )


def test_the_shortest_first_message_is_the_question_of_all_agents(tmp_path: Path) -> None:
    made = imported("harbor", tmp_path, JOB)
    assert [(one.id, one.turns[0].question) for one in made.run.samples()] == [
        ("hello-file", "Write a file hello.txt that says Hello."), ("slow-build", "Build it."),
    ]  # fmt: skip


def test_nothing_that_a_job_keeps_of_its_environment_is_in_the_run(tmp_path: Path) -> None:
    folder = imported("harbor", tmp_path, JOB).run.path
    assert "secret-value" in (JOB / "hello-file__AbC1" / "result.json").read_text()
    assert not [file for file in folder.iterdir() if b"secret-value" in file.read_bytes()]


def test_trials_and_trajectories_are_read_alone(tmp_path: Path) -> None:
    trial = JOB / "hello-file__AbC1"
    assert means(imported("harbor", tmp_path / "a", trial / "result.json")) == {(CLAUDE, "reward"): (1.0, 1)}
    made = imported("harbor", tmp_path / "b", trial / "agent" / "trajectory.json")
    (answer,) = made.run.events_of(Answer)
    assert (answer.text, answer.replies[0].usage) == (
        "The file is there.", Usage(input_tokens=1000, output_tokens=50, cache_read_tokens=400),
    )  # fmt: skip
    assert means(made) == {}
    paths = (JOB / "result.json", trial / "result.json", trial / "agent" / "trajectory.json")
    assert [format_of(path) for path in paths] == ["harbor"] * 3


def test_other_rewards_are_metrics_and_their_direction_is_said(job: Path, tmp_path: Path) -> None:
    rewards = {"rewards": {"reward": 0.5, "style": 3, "note": "good"}}
    changed(job / "hello-file__AbC1" / "result.json", verifier_result=rewards)
    made = imported("harbor", tmp_path / "runs", job)
    assert means(made)[CLAUDE, "style"] == (3.0, 1)
    assert "taken to be better when higher, as every reward: style, note" in made.findings.notes
    assert findings(made)["unreadable", "reward that is not a number"] == 1


def test_a_link_that_an_agent_left_is_not_followed(job: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text((job / "hello-file__AbC1" / "agent" / "trajectory.json").read_text())
    for trial in ("hello-file__AbC1", "hello-file__T2a"):
        shutil.rmtree(job / trial / "agent")
    (job / "hello-file__AbC1" / "agent").mkdir()
    (job / "hello-file__AbC1" / "agent" / "trajectory.json").symlink_to(secret)
    (job / "linked__1").symlink_to(job / "hello-file__AbC1")
    made = imported("harbor", tmp_path / "runs", job)
    first = next(made.run.events_of(Answer))
    assert (first.text, first.replies[0].stop_reason) == ("", "not_recorded")
    assert made.run.info.plan.repetitions == 2


def test_a_broken_trial_or_trajectory_leaves_the_others(job: Path, tmp_path: Path) -> None:
    (job / "hello-file__zZz9" / "result.json").write_text("{")
    (job / "hello-file__AbC1" / "agent" / "trajectory.json").write_text('{"steps": [{"source": "user"}')
    made = imported("harbor", tmp_path / "runs", job)
    assert means(made)[CLAUDE, "reward"] == (0.5, 2)
    assert ("unreadable", "trial: holds JSON that ends too early") in findings(made)
    assert ("unreadable", "trajectory: holds JSON that ends too early") in findings(made)


def test_a_new_trial_makes_another_run(job: Path, tmp_path: Path) -> None:
    first = imported("harbor", tmp_path / "runs", job)
    assert imported("harbor", tmp_path / "runs", job).run.path == first.run.path
    shutil.copytree(job / "hello-file__AbC1", job / "hello-file__New")
    again = imported("harbor", tmp_path / "runs", job)
    assert (again.run.path == first.run.path, again.run.info.plan.repetitions) == (False, 3)


def test_a_job_without_its_trials_and_other_files_are_refused(tmp_path: Path) -> None:
    alone = tmp_path / "result.json"
    alone.write_text((JOB / "result.json").read_text())
    with pytest.raises(BadDataset, match="without the folders of its trials"):
        imported("harbor", tmp_path / "runs", alone)
    alone.write_text("{}")
    with pytest.raises(BadDataset, match="neither"):
        imported("harbor", tmp_path / "runs", alone)
