"""The example with a human study: both files run as they stand, and the recorded answers show what its page says."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pytest
from msgspec import structs

import karat
from karat.__main__ import main
from karat.analysis import Summary
from karat_studies.kinds.study.analysis.comparison import StudyComparison
from karat_studies.kinds.study.analysis.model import StudyCondition

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "framing"
DESIGNS = ["empty", "human", "demographic", "background"]


def study_experiments(results: Path, *arguments: str) -> Path:
    """The run folder."""
    assert main(["run", *arguments, "--results", str(results), "-q"]) == 0
    (folder,) = results.iterdir()
    return folder


def told_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = main(list(arguments))
    told = capsys.readouterr()
    assert code == 0, told.err
    return told.out


def conditions(summary: Summary) -> dict[str, StudyCondition]:
    assert summary.study is not None
    return {one.condition: one for one in summary.study.conditions}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the recorded answers."""
    return study_experiments(tmp_path_factory.mktemp("recorded"), str(FOLDER / "recorded.yaml"))


@pytest.fixture(scope="module")
def summary(recorded: Path) -> Summary:
    return karat.summarize(recorded)


def test_chance_does_not_depend_on_who_it_is_told_to_be(tmp_path):
    summary = karat.summarize(study_experiments(tmp_path, str(FOLDER / "experiment.yaml")))
    found = conditions(summary)
    assert list(found) == DESIGNS
    assert summary.headline.startswith("No difference shown in PAS")
    for one in found.values():
        assert one.floor
        assert one.benchmark.pas.value < 0.6
        people = one.participants
        assert [people.planned, people.asked, people.answered, people.parsed] == [1_350] * 4


def test_the_recorded_answers_agree_with_people_under_some_designs_only(summary):
    found = conditions(summary)
    pas = {name: one.benchmark.pas.value for name, one in found.items()}
    assert list(pas) == [*DESIGNS, "remembers"]
    assert pas["empty"] < 0.3
    assert pas["empty"] < pas["human"] < 0.8
    assert min(pas[name] for name in ("demographic", "background", "remembers")) > 0.95
    ecs = {name: one.benchmark.ecs.value for name, one in found.items()}
    assert ecs["empty"] < 0 < min(ecs["human"], ecs["background"])
    assert max(ecs["human"], ecs["background"]) < ecs["demographic"] < ecs["remembers"]
    assert "is closer to people than" in summary.headline


def test_what_few_could_be_read_of_is_flagged_or_has_no_score(summary):
    findings = {
        (name, one.name): one
        for name, condition in conditions(summary).items()
        for study in condition.studies
        for one in study.findings
    }
    assert [place for place, one in findings.items() if one.pas.value is None] == [("empty", "epidemic/F1")]
    assert findings["empty", "epidemic/F1"].coverage == pytest.approx(0.3)
    assert [place for place, one in findings.items() if one.flagged and one.pas.value is not None] == [
        ("background", "theatre/F4")
    ]


def test_in_other_names_only_the_one_who_remembers_loses_agreement(recorded, tmp_path):
    relabelled = ("--set=dataset.relabel=true", "--set=agent.path=answers.relabelled.jsonl")
    comparison = karat.compare(recorded, study_experiments(tmp_path, str(FOLDER / "recorded.yaml"), *relabelled))
    compared = str(comparison)
    assert compared.startswith("remembers (")
    assert "is further from people than remembers (" in compared.splitlines()[0]
    part = comparison.parts["study"]
    assert isinstance(part, StudyComparison)
    assert [names for names in comparison.conditions if names[0] in DESIGNS] == [(name, name) for name in DESIGNS]
    for names, pairing in zip(comparison.conditions, part.pairings, strict=True):
        if names[0] in DESIGNS:
            alone = structs.replace(part, pairings=(pairing,)).headline()
            assert "no difference shown" in alone.lower(), names


def test_it_is_exported_and_compared(recorded, capsys, tmp_path):
    told_by(capsys, "report", str(recorded), "--to", "humanstudy", "--out", str(tmp_path))
    with (tmp_path / "detailed_stats.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 5 * 6
    compared = told_by(capsys, "compare", f"{recorded}:human", ":demographic")
    assert compared.startswith("demographic is closer to people than human")


def test_it_is_drawn(recorded, capsys, tmp_path):
    told_by(capsys, "report", "--charts", str(recorded), "--out", str(tmp_path))
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    assert {f"{chart}-{name}.svg" for chart in ("agreement", "effects") for name in DESIGNS} <= drawn


def test_the_answers_are_what_the_script_writes(tmp_path, capsys):
    runpy.run_path(str(FOLDER / "make_answers.py"))["main"](tmp_path)
    assert capsys.readouterr().out.count("3300 answers") == 2
    for name in ("answers.jsonl", "answers.relabelled.jsonl"):
        assert (tmp_path / name).read_bytes() == (FOLDER / name).read_bytes()
