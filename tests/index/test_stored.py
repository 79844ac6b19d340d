"""The index of a run that has ended, kept in the user's cache: the same as reading gives, or nothing."""

from __future__ import annotations

import hashlib
import shutil
import time

import msgspec
import pytest
from tests.analysis.journals import Script, resealed

from karat.analysis.ledger import accounts, outcome
from karat.errors import BadRun
from karat.index import read_index
from karat.index.stored import _encoder, _restored, _Stored, _stored
from karat.journal import RunFolder, RunLock
from karat.journal.codec import Gap
from karat.records import Answer, Reply, ToolCall, Usage


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """This user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "karat"


@pytest.fixture(scope="module")
def settled(tmp_path_factory) -> RunFolder:
    """A run with all kinds of lines that nobody has changed for so long that a change would be seen."""
    script = Script(tmp_path_factory.mktemp("settled") / "run", samples=3, repetitions=2)
    call = ToolCall(tool="look", server="docs", input={"q": "lamp"}, error="no lamp", milliseconds=4.5)
    script.answer(2, "baseline", 1, reply=Reply(text="one", usage=Usage(input_tokens=3), tool_calls=(call,)))
    script.score(2, "baseline", 1, value=3, judge="x")
    script.score(2, "baseline", 1, value=5, judge="y", turn=1)
    script.attempt(0, "with-docs", 0, dollars=0.25)
    script.answer(0, "with-docs", 0, attempts=2, reply=Reply(text="two", dollars=0.125))
    script.score(0, "with-docs", 0, value=2, rows=2)
    script.failure(1, "with-docs", 0, kind="timeout", cls="limit")
    script.failure(2, "baseline", 1, stage="score", cls="judge", kind="refused", scorer="judge")
    run = script.end()
    time.sleep(2.1)
    return run


@pytest.fixture
def run(settled) -> RunFolder:
    return RunFolder.open(settled.path)


def kept(cache):
    return sorted(cache.iterdir()) if cache.exists() else []


def test_the_index_that_is_kept_is_the_one_that_was_read(run, cache):
    read = read_index(run, at_least=0)
    (file,) = kept(cache)
    restored = read_index(run, at_least=0)
    assert kept(cache) == [file]
    assert _stored(restored) == _stored(read)
    shown = read.shown({})
    assert restored.shown({}) == shown
    assert accounts(restored, outcome(restored, shown)) == accounts(read, outcome(read, shown))
    for key, rows in read.scores.items():
        assert restored.scores[key].counting().tolist() == rows.counting().tolist()
    decode = msgspec.json.Decoder(Answer).decode
    assert list(restored.answer_lines(decode)) == list(read.answer_lines(decode))


def test_of_a_small_run_and_of_one_that_goes_on_no_index_is_kept(run, cache):
    read_index(run)
    lock = RunLock(run.path)
    lock.acquire()
    read_index(run, at_least=0)
    lock.release()
    assert kept(cache) == []


def test_an_index_with_conversations_that_can_be_resumed_is_not_kept(tmp_path, cache):
    script = Script(tmp_path / "run")
    script.reply(0, "baseline", turn=0, reply=Reply(text="first"))
    run = script.end("interrupted")
    time.sleep(2.1)
    assert len(read_index(run, at_least=0).open_trials) == 1
    assert kept(cache) == []


def damaged(data: bytes) -> bytes:
    return data.replace(b"baseline", b"basel1ne", 1)


def of_another_version(data: bytes) -> bytes:
    data = data[32:].replace(b"conditions", b"treatments", 1)
    return hashlib.sha256(data).digest() + data


@pytest.mark.parametrize("change", [damaged, of_another_version, lambda data: data[:-1], lambda data: b""])
def test_a_file_that_cannot_be_read_is_made_anew(run, cache, change):
    read = read_index(run, at_least=0)
    (file,) = kept(cache)
    whole = file.read_bytes()
    file.unlink()
    file.write_bytes(change(whole))
    assert _stored(read_index(run, at_least=0)) == _stored(read)
    assert file.read_bytes() == whole


def test_a_journal_that_has_changed_is_read_again(run, cache, tmp_path):
    other = RunFolder.open(shutil.copytree(run.path, tmp_path / "run"))
    time.sleep(2.1)
    assert read_index(other, at_least=0).foreign_lines == 0
    assert len(kept(cache)) == 1
    with other.journal.open("ab") as file:
        file.write(resealed(b'{"more":1}\n'))
    assert read_index(other, at_least=0).foreign_lines == 1
    data = other.journal.read_bytes()
    other.journal.write_bytes(data[:-5] + b"x" + data[-4:])
    with pytest.raises(BadRun, match="damaged"):
        read_index(other, at_least=0)


def test_every_field_that_is_kept_is_one_of_the_index(run):
    index = read_index(run)
    assert set(_Stored.__struct_fields__) <= vars(index).keys()


def test_the_index_that_is_kept_is_taken_without_reading_the_journal(tmp_path):
    """Its columns, and the gaps that reading would have found."""
    script = Script(tmp_path / "run", samples=3)
    script.answer(2, "baseline", reply=Reply(text="one", dollars=0.5))
    script.score(2, "baseline", value=3)
    run = script.end()
    read = read_index(run)
    gap = Gap(2, 4, "lines are missing", "restore the file")
    read.gaps = (gap,)
    restored = _restored(run, _encoder.encode(_stored(read)))
    assert restored is not None
    assert _stored(restored) == _stored(read)
    assert run.gaps == (gap,)
    assert (restored.planned, [*restored.answered]) == (read.planned, [*read.answered])
    assert restored.scores["judge", "0f" * 16].counting().tolist() == [0]
