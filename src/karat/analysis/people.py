"""Results from people's scores of drawn answers: values only."""

from __future__ import annotations

from typing import Literal

import msgspec

from karat.analysis.numbers import Estimate


class Corrected(msgspec.Struct, frozen=True, kw_only=True):
    """The mean that people would give to all answers of `condition`; minus that of `against`, if
    given.
    """

    metric: str
    condition: str
    against: str | None
    judge: float | None  # the judge's number over the same answers
    people: Estimate
    df: float | None  # of the t distribution of its interval
    bias: Estimate  # judge minus people, from the labelled answers
    labelled: int  # answers with a person's score
    answers: int
    # for the wanted half width; None: not requested, or not reachable with labels
    labels_needed: int | None = None
    percent: bool = False


class MetricAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The agreement of judge and people on the answers that both scored; means of several at the
    nearest step.
    """

    metric: str
    labelled: int
    questions: int
    exact: float | None  # share on the same step; None: the metric has no steps
    kappa: Estimate  # Cohen's, quadratic weights
    ac2: Estimate  # Gwet's, quadratic weights
    alpha: Estimate  # Krippendorff's, ordinal (without steps: interval)
    # of people among themselves; None: fewer than two scored the same answer
    people_alpha: Estimate | None
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
    strata_by: str  # the metric whose scores define the strata
    strata: int
    target: Literal["questions", "answers"]  # what the intervals of corrected numbers are about
    level: float
    by: tuple[str, ...]  # people
    drawn: int
    labelled: int  # drawn answers with at least one score
    answers: int  # eligible for the draw
    half_width: float | None  # requested
    corrected: tuple[Corrected, ...]  # means, then differences, metric by metric
    agreement: tuple[MetricAgreement, ...]
    disagreements: tuple[Disagreement, ...]
    notes: tuple[str, ...] = ()
