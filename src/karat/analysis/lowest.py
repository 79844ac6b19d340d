"""The questions with the lowest scores, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from karat import formats
from karat.analysis.grids import Grid
from karat.analysis.model import LowCell, LowSample
from karat.analysis.numbers import known
from karat.analysis.units import question_means
from karat.index import RunIndex
from karat.records import Score

HOW_MANY = 5
_LONGEST = 400  # columns of an excerpt


class _Reply(msgspec.Struct, gc=False):
    text: str


class _Answer(msgspec.Struct, gc=False):
    replies: tuple[_Reply, ...]


_answer = msgspec.json.Decoder(_Answer).decode
_score = msgspec.json.Decoder(Score).decode


def lowest(index: RunIndex, grid: Grid, conditions: Sequence[str]) -> tuple[LowSample, ...]:
    """The questions with the lowest mean over conditions on this metric, without perfect ones."""
    means = np.column_stack(
        [question_means(grid.values[:, column, :])[0] for column in range(len(conditions))]
    )
    overall, _ = question_means(means)
    info = grid.info
    if info.direction == "lower":
        badness = overall
    else:
        badness = -overall
    perfect = {"higher": info.high, "lower": info.low}.get(info.direction)
    order = np.lexsort((np.arange(len(overall)), -badness))
    ordered = overall[order]
    if perfect is None:
        imperfect = ~np.isnan(ordered)
    else:
        imperfect = ~np.isnan(ordered) & (ordered != perfect)

    chosen: list[int] = order[imperfect][:HOW_MANY].tolist()
    if not chosen:
        return ()
    samples = {index.samples[sample.id]: sample for sample in index.samples_of(chosen)}

    # Cell of a chosen sample → its score rows that count, in the journal's order
    scores: dict[int, list[Score]] = {}
    rows = index.scores.get((grid.info.scorer, grid.info.scoring))
    if rows is not None:
        order = np.sort(rows.counting())
        cells = np.frombuffer(rows.cells, dtype=np.int64)[order]
        order = order[
            np.isin(cells // (len(index.conditions) * index.repetitions), chosen)
        ].tolist()
        for place, line in zip(order, index.lines(rows.at[place] for place in order), strict=True):
            scores.setdefault(rows.cells[place], []).append(_score(line))

    lows = []
    for row in chosen:
        sample = samples[row]
        there = means[row][~np.isnan(means[row])]
        low_cells = []
        for column, condition in enumerate(conditions):
            first = (row * len(conditions) + column) * index.repetitions
            places = range(first, first + index.repetitions)
            low_cells.append(
                _cell(index, grid, condition, grid.values[row, column, :], places, scores)
            )

        if len(there) > 1:
            gap = float(np.ptp(there))
        else:
            gap = None

        lows.append(
            LowSample(
                sample=sample.id,
                position=sample.position,
                question=formats.excerpt(
                    sample.turns[-1].question if sample.turns else "", _LONGEST
                ),
                metric=grid.info.key,
                mean=float(there.mean()),
                gap=gap,
                cells=tuple(low_cells),
            )
        )

    return tuple(lows)


def _cell(
    index: RunIndex,
    grid: Grid,
    condition: str,
    values: NDArray[np.float64],
    places: range,
    scores: Mapping[int, Sequence[Score]],
) -> LowCell:
    there = ~np.isnan(values)
    n = int(there.sum())
    if n == 0:
        return LowCell(condition=condition, mean=None, sd=None, n=0)
    badness = np.where(there, values if grid.info.direction == "lower" else -values, -np.inf)
    worst = places[int(np.argmax(badness))]
    reasons = []
    for score in scores.get(worst, ()):
        if text := score.reasons.get(grid.info.name):
            reasons.append(text)

    claims = dict.fromkeys(
        formats.excerpt(claim, _LONGEST)
        for cell in places
        for score in scores.get(cell, ())
        for claim in score.claims
    )
    answer = next(map(_answer, index.lines([index.answers[worst]])))
    if n > 1:
        sd = known(float(np.std(values[there], ddof=1)))
    else:
        sd = None

    if reasons:
        reason = formats.excerpt(reasons[0], _LONGEST)
    else:
        reason = None

    return LowCell(
        condition=condition,
        mean=float(values[there].mean()),
        sd=sd,
        n=n,
        reason=reason,
        answer=formats.excerpt(answer.replies[-1].text if answer.replies else "", _LONGEST),
        claims=tuple(claims),
    )
