"""The suite gives the same results under nohup and in a background job, where signals are ignored."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
IGNORING = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_tests_that_send_signals_pass_where_the_parent_ignores_them():
    test = "tests/execution/test_ends.py::test_one_signal_finishes_what_is_in_flight"
    command = [sys.executable, "-c", IGNORING, test]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
