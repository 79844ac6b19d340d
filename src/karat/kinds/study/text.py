"""A study as text for a terminal: who takes part, what is asked, and which tests with what people gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karat import formats

if TYPE_CHECKING:
    from karat.kinds.study.contents import HeldTest, StudyContents
    from karat.kinds.study.copied import CopyTest

__all__ = ["held", "people_statistic", "size", "table"]

_WIDEST = 40  # columns of one cell
_STATISTIC = {"anova": "F", "interaction": "F",
              "mannwhitney": "U", "wilcoxon": "z", "correlation": "r", "spearman": "r",
              "variance_ratio": "ratio", "binomial": "k", "proportion": "k"}  # fmt: skip


def held(one: StudyContents) -> list[str]:
    """The whole page."""
    lines = [f"{one.name}: {one.title}", one.source, "", size(one)]
    forms = ", ".join([*(f"wording: {name}" for name in one.wordings), *["relabel: true"] * one.relabelled])
    about = {"profile": ", ".join(one.attributes), "licence": one.license, "caveat": one.caveat, "code": one.reducer,
             "forms": forms}  # fmt: skip
    lines += [f"{key + ':':8} {value}" for key, value in about.items() if value]
    lines += ["", *table([_ARMS, *_arms(one)])]
    lines += ["", *table([("finding", "claim"), *((finding.id, finding.claim) for finding in one.findings)])]
    lines += ["", *table([_TESTS, *map(_test, one.tests)])]
    missing = [f"{test.finding} {test.id}: {'; '.join(test.reasons)}" for test in one.tests if test.reasons]
    lines += ["", *missing] if missing else []
    lines += ["", *(f"copy of people's {_copy(copy)}" for copy in one.copies)] if one.copies else []
    return [formats.clean(line).rstrip() for line in lines]


_ARMS = ("arm", "people", "participants", "questions", "answers")
_TESTS = ("finding", "test", "kind", "compares", "people", "n", "d", "ln BF", "expected")


def size(one: StudyContents) -> str:
    """How much there is, in a sentence."""
    groups = f" in {formats.plural(one.groups, 'group')}" if one.groups is not None else ""
    design = f"{one.domain}, {one.design} subjects, {formats.plural(len(one.arms), 'arm')}"
    people = f"{formats.plural(one.participants, 'participant')}{groups}"
    return f"{design}: {people}, {formats.plural(one.questions, 'question')} under one condition"


def _arms(one: StudyContents) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for arm in one.arms:
        groups = f" in {formats.plural(arm.groups, 'group')}" if arm.groups is not None else ""
        fields = [f"{name}: {formats.excerpt(how, _WIDEST)}" for name, how in arm.fields.items()]
        shown = "; ".join(fields[:3]) + (f"; … {len(fields)} in all" if len(fields) > 3 else "")
        shown += "".join(f"; {role} earns {formats.excerpt(how, _WIDEST)}" for role, how in arm.payoffs.items())
        people = formats.count(arm.people) if arm.people is not None else formats.UNKNOWN
        participants = f"{formats.count(arm.participants)}{groups}" if arm.participants else "not asked"
        rows.append((arm.name, people, participants, formats.count(arm.questions), shown))
    return rows


def _test(one: HeldTest) -> tuple[str, ...]:
    return (
        one.finding,
        one.id,
        one.kind,
        formats.excerpt(one.compares, _WIDEST),
        formats.excerpt(people_statistic(one), _WIDEST),
        formats.brief(one.n) if one.n is not None else formats.UNKNOWN,
        formats.signed(one.d),
        formats.signed(one.log_bf, digits=1),
        one.expect,
    )


def people_statistic(one: HeldTest) -> str:
    """`t(78) = 2.66`, `121/155, 43/152`.

    What was not published is a dash.
    """
    if one.table is not None:
        if all(len(row) == 2 for row in one.table):
            return ", ".join(f"{row[0]}/{sum(row)}" for row in one.table)
        return " | ".join(" ".join(map(str, row)) for row in one.table)
    if one.statistic is None:
        return formats.UNKNOWN
    letter = _STATISTIC.get(one.kind, "t")
    if letter == "k":
        return f"{formats.brief(one.statistic)}/{'' if one.n is None else formats.brief(one.n)}"
    free = [formats.brief(df) for df in (one.df1, one.df2) if df is not None]
    return f"{letter}{'(' + ', '.join(free) + ')' if free else ''} = {formats.number(one.statistic)}"


def _copy(one: CopyTest) -> str:
    name = {"statistic": "numbers", "answers": "answers"}[one.layer]
    if one.reason is not None:
        return f"{name}: not tried, {one.reason}"
    without = f", {formats.plural(one.left_out, 'test')} without numbers left out" if one.left_out else ""
    if one.passed:
        return f"{name}: gives their result in {formats.plural(one.tests, 'test')}{without}"
    return f"{name}: does not give their result{without}"


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns side by side; the head first."""
    clean = [[formats.clean(cell) for cell in row] for row in rows]
    widths = [max(formats.width(row[at]) for row in clean) for at in range(len(clean[0]))]
    return [
        "  ".join(cell + " " * (wide - formats.width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip()
        for row in clean
    ]
