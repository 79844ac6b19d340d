"""What is kept of a run that has ended: the same as computing gives, or nothing."""

from __future__ import annotations

import os
import shutil
import time

import msgspec
import pytest
from tests.analysis.journals import Script, resealed, table

import karat
from karat.analysis import Summary, summarize
from karat.analysis.cached import cached_summary, summarize_cached
from karat.analysis.parts import from_json
from karat.index.cache import LARGE, CacheFile, _code, _state, is_large
from karat.journal import RunFolder, RunLock
from karat.records import Reply


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """This user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "karat"


def made(folder) -> RunFolder:
    return table(folder, {"baseline": [[3.0], [4.0]], "with-docs": [[4.0], [5.0]]})


@pytest.fixture(scope="module")
def settled(tmp_path_factory) -> RunFolder:
    """A run that nobody has changed for so long that a change would be seen."""
    run = made(tmp_path_factory.mktemp("settled") / "run")
    time.sleep(2.1)
    return run


@pytest.fixture
def run(settled) -> RunFolder:
    return RunFolder.open(settled.path)


def kept(cache):
    return sorted(cache.iterdir()) if cache.exists() else []


def test_what_is_kept_is_what_computing_gives(run, cache):
    assert cached_summary(run, at_least=0) is None
    summary = summarize_cached(run, at_least=0)
    assert cached_summary(run, at_least=0) == summary == summarize(run)
    (file,) = kept(cache)
    assert (file.stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o400, 0o700)
    assert summarize_cached(run, at_least=0) == summary
    assert kept(cache) == [file]
    assert not (run.path / "cache").exists()


def test_of_a_small_run_nothing_is_kept(run, cache):
    assert summarize_cached(run) == summarize(run)
    assert not is_large(run)
    assert is_large(run, at_least=run.journal.stat().st_size)
    assert kept(cache) == []


def test_the_summary_of_a_study_is_kept_however_small_it_is(study_run, study_summary, cache):
    newest = max(file.stat().st_ctime for file in study_run.path.rglob("*"))
    time.sleep(max(0.0, newest + 2.1 - time.time()))
    first = summarize_cached(study_run)
    assert msgspec.json.encode(first) == msgspec.json.encode(study_summary)
    (file,) = kept(cache)
    assert file.suffix == ".summary"
    assert cached_summary(study_run) == from_json(msgspec.json.encode(first), Summary)


@pytest.mark.slow
def test_a_comparison_of_studies_computes_their_summary_once(study_run, cache):
    newest = max(file.stat().st_ctime for file in study_run.path.rglob("*"))
    time.sleep(max(0.0, newest + 2.1 - time.time()))
    sides = list(study_run.info.conditions)[:2]
    first = karat.compare(study_run, *sides)
    (file,) = kept(cache)
    assert file.suffix == ".summary"
    assert karat.compare(study_run, *sides).to_builtins() == first.to_builtins()
    assert karat.compare(study_run, *sides, level=0.9).level == 0.9
    assert kept(cache) == [file]


def test_of_a_kind_that_others_bring_nothing_is_kept(tmp_path, cache):
    path = made(tmp_path / "run").path / "run.json"
    path.write_text(path.read_text().replace('"golden"', '"words"'))
    time.sleep(2.1)
    run = RunFolder.open(path.parent)
    assert run.info.kind == "words"
    assert summarize_cached(run, at_least=0) == summarize(run)
    assert kept(cache) == []


def test_a_run_with_64_mb_of_journal_is_large(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("baseline",))
    for row in range(2):
        script.answer(row, "baseline", reply=Reply(text="x" * (LARGE // 2)))
    assert is_large(script.end())


@pytest.mark.parametrize(
    "options",
    [
        {"scorings": {"judge": "0f0f"}},
        pytest.param({"allow_code": True}, marks=pytest.mark.needs_kind("conversation")),
        {"baseline": "with-docs"},
        {"pairs": "all"},
    ],
)
def test_only_the_usual_summary_is_kept_and_taken(run, cache, options):
    assert summarize_cached(run, at_least=0, **options) == summarize(run, **options)
    assert kept(cache) == []


def test_of_a_run_that_goes_on_nothing_is_kept_or_taken(run, cache):
    lock = RunLock(run.path)
    lock.acquire()
    summarize_cached(run, at_least=0)
    assert kept(cache) == []
    lock.release()
    summarize_cached(run, at_least=0)
    assert cached_summary(run, at_least=0) is not None
    lock.acquire()
    assert cached_summary(run, at_least=0) is None
    lock.release()


def test_of_a_run_that_changed_just_now_nothing_is_kept(tmp_path, cache):
    run = made(tmp_path / "run")
    assert summarize_cached(run, at_least=0) == summarize(run)
    assert kept(cache) == []


def test_every_change_of_the_run_is_another_state_whatever_the_time_says(tmp_path):
    run = made(tmp_path / "run")
    states = [_state(run)]
    for name in ("journal.jsonl", "samples.jsonl", "run.json"):
        path = run.path / name
        before, data = path.stat(), path.read_bytes()
        with path.open("r+b") as file:
            file.seek(len(data) // 2)
            file.write(bytes([data[len(data) // 2] ^ 1]))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size
        states.append(_state(run))
    with run.journal.open("ab") as file:
        file.write(resealed(b'{"event":"end","at":"","reason":"budget","seconds":1}\n'))
    states.append(_state(run))
    (run.path / "studies").mkdir()
    for text in ("study: one", "study: two"):
        (run.path / "studies" / "one.yaml").write_text(text)
        states.append(_state(run))
    assert len(set(states)) == len(states) == 7


def test_a_copy_or_a_stranger_s_run_brings_nothing_that_is_believed(run, tmp_path, cache):
    summarize_cached(run, at_least=0)
    shutil.copytree(run.path, tmp_path / "copy")
    shutil.copytree(cache, tmp_path / "copy" / "cache")
    assert cached_summary(RunFolder.open(tmp_path / "copy"), at_least=0) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data.replace(b"baseline", b"basel1ne", 1),
        lambda data: b"",
    ],
)
def test_a_damaged_file_is_made_anew(run, cache, damage):
    summary = summarize_cached(run, at_least=0)
    (file,) = kept(cache)
    data = damage(file.read_bytes())
    file.unlink()
    file.write_bytes(data)
    assert cached_summary(run, at_least=0) is None
    assert summarize_cached(run, at_least=0) == summary
    assert cached_summary(run, at_least=0) == summary


@pytest.mark.parametrize("place", ["pipe", "link", "folder"])
def test_what_is_no_plain_file_is_not_read(run, cache, tmp_path, place):
    summary = summarize_cached(run, at_least=0)
    (file,) = kept(cache)
    file.rename(tmp_path / "elsewhere")
    if place == "pipe":
        os.mkfifo(file)
    elif place == "link":
        file.symlink_to(tmp_path / "elsewhere")
    else:
        file.mkdir()
    assert cached_summary(run, at_least=0) is None
    assert summarize_cached(run, at_least=0) == summary


@pytest.mark.parametrize("home", ["missing", "relative", "a file", "writable by others", "a link"])
def test_without_a_cache_of_this_user_alone_nothing_is_kept(run, cache, tmp_path, monkeypatch, home):
    if home in ("missing", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", "here")
        monkeypatch.setenv("HOME", "nowhere")
    elif home == "a file":
        cache.parent.write_text("")
    else:
        cache.parent.mkdir()
        (tmp_path / "theirs").mkdir(mode=0o777)
        (tmp_path / "theirs").chmod(0o777)
        (tmp_path / "theirs").rename(cache) if home != "a link" else cache.symlink_to(tmp_path / "theirs")
    assert summarize_cached(run, at_least=0) == summarize(run)
    assert cached_summary(run, at_least=0) is None
    assert not list(tmp_path.rglob("*.summary"))


def test_the_oldest_files_go_and_what_killed_writers_left(run, cache):
    cache.mkdir(parents=True)
    for name, size, age in [("old", 2**31, 9000), ("new", 2**10, 10), (".left", 1, 9000), (".young", 1, 10)]:
        with (cache / name).open("wb") as file:
            file.truncate(size)
        os.utime(cache / name, (time.time() - age,) * 2)
    CacheFile(run, "x", at_least=0).write(b"kept")
    assert CacheFile(run, "x", at_least=0).read() == b"kept"
    assert {file.name for file in kept(cache)} - {"new", ".young"} == {file.name for file in cache.glob("*.x")}
    assert {"new", ".young"} <= {file.name for file in kept(cache)}


@pytest.mark.parametrize("package", ["code", "beside"])
def test_code_is_known_by_its_files_and_not_once_they_changed(tmp_path, package):
    for name in ("beside", "code"):
        file = tmp_path / name / "part" / "one.py"
        file.parent.mkdir(parents=True)
        file.write_text("x = 1")
    roots = tmp_path / "code", tmp_path / "beside"
    later = file.stat().st_ctime_ns + 3 * 10**9
    first = _code(*roots, started=later)
    assert first.startswith(karat.__version__)
    os.utime(file := tmp_path / package / "part" / "one.py", ns=(0, 0))
    assert _code(*roots, started=file.stat().st_ctime_ns) == ""
    assert _code(*roots, started=later + 60 * 10**9) not in ("", first)
