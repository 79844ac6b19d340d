"""Runs the core's own quick tests where only the core is: `core.py [OPTIONS OF PYTEST …]`.

The core is copied below build/ and found there first, so that no package lies beside it. Its own tests are those of its
modules, in the folders and files that are called like them, and of what holds for every plug-in. Left out are those of
statistics and of scripted servers, which meet no package.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tests() -> list[str]:
    """The folders and files of tests of the core's modules, and the way from the file to the table."""
    names = sorted({path.stem for path in (ROOT / "src" / "karat").iterdir()} - {"stats", "testing"})
    folders = (ROOT / "tests" / name for name in [*names, "conformance"])
    files = (ROOT / "tests" / f"test_{name}.py" for name in [*names, "story"])
    return [str(path.relative_to(ROOT)) for path in (*folders, *files) if path.exists()]


def main(options: list[str]) -> int:
    """The exit code of pytest."""
    source = ROOT / "build" / "core"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "karat", source / "karat", ignore=shutil.ignore_patterns("__pycache__"))
    time.sleep(2)  # what is younger may change within one tick of the clock, so nothing is cached for it
    env = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "pytest", "-m", "not slow", "--hypothesis-profile", "brief", *options, *tests()]
    return subprocess.run(command, cwd=ROOT, env=env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
