"""The limits of the benchmarks: a missed one fails the program, and a slow machine misses none."""

from __future__ import annotations

import importlib.util
import json
import math
import runpy
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
spec = importlib.util.spec_from_file_location("limits", BENCHMARKS / "limits.py")
assert spec is not None
assert spec.loader is not None
limits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(limits)


@pytest.mark.parametrize(
    ("value", "comparison", "limit", "verdict"),
    [
        (1.5, "≤", 1.5, "≤ 1.5 s: ok"),
        (1.6, "≤", 1.5, "≤ 1.5 s: MISSED"),
        (2, "<", 2, "< 2 s: MISSED"),
        (6_000, "≥", 5_000, "≥ 5,000 s: ok"),
        (math.nan, "≥", 5_000, "≥ 5,000 s: MISSED"),
        (math.nan, "≤", 5_000, "≤ 5,000 s: MISSED"),
    ],
)
def test_a_figure_is_compared_with_its_limit(value, comparison, limit, verdict):
    checked = limits.Limits()
    assert checked.check("a figure", value, comparison, limit, "s") == verdict
    if "MISSED" in verdict:
        with pytest.raises(SystemExit, match="a figure"):
            checked.exit()
    else:
        checked.exit()


class Clock:
    """A clock of a machine that is so many times as slow, whatever it is asked to time."""

    def __init__(self, slowness: float) -> None:
        self.now, self.slowness = 0.0, slowness

    def __call__(self) -> float:
        self.now += self.slowness
        return self.now


@pytest.mark.slow
def test_reference_seconds_do_not_depend_on_the_speed_of_the_machine():
    fast, slow = (limits.Limits().timed(lambda: None, clock=Clock(factor)) for factor in (0.01, 7.0))
    assert fast == pytest.approx(slow) == pytest.approx(limits.REFERENCE)
    assert limits.Limits().scaled(21.0, clock=Clock(7.0)) == pytest.approx(3 * limits.REFERENCE)


results = runpy.run_path(str(BENCHMARKS / "_results.py"))


def test_a_section_is_written_with_its_machine_and_drawn_as_a_table(tmp_path):
    section = {
        "title": "Speed",
        "columns": ["", "karat", "other"],
        "rows": [["10,000 trials | durable", 12.3456, None], ["bytes", 1234567, 0.0123456]],
        "verdicts": ["≥ 100 ×: ok"],
        "versions": {"other": "1.2"},
    }
    results["write"](None, section)
    results["write"](tmp_path / "new" / "speed.json", section)
    (written,) = json.loads((tmp_path / "new" / "speed.json").read_text())
    assert written.items() >= section.items()
    assert set(written) - set(section) == {"date", "machine", "karat", "command"}
    assert results["markdown"]({**section, "date": "2026-11-23", "machine": "box"}) == (
        "## Speed\n\n"
        "|  | karat | other |\n|---|--:|--:|\n"
        "| 10,000 trials \\| durable | 12.3 | – |\n"
        "| bytes | 1,234,567 | 0.0123 |\n\n"
        "* ≥ 100 ×: ok\n\n"
        "2026-11-23, box, other 1.2.\n"
    )


def test_the_page_of_results_is_what_the_files_say():
    assert results["page"]() == (BENCHMARKS / "RESULTS.md").read_text(encoding="utf-8"), "python benchmarks/_results.py"


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.py")), ids=lambda path: path.name)
def test_a_benchmark_that_has_limits_fails_when_one_is_missed(path):
    text = path.read_text(encoding="utf-8")
    if "Limits()" in text:
        assert "limits.exit()" in text
    assert "wanted ≤" not in text, "a limit that is only printed"
    compile(text, str(path), "exec")


def test_the_tables_of_the_page_on_very_large_runs_are_computed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    scale = runpy.run_path(str(BENCHMARKS / "scale.py"))
    page = (BENCHMARKS.parent / "docs" / "explanation" / "scale.md").read_text(encoding="utf-8")
    assert scale["filled"](page, scale["inputs_of"](page)) == page
    assert scale["filled"](page, {**scale["inputs_of"](page), "driver_batch": 500.0}) != page


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["regular expression in the loop", "takes signals by the loop", "process that is left"]
)
def test_two_signals_end_an_agent_that_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    blocking = runpy.run_path(str(BENCHMARKS / "blocking.py"))
    _, _, faults = blocking["one_round"](name, "SIGINT", (2.0, 1.0), patience=30.0)
    assert not faults
