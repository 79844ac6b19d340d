"""Real runs, a real `karat view`, a real Chromium."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.looking import Tab, looking
from tests.browser.made import all_kinds
from tests.viewer.serving import Viewer


@pytest.fixture(scope="session")
def results(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of each kind; made once, however many processes share the tests."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "runs-of-each-kind"
    with (base / "runs-of-each-kind.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            all_kinds(base / "runs-in-the-making")
            (base / "runs-in-the-making").rename(folder)
    return folder


@pytest.fixture(scope="session")
def viewer(results: Path) -> Iterator[Viewer]:
    """Serves them all."""
    with Viewer(results) as running:
        yield running.enter()


@pytest.fixture
def tab(browser, viewer: Viewer) -> Iterator[Tab]:
    """A wide, light page of a browser that was let in."""
    with looking(browser, viewer) as opened:
        yield opened
