"""How closely the judges of a panel agree, answer by answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from karat.analysis.estimates import estimated
from karat.analysis.grids import Grid
from karat.analysis.model import JudgePair
from karat.stats import gwet_ac


def nearest_steps(values: np.ndarray, steps: Sequence[float]) -> list[float]:
    """Each value rounded to the nearest step (halfway: to the upper one); unchanged without
    steps.
    """
    if steps:
        rounded = np.clip(np.floor(values + 0.5), steps[0], steps[-1]) + 0.0
    else:
        rounded = values

    return [float(value) for value in rounded]


def judge_pairs(grids: Sequence[Grid]) -> list[JudgePair]:
    """Every pair of judges on every metric with steps, over the answers that both scored."""
    pairs = []
    for grid in grids:
        if grid.info.kind == "number":
            continue
        for (a, first), (b, second) in combinations(grid.by_judge.items(), 2):
            both = ~np.isnan(first) & ~np.isnan(second)
            # A judge's mean over repeats counts at the nearest step, as in the distribution.
            apart = np.abs(np.floor(first[both] + 0.5) - np.floor(second[both] + 0.5))
            n = int(both.sum())
            questions = np.nonzero(both)[0].tolist()
            steps = grid.info.steps
            judges = (nearest_steps(scores[both], steps) for scores in (first, second))
            pairs.append(
                JudgePair(
                    metric=grid.info.key,
                    a=a,
                    b=b,
                    exact=float(np.mean(apart == 0)) if n else None,
                    within_one=float(np.mean(apart <= 1)) if n else None,
                    answers=n,
                    ac2=estimated(gwet_ac(*judges, clusters=questions, categories=steps), -1, 1)
                    if steps
                    else msgspec.UNSET,
                )
            )

    return pairs
