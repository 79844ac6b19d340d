"""Charts of how closely an agent matches people: evidence by test, effects, their differences, who
took part.

They show a condition of a run, or of a table of tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

import msgspec

from karat import blocks, formats
from karat.blocks import (
    Axis,
    Cell,
    Chart,
    Count,
    Curve,
    Line,
    Mark,
    Number,
    Plane,
    Point,
    Row,
    Rows,
    Share,
    Table,
    Text,
    apart,
    columns,
    slug,
)
from karat_studies.kinds.study.analysis.model import (
    PEOPLE,
    StudyCondition,
    StudyFloor,
    TestResult,
    plain,
)
from karat_studies.kinds.study.analysis.scores import summary_of_tests
from karat_studies.replication import Agreement, Uncertainty, z_of_level

_TOGETHER = 40  # tests, or arms, in one chart; with more arms a line is a study


class _Test(msgspec.Struct, frozen=True, kw_only=True):
    """One test under one condition. None: not known."""

    name: str  # finding and test, unique
    result: TestResult
    posteriors: tuple[float | None, ...]  # of people, of the agent, of random answers if shown

    @property
    def effects(self) -> tuple[float, float] | None:
        """Of people and of the agent, if both are known."""
        if self.result.d_human is None or self.result.d_agent is None:
            return None
        return self.result.d_human, self.result.d_agent

    @property
    def errors(self) -> tuple[float | None, float | None]:
        """Those of both effects; each repetition asked the agent's participants anew."""
        agent = []
        for row in self.result.repetitions:
            if row.agent.d_se is not None:
                agent.append(row.agent.d_se)

        error = None
        if agent:
            squares = [error * error for error in agent]
            error = math.sqrt(math.fsum(squares)) / len(agent)
        return _over(self.result, "human", "d_se"), error


def study_charts(
    agreement: Agreement,
    sure: Uncertainty,
    *,
    condition: str = "agent",
) -> tuple[Chart, ...]:
    """For a table of tests: posteriors of people and agent, effects against effects, a forest of
    differences.
    """
    summary = summary_of_tests({condition: (agreement, sure)})
    return condition_charts(summary.conditions[0])


def condition_charts(
    condition: StudyCondition,
    *,
    floor: StudyFloor | None = None,
) -> tuple[Chart, ...]:
    """The same for a condition of a run: means over repetitions.

    `floor`: random answers, for comparison.
    """
    random = {}
    if floor is not None:
        for row in floor.tests:
            random[row.study, row.sub_study, row.finding, row.test] = row.pi

    keyed = [(finding, test) for finding in condition.findings for test in finding.tests]
    names = apart(f"{finding.study}/{finding.name} {test.id}" for finding, test in keyed)
    tests = []
    for name, (finding, test) in zip(names, keyed, strict=True):
        posteriors = [_over(test, side, "pi") for side in ("human", "agent")]
        if floor is not None:
            key = (finding.study, finding.sub_study, finding.id, test.id)
            posteriors.append(random.get(key))
        tests.append(_Test(name=name, result=test, posteriors=tuple(posteriors)))

    scored = [test for test in tests if test.result.pas.value is not None]
    effects = [test for test in tests if test.effects is not None]
    charts = []
    for ending, some in _parts(scored):
        charts.append(_agreement(condition, floor, ending, some))
    if effects:
        charts.append(_profile(condition, floor, effects))
    for ending, some in _parts(effects):
        charts.append(_forest(condition, effects, ending, some))

    return tuple(charts)


def _over(test: TestResult, side: str, name: str) -> float | None:
    """The mean over the repetitions that have this number of people or of the agent."""
    values = [getattr(getattr(row, side), name) for row in test.repetitions]
    kept = [value for value in values if value is not None]
    if kept:
        return fmean(kept)
    return None


def _means(condition: StudyCondition) -> str:
    """The values drawn for several repetitions."""
    tests = [test for finding in condition.findings for test in finding.tests]
    repetitions = max((len(test.repetitions) for test in tests), default=1)
    if repetitions < 2:
        return ""
    return f" Means over {formats.plural(repetitions, 'repetition')}."


def _parts(tests: Sequence[_Test]) -> Iterator[tuple[str, Sequence[_Test]]]:
    """A few tests at a time, with the suffix of the chart's name."""
    for at in range(0, len(tests), _TOGETHER):
        if len(tests) <= _TOGETHER:
            ending = ""
        else:
            ending = f"-{at // _TOGETHER + 1}"

        yield ending, tests[at : at + _TOGETHER]


def _agreement(
    condition: StudyCondition,
    floor: StudyFloor | None,
    ending: str,
    tests: Sequence[_Test],
) -> Chart:
    sides = ("people", "agent", *(["floor"] if floor else []))
    lines, rows = [], []
    for test in tests:
        result = test.result
        note = "opposite directions" if result.opposed else ""
        marks = tuple(
            Mark(value=pi, series=series, label=f"π {sides[series]} {formats.number(pi, digits=3)}")
            for series, pi in enumerate(test.posteriors)
            if pi is not None
        )
        lines.append(Line(name=test.name, marks=marks, joined=True, note=note))
        shares = (*test.posteriors, result.pas.value, result.pas_directional)
        cells: list[Cell] = [Number(share, digits=3) for share in shares]
        for side in ("human", "agent"):
            evidence = _over(result, side, "evidence")
            cells.append(Number(evidence, digits=1))

        cells.append(Text(note))
        rows.append(Row(name=test.name, cells=tuple(cells)))

    against = ""
    opposed = sum(finding.opposed for finding in condition.findings)
    if opposed:
        against = f"; {formats.plural(opposed, 'finding')} in the opposite direction"
    random = ""
    if floor is not None:
        random = f"; random answers {plain(floor.benchmark.pas, digits=3)}"

    heads = (
        "finding and test",
        *(f"π {side}" for side in sides),
        "PAS",
        "directional PAS",
        "ln BF people",
        "ln BF agent",
        "note",
    )
    name = condition.condition
    scores = condition.benchmark
    axis = Axis(title="posterior probability of an effect, π", start=0.0, end=1.0)
    return Chart(
        name=slug("agreement", name) + ending,
        title=f"{name} is in the same state as people with a probability (PAS) of "
        f"{plain(scores.pas, digits=3)} over {formats.plural(scores.tests_used, 'test')} of "
        f"{formats.plural(scores.used, 'study', 'studies')}{random}{against}",
        description=f"One line per test: the probability of an effect given the evidence of "
        f"people and of the agent, joined by a line. Near together they are in the "
        f"same state; opposite directions are written beside the "
        f"line.{' The third mark is the floor: random answers.' if floor else ''}"
        f"{_means(condition)}",
        panels=(Rows(axis=axis, lines=tuple(lines)),),
        table=Table(
            caption=f"Posteriors: {name}",
            columns=columns(*heads, text=("note",)),
            rows=tuple(rows),
        ),
        legend=sides,
        detail=True,
    )


def _effect(value: float, se: float | None, z: float) -> blocks.Estimate:
    low = high = None
    if se is not None:
        low = value - z * se
        high = value + z * se

    return blocks.Estimate(value, low, high, signed=True)


def _profile(condition: StudyCondition, floor: StudyFloor | None, tests: Sequence[_Test]) -> Chart:
    name = condition.condition
    scores = condition.benchmark
    z = z_of_level(scores.pas.level)
    interval = f"{formats.level(scores.pas.level)} interval"
    sizes: list[float] = []
    for test in tests:
        sizes += map(abs, test.effects or ())

    reach = 1.1 * max(sizes) or 1.0
    points, rows = [], []
    for test in tests:
        assert test.effects is not None
        both = zip(test.effects, test.errors, strict=True)
        people, agent = (_effect(effect, error, z) for effect, error in both)
        rows.append(Row(name=test.name, cells=(people, agent)))
        label = f"{test.name}: people {blocks.plain(people)}, agent {blocks.plain(agent)}"
        points.append(
            Point(
                x=test.effects[0],
                y=test.effects[1],
                left=people.low,
                right=people.high,
                low=agent.low,
                high=agent.high,
                label=label,
            )
        )

    line = condition.caricature
    curves = []
    centre = line.centre
    centre_agent = line.centre_agent
    if line.slope is not None and centre is not None and centre_agent is not None:
        slopes = [slope for slope in (line.slope, line.low, line.high) if slope is not None]

        def fitted(x: float) -> Point:
            at = [centre_agent + slope * (x - centre) for slope in slopes]
            if len(at) < 3:
                return Point(x=x, y=at[0])
            low, high = sorted(at[1:])
            return Point(x=x, y=at[0], low=low, high=high)

        curves.append(
            Curve(
                points=tuple(fitted(-reach + step * reach / 20) for step in range(41)), form="fit"
            )
        )

    identity = Curve(points=(Point(x=-reach, y=-reach), Point(x=reach, y=reach)), form="reference")
    random = ""
    if floor is not None:
        random = f" (random answers {plain(floor.benchmark.ecs, digits=3)})"

    slope = formats.estimate(line.slope, line.low, line.high)
    heads = ("finding and test", f"d people [{interval}]", f"d agent [{interval}]")
    return Chart(
        name=slug("effects", name),
        title=f"{name}: ECS {plain(scores.ecs, digits=3)}{random} over "
        f"{formats.plural(scores.tests_with_effects, 'effect')}; slope of its effects "
        f"on those of people {slope}",
        description=f"One point per test: the agent's effect over that of people, with "
        f"{interval}s. On the dashed line of identity both are equal; the solid line "
        f"is the weighted least-squares line, its band the interval of its "
        f"slope.{_means(condition)}",
        panels=(
            Plane(
                x=Axis(title="effect of people, Cohen's d", start=-reach, end=reach),
                y=Axis(title="effect of the agent, Cohen's d", start=-reach, end=reach),
                curves=(*curves, identity, Curve(points=tuple(points))),
                height=400,
            ),
        ),
        table=Table(caption=f"Effects: {name}", columns=columns(*heads), rows=tuple(rows)),
        detail=True,
    )


def _forest(
    condition: StudyCondition,
    every: Sequence[_Test],
    ending: str,
    tests: Sequence[_Test],
) -> Chart:
    name = condition.condition
    level = condition.benchmark.pas.level
    z = z_of_level(level)
    interval = f"{formats.level(level)} interval"
    lines = []
    rows = []
    ends = [0.0]
    for test in tests:
        assert test.effects is not None
        people, agent = test.effects
        error = None
        if None not in test.errors:
            error = math.hypot(*(one or 0.0 for one in test.errors))
        more = _effect(agent - people, error, z)
        ends += [abs(end) for end in (more.value, more.low, more.high) if end is not None]
        lines.append(Line(name=test.name, marks=blocks.marks_of(more)))
        values = (people, agent, test.result.z_diff)
        numbers = (Number(value, signed=True) for value in values)
        rows.append(Row(name=test.name, cells=(more, *numbers)))

    reach = 1.05 * max(ends) or 1.0
    judged = [test.result.z_diff for test in every if test.result.z_diff is not None]
    differing = [gap for gap in judged if abs(gap) > z]
    above = sum(gap > 0 for gap in differing)
    heads = ("finding and test", f"agent − people, d [{interval}]", "d people", "d agent", "z")
    axis = Axis(title="agent − people, Cohen's d", start=-reach, end=reach, zero=0.0)
    caption = f"Effects less those of people: {name}"
    return Chart(
        name=slug("effect-differences", name) + ending,
        title=f"{name} differs from people in {formats.count(len(differing))} of "
        f"{formats.plural(len(judged), 'effect')} ({formats.level(level)} "
        f"interval without 0): {formats.count(above)} above, "
        f"{formats.count(len(differing) - above)} below",
        description=f"A forest plot: one line per test, the agent's effect less that of people "
        f"with its {interval}; the dashed line is no difference.{_means(condition)}",
        panels=(Rows(axis=axis, lines=tuple(lines)),),
        table=Table(caption=caption, columns=columns(*heads), rows=tuple(rows)),
        detail=True,
    )


def participants_chart(condition: StudyCondition) -> tuple[Chart, ...]:
    """How many participants were asked, answered and could be read, by arm; nothing if none was
    planned.
    """
    arms = [
        (f"{study.study} {arm.arm}", arm.participants)
        for study in condition.studies
        for arm in study.arms
    ]
    if len(arms) > _TOGETHER:
        arms = [(study.study, study.participants) for study in condition.studies]
    arms = [(name, people) for name, people in arms if people.planned]
    all_of_them = condition.participants
    if not arms or not all_of_them.planned:
        return ()
    lines, rows = [], []
    for name, (_, people) in zip(apart(name for name, _ in arms), arms, strict=True):
        counts = (people.asked, people.answered, people.parsed)
        lines.append(
            Line(
                name=name,
                marks=tuple(
                    Mark(
                        value=count / people.planned,
                        series=series,
                        label=f"{formats.count(count)} {PEOPLE[series]}",
                    )
                    for series, count in enumerate(counts)
                ),
            )
        )
        cells: tuple[Cell, ...] = (
            *map(Count, (people.planned, *counts)),
            Share(people.parsed / people.planned),
        )
        rows.append(Row(name=name, cells=cells))

    title = (
        f"{condition.condition}: of {formats.plural(all_of_them.planned, 'participant')} "
        f"{formats.count(all_of_them.asked)} were asked, {formats.count(all_of_them.answered)} "
        f"answered and {formats.count(all_of_them.parsed)} could be read "
        f"({formats.share(all_of_them.parsed / all_of_them.planned)})"
    )
    name, least = min(arms, key=lambda arm: arm[1].parsed / arm[1].planned)
    if least.parsed < least.planned:
        title += (
            f"; fewest in {name}, {formats.count(least.parsed)} of {formats.count(least.planned)}"
        )

    axis = Axis(title="share of the planned participants", start=0.0, end=1.0, percent=True)
    heads = ("study and arm", "planned", *PEOPLE, "parsed, of planned")
    chart = Chart(
        name=slug("participants", condition.condition),
        title=title,
        description="One line per arm: the shares of its participants who were asked, who "
        "answered everything they were asked, and of whom every needed answer could "
        "be read.",
        panels=(Rows(axis=axis, lines=tuple(lines)),),
        table=Table(
            caption=f"Participants: {condition.condition}",
            columns=columns(*heads),
            rows=tuple(rows),
        ),
        legend=PEOPLE,
        detail=True,
    )
    return (chart,)
