"""Results of `claude plugin eval` and of skill-creator become runs with their own scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary

from karat.errors import BadDataset
from karat.records import Answer, Failure, Score
from karat_imports.imported import format_of

PLUGIN, BENCHMARK = FILES / "skill-evals" / "plugin-eval.json", FILES / "skill-evals" / "benchmark.json"


def plugin() -> dict[str, Any]:
    whole: dict[str, Any] = json.loads(PLUGIN.read_bytes())
    return whole


def test_scores_of_both_arms_and_their_difference_are_those_of_the_file(tmp_path: Path) -> None:
    made = imported("skill-evals", tmp_path, PLUGIN)
    own, cases = plugin()["aggregates"], [case["aggregates"] for case in plugin()["cases"]]
    found = {metric: value for (arm, metric), (value, _) in means(made).items() if arm == "with"}
    without = {metric: value for (arm, metric), (value, _) in means(made).items() if arm == "without"}
    assert found["score"] == pytest.approx(own["overallScore"])
    assert found["plugin-eval.pass"] == pytest.approx(own["overallPassRate"])
    assert without["score"] == pytest.approx(sum(case["scoreWithout"] for case in cases) / 2)
    (difference,) = [one for one in summary(made).differences if one.metric == "score"]
    assert (difference.a, difference.b, difference.estimate.value) == (
        "without",
        "with",
        pytest.approx(own["meanDelta"]),
    )
    cost = summary(made).total.cost
    assert cost.agent.known == pytest.approx(plugin()["costUsd"])
    assert cost.judge.known == pytest.approx(8 * 0.001)
    assert findings(made) == {}
    assert made.run.info.source["tool"] == "claude-plugin-eval 2.1.329"


def test_graders_are_metrics_with_their_explanations(tmp_path: Path) -> None:
    made = imported("skill-evals", tmp_path, PLUGIN)
    assert {scorer.name: scorer.offline for scorer in made.run.scorers()} == {
        "plugin-eval": False, "mentions-tests": True, "clear": False, "skill-fired": True,
    }  # fmt: skip
    said = {score.reasons["clear.pass"] for score in made.run.events_of(Score) if score.scorer == "clear"}
    assert said == {"clear says yes", "clear says <b>no</b>"}
    first = next(made.run.samples())
    assert (first.id, first.turns[0].question) == ("review-diff", "Review the staged diff.")
    answer = next(made.run.events_of(Answer))
    assert (answer.text, answer.replies[0].stop_reason, answer.seconds) == ("", "not_recorded", 4.5)
    assert answer.started == "2026-10-01T10:00:00.000Z"


def test_a_run_that_broke_off_is_a_failure_and_no_score_of_zero(tmp_path: Path) -> None:
    whole = plugin()
    runs = whole["cases"][0]["arms"]["with"]
    runs[0] |= {"error": "API Error: Rate limit reached", "score": 0.0, "passed": False}
    runs[1] |= {"skippedPaidGraders": True}
    path = tmp_path / "results.json"
    path.write_text(json.dumps(whole | {"partial": True, "partialReason": "cost_ceiling"}))
    made = imported("skill-evals", tmp_path / "runs", path)
    (failure,) = made.run.events_of(Failure)
    assert (failure.sample, failure.condition, failure.cls) == ("review-diff", "with", "infrastructure")
    assert means(made)["with", "score"] == (1.0, 2)
    assert means(made)["with", "mentions-tests.pass"] == (1.0, 3)
    assert findings(made) == {("changed", "run whose paid graders were skipped: its score as a whole is missing"): 1}
    assert made.findings.notes == ["results.json is partial: cost_ceiling"]


def test_a_benchmark_of_skill_creator(tmp_path: Path) -> None:
    made = imported("skill-evals", tmp_path, BENCHMARK)
    own = json.loads(BENCHMARK.read_bytes())["run_summary"]
    assert means(made) == {
        (arm, "pass_rate"): (pytest.approx(own[arm]["pass_rate"]["mean"]), 4) for arm in ("with_skill", "without_skill")
    }
    assert {answer.seconds for answer in made.run.events_of(Answer)} == {42.5, None}, "0 stands for no time"
    score = next(made.run.events_of(Score))
    assert "It has a sum (cell B10)" in score.reasons["pass_rate"]
    assert (made.run.info.name, made.run.info.agent_model) == ("pdf", "claude-sonnet-5")
    assert {answer.repetition for answer in made.run.events_of(Answer)} == {0, 1}


def test_two_files_are_conditions_of_one_run(tmp_path: Path) -> None:
    later = tmp_path / "later.json"
    later.write_text(json.dumps(plugin() | {"suite": {"ablation": "none"}}))
    made = imported("skill-evals", tmp_path / "runs", PLUGIN, later)
    assert list(made.run.info.conditions) == [
        "plugin-eval: without", "plugin-eval: with", "later: with", "later: without",
    ]  # fmt: skip
    assert made.run.info.plan.samples == 2


def test_the_files_are_recognized_and_others_refused(tmp_path: Path) -> None:
    assert [format_of(path) for path in (PLUGIN, BENCHMARK)] == ["skill_evals", "skill_evals"]
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(BadDataset, match="neither cases"):
        imported("skill-evals", tmp_path / "runs", other)
