"""Texts and programs side by side, and proofs as a page tells them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.analysis import journals
from tests.karat_viewer.serving import Viewer

from karat.journal import Labels
from karat.journal.events import Choice
from karat.kind_views import Reviews, SamplePage, TrialRecord
from karat.records import Answer, Reply, Sample, Score, Turn
from karat_conversations.kinds.conversation.views import aligned, steps, turns
from karat_viewer.text_diff import MOST_WORDS, difference

words = st.lists(st.sampled_from(["a", "b", "karat", ".", "\n", "is"]), max_size=60).map(" ".join)


@given(golden=words, answer=words)
def test_a_difference_holds_both_texts_whole(golden, answer):
    parts, left = difference(golden, answer)
    assert "".join(words for kind, words in parts if kind != "ins") == golden
    assert "".join(words for kind, words in parts if kind != "del") == answer
    assert left == ""


def test_single_words_that_both_happen_to_use_say_nothing():
    parts, _ = difference("Python 3.11 or newer on Linux or macOS", "I do not know what Linux is")
    assert [kind for kind, _ in parts] == ["del", "ins"]
    parts, _ = difference("use --resume RUN to go on", "use --resume RUN to begin anew")
    assert parts[0] == ("same", "use --resume RUN to ")


@pytest.mark.parametrize(("one", "other"), [("a " * 1500, "a b " * 750), ("a b " * 750, "b a c " * 500)])
def test_texts_made_to_take_long_do_not(one, other):
    begun = time.process_time()
    difference(one, other)
    steps("a" * 20_000)
    steps("(" * 20_000)
    assert time.process_time() - begun < 5  # without the bound it is many times that


def test_what_was_not_compared_is_said():
    _, left = difference("word " * MOST_WORDS, "word " * MOST_WORDS)
    assert left == "Compared: the first 1,500 words and signs of each."


def test_steps_are_matched_in_their_order():
    golden = ["add(1, 2)", "multiply(#0, 3)", "divide(#1, 4)"]
    assert aligned(golden, ["add(1,2)", "divide(#1, 4)"]) == [("add(1,2)", True), ("divide(#1, 4)", True)]
    assert aligned(golden, ["divide(#1, 4)", "add(1, 2)"]).count(("add(1, 2)", True)) in (0, 1)
    assert aligned([], ["add(1, 2)"]) == [("add(1, 2)", False)]


def test_turns_are_counted_from_one_in_proofs_and_steps_as_in_programs():
    evidence = {"turn": 0, "step": 0, "substitutions": [{"turn": 1, "golden": "5"}], "turns": [0, 2]}
    score = Score(
        trial="t", scorer="numeric", scoring="s", values={"right": False}, turn=0, labels={"diagnosis": "propagated"},
        detail={"evidence": evidence, "carried": True, "actual": "4"},
    )  # fmt: skip
    trial = TrialRecord(
        n=1, id="t", condition=0, repetition=0, scores=(score,), failure=None, attempts=(), heard=(), dollars=None,
        tokens=None, values={},
        answer=Answer(
            trial="t", sample="s", condition="c", repetition=0, replies=(Reply(text="4"),), started="", seconds=1
        ),
    )  # fmt: skip
    sample = Sample(id="s", position=0, digest="", turns=(Turn(question="?", golden="5"), Turn(question="??")))
    page = SamplePage(
        run="run", info=None, n=1, sample=sample, trials=[trial], conditions=["c"],
        reviews=Reviews(labels=Labels(newest={}), reviewer=""),
    )  # fmt: skip
    first, second = turns(page)
    assert first["answers"][0]["evidence"] == [
        ("turn", "1"),
        ("step", "0"),
        ("substitutions", '[{"turn": 2, "golden": "5"}]'),
        ("turns", "[1, 3]"),
        ("carried", "proved to be right, had earlier turns been right"),
    ]
    assert first["answers"][0]["right"] is False
    assert second["answers"][0]["missing"] == "never reached"


@pytest.mark.quick(1)
@pytest.mark.parametrize(("rule", "shown"), [(None, "0.0 %"), ("unit_agnostic", "100.0 %")])
def test_the_pages_call_right_what_the_dataset_calls_right(tmp_path, rule, shown):
    said = {"a": [[[Reply(text="", answer="50")]]]}
    chosen = {} if rule is None else {"dataset.right": Choice(value=rule, source="file")}
    only = journals.asked("only", 0, [{"golden": "0.5"}])
    journals.conversations(tmp_path / "results" / "run", [only], said, experiment=chosen)
    with Viewer(tmp_path / "results") as viewer:
        page = viewer.enter().get("/runs/run").text
        assert f"a: {shown}" in page
        answer = viewer.get("/runs/run/samples/1").text
    right, wrong = ('<span class="good-text">right</span>' in answer, '<span class="bad-text">wrong</span>' in answer)
    assert (right, wrong) == (rule is not None, rule is None)
