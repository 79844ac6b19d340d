"""`--to eee`: valid by the published schemas and by the validator of Every Eval Ever, and true to the run."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import msgspec
import pytest
from click.testing import CliRunner
from tests.document.hostile import hostile_run

import karat
from karat.analysis import Summary, summarize
from karat.cli import cli
from karat.exports import save
from karat.records import Metric, Reply, Sample, ToolCall, Turn, Usage
from karat_imports.exports.eee import Eee

ROOT = Path(__file__).resolve().parents[3]
EEE = Path(sys.prefix) / "eee"  # put there by scripts/setup dev: no part of karat's own environment


@pytest.fixture(scope="session")
def published() -> Path:
    """The package of Every Eval Ever, unpacked."""
    if not (EEE / "every_eval_ever").is_dir():
        pytest.skip("every-eval-ever is not in the environment's folder eee: `sh scripts/setup dev` puts it there")
    return EEE


def written(
    run: karat.RunFolder, out: Path, *, summary: Summary | None = None, **options: Any
) -> tuple[list[Path], list[Path]]:
    """The files of a run: aggregates and instances."""
    summary = summary or summarize(run)
    paths = save(Eee(Eee.Options(**options)).render(summary, run), out)
    return [path for path in paths if path.suffix == ".json"], [path for path in paths if path.suffix == ".jsonl"]


def validate(published: Path, out: Path, aggregates: list[Path], samples: list[Path]) -> None:
    """By the schemas, line by line, and by the validator with its checks of places and companions."""
    folder = published / "every_eval_ever" / "schemas"
    for name, found in (
        ("eval", [json.loads(path.read_text(encoding="utf-8")) for path in aggregates]),
        ("instance_level_eval", [line for path in samples for line in lines(path)]),
    ):
        schema = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
        validator = jsonschema.Draft7Validator(schema)
        assert [error.message for one in found for error in validator.iter_errors(one)][:3] == []
    validated(published, out, [str(path.relative_to(out)) for path in (*aggregates, *samples)])


def validated(published: Path, folder: Path, places: list[str]) -> None:
    """What the validator of Every Eval Ever says of the paths, from a folder: valid, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "every_eval_ever", "validate", "--format", "json", *places],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(published)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    told = json.loads(done.stdout)
    assert [(one["valid"], one["errors"], one["warnings"]) for one in told] == [(True, [], [])] * len(places)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def numbers(folder: Path, journals: Any, **more: Any) -> karat.RunFolder:
    return journals.table(folder, {"a": [[1, 2], [2, 5]], "b": [[3, 4], [5, None]]}, **more)


def test_both_levels_are_valid_and_agree(tmp_path, journals, published):
    run = numbers(tmp_path / "run", journals)
    aggregates, samples = written(run, tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    whole = json.loads(aggregates[0].read_text(encoding="utf-8"))
    detail = whole["detailed_evaluation_results"]
    raw = samples[0].read_bytes()
    assert detail["checksum"] == hashlib.sha256(raw).hexdigest()
    assert detail["total_rows"] == raw.count(b"\n") == 7
    assert detail["file_path"] == str(samples[0].relative_to(tmp_path / "out"))
    for result in summarize(run).results:
        told = next(
            one for one in whole["evaluation_results"]
            if one["evaluation_result_id"] == f"1234abcd/{result.condition}/{result.metric}"
        )  # fmt: skip
        assert told["score_details"]["score"] == result.mean.value
        interval = told["score_details"]["uncertainty"]["confidence_interval"]
        assert (interval["lower"], interval["upper"]) == (result.mean.low, result.mean.high)
        assert (told["metric_config"]["min_score"], told["metric_config"]["max_score"]) == (1, 5)
        mine = [one for one in lines(samples[0]) if one["evaluation_result_id"] == told["evaluation_result_id"]]
        assert len(mine) == result.n_answers
        assert told["score_details"]["details"]["missing"] == str(result.n_missing)
    assert [one["evaluation"]["is_correct"] for one in lines(samples[0]) if one["evaluation"]["score"] >= 4] == [
        True
    ] * 3


def test_the_same_run_gives_the_same_bytes_and_another_run_other_files(tmp_path, journals):
    run = numbers(tmp_path / "run", journals)
    one, two = written(run, tmp_path / "one"), written(run, tmp_path / "two")
    assert [path.read_bytes() for path in one[0] + one[1]] == [path.read_bytes() for path in two[0] + two[1]]
    assert [path.name for path in one[0]] == [path.name for path in two[0]]
    other, _ = written(numbers(tmp_path / "other", journals, run="ffffffff"), tmp_path / "three")
    assert other[0].name != one[0][0].name


def test_hostile_texts_make_valid_files_inside_the_folder(tmp_path, journals, published):
    run = hostile_run(tmp_path / "run", journals)
    aggregates, samples = written(run, tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    assert all((tmp_path / "out" / "data") in path.parents for path in (*aggregates, *samples))


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["../../etc", "con", "data", "", ".", "/", "a/../b", "\x00", "…", "unknown"])
def test_no_name_leads_out_of_the_datastore(tmp_path, journals, published, name):
    run = numbers(tmp_path / "run", journals, name=name, agent_model=f"{name}:{name}")
    aggregates, samples = written(run, tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    assert [len(path.relative_to(tmp_path / "out").parts) for path in aggregates] == [5]


def test_turns_and_tools_are_messages(tmp_path, journals, published):
    turns = (Turn(question="Where?", golden="here"), Turn(question="When?"))
    sample = Sample(id="s", position=0, digest="d", turns=turns, materials="A map.", metadata={"year": 2014, "k": "v"})
    call = ToolCall(tool="look", server="docs", input={"q": "x", "n": 2}, result="found")
    failed = ToolCall(tool="write", error="denied")
    used = Usage(input_tokens=7, output_tokens=3)
    replies = (
        Reply(text="Here.", tool_calls=(call, failed), usage=used, reasoning="hm"),
        Reply(text="It was now.", answer="now", usage=used),
    )
    script = journals.Script(tmp_path / "run", samples=[sample], conditions=("a",))
    script.answer(0, "a", replies=replies)
    script.score(0, "a", value=5)
    aggregates, samples = written(script.end(), tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    (told,) = lines(samples[0])
    assert told["interaction_type"] == "agentic"
    assert [(one["role"], one["content"]) for one in told["messages"]] == [
        ("user", "A map.\n\nWhere?"), ("assistant", None), ("tool", "found"), ("assistant", None), ("tool", "denied"),
        ("assistant", "Here."), ("user", "When?"), ("assistant", "It was now."),
    ]  # fmt: skip
    assert told["messages"][1]["tool_calls"] == [
        {"id": "0.0", "name": "mcp__docs__look", "arguments": {"q": "x", "n": "2"}}
    ]
    assert [(one["source"], one["extracted_value"], one["is_terminal"]) for one in told["answer_attribution"]] == [
        ("messages[5].content", "Here.", False), ("messages[7].content", "now", True),
    ]  # fmt: skip
    assert told["token_usage"] == {"input_tokens": 14, "output_tokens": 6, "total_tokens": 20}
    assert told["input"] == {"raw": "Where?\n\nWhen?", "reference": ["here"]}
    assert (told["metadata"]["year"], told["metadata"]["k"]) == ("2014", "v")


def test_what_has_no_number_or_no_right_and_wrong_is_left_out(tmp_path, journals, published):
    metrics = (
        Metric(name="words", low=0, direction="none"),
        Metric(name="seconds", low=0, direction="lower", kind="number"),
        Metric(name="open"),
        Metric(name="silent", low=0, high=1, kind="share"),
    )
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=metrics)
    script = journals.Script(tmp_path / "run", samples=1, conditions=("a", "never"), scorers=(scorer,))
    script.answer(0, "a")
    script.score(0, "a", values={"words": 12, "seconds": 0, "open": -3.5, "silent": None}, scorer=scorer)
    aggregates, samples = written(script.end(), tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    results = json.loads(aggregates[0].read_text(encoding="utf-8"))["evaluation_results"]
    assert [one["metric_config"]["metric_name"] for one in results] == ["words", "seconds", "open"]
    bounds = [(one["metric_config"]["min_score"], one["metric_config"]["max_score"]) for one in results]
    assert bounds == [(0, "Infinity"), (0, "Infinity"), ("-Infinity", "Infinity")]
    assert [(one["evaluation_name"], one["evaluation"]["is_correct"]) for one in lines(samples[0])] == [
        ("support-kb/a/seconds", True)
    ]


def test_a_run_without_scores_is_an_aggregate_alone(tmp_path, journals, published):
    script = journals.Script(tmp_path / "run", samples=1, scorers=())
    script.answer(0, "baseline")
    aggregates, samples = written(script.end(), tmp_path / "out")
    assert (len(aggregates), samples) == (1, [])
    validate(published, tmp_path / "out", aggregates, samples)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "model", "id_"),
    [
        ("chat", "anthropic:claude-opus-4-5", "anthropic/claude-opus-4-5"),
        ("claude", "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("chat", "openrouter:meta-llama/Llama-3.1-8B", "openrouter/meta-llama/Llama-3.1-8B"),
        ("http", "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("command", None, "local/command"),
    ],
)
def test_models_are_called_as_the_format_wants_it(tmp_path, journals, published, agent, model, id_):
    run = numbers(tmp_path / "run", journals, agent_type=agent, agent_model=model)
    aggregates, samples = written(run, tmp_path / "out")
    assert json.loads(aggregates[0].read_text(encoding="utf-8"))["model_info"]["id"] == id_
    validate(published, tmp_path / "out", aggregates, samples)


def test_conditions_with_models_of_their_own_have_files_of_their_own(tmp_path, journals, published):
    from karat.journal import Choice

    settings = {"conditions.b.agent.model": Choice(value="openai:gpt-5", source="file")}
    run = numbers(tmp_path / "run", journals, agent_model="openai:gpt-4o", agent_type="chat", experiment=settings)
    aggregates, samples = written(run, tmp_path / "out")
    assert (len(aggregates), len(samples)) == (2, 2)
    validate(published, tmp_path / "out", aggregates, samples)
    ids = {one["evaluation_result_id"] for path in samples for one in lines(path)}
    assert ids == {"1234abcd/a/completeness", "1234abcd/b/completeness"}


def test_options_say_what_a_run_does_not_know(tmp_path, journals, published):
    run = numbers(tmp_path / "run", journals)
    options = {"collection": "Our KB", "model": "acme/bot", "organization": "ACME", "relationship": "first_party"}
    aggregates, samples = written(run, tmp_path / "out", instances=False, **options)
    assert (samples, aggregates[0].relative_to(tmp_path / "out").parts[:-1]) == ([], ("data", "Our-KB", "acme", "bot"))
    whole = json.loads(aggregates[0].read_text(encoding="utf-8"))
    assert whole["source_metadata"]["source_organization_name"] == "ACME"
    validate(published, tmp_path / "out", aggregates, samples)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["support-kb", "convfinqa", "framing"])
def test_the_examples_are_valid(tmp_path, published, example):
    run = karat.run(ROOT / "examples" / example / "experiment.yaml", results=tmp_path / "results", samples=8)
    aggregates, samples = written(run, tmp_path / "out")
    assert list(lines(samples[0]))
    validate(published, tmp_path / "out", aggregates, samples)


@pytest.mark.slow
def test_the_main_numbers_of_a_study_are_results(tmp_path, published, study_run, study_summary):
    aggregates, samples = written(study_run, tmp_path / "out", summary=study_summary)
    validate(published, tmp_path / "out", aggregates, samples)
    found = study_summary.study
    assert found is not None
    told = {
        one["evaluation_result_id"]: one["score_details"]
        for path in aggregates
        for one in json.loads(path.read_text(encoding="utf-8"))["evaluation_results"]
    }
    assert [one.condition for one in found.conditions] == ["like", "against", "shy"]
    for one in found.conditions:
        for name, number in (("pas", one.benchmark.pas), ("ecs", one.benchmark.ecs)):
            score = told[f"1234abcd/{one.condition}/replication.{name}"]
            assert score["score"] == number.value
            assert score["uncertainty"]["num_samples"] == number.n
            interval = score["uncertainty"].get("confidence_interval", {})
            assert (interval.get("lower"), interval.get("upper")) == (number.low, number.high)


@pytest.mark.needs_kind("conversation")
def test_conversations_that_are_right_as_a_whole_are_a_result(tmp_path, published):
    example = ROOT / "examples" / "convfinqa" / "experiment.yaml"
    run = karat.run(karat.load(example), results=tmp_path / "results", samples=4)
    aggregates, samples = written(run, tmp_path / "out")
    validate(published, tmp_path / "out", aggregates, samples)
    found = summarize(run).conversation
    assert found is not None
    told = {
        one["evaluation_name"]: one["score_details"]["score"]
        for one in json.loads(aggregates[0].read_text(encoding="utf-8"))["evaluation_results"]
    }
    rate = found.conditions[0].conversation_accuracy.estimate.value
    assert told["convfinqa/look-up/numeric.conversation_accuracy"] == rate is not None


@pytest.mark.slow
def test_the_paths_that_are_printed_are_valid_from_any_folder(tmp_path, journals, published, monkeypatch):
    """The validator takes a relative path for the place in the datastore, so what is printed is absolute."""
    numbers(tmp_path / "run", journals)
    (tmp_path / "work" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    done = CliRunner().invoke(cli, ["report", "../run", "--to", "eee", "--out", "data/share"], catch_exceptions=False)
    paths = done.stdout.split()
    assert len(paths) == 2
    for folder in (tmp_path, tmp_path / "work", tmp_path / "work" / "data" / "share" / "data", Path("/")):
        validated(published, folder, paths)
