"""Texts that want to be more than text, in every field: nothing runs, the page stands, the text is there to be read."""

from __future__ import annotations

import re

import pytest
from tests.browser.hostile import NAMES, TEXTS
from tests.document.hostile import written

from karat.document.text import LONGEST, visible

PARTS = 6
ORDER = list(TEXTS)


def folded(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.mark.parametrize("part", range(PARTS))
def test_a_question_whose_every_field_is_hostile_is_shown_and_nothing_of_it_runs(tab, part):
    for at in range(part, len(ORDER), PARTS):
        text = written(TEXTS[ORDER[at]])
        for view in ("plain", "rendered", "diff") if at % 5 == 0 else ("plain", "rendered"):
            page = tab.go(f"/runs/hostile/samples/{at + 1}?at={at + 1}&view={view}")
            tab.unfold()
            where = (ORDER[at], view)
            assert tab.hit() is None, where
            assert tab.foreign() == [], where
            assert page.get_by_text("These pages are served by your own machine").is_visible(), where
            assert tab.sideways(320) <= 0, where
            if view == "plain":
                shown = folded(page.evaluate("document.querySelector('main').textContent"))
                for words in (text[:LONGEST], text[:400]):
                    assert folded(visible(words)) in shown, where
        tab.quiet()


def test_what_it_is_made_to_do_by_hand_does_nothing_else(tab):
    """Everything on a page is pressed; no link of a text leads to a script, a file or this server."""
    for name in ("link", "link in capitals", "link to a file", "attribute of ours", "form", "clobbering", "focus"):
        at = ORDER.index(name) + 1
        page = tab.go(f"/runs/hostile/samples/{at}")
        tab.unfold()
        for link in page.locator("article.trial .md a").all():
            assert re.match(r"(https?|mailto):", link.get_attribute("href") or "https:"), name
            assert {"noopener", "nofollow"} <= set((link.get_attribute("rel") or "noopener nofollow").split())
        for box in page.locator("article.trial .md, article.trial pre, .golden, h1").all()[:20]:
            box.hover(force=True, timeout=5000)
        page.keyboard.press("Escape")
        assert tab.hit() is None, name


@pytest.mark.parametrize("path", ["", "/samples", "/samples?sort=worst", "/reviews"])
def test_names_that_are_hostile_are_shown_everywhere(tab, path):
    page = tab.go(f"/runs/hostile{path}")
    tab.unfold()
    assert tab.hit() is None
    assert tab.foreign() == []
    assert folded(visible(written(NAMES)[:40])) in folded(page.evaluate("document.body.textContent"))


def test_a_review_of_a_hostile_answer_is_saved_by_our_form_alone(tab):
    page = tab.go(f"/runs/hostile/samples/{ORDER.index('attribute of ours') + 1}")
    forms = page.locator("form[data-review]")
    assert forms.count() == 1
    assert forms.first.get_attribute("data-review") == "/runs/hostile/labels"
