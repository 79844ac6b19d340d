"""Real runs, a real `karat view`, a real Chromium."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.browser.looking import Tab, looking
from tests.browser.made import all_kinds
from tests.karat_viewer.serving import Viewer
from tests.needed_packages import has_kind

HERE = Path(__file__).parent
QUICK = {  # of each file the test that goes furthest in a few seconds; all others are left to `make test-slow`
    "test_a_page_is_quiet_and_fits_and_can_be_used_by_all[golden-one]",
    "test_a_list_is_walked_opened_and_left_with_single_keys",
    "test_names_that_are_hostile_are_shown_everywhere[/samples]",
    "test_a_page_of_a_study_is_quiet_and_fits_and_can_be_used_by_all[study-studies/framing]",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Marks all tests in a browser as slow but for a few."""
    for item in items:
        if item.path.parent == HERE and item.name not in QUICK:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def results(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run of each kind; made once, however many processes share the tests."""
    for kind in ("study", "conversation"):
        if not has_kind(kind):
            pytest.skip(f"the kind {kind} is not installed")
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
