"""How far the judges of a panel agree, answer by answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from karat.analysis.grids import Grid
from karat.analysis.model import JudgePair

__all__ = ["judge_pairs"]


def judge_pairs(found: Sequence[Grid]) -> list[JudgePair]:
    """Every two judges on every metric with steps, over the answers that both scored."""
    pairs = []
    for grid in found:
        if grid.info.kind == "number":
            continue
        for (a, first), (b, second) in combinations(grid.by_judge.items(), 2):
            both = ~np.isnan(first) & ~np.isnan(second)
            # A judge's mean over repeats counts at the nearest step, as in the distribution.
            apart = np.abs(np.floor(first[both] + 0.5) - np.floor(second[both] + 0.5))
            n = int(both.sum())
            pairs.append(
                JudgePair(
                    metric=grid.info.key,
                    a=a,
                    b=b,
                    exact=float(np.mean(apart == 0)) if n else None,
                    within_one=float(np.mean(apart <= 1)) if n else None,
                    answers=n,
                )
            )
    return pairs
