"""Columns with sentences that no name explains."""

from __future__ import annotations

import pytest

from karat.documents.columns import columns_of
from karat.documents.sentences import is_aside, sentences, unexplained

TEXTS = [f"My parcel number {at} is lost" for at in range(8)]


def rows(**cells):
    return columns_of([{name: held[at % len(held)] for name, held in cells.items()} for at in range(8)])


@pytest.mark.parametrize(
    ("name", "values", "question", "answer"),
    [
        ("mail", TEXTS, True, True),
        ("title", TEXTS, True, True),
        ("context", TEXTS, True, False),
        ("answer_key", TEXTS, False, False),
        ("error", TEXTS, False, False),
        ("mail", TEXTS[:4], True, True),
        ("mail", TEXTS[:3], False, False),
        ("mail", ["two words-are-few"], False, False),
        ("mail", [f"{at} is short it" for at in range(8)], False, False),
        ("mail", [f"{at} is longer than" for at in range(8)], True, True),
        ("mail", [f"私の荷物は今日も届いていません{at}" for at in range(8)], True, True),
        ("mail", [f"https://example.org/{at}" for at in range(8)], False, False),
        ("mail", [TEXTS[0], TEXTS[1], TEXTS[2], TEXTS[3], "", "", "", ""], True, True),
        ("mail", [TEXTS[0], TEXTS[1], TEXTS[2], "", "", "", "", ""], False, False),
        ("mail", [*range(8)], False, False),
    ],
)
def test_sentences_differ_and_have_words(name, values, question, answer):
    columns = rows(**{name: values})
    assert [sentences(columns, role) for role in ("question", "answer")] == [[name] * question, [name] * answer]


def test_sentences_in_objects_count_unless_they_are_aside():
    columns = columns_of(
        [{"ticket": {"mail": text, "more": {"x": text}}, "metadata": {"mail": text}} for text in TEXTS]
    )
    assert sentences(columns, "question") == ["ticket.mail"]
    assert [is_aside(path) for path in ("metadata.x", "x.Scores.y", "metadata", "x.y")] == [True, True, False, False]


def test_what_is_unexplained_has_no_role_yet():
    columns = rows(mail=TEXTS, task=TEXTS, title=TEXTS)
    assert unexplained(columns, {}, "question") == ["mail", "task", "title"]
    assert unexplained(columns, {"cluster": ["title"]}, "question") == ["mail", "task", "title"]
    assert unexplained(columns, {"golden": ["mail"]}, "question") == ["task", "title"]
    assert unexplained(columns, {"messages": ["chat"]}, "question") == []
    assert unexplained(columns, {"question": ["task"]}, "question") == ["mail"]  # a weak name
    assert unexplained(columns, {"question": ["question"]}, "question") == []
    assert unexplained(columns, {"answer": ["task"]}, "answer") == []
    inside = columns_of([{"ticket": {"mail": text}} for text in TEXTS])
    assert unexplained(inside, {"golden": ["ticket"]}, "question") == []
