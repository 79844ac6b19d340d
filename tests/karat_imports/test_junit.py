"""Reports of tests in JUnit's XML become runs; XML that does harm is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.karat_imports.imported import findings, imported, means

from karat.errors import BadDataset
from karat.importers import Findings
from karat.records import Answer, Failure, Score
from karat_imports.imported import format_of
from karat_imports.importers.junit import _cases

REPORT = """\
<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests">
  <testsuite name="evals" tests="5" failures="1" errors="1" skipped="1" time="3.1" timestamp="2026-10-01T10:00:00">
    <properties><property name="model" value="small-1"/></properties>
    <testcase classname="evals.test_desk" name="test_order[7]" time="1.5">
      <properties><property name="topic" value="shipping"/></properties>
      <system-out>It was sent on Tuesday.</system-out>
    </testcase>
    <testcase classname="evals.test_desk" name="test_rome" time="0.5">
      <failure message="assert 'yes' in answer">E assert 'yes' in &lt;b&gt;&#10;evals/test_desk.py:7</failure>
    </testcase>
    <testcase classname="evals.test_desk" name="test_slow" time="1,000.5">
      <error type="TimeoutError" message="timed out"/>
    </testcase>
    <testcase classname="evals.test_desk" name="test_later"><skipped message="not yet"/></testcase>
    <testcase classname="evals.test_desk" name="test_order[7]"><flakyFailure message="no"/></testcase>
  </testsuite>
</testsuites>
"""


def written(path: Path, text: str = REPORT) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_tests_are_samples_that_passed_failed_or_broke(tmp_path: Path) -> None:
    made = imported("junit", tmp_path / "runs", written(tmp_path / "before.xml"))
    assert made.counts == {"answers": 3, "failures": 1, "scores": 3, "not run": 1}
    assert means(made) == {("before", "pass"): (0.5, 3)}
    (failure,) = made.run.events_of(Failure)
    assert (failure.sample, failure.cls, failure.message) == (
        "evals.test_desk.test_slow", "infrastructure", "TimeoutError: timed out",
    )  # fmt: skip
    wrong = next(one for one in made.run.events_of(Score) if one.values == {"pass": False})
    assert wrong.reasons == {"pass": "E assert 'yes' in <b>\nevals/test_desk.py:7"}
    answer = next(made.run.events_of(Answer))
    assert (answer.seconds, answer.started) == (1.5, "2026-10-01T10:00:00+00:00")
    assert answer.detail["system-out"] == {"text": "It was sent on Tuesday."}
    assert answer.detail["properties"] == {"topic": "shipping"}
    assert made.run.info.plan.repetitions == 2
    assert findings(made) == {
        ("left out", "properties or output of a whole suite"): 1,
        ("left out", "earlier attempts of a test that was run again"): 1,
    }


@pytest.mark.parametrize("space", ['xmlns="urn:junit"', 'xmlns:a="urn:a"'])
def test_a_report_in_a_namespace_is_read_too(tmp_path: Path, space: str) -> None:
    text = REPORT.replace("<testsuites ", f"<testsuites {space} ")
    made = imported("junit", tmp_path / "runs", written(tmp_path / "before.xml", text))
    assert made.counts == {"answers": 3, "failures": 1, "scores": 3, "not run": 1}
    answer = next(made.run.events_of(Answer))
    assert answer.detail["properties"] == {"topic": "shipping"}


def test_what_is_beside_many_tests_is_not_kept(tmp_path: Path) -> None:
    beside = "<x/>" * 60_000
    tests = "".join(f'<testcase name="t{number}"/>' for number in range(20_000))
    path = written(tmp_path / "r.xml", f'<testsuite name="s" tests="20000">{beside}{tests}{beside}</testsuite>')
    began = time.process_time()
    totals: list[int] = []
    suites = [case.text("suite") for case in _cases(path, Findings(), totals)]
    assert (suites, totals) == (["s"] * 20_000, [20_000])
    assert time.process_time() - began < 5


def test_reports_are_conditions_of_one_run(tmp_path: Path) -> None:
    before, after = written(tmp_path / "before.xml"), written(tmp_path / "after.xml")
    made = imported("junit", tmp_path / "runs", before, after)
    assert list(made.run.info.conditions) == ["before", "after"]
    assert made.run.info.plan.samples == 4
    assert format_of(before) == "junit"


def test_a_report_that_lacks_tests_is_not_whole(tmp_path: Path) -> None:
    made = imported("junit", tmp_path / "runs", written(tmp_path / "r.xml", REPORT.replace('tests="5"', 'tests="9"')))
    assert made.findings.notes == ["r.xml: 5 of 9 samples are here"]
    cut = imported("junit", tmp_path / "cut", written(tmp_path / "r.xml", REPORT[: REPORT.index("test_slow")]))
    assert cut.counts["answers"] == 2
    assert any(problem.startswith("rest of the file: ") for _, problem in findings(cut))


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ('<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>', "a document type"),
        ('<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "a document type"),
        ('<!DOCTYPE t SYSTEM "http://127.0.0.1:1/t.dtd">', "a document type"),
    ],
)
def test_a_document_type_is_refused_wherever_it_is(tmp_path: Path, before: str, why: str) -> None:
    plain = '<testsuite><testcase name="&x;"/></testsuite>'
    path = written(tmp_path / "r.xml", f"<!-- {'x' * 10} -->{before}{plain}")
    assert format_of(path) is None
    with pytest.raises(BadDataset, match="no report"):
        imported("junit", tmp_path / "runs", path)
    late = written(tmp_path / "late.xml", f'<!--<testsuite>--><testsuites name=""></testsuites>{before}')
    with pytest.raises(BadDataset, match="rest of the file"):
        imported("junit", tmp_path / "runs", late)


@pytest.mark.parametrize(
    "text",
    [
        "<testsuite>" + "<a>" * 200,
        "<testsuite><testcase>" + "<testcase>" * 50,
        "<testsuite><testcase name='&undefined;'/></testsuite>",
        "<?xml version='1.0' encoding='no-such'?><testsuite/>",
        "<testsuite><testcase><failure><system-out>",
        "<testsuite tests='-1'><testcase name='' time='nan'/></testsuite></a>",
    ],
)
def test_other_xml_is_a_run_or_bad(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "r.xml", text)
    try:
        made = imported("junit", tmp_path / "runs", path)
    except BadDataset:
        return
    assert made.run.info.plan.samples == 1
