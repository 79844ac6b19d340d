"""What a gate decided: Markdown, JUnit XML and annotations, whatever the names in it say."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from tests.document.hostile import HOSTILE
from tests.document.laying_out import layout

from karat import summarize
from karat.analysis.gate import Check, Gate, gate
from karat.analysis.thresholds import Threshold
from karat.document.gated import check_line, gate_document, github_lines, junit
from karat.document.render.markdown import render_markdown
from karat.document.render.terminal import render_terminal

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
