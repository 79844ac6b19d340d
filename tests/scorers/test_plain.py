"""equals and contains."""

import pydantic
import pytest

from karat.records import Answer, Reply, Sample, Turn
from karat.scorers import announced
from karat.scorers.contains import Contains
from karat.scorers.equals import Equals


@pytest.mark.parametrize(
    ("golden", "text", "options", "value"),
    [
        ("42", "42", {}, True),
        ("42", " 42\n", {}, True),
        ("42", "43", {}, False),
        ("Paris", "paris", {}, False),
        ("Paris", "paris", {"case_sensitive": False}, True),
        ("STRASSE", "straße", {"case_sensitive": False}, True),
        ("a b", "a \n b", {}, True),
        ("a b", "a  b", {"normalize_whitespace": False}, False),
        ("a", " a", {"strip": False}, False),
        (" a", "\ta", {"strip": False}, True),
        ("café", "cafe\u0301", {}, True),
        ("café", "cafe\u0301", {"normalize_unicode": False}, False),
        ("", "", {}, True),
        (None, "42", {}, None),
        (None, "b", {"any_of": ["a", "b"]}, True),
        ("c", "c", {"any_of": ["a", "b"]}, False),
    ],
)
def test_equals(judge, golden, text, options, value):
    assert judge(Equals, golden, text, **options) is value


@pytest.mark.parametrize(
    ("golden", "text", "options", "value"),
    [
        ("Paris", "It is paris, of course.", {}, True),
        ("Paris", "It is paris.", {"case_sensitive": True}, False),
        ("two  words", "these two\nwords", {}, True),
        ("Paris", "Rome", {}, False),
        ("Paris", "Rome", {"negate": True}, True),
        (None, "Rome", {}, None),
        (" ", "Rome", {}, None),
        (None, "a and b", {"texts": ["a", "b"]}, True),
        (None, "a alone", {"texts": ["a", "b"]}, False),
        (None, "alone: a", {"texts": ["z", "a"], "match": "any"}, True),
        (None, "x", {"texts": "x"}, True),
    ],
)
def test_contains(judge, golden, text, options, value):
    assert judge(Contains, golden, text, **options) is value


@pytest.mark.parametrize(
    ("text", "equal", "contained"),
    [
        ("B", True, True),
        ("2", True, True),
        ("It is (B).", False, True),
        ("B) 2", True, True),
        ("Both, I think", False, False),
    ],
)
def test_a_golden_choice_is_right_by_its_letter_or_its_text_and_never_inside_a_word(text, equal, contained):
    choice = Turn(question="Which?", golden="B", detail={"answers": ["B", "2", "B) 2"]})
    sample = Sample(id="q", position=0, digest="", turns=(choice,))
    reply = Reply(text=text, answer=text)
    answer = Answer(trial="0" * 24, sample="q", condition="c", repetition=0, replies=(reply,))
    assert (Equals().score(sample, answer), Contains().score(sample, answer)) == (equal, contained)


def test_contains_refuses_an_empty_text():
    with pytest.raises(pydantic.ValidationError, match="every answer contains it"):
        Contains.Options(texts=["a", " "])


@pytest.mark.parametrize("plugin", [Equals, Contains])
def test_unknown_options_are_refused_and_the_metric_is_a_share(plugin):
    with pytest.raises(pydantic.ValidationError, match="Extra inputs are not permitted"):
        plugin.Options(nonsense=1)
    (metric,) = announced(plugin(), "x")
    assert (metric.low, metric.high, metric.kind) == (0, 1, "share")
