"""kill −9 at random moments: benchmarks/crash.py with fewer rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CRASH = Path(__file__).resolve().parents[2] / "benchmarks" / "crash.py"


@pytest.mark.needs_package("karat_conversations")
@pytest.mark.parametrize(
    "size",
    [
        pytest.param(["--rounds", "1", "--trials", "40", "--turns", "2"], id="small"),
        pytest.param(["--rounds", "2", "--trials", "300"], id="trials", marks=pytest.mark.slow),
        pytest.param(["--rounds", "2", "--trials", "120", "--turns", "4"], id="turns", marks=pytest.mark.slow),
    ],
)
def test_after_kill_9_a_resumed_run_has_every_trial_once_and_asked_nothing_twice(size: list[str]) -> None:
    command = [sys.executable, str(CRASH), *size, "--seed", "11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every trial once, nothing asked twice, summaries equal" in done.stdout
