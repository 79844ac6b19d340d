"""Results of Every Eval Ever become runs: karat's own with the numbers they had, and those of others with theirs."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copy

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary

from karat.errors import BadDataset
from karat.exports import save
from karat.records import Answer, Failure, Reply, ToolCall, Usage
from karat_imports.exports.eee import Eee
from karat_imports.imported import Imported, format_of, import_results

FOLDER = FILES / "eee"


def numbers_of(made: Imported) -> dict[tuple[str, str, str], tuple[object, ...]]:
    """Condition, scorer, metric → mean, standard error, interval and number of answers."""
    whole = summary(made)
    metrics = {metric.key: (metric.scorer, metric.key) for metric in whole.metrics}
    return {
        (one.condition, *metrics[one.metric]): (one.mean.value, one.mean.se, one.mean.low, one.mean.high, one.n_answers)
        for one in whole.results
    }


def exported(made: Imported, out: Path) -> list[Path]:
    return [path for path in save(Eee().render(summary(made), made.run), out) if path.suffix == ".jsonl"]


def test_an_aggregate_is_imported_again_if_its_samples_changed(tmp_path: Path) -> None:
    aggregate, samples = (Path(copy(path, tmp_path)) for path in sorted(FOLDER.glob("2050fa10*"), reverse=True)[::-1])
    before = numbers_of(imported("eee", tmp_path / "runs", aggregate))
    lines = samples.read_text().splitlines(keepends=True)
    samples.write_text("".join(lines[: len(lines) // 2]))
    after = numbers_of(imported("eee", tmp_path / "runs", aggregate))
    assert before != after == numbers_of(imported("eee", tmp_path / "runs", samples))


@pytest.mark.parametrize(
    ("name", "pattern"), [("promptfoo", "v3.json"), ("deepeval", "*.json"), ("lm-eval", "samples_tiny_words*")]
)
def test_what_karat_wrote_comes_back_with_the_same_numbers(tmp_path: Path, name: str, pattern: str) -> None:
    before = imported(name, tmp_path / "before", *(FILES / name).glob(pattern))
    after = imported("eee", tmp_path / "after", *exported(before, tmp_path / "out"))
    numbers, again = numbers_of(before), numbers_of(after)
    assert len(again) >= 2
    assert again == {key: numbers[key] for key in again}
    scored = {answer.trial for answer in after.run.events_of(Answer)}
    assert {
        (answer.sample, answer.condition, answer.repetition, answer.text) for answer in after.run.events_of(Answer)
    } <= {(answer.sample, answer.condition, answer.repetition, answer.text) for answer in before.run.events_of(Answer)}
    assert len(scored) == after.counts["answers"]
    assert findings(after) == {}


def test_files_of_others_have_the_means_and_standard_errors_of_their_aggregates(tmp_path: Path) -> None:
    made = {one.run.info.name: one for one in import_results("eee", [FOLDER], tmp_path)}
    assert set(made) == {"tiny_choice", "tiny_words"}
    for path in FOLDER.glob("*.json"):
        aggregate = json.loads(path.read_bytes())
        results = {one.metric: one.mean for one in summary(made[aggregate["evaluation_id"].split("/")[0]]).results}
        for one in aggregate["evaluation_results"]:
            task, _, part = one["evaluation_name"].rpartition("/")
            name = one["metric_config"]["metric_name"]
            mean, own = results[f"{part}.{name}" if task else name], one["score_details"]
            assert mean.value == pytest.approx(own["score"])
            assert mean.se == pytest.approx(own["uncertainty"]["standard_error"]["value"])
            assert mean.n == own["uncertainty"]["num_samples"]
    choice = made["tiny_choice"].run
    assert choice.info.source["tool"] == "lm_eval 0.4.13"
    assert choice.info.agent_model == "lab/tiny-model"
    assert next(choice.samples()).turns[0].question == "Question: What is 0 plus 1?\nAnswer:"
    assert {scorer.metrics[0].kind for scorer in choice.scorers()} == {"share"}
    assert {format_of(path) for path in FOLDER.iterdir() if path.suffix != ".md"} == {"eee"}


def instance(sample: str, score: object, **more: object) -> str:
    whole = {
        "schema_version": "0.3.0", "evaluation_id": "own/lab/m/1", "model_id": "lab/m", "sample_id": sample,
        "evaluation_name": "own/judge", "input": {"raw": f"{sample}?", "reference": ["x", "y"]},
        "interaction_type": "single_turn", "output": {"raw": ["x"]},
        "evaluation": {"score": score, "is_correct": True},
    }  # fmt: skip
    return json.dumps(whole | more)


def test_repetitions_errors_tools_and_tokens(tmp_path: Path) -> None:
    messages = [
        {"turn_idx": 0, "role": "user", "content": "b?"},
        {"turn_idx": 1, "role": "assistant", "content": None,
         "tool_calls": [{"id": "1", "name": "mcp__docs__find", "arguments": {"q": "b"}}]},
        {"turn_idx": 2, "role": "tool", "content": "found", "tool_call_id": ["1"]},
        {"turn_idx": 3, "role": "assistant", "content": "It is x.", "reasoning_trace": "because"},
    ]  # fmt: skip
    tokens = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7}
    ends = [{"turn_idx": 3, "extracted_value": "x", "is_terminal": True}]
    path = tmp_path / "own_samples.jsonl"
    path.write_text(
        "\n".join([
            instance("a", 1.0), instance("a", 0.0, performance={"latency_ms": 250}),
            instance("b", 0.5, output=None, messages=messages, token_usage=tokens, answer_attribution=ends),
            instance("c", 0.0, error="Rate limit reached", output=None), instance("d", "0.5"), '{"schema_version": 1}',
        ])
    )  # fmt: skip
    made = imported("eee", tmp_path / "runs", path)
    assert means(made) == {("lab/m", "judge"): (0.5, 3)}
    answers = {(answer.sample, answer.repetition): answer for answer in made.run.events_of(Answer)}
    assert set(answers) == {("a", 0), ("a", 1), ("b", 0), ("d", 0)}
    assert (answers["a", 0].seconds, answers["a", 1].seconds) == (None, 0.25)
    assert answers["b", 0].replies[0] == Reply(
        text="It is x.", answer="x", reasoning="because", usage=Usage(input_tokens=5, output_tokens=2),
        tool_calls=(ToolCall(tool="find", server="docs", input={"q": "b"}, result="found"),),
    )  # fmt: skip
    (failure,) = made.run.events_of(Failure)
    assert (failure.sample, failure.cls) == ("c", "infrastructure")
    assert findings(made) == {
        ("unreadable", "instance without a score"): 1, ("unreadable", "instance without a sample_id"): 1,
    }  # fmt: skip


def test_an_aggregate_alone_is_refused(tmp_path: Path) -> None:
    alone = Path(copy(next(FOLDER.glob("*.json")), tmp_path))
    with pytest.raises(BadDataset, match="has no instance-level results next to it"):
        imported("eee", tmp_path / "runs", alone)
