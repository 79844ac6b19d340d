"""A working directory of its own, and ConvFinQA where it is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty working directory."""
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def convfinqa(shared_data: Path) -> Path:
    """The 421 conversations of ConvFinQA's dev set, cleaned."""
    path = shared_data / "convfinqa" / "dev.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the shared data")
    return path
