"""Answers → `responses` → `data` → the tests of a study, human side and agent side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from karat.errors import BadOption, QueryTooLong
from karat_query.sql import Selected, Table, select_each
from karat_studies.kinds.study.columns import (
    PAYOFF,
    arms_of,
    fields_needed,
    responses_types,
    shape_of_data,
)
from karat_studies.kinds.study.format import Finding, StudyFile, Test
from karat_studies.kinds.study.repeats import Columns
from karat_studies.kinds.study.rounds import payoffs_of
from karat_studies.kinds.study.sides import agent_side, human_side
from karat_studies.replication import Side, StudyTest

if TYPE_CHECKING:
    from karat_query.sql import Shape


Reducer = Callable[[Columns], Columns]


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    """One participant in one arm (in one round of a game): a row of `responses`."""

    participant: str
    arm: str
    profile: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)  # field → answer, if readable
    answered: bool = True  # False: asked, without an answer
    group: str | None = None  # games only
    round: int | None = None  # from 1; games only
    # asked fields: in games with roles those of the role; None: the arm's
    fields: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tallied:
    """The number of participants in an arm, and of usable answers."""

    asked: int
    answered: int
    parsed: int  # with every needed field


def to_study_tests(
    study: StudyFile,
    responses: Sequence[Response],
    *,
    data: Selected | None = None,
    reducer: Reducer | None = None,
) -> list[StudyTest]:
    """The tests with both sides, in the form for `karat_studies.replication.score_tests`.

    `responses`: a row for everyone who was asked, including those who did not answer: they are
    the base of coverage. `data`: the result of `derive`, if already known (resampled
    participants, say). `reducer`: the study's own function, which turns the columns of `data` into
    others; passing it allows foreign code to run. Raises BadOption if `derive`
    fails, or if the study needs its reducer and there is none.
    """
    shape = shape_of_data(study)
    if study.reducer is not None and reducer is None:
        why = (
            f"the study '{study.study}' runs its own code, {study.reducer}: look at it, then "
            f"allow it"
        )
        raise BadOption("--allow-code", why)

    columns: Columns = (data or data_of(study, responses)).columns
    if reducer is not None and study.reducer is not None:
        columns = reducer(columns)
    return [
        _both_sides(
            study,
            finding,
            test,
            agent_side(test, columns),
            responses,
            fields_needed(study, test, shape),
        )
        for finding, test in study.tests
    ]


def untested(study: StudyFile, responses: Sequence[Response], why: str) -> list[StudyTest]:
    """The tests without the agent's side, and the reason: its code cannot run."""
    agent = Side(missing=why)
    return [
        _both_sides(study, finding, test, agent, responses, test.needs or tuple(study.fields))
        for finding, test in study.tests
    ]


def _both_sides(
    study: StudyFile,
    finding: Finding,
    test: Test,
    agent: Side,
    responses: Sequence[Response],
    needed: Sequence[str],
) -> StudyTest:
    counts = tallied(study, responses, test, needed=needed)
    return StudyTest(
        study=study.study,
        finding=finding.id,
        sub_study=finding.sub_study,
        test=test.id,
        kind=test.statistic_kind,
        domain=study.domain,
        human=human_side(test, study.arms),
        agent=agent,
        coverage=min(
            (count.parsed / count.asked if count.asked else 0.0 for count in counts.values()),
            default=0.0,
        ),
    )


def data_of(study: StudyFile, responses: Sequence[Response]) -> Selected:
    """The table `data`: `derive` applied to `responses`. Raises BadOption."""
    return data_of_each(study, [responses])[0]


def data_of_each(study: StudyFile, experiments: Sequence[Sequence[Response]]) -> list[Selected]:
    """The table `data` of each of several experiments with the same study, made by one process.

    Raises BadOption.
    """
    tables = [table_of(study, responses) for responses in experiments]
    return select_each(study.derive, "responses", tables, place="derive")


def table_of(study: StudyFile, responses: Sequence[Response]) -> Table:
    """The table `responses`."""
    types = responses_types(study)
    rows = [response for response in responses if response.answered]
    columns: dict[str, list[object]] = {name: [None] * len(rows) for name in types}
    for at, row in enumerate(rows):  # a row has few of the columns: those of its arm
        own = {
            "participant": row.participant,
            "arm": row.arm,
            "group_id": row.group,
            "round": row.round,
        }
        for name, value in {**row.values, **row.profile, **own}.items():
            if name in columns:
                columns[name][at] = value

    if study.pays:
        # The payoff of each row's participant in the round, from the answers of the group; None:
        # not known, or none
        answers: dict[tuple[str, str | None, int | None], dict[str, object]] = {}
        for row in rows:
            answers.setdefault((row.arm, row.group, row.round), {}).update(row.values)
        earned = {}
        for (arm, group, number), values in answers.items():
            rounds = study.arms[arm].rounds
            if rounds is not None and rounds.payoffs and rounds.roles:
                fields = {name: role.fields for name, role in rounds.roles.items()}
                earned[arm, group, number] = payoffs_of(
                    rounds.payoffs, fields, dict.fromkeys(fields, values)
                )

        paid: list[object] = []
        for row in rows:
            # Roles have no field in common
            asked = set(row.fields if row.fields is not None else row.values)
            roles = study.arms[row.arm].roles.items()
            role = next((name for name, role in roles if asked & set(role.fields)), "")
            paid.append(earned.get((row.arm, row.group, row.round), {}).get(role))

        columns[PAYOFF] = paid

    return Table(types=types, columns=columns)


def tallied(
    study: StudyFile,
    responses: Iterable[Response],
    test: Test,
    *,
    needed: Sequence[str] | None = None,
) -> dict[str, Tallied]:
    """The numbers asked, answered and readable, in each arm of a test.

    An arm asks those of a test's fields that it has. In a game a participant counts once
    per round.
    """
    fields = fields_needed(study, test, shape_of_data(study)) if needed is None else needed
    tallies = {}
    rows: dict[str, list[Response]] = {name: [] for name in arms_of(study, test, fields)}
    for row in responses:
        # else another role's
        if row.arm in rows and (row.fields is None or set(row.fields) & set(fields)):
            rows[row.arm].append(row)

    for name, own in rows.items():
        asked = study.arms[name].answered
        wanted = [name for name in fields if name in asked and not asked[name].optional]
        parsed = sum(
            row.answered
            and all(
                row.values.get(name) is not None
                for name in wanted
                if row.fields is None or name in row.fields
            )
            for row in own
        )
        tallies[name] = Tallied(
            asked=len(own), answered=sum(row.answered for row in own), parsed=parsed
        )

    return tallies


def arms_of_finding(study: StudyFile, finding: Finding) -> list[str]:
    """The arms whose answers the tests of a finding use, in the order of the file."""
    shape = shape_of_data(study)
    named = {
        arm
        for test in finding.tests
        for arm in arms_of(study, test, fields_needed(study, test, shape))
    }
    return [name for name in study.arms if name in named]


NAN = float("nan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """The study once, with its participants."""

    tests: list[StudyTest]
    # the result of `derive`; None: participants cannot be resampled
    data: Columns | None


def study_experiments(
    study: StudyFile,
    experiments: Sequence[Sequence[Response]],
    *,
    reducer: Reducer | None = None,
    refused: str | None = None,
    arms: Collection[str] = (),
) -> list[Experiment]:
    """The tests of several experiments with one study, each with the rows of `data` that they were
    made from.

    Raises nothing if something cannot be computed: those tests have no agent's side and give the
    reason.
    `refused`: why the study's `reducer` does not run. `arms`: those that were run; empty: all.
    """
    try:
        shape = shape_of_data(study)
    except BadOption as error:
        return [
            _untested(study, experiment, f"derive {_message(error)}", arms)
            for experiment in experiments
        ]

    if study.reducer is not None and reducer is None:
        why = (
            refused
            or f"the study runs its own code, {study.reducer}: look at it, then say --allow-code"
        )
        return [_untested(study, experiment, why, arms) for experiment in experiments]

    tested = []
    for responses, data in zip(experiments, _selected(study, experiments), strict=True):
        if isinstance(data, str):
            tested.append(_untested(study, responses, data, arms))
            continue

        try:
            tests = to_study_tests(study, responses, data=data, reducer=reducer)
        except BadOption as error:
            tested.append(_untested(study, responses, str(error), arms))
            continue

        tested.append(Experiment(tests=_of_arms(study, tests, arms, shape), data=data.columns))

    return tested


def _selected(study: StudyFile, experiments: Sequence[Sequence[Response]]) -> list[Selected | str]:
    """The result of `derive` for each; if it fails for one of them, each separately, or why it
    fails.

    A query that does not end is not tried again.
    """
    try:
        return list(data_of_each(study, experiments))
    except BadOption as error:
        if len(experiments) == 1 or isinstance(error, QueryTooLong):
            return [f"derive {_message(error)}"] * len(experiments)

    return [selected for responses in experiments for selected in _selected(study, [responses])]


def _untested(
    study: StudyFile,
    responses: Sequence[Response],
    why: str,
    arms: Collection[str],
) -> Experiment:
    return Experiment(tests=_of_arms(study, untested(study, responses, why), arms, None), data=None)


def _of_arms(
    study: StudyFile,
    tests: Sequence[StudyTest],
    arms: Collection[str],
    shape: Shape | None,
) -> list[StudyTest]:
    """If an arm was not run, that is the reason for the missing score."""
    if not arms or set(study.arms) <= set(arms):
        return list(tests)
    results = []
    for (_, test), result in zip(study.tests, tests, strict=True):
        lacking = []
        for name in arms_of(study, test, fields_needed(study, test, shape)):
            if name not in arms:
                lacking.append(name)

        scored = result
        if lacking:
            not_run = Side(missing=f"arm '{lacking[0]}' was not run")
            scored = replace(result, agent=not_run, coverage=NAN)
        results.append(scored)

    return results


def _message(error: BadOption) -> str:
    return str(error).partition(": ")[2] or str(error)
