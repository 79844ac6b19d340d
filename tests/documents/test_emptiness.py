"""Rows without a golden answer are one fault, which says what they have in common."""

from __future__ import annotations

import json

import pytest

from karat import plugins
from karat.errors import BadDataset


def refused(tmp_path, rows):
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BadDataset) as bad:
        plugins.build(plugins.find("kinds", "golden"), {}).load(path)
    return str(bad.value)


ROWS = [{"question": f"What is {n}?", "expected": str(n), "type": "fact", "at": n} for n in range(6)]
OFF = [{"question": f"Who is {n}?", "expected": None, "type": "chat", "rule": "R1"} for n in range(2)]


def test_rows_without_a_golden_answer_are_one_fault_with_what_they_share(tmp_path):
    said = refused(tmp_path, [*ROWS, *OFF])
    assert said.startswith(f"{tmp_path}/q.jsonl: 1 fault\n")
    assert "line 7: 'expected' is empty in 2 of 8 lines (7, 8): all those whose 'type' is chat (2)" in said
    assert "they alone have 'rule' (2)" in said
    assert "dataset.skip: unreadable" in said


def test_a_class_that_other_rows_have_too_is_not_named(tmp_path):
    said = refused(tmp_path, [*ROWS, *OFF, {**ROWS[0], "type": "chat", "question": "So?", "rule": "R2"}])
    assert "line 7: 'expected' is empty; fill it in, or remove the row\n" in said


def test_many_rows_without_a_golden_answer_are_one_fault_even_if_they_share_nothing(tmp_path):
    rows = [{"question": f"What is {n}?", "expected": str(n) if n % 2 else ""} for n in range(9)]
    assert "'expected' is empty in 5 of 9 lines (1, 3, 5, 7 and 1 more); fill it in" in refused(tmp_path, rows)


def test_one_row_without_a_golden_answer_is_its_own_fault(tmp_path):
    assert "line 7: 'expected' is empty; fill it in, or remove the row" in refused(tmp_path, [*ROWS, OFF[0]])


@pytest.mark.parametrize(
    ("mark", "value", "others"),
    [("answerable", False, True), ("is_impossible", True, False), ("unanswerable", "yes", "no")],
)
@pytest.mark.parametrize("lacking", [{}, {"expected": None}])
def test_rows_that_are_marked_as_unanswerable_are_meant(tmp_path, mark, value, others, lacking):
    rows = [{**row, mark: others} for row in ROWS]
    rows.append({"question": "Who is nobody?", "type": "fact", mark: value, **lacking})
    said = refused(tmp_path, rows)
    assert f"dataset.empty: 'expected' is empty in 1 line that '{mark}' marks as having no answer (line 7)" in said
    assert "write `empty: declines`" in said
    assert "skip: unreadable" not in said


def test_a_row_that_no_mark_explains_is_a_fault_of_its_own(tmp_path):
    rows = [{**row, "answerable": True} for row in ROWS]
    said = refused(tmp_path, [*rows, {"question": "Who is nobody?", "answerable": False}, {"question": "And you?"}])
    assert "line 8: has no 'expected'" in said
    assert "dataset.skip: unreadable" in said
