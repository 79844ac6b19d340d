"""A run as a document: its facts, its verdicts, and what a shorter page shows of it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import Repeat, Summary
from karat.blocks import Axis, Chart, Column, Count, Fold, KindBlocks, Note, Plane, Row, Section, Table
from karat.document.run import Document, document, facts, shortened


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0, 2.0], [4.0, 3.0]], "new": [[4.0, 5.0], [None, 5.0]]}
    return summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))


def of(summary: Summary, kind: KindBlocks | None = None, **fields: Any) -> dict[str, str]:
    return dict(facts(structs.replace(summary, **fields), kind or KindBlocks()))


def test_facts_say_what_was_asked_and_what_it_cost(summary):
    found = of(summary)
    assert found["Asked"] == "2 questions × 2 conditions × 2 repetitions"
    assert found["Trials scored"] == "7 of 8"
    assert found["Scored by"] == "judge (offline)"
    assert [*found][:4] == ["Asked", "Trials scored", "Agent", "Scored by"]
    assert [*found][4:6] == ["Cost", "Median time"]


def test_facts_allow_for_fewer_trials_other_words_and_no_scores(summary):
    total = summary.total
    fewer = structs.replace(total, ledger=structs.replace(total.ledger, planned=7))
    assert of(summary, total=fewer)["Asked"].endswith("× up to 2 repetitions")
    assert of(summary, KindBlocks(asked="a study"))["Asked"].startswith("a study × ")
    assert of(summary, KindBlocks(asked_with=("one", "two")))["Asked with"] == "one, two"
    unscored = of(summary, metrics=())
    assert "Scored by" not in unscored
    assert unscored["Trials answered"] == "7 of 8"
    info = structs.replace(summary.metrics[0], offline=False)
    ruled = (info, structs.replace(info, scorer="rule", offline=True), structs.replace(info, key="x"))
    assert of(summary, metrics=ruled)["Scored by"] == "judge, rule (offline)"
    source = summary.provenance
    assert of(summary, provenance=structs.replace(source, agent="a", model="m"))["Agent"] == "a (m)"
    assert of(summary, provenance=structs.replace(source, agent="a", model=None))["Agent"] == "a"


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ((0.5,), "expect about 0.5 of 1 verdict to change"),
        ((0.5, 0.25), "expect about 1.2 of 2 verdicts to change"),
        ((0.99, None), "the same 1 verdict"),
        ((0.94,), "expect about 0.1 of 1 verdict to change"),
        ((None,), None),
    ],
)
def test_facts_say_how_many_verdicts_a_repeat_would_change(summary, chances, words):
    pairs = []
    for chance in chances:
        again = Repeat(shown=True, new_questions=chance, same_questions=None)
        pairs.append(structs.replace(summary.differences[0], again=again))
    assert of(summary, differences=tuple(pairs)).get("If run again") == words
    assert "If run again" not in of(summary, KindBlocks(differences=()), differences=tuple(pairs))


def test_a_document_is_called_by_its_run(summary):
    shown = document(summary)
    assert shown.title == f"{summary.name} {summary.run} ({summary.status})"
    assert Document(name="plan", verdicts=(), facts=(), sections=()).title == "plan"
    assert (shown.created, shown.warnings) == (summary.created, summary.warnings)
    assert [section.id for section in shown.sections] == [
        "scores", "differences", "variation", "failing", "cost", "origin",
    ]  # fmt: skip
    assert [section.id for section in document(summary, brief=True).sections] == ["scores", "failing"]


def table(rows: int, caption: str = "t") -> Table:
    cells = tuple(Row(name=str(at), cells=(Count(at),)) for at in range(rows))
    return Table(caption=caption, columns=(Column("name"), Column("count")), rows=cells)


def chart(name: str, rows: int = 2) -> Chart:
    panel = Plane(x=Axis(title="x"), y=Axis(title="y"), curves=())
    return Chart(name=name, title="", description="", panels=(panel,), table=table(rows))


def test_a_shorter_document_has_a_few_rows_and_charts():
    note = Note(texts=("a note",))
    first = Section(
        id="a", title="A", blocks=(table(3), table(4), note, chart("one"), Fold("more", (chart("two"), table(4))))
    )
    second = Section(id="b", title="B", blocks=(chart("three"), chart("long", rows=4)))
    (a, b), left_out = shortened([first, second], rows=3, charts=2)
    assert left_out == 2
    assert a.blocks[0] is first.blocks[0]
    assert len(a.blocks[1].rows) == 3
    assert a.blocks[1].legend == "1 further row left out: `karat report --to json` has them."
    assert a.blocks[2:4] == (note, chart("one"))
    fold = a.blocks[4]
    assert (fold.title, fold.blocks[0], len(fold.blocks[1].rows)) == ("more", chart("two"), 3)
    assert b.blocks[0] == structs.replace(table(2), folded=True)
    assert len(b.blocks[1].rows) == 3
    assert b.blocks[1].folded
    assert b.blocks[1].legend == "1 further row left out: `karat report --charts --json` has them."
    assert shortened([first], rows=9, charts=9) == ([first], 0)
    assert shortened([second], rows=3, charts=9)[1] == 1  # a chart whose table is cut is a table
