"""The page as a person meets it: opened from disk in Chromium, without a network."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.document.hostile import HOSTILE, hostile_run

from karat.analysis import summarize
from karat.document.charts import charts
from karat.document.ink import DARK, LIGHT
from karat.exports.html import Html
from karat.records import Reply


@contextmanager
def opened(browser: Any, path: Path, *, width: int = 1440, script: bool = True, **context: Any):
    """The page at this width; afterwards nothing was asked for, nothing complained, nothing popped up."""
    requests: list[str] = []
    complaints: list[str] = []
    around = browser.new_context(
        viewport={"width": width, "height": 900},
        offline=True,
        java_script_enabled=script,
        accept_downloads=True,
        **context,
    )
    page = around.new_page()
    page.on("request", lambda one: requests.append(one.url))
    page.on("console", lambda one: complaints.append(f"{one.type}: {one.text}"))
    page.on("pageerror", lambda one: complaints.append(str(one)))
    page.on("dialog", lambda one: [complaints.append(one.message), one.dismiss()])  # type: ignore[func-returns-value]
    page.goto(path.as_uri())
    yield page
    around.close()
    assert [url for url in requests if url != path.as_uri()] == []
    assert complaints == []


@pytest.fixture
def golden_page(tmp_path, journals):
    """A run of two conditions, as a page; and the names of its charts."""
    scores = {"baseline": [[1, 2], [2, 2], [3, 1], [1, 1], [2, 3], [1, 2]], "with-docs": [[4, 5]] * 5 + [[5, None]]}
    return written(tmp_path, journals.table(tmp_path / "run", scores))


@pytest.fixture(scope="module")
def study_page(tmp_path_factory, study_run, study_summary):
    """A run over studies, as a page. Making it needs an event loop, which a driven browser takes for itself."""
    return written(tmp_path_factory.mktemp("story"), study_run, study_summary)


@pytest.fixture(scope="module")
def browser(study_page, browser):
    """Opened after the run was made."""
    return browser


def written(folder, run, summary=None):
    summary = summary or summarize(run)
    path = folder / "report.html"
    path.write_text(Html().render(summary, run)["report.html"], encoding="utf-8")
    # Means and differences are drawn by the tables themselves.
    return path, [chart.name for chart in charts(summary) if chart.name not in ("means", "differences", "accuracy")]


def talk(folder, journals):
    samples = [
        journals.asked(
            f"c{at}", at, [{"golden": "10", "program": "add(4, 6)"}, {"golden": "20", "program": "add(#0, 10)"}]
        )
        for at in range(6)
    ]
    said = {
        name: [[[Reply(text="10"), Reply(text="20" if (at + place) % 3 else "7")]] for at in range(6)]
        for place, name in enumerate(("plain", "with-tools"))
    }
    return journals.conversations(folder / "run", samples, said)


@pytest.mark.slow
def test_every_chart_is_drawn_and_its_table_folded(browser, golden_page):
    path, names = golden_page
    with opened(browser, path) as page:
        drawn = page.evaluate("[...document.querySelectorAll('figure.chart')].map(e => e.id)")
        assert drawn == [f"chart-{name}" for name in names]
        for name in names:
            assert page.locator(f"#chart-{name} .drawing svg path").count() > 2
        assert page.locator("details.numbers[open]").count() == 0
        assert page.locator("figure.chart h3").first.is_visible()


@pytest.mark.needs_kind("conversation")
def test_a_run_over_conversations_is_drawn(browser, tmp_path, journals):
    path, names = written(tmp_path, talk(tmp_path, journals))
    with opened(browser, path) as page:
        assert page.locator("figure.chart").count() == len(names)
        assert page.get_by_role("heading", name="Where the chain breaks").is_visible()


def test_a_run_over_studies_is_drawn(browser, study_page):
    path, names = study_page
    with opened(browser, path, width=320) as page:
        assert page.locator("figure.chart").count() == len(names)
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.wait_for_selector("#chart-effects-shy .drawing svg path.mark")
        assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.slow
def test_charts_fill_their_place_and_stay_within(browser, golden_page):
    path, _ = golden_page
    for width in (320, 820, 1440):
        with opened(browser, path, width=width) as page:
            places = page.evaluate(
                """[...document.querySelectorAll('.drawing')].map(
                   e => [e.clientWidth, e.querySelector('svg').getBoundingClientRect().width])"""
            )
            for room, taken in places:
                assert taken > 0.55 * room
                assert taken <= room + 1 or width == 320  # where it is moved in its box, large enough to be read


@pytest.mark.quick(1)
@pytest.mark.parametrize("make", ["golden", "conversation"])
@pytest.mark.parametrize("script", [True, False])
def test_a_phone_never_scrolls_sideways(browser, tmp_path, journals, golden_page, make, script):
    path, _ = golden_page if make == "golden" else written(tmp_path, talk(tmp_path, journals))
    with opened(browser, path, width=320, script=script) as page:
        size = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert size == [320, 320]
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.slow
def test_on_a_phone_every_number_of_a_wide_table_is_in_sight(browser, tmp_path, journals, golden_page):
    for path, _ in (golden_page, written(tmp_path, talk(tmp_path, journals))):
        with opened(browser, path, width=320) as page:
            page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            hidden = page.evaluate(
                "[...document.querySelectorAll('table.stacks')].filter(one => one.scrollWidth > 320"
                " || one.parentElement.scrollWidth > one.parentElement.clientWidth).map(one => one.caption.textContent)"
            )
            assert page.locator("table.stacks").count() > 3
            assert hidden == []
            heads = page.evaluate("[...document.querySelectorAll('table.stacks td')].map(one => one.dataset.head)")
            assert "" not in heads


@pytest.mark.slow
def test_light_and_dark_follow_the_system_until_one_chooses(browser, golden_page):
    path, _ = golden_page

    def colours(page) -> list[str]:
        return page.evaluate(
            """[getComputedStyle(document.documentElement).backgroundColor,
                getComputedStyle(document.querySelector('.drawing svg text')).fill]"""
        )

    light, dark = ([rgb(ink.background), rgb(ink.text)] for ink in (LIGHT, DARK))
    with opened(browser, path, color_scheme="dark") as page:
        assert colours(page) == dark
        button = page.get_by_role("button", name="Theme")
        button.click()
        assert (colours(page), button.inner_text()) == (light, "Theme: light")
        page.emulate_media(media="print")
        assert colours(page) == light
        page.emulate_media(media="screen")
        button.click()
        assert (colours(page), button.inner_text()) == (dark, "Theme: dark")
        page.emulate_media(media="print")
        assert colours(page)[0] == light[0], "paper is white"
    with opened(browser, path, color_scheme="light") as page:
        assert colours(page) == light


def rgb(colour: str) -> str:
    return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"


def test_without_script_every_number_can_be_read(browser, golden_page):
    path, names = golden_page
    with opened(browser, path, script=False) as page:
        assert page.locator("figure.chart .drawing svg").count() == len(names)
        assert page.locator("figure.chart .drawing svg").first.is_visible()
        page.locator("details.numbers summary").first.click()
        assert page.locator("details.numbers table").first.is_visible()
        assert not page.locator("button").first.is_visible()
        assert page.get_by_role("heading", level=1).is_visible()


def test_the_keyboard_reaches_everything(browser, golden_page):
    path, _ = golden_page
    with opened(browser, path) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "To the numbers"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        seen = set()
        for _ in range(200):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("(e => e.tagName + ' ' + e.textContent.trim())(document.activeElement)"))
        assert "A Where it fails" in seen
        assert "SUMMARY The same numbers as a table" in seen
        summary = page.locator("#chart-scores-completeness summary")
        summary.focus()
        page.keyboard.press("Enter")
        assert page.locator("#chart-scores-completeness table").is_visible()


@pytest.mark.slow
def test_a_mark_has_its_numbers(browser, golden_page):
    path, _ = golden_page
    with opened(browser, path) as page:
        label = page.locator("#chart-gaps-completeness .drawing svg path.mark title").nth(2).text_content()
        assert label is not None and "baseline" in label


@pytest.mark.slow
def test_on_paper_the_page_is_light_and_whole(browser, golden_page):
    path, _ = golden_page
    with opened(browser, path, color_scheme="dark") as page:
        paper = page.pdf(format="A4")
        assert paper.startswith(b"%PDF")
        page.emulate_media(media="print")
        assert not page.locator(".contents").is_visible()
        assert page.locator(".drawing svg").first.is_visible()


@pytest.mark.slow
def test_a_page_without_charts_has_their_tables(browser, tmp_path, journals):
    run = journals.table(tmp_path / "run", {"only": [[1], [2]]})
    path = tmp_path / "report.html"
    page_text = Html(Html.Options(charts=False)).render(summarize(run), run)["report.html"]
    path.write_text(page_text, encoding="utf-8")
    with opened(browser, path) as page:
        assert page.locator("figure.chart").count() == 0
        page.get_by_text("Answers on each step of the scale").first.click()
        assert page.get_by_text("whose numbers are in tables").is_visible()


# A page for each would take minutes; each alone is looked at without a browser in test_html.py.
PLAIN = [name for name in HOSTILE if name not in {"unbroken", "wide", "piled"}]
GROUPS = {
    " and ".join(PLAIN[at : at + 4]): [HOSTILE[name] for name in PLAIN[at : at + 4]] for at in range(0, len(PLAIN), 4)
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("text", [*map(" ¶ ".join, GROUPS.values()), HOSTILE["unbroken"], HOSTILE["piled"]],
                         ids=[*GROUPS, "unbroken", "piled"])  # fmt: skip
def test_nothing_that_an_agent_said_runs_or_hides_the_page(browser, tmp_path, journals, text):
    run = hostile_run(tmp_path / "run", journals, text=text, rows=2)
    path, names = written(tmp_path, run)
    with opened(browser, path, width=320) as page:
        assert page.evaluate("window.pwned") is None
        assert page.title() != ""
        assert page.locator("figure.chart").count() == len(names)
        assert page.locator("body img, body iframe, body style, body base, body meta, body object").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        assert page.get_by_role("heading", name="How to repeat it").is_visible()
        for link in page.locator("main a").all():
            assert (link.get_attribute("href") or "#").startswith(("#", "http:", "https:", "mailto:"))
