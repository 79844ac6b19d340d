"""Samples of lm-evaluation-harness become runs with its own means and standard errors."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copy

import pytest
from tests.karat_imports.imported import FILES, findings, imported, means, summary

from karat.errors import BadDataset
from karat.records import Answer, Score
from karat_imports.imported import Imported, format_of, import_results

FOLDER = FILES / "lm-eval"
RESULTS = next(FOLDER.glob("results_*.json"))
CHOICE, WORDS = (next(FOLDER.glob(f"samples_tiny_{name}_*.jsonl")) for name in ("choice", "words"))


def test_means_and_standard_errors_are_those_of_lm_eval(tmp_path: Path) -> None:
    own = json.loads(RESULTS.read_bytes())["results"]
    for task, path in (("tiny_choice", CHOICE), ("tiny_words", WORDS)):
        made = imported("lm-eval", tmp_path, path)
        results = {one.metric: one for one in summary(made).results}
        for key in own[task]:
            metric, comma, filtered = key.partition(",")
            if comma and not metric.endswith("_stderr"):
                one = results[metric if filtered == "none" else f"{filtered}.{metric}"]
                assert one.mean.value == pytest.approx(own[task][key], abs=1e-12)
                assert one.mean.se == pytest.approx(own[task][f"{metric}_stderr,{filtered}"], rel=1e-12)
                assert one.n_answers == own[task]["sample_len"]
        assert findings(made) == {}


def test_a_folder_of_results_is_one_run_a_task(tmp_path: Path) -> None:
    made = list(import_results("lm-eval", [FOLDER], tmp_path))
    assert {one.run.info.name: dict(one.counts) for one in made} == {
        "tiny_choice": {"answers": 8, "failures": 0, "scores": 8},
        "tiny_words": {"answers": 6, "failures": 0, "scores": 12},
    }
    assert {one.run.info.agent_model for one in made} == {"tiny-model"}
    assert {one.run.info.created for one in made} == {"2026-11-22T21:14:09.855901+00:00"}
    assert [format_of(path) for path in (RESULTS, CHOICE, WORDS)] == ["lm_eval"] * 3


def test_the_choice_with_the_highest_log_likelihood_is_the_answer(tmp_path: Path) -> None:
    made = imported("lm-eval", tmp_path, CHOICE)
    first = next(made.run.samples())
    assert (first.id, first.turns[0].question, first.turns[0].golden) == ("0", "What is 0 plus 1?", "1")
    right = {score.trial: score.values["acc"] for score in made.run.events_of(Score)}
    golden = {sample.id: sample.turns[0].golden for sample in made.run.samples()}
    for answer in made.run.events_of(Answer):
        assert (answer.text == golden[answer.sample]) == right[answer.trial]
        assert answer.text == max(answer.detail["responses"], key=lambda pair: pair[1])[0]
        assert answer.detail["prompt"].startswith("Question: ")
        assert (answer.seconds, answer.replies[0].dollars, answer.replies[0].usage) == (None, None, None)


def relabelled(folder: Path, stamp: str, model: str) -> Path:
    folder.mkdir(exist_ok=True)
    results = json.loads(RESULTS.read_bytes()) | {"model_name": model}
    (folder / f"results_{stamp}.json").write_text(json.dumps(results))
    return Path(copy(CHOICE, folder / f"samples_tiny_choice_{stamp}.jsonl"))


def test_models_are_conditions_of_one_run(tmp_path: Path) -> None:
    other = relabelled(tmp_path / "a", "2026-11-23T00-00-00.1", "other-model")
    again = relabelled(tmp_path / "b", "2026-11-24T00-00-00.1", "other-model")
    made = imported("lm-eval", tmp_path / "runs", CHOICE, other, again)
    assert list(made.run.info.conditions) == [
        "tiny-model", "other-model (2026-11-23T00-00-00.1)", "other-model (2026-11-24T00-00-00.1)",
    ]  # fmt: skip
    assert made.run.info.plan.samples == 8


def test_a_results_file_is_imported_again_if_the_samples_beside_it_changed(tmp_path: Path) -> None:
    samples = relabelled(tmp_path / "a", "2026-11-23T00-00-00.1", "model")
    results = tmp_path / "a" / "results_2026-11-23T00-00-00.1.json"
    before = means(imported("lm-eval", tmp_path / "runs", results))
    samples.write_text(samples.read_text().replace('"acc": 0.0', '"acc": 1.0'))
    after = means(imported("lm-eval", tmp_path / "runs", results))
    assert before["model", "acc"] != after["model", "acc"] == (1.0, 8)
    assert means(imported("lm-eval", tmp_path / "runs", samples)) == after


def samples(folder: Path, *rows: object) -> Imported:
    path = folder / "samples_own_2026-11-22T00-00-00.0.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return imported("lm-eval", folder / "runs", path)


def test_a_metric_of_all_samples_together_is_no_mean_of_theirs(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {}, "target": "x", "arguments": [["Say x", " x"]], "resps": [[[-3.5, True]]]}
    made = samples(tmp_path, {**row, "metrics": ["perplexity", "acc", "bleu"], "perplexity": -3.5, "acc": 1.0,
                              "bleu": ["a", "b"]}, {**row, "acc": 0.0}, {"acc": 1}, 7)  # fmt: skip
    assert means(made) == {("samples_own_2026-11-22T00-00-00.0", "acc"): (1.0, 1)}
    assert findings(made) == {
        ("changed", "perplexity is not a mean over samples: its values are in detail"): 1,
        ("changed", "bleu is not a mean over samples: its values are in detail"): 1,
        ("left out", "a second result of a document and filter"): 1,
        ("unreadable", "line not a JSON object"): 1,
        ("unreadable", "sample without a doc_id"): 1,
    }
    (score,) = made.run.events_of(Score)
    assert score.detail == {"perplexity": -3.5, "bleu": ["a", "b"]}


def test_results_without_samples_are_refused_with_what_to_do(tmp_path: Path) -> None:
    alone = Path(copy(RESULTS, tmp_path))
    with pytest.raises(BadDataset, match="run lm_eval with --log_samples"):
        imported("lm-eval", tmp_path / "runs", alone)


def test_a_direction_counts_whichever_file_states_it(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {"question": "q"}, "target": "a", "resps": [["a"]], "filter": "none", "loss": 2.0}
    for stamp in ("2026-01-01T00-00-00.000000", "2026-01-02T00-00-00.000000"):
        (tmp_path / f"samples_t_{stamp}.jsonl").write_text(json.dumps(row))
    results = {"results": {"t": {"loss,none": 2.0}}, "higher_is_better": {"t": {"loss": False}}, "model_name": "m"}
    (tmp_path / "results_2026-01-02T00-00-00.000000.json").write_text(json.dumps(results))
    made = imported("lm-eval", tmp_path / "runs", *sorted(tmp_path.glob("samples*")))
    assert [metric.direction for scorer in made.run.scorers() for metric in scorer.metrics] == ["lower"]
