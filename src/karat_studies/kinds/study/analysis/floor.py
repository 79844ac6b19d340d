"""The floors of a run over human studies: what simulated participants who read nothing score in the
same tests.

No calls are made. In one floor each participant of the run answers at random; in the other everyone
in an arm gives the same random answer, like a model without knowledge at temperature 0. Each
repetition is a separate experiment, so the spread between them gives the error of their mean, and
participants need no resampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from karat import formats, stats
from karat.analysis.numbers import Estimate, from_fields, known, mean
from karat.records import Sample
from karat.stats import special
from karat_studies.kinds.study.analysis.model import (
    FloorDifference,
    FloorScore,
    FloorTest,
    StudyFloor,
)
from karat_studies.kinds.study.analysis.runs import agreement_of
from karat_studies.kinds.study.analysis.scores import changed, sd, unscored
from karat_studies.kinds.study.samples import random_answers
from karat_studies.replication import directed_pas, draw_scores, reference_differences, score_tests

if TYPE_CHECKING:
    from karat_studies.replication import Agreement, Draws, StudyScore, StudyTest

    Scored = tuple[Sequence[Agreement], Sequence[Draws]]
    """An agreement and its replicates for each repetition."""

Values = dict[str, float | str | list[str]]
Guesser = Callable[[Sample, int], Values]
"""Sample, turn → an answer to every field of it."""

REPETITIONS = 5
ONE_ANSWER = 9
"""Repetitions of one answer per arm: they vary widely, and agents are judged against that
spread.
"""
SAME = 0.8
"""Share of an arm that gives its answer where one answer an arm leaves no test with a score."""
ABOVE_MEAN = 0.025
"""One-sided, as the 95 % interval that is shown."""
BEYOND_SINGLE = 0.05
"""Share of single agents that know nothing and reach more."""
COPY_REPLICATES = 500
"""Of people's copy: its error only."""
MOST = 200_000
"""Random answers in all repetitions together: more would take longer than the run's own numbers."""


class Guesses(msgspec.Struct, frozen=True, kw_only=True):
    """One study, answered without reading: its tests in each repetition."""

    study: str
    tests: Sequence[Sequence[StudyTest]]

    @property
    def scored(self) -> bool:
        """Whether any test has a score: without a spread a t test has none."""
        return any(
            known(test.pas) is not None for tests in self.tests for test in score_tests(tests).tests
        )


def floor_repetitions(questions: int, wanted: int = REPETITIONS) -> int:
    """How often answers are drawn, given the run's number of questions.

    >>> floor_repetitions(6_500), floor_repetitions(70_000), floor_repetitions(1_000_000)
    (5, 2, 1)
    """
    return max(1, min(wanted, MOST // max(1, questions)))


def guessers_of(seed: int, *, repetitions: int, one_answer: int) -> list[Guesser]:
    """Random answers for each participant, repeatedly; then one answer per arm.

    `seed`: of the study.
    """
    guessers = [_each_alone(Random(f"{seed}/floor/{number}")) for number in range(repetitions)]
    return [
        *guessers,
        *(_one_an_arm(f"{seed}/one answer/{number}") for number in range(one_answer)),
    ]


def _each_alone(dice: Random) -> Guesser:
    return lambda sample, turn: random_answers(sample, turn, dice)


def _one_an_arm(seed: str) -> Guesser:
    """The same answer from everyone in an arm, in every round of it."""

    def guess(sample: Sample, turn: int) -> Values:
        fields = msgspec.json.encode(sample.detail["fields"][turn], order="deterministic").decode()
        return random_answers(
            sample, turn, Random(f"{seed}/{sample.turns[turn].detail['arm']}/{fields}")
        )

    return guess


def mostly_one_an_arm(seed: int, *, repetitions: int) -> list[Guesser]:
    """An arbitrary distribution per arm: four of five give the arm's answer, the others answer at
    random.
    """
    return [_mostly_one(f"{seed}/mostly one answer/{number}") for number in range(repetitions)]


def _mostly_one(seed: str) -> Guesser:
    same, alone, dice = (
        _one_an_arm(seed),
        _each_alone(Random(f"{seed}/others")),
        Random(f"{seed}/who"),
    )

    def guess(sample: Sample, turn: int) -> Values:
        chosen = same if dice.random() < SAME else alone
        return chosen(sample, turn)

    return guess


def floor_of(
    parts: Sequence[Guesses],
    conditions: Mapping[str, Scored],
    *,
    questions: int,
    level: float = 0.95,
    wanted: int = REPETITIONS,
    designs: int = 1,
    copy: Scored | None = None,
) -> StudyFloor:
    """All studies together, and each condition minus the floor. `wanted`: repetitions, if the run
    is not too large.

    `designs`: how many conditions are judged, so that the best of them is judged as the best of
    several. `copy`: of people, judged as another condition.
    """
    repetitions = min((len(part.tests) for part in parts), default=0)
    agreements = []
    for at in range(repetitions):
        agreements.append(agreement_of(*(part.tests[at] for part in parts), level=level))

    first = agreements[0]
    tests = []
    for scores in zip(*(agreement.tests for agreement in agreements), strict=True):
        pas = mean(score.pas for score in scores)
        why = None
        if pas is None:
            why = unscored(reason for score in scores for reason in score.agent.reasons)

        tests.append(
            from_fields(
                FloorTest,
                scores[0].test,
                pas=pas,
                pas_directional=mean(score.pas_directional for score in scores),
                pi=mean(score.pi_agent for score in scores),
                d=mean(score.agent.d for score in scores),
                reason=why,
            )
        )

    without = {}
    for part in parts:
        own = [score for score in first.tests if score.test.study == part.study]
        if not any(known(score.pas) is not None for score in own):
            sides = [side for score in own for side in (score.human, score.agent)]
            why = unscored(reason for side in sides for reason in side.reasons)
            without[part.study] = why or "it has no test"

    return StudyFloor(
        repetitions=repetitions,
        repetitions_wanted=wanted,
        questions=questions,
        benchmark=_level("benchmark", [agreement.benchmark for agreement in agreements], first),
        domains=tuple(
            _level("domain", [scored.domains[at] for scored in agreements], first)
            for at in range(len(first.domains))
        ),
        studies=tuple(
            _level("study", [scored.studies[at] for scored in agreements], first)
            for at in range(len(first.studies))
        ),
        tests=tuple(tests),
        differences=tuple(
            _above(name, *of, agreements, designs=designs) for name, of in conditions.items()
        ),
        without=without,
        copy=None if copy is None else _above("people", *copy, agreements, designs=designs),
    )


def perfect_copy(parts: Sequence[Guesses], *, level: float = 0.95) -> Scored:
    """People's own numbers as an agent's, in the tests that can be guessed, with replicates of the
    statistics.
    """
    tests = [test for part in parts for test in part.tests[0]]
    copied = []
    for test in tests:
        if test.agent.missing is None:
            copied.append(replace(test, agent=test.human))
        else:
            copied.append(test)

    copy = agreement_of(copied, level=level)
    rng = np.random.default_rng([len(copied), COPY_REPLICATES])
    return [copy], [draw_scores(copy, rng=rng, replicates=COPY_REPLICATES)]


def _level(level: str, scores: Sequence[StudyScore], first: Agreement) -> FloorScore:
    name = ""
    if level != "benchmark":
        name = scores[0].name
    own = {
        "benchmark": first.tests,
        "domain": [test for test in first.tests if test.test.domain == name],
        "study": [test for test in first.tests if test.test.study == name],
    }
    reason = unscored(
        why for test in own[level] for why in (*test.human.reasons, *test.agent.reasons)
    )
    tests = max(score.tests_used for score in scores)
    effects = max(score.tests_with_effects for score in scores)
    ecs_reason = next((score.ecs.reason for score in scores if math.isnan(score.ecs.value)), None)
    pas_each = [known(score.pas) for score in scores]
    ecs_each = [known(score.ecs.value) for score in scores]
    return FloorScore(
        level=level,
        name=name,
        pas=_estimate(pas_each, n=tests, ends=(0.0, 1.0), reason=reason, level=first.level),
        pas_sd=sd(pas_each),
        pas_directional=mean(score.pas_directional for score in scores),
        ecs=_estimate(ecs_each, n=effects, ends=(-1.0, 1.0), reason=ecs_reason, level=first.level),
        ecs_sd=sd(ecs_each),
        tests_used=tests,
        tests_planned=scores[0].tests_planned,
        pas_each=tuple(pas_each),
        ecs_each=tuple(ecs_each),
    )


def _estimate(
    values: Sequence[float | None],
    *,
    n: int,
    ends: tuple[float, float],
    reason: str | None,
    level: float,
) -> Estimate:
    """The mean over repetitions, with the t interval of that mean."""
    kept = [value for value in values if value is not None]
    method = f"mean of {formats.plural(len(kept), 'repetition')} of random answers"
    if len(kept) < 2:
        if kept:
            why = "one repetition has no spread"
        else:
            why = reason or "no score"

        return Estimate(
            value=mean(kept),
            low=None,
            high=None,
            se=None,
            n=n,
            level=level,
            method=method,
            reason=why,
        )

    span = stats.mean_interval(kept, range(len(kept)), level=level)
    return Estimate(
        value=span.value,
        low=max(ends[0], span.low),
        high=min(ends[1], span.high),
        se=span.se,
        n=n,
        level=level,
        method=f"{method}, t interval",
    )


def _above(
    name: str,
    own: Sequence[Agreement],
    draws: Sequence[Draws],
    reference: Sequence[Agreement],
    *,
    designs: int,
) -> FloorDifference:
    pas, ecs = reference_differences(own, draws, reference)
    level = own[0].level
    directed = mean(directed_pas(agreement) for agreement in own)
    others = [known(directed_pas(agreement)) for agreement in reference]

    # How often the mean of the floor is reached by chance, one-sided; 1 if that is not known
    if not math.isfinite(pas.value) or not pas.se > 0:
        p_of_mean = 1.0 if not pas.value > 0 or math.isnan(pas.se) else 0.0
    else:
        p_of_mean = 1 - float(special.stdtr(pas.df, pas.value / pas.se))

    mean_is_above = p_of_mean < ABOVE_MEAN / designs
    return FloorDifference(
        condition=name,
        pas=changed(pas, level=level),
        ecs=changed(ecs, level=level),
        directed=directed,
        beyond=mean_is_above and p_of_one(directed, others) < BEYOND_SINGLE / designs,
    )


def p_of_one(value: float | None, draws: Sequence[float | None]) -> float:
    """How often one more of these draws reaches the value (a prediction bound, Student's t); 1 if
    that is not known.

    Their mean is not a criterion: half of the agents without knowledge are above it. On the arcsine
    scale of shares,
    where nine draws err less: 1.9–6.2 % above the bound of 5 % in the shipped studies (plain:
    2.9–7.3 %), 0.2–1.9 % above that of 1.25 % (plain: 0.2–2.9 %), and people's copy more often.
    """
    kept = [_arcsine(draw) for draw in draws if draw is not None]
    spread = sd(kept)
    if value is None or spread is None:
        return 1.0
    above = _arcsine(value) - math.fsum(kept) / len(kept)
    if spread == 0:
        return 0.0 if above > 0 else 1.0
    return 1 - float(special.stdtr(len(kept) - 1, above / (spread * math.sqrt(1 + 1 / len(kept)))))


def _arcsine(share: float) -> float:
    return math.asin(math.sqrt(min(1.0, max(0.0, share))))
