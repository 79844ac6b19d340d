"""Charts of how closely an agent matches people: evidence by test, effects, their differences, who
took part.

They show a condition of a run, or a table of tests; both have one form, `Drawn`.
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
    Caricature,
    FloorScore,
    LevelScore,
    StudyCondition,
    StudyFloor,
    plain,
)
from karat_studies.kinds.study.analysis.scores import summary_of_tests
from karat_studies.replication import Agreement, Uncertainty, z_of_level

_NAN = float("nan")
_TOGETHER = 40  # tests, or arms, in one chart; with more arms a line is a study


class _Test(msgspec.Struct, frozen=True, kw_only=True):
    """One test. NaN: not known."""

    name: str  # finding and test, unique
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
    pi_floor: float = _NAN  # of random answers

    @property
    def has_effects(self) -> bool:
        """On both sides."""
        return math.isfinite(self.d_human) and math.isfinite(self.d_agent)


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """One condition: its main numbers, and every test."""

    name: str
    tests: tuple[_Test, ...]
    scores: LevelScore
    opposed: int  # findings
    line: Caricature
    repetitions: int
    floor: FloorScore | None  # of random answers, if they are shown

    @property
    def means(self) -> str:
        """The values drawn for several repetitions."""
        if self.repetitions < 2:
            return ""
        return f" Means over {formats.plural(self.repetitions, 'repetition')}."


def study_charts(
    agreement: Agreement, sure: Uncertainty, *, condition: str = "agent"
) -> tuple[Chart, ...]:
    """For a table of tests: posteriors of people and agent, effects against effects, a forest of
    differences.
    """
    return condition_charts(summary_of_tests({condition: (agreement, sure)}).conditions[0])


def condition_charts(
    condition: StudyCondition, *, floor: StudyFloor | None = None
) -> tuple[Chart, ...]:
    """The same for a condition of a run: means over repetitions.

    `floor`: random answers, for comparison.
    """
    if floor:
        posteriors = {
            (row.study, row.sub_study, row.finding, row.test): row.pi for row in floor.tests
        }
    else:
        posteriors = {}

    keyed = []
    for finding in condition.findings:
        for test in finding.tests:
            keyed.append(((finding.study, finding.sub_study, finding.id, test.id), test))

    names = apart(f"{'/'.join(filter(None, key[:3]))} {key[3]}" for key, _ in keyed)
    tests = []
    for name, (key, test) in zip(names, keyed, strict=True):
        rows = test.repetitions
        # Of a mean over repetitions, each of which asked participants anew.
        errors = [row.agent.d_se for row in rows if row.agent.d_se is not None]
        if errors:
            error = math.sqrt(math.fsum(one * one for one in errors)) / len(errors)
        else:
            error = _NAN
        tests.append(
            _Test(
                name=name,
                study=key[0],
                pi_human=_mean([row.human.pi for row in rows]),
                pi_agent=_mean([row.agent.pi for row in rows]),
                pas=_known(test.pas.value),
                pas_directional=_known(test.pas_directional),
                log_bf_human=_mean([row.human.evidence for row in rows]),
                log_bf_agent=_mean([row.agent.evidence for row in rows]),
                opposed=test.opposed,
                d_human=_known(test.d_human),
                d_human_se=_mean([row.human.d_se for row in rows]),
                d_agent=_known(test.d_agent),
                d_agent_se=error,
                z_diff=_known(test.z_diff),
                pi_floor=_known(posteriors.get(key)),
            )
        )

    drawn = Drawn(
        name=condition.condition,
        tests=tuple(tests),
        scores=condition.benchmark,
        opposed=sum(finding.opposed for finding in condition.findings),
        line=condition.caricature,
        repetitions=max((len(test.repetitions) for _, test in keyed), default=1),
        floor=None if floor is None else floor.benchmark,
    )
    scored = [test for test in drawn.tests if not math.isnan(test.pas)]
    effects = [test for test in drawn.tests if test.has_effects]
    return (
        *(_agreement(drawn, ending, tests) for ending, tests in _parts(scored)),
        *([_profile(drawn, effects)] if effects else []),
        *(_forest(drawn, ending, tests) for ending, tests in _parts(effects)),
    )


def _mean(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    if known:
        return fmean(known)
    return _NAN


def _known(value: float | None) -> float:
    return _NAN if value is None else value


def _parts(tests: Sequence[_Test]) -> Iterator[tuple[str, Sequence[_Test]]]:
    """A few tests at a time, with the suffix of the chart's name."""
    for at in range(0, len(tests), _TOGETHER):
        if len(tests) <= _TOGETHER:
            ending = ""
        else:
            ending = f"-{at // _TOGETHER + 1}"

        yield ending, tests[at : at + _TOGETHER]


def _agreement(drawn: Drawn, ending: str, tests: Sequence[_Test]) -> Chart:
    floor = drawn.floor is not None
    sides = ("people", "agent", *(["floor"] if floor else []))
    lines, rows = [], []
    for test in tests:
        posteriors = (test.pi_human, test.pi_agent, *([test.pi_floor] if floor else []))
        note = "opposite directions" if test.opposed else ""
        marks = tuple(
            Mark(value=pi, series=series, label=f"π {sides[series]} {formats.number(pi, digits=3)}")
            for series, pi in enumerate(posteriors)
            if not math.isnan(pi)
        )
        lines.append(Line(name=test.name, marks=marks, joined=True, note=note))
        evidence = (
            Number(test.log_bf_human, digits=1),
            Number(test.log_bf_agent, digits=1),
            Text(note),
        )
        shares = (
            Number(value, digits=3) for value in (*posteriors, test.pas, test.pas_directional)
        )
        rows.append(Row(name=test.name, cells=(*shares, *evidence)))

    if drawn.opposed:
        against = f"; {formats.plural(drawn.opposed, 'finding')} in the opposite direction"
    else:
        against = ""

    if drawn.floor is None:
        random = ""
    else:
        random = f"; random answers {plain(drawn.floor.pas, digits=3)}"

    heads = (
        "finding and test",
        *(f"π {side}" for side in sides),
        "PAS",
        "directional PAS",
        "ln BF people",
        "ln BF agent",
        "note",
    )
    caption = f"Posteriors: {drawn.name}"
    axis = Axis(title="posterior probability of an effect, π", start=0.0, end=1.0)
    return Chart(
        name=slug("agreement", drawn.name) + ending,
        title=f"{drawn.name} is in the same state as people with a probability (PAS) of "
        f"{plain(drawn.scores.pas, digits=3)} over "
        f"{formats.plural(drawn.scores.tests_used, 'test')} of "
        f"{formats.plural(drawn.scores.used, 'study', 'studies')}{random}{against}",
        description=f"One line per test: the probability of an effect given the evidence of "
        f"people and of the agent, joined by a line. Near together they are in the "
        f"same state; opposite directions are written beside the "
        f"line.{' The third mark is the floor: random answers.' if floor else ''}{drawn.means}",
        panels=(Rows(axis=axis, lines=tuple(lines)),),
        table=Table(caption=caption, columns=columns(*heads, text=("note",)), rows=tuple(rows)),
        legend=sides,
        detail=True,
    )


def _effect(value: float, se: float, z: float) -> blocks.Estimate:
    if math.isfinite(se):
        low = value - z * se
        high = value + z * se
    else:
        low, high = (None, None)

    return blocks.Estimate(value, low, high, signed=True)


def _profile(drawn: Drawn, tests: Sequence[_Test]) -> Chart:
    z = z_of_level(drawn.scores.pas.level)
    interval = f"{formats.level(drawn.scores.pas.level)} interval"
    reach = 1.1 * max(max(abs(test.d_human), abs(test.d_agent)) for test in tests) or 1.0
    points, rows = [], []
    for test in tests:
        people = _effect(test.d_human, test.d_human_se, z)
        agent = _effect(test.d_agent, test.d_agent_se, z)
        rows.append(Row(name=test.name, cells=(people, agent)))
        label = f"{test.name}: people {blocks.plain(people)}, agent {blocks.plain(agent)}"
        points.append(
            Point(
                x=test.d_human,
                y=test.d_agent,
                left=people.low,
                right=people.high,
                low=agent.low,
                high=agent.high,
                label=label,
            )
        )

    line = drawn.line
    curves = []
    centre = line.centre
    centre_agent = line.centre_agent
    if line.slope is not None and centre is not None and centre_agent is not None:
        slopes = [slope for slope in (line.slope, line.low, line.high) if slope is not None]

        def fitted(x: float) -> Point:
            at = [centre_agent + slope * (x - centre) for slope in slopes]
            ends = sorted(at[1:]) if len(at) == 3 else [None, None]
            return Point(x=x, y=at[0], low=ends[0], high=ends[1])

        curves.append(
            Curve(
                points=tuple(fitted(-reach + step * reach / 20) for step in range(41)), form="fit"
            )
        )

    identity = Curve(points=(Point(x=-reach, y=-reach), Point(x=reach, y=reach)), form="reference")
    if drawn.floor is None:
        random = ""
    else:
        random = f" (random answers {plain(drawn.floor.ecs, digits=3)})"

    slope = formats.estimate(line.slope, line.low, line.high)
    heads = ("finding and test", f"d people [{interval}]", f"d agent [{interval}]")
    return Chart(
        name=slug("effects", drawn.name),
        title=f"{drawn.name}: ECS {plain(drawn.scores.ecs, digits=3)}{random} over "
        f"{formats.plural(drawn.scores.tests_with_effects, 'effect')}; slope of its effects "
        f"on those of people {slope}",
        description=f"One point per test: the agent's effect over that of people, with "
        f"{interval}s. On the dashed line of identity both are equal; the solid line "
        f"is the weighted least-squares line, its band the interval of its "
        f"slope.{drawn.means}",
        panels=(
            Plane(
                x=Axis(title="effect of people, Cohen's d", start=-reach, end=reach),
                y=Axis(title="effect of the agent, Cohen's d", start=-reach, end=reach),
                curves=(*curves, identity, Curve(points=tuple(points))),
                height=400,
            ),
        ),
        table=Table(caption=f"Effects: {drawn.name}", columns=columns(*heads), rows=tuple(rows)),
        detail=True,
    )


def _forest(drawn: Drawn, ending: str, tests: Sequence[_Test]) -> Chart:
    z = z_of_level(drawn.scores.pas.level)
    interval = f"{formats.level(drawn.scores.pas.level)} interval"
    lines = []
    rows = []
    ends = [0.0]
    for test in tests:
        more = _effect(test.d_agent - test.d_human, math.hypot(test.d_human_se, test.d_agent_se), z)
        ends += [abs(end) for end in (more.value, more.low, more.high) if end is not None]
        lines.append(Line(name=test.name, marks=blocks.marks_of(more)))
        numbers = (
            Number(value, signed=True) for value in (test.d_human, test.d_agent, test.z_diff)
        )
        rows.append(Row(name=test.name, cells=(more, *numbers)))

    reach = 1.05 * max(ends) or 1.0
    judged = [test for test in drawn.tests if test.has_effects and math.isfinite(test.z_diff)]
    differing = [test for test in judged if abs(test.z_diff) > z]
    above = sum(test.z_diff > 0 for test in differing)
    heads = ("finding and test", f"agent − people, d [{interval}]", "d people", "d agent", "z")
    axis = Axis(title="agent − people, Cohen's d", start=-reach, end=reach, zero=0.0)
    caption = f"Effects less those of people: {drawn.name}"
    return Chart(
        name=slug("effect-differences", drawn.name) + ending,
        title=f"{drawn.name} differs from people in {formats.count(len(differing))} of "
        f"{formats.plural(len(judged), 'effect')} ({formats.level(drawn.scores.pas.level)} "
        f"interval without 0): {formats.count(above)} above, "
        f"{formats.count(len(differing) - above)} below",
        description=f"A forest plot: one line per test, the agent's effect less that of people "
        f"with its {interval}; the dashed line is no difference.{drawn.means}",
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
