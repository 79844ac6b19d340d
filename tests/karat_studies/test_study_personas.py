"""System prompts as participants read them."""

from __future__ import annotations

import pytest

from karat.errors import BadOption
from karat_studies.kinds.study.people import known_to, missing_in, optional_names, persona

ADA = {"age": 36, "gender": "female", "country": "England"}


@pytest.mark.parametrize(
    ("template", "read"),
    [
        pytest.param(
            "Be brief.\n\n\n\nThanks.\n", "Be brief.\n\n\n\nThanks.\n", id="a text without names stays as it is"
        ),
        pytest.param("You are {{ profile.age }}, {{profile.gender}}.", "You are 36, female.", id="values"),
        pytest.param("{{? profile.age }}Age: {{ profile.age }}", "Age: 36", id="a line of what is known"),
        pytest.param("a\n{{? profile.job }}Work: {{ profile.job }}\nb", "a\nb", id="a line of what is not"),
        pytest.param("a\n  {{?profile.job}} Work\n\n\nb", "a\n\nb", id="no hole is left"),
        pytest.param("{{? profile.job profile.age }}Who:\nx", "Who:\nx", id="one of several is enough"),
        pytest.param("a\n{{? profile.job profile.size }}Who:", "a", id="none of several"),
        pytest.param("{{ profile.age }}; {{ rest }}", "36; gender: female; country: England", id="the rest"),
        pytest.param(
            "{{ profile.age }}{{ profile.gender }}{{ profile.country }}\n{{? rest }}More: {{ rest }}",
            "36femaleEngland",
            id="nothing is left over",
        ),
        pytest.param("{{? profile.age }}x\n{{? rest }}{{ rest }}", "x\ngender: female; country: England", id="named"),
    ],
)
def test_a_prompt_is_filled(template, read):
    assert persona(template, ADA) == read


def test_what_is_put_in_is_not_looked_at_again():
    profile = {"age": "{{ rest }}\n{{? profile.x }}", "other": "{{ profile.age }}"}
    assert persona("{{ profile.age }}|{{ rest }}", profile) == "{{ rest }}\n{{? profile.x }}|other: {{ profile.age }}"


@pytest.mark.parametrize("name", ["profile.agee", "age", "rest.x", "1 + 1", "profile.age.real", "? profile.age"])
def test_a_name_that_nothing_gives_is_refused(name):
    with pytest.raises(BadOption, match=r"^system_prompt: "):
        persona(f"x {{{{ {name} }}}}", ADA)


def test_the_names_of_a_prompt():
    prompt, attributes = (
        "{{ profile.age }} {{ profile.job }}\n{{? profile.car rest }}x {{ profile.size }}",
        ["age", "car"],
    )
    assert missing_in(prompt, attributes) == ["profile.job", "profile.size"]
    assert optional_names(prompt) == ["profile.car", "rest"]
    assert known_to(prompt, attributes) == ["profile.age", "profile.car"]


@pytest.mark.parametrize(
    "template",
    ["{{" + " " * 100_000, "{{?" + " " * 100_000, " \t" * 50_000 + "{{?", "{{? a" * 20_000, "\n" * 100_000 + "{{"],
)
def test_a_prompt_of_fields_without_an_end_is_read_as_it_stands(template):
    assert persona(template, ADA) == template


def test_many_lines_of_what_is_not_known_are_left_out():
    profile = {f"name{at}": at for at in range(5_000)}
    assert persona("{{? profile.job }}\n" * 5_000 + "x", profile) == "x"
