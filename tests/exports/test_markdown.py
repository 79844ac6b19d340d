"""The report for a pull request: one screen, the rest folded, and nothing of what others said is obeyed."""

from __future__ import annotations

import re

import pytest
from tests.document.hostile import HOSTILE, hostile_run

from karat.analysis import summarize
from karat.exports.markdown import Markdown


def markdown(run, **options) -> str:
    return Markdown(Markdown.Options(**options)).render(summarize(run), run)["report.md"]


def small(folder, journals):
    scores = {"baseline": [[1, 2], [2, 2], [3, 1], [1, 1], [2, 3], [1, 2]], "with-docs": [[4, 5]] * 5 + [[5, None]]}
    return journals.table(folder, scores)


def test_the_result_comes_first_and_the_rest_is_folded(tmp_path, journals):
    text = markdown(small(tmp_path / "run", journals))
    first, _, rest = text.partition("<details>")
    assert first.startswith("### with-docs is better than baseline on completeness: +2.83 \\[2.20, 3.47\\]\n")
    assert "| with-docs | 4.58 \\[4.37, 4.80\\] | 0.71 | 11 of 12 |" in first
    assert "it fell over" in first
    assert len(first.split("\n")) < 40
    assert re.findall("<summary>(.*?)</summary>", text) == [
        "Differences", "Variation", "Where it fails", "Cost and time", "How to repeat it",
    ]  # fmt: skip
    assert text.count("<details>") == text.count("</details>") == 5
    assert text.count("| 4.58 ") == 1, "means are shown once"
    assert "+2.83 \\[+2.20, +3.47\\]" in rest


@pytest.mark.slow
def test_every_row_of_a_table_has_as_many_cells_as_its_head(study_run, study_summary):
    text = Markdown().render(study_summary, study_run)["report.md"]
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(counts) == 1


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_foreign_text_stays_text(tmp_path, journals, text):
    page = markdown(hostile_run(tmp_path / "run", journals, text=text))
    page.encode()
    ours = {"details", "/details", "summary", "/summary", "sub", "/sub", "br", "!-- --"}
    assert set(re.findall(r"<([^>]*)>", page)) <= ours
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page.replace("\n", ""))


def test_foreign_text_mentions_nobody_and_links_nowhere(tmp_path, journals):
    text = "@somebody see #12 and GH-34 at http://evil.example or www.evil.example [x](y) `z` **b**\n# heading\n- item"
    page = markdown(hostile_run(tmp_path / "run", journals, text=text))
    assert "@somebody" not in page
    assert "#12" not in page
    assert "GH-34" not in page
    assert "://" not in page
    assert "www.evil" not in page
    assert not re.search(r"(?<!\\)\[x", page)
    assert not re.search(r"^\s*# heading", page, re.MULTILINE)
