"""YAML: lines, limits, and what readers of YAML get wrong."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from karat.documents.nodes import Node, plain, printable
from karat.documents.reader import MAX_BYTES, MAX_NODES, parse, parse_value


def read(text: str) -> Any:
    document = parse(text.encode())
    assert document.faults == []
    assert document.root is not None
    return plain(document.root)


def node(text: str, *place: str | int) -> Node:
    root = parse(text.encode()).root
    assert root is not None
    found = root.get(*place)
    assert found is not None
    return found


SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text())
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(TREES)
def test_what_yaml_writes_is_read_as_yaml_reads_it(tree: Any) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    assert read(text) == yaml.safe_load(text)


def test_each_value_has_the_line_and_the_column_of_its_key() -> None:
    text = "a: 1\nb:\n  c:\n    - x\n    - y\n  d: |\n    text\n    more\n"
    places: list[tuple[str | int, ...]] = [("a",), ("b",), ("b", "c"), ("b", "c", 1), ("b", "d")]
    assert [node(text, *place).line for place in places] == [1, 2, 3, 5, 6]
    assert [node(text, *place).column for place in places] == [1, 1, 3, 7, 3]


def test_aliases_and_merges_are_expanded_and_stay_apart() -> None:
    text = "base: &base {model: a, size: 1}\none: {<<: *base, model: b}\ntwo: [*base, *base]\n"
    assert read(text)["one"] == {"model": "b", "size": 1}
    assert node(text, "two", 0) is not node(text, "two", 1)


def test_of_several_merges_the_first_wins() -> None:
    text = "a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}\n"
    assert read(text)["c"] == yaml.safe_load(text)["c"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "value", "warning"),
    [
        ("no", False, 'a (line 1, column 4): YAML reads no as false; write false, or "no" for the text'),
        ("On", True, 'a (line 1, column 4): YAML reads On as true; write true, or "On" for the text'),
        ("1:30", 90, 'a (line 1, column 4): YAML reads 1:30 as 90 (base 60); write 90, or "1:30" for the text'),
        ("010", 8, 'a (line 1, column 4): YAML reads 010 as 8; write 8, or "010" for the text'),
        ("'no'", "no", None),
        ("true", True, None),
        ("0", 0, None),
        ("0.5", 0.5, None),
        ("2026-01-31", "2026-01-31", None),
        ("~", None, None),
    ],
)
def test_what_yaml_reads_otherwise_than_people_is_warned_of(text: str, value: Any, warning: str | None) -> None:
    document = parse(f"a: {text}\n".encode())
    assert document.root is not None
    assert plain(document.root) == {"a": value}
    assert document.warnings == ([warning] if warning else [])


@pytest.mark.parametrize("written", ["0x" + "f" * 4000, "0b" + "1" * 20000, "1" + ":1" * 3000, "1" * 5000])
def test_a_number_too_long_to_write_is_a_fault_of_its_line(written: str) -> None:
    (fault,) = parse(f"a: 1\nb: {written}\n".encode(), what="a file").faults
    assert (fault.place, fault.line) == ("b", 2)
    assert fault.message.startswith(f"'{written[:40]}' is not a valid int")


def test_a_number_too_large_for_a_float_is_still_read() -> None:
    document = parse(f"a: 1{':1' * 200}\nb: 0x{'f' * 300}\n".encode(), what="a file")
    assert (document.faults, len(document.warnings)) == ([], 2)


def test_keys_are_the_text_that_stands_there() -> None:
    assert list(read("no: 1\n1: 2\n2.0: 3\n2026-01-31: 4\n")) == ["no", "1", "2.0", "2026-01-31"]


def test_a_billion_laughs_are_refused_before_they_are_expanded() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]" for n in range(20)]
    (fault,) = parse("\n".join(lines).encode()).faults  # expanded, they would be 10 to the 21st
    assert "20000" in fault.message


def test_the_count_of_values_is_exact() -> None:
    def listing(items: int) -> bytes:
        return b"- " + b"\n- ".join([b"x"] * items) + b"\n"

    assert parse(listing(MAX_NODES - 1)).faults == []
    assert len(parse(listing(MAX_NODES)).faults) == 1


def test_the_size_is_limited() -> None:
    comment = b"#" * (MAX_BYTES - 5)
    assert parse(b"a: 1\n" + comment).faults == []
    assert len(parse(b"a: 11\n" + comment).faults) == 1


@pytest.mark.parametrize("bracket", ["[", "{a: ", "- "])
def test_nesting_is_limited_without_recursion(bracket: str) -> None:
    (fault,) = parse(bracket.encode() * 200_000).faults
    assert "nested deeper" in fault.message


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    lines = [f"a0: &a0 {'[' * 50}x{']' * 50}"]
    lines += [f"a{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}" for n in range(1, 25)]
    (fault,) = parse("\n".join(lines).encode()).faults
    assert fault.message == "is nested deeper than 100 levels"
    assert fault.line == 2


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read("\ufeffa: 1\n") == {"a": 1}


def test_all_doubled_keys_are_found_and_a_merged_one_is_none() -> None:
    text = "d: &d {x: 1}\na: {<<: *d, x: 2}\nb: {y: 1, y: 2}\nb: 3\n"
    assert [fault.place for fault in parse(text.encode()).faults] == ["b.y", "b"]


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(data: bytes) -> None:
    document = parse(data)
    root = document.root
    assert root is None or not document.faults or root.value is not None or root.unset
    assert all(fault.message for fault in document.faults)


@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!<>|'\"\n #,?%@`~0.\t"), max_size=60))
def test_no_punctuation_makes_it_stumble(text: str) -> None:
    """Whatever PyYAML refuses is a fault here too."""
    document = parse(text.encode())
    try:
        list(yaml.parse(text, Loader=yaml.CSafeLoader))
    except yaml.YAMLError:
        assert document.faults


@pytest.mark.parametrize("key", ["yes", "No", "on", "OFF"])
def test_a_key_that_others_read_as_true_or_false_is_warned_of(key: str) -> None:
    document = parse(f"{key}: 1\n'{key}x': 2\n".encode())
    assert document.root is not None
    assert plain(document.root) == {key: 1, f"{key}x": 2}
    (warning,) = document.warnings
    assert f"other YAML readers take the key {key} for true or false; here it is the text." in warning
    assert parse(f"'{key}': 1\n".encode()).warnings == []


def test_any_value_can_be_printed() -> None:
    class Own:
        """Of a plug-in."""

    tree = {1: (PurePath("a/b"), None, 2.5), "f": len, "g": read, "o": Own()}
    name = f"{__name__}:test_any_value_can_be_printed.<locals>.Own"
    assert printable(tree) == {"1": ["a/b", None, 2.5], "f": "builtins:len", "g": f"{__name__}:read", "o": name}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: [1, 2", "2, column 1): not YAML: a bracket or brace that is not closed, or a comma that is missing"),
        ('a: "x\\q"', "1, column 6): not YAML: a backslash in double quotes: use single quotes, or write it twice"),
        ("a: {b: ${X}}", '1, column 9): not YAML: inside braces a variable must be in quotes: "${NAME}"'),
        ("a:\n b: 1\n  c: 2", "3, column 4): not YAML: "),
    ],
)
def test_what_is_not_yaml_is_one_fault_with_its_place_and_remedy(text: str, fault: str) -> None:
    (found,) = parse(text.encode()).faults
    assert str(found).startswith(f"file (line {fault}")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            b"a: 1\n---\nb: 2\n",
            "file (line 2, column 1): a second document starts here ('---'); an experiment file holds",
        ),
        (
            b"a: !!python/object:os.x {}\n",
            "a (line 1, column 4): the tag !!python/object:os.x is not allowed here; write ",
        ),
        (b"a: !own x\n", "a (line 1, column 4): the tag !own is not allowed here; write plain YAML"),
        (b"a: &x [*x]\n", "a.0 (line 1, column 8): the alias *x is inside what it refers to"),
        (b"a: [1, *x]\n", "a.1 (line 1, column 8): no anchor &x comes before the alias *x"),
        (b"? [1]\n: 2\n", "file (line 1, column 3): a key must be text, not a list, mapping or alias"),
        (b"~: 1\n", "~ (line 1, column 1): a key is empty; give it a name"),
        (
            b"a: {<<: 3}\n",
            "a.<< (line 1, column 5): '<<' takes a mapping (an alias such as *defaults) or a list of them",
        ),
        (
            b"a: 1\nb:\n  c: 2\n  c: 3\n",
            "b.c (line 4, column 3): the key 'c' appears twice, first in line 3; remove one",
        ),
        (b"a: !!int x\n", "a (line 1, column 4): 'x' is not a valid int; put it in quotes"),
        (b"a: 1\nb: \xff\n", "file (line 2): byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"\xffa: 1\n", "file (line 1): byte 0xff is not UTF-8; save the file as UTF-8"),
        (b"a: 1\n\nb: \x07\n", "file (line 3): a control character (U+0007), which YAML does not allow; remove it"),
        (b"a: \0", "file: is not a text file; an experiment file is YAML in UTF-8"),
        (b"a: @x\n", "file (line 1, column 4): not YAML: no value can start with this character (a tab, '@', "),
        (b"a: b: c\n", "file (line 1, column 5): not YAML: a ':' where none is allowed: put text that contains ': ' "),
        (b"a: 'x\n", "file (line 2, column 1): not YAML: a quote is not closed"),
    ],
)
def test_each_fault_has_its_place_and_its_remedy(text: bytes, fault: str) -> None:
    (found,) = parse(text).faults
    assert str(found).startswith(fault)


def test_plain_tags_of_yaml_are_read() -> None:
    assert read("a: !!map {b: !!seq [!!str 1, ! x]}\nc: !!str 010\n") == {"a": {"b": ["1", "x"]}, "c": "010"}
    assert read("a: &x [1, {b: 2}]\nc: *x\n") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}
    assert [node("a: &x\n  - 1\nc: *x\n", *place).line for place in (("a", 0), ("c", 0), ("c",))] == [2, 2, 3]


@pytest.mark.parametrize(
    ("text", "value", "wrong"),
    [
        ("5", 5, False),
        ("true", True, False),
        ("Answer: briefly", "Answer: briefly", False),
        ("- x", "- x", False),
        ("a, b", "a, b", False),
        ("@x", "@x", False),
        ("[1, x]", [1, "x"], False),
        (" {a: 1}", {"a": 1}, False),
        ("'5'", "5", False),
        ("", None, False),
        ("[1", None, True),
    ],
)
def test_a_value_of_set_is_a_text_unless_brackets_say_otherwise(text: str, value: Any, wrong: bool) -> None:
    root, message = parse_value(text)
    assert plain(root) == value
    assert bool(message) is wrong


@pytest.mark.parametrize("written", ["-010", "+010", "0o10", "-1:30", "1:30.5"])
def test_signs_do_not_hide_what_is_misread(written: str) -> None:
    warned = parse(f"a: {written}\n".encode()).warnings
    assert bool(warned) is (written != "0o10")  # to YAML 1.1 that is a text
