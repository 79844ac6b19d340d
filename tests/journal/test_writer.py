"""What the writer of a journal takes, and what it does with the last line that it finds."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from karat.errors import BadRun
from karat.journal import Codec, End, Head, Journal, with_checksum
from karat.journal.codec import LONGEST_LINE, ended
from karat.journal.writer import complete_lines, end_of_lines
from karat.redact import Redactor

HEAD = Head(format=2, run="1234abcd")
LINE = Codec().line(HEAD)


def lines(folder: Path) -> list[bytes]:
    return (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)


def test_a_journal_is_empty_until_something_is_written(tmp_path: Path):
    async def go() -> list[bool]:
        async with Journal(tmp_path) as journal:
            before = journal.empty
            await journal.append(HEAD)
            return [before, journal.empty]

    assert asyncio.run(go()) == [True, False]
    assert lines(tmp_path) == [LINE]


def test_lines_that_were_encoded_elsewhere_are_written_as_they_are_and_covered(tmp_path: Path):
    more = Codec().lines([HEAD, HEAD])

    async def go() -> None:
        async with Journal(tmp_path) as journal:
            await journal.append(HEAD)
            await journal.append(lines=ended(more))
            await journal.append(End(at="now", reason="done"))

    asyncio.run(go())
    assert b"".join(lines(tmp_path)[:3]) == LINE + ended(more)
    assert b'"lines":3' in lines(tmp_path)[3]


def test_secrets_are_masked_in_what_is_written(tmp_path: Path):
    async def go() -> None:
        async with Journal(tmp_path, redact=Redactor({"KEY": "s3cr3t-value"})) as journal:
            await journal.append(Head(format=2, run="s3cr3t-value"))

    asyncio.run(go())
    assert b'"run":"${KEY}"' in lines(tmp_path)[0]


def test_a_process_that_ends_writes_what_is_queued_and_then_its_end(tmp_path: Path):
    """From a thread, while the loop does nothing."""

    async def go() -> None:
        async with Journal(tmp_path) as journal:
            for _ in range(3):
                _ = journal.append(HEAD)
            ending = threading.Thread(target=journal.write_out, args=[End(at="now", reason="interrupted")])
            ending.start()
            ending.join()
            assert len(lines(tmp_path)) == 4

    asyncio.run(go())
    *heads, end = lines(tmp_path)
    assert heads == [LINE] * 3
    assert b'"reason":"interrupted","lines":3' in end


def test_a_caller_that_does_not_wait_any_more_disturbs_nobody(tmp_path: Path):
    async def go() -> None:
        async with Journal(tmp_path) as journal:
            given_up = journal.append(HEAD)
            given_up.cancel()
            await journal.append(HEAD)

    asyncio.run(go())
    assert lines(tmp_path) == [LINE, LINE]


WHOLE = with_checksum(b'{"event":"head"}')


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b""),
        (LINE, LINE),
        (LINE + WHOLE, LINE + WHOLE + b"\n"),
        (LINE + WHOLE + b"\r", LINE + WHOLE + b"\r\n"),
        (LINE + WHOLE[:-1], LINE),
        (WHOLE[:-1], b""),
        (LINE + b"x" * 200_000, LINE),
    ],
)
def test_a_last_line_is_ended_if_it_is_whole_and_removed_if_not(tmp_path: Path, before: bytes, after: bytes):
    path = tmp_path / "lines"
    path.write_bytes(before)
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        assert complete_lines(fd, path) == len(after)
    finally:
        os.close(fd)
    assert path.read_bytes() == after


@pytest.mark.parametrize(
    ("size", "says"),
    [(0, "the newline of its last line is damaged"), (LONGEST_LINE + 1, "its last line has no end within 64 MB")],
)
def test_a_last_line_that_karat_did_not_leave_so_is_neither_ended_nor_removed(tmp_path: Path, size: int, says: str):
    path = tmp_path / "lines"
    path.write_bytes(LINE + WHOLE + b"\x0b")
    if size:
        os.truncate(path, len(LINE) + size)
    whole = path.stat().st_size
    fd = os.open(path, os.O_RDWR | os.O_APPEND)
    try:
        with pytest.raises(BadRun, match=f"{says}: restore it from a copy"):
            complete_lines(fd, path)
    finally:
        os.close(fd)
    assert path.stat().st_size == whole


@pytest.mark.parametrize("rest", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_the_end_of_the_last_line_is_found_in_any_block(tmp_path: Path, rest: int):
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n" + b"x" * rest)
    with path.open("rb") as file:
        assert end_of_lines(file.fileno()) == 4
    path.write_bytes(b"x" * rest)
    with path.open("rb") as file:
        assert end_of_lines(file.fileno()) == 0
