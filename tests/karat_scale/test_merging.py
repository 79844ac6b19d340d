"""Runs of one experiment, such as its shards, put together."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.execution.test_shards import AGENT, shards
from tests.journal.test_vanished import made

import karat
from karat.analysis.means_columns import COLUMNS
from karat.config import Retry
from karat.errors import BadOption, BadRun, ResumeRefused
from karat.execution import Limits, Outcome, Selection, Shard, rescore
from karat.journal import End, RunFolder, outcomes, verify
from karat.records import ScorerSpec
from karat_scale.merging import merge_runs

ROOT = Path(__file__).resolve().parents[2]
Write = Callable[..., Path]
Run = Callable[..., Outcome]


def numbers(run: RunFolder) -> dict[str, Any]:
    """All that a report says, without names of runs and times."""
    told: dict[str, Any] = msgspec.to_builtins(karat.summarize(RunFolder.open(run.path)))
    for key in ("run", "created", "status"):
        del told[key]
    return _without(told, "latency", "seconds", "at", *(column.name for column in COLUMNS if column.of_times))


def _without(value: Any, *keys: str) -> Any:
    if isinstance(value, dict):
        return {key: _without(below, *keys) for key, below in value.items() if key not in keys}
    return [_without(below, *keys) for below in value] if isinstance(value, list) else value


def seconds(run: RunFolder) -> float:
    return sum(end.seconds or 0.0 for end in run.events_of(End))


@pytest.mark.quick(1)
@pytest.mark.parametrize("of", [1, 2, 5])
def test_merged_shards_give_the_numbers_of_one_run(experiment: Write, run: Run, tmp_path: Path, of: int) -> None:
    file = experiment(AGENT, questions=23, scorers=["equals", "contains"])
    whole = run(file).run
    parts = shards(run, file, of)
    merged = merge_runs(parts, tmp_path / "merged")
    assert seconds(merged.run) == pytest.approx(sum(map(seconds, parts)))
    assert merged.notes == ()
    assert merged.run.status() == "done"
    assert numbers(merged.run) == numbers(whole)
    assert verify(merged.run.path).ok


def test_the_order_of_the_shards_makes_no_difference(experiment: Write, run: Run, tmp_path: Path) -> None:
    parts = shards(run, experiment(AGENT, questions=9), 3)
    first = merge_runs(parts, tmp_path / "one").run
    second = merge_runs([parts[2], parts[0], parts[1], parts[0]], tmp_path / "two").run
    assert first.path.name == second.path.name
    for name in ("journal.jsonl", "samples.jsonl", "run.json", "experiment.yaml"):
        assert (first.path / name).read_bytes() == (second.path / name).read_bytes()
    again = merge_runs([first, *parts], tmp_path / "one")
    assert not again.changed
    assert again.run.path == first.path


@pytest.mark.parametrize("gated", [False, True])
def test_an_unfinished_shard_is_resumed_and_merged_again(
    experiment: Write, run: Run, tmp_path: Path, gated: bool
) -> None:
    file = experiment(AGENT, questions=12)
    whole = run(file).run
    one, two = shards(run, file, 2, 1)[0], run(file, selection=Selection(shard=Shard(2, 2), limit=5)).run
    journal = (two.path / "journal.jsonl").read_bytes()
    (two.path / "journal.jsonl").write_bytes(journal[: len(journal) * 2 // 3])  # as kill -9 leaves it
    (two.path / "journal.lock").write_bytes(b"")
    merged = merge_runs([one, two], tmp_path / "merged")
    assert any("is not complete (status: crashed)" in note for note in merged.notes)
    assert merged.run.status() == "interrupted"
    with pytest.raises(ResumeRefused, match="it is shard 2/2"):
        run(file, resume=two.path, selection=Selection(shard=Shard(1, 2)))
    run(file, resume=two.path)
    failed = outcomes.Outcome(at="2026-11-26", bound="min", name="right", limit=1.0, condition="a", verdict="failed")
    if gated:
        outcomes.add_outcomes(merged.run, [failed])
    again = merge_runs([one, RunFolder.open(two.path)], tmp_path / "merged")
    assert again.changed
    assert outcomes.read_outcomes(again.run).held_back is gated
    assert again.notes == ()
    assert again.run.path == merged.run.path
    assert numbers(again.run) == numbers(whole)
    assert [one.name for one in (tmp_path / "merged").iterdir()] == [again.run.path.name]


def test_a_missing_shard_is_said_and_can_be_asked_in_the_merged_run(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    file = experiment(AGENT, questions=10)
    parts = shards(run, file, 3, 1, 3)
    merged = merge_runs(parts, tmp_path / "results")
    assert merged.notes == ("not all shards are here: 2/3 missing",)
    run(file, resume=merged.run.path)
    assert numbers(merged.run) == numbers(run(file).run)
    with pytest.raises(BadRun, match="was resumed, scored or reviewed after it was merged"):
        merge_runs(parts, tmp_path / "results")


def test_of_two_answers_the_earlier_runs_counts(experiment: Write, run: Run, tmp_path: Path) -> None:
    code = AGENT.replace("text =", "import random; text = random.choice('xyz') or")
    file = experiment(code, questions=6)
    first, second = run(file).run, run(file).run
    merged = merge_runs([second, first], tmp_path / "merged")
    (note,) = merged.notes
    assert note.startswith("20 trials had an answer in two runs")
    both, alone = numbers(merged.run), numbers(first)
    assert both["results"] == alone["results"]
    assert both["total"]["ledger"] == alone["total"]["ledger"]
    cost = both["total"]["cost"]["agent"]["known"]
    assert cost == pytest.approx(2 * alone["total"]["cost"]["agent"]["known"], rel=1e-12)


def test_a_copy_of_a_run_is_counted_once(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(AGENT, questions=6)
    one, two = shards(run, file, 2)
    longer = shutil.copytree(two.path, tmp_path / "copy")
    journal = two.journal.read_bytes()
    two.journal.write_bytes(journal[: journal.rindex(b"\n", 0, len(journal) - 200) + 1])
    merged = merge_runs([one, RunFolder.open(two.path), RunFolder.open(longer)], tmp_path / "merged")
    assert numbers(merged.run) == numbers(run(file).run)
    two.journal.write_bytes(journal.replace(b'"a1"', b'"b1"'))
    with pytest.raises(BadRun, match="both went on"):
        merge_runs([one, RunFolder.open(two.path), RunFolder.open(longer)], tmp_path / "merged")


def test_other_versions_are_said(experiment: Write, run: Run, tmp_path: Path) -> None:
    one, two = shards(run, experiment(AGENT, questions=6), 2)
    other = RunFolder(two.path, msgspec.structs.replace(two.info, versions={**two.info.versions, "python": "2.7"}))
    (note,) = merge_runs([one, other], tmp_path / "merged").notes
    assert note == f"the runs were made with different versions of python: 2.7, {one.info.versions['python']}"


OTHER: dict[str, tuple[dict[str, Any], str]] = {
    "dataset": ({"questions": 7}, r"differs in the dataset \(sha256\)"),
    "prompt": (
        {"conditions": {"a": {"system_prompt": "A"}, "b": {"system_prompt": "other"}}},
        "differs in condition 'b'",
    ),
    "scorer": ({"scorers": ["contains"]}, "differs in the scorers"),
    "repetitions": ({"execution": {"num_repetitions": 3}}, "differs in num_repetitions"),
    "name": ({"name": "other"}, "differs in the experiment's name"),
}


@pytest.mark.parametrize("what", OTHER)
def test_what_does_not_belong_together(experiment: Write, run: Run, tmp_path: Path, what: str) -> None:
    changes, message = OTHER[what]
    (first,) = shards(run, experiment(AGENT, questions=6), 2, 1)
    (second,) = shards(run, experiment(AGENT, **{"questions": 6, **changes}), 2, 2)
    with pytest.raises(BadRun, match=message):
        merge_runs([first, second], tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_each_run_is_compared_with_all_others(experiment: Write, run: Run, tmp_path: Path) -> None:
    def with_prompt(prompt: str, condition: str, *samples: str) -> RunFolder:
        file = experiment(AGENT, questions=4, conditions={"a": {}, "b": {"system_prompt": prompt}})
        return run(file, selection=Selection(conditions=(condition,), samples=samples)).run

    runs = [with_prompt("one", "a"), with_prompt("one", "b", "0", "1"), with_prompt("other", "b", "2", "3")]
    with pytest.raises(BadRun, match="differs in condition 'b'"):
        merge_runs(runs, tmp_path / "merged")
    assert merge_runs(runs[:2], tmp_path / "merged").run.plan().conditions == ("a", "b")


@pytest.mark.needs_package("karat_conversations")
def test_other_weights_of_the_same_samples_are_refused(run: Run, tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "convfinqa" / "conversations.json", tmp_path)

    def drawn(size: int) -> RunFolder:
        dataset = {"kind": "conversation", "path": "conversations.json", "sample_size": size, "allocation": "equal"}
        experiment = karat.Experiment(
            dataset=dataset, agent={"type": "floor"}, scorers=["numeric"], conditions={"a": {}},
            execution={"num_repetitions": 1}, folder=tmp_path,
        )  # fmt: skip
        return run(experiment).run

    with pytest.raises(BadRun, match=r"has sample '.*' with another content or weight than"):
        merge_runs([drawn(33), drawn(20)], tmp_path / "merged")


def test_a_merged_run_to_which_something_was_added_is_not_dropped(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(AGENT, questions=8)
    parts = shards(run, file, 3, 1, 2)
    merged = merge_runs(parts, tmp_path / "merged").run
    assert numbers(merge_runs([*parts, merged], tmp_path / "again").run) == numbers(merged)
    run(file, resume=merged.path)
    with pytest.raises(BadRun, match=r"contains run [0-9a-f]{8}, and so does .*: merge only one of them"):
        merge_runs([*parts, RunFolder.open(merged.path)], tmp_path / "more")


def test_what_is_in_the_way_of_a_merged_run_is_named(experiment: Write, run: Run, tmp_path: Path) -> None:
    parts = shards(run, experiment(AGENT, questions=4), 2)
    name = merge_runs(parts, tmp_path / "merged").run.path.name
    (tmp_path / "other" / name).mkdir(parents=True)
    with pytest.raises(BadOption, match=f"{name} is in the way"):
        merge_runs(parts, tmp_path / "other")


def test_a_part_of_two_merged_runs_is_refused(experiment: Write, run: Run, tmp_path: Path) -> None:
    one, two, three = shards(run, experiment(AGENT, questions=6), 3)
    pairs = [merge_runs(pair, tmp_path / "pairs").run for pair in ([one, two], [two, three])]
    with pytest.raises(BadRun, match=f"contains run {two.info.run}, and so does"):
        merge_runs(pairs, tmp_path / "merged")


def test_a_merged_run_is_done_only_if_every_trial_was_asked(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(AGENT, questions=10)
    whole = run(file).run
    thirds = shards(run, file, 3)
    (half,) = shards(run, file, 2, 1)
    few = run(file, selection=Selection(limit=3)).run
    for parts in ([half, thirds[0]], [few, thirds[0]]):
        merged = merge_runs(parts, tmp_path / "lacking")
        assert merged.run.status() == "interrupted"
        assert merged.notes[0].endswith("of the plan are in none of the runs")
    two = merge_runs(thirds[:2], tmp_path / "two").run
    assert two.status() == "interrupted"
    complete = merge_runs([two, thirds[2]], tmp_path / "complete")
    assert (complete.run.status(), complete.notes) == ("done", ())
    assert numbers(complete.run) == numbers(merge_runs(thirds, tmp_path / "thirds").run)
    assert merge_runs([whole, half], tmp_path / "whole").run.status() == "done"


def test_shards_with_other_conditions_leave_trials_out(experiment: Write, run: Run, tmp_path: Path) -> None:
    conditions = {"a": {"system_prompt": "A"}, "b": {"system_prompt": "B"}}
    (one,) = shards(run, experiment(AGENT, questions=8, conditions=conditions), 2, 1)
    (two,) = shards(run, experiment(AGENT, questions=8, conditions={**conditions, "c": {}}), 2, 2)
    merged = merge_runs([one, two], tmp_path / "merged")
    asked = karat.summarize(two).accounts["c"].ledger
    assert merged.run.status() == "interrupted"
    assert merged.notes == (f"{asked.not_run} trials of the plan are in none of the runs",)


@pytest.mark.needs_package("karat_coding")
def test_the_workspace_of_the_answer_that_counts_is_kept(experiment: Write, run: Run, tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "made.txt").write_text("")
    code = """
from pathlib import Path
from karat import AgentFault, Reply
def query(question, workspace):
    fails = Path(__file__).with_name("fails").exists()
    (workspace / "made.txt").write_text(f"{question} {fails}")
    if fails:
        raise AgentFault("refused", "not now")
    return Reply(text="a" + question[1:])
"""
    file = experiment(code, questions=2, conditions={"a": {"workspace": "start"}})
    (tmp_path / "fails").touch()
    failed = run(file).run
    (tmp_path / "fails").unlink()
    answered = run(file).run
    merged = merge_runs([failed, answered], tmp_path / "merged").run
    assert verify(merged.path).ok
    archives = sorted((answered.path / "workspaces").iterdir())
    assert len(archives) == 5  # and the start that all have in common
    for archive in archives:
        assert (merged.path / "workspaces" / archive.name).read_bytes() == archive.read_bytes()


def test_scores_that_only_some_runs_have_are_said(experiment: Write, run: Run, tmp_path: Path) -> None:
    one, two = shards(run, experiment(AGENT, questions=6), 2)
    limits = Limits(max_concurrent=2, timeout_seconds=9, judge_timeout_seconds=9, retry=Retry(), max_failures=1000)
    contains = ScorerSpec(type="contains", name="contains")
    asyncio.run(rescore(two, [contains], base=tmp_path, limits=limits))
    assert merge_runs([one, RunFolder.open(two.path)], tmp_path / "merged").notes == (
        "only some of the runs were scored by contains",
    )


def test_a_run_whose_lines_are_missing_is_refused(tmp_path: Path) -> None:
    run, other = made(tmp_path / "run"), made(tmp_path / "other", run="5678abcd")
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:4], *lines[6:]]))
    with pytest.raises(BadRun, match="2 lines are missing"):
        merge_runs([RunFolder.open(run.path), other], tmp_path / "merged")


def test_a_merged_journal_is_covered_too(tmp_path: Path) -> None:
    parts = [made(tmp_path / "run"), made(tmp_path / "other", run="5678abcd")]
    merged = merge_runs(parts, tmp_path / "merged").run
    assert verify(merged.path).ok
    lines = merged.journal.read_bytes().splitlines(keepends=True)
    merged.journal.write_bytes(b"".join([*lines[:40], *lines[41:]]))
    assert not verify(merged.path).ok
