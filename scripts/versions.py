"""Runs the quick tests with other versions than the pinned ones: `versions.py newest|lowest [OPTIONS OF PYTEST …]`.

`newest`: the newest version of everything. `lowest`: the lowest that pyproject.toml declares; what only tests need is
the newest there too. Each is resolved anew and installed below build/.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESOLUTIONS = {"newest": "highest", "lowest": "lowest-direct"}


def untested(resolved: str) -> list[str]:
    """Declared dependencies whose lowest version no environment with all extras has, so that no test shows it works."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = dict(re.findall(r"^([\w.-]+)==(\S+)", resolved, re.MULTILINE))
    found = []
    for text in project["dependencies"] + project["optional-dependencies"]["all"]:
        name, _, bound = text.partition(">=")
        name = re.sub(r"[._]", "-", name.partition("[")[0]).lower()
        bound = bound.partition(";")[0].strip()
        if _short(versions[name]) != _short(bound):
            found.append(f"{text}: {versions[name]} is the lowest that goes with the other dependencies")
    return found


def _short(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version)


def main(name: str, options: list[str]) -> int:
    """The exit code of pytest. Exits with a list of untested lowest versions, if there are any."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    pins = build / f"{name}.txt"
    _uv("pip", "compile", "--no-config", "--resolution", RESOLUTIONS[name], "--extra", "all",
        "--upgrade", "--output-file", pins, "pyproject.toml")  # fmt: skip
    resolved = pins.read_text(encoding="utf-8")
    faults = untested(resolved) if name == "lowest" else []
    if faults:
        sys.exit("\n".join(faults))
    python = build / name / "bin" / "python"
    install = ("pip", "install", "--python", python, "--constraint", pins)
    _uv("venv", "--clear", "--python", sys.executable, build / name)
    _uv(*install, "hatchling")
    _uv(*install, "--no-build-isolation", "--editable", ".[all,dev]")
    return subprocess.run([python, "-m", "pytest", "-m", "not slow", *options], cwd=ROOT, check=False).returncode


def _uv(*arguments: str | Path) -> None:
    subprocess.run([Path(sys.executable).with_name("uv"), *arguments, "--quiet"], cwd=ROOT, check=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in RESOLUTIONS:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
