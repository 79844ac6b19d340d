"""p-values for each kind of test: two-sided, exact where possible.

Shown for information, never scored.
"""

from __future__ import annotations

import math

import numpy as np

from karat.stats import special
from karat_studies.replication import ranks
from karat_studies.replication._inputs import (
    Floats,
    Numbers,
    Result,
    above_0,
    check_choice,
    counts,
    evaluate,
    floats,
    within_1,
)
from karat_studies.replication.counts import log_dbinom
from karat_studies.replication.effects import KINDS

NAN = float("nan")
SLACK = 1e-7  # of a probability: equal up to rounding


def p_value(
    kind: str,
    statistic: Numbers,
    *,
    n1: Numbers = NAN,
    n2: Numbers = NAN,
    df: Numbers = None,
    df2: Numbers = NAN,
    p0: float = 0.5,
) -> Result:
    """The two-sided p of a test of this kind.

    `statistic` is as in `Side`: t, F (`df`, `df2`), r, k of n1, U, z of signed ranks, the
    table, or a ratio of variances. Exact for shares, for 2×2 tables (Fisher) and for U
    without ties up to n1·n2 = 10⁴; larger tables by χ². `df` of Welch's t is required;
    for the others it follows from the sizes. Arrays broadcast for t, F, r and z.

    >>> (
    ...     round(p_value("ttest_ind", 2.66, n1=40, n2=40), 6),
    ...     round(p_value("binomial", 3, n1=20, p0=0.3), 6),
    ... )
    (0.009481, 0.220418)
    """
    check_choice("kind", kind, KINDS)
    if kind in {"ttest_ind", "welch", "ttest_paired", "ttest_one"}:
        t = floats("statistic", statistic)
        if df is not None:
            free = above_0("df", df)
        elif kind == "welch":
            raise ValueError("df: is required for Welch's t; it does not follow from the sizes")
        elif kind == "ttest_ind":
            free = np.asarray(counts("n1", n1, least=1) + counts("n2", n2, least=1) - 2)
        else:
            free = np.asarray(counts("n1", n1, least=2) - 1)

        return _of_t(t, free)

    if kind in {"correlation", "spearman"}:
        r = within_1("statistic", statistic)
        free = counts("n1", n1, least=3) - 2
        with np.errstate(divide="ignore"):
            return _of_t(np.asarray(r * np.sqrt(free / ((1 - r) * (1 + r)))), np.asarray(free))

    if kind == "anova":
        return evaluate(
            lambda f, a, b: np.asarray(special.fdtrc(a, b, f)),
            floats("statistic", statistic),
            floats("df", df),
            floats("df2", df2),
        )

    if kind == "variance_ratio":
        ratio = float(floats("statistic", statistic))
        first = float(floats("n1", n1)) - 1
        second = float(floats("n2", n2)) - 1
        above = float(special.fdtrc(first, second, ratio))
        below = float(special.fdtr(first, second, ratio))
        return min(1.0, 2 * min(above, below))

    if kind in {"binomial", "proportion"}:
        # All outcomes no more likely than k.
        k = int(floats("statistic", statistic))
        n = int(floats("n1", n1))
        if not 0 <= k <= n or not 0 < p0 < 1:
            raise ValueError(
                f"k of n against p0: must be 0 ≤ k ≤ n and 0 < p0 < 1, got {k} of {n} against "
                f"{p0:g}"
            )

        every = np.arange(n + 1, dtype=np.float64)
        with np.errstate(all="ignore"):
            logs = log_dbinom(every, np.full_like(every, n), np.full_like(every, p0))
        return _as_unlikely(logs, k)

    if kind == "contingency":
        return _of_table(floats("statistic", statistic))
    return _of_ranks(kind, statistic, n1, n2)


def _of_t(t: Floats, df: Floats) -> Result:
    return evaluate(lambda t, v: np.asarray(2 * special.stdtr(v, -np.abs(t))), t, df)


def _as_unlikely(logs: Floats, seen: int) -> float:
    chances = np.exp(logs)
    return min(1.0, float(chances[logs <= logs[seen] + SLACK].sum() / chances.sum()))


def _of_table(table: Floats) -> float:
    if table.ndim != 2 or not (table >= 0).all():
        raise ValueError(f"statistic: must be one table of counts, got shape {table.shape}")
    rows = table.sum(axis=1)
    columns = table.sum(axis=0)
    if table.shape == (2, 2):
        first = np.arange(max(0.0, columns[0] - rows[1]), min(rows[0], columns[0]) + 1)
        with np.errstate(all="ignore"):
            logs = log_dbinom(first, np.full_like(first, rows[0]), np.full_like(first, 0.5))
            logs = logs + log_dbinom(
                columns[0] - first, np.full_like(first, rows[1]), np.full_like(first, 0.5)
            )

        return _as_unlikely(logs - logs.max(), int(table[0, 0] - first[0]))

    expected = np.outer(rows, columns) / table.sum()
    if (expected == 0).any():
        return NAN
    square = float(((table - expected) ** 2 / expected).sum())
    return float(special.chdtrc((rows.size - 1) * (columns.size - 1), square))


def _of_ranks(kind: str, statistic: Numbers, n1: Numbers, n2: Numbers) -> Result:
    if kind == "wilcoxon":
        return evaluate(
            lambda z: np.asarray(2 * special.ndtr(-np.abs(z))), floats("statistic", statistic)
        )

    u = float(floats("statistic", statistic))
    a = int(floats("n1", n1))
    b = int(floats("n2", n2))
    if not 0 <= u <= a * b:
        raise ValueError(f"statistic: U must lie between 0 and {a * b}, got {u:g}")
    if u == int(u) and a * b <= ranks.EXACT_PRODUCT:
        chances = np.exp(ranks.log_null(a, b))
        return min(1.0, 2 * float(chances[: int(min(u, a * b - u)) + 1].sum()))

    distance = max(0.0, abs(u - a * b / 2) - 0.5)
    return float(2 * special.ndtr(-distance / math.sqrt(a * b * (a + b + 1) / 12)))
