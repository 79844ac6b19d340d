"""The fuzzer of benchmarks/fuzz_files.py, in small: mutated files end in a clear error or in the right result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.needs_kind("study"), pytest.mark.needs_kind("conversation")]

FUZZER = Path(__file__).resolve().parent.parent / "benchmarks" / "fuzz_files.py"


def fuzzed(out: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Outcome → cases, of each kind of file."""
    argv = [sys.executable, str(FUZZER), "--json", str(out), *arguments]
    done = subprocess.run(argv, env={**os.environ, "TMPDIR": str(out.parent)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = json.loads(out.read_text(encoding="utf-8"))
    rows = {row[0]: dict(zip(table["columns"][1:], row[1:], strict=True)) for row in table["rows"]}
    assert rows["all"]["mutations"] == sum(rows["all"][outcome] for outcome in ("error", "right", "unverified"))
    return rows


@pytest.mark.slow
def test_mutated_datasets_and_rubrics_are_refused_or_read_right(tmp_path):
    outcomes = fuzzed(tmp_path / "found.json", "--cases", "800", "--kind", "dataset", "--kind", "rubric")
    assert outcomes["dataset"]["error"] > 100
    assert outcomes["dataset"]["right"] > 10
    assert outcomes["rubric"]["mutations"] >= 48
    assert [path.name for path in tmp_path.iterdir()] == ["found.json"]


@pytest.mark.slow
def test_a_campaign_goes_on_where_it_was_killed(tmp_path):
    log = tmp_path / "log"
    first = fuzzed(tmp_path / "first.json", "--cases", "80", "--kind", "dataset", "--log", str(log))
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:30]))
    again = fuzzed(tmp_path / "again.json", "--cases", "80", "--kind", "dataset", "--log", str(log))
    assert log.read_text().splitlines(keepends=True)[:30] == lines[:30]
    assert len(log.read_text().splitlines()) == len(lines)
    counted = ("mutations", "error", "right", "unverified")
    assert [first["dataset"][key] for key in counted] == [again["dataset"][key] for key in counted]


@pytest.mark.slow
def test_mutated_files_of_every_other_kind_are_refused_or_read_right(tmp_path):
    others = ["conversation", "experiment", "study", "answers", "sheet", "log", "run", "crafted", "index"]
    chosen = [part for kind in others for part in ("--kind", kind)]
    outcomes = fuzzed(tmp_path / "found.json", "--cases", "1200", *chosen)
    assert outcomes["log"]["unverified"] > 5
    for kind in ("experiment", "conversation", "answers", "sheet", "run"):
        assert outcomes[kind]["error"] > 5
        assert outcomes[kind]["right"] > 5


@pytest.mark.quick(1)
@pytest.mark.parametrize("case", ["dataset:questions.csv#1402", "dataset:questions.xlsx#5"])
def test_a_case_is_the_same_bytes_whenever_it_is_made(tmp_path, case):
    made = []
    for number in range(2):
        time.sleep(2.1 * number)  # the times in a workbook have steps of two seconds
        argv = [sys.executable, str(FUZZER), "--only", case, "--keep", str(tmp_path / "kept")]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": str(number)})
        made.append((tmp_path / "kept").read_bytes())
    assert made[0] == made[1] != b""
