"""Human numbers against `expect` and against each other: what contradicts itself, with its place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from karat.documents.nodes import Node, Place
from karat.kinds.study.format import DIRECTIONS, Arm, Level, Test
from karat.kinds.study.human import PAIRED, TWO_GROUPS, human_side, levels_of, reference_of
from karat.kinds.study.printed import check_chi2, check_repeated, check_reported, is_repeated

if TYPE_CHECKING:
    from karat.replication import Side

__all__ = ["Numbers", "check_numbers"]

_AS_T = {"ttest_ind", "welch", "ttest_paired", "ttest_one"}


@dataclass(slots=True)
class Numbers:
    """What is wrong, where, and what cannot be checked."""

    test: Test
    arms: Mapping[str, Arm]
    root: Node
    place: Place
    faults: list[tuple[Place, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def fault(self, message: str, *below: str) -> None:
        """Notes a fault in `human`."""
        self.faults.append(((*self.place, "human", *below), message))

    def doubt(self, message: str, *below: str, key: str = "reason") -> None:
        """A fault, unless the file gives a reason."""
        if getattr(self.test, key) is None:
            self.fault(f"{message}; mend it, or say why in `{key}`", *below)

    def half(self, value: float, *below: str) -> float:
        """Half a unit of the last digit that the file writes."""
        node = self.root.get(*self.place, "human", *below)
        written = node.written if node is not None and node.written else repr(value)
        return 0.5 * 10.0 ** -len(written.partition(".")[2])


def check_numbers(numbers: Numbers) -> None:
    """Fills faults and notes of one test."""
    test = numbers.test
    _check_counts(numbers)
    if numbers.faults:
        return
    _check_direction(numbers)
    check_chi2(numbers)
    if test.human.reported is None:
        numbers.notes.append("has no `reported`: its numbers stand alone")
        side = human_side(test, numbers.arms)
        if test.kind == "anova" and not test.factors and is_repeated(side.sizes, (side.df1, side.df2)):
            check_repeated(numbers, side.sizes, (side.df1, side.df2))
        return
    check_reported(numbers, test.human.reported)


def _check_counts(numbers: Numbers) -> None:
    human = numbers.test.human
    for name, one in [*human.levels.items(), (None, Level(n=human.n, k=human.k))]:
        below = () if name is None else (name,)
        n = one.n or _arm_n(numbers, name)
        if one.k is not None and n is not None and one.k > n:
            numbers.fault(f"k is {one.k} of n = {n}: at most all of them", *below, "k")
        if numbers.test.kind == "contingency" and numbers.test.outcomes is None and name and one.k is None:
            numbers.fault("k is missing: how many of the n did it", *below)
    if numbers.test.outcomes is not None:
        known = {str(one) for one in numbers.test.outcomes}
        for name, one in human.levels.items():
            for outcome in one.counts or {}:
                if outcome not in known:
                    numbers.fault(f"'{outcome}' is none of the outcomes", name, "counts")


def _arm_n(numbers: Numbers, name: str | None) -> int | None:
    groups = numbers.test.groups
    if name is None or groups is None or groups.column != "arm" or name not in numbers.arms:
        return None
    return numbers.arms[name].n


def _check_direction(numbers: Numbers) -> None:
    """`expect` against the sign of the human effect."""
    from karat.replication import common_method, measure

    test = numbers.test
    side = human_side(test, numbers.arms)
    if side.missing is not None:
        numbers.fault(side.missing)
        return
    if _sizeless(test.statistic_kind, side):
        numbers.fault("n is missing: how many people (in each group)")
        return
    wanted = DIRECTIONS.get(test.expect)
    measured = measure(test.statistic_kind, side, method=common_method(test.statistic_kind, side, side))
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
            "an effect of several groups or outcomes has none" if _undirected(test, side.df1) else "give means, or sign"
        )
        numbers.faults.append(
            ((*numbers.place, "expect"), f"says '{test.expect}', but the human effect has no direction: {why}")
        )
    elif sign != wanted:
        found = "above" if sign > 0 else "below" if sign < 0 else "equal to"
        message = f"says '{test.expect}', but the human effect is {found} none"
        numbers.faults.append(
            ((*numbers.place, "expect"), f"{message} (above: the first level above the second, a share above p0)")
        )


def _sizeless(kind: str, side: Side) -> bool:
    """Whether sizes are not known and do not follow; of a t, degrees of freedom give the effect at least."""
    if kind == "contingency":
        return False
    if kind == "anova":
        return math.isnan(side.df1) or math.isnan(side.df2)
    if kind in {"ttest_ind", "welch"} and not math.isnan(side.d):
        return False
    return math.isnan(side.n1) or (kind in TWO_GROUPS and math.isnan(side.n2))


def _undirected(test: Test, df1: float) -> bool:
    return test.outcomes is not None or (test.statistic_kind == "anova" and df1 > 1) or len(test.cells) > 2


def _check_own_signs(numbers: Numbers) -> None:
    """The sign of a t, U or F against the means beside it."""
    test = numbers.test
    levels = levels_of(test, numbers.arms)
    means = [] if test.kind == "interaction" else [one.mean for one in levels]
    if test.kind in PAIRED:  # the mean, or the mean difference
        means = [means[0] if len(means) == 1 else test.human.mean, reference_of(test)]
    if len(means) != 2 or means[0] is None or means[1] is None or means[0] == means[1]:
        return
    apart = math.copysign(1, means[0] - means[1])
    said = test.human.t if test.kind in _AS_T else test.human.z if test.kind == "mannwhitney" else test.human.sign
    if said is not None and said * apart < 0:
        first, second = (
            ("the mean", "what it is compared with") if test.kind in PAIRED else ("the first level", "the second")
        )
        numbers.fault(f"the sign of the statistic contradicts the means: positive is {first} above {second}")
