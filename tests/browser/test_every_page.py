"""What holds of every page of a run of every kind: quiet, at home, at every width, by day and by night, for all."""

from __future__ import annotations

import pytest
from tests.browser.looking import WITHIN, faults, looking, looking_at_a_file
from tests.browser.made import KINDS

from karat.analysis import summarize
from karat.exports.html import Html
from karat.journal import RunFolder

PATHS = {
    "overview": "/runs/{run}",
    "list": "/runs/{run}/samples",
    "worst": "/runs/{run}/samples?sort=worst&failure=any",
    "one": "/runs/{run}/samples/1?at=1",
    "plain": "/runs/{run}/samples/2?view=plain",
    "difference": "/runs/{run}/samples/2?view=diff",
    "comparison": "/compare?run={run}",
    "reviews": "/runs/{run}/reviews",
}
OF_STUDIES = {
    "study": "/runs/{run}/studies/framing",
    "study of games": "/runs/{run}/studies/beauty_contest",
    "session": "/runs/{run}/samples/4?at=4",  # the first ones are groups
}
HAVE_TWO = ("golden", "study", "failures", "early", "hostile", "hostile-study")  # conditions


@pytest.fixture(scope="module")
def shared_tab(browser, viewer):
    """A wide page of a browser that was let in, for all tests here: a window of its own is what takes longest."""
    with looking(browser, viewer) as opened:
        yield opened


@pytest.fixture
def tab(shared_tab):
    """The same, light again. What it showed was quiet."""
    shared_tab.page.set_viewport_size({"width": 1440, "height": 900})
    shared_tab.page.emulate_media(color_scheme="light")
    yield shared_tab
    shared_tab.quiet()


def hold(tab, *, ours: str | None = None, for_all: bool = True, colours: str = "light dark") -> None:
    """The same for all pages. `for_all`: axe-core looks at it; `colours`: at its colours in these schemes, too."""
    page = tab.page
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert page.title()
    assert tab.hit() is None
    assert (tab.foreign() if ours is None else tab.foreign(ours)) == []
    tab.unfold()
    assert tab.sideways(320) <= 0, "the page scrolls sideways at 320"
    assert tab.sideways(1440) <= 0, "the page scrolls sideways at 1440"
    if for_all:
        assert faults(page, but=() if "light" in colours else ("color-contrast",)) == []
    page.emulate_media(color_scheme="dark")
    if for_all and "dark" in colours:
        assert faults(page, only=("color-contrast",)) == []


ALL = [
    (kind, path)
    for kind in KINDS
    for path in {**PATHS, **(OF_STUDIES if "study" in kind else {})}
    if path != "comparison" or kind in HAVE_TWO
]


@pytest.mark.parametrize(("kind", "path"), ALL)
def test_a_page_is_quiet_and_fits_and_can_be_used_by_all(tab, kind, path):
    tab.go({**PATHS, **OF_STUDIES}[path].format(run=kind))
    hold(tab, colours="" if kind.startswith("hostile") else "light dark")  # theirs are those of the others


@pytest.mark.parametrize(
    "path",
    ["/", "/?q=golden&tag=golden", "/?q=no-such-run", "/compare?run=golden&run=early",
     "/compare/flips?run=golden&a=baseline&b=with-docs&metric=completeness",
     "/compare/flips?run=golden&run=early&a=with-docs&b=baseline&metric=completeness"],
)  # fmt: skip
def test_a_page_over_several_runs_is_quiet_and_fits_and_can_be_used_by_all(tab, path):
    tab.go(path)
    hold(tab)


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_from_disk_is_quiet_and_fits_and_can_be_used_by_all(browser, results, tmp_path, kind):
    run = RunFolder.open(results / kind)
    path = tmp_path / "report.html"
    path.write_text(Html().render(summarize(run), run)["report.html"], encoding="utf-8")
    with looking_at_a_file(browser, path) as tab:
        hold(tab, ours=WITHIN, for_all=kind in ("golden", "talk", "study", "failures"), colours="light")


@pytest.mark.parametrize("kind", ["golden", "talk", "study"])
def test_pages_read_without_script_too(browser, viewer, kind):
    with looking(browser, viewer, java_script_enabled=False) as tab:
        for path in ("overview", "list", "one"):
            tab.page.goto(f"{tab.home}{PATHS[path].format(run=kind)}")
            assert tab.page.locator("h1").is_visible()
            assert tab.page.get_by_text("These pages are served by your own machine").is_visible()


@pytest.mark.parametrize("path", ["/", "/runs/golden/samples", "/compare?run=golden", "/runs/golden"])
def test_a_phone_shows_every_condition_without_scrolling_sideways(tab, path):
    tab.page.set_viewport_size({"width": 390, "height": 844})
    page = tab.go(path)
    assert tab.sideways(390) <= 0
    cut = page.evaluate("""() => [...document.querySelectorAll('main table.stacks')].filter(
        (one) => one.closest('details:not([open])') === null && one.scrollWidth > one.closest('.scroll').clientWidth + 1
    ).map((one) => one.outerHTML.slice(0, 200))""")
    assert cut == []
    if path == "/runs/golden/samples":
        heads = page.evaluate(
            "() => [...document.querySelectorAll('tbody tr:first-child td')].map((one) => one.dataset.head)"
        )
        assert {"baseline", "with-docs"} <= set(heads)
    tab.quiet()
