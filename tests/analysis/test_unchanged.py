"""Conditions whose answers are those of an earlier run, word for word."""

from __future__ import annotations

import pytest
from tests.analysis.journals import Script, sample

from karat.analysis.unchanged import unchanged_conditions
from karat.records import Reply


def answered(folder, said, *, samples=None, **info):
    """A run with these answers: condition → questions → repetitions. None: no answer."""
    first = next(iter(said.values()))
    script = Script(folder, samples=samples or len(first), conditions=tuple(said), repetitions=len(first[0]), **info)
    for condition, questions in said.items():
        for row, texts in enumerate(questions):
            for repetition, text in enumerate(texts):
                if text is None:
                    script.failure(row, condition, repetition)
                else:
                    reply = text if isinstance(text, Reply) else Reply(text=text)
                    script.answer(row, condition, repetition, reply=reply)
    return script.end()


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ([["a"], ["b"]], [["a"], ["b"]], True),
        ([["a"], ["b"]], [["a"], ["c"]], False),
        ([["a"], ["b"]], [["a"], [None]], False),
        ([["a"], [None]], [["a"], [None]], False),
        ([["a", "b"]], [["a", "b"]], True),
        ([["a", "b"]], [["b", "a"]], False),
        ([["a", "b"]], [["a"]], False),
        ([["a", "a", "a"]], [["a"]], True),
        ([["a", None]], [["a"]], False),
        ([[Reply(text="a", dollars=1.0)]], [[Reply(text="a", dollars=2.0)]], True),
        ([[Reply(text="a", answer="3")]], [[Reply(text="a", answer="4")]], False),
    ],
    ids=str,
)
def test_a_condition_is_unchanged_where_every_answer_is_there_and_the_same(tmp_path, before, now, same):
    old = answered(tmp_path / "old", {"plain": before, "docs": [["x"] * len(before[0])] * len(before)})
    new = answered(tmp_path / "new", {"plain": now, "terse": now})
    assert unchanged_conditions(new, old) == ({"plain"} if same else set())


@pytest.mark.parametrize("source", [{"format": "csv"}, {}], ids=["imported", "asked"])
def test_answers_that_an_imported_file_does_not_hold_are_not_the_same(tmp_path, source):
    answers = {"plain": [[""], [""]], "docs": [["a"], [""]]}  # one of docs was empty
    old = answered(tmp_path / "old", answers, source=source)
    new = answered(tmp_path / "new", answers, source=source)
    assert unchanged_conditions(new, old) == ({"docs"} if source else {"docs", "plain"})


def test_only_questions_of_the_same_content_are_compared(tmp_path):
    old = answered(tmp_path / "old", {"plain": [["a"], ["b"], ["c"]], "docs": [["d"], ["e"], ["f"]]})
    samples = [sample(0), sample(1, digest="ee" * 16), sample(7)]
    new = answered(tmp_path / "new", {"plain": [["a"], ["z"], ["c"]], "docs": [["z"], ["e"], ["f"]]}, samples=samples)
    assert unchanged_conditions(new, old) == {"plain"}
    others = [sample(8), sample(9), sample(7)]
    apart = answered(tmp_path / "apart", {"plain": [["a"], ["b"], ["c"]]}, samples=others)
    assert unchanged_conditions(apart, old) == set()
