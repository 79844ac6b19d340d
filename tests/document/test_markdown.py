"""Documents as Markdown and as HTML of notebooks, and what templates are given."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.document.test_terminal import DOCUMENT, SUMS

from karat import api
from karat.analysis import summarize
from karat.blocks import Count, Group, Note, Row, Section, Table
from karat.document import assets
from karat.document.ink import INK
from karat.document.render.markdown import render_markdown
from karat.document.render.notebook import chart_html, comparison_html, summary_html
from karat.document.run import Document
from karat.document.templating import environment
from karat.document.text import line, short


def test_every_block_in_markdown(golden):
    golden("documents/blocks.md", render_markdown(DOCUMENT))


def of(*blocks, verdicts=("The result",)) -> str:
    section = Section(id="a", title="A & B", blocks=blocks)
    return render_markdown(Document(name="name", verdicts=verdicts, facts=(("Asked", "2"),), sections=(section,)))


def test_the_first_screen_in_markdown_repeats_nothing():
    assert of(Note(texts=("a note",), brief=True)) == "### The result\n\nname  \nAsked: 2\n\n- a note\n"
    assert of(Note(texts=("a note",)), verdicts=("One", "Two")) == (
        "### One\n\n- Two\n\nname  \nAsked: 2\n\n<details>\n<summary>A &amp; B</summary>\n\n- a note\n\n</details>\n"
    )


def rows(count: int) -> tuple[Row, ...]:
    return tuple(Row(name=f"row {at}", cells=(Count(at),)) for at in range(count))


def table(count: int, **fields) -> Table:
    return Table(caption="t", columns=SUMS.columns, rows=rows(count), **fields)


def test_a_table_that_the_first_screen_cuts_is_whole_below():
    assert of(table(3, brief=True, limit=3)).count("row 2") == 1
    cut = of(table(4, brief=True, limit=3))
    assert (cut.count("row 2"), cut.count("row 3")) == (2, 1)
    assert "1 further row left out: below." in cut
    assert "row 199 |" in of(table(200))
    assert "left out" not in of(table(200))
    assert "1 further row left out: `karat" in of(table(201)).replace("\\`", "`")
    assert "row 200" not in of(table(201))


def test_rows_under_a_heading_have_its_note_and_mark():
    group = Table(caption="t", columns=SUMS.columns, rows=(Group("g", "note", "mark"), Group("h"), *rows(1)))
    assert of(group).splitlines()[12:15] == ["| **g** (note mark) |  |", "| **h** |  |", "| row 0 | 0 |"]


@pytest.fixture(scope="module")
def run(journals, tmp_path_factory):
    scores = {"old": [[3.0], [4.0], [2.0]], "new": [[4.0], [5.0], [2.0]]}
    return journals.table(tmp_path_factory.mktemp("run") / "run", scores)


def test_a_run_and_a_comparison_in_a_notebook(run, golden):
    summary = summarize(run)
    pages = [summary_html(summary), comparison_html(api.compare(run, "old", "new"))]
    golden("documents/notebook.html", "\n".join(pages).replace("><", ">\n<").replace(summary.run, "1234abcd") + "\n")


def test_a_chart_in_a_notebook_has_its_table():
    chart = next(block for section in DOCUMENT.sections for block in section.blocks if hasattr(block, "panels"))
    shown = chart_html(chart)
    drawing, _, rest = shown.partition("<details>")
    assert drawing.startswith("<div><svg ")
    assert rest == (
        "<summary>The same numbers as a table</summary><p><strong>Sums</strong></p><table><thead><tr><th>condition</th>"
        "<th>count</th></tr></thead><tbody><tr><td>old</td><td>3</td></tr><tr><td>in all</td><td>3</td></tr></tbody>"
        "</table></details></div>"
    )


def test_what_is_wrong_with_rows_is_said_in_a_notebook():
    marked = (Group("g", "note", "<mark>"), Row(name="row", cells=(Count(1),), note="below & after"))
    chart = next(block for section in DOCUMENT.sections for block in section.blocks if hasattr(block, "panels"))
    shown = chart_html(structs.replace(chart, table=Table(caption="", columns=SUMS.columns, rows=marked)))
    assert '<tr><th colspan="2">g note &lt;mark&gt;</th></tr>' in shown
    assert "<tr><td>row<br><small>below &amp; after</small></td><td>1</td></tr>" in shown


def test_templates_escape_and_write_numbers_as_pages_do(tmp_path):
    (tmp_path / "own.html").write_text(
        "{% if true %}\n{{ text }}|{{ text|line }}|{{ 0.5|share }}|{{ 1200|count }}|{{ '**b**'|markdown }}\n"
        "{% endif %}\n"
        "{{ 'a\x1b'|visible }}|{{ 1|plural('question') }}|{{ 'abcdefghij'|short(5) }}|"
        "{{ shapes|length }}|{{ source('') }}\n"
    )
    pages = environment(mine=tmp_path)
    assert pages.get_template("mine/own.html").render(text="<b>").split("\n") == [
        '&lt;b&gt;|<bdi>&lt;b&gt;</bdi>|50.0 %|1,200|<div class="md" dir="auto"><p><strong>b</strong></p>',
        "</div>",
        "a␛|1 question|<bdi>abc…j</bdi>|7|&#39;sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=&#39;",
    ]
    (tmp_path / "bad.html").write_text("{{ unknown }}")
    with pytest.raises(Exception, match="'unknown' is undefined"):
        pages.get_template("mine/bad.html").render()
    assert any(name.startswith("pages/") for name in pages.list_templates())


def test_colours_are_those_of_the_theme_and_of_the_reader(golden):
    golden("documents/colours.css", assets.css().partition("@media screen{:root[data-theme=dark]")[0])
    assert INK.categories == tuple(f"var(--category-{at})" for at in range(8))
    assert INK.steps == tuple(f"var(--step-{at})" for at in range(5))
    assert assets.icon().startswith("data:image/svg+xml;base64,PHN2Zy")
    assert assets.script().startswith("// The switch between light and dark.")


def test_a_policy_separates_its_sources():
    found = assets.policy(scripts=["a", "b"], styles=["c"])
    both = " ".join(map(assets.source, ["a", "b"]))
    assert f"; script-src {both}; style-src {assets.source('c')}; " in found


def test_names_in_little_space_are_cut_in_the_middle_and_lines_at_their_end():
    assert str(short("a \n b", 9)) == "<bdi>a b</bdi>"
    assert str(line("x" * 400)) == f"<bdi>{'x' * 400}</bdi>"
    assert str(line("x" * 401)) == f'<bdi>{"x" * 400}</bdi> <span class="cut">… 1 character left out</span>'
    assert str(line(" a \t\n b ")) == "<bdi>a b</bdi>"
