"""The questions that went worst, with the words that explain why: a second pass over the journal for these few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from karat import formats
from karat.analysis.estimates import known, question_means
from karat.analysis.grids import Grid
from karat.analysis.model import LowCell, LowSample
from karat.analysis.reading import Reading
from karat.journal import RunFolder
from karat.records import Sample, Score

__all__ = ["HOW_MANY", "lowest"]

HOW_MANY = 5
_LONGEST = 400  # columns of an excerpt


class _Head(msgspec.Struct, gc=False):
    trial: str


class _Reply(msgspec.Struct, gc=False):
    text: str


class _Answer(msgspec.Struct, gc=False):
    trial: str
    replies: tuple[_Reply, ...]


_head = msgspec.json.Decoder(_Head).decode
_answer = msgspec.json.Decoder(_Answer).decode
_score = msgspec.json.Decoder(Score).decode


@dataclass(slots=True)
class _Words:
    """What was written about one trial."""

    answer: str | None = None
    rows: dict[tuple[int | None, str | None, int], Score] = field(default_factory=dict)


def lowest(run: RunFolder, reading: Reading, grid: Grid, conditions: Sequence[str]) -> tuple[LowSample, ...]:
    """The questions with the lowest mean over conditions on this metric, perfect ones left out."""
    means = np.column_stack([question_means(grid.values[:, index, :])[0] for index in range(len(conditions))])
    overall, _ = question_means(means)
    chosen = _chosen(grid, overall)
    if not chosen:
        return ()
    samples = _samples(run, reading, chosen)
    words = _words(run, reading, grid, chosen)
    return tuple(_low(grid, conditions, reading, row, samples[row], means[row], words) for row in chosen)


def _chosen(grid: Grid, overall: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[int]:
    info = grid.info
    badness = overall if info.direction == "lower" else -overall
    perfect = {"higher": info.high, "lower": info.low}.get(info.direction)
    order = np.lexsort((np.arange(len(overall)), -badness))
    kept = [row for row in order.tolist() if not np.isnan(overall[row]) and overall[row] != perfect]
    return kept[:HOW_MANY]


def _samples(run: RunFolder, reading: Reading, chosen: Sequence[int]) -> dict[int, Sample]:
    wanted = set(chosen)
    return {row: sample for sample in run.samples() if (row := reading.samples[sample.id]) in wanted}


def _words(run: RunFolder, reading: Reading, grid: Grid, chosen: Sequence[int]) -> dict[int, _Words]:
    """Cell → what stands in the journal about it."""
    per_sample = len(reading.conditions) * reading.repetitions
    rows = set(chosen)
    trials = {trial: cell for trial, cell in (reading.trials or {}).items() if cell // per_sample in rows}
    words = {cell: _Words() for cell in trials.values()}
    for line in run.lines():
        kind = line[10:15]
        if kind not in (b"answe", b"score"):
            continue
        cell = trials.get(_head(line).trial)
        if cell is None:
            continue
        if kind == b"answe":
            if words[cell].answer is None:
                replies = _answer(line).replies
                words[cell].answer = replies[-1].text if replies else ""
            continue
        score = _score(line)
        if (score.scorer, score.scoring) == (grid.info.scorer, grid.info.scoring):
            words[cell].rows[score.turn, score.judge, score.repeat] = score
    return words


def _low(
    grid: Grid,
    conditions: Sequence[str],
    reading: Reading,
    row: int,
    sample: Sample,
    means: np.ndarray[tuple[int], np.dtype[np.float64]],
    words: dict[int, _Words],
) -> LowSample:
    there = means[~np.isnan(means)]
    cells = []
    for index, condition in enumerate(conditions):
        first = (row * len(conditions) + index) * reading.repetitions
        about = [words.get(first + repetition, _Words()) for repetition in range(reading.repetitions)]
        cells.append(_cell(grid, condition, grid.values[row, index, :], about))
    return LowSample(
        sample=sample.id,
        position=sample.position,
        question=formats.excerpt(sample.turns[-1].question if sample.turns else "", _LONGEST),
        metric=grid.info.key,
        mean=float(there.mean()),
        gap=float(np.ptp(there)) if len(there) > 1 else None,
        cells=tuple(cells),
    )


def _cell(
    grid: Grid, condition: str, values: np.ndarray[tuple[int], np.dtype[np.float64]], about: Sequence[_Words]
) -> LowCell:
    there = ~np.isnan(values)
    n = int(there.sum())
    if n == 0:
        return LowCell(condition=condition, mean=None, sd=None, n=0)
    badness = np.where(there, values if grid.info.direction == "lower" else -values, -np.inf)
    worst = about[int(np.argmax(badness))]
    reasons = [text for score in worst.rows.values() if (text := score.reasons.get(grid.info.name))]
    claims = dict.fromkeys(
        formats.excerpt(claim, _LONGEST) for one in about for score in one.rows.values() for claim in score.claims
    )
    return LowCell(
        condition=condition,
        mean=float(values[there].mean()),
        sd=known(float(np.std(values[there], ddof=1))) if n > 1 else None,
        n=n,
        reason=formats.excerpt(reasons[0], _LONGEST) if reasons else None,
        answer=formats.excerpt(worst.answer, _LONGEST) if worst.answer is not None else None,
        claims=tuple(claims),
    )
