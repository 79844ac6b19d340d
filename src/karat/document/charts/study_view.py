"""What charts of studies draw, of a table of tests or of a condition of a run, in one shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean

from karat.analysis.numbers import Estimate
from karat.document.charts.chart import apart
from karat.kinds.study.analysis.model import StudyCondition, StudyFloor, TestResult
from karat.replication import Agreement, Uncertainty

__all__ = ["Drawn", "Line", "TestShown", "of_agreement", "of_condition"]

NAN = float("nan")
Span = tuple[float, float | None, float | None]
"""A number with its interval, where there is one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TestShown:
    """One test. NaN: not known."""

    __test__ = False  # no test class, whatever pytest thinks of the name

    name: str  # finding and test, unlike any other
    study: str
    pi_human: float
    pi_agent: float
    pas: float
    pas_directional: float
    log_bf_human: float
    log_bf_agent: float
    opposed: bool
    d_human: float
    d_human_se: float
    d_agent: float
    d_agent_se: float
    z_diff: float
    pi_floor: float = NAN  # of random answers

    @property
    def has_effects(self) -> bool:
        """On both sides."""
        return math.isfinite(self.d_human) and math.isfinite(self.d_agent)

    @property
    def apart(self) -> tuple[float, float]:
        """The agent's effect less that of people, and its error."""
        return self.d_agent - self.d_human, math.hypot(self.d_human_se, self.d_agent_se)


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The agent's effects on those of people: a line through a centre, with the interval of its slope."""

    slope: float
    low: float
    high: float
    centre: float
    centre_agent: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """One condition: its main numbers, and every test."""

    condition: str
    tests: tuple[TestShown, ...]
    pas: Span
    ecs: Span
    tests_used: int
    studies_used: int
    tests_with_effects: int
    opposed: int  # findings
    line: Line
    repetitions: int = 1
    level: float = 0.95  # of every interval
    floor: Span | None = None  # PAS of random answers, where they stand beside
    floor_ecs: Span | None = None


def of_agreement(agreement: Agreement, sure: Uncertainty, *, condition: str) -> Drawn:
    """Of a table of tests."""
    names = apart(f"{'/'.join(filter(None, one.test.finding_id))} {one.test.test}" for one in agreement.tests)
    whole, slope = agreement.benchmark, agreement.caricature
    spread, fixed = sure.pas.get(("benchmark", "")), sure.ecs_fixed.get(("benchmark", ""))
    return Drawn(
        condition=condition,
        tests=tuple(
            TestShown(
                name=name, study=one.test.study, pi_human=one.pi_human, pi_agent=one.pi_agent, pas=one.pas,
                pas_directional=one.pas_directional, log_bf_human=one.human.log_bf, log_bf_agent=one.agent.log_bf,
                opposed=one.opposed, d_human=one.human.d, d_human_se=one.human.d_se, d_agent=one.agent.d,
                d_agent_se=one.agent.d_se, z_diff=one.z_diff,
            )
            for name, one in zip(names, agreement.tests, strict=True)
        ),
        pas=(whole.pas, None, None) if spread is None else (whole.pas, spread.low, spread.high),
        ecs=(whole.ecs.value, None, None) if fixed is None else (whole.ecs.value, fixed.low, fixed.high),
        tests_used=whole.tests_used,
        studies_used=whole.used,
        tests_with_effects=whole.tests_with_effects,
        opposed=len(agreement.opposed),
        line=Line(slope=slope.slope, low=slope.low, high=slope.high, centre=slope.centre,
                  centre_agent=slope.centre_agent),
        level=agreement.level,
    )  # fmt: skip


def of_condition(found: StudyCondition, *, floor: StudyFloor | None = None) -> Drawn:
    """Of a condition of a run: means over repetitions. `floor`: random answers, drawn beside."""
    beside = {} if floor is None else _posteriors(floor)
    keyed = [
        ((finding.study, finding.sub_study, finding.id, test.id), test)
        for finding in found.findings
        for test in finding.tests
    ]
    names = apart(f"{'/'.join(filter(None, key[:3]))} {key[3]}" for key, _ in keyed)
    whole, slope = found.benchmark, found.caricature
    return Drawn(
        condition=found.condition,
        tests=tuple(
            _of_test(name, key[0], test, beside.get(key, NAN))
            for name, (key, test) in zip(names, keyed, strict=True)
        ),
        pas=(_known(whole.pas.value), whole.pas.low, whole.pas.high),
        ecs=(_known(whole.ecs.value), whole.ecs.low, whole.ecs.high),
        tests_used=whole.tests_used,
        studies_used=whole.used,
        tests_with_effects=whole.tests_with_effects,
        opposed=sum(finding.opposed for finding in found.findings),
        line=Line(slope=_known(slope.slope), low=_known(slope.low), high=_known(slope.high),
                  centre=_known(slope.centre), centre_agent=_known(slope.centre_agent)),
        repetitions=max((len(test.repetitions) for _, test in keyed), default=1),
        level=whole.pas.level,
        floor=None if floor is None else _span(floor.benchmark.pas),
        floor_ecs=None if floor is None else _span(floor.benchmark.ecs),
    )  # fmt: skip


def _span(found: Estimate) -> Span:
    return _known(found.value), found.low, found.high


Key = tuple[str, str, str, str]


def _posteriors(floor: StudyFloor) -> dict[Key, float]:
    return {(one.study, one.sub_study, one.finding, one.test): _known(one.pi) for one in floor.tests}


def _of_test(name: str, study: str, test: TestResult, floor: float) -> TestShown:
    rows = test.repetitions
    return TestShown(
        name=name,
        study=study,
        pi_human=_mean([one.human.pi for one in rows]),
        pi_agent=_mean([one.agent.pi for one in rows]),
        pas=_known(test.pas.value),
        pas_directional=_known(test.pas_directional),
        log_bf_human=_mean([one.human.log_bf for one in rows]),
        log_bf_agent=_mean([one.agent.log_bf for one in rows]),
        opposed=test.opposed,
        d_human=_known(test.d_human),
        d_human_se=_mean([one.human.d_se for one in rows]),
        d_agent=_known(test.d_agent),
        d_agent_se=_se_of_mean([one.agent.d_se for one in rows]),
        z_diff=_known(test.z_diff),
        pi_floor=floor,
    )


def _mean(values: list[float | None]) -> float:
    known = [one for one in values if one is not None]
    return fmean(known) if known else NAN


def _se_of_mean(errors: list[float | None]) -> float:
    """Of a mean over repetitions, each of which asked participants anew."""
    known = [one for one in errors if one is not None]
    return math.sqrt(math.fsum(one * one for one in known)) / len(known) if known else NAN


def _known(value: float | None) -> float:
    return NAN if value is None else value
