"""Which differences chance does not explain, where several are looked at; and who is above knowing nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from karat import stats
from karat.analysis.numbers import Estimate
from karat.kinds.study.analysis.model import StudyCondition, StudyFloor, StudySummary

__all__ = [
    "NARROW_STUDY",
    "above_chance",
    "above_floor",
    "beyond_chance",
    "leaves_out_0",
    "narrow_studies",
    "opposed_in",
]

NARROW = 0.1  # of PAS between the floor and a perfect copy: trust has .05, the next study .2
NARROW_STUDY = "random answers and a perfect copy of people hardly differ in PAS; left out of comparisons of PAS"


def above_chance(one: StudyCondition, part: StudySummary) -> bool:
    """Whether an agent shows that it knows anything of people: above both floors, and nowhere opposed to people.

    Of agents that give random answers, or one arbitrary answer an arm, at most one in 20 is called so in any shipped
    study; `benchmarks/knowledge_free.py` counts them.
    """
    if part.floor is None or opposed_in(one):
        return False
    second = part.floor_one_answer
    # Where one answer an arm leaves no test a score, as a t test of it has no spread, there is nothing to be above.
    scored = second is not None and second.benchmark.pas.value is not None
    return above_floor(one, part.floor) and (not scored or (second is not None and above_floor(one, second)))


def narrow_studies(part: StudySummary) -> list[str]:
    """Studies in which random answers and a perfect copy of people hardly differ in PAS: what an agent gets there
    says little of it.
    """
    if part.floor is None:
        return []
    ceilings: dict[str, float] = {}
    for one in part.conditions:
        for study in one.studies:
            if study.score.ceiling is not None:
                ceilings.setdefault(study.study, study.score.ceiling)
    floors = {one.name: one.pas.value for one in part.floor.studies}
    return [name for name, top in ceilings.items() if (floor := floors.get(name)) is not None and top - floor < NARROW]


def above_floor(one: StudyCondition, floor: StudyFloor) -> bool:
    """PAS is above the floor's mean beyond the error of both, and directional PAS above what single draws of the floor
    reach in 95 of 100 cases.
    """
    more = floor.of(one.condition)
    return more is not None and more.pas.low is not None and more.pas.low > 0 and more.beyond


def opposed_in(one: StudyCondition) -> list[str]:
    """The findings, as study/finding, with an effect opposite to people's that PAS counts as agreement."""
    return [f"{found.study}/{found.name}" for found in one.findings if any(test.opposed for test in found.tests)]


def leaves_out_0(found: Estimate) -> bool:
    """Whether the interval leaves out no difference, the comparison taken alone."""
    return found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)


def beyond_chance(differences: Sequence[Estimate]) -> list[bool]:
    """Whether each difference is shown though all of them were looked at: of equal conditions one in 20 runs has any
    (at 95 %).

    The interval must leave out 0, and so must p, from the standard error, adjusted over all (Holm).

    >>> one = Estimate(value=0.2, low=0.01, high=0.39, se=0.097, n=6, level=0.95, method="", reason=None)
    >>> beyond_chance([one]), beyond_chance([one, one])
    ([True], [False, False])
    """
    adjusted = stats.adjust([_p(one) for one in differences])
    return [
        leaves_out_0(one) and bool(p < round(1 - one.level, 15)) for one, p in zip(differences, adjusted, strict=True)
    ]


def _p(found: Estimate) -> float:
    """Two-sided; NaN where there is no difference, or no error of it."""
    if found.value is None or found.se is None:
        return math.nan
    if found.se == 0:
        return 1.0 if found.value == 0 else 0.0
    return math.erfc(abs(found.value) / found.se / math.sqrt(2))
