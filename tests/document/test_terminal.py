"""Every kind of block on a terminal, wide and narrow, with colours and without."""

from __future__ import annotations

import pytest

from karat import formats
from karat.blocks import (
    Axis,
    Chart,
    Column,
    Count,
    Estimate,
    Facts,
    Fold,
    Group,
    Listing,
    Low,
    LowAnswer,
    Note,
    Number,
    Plane,
    Row,
    Section,
    Table,
    Text,
)
from karat.document.render.terminal import block_lines, render_terminal
from karat.document.run import Document

COLUMNS = (
    Column("condition", number=False),
    Column("mean [95 %]", legend="Mean over questions."),
    Column("answers", rank=1),
    Column("verdict", number=False, detail=True),
)


def row(name: str, *, tone="", **fields) -> Row:
    cells = (Estimate(4.25, 4.0, 4.5), Count(9, of=10), Text("better", below="a note", tone=tone))
    return Row(name=name, cells=cells, **fields)


TABLE = Table(
    caption="Means",
    columns=COLUMNS,
    rows=(Group("completeness", "1 to 5", "wrong"), row("old", tone="bad"), row("new", note="a line", tone="good")),
    legend="Of all.",
    brief=True,
    limit=2,
    rest="`--full` shows them",
)  # fmt: skip
SUMS = Table(
    caption="Sums", columns=(Column("condition"), Column("count")),
    rows=(Row(name="old", cells=(Count(3),)), Row(name="in all", cells=(Count(3),), total=True)),
)  # fmt: skip


def low(sample: str, *answers: LowAnswer) -> Low:
    return Low(
        sample=sample, question="What is asked? " * 8, score="completeness 1.50", golden=None, answers=answers, limit=9
    )


def answer(condition: str, **fields) -> LowAnswer:
    return LowAnswer(
        **{"color": 0, "score": "1.50 (2 answers)", "reason": None, "answer": None, **fields}, condition=condition
    )


LOWS = (
    low("first", answer("old", reason="Says nothing."), answer("much longer", answer="So it is.", claims=("a", "b"))),
    low("second", answer("old", claims=("a",))),
    low("third", answer("old")),
)
CHART = Chart(
    name="c", title="", description="", panels=(Plane(x=Axis(title="x"), y=Axis(title="y"), curves=()),), table=SUMS
)
DOCUMENT = Document(
    name="support-kb",
    run="1234abcd",
    status="complete",
    verdicts=("new is better than old on completeness: +1.00 [0.50, 1.50], and so on for more than one line of text",),
    facts=(("Asked", "2 questions"), ("Agent", "an agent with a name"), ("Cost", "$1.00"), ("Median time", "3 s")),
    warnings=("a first warning that is long enough to be wrapped on a narrow terminal", "a second"),
    sections=(
        Section(id="a", title="A", blocks=(TABLE, SUMS, Note(texts=("quiet",), tone="quiet", brief=True))),
        Section(id="b", title="B", blocks=(*LOWS, Note(texts=("one", "two"), title="Notes"))),
        Section(
            id="c",
            title="C",
            blocks=(
                CHART,
                Facts(title="Versions", items=(("karat", "1"),)),
                Facts(items=(("Run", "x"),)),
                Listing(title="Commands", text="karat run\n  indented\x1b[1m", folded=False, limit=22),
                Listing(title="Folded", text="not shown"),
                Fold("Folded", (SUMS,)),
            ),
        ),
    ),
)


@pytest.mark.parametrize("width", [100, 44])
def test_a_whole_document(width, golden):
    golden(f"documents/terminal-{width}.txt", render_terminal(DOCUMENT, width=width, lowest=2))


def test_a_first_screen(golden):
    golden("documents/terminal-brief.txt", render_terminal(DOCUMENT, width=80, full=False))


def test_colours_are_those_of_tones_and_titles(golden):
    golden("documents/terminal-colours.txt", render_terminal(DOCUMENT, width=80, color=True).replace("\x1b", "ESC"))


def test_a_chart_whose_details_are_asked_for_is_left_out():
    detail = Chart(name="c", title="", description="", panels=(), table=SUMS, detail=True)
    shown = Document(name="d", verdicts=(), facts=(), sections=(Section(id="s", title="S", blocks=(detail,)),))
    assert "Sums" not in render_terminal(shown, width=80)


def lines(*cells, columns, width: int) -> list[str]:
    rows = tuple(Row(name="row", cells=of_row) for of_row in cells)
    return block_lines([Table(caption="", columns=columns, rows=rows)], width=width)[2:]


def test_a_head_stands_over_its_value_and_its_interval():
    columns = (Column("name"), Column("mean [95 %]"))
    assert lines((Estimate(4.25, 4.0, 4.5),), columns=columns, width=80) == [
        "  name  mean       [95 %]",
        "  ───────────────────────",
        "  row   4.25 [4.00, 4.50]",
    ]
    assert lines((Estimate(4.25),), columns=columns, width=80)[0] == "  name  mean [95 %]"
    assert lines((Estimate(4.25, 4.0, 4.5),), columns=(columns[0], Column("mean")), width=80) == [
        "  name  mean",
        "  ───────────────────────",
        "  row   4.25 [4.00, 4.50]",
    ]


def test_numbers_are_set_right_and_texts_left():
    columns = (Column("name"), Column("n"), Column("text", number=False), Column("m"))
    cells = ((Count(1), Text("long text"), Number(2.0)), (Count(1000), Text("x"), Number(12.0)))
    assert lines(*cells, columns=columns, width=80) == [
        "  name      n  text           m",
        "  ─────────────────────────────",
        "  row       1  long text   2.00",
        "  row   1,000  x          12.00",
    ]


def test_a_text_is_wrapped_at_its_width_but_not_inside_an_interval():
    columns = (Column("name"), Column("text", number=False))
    text = "a difference of 1.25 [0.75, 1.50] in 95 % of runs"
    for width in range(30, 60):
        found = lines((Text(text),), columns=columns, width=width)
        assert max(map(formats.width, found)) <= width
        whole = " ".join(line[8:].strip() for line in found[2:])
        assert whole == text
        assert any("[0.75, 1.50]" in line for line in found)
        assert any("95 %" in line for line in found)
