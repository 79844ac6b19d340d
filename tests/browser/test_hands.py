"""What a person does: gets in, finds, opens, reviews, comes back, watches a run; also without a mouse."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.browser.looking import Tab, looking
from tests.browser.made import Held
from tests.karat_viewer.serving import Viewer

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


@pytest.fixture
def own_turns(results, tmp_path):
    """The same with runs whose turns are reviewed."""
    for name in ("talk", "study"):
        shutil.copytree(results / name, tmp_path / "runs" / name)
    with Viewer(tmp_path / "runs") as running:
        yield running.enter()


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


def own_run(viewer: Viewer, name: str = "golden") -> Path:
    return Path(viewer.process.args[4]) / name


def labels_of(viewer: Viewer, name: str) -> list[dict]:
    lines = (own_run(viewer, name) / "labels.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    ours = ("event", "at", "trial", "crc")
    return [{key: value for key, value in json.loads(line).items() if key not in ours} for line in lines]


def test_a_turn_is_judged_with_keys_alone_and_stands_beside_karats_verdict(browser, own_turns):
    with looking(browser, own_turns, width=320) as tab:
        page = tab.go("/runs/talk/samples/2")
        turn = page.locator("article.turn").nth(1)
        turn.locator("details.review > summary").first.focus()
        page.keyboard.press("Enter")
        for key in ("Tab", "Tab", "ArrowDown", "ArrowDown", "Tab"):  # past the name, to `wrong`, to the diagnosis
            page.keyboard.press(key)
        page.keyboard.type("sca")
        page.keyboard.press("Tab")
        page.keyboard.type("A hundred times <b>too much</b>.")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        turn.get_by_text("Saved.").wait_for()
        page.reload()
        turn = page.locator("article.turn").nth(1)
        assert "ann: wrong" in turn.locator("tbody tr").nth(1).inner_text()
        assert "ann: scale" in turn.locator("tbody tr").nth(1).inner_text()
        assert "A hundred times <b>too much</b>." in page.locator(".said-note").inner_text()
        tab.go("/runs/talk/reviews")
        assert page.get_by_role("heading", name="1 review").is_visible()
        assert "right or wrong" in page.locator("table").first.inner_text()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/samples/2#turn-2")
    assert labels_of(own_turns, "talk") == [
        {"who": "ann", "turn": 1, "note": "A hundred times <b>too much</b>.", "verdict": "wrong", "diagnosis": "scale"}
    ]


def test_readings_are_confirmed_and_corrected_and_what_is_no_answer_is_said(browser, own_turns):
    with looking(browser, own_turns) as tab:
        page = tab.go("/runs/study/samples/4")
        replies = page.locator("article.reply")
        for at in (0, 1):
            replies.nth(at).get_by_text("Review", exact=False).first.click()
        first = replies.nth(0).get_by_label("My reading")
        first.select_option(label=next(one for one in first.locator("option").all_inner_texts() if "as karat" in one))
        replies.nth(1).get_by_label("My reading").select_option("refused")
        for at in (0, 1):
            replies.nth(at).get_by_role("button", name="Save the review").click()
            replies.nth(at).get_by_text("Saved.").wait_for()
        page.reload()
        assert "ann: refused" in page.locator("article.reply").nth(1).locator("dl.read").inner_text()
        tab.go("/runs/study/samples?study=beauty_contest")
        group = page.locator("tbody [data-item]").first.get_attribute("href").partition("?")[0]
        tab.go(f"{group}?seat=0")
        reply = page.locator("article.reply").first
        reply.get_by_text("Review", exact=False).first.click()
        reply.get_by_label("another answer", exact=False).last.fill("4000")
        assert reply.get_by_label("My reading").input_value() == "typed"
        reply.get_by_role("button", name="Save the review").click()
        reply.get_by_text("Not saved: number: the study would not read that as an answer (out of range)").wait_for()
        [complaint] = tab.complaints  # Chromium tells of every answer that is none
        assert "422" in complaint
        tab.complaints.clear()
        reply.get_by_label("another answer", exact=False).last.fill("40")
        reply.get_by_role("button", name="Save the review").click()
        reply.get_by_text("Saved.", exact=True).wait_for()
        tab.go("/runs/study/reviews")
        assert page.get_by_role("heading", name="3 reviews").is_visible()
    confirmed, refused, typed = labels_of(own_turns, "study")
    assert (list(confirmed["answers"]), refused["unread"]) == (["choice"], {"choice": "refused"})
    assert typed["answers"] == {"number": 40.0}


def test_all_flips_are_walked_with_keys(tab):
    page = tab.go("/compare?run=golden&a=baseline&b=with-docs")
    page.set_viewport_size({"width": 320, "height": 900})
    tab.go("/compare/flips?run=golden&a=baseline&b=with-docs&metric=completeness&order=best")
    assert page.evaluate(REACHABLE)
    page.keyboard.press("j")
    path = focused(tab)
    assert path.startswith("/runs/golden/samples/")
    assert page.evaluate(RING)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{path}")
    page.go_back()
    page.keyboard.press("u")
    page.wait_for_url("**/compare?run=golden&a=baseline&b=with-docs")


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
    button = page.get_by_role("button", name="Compare the two selected")
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
        button = page.get_by_role("button", name="Theme")
        button.click()
        chosen = page.evaluate(background)
        tab.go("/runs/golden/samples")
        assert page.evaluate(background) == chosen


def focused(tab: Tab) -> str | None:
    return tab.page.evaluate("document.activeElement.getAttribute('href')")
