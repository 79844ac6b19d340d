"""Rows with their numbers, and what is wrong with those that are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.documents.row_list import MOST_FAULTS, Rows, TooManyFaults, bad, in_order
from karat.errors import Fault


def test_rows_are_kept_unless_they_cannot_be_stored():
    rows = Rows(sha256="", unit="line")
    rows.add(2, {"a": 1})
    rows.add(3, {"a": "\ud800"})
    rows.add(4, {"a": 2})
    assert rows.rows == [(2, {"a": 1}), (4, {"a": 2})]
    assert rows.count == 2
    assert [fault.place for fault in rows.faults] == ["line 3"]
    assert rows.faults[0].message.startswith("holds half of a surrogate pair")


def test_only_so_many_rows_are_wanted():
    rows = Rows(sha256="", unit="line", most=3)
    rows.add(1, {})
    assert [rows.room(64), rows.room(1)] == [2, 1]
    assert (rows.enough(), rows.unread) == (False, 0)
    rows.add(2, {})
    rows.add(3, {})
    assert (rows.enough(), rows.enough(), rows.unread) == (True, True, 2)
    assert rows.room(64) == 0
    every = Rows(sha256="", unit="line")
    assert (every.room(64), every.enough(), every.unread) == (64, False, 0)


def test_reading_ends_after_many_faults():
    rows = Rows(sha256="", unit="item")
    for number in range(MOST_FAULTS - 1):
        rows.fault(number, "is wrong")
    with pytest.raises(TooManyFaults):
        rows.fault(MOST_FAULTS, "is wrong")
    assert rows.faults[0] == Fault(place="item 0", message="is wrong")
    assert len(rows.faults) == MOST_FAULTS


def test_faults_are_in_the_order_of_the_file():
    rows = Rows(sha256="", unit="line")
    for number in (10, 9, 100):
        rows.fault(number, "is wrong")
    assert [fault.place for fault in rows.sorted_faults()] == ["line 9", "line 10", "line 100"]
    assert [fault.place for fault in in_order(rows.faults[1:])] == ["line 9", "line 100"]


def test_one_fault_of_a_file_names_it():
    error = bad(Path("q.csv"), "line 1", "is wrong")
    assert [*error.faults] == [Fault(place="line 1", message="is wrong")]
    assert "q.csv" in str(error)
