"""Small experiments on disk: a few questions, an agent in a file beside them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from karat.__main__ import main
from karat.config import Experiment, load
from karat.execution import Outcome, RunStatus, run_experiment
from karat.journal import RunFolder

Run = Callable[..., Outcome]


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[..., Path]:
    """`experiment(agent_code, questions=3, **sections)` writes experiment.yaml, questions.jsonl and agent.py."""
    return partial(write_experiment, tmp_path)


def write_experiment(folder: Path, code: str = "", *, questions: int = 3, **sections: Any) -> Path:
    """The fixture `experiment`, in any folder."""
    rows = [{"question": f"q{number}", "answer": f"a{number}"} for number in range(questions)]
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    module = f"agent_of_{folder.name.replace('-', '_')}"
    (folder / f"{module}.py").write_text(code)
    base = {
        "name": "small",
        "dataset": {"path": str(folder / "questions.jsonl")},
        "agent": {"type": "python", "target": f"{module}:query"},
        "conditions": {"a": {"system_prompt": "A"}, "b": {"system_prompt": "B"}},
        "scorers": [f"{module}:Scorer"] if "class Scorer" in code else ["equals"],
    }
    execution = {
        "num_repetitions": 2,
        "retry": {"initial_backoff_seconds": 0.01, "max_backoff_seconds": 0.02},
        "max_failures": 1000,
    }
    execution.update(sections.pop("execution", {}))
    file = folder / "experiment.yaml"
    file.write_text(yaml.safe_dump({**base, "execution": execution, **sections}, sort_keys=False))
    return file


def merged(runs: Iterable[RunFolder], results: Path) -> RunFolder:
    """The runs as one. By the command, so that tests that are marked as in need of its package can be collected."""
    assert main(["runs", "merge", *(str(run.path) for run in runs), "--out", str(results), "--quiet"]) == 0
    (folder,) = results.iterdir()
    return RunFolder.open(folder)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`run(file, **options)`: the whole of an experiment, or what is missing of it."""

    def go(file: Path | Experiment, **options: Any) -> Outcome:
        loaded = load(file) if isinstance(file, Path) else file
        return asyncio.run(run_experiment(loaded, results=tmp_path / "results", **options))

    return go


__all__ = ["Run", "RunStatus", "write_experiment"]
