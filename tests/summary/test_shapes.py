"""A summary in notebooks, as rows, and what it costs to make one."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from karat.errors import BadOption
from karat.records import Reply
from karat.summary import summarize

SCORES = {"a": [[1, 2], [2, 3]], "<b>": [[3, 4], [5, None]]}


def test_rows_hold_raw_numbers(tmp_path, journals):
    rows = summarize(journals.table(tmp_path / "run", SCORES)).table()
    assert [(row["condition"], row["metric"], row["mean"], row["n_missing"]) for row in rows] == [
        ("a", "completeness", 2.0, 0),
        ("<b>", "completeness", 4.25, 1),
    ]


def test_html_escapes_what_is_not_ours(tmp_path, journals):
    text = summarize(journals.table(tmp_path / "run", SCORES, name="<script>alert(1)</script>"))._repr_html_()
    assert "<script>" not in text
    assert "&lt;b&gt;" in text
    assert "completeness (offline)" in text


def test_it_prints_itself(tmp_path, journals, golden):
    golden("summary.txt", str(summarize(journals.table(tmp_path / "run", SCORES))))


@pytest.mark.skipif(importlib.util.find_spec("pandas") is not None, reason="pandas is installed here")
def test_without_pandas_a_frame_says_what_to_install(tmp_path, journals):
    with pytest.raises(BadOption, match="pip install pandas"):
        summarize(journals.table(tmp_path / "run", SCORES)).to_frame()


def test_answers_without_scores_are_summed_up_in_small_memory_and_without_numpy(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2_000, repetitions=5, scorers=())
    reply = Reply(text="some words " * 20, dollars=0.0)
    for row in range(2_000):
        for condition in script.conditions:
            for repetition in range(5):
                script.answer(row, condition, repetition, reply=reply)
    run = script.end()
    code = """
import resource, sys
from karat.journal import RunFolder
import karat.summary
run = RunFolder.open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
summary = karat.summary.summarize(run)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(summary.total.ledger.scored, after - before, "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=True)
    scored, grown, numpy = done.stdout.split()
    kilobytes = int(grown) / (1024 if sys.platform == "darwin" else 1)
    assert (scored, numpy) == ("20000", "False")
    assert kilobytes < 8_000
