"""The numbers of a run over human studies, as frozen values: `Summary.study`.

The main numbers are PAS and ECS; fields that say "auxiliary" are not. Each repetition is one
replication of the experiment: every score is the mean over the repetitions that have it, and
`repetitions` holds each. None is "not known" and comes with a reason where it could
surprise; it is never 0, and never one half."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from karat import formats
from karat.analysis.numbers import Estimate, Quantity
from karat.analysis.parts import ConditionScore, Part
from karat.records import JsonObject


class Participants(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of participants, × repetitions. In a game each member of a group counts."""

    planned: int  # the base of coverage
    asked: int  # with at least one reply, in a session that was completed and scored
    answered: int  # a reply to every question
    parsed: int  # … and all required fields parsed
    stopped: int  # stopped early: too many replies could not be read

    @property
    def took_part(self) -> str:
        """`20 asked, 19 answered, 18 parsed`; empty if no participant was planned."""
        if not self.planned:
            return ""
        return ", ".join(f"{formats.count(getattr(self, word))} {word}" for word in PEOPLE)


PEOPLE = ("asked", "answered", "parsed")


def plain(estimate: Estimate, *, digits: int = 2) -> str:
    """`0.61 [0.52, 0.70]`."""
    return formats.estimate(estimate.value, estimate.low, estimate.high, digits=digits)


def signed(estimate: Estimate, *, digits: int = 2) -> str:
    """`+0.12 [+0.02, +0.22]`."""
    return formats.signed_estimate(estimate.value, estimate.low, estimate.high, digits=digits)


class ArmCount(msgspec.Struct, frozen=True, kw_only=True):
    """One arm of a study under one condition."""

    arm: str
    people: int | None  # number of people; None: not in the file
    participants: Participants
    unread: dict[
        str, dict[str, int]
    ]  # field → refused, missing, out_of_range, contradictory, invalid, stopped → answers
    answers: dict[str, int]  # field → answers that were read
    unvaried: bool = False  # several participants answered, and all gave the same answers

    @property
    def came(self) -> int:
        """Answers of replies, read or not."""
        return sum(self.answers.values()) + sum(self._unread(without=("stopped",)))

    @property
    def unreadable(self) -> int:
        """Those that say nothing that can be read; a refusal does."""
        return sum(self._unread(without=("stopped", "refused")))

    @property
    def share_read(self) -> float | None:
        """Of the answers that came; None if none did."""
        if self.came:
            return sum(self.answers.values()) / self.came
        return None

    def _unread(self, *, without: Collection[str]) -> Iterator[int]:
        for kinds in self.unread.values():
            for kind, count in kinds.items():
                if kind not in without:
                    yield count


class SideNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """One side's result of a test."""

    statistic: float | None  # t, F, r, U, z, k, or the ratio; None if the test is a table
    table: tuple[tuple[int, ...], ...] | None  # contingency: rows = groups
    n_eff: float | None
    log_bf: float | None  # ln BF10; None also if it is unbounded: then `pi` is 1
    pi: float | None  # posterior of an effect
    effect: float | None  # in the unit of the kind
    effect_se: float | None
    d: float | None
    d_se: float | None
    d_other: float | None  # by the other convention
    reasons: tuple[str, ...] = ()  # why numbers are None

    @property
    def evidence(self) -> float | None:
        """Ln BF10, ∞ if it is unbounded."""
        unbounded = self.log_bf is None and self.pi is not None and self.pi >= 1
        return math.inf if unbounded else self.log_bf


class TestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One test in one repetition: every column of `detailed_stats.csv`."""

    __test__ = False  # not a test class, despite the name

    repetition: int  # from 0
    method: str  # of the Bayes factor, the same on both sides
    human: SideNumbers
    agent: SideNumbers
    # interval: that of the signed statistic; `reason`: why there is no score, or no interval
    pas: Estimate
    ceiling: float | None  # PAS of a perfect copy
    pas_directional: float | None
    ceiling_directional: float | None
    normalized: float | None  # auxiliary
    ecs_test: float | None  # auxiliary
    z_diff: float | None
    same_direction: bool | None  # None: a side has no direction
    opposed: bool  # effects on both sides, in opposite directions: PAS alone would hide it
    decisive: bool  # evidence for an effect above 1,000 to 1 on both sides
    # lowest share, over the arms, of planned participants with all needed fields
    coverage: float | None


class TestResult(msgspec.Struct, frozen=True, kw_only=True):
    """One test under one condition: means over repetitions, and each of them."""

    __test__ = False  # not a test class, despite the name

    id: str
    kind: str
    expect: str  # of people: greater, less, positive, …
    reported: str | None  # as printed
    pas: Estimate  # one repetition: the interval of its statistic; several: none
    ceiling: float | None
    pas_directional: float | None
    d_human: float | None
    d_agent: float | None
    z_diff: float | None
    same_direction: bool | None  # None: a side has no direction, or the repetitions differ
    opposed: bool  # in any repetition
    decisive: bool  # opposed and decisive in the same repetition
    coverage: float | None  # the lowest
    reason: str | None  # why there is no score
    repetitions: tuple[TestRow, ...]


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """A level's scores in one repetition."""

    repetition: int  # from 0
    pas: float | None
    pas_se: float | None  # of this repetition only
    pas_directional: float | None
    ecs: float | None
    tests_used: int
    coverage: float | None  # the lowest of its findings


class FindingResult(msgspec.Struct, frozen=True, kw_only=True):
    """One finding under one condition, pooled over its tests."""

    study: str
    sub_study: str
    id: str
    claim: str
    pas: Estimate  # with its SE; no interval is claimed
    ceiling: float | None
    pas_directional: float | None
    normalized: float | None  # auxiliary
    ecs_strict: float | None  # auxiliary
    ecs_strict_chi2: float | None  # auxiliary, the valid form
    coverage: float | None  # the lowest of its tests and repetitions
    # coverage below 0.8 in some repetition: the number may reflect only those who answered
    flagged: bool
    opposed: bool
    tests_used: int  # with a PAS, in any repetition
    tests_planned: int
    tests_directed: int  # with a direction on both sides in every scored repetition
    tests_agreeing: int  # with the same one
    reason: str | None  # why there is no score
    repetitions: tuple[Repeated, ...]
    pas_sd: float | None  # between repetitions; None for fewer than two
    tests: tuple[TestResult, ...]

    @property
    def name(self) -> str:
        """`sub_study/id`, or just the id."""
        return "/".join(filter(None, (self.sub_study, self.id)))


class Concordance(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of an ECS, means over repetitions."""

    pearson: float | None  # precision: closeness to some line
    bias: float | None  # accuracy: closeness of that line to identity
    location_shift: float | None  # agent above people
    scale_shift: float | None  # above 1: the agent's effects spread more


class LevelScore(msgspec.Struct, frozen=True, kw_only=True):
    """A study, a domain, or the benchmark. `Estimate.n` counts tests."""

    level: str  # study, domain, benchmark
    name: str
    # interval: for domain and benchmark ± z bootstrap SE; a study, also alone in them, has its own
    pas: Estimate
    ceiling: float | None  # PAS of a perfect copy, over the scored tests
    pas_directional: float | None
    normalized: float | None  # auxiliary
    ecs: Estimate  # interval: for these studies, participants resampled
    # the ECS of a perfect copy, given both sides' errors; not for domains
    ecs_ceiling: float | None = None
    ecs_new: Estimate | None  # interval for new studies (jackknife); benchmark only
    concordance: Concordance
    ecs_strict: float | None  # auxiliary
    ecs_strict_chi2: float | None  # auxiliary, the valid form
    used: int  # findings of a study, studies of a domain and of the benchmark, with a score
    planned: int
    findings_used: int
    findings_planned: int
    tests_used: int
    tests_planned: int
    tests_with_effects: int  # on both sides: the base of ECS
    tests_directed: int
    tests_agreeing: int
    coverage: float | None  # the lowest of its findings
    reason: str | None  # why there is no PAS
    repetitions: tuple[Repeated, ...]
    pas_sd: float | None  # between repetitions; None for fewer than two
    ecs_sd: float | None


class StudyUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of the answers that count; failed attempts are in the condition's account.

    None: not reported.
    """

    calls: int = 0  # answered turns
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens_unknown: int = 0  # calls that did not report them
    dollars: float | None = None
    dollars_unknown: int = 0  # calls without a known price, not in `dollars`


class StudyResult(msgspec.Struct, frozen=True, kw_only=True):
    """One study under one condition."""

    study: str
    participants: Participants  # each person once, even in several arms
    arms: tuple[ArmCount, ...]
    # "class: kind" → samples (participants, in games groups) that ended without a score
    failures: dict[str, int]
    not_run: int  # samples not started, or not scored yet
    usage: StudyUsage
    score: LevelScore
    findings: tuple[FindingResult, ...]


class Caricature(msgspec.Struct, frozen=True, kw_only=True):
    """Auxiliary: the slope of agent on human effects; above 1 is exaggeration."""

    slope: float | None
    intercept: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None
    # of people's effects, and below of the agent's: the pivot of the line
    centre: float | None = None
    centre_agent: float | None = None


QUOTES = 3
"""Replies that could not be read and are quoted."""


class StudyCondition(msgspec.Struct, frozen=True, kw_only=True):
    """One condition: an agent design."""

    condition: str
    floor: bool  # its agent answers at random; `StudySummary.floor` exists for any agent
    participants: Participants
    benchmark: LevelScore
    domains: tuple[LevelScore, ...]
    studies: tuple[StudyResult, ...]  # in the order of the run
    noise_ceiling: Quantity  # the overall ECS of a perfect copy, given both sides' standard errors
    caricature: Caricature
    ecs_other: Quantity  # the overall ECS by the other convention
    unread: tuple[str, ...] = ()  # the beginnings of up to `QUOTES` replies that could not be read

    @property
    def findings(self) -> tuple[FindingResult, ...]:
        """The findings of every study."""
        return tuple(finding for study in self.studies for finding in study.findings)

    def study(self, name: str) -> StudyResult | None:
        """One study; None if there is none."""
        return next((study for study in self.studies if study.study == name), None)


class StudyDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Condition `b` minus condition `a`, over the tests scored under both."""

    a: str
    b: str
    pas: Estimate  # benchmark; n: tests
    ecs: Estimate  # overall
    paired: bool  # the same participants, drawn together


class FloorScore(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of random answers at one level: means over their repetitions.

    `Estimate.n` counts tests.
    """

    level: str  # study, domain, benchmark
    name: str
    pas: Estimate  # interval of that mean: t, from the spread between repetitions
    pas_sd: float | None  # between repetitions: the error of a single one; None for fewer than two
    pas_directional: float | None
    ecs: Estimate
    ecs_sd: float | None
    tests_used: int
    tests_planned: int
    pas_each: tuple[float | None, ...]  # repetition by repetition
    ecs_each: tuple[float | None, ...]


class FloorTest(msgspec.Struct, frozen=True, kw_only=True):
    """One test with random answers: means over their repetitions."""

    study: str
    sub_study: str
    finding: str
    test: str
    pas: float | None
    pas_directional: float | None
    pi: float | None  # posterior of an effect
    d: float | None
    reason: str | None  # why there is no score


class FloorDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A condition minus random answers, over the tests scored in both."""

    condition: str
    pas: Estimate  # benchmark; n: tests
    ecs: Estimate  # overall
    # the condition's PAS from each test's directional PAS, if it has one
    directed: float | None = None
    # … is above that of 95 in 100 experiments answered like this floor, adjusted for the designs
    beyond: bool = False


class StudyFloor(msgspec.Struct, frozen=True, kw_only=True):
    """The floor: random answers of the same participants to the same questions.

    A reference without calls.
    """

    repetitions: int
    repetitions_wanted: int  # more than `repetitions` if the run is too large for it
    questions: int  # answered in each repetition
    benchmark: FloorScore
    domains: tuple[FloorScore, ...]
    studies: tuple[FloorScore, ...]  # in the order of the run
    tests: tuple[FloorTest, ...]
    differences: tuple[FloorDifference, ...]  # in the order of the conditions
    without: dict[str, str]  # study → why it has no floor
    copy: FloorDifference | None = None  # the same for a perfect copy of people
    # of one answer an arm, if some study has no score: there four of five give it
    mostly: StudyFloor | None = None

    def of(self, condition: str) -> FloorDifference | None:
        """How far a condition is above it; None if there is no such condition."""
        return next(
            (difference for difference in self.differences if difference.condition == condition),
            None,
        )

    def study(self, name: str) -> FloorScore | None:
        """One study; None if there is none."""
        return next((score for score in self.studies if score.name == name), None)


class StudyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A study as run."""

    study: str
    title: str
    source: str
    domain: str
    license: str | None
    caveat: str | None
    sha256: str  # of study.yaml, materials and persons
    wording: str | None  # of the materials; None: unchanged
    reorder: bool  # options were shown in reverse order
    relabel: bool = False  # other names and amounts were shown
    arms: tuple[str, ...]  # that were run
    arms_in_file: int
    design: str  # between, within
    min_coverage: float  # below this a finding has no score
    reducer: str | None  # its own code
    reduced: bool  # … which was allowed to run
    code_differs: str | None = None  # how that code differs from the time of the run


class StudySummary(Part, frozen=True, kw_only=True):
    """The part of `Summary` for a run over human studies."""

    scorer: str
    scoring: str  # digest
    level: float  # of the intervals
    convention: str  # of Cohen's d
    convention_other: str
    repetitions: int
    replicates: int  # of the bootstrap
    drawn: str  # what was resampled: participants, or statistics
    studies: tuple[StudyInfo, ...]  # in the order of the run
    conditions: tuple[StudyCondition, ...]  # in the order of the file
    differences: tuple[StudyDifference, ...]
    baseline: str | None = None  # that all others are compared with; None: every pair
    left_out: int = 0  # number of comparisons not shown
    floor: StudyFloor | None = None  # None: for a table of tests, without known participants
    # the second floor: one random answer per arm, given by everyone in it
    floor_one_answer: StudyFloor | None = None
    warnings: tuple[str, ...]  # also in `Summary.warnings`

    @property
    def scored_floor(self) -> StudyFloor | None:
        """The floor, if it has a score."""
        return None if self.floor is None or self.floor.benchmark.pas.value is None else self.floor

    def condition_scores(self) -> Iterator[ConditionScore]:
        for entry in self.conditions:
            level = entry.benchmark
            details = {
                "tests": f"{level.tests_used} of {level.tests_planned}",
                "findings": f"{level.findings_used} of {level.findings_planned}",
                "participants": (
                    f"{entry.participants.parsed} read, of {entry.participants.planned}"
                ),
                **({} if level.ceiling is None else {"pas_of_a_perfect_copy": str(level.ceiling)}),
            }
            for name, meaning, estimate, low in (
                (
                    "pas",
                    "PAS: how far the agents' tests say what people's tests say",
                    level.pas,
                    0.0,
                ),
                ("ecs", "ECS: concordance of the agents' effects with people's", level.ecs, -1.0),
            ):
                yield ConditionScore(
                    condition=entry.condition,
                    key=f"{self.scorer}.{name}",
                    meaning=meaning,
                    estimate=estimate,
                    low=low,
                    high=1.0,
                    unit="tests",
                    scorer=self.scorer,
                    scoring=self.scoring,
                    kind="number",
                    details=details,
                )

    @property
    def leads(self) -> bool:
        return True

    def show(self, tree: JsonObject) -> None:
        floor = tree["floor"] or {}
        levels = [
            *filter(None, [floor.get("benchmark")]),
            *floor.get("domains", ()),
            *floor.get("studies", ()),
        ]
        for condition in tree["conditions"]:
            levels += [
                condition["benchmark"],
                *condition["domains"],
                *(item["score"] for item in condition["studies"]),
            ]

        differences = [*tree["differences"], *floor.get("differences", ())]
        for rows, write in (
            (levels, formats.estimate),
            (differences, formats.signed_estimate),
        ):
            for row in rows:
                row["shown"] = {
                    key: write(row[key]["value"], row[key]["low"], row[key]["high"], digits=3)
                    for key in ("pas", "ecs")
                }

    def tables(self) -> dict[str, tuple[tuple[str, ...], Iterable[Mapping[str, object]]]]:
        return {"tests": (TEST_COLUMNS, test_rows(self))}

    def headline(self) -> str:
        from karat_studies.kinds.study.analysis.verdicts import study_headline

        return study_headline(self)

    def warning_lines(self) -> tuple[str, ...]:
        return self.warnings

    def notices(self) -> list[str]:
        from karat_studies.kinds.study.analysis.readability import reading_notices

        return reading_notices(self)

    def of(self, condition: str) -> StudyCondition | None:
        """One condition; None if there is none."""
        return next((result for result in self.conditions if result.condition == condition), None)

    def info(self, study: str) -> StudyInfo | None:
        """One study; None if there is none."""
        return next((info for info in self.studies if info.study == study), None)


_SIDE = ("statistic", "table", "n_eff", "log_bf", "pi", "effect", "effect_se", "d", "d_se")
TEST_COLUMNS = (
    "condition",
    "floor",
    "study",
    "domain",
    "sub_study",
    "finding",
    "test",
    "kind",
    "expect",
    "reported",
    *(f"human_{name}" for name in _SIDE),
    *(f"agent_{name}" for name in _SIDE),
    "pas",
    "pas_low",
    "pas_high",
    "pas_ceiling",
    "pas_directional",
    "z_diff",
    "same_direction",
    "opposed",
    "decisive",
    "coverage",
    "flagged",
    "repetitions",
    "reason",
    "finding_pas",
    "finding_pas_se",
    "study_pas",
    "study_ecs",
    "planned",
    "asked",
    "answered",
    "parsed",
    "floor_pas",
    "floor_d",
    "study_floor_pas",
    "study_floor_ecs",
    "study_pas_low",
    "study_pas_high",
    "study_ecs_low",
    "study_ecs_high",
)


def test_rows(part: StudySummary) -> Iterator[dict[str, object]]:
    """By the names of `TEST_COLUMNS`.

    With several repetitions scores and effects are means, and a side that differs between them is
    left out.
    """
    floors = {}
    for floor in () if part.floor is None else part.floor.tests:
        floors[(floor.study, floor.sub_study, floor.finding, floor.test)] = floor
    for condition in part.conditions:
        for study in condition.studies:
            info = part.info(study.study)
            of_study = None
            if part.floor is not None:
                of_study = part.floor.study(study.study)

            for finding in study.findings:
                for test in finding.tests:
                    random = floors.get((study.study, finding.sub_study, finding.id, test.id))
                    yield {
                        "condition": condition.condition,
                        "floor": condition.floor,
                        "domain": info.domain if info is not None else None,
                        "study": study.study,
                        "study_pas": study.score.pas.value,
                        "study_pas_low": study.score.pas.low,
                        "study_pas_high": study.score.pas.high,
                        "study_ecs": study.score.ecs.value,
                        "study_ecs_low": study.score.ecs.low,
                        "study_ecs_high": study.score.ecs.high,
                        **picked(study.participants, "planned", *PEOPLE),
                        "sub_study": finding.sub_study,
                        "finding": finding.id,
                        "finding_pas": finding.pas.value,
                        "finding_pas_se": finding.pas.se,
                        "flagged": finding.flagged,
                        **_of_test(test),
                        "floor_pas": None if random is None else random.pas,
                        "floor_d": None if random is None else random.d,
                        "study_floor_pas": None if of_study is None else of_study.pas.value,
                        "study_floor_ecs": None if of_study is None else of_study.ecs.value,
                    }


def picked(source: object, *names: str) -> dict[str, object]:
    """These fields, by name."""
    return {name: getattr(source, name) for name in names}


def _of_test(test: TestResult) -> dict[str, object]:
    sides: dict[str, object] = {}
    for which in ("human", "agent"):
        alike = {getattr(repetition, which) for repetition in test.repetitions}
        if len(alike) == 1:
            side = alike.pop()
            columns: dict[str, object] = {f"{which}_{name}": getattr(side, name) for name in _SIDE}
            if side.table is not None:
                columns[f"{which}_table"] = ";".join(",".join(map(str, row)) for row in side.table)
            sides |= columns

    return {
        **sides,
        "test": test.id,
        "human_d": test.d_human,
        "agent_d": test.d_agent,
        "pas": test.pas.value,
        "pas_low": test.pas.low,
        "pas_high": test.pas.high,
        "pas_ceiling": test.ceiling,
        "repetitions": len(test.repetitions),
        **picked(
            test,
            "kind",
            "expect",
            "reported",
            "pas_directional",
            "z_diff",
            "same_direction",
            "opposed",
        ),
        **picked(test, "decisive", "coverage", "reason"),
    }
