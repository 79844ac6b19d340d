"""The line that shows where a run stands."""

from __future__ import annotations

import re

import pytest

from karat.cli.progress import bar, status_line
from karat.engine import Watch


def watch(**counts: object) -> Watch:
    made = Watch()
    for name, value in counts.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "preparing"),
        ({"planned": 12, "in_flight": 5}, "0/12 · answered 0 · in flight 5"),
        ({"planned": 1200, "answered": 2, "settled": 1, "retries": 1}, "1/1,200 · answered 2 · retries 1 · $0.00"),
        ({"planned": 9, "answered": 1, "settled": 2, "failed": 1, "dollars": 2}, "2/9 · answered 1 · failed 1 · $2.00"),
        ({"planned": 9, "answered": 1, "settled": 1, "dollars": 0.5, "dollars_unknown": True},
         "1/9 · answered 1 · ≥ $0.50"),
        ({"planned": 12, "answered": 1, "settled": 1, "dollars_unknown": True}, "1/12 · answered 1 · –"),
        ({"planned": 12, "before": 10, "answered": 1, "settled": 1}, "11/12 · answered 11 · $0.00"),
        ({"planned": 2, "before": 2}, "2/2 · answered 2"),
        ({"planned": 12, "before": 10, "settled": 9}, "12/12 · answered 10"),
        ({"planned": 12, "answered": 1, "settled": 1, "in_flight": 2, "draining": "interrupted"},
         "1/12 · answered 1 · in flight 2 · $0.00 · finishing"),
    ],
)  # fmt: skip
def test_the_line_says_what_is_known_and_no_more(counts, line):
    assert re.sub(r" · [^·]* left$", "", status_line(watch(**counts))) == line


def test_what_is_left_follows_from_the_pace():
    running = watch(planned=12, answered=4, settled=4)
    running.started -= 8.0
    assert status_line(running) == "4/12 · answered 4 · $0.00 · 16.0 s left"


@pytest.mark.parametrize(("settled", "full"), [(0, 0), (1, 5), (4, 20), (9, 20)])
def test_the_bar(settled, full):
    assert bar(watch(planned=4, settled=settled)) == "━" * full + "─" * (20 - full)
