"""Answers of participants: what is read, and what is never made into an answer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat_studies.kinds.study.fields import KINDS, read_answers
from karat_studies.kinds.study.format import Answered
from karat_studies.kinds.study.prompts import answer_form

TWO = {"choice": Answered(type="choice", options=["A", "B"])}
STORY = {
    "blame": Answered(type="likert", range=[0, 6]),
    "intentional": Answered(type="choice", options=["yes", "no"]),
}
NUMBER = {"estimate": Answered(type="number", range=[0, 100_000])}
RANK = {"ranking": Answered(type="rank", options=["warm", "cold", "wise"])}
WORDS = {"first": Answered(type="text"), "second_person": Answered(type="text")}
ROMAN = {"more": Answered(type="choice", options=["I", "II"])}
MEANT = {"choice": Answered(type="choice", options={"A": "save 200 people", "B": "take the chance"})}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("choice: A", "A"),
        ("**choice:** B", "B"),
        ("- **Choice**: (A)", "A"),
        ("My choice is A.", "A"),
        ("choice = b", "B"),
        ("choice: option A", "A"),
        ("choice: I'd go with programme B", "B"),
        ("choice: A) 200 are saved", "A"),
        ("choice: A, because B is risky", "A"),
        ("choice: A rather than B", "A"),
        ("choice: B (the gamble)", "B"),
        ("A", "A"),
        ("Option B.", "B"),
        ("I'd go with option B because it is a gamble", "B"),
        ('```json\n{"choice": "B"}\n```', "B"),
        ('{"reason": "no {braces}", "Choice": "a"} and that is all', "A"),
        ("A would save 200 for certain, and B is a gamble.\n\nchoice: B", "B"),
        ("As an AI I have no preferences of my own, but still:\nchoice: A", "A"),
        ("choice: A or B\n\nchoice: B", "B"),  # the form said back, then the answer
        ("choice: A\nchoice: A", "A"),
        ("If my choice is A, I am safe, but dull.\nchoice: B", "B"),
        ("choice: A (not B)", "A"),
        ("choice: B\nSo my choice is B.", "B"),
    ],
)
def test_a_choice_is_read_by_key_in_lines_json_and_prose(text: str, wanted: str) -> None:
    assert read_answers(text, TWO).values == {"choice": wanted}
    assert read_answers(text, TWO).kinds == {}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "missing"),
        ("choice:", "missing"),
        ('{"choice": null}', "missing"),
        ("Both have their merits.", "missing"),
        ("The choice is yours.", "missing"),
        (answer_form(TWO), "missing"),
        ("choice: C", "invalid"),
        ("choice: both", "invalid"),
        ("choice: not A", "invalid"),
        ("choice: neither A nor B", "invalid"),
        ("choice: a person who saves lives", "invalid"),
        ("choice: A\nchoice: B", "contradictory"),
        ("choice: A and B", "contradictory"),
        ('{"choice": "A"}\nchoice: B', "contradictory"),
        ("choice: A? No, B", "contradictory"),
        ("choice: A ... wait, I mean B", "contradictory"),
        ("choice: A\nOn reflection, my final choice is B.", "contradictory"),
        ('{"choice": "A"} Or rather: my choice is B.', "contradictory"),
        ("I cannot choose between them.", "refused"),
        ("choice: I would rather not say", "refused"),
        ("choice: n/a", "refused"),
        ("As an AI language model I do not make such decisions.", "refused"),
        ("I'm sorry, but I can't help with that.", "refused"),
    ],
)
def test_what_is_no_choice_is_never_made_one(text: str, kind: str) -> None:
    found = read_answers(text, TWO)
    assert (found.values, found.kinds) == ({}, {"choice": kind})


@pytest.mark.parametrize(
    ("text", "values", "kinds"),
    [
        ("blame: 5\nintentional: yes", {"blame": 5, "intentional": "yes"}, {}),
        ("blame: 5/6\nintentional: Yes, he did", {"blame": 5, "intentional": "yes"}, {}),
        ("blame: five\nintentional: YES!", {"blame": 5, "intentional": "yes"}, {}),
        ('{"blame": 5, "intentional": true}', {"blame": 5, "intentional": "yes"}, {}),
        ("My blame is 6 and intentional: no", {"blame": 6, "intentional": "no"}, {}),
        ("In the end my intentional is yes and my blame is 6.", {"blame": 6, "intentional": "yes"}, {}),
        ("blame: 5 because 3 of my friends would\nintentional: no", {"blame": 5, "intentional": "no"}, {}),
        ("blame: 7\nintentional: no doubt, yes", {"intentional": "yes"}, {"blame": "out_of_range"}),
        ("blame: -1\nintentional: no", {"intentional": "no"}, {"blame": "out_of_range"}),
        ("blame: 4.5\nintentional: no", {"intentional": "no"}, {"blame": "out_of_range"}),
        ("blame: 5, no, 6\nintentional: no", {"intentional": "no"}, {"blame": "contradictory"}),
        ("blame: 5\nintentional: yes, no doubt", {"blame": 5, "intentional": "yes"}, {}),
        ("blame: 5\nintentional: no, not yes", {"blame": 5, "intentional": "no"}, {}),
        ("blame: 3-4\nintentional: no", {"intentional": "no"}, {"blame": "contradictory"}),
        ("blame: between 3 and 4\nintentional: no", {"intentional": "no"}, {"blame": "contradictory"}),
        ("5, yes", {}, {"blame": "missing", "intentional": "missing"}),
        ("I can't rate this.", {}, {"blame": "refused", "intentional": "refused"}),
    ],
)
def test_fields_are_read_each_for_itself(text: str, values: dict[str, Any], kinds: dict[str, str]) -> None:
    found = read_answers(text, STORY)
    assert (found.values, found.kinds) == (values, kinds)
    assert found.complete(STORY) == (not kinds)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("estimate: 1,500", 1500),
        ("estimate: $20", 20),
        ("72", 72),
        ("estimate: 2e3", 2000),
        ("estimate is 12.5.", 12.5),
        ("estimate: 12.5. That is it", 12.5),
        ("estimate: 12 families", 12),
        ("estimate: .5", 0.5),
        ("estimate: 15 thousand", 15_000),
        ("Estimate: about 30", 30),
        ("estimate: 0", 0),
    ],
)
def test_a_number_is_read(text: str, wanted: float) -> None:
    assert read_answers(text, NUMBER).values == {"estimate": wanted}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("estimate: 1.5 million", "out_of_range"),
        ("estimate: -3", "out_of_range"),
        ("estimate: 30 or 40", "contradictory"),
        ("estimate: 30 to 40", "contradictory"),
        ("estimate: many", "invalid"),
        ("about 70, I think, of 92", "missing"),
        ("estimate: 30\nestimate: 40", "contradictory"),
        ("estimate: infinity", "invalid"),
        ("estimate: 50 %", "invalid"),  # of what?
    ],
)
def test_a_number_is_not_guessed(text: str, kind: str) -> None:
    assert read_answers(text, NUMBER).kinds == {"estimate": kind}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ranking: wise, warm, cold", ["wise", "warm", "cold"]),
        ("ranking: wise > warm > cold", ["wise", "warm", "cold"]),
        ("ranking:\n1. Wise\n2. warm\n3. cold\n\nSo be it.", ["wise", "warm", "cold"]),
        ('{"ranking": ["cold", "wise", "warm"]}', ["cold", "wise", "warm"]),
        ("ranking: wise, warm", "invalid"),
        ("ranking: wise, wise, cold", "contradictory"),
        ("ranking: wise, warm, cold, kind", "invalid"),
        ("ranking: all the same", "invalid"),
    ],
)
def test_a_ranking_names_each_option_once(text: str, wanted: list[str] | str) -> None:
    found = read_answers(text, RANK)
    assert (found.kinds if isinstance(wanted, str) else found.values) == {"ranking": wanted}


def test_texts_go_on_until_the_next_key():
    found = read_answers("first: somebody who\nworks hard\n\nSecond person: lazy", WORDS)
    assert found.values == {"first": "somebody who\nworks hard", "second_person": "lazy"}


def test_the_only_text_needs_no_key():
    assert read_answers("serene, at peace", {"calm": Answered(type="text")}).values == {"calm": "serene, at peace"}
    assert read_answers("I'd prefer not to say.", {"calm": Answered(type="text")}).kinds == {"calm": "refused"}


def test_a_pronoun_is_no_option():
    assert read_answers("more: II", ROMAN).values == {"more": "II"}
    assert read_answers("more: I", ROMAN).values == {"more": "I"}
    assert read_answers("more: I think II", ROMAN).kinds == {"more": "invalid"}
    assert read_answers("I think that both are alike", ROMAN).kinds == {"more": "missing"}


def test_an_option_may_be_said_by_what_it_means():
    assert read_answers("choice: Save 200 people.", MEANT).values == {"choice": "A"}
    assert read_answers("choice: B: take the chance", MEANT).values == {"choice": "B"}


@pytest.mark.slow
@given(st.text(max_size=300))
def test_every_field_has_an_answer_or_a_kind(text: str) -> None:
    for fields in (TWO, STORY, NUMBER, RANK, WORDS):
        found = read_answers(text, fields)
        assert {*found.values, *found.kinds} == set(fields)
        assert not set(found.values) & set(found.kinds)
        assert set(found.kinds.values()) <= set(KINDS)


@given(
    st.sampled_from(["A", "B"]),
    st.integers(0, 6),
    st.sampled_from(["yes", "no"]),
    st.lists(st.sampled_from(["", "I have thought about it.", "Well —", "> quoted"]), max_size=3),
)
def test_what_keeps_to_the_form_is_read_in_each_of_its_ways(
    choice: str, blame: int, said: str, before: list[str]
) -> None:
    fields = TWO | STORY
    answers = {"choice": choice, "blame": blame, "intentional": said}
    lines = "\n".join([*before, *(f"{name}: {value}" for name, value in answers.items())])
    assert read_answers(lines, fields).values == answers
    assert read_answers("\n".join([*before, json.dumps(answers, indent=1)]), fields).values == answers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["choice", "blame"])
@pytest.mark.parametrize(
    "part",
    ["{", '{"NAME":', "NAME:", "NAME: A ", "NAME ", " ", "*", "NAME: 1", "I ", "-", "'", "\n", "NAME:\n", "i would ",
     "(",
     "1,", "as an ", "A B ", "9", "N/A\n", "\t:", "option "],
)  # fmt: skip
def test_hostile_answers_cost_time_in_proportion(name: str, part: str) -> None:
    fields = TWO if name == "choice" else {"blame": STORY["blame"]}
    text = part.replace("NAME", name) * (200_000 // len(part))
    begun = time.process_time()
    read_answers(text, fields)
    assert time.process_time() - begun < 3  # some 0.1 s; squares of 200,000 would be hours
