"""One metric over the runs of an experiment."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from karat.analysis import summarize
from karat.analysis.history import history
from karat.document.followed import history_document
from karat.errors import BadOption


def runs(folder, journals, means, *, name="nightly", noise=0.3, seed=1, first=0):
    """A finished run for each mean, an hour apart."""
    rng = np.random.default_rng(seed)
    for at, mean in enumerate(means, first):
        scores = {"base": np.clip(rng.normal(mean, noise, (20, 1)), 1, 5).tolist()}
        created = f"2026-10-{1 + at // 24:02}T{at % 24:02}:00:00Z"
        yield summarize(journals.table(folder / f"{name}-{at}", scores, run=f"{at:08x}", created=created, name=name))


def test_a_shift_is_found_and_named(tmp_path, journals):
    made = history(runs(tmp_path, journals, [3.0] * 14 + [3.6] * 14))
    (series,) = made.series
    assert (made.runs, made.left_out, len(series.points)) == (28, 0, 28)
    assert [point.run for point in series.points] == [f"{at:08x}" for at in range(28)]
    assert series.change.p < 0.01
    assert series.change.index in range(13, 16)
    assert series.alarm.upwards
    assert series.alarm.index >= 14
    assert "went up since" in history_document(made).verdicts[0]


def test_equal_runs_show_no_change(tmp_path, journals):
    (series,) = history(runs(tmp_path, journals, [3.0] * 20)).series
    assert series.alarm.index is None
    assert series.change.p > 0.05


def test_few_runs_say_that_they_are_few(tmp_path, journals):
    made = history(runs(tmp_path, journals, [3.0] * 4))
    assert made.series[0].change.index is None
    assert "needs 10 runs" in history_document(made).verdicts[0]


def test_other_experiments_and_datasets_are_left_out_and_counted(tmp_path, journals):
    others = list(runs(tmp_path, journals, [2.0, 2.0], name="other"))
    mine = list(runs(tmp_path, journals, [3.0] * 3, first=5))
    old = msgspec.structs.replace(
        mine[0], provenance=msgspec.structs.replace(mine[0].provenance, sha256="00" * 32), run="ffffffff"
    )
    made = history([*mine, old, *others])
    assert (made.name, made.runs, made.left_out) == ("nightly", 3, 3)
    assert history([*mine, *others], name="other").runs == 2
    assert ("Left out", "3 runs of other experiments or datasets") in history_document(made).facts


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"name": "nightyl"}, "no run of 'nightyl'.*nightly"),
        ({"metric": "qualty"}, "no metric 'qualty'"),
        ({"condition": "bas"}, "no condition 'bas'.*base"),
    ],
)
def test_names_that_are_not_there_are_refused(tmp_path, journals, asked, message):
    with pytest.raises(BadOption, match=message):
        history(runs(tmp_path, journals, [3.0]), **asked)
    with pytest.raises(BadOption, match="there are no runs"):
        history([])
