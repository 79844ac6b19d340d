"""Lines of a journal: how events become lines, and which lines a reader takes."""

from __future__ import annotations

import json
from io import BytesIO

import msgspec
import pytest

from karat.journal import Codec, End, Head, Resume, with_checksum
from karat.journal.codec import Cover, LineDamaged, checked_lines, checksum_fault
from karat.journal.events import ReplyEvent
from karat.records import Reply
from karat.redact import Redactor

HEAD = Head(format=2, run="1234abcd")


def said(text: str) -> ReplyEvent:
    return ReplyEvent(trial="t", attempt=1, turn=0, reply=Reply(text=text))


@pytest.mark.parametrize("redact", [None, Redactor({"KEY": "s3cr3t-value"})])
def test_lines_written_together_are_the_lines_written_one_by_one(redact: Redactor | None):
    codec = Codec(redact)
    events = [HEAD, said("a ä s3cr3t-value"), said("half \ud800 a pair"), said("")]
    lines = codec.lines(events)
    assert lines == [codec.line(event).removesuffix(b"\n") for event in events]
    assert [checksum_fault(line, required=True) for line in lines] == [None] * 4
    assert codec.lines([]) == []
    assert json.loads(lines[2])["reply"]["text"] == "half \ufffd a pair"


def test_a_line_without_a_checksum_is_the_bare_object():
    assert Codec().line(HEAD, checksum=False) == b'{"event":"head","format":2,"run":"1234abcd"}'


@pytest.mark.parametrize(
    ("line", "required", "fault"),
    [
        (with_checksum(b'{"a":1}'), True, None),
        (with_checksum(b'{"a":1}'), False, None),
        (with_checksum(b'{"a":1}').replace(b"1", b"2", 1), False, "its checksum does not match"),
        (b'{"a":1}', True, "it has no checksum"),
        (b'{"a":1}', False, None),
        (b'{"a":\0}', False, "it holds NUL bytes"),
    ],
)
def test_a_line_has_the_right_checksum_or_may_have_none(line: bytes, required: bool, fault: str | None):
    assert checksum_fault(line, required=required) == fault


LINES = [with_checksum(b'{"n":%d}' % number) for number in range(3)]
BARE = [b'{"n":%d}' % number for number in range(3)]


def read(data: bytes, **options: object) -> list[tuple[int, int, bytes]]:
    return list(checked_lines(BytesIO(data), **{"required": True, **options}))  # type: ignore[arg-type]


def test_lines_have_their_number_and_the_byte_where_they_start():
    data = b"\xef\xbb\xbf" + LINES[0] + b"\r\n\n" + LINES[1] + b"\n" + LINES[2]
    places = [0, len(LINES[0]) + 6, len(LINES[0]) + len(LINES[1]) + 7]
    assert read(data) == [(1, places[0], LINES[0]), (3, places[1], LINES[1]), (4, places[2], LINES[2])]


def test_reading_stops_before_a_byte():
    data = b"\n".join([*LINES, b""])
    assert [number for number, _, _ in read(data, stop=2 * len(LINES[0]) + 2)] == [1, 2]


@pytest.mark.parametrize(("torn", "found"), [(True, [0]), (False, [0, 1])])
def test_a_last_line_without_checksum_and_newline_counts_where_none_is_torn(torn: bool, found: list[int]):
    data = BARE[0] + b"\n" + BARE[1]
    lines = read(data, required=False, torn=torn)
    assert [line for _, _, line in lines] == [BARE[number] for number in found]


def test_a_last_line_without_a_checksum_is_damage_where_every_line_has_one():
    with pytest.raises(LineDamaged) as damage:
        read(LINES[0] + b"\n" + BARE[1], torn=False)
    assert (damage.value.number, str(damage.value)) == (2, "it has no checksum")


def test_a_last_line_whose_newline_is_another_byte_is_damage():
    with pytest.raises(LineDamaged) as damage:
        read(LINES[0] + b"\n" + LINES[1] + b"\x0b")
    assert (damage.value.number, damage.value.reason) == (2, "its newline is damaged")


def test_damaged_lines_may_be_skipped_and_say_where_they_end():
    damages: list[LineDamaged] = []
    data = b"\n".join([LINES[0], BARE[1], LINES[2], b""])
    found = read(data, on_damage=damages.append)
    assert [line for _, _, line in found] == [LINES[0], LINES[2]]
    assert [(damage.number, damage.end) for damage in damages] == [(2, len(LINES[0]) + len(BARE[1]) + 2)]


def test_after_a_line_with_a_checksum_every_line_has_one_until_an_older_karat_resumes():
    resume = Codec().line(Resume(at="", versions={}, host="", pid=1), checksum=False)
    data = b"\n".join([BARE[0], LINES[1], resume, BARE[2], b""])
    assert [line for _, _, line in read(data, required=False)] == [BARE[0], LINES[1], resume, BARE[2]]
    with pytest.raises(LineDamaged, match="it has no checksum"):
        read(data, required=True)
    with pytest.raises(LineDamaged) as damage:
        read(b"\n".join([BARE[0], LINES[1], BARE[2], b""]), required=False)
    assert damage.value.number == 3


def test_lines_that_were_checked_before_are_not_checked_again():
    assert [line for _, _, line in read(b"\n".join([*BARE, b""]), check=False)] == BARE


def test_a_line_of_several_blocks_is_one_line():
    long = with_checksum(b'{"text":"%b"}' % (b"x" * 3_000_000))
    data = b"\n".join([LINES[0], long, LINES[1], b""])
    assert [line for _, _, line in read(data)] == [LINES[0], long, LINES[1]]


def stated(cover: Cover, event: End | Resume) -> bytes:
    line = Codec().line(cover.stated_by(event))[:-1]
    cover.add([line])
    return line


END = End(at="now", reason="done")
RESUME = Resume(at="now", versions={}, host="h", pid=1)


def written() -> list[bytes]:
    cover = Cover()
    lines = [Codec().line(event)[:-1] for event in (HEAD, said("a"), said("b"))]
    cover.add(lines)
    lines.append(stated(cover, END))
    lines.append(stated(cover, RESUME))
    cover.add(more := [Codec().line(said("c"))[:-1]])
    lines += more
    lines.append(stated(cover, END))
    return lines


def gaps(lines: list[bytes]) -> list[str]:
    cover = Cover()
    cover.add(lines)
    return [str(gap) for gap in cover.gaps]


def test_what_was_written_has_no_gap_however_it_is_read():
    lines = written()
    assert gaps(lines) == []
    one_by_one = Cover()
    for line in lines:
        one_by_one.add([line])
    assert (one_by_one.gaps, one_by_one.lines, one_by_one.uncovered, one_by_one.states) == ([], 7, 0, True)


def test_lines_since_the_last_statement_are_not_covered_yet():
    cover = Cover()
    cover.add(written()[:2])
    assert (cover.uncovered, cover.states) == (2, False)
    cover.add(written()[2:6])
    assert (cover.uncovered, cover.states) == (1, True)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda lines: [lines[0], *lines[2:]], "lines 1 to 2 of the journal: 1 line is missing"),
        (lambda lines: [lines[0], *lines[3:]], "line 1 of the journal: 2 lines are missing"),
        (lambda lines: [*lines[:2], *lines[1:]], "lines 1 to 4 of the journal: 1 line was added"),
        (lambda lines: [*lines[:2], *lines[1:2], *lines[1:]], "lines 1 to 5 of the journal: 2 lines were added"),
        (
            lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
            "lines 1 to 3 of the journal: lines were changed, replaced or moved",
        ),
        (
            lambda lines: [*lines[:4], lines[1], *lines[4:]],
            "line 5 of the journal: lines were added from here on, after the run had ended",
        ),
    ],
)
def test_a_gap_says_which_lines_and_what_happened_to_them(change, found: str):
    assert gaps(change(written()))[0] == found


def test_the_number_of_lines_that_the_writer_left_shows_a_loss_at_the_end():
    def end(lines: list[bytes], left: int | None) -> list[str]:
        cover = Cover()
        cover.add(lines)
        cover.end_at(left)
        return [str(gap) for gap in cover.gaps]

    assert end(written(), 7) == end(written(), None) == []
    assert end(written(), 9) == ["line 7 of the journal: 2 lines are missing"]
    assert end(written()[:6], 7) == ["lines 5 to 6 of the journal: 1 line is missing"], "its writer did not crash"
    assert end([], 7) == ["line 1 of the journal: 7 lines are missing"]


def test_a_statement_that_cannot_be_decoded_states_nothing():
    cover = Cover()
    cover.add([with_checksum(b'{"event":"end","lines":"many"}')])
    assert (cover.older, cover.states, cover.gaps) == (True, False, [])
    assert msgspec.json.decode(written()[3])["lines"] == 3
