"""Answers that are easily read as another one: each stays what it is, or is none."""

from __future__ import annotations

import pytest

from karat_studies.kinds.study.fields import read_answers
from karat_studies.kinds.study.format import Answered

TWO = {"choice": Answered(type="choice", options=["A", "B"])}
DID = {"did": Answered(type="choice", options=["yes", "no"])}
WAY = {"way": Answered(type="choice", options=["left", "right"])}
ROMAN = {"more": Answered(type="choice", options=["I", "II"])}
MEANT = {"choice": Answered(type="choice", options={"A": "save 200 people", "B": "take the chance"})}
NUMBER = {"estimate": Answered(type="number", range=[0, 100_000])}
SHARE = {"percent": Answered(type="number", range=[0, 100])}
OFFER = {"offer": Answered(type="number", range=[0, 10])}
ANY = {"x": Answered(type="number")}
SIGNED = {"blame": Answered(type="likert", range=[-3, 3])}
SCALE = {"blame": Answered(type="likert", range=[1, 7])}
RANK = {"ranking": Answered(type="rank", options=["warm", "cold", "wise"])}


@pytest.mark.parametrize(
    "text",
    [
        "choice: A, B",
        "choice: A; B",
        "A, B",
        "A: 200 are saved. B: a gamble.",  # the question, said back
        "choice: A: 200 are saved. B: a gamble.",
        "choice: A. Just kidding, B",
        "choice: A, although I'd prefer B",
        "choice: A? No.",
        "choice: A, not really",
        "choice: A (60%), B (40%)",
        "choice: A (my friend says B)",
        "choice: A\nActually, B.",
        '{"choice": "A", "choice": "B"}',
        "choice: I refuse to pick A",
        "choice: I can't choose A",
        "I would not choose A",
        "choice: I would avoid option A",
        "choice: anything but option A",
        "choice: I'd rather die than choose A",
        "choice: other than option A",
        'choice: "A" is bad',
        "choice: (A) is bad, I choose the other",
        "choice: if forced, option A",
        "If my choice is A, 200 people will be saved.",
        "The worst choice is A.",
        "Most people's choice is A.",
        "My friend's choice is A",
        "Suppose the choice is A. Then 200 live.",
        'The answer "choice: A" would be wrong.',
        "Do not answer choice: A",
        'For example {"choice": "A"}. I do not want to choose.',
    ],
)
def test_an_option_that_is_named_is_not_yet_chosen(text: str) -> None:
    assert read_answers(text, TWO).values == {}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (DID, "did: no. Yes."),
        (DID, "did: yes? no"),
        (DID, "did: hardly yes"),
        (DID, "did: unsure: yes"),
        (DID, "No, I won't answer this."),
        (DID, "Yes, I understand the task. Which answer do you want?"),
        (DID, "No, it depends"),
        (WAY, "way: I would avoid left"),
        (WAY, "way: left is wrong"),
        (WAY, "way: all right"),
        (WAY, "way: Right, I pick left"),
        (WAY, "The way is left for others to go"),
        (ROMAN, "I, for one, like both"),
        (ROMAN, "I — don't know"),
        (ROMAN, "more: I, personally, think II"),
        (MEANT, "choice: A (take the chance)"),
        (MEANT, "choice: B: save 200 people"),
        (RANK, "ranking:\n3. wise\n1. warm\n2. cold"),
        (RANK, "ranking: 2. wise, 1. warm, 3. cold"),
    ],
)
def test_words_that_are_also_options_are_no_answers(fields: dict[str, Answered], text: str) -> None:
    assert read_answers(text, fields).values == {}


@pytest.mark.parametrize(
    ("fields", "text", "wanted"),
    [
        (TWO, "choice: A. I like it better than B.", "A"),
        (TWO, "choice: B, it is a fair gamble.", "B"),
        (TWO, "choice: I'll take option B", "B"),
        (TWO, "I'm not sure, but my choice is B", "B"),
        (TWO, "choice: A (saving 200 people)", "A"),
        (DID, "did: No, he didn't", "no"),
        (DID, "did: Yes, no doubt about it", "yes"),
        (DID, "Yes, he did.", "yes"),
        (WAY, "way: left because right is crowded", "left"),
        (WAY, "way: I'd go left", "left"),
        (MEANT, "choice: A, save 200 people for sure", "A"),
        (ROMAN, "more: I because it is larger", "I"),
        (NUMBER, "estimate: I think 30", 30),
        (NUMBER, "estimate: 30, since 25 is too low and 35 too high", 30),
        (NUMBER, "estimate: 0.3333333333333333", 0.3333333333333333),
        (NUMBER, '{"estimate": 99.99999999999999}', 99.99999999999999),
        (SHARE, "percent: 50 % of people", 50),
        (OFFER, "offer: $4 (keeping $6)", 4),
        (SIGNED, "blame: minus 2", -2),
        (SIGNED, "blame: \N{HYPHEN}2", -2),
        (SIGNED, "blame: negative two", -2),
        (SCALE, "blame: 5 on a scale of 1-7", 5),
    ],
)
def test_a_plain_answer_stays_one(fields: dict[str, Answered], text: str, wanted: float | str) -> None:
    assert [*read_answers(text, fields).values.values()] == [wanted]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        *((NUMBER, f"estimate: {said}") for said in (
            "12,5", "1,50", "1,5000", "1.234.567", "1_000", "10, 20", "10; 20",
            "10, maybe 20", "10 to maybe 20", "10..20",
            "10 at first, then 20", "between ten and 20", "less than 5", "at least 50", "not 5", "<5",
            "\N{GREATER-THAN OR EQUAL TO}5",
            "up to 5", "5 or more", "5+", "5 at most", "2 x 3", "10 minus 5", "10 times 5", "20% of 500", "50 %",
            "5 dozen", "5 hundred",
            "5 hundred thousand", "3\N{VULGAR FRACTION ONE HALF}", "5\N{SUPERSCRIPT TWO}",
            "0x10", "5:30", "5h30", "2nd", "COVID-19",
            "30 dollars and 50 cents", "5.5.5",
        )),
        (NUMBER, '{"estimate": 10, "estimate": 20}'),
        (NUMBER, "The lowest estimate is 5."),
        (NUMBER, "If the estimate is 5, fine."),
        (SHARE, "percent: 3 of 4"),
        (OFFER, "offer: 5%"),
        (OFFER, "offer: 5 cents"),
        (OFFER, "offer: 3 for me, 7 for you"),
        (OFFER, "offer: I keep 7"),
        (ANY, "x: 5 m"),  # metres, or millions
        (ANY, "x: 5 below zero"),
        (SCALE, "blame: 5,5"),
        (SCALE, "blame: 5 out of 10"),
        (SCALE, "blame: 5 and a half"),
        (SCALE, "blame: 1 (not at all) to 7 (very)"),
        (SCALE, "blame: 1 = not at all, 7 = very; I say 5"),
    ],
)  # fmt: skip
def test_a_number_that_needs_a_guess_is_none(fields: dict[str, Answered], text: str) -> None:
    assert read_answers(text, fields).values == {}
