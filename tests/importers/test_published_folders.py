"""The twelve published folders: all are drafted, and agree with the studies that come with karat where both speak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.importers.folders import whole, written

from karat.cli import cli
from karat.errors import BadDataset
from karat.importers import Draft, save
from karat.kinds.study.importers._humanstudy_files import read_folder
from karat.kinds.study.importers._humanstudy_statistics import (
    ReportedText,
    leaves,
    nested,
    points,
    reported_in,
    shares_in,
)
from karat.kinds.study.importers.humanstudy import HumanStudy
from karat.kinds.study.places import shipped_studies
from karat.kinds.study.reading import read_study
from karat.replication import parse_reported

SHIPPED = {
    "false_consensus": "study_001",
    "framing": "study_003",
    "representativeness": "study_004",
    "side_effects": "study_005",
    "impressions": "study_006",
    "alcohol_norms": "study_008",
    "beauty_contest": "study_009",
    "disjunction": "study_010",
    "bargaining": "study_011",
    "trust": "study_012",
}
NAMES = [f"study_{number:03d}" for number in range(1, 13)]


@pytest.fixture
def published(shared_data: Path) -> Path:
    return shared_data / "humanstudy" / "studies"


@pytest.mark.parametrize("name", NAMES)
def test_check_names_exactly_what_is_open(published, tmp_path, name):
    (draft,) = HumanStudy(HumanStudy.Options()).drafts(published / name)
    save(draft, tmp_path / "out")
    with pytest.raises(BadDataset) as bad:
        read_study(tmp_path / "out")
    assert {fault.place for fault in bad.value.faults} == {one.place for one in draft.open}
    assert all(one.source for one in draft.open)
    assert all(one.source for one in draft.doubts)


def test_a_draft_is_the_same_twice_and_loses_no_test(published):
    importer = HumanStudy(HumanStudy.Options())
    first, again = importer.drafts(published), importer.drafts(published)
    assert first == again
    assert [draft.name for draft in first] == NAMES
    for draft in first:
        tests = [one for finding in yaml.safe_load(draft.files["study.yaml"])["findings"] for one in finding["tests"]]
        assert len(tests) == draft.counts["tests"] >= 4


def test_what_the_command_shows_of_all_twelve(published, tmp_path, monkeypatch, golden):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["import", "humanstudy", str(published), "--out", "drafts"], catch_exceptions=False)
    assert done.exit_code == 0
    golden("import-humanstudy.txt", done.stdout)


def test_a_material_keeps_every_word_of_its_instructions_and_questions(published):
    for folder in sorted(published.iterdir()):
        _, materials, _ = read_folder(folder)
        texts = "\n".join(drafted(folder).files.values())
        for spot in materials:
            asked = [item.get("question").text() or "" for item in spot.get("items").items()]
            for text in (spot.get("instructions").text() or "", *asked):
                assert text in texts, (folder.name, spot.file)


def drafted(folder: Path) -> Draft:
    (draft,) = HumanStudy(HumanStudy.Options(unlisted=True)).drafts(folder)
    return draft


def strings(folder: Path) -> Iterator[ReportedText]:
    """Every statistic of a published folder, as the importer reads it."""
    outer, _, _ = read_folder(folder)
    for study in outer["ground_truth"].get("studies").items():
        for finding in study.get("findings").items():
            for test in finding.get("statistical_tests").items():
                yield from reported_in(test.get("reported_statistics"))
            yield from nested(finding.get("original_data_points"))


def numbers(folder: Path) -> set[float]:
    """Every number of people of a published folder: as it stands there, and the counts that follow from shares."""
    outer, _, _ = read_folder(folder)
    found: set[float] = set()
    for study in outer["ground_truth"].get("studies").items():
        for finding in study.get("findings").items():
            data = finding.get("original_data_points")
            tests = finding.get("statistical_tests").items()
            printed = {share for test in tests for share in shares_in(test.get("reported_statistics").text() or "")}
            found |= {value for _, _, value, _ in leaves(data.get("data"))} | printed
            for point in points(data, shares=printed):
                n, share = point.numbers.get("n"), point.numbers.get("percentage")
                found |= set(point.numbers.values())
                if n is not None and share is not None:
                    found.add(round(n * share / 100))
    return found


def human_numbers(human: dict[str, Any]) -> Iterator[float]:
    """k, n, mean and sd of each group."""
    for key, value in human.items():
        if isinstance(value, dict):
            yield from human_numbers(value)
        elif key in {"k", "n", "mean", "sd"}:
            yield float(value)


@pytest.mark.parametrize("name", SHIPPED)
def test_statistics_are_those_of_the_study_that_comes_with_karat(published, name):
    """What a shipped study and a published folder both have as t, F, r or χ² is the same."""
    found = {(one.found.kind, one.found.statistic) for one in strings(published / SHIPPED[name]) if one.found}
    differ = []
    for human in shipped(name):
        try:
            own = parse_reported(human.get("reported", ""))
        except ValueError:
            continue
        if (own.kind, own.statistic) not in found:
            differ.append(human["reported"])
    assert differ == []


def shipped(name: str) -> list[dict[str, Any]]:
    study = yaml.safe_load(shipped_studies()[name].read_text(encoding="utf-8"))
    return [test["human"] for finding in study["findings"] for test in finding["tests"]]


def test_how_many_numbers_agree_with_the_studies_that_come_with_karat(published, golden):
    lines = ["study               statistics  the same  numbers  in the folder  others"]
    for name, folder in SHIPPED.items():
        found = {(one.found.kind, one.found.statistic) for one in strings(published / folder) if one.found}
        there, statistics, same = numbers(published / folder), 0, 0
        own = sorted({value for human in shipped(name) for value in human_numbers(human)})
        for human in shipped(name):
            try:
                printed = parse_reported(human.get("reported", ""))
            except ValueError:
                continue
            statistics += 1
            same += (printed.kind, printed.statistic) in found
        others = [value for value in own if value not in there]
        told = ", ".join(f"{value:g}" for value in others) or "–"
        lines.append(f"{name:<18}  {statistics:>10}  {same:>8}  {len(own):>7}  {len(own) - len(others):>13}  {told}")
    golden("import-agreement.txt", "\n".join(lines) + "\n")


def test_a_made_up_folder_shows_the_same_table(tmp_path, monkeypatch):
    """The command without the published folders beside the checkout."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "mugs", whole())
    done = CliRunner().invoke(cli, ["import", "humanstudy", "mugs", "--out", "draft"], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [
        "draft  findings  tests  met  in data  parsed  described  unreadable  checked  contradictory  open",
        "mugs          1      1    1        0       1          0           0        1              0     0",
        "",
        "draft: 5 files",
        "  2 arms, 2 with n; 2 fields, 2 with type",
        "  profile: age, gender, population",
    ]
    assert done.stderr.splitlines()[:2] == ["", "Next:"]
