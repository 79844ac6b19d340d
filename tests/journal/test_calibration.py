"""Draws and people's scores in the run folder: appended, durable, never taken from another run."""

from __future__ import annotations

import json
import os

import pytest
from tests.analysis.journals import table

from karat.errors import BadRun
from karat.journal import RunFolder, verify
from karat.journal.calibration import (
    CALIBRATION_FILE,
    Calibrations,
    Draw,
    PersonScores,
    Stratum,
    add_calibration,
    read_calibrations,
)

AT = "2026-11-20T12:00:00+00:00"
DRAW = Draw(
    id="bqmwfv",
    at=AT,
    metric="completeness",
    seed=0,
    strata=(Stratum(condition="baseline", low=3.0, high=4.0, trials=("t1", "t2", "t3")),),
    drawn=("t3", "t1"),
)


@pytest.fixture
def run(tmp_path) -> RunFolder:
    return table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})


def scores(who: str = "ann", trial: str = "t1", **given: float) -> PersonScores:
    return PersonScores(at=AT, who=who, draw="bqmwfv", trial=trial, scores=given)


def test_what_was_drawn_and_scored_comes_back(run):
    assert read_calibrations(run) == Calibrations()
    add_calibration(run, [DRAW])
    add_calibration(run, [scores(completeness=4.0, clarity=2.0), scores("bob", completeness=1.0)])
    add_calibration(run, [scores(completeness=5.0), scores(trial="t3", clarity=3.0)])
    kept = read_calibrations(run)
    assert kept.draws == {"bqmwfv": DRAW}
    of_ann = {"completeness": 5.0, "clarity": 2.0}  # the newest of each metric
    assert kept.scores == {
        "bqmwfv": {"t1": {"ann": of_ann, "bob": {"completeness": 1.0}}, "t3": {"ann": {"clarity": 3.0}}}
    }
    lines = (run.path / CALIBRATION_FILE).read_bytes().splitlines()
    assert json.loads(lines[0]).items() >= {"event": "head", "format": 1, "run": "1234abcd"}.items()
    assert kept.lines == len(lines) == 6


def test_a_line_that_a_killed_writer_left_is_written_over(run):
    add_calibration(run, [DRAW])
    path = run.path / CALIBRATION_FILE
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event":"scores","at":"2026')
    assert read_calibrations(run).draws == {"bqmwfv": DRAW}
    add_calibration(run, [scores(completeness=4.0)])
    assert path.read_bytes().startswith(whole)
    assert read_calibrations(run).scores["bqmwfv"]["t1"] == {"ann": {"completeness": 4.0}}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"seed":0', b'"seed":1', "line 2 is not as karat wrote it"),
        (b'"low":3.0', b'"low":"a"', "line 2 is not as karat wrote it"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_written_after_it(run, old, new, told):
    add_calibration(run, [DRAW])
    path = run.path / CALIBRATION_FILE
    path.write_bytes(path.read_bytes().replace(old, new))
    damaged = path.read_bytes()
    with pytest.raises(BadRun, match=told):
        read_calibrations(run)
    with pytest.raises(BadRun, match=told):
        add_calibration(run, [scores(completeness=4.0)])
    assert path.read_bytes() == damaged
    [damage] = [one for one in verify(run.path).damages if one.file == CALIBRATION_FILE]
    assert told in damage.reason


def test_the_file_of_another_run_and_what_is_no_file_are_refused(run, tmp_path):
    other = table(tmp_path / "other", {"baseline": [[3.0], [4.0]]}, run="deadbeef")
    add_calibration(other, [DRAW])
    (run.path / CALIBRATION_FILE).write_bytes((other.path / CALIBRATION_FILE).read_bytes())
    with pytest.raises(BadRun, match="of run deadbeef, this is run 1234abcd"):
        read_calibrations(run)
    (run.path / CALIBRATION_FILE).unlink()
    (run.path / CALIBRATION_FILE).symlink_to(other.path / CALIBRATION_FILE)
    with pytest.raises(BadRun):
        read_calibrations(run)
    (run.path / CALIBRATION_FILE).unlink()
    os.mkfifo(run.path / CALIBRATION_FILE)
    with pytest.raises(BadRun):
        add_calibration(run, [DRAW])
