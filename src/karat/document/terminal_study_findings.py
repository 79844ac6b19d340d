"""The terminal's tables of findings: people's statistic beside the agent's, what is opposed, what has no score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from karat import formats
from karat.document.charts.written import statistic_of
from karat.document.terminal_layout import Cell, Columns, Section
from karat.document.terminal_study_words import heading, low
from karat.kinds.study.analysis.model import (
    FindingResult,
    StudyCondition,
    StudySummary,
    TestResult,
)

__all__ = ["finding_sections"]

_OPPOSED = 12  # tests in opposite directions that are listed
_REASONS = 20  # findings without a score that are listed


def finding_sections(part: StudySummary, *, wide: bool, most: int) -> Iterator[Section]:
    """By finding; then those in the opposite direction, and those without a score, where there are any."""
    yield _findings(part, wide=wide, most=most)
    opposed = [
        (one, finding, test)
        for one in part.conditions
        for finding in one.findings
        for test in finding.tests
        if test.opposed
    ]
    if opposed:
        yield _opposites(opposed)
    without = [(one, finding) for one in part.conditions for finding in one.findings if finding.pas.value is None]
    if without:
        yield _without(part, without)


def _findings(part: StudySummary, *, wide: bool, most: int) -> Section:
    heads = ["", "people", "agent", "PAS", *(["d people", "d agent"] if wide else []), "direction", "coverage"]
    table = Columns(heads)
    left_out = 0
    for one in part.conditions:
        kept = _chosen(one.findings, most)
        left_out = max(left_out, len(one.findings) - len(kept))
        for study in one.studies:
            own = [finding for finding in study.findings if _key(finding) in kept]
            if own:
                several = f"{formats.excerpt(one.condition, 24)} · " if len(part.conditions) > 1 else ""
                name = f"{several}{formats.excerpt(study.study, 32)}"
                table.title(heading(one, name, study.participants))
                for finding in own:
                    _finding_rows(table, finding, wide=wide)
    legend = "PAS of a finding is pooled over its tests. direction: of the agent's effect against that of people."
    if left_out:
        legend += f" Those with no score and the least alike; {formats.plural(left_out, 'further finding')} of each "
        legend += "condition: --set findings=0 shows all."
    if part.repetitions > 1:
        legend += " Statistics are those of the first repetition."
    return Section("By finding", table, legend)


Key = tuple[str, str, str]


def _key(finding: FindingResult) -> Key:
    return finding.study, finding.sub_study, finding.id


def _chosen(findings: Sequence[FindingResult], most: int) -> set[Key]:
    """All, where they are few; else those without a score and those least alike."""
    if not most or len(findings) <= most:
        return {_key(finding) for finding in findings}
    ranked = sorted(findings, key=lambda one: -1.0 if one.pas.value is None else one.pas.value)
    return {_key(finding) for finding in ranked[:most]}


def _finding_rows(table: Columns, finding: FindingResult, *, wide: bool) -> None:
    """The claim over all columns, then a row a test; the pooled number where there are several."""
    marks = [*(["FEW ANSWERS"] if finding.flagged else []), *(["OPPOSED"] if finding.opposed else [])]
    text = Text(f"  {formats.excerpt(finding.name, 28)} ", style="bold")
    text.append(f"[{', '.join(marks)}] " if marks else "", style="red")
    table.title(text.append(formats.excerpt(finding.claim, 200), style="not bold"))
    for test in finding.tests:
        table.row(test.id, _test_cells(test, wide=wide), indent=4)
    if len(finding.tests) > 1:
        blank: Cell = ("", "")
        pooled: list[Cell] = [blank, blank, (formats.number(finding.pas.value), "bold"), *([blank] * 2 * wide)]
        table.row("pooled", [*pooled, blank, (formats.share(finding.coverage), low(finding.coverage))], indent=4)


def _test_cells(test: TestResult, *, wide: bool) -> list[Cell]:
    row = test.repetitions[0] if test.repetitions else None
    sides = [formats.UNKNOWN] * 2 if row is None else [statistic_of(test.kind, side) for side in (row.human, row.agent)]
    effects = [(formats.signed(test.d_human), ""), (formats.signed(test.d_agent), "")]
    direction = {True: "same", False: "OPPOSITE" if test.opposed else "other", None: formats.UNKNOWN}
    return [
        *((formats.excerpt(side, 24), "") for side in sides),
        (formats.number(test.pas.value), ""),
        *(effects if wide else []),
        (direction[test.same_direction], "red" if test.opposed else ""),
        (formats.share(test.coverage), low(test.coverage)),
    ]


def _opposites(found: Sequence[tuple[StudyCondition, FindingResult, TestResult]]) -> Section:
    """The decisive ones first: evidence above 1,000 to 1 on both sides."""
    table = Columns(["", "ln BF people", "ln BF agent", "d people", "d agent", ""], left=[""])
    ranked = sorted(found, key=lambda one: not one[2].decisive)
    for name in dict.fromkeys(one[0].condition for one in ranked[:_OPPOSED]):
        own = [one for one in ranked[:_OPPOSED] if one[0].condition == name]
        table.title(heading(own[0][0]))
        for _, finding, test in own:
            row = next((one for one in test.repetitions if one.opposed), test.repetitions[0])
            evidence = [formats.number(side.log_bf, digits=1) for side in (row.human, row.agent)]
            effects = [formats.signed(row.human.d), formats.signed(row.agent.d)]
            cells: list[Cell] = [(text, "") for text in (*evidence, *effects)]
            label = f"{finding.study} {finding.name} {test.id}"
            table.row(label, [*cells, ("decisive" if test.decisive else "", "red")], indent=2)
    legend = "effects on both sides, in opposite directions: PAS alone would call that agreement."
    more = len(found) - _OPPOSED
    return Section("Opposite directions", table, f"{legend} {formats.count(more)} more." if more > 0 else legend)


def _without(part: StudySummary, found: Sequence[tuple[StudyCondition, FindingResult]]) -> Section:
    """A line a reason; findings that have it alike stand together."""
    table = Columns(["", "coverage", "why"], left=["why"])
    listed = 0
    for condition in part.conditions:
        own = [finding for one, finding in found if one is condition]
        if not own:
            continue
        table.title(heading(condition))
        for finding in own[: max(0, _REASONS - listed)]:
            why = formats.excerpt(finding.reason or "not known", 60)
            cells: list[Cell] = [(formats.share(finding.coverage), low(finding.coverage)), (why, "")]
            table.row(f"{finding.study} {finding.name}", cells, indent=2)
            listed += 1
    more = len(found) - listed
    legend = "missing data is not evidence of no effect: these count for nothing in the means."
    return Section("Findings without a score", table, f"{legend} {formats.count(more)} more." if more > 0 else legend)
