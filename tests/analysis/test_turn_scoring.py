"""How a kind says which turns count, on which metrics conditions are tested, and what makes a turn right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import msgspec
import numpy as np
import pytest

from karat.analysis import summarize
from karat.analysis.grids import Counting, Declared, Floats, Grid, declared, grids
from karat.index import RunIndex, read_index
from karat.kinds import Kind
from karat.records import Metric, Reply, Sample, Turn


class TwiceAsGood:
    """Turns with a golden answer count; `good` is a rate, `strict` is tested and shown first, `twice` is computed."""

    rates = ("good",)

    def counts(self, turn: Turn) -> bool:
        return turn.golden is not None

    def tested(self, columns: Mapping[str, Floats]) -> tuple[str, ...]:
        assert {"good", "strict", "twice"} <= columns.keys()
        return ("strict",)

    def values(self, metric: str, columns: Mapping[str, Floats]) -> Floats:
        return 2 * columns["good"] if metric == "twice" else columns[metric]


@pytest.fixture
def index(tmp_path: Path, journals: ModuleType) -> RunIndex:
    """Two samples of two turns, the second turn without a golden answer; the second sample failed."""
    metrics = tuple(Metric(name=name, low=0, high=2) for name in ("good", "strict", "twice", "absent"))
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=metrics)
    turns = (Turn(question="Which?", golden="this"), Turn(question="Why?"))
    samples = [Sample(id=name, position=at, digest="", turns=turns) for at, name in enumerate("ab")]
    script = journals.Script(tmp_path / "run", samples=samples, conditions=("only",), scorers=(scorer,))
    script.answer(0, "only")
    for turn, good in enumerate((1.0, 0.0)):
        values = {"good": good, "strict": 0.0, "twice": 0.0, "absent": None if turn == 0 else 1.0}
        script.score(0, "only", values=values, turn=turn, rows=2, scorer=scorer)
    script.failure(1, "only")
    return read_index(script.end())


def by_name(index: RunIndex, by_turn: Declared) -> dict[str, Grid]:
    scorers = tuple(index.scorers.values())
    shown = {scorer.name: scorer.scoring for scorer in scorers}
    return {grid.info.name: grid for grid in grids(index, scorers, shown, by_turn)}


def turns_of(index: RunIndex, counting: Counting | None) -> Declared:
    (scorer,) = index.scorers.values()
    scorings = {} if counting is None else {(scorer.name, scorer.scoring): counting}
    return Declared(np.array([2, 2]), np.ones(2), np.array([False, True]), scorings)


def test_without_rules_every_turn_and_every_metric_counts(index):
    found = by_name(index, turns_of(index, None))
    assert list(found) == ["good", "strict", "twice", "absent"]
    assert all(grid.is_tested for grid in found.values())
    sums = found["good"].turns
    assert sums is not None
    assert sums.totals.ravel().tolist() == [1, 0]
    assert sums.counts.ravel().tolist() == [2, 0]
    assert sums.planned.ravel().tolist() == [2, 2]


def test_the_rules_of_a_kind_choose_turns_rates_tests_and_values(index):
    flags = [np.array([True, False])] * 2
    found = by_name(index, turns_of(index, Counting(TwiceAsGood(), flags, np.array([1, 1]))))
    assert list(found) == ["strict", "good", "twice"], "the tested one first; no turn that counts has the last one"
    assert [grid.is_tested for grid in found.values()] == [True, False, False]
    sums = {name: grid.turns for name, grid in found.items()}
    assert sums["good"].counts.ravel().tolist() == [1, 1], "the turn of the failed trial is wrong"
    assert sums["strict"].counts.ravel().tolist() == [1, 0]
    assert sums["twice"].totals.ravel().tolist() == [2, 0]
    assert sums["twice"].planned.ravel().tolist() == [1, 1]


def test_a_kind_whose_samples_are_scored_as_a_whole_declares_no_turns(index):
    assert declared(index.run, index, index.scorers.values(), rule="") is None


def test_a_kind_has_no_rules_unless_it_says_so(index):
    (scorer,) = index.scorers.values()
    assert Kind.turn_scoring(scorer, "") is None
    assert Kind.rule(index.run, {}) == ("", None)


@pytest.mark.needs_kind("conversation")
def test_a_rate_is_over_all_turns_and_answers_without_a_number_are_told(tmp_path: Path, journals: ModuleType) -> None:
    """Of a talk with three turns one is wrong: 3 of 4 turns, where the mean of the talks would be 5 of 6."""
    talks = [journals.asked("a", 0, [{"golden": "1"}] * 3), journals.asked("b", 1, [{"golden": "1"}])]
    right, none = Reply(text="1"), Reply(text="I cannot say.")
    said = {"one": [[[right, none, right]], [[right]]], "other": [[[right] * 3], [[right]]]}
    summary = summarize(journals.conversations(tmp_path / "run", talks, said))
    means = {row.condition: row.mean.value for row in summary.results if row.metric == "numerical"}
    assert means == {"one": 0.75, "other": 1.0}
    (told,) = [text for text in summary.notices if "could not be read" in text]
    assert told.startswith("1 of 4 answers of one could not be read as a number, and count as wrong: ask the agent")


@pytest.mark.needs_kind("conversation")
def test_few_answers_without_a_number_are_not_worth_a_notice(tmp_path: Path, journals: ModuleType) -> None:
    talks = [journals.asked(str(at), at, [{"golden": "1"}] * 3) for at in range(10)]
    said = [[[Reply(text="1")] * 3] for _ in range(10)]
    said[0][0][1] = Reply(text="I cannot say.")
    summary = summarize(journals.conversations(tmp_path / "run", talks, {"only": said}))
    assert not [text for text in summary.notices if "could not be read" in text]
