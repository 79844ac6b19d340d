"""Charts and runs in a notebook."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from tests.document.hostile import HOSTILE, hostile_run

from karat import api
from karat.analysis import summarize
from karat.charts import charts


def test_a_chart_shows_itself_as_a_drawing_and_as_a_table(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"a": [[2.0], [3.0], [1.0]], "b": [[4.0], [5.0], [2.0]]})
    for chart in charts(summarize(run)):
        shown = chart._repr_html_()
        root = ElementTree.fromstring(shown)
        assert [node.tag.rpartition("}")[2] for node in root] == ["svg", "details"]
        text = " ".join(" ".join(root.itertext()).split())
        assert chart.title in text
        assert all(" ".join(cell.split()) in text for row in chart.rows for cell in row)


@pytest.mark.parametrize("text", ["script", "end of script", "handler", "svg", "escape"])
def test_nothing_foreign_is_html_in_a_notebook(tmp_path, journals, text):
    run = hostile_run(tmp_path / "run", journals, text=HOSTILE[text])
    summary = summarize(run)
    comparison = api.compare(run, *summary.conditions)
    shown = [chart._repr_html_() for chart in charts(summary)]
    shown += [run._repr_html_(), summary._repr_html_(), comparison._repr_html_()]
    for html in shown:
        nodes = list(ElementTree.fromstring(html.replace("<br>", "<br/>")).iter())
        assert not {node.tag.rpartition("}")[2] for node in nodes} & {"script", "img", "iframe", "a", "form", "image"}
        assert not any(name.startswith("on") for node in nodes for name in node.attrib)
        assert "\x1b" not in html


def test_a_run_shows_what_it_is(tmp_path, journals):
    html = journals.table(tmp_path / "run", {"<a>": [[1]], "b": [[2]]})._repr_html_()
    assert "support-kb 1234abcd (done)" in html
    assert "1 sample × 2 conditions × 1 repetition" in html
    assert "&lt;a&gt;, b" in html


def test_a_summary_in_a_notebook_says_what_is_missing(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=3)
    script.scored(0, "baseline", value=4)
    html = summarize(script.end("interrupted"))._repr_html_()
    assert "Trials scored: 1 of 6" in html
    assert "<td>baseline</td><td>4.00</td>" in html
    assert "<p>warning: the run is not complete (status: interrupted; 5 trials not run)" in html
