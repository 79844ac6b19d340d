"""Runs whose drawn answers people have scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.analysis.journals import SCALE, table

from karat.analysis import Summary, summarize
from karat.analysis.calibration import draw_answers
from karat.journal import RunFolder
from karat.journal.calibration import Draw, PersonScores, add_calibration
from karat.records import Metric
from karat.records import Score as ScoreEvent

# 1 to 5, of two conditions: 12 questions, each answered twice
JUDGED = {
    "plain": [[2, 3], [3, 3], [4, 3], [2, 2], [3, 4], [2, 3], [3, 2], [4, 4], [3, 3], [2, 3], [3, 2], [2, 2]],
    "docs": [[4, 4], [5, 4], [4, 5], [3, 4], [5, 5], [4, 4], [4, 3], [5, 5], [4, 4], [3, 4], [4, 5], [3, 4]],
}

Score = Callable[[int, float], float | None]
"""A person's score of the drawn answer with this number, from 0, whose judge gave that; None: none."""


def drawn(
    folder: Path,
    scores: Mapping[str, Sequence[Sequence[float | bool | None]]] = JUDGED,
    *,
    size: int = 48,
    metric: Metric = SCALE,
    seed: int = 0,
) -> tuple[RunFolder, Summary, Draw]:
    """A run and a draw of its answers, which is kept with it."""
    run = table(folder, scores, metric=metric)
    summary = summarize(run)
    draw = draw_answers(run, summary, size, metric=summary.metrics[0], seed=seed)
    add_calibration(run, [draw])
    return run, summary, draw


def judged(run: RunFolder) -> dict[str, float]:
    """The judge's score of each trial."""
    scores = [event for event in run.events() if isinstance(event, ScoreEvent)]
    return {score.trial: float(next(iter(score.values.values())) or 0) for score in scores}


def label(run: RunFolder, draw: Draw, who: str, score: Score, *, metric: str = "completeness") -> None:
    """Keeps one person's scores."""
    judge = judged(run)
    given = []
    for at, trial in enumerate(draw.drawn):
        value = score(at, judge.get(trial, 0.0))
        if value is not None:
            given.append(PersonScores(at="", who=who, draw=draw.id, trial=trial, scores={metric: value}))
    add_calibration(run, given)
