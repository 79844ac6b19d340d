"""Files of promptfoo become runs with promptfoo's own counts and means."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary

from karat import plugins
from karat.errors import BadDataset
from karat.records import Answer, Failure, Score
from karat_imports.imported import format_of

V2, V3 = FILES / "promptfoo" / "v2.json", FILES / "promptfoo" / "v3.json"


def test_counts_means_costs_and_tokens_are_those_of_promptfoo(tmp_path: Path) -> None:
    made = imported("promptfoo", tmp_path, V3)
    names = ["small · short", "small · chat", "large · short"]
    assert list(made.run.info.conditions) == names
    stats = json.loads(V3.read_bytes())["results"]["stats"]
    assert made.counts == {"answers": stats["successes"] + stats["failures"], "failures": stats["errors"], "scores": 54}
    found = means(made)
    answers = list(made.run.events_of(Answer))
    for name, prompt in zip(names, json.loads(V3.read_bytes())["results"]["prompts"], strict=True):
        own = prompt["metrics"]
        graded = own["testPassCount"] + own["testFailCount"]
        assert found[name, "promptfoo.pass"] == (pytest.approx(own["testPassCount"] / graded), graded)
        assert found[name, "promptfoo.score"] == (pytest.approx(own["score"] / graded), graded)
        for metric, total in own["namedScores"].items():
            assert found[name, f"{metric}.score"][0] == pytest.approx(total / own["namedScoreWeights"][metric])
        replies = [answer.replies[0] for answer in answers if answer.condition == name]
        assert sum(reply.dollars or 0 for reply in replies) == pytest.approx(own["cost"])
        used = [reply.usage for reply in replies if reply.usage is not None]
        assert sum(tokens.input_tokens or 0 for tokens in used) == own["tokenUsage"]["prompt"]
        assert sum(tokens.output_tokens or 0 for tokens in used) == own["tokenUsage"]["completion"]
    assert findings(made) == {}
    assert made.run.info.source["tool"] == "promptfoo 0.121.20"


def test_a_test_case_is_a_sample_and_each_repeat_a_repetition(tmp_path: Path) -> None:
    made = imported("promptfoo", tmp_path, V3)
    samples = {sample.turns[0].question: sample for sample in made.run.samples()}
    assert set(samples) == {"capital of France", "seven times eight", "unknown thing", "broken thing"}
    assert samples["capital of France"].turns[0].golden == "Paris", "a variable in an assertion has its value"
    assert samples["capital of France"].metadata == {"answer": "Paris", "topic": "geography"}
    assert samples["seven times eight"].metadata == {"description": "a product"}
    events: list[Answer | Failure] = [*made.run.events_of(Answer), *made.run.events_of(Failure)]
    placed = Counter((event.sample, event.condition, event.repetition) for event in events)
    assert len(placed) == 4 * 3 * 2
    assert set(placed.values()) == {1}


def test_reasons_prompts_and_judges_tokens_are_kept(tmp_path: Path) -> None:
    made = imported("promptfoo", tmp_path, V3)
    judged = [score for score in made.run.events_of(Score) if score.scorer == "quality"]
    assert {score.reasons["pass"] for score in judged} == {"It is <b>right</b>."}
    assert {score.usage.input_tokens for score in judged if score.usage} == {40}
    prompts = {answer.detail["prompt"] for answer in made.run.events_of(Answer) if answer.condition == "small · short"}
    assert "What is the capital of France?" in prompts
    (failure, *_) = made.run.events_of(Failure)
    assert (failure.cls, failure.stage) == ("infrastructure", "agent")
    assert "ECONNREFUSED" in failure.message


def test_what_was_not_recorded_is_missing(tmp_path: Path) -> None:
    made = imported("promptfoo", tmp_path, V3)
    unknown = [answer for answer in made.run.events_of(Answer) if answer.text == '{"label":"none"}']
    assert [(answer.replies[0].dollars, answer.replies[0].usage) for answer in unknown] == [(None, None)] * 6
    assert summary(made).total.cost.agent.unknown == 12, "those six, and six errors"


def test_files_before_0_99_are_read_alike(tmp_path: Path) -> None:
    made = imported("promptfoo", tmp_path, V2)
    whole = json.loads(V2.read_bytes())["results"]
    own = [prompt["metrics"] for prompt in whole["table"]["head"]["prompts"]]
    found = means(made)
    for name, metrics in zip(made.run.info.conditions, own, strict=True):
        # This version counts an error as a failed test.
        assert found[name, "promptfoo.pass"][0] == pytest.approx(metrics["testPassCount"] / 6)
        assert found[name, "exact.score"][0] == pytest.approx(metrics["namedScores"]["exact"] / 4)
    assert made.counts["failures"] == 6
    assert max(answer.repetition for answer in made.run.events_of(Answer)) == 1


def test_a_test_whose_assertions_changed_is_the_same_sample(tmp_path: Path) -> None:
    whole = json.loads(V3.read_bytes())
    for row in whole["results"]["results"]:
        row["testCase"]["assert"] = []
    later = tmp_path / "later.json"
    later.write_text(json.dumps(whole))
    ids = {
        sample.id for path in (V2, V3, later) for sample in imported("promptfoo", tmp_path / "runs", path).run.samples()
    }
    assert len(ids) == 4


def test_two_files_are_compared_by_test_case(tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    again.write_bytes(V3.read_bytes())
    made = imported("promptfoo", tmp_path / "runs", V3, again)
    assert list(made.run.info.conditions)[::3] == ["v3: small · short", "again: small · short"]
    assert len(list(made.run.samples())) == 4


def test_several_assertions_of_one_type_in_every_test_are_metrics_of_their_own(tmp_path: Path) -> None:
    asserted = [{"type": "llm-rubric", "value": value} for value in ("polite", "brief")]
    results = [{"assertion": assertion, "pass": place == 0, "score": 0.5} for place, assertion in enumerate(asserted)]
    row = {
        "promptIdx": 0,
        "testIdx": 0,
        "vars": {"q": "A?"},
        "response": {"output": "B", "cached": True},
        "success": False,
    }
    whole = {
        "results": {"version": 3, "results": [{**row, "score": 0.5, "latencyMs": 1,
                    "gradingResult": {"componentResults": results},
                    "namedScores": {"extra": 0.25, "odd": "0.5", "brief": 1}}]},
        "config": {"defaultTest": {"assert": asserted}},
    }  # fmt: skip
    path = tmp_path / "r.json"
    path.write_text(json.dumps(whole))
    made = imported("promptfoo", tmp_path / "runs", path)
    found = {(score.scorer, name): value for score in made.run.events_of(Score) for name, value in score.values.items()}
    assert found["llm-rubric: polite", "pass"] is True
    assert found["llm-rubric: brief", "pass"] is False
    assert (found["extra", "score"], found["odd", "score"]) == (0.25, None)
    assert [scorer.name for scorer in made.run.scorers()][-3:] == ["extra", "odd", "brief"]
    assert findings(made) == {
        ("changed", "answer from promptfoo's cache: its latency is missing"): 1,
        ("unreadable", "score that is not a number"): 1,
    }


def test_the_file_is_recognized_and_others_are_not(tmp_path: Path) -> None:
    assert [format_of(path) for path in (V2, V3)] == ["promptfoo", "promptfoo"]
    other = tmp_path / "other.json"
    other.write_text('{"results": []}')
    assert format_of(other) != "promptfoo"
    empty = tmp_path / "empty.json"
    empty.write_text('{"results": {"version": 3, "results": [7]}}')
    with pytest.raises(BadDataset, match=r"holds no results; result not a JSON object \(empty.json, "):
        imported("promptfoo", tmp_path, empty)
    with pytest.raises(BadDataset, match=r"holds no results of promptfoo \(expected results\.results\)"):
        imported("promptfoo", tmp_path, other)
    assert plugins.find("importers", "promptfoo").__doc__


def test_a_file_whose_keys_are_sorted_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "sorted.json"
    path.write_text(json.dumps(json.loads((FILES / "promptfoo" / "v3.json").read_bytes()), sort_keys=True))
    assert format_of(path) == "promptfoo"
