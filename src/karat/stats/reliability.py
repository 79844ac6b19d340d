"""How often an agent succeeds every time, at least once, or in the same way twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from karat.stats._groups import Counts, Floats, check_level, counts_of, whole
from karat.stats.intervals import clustered_se, t_interval
from karat.stats.results import Interval


def pass_hat_k(
    n: Counts,
    c: Counts,
    k: int,
    *,
    clusters: Iterable[object] | None = None,
    level: float = 0.95,
) -> Interval:
    """The chance that k fresh attempts at a question all succeed, averaged over questions.

    `n` attempts and `c` successes of each question, as numbers or sequences. Unbiased: the share of
    k-subsets without a failure, never the mean accuracy to the k-th power. Questions with fewer
    than k attempts are left out, and `reason` counts them; none left: NaN. The interval is
    Student's t over questions, cut to [0, 1]. `clusters`: the group of each question, if questions
    do not vary independently; the error is then that of `clustered_se`, and `n` counts clusters.

    >>> pass_hat_k([4, 4, 4, 4, 4], [4, 2, 3, 0, 4], 1).value
    0.65

    Yao et al. (2024), arXiv:2406.12045.
    """
    chances = _chances(n, c, k, lambda tries, wins: _all_of(wins, tries, k))
    return _averaged(
        chances,
        clusters,
        level=level,
        method="pass^k",
        few=f"fewer than {k} attempts",
    )


def pass_at_k(
    n: Counts,
    c: Counts,
    k: int,
    *,
    clusters: Iterable[object] | None = None,
    level: float = 0.95,
) -> Interval:
    """The chance that at least one of k fresh attempts at a question succeeds, averaged over
    questions.

    Arguments and limits as for `pass_hat_k`.

    >>> round(pass_at_k(10, 3, 2).value, 4)
    0.5333

    Chen et al. (2021), arXiv:2107.03374.
    """
    chances = _chances(n, c, k, lambda tries, wins: 1 - _all_of(tries - wins, tries, k))
    return _averaged(
        chances,
        clusters,
        level=level,
        method="pass@k",
        few=f"fewer than {k} attempts",
    )


def consistency(counts: Iterable[Any], *, level: float = 0.95) -> Interval:
    """The chance that two answers to one question fall into the same category, averaged over
    questions.

    `counts`: how many answers of each category, for one question, or a list of such lists.
    Questions with fewer than two answers are left out, and `reason` counts them.

    >>> consistency([4, 2, 1, 1]).value
    0.25

    Fleiss (1971), Psychol. Bull. 76:378 (observed agreement).
    """
    listed = list(counts)
    flat = not listed or isinstance(listed[0], (int, float, np.number))
    if flat:
        rows: list[Sequence[Any]] = [listed]
    else:
        rows = [list(row) for row in listed]

    agreements = []
    for row in rows:
        cells = [whole("counts", cell) for cell in row]
        n = sum(cells)
        if n > 1:
            agreement = sum(cell * (cell - 1) for cell in cells) / (n * (n - 1))
        else:
            agreement = math.nan

        agreements.append(agreement)

    chances = np.array(agreements, dtype=np.float64)
    return _averaged(chances, None, level=level, method="consistency", few="fewer than 2 answers")


def _chances(n: Counts, c: Counts, k: int, chance: Callable[[int, int], float]) -> Floats:
    if whole("k", k) < 1:
        raise ValueError(f"k: must be at least 1, got {k}")
    wins, tries = counts_of(("c", "n"), c, n)
    chances = []
    for tried, won in zip(tries, wins, strict=True):
        if tried >= k:
            chances.append(chance(tried, won))
        else:
            chances.append(math.nan)

    return np.array(chances, dtype=np.float64)


def _averaged(
    chances: Floats,
    clusters: Iterable[object] | None,
    *,
    level: float,
    method: str,
    few: str,
) -> Interval:
    known = ~np.isnan(chances)
    kept = chances[known]
    left_out = int(np.count_nonzero(~known))
    if clusters is None:
        over = t_interval(kept, level=check_level(level), observations=chances.size)
    else:
        labels = list(clusters)
        if len(labels) != chances.size:
            raise ValueError(
                f"clusters: must be as many as questions ({chances.size}), got {len(labels)}"
            )

        over = clustered_se(
            kept, [label for label, there in zip(labels, known, strict=True) if there], level=level
        )
        method = f"{method}, clustered"

    reason = over.reason
    if left_out:
        reason = f"{left_out} of {chances.size} questions have {few}"
    return replace(
        over,
        low=max(over.low, 0.0),  # this argument order keeps NaN
        high=min(over.high, 1.0),
        method=method,
        observations=chances.size,
        reason=reason,
    )


def _all_of(good: int, total: int, k: int) -> float:
    """C(good, k) / C(total, k), as a product that cannot overflow."""
    if good < k:
        return 0.0
    return math.prod((good - j) / (total - j) for j in range(k))
