"""Old run folders give the numbers that they gave: see tests/corpus/make.py for what they are."""

from __future__ import annotations

import json
import math

import pytest
from tests.corpus.outputs import HERE, RUNS, expected, karat, numbers
from tests.needed_kinds import installed

LARGE = {"ten-studies", "framing-designs"}  # bootstraps of many tests


def _marks(name: str) -> list[pytest.MarkDecorator]:
    kind = json.loads((HERE / "runs" / name / "run.json").read_text(encoding="utf-8"))["kind"]
    return [pytest.mark.needs_kind(kind), *([pytest.mark.slow] if name in LARGE else [])]


@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in RUNS])
def test_every_number_of_an_old_run_is_the_same(name, tmp_path):
    assert_same_numbers(name, HERE / "runs" / name, tmp_path)


def assert_same_numbers(name, run, work):
    before, now = expected(name), numbers(run, work)
    for kind in ("conversation", "study"):
        if not installed(kind):  # then its part is not there, instead of null
            before = {
                place: text for place, text in before.items() if (place.rpartition("/")[2], text) != (kind, "null")
            }
    # A number that no earlier version reported is no change; `python -m tests.corpus.outputs` writes it down.
    changed = [
        (place, text, now.get(place)) for place, text in sorted(before.items()) if not alike(text, now.get(place))
    ]
    assert (len(changed), changed[:20]) == (0, [])
    assert len(now) > 1000


def alike(before, now):
    """Whether two numbers are equal up to rounding: their last digits may depend on the order of additions."""
    if now is None or before == now:
        return before == now
    try:
        return math.isclose(float(before), float(now), rel_tol=1e-9, abs_tol=1e-12)
    except ValueError:
        return False


@pytest.mark.parametrize("name", RUNS)
def test_old_runs_are_whole(name):
    assert karat("verify", str(HERE / "runs" / name))[0] == 0
