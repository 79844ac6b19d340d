"""Old run folders give the numbers that they gave: see tests/corpus/make.py for what they are."""

from __future__ import annotations

import json
import math

import pytest
from tests.corpus.outputs import HERE, RUNS, karat, numbers
from tests.corpus.tables import sections, text_of, values_of
from tests.needed_packages import EVERY_PACKAGE, has_kind

ABSENT = {("conversation", "null"), ("study", "null")}
LARGE = {"ten-studies", "framing-designs"}  # bootstraps of many tests


def _marks(name: str) -> list[pytest.MarkDecorator]:
    kind = json.loads((HERE / "runs" / name / "run.json").read_text(encoding="utf-8"))["kind"]
    return [pytest.mark.needs_kind(kind), *([pytest.mark.slow] if name in LARGE else [])]


@pytest.mark.quick(2)
@pytest.mark.needs_package(*EVERY_PACKAGE)
@pytest.mark.parametrize("name", [pytest.param(name, marks=_marks(name)) for name in RUNS])
def test_every_number_of_an_old_run_is_the_same(name, tmp_path, request):
    now = numbers(HERE / "runs" / name, tmp_path)
    path = HERE / "expected" / f"{name}.txt"
    if request.config.getoption("--accept-corpus"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    changed = changes(path.read_text(encoding="utf-8"), now)
    if changed:
        lines = [
            f"{len(changed)} numbers of {name} changed:",
            *changed[:20],
            f"If this is right: pytest tests/test_corpus.py --accept-corpus -k {name}",
        ]
        pytest.fail("\n".join(lines), pytrace=False)
    assert len(values_of(now)) > 1000


def changes(before, now):
    """What differs, a line each. A number that no earlier version reported is no change."""
    old, new = values_of(before), values_of(now)
    if not (has_kind("conversation") and has_kind("study")):  # then its part is not there, instead of null
        old = {place: cell for place, cell in old.items() if (place[2], cell) not in ABSENT}
    return [
        f"[{section}] {row} {column}: {cell}, now {new.get((section, row, column))}"
        for (section, row, column), cell in old.items()
        if not alike(cell, new.get((section, row, column)))
    ]


def alike(before, now):
    """Whether two cells are equal up to rounding: last digits may depend on the order of additions."""
    if now is None or before == now:
        return before == now
    old, new = before.split(" "), now.split(" ")
    try:
        pairs = [(float(one), float(other)) for one, other in zip(old, new, strict=True)]
    except ValueError:
        return False
    return all(math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12) for one, other in pairs)


def test_a_changed_number_is_named_by_its_row_and_column():
    before = text_of(list(sections([{"name": "a", "mean": 1.5, "all": [1, 2]}, {"name": "b", "mean": None}], "report")))
    assert values_of(before)["report", "0", "mean"] == "1.5"
    assert changes(before, before.replace("1.5", "1.50000000001")) == []
    assert changes(before, before.replace("1.5", "1.51")) == ["[report] 0 mean: 1.5, now 1.51"]
    assert changes(before, before.replace("1 2", "1 3")) == ["[report] 0 all: 1 2, now 1 3"]
    assert changes(before, before.replace("null", "0")) == ["[report] 1 mean: null, now 0"]
    rows = before.strip().rsplit("\n", 1)[0]
    assert changes(before, rows)[0] == "[report] rows : 2, now 1"


@pytest.mark.parametrize("name", RUNS)
def test_old_runs_are_whole(name):
    assert karat("runs", "verify", str(HERE / "runs" / name))[0] == 0
