"""A working directory of its own, and ConvFinQA where it is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import karat

QUICK = {"alcohol_norms", "beauty_contest", "side_effects", "trust"}  # a scale, groups, a vignette, pairs
SHIPPED = frozenset(path.parent.name for path in Path(karat.__file__).parent.glob("kinds/study/studies/*/study.yaml"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Leaves tests of most shipped studies to `make test-slow`."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("name") in SHIPPED - QUICK:
            item.add_marker(pytest.mark.slow)


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
