"""Test runs of DeepEval become runs with its own counts and means."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means

from karat.analysis import summarize
from karat.errors import BadDataset
from karat.records import Answer, Failure, Metric, Score, ToolCall
from karat_imports.imported import Imported, format_of

PATH = FILES / "deepeval" / "latest_test_run.json"


def whole() -> dict[str, object]:
    run: dict[str, object] = json.loads(PATH.read_bytes())["testRunData"]
    return run


def test_counts_and_means_are_those_of_deepeval(tmp_path: Path) -> None:
    made = imported("deepeval", tmp_path, PATH)
    scores: dict[str, list[float | bool]] = {}
    for score in made.run.events_of(Score):
        for metric, value in score.values.items():
            if value is not None:
                scores.setdefault(f"{score.scorer}.{metric}", []).append(value)
    own = json.loads(PATH.read_bytes())["testRunData"]["metricsScores"]
    assert [one["metric"] for one in own] == ["Exact Match", "Length"]
    for one in own:
        name = one["metric"]
        assert scores[f"{name}.{name}"] == one["scores"]
        assert scores[f"{name}.{name} pass"] == pytest.approx([score in (1.0, 0.5) for score in one["scores"]])
        assert sum(scores[f"{name}.{name} pass"]) == one["passes"]
    assert sum(scores["deepeval.pass"]) == whole()["testPassed"]
    assert findings(made) == {}
    assert made.run.info.name == "small questions"
    assert mean(scores["Exact Match.Exact Match"]) == 0.5


def test_a_test_case_that_is_there_twice_is_one_sample_with_two_repetitions(tmp_path: Path) -> None:
    made = imported("deepeval", tmp_path, PATH)
    samples = {sample.turns[0].question: sample for sample in made.run.samples()}
    assert set(samples) == {"Capital of France?", "Seven times eight?", "Who?"}
    assert samples["Capital of France?"].metadata == {"topic": "geography"}
    twice = [answer for answer in made.run.events_of(Answer) if answer.text in ("54", "56")]
    assert [(answer.sample, answer.repetition) for answer in twice] == [
        (samples["Seven times eight?"].id, 0), (samples["Seven times eight?"].id, 1),
    ]  # fmt: skip
    assert means(made)["small questions", "Exact Match"] == (pytest.approx((1 + 0.5 + 0) / 3), 4)


def test_a_metric_that_failed_is_no_score_of_zero(tmp_path: Path) -> None:
    made = imported("deepeval", tmp_path, PATH)
    (failure,) = made.run.events_of(Failure)
    assert (failure.cls, failure.stage, failure.scorer) == ("judge", "score", "Length")
    assert failure.message == "RuntimeError: the judge is down"
    assert [score.values for score in made.run.events_of(Score) if score.trial == failure.trial] == [
        {"pass": None}, {"Exact Match": 0.0, "Exact Match pass": False},
    ]  # fmt: skip


def test_costs_times_tools_and_reasons_are_kept_where_they_were_recorded(tmp_path: Path) -> None:
    made = imported("deepeval", tmp_path, PATH)
    first, second, *_ = made.run.events_of(Answer)
    assert first.replies[0].tool_calls == (ToolCall(tool="search", input={"q": "France"}, result="Paris"),)
    assert (first.seconds, first.replies[0].dollars) == (1.5, 0.002)
    assert (second.seconds, second.replies[0].dollars, second.replies[0].usage) == (None, None, None)
    assert first.detail["retrievalContext"] == ["Paris is the capital."]
    (length,) = (
        score for score in made.run.events_of(Score) if score.trial == first.trial and score.scorer == "Length"
    )
    assert (length.reasons, length.dollars) == ({"Length": "It has <b>5</b> characters."}, 0.001)


def test_files_of_the_results_folder_are_conditions_of_one_run(tmp_path: Path) -> None:
    bare = tmp_path / "test_run_20261122_213217.json"
    conversation = {
        "name": "c", "scenario": "Wants a refund", "expectedOutcome": "Gets it", "success": True,
        "turns": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Refunded."}],
        "metricsData": [{"name": "Politeness", "score": 1.0, "success": True}],
    }  # fmt: skip
    bare.write_text(
        json.dumps({**whole(), "identifier": "other", "conversationalTestCases": [conversation, {"turns": 1}]})
    )
    assert [format_of(path) for path in (PATH, bare)] == ["deepeval", "deepeval"]
    made = imported("deepeval", tmp_path / "runs", PATH, bare)
    assert list(made.run.info.conditions) == ["small questions", "other"]
    assert made.run.info.plan.samples == 4
    assert means(made)["other", "Politeness"] == (1.0, 1)
    assert [answer.text for answer in made.run.events_of(Answer)][-1] == "Refunded."
    assert findings(made) == {("unreadable", "test case without an input"): 1}


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"testRunData": {"testCases": 1}}')
    with pytest.raises(BadDataset, match=r"holds no test run of DeepEval \(expected testCases\)"):
        imported("deepeval", tmp_path / "runs", path)


def case(
    number: int, name: str, *, score: float, success: bool | None, threshold: float | None = 0.5
) -> dict[str, object]:  # fmt: skip
    metric = {"name": name, "threshold": threshold, "success": success, "score": score, "error": None}
    return {"input": f"q{number}", "actualOutput": "a", "success": success, "metricsData": [metric]}


def saved(folder: Path, name: str, cases: list[dict[str, object]]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"testCases": cases, "identifier": name}), encoding="utf-8")
    return path


REVERSED = "no verdict shows its direction, and DeepEval 4.2 reversed that of Bias, Hallucination, Misuse, Toxicity"
NO_WINNER = "neither direction is taken as better, so no winner is named by its score"
CONTRADICTION = "its scores, thresholds and verdicts contradict each other"
HIGHER = "no verdict shows its direction; taken as better when higher, DeepEval's rule"


@pytest.mark.parametrize(
    ("name", "results", "direction", "note"),
    [
        pytest.param("Hallucination", [(1.0, False), (0.2, True)], "lower", "", id="before 4.2: a maximum"),
        pytest.param("Hallucination", [(1.0, True), (0.2, False)], "higher", "", id="since 4.2: a minimum"),
        pytest.param("My Rule [GEval]", [(1.0, False), (0.2, True)], "lower", "", id="a metric of one's own"),
        pytest.param("Faithfulness", [(1.0, True), (0.2, False)], "higher", "", id="a minimum"),
        pytest.param("Bias", [(0.5, True)], "none", f"{REVERSED}; {NO_WINNER}", id="at the threshold"),
        pytest.param("Toxicity", [(0.9, None)], "none", f"{REVERSED}; {NO_WINNER}", id="without a verdict"),
        pytest.param("Racial Bias [GEval]", [(0.9, None)], "none", f"{REVERSED}; {NO_WINNER}", id="a like name"),
        pytest.param("Exact Match", [(0.5, True)], "higher", HIGHER, id="others are better when higher"),
        pytest.param("Own", [(0.9, None)], "higher", HIGHER, id="one's own, without a verdict"),
        pytest.param("Strange", [(1.0, True), (0.9, False)], "none", f"{CONTRADICTION}; {NO_WINNER}", id="against"),
    ],
)  # fmt: skip
def test_which_way_a_metric_is_better_follows_from_verdicts_or_is_said(tmp_path, name, results, direction, note):
    cases = [case(number, name, score=score, success=passed) for number, (score, passed) in enumerate(results)]
    made = imported("deepeval", tmp_path / "runs", saved(tmp_path, "one", cases))
    assert metric_of(made, name).direction == direction
    assert made.findings.notes == ([f"{name}: {note}"] if note else [])
    assert note in " ".join(summarize(made.run).warnings)


def test_no_winner_is_named_by_a_score_whose_direction_nothing_shows(tmp_path):
    high = saved(tmp_path, "high", [case(at, "Toxicity", score=1.0, success=None) for at in range(8)])
    low = saved(tmp_path, "low", [case(at, "Toxicity", score=0.0, success=None) for at in range(8)])
    pairs = summarize(imported("deepeval", tmp_path / "runs", high, low).run).differences
    assert [pair.winner for pair in pairs if pair.metric == "Toxicity"] == [None]


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("Answer Relevancy", (0.0, 1.0)), ("Hallucination", (0.0, 1.0)), ("Clear [GEval]", (None, None)),
        ("Tree [DAG]", (None, None)), ("Words", (None, None)),
    ],
)  # fmt: skip
def test_only_scales_that_deepeval_fixes_are_bounded(tmp_path, name, bounds):
    cases = [case(number, name, score=score, success=score > 0.5) for number, score in enumerate((0.2, 0.9))]
    assert metric_of(imported("deepeval", tmp_path / "runs", saved(tmp_path, "one", cases)), name).bounds == bounds


def metric_of(made: Imported, name: str) -> Metric:
    return next(metric for scorer in made.run.info.scorers for metric in scorer.metrics if metric.name == name)


def test_the_run_that_hallucinates_everything_is_worse(tmp_path):
    bad = saved(tmp_path, "bad", [case(at, "Hallucination", score=1.0, success=False) for at in range(8)])
    good = saved(tmp_path, "good", [case(at, "Hallucination", score=0.0, success=True) for at in range(8)])
    run = imported("deepeval", tmp_path / "runs", bad, good).run
    assert {pair.winner for pair in summarize(run).differences} == {"good"}
    assert {info.key for info in summarize(run).metrics} == {"pass", "Hallucination", "Hallucination pass"}


def test_metrics_of_spans_are_kept_under_the_name_of_the_span(tmp_path):
    metric = {"name": "Faithfulness", "score": 0.75, "success": True, "threshold": 0.5}
    trace = {"llmSpans": [{"name": "answer", "metricsData": [metric]}], "toolSpans": [{"type": "tool"}]}
    cases = [case(0, "Relevancy", score=1.0, success=True) | {"trace": trace}]
    made = imported("deepeval", tmp_path / "runs", saved(tmp_path, "one", cases))
    values = {name: value for score in made.run.events_of(Score) for name, value in score.values.items()}
    assert values["answer: Faithfulness"] == 0.75


def test_a_metric_keeps_its_name_however_many_spans_have_it(tmp_path):
    def traced(*scores: float) -> dict[str, object]:
        spans = [
            {"name": "answer", "metricsData": [{"name": "Faithfulness", "score": score, "success": score > 0.5}]}
            for score in scores
        ]
        return {"input": f"{len(scores)} spans", "actualOutput": "a", "trace": {"llmSpans": spans}}

    made = imported("deepeval", tmp_path / "runs", saved(tmp_path, "one", [traced(0.8), traced(1.0, 0.0)]))
    assert means(made)["one", "answer: Faithfulness"] == (pytest.approx((0.8 + 0.5) / 2), 2)
    assert {metric for _, metric in means(made)} == {"pass", "answer: Faithfulness", "answer: Faithfulness pass"}


def test_the_cache_holds_test_cases_in_its_keys(tmp_path: Path) -> None:
    tested = {"input": "Where?", "actual_output": "Here.", "expected_output": "There.", "context": None,
              "retrieval_context": ["a map"], "hyperparameters": None}  # fmt: skip
    metric = {"name": "Faithfulness", "threshold": 0.5, "success": True, "score": 0.75, "reason": "so",
              "evaluationModel": "judge-1"}  # fmt: skip
    cached = {"cached_metrics_data": [{"metric_data": metric, "metric_configuration": {"threshold": 0.5}}]}
    path = tmp_path / ".deepeval-cache.json"
    path.write_text(json.dumps({"test_cases_lookup_map": {json.dumps(tested): cached, "{broken": cached}}))
    assert format_of(path) == "deepeval"
    made = imported("deepeval", tmp_path / "runs", path)
    (answer,) = made.run.events_of(Answer)
    (sample,) = made.run.samples()
    assert (sample.turns[0].question, sample.turns[0].golden, answer.text) == ("Where?", "There.", "Here.")
    assert answer.detail["retrievalContext"] == ["a map"]
    name = made.run.info.plan.conditions[0]
    assert means(made) == {(name, "Faithfulness"): (0.75, 1), (name, "Faithfulness pass"): (1.0, 1)}
    assert findings(made) == {("unreadable", "test case without an input"): 1}
