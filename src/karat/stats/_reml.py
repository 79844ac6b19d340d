"""Restricted maximum likelihood of variances, where questions have unequal numbers of answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from karat.stats._groups import Floats, Groups
from karat.stats.intervals import sample_sd

__all__ = ["reml_of_two"]


def reml_of_two(groups: Groups) -> tuple[float, float]:
    """(between, within) by restricted maximum likelihood, profiled over λ = between/within."""
    counts, means = groups.counts.astype(float), groups.means
    ss_within, size = float(groups.squares.sum()), groups.values.size
    if not ss_within > 0:  # no answer differs from another: the means are all that is left
        return sample_sd(means) ** 2, 0.0

    def residual(ratio: float) -> tuple[float, Floats]:
        weights = counts / (1 + ratio * counts)
        centre = float(weights @ means) / float(weights.sum())
        return ss_within + float(weights @ (means - centre) ** 2), weights

    def deviance(log_ratio: float) -> float:
        ratio = math.exp(log_ratio)
        rest, weights = residual(ratio)
        spread = float(np.log1p(ratio * counts).sum()) + math.log(float(weights.sum()))
        return (size - 1) * math.log(max(rest, 1e-300)) + spread

    grid = np.linspace(-25.0, 25.0, 201)
    best = int(np.argmin([deviance(point) for point in grid]))
    log_ratio = _golden_section(deviance, float(grid[max(0, best - 1)]), float(grid[min(200, best + 1)]))
    ratio = 0.0 if best == 0 else math.exp(log_ratio)
    within = residual(ratio)[0] / (size - 1)
    return ratio * within, within


def _golden_section(function: Callable[[float], float], low: float, high: float) -> float:
    share = (math.sqrt(5) - 1) / 2
    for _ in range(80):
        left, right = high - share * (high - low), low + share * (high - low)
        if function(left) < function(right):
            high = right
        else:
            low = left
    return (low + high) / 2
