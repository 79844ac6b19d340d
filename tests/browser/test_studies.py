"""The pages that only human studies have, in a real browser."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.looking import looking
from tests.browser.test_every_page import hold
from tests.karat_viewer.serving import Viewer

GAME = """
name: game
dataset: {kind: study, path: beauty_contest, per_arm: 4}
agent: {type: floor}
conditions: {empty: {preset: empty}, human: {preset: human}}
execution: {num_repetitions: 2}
"""


@pytest.fixture(scope="module")
def game(chromium: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """A game of four members and four rounds."""
    folder = tmp_path_factory.mktemp("game")
    (folder / "game.yaml").write_text(GAME, encoding="utf-8")
    command = [sys.executable, "-m", "karat", "run", str(folder / "game.yaml"), "--quiet"]
    subprocess.run([*command, "--results", str(folder / "results")], check=True, capture_output=True)
    [run] = (folder / "results").glob("[!.]*")
    run.rename(folder / "results" / "game")
    with Viewer(folder / "results") as running:
        yield running.enter()


@pytest.mark.parametrize("path", ["studies/framing", "samples?arm=gain", "samples?label=%3Drefused", "samples/3?at=3"])
@pytest.mark.parametrize("kind", ["study", "hostile-study"])
def test_a_page_of_a_study_is_quiet_and_fits_and_can_be_used_by_all(tab, kind, path):
    tab.go(f"/runs/{kind}/{path}")
    hold(tab, colours="light dark" if kind == "study" else "")


@pytest.mark.parametrize("path", ["", "/studies/beauty_contest", "/samples", "/samples/1?at=1", "/samples/1?seat=2"])
def test_a_page_of_a_game_is_quiet_and_fits_and_can_be_used_by_all(browser, game, path):
    with looking(browser, game) as tab:
        tab.go(f"/runs/game{path}")
        hold(tab)


def test_one_goes_from_a_study_to_a_member_of_a_game_and_back_by_keys(browser, game):
    with looking(browser, game) as tab:
        tab.go("/runs/game")
        page = tab.page
        page.get_by_role("link", name="beauty_contest").first.click()
        page.wait_for_url("**/studies/beauty_contest")  # keys work once a page is loaded
        page.get_by_role("link", name="two_thirds").first.click()
        page.wait_for_url("**/samples?**")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/samples/2**")
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**seat=0**")
        assert page.locator("h1").inner_text() == "two_thirds-001"
        page.keyboard.press("u")
        page.wait_for_url("**/samples/2?**")
        assert page.locator("h1").inner_text() == "two_thirds-group-01"
