"""Commands of a copy of karat that lies elsewhere, run as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["python", "stdout_of", "told"]

_IN_TURN = """
import json, sys
from karat.__main__ import main

for command in json.loads(sys.argv[1]):
    if code := main(command):
        sys.exit(code)
    print(end="\\0", flush=True)
"""


def python(path: Path | str, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs Python in `folder`, with packages from `path` before all others."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COVERAGE"))}
    env |= {"PYTHONPATH": str(path), "COLUMNS": "120"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=600)


def stdout_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def told(path: Path | str, folder: Path, *commands: list[str | Path]) -> list[str]:
    """What each of some commands prints, in one process: starting it takes longer than most of them."""
    done = python(path, folder, "-c", _IN_TURN, json.dumps(commands, default=str))
    *texts, rest = stdout_of(done).split("\0")
    assert rest == ""
    return texts
