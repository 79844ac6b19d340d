"""Charts and runs in a notebook."""

from __future__ import annotations

import json

import pytest
from tests.document.hostile import HOSTILE, hostile_run

from karat.analysis import summarize
from karat.document.charts import charts


def test_a_chart_shows_itself_as_vega_lite_and_as_a_table(tmp_path, journals):
    run = journals.table(tmp_path / "run", {"a": [[2.0], [3.0], [1.0]], "b": [[4.0], [5.0], [2.0]]})
    for chart in charts(summarize(run)):
        shown = chart._repr_mimebundle_(include=None, exclude=None)
        for version in ("v5", "v6"):
            spec = shown[f"application/vnd.vegalite.{version}+json"]
            assert version in spec["$schema"]
            assert json.loads(json.dumps(spec, allow_nan=False)) == spec
        assert all(cell in shown["text/html"] for row in chart.rows for cell in row)
        assert shown["text/plain"] == chart.title


@pytest.mark.parametrize("text", ["script", "end of script", "handler", "svg", "escape"])
def test_nothing_foreign_is_html_in_a_notebook(tmp_path, journals, text):
    run = hostile_run(tmp_path / "run", journals, text=HOSTILE[text])
    summary = summarize(run)
    shown = [chart._repr_mimebundle_()["text/html"] for chart in charts(summary)]
    shown += [run._repr_html_(), summary._repr_html_()]
    for html in shown:
        assert "<script" not in html
        assert "<img" not in html
        assert "<svg" not in html
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
    assert "<th>failures</th><th>not run</th><th>planned</th>" in html
    assert "<td>baseline</td><td>4.00</td><td>0</td><td>2</td><td>3</td>" in html
    assert "<p>warning: the run is not complete (status: interrupted; 5 trials not run)" in html
