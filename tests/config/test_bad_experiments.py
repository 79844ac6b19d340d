"""Every fault is told at once, with its place, what was found and what is wanted."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.needed_packages import EVERY_PACKAGE

from karat.config import load
from karat.errors import BadExperiment

from .bad_experiments import CASES

ENV = {"KARAT_WORD": "many"}


def said_of(text: str | bytes, folder: Path) -> BadExperiment:
    path = Path("experiment.yaml")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = sorted(folder.rglob("*"))
    with pytest.raises(BadExperiment) as caught:
        load(path, env=ENV)
    assert sorted(folder.rglob("*")) == before
    return caught.value


@pytest.mark.needs_package(*EVERY_PACKAGE)
def test_what_is_said_of_every_bad_experiment_file(folder: Path, golden: Callable[[str, str], None]) -> None:
    assert len(CASES) >= 60
    said = []
    for name, text in CASES.items():
        shown = repr(text) if isinstance(text, bytes) else text if len(text) < 1000 else f"{text[:60]}…\n"
        said.append(f"{'=' * 20} {name}\n{shown}{'-' * 20}\n{said_of(text, folder)}\n")
    golden("faults/experiments.txt", "\n".join(said).replace(sys.executable, "PYTHON"))


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_a_place_and_a_remedy_and_shows_no_secret(name: str, folder: Path) -> None:
    error = said_of(CASES[name], folder)
    assert error.faults
    for fault in error.faults:
        assert fault.place
        assert fault.line is not None or fault.place in {"file", "dataset", "agent", "conditions", "judge"}
        assert len(fault.message) > 10
    assert "canary-1234" not in str(error)
