"""A summary in notebooks, as rows, and what it costs to make one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from karat.analysis import compare, summarize
from karat.installation import install_command
from karat.records import Reply

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
    assert ">completeness " in text
    assert "offline</th>" in text


def test_it_prints_itself(tmp_path, journals, golden):
    golden("summary.txt", str(summarize(journals.table(tmp_path / "run", SCORES))))


def framed(run, *, without: tuple[str, ...] = ()) -> str:
    """What `to_frame` gives, or says, in a Python that lacks these libraries."""
    code = f"""
import sys
for name in {without!r}:
    sys.modules[name] = None  # as if it were not installed
import karat
try:
    frame = karat.summarize(sys.argv[1]).to_frame()
    print(type(frame).__module__.partition(".")[0], frame.shape, list(frame["condition"]))
except karat.errors.BadOption as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize(("library", "without"), [("pandas", ()), ("polars", ("pandas",))])
def test_a_frame_is_of_the_library_that_is_installed(tmp_path, journals, library, without):
    pytest.importorskip(library, reason=f"{library} is not installed, and karat needs none")
    run = journals.table(tmp_path / "run", SCORES)
    columns = len(summarize(run).table()[0])
    assert framed(run, without=without) == f"{library} (2, {columns}) ['a', '<b>']"


def test_without_a_library_for_frames_it_says_what_to_install(tmp_path, journals):
    said = framed(journals.table(tmp_path / "run", SCORES), without=("pandas", "polars"))
    assert said.startswith(f"to_frame: needs pandas or polars: {install_command('pandas')}")


def test_a_comparison_shows_itself_as_a_table_with_nothing_foreign_in_it(tmp_path, journals):
    run = journals.table(tmp_path / "run", SCORES, name="<script>alert(1)</script>")
    found = compare(run, run, condition_a="a", condition_b="<b>")
    html = found._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt;" in html
    assert found.headline.replace("<b>", "&lt;b&gt;") in html
    assert html.count("<tr>") == 1 + len(found.pairings)


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
import karat.analysis
run = RunFolder.open(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
summary = karat.analysis.summarize(run)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(summary.total.ledger.scored, after - before, "numpy" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, text=True, check=True)
    scored, grown, numpy = done.stdout.split()
    kilobytes = int(grown) / (1024 if sys.platform == "darwin" else 1)
    assert (scored, numpy) == ("20000", "False")
    assert kilobytes < 8_000
