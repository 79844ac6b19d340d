"""What people's scores of drawn answers say of a run: values only."""

from __future__ import annotations

from typing import Literal

import msgspec

from karat.analysis.numbers import Estimate

__all__ = ["Calibrated", "CorrectedDifference", "CorrectedMean", "Disagreement", "MetricAgreement"]


class CorrectedMean(msgspec.Struct, frozen=True, kw_only=True):
    """What people would give on average to every scored answer of a condition."""

    metric: str
    condition: str
    judge: float | None  # the judge's mean over the same answers
    corrected: Estimate
    df: float | None  # of the t distribution of its interval
    bias: Estimate  # judge minus people, from the labelled answers
    labelled: int  # answers with a person's score
    answers: int
    labels_needed: int | None = None  # for the wanted half width; None: none was asked for, or labels do not reach it
    percent: bool = False


class CorrectedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Condition `b` minus condition `a`, as people would score them."""

    metric: str
    a: str
    b: str
    judge: float | None
    corrected: Estimate
    labelled: int
    answers: int
    labels_needed: int | None = None
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
    """A run's judge compared with people, and its means corrected by them."""

    draw: str
    strata_by: str  # the metric whose scores made the strata
    strata: int
    target: Literal["questions", "answers"]  # of what the intervals of means and differences speak
    level: float
    people: tuple[str, ...]
    drawn: int
    labelled: int  # drawn answers with at least one score
    answers: int  # that could be drawn
    half_width: float | None  # that was asked for
    means: tuple[CorrectedMean, ...]
    differences: tuple[CorrectedDifference, ...]
    agreement: tuple[MetricAgreement, ...]
    disagreements: tuple[Disagreement, ...]
    notes: tuple[str, ...] = ()
