"""Which answers people should read: a stratified draw of answers that a judge has scored."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from karat.stats._groups import columns

__all__ = ["LabelDraw", "draw_for_labels", "labels_needed", "strata_of_scores"]

SMALLEST = 20  # answers of a stratum; smaller ones are merged with their neighbour
FEWEST = 4  # labels a stratum
MOST_SCORES = 12  # different scores of a group; beyond, scores are binned by rank


class LabelDraw(Struct, frozen=True, kw_only=True):
    """Answers drawn for people."""

    rows: tuple[int, ...]  # of the answers, in random order
    strata: tuple[int, ...]  # of every answer; -1: no score, so it cannot be drawn
    sizes: tuple[int, ...]  # answers of each stratum
    drawn: tuple[int, ...]  # of each stratum


def strata_of_scores(scores: Iterable[Any], groups: Iterable[Hashable]) -> list[int]:
    """The stratum of each answer: its group (a condition) and its exact score; -1 where it has no score.

    Within a group strata of fewer than 20 answers are merged with the neighbouring score; more than 12 different scores
    are first binned by rank. Depends on nothing but the arguments, so it can be worked out again later.
    """
    values, named = columns("scores", scores), list(groups)
    if len(named) != values.size:
        raise ValueError(f"groups: must be as many as scores ({values.size}), got {len(named)}")
    strata = np.full(values.size, -1, dtype=np.int64)
    members = np.array(_numbered(named), dtype=np.int64)
    start = 0
    for group in range(int(members.max(initial=-1)) + 1):
        rows = np.flatnonzero((members == group) & np.isfinite(values))
        if not rows.size:
            continue
        distinct, codes = np.unique(values[rows], return_inverse=True)
        if distinct.size > MOST_SCORES:
            edges = np.quantile(values[rows], np.linspace(0, 1, MOST_SCORES + 1)[1:-1])
            codes = np.unique(np.searchsorted(edges, values[rows], side="right"), return_inverse=True)[1]
        merged = _merged(np.bincount(codes))
        strata[rows] = start + merged[codes]
        start += int(merged.max()) + 1
    return strata.tolist()


def _numbered(names: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


def _merged(sizes: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Step of the scale -> stratum: the smallest is merged with its smaller neighbour until all are large enough."""
    parts = [[step] for step in range(sizes.size)]
    counts = sizes.tolist()
    while len(parts) > 1 and min(counts) < SMALLEST:
        at = counts.index(min(counts))
        beside = [place for place in (at - 1, at + 1) if 0 <= place < len(parts)]
        to = min(beside, key=lambda place: counts[place])
        first, second = sorted((at, to))
        parts[first] += parts.pop(second)
        counts[first] += counts.pop(second)
    merged = np.empty(sizes.size, dtype=np.int64)
    for stratum, steps in enumerate(parts):
        merged[steps] = stratum
    return merged


def draw_for_labels(
    scores: Iterable[Any], groups: Iterable[Hashable], size: int, *, rng: np.random.Generator
) -> LabelDraw:
    """Draws `size` answers in proportion to the strata of `strata_of_scores`, at least 4 from each.

    Equal numbers a score instead would bias an unweighted mean by .11 to .19 on a scale of 1 to 5. A few more than
    `size` are drawn where 4 from each stratum are more, and all where there are no more. Raises ValueError for a size
    below 1.

    >>> import numpy as np
    >>> draw = draw_for_labels([5] * 60 + [1] * 40, ["a"] * 100, 20, rng=np.random.default_rng(1))
    >>> draw.sizes, draw.drawn
    ((40, 60), (8, 12))

    Särndal, Swensson and Wretman (1992), Model Assisted Survey Sampling, section 3.7.
    """
    if size < 1:
        raise ValueError(f"size: must be at least 1, got {size}")
    strata = np.array(strata_of_scores(scores, groups), dtype=np.int64)
    sizes = np.bincount(strata[strata >= 0])
    total = int(sizes.sum())
    share = np.minimum(sizes, np.maximum(FEWEST, size * sizes / max(total, 1)))
    drawn = np.floor(share).astype(np.int64)
    spare = min(size, total) - int(drawn.sum())
    for stratum in np.argsort(drawn - share, kind="stable")[: max(spare, 0)].tolist():
        drawn[stratum] = min(drawn[stratum] + 1, sizes[stratum])
    rows = [
        rng.choice(np.flatnonzero(strata == stratum), count, replace=False)
        for stratum, count in enumerate(drawn.tolist())
    ]
    chosen = rng.permutation(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
    return LabelDraw(
        rows=tuple(chosen.tolist()), strata=tuple(strata.tolist()), sizes=tuple(sizes.tolist()),
        drawn=tuple(drawn.tolist()),
    )  # fmt: skip


def labels_needed(half_width: float, labelled: int, now: float) -> int | None:
    """Labels for an interval of +-`half_width`, where `labelled` gave +-`now`: the square root law.

    None where more labels cannot be the answer: nothing is known yet.

    >>> labels_needed(0.1, 50, 0.2)
    200
    """
    if not (half_width > 0 and now > 0 and math.isfinite(now)):
        return None
    return max(labelled, math.ceil(labelled * (now / half_width) ** 2 - 1e-9))
