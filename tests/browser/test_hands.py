"""What a person does: gets in, finds, opens, reviews, comes back, watches a run; also without a mouse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.browser.looking import Tab, looking
from tests.browser.made import Held
from tests.viewer.serving import Viewer

FOCUSED = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    return [...document.querySelectorAll('*')].indexOf(one);
}"""
REACHABLE = """() => {
    const all = [...document.querySelectorAll('*')];
    const wanted = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
    return all.map((one, at) => [one, at]).filter(([one]) => {
        if (!one.matches(wanted) || one.disabled || !one.checkVisibility()) return false;
        if (one.type !== 'radio') return true;
        const group = [...document.getElementsByName(one.name)].filter((other) => other.form === one.form);
        return one === (group.find((other) => other.checked) ?? group[0]);
    }).map(([, at]) => at);
}"""
RING = """() => {
    const one = document.activeElement, style = getComputedStyle(one);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
}"""


@pytest.fixture
def own(results, tmp_path):
    """A viewer of one run that the test may write to."""
    shutil.copytree(results / "golden", tmp_path / "runs" / "golden")
    with Viewer(tmp_path / "runs") as running:
        yield running


def test_the_printed_address_lets_one_browser_in_once(browser, own):
    with looking(browser, own, inside=False) as tab:
        tab.page.goto(own.url)
        assert tab.page.url == f"{tab.home}/"
        assert tab.page.get_by_role("heading", name="Runs", level=1).is_visible()
        [cookie] = tab.page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["domain"]) == (True, "Strict", "127.0.0.1")
        assert tab.page.evaluate("document.cookie") == ""
        tab.page.reload()
        assert tab.page.get_by_role("heading", name="Runs", level=1).is_visible()
    other = browser.new_context()
    page = other.new_page()
    assert page.goto(own.url).status == 403
    assert "it works once" in page.inner_text("body")
    other.close()


def test_filter_open_review_and_reload(browser, own):
    own.enter()
    with looking(browser, own) as tab:
        page = tab.go("/runs/golden")
        page.get_by_role("link", name="All questions").click()
        page.get_by_label("Condition", exact=True).select_option("with-docs")
        page.get_by_label("Order").select_option("worst")
        page.get_by_role("button", name="Show").click()
        assert "condition=with-docs" in page.url
        assert page.get_by_label("Order").input_value() == "worst"
        first = page.locator("tbody [data-item]").first
        question = first.inner_text()
        first.click()
        assert page.locator("h1").inner_text() == question
        trial = page.locator("article.trial").first
        trial.get_by_text("Review", exact=True).click()
        form = trial.locator("form[data-review]")
        assert form.get_by_label("Reviewer").input_value() == "ann"
        form.locator("fieldset").first.get_by_label("4", exact=True).check()
        form.get_by_label("Note").fill("Right, but <b>terse</b>.")
        form.get_by_role("button", name="Save the review").click()
        form.get_by_text("Saved.").wait_for()
        page.reload()
        trial = page.locator("article.trial").first
        assert "Right, but <b>terse</b>." in trial.locator(".said-note").inner_text()
        assert trial.locator("table.scores thead").inner_text().split()[-1] == "ann"
        trial.get_by_text("Review", exact=True).click()
        assert trial.locator("fieldset").first.get_by_label("4", exact=True).is_checked()
        page.get_by_role("link", name="questions", exact=True).click()
        assert "condition=with-docs" in page.url, "back to the list as it was"
        tab.go("/runs/golden/reviews")
        assert page.get_by_role("heading", name="1 review").is_visible()
    [_, label] = (own_run(own) / "labels.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(label)["note"] == "Right, but <b>terse</b>."


def own_run(viewer: Viewer) -> Path:
    return Path(viewer.process.args[4]) / "golden"


@pytest.mark.parametrize(
    "path", ["/", "/runs/golden", "/runs/golden/samples", "/runs/golden/samples/1?at=1", "/runs/talk/samples/1?at=1"]
)
def test_tab_reaches_everything_in_the_order_of_the_page_and_shows_where_it_is(tab, path):
    page = tab.go(path)
    tab.unfold()
    wanted = page.evaluate(REACHABLE)
    reached = []
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None or at in reached:
            break
        reached.append(at)
        assert page.evaluate(RING), f"no ring: {page.evaluate('document.activeElement.outerHTML')[:200]}"
    missing = [page.evaluate(f"[...document.querySelectorAll('*')][{at}].outerHTML")[:160] for at in wanted
               if at not in reached]  # fmt: skip
    assert missing == []
    assert reached == sorted(reached)


def test_a_list_is_walked_opened_and_left_with_single_keys(tab):
    page = tab.go("/runs/golden/samples")
    rows = page.locator("tbody [data-item]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    assert focused(tab) == rows.nth(1).get_attribute("href")
    assert page.evaluate(RING)
    with page.expect_navigation():
        page.keyboard.press("Enter")
    assert "/samples/" in page.url and "at=2" in page.url
    with page.expect_navigation():
        page.keyboard.press("j")
    assert "at=3" in page.url
    with page.expect_navigation():
        page.keyboard.press("k")
    assert "at=2" in page.url
    with page.expect_navigation():
        page.keyboard.press("u")
    assert page.url == f"{tab.home}/runs/golden/samples"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    page.keyboard.type("jk/u")
    assert page.locator("#text").input_value() == "jk/u", "letters in a field are letters"
    page.keyboard.press("Escape")
    with page.expect_navigation():
        page.keyboard.press("u")
    assert page.url == f"{tab.home}/runs/golden"


def test_single_keys_can_be_switched_off_for_good(tab):
    page = tab.go("/runs/golden/samples")
    page.locator("footer summary").click()
    page.locator("#single-keys").uncheck()
    page.reload()
    page.keyboard.press("j")
    assert focused(tab) is None
    page.locator("footer summary").click()
    assert not page.locator("#single-keys").is_checked()


def test_two_runs_are_chosen_and_compared(tab):
    page = tab.go("/")
    button = page.get_by_role("button", name="Compare the two chosen")
    assert button.is_disabled()
    page.get_by_label("compare golden").check()
    page.get_by_label("compare early").check()
    assert page.get_by_label("compare killed").is_disabled(), "two are enough"
    button.click()
    assert page.locator("h1").is_visible()
    assert "/compare?run=" in page.url


@pytest.mark.parametrize("path", ["", "/samples"])
def test_a_page_of_a_run_that_goes_on_follows_it(browser, results, tmp_path, path):
    with Held(tmp_path / "held") as held, Viewer(held.folder / "results") as viewer:
        viewer.enter()
        with looking(browser, viewer) as tab:
            page = tab.go(f"/runs/{held.run.name}{path}")
            before = page.locator("main").inner_text()
            page.evaluate("window.same = true")
            held.let_go()
            if path:
                page.get_by_role("button", name="Show them").click(timeout=60_000)
            page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before,
                                   timeout=60_000)  # fmt: skip
            if not path:
                page.get_by_text("(done)").or_(page.get_by_text("· done")).first.wait_for(timeout=60_000)
            assert page.evaluate("window.same"), "renewed, not loaded again"


def test_colours_stay_as_they_were_chosen(browser, viewer):
    with looking(browser, viewer, color_scheme="light") as tab:
        page = tab.go("/runs/golden")
        background = "getComputedStyle(document.documentElement).backgroundColor"
        light = page.evaluate(background)
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(background) != light
        page.emulate_media(color_scheme="light")
        button = page.get_by_role("button", name="Colours")
        button.click()
        chosen = page.evaluate(background)
        tab.go("/runs/golden/samples")
        assert page.evaluate(background) == chosen


def focused(tab: Tab) -> str | None:
    return tab.page.evaluate("document.activeElement.getAttribute('href')")
