"""Every form of a report for a run of every kind: it has something to say, or is refused before anything is written."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.needed_packages import has_kind

from karat import plugins
from karat.__main__ import main

KINDS = ("golden", "conversation", "study")
REFUSED = {
    ("convfinqa", "golden"): "is for runs over conversations; this one is over golden answers",
    ("convfinqa", "study"): "is for runs over conversations; this one is over human studies",
    ("convfinqa_official", "golden"): "is for runs over conversations; this one is over golden answers",
    ("convfinqa_official", "study"): "is for runs over conversations; this one is over human studies",
    ("humanstudy", "golden"): "is for runs over human studies; this one is over golden answers",
    ("humanstudy", "conversation"): "is for runs over human studies; this one is over conversations",
    ("skill_evals", "conversation"): "is for runs over golden answers; this one is over conversations",
    ("skill_evals", "study"): "is for runs over golden answers; this one is over human studies",
}
ROWS = {("rates", "golden"), ("rates", "study"), ("tests", "golden"), ("tests", "conversation")}
MAY_BE_EMPTY = {"errors.csv", "validation.csv"}
"""No turn was wrong, no model judged."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A run of each kind, as `karat init` begins it."""
    found = {}
    for kind in filter(has_kind, KINDS):
        folder = tmp_path_factory.mktemp(kind)
        assert main(["init", kind, str(folder), "-q"]) == 0
        assert main(["run", str(folder / "experiment.yaml"), "-q", "--results", str(folder / "results")]) == 0
        found[kind] = str(next((folder / "results").iterdir()))
    return found


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", plugins.names("exports"))
@pytest.mark.needs_kind("study", cases="-study")
@pytest.mark.needs_kind("conversation", cases="-conversation")
def test_a_report_says_something_of_a_run_or_is_refused(
    karat: Callable[..., Any], here: Path, runs: dict[str, str], kind: str, name: str
) -> None:
    done = karat("report", runs[kind], "--to", name, "--out", "out/", "-q")
    if (name, kind) in REFUSED:
        assert (done.code, done.out, list(here.iterdir())) == (2, "", [])
        assert done.err.startswith(f"report {name}: {REFUSED[name, kind]}")
        assert len(done.err.splitlines()) == 1
        return
    assert (done.code, done.err) == (0, "")
    for path in done.out.splitlines():
        _require_something(here / path.partition("/ (")[0])


def _require_something(path: Path) -> None:
    for file in path.iterdir() if path.is_dir() else [path]:
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".csv" and file.name not in MAY_BE_EMPTY:
            rows = list(csv.DictReader(text.splitlines()))
            assert rows and any(any(row.values()) for row in rows), file
        if file.suffix == ".json":
            value = json.loads(text)
            assert any(value.values() if isinstance(value, dict) else value), file
        assert len(text) > 2, file


@pytest.mark.needs_kind("study", cases="-study")
@pytest.mark.needs_kind("conversation", cases="-conversation")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", ["summary", "scores", "servers", "rates", "tests"])
def test_rows_that_a_run_cannot_have_are_refused(
    karat: Callable[..., Any], here: Path, runs: dict[str, str], kind: str, rows: str
) -> None:
    done = karat("report", runs[kind], "--to", "csv", "--set", f"rows={rows}", "--out", "rows.csv")
    if (rows, kind) in ROWS:
        assert (done.code, done.out, list(here.iterdir())) == (2, "", [])
        assert done.err == f"report csv: --set rows={rows}: a run of {kind} datasets has no {rows}\n"
    else:
        assert done.code == 0
        assert (here / "rows.csv").read_text(encoding="utf-8").count("\n") > (rows != "servers")


@pytest.mark.needs_kind("conversation")
def test_a_refused_report_reads_no_run_to_its_end(karat: Callable[..., Any], runs: dict[str, str]) -> None:
    """It is refused by what run.json says: the journal may be as long as it likes."""
    journal = Path(runs["golden"]) / "journal.jsonl"
    kept = journal.read_bytes()
    journal.write_bytes(kept.replace(b'"event":"score"', b'"event":"score" damaged'))
    try:
        assert "damaged" in karat("report", runs["golden"]).err
        assert "is for runs over" in karat("report", runs["golden"], "--to", "convfinqa", "--out", "x").err
    finally:
        journal.write_bytes(kept)
