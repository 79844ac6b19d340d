"""What ends karat where code holds the interpreter, whatever a thread has read of the signals."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time
from karat.execution.last_resort import LastResort

reading, writing = os.pipe()
last_resort = LastResort(reading)
for step in sys.argv[1].split():
    if step == "arrives":
        os.write(writing, b"\\2")
        last_resort.note()
    elif step == "read":
        os.read(reading, 64)
    else:
        last_resort.beat(int(step))
time.sleep(5)
last_resort.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        pytest.param("arrives arrives", True, id="nobody reads them"),
        pytest.param("arrives read arrives", True, id="one is read and nothing comes of it"),
        pytest.param("arrives arrives read", True, id="both are read and nothing comes of it"),
        pytest.param("arrives read 1 arrives", True, id="the first is acted on"),
        pytest.param("arrives read 1", False, id="one is not enough"),
        pytest.param("", False, id="none"),
    ],
)
def test_two_signals_end_what_acts_on_none(steps: str, ends: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, steps],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == (-signal.SIGKILL if ends else 0), done.stderr
    assert ("go on with --resume" in done.stderr) is ends
