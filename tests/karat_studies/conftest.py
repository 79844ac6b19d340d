"""Leaves tests of most shipped studies to `make test-slow`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import karat_studies

QUICK = {"alcohol_norms", "beauty_contest", "side_effects", "trust"}  # a scale, groups, a vignette, pairs
SHIPPED = frozenset(
    path.parent.name for path in Path(karat_studies.__file__).parent.glob("kinds/study/studies/*/study.yaml")
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Leaves tests of most shipped studies to `make test-slow`."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("name") in SHIPPED - QUICK:
            item.add_marker(pytest.mark.slow)
