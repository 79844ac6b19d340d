"""Foreign JSON is read item by item, and ends in a finding or a BadDataset, whatever it is."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadDataset
from karat.foreign import Json
from karat.importers import Findings
from karat_imports.importers._reading import document, failure, following, items, lines, utc

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text() | st.sampled_from(['"', "\\", "{[", "]},"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(before=VALUES, after=VALUES, rows=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 2]))
def test_the_items_and_the_rest_are_what_a_whole_reader_finds(
    tmp_path_factory: pytest.TempPathFactory, before: object, after: object, rows: list[object], indent: int | None
) -> None:
    path = tmp_path_factory.getbasetemp() / "file.json"
    path.write_text(json.dumps({"a": before, "r": {"x": "results", "results": rows, "y": after}}, indent=indent))
    found = Findings()
    assert [item for _, item in items(path, "r", "results", findings=found)] == [
        row for row in rows if isinstance(row, dict)
    ]
    assert sum(count for _, _, count, _ in found) == sum(not isinstance(row, dict) for row in rows)
    assert document(path, "r", "results") == {"a": before, "r": {"x": "results", "results": [], "y": after}}


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    row = json.dumps({"text": "x" * 5000, "list": [1, {"a": None}]})
    path.write_text('{"results": [' + ",\n".join([row] * 4000) + "]}")
    assert path.stat().st_size > 20e6
    tracemalloc.start()
    assert sum(1 for _ in items(path, "results", findings=Findings())) == 4000
    assert document(path, "results") == {"results": []}
    assert tracemalloc.get_traced_memory()[1] < 2e6
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "JSON that ends too early"),
        (b"<html>", "text that is not JSON"),
        (b"[1]", "holds no JSON object"),
        (b'{"results": [{"a": 1}, {"a"', "JSON that ends too early"),
        (b'{"results": [] ', "JSON that ends too early"),
        (b'{"results": [], "a": oops}', "text that is not JSON"),
        (b'{"a": ' + b"[" * 10**6, "JSON that is nested too deeply"),
        (b'{"a":' * 10**6, "JSON that is nested too deeply"),
        (b'{"results": [' + b'[{"a":' * 10**5, "JSON that is nested too deeply"),
        (b'{"a": "' + b"x" * (140 << 20), "more than 64 MB"),
        (b'{"a": [' + b"NaN," * 1_000_001 + b"1]}", "more than a million NaN"),
    ],
    ids=lambda value: None if isinstance(value, str) else value[:14].decode(),
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: bytes, fault: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text)
    with pytest.raises(BadDataset, match=fault):
        document(path, "results")


def test_items_before_a_broken_place_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(b'[{"a": 1}, {"a": nonsense}, {"a": NaN, "b": "\\ud800"}, 7, {"a": ' + b"9" * 5000 + b'}, {"a": 1')
    found = Findings()
    assert [item for _, item in items(path, findings=found)] == [{"a": 1}, {"a": None, "b": "?"}]
    assert [(what, places) for _, what, _, places in found] == [
        ("result with text that is not JSON", ("file.json, item 2", "file.json, item 5")),
        ("result not a JSON object", ("file.json, item 4",)),
        ("rest of the file: JSON that ends too early", ("file.json, after item 5",)),
    ]


def test_lines_that_are_no_objects_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\n\n[]\n{"a": Infinity}\n' + b"[" * 10**6 + b'\n{"a"')
    found = Findings()
    assert list(lines(path, found)) == [
        ("file.jsonl, line 1", {"a": 1}),
        ("file.jsonl, line 4", {"a": None}),
    ]
    assert [what for _, what, _, _ in found] == [
        "line not a JSON object",
        "line with JSON that is nested too deeply",
        "line with text that is not JSON",
    ]


def test_a_file_is_read_up_to_a_line_that_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n')
        file.truncate(1 << 30)  # of NUL bytes, which take no room
    found = Findings()
    assert [item for _, item in lines(path, found)] == [{"a": 1}]
    assert [(what, places) for _, what, _, places in found] == [
        ("rest of the file: a line of more than 64 MB", ("file.jsonl, line 2",))
    ]


def test_a_value_has_the_type_that_is_asked_for_or_is_missing() -> None:
    odd = Json({"n": "1", "b": True, "big": 10**400, "t": 7, "l": {"a": 1}, "o": [1, {"x": 2}], "neg": -1, "half": 0.5})
    assert [odd.number(key) for key in ("n", "b", "big", "t", "none")] == [None, None, None, 7.0, None]
    assert [odd.count(key) for key in ("neg", "half", "t")] == [None, None, 7]
    assert (odd.text("t", "n"), odd.flag("t"), odd.flag("b"), odd.shown("o")) == ("1", None, True, '[1,{"x":2}]')
    assert (odd.list("l"), odd.list("o"), odd.at("t", "x")) == ([], [{"x": 2}], {})
    assert odd.usage(input_tokens="n") is None


@pytest.mark.parametrize(
    ("message", "cls"),
    [
        ("429 Too Many Requests", "infrastructure"),
        ("connect ECONNREFUSED", "infrastructure"),
        ("Request timed out", "infrastructure"),
        ("Evaluation timed out after 100ms", "limit"),
        ("maximum number of tokens", "limit"),
        ("ValueError: nothing\n  at connection.js", "agent"),
        ("The model refused", "agent"),
    ],
)
def test_an_error_is_classed_by_its_own_words(message: str, cls: str) -> None:
    known = failure(message)
    assert known is not None and known.cls == cls


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"), ("2026-01-02T03:04:05", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02 05:04:05+02:00", "2026-01-02T03:04:05+00:00"), ("1767323045", "2026-01-02T03:04:05+00:00"),
        (1767323045.0, "2026-01-02T03:04:05+00:00"), ("20260102", "2026-01-02T00:00:00+00:00"),
        ("soon", None), (None, None), (1e300, None), ("nan", None),
    ],
)  # fmt: skip
def test_times_are_read_in_every_form_that_tools_write(written, read):
    assert utc(written) == read


@given(rows=st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), min_size=1, max_size=5))
def test_objects_that_follow_each_other_are_all_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "many.json"
    path.write_text("\n".join(json.dumps(row, indent=2) for row in rows))
    found = Findings()
    assert [row for _, row in following(path, found)] == rows
    assert not [*found]


def test_what_follows_a_value_is_never_left_out_silently(tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    path.write_text('{"a": 1}\n{"a": 2}\nand so on')
    found = Findings()
    assert [row for _, row in following(path, found)] == [{"a": 1}, {"a": 2}]
    assert [text for _, text, _, _ in found] == ["rest of the file: text that is not JSON"]
    with pytest.raises(BadDataset, match="holds something after the end of its JSON"):
        document(path)

    path.write_text('[{"a": 1}]\n[{"a": 2}]')
    found = Findings()
    assert [row for _, row in items(path, findings=found)] == [{"a": 1}]
    assert [text for _, text, _, _ in found] == ["rest of the file: something after the end of its JSON"]
