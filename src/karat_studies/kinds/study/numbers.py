"""Checks published human numbers against `expect`, against each other, and against the printed
string.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import TypeVar

import msgspec

from karat.documents.nodes import Node, Place
from karat.formats import excerpt, p_value
from karat.sums import exact_sum
from karat_studies.kinds.study.format import DIRECTIONS, Arm, Level, Test
from karat_studies.kinds.study.sides import (
    PAIRED,
    TWO_GROUPS,
    described,
    human_side,
    levels_of,
    reference_of,
    statistic_of_means,
    table_of,
)
from karat_studies.replication import common_method, measure
from karat_studies.replication.printed_p import printed_p
from karat_studies.replication.report_strings import every_reported

_AS_T = {"ttest_ind", "welch", "ttest_paired", "ttest_one"}


class Numbers(msgspec.Struct):
    """What is wrong, where, and what cannot be checked."""

    test: Test
    arms: Mapping[str, Arm]
    root: Node
    place: Place
    faults: list[tuple[Place, str]] = []
    notes: list[str] = []

    def fault(self, message: str, *below: str) -> None:
        """Notes a fault in `human`."""
        self.faults.append(((*self.place, "human", *below), message))

    def doubt(self, message: str, *below: str, key: str = "reason") -> None:
        """A fault, unless the file gives a reason."""
        if getattr(self.test, key) is None:
            self.fault(f"{message}; fix it, or say why in `{key}`", *below)

    def half(self, value: float, *below: str) -> float:
        """Half a unit of the last digit written in the file."""
        node = self.root.get(*self.place, "human", *below)
        return _half_unit((node is not None and node.written) or repr(value))


def check_numbers(numbers: Numbers) -> None:
    """Fills in the faults and notes of one test."""
    test = numbers.test
    human = numbers.test.human
    every = Level(n=human.n, k=human.k)
    of_groups: dict[str | None, Level] = {None: every}
    if test.groups:
        of_groups |= zip(test.groups.names, levels_of(test, numbers.arms), strict=True)
    for name, level in [*human.levels.items(), (None, every)]:
        below = () if name is None else (name,)
        n = of_groups[name].n
        if level.k is not None and n is not None and level.k > n:
            numbers.fault(f"k is {level.k} of n = {n}: it must be at most n", *below, "k")
        if (
            numbers.test.kind == "contingency"
            and numbers.test.outcomes is None
            and name
            and level.k is None
        ):
            numbers.fault("k is missing: how many of the n did it", *below)

    if numbers.test.outcomes is not None:
        known = {str(outcome) for outcome in numbers.test.outcomes}
        for name, level in human.levels.items():
            for outcome in level.counts or {}:
                if outcome not in known:
                    numbers.fault(f"'{outcome}' is not one of the outcomes", name, "counts")

    if numbers.faults:
        return
    _check_direction(numbers)
    check_chi2(numbers)
    if test.human.reported is None:
        numbers.notes.append("has no `reported` string to check its numbers against")
        side = human_side(test, numbers.arms)
        if (
            test.kind == "anova"
            and not test.factors
            and is_repeated(side.sizes, (side.df1, side.df2))
        ):
            check_repeated(numbers, side.sizes, (side.df1, side.df2))

        return

    check_reported(numbers, test.human.reported)


def _check_direction(numbers: Numbers) -> None:
    """`expect` against the sign of the human effect."""
    test = numbers.test
    side = human_side(test, numbers.arms)
    if side.missing is not None:
        numbers.fault(side.missing)
        return

    # Whether group sizes are neither known nor implied; for a t, degrees of freedom are enough
    # for the effect
    if test.statistic_kind == "contingency":
        sizeless = False
    elif test.statistic_kind == "anova":
        sizeless = math.isnan(side.df1) or math.isnan(side.df2)
    elif test.statistic_kind in {"ttest_ind", "welch"} and not math.isnan(side.d):
        sizeless = False
    else:
        sizeless = math.isnan(side.n1) or (
            test.statistic_kind in TWO_GROUPS and math.isnan(side.n2)
        )

    if sizeless:
        numbers.fault("n is missing: how many people (in each group)")
        return

    wanted = DIRECTIONS.get(test.expect)
    measured = measure(
        test.statistic_kind, side, method=common_method(test.statistic_kind, side, side)
    )
    sign = measured.sign
    impossible = [why for why in measured.reasons if "must be" in why]
    if impossible:
        numbers.fault(impossible[0])
        return

    _check_own_signs(numbers)
    if wanted is None:
        return
    if math.isnan(sign):
        why = (
            "an effect of several groups or outcomes has none"
            if (
                test.outcomes is not None
                or (test.statistic_kind == "anova" and side.df1 > 1)
                or len(test.cells) > 2
            )
            else "give means, or sign"
        )
        numbers.faults.append(
            (
                (*numbers.place, "expect"),
                f"says '{test.expect}', but the human effect has no direction: {why}",
            )
        )
    elif sign != wanted:
        if sign > 0:
            direction = "positive"
        elif sign < 0:
            direction = "negative"
        else:
            direction = "zero"

        message = f"says '{test.expect}', but the human effect is {direction}"
        numbers.faults.append(
            (
                (*numbers.place, "expect"),
                f"{message} (positive: the first level above the second, a share above p0)",
            )
        )


def _check_own_signs(numbers: Numbers) -> None:
    """Checks the sign of a t, U or F against the means given with it."""
    test = numbers.test
    levels = levels_of(test, numbers.arms)
    if test.kind == "interaction":
        means = []
    else:
        means = [level.mean for level in levels]

    if test.kind in PAIRED:  # the mean, or the mean difference
        means = [means[0] if len(means) == 1 else test.human.mean, reference_of(test)]
    if len(means) != 2 or means[0] is None or means[1] is None or means[0] == means[1]:
        return
    apart = math.copysign(1, means[0] - means[1])
    if test.kind in _AS_T:
        statistic = test.human.t
    elif test.kind == "mannwhitney":
        statistic = test.human.z
    else:
        statistic = test.human.sign

    if statistic is not None and statistic * apart < 0:
        if test.kind in PAIRED:
            first, second = ("the mean", "what it is compared with")
        else:
            first, second = ("the first level", "the second")

        numbers.fault(
            f"the sign of the statistic contradicts the means: positive is {first} above {second}"
        )


Span = tuple[float, float]
_SLACK = 1e-9

_SHARES = {"binomial", "proportion"}
_MANY_CORNERS = 8  # rounded numbers, at most: 2⁸ corners


def check_reported(numbers: Numbers, text: str) -> None:
    """Notes what contradicts the printed string, or that nothing in it can be compared."""
    checked = check_patterns(numbers, text)
    every = every_reported(text)
    if not every:
        if not checked:
            numbers.notes.append(f"{excerpt(text, 60)!r} has no statistic that could be checked")
        return

    fitting = [
        (stat, printed)
        for stat in every
        if (printed := _as_own(numbers.test, stat.kind, stat.statistic, 0.5 * 10.0**-stat.decimals))
        is not None
    ]
    if not fitting:
        numbers.fault(f"a {numbers.test.kind} cannot be computed from {every[0].kind}", "reported")
        return

    faults = list(numbers.faults)
    notes = list(numbers.notes)
    # the first that agrees (there may be several F); else fault the first
    for stat, printed in [*fitting, fitting[0]]:
        numbers.faults[:], numbers.notes[:] = faults, notes
        _check_statistic(numbers, printed, text)
        # karat uses neither a printed p nor that of the statistic, but one of the two is a misprint
        given = printed_p(stat, one_sided=numbers.test.alternative != "two-sided")
        if given is not None and not given.holds and numbers.test.reason is None:
            sides = "one-sided" if numbers.test.alternative != "two-sided" else "two-sided"
            p = p_value((given.low + given.high) / 2)
            numbers.notes.append(f"'{excerpt(stat.text, 60)}': the statistic gives p {p} ({sides})")

        _check_sizes(
            numbers,
            stat.kind,
            stat.dfs,
            stat.n if stat.n is None or stat.n2 is None else stat.n + stat.n2,
        )
        if len(numbers.faults) == len(faults):
            return


def _as_own(test: Test, printed: str, value: float, half: float) -> list[Span] | None:
    """The printed statistic as unsigned spans of the test's own; None if it cannot be converted to
    that kind.
    """
    low = max(0.0, abs(value) - half)
    high = abs(value) + half
    roots = [(math.sqrt(low), math.sqrt(high))]
    squares = [(low * low, high * high)]
    same = [(low, high)]
    own: dict[str, dict[str, list[Span]]] = {
        "t": {"t": same, "z": same, "F": roots},
        "anova": {"F": same, "t": squares},
        "r": {"r": same},
        "chi2": {"chi2": same, "z": squares},
        "U": {"U": same, "z": same},
        "z": {"z": same, "t": same, "chi2": roots},
        "ratio": {"F": same},
    }
    if test.kind in _AS_T:
        kind = "t"
    else:
        kind = _OWN.get(test.statistic_kind, "t")

    return own[kind].get(printed)


_OWN = {
    "anova": "anova",
    "correlation": "r",
    "spearman": "r",
    "contingency": "chi2",
    "binomial": "z",
    "proportion": "z",
    "mannwhitney": "U",
    "wilcoxon": "z",
    "variance_ratio": "ratio",
}


def _check_statistic(numbers: Numbers, printed: Sequence[Span], text: str) -> None:
    test = numbers.test
    quoted = excerpt(text, 60)
    key = {
        "anova": "F",
        "correlation": "r",
        "spearman": "r",
        "wilcoxon": "z",
        "variance_ratio": "ratio",
    }
    name = key.get(
        test.statistic_kind,
        "U" if test.human.U is not None else "z" if test.kind == "mannwhitney" else "t",
    )
    stated = getattr(test.human, name, None)
    if stated is not None and test.kind not in {"contingency", *_SHARES}:
        half = numbers.half(stated, name)
        spans = [(abs(stated) - half, abs(stated) + half)]
        if (
            name == "U"
            and None not in (sizes := [one.n for one in levels_of(test, numbers.arms)])
            and len(sizes) == 2
        ):
            other = (sizes[0] or 0) * (sizes[1] or 0) - stated
            spans.append((abs(other) - half, abs(other) + half))

        if not _meet(spans, printed):
            numbers.fault(f"{name} = {stated:g} is not what is printed: '{quoted}'", name)

    computed = list(_computed(numbers))
    if computed and not _meet(computed, printed):
        # for these it is a count
        if test.kind in _SHARES:
            nominal = math.nan
        else:
            nominal = described(test, numbers.arms)

        if math.isnan(nominal):
            value = " or ".join(_shown(span) for span in computed[:3])
        else:
            value = f"{round(nominal, 3):g}"

        message = (
            f"means or counts give {_OWN.get(test.kind, 't')} = {value}, but '{quoted}' is printed"
        )
        if test.use is None:
            numbers.fault(
                f"{message}; fix the numbers, or say which to use: `use:` with a `reason`"
            )
        else:
            numbers.notes.append(f"{message}; the file uses the {test.use}")

    if not computed and stated is None:
        numbers.notes.append(f"there is no number to check against '{quoted}'")


def _meet(spans: Sequence[Span], printed: Sequence[Span]) -> bool:
    return any(
        a[0] <= b[1] * (1 + 1e-6) + _SLACK and b[0] <= a[1] * (1 + 1e-6) + _SLACK
        for a in spans
        for b in printed
    )


def _shown(span: Span) -> str:
    middle = (span[0] + span[1]) / 2
    return f"{round(middle, 3):g}"


def _computed(numbers: Numbers) -> Iterator[Span]:
    """Spans of the absolute statistic that follows from means, standard deviations or counts,
    allowing for rounding.
    """
    test = numbers.test
    levels = levels_of(test, numbers.arms)
    if test.kind == "contingency":
        table = table_of(test, levels)
        for value in _chi_squares(table) if table is not None else ():
            yield (value, value)
    elif test.kind in _SHARES:
        side = human_side(test, numbers.arms)
        if not math.isnan(side.statistic) and not math.isnan(side.n1):
            apart = abs(side.statistic - side.n1 * side.p0)
            spread = math.sqrt(side.n1 * side.p0 * (1 - side.p0))
            for z in (apart / spread, max(0.0, apart - 0.5) / spread):
                yield z, z

    elif not math.isnan(described(test, numbers.arms)):
        values = []
        for corner in _corners(numbers, levels):
            if not math.isnan(corner):
                values.append(abs(corner))

        if values:
            yield min(values), max(values)


def _corners(numbers: Numbers, levels: Sequence[Level]) -> Iterator[float]:
    """The statistic at every corner of the box of numbers that round to the given ones."""
    test = numbers.test
    human = numbers.test.human
    yield described(test, numbers.arms)
    if test.kind in _AS_T - {"ttest_ind", "welch"}:
        mean = human.mean
        sd = human.sd
        n = human.n
        if mean is None or sd is None or n is None:
            return
        for a, b in product((-1, 1), repeat=2):
            spread = sd + b * numbers.half(sd, "sd")
            if spread > 0:
                yield (mean + a * numbers.half(mean, "mean") - reference_of(test)) / (
                    spread / math.sqrt(n)
                )

        return

    if test.groups is None or 2 * len(levels) > _MANY_CORNERS or test.kind == "variance_ratio":
        return
    halves = [
        (numbers.half(level.mean or 0.0, name, "mean"), numbers.half(level.sd or 0.0, name, "sd"))
        for name, level in zip(test.groups.names, levels, strict=True)
    ]
    for signs in product((-1, 1), repeat=2 * len(levels)):
        moved = []
        for at, (level, half) in enumerate(zip(levels, halves, strict=True)):
            moved.append(
                (
                    float(level.n or 0),
                    (level.mean or 0.0) + signs[2 * at] * half[0],
                    max(0.0, (level.sd or 0.0) + signs[2 * at + 1] * half[1]),
                )
            )

        yield statistic_of_means(test.kind, moved)

    if (
        len(levels) == 2
        and abs((levels[0].mean or 0) - (levels[1].mean or 0)) <= halves[0][0] + halves[1][0]
    ):
        yield 0.0


def _chi_squares(table: Sequence[Sequence[int]]) -> list[float]:
    """Pearson's χ² without and with Yates's correction, and the likelihood ratio: papers print any
    of them.
    """
    rows = [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    total = sum(rows)
    if not all(rows) or not all(columns):
        return []
    expected = []
    for row in rows:
        expected.append([row * column / total for column in columns])
    pairs = []
    for ones, wants in zip(table, expected, strict=True):
        for seen, want in zip(ones, wants, strict=True):
            pairs.append((seen, want))

    values = [
        exact_sum((seen - want) ** 2 / want for seen, want in pairs),
        2 * exact_sum(seen * math.log(seen / want) for seen, want in pairs if seen),
    ]
    if len(pairs) == 4:
        values.append(
            exact_sum(max(0.0, abs(seen - want) - 0.5) ** 2 / want for seen, want in pairs)
        )
        (a, b), (c, d) = table
        one = a / (a + b)
        two = c / (c + d)
        variance = one * (1 - one) / (a + b) + two * (1 - two) / (c + d)
        if variance > 0:
            values.append((one - two) ** 2 / variance)
        else:
            values.append(math.inf)

    return values


_WITHOUT_FREE = {"welch", "mannwhitney", "wilcoxon", "variance_ratio"}


def _check_sizes(numbers: Numbers, printed: str, dfs: Sequence[float], n: int | None) -> None:
    """Checks printed degrees of freedom and N against the file's, and against those that the group
    sizes give.
    """
    test = numbers.test
    human = numbers.test.human
    own = [df for df in (human.df1, human.df2) if df is not None]
    if (
        own
        and dfs
        and len(own) == len(dfs)
        and any(abs(a - b) > 1e-6 for a, b in zip(own, dfs, strict=True))
    ):
        numbers.fault(
            f"degrees of freedom {listed(own)} are not the printed ones, {listed(dfs)}", "reported"
        )

    side = human_side(test, numbers.arms)
    sizes = [size for size in (side.sizes or (side.n1, side.n2)) if not math.isnan(size)]
    if test.kind == "contingency" and side.table is not None:
        sizes = [float(sum(row)) for row in side.table]
    total = sum(sizes)
    if not sizes:
        return
    if n is not None and n != total:
        numbers.doubt(f"N = {n} is printed, but the groups have {total:g}", "reported")
    if test.kind == "anova" and not test.factors and is_repeated(sizes, dfs):
        check_repeated(numbers, sizes, dfs)
        return

    # The (last) degrees of freedom that fit the number of people, where it determines them
    groups = sum(map(len, test.cells))
    free: list[float] = []
    if printed not in {"chi2", "z", "U"} and test.kind not in _WITHOUT_FREE:
        if test.kind in {"ttest_ind", "correlation", "spearman"}:
            free = [total - 2]
        elif test.statistic_kind != "anova":
            free = [total - 1]
        elif groups > 1:
            free = [total - groups]

    if free and dfs and dfs[-1] not in free:
        more = test.kind == "anova" and not test.factors and dfs[-1] < free[0]
        hint = " (if the design has other factors, name them in `factors`)" if more else ""
        numbers.doubt(
            f"{dfs[-1]:g} degrees of freedom are printed, but sizes give {listed(free)}{hint}",
            "reported",
        )

    if free and own and not dfs and own[-1] not in free:
        numbers.doubt(
            f"{own[-1]:g} degrees of freedom do not fit the sizes, which give {listed(free)}", "df2"
        )


def check_chi2(numbers: Numbers) -> None:
    """Checks a χ² in the file against its counts; only the counts are used."""
    test = numbers.test
    printed = numbers.test.human.chi2
    if test.kind == "contingency":
        table = table_of(test, levels_of(test, numbers.arms))
    else:
        table = None

    if printed is None or table is None:
        return
    half = numbers.half(printed, "chi2")
    spans = [(value, value) for value in _chi_squares(table)]
    if not _meet(spans, [(printed - half, printed + half)]):
        listing = " or ".join(map(_shown, spans[:3]))
        numbers.doubt(f"the counts give chi2 = {listing}, but the file has {printed:g}", "chi2")


def check_repeated(numbers: Numbers, sizes: Sequence[float], dfs: Sequence[float]) -> None:
    """Refuses an F of repeated measures, whatever the `reason`: its error term is not that of
    different people.
    """
    if numbers.test.use != "descriptives":
        numbers.fault(
            f"{listed(dfs)} degrees of freedom are those of {sizes[0]:g} people in all "
            f"{len(sizes)} groups; an anova compares groups of different people: pair them "
            f"(ttest_paired), or test a contrast (ttest_one)"
        )


def is_repeated(sizes: Sequence[float], dfs: Sequence[float]) -> bool:
    """Whether the degrees of freedom are those of repeated measures."""
    groups = len(sizes)
    return (
        groups > 1
        and len(set(sizes)) == 1
        and tuple(dfs) == (groups - 1, (groups - 1) * (sizes[0] - 1))
    )


_Value = TypeVar("_Value")
_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:%|percent)")
_COUNT = re.compile(r"(\d+)\s*(?:of|/|out of)\s*(\d+)")
_MEAN = re.compile(r"\bM(?:ean)?s?\s*=\s*\$?(?P<mean>[-−]?\d+(?:\.\d+)?)")
_MEAN_SD = re.compile(
    r"(?<![\d.(])(?P<mean>[-−]?\d+(?:\.\d+)?)\s*\((?P<sd>\d+(?:\.\d+)?)\)(?:\s*of\s*(?P<of>\d+))?"
)


def check_patterns(numbers: Numbers, text: str) -> bool:
    """Checks shares, counts and means printed without a statistic.

    Returns whether there were any.
    """
    test = numbers.test
    levels = levels_of(test, numbers.arms) or [
        Level(n=test.human.n, k=test.human.k, mean=test.human.mean)
    ]
    quoted = excerpt(text, 60)
    there = False
    shown = [match[1] for match in _SHARE.finditer(text)]
    shares = [100 * level.k / level.n for level in levels if level.k is not None and level.n]
    if len(shares) == len(levels) == len(shown):
        there = True
        good = any(all(map(_same_share, shares, order)) for order in _orders(shown))
        listing = ", ".join(f"{round(share, 2):g} %" for share in shares)
        message = f"counts give {listing}, but '{quoted}' is printed"
        if not good and test.use is not None and test.reason is not None:
            numbers.notes.append(message)
        elif not good:
            numbers.fault(
                f"{message}; fix the numbers, or say which to use: `use:` with a `reason`"
            )

    pairs = [(int(match[1]), int(match[2])) for match in _COUNT.finditer(text)]
    counts = [(level.k, level.n) for level in levels if level.k is not None]
    if len(pairs) == len(counts) == len(levels):
        there = True
        if not any(list(order) == counts for order in _orders(pairs)):
            listing = ", ".join(f"{k} of {n}" for k, n in counts)
            numbers.fault(f"the counts are {listing}, but '{quoted}' is printed")

    # `M = 2.33`, `2.33 (0.49)` with the standard deviation, and `2.33 (0.49) of 5`
    own = [(level.mean, level.sd) for level in levels if level.mean is not None]
    means = [match.groupdict() for match in _MEAN_SD.finditer(text)] or [
        match.groupdict() for match in _MEAN.finditer(text)
    ]
    if own and len(means) == len(own) == len(levels):
        there = True
        if not any(all(map(_same_mean, own, order)) for order in _orders(means)):
            listing = ", ".join(f"{m:g}" if sd is None else f"{m:g} ({sd:g})" for m, sd in own)
            numbers.fault(f"the means are {listing}, but '{quoted}' is printed")

    return there


def _same_share(share: float, printed: str) -> bool:
    return abs(share - float(printed)) <= _half_unit(printed) + 1e-6


def _half_unit(written: str) -> float:
    """Half a unit of the last digit."""
    return 0.5 * 10.0 ** -len(written.partition(".")[2])


def _same_mean(own: tuple[float | None, float | None], printed: Mapping[str, str | None]) -> bool:
    unit = float(printed.get("of") or 1)
    if unit == 0:  # `2.33 (0.49) of 0`
        return False
    for value, figure in zip(own, (printed["mean"], printed.get("sd")), strict=True):
        if value is None or figure is None:
            continue
        half = max(_half_unit(figure) / unit, _half_unit(repr(value)))
        if abs(value - float(figure.replace("−", "-")) / unit) > half + 1e-9:
            return False

    return True


def _orders(values: Sequence[_Value]) -> Iterator[tuple[_Value, ...]]:
    """The values in every order, as papers need not use the order of the levels; more than four
    only as given.
    """
    if len(values) <= 4:
        return permutations(values)
    return iter([tuple(values)])


def listed(values: Sequence[float]) -> str:
    """The numbers, separated by commas."""
    return ", ".join(f"{value:g}" for value in values)
