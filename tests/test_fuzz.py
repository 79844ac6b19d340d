"""The fuzzer of benchmarks/fuzz_files.py, in small: mutated files end in a clear error or in the right result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.needs_kind("study"), pytest.mark.needs_kind("conversation")]

FUZZER = Path(__file__).resolve().parent.parent / "benchmarks" / "fuzz_files.py"


def fuzzed(out: Path, *arguments: str) -> dict[str, dict[str, int]]:
    """Outcome → cases, of each kind of file."""
    argv = [sys.executable, str(FUZZER), "--json", str(out), *arguments]
    done = subprocess.run(argv, env={**os.environ, "TMPDIR": str(out.parent)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["findings"] == []
    outcomes: dict[str, dict[str, int]] = found["outcomes"]
    return outcomes


def test_mutated_datasets_and_rubrics_are_refused_or_read_right(tmp_path):
    outcomes = fuzzed(tmp_path / "found.json", "--cases", "400", "--kind", "dataset", "--kind", "rubric")
    assert outcomes["dataset"]["error"] > 100
    assert outcomes["dataset"]["right"] > 10
    assert sum(outcomes["rubric"].values()) >= 48


@pytest.mark.slow
def test_mutated_files_of_every_kind_are_refused_or_read_right(tmp_path):
    outcomes = fuzzed(tmp_path / "found.json", "--cases", "5000")
    for kind in ("experiment", "conversation", "answers", "log", "sheet", "run"):
        assert outcomes[kind]["error"] > 5
        assert outcomes[kind]["right"] > 5


def test_a_case_is_the_same_bytes_whenever_it_is_made(tmp_path):
    made = []
    for number in range(2):
        argv = [sys.executable, str(FUZZER), "--only", "dataset:questions.csv#1402", "--keep", str(tmp_path / "kept")]
        subprocess.run(argv, check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": str(number)})
        made.append((tmp_path / "kept").read_bytes())
    assert made[0] == made[1] != b""
