"""Commands in this process and in their own, and a small experiment to give them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from karat.__main__ import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def karat(here: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """`karat("run", "experiment.yaml")` in this process: quick."""

    def run(*arguments: str | Path) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        told = capsys.readouterr()
        return Done(code, told.out, told.err)

    return run


@pytest.fixture
def process(here: Path) -> Callable[..., Done]:
    """The same in a process of its own: what the shell sees."""

    def run(*arguments: str | Path, **env: str) -> Done:
        command = [sys.executable, "-m", "karat", *map(str, arguments)]
        completed = subprocess.run(
            command,
            cwd=here,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=120,
            check=False,
        )
        return Done(completed.returncode, completed.stdout, completed.stderr)

    return run


@pytest.fixture
def experiment(here: Path) -> Path:
    """Four questions, two conditions of an agent that needs no import: the right answer under one of them."""
    return write_experiment(here)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of that experiment, made once."""
    folder = tmp_path_factory.mktemp("experiment")
    assert main(["run", str(write_experiment(folder)), "--results", str(folder / "results"), "--quiet"]) == 0
    return folder / "results"


@pytest.fixture
def run(here: Path, results: Path) -> str:
    """A finished run of the experiment in the working directory, without the experiment."""
    shutil.copytree(results, here / "results")
    (folder,) = (here / "results").iterdir()
    return str(folder.relative_to(here))


def write_experiment(here: Path) -> Path:
    rows = [{"id": f"q{n}", "question": f"What is {n} + {n}?", "answer": f"It is {2 * n}."} for n in range(1, 5)]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (here / "adder.py").write_text(
        textwrap.dedent("""
            import json, re, sys
            task = json.load(sys.stdin)
            numbers = [int(found) for found in re.findall(r"\\d+", task["question"])]
            print(f"It is {sum(numbers)}." if task["system_prompt"] == "Add." else "I do not know.")
        """),
        encoding="utf-8",
    )
    path = here / "experiment.yaml"
    path.write_text(
        textwrap.dedent("""
            name: sums
            dataset: {path: questions.jsonl, id_key: id}
            agent: {type: command, command: [python, adder.py]}
            judge: {type: overlap}
            conditions:
              guess: {system_prompt: Guess.}
              add: {system_prompt: Add.}
            execution: {num_repetitions: 1, max_concurrent: 4}
        """),
        encoding="utf-8",
    )
    return path
