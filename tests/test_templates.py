"""`{{ dotted.name }}`, and nothing more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadOption
from karat.templates import fill, fill_body, names

VALUES: dict[str, Any] = {
    "question": 'Say "hi" \\ {{ profile.age }}\n',
    "n": 3,
    "none": None,
    "profile": {"age": 30, "tags": ["a", "b"], "first-name": "Ada"},
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ n }}{{n}}", "33"),
        ("{{ profile.age }} {{ profile.first-name }} {{ profile.tags.1 }}", "30 Ada b"),
        ("{{ profile.tags }} {{ none }}", '["a", "b"] null'),
        ("{{ question }}", 'Say "hi" \\ {{ profile.age }}\n'),  # text put in is not looked at again
        ("{ n } ${n} {% n %} }} {{", "{ n } ${n} {% n %} }} {{"),
        ("", ""),
    ],
)
def test_fields_are_filled(text: str, filled: str) -> None:
    assert fill(text, VALUES) == filled


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ questoin }}", "prompt: there is no value called 'questoin' (did you mean 'question'?)"),
        ("{{ profile.agee }}", "prompt: there is no value called 'profile.agee' (did you mean 'profile.age'?)"),
        ("{{ profile.tags.2 }}", "prompt: there is no value called 'profile.tags.2'"),
        ("{{ n.x }}", "prompt: there is no value called 'n.x'"),
        ("{{ n.__class__ }}", "prompt: there is no value called 'n.__class__'"),
        ("{{ n + 1 }}", "prompt: '{{ n + 1 }}' is not a field: a field is a dotted name, such as {{ question }}"),
        ("{{ }}", "prompt: '{{  }}' is not a field: a field is a dotted name, such as {{ question }}"),
    ],
)
def test_what_is_no_known_name_is_an_error(text: str, message: str) -> None:
    with pytest.raises(BadOption) as caught:
        fill(text, VALUES, place="prompt")
    assert str(caught.value) == message


@given(st.text(), st.text())
def test_values_stand_as_they_are(before: str, value: str) -> None:
    before = before.replace("{", "")
    assert fill(before + "{{ a }}", {"a": value, "b": 1}) == before + value


def test_names_are_listed_once() -> None:
    assert names("{{ b }} {{a.c}} {{ b }}") == ("b", "a.c")


def test_a_body_keeps_the_types_of_values() -> None:
    body = {"q": "{{ question }}", "n": " {{ n }} ", "list": ["{{ profile }}", 5, None], "text": "n = {{ n }}"}
    assert fill_body(body, VALUES) == {
        "q": VALUES["question"],
        "n": 3,
        "list": [VALUES["profile"], 5, None],
        "text": "n = 3",
    }


def test_a_body_may_be_json_with_fields_in_and_outside_of_quotes() -> None:
    body = '{"q": "{{ question }}", "n": {{ n }}, "all": {{ profile }}, "esc": "\\"{{ n }}\\""}'
    assert fill_body(body, VALUES) == {
        "q": VALUES["question"],
        "n": 3,
        "all": VALUES["profile"],
        "esc": '"3"',
    }


@given(st.text())
def test_no_value_breaks_out_of_its_place(value: str) -> None:
    assert fill_body('{"q": "{{ v }}", "r": {{ v }}, "s": "x{{ v }}"}', {"v": value}) == {
        "q": value,
        "r": value,
        "s": "x" + value,
    }
    assert fill_body({"q": "{{ v }}"}, {"v": value}) == {"q": value}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_any_json_value_can_stand_outside_of_quotes(value: Any) -> None:
    assert fill_body("[{{ v }}]", {"v": value}) == [json.loads(json.dumps(value))]


def test_a_body_that_is_not_json_is_an_error_that_names_its_place() -> None:
    with pytest.raises(BadOption, match=r"agent\.body: is not JSON once its fields are filled"):
        fill_body("{q: {{ n }}}", VALUES, place="agent.body")
    with pytest.raises(BadOption, match=r"body\.a\.1: there is no value called 'x'"):
        fill_body({"a": ["", "{{ x }}"]}, VALUES)


@pytest.mark.parametrize(
    "text",
    [
        "{{" + " " * 100_000,
        "{{" * 50_000,
        "{{ " * 33_000,
        "}}" + "{{ \n" * 25_000,
        "{{ n }}" + "{{" + "a" * 100_000,
    ],
)
def test_fields_without_an_end_stand_as_they_are_however_many(text: str) -> None:
    filled = text.replace("{{ n }}", "3")
    assert fill(text, VALUES) == filled
    assert names(text) == (("n",) if "{{ n }}" in text else ())
    assert fill_body([text], VALUES) == [filled]


@pytest.mark.parametrize(
    "name", [" " * 100_000, "{{" * 50_000, "a" * 100_000, "a." * 50_000 + "a", "profile.tags." + "1" * 5_000]
)
def test_a_name_of_any_length_is_an_error(name: str) -> None:
    with pytest.raises(BadOption):
        fill("{{" + name + "}}", {**VALUES, "".join(chr(200 + at % 700) for at in range(100_000)): 1})
