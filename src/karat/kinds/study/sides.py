"""What the agent gave: rows of `data` as the `Side` of one test, by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from karat.kinds.study.format import Test, level_name
from karat.kinds.study.human import f_of_cells, statistic_of_means

if TYPE_CHECKING:
    from karat.replication import Side

__all__ = ["agent_side"]

Floats = NDArray[np.float64]
Columns = Mapping[str, Sequence[Any]]
NAN = float("nan")
ROUNDING = 1e-12  # of the largest number: what differs by less differs by rounding


def agent_side(test: Test, data: Columns) -> Side:
    """The agent's side of a test. What is missing in a row is left out; what cannot be computed says why.

    `data`: column → values, as `derive` gives them; a test takes the rows of its groups' levels.
    """
    from karat.replication import Side

    absent = [name for name in columns_of(test) if name not in data]
    if absent:
        return Side(missing=f"derive gives no column '{absent[0]}'")
    groups = group_rows(test, data)
    if test.kind == "contingency":
        return _table(test, data, groups)
    if test.kind in {"binomial", "proportion"}:
        return _share(test, data, groups)
    if test.kind in {"ttest_paired", "ttest_one", "wilcoxon", "correlation", "spearman"}:
        rows = np.concatenate(groups) if groups else np.arange(len(data[test.measure]))
        return _one_group(test, data, np.sort(rows))
    return _several_groups(test, [_known(numbers_of(data[test.measure])[rows]) for rows in groups])


def columns_of(test: Test) -> list[str]:
    named = [test.groups.column] if test.groups is not None else []
    return [*named, *(test.factors or {}), test.measure, *([test.against] if isinstance(test.against, str) else [])]


def group_rows(test: Test, data: Columns) -> list[NDArray[np.intp]]:
    """The rows of each level, in a factorial design of each cell; without groups there are none."""
    if test.groups is None:
        return []
    names = {
        name: np.array(
            [one if one is None or type(one) is str else level_name(one) for one in data[name]], dtype=object
        )
        for name in (test.groups.column, *(test.factors or {}))
    }
    return [
        np.flatnonzero(np.logical_and.reduce([names[name] == level_name(level) for name, level in cell.items()]))
        for group in test.cells
        for cell in group
    ]


def numbers_of(values: Sequence[Any]) -> Floats:
    """Numbers and truths as floats; whatever else is missing."""
    good = (float(one) if isinstance(one, (bool, int, float)) else NAN for one in values)
    return np.fromiter(good, dtype=np.float64, count=len(values))


def _known(values: Floats) -> Floats:
    return np.asarray(values[np.isfinite(values)])


def _table(test: Test, data: Columns, groups: Sequence[NDArray[np.intp]]) -> Side:
    from karat.replication import Side

    names = [level_name(one) for one in test.outcomes or (True, False)]
    values = data[test.measure]
    truth = test.outcomes is None
    rows = []
    for group in groups:
        seen = [outcome_of(values[at], truth=truth) for at in group]
        rows.append(tuple(sum(one == name for one in seen) for name in names))
    empty = [name for name, row in zip(test.groups.names if test.groups else (), rows, strict=True) if not sum(row)]
    if empty or len(rows) < 2:
        return Side(missing=f"no answer in {_named(empty)} could be used" if empty else "there are no groups")
    return Side(table=tuple(rows))


def outcome_of(value: Any, *, truth: bool) -> str | None:
    if value is None:
        return None
    if truth and not isinstance(value, bool):
        return {1.0: "true", 0.0: "false"}.get(float(value)) if isinstance(value, (int, float)) else None
    return level_name(value) if isinstance(value, (str, bool, int, float)) else None


def _share(test: Test, data: Columns, groups: Sequence[NDArray[np.intp]]) -> Side:
    from karat.replication import Side

    rows = np.concatenate(groups) if groups else np.arange(len(data[test.measure]))
    values = data[test.measure]
    seen = [outcome_of(values[at], truth=True) for at in rows]
    k, n = seen.count("true"), seen.count("true") + seen.count("false")
    if not n:
        return Side(missing="no answer could be used")
    return Side(statistic=float(k), n1=float(n), p0=test.p0)


def _one_group(test: Test, data: Columns, rows: NDArray[np.intp]) -> Side:
    from karat.replication import Side, ties_merged

    first = numbers_of(data[test.measure])[rows]
    if isinstance(test.against, str):
        second = numbers_of(data[test.against])[rows]
    else:
        second = np.full_like(first, 0.0 if test.against is None else float(test.against))
    good = np.isfinite(first) & np.isfinite(second)
    first, second = first[good], second[good]
    if test.kind == "spearman":
        first, second = (_ranks(ties_merged(one)) for one in (first, second))
    if test.kind in {"correlation", "spearman"}:
        return _correlation(first, second)
    if test.kind == "wilcoxon":
        return _signed_ranks(first - second, largest=float(np.abs(np.append(first, second)).max(initial=0.0)))
    apart = first - second
    n, sd = len(apart), _sd(apart, of=np.concatenate([first, second]))
    if n < 2 or not sd > 0:
        return Side(missing=_no_spread(n))
    mean, largest = _mean(apart), float(np.abs(np.concatenate([first, second])).max())
    mean = 0.0 if abs(mean) <= ROUNDING * largest else mean
    return Side(statistic=mean / (sd / math.sqrt(n)), n1=float(n), df1=n - 1.0)


def _correlation(first: Floats, second: Floats) -> Side:
    from karat.replication import Side

    n = len(first)
    if n < 3 or not (_sd(first) > 0 and _sd(second) > 0):
        return Side(missing=_no_spread(n))
    a, b = first - _mean(first), second - _mean(second)
    r = float(a @ b / math.sqrt(float(a @ a) * float(b @ b)))
    r = math.copysign(1.0, r) if 1 - abs(r) < ROUNDING else r
    return Side(statistic=0.0 if abs(r) < ROUNDING else r, n1=float(n))


def _signed_ranks(apart: Floats, *, largest: float) -> Side:
    """Z of W+, without the zeros, its spread corrected for ties; `largest`: of the numbers that were subtracted."""
    from karat.replication import Side, ties_merged

    apart = ties_merged(apart, largest=largest)
    apart = apart[apart != 0]
    n = len(apart)
    if n < 1:
        return Side(missing="no two answers differ")
    above, ties = float(_ranks(np.abs(apart))[apart > 0].sum()), _tie_term(np.abs(apart))
    spread = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    return Side(statistic=(above - n * (n + 1) / 4) / math.sqrt(spread), n1=float(n), tie_term=ties)


def _several_groups(test: Test, samples: Sequence[Floats]) -> Side:
    from karat.replication import Side, ties_merged

    least = 1 if test.kind == "mannwhitney" else 2
    cells = [" ".join(map(level_name, cell.values())) for group in test.cells for cell in group]
    few = [name for name, one in zip(cells, samples, strict=True) if len(one) < least]
    if few or len(samples) < 2:
        return Side(missing=f"too few answers in {_named(few)}" if few else "there are no groups")
    sizes = [float(len(one)) for one in samples]
    pair: dict[str, Any] = {"n1": sizes[0], "n2": sizes[1]} if len(sizes) == 2 else {}
    if test.kind == "mannwhitney":
        together = ties_merged(np.concatenate(samples))
        u = float(_ranks(together)[: len(samples[0])].sum()) - sizes[0] * (sizes[0] + 1) / 2
        return Side(statistic=u, tie_term=_tie_term(together), **pair)
    if test.kind == "variance_ratio":
        one, two = (_sd(sample) ** 2 for sample in samples)
        return Side(statistic=one / two, **pair) if two > 0 and one > 0 else Side(missing="no spread in a group")
    means = ties_merged(
        np.array([_mean(one) for one in samples]), largest=max(float(np.abs(one).max()) for one in samples)
    )
    described = [(len(one), float(mean), _sd(one)) for one, mean in zip(samples, means, strict=True)]
    if test.factors:
        return _factorial(test, described)
    statistic = statistic_of_means(test.kind, [(float(n), mean, sd) for n, mean, sd in described])
    if math.isnan(statistic):
        return Side(missing="all answers within each group are the same: there is no spread")
    if test.kind != "anova":
        return Side(statistic=statistic, **pair)
    df1 = len(sizes) - 1.0
    above = float(np.sign(described[0][1] - described[1][1]))
    sign = int(above) if df1 == 1 and above else None
    return Side(statistic=statistic, df1=df1, df2=sum(sizes) - len(sizes), sizes=tuple(sizes), sign=sign, **pair)


def _factorial(test: Test, cells: Sequence[tuple[int, float, float]]) -> Side:
    """F of one effect in a factorial design; `cells`: n, mean and sd of each."""
    from karat.replication import Side, ties_merged

    groups = np.array(cells).reshape(len(test.cells), -1, 3)
    largest = float(np.abs(groups[:, :, 1]).max())
    means = ties_merged(np.array([_mean(one) for one in groups[:, :, 1]]), largest=largest).tolist()
    statistic, effective = f_of_cells([(float(n), mean, sd) for n, mean, sd in cells], means)
    if math.isnan(statistic):
        return Side(missing="all answers within each group are the same: there is no spread")
    sizes, df1 = groups[:, :, 0].sum(axis=1).tolist(), len(means) - 1.0
    above = float(np.sign(means[0] - means[1])) if df1 == 1 else 0.0
    return Side(
        statistic=statistic, df1=df1, df2=sum(sizes) - len(cells), sizes=tuple(sizes), effective=tuple(effective),
        sign=int(above) or None, **({"n1": sizes[0], "n2": sizes[1]} if df1 == 1 else {}),
    )  # fmt: skip


def _mean(values: Floats) -> float:
    """Rounded once: the same numbers in another order have the same mean."""
    return math.fsum(values.tolist()) / len(values) if len(values) else NAN


def _sd(values: Floats, *, of: Floats | None = None) -> float:
    """The standard deviation; 0 where the values differ by no more than rounding of the numbers they come from.

    The sum of squares of three times 0.1 is 6e-34, and a t of it would be 10¹⁶.
    """
    if len(values) < 2:
        return 0.0
    largest = float(np.abs(values if of is None else of).max())
    return float(values.std(ddof=1)) if float(np.ptp(values)) > ROUNDING * largest else 0.0


def _ranks(values: Floats) -> Floats:
    """From 1; equal values share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _tie_term(values: Floats) -> float:
    """Σ(t³ − t) over groups of t equal values."""
    _, counts = np.unique(values, return_counts=True)
    return float((counts.astype(np.float64) ** 3 - counts).sum())


def _no_spread(n: int) -> str:
    return "too few answers could be used" if n < 3 else "all answers are the same: there is no spread"


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
