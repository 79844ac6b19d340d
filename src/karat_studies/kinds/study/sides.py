"""The two sides of a test: that of people, from published numbers, and the agent's, from rows of
`data`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from karat.sums import exact_sum
from karat_studies.kinds.study.format import Arm, Level, Test, level_name
from karat_studies.kinds.study.repeats import (
    COUNTED,
    Columns,
    Places,
    clustered_error,
    of_people,
    person_of,
    shares_of_people,
)
from karat_studies.replication import Side, d_from_t_df, ties_merged

NAN = float("nan")
TWO_GROUPS = ("ttest_ind", "welch", "anova", "interaction", "mannwhitney", "variance_ratio")
PAIRED = ("ttest_paired", "ttest_one")
TOGETHER = (*PAIRED, "wilcoxon", "correlation", "spearman", "binomial", "proportion")
"""The kinds that take the rows of all levels as one group."""
STATISTIC = {
    "anova": "F",
    "interaction": "F",
    "mannwhitney": "U",
    "wilcoxon": "z",
    "correlation": "r",
    "spearman": "r",
    "variance_ratio": "ratio",
    "contingency": "chi2",
    "binomial": "k",
    "proportion": "k",
}


def levels_of(test: Test, arms: Mapping[str, Arm]) -> list[Level]:
    """The groups of the test, in order. If groups are arms, a missing n is taken from the arm."""
    if test.groups is None:
        return []
    levels = []
    for name in test.groups.names:
        level = test.human.levels.get(name, Level())
        if level.n is None and test.groups.column == "arm" and name in arms:
            level = level.model_copy(update={"n": arms[name].n})
        levels.append(level)

    return levels


def human_side(test: Test, arms: Mapping[str, Arm]) -> Side:
    """The human side. What was not published is NaN; if nothing is usable, `missing` says why."""
    human = test.human
    levels = levels_of(test, arms)
    known: dict[str, Any] = {"p0": test.p0, **_sizes(test, levels)}
    if uses_statistic(test, arms):
        statistic = published(test, known)
    else:
        statistic = described(test, arms)

    if test.kind == "contingency":
        table = table_of(test, levels)
        if table is not None:
            return Side(table=table)
        return Side(missing="no counts of people were published")

    if math.isnan(statistic):
        return Side(
            missing=(
                f"no {STATISTIC.get(test.kind, 't')} of people was published, nor anything to "
                f"compute it from"
            )
        )

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
    """Whether the published statistic is used, rather than the means or counts."""
    if test.use is not None:
        return test.use == "statistic"
    return not math.isnan(published(test, _sizes(test, levels_of(test, arms))))


def published(test: Test, sizes: Mapping[str, Any]) -> float:
    """The published statistic; NaN if there is none."""
    human = test.human
    if test.kind in {"contingency", "binomial", "proportion"}:
        return NAN
    if test.kind == "mannwhitney" and human.U is None and human.z is not None:
        n1 = sizes.get("n1", NAN)
        n2 = sizes.get("n2", NAN)
        return float(n1 * n2 / 2 + human.z * math.sqrt(n1 * n2 * (n1 + n2 + 1) / 12))

    value = getattr(human, STATISTIC.get(test.kind, "t"))
    if value is None:
        return NAN
    return float(value)


def described(test: Test, arms: Mapping[str, Arm]) -> float:
    """The statistic that follows from means, standard deviations or counts; NaN if any of them is
    missing.
    """
    human = test.human
    levels = levels_of(test, arms)
    if test.kind in {"binomial", "proportion"}:
        k = human.k if human.k is not None else levels[0].k if len(levels) == 1 else None
        if k is None:
            return NAN
        return float(k)

    if test.kind in PAIRED:
        if len(levels) == 1:
            level = levels[0]
        else:
            level = Level(n=human.n, mean=human.mean, sd=human.sd)

        if level.n is None or level.mean is None or not level.sd:
            return NAN
        return (level.mean - reference_of(test)) / (level.sd / math.sqrt(level.n))

    if (
        test.kind == "variance_ratio"
        and len(levels) == 2
        and levels[0].sd is not None
        and levels[1].sd
    ):
        return (levels[0].sd / levels[1].sd) ** 2

    if test.kind not in {"ttest_ind", "welch", "anova"} or len(levels) < 2 or test.factors:
        return NAN
    given = [(level.n, level.mean, level.sd) for level in levels]
    if any(part is None for row in given for part in row):
        return NAN
    return statistic_of_means(
        test.kind, [(float(n or 0), float(mean or 0), float(sd or 0)) for n, mean, sd in given]
    )


def reference_of(test: Test) -> float:
    """The number that one sample, or the difference within pairs, is compared with."""
    if isinstance(test.against, (int, float)):
        return float(test.against)
    return 0.0


def statistic_of_means(kind: str, groups: Sequence[tuple[float, float, float]]) -> float:
    """t, Welch's t or a one-way F from (n, mean, sd) of each group; NaN without any spread."""
    if kind == "anova":
        return f_of_cells(groups, [mean for _, mean, _ in groups])[0]
    (n1, m1, s1), (n2, m2, s2) = groups
    if kind == "welch":
        variance = s1 * s1 / n1 + s2 * s2 / n2
    else:
        variance = _within(groups) * (1 / n1 + 1 / n2)

    if variance > 0:
        return (m1 - m2) / math.sqrt(variance)
    return NAN


def _within(groups: Sequence[tuple[float, float, float]]) -> float:
    """The pooled variance; 0 without two people in any group."""
    free = sum(n for n, _, _ in groups) - len(groups)
    if free > 0:
        return exact_sum((n - 1) * sd * sd for n, _, sd in groups) / free
    return 0.0


def table_of(test: Test, levels: Sequence[Level]) -> tuple[tuple[int, ...], ...] | None:
    """Counts: rows are levels; columns are true and false, or the outcomes.

    None if any is unknown.
    """
    rows = []
    for level in levels:
        if test.outcomes is not None:
            counts = level.counts or {}
            if counts:
                row = [counts.get(level_name(outcome), 0) for outcome in test.outcomes]
            else:
                row = None
        elif level.k is not None and level.n is not None:
            row = [level.k, level.n - level.k]
        else:
            row = None

        if row is None or min(row) < 0:
            return None
        rows.append(tuple(row))

    if len(rows) > 1:
        return tuple(rows)
    return None


def f_of_cells(
    cells: Sequence[tuple[float, float, float]], means: Sequence[float]
) -> tuple[float, list[float]]:
    """F of a one-way or factorial design, and the effective size of each compared group, as if its
    cells were equally large.

    `cells`: (n, mean, sd) of each, with those of a group adjacent; `means`: of each group, cells
    weighted equally.
    This excludes the effects of the other factors and of unequal cells: the sum of squares is of
    type III.

    Yates (1934), J. Am. Stat. Assoc. 29:51, weighted squares of means.
    """
    width = len(cells) // len(means)
    sizes = []
    for at in range(0, len(cells), width):
        sizes.append(width**2 / sum(1 / n for n, _, _ in cells[at : at + width]))
    within = _within(cells)
    if within <= 0:
        return NAN, sizes
    first = means[0]  # equal means then give exactly 0
    grand = exact_sum(size * (mean - first) for size, mean in zip(sizes, means, strict=True)) / sum(
        sizes
    )
    between = exact_sum(
        size * (mean - first - grand) ** 2 for size, mean in zip(sizes, means, strict=True)
    )
    return between / (len(means) - 1) / within, sizes


def cell_sizes(test: Test, levels: Sequence[Level]) -> list[int] | None:
    """People in each cell of a factorial design, in the order of `test.cells`; None if no n is
    known.

    Papers give the n of a level, or of all people: it is divided as evenly as possible.
    """
    width = math.prod(len(factor) for factor in (test.factors or {}).values())
    totals = [level.n for level in levels if level.n is not None]
    if len(totals) < len(levels):
        if test.human.n is None:
            return None
        totals = _divided(test.human.n, len(levels))

    rows = [_divided(n, width) for n in totals]
    if test.kind == "interaction" and len(rows) == width == 2:
        return [rows[0][0], rows[1][1], rows[0][1], rows[1][0]]
    return [n for row in rows for n in row]


def _grouped(test: Test, cells: Sequence[int]) -> list[Sequence[int]]:
    """The same, by compared group; empty if unknown."""
    if test.cells:
        width = len(test.cells[0])
    else:
        width = 1

    return [cells[at : at + width] for at in range(0, len(cells), width)]


def _divided(n: int, parts: int) -> list[int]:
    return [n // parts + (at < n % parts) for at in range(parts)]


def _sizes(test: Test, levels: Sequence[Level]) -> dict[str, object]:
    """n1 and n2, as arguments of `Side`."""
    if test.factors:
        pair = [float(sum(group)) for group in _grouped(test, cell_sizes(test, levels) or [])]
        if len(pair) == 2:
            return {"n1": pair[0], "n2": pair[1]}
        return {}

    if test.kind in TWO_GROUPS:
        if len(levels) != 2:
            return {}
        first, second = (NAN if level.n is None else float(level.n) for level in levels)
        return {"n1": first, "n2": second}

    n = test.human.n
    if n is None:
        sizes = [level.n for level in levels]
        if sizes and None not in sizes:
            n = sum(size or 0 for size in sizes)

    if n is None and test.kind in PAIRED and test.human.df1 is not None:
        n = round(test.human.df1) + 1
    if n is None:
        return {}
    return {"n1": float(n)}


def _of_anova(test: Test, levels: Sequence[Level]) -> dict[str, object]:
    """Degrees of freedom, sizes and the sign of an F."""
    human = test.human
    known: dict[str, object] = {}
    groups = test.cells
    cells = len(levels)
    sizes = tuple(float(level.n) for level in levels if level.n is not None)
    if test.factors:
        split = _grouped(test, cell_sizes(test, levels) or [])
        cells = sum(map(len, groups))
        sizes = tuple(float(sum(group)) for group in split)
        known["effective"] = tuple(
            len(group) ** 2 / sum(1 / max(n, 1) for n in group) for group in split
        )

    if len(sizes) == len(groups) > 1:
        known["sizes"] = sizes
    if human.df1 is not None:
        df1 = human.df1
    elif len(groups) > 1:
        df1 = len(groups) - 1.0
    else:
        df1 = NAN

    if human.df2 is not None:
        df2 = human.df2
    elif "sizes" in known:
        df2 = sum(sizes) - cells
    else:
        df2 = NAN

    known |= {"df1": df1, "df2": df2}
    if test.kind == "interaction":
        means = []
    else:
        means = [level.mean for level in levels]

    if df1 == 1 and human.sign is not None:
        known["sign"] = human.sign
    elif (
        df1 == 1
        and len(means) == 2
        and means[0] is not None
        and means[1] is not None
        and means[0] != means[1]
    ):
        known["sign"] = 1 if means[0] > means[1] else -1

    return known


Floats = NDArray[np.float64]

ROUNDING = 1e-12  # relative to the largest number: smaller differences are rounding errors


def agent_side(test: Test, data: Columns) -> Side:
    """The agent's side of a test. Missing values are left out; if nothing can be computed,
    `missing` says why.

    `data`: column → values, as `derive` returns them; a test uses the rows of its groups' levels.
    """
    absent = [name for name in test.columns if name not in data]
    if absent:
        return Side(missing=f"derive gives no column '{absent[0]}'")
    data, groups, first = rows_of(test, data)
    everybody = [np.arange(len(first))]
    if test.cluster is not None:
        return _clustered(test, data, groups or everybody)
    if test.kind == "contingency":
        return _table(test, data, groups)
    if test.kind in TOGETHER:
        rows = np.sort(np.concatenate(groups or everybody))
        if test.kind in COUNTED:
            cells = data[test.measure]
            seen = [outcome_of(cells[at], truth=True) for at in rows]
            k, others = _counts(test, data, rows, seen, ["true", "false"])
            n = k + others
            if not n:
                return Side(missing="no answer could be used")
            return Side(statistic=float(k), n1=float(n), p0=test.p0)

        return _one_group(test, data, rows)

    values = numbers_of(data[test.measure])
    return _several_groups(test, [values[rows][np.isfinite(values[rows])] for rows in groups])


def rows_of(test: Test, data: Columns) -> tuple[Columns, list[Places], Places]:
    """The columns of a test, the rows of its groups in them, and the row of `data` that each of
    their rows begins with.

    With `by`, the columns have one row for each person in each group; else they are `data`.
    """
    groups = group_rows(test, data)
    everybody = np.arange(len(data[test.measure]))
    if test.by is None or test.kind in COUNTED:
        return data, groups, everybody
    people, first = of_people(test, data, groups or [everybody])
    return people, group_rows(test, people), first


def group_rows(test: Test, data: Columns) -> list[Places]:
    """The rows of each level, or of each cell in a factorial design; empty without groups."""
    if test.groups is None:
        return []
    names = {}
    for name in (test.groups.column, *(test.factors or {})):
        names[name] = np.array(
            [
                value if value is None or type(value) is str else level_name(value)
                for value in data[name]
            ],
            dtype=object,
        )

    found = []
    for group in test.cells:
        for cell in group:
            found.append(
                np.flatnonzero(
                    np.logical_and.reduce(
                        [names[name] == level_name(level) for name, level in cell.items()]
                    )
                )
            )

    return found


def numbers_of(values: Sequence[object]) -> Floats:
    """Numbers and booleans as floats; anything else becomes NaN."""
    good = (float(value) if isinstance(value, (bool, int, float)) else NAN for value in values)
    return np.fromiter(good, dtype=np.float64, count=len(values))


def compared_with(test: Test, data: Columns, rows: Places) -> Floats:
    """What the measure of these rows is compared with: another column, or a number."""
    if isinstance(test.against, str):
        return np.asarray(numbers_of(data[test.against])[rows])
    return np.full(len(rows), reference_of(test))


def _table(test: Test, data: Columns, groups: Sequence[Places]) -> Side:
    names = [level_name(outcome) for outcome in test.outcomes or (True, False)]
    values = data[test.measure]
    truth = test.outcomes is None
    rows = []
    for group in groups:
        seen = [outcome_of(values[at], truth=truth) for at in group]
        rows.append(tuple(_counts(test, data, group, seen, names)))

    empty = []
    for name, row in zip(test.groups.names if test.groups else (), rows, strict=True):
        if not sum(row):
            empty.append(name)

    if empty:
        return Side(missing=f"no answer in {_named(empty)} could be used")

    return Side(table=tuple(rows))


def _counts(
    test: Test,
    data: Columns,
    rows: Places,
    seen: Sequence[str | None],
    names: Sequence[str],
) -> list[int]:
    if test.by is not None:
        return shares_of_people(data, rows, seen, names)
    found = []
    for name in names:
        found.append(sum(outcome == name for outcome in seen))
    return found


def _clustered(test: Test, data: Columns, groups: Sequence[Places]) -> Side:
    """A t test over all rows, whose error is between persons; n counts people."""
    values = numbers_of(data[test.measure])
    if test.kind in PAIRED:
        groups = [np.concatenate(groups)]
        values = values - compared_with(test, data, np.arange(len(values)))

    rows = [group[np.isfinite(values[group])] for group in groups]
    people = []
    for own in rows:
        people.append([person_of(data, int(row)) for row in own])
    sizes = [float(len(set(own))) for own in people]
    samples = [values[own] for own in rows]
    if min(sizes) < 2:
        return Side(missing="too few answers could be used")
    free = sum(map(len, samples)) - len(samples)
    spread = math.sqrt(sum((len(sample) - 1) * _sd(sample) ** 2 for sample in samples) / free)
    error = clustered_error(samples, people)
    if not spread > 0 or not error > 0:
        return Side(missing="all answers within each group are the same: there is no spread")
    apart = _mean(samples[0])
    pair: dict[str, Any] = {"df1": sizes[0] - 1.0}
    if len(samples) == 2:
        apart -= _mean(samples[1])
        pair = {"n2": sizes[1]}

    alone = spread * math.sqrt(sum(1 / size for size in sizes))
    return Side(statistic=apart / error, n1=sizes[0], t_scale=alone / error, **pair)


def outcome_of(value: object, *, truth: bool) -> str | None:
    """The category of an answer, or with `truth` "true" or "false"; None for what belongs to no
    category.
    """
    if value is None:
        return None
    if truth and not isinstance(value, bool):
        if isinstance(value, (int, float)):
            return {1.0: "true", 0.0: "false"}.get(float(value))
        return None

    if isinstance(value, (str, bool, int, float)):
        return level_name(value)
    return None


def _one_group(test: Test, data: Columns, rows: Places) -> Side:
    first = numbers_of(data[test.measure])[rows]
    second = compared_with(test, data, rows)
    good = np.isfinite(first) & np.isfinite(second)
    first = first[good]
    second = second[good]
    if test.kind == "spearman":
        first, second = (_ranks(ties_merged(sample)) for sample in (first, second))
    if test.kind in {"correlation", "spearman"}:
        n = len(first)
        if n < 3 or not (_sd(first) > 0 and _sd(second) > 0):
            return Side(missing=_no_spread(n))
        a = first - _mean(first)
        b = second - _mean(second)
        spread = math.sqrt(float((a * a).sum()) * float((b * b).sum()))
        r = float((a * b).sum() / spread)
        if 1 - abs(r) < ROUNDING:
            r = math.copysign(1.0, r)
        if abs(r) < ROUNDING:
            r = 0.0
        return Side(statistic=r, n1=float(n))

    apart = first - second
    if test.kind == "wilcoxon":
        # Z of W+, with zeros left out and the variance corrected for ties
        largest = float(np.abs(np.append(first, second)).max(initial=0.0))
        apart = ties_merged(apart, largest=largest)
        apart = apart[apart != 0]
        n = len(apart)
        if n < 1:
            return Side(missing="no two answers differ")
        above = float(_ranks(np.abs(apart))[apart > 0].sum())
        ties = _tie_term(np.abs(apart))
        spread = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
        z = (above - n * (n + 1) / 4) / math.sqrt(spread)
        return Side(statistic=z, n1=float(n), tie_term=ties)

    n = len(apart)
    sd = _sd(apart, of=np.concatenate([first, second]))
    if n < 2 or not sd > 0:
        return Side(missing=_no_spread(n))
    mean = _mean(apart)
    largest = float(np.abs(np.concatenate([first, second])).max())
    mean = 0.0 if abs(mean) <= ROUNDING * largest else mean
    return Side(statistic=mean / (sd / math.sqrt(n)), n1=float(n), df1=n - 1.0)


def _several_groups(test: Test, samples: Sequence[Floats]) -> Side:
    least = 1 if test.kind == "mannwhitney" else 2
    cells = []
    for group in test.cells:
        for cell in group:
            cells.append(" ".join(map(level_name, cell.values())))

    few = [name for name, sample in zip(cells, samples, strict=True) if len(sample) < least]
    if few:
        return Side(missing=f"too few answers in {_named(few)}")

    sizes = [float(len(sample)) for sample in samples]
    pair: dict[str, Any] = {}
    if len(sizes) == 2:
        pair = {"n1": sizes[0], "n2": sizes[1]}

    if test.kind == "mannwhitney":
        together = ties_merged(np.concatenate(samples))
        u = float(_ranks(together)[: len(samples[0])].sum()) - sizes[0] * (sizes[0] + 1) / 2
        return Side(statistic=u, tie_term=_tie_term(together), **pair)

    if test.kind == "variance_ratio":
        one, two = (_sd(sample) ** 2 for sample in samples)
        if two > 0 and one > 0:
            return Side(statistic=one / two, **pair)
        return Side(missing="no spread in a group")

    means = ties_merged(
        np.array([_mean(sample) for sample in samples]),
        largest=max(float(np.abs(sample).max()) for sample in samples),
    )
    spreads = map(_sd, samples)
    described = [*zip(sizes, means.tolist(), spreads, strict=True)]
    if test.statistic_kind == "anova":
        # F of a one-way design, or of one effect in a factorial one
        groups = np.array(described).reshape(len(test.cells), -1, 3)
        largest = float(np.abs(groups[:, :, 1]).max())
        apart = ties_merged(
            np.array([_mean(group) for group in groups[:, :, 1]]), largest=largest
        ).tolist()
        f, effective = f_of_cells(described, apart)
        if math.isnan(f):
            return Side(missing="all answers within each group are the same: there is no spread")
        of_groups = groups[:, :, 0].sum(axis=1).tolist()
        df1 = len(apart) - 1.0
        two_groups = df1 == 1
        sign = None
        if two_groups and apart[0] != apart[1]:
            sign = int(np.sign(apart[0] - apart[1]))
        return Side(
            statistic=f,
            df1=df1,
            df2=sum(of_groups) - len(described),
            sizes=tuple(of_groups),
            effective=tuple(effective) if test.factors else (),
            sign=sign,
            **({"n1": of_groups[0], "n2": of_groups[1]} if two_groups else {}),
        )

    statistic = statistic_of_means(test.kind, described)
    if math.isnan(statistic):
        return Side(missing="all answers within each group are the same: there is no spread")
    return Side(statistic=statistic, **pair)


def _mean(values: Floats) -> float:
    """The mean, rounded only once, so that it does not depend on the order of the numbers."""
    if len(values):
        return exact_sum(values.tolist()) / len(values)
    return NAN


def _sd(values: Floats, *, of: Floats | None = None) -> float:
    """The standard deviation; 0 if the values differ only by rounding errors of the numbers they
    come from.

    The sum of squares of 0.1, 0.1 and 0.1 is 6e-34, which would give a t of 10¹⁶.
    """
    if len(values) < 2:
        return 0.0
    largest = float(np.abs(values if of is None else of).max())
    if float(np.ptp(values)) > ROUNDING * largest:
        return float(values.std(ddof=1))
    return 0.0


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; tied values get the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def _tie_term(values: Floats) -> float:
    """Σ(t³ − t) over groups of t tied values."""
    _, counts = np.unique(values, return_counts=True)
    return float((counts.astype(np.float64) * counts * counts - counts).sum())


def _no_spread(n: int) -> str:
    return (
        "too few answers could be used" if n < 3 else "all answers are the same: there is no spread"
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
