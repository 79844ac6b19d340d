"""The tests of two runs over human studies, side by side: which effects changed their direction, which moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from karat.analysis.numbers import Estimate
from karat.kinds.study.analysis.comparison import TestChange
from karat.kinds.study.analysis.tests import mean
from karat.replication import z_of_level

if TYPE_CHECKING:
    from karat.replication import Agreement, Draws

__all__ = ["Scored", "changes"]

MOVED = 1e-9  # below it an effect has no sign


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One side: an agreement and its replicates for each repetition."""

    agreements: Sequence[Agreement]
    draws: Sequence[Draws]
    level: float = 0.95  # of intervals


def changes(first: Scored, second: Scored) -> list[TestChange]:
    """Those whose direction flipped first, then those that moved most."""
    places = {
        (score.test.finding_id, score.test.test): at
        for at, score in enumerate(second.agreements[0].tests if second.agreements else ())
    }
    found = [
        _test(first, second, at, places[key])
        for at, score in enumerate(first.agreements[0].tests if first.agreements else ())
        if (key := (score.test.finding_id, score.test.test)) in places
    ]
    return sorted(found, key=lambda one: (not one.flipped, -abs(one.change.value or 0.0)))


def _test(first: Scored, second: Scored, here: int, there: int) -> TestChange:
    sides = [[one.tests[at] for one in side.agreements] for side, at in ((first, here), (second, there))]
    test = sides[0][0].test
    d_a, d_b = (mean(score.agent.d for score in side) for side in sides)
    pas_a, pas_b = (mean(score.pas for score in side) for side in sides)
    change = _moved(d_a, d_b, _se(first, second, here, there), level=first.level)
    turned = d_a is not None and d_b is not None and min(abs(d_a), abs(d_b)) > MOVED and (d_a > 0) != (d_b > 0)
    return TestChange(
        study=test.study,
        sub_study=test.sub_study,
        finding=test.finding,
        test=test.test,
        kind=test.kind,
        d_human=mean(score.human.d for score in sides[0]),
        d_a=d_a,
        d_b=d_b,
        change=change,
        pas_a=pas_a,
        pas_b=pas_b,
        sign_changed=turned,
        flipped=turned and change.low is not None and change.high is not None and not change.low <= 0 <= change.high,
    )


def _moved(d_a: float | None, d_b: float | None, se: float | None, *, level: float) -> Estimate:
    z = z_of_level(level)
    method = f"± {round(z, 2)} bootstrap SE"
    if d_a is None or d_b is None:
        reason = "no effect on one side"
        return Estimate(value=None, low=None, high=None, se=None, n=1, level=level, method=method, reason=reason)
    value, reach = d_b - d_a, None if se is None else z * se
    return Estimate(
        value=value, low=None if reach is None else value - reach, high=None if reach is None else value + reach,
        se=se, n=1, level=level, method=method, reason="no replicate has an effect" if se is None else None,
    )  # fmt: skip


def _se(first: Scored, second: Scored, here: int, there: int) -> float | None:
    """Of the difference of both means over repetitions, draw by draw."""
    before = np.stack([one.d[:, here] for one in first.draws])
    after = np.stack([one.d[:, there] for one in second.draws])
    if before.shape != after.shape:
        return None
    change = (after - before).mean(axis=0)
    change = change[np.isfinite(change)]
    return float(change.std(ddof=1)) if change.size > 1 else None
