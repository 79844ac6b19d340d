"""The page of a metric over the runs of an experiment."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from tests.analysis.journals import table
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_pages import SCRIPT


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    for at in range(12):
        values = {"base": [[3.0 + (7 * at + row * row) % 5 / 4] for row in range(6)], "other": [[4.0]] * 6}
        created = f"2026-10-{1 + at:02}T12:00:00Z"
        table(folder / f"run-{at}", values, run=f"{at:08x}", created=created, name="nightly")
    table(folder / "else", {"base": [[1.0]]}, run="eeee0000", name="other")
    table(folder / "bad", {SCRIPT: [[1.0]]}, run="dddd0000", name=SCRIPT)
    with Viewer(folder) as running:
        yield running.enter()


def page(viewer, **query):
    """The page when every run has been added up."""
    for _ in range(200):
        heard = viewer.get(f"/history?{urlencode(query)}")
        if heard.status != 503 and "being computed" not in heard.text:
            return heard
        time.sleep(0.05)
    raise AssertionError(heard.text)


def test_all_runs_of_the_experiment_are_on_the_page(viewer):
    heard = page(viewer, run="run-3")
    assert heard.status == 200
    assert all(f"{at:08x}" in heard.text for at in range(12))
    assert "eeee0000" not in heard.text
    assert "base:" in heard.text
    assert "no change shown" in heard.text
    only = page(viewer, run="run-3", condition="other")
    assert "base: " not in only.text
    assert 'href="/history?run=run-3"' in viewer.get("/runs/run-3").text


def test_names_that_are_not_there_are_refused(viewer):
    assert page(viewer, run="run-3", metric="qualty").status == 400
    for name in ("../results", "", "nowhere"):
        heard = viewer.get(f"/history?{urlencode({'run': name})}")
        assert heard.status == 409
        assert "there is no such run" in heard.text


def test_names_of_strangers_stay_text(viewer):
    heard = page(viewer, run="bad")
    assert heard.status == 200
    assert SCRIPT not in heard.text
