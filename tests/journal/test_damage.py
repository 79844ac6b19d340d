"""No damaged line changes a number without a word, and every reader says where the damage is."""

from __future__ import annotations

import random
import re
from itertools import islice
from pathlib import Path

import msgspec
import pytest
from tests.analysis.journals import Script, resealed

import karat
from karat.agents import AgentSetting
from karat.agents.replay import Replay
from karat.errors import BadRun
from karat.journal import CHECKSUMS_SINCE, RunFolder, verify
from karat.mcp import Toolbox
from karat.records import Reply, Usage
from karat.redact import Redactor

CRC = re.compile(rb',"crc":"[0-9a-f]{8}"}$')


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """Answers, scores, costs, a failed attempt, and the end."""
    script = Script(tmp_path / "run", samples=3, format=CHECKSUMS_SINCE)
    for row in range(3):
        for condition in script.conditions:
            reply = Reply(text=f"Answer {row}", dollars=0.01, usage=Usage(input_tokens=10, output_tokens=5))
            script.answer(row, condition, reply=reply)
            script.score(row, condition, value=2 + row)
    return script.end()


def numbers(run: RunFolder) -> object:
    """Scores, cost and tokens."""
    summary = karat.summarize(RunFolder.open(run.path))
    return summary.results, summary.total.cost, summary.total.tokens, summary.total.ledger


def test_no_bit_that_flips_changes_a_number_without_a_word(run: RunFolder) -> None:
    whole, before, rng = run.journal.read_bytes(), numbers(run), random.Random(7)
    named = 0
    for _ in range(120):
        at, bit = rng.randrange(len(whole)), rng.randrange(8)
        run.journal.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        try:
            after = numbers(run)
        except BadRun as error:
            named += "damaged" in str(error)
        else:
            assert after == before, f"bit {bit} of byte {at}"
    assert named > 100


def test_each_bit_of_the_last_newline_and_of_a_newline_in_the_middle_is_seen(run: RunFolder) -> None:
    whole = run.journal.read_bytes()
    for at in (len(whole) - 1, whole.index(b"\n")):
        for bit in range(8):
            run.journal.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
            with pytest.raises(BadRun, match="damaged"):
                numbers(run)
            assert not verify(run.path).ok


@pytest.mark.parametrize("number", [2, 700, 1500])
def test_a_damaged_line_of_a_long_journal_is_named_and_those_before_it_are_read(tmp_path: Path, number: int) -> None:
    script = Script(tmp_path / "long", samples=800, format=CHECKSUMS_SINCE)
    for row in range(800):
        for condition in script.conditions:
            script.answer(row, condition)
    run = script.end()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    assert sum(map(len, lines)) > 300_000  # is read in several blocks
    run.journal.write_bytes(b"".join([*lines[: number - 1], lines[number - 1].replace(b"0", b"1", 1), *lines[number:]]))
    assert [damage.line for damage in verify(run.path).damages] == [number]
    read = RunFolder.open(run.path).lines()
    assert list(islice(read, number - 1)) == [line[:-1] for line in lines[: number - 1]]
    with pytest.raises(BadRun, match=f"line {number} of the journal is damaged"):
        next(read)


@pytest.mark.parametrize("line", [b"\0" * 300, b'{"event":"answer","trial":"t"}', b"[]"])
def test_a_line_without_a_checksum_is_an_error_where_lines_have_them(run: RunFolder, line: bytes) -> None:
    lines = run.journal.read_bytes().splitlines()
    run.journal.write_bytes(b"\n".join([*lines[:2], line, *lines[2:], b""]))
    with pytest.raises(BadRun, match="line 3 of the journal is damaged"):
        numbers(run)
    (damage,) = verify(run.path).damages
    assert (damage.file, damage.line) == ("journal.jsonl", 3)


def test_journals_of_an_older_karat_are_read_and_then_go_on_with_checksums(run: RunFolder) -> None:
    before = numbers(run)
    (run.path / "run.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(run.info, format=1)))
    new = run.journal.read_bytes().splitlines()
    old = [CRC.sub(b"}", line) for line in new]
    for lines in (old, [*old[:4], *new[4:]]):
        run.journal.write_bytes(b"\n".join([*lines, b""]))
        assert numbers(run) == before
    assert verify(run.path).unprotected == 4
    run.journal.write_bytes(b"\n".join([*old[:4], *new[4:8], *old[8:], b""]))
    with pytest.raises(BadRun, match="line 9 of the journal is damaged \\(it has no checksum\\)"):
        numbers(run)
    run.journal.write_bytes(b"\n".join([*old[:4], b"\0" * 20, *old[4:], b""]))
    with pytest.raises(BadRun, match="line 5 of the journal is damaged \\(it holds NUL bytes\\)"):
        numbers(run)


def test_every_file_is_verified_and_each_damaged_line_is_named_with_its_remedy(run: RunFolder) -> None:
    sound = verify(run.path)
    lines = run.journal.read_bytes().splitlines(keepends=True)
    assert (sound.ok, sound.lines) == (True, len(lines) + 3)
    for at, number in ((1, b'"repetition":0'), (2, b'"trial"')):
        lines[at] = lines[at].replace(number, number.swapcase().replace(b"0", b"1"))
    run.journal.write_bytes(b"".join(lines))
    samples = run.path / "samples.jsonl"
    samples.write_bytes(samples.read_bytes().replace(b"golden", b"Golden", 1))
    found = verify(run.path)
    assert [(one.file, one.line, one.remedy.partition(":")[0]) for one in found.damages] == [
        ("journal.jsonl", 2, "delete the line"),
        ("journal.jsonl", 3, "delete the line"),
        ("samples.jsonl", 1, "restore it from a copy"),
    ]
    assert found.deletion == f"sed -i.damaged -e '2d;3d' {run.path}/journal.jsonl"
    run.journal.write_bytes(b"".join([lines[0], *lines[3:]]))
    samples.write_bytes(resealed(samples.read_bytes().replace(b"Golden", b"golden", 1)))
    assert verify(run.path).ok


def test_run_json_is_held_against_its_checksum(run: RunFolder) -> None:
    karat_made = karat.journal.Codec().line(run.info)
    info = run.path / "run.json"
    info.write_bytes(karat_made.replace(b'"high":5', b'"high":7'))
    with pytest.raises(BadRun, match=r"run.json is damaged \(its checksum does not match\)"):
        RunFolder.open(run.path)
    assert [one.file for one in verify(run.path).damages] == ["run.json"]


def test_recorded_answers_are_checked_too(run: RunFolder, tmp_path: Path) -> None:
    run.journal.write_bytes(run.journal.read_bytes().replace(b"Answer 1", b"Answer 7", 1))
    options = Replay.Options(path=str(run.path))
    with pytest.raises(BadRun, match="damaged"):
        Replay(options, AgentSetting(folder=tmp_path, toolbox=Toolbox((), redact=Redactor({}), folder=tmp_path)))


@pytest.mark.needs_package("karat_query")
def test_tables_are_checked_too(run: RunFolder) -> None:
    run.journal.write_bytes(run.journal.read_bytes().replace(b"Answer 1", b"Answer 7", 1))
    with pytest.raises(BadRun, match="damaged"):
        karat.query(run.path, "SELECT count(*) FROM replies")


def test_samples_that_end_between_two_lines_are_missed(run: RunFolder) -> None:
    samples = run.path / "samples.jsonl"
    samples.write_bytes(b"".join(samples.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadRun, match=r"samples.jsonl holds 2 of 3 samples; restore it from a copy"):
        numbers(run)
    (damage,) = verify(run.path).damages
    assert (damage.file, damage.line, damage.reason) == ("samples.jsonl", None, "it holds 2 of 3 samples")
