"""The additional results of a run over human studies: agreement with people, PAS and ECS. See
`model`.

Each repetition of a condition is one experiment: its participants' answers become `responses`,
`derive` makes `data` of them, the tests of the study are computed, and compared with people's. Pure
except for `derive`, which runs in a separate process, and a study's own `reducer` if it is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from karat import formats
from karat.analysis.ledger import Outcome
from karat.analysis.numbers import from_fields
from karat.analysis.parts import AnalysisInput
from karat.index import RunIndex
from karat.journal import KeptFile, RunFolder
from karat_studies.kinds.study.allowed import AllowCode, code_allowed
from karat_studies.kinds.study.analysis.floor import (
    ONE_ANSWER,
    Guesses,
    floor_of,
    floor_repetitions,
    guessers_of,
    mostly_one_an_arm,
    perfect_copy,
)
from karat_studies.kinds.study.analysis.model import (
    Participants,
    StudyCondition,
    StudyDifference,
    StudyInfo,
    StudySummary,
    StudyUsage,
)
from karat_studies.kinds.study.analysis.runs import (
    CONVENTION,
    REPLICATES,
    Answers,
    People,
    agreement_of,
    covered,
    guessed_by,
    measured,
    people_of,
    read_answers_of,
    reducer_of,
    seed_of,
)
from karat_studies.kinds.study.analysis.scores import changed, study_condition
from karat_studies.kinds.study.analysis.verdicts import narrow_studies, shown_pairs, warnings_of
from karat_studies.kinds.study.bootstrap import study_draws
from karat_studies.kinds.study.experiments import study_experiments
from karat_studies.kinds.study.kept import kept_studies
from karat_studies.replication import (
    join_draws,
    repeated_differences,
    repeated_uncertainty,
)

if TYPE_CHECKING:
    from karat_studies.kinds.study.format import StudyFile
    from karat_studies.replication import Agreement, Draws, StudyTest

Unit = tuple[int, int]
"""Condition and repetition, by number."""


def study(given: AnalysisInput) -> StudySummary | None:
    """None if the scorer `replication` is not shown.

    Raises BadRun for studies that have changed since the run.
    """
    run = given.run
    index = given.index
    level = given.level
    info = next(
        (
            scorer
            for scorer in given.scorers
            if scorer.type == "replication" and given.shows(scorer)
        ),
        None,
    )
    if info is None or not (copies := run.kept()):
        return None
    studies = kept_studies(run)
    answers = read_answers_of(index, [file.study for file in studies], (info.name, info.scoring))
    work = _Work(
        run,
        index,
        answers,
        given.ended,
        level=level,
        allow_code=code_allowed(given.asked),
    )
    parts = [
        work.part(number, file, copy)
        for number, (file, copy) in enumerate(zip(studies, copies, strict=True))
    ]
    conditions = [_Scored.of(work, parts, number) for number in range(len(index.conditions))]
    named = dict(zip(index.conditions, conditions, strict=True))
    summary = StudySummary(
        scorer=info.name,
        scoring=info.scoring,
        level=level,
        convention=CONVENTION,
        convention_other=conditions[0].agreements[0].other.convention,
        repetitions=index.repetitions,
        replicates=REPLICATES,
        drawn=_drawn(parts),
        studies=tuple(part.info for part in parts),
        conditions=tuple(condition.summarized(name) for name, condition in named.items()),
        differences=(),
        warnings=(),
    )

    drawn = {name: (condition.agreements, condition.draws) for name, condition in named.items()}
    random = [part.floor for part in parts]
    level = summary.level
    one_answer = [part.one_answer for part in parts]
    arbitrary = [part.mostly_one or part.one_answer for part in parts]
    copy = perfect_copy(random, level=level)
    floor_under = partial(
        floor_of,
        questions=answers.asked,
        level=level,
        designs=len(drawn),
        copy=copy,
    )
    floor = floor_under(random, drawn)
    second = floor_under(one_answer, drawn, wanted=ONE_ANSWER)
    if arbitrary != one_answer:
        mostly = floor_under(arbitrary, drawn, wanted=ONE_ANSWER)
        second = structs.replace(second, mostly=mostly)

    summary = structs.replace(summary, floor=floor, floor_one_answer=second)

    differences = tuple(_differences(conditions, list(named), without=narrow_studies(summary)))
    summary = structs.replace(summary, differences=differences)
    lost = sum(number < 0 for number in answers.study)
    return shown_pairs(
        structs.replace(summary, warnings=tuple(warnings_of(summary, lost=lost))), given.baseline
    )


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    """One study, in every condition and repetition."""

    file: StudyFile
    info: StudyInfo
    people: People
    tests: dict[Unit, Sequence[StudyTest]]  # without the agent's side if too few could be read
    draws: dict[Unit, Draws]
    floor: Guesses
    one_answer: Guesses  # the second floor
    # where that leaves no test with a score, as without a spread no t test has one
    mostly_one: Guesses | None
    seed: int  # for all draws


class _Work:
    """The common data of a summary's parts."""

    def __init__(
        self,
        run: RunFolder,
        index: RunIndex,
        answers: Answers,
        ended: Outcome,
        *,
        level: float,
        allow_code: AllowCode,
    ) -> None:
        self.run, self.index, self.answers, self.ended = run, index, answers, ended
        self.level = level
        self._allow_code = allow_code
        self._floors = floor_repetitions(answers.asked)
        self._one_answer = floor_repetitions(answers.asked, ONE_ANSWER)

    def part(self, number: int, file: StudyFile, copy: KeptFile) -> _Part:
        """Responses, tests and replicates of one study: only the numbers are kept."""
        seed = seed_of(copy, self.answers.samples_of(number, self.index.samples))
        guessers = guessers_of(seed, repetitions=self._floors, one_answer=self._one_answer)
        people = people_of(self.run, self.index, self.answers, study=file, number=number)
        arms = list(people.arms[0])
        code = reducer_of(file, inside=self.run.path, allowed=self._allow_code)
        units = list(people.responses)
        result = measured(
            file,
            list(people.responses.values()),
            arms=arms,
            reducer=code.reducer,
            refused=code.refused,
            floor=guessed_by(guessers, self.run, self.index, self.answers, number=number),
        )
        rng = np.random.default_rng(seed)
        drawn = study_draws(file, result.runs, rng=rng, replicates=REPLICATES, reducer=code.reducer)
        people.responses = {}
        one_answer = Guesses(study=file.study, tests=result.floor[self._floors :])
        if one_answer.scored:
            mostly_one = None
        else:
            guessers = mostly_one_an_arm(seed, repetitions=self._one_answer)
            guessed = guessed_by(guessers, self.run, self.index, self.answers, number=number)
            experiments = study_experiments(
                file,
                guessed,
                reducer=code.reducer,
                refused=code.refused,
                arms=arms,
            )
            tests = [covered(experiment.tests, file.min_coverage) for experiment in experiments]
            mostly_one = Guesses(study=file.study, tests=tests)

        return _Part(
            file=file,
            info=from_fields(
                StudyInfo,
                copy,
                file,
                sha256=copy.digest,
                arms=tuple(arms),
                arms_in_file=len(file.arms),
                reduced=code.reducer is not None,
                code_differs=code.differs,
            ),
            people=people,
            tests={
                unit: [test.test for test in of.tests]
                for unit, of in zip(units, result.agreements, strict=True)
            },
            draws={unit: resampled.draws for unit, resampled in zip(units, drawn, strict=True)},
            floor=Guesses(study=file.study, tests=result.floor[: self._floors]),
            one_answer=one_answer,
            mostly_one=mostly_one,
            seed=seed,
        )

    def failures(self, part: _Part, condition: int) -> tuple[dict[str, int], int]:
        """How often samples of the study ended without a score, by kind; and how many are
        pending.
        """
        index = self.index
        counts = dict[str, int]()
        not_run = 0
        kinds = {count.code: f"{kind.cls}: {kind.kind}" for kind, count in index.groups.items()}
        for row in part.people.samples:
            for repetition in range(index.repetitions):
                cell = (row * len(index.conditions) + condition) * index.repetitions + repetition
                if any(turn is not None for turn in self.answers.of(row, condition, repetition)):
                    continue
                code = self.ended.codes.get(cell)
                if code is None:
                    not_run += 1
                else:
                    counts[kinds[code]] = counts.get(kinds[code], 0) + 1

        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))), not_run


def _drawn(parts: Sequence[_Part]) -> str:
    """What was resampled."""
    tests = []
    for part in parts:
        for kinds in zip(*(draw.drawn for draw in part.draws.values()), strict=True):
            tests.append(set(kinds))

    who = []
    for name in ("participants", "groups"):
        if any(name in kind for kinds in tests for kind in kinds):
            who.append(name)

    # tests whose rows could not be traced to participants
    apart = sum("statistic" in kinds for kinds in tests)
    if not who:
        return "statistics"
    if apart:
        who.append(f"the statistics of {formats.plural(apart, 'test')}")
    if len(who) > 1:
        return ", ".join(who[:-1]) + " and " + who[-1]
    return who[0]


class _Scored(msgspec.Struct, frozen=True, kw_only=True):
    """One condition, with everything needed for a comparison."""

    work: _Work
    parts: Sequence[_Part]
    number: int
    agreements: Sequence[Agreement]
    draws: Sequence[Draws]

    @classmethod
    def of(cls, work: _Work, parts: Sequence[_Part], number: int) -> _Scored:
        units = [(number, repetition) for repetition in range(work.index.repetitions)]
        return cls(
            work=work,
            parts=parts,
            number=number,
            agreements=[
                agreement_of(*(part.tests[unit] for part in parts), level=work.level)
                for unit in units
            ],
            draws=[join_draws([part.draws[unit] for part in parts]) for unit in units],
        )

    def summarized(self, name: str) -> StudyCondition:
        """In the summary's form."""
        # The same seed for every condition: differences between them are not due to the draw.
        rng = np.random.default_rng([1 << 20, *(part.seed for part in self.parts)])
        sure = repeated_uncertainty(self.agreements, self.draws, rng=rng)
        declared = {}
        studies = {}
        for at, part in enumerate(self.parts):
            for finding in part.file.findings:
                declared[part.file.study, finding.sub_study, finding.id] = finding

            failures, not_run = self.work.failures(part, self.number)
            arms = tuple(
                count.arm_count(arm, part.file.arms[arm].n)
                for arm, count in part.people.arms[self.number].items()
            )
            studies[part.file.study] = {
                "participants": part.people.whole[self.number].participants,
                "arms": arms,
                "failures": failures,
                "not_run": not_run,
                "usage": from_fields(StudyUsage, self.work.answers.spent[self.number][at]),
            }

        people = [part.people.whole[self.number].participants for part in self.parts]
        together = {}
        for name_of_count in Participants.__struct_fields__:
            together[name_of_count] = sum(getattr(part, name_of_count) for part in people)

        return study_condition(
            name,
            self.agreements,
            sure,
            declared=declared,
            of_study=studies.__getitem__,
            floor=self.work.run.info.agent_type == "floor",
            participants=Participants(**together),
            unread=tuple(self.work.answers.unread[self.number]),
        )


def _differences(
    conditions: Sequence[_Scored], names: Sequence[str], *, without: Sequence[str]
) -> list[StudyDifference]:
    """Every pair of conditions.

    They have the same participants, drawn together. `without`: not in PAS.
    """
    differences = []
    for a, b in combinations(range(len(conditions)), 2):
        first = conditions[a]
        second = conditions[b]
        pas, ecs = repeated_differences(
            first.agreements,
            second.agreements,
            first_draws=first.draws,
            second_draws=second.draws,
            without=without,
        )
        level = first.work.level
        differences.append(
            StudyDifference(
                a=names[a],
                b=names[b],
                pas=changed(pas, level=level),
                ecs=changed(ecs, level=level),
                paired=True,
            )
        )

    return differences
