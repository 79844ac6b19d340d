"""A folder with a dataset, and experiments made in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from karat.config import Experiment, load

REST = "agent: {type: floor}\njudge: {type: overlap}\nconditions: {baseline: {}}\n"
GOOD = f"dataset: {{path: questions.jsonl}}\n{REST}"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An experiment's folder, and the working directory."""
    (tmp_path / "questions.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n')
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def read(folder: Path) -> Callable[..., Experiment]:
    """`read(text, **arguments of load)`: the experiment in a file of this text."""

    def _read(text: str, **arguments: Any) -> Experiment:
        path = folder / "experiment.yaml"
        path.write_text(text, encoding="utf-8")
        return load(path, **{"env": {}, **arguments})

    return _read
