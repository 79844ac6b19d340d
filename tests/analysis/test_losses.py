"""Lost trials: a winner must still win when its own losses count as the worst value."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.analysis import journals

from karat.analysis import compare, summarize
from karat.analysis.gate import gate
from karat.analysis.leaderboard import leaderboard
from karat.analysis.model import MetricInfo, Summary
from karat.analysis.stopping import StoppingRule
from karat.analysis.thresholds import Threshold
from karat.analysis.units import Units, difference
from karat.journal import NO_PLAN, Horizon, RunFolder
from karat.records import Metric

RIGHT = Metric(name="right", low=0, high=1, kind="share")
COST = Metric(name="cost", low=0, direction="lower")
FREE = Metric(name="points")


def lossy(folder: Path, *, metric: Metric = RIGHT, cls: str = "agent", every: int = 2, questions: int = 40) -> Summary:
    """Two conditions with equal answers, of which b loses every second (or so) bad one."""
    good, bad = (1.0, 0.0) if metric.direction == "higher" else (1.0, 5.0)
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=(metric,))
    script = journals.Script(folder, samples=questions, conditions=("a", "b"), repetitions=3, scorers=(scorer,))
    draw = random.Random(3)
    bad_ones = 0
    for row in range(questions):
        for repetition in range(3):
            right = draw.random() < 0.6
            bad_ones += not right
            for condition in ("a", "b"):
                if condition == "b" and not right and bad_ones % every == 0:
                    stage = "score" if cls == "judge" else "agent"
                    if cls in ("judge", "no number"):
                        script.answer(row, condition, repetition)
                    if cls == "no number":
                        script.score(row, condition, repetition, value=None, scorer=scorer)
                        continue
                    script.failure(row, condition, repetition, cls=cls, stage=stage)
                    continue
                script.answer(row, condition, repetition)
                value: Any = bool(right) if metric is RIGHT else good if right else bad
                script.score(row, condition, repetition, value=value, scorer=scorer)
    return summarize(script.end())


@pytest.mark.parametrize("cls", ["agent", "limit", "infrastructure", "judge", "no number"])
@pytest.mark.parametrize("metric", [RIGHT, COST, FREE], ids=lambda metric: metric.name)
def test_a_lost_answer_never_makes_a_winner(tmp_path: Path, metric: Metric, cls: str) -> None:
    summary = lossy(tmp_path / "run", metric=metric, cls=cls, every=1)
    [pair] = summary.differences
    assert pair.p_adjusted is not None
    assert pair.p_adjusted < 0.05  # among the answers
    assert pair.winner is None
    assert pair.verdict == "b is ahead only among the answers it gave"
    assert pair.again is None
    lost = f"{100 * pair.loss_b:.0f} % of its trials have no score, 0 % of a's"
    assert f"b is ahead of a on {metric.name} only among the answers it gave: {lost}" in summary.headline
    assert any("--resume RUN --retry-failed" in text for text in summary.warnings)
    if metric is RIGHT:
        assert pair.least is not None
        assert pair.least < (pair.estimate.value or 0.0) <= (pair.most or 0.0)


@pytest.mark.parametrize("plan", [NO_PLAN, {}], ids=["a table", "a plan"])
def test_what_a_table_of_one_run_lacks_beside_another_was_lost(tmp_path: Path, plan: dict[str, str]) -> None:
    right = [[row % 3 > 0] for row in range(40)]
    whole = journals.table(tmp_path / "a", {"only": right}, metric=RIGHT, run="0000000a", source=plan)
    kept = [row for row in range(40) if row % 4]
    better = {"only": [[True] for row in kept]}
    samples = [journals.sample(row) for row in kept]
    part = journals.table(tmp_path / "b", better, metric=RIGHT, run="0000000b", samples=samples, source=plan)
    first, second = summarize(whole), summarize(part)
    [pairing] = compare(whole, part).pairings
    groups = {entry.groups for entry in leaderboard([(first, None), (second, None)]).entries}
    decided = gate(second, [Threshold(name="right", bound="max_drop", value=0.0)], baseline=first)
    seen = (pairing.difference.winner is None, groups == {"a"}, decided.verdict, decided.checks[0].missing)
    assert seen == ((True, True, "undecided", 10) if plan else (False, False, "passed", 0))
    grown = gate(first, [Threshold(name="right", bound="max_drop", value=0.5)], baseline=second)
    assert (grown.checks[0].missing, grown.checks[0].questions) == (0, 30)


def test_few_infrastructure_losses_are_taken_as_random_and_losses_of_the_agent_are_not(tmp_path: Path) -> None:
    better = {"a": [[0.0], [1.0]] * 20, "b": [[1.0]] * 36 + [[0.0]] * 4}
    for cls, lost, wins in (("infrastructure", 2, True), ("infrastructure", 30, False), ("agent", 30, False)):
        scorer = msgspec.structs.replace(journals.JUDGE, metrics=(RIGHT,))
        script = journals.Script(
            tmp_path / f"{cls}{lost}", samples=40, conditions=("a", "b"), repetitions=1, scorers=(scorer,)
        )
        for row in range(40):
            for condition, rows in better.items():
                if condition == "b" and row >= 40 - lost:
                    script.failure(row, condition, cls=cls)
                    continue
                script.answer(row, condition)
                script.score(row, condition, value=bool(rows[row][0]), scorer=scorer)
        [pair] = summarize(script.end()).differences
        assert (pair.winner == "b") is wins, (cls, lost)


def test_what_a_metric_measures_under_neither_condition_is_no_loss(tmp_path: Path) -> None:
    """On ten questions neither has a number, and b lacks one of 90 others, by chance."""
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=(RIGHT,))
    script = journals.Script(tmp_path / "run", samples=40, conditions=("a", "b"), repetitions=3, scorers=(scorer,))
    for row in range(40):
        for repetition in range(3):
            for condition in ("a", "b"):
                script.answer(row, condition, repetition)
                there = row < 30 and (condition, row, repetition) != ("b", 0, 0)
                right = condition == "b" if row % 5 else condition == "a" or row == 0
                script.score(row, condition, repetition, value=right if there else None, scorer=scorer)
    [pair] = summarize(script.end()).differences
    assert (pair.n_pairs, pair.winner) == (30, "b")


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize("repeats", [1, 3])
def test_what_files_do_not_hold_makes_no_winner(here: Path, karat, repeats: int) -> None:
    """Rows of b that would be wrong are not in the file; repetitions that b never has are not missing."""
    draw = random.Random(7)
    rows = ["question,condition,repetition,score.ok"]
    for row in range(60):
        for repetition in range(3):
            right = draw.random() < 0.5
            rows.append(f"q{row},a,{repetition},{int(right)}")
            if repetition < repeats and (right or draw.random() < 0.4):
                rows.append(f"q{row},b,{repetition},{int(right)}")
    (here / "t.csv").write_text("\n".join(rows))
    assert karat("import", "csv", "t.csv").code == 0
    [run] = (here / "results").iterdir()
    summary = summarize(RunFolder.open(run))
    [pair] = summary.differences
    assert pair.p_adjusted is not None
    assert pair.p_adjusted < 0.05
    assert (pair.winner, pair.verdict) == (None, "b is ahead only among the answers it gave")
    assert summary.accounts["b"].ledger.planned == 60 * repeats
    assert not any("--retry-failed" in text for text in summary.warnings)


def test_a_winner_that_wins_with_its_losses_at_the_worst_stays_one(tmp_path: Path) -> None:
    whole: list[float | None] = [1.0, 1.0]
    half: list[float | None] = [1.0, None]
    scores: dict[str, list[list[float | None]]] = {"a": [[0.0, 0.0]] * 30, "b": [whole] * 25 + [half] * 5}
    [pair] = summarize(journals.table(tmp_path / "run", scores, metric=Metric(name="m", low=0, high=1))).differences
    assert (pair.winner, pair.loss_b) == ("b", 5 / 60)
    assert pair.least == pytest.approx((25 + 5 * 0.5) / 30)
    assert pair.most == 1.0


def test_losses_of_the_side_behind_change_nothing(tmp_path: Path) -> None:
    scores: dict[str, list[list[float | None]]] = {
        "a": [[0.0, None]] * 10 + [[0.0, 1.0]] * 20,
        "b": [[1.0, 1.0]] * 30,
    }
    [pair] = summarize(journals.table(tmp_path / "run", scores, metric=Metric(name="m", low=0, high=1))).differences
    assert pair.winner == "b"


def test_compare_and_leaderboard_call_no_lossy_lead_a_win(tmp_path: Path) -> None:
    summary = lossy(tmp_path / "run", every=1)
    run = RunFolder.open(tmp_path / "run")
    found = compare(run, run, condition_a="a", condition_b="b")
    assert found.pairings[0].difference.winner is None
    assert "only among the answers it gave" in found.headline
    assert list(found.table()[0])[-4:] == ["least", "most", "loss_a", "loss_b"]
    board = leaderboard([(summary, None)])
    assert [entry.groups for entry in board.entries] == ["a", "a"]


def test_a_question_that_was_lost_whole_is_no_win_of_the_leaderboard(tmp_path: Path) -> None:
    """Asked once, b has no score on each fifth question, and is right on all others."""
    scores: dict[str, list[list[float | None]]] = {
        "a": [[float(row % 3 > 0)] for row in range(60)],
        "b": [[1.0] if row % 5 else [None] for row in range(60)],
    }
    summary = summarize(journals.table(tmp_path / "run", scores, metric=RIGHT))
    assert summary.differences[0].verdict == "b is ahead only among the answers it gave"
    board = leaderboard([(summary, None)])
    assert [entry.groups for entry in board.entries] == ["a", "a"]
    assert (board.questions, board.left_out) == (48, 12)


def test_equal_agents_win_in_at_most_five_percent_of_runs_however_they_lose_answers() -> None:
    """B crashes on 60 % of its wrong answers, and is otherwise equal."""
    info = MetricInfo(
        key="m", name="m", scorer="s", scoring="x", low=0.0, high=1.0, direction="higher", kind="share", offline=True
    )
    draw, wins, naive = np.random.default_rng(5), 0, 0
    for _ in range(300):
        ease = draw.normal(0.3, 0.8, (100, 1))
        sides = []
        for losing in (0.0, 0.6):
            right = ease + draw.normal(0, 0.8, (100, 3)) > 0
            lost = ~right & (draw.random(right.shape) < losing)
            answers = (~lost).sum(axis=1)
            with np.errstate(invalid="ignore"):
                means = (right & ~lost).sum(axis=1) / answers
            sides.append(
                Units(
                    metric=info,
                    keys=(),
                    means=means,
                    answers=answers,
                    sds=np.full(100, np.nan),
                    ends=(0.0, 1.0),
                    planned=np.full(100, 3),
                    lost={"agent": lost.sum(axis=1)},
                )
            )
        found = difference(sides[0], sides[1], level=0.95)
        naive += found.test.p < 0.05
        held = found.worst is None or (found.worst.p < 0.05 and found.worst.value * found.test.value > 0)
        wins += found.test.p < 0.05 and held
    assert naive > 240
    assert wins <= 0.064 * 300


def test_a_run_does_not_stop_early_on_a_lead_that_losses_may_explain() -> None:
    horizon = Horizon(
        questions=100, order="", seed=0, repetitions=1, pairs=(("a", "b"),), metric="right", scorer="s", scoring="x",
        alpha=0.05,
    )  # fmt: skip
    draw = np.random.default_rng(2)
    right = draw.random(100) < 0.5
    means = np.column_stack([right, np.where(right, 1.0, np.nan)]).astype(float)  # b loses every wrong answer
    means[:, 0] = draw.permutation(means[:, 0])
    means[:10, 1] = np.where(np.isnan(means[:10, 1]), 1.0, means[:10, 1])
    worst = np.column_stack([means[:, 0], np.nan_to_num(means[:, 1])])
    assert StoppingRule(horizon, RIGHT, ["a", "b"]).look(means, 100)
    assert not StoppingRule(horizon, RIGHT, ["a", "b"]).look(means, 100, worst=worst)


def test_a_run_does_not_stop_as_equivalent_where_losses_may_hide_a_difference() -> None:
    horizon = Horizon(
        questions=200, order="", seed=0, repetitions=1, pairs=(("a", "b"),), metric="right", scorer="s", scoring="x",
        alpha=0.05, margin=0.2,
    )  # fmt: skip
    right = (np.random.default_rng(3).random(200) < 0.5).astype(float)
    means = np.column_stack([right, right])
    means[::3, 1] = np.nan
    worst = np.nan_to_num(means)
    for sides in ((0, 1), (1, 0)):
        kept, at_worst = means[:, sides], worst[:, sides]
        (one,) = StoppingRule(horizon, RIGHT, ["a", "b"]).look(kept, 200)
        assert one.verdict == "equivalent"
        assert [one.verdict for one in StoppingRule(horizon, RIGHT, ["a", "b"]).look(kept, 200, worst=kept)] == [
            "equivalent"
        ]
        assert not StoppingRule(horizon, RIGHT, ["a", "b"]).look(kept, 200, worst=at_worst)
