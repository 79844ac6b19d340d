"""Where the variation comes from, from results that are made up."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import Group as Answers
from karat.analysis.model import JudgeMean, JudgePair, Reliability, Summary
from karat.analysis.numbers import Estimate, Quantity
from karat.blocks import Bar, Group, Note, Table, plain
from karat.document.variation import retried, variation


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}
    found = summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))
    known = {
        "between_sd": Quantity(value=2.0), "within_sd": Quantity(value=1.0), "judge_sd": Quantity(value=None),
        "top_share": Quantity(value=None), "reliability": reliable(None), "by_judge": (),
    }  # fmt: skip
    info = structs.replace(found.metrics[0], offline=False, threshold=None)
    return changed(structs.replace(found, metrics=(info,)), **known)


def reliable(value: float | None) -> Reliability:
    return Reliability(
        value=value, low=None, high=None, k=2, threshold=4.0, questions=2, incomplete=0, level=0.95, method="made up"
    )  # fmt: skip


def changed(summary: Summary, **fields: Any) -> Summary:
    return structs.replace(summary, results=tuple(structs.replace(result, **fields) for result in summary.results))


def shown(summary: Summary, **fields: Any) -> tuple[Table, list[Any]]:
    info = structs.replace(summary.metrics[0], **fields)
    table, *more = variation(structs.replace(summary, metrics=(info,)), (info,))
    assert isinstance(table, Table)
    return table, more


def texts(table: Table) -> list[tuple[str, ...]]:
    heads = tuple(column.head for column in table.columns)
    rows = [
        (row.name, row.note) if isinstance(row, Group) else (row.name, *map(plain, row.cells)) for row in table.rows
    ]
    return [heads, *rows]


def test_two_parts_are_always_shown(summary):
    table, more = shown(summary)
    assert texts(table) == [
        ("condition", "between questions", "repetitions"),
        ("completeness", "1 to 5"),
        ("old", "2.00", "1.00"),
        ("new", "2.00", "1.00"),
    ]
    assert more == []
    rows = table.rows[1:]
    assert [row.color for row in rows] == [0, 1]
    assert [cell.bar for cell in rows[0].cells] == [Bar((("spread", 1.0),)), Bar((("spread", 0.5),))]


def test_judgings_best_answers_and_reliability_are_shown_where_one_is_known(summary):
    judged, _ = shown(changed(summary, judge_sd=Quantity(value=0.5)))
    assert texts(judged)[0][3:] == ("judgings",)
    assert texts(judged)[2] == ("old", "2.00", "1.00", "0.50")
    stepped = changed(summary, top_share=Quantity(value=0.25))
    assert texts(shown(stepped)[0])[0][3:] == ("best answers",)
    assert texts(shown(stepped)[0])[2][3:] == ("25.0 %",)
    assert texts(shown(stepped, kind="share")[0])[0][3:] == ()
    sure, _ = shown(changed(summary, reliability=reliable(0.5)))
    assert texts(sure)[0][3:] == ("reliable",)
    assert texts(sure)[2][3:] == ("50.0 %",)
    assert [column.rank for column in sure.columns] == [0, 0, 0, 2]


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"threshold": 4.0}, "1 to 5, reliable: at least 4"),
        ({"threshold": 2.5, "direction": "lower"}, "1 to 5, lower is better, reliable: at most 2.5"),
        ({"threshold": 2.5, "low": None}, "reliable: at least 2.5"),
    ],
)
def test_the_threshold_of_reliability_is_named(summary, fields, note):
    assert texts(shown(summary, **fields)[0])[1] == ("completeness", note)


def test_what_is_not_estimated_has_its_reason_once(summary):
    alone = Quantity(value=None, reason="one question")
    unknown = changed(summary, between_sd=alone, judge_sd=Quantity(value=None, reason="one judging"))
    table, (note,) = shown(unknown)
    assert note == Note(
        texts=(
            "Variance between questions: not estimated (one question).",
            "Judge variance: not estimated (one judging).",
        ),
        tone="quiet",
    )
    assert [cell.bar for cell in table.rows[1].cells] == [None, Bar((("spread", 1.0),))]
    none = changed(summary, between_sd=Quantity(value=0.0), within_sd=Quantity(value=0.0))
    assert [cell.bar for cell in shown(none)[0].rows[1].cells] == [None, None]


def test_nothing_scored_has_no_variation(summary):
    assert [*variation(changed(summary, n_answers=0), summary.metrics)] == []
    assert [*variation(summary, ())] == []


def test_judges_of_a_panel_stand_side_by_side(summary):
    agreement = Estimate(value=0.5, low=0.25, high=0.75, se=None, n=2, level=0.95, method="made up")
    pair = JudgePair(metric="completeness", a="x", b="y", exact=0.5, within_one=1.0, ac2=agreement, answers=3)
    one = JudgeMean(judge="x", mean=3.5, answers=1)
    old, new = summary.results
    given = (
        structs.replace(old, by_judge=(one, JudgeMean(judge="y", mean=4.0, answers=2))),
        structs.replace(new, by_judge=(one,)),
    )
    _, (scores, agreed) = shown(structs.replace(summary, results=given, panel=(pair,)))
    assert texts(scores) == [
        ("judge", "old", "new"),
        ("completeness", ""),
        ("x", "3.50 1 answer", "3.50 1 answer"),
        ("y", "4.00 2 answers", "–"),
    ]
    assert texts(agreed) == [
        ("judges", "same step", "at most one apart", "AC2", "answers"),
        ("completeness", ""),
        ("x – y", "50.0 %", "100.0 %", "0.50 [0.25, 0.75]", "3"),
    ]


def test_retried_answers_stand_beside_first_attempts(summary):
    first, again = Answers(mean=3.5, answers=4), Answers(mean=2.0, answers=1)
    old, new = summary.results
    results = (structs.replace(old, first_attempt=first, retried=again), new)
    (table,) = retried(structs.replace(summary, results=results))
    assert texts(table) == [
        ("condition", "first attempt", "answers", "retried", "answers"),
        ("old", "3.50", "4", "2.00", "1"),
    ]
    assert (table.caption, table.slim, table.rows[0].color) == ("Retried answers: completeness", True, 0)
    assert [*retried(summary)] == []
    other = structs.replace(results[0], metric="other")
    assert [*retried(structs.replace(summary, results=(other,)))] == []
