"""`karat score` over human studies: answers made elsewhere, answers scored again, and code that asks for leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.karat_studies import studies

from karat_studies.kinds.study import Study

NEEDS = (
    studies.STUDY.replace("        kind: contingency", "        needs: [choice]\n        kind: contingency")
    .replace("        kind: ttest_paired", "        needs: [first, second]\n        kind: ttest_paired")
    .replace("        kind: correlation", "        needs: [first, second]\n        kind: correlation")
)


@pytest.fixture
def answers(here: Path) -> Path:
    """A study, and a file with what each participant answered under two conditions: all tasks in one text."""
    studies.write(here / "small")
    rows = []
    for at, sample in enumerate(Study(Study.Options()).load(here / "small").samples):
        options = {"gain": "AB", "loss": "CD", "rating": None}[sample.metadata["arm"]]
        said = {"choice": options[at % 3 > 0]} if options else {"first": 1 + at % 7, "second": 1 + at * 3 % 7}
        rows.append({"participant": sample.id, "condition": "one", "answers": said})
        rows.append({"participant": sample.id, "condition": "two", "text": "I would rather not say."})
    file = here / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def summary_of(done):
    assert done.code == 0, done.err
    found = done.json["summary"]
    return found, {one["condition"]: one for one in found["study"]["conditions"]}


def test_answers_made_elsewhere_become_a_run_with_pas_and_ecs(karat, answers):
    found, conditions = summary_of(karat("score", answers, "--dataset", "small", "--kind", "study", "--json"))
    assert set(conditions) == {"one", "two"}
    one, two = conditions["one"], conditions["two"]
    assert one["benchmark"]["tests_used"] == 3
    assert 0 <= one["benchmark"]["pas"]["value"] <= 1
    assert one["participants"]["parsed"] == one["participants"]["planned"] == 347
    assert two["benchmark"]["pas"]["value"] is None
    assert two["participants"]["parsed"] == 0
    assert found["kind"] == "study"
    assert found["headline"].startswith("one: PAS")
    assert any(warning.startswith("two: no score") for warning in found["warnings"])


def test_answers_of_nobody_are_left_out_and_told(karat, answers):
    with answers.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"participant": "gain-999", "condition": "one", "text": "A"}) + "\n")
    done = karat("score", answers, "--dataset", "small", "--kind", "study", "--json")
    found, conditions = summary_of(done)
    assert any("1 row for nobody in the run" in warning for warning in found["warnings"])
    strict = karat("score", answers, "--dataset", "small", "--kind", "study", "--strict")
    assert strict.code == 2
    assert "1 row for nobody in the run" in strict.err
    assert conditions["one"]["participants"]["planned"] == 347


def test_participants_without_an_answer_count_as_missing(karat, answers):
    lines = answers.read_text(encoding="utf-8").splitlines(keepends=True)
    answers.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    done = karat("score", answers, "--dataset", "small", "--kind", "study", "--json")
    one = next(part for part in done.json["summary"]["study"]["conditions"] if part["condition"] == "one")
    assert one["participants"]["planned"] == 347
    assert one["participants"]["asked"] < 347
    (study,) = one["studies"]
    flagged = [finding for finding in study["findings"] if finding["flagged"] or finding["pas"]["value"] is None]
    assert flagged


@pytest.mark.slow
def test_a_run_is_scored_again(karat, answers):
    first = karat("score", answers, "--dataset", "small", "--kind", "study", "--json")
    run = first.json["run"]
    again = karat("score", run, "--json")
    before, now = (summary_of(one)[1]["one"]["benchmark"]["pas"] for one in (first, again))
    assert before == now
    named = karat("score", run, "--scorer", "{type: replication, name: anew}", "--json")
    assert summary_of(named)[1]["one"]["benchmark"]["pas"] == now
    assert {one["scorer"] for one in named.json["summary"]["metrics"]} == {"replication", "anew"}


def test_code_runs_only_with_leave(karat, here, answers):
    (here / "small" / "study.yaml").write_text(f"{NEEDS}reducer: reduce:same\n", encoding="utf-8")
    (here / "small" / "reduce.py").write_text(
        "import pathlib\npathlib.Path('ran.txt').write_text('x')\n\n\ndef same(columns):\n    return columns\n"
    )
    done = karat("score", answers, "--dataset", "small", "--kind", "study", "--json")
    _, conditions = summary_of(done)
    assert conditions["one"]["benchmark"]["pas"]["value"] is None
    run = done.json["run"]
    for command in (["report", run, "--to", "json"], ["compare", f"{run}:one", ":two"]):
        karat(*command)
        assert not (here / "ran.txt").exists(), command
    allowed = karat("report", run, "--to", "json", "--allow-code")
    assert allowed.code == 0, allowed.err
    assert (here / "ran.txt").exists()
    one = next(part for part in allowed.json["study"]["conditions"] if part["condition"] == "one")
    assert one["benchmark"]["pas"]["value"] is not None


def test_columns_may_be_called_otherwise(karat, here, answers):
    rows = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    lines = [
        json.dumps({"subject" if key == "participant" else key: value for key, value in row.items()}) for row in rows
    ]
    (here / "own.jsonl").write_text("\n".join(lines), encoding="utf-8")
    flags = ("--dataset", "small", "--kind", "study", "--json")
    _, conditions = summary_of(karat("score", "own.jsonl", *flags, "--map", "participant=subject"))
    assert conditions["one"]["participants"]["parsed"] == 347
    wrong = karat("score", "own.jsonl", *flags, "--map", "turn=subject")
    assert wrong.code == 2
    assert "participant" in wrong.err


def test_the_human_copy_of_a_study_is_a_file_of_answers(karat):
    from tests.karat_studies.study_oracle import SHIPPED

    copy = SHIPPED / "beauty_contest" / "copy.jsonl"
    _, conditions = summary_of(karat("score", copy, "--dataset", "beauty_contest", "--kind", "study", "--json"))
    (one,) = conditions.values()
    assert one["benchmark"]["pas"]["value"] == pytest.approx(one["benchmark"]["ceiling"], abs=0.02)
    assert one["benchmark"]["coverage"] == 1.0
    assert one["benchmark"]["tests_used"] == one["benchmark"]["tests_planned"] == 8
