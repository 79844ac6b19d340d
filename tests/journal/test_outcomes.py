"""What gates decided stays with the run: the newest outcome of each threshold counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.journals import table

from karat.errors import BadRun
from karat.journal import RunFolder, verify
from karat.journal.outcomes import GATE_FILE, Outcome, Outcomes, add_outcomes, read_outcomes


def outcome(verdict: str = "passed", **changes: object) -> Outcome:
    fields = {"at": "now", "bound": "min", "name": "completeness", "limit": 3.0, "condition": "baseline"}
    return Outcome(verdict=verdict, **{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})


def test_a_run_that_nobody_gated_has_no_outcomes(run: RunFolder):
    assert read_outcomes(run) == Outcomes()
    assert not Outcomes().held_back


def test_the_newest_outcome_of_each_threshold_and_condition_counts(run: RunFolder):
    others = [outcome("failed", condition="docs"), outcome("failed", bound="max"), outcome("failed", name="cost")]
    add_outcomes(run, [outcome("failed"), *others])
    add_outcomes(run, [outcome("passed", at="later", limit=2.0)])
    kept = read_outcomes(run)
    assert set(kept.newest) == {outcome("passed", at="later", limit=2.0), *others}
    assert kept.lines == 6  # with the head
    assert verify(run.path).ok


@pytest.mark.parametrize(
    ("verdict", "baseline", "held_back"),
    [
        ("passed", None, False),
        ("passed", "before", False),
        ("failed", None, True),
        ("failed", "before", True),
        ("undecided", None, False),
        ("undecided", "before", True),
    ],
)
def test_a_run_is_held_back_as_a_baseline_where_a_threshold_failed_or_a_drop_is_undecided(verdict, baseline, held_back):
    found = Outcomes(newest=(outcome(), outcome(verdict, condition="docs", baseline=baseline)))
    assert found.held_back is held_back


def test_a_damaged_line_is_named_and_nothing_is_written_after_it(run: RunFolder):
    add_outcomes(run, [outcome()])
    path = run.path / GATE_FILE
    path.write_bytes(path.read_bytes().replace(b"passed", b"failed"))
    damaged = path.read_bytes()
    told = "line 2 is not as karat wrote it; delete the file and gate the run again"
    with pytest.raises(BadRun, match=told):
        read_outcomes(run)
    with pytest.raises(BadRun, match=told):
        add_outcomes(run, [outcome()])
    assert path.read_bytes() == damaged
    (damage,) = verify(run.path).damages
    assert (damage.file, damage.line, damage.reason, damage.remedy) == (
        GATE_FILE,
        None,
        "line 2 is not as karat wrote it",
        "delete it, and gate the run again",
    )


def test_the_outcomes_of_another_run_are_refused(run: RunFolder, tmp_path: Path):
    other = table(tmp_path / "other", {"baseline": [[3.0], [4.0]]}, run="deadbeef")
    add_outcomes(other, [outcome()])
    (run.path / GATE_FILE).write_bytes((other.path / GATE_FILE).read_bytes())
    with pytest.raises(BadRun, match="holds outcomes of run deadbeef, this is run 1234abcd"):
        read_outcomes(run)
