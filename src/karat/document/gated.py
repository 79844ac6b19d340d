"""What a gate decided, as a document and as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from karat import formats
from karat.analysis.gate import Check, Gate
from karat.blocks import Column, Count, Estimate, Note, Number, Row, Section, Table, Text, Tone, columns, plain
from karat.document.run import Document

__all__ = ["gate_document", "github_lines", "junit"]

_TONES: dict[str, Tone] = {"passed": "good", "failed": "bad", "undecided": ""}


def gate_document(gate: Gate) -> Document:
    """The verdict first, then every threshold with its bounds, then what would decide the undecided."""
    counts = {verdict: sum(check.verdict == verdict for check in gate.checks) for verdict in _TONES}
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    facts = [("Thresholds", listed)]
    if gate.baseline is not None:
        facts.append(("Baseline", gate.baseline))
    table = Table(
        caption="Thresholds",
        columns=columns(
            "threshold",
            "condition",
            "verdict",
            Column(
                "value [bounds]",
                legend="Bounds: each holds by itself in 95 % of runs, with missing trials at the "
                "worst value for the lower one and at the best for the upper one.",
            ),
            Column("questions", rank=1),
            Column("missing", rank=1),
            text=("condition", "verdict"),
        ),
        rows=tuple(_row(check) for check in gate.checks),
        brief=True,
    )
    hints = tuple(_hint(check) for check in gate.checks if check.verdict == "undecided" or check.reason)
    blocks = (table, Note(texts=hints, title="What would decide", brief=True)) if hints else (table,)
    return Document(
        name=f"{gate.name} {gate.run}",
        verdicts=(f"Gate {gate.verdict}: {listed}",),
        facts=tuple(facts),
        sections=(Section(id="gate", title="Gate", blocks=blocks),),
    )


def _row(check: Check) -> Row:
    shown: Number | Estimate = Number(check.value)
    if check.method != "known":
        drop = check.threshold.bound == "max_drop"
        shown = Estimate(check.value, check.low, check.high, percent=check.percent, signed=drop)
    return Row(
        name=str(check.threshold),
        cells=(
            Text(check.condition or "all"),
            Text(check.verdict, tone=_TONES[check.verdict]),
            shown,
            Count(check.questions),
            Count(check.missing),
        ),
    )


def _hint(check: Check) -> str:
    name = f"{check.threshold}{f' ({check.condition})' if check.condition else ''}"
    if check.needed is not None:
        return f"{name}: about {formats.plural(check.needed, 'question')} would decide it, if the value stays."
    return f"{name}: {check.reason or 'the value lies too close to the threshold'}."


def github_lines(gate: Gate) -> list[str]:
    """Annotations of a GitHub workflow: errors for what failed, warnings for what is undecided."""
    lines = []
    for check in gate.checks:
        if check.verdict != "passed":
            kind = "error" if check.verdict == "failed" else "warning"
            title, text = f"karat gate: {check.verdict}", _sentence(check)
            lines.append(f"::{kind} title={_escaped(title, property=True)}::{_escaped(text)}")
    return lines


def _escaped(text: str, *, property: bool = False) -> str:  # noqa: A002 - what the workflow commands call it
    pairs = [("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), *([(":", "%3A"), (",", "%2C")] if property else [])]
    for old, new in pairs:
        text = text.replace(old, new)
    return formats.clean(text)


def _sentence(check: Check) -> str:
    shown = _row(check).cells[2]
    where = f" under {check.condition}" if check.condition else ""
    return f"{check.threshold}{where}: {check.verdict}, {plain(shown)}"


def junit(gate: Gate) -> str:
    """JUnit XML: a test case a threshold and condition; undecided ones are skipped tests."""
    counts = {verdict: str(sum(check.verdict == verdict for check in gate.checks)) for verdict in _TONES}
    tests = {"tests": str(len(gate.checks)), "failures": counts["failed"], "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "karat gate", **tests})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": _xml(gate.name), **tests, "skipped": counts["undecided"]}
    )
    for check in gate.checks:
        case = ElementTree.SubElement(
            suite, "testcase", {"name": _xml(str(check.threshold)), "classname": _xml(check.condition or "run")}
        )
        if check.verdict == "failed":
            ElementTree.SubElement(case, "failure", {"message": _xml(_sentence(check))})
        elif check.verdict == "undecided":
            ElementTree.SubElement(case, "skipped", {"message": _xml(_sentence(check))})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _xml(text: str) -> str:
    """Text without the characters that XML 1.0 cannot hold."""
    return "".join(char for char in formats.clean(text) if char >= " " and not 0xD800 <= ord(char) <= 0xDFFF)
