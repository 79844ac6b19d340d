"""ConvFinQA where it is there."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def convfinqa(shared_data: Path) -> Path:
    """The 421 conversations of ConvFinQA's dev set, cleaned."""
    path = shared_data / "convfinqa" / "dev.json"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the shared data")
    return path
