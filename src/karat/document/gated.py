"""The result of a gate: as a document, as annotations of a workflow, and as JUnit XML."""

from __future__ import annotations

from karat import formats
from karat.analysis.gate import Check, Gate
from karat.analysis.totals import TOTALS
from karat.blocks import (
    Block,
    Cell,
    Column,
    Count,
    Duration,
    Money,
    Note,
    Row,
    Section,
    Share,
    Table,
    Text,
    Tone,
    columns,
    estimate,
    plain,
)
from karat.document.junit import junit_xml
from karat.document.run import Document

_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "undecided": ""}


def gate_document(gate: Gate) -> Document:
    """The verdict first, then every threshold, the failed ones first, then what would decide the
    undecided ones.
    """
    order = ("failed", "undecided", "passed")
    checks = sorted(gate.checks, key=lambda check: order.index(check.verdict))
    counts = {}
    for verdict in _TONES:
        counts[verdict] = sum(check.verdict == verdict for check in gate.checks)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    uncorrected = sum(check.corrected is False for check in gate.checks)
    drops = any(check.threshold.bound == "max_drop" for check in gate.checks)
    rows = []
    for check in checks:
        rows.append(
            Row(
                name=f"{check.metric} {check.threshold.words}",
                cells=(
                    Text(check.condition or "all"),
                    Text(check.verdict, tone=_TONES[check.verdict], below=check.note),
                    _value(check),
                    Count(check.questions),
                    Count(check.missing),
                ),
            )
        )

    table = Table(
        caption="Thresholds",
        columns=columns(
            "threshold",
            "condition",
            "verdict",
            Column(
                "value [bounds]",
                legend=(
                    "Missing trials count as the worst for the lower bound, as the best for the "
                    "upper one."
                )
                + (" Of a drop: this run minus the baseline." if drops else ""),
            ),
            Column("questions", rank=1),
            Column("missing", rank=1),
            text=("condition", "verdict"),
        ),
        rows=tuple(rows),
        brief=True,
    )
    hints = tuple(
        f"{_name(check)}: {hint}" for check in checks if (hint := _hint(check)) is not None
    )
    if hints:
        notes: tuple[Block, ...] = (Note(texts=hints, title="Notes", brief=True),)
    else:
        notes = ()

    return Document(
        name=f"{gate.name} {gate.run}",
        verdicts=(
            (
                f"Gate {gate.verdict}: "
                f"{listed}{f', of these {uncorrected} not corrected' if uncorrected else ''}"
            ),
        ),
        facts=(
            ("Bounds", f"separate, at {100 * gate.level:g} % each"),
            *(() if gate.baseline is None else (("Baseline", gate.baseline),)),
        ),
        warnings=gate.warnings,
        sections=(Section(id="gate", title="Gate", blocks=(table, *notes)),),
    )


def check_line(check: Check) -> str:
    """One threshold in a line."""
    verdict, value, name = check_parts(check)
    return f"{name}: {verdict}, {value}{check.note and f' ({check.note})'}"


def check_parts(check: Check) -> tuple[str, str, str]:
    """Verdict, value with its bounds, and threshold."""
    return check.verdict, plain(_value(check)), formats.clean(_name(check))


def _name(check: Check) -> str:
    if check.condition:
        where = f" under {check.condition}"
    else:
        where = ""

    return f"{check.metric} {check.threshold.words}{where}"


def _value(check: Check) -> Cell:
    if check.method != "known":
        drop = check.threshold.bound == "max_drop"
        return estimate(check, percent=check.percent, signed=drop)

    match TOTALS[check.metric].unit:
        case "share":
            return Share(check.value)
        case "dollars":
            return Money(check.value, 0 if check.high is not None else 1)
        case "seconds":
            return Duration(check.value)


def _hint(check: Check) -> str | None:
    if check.needed is not None:
        return (
            f"about {formats.plural(check.needed, 'question')} would decide it, at the present mean"
        )

    never = (
        "no number of questions would decide it, at the present mean: it is too close to the "
        "threshold"
    )
    return check.reason or (never if check.verdict == "undecided" else None)


def github_lines(gate: Gate) -> list[str]:
    """Annotations of a GitHub workflow: errors for failed thresholds, warnings for undecided
    ones.
    """
    lines = []
    for check in gate.checks:
        if check.verdict != "passed":
            kind = "error" if check.verdict == "failed" else "warning"
            title = _escaped(f"karat gate: {check.verdict}").replace(":", "%3A").replace(",", "%2C")
            lines.append(f"::{kind} title={title}::{_escaped(check_line(check))}")

    return lines


def _escaped(text: str) -> str:
    """Text as one line for GitHub, without commands of the older form, `##[command]`."""
    safe = formats.clean(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return safe.replace("##[", "## [")


def junit(gate: Gate) -> str:
    """JUnit XML: one case per threshold and condition.

    Undecided ones are errors: a skipped test counts as passed.
    """
    kinds = {"failed": "failure", "undecided": "error"}
    cases = []
    for check in gate.checks:
        cases.append(
            (
                f"{check.metric} {check.threshold.words}",
                check.condition or "run",
                (kinds[check.verdict], check.verdict, check_line(check), _hint(check) or "")
                if check.verdict in kinds
                else None,
            )
        )

    return junit_xml("karat gate", {f"{gate.name} {gate.run}": cases})
