"""What people's scores of drawn answers say of a run: values only."""

from __future__ import annotations

from typing import Literal

import msgspec

from karat.analysis.numbers import Estimate

__all__ = ["Calibrated", "Corrected", "Disagreement", "MetricAgreement"]


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """What people would give on average to every answer of `condition`; less those of `against`, where it is named."""

    metric: str
    condition: str
    against: str | None
    judge: float | None  # the same number by the judge, over the same answers
    people: Estimate
    df: float | None  # of the t distribution of its interval
    bias: Estimate  # judge minus people, from the labelled answers
    labelled: int  # answers with a person's score
    answers: int
    labels_needed: int | None = None  # for the wanted half width; None: none is wanted, or labels do not reach it
    percent: bool = False


class MetricAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How far judge and people agree on the answers that both scored; means of several at the nearest step."""

    metric: str
    labelled: int
    questions: int
    exact: float | None  # share on the same step; None: the metric has no steps
    kappa: Estimate  # Cohen's, quadratic weights
    ac2: Estimate  # Gwet's, quadratic weights
    alpha: Estimate  # Krippendorff's, ordinal (without steps: interval)
    people_alpha: Estimate | None  # of people among themselves; None: fewer than two scored the same answer
    steps: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]  # row: the people's step, column: the judge's


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """An answer on which judge and people are far apart."""

    metric: str
    row: str  # of the sheet
    sample: str
    condition: str
    repetition: int
    judge: float
    people: float
    question: str  # excerpt


class Calibrated(msgspec.Struct, frozen=True, kw_only=True):
    """A run's judge compared with people, and its means and differences corrected by them."""

    draw: str
    strata_by: str  # the metric whose scores made the strata
    strata: int
    target: Literal["questions", "answers"]  # of what the intervals of corrected numbers speak
    level: float
    by: tuple[str, ...]  # people
    drawn: int
    labelled: int  # drawn answers with at least one score
    answers: int  # that could be drawn
    half_width: float | None  # that is wanted
    corrected: tuple[Corrected, ...]  # means, then differences, metric by metric
    agreement: tuple[MetricAgreement, ...]
    disagreements: tuple[Disagreement, ...]
    notes: tuple[str, ...] = ()
