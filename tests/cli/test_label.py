"""`karat label` and `karat label`: a blind sheet out, people's scores back, corrected numbers."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import msgspec
import pytest
from tests.analysis.journals import table

from karat.analysis import summarize
from karat.analysis.calibration import with_corrected
from karat.analysis.gate import gate
from karat.analysis.thresholds import Threshold
from karat.document.gated import check_line, gate_document
from karat.journal.calibration import read_calibrations
from karat.records import Sample, Turn
from karat.stats import corrected_bounds, stratified_difference, stratified_mean

HEAD = ["id", "question", "golden answer", "answer", "completeness"]


@pytest.fixture
def judged(here: Path):
    """60 questions × 2 conditions × 2 repetitions, 240 answers, by a judge that gives 3 to 5."""
    dice = random.Random(5)
    rows = {name: [[float(dice.choice(steps)) for _ in range(2)] for _ in range(60)]
            for name, steps in (("plain", (3, 4, 4)), ("docs", (4, 5, 5)))}  # fmt: skip
    return table(here / "results" / "run", rows)


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"))))


def filled(sheet: Path, place: Path, score, *, delimiter: str = ",") -> Path:
    """The sheet with `score(at)` under the metric of row `at`, from 1."""
    rows = rows_of(sheet.read_text(encoding="utf-8"))
    with place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows(
            [rows[0], *([*row[:-1], score(at)] for at, row in enumerate(rows[1:], start=1))]
        )
    return place


@pytest.fixture
def sheet(karat, judged) -> Path:
    assert karat("label", "latest", "--sample", "40", "--out", "sheet.csv").code == 0
    return Path("sheet.csv")


def test_the_sheet_is_blind_and_the_draw_is_kept(karat, judged, sheet):
    rows = rows_of(sheet.read_text(encoding="utf-8"))
    assert rows[0] == HEAD
    [draw] = read_calibrations(judged).draws.values()
    assert [row[0] for row in rows[1:]] == [f"{draw.id}-{at}" for at in range(1, 41)]
    assert {row[-1] for row in rows[1:]} == {""}
    texts = {  # nothing but the texts: an answer of the test names its condition itself
        answer.trial: [f"Question {answer.sample}?", f"Golden answer {answer.sample}.", answer.replies[0].text]
        for answer in judged.events()
        if hasattr(answer, "replies")
    }
    assert [row[1:-1] for row in rows[1:]] == [texts[trial] for trial in draw.drawn]
    of = {trial: stratum for stratum in draw.strata for trial in stratum.trials}
    assert len(of) == 240
    for stratum in draw.strata:  # each part of what the judge gave under a condition, in proportion
        taken = sum(of[trial] is stratum for trial in draw.drawn)
        assert abs(taken - 40 * len(stratum.trials) / 240) < 1
    order = [(of[trial].condition, of[trial].low) for trial in draw.drawn]
    assert order not in (sorted(order), sorted(order, reverse=True))


def test_a_sheet_that_is_there_is_not_written_over(karat, judged, sheet):
    sheet.write_text("scores of people", encoding="utf-8")
    refused = karat("label", "latest", "--sample", "40", "--out", str(sheet))
    assert (refused.code, refused.out) == (2, "")
    assert "--out: sheet.csv exists" in refused.err
    assert sheet.read_text(encoding="utf-8") == "scores of people"


def test_the_same_seed_draws_the_same_answers_and_another_others(karat, judged, sheet):
    first = sheet.read_bytes()
    again = karat("label", "latest", "--sample", "40")
    assert again.out.encode() == first.replace(b"\r\n", b"\n") or again.out.encode() == first
    assert len(read_calibrations(judged).draws) == 1
    other = karat("label", "latest", "--sample", "40", "--seed", "1", "--json").json
    assert (other["drawn"], other["answers"], other["metrics"]) == (40, 240, ["completeness"])
    assert set(read_calibrations(judged).draws) == {rows_of(first.decode())[1][0].partition("-")[0], other["draw"]}


def test_corrected_numbers_are_those_of_the_statistics(karat, judged, sheet):
    given = {at: random.Random(at).choice("2345") for at in range(1, 41)}
    done = karat("label", "latest", filled(sheet, Path("ann.csv"), given.__getitem__), "--who", "ann", "--json")
    assert done.code == 0
    [draw] = read_calibrations(judged).draws.values()
    people = {trial: float(given[at]) for at, trial in enumerate(draw.drawn, start=1)}
    every = [(trial, at, stratum.condition) for at, stratum in enumerate(draw.strata) for trial in stratum.trials]
    answers = {answer.trial: answer.sample for answer in judged.events() if hasattr(answer, "replies")}
    values = [people.get(trial) for trial, *_ in every]
    strata, questions = [at for _, at, _ in every], [answers[trial] for trial, *_ in every]
    groups = [condition for *_, condition in every]
    found = stratified_difference(values, strata, questions, groups=groups, a="plain", b="docs")
    *means, pair = done.json["corrected"]
    assert (pair["against"], pair["condition"]) == ("plain", "docs")
    assert pair["people"]["value"] == pytest.approx(found.value)
    assert pair["people"]["se"] == pytest.approx(found.se)
    assert pair["judge"] == pytest.approx(means[1]["judge"] - means[0]["judge"])
    for mean in means:
        mine = [at for at, name in enumerate(groups) if name == mean["condition"]]
        alone = stratified_mean(*([column[at] for at in mine] for column in (values, strata, questions)))
        assert mean["people"]["value"] == pytest.approx(alone.value)
        assert (mean["people"]["se"], mean["df"]) == (pytest.approx(alone.se), alone.df)
        assert mean["judge"] - mean["people"]["value"] == pytest.approx(mean["bias"]["value"])  # strata are scores
    [agreement] = done.json["agreement"]
    assert sum(map(sum, agreement["confusion"])) == agreement["labelled"] == done.json["labelled"] == 40
    assert (done.json["target"], done.json["by"]) == ("questions", ["ann"])
    narrow = karat("label", "latest", "--target", "answers", "--json").json
    for wide, one in zip(done.json["corrected"], narrow["corrected"], strict=True):
        assert one["people"]["value"] == wide["people"]["value"]
        assert "these answers" in one["people"]["method"]


def test_people_who_agree_with_the_judge_leave_its_numbers_as_they_are(karat, judged, sheet):
    [draw] = read_calibrations(judged).draws.values()
    score_of = {trial: stratum.low for stratum in draw.strata for trial in stratum.trials}
    assert all(stratum.low == stratum.high for stratum in draw.strata)
    place = filled(sheet, Path("same.csv"), lambda at: f"{score_of[draw.drawn[at - 1]]:g}")
    found = karat("label", "latest", place, "--json", "--quiet").json
    for mean in found["corrected"]:
        assert mean["people"]["value"] == pytest.approx(mean["judge"])
        assert mean["bias"]["value"] == 0
    [agreement] = found["agreement"]
    assert (agreement["exact"], agreement["kappa"]["value"], found["disagreements"]) == (1.0, 1.0, [])
    for mean in karat("report", "latest", "--json").json["results"]:
        [same] = [one for one in found["corrected"][:2] if one["condition"] == mean["condition"]]
        assert same["people"]["value"] == pytest.approx(mean["mean"]["value"])


def test_several_people_are_averaged_and_compared_with_each_other(karat, judged, sheet):
    assert karat("label", "latest", filled(sheet, Path("a.csv"), lambda at: str(2 + at % 3)), "--who", "ann").code == 0
    assert karat("label", "latest", filled(sheet, Path("b.csv"), lambda at: str(3 + at % 3)), "--who", "bob").code == 0
    found = karat("label", "latest", "--json").json
    assert found["by"] == ["ann", "bob"]
    assert found["agreement"][0]["people_alpha"]["value"] is not None
    mean = sum(one["people"]["value"] * one["answers"] for one in found["corrected"][:2]) / 240
    assert 2.5 < mean < 4.5
    again = karat("label", "latest", "b.csv", "--who", "bob")
    assert "0 labelled answers by 'bob' saved, 40 saved before" in again.err
    other = karat("label", "latest", "b.csv", "--who", "ann")
    assert "warning: 40 answers had other scores by 'ann'" in other.err


def test_sheets_of_other_spreadsheets_are_read(karat, judged, sheet):
    """Semicolons, as where the comma is a decimal one; rows in any order, some empty, a column of notes."""
    rows = rows_of(sheet.read_text(encoding="utf-8"))
    shuffled = [[*row[:-1], "4,0" if at % 2 else "", "fine"] for at, row in enumerate(rows[1:])]
    with Path("other.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=";").writerows([[*rows[0], "notes"], *reversed(shuffled), [""] * 6])
    done = karat("label", "latest", "other.csv", "--who", "ann", "--json")
    assert "column 'notes' left out" in done.err
    assert done.json["labelled"] == 20
    assert "20 drawn answers without a label" in done.json["notes"][0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: [row[1:] for row in rows], "columns (line 1): no column 'id'"),
        (lambda rows: [row[:-1] for row in rows], "none is named after a metric (completeness)"),
        (lambda rows: rows, "no cell under a metric is filled in"),
        (lambda rows: [rows[0], [*rows[1][:-1], "6"]], ("-1 (line 2): completeness: expected a whole "
"number from 1 to 5")),
        (lambda rows: [rows[0], [*rows[1][:-1], "3.5"]], "expected a whole number from 1 to 5, got '3.5'"),
        (lambda rows: [rows[0], [*rows[1][:-1], "nan"]], "expected a whole number from 1 to 5, got 'nan'"),
        (lambda rows: [rows[0], [*rows[2][:-1], "3"], [*rows[2][:-1], "3"]], "-2 (line 3): is in line 2 too"),
        (lambda rows: [rows[0], [*rows[1][:-1], "4", "5"]], "table (line 2): 6 cells under 5 columns: put"),
        (lambda rows: [rows[0], ["qqqqqq-1", *rows[1][1:-1], "3"]], "no answer of this run was drawn as 'qqqqqq-1'"),
        (lambda rows: [rows[0], [f"{rows[1][0]}99", *rows[1][1:-1], "3"]], "no answer of this run was drawn as"),
        (lambda rows: [rows[0], ["", *rows[1][1:-1], "3"]], "row (line 2): no answer of this run was drawn as ''"),
        (lambda rows: [[*rows[0], "completeness"], *rows[1:]], "'completeness' (line 1): the column appears twice"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_line(karat, judged, sheet, change, told):
    before = (judged.path / "calibration.jsonl").read_bytes()
    with Path("bad.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(change(rows_of(sheet.read_text(encoding="utf-8"))))
    done = karat("label", "latest", "bad.csv", "--who", "ann")
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert (judged.path / "calibration.jsonl").read_bytes() == before


def test_what_is_missing_is_said(karat, judged):
    done = karat("label", "latest")
    assert done.code == 2
    assert "no labels of drawn answers: draw some with `karat label RUN --sample 50" in done.err
    assert karat("report", "latest", "--corrected").code == 2
    assert "did you mean 'completeness'" in karat("label", "latest", "--sample", "5", "--metric", "complete").err
    assert "cannot read gone.csv" in karat("label", "latest", "gone.csv").err
    Path("old.csv").write_bytes("id,completeness\nx-1,ä\n".encode("latin-1"))
    assert "text (line 2): is not UTF-8" in karat("label", "latest", "old.csv").err


@pytest.mark.needs_kind("conversation")
def test_answers_of_several_turns_are_not_drawn(karat, here):
    turns = (Turn(question="First?"), Turn(question="Then?", golden="Yes."))
    asked = [Sample(id=str(at), position=at, digest=f"{at:032x}", turns=turns) for at in range(4)]
    table(here / "results" / "run", {"plain": [[3.0]] * 4}, samples=asked)
    done = karat("label", "latest", "--sample", "4")
    assert (done.code, "no answer of run 1234abcd to a single question has a score" in done.err) == (2, True)
    table(here / "results" / "talks", {"plain": [[3.0]] * 4}, samples=asked, kind="conversation", run="deadbeef")
    done = karat("label", "results/talks", "--sample", "4")
    assert (done.code, "are reviewed turn by turn: use `karat view`" in done.err) == (2, True)


def test_formulas_of_answers_are_no_formulas_in_the_sheet(karat, here):
    formula = '=cmd|"/c calc"!A1'
    asked = [Sample(id=str(at), position=at, digest=f"{at:032x}", turns=(Turn(question=formula, golden="@SUM(A1)"),))
             for at in range(4)]  # fmt: skip
    table(here / "results" / "run", {"plain": [[3.0]] * 4}, samples=asked)
    sheet = rows_of(karat("label", "latest", "--sample", "4").out)
    assert {(row[1], row[2]) for row in sheet[1:]} == {(f"'{formula}", "'@SUM(A1)")}


def test_labels_for_a_width_are_said_and_more_questions_where_labels_do_not_reach(karat, judged, sheet):
    place = filled(sheet, Path("ann.csv"), lambda at: str(random.Random(at).choice("345")))
    wide = karat("label", "latest", place, "--width", "0.3", "--json").json
    for mean in wide["corrected"]:
        now = (mean["people"]["high"] - mean["people"]["low"]) / 2
        assert (mean["labels_needed"] > mean["labelled"]) == (now > 0.3)
    narrow = karat("label", "latest", "--width", "0.02", "--json").json
    assert [mean["labels_needed"] for mean in narrow["corrected"]] == [None] * 3
    shown = karat("label", "latest", "--width", "0.02", "--markdown", "out.md")
    assert "labels for ±0.02" in shown.out
    assert "more questions do" in Path("out.md").read_text(encoding="utf-8")


def test_reports_show_corrected_numbers_where_that_is_asked_for(karat, judged, sheet):
    karat("label", "latest", filled(sheet, Path("ann.csv"), lambda at: str(2 + at % 2)), "--who", "ann")
    plain, corrected = karat("report", "latest").out, karat("report", "latest", "--corrected").out
    assert "as people would score" not in plain
    assert "docs − plain on completeness, as people would score: " in corrected
    assert corrected.startswith("docs − plain on completeness, as people would score: ")
    assert "docs is better than plain" in plain
    assert "docs is better than plain" not in corrected
    assert "Means and differences as people would score all answers" in corrected
    assert "calibrated" not in karat("report", "latest", "--json").json
    assert karat("report", "latest", "--json", "--corrected").json["calibrated"]["by"] == ["ann"]
    assert "as people would score" in karat("report", "latest", "--corrected", "--to", "html").out
    refused = karat("report", "latest", "--corrected", "--to", "csv")
    assert (refused.code, refused.out) == (2, "")
    assert "csv has no corrected numbers" in refused.err


def test_the_gate_decides_on_what_people_would_give(karat, judged, sheet):
    """The judge gives 3 to 5, people one point less."""
    [draw] = read_calibrations(judged).draws.values()
    score_of = {trial: stratum.low for stratum in draw.strata for trial in stratum.trials}
    place = filled(sheet, Path("less.csv"), lambda at: f"{score_of[draw.drawn[at - 1]] - 1:g}")
    refused = karat("gate", "latest", "--min", "docs.completeness=4.2", "--corrected")
    assert (refused.code, "no labels of drawn answers" in refused.err) == (2, True)
    assert karat("label", "latest", place, "--who", "ann").code == 0
    assert karat("gate", "latest", "--min", "docs.completeness=4.2").code == 0
    done = karat("gate", "latest", "--min", "docs.completeness=4.2", "--corrected", "--json")
    [check] = done.json["checks"]
    [mean] = [one for one in karat("label", "latest", "--json").json["corrected"] if one["condition"] == "docs"][:1]
    assert (done.code, check["verdict"]) == (1, "failed")
    assert check["value"] == mean["people"]["value"] == pytest.approx(mean["judge"] - 1)
    people = mean["people"]
    bounds = corrected_bounds(people["value"], people["se"], mean["df"], labels=mean["labelled"], scale=(1, 5))
    assert (check["low"], check["high"]) == (bounds.low, bounds.high)
    assert check["p_failed"] < 0.05
    assert "means as people would score, from 40 labels by ann" in done.json["warnings"][-1]
    assert karat("gate", "latest", "--min", "docs.completeness=3", "--corrected").code == 0
    unsure = karat("gate", "latest", "--min", f"docs.completeness={people['value']:.3f}", "--corrected")
    assert unsure.code == 4, unsure.out
    assert "more labels, or more questions, would decide it" in " ".join(unsure.out.split())
    drop = karat("gate", "latest", "--max-drop", "completeness=0.1", "--baseline", "latest", "--corrected")
    assert (drop.code, "applies to --min and --max" in drop.err) == (2, True)

    summary = with_corrected(judged, summarize(judged))
    without = [one for one in summary.calibrated.corrected if one.condition != "plain"]
    summary = msgspec.structs.replace(
        summary, calibrated=msgspec.structs.replace(summary.calibrated, corrected=tuple(without))
    )
    half = gate(summary, [Threshold(name="completeness", bound="min", value=2.0)])
    assert {check.condition: check.note for check in half.checks} == {"plain": "not corrected", "docs": ""}
    document = gate_document(half)
    assert document.verdicts == ("Gate passed: 2 passed, of these 1 not corrected",)
    assert document.warnings[0] == (
        "NOT corrected: completeness under plain: no labels by people, so the scorer's own scores decide"
    )
    assert [check_line(check).endswith("(not corrected)") for check in half.checks] == [
        check.condition == "plain" for check in half.checks
    ]


def test_missing_trials_bound_a_corrected_mean(karat, here):
    """One trial in ten has no answer: the lower bound counts it as the worst, the upper one as the best."""
    rows: list[list[float | None]] = [[None if at % 10 == 0 else float(3 + at % 3)] for at in range(60)]
    table(here / "results" / "run", {"plain": rows})
    assert karat("label", "latest", "--sample", "30", "--out", "sheet.csv").code == 0
    karat("label", "latest", filled(Path("sheet.csv"), Path("a.csv"), lambda at: str(3 + at % 2)), "--who", "ann")
    [check] = karat("gate", "latest", "--min", "completeness=3", "--corrected", "--json").json["checks"]
    [mean] = karat("label", "latest", "--json").json["corrected"]
    people = mean["people"]
    bounds = corrected_bounds(people["value"], people["se"], mean["df"], labels=mean["labelled"], scale=(1, 5))
    assert (check["low"], check["high"]) == (
        pytest.approx(0.9 * bounds.low + 0.1),
        pytest.approx(0.9 * bounds.high + 0.5),
    )
