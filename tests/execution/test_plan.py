"""Trials: their order, and ids that cover what an answer depends on and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import karat
from karat.errors import BadOption
from karat.execution.plan import Plan, Shard, end_of_id, id_of, plan
from karat.records import AgentSpec, Condition, Gate, Sample, Turn

SAMPLE = Sample(id="s", position=0, digest="content", turns=(Turn(question="q"),))
CONDITION = Condition(name="c", position=0, digest="prompt", agent=AgentSpec(type="t", digest="agent"))


def change(value: object, **fields: object) -> object:
    return msgspec.structs.replace(value, **fields)


def trial_id(sample: Sample, condition: Condition, repetition: int) -> str:
    return id_of(sample, end_of_id(condition, repetition))


def test_an_id_is_the_same_in_every_process_and_release() -> None:
    assert trial_id(SAMPLE, CONDITION, 0) == "8cfc9b37e08246be609c051d"


@pytest.mark.parametrize(
    ("sample", "condition", "repetition"),
    [
        (change(SAMPLE, id="s2"), CONDITION, 0),
        (change(SAMPLE, digest="other"), CONDITION, 0),
        (SAMPLE, change(CONDITION, name="c2"), 0),
        (SAMPLE, change(CONDITION, digest="other"), 0),
        (SAMPLE, change(CONDITION, agent=AgentSpec(type="t", digest="other")), 0),
        (SAMPLE, CONDITION, 1),
    ],
)
def test_what_an_answer_depends_on_changes_the_id(sample: Sample, condition: Condition, repetition: int) -> None:
    assert trial_id(sample, condition, repetition) != trial_id(SAMPLE, CONDITION, 0)


@pytest.mark.parametrize(
    ("sample", "condition"),
    [
        (change(SAMPLE, position=7, metadata={"topic": "x"}), CONDITION),
        (SAMPLE, change(CONDITION, position=7, gate=Gate(require_mcp_tool_use=True))),
    ],
)
def test_positions_and_metadata_do_not(sample: Sample, condition: Condition) -> None:
    assert trial_id(sample, condition, 0) == trial_id(SAMPLE, CONDITION, 0)


@given(one=st.tuples(st.text(), st.text()), other=st.tuples(st.text(), st.text()))
def test_names_cannot_run_into_each_other(one: tuple[str, str], other: tuple[str, str]) -> None:
    first, second = (
        trial_id(change(SAMPLE, id=id_, digest=digest), CONDITION, 0)  # type: ignore[arg-type]
        for id_, digest in (one, other)
    )
    assert (first == second) == (one == other)


@given(samples=st.integers(1, 5), conditions=st.integers(1, 4), repetitions=st.integers(1, 4))
def test_a_plan_counts_and_finds_its_trials(samples: int, conditions: int, repetitions: int) -> None:
    whole = Plan(
        [change(SAMPLE, id=str(number)) for number in range(samples)],  # type: ignore[misc]
        [change(CONDITION, name=str(number)) for number in range(conditions)],  # type: ignore[misc]
        repetitions,
    )
    trials = list(whole)
    assert len(trials) == len(whole) == len({trial.id for trial in trials})
    assert [whole[index] for index in range(len(whole))] == trials
    assert [trial.index for trial in trials] == list(range(len(whole)))
    assert [trial.condition.name for trial in trials[:conditions]] == [str(number) for number in range(conditions)]


def test_shards_divide_the_trials_of_each_condition_and_keep_their_places() -> None:
    samples: list[Sample] = [change(SAMPLE, id=str(number)) for number in range(30)]  # type: ignore[misc]
    conditions: list[Condition] = [change(CONDITION, name=name) for name in "ab"]  # type: ignore[misc]
    whole = list(Plan(samples, conditions, 2))
    shards = [Plan(samples, conditions, 2, Shard(number, 3)) for number in (1, 2, 3)]
    assert sorted((trial for shard in shards for trial in shard), key=lambda trial: trial.index) == whole
    for shard in shards:
        assert sum(shard.counts().values()) == len(shard) == len(list(shard))
        assert shard.counts()["a"] == sum(trial.condition.name == "a" for trial in shard)
        assert list(shard.with_conditions(conditions)) == list(shard)
    assert Plan(samples, conditions, 2).counts() == {"a": 60, "b": 60}
    assert Plan([], conditions, 2, Shard(1, 3)).counts() == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("text", "shard"), [("1/1", Shard(1, 1)), ("2/4", Shard(2, 4)), ("9/999999", Shard(9, 999999))]
)
def test_a_shard_is_written_as_it_is_read(text: str, shard: Shard) -> None:
    assert (Shard.parse(text), str(shard)) == (shard, text)


def test_a_trial_has_a_seed_of_its_own_that_its_id_begins_with() -> None:
    (trial,) = Plan([SAMPLE], [CONDITION], 1)
    assert trial.id == "8cfc9b37e08246be609c051d"
    assert trial.seed == 0x8CFC9B37


@pytest.mark.parametrize("of", [2, 3, 7, 1000])
def test_the_last_twelve_digits_of_an_id_are_its_shard_in_every_release(of: int) -> None:
    """Its first ones are the seed of the trial."""
    number = 0x46BE609C051D % of + 1
    for begin in ("8cfc9b37e082", "0" * 12, "f" * 12):
        found = [shard for shard in range(1, of + 1) if Shard(shard, of).has(f"{begin}46be609c051d")]
        assert found == [number]


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., list[str]]:
    """`planned(execution, **selection)` → `sample.condition.repetition` of each trial, in order."""
    rows = [{"id": name, "question": name, "answer": "a"} for name in ("first", "second", "third")]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def go(execution: dict[str, Any] | None = None, **selection: Any) -> list[str]:
        experiment = karat.Experiment(
            dataset={"path": "questions.jsonl", "id_key": "id"}, agent={"type": "floor"}, scorers=["equals"],
            conditions={"plain": {}, "shown": {}}, baseline="plain", folder=tmp_path,
            execution=execution or {"num_repetitions": 1},
        )  # fmt: skip
        trials = plan(experiment, experiment.load_dataset(), **selection)
        return [f"{trial.sample.id}.{trial.condition.name}.{trial.repetition}" for trial in trials]

    return go


def test_a_selection_keeps_the_order_of_the_file(planned: Callable[..., list[str]]) -> None:
    both = [f"{name}.{condition}.0" for name in ("first", "second", "third") for condition in ("plain", "shown")]
    assert planned() == both
    assert planned(limit=2) == both[:4]
    assert planned(limit=9) == both
    assert planned(only_samples=("third", "first", "third")) == [*both[:2], *both[4:]]
    assert planned(only_samples=("third", "first"), limit=1) == both[:2]
    assert planned(only_conditions=("shown", "plain")) == both
    assert planned(only_conditions=("shown",), only_samples=("second",)) == ["second.shown.0"]
    assert planned({"num_repetitions": 2}, limit=1, only_conditions=("plain",)) == ["first.plain.0", "first.plain.1"]


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        ({"limit": 0}, "--limit: must be at least 1, got 0"),
        ({"limit": -1}, "--limit: must be at least 1, got -1"),
        (
            {"only_samples": ("first", "secnd")},
            "--only-sample: no sample is called 'secnd' (did you mean 'second'?)",
        ),
        (
            {"only_conditions": ("show",), "only_samples": ("x",)},
            "--only-condition: no condition is called 'show' (did you mean 'shown'?)",
        ),
    ],
)
def test_what_there_is_not_cannot_be_selected(
    planned: Callable[..., list[str]], selection: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadOption) as bad:
        planned(**selection)
    assert str(bad.value) == says


def test_a_run_that_may_stop_early_asks_the_selected_in_an_order_of_its_own(planned: Callable[..., list[str]]) -> None:
    def order(seed: int, **selection: Any) -> list[str]:
        trials = planned({"num_repetitions": 1, "stop": {"metric": "equals", "seed": seed}}, **selection)
        return [trial.partition(".")[0] for trial in trials[::2]]

    assert {tuple(sorted(order(seed))) for seed in range(9)} == {("first", "second", "third")}
    assert len({tuple(order(seed)) for seed in range(9)}) > 2
    assert order(4) == order(4)
    assert set(order(1, limit=2)) == {"first", "second"}
    assert order(1, only_samples=("third",)) == ["third"]


def test_a_plan_gives_its_trials_in_blocks_without_a_seam() -> None:
    """Also where a block has few samples, or a sample more trials than a block."""
    for repetitions in (1, 9, 70):
        samples: list[Sample] = [change(SAMPLE, id=str(number)) for number in range(20)]  # type: ignore[misc]
        whole = Plan(samples, [CONDITION], repetitions)
        found = [(trial.sample.id, trial.repetition, trial.index) for trial in whole]
        assert found == [
            (str(number), repetition, number * repetitions + repetition)
            for number in range(20)
            for repetition in range(repetitions)
        ]
    assert list(Plan(samples, [], 3)) == list(Plan([], [CONDITION], 3)) == []
    assert len(Plan(samples, [], 3)) == 0
