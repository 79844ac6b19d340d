"""Several viewers on one run: none breaks the other's pages, and none is shown what somebody else left in the cache."""

from __future__ import annotations

import signal
import sqlite3
import time

import pytest
from tests.analysis.journals import Script, table
from tests.viewer.serving import Viewer
from tests.viewer.test_index import content, made

from karat.journal import RunLock
from karat.records import Reply
from karat.viewer.index import Index
from karat.viewer.schema import FORMAT_VERSION
from karat.viewer.sharing import alone, held, is_passing

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
        run = script.end()
        lock.release()
        for viewer in viewers:
            asked_until(viewer, "/runs/run/samples/30", "Answer 29 with-docs 0.")
            asked_until(viewer, "/runs/run", "done")
    fresh = Index(run, elsewhere=tmp_path)
    fresh.path = tmp_path / "fresh.sqlite"
    fresh.catch_up()
    assert content(made(run, tmp_path)) == content(fresh)


@pytest.mark.slow
def test_a_viewer_that_is_killed_leaves_an_index_that_others_go_on_with(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("baseline",), repetitions=400)
    for repetition in range(400):
        for row in range(2):
            script.answer(row, "baseline", repetition, reply=Reply(text="word " * 10_000))
            script.score(row, "baseline", repetition, value=3)
    run = script.end()
    with Viewer(run.path) as first, Viewer(run.path) as second:
        first.enter()
        second.enter()
        first.get("/runs/run/samples")
        first.stop(signal.SIGKILL)
        asked_until(second, "/runs/run/samples", "n 400")
    fresh = Index(run, elsewhere=tmp_path)
    fresh.path = tmp_path / "fresh.sqlite"
    fresh.catch_up()
    assert content(made(run, tmp_path)) == content(fresh)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["garbage", "places", "table"])
def test_two_viewers_make_a_damaged_index_anew(tmp_path, change):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    index = made(run, tmp_path)
    if change == "garbage":
        index.path.write_bytes(b"x" * 50_000)
    else:
        base = sqlite3.connect(index.path)
        base.executescript("DROP TABLE cells" if change == "table" else "UPDATE trials SET answer_at = answer_at + 1")
        base.close()
    with Viewer(run.path) as first, Viewer(run.path) as second:
        viewers = (first.enter(), second.enter())
        for number in range(20):
            heard = viewers[number % 2].get(f"/runs/run{PAGES[number % len(PAGES)]}")
            assert heard.status in (200, 202), heard.text
        for viewer in viewers:
            asked_until(viewer, "/runs/run/samples/2", "Answer 1 baseline 0.")


def test_an_index_is_not_removed_while_it_is_read_and_filled_by_one_at_a_time(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    first, second = made(run, tmp_path), Index(run, elsewhere=tmp_path)
    with first.reading() as base:
        assert not second.discard()
        assert base.execute("SELECT count(*) FROM samples").fetchone() == (2,)
        assert first.path.exists()
    assert second.discard()
    assert not first.path.exists()
    with alone(first.path.with_name(f"{first.path.name}.filled"), seconds=0) as mine:
        assert mine
        assert not second.catch_up()
        assert not second.progress().finished
    assert second.catch_up()
    assert second.progress().finished


def test_a_lock_is_shared_or_whole(tmp_path):
    lock = tmp_path / "lock"
    with held(lock), held(lock), alone(lock, seconds=0) as mine:
        assert not mine
    with alone(lock, seconds=0) as mine, alone(lock, seconds=0) as yours:
        assert (mine, yours) == (True, False)
    with alone(lock, seconds=0), pytest.raises(sqlite3.OperationalError) as busy, held(lock, seconds=0):
        pass
    assert is_passing(busy.value)
    lock.unlink()
    lock.symlink_to(tmp_path / "target")
    with pytest.raises(sqlite3.OperationalError, match="lock cannot be opened"), held(lock):
        pass
    assert not (tmp_path / "target").exists()


def beside(index: Index, ending: str):
    return index.path.with_name(index.path.name + ending)


def test_a_viewer_that_was_stopped_while_it_filled_the_index_is_not_waited_for_without_end(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    index = Index(run, elsewhere=tmp_path)
    index.patience = 0
    with alone(beside(index, ".filled"), seconds=0) as mine:
        assert mine
        for _ in range(9):
            assert not index.catch_up()
            assert index.note is None
        assert index.catch_up()
    assert index.note is not None
    assert index.path.parent == tmp_path
    assert index.progress().finished


def test_an_old_index_that_somebody_holds_is_named_as_what_is_in_the_way(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    index = made(run, tmp_path)
    with sqlite3.connect(index.path) as base:
        base.execute("UPDATE meta SET value = 'other' WHERE name = 'run'")
    base.close()
    index.patience = 0
    with held(beside(index, ".held")), pytest.raises(sqlite3.DatabaseError, match="another process holds the old"):
        index.catch_up()
    assert index.catch_up()


def test_an_older_index_that_its_viewer_has_open_is_left_and_locks_are_never_removed(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    cache = run.path / "cache"
    cache.mkdir()
    for name in ("index-1.sqlite", "index-1.sqlite-wal", "index-2.sqlite", "index-2.sqlite.filled"):
        (cache / name).write_bytes(b"x")
    with held(cache / "index-1.sqlite.held"), held(cache / "index-2.sqlite.held"):
        pass
    with held(cache / "index-1.sqlite.held"):
        assert made(run, tmp_path).progress().finished
    left = {file.name for file in cache.iterdir() if f"-{FORMAT_VERSION}." not in file.name}
    assert left == {"index-1.sqlite", "index-1.sqlite-wal", *(f"index-{n}.sqlite.held" for n in (1, 2)),
                    "index-2.sqlite.filled"}  # fmt: skip


def test_indexes_of_older_versions_are_removed_and_newer_ones_left(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    cache = run.path / "cache"
    cache.mkdir()
    newer = f"index-{FORMAT_VERSION + 1}.sqlite"
    for name in ("index.sqlite", "index.sqlite-wal", "index-1.sqlite", newer, f"{newer}-wal", "index-x.sqlite"):
        (cache / name).write_bytes(b"x")
    assert made(run, tmp_path).progress().finished
    left = {file.name for file in cache.iterdir()} - {f"index-{FORMAT_VERSION}.sqlite"}
    assert {name for name in left if f"-{FORMAT_VERSION}." not in name} == {newer, f"{newer}-wal", "index-x.sqlite"}


def test_missing_samples_are_told_on_every_page_of_the_run(tmp_path):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    with Viewer(run.path) as viewer:
        viewer.enter()
        assert asked_until(viewer, "/runs/run/samples", "Question 1?")
        (run.path / "samples.jsonl").unlink()
        for page in ("", "/samples", "/samples/1", "/find?id=0"):
            heard = viewer.get(f"/runs/run{page}")
            assert (heard.status, "samples.jsonl is missing" in heard.text) == (409, True), page
