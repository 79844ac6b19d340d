"""What is left of a large run's summary: the same as adding up gives, or nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import msgspec
import pytest
from tests.analysis.journals import Script, resealed, table

from karat.analysis import Summary, summarize
from karat.analysis.kept import is_large, kept, summarize_and_keep
from karat.analysis.program import program
from karat.analysis.seals import is_sealed, seal
from karat.journal import RunFolder, RunLock
from karat.records import Reply


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """Where this user's key is."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "karat" / "seal.key"


def large(folder) -> RunFolder:
    """Two answers, of 13 MB each."""
    script = Script(folder, samples=2, conditions=("baseline",))
    for row in range(2):
        script.answer(row, "baseline", reply=Reply(text="x" * 13_000_000))
        script.score(row, "baseline", value=row + 3)
    return script.end()


def cached(run: RunFolder):
    return run.path / "cache" / "summary.json"


def test_what_is_left_is_what_adding_up_gives(tmp_path, state):
    run = large(tmp_path / "run")
    assert is_large(run)
    assert kept(run) is None
    summary = summarize_and_keep(run)
    assert kept(run) == summary == summarize(run)
    assert state.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in cached(run).parent.iterdir()] == ["summary.json"]
    again = summarize_and_keep(run)
    assert kept(run) == again == summary


def test_the_command_leaves_it(tmp_path):
    run = large(tmp_path / "run")
    done = subprocess.run([sys.executable, "-m", "karat", "report", str(run.path)], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert kept(run) == summarize(run)


def test_a_copy_of_the_folder_is_known_by_its_content(tmp_path):
    run = large(tmp_path / "run")
    summary = summarize_and_keep(run)
    shutil.copytree(run.path, tmp_path / "copy")
    assert kept(RunFolder.open(tmp_path / "copy")) == summary


def test_of_a_run_that_is_added_up_at_once_nothing_is_left(tmp_path, state):
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    assert summarize_and_keep(run) == summarize(run)
    assert kept(run) is None
    assert not state.exists()
    assert not cached(run).parent.exists()


@pytest.mark.parametrize("asked", [{"scorings": {"judge": "0f0f"}}, {"allow_code": True}])
def test_only_the_usual_summary_is_left(tmp_path, asked):
    run = large(tmp_path / "run")
    summarize_and_keep(run, **asked)
    assert kept(run) is None


def test_of_a_run_that_goes_on_nothing_is_left_or_taken(tmp_path):
    run = large(tmp_path / "run")
    lock = RunLock(run.path)
    lock.acquire()
    summarize_and_keep(run)
    assert not cached(run).exists()
    lock.release()
    summarize_and_keep(run)
    assert kept(run) is not None
    lock.acquire()
    assert kept(run) is None
    lock.release()


@pytest.mark.parametrize("file", ["journal.jsonl", "samples.jsonl", "run.json"])
def test_a_byte_that_was_changed_in_the_run_is_seen_whatever_the_time_says(tmp_path, file):
    run = large(tmp_path / "run")
    summarize_and_keep(run)
    path = run.path / file
    told = path.stat()
    whole = path.read_bytes()
    with path.open("r+b") as changed:
        changed.seek(len(whole) - 10)
        changed.write(whole[-10:-9].swapcase() if whole[-10:-9].isalpha() else b" ")
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert path.stat().st_size == told.st_size
    assert kept(run) is None


def test_a_run_that_went_on_is_added_up_anew(tmp_path):
    run = large(tmp_path / "run")
    summarize_and_keep(run)
    with run.journal.open("ab") as file:
        file.write(resealed(b'{"event":"end","at":"","reason":"done","seconds":1}\n'))
    assert kept(run) is None
    assert summarize_and_keep(run) == kept(run)


def told_otherwise(data: bytes) -> bytes:
    """The file with another headline, as somebody would write it who has not the key."""
    head, _, body = data.partition(b"\n")
    summary = msgspec.json.decode(body, type=Summary)
    return head + b"\n" + msgspec.json.encode(msgspec.structs.replace(summary, headline="<script>alert(1)</script>"))


def without_seal(data: bytes) -> bytes:
    head, _, body = data.partition(b"\n")
    return msgspec.json.encode({**msgspec.json.decode(head), "seal": ""}) + b"\n" + body


def of_other_code(data: bytes) -> bytes:
    """As another version would have written it: whole, and sealed."""
    head, _, body = data.partition(b"\n")
    named = {**msgspec.json.decode(head), "program": "00" * 32, "seal": ""}
    told = seal(msgspec.json.encode(named) + b"\n" + body)
    return msgspec.json.encode({**named, "seal": told}) + b"\n" + body


@pytest.mark.parametrize(
    "spoilt",
    [
        told_otherwise,
        without_seal,
        of_other_code,
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data.partition(b"\n")[2],
        lambda data: data.replace(b"\n", b"", 1),
        lambda data: b"[" * 100_000 + b"\n",
        lambda data: b"\xff\n\xfe",
        lambda data: b"null\nnull",
        lambda data: b'{"format":1,"program":"","content":"","state":"","seal":"\\u00e9"}\n{}',
        lambda data: b"",
    ],
)
def test_a_file_that_is_not_as_karat_left_it_is_passed_over(tmp_path, spoilt):
    run = large(tmp_path / "run")
    summary = summarize_and_keep(run)
    cached(run).write_bytes(spoilt(cached(run).read_bytes()))
    assert kept(run) is None
    assert summarize_and_keep(run) == kept(run) == summary


def test_what_somebody_else_has_sealed_is_passed_over(tmp_path, monkeypatch):
    run = large(tmp_path / "run")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    summarize_and_keep(run)
    assert kept(run) is not None
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    assert kept(run) is None
    assert seal(b"x")
    assert kept(run) is None


def test_the_summary_of_another_run_is_passed_over(tmp_path):
    run, other = large(tmp_path / "run"), large(tmp_path / "other")
    with other.journal.open("ab") as file:
        file.write(resealed(b'{"event":"end","at":"","reason":"budget","seconds":1}\n'))
    summarize_and_keep(other)
    (run.path / "cache").mkdir()
    shutil.copy(cached(other), cached(run))
    assert kept(other) is not None
    assert kept(run) is None


@pytest.mark.parametrize("where", ["folder", "file", "pipe", "plain file", "folder in place of the file", "too long"])
def test_a_cache_that_leads_elsewhere_is_neither_read_nor_written(tmp_path, where):
    run = large(tmp_path / "run")
    summary = summarize_and_keep(run)
    target = tmp_path / "target"
    (run.path / "cache").rename(target)
    before = (target / "summary.json").read_bytes()
    if where == "folder":
        (run.path / "cache").symlink_to(target)
    elif where == "plain file":
        (run.path / "cache").write_text("not a folder")
    else:
        (run.path / "cache").mkdir()
    if where == "file":
        cached(run).symlink_to(target / "summary.json")
    elif where == "pipe":
        os.mkfifo(cached(run))
    elif where == "folder in place of the file":
        cached(run).mkdir()
    elif where == "too long":
        with cached(run).open("wb") as file:
            file.truncate(2**40)
    assert kept(run) is None
    assert summarize_and_keep(run) == summary
    assert (target / "summary.json").read_bytes() == before
    left = {file.name for file in (run.path / "cache").iterdir()} if where != "plain file" else {"summary.json"}
    assert left == {"summary.json"}


@pytest.mark.parametrize("key", ["read by others", "too short", "link", "no folder"])
def test_a_key_that_is_not_the_users_alone_seals_nothing(tmp_path, state, key):
    told = seal(b"words")
    assert told is not None
    assert is_sealed(b"words", told)
    assert not is_sealed(b"others", told)
    if key == "read by others":
        state.chmod(0o644)
    elif key == "too short":
        state.write_bytes(b"")
    elif key == "link":
        state.rename(tmp_path / "elsewhere")
        state.symlink_to(tmp_path / "elsewhere")
    else:
        shutil.rmtree(state.parent)
        state.parent.write_text("no folder")
    assert not is_sealed(b"words", told)
    # One that was not written to its end, or that others could read, is made anew; what is no file is left alone.
    anew = key in ("too short", "read by others")
    again = seal(b"words")
    assert (again is not None) == anew
    assert again != told
    run = large(tmp_path / "run")
    summarize_and_keep(run)
    assert (kept(run) is not None) == anew


@pytest.mark.parametrize("home", ["missing", "relative", "somebody else's", "a file"])
def test_where_the_user_has_no_home_no_key_is_made(tmp_path, monkeypatch, home):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("no folder")
    places = {"missing": str(tmp_path / "none"), "relative": "here", "a file": str(tmp_path / "file")}
    monkeypatch.setenv("HOME", places.get(home, "/proc/1" if os.geteuid() else "/nowhere"))
    (tmp_path / "here").mkdir()
    assert seal(b"words") is None
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "here"]


def test_a_home_that_is_there_keeps_the_key(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert seal(b"words")
    assert (tmp_path / ".local" / "state" / "karat" / "seal.key").is_file()


def test_code_is_known_by_its_files_and_not_once_they_changed(tmp_path):
    file = tmp_path / "part" / "one.py"
    file.parent.mkdir()
    file.write_text("x = 1")
    changed = file.stat().st_ctime_ns
    later = changed + 3 * 10**9
    told = program(tmp_path, begun=later)
    assert len(told) == 64
    assert program(tmp_path, begun=changed) == program(tmp_path, begun=0) == ""
    os.utime(file, ns=(0, 0))
    assert program(tmp_path, begun=changed) == ""
    assert program(tmp_path, begun=later + 60 * 10**9) not in ("", told)


def test_what_is_kept_by_code_that_changed_while_it_ran_counts_for_nobody(tmp_path):
    run = large(tmp_path / "run")
    summarize_and_keep(run)
    head, _, body = cached(run).read_bytes().partition(b"\n")
    named = {**msgspec.json.decode(head), "program": "", "seal": ""}
    told = seal(msgspec.json.encode(named) + b"\n" + body)
    cached(run).write_bytes(msgspec.json.encode({**named, "seal": told}) + b"\n" + body)
    assert kept(run) is None


def test_a_study_that_was_changed_in_the_run_folder_is_seen(tmp_path):
    run = large(tmp_path / "run")
    (run.path / "studies").mkdir()
    for at in range(40):
        (run.path / "studies" / f"{at}.yaml").write_text("study: one")
    summary = summarize_and_keep(run)
    assert kept(run) == summary
    (run.path / "studies" / "7.yaml").write_text("study: two")
    assert kept(run) is None
    (run.path / "studies" / "7.yaml").write_text("study: one")
    assert kept(run) == summary
    (run.path / "studies" / "x.yaml").write_text("")
    assert kept(run) is None


def test_parts_that_killed_writers_left_are_removed_once_they_are_old(tmp_path):
    run = large(tmp_path / "run")
    (run.path / "cache").mkdir()
    old, new = (run.path / "cache" / f".summary.json.{name}" for name in ("0ld", "new"))
    for part in (old, new):
        part.write_text("{")
    os.utime(old, (0, 0))
    summarize_and_keep(run)
    assert sorted(path.name for path in (run.path / "cache").iterdir()) == [".summary.json.new", "summary.json"]
