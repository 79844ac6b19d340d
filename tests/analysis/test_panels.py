"""How far the judges of a panel agree: Gwet's AC2 over the answers that both scored, questions as clusters."""

from __future__ import annotations

import random

import msgspec
import pytest

from karat.analysis import summarize
from karat.records import Metric
from karat.stats import gwet_ac


def panel(folder, journals, metric, given):
    """A run whose answers two judges scored twice each; `given`: one draw of both judges' scores, None: no score."""
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=(metric,))
    script = journals.Script(folder, samples=8, conditions=("a", "b"), repetitions=2, scorers=(scorer,))
    pairs = []
    for row in range(8):
        for condition in ("a", "b"):
            for repetition in range(2):
                script.answer(row, condition, repetition)
                scores = given()
                for judge, twice in zip(("x", "y"), scores, strict=True):
                    for repeat, value in enumerate(twice):
                        script.score(row, condition, repetition, value=value, judge=judge, repeat=repeat, rows=4,
                                     scorer=scorer)  # fmt: skip
                pairs.append((row, *scores))
    return summarize(script.end()).panel, pairs


def test_two_judges_agree_as_gwet_says(tmp_path, journals):
    dice = random.Random(3)

    def given():
        first = dice.randint(1, 5)
        return (first, min(5, first + 1)), (dice.choice([first, max(1, first - 1)]),) * 2

    [pair], pairs = panel(tmp_path / "run", journals, journals.SCALE, given)
    halfway_up = [[int(sum(twice) / 2 + 0.5) for twice in scores] for _, *scores in pairs]
    found = gwet_ac(*zip(*halfway_up, strict=True), clusters=[row for row, *_ in pairs], categories=[1, 2, 3, 4, 5])
    assert (pair.answers, pair.ac2.n) == (32, 8)
    assert (pair.ac2.value, pair.ac2.se) == (pytest.approx(found.value), pytest.approx(found.se))
    assert pair.exact == sum(a == b for a, b in halfway_up) / 32


def test_judges_that_agree_have_1_and_an_interval_within_the_scale(tmp_path, journals):
    dice = random.Random(4)
    [pair], _ = panel(tmp_path / "run", journals, journals.SCALE, lambda: ((dice.randint(4, 5),) * 2,) * 2)
    assert (pair.exact, pair.ac2.value, pair.ac2.high) == (1.0, 1.0, 1.0)


def test_shares_have_two_steps_and_numbers_without_steps_are_left_out(tmp_path, journals):
    dice = random.Random(5)
    share = Metric(name="right", low=0, high=1, kind="share")
    [pair], pairs = panel(tmp_path / "share", journals, share, lambda: tuple((dice.random() < 0.7,) * 2 for _ in "xy"))
    rows = [(int(x[0]), int(y[0])) for _, x, y in pairs]
    found = gwet_ac(*zip(*rows, strict=True), clusters=[row for row, *_ in pairs], categories=[0, 1])
    assert pair.ac2.value == pytest.approx(found.value)
    number = Metric(name="seconds", low=0, kind="number")
    none, _ = panel(tmp_path / "number", journals, number, lambda: ((2.5, 2.5), (3.5, 3.5)))
    assert none == ()
