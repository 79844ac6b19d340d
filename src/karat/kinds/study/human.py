"""What people gave: the numbers of one test as a `Side`, and the statistic that follows from what was published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from karat.kinds.study.format import Arm, Level, Test

if TYPE_CHECKING:
    from karat.replication import Side

__all__ = [
    "PAIRED",
    "TWO_GROUPS",
    "cell_sizes",
    "described",
    "f_of_cells",
    "human_side",
    "levels_of",
    "published",
    "reference_of",
    "uses_statistic",
]

NAN = float("nan")
TWO_GROUPS = ("ttest_ind", "welch", "anova", "interaction", "mannwhitney", "variance_ratio")
PAIRED = ("ttest_paired", "ttest_one")
_STATISTIC = {"anova": "F", "interaction": "F",
              "mannwhitney": "U", "wilcoxon": "z", "correlation": "r", "spearman": "r",
              "variance_ratio": "ratio", "contingency": "chi2", "binomial": "k", "proportion": "k"}  # fmt: skip


def levels_of(test: Test, arms: Mapping[str, Arm]) -> list[Level]:
    """The groups of the test in their order; an n that is not given is the arm's, where groups are arms."""
    if test.groups is None:
        return []
    found = []
    for name in test.groups.names:
        level = test.human.levels.get(name, Level())
        if level.n is None and test.groups.column == "arm" and name in arms:
            level = level.model_copy(update={"n": arms[name].n})
        found.append(level)
    return found


def human_side(test: Test, arms: Mapping[str, Arm]) -> Side:
    """The human side. What was not published is NaN; with nothing that can be used, the reason is given."""
    from karat.replication import Side, d_from_t_df

    human, levels = test.human, levels_of(test, arms)
    known: dict[str, Any] = {"p0": test.p0, **_sizes(test, levels)}
    statistic = published(test, known) if uses_statistic(test, arms) else described(test, arms)
    if test.kind == "contingency":
        table = table_of(test, levels)
        return Side(table=table) if table is not None else Side(missing="no counts of people were published")
    if math.isnan(statistic):
        return Side(missing=f"no {_STATISTIC.get(test.kind, 't')} of people was published, nor what it follows from")
    known["statistic"] = statistic
    if test.statistic_kind == "anova":
        known |= _of_anova(test, levels)
        if test.factors and min(cell_sizes(test, levels) or [2]) < 2:
            return Side(missing="n is too small: each cell of the design needs two people")
    elif human.df1 is not None:
        known["df1"] = human.df1
        if test.kind in {"ttest_ind", "welch"} and math.isnan(known.get("n1", NAN)):
            known["d"] = d_from_t_df(statistic, human.df1)
    return Side(**known)


def uses_statistic(test: Test, arms: Mapping[str, Arm]) -> bool:
    """Whether the published statistic is what counts, and not the means or counts."""
    if test.use is not None:
        return test.use == "statistic"
    return not math.isnan(published(test, _sizes(test, levels_of(test, arms))))


def published(test: Test, sizes: Mapping[str, Any]) -> float:
    """The statistic as it was published; NaN where there is none."""
    human = test.human
    if test.kind in {"contingency", "binomial", "proportion"}:
        return NAN
    if test.kind == "mannwhitney" and human.U is None and human.z is not None:
        n1, n2 = sizes.get("n1", NAN), sizes.get("n2", NAN)
        return float(n1 * n2 / 2 + human.z * math.sqrt(n1 * n2 * (n1 + n2 + 1) / 12))
    value = getattr(human, _STATISTIC.get(test.kind, "t"))
    return NAN if value is None else float(value)


def described(test: Test, arms: Mapping[str, Arm]) -> float:
    """The statistic that follows from means, standard deviations or counts; NaN where they are not all there."""
    human, levels = test.human, levels_of(test, arms)
    if test.kind in {"binomial", "proportion"}:
        k = human.k if human.k is not None else levels[0].k if len(levels) == 1 else None
        return NAN if k is None else float(k)
    if test.kind in PAIRED:
        one = levels[0] if len(levels) == 1 else Level(n=human.n, mean=human.mean, sd=human.sd)
        if one.n is None or one.mean is None or not one.sd:
            return NAN
        return (one.mean - reference_of(test)) / (one.sd / math.sqrt(one.n))
    if test.kind == "variance_ratio" and len(levels) == 2 and levels[0].sd is not None and levels[1].sd:
        return (levels[0].sd / levels[1].sd) ** 2
    if test.kind not in {"ttest_ind", "welch", "anova"} or len(levels) < 2 or test.factors:
        return NAN
    given = [(one.n, one.mean, one.sd) for one in levels]
    if any(part is None for one in given for part in one):
        return NAN
    return statistic_of_means(test.kind, [(float(n or 0), float(mean or 0), float(sd or 0)) for n, mean, sd in given])


def reference_of(test: Test) -> float:
    """The number that one sample, or the difference of pairs, is compared with."""
    return float(test.against) if isinstance(test.against, (int, float)) else 0.0


def statistic_of_means(kind: str, groups: Sequence[tuple[float, float, float]]) -> float:
    """t, Welch's t or a one-way F of (n, mean, sd) a group; NaN without any spread."""
    total = sum(n for n, _, _ in groups)
    if kind == "welch":
        (n1, m1, s1), (n2, m2, s2) = groups
        error = s1 * s1 / n1 + s2 * s2 / n2
        return (m1 - m2) / math.sqrt(error) if error > 0 else NAN
    within = sum((n - 1) * sd * sd for n, _, sd in groups) / (total - len(groups)) if total > len(groups) else 0.0
    if within <= 0:
        return NAN
    if kind == "ttest_ind":
        (n1, m1, _), (n2, m2, _) = groups
        return (m1 - m2) / math.sqrt(within * (1 / n1 + 1 / n2))
    first = groups[0][1]  # equal means then give exactly 0
    grand = sum(n * (mean - first) for n, mean, _ in groups) / total
    between = sum(n * (mean - first - grand) ** 2 for n, mean, _ in groups) / (len(groups) - 1)
    return between / within


def table_of(test: Test, levels: Sequence[Level]) -> tuple[tuple[int, ...], ...] | None:
    """Counts: rows are levels, columns true and false or the outcomes. None where some are not known."""
    rows = []
    for level in levels:
        if test.outcomes is not None:
            from karat.kinds.study.format import level_name

            counts = level.counts or {}
            row = [counts.get(level_name(outcome), 0) for outcome in test.outcomes] if counts else None
        elif level.k is not None and level.n is not None:
            row = [level.k, level.n - level.k]
        else:
            row = None
        if row is None or min(row) < 0:
            return None
        rows.append(tuple(row))
    return tuple(rows) if len(rows) > 1 else None


def f_of_cells(cells: Sequence[tuple[float, float, float]], means: Sequence[float]) -> tuple[float, list[float]]:
    """F of a factorial design, and the effective size of each compared group: its cells as if they were equally large.

    `cells`: (n, mean, sd) of each, those of a group side by side; `means`: of each group, every cell counting alike.
    So the effects of the other factors, and of unequal cells, are no part of it: the sum of squares is of type III.

    Yates (1934), J. Am. Stat. Assoc. 29:51, weighted squares of means.
    """
    each = len(cells) // len(means)
    sizes = [each**2 / sum(1 / n for n, _, _ in cells[at : at + each]) for at in range(0, len(cells), each)]
    free = sum(n for n, _, _ in cells) - len(cells)
    within = sum((n - 1) * sd * sd for n, _, sd in cells) / free if free > 0 else 0.0
    if within <= 0:
        return NAN, sizes
    first = means[0]  # equal means then give exactly 0
    grand = sum(size * (mean - first) for size, mean in zip(sizes, means, strict=True)) / sum(sizes)
    between = sum(size * (mean - first - grand) ** 2 for size, mean in zip(sizes, means, strict=True))
    return between / (len(means) - 1) / within, sizes


def cell_sizes(test: Test, levels: Sequence[Level]) -> list[int] | None:
    """People in each cell of a factorial design, in the order of `test.cells`; None where no n is known.

    Papers give the n of a level, or of all: they are divided as evenly as they can be.
    """
    each = math.prod(len(one) for one in (test.factors or {}).values())
    totals = [one.n for one in levels if one.n is not None]
    if len(totals) < len(levels):
        if test.human.n is None:
            return None
        totals = _divided(test.human.n, len(levels))
    rows = [_divided(n, each) for n in totals]
    if test.kind == "interaction" and len(rows) == each == 2:
        return [rows[0][0], rows[1][1], rows[0][1], rows[1][0]]
    return [n for row in rows for n in row]


def _grouped(test: Test, cells: Sequence[int]) -> list[Sequence[int]]:
    """The same, by compared groups; none where they are not known."""
    each = len(test.cells[0]) if test.cells else 1
    return [cells[at : at + each] for at in range(0, len(cells), each)]


def _divided(n: int, parts: int) -> list[int]:
    return [n // parts + (at < n % parts) for at in range(parts)]


def _sizes(test: Test, levels: Sequence[Level]) -> dict[str, Any]:
    """n1 and n2 as `Side` has them."""
    if test.factors:
        pair = [float(sum(group)) for group in _grouped(test, cell_sizes(test, levels) or [])]
        return {"n1": pair[0], "n2": pair[1]} if len(pair) == 2 else {}
    if test.kind in TWO_GROUPS:
        if len(levels) != 2:
            return {}
        pair = [NAN if one.n is None else float(one.n) for one in levels]
        return {"n1": pair[0], "n2": pair[1]}
    n = test.human.n
    if n is None:
        sizes = [one.n for one in levels]
        n = sum(one or 0 for one in sizes) if sizes and None not in sizes else None
    if n is None and test.kind in PAIRED and test.human.df1 is not None:
        n = round(test.human.df1) + 1
    return {} if n is None else {"n1": float(n)}


def _of_anova(test: Test, levels: Sequence[Level]) -> dict[str, Any]:
    """Degrees of freedom, sizes and the sign of an F."""
    human = test.human
    known: dict[str, Any] = {}
    groups, cells = test.cells, len(levels)
    sizes = tuple(float(one.n) for one in levels if one.n is not None)
    if test.factors:
        split = _grouped(test, cell_sizes(test, levels) or [])
        cells = sum(map(len, groups))
        sizes = tuple(float(sum(group)) for group in split)
        known["effective"] = tuple(len(group) ** 2 / sum(1 / max(n, 1) for n in group) for group in split)
    if len(sizes) == len(groups) > 1:
        known["sizes"] = sizes
    df1 = human.df1 if human.df1 is not None else len(groups) - 1.0 if len(groups) > 1 else NAN
    df2 = human.df2 if human.df2 is not None else sum(sizes) - cells if "sizes" in known else NAN
    known |= {"df1": df1, "df2": df2}
    means = [] if test.kind == "interaction" else [one.mean for one in levels]
    if df1 == 1 and human.sign is not None:
        known["sign"] = human.sign
    elif df1 == 1 and len(means) == 2 and means[0] is not None and means[1] is not None and means[0] != means[1]:
        known["sign"] = 1 if means[0] > means[1] else -1
    return known
