"""What is kept of a server's stderr: bounded, printable, without secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.mcp.faults import Tail, printable
from karat.redact import Redactor

SECRET = "s3cr3t-value-of-the-server"


def text_of(*parts: bytes, **secrets: str) -> str:
    tail = Tail()
    for part in parts:
        tail.add(part)
    return tail.text(Redactor(secrets))


def test_the_last_lines_are_shown():
    lines = [f"line {number}\n".encode() for number in range(100_000)]
    assert text_of(*lines).splitlines() == [f"line {number}" for number in range(99_988, 100_000)]


def test_a_character_that_is_cut_in_two_by_the_pipe_is_whole_again():
    assert text_of("grü".encode()[:-1], "ü".encode()[-1:] + b"n") == "grün"
    assert text_of(b"caf\xe9") == "caf�"


@pytest.mark.parametrize("size", [0, 10, 16_000, 16_384, 16_390, 32_760, 32_768, 50_000])
def test_no_part_of_a_secret_is_shown_wherever_the_tail_is_cut(size):
    shown = text_of(b"x" * size, SECRET.encode(), b"\n" + b"y\n" * 16_380 + SECRET.encode(), KEY=SECRET)
    assert SECRET[:8] not in shown
    assert SECRET[-8:] not in shown


@given(st.binary(max_size=200))
def test_nothing_that_a_terminal_obeys_is_left(data):
    assert not {character for character in text_of(data) if ord(character) < 32} - {"\n", "\t"}


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("a\x00b\x08c\x7f\x9bd", "abcd"),
        ("\u202etxt.exe", "txt.exe"),
        ("tab\tand 漢字 🎉", "tab\tand 漢字 🎉"),
    ],
)
def test_printable(raw, clean):
    assert printable(raw) == clean
