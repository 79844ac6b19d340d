"""Several viewers on one run: each keeps its own index, in memory."""

from __future__ import annotations

import time

import pytest
from tests.analysis.journals import Script, resealed, table
from tests.karat_viewer.serving import Viewer

from karat.journal import RunLock

PAGES = ("", "/samples", "/samples?sort=worst", "/samples/1", "/state", "/reviews")


def asked_until(viewer: Viewer, path: str, words: str) -> str:
    """The page that holds the words; until it comes, nothing but pages and waiting pages."""
    end = time.monotonic() + 120
    while True:
        heard = viewer.get(path)
        assert heard.status in (200, 202), heard.text
        if heard.status == 200 and words in heard.text:
            return heard.text
        assert time.monotonic() < end, heard.text
        time.sleep(0.05)


def growing(folder) -> Script:
    script = Script(folder, samples=30, conditions=("baseline", "with-docs"))
    script.scored(0, "baseline", value=3)
    script._file.flush()
    return script


@pytest.mark.slow
def test_two_viewers_follow_one_run_that_goes_on(tmp_path):
    script = growing(tmp_path / "run")
    lock = RunLock(script.path)
    lock.acquire()
    with Viewer(script.path) as first, Viewer(script.path) as second:
        viewers = (first.enter(), second.enter())
        for row in range(30):
            for condition in script.conditions:
                script.scored(row, condition, value=row % 5 + 1)
            script._file.flush()
            for viewer in viewers:
                heard = viewer.get(f"/runs/run{PAGES[row % len(PAGES)]}")
                assert heard.status in (200, 202), heard.text
        script.end()
        lock.release()
        for viewer in viewers:
            asked_until(viewer, "/runs/run/samples/30", "Answer 29 with-docs 0.")
            asked_until(viewer, "/runs/run", "done")


@pytest.mark.slow
def test_a_journal_that_is_replaced_while_it_is_shown_is_read_again(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    whole = run.journal.read_bytes()
    with Viewer(run.path) as first, Viewer(run.path) as second:
        viewers = (first.enter(), second.enter())
        for viewer in viewers:
            asked_until(viewer, "/runs/run/samples/2", "Answer 1 baseline 0.")
        run.journal.write_bytes(resealed(whole.replace(b"Answer 1", b"A longer reply 1")))
        for viewer in viewers:
            asked_until(viewer, "/runs/run/samples/2", "A longer reply 1 baseline 0.")
        assert not (run.path / "cache").exists()


def test_missing_samples_are_told_on_every_page_of_the_run(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    with Viewer(run.path) as viewer:
        viewer.enter()
        assert asked_until(viewer, "/runs/run/samples", "Question 1?")
        (run.path / "samples.jsonl").unlink()
        for page in ("", "/samples", "/samples/1", "/find?id=0"):
            heard = viewer.get(f"/runs/run{page}")
            assert (heard.status, "samples.jsonl is missing" in heard.text) == (409, True), page
