"""What a gate decided: Markdown, JUnit XML and annotations, whatever the names in it say."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from msgspec import structs
from tests.document.hostile import HOSTILE
from tests.document.laying_out import layout

from karat import summarize
from karat.analysis.gate import Check, Gate, gate
from karat.analysis.thresholds import Threshold
from karat.blocks import plain
from karat.document.gated import check_line, gate_document, github_lines, junit
from karat.document.render.markdown import render_markdown
from karat.document.render.terminal import render_terminal
from karat.document.run import Document

COMMANDS = {
    "a workflow command": "\n::set-env name=PATH::/tmp",
    "a command of the old form": "x ##[add-path]/tmp",
    "a carriage return": "a\r::error::b",
    "escaped already": "100%25 %0A::error::x",
    "the end of a section": "]]>",
    "an entity": "<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]>&y;",
    "controls": "\x00\x01\x0b\x1b[2J\x7f\x9b2J\ufffe\uffff",
}
NAMES = {**HOSTILE, **COMMANDS}


def decided(*verdicts: str, name: str = "completeness", **facts) -> Gate:
    checks = tuple(
        Check(
            threshold=Threshold(name=f"{name}.{name}", bound="min", value=4.0), metric=name, condition=name,
            verdict=verdict, value=4.1, low=3.9, high=4.3, p_failed=0.5, questions=50, missing=1, method="t",
            reason=f"because {name}", **facts,
        )
        for verdict in verdicts
    )  # fmt: skip
    return Gate(run="1234abcd", name=name, baseline=None, verdict=verdicts[0], checks=checks, warnings=(name,))


@pytest.fixture
def made(journals, tmp_path):
    scores = {"old": [[n % 5 + 1] for n in range(40)], "new": [[5 - (n % 7 == 0)] for n in range(40)]}
    summary = summarize(journals.table(tmp_path, scores))
    thresholds = [
        Threshold(name="completeness", bound="min", value=4.0),
        Threshold(name="new.completeness", bound="min", value=4.85),
        Threshold(name="completeness", bound="max_drop", value=0.3),
        Threshold(name="cost_usd", bound="max", value=5.0),
        Threshold(name="failed", bound="max", value=0.1),
    ]
    return gate(summary, thresholds, baseline=summary)


def test_the_result_for_a_pull_request_is_one_screen(made, golden):
    text = render_markdown(gate_document(made))
    golden("gate/pull-request.md", text)
    assert len(text.splitlines()) < 40
    assert "<details>" not in text


def test_the_result_in_a_terminal(made, golden):
    shown = gate_document(made)
    golden("gate/terminal.txt", render_terminal(shown, width=100, full=True))
    golden("gate/layout.txt", "\n".join(layout(shown)) + "\n")


def test_the_result_as_junit(made, golden):
    golden("gate/junit.xml", junit(made))


def test_annotations_are_errors_and_warnings(made):
    assert [line.partition(" ")[0] for line in github_lines(made)] == ["::error", "::warning"]


def test_an_undecided_threshold_is_not_green_in_junit():
    suite = ElementTree.fromstring(junit(decided("failed", "undecided", "passed")))[0]
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["3", "1", "1", "0"]
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["error"], []]


def test_a_verdict_is_one_line():
    assert check_line(decided("failed").checks[0]) == (
        "completeness at least 4 under completeness: failed, 4.10 [3.90, 4.30]"
    )


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_hostile_names_stay_text(text):
    gate_of = decided("failed", "undecided", "passed", name=text)
    root = ElementTree.fromstring(junit(gate_of))  # one element each, whatever the names say
    assert [element.tag for element in root.iter()] == [
        "testsuites", "testsuite", "testcase", "failure", "testcase", "error", "testcase",
    ]  # fmt: skip
    junit(gate_of).encode()  # no half of a surrogate pair
    lines = github_lines(gate_of)
    assert len(lines) == 2
    for line, kind in zip(lines, ("error", "warning"), strict=True):
        assert re.fullmatch(rf"::{kind} title=karat gate%3A \w+::[^\r\n\x00-\x08\x1b]*", line)
        assert "##[" not in line
    page = render_markdown(gate_document(gate_of))
    assert "\x1b" not in page
    assert "<script" not in page
    assert page.count("\n### ") + page.startswith("### ") == 1


def check(**fields) -> Check:
    (found,) = decided("passed").checks
    return structs.replace(found, **{"reason": None, "metric": "completeness", "condition": None, **fields})


def only(*checks: Check, **fields) -> Document:
    return gate_document(structs.replace(decided("failed"), checks=checks, **fields))


def test_the_failed_come_first_and_are_counted():
    shown = only(
        *(check(verdict=verdict, condition=verdict) for verdict in ("passed", "undecided", "failed", "passed"))
    )
    table, *_ = shown.sections[0].blocks
    assert [plain(row.cells[0]) for row in table.rows] == ["failed", "undecided", "passed", "passed"]
    assert shown.verdicts == ("Gate failed: 2 passed, 1 failed, 1 undecided",)
    uncorrected = only(check(), check(corrected=False))
    assert uncorrected.verdicts == ("Gate failed: 2 passed, of these 1 not corrected",)
    assert plain(uncorrected.sections[0].blocks[0].rows[0].cells[0]) == "all"


def test_the_facts_of_a_gate_are_its_level_and_its_baseline():
    assert only(check(), level=0.05).facts == (("Bounds", "separate, at 5 % each"),)
    assert only(check(), level=0.05, baseline="main").facts[1:] == (("Baseline", "main"),)
    dropped = check(threshold=Threshold(name="completeness", bound="max_drop", value=0.3))
    assert only(dropped).sections[0].blocks[0].columns[3].legend.endswith("Of a drop: this run minus the baseline.")
    assert only(check()).sections[0].blocks[0].columns[3].legend.endswith("as the best for the upper one.")
    assert plain(only(dropped).sections[0].blocks[0].rows[0].cells[2]) == "+4.10 [+3.90, +4.30]"


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"metric": "cost_usd", "value": 1.5, "high": 1.5}, "$1.50"),
        ({"metric": "cost_usd", "value": 1.5, "high": None}, "≥ $1.50"),
        ({"metric": "failed", "value": 0.25}, "25.0 %"),
        ({"metric": "latency_p95", "value": 90.0}, "1 min 30 s"),
    ],
)
def test_totals_are_written_in_their_unit(fields, value):
    assert check_line(check(method="known", **fields)).endswith(f": passed, {value}")


def test_what_would_decide_a_threshold_is_a_note():
    def notes(**fields) -> list[str]:
        blocks = only(check(**fields)).sections[0].blocks[1:]
        return [text for block in blocks for text in block.texts]

    name = "completeness at least 4"
    assert notes() == []
    assert notes(needed=1) == [f"{name}: about 1 question would decide it, at the present mean"]
    assert notes(reason="too few", condition="a") == [f"{name} under a: too few"]
    assert notes(verdict="undecided") == [
        f"{name}: no number of questions would decide it, at the present mean: it is too close to the threshold"
    ]
    assert check_line(check(corrected=False)) == f"{name}: passed, 4.10 [3.90, 4.30] (not corrected)"


def test_github_gets_no_line_for_what_passed():
    found = github_lines(structs.replace(decided("failed"), checks=(check(), check(verdict="undecided"))))
    assert found == [
        "::warning title=karat gate%3A undecided::completeness at least 4: undecided, 4.10 [3.90, 4.30]",
    ]
