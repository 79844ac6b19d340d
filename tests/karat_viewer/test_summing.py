"""Adding up in a process of its own gives what adding up here gives."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from tests.analysis.journals import table

from karat.analysis import Comparison, Summary, compare, summarize


def told(*paths: object, names: tuple[str, ...] = ()) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "karat_viewer.summing", *map(str, paths)]
    return subprocess.run(command, capture_output=True, timeout=60, input=msgspec.json.encode(names))


@pytest.mark.slow
def test_a_summary_and_a_comparison_come_back_whole(tmp_path):
    hostile = "with\0docs"  # no argument of a process can hold it
    run = table(tmp_path / "run", {"baseline": [[3.0], [2.0]], hostile: [[5.0], [4.0]]})
    assert msgspec.json.decode(told(run.path).stdout, type=Summary) == summarize(run)
    found = told(run.path, run.path, names=("baseline", hostile)).stdout
    assert msgspec.json.decode(found, type=Comparison) == compare(run, run, condition_a="baseline", condition_b=hostile)


def test_what_cannot_be_added_up_is_said(tmp_path):
    done = told(tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"is not a run folder" in done.stderr
