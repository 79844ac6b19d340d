"""equals and contains."""

import pydantic
import pytest

from karat.records import NOT_ASKED, Answer, Reply, Sample, Turn
from karat.scorers import ScorerSetting, Verdict, announced
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


def conversation(goldens: list[str | None], replies: list[Reply]) -> tuple[Sample, Answer]:
    turns = tuple(Turn(question=f"q{number}", golden=golden) for number, golden in enumerate(goldens))
    answer = Answer(trial="0" * 24, sample="q", condition="c", repetition=0, replies=tuple(replies))
    return Sample(id="q", position=0, digest="", turns=turns), answer


def said(*texts: str) -> list[Reply]:
    return [Reply(text=text) for text in texts]


@pytest.mark.parametrize(
    ("plugin", "name", "right", "wrong"),
    [(Equals, "equals", "Paris", "in Paris"), (Contains, "contains", "Paris", "Rome")],
)
def test_a_conversation_is_compared_turn_by_turn_where_a_turn_has_a_golden_answer(plugin, name, right, wrong):
    goldens = ["Paris", None, " ", "Paris", "Paris"]
    found = plugin().score(*conversation(goldens, said(right, "anything", "anything", wrong)))
    assert found == [
        Verdict(values={name: True}, turn=0),
        Verdict(values={name: False}, turn=3),
        Verdict(values={name: False}, turn=4),  # no reply
    ]


@pytest.mark.parametrize(("plugin", "name"), [(Equals, "equals"), (Contains, "contains")])
def test_a_golden_answer_of_the_last_turn_alone_is_that_of_the_whole_answer(plugin, name):
    assert plugin().score(*conversation([None, "Paris"], said("Rome", "Paris"))) == [Verdict(values={name: True})]
    assert plugin().score(*conversation([None, None], said("Rome", "Paris"))) is None


@pytest.mark.parametrize(("plugin", "name"), [(Equals, "equals"), (Contains, "contains")])
def test_a_turn_that_was_not_asked_has_no_score(plugin, name):
    replies = [*said("Paris"), NOT_ASKED]
    assert plugin().score(*conversation(["Paris", "Rome"], replies)) == [Verdict(values={name: True}, turn=0)]


@pytest.mark.parametrize(("value", "negate"), [(True, False), (False, True)])
def test_texts_are_searched_in_the_last_reply_of_a_conversation(value, negate):
    scorer = Contains(Contains.Options(texts=["paris"], negate=negate))
    assert scorer.score(*conversation(["Rome", None], said("Rome", "Paris"))) is value
    assert scorer.score(*conversation(["Rome", None], said("Paris", "Rome"))) is not value


def test_one_of_several_accepted_texts_of_three_letters_may_be_inside_a_word():
    turn = Turn(question="Which?", golden="cat", detail={"answers": ["cat", "ox", 7]})
    sample, answer = conversation([None], said("concatenated"))
    scorer = Contains()
    several = Sample(id="q", position=0, digest="", turns=(turn,))
    assert scorer.score(several, answer) is True
    assert scorer.score(several, conversation([None], said("a foxy dog"))[1]) is False
    assert scorer.score(several, conversation([None], said("an ox"))[1]) is True
    assert scorer.score(sample, answer) is None


def test_a_scorer_has_the_name_that_the_experiment_gives_it(tmp_path):
    for plugin in (Equals, Contains):
        (metric,) = plugin(None, ScorerSetting(folder=tmp_path, name="mine")).metrics
        assert metric.name == "mine"


@pytest.mark.parametrize(
    ("text", "options", "value"),
    [
        ("  a", {"strip": False, "normalize_whitespace": True, "any_of": [" a"]}, True),
        ("a  ", {"strip": False, "any_of": ["a "]}, True),
        ("a  ", {"strip": False, "any_of": ["a"]}, False),
        ("   ", {"strip": False, "any_of": [""]}, True),
        ("A", {"any_of": ["a"], "case_sensitive": False}, True),
    ],
)
def test_white_space_at_the_ends_counts_only_where_it_is_not_stripped(judge, text, options, value):
    assert judge(Equals, None, text, **options) is value
