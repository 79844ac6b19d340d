"""A human study from the file to its reports, in both of its forms, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.__main__ import main

pytestmark = pytest.mark.needs_kind("study")

EXPERIMENT = """\
name: side-effects
dataset: {kind: study, path: side_effects, per_arm: 6}
agent: {type: floor}
conditions: {plain: {}, asked: {system_prompt: "You are {{ profile.age }} years old."}}
execution: {num_repetitions: 1}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The study as it is, and relabelled."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    found = []
    for relabel in ("false", "true"):
        results = folder / relabel
        words = ["--results", str(results), "-q", "--set", f"dataset.relabel={relabel}"]
        assert main(["run", str(folder / "e.yaml"), *words]) == 0
        found += [str(path) for path in results.iterdir()]
    return found[0], found[1]


@pytest.mark.slow
def test_a_run_has_its_files_of_humanstudy(karat: Callable[..., Any], here: Path, runs: tuple[str, str]) -> None:
    done = karat("report", runs[0], "--to", "humanstudy", "--out", "files")
    assert done.code == 0
    names = {"detailed_stats.csv", "evaluation_results.json", "benchmark_summary.json"}
    assert {path.name for path in (here / "files").iterdir()} == {*names, "benchmark"}
    folders = (here / "files" / "benchmark").glob("study_*/*")
    assert {(path.name, *sorted(file.name for file in path.iterdir())) for path in folders} == {
        (condition, "evaluation_results.json", "full_benchmark.json") for condition in ("plain", "asked")
    }
    assert len((here / "files" / "detailed_stats.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 4
    refused = karat("report", runs[0], "--to", "humanstudy")
    assert refused.code == 2
    assert "name a folder for them" in refused.err


def test_a_report_says_what_was_shown(karat: Callable[..., Any], runs: tuple[str, str]) -> None:
    plain, other = (karat("report", run, "--set", "width=100").out for run in runs)
    assert "Asked with: other names and amounts" in other and "Asked with" not in plain
    assert "24 participants of 1 study × 2 conditions × 1 repetition" in plain
    assert "Trials scored: 48 of 48" in plain
    assert "plain (floor)" in plain
    assert "Means with" not in plain


@pytest.mark.slow
def test_both_forms_are_compared_condition_by_condition(karat: Callable[..., Any], runs: tuple[str, str]) -> None:
    done = karat("compare", *runs)
    assert done.code == 0
    assert done.out.count("relabelled: 24 asked, 24 answered, 24 parsed") == 2
    assert done.out.count("paired: the same participants, drawn together") == 2
    found = karat("compare", *runs, "--json").json
    assert found["unit"] == "participant"
    assert [len(one["tests"]) for one in found["study"]["pairings"]] == [4, 4]
    assert found["study"]["pairings"][0]["paired"] is True


def test_a_run_has_its_charts(karat: Callable[..., Any], here: Path, runs: tuple[str, str]) -> None:
    done = karat("report", "--charts", runs[0], "--out", "charts", "--format", "json", "--json")
    assert done.code == 0
    names = [chart["name"] for chart in done.json["charts"]]
    assert {"agreement-plain", "participants-plain", "participants-asked"} <= set(names)
    assert (here / "charts" / "participants-asked.json").exists()
