"""The pictures of the documentation, from the pages as they are: `pytest tests/browser/test_pictures.py --pictures`."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest
from tests.browser.looking import looking, looking_at_a_file
from tests.browser.made import ROOT
from tests.karat_viewer.serving import Viewer

from karat.analysis import summarize
from karat.exports.html import Html
from karat.journal import RunFolder

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150_000
STUDY = """
    name: framing
    dataset: {kind: study, path: framing, per_arm: 30}
    agent: {type: floor}
    conditions: {empty: {preset: empty}, human: {preset: human}}
    execution: {num_repetitions: 1}
"""
PAGES = {  # name → address, and what stands at the top
    "view-run": ("/runs/support-kb", None),
    "view-questions": ("/runs/support-kb/samples?sort=gap", None),
    "view-question": ("/runs/support-kb/samples/23?at=23", None),
    "view-conversation": ("/runs/convfinqa/samples/2?at=2", "#turns"),
    "view-study": ("/runs/framing/studies/framing", None),
    "view-comparison": ("/compare?run=support-kb&a=baseline&b=with-docs", None),
}


def test_pictures_are_small_enough_to_be_kept():
    assert {path.name for path in IMAGES.glob("*.png") if path.stat().st_size > MOST_BYTES} == set()


@pytest.mark.skipif("not config.option.pictures", reason="writes docs/images: --pictures switches it on")
def test_pictures_are_taken_on_demand(browser, tmp_path):
    (tmp_path / "study.yaml").write_text(dedent(STUDY), encoding="utf-8")
    examples = ROOT / "examples"
    results = tmp_path / "results"
    for name, file in {
        "support-kb": examples / "support-kb" / "experiment.yaml",
        "convfinqa": examples / "convfinqa" / "experiment.yaml",
        "framing": tmp_path / "study.yaml",
    }.items():
        subprocess.run(
            [sys.executable, "-m", "karat", "run", str(file), "--results", str(tmp_path / name), "--quiet"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        [run] = (tmp_path / name).glob("[!.]*")
        results.mkdir(exist_ok=True)
        run.rename(results / name)
    with Viewer(results) as viewer, looking(browser, viewer.enter(), width=1200, color_scheme="light") as tab:
        for name, (path, top) in PAGES.items():
            page = tab.go(path)
            page.set_viewport_size({"width": 1200, "height": 800})
            if top:
                page.locator(top).evaluate("one => one.scrollIntoView()")
            taken(page, name)
    run = RunFolder.open(results / "support-kb")
    report = tmp_path / "report.html"
    report.write_text(Html().render(summarize(run), run)["report.html"], encoding="utf-8")
    with looking_at_a_file(browser, report, width=1200, color_scheme="light") as tab:
        tab.page.set_viewport_size({"width": 1200, "height": 800})
        taken(tab.page, "report")


def taken(page, name: str) -> None:
    page.wait_for_timeout(300)  # of a scroll that is smooth
    picture = page.screenshot(path=IMAGES / f"{name}.png", animations="disabled")
    assert len(picture) <= MOST_BYTES, f"{name}.png has {len(picture):,} bytes"
