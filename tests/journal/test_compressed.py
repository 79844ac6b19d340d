"""A compressed journal reads as the plain one does, and no kill, damage or hostile file makes it another."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis.journals import Script

import karat
from karat.agents import AgentSetting
from karat.agents.replay import Replay
from karat.errors import BadRun
from karat.journal import Journal, RunFolder, RunLock, verify
from karat.journal.compressed import COMPRESSED, JOURNAL, compress_journal, expand_journal, open_compressed
from karat.mcp import Toolbox
from karat.records import Reply
from karat.redact import Redactor

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MB = 2**20


def compressed(folder: Path) -> RunFolder:
    run = RunFolder.open(folder)
    compress_journal(folder, checksums=run.has_checksums)
    return RunFolder.open(folder)


def scripted(folder: Path, *, samples: int = 3, text: str = "Answer") -> RunFolder:
    script = Script(folder, samples=samples)
    for row in range(samples):
        for condition in script.conditions:
            script.answer(row, condition, reply=Reply(text=f"{text} {row}"))
            script.score(row, condition, value=1 + row % 5)
    return script.end()


def framed(*frames: bytes, sizes: list[int], level: int = 3) -> bytes:
    """A file with a table that says these sizes."""
    packed = [zstd.compress(frame, level) for frame in frames]
    table = [number for pair in zip(map(len, packed), sizes, strict=True) for number in pair]
    head = struct.pack("<II", 0x184D2A5E, 8 * len(frames) + 9)
    return (
        b"".join(packed)
        + head
        + struct.pack(f"<{len(table)}I", *table)
        + struct.pack("<IBI", len(frames), 0, 0x8F92EAB1)
    )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """A compressed run of several frames, and its journal's bytes."""
    folder = tmp_path_factory.mktemp("large") / "run"
    plain = scripted(folder, samples=400, text="".join(map(chr, range(33, 127))) * 40).journal.read_bytes()
    assert len(plain) > 3 * MB
    compressed(folder)
    return folder, plain


@given(data=st.data())
def test_every_part_of_it_is_the_same(large, data):
    folder, plain = large
    with open_compressed(folder) as file:
        for _ in range(5):
            at = data.draw(st.integers(0, len(plain) + 10) | st.sampled_from([0, MB - 1, MB, MB + 1, len(plain)]))
            size = data.draw(st.integers(0, 2 * MB + 5))
            assert file.seek(at) == at
            assert file.read(size) == plain[at : at + size]
        assert file.seek(0, os.SEEK_END) == len(plain)


def test_lines_are_read_from_any_byte_and_again_by_their_places(large):
    folder, plain = large
    run = RunFolder.open(folder)
    assert b"".join(line + b"\n" for line in run.lines()) == plain
    start = plain.index(b"\n", len(plain) // 2) + 1
    assert b"".join(line + b"\n" for line in run.lines(start=start)) == plain[start:]
    assert run.journal_size == len(plain)
    assert run.status() == "done"


def test_zstd_itself_reads_it(large):
    folder, plain = large
    assert zstd.decompress(b"".join(_frames_of((folder / COMPRESSED).read_bytes()))) == plain


def _frames_of(data: bytes) -> list[bytes]:
    count = struct.unpack("<IBI", data[-9:])[0]
    sizes = struct.unpack(f"<{2 * count}I", data[-9 - 8 * count : -9])[::2]
    return [data[sum(sizes[:at]) : sum(sizes[: at + 1])] for at in range(count)]


def test_no_byte_that_changes_and_no_end_that_is_missing_passes_for_the_journal(tmp_path):
    plain = scripted(tmp_path / "run").journal.read_bytes()
    path = compressed(tmp_path / "run").journal
    whole, named = path.read_bytes(), 0
    cut = [whole[:at] for at in range(len(whole))]
    flipped = [whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :] for at in range(len(whole))]
    for data in (*cut, *flipped):
        path.write_bytes(data)
        try:
            lines = list(RunFolder.open(path.parent).lines())
        except BadRun as error:
            named += "restore it from a copy" in str(error)
        else:  # bits that say nothing: the reserved byte of the table
            assert b"".join(line + b"\n" for line in lines) == plain
    assert named > 0.98 * (len(cut) + len(flipped))


def test_verify_and_readers_name_the_damaged_frame(tmp_path):
    scripted(tmp_path / "run")
    path = compressed(tmp_path / "run").journal
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = verify(path.parent)
    assert [(one.file, one.line, one.remedy) for one in found.damages] == [(COMPRESSED, None, "restore it from a copy")]
    assert found.deletion is None
    with pytest.raises(BadRun, match=r"journal\.jsonl\.zst: frame 1 is damaged .*; restore it from a copy"):
        karat.summarize(path.parent)


def test_a_last_line_that_is_cut_off_is_damage_that_no_resume_removes(tmp_path):
    run = scripted(tmp_path / "run")
    data = run.journal.read_bytes()[:-20]
    run.journal.unlink()
    (run.path / COMPRESSED).write_bytes(framed(data, sizes=[len(data)]))
    found = verify(run.path)
    assert [(one.line, one.reason) for one in found.damages] == [(data.count(b"\n") + 1, "it has no checksum")]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        pytest.param(b"", "no table", id="empty"),
        pytest.param(zstd.compress(b'{"event":"head"}\n'), "no table", id="made by zstd alone"),
        pytest.param(framed(bytes(2 * MB), sizes=[2 * MB]), "sizes do not fit", id="a frame of more than 1 MB"),
        pytest.param(framed(bytes(9 * MB), sizes=[MB]), "frame 1 is damaged", id="more than the table says"),
        pytest.param(framed(b"x", sizes=[2]), "frame 1 is damaged", id="less than the table says"),
        pytest.param(framed(*[bytes(MB)] * 200, sizes=[MB] * 200), "more than 1,000 times", id="hardly any content"),
        pytest.param(struct.pack("<IBI", 2**32 - 1, 0, 0x8F92EAB1) * 9, "its end is missing", id="an endless table"),
    ],
)
def test_what_would_take_memory_or_hours_is_refused(tmp_path, data, problem):
    run = scripted(tmp_path / "run")
    run.journal.unlink()
    (run.path / COMPRESSED).write_bytes(data)
    with pytest.raises(BadRun, match=problem):
        list(RunFolder.open(run.path, look=False).lines())


def test_a_link_is_not_followed(tmp_path):
    scripted(tmp_path / "run")
    path = compressed(tmp_path / "run").journal
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadRun, match="symbolic link"):
        RunFolder.open(tmp_path / "run")


def test_only_a_run_that_has_ended_is_compressed(tmp_path):
    open_end = scripted(tmp_path / "open")
    open_end.journal.write_bytes(open_end.journal.read_bytes().partition(b'{"event":"end"')[0])
    with pytest.raises(BadRun, match="has not ended"):
        compressed(open_end.path)
    torn = scripted(tmp_path / "torn")
    with torn.journal.open("ab") as file:
        file.write(b'{"event":"ans')
    with pytest.raises(BadRun, match="has not ended"):
        compressed(torn.path)
    assert [path.name for path in tmp_path.rglob("*.zst*")] == []


def test_a_journal_that_is_hardly_any_content_stays_as_it_is(tmp_path):
    run = scripted(tmp_path / "run", samples=3, text=" " * 20 * MB)
    with pytest.raises(BadRun, match="more than 1,000 times"):
        compressed(run.path)
    assert [path.name for path in run.path.glob("*journal.jsonl*")] == [JOURNAL]


def test_a_damaged_line_is_not_compressed(tmp_path):
    run = scripted(tmp_path / "run")
    run.journal.write_bytes(run.journal.read_bytes().replace(b"\n{", b"\n\0", 1))
    with pytest.raises(BadRun, match="line 2 of the journal is damaged"):
        compressed(run.path)


def test_what_writes_to_it_makes_it_plain_first(tmp_path):
    plain = scripted(tmp_path / "run").journal.read_bytes()
    run = compressed(tmp_path / "run")

    async def write_nothing() -> bool:
        async with Journal(run.path) as journal:
            return journal.empty

    assert not asyncio.run(write_nothing())
    assert [path.name for path in sorted(run.path.glob("journal.jsonl*"))] == [JOURNAL]
    assert run.journal.read_bytes() == plain


def test_a_run_goes_on_with_more_repetitions_and_is_compressed_again(tmp_path):
    (tmp_path / "questions.jsonl").write_text('{"question": "1?", "answer": "1"}\n{"question": "2?", "answer": "2"}\n')
    (tmp_path / "echo.py").write_text("def answer(question, system_prompt):\n    return question\n")
    text = "dataset: {path: questions.jsonl}\nagent: {type: python, target: 'echo:answer'}\nscorers: []\n"
    text += "conditions: {one: {system_prompt: First.}}\nexecution: {num_repetitions: %d}\n"
    file = tmp_path / "experiment.yaml"
    file.write_text(text % 1)
    run = karat.run(karat.load(file), results=tmp_path / "results")
    compressed(run.path)
    file.write_text(text % 3)
    karat.run(karat.load(file), results=tmp_path / "results", resume=run.path)
    again = compressed(run.path)
    assert len(list(again.events_of(karat.Answer))) == 6
    assert again.status() == "done"


def test_its_answers_are_recorded_answers(tmp_path):
    plain, made = scripted(tmp_path / "plain"), scripted(tmp_path / "packed")
    made.journal.write_bytes(plain.journal.read_bytes())
    (made.path / "run.json").write_bytes((plain.path / "run.json").read_bytes())
    compressed(made.path)
    redact = Redactor({})
    toolbox = Toolbox((), redact=redact, folder=tmp_path)
    setting = AgentSetting(folder=tmp_path, toolbox=toolbox, redact=redact)
    agents = [Replay(Replay.Options(path=str(run.path)), setting) for run in (plain, made)]
    assert agents[0].source["sha256"] == agents[1].source["sha256"]
    keys = [(str(row), "with-docs", 0) for row in range(3)]
    rows = [[agent._rows.get(key) for key in keys] for agent in agents]
    assert rows[0] == rows[1]


class TestAKill:
    """Of the steps: the compressed file is written, put in its place, read back; the plain one is deleted."""

    def states(self, folder: Path) -> list[Path]:
        """What a kill between any two steps leaves."""
        plain = scripted(folder / "whole", samples=5)
        whole = plain.journal.read_bytes()
        states = [folder / name for name in ("part", "both", "packed", "expanding")]
        for state in states:
            shutil.copytree(plain.path, state)
        packed = shutil.copytree(plain.path, folder / "source")
        compressed(packed)
        data = (packed / COMPRESSED).read_bytes()
        (states[0] / f".{COMPRESSED}.part").write_bytes(data[:50])
        for state in states[1:]:
            (state / COMPRESSED).write_bytes(data)
        for state in states[2:]:
            (state / JOURNAL).unlink()
        (states[3] / f".{JOURNAL}.part").write_bytes(whole[:100])
        return states

    def test_leaves_a_whole_journal_which_is_compressed_or_expanded_by_the_next(self, tmp_path):
        for state in self.states(tmp_path):
            whole = b"".join(line + b"\n" for line in RunFolder.open(state).lines())
            assert whole == (tmp_path / "whole" / JOURNAL).read_bytes(), state.name
            again = shutil.copytree(state, state.with_name(f"{state.name}-expanded"))
            compressed(state)
            expand_journal(again)
            assert [path.name for path in state.glob("journal.jsonl*")] == [COMPRESSED]
            assert [path.name for path in again.glob("journal.jsonl*")] == [JOURNAL]
            assert b"".join(line + b"\n" for line in RunFolder.open(state).lines()) == whole
            assert (again / JOURNAL).read_bytes() == whole

    def test_two_journals_that_differ_are_not_taken_for_one(self, tmp_path):
        _, state, *_ = self.states(tmp_path)
        whole = (state / JOURNAL).read_bytes()
        (state / JOURNAL).write_bytes(whole[: whole.index(b"\n") + 1])
        for change in (lambda: compressed(state), lambda: expand_journal(state)):
            with pytest.raises(BadRun, match=r"are both there and differ|has not ended"):
                change()
        assert sorted(path.name for path in state.glob("journal.jsonl*")) == [JOURNAL, COMPRESSED]

    @pytest.mark.slow
    @pytest.mark.parametrize("undo", [False, True], ids=["compress", "expand"])
    def test_of_the_process_at_each_step_loses_nothing(self, tmp_path, undo):
        made = scripted(tmp_path / "run", samples=4000, text="".join(map(chr, range(33, 127))) * 40)
        plain = made.journal.read_bytes()
        if undo:
            compressed(made.path)
        steps = {
            "part": lambda folder: (folder / f".{JOURNAL if undo else COMPRESSED}.part").exists(),
            "both": lambda folder: (folder / JOURNAL).exists() and (folder / COMPRESSED).exists(),
            "done": lambda folder: not (folder / (COMPRESSED if undo else JOURNAL)).exists(),
        }
        for name, reached in steps.items():
            for attempt in range(20):
                folder = shutil.copytree(made.path, tmp_path / f"{name}-{attempt}")
                if self.killed(folder, reached, undo=undo):
                    break
            else:
                pytest.fail(f"never killed at the step '{name}'")
            assert not RunLock(folder).held()
            assert b"".join(line + b"\n" for line in RunFolder.open(folder).lines()) == plain, name
            compressed(folder)
            assert b"".join(line + b"\n" for line in RunFolder.open(folder).lines()) == plain, name
            assert [path.name for path in folder.glob("*journal.jsonl*")] == [COMPRESSED]

    def killed(self, folder: Path, reached, *, undo: bool) -> bool:
        """Whether the process was killed while, or right after, a step was reached."""
        command = [sys.executable, "-m", "karat", "compress", str(folder), *["--undo"] * undo]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None:
            if reached(folder):
                process.send_signal(signal.SIGSTOP)
                seen = reached(folder)
                process.kill()
                process.wait()
                return seen
            time.sleep(0)
        return False
