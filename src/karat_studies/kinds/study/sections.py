"""The sections of a report about a run over human studies: how well the agent reproduces what
people did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from karat import blocks, formats
from karat.analysis.model import Summary
from karat.analysis.numbers import Estimate
from karat.blocks import (
    Block,
    Cell,
    Column,
    Count,
    Fold,
    Group,
    KindBlocks,
    Money,
    Note,
    Number,
    Row,
    Scale,
    Section,
    Share,
    Table,
    Text,
    columns,
)
from karat_studies.kinds.study.analysis.model import (
    PEOPLE,
    FindingResult,
    Participants,
    SideNumbers,
    StudyCondition,
    StudyFloor,
    StudySummary,
    TestResult,
)
from karat_studies.kinds.study.analysis.verdicts import (
    ECS_CEILING,
    NARROW_STUDY,
    PAS_CEILING,
    narrow_studies,
    pairs_sentence,
    studies_counted,
)
from karat_studies.kinds.study.charts import condition_charts, participants_chart

_DIGITS = 3
FLAGGED = 0.8  # of coverage
# tests in opposite directions, findings without a score, fields that could not be read
_LISTED = 30
_FLOOR = "random answers (floor)"
_ONE_ANSWER = "one answer an arm (floor)"
DIRECTION = (
    "Direction: of the agent's effect against that of people; opposite (opposed): with an effect "
    "on both sides, other: without."
)
_SYMBOLS = {
    "ttest_ind": "t",
    "welch": "t",
    "ttest_paired": "t",
    "ttest_one": "t",
    "anova": "F",
    "interaction": "F",
    "correlation": "r",
    "spearman": "rₛ",
    "mannwhitney": "U",
    "wilcoxon": "z",
    "variance_ratio": "ratio",
}


def statistic_of(kind: str, side: SideNumbers) -> str:
    """A signed statistic, or the counts of a table: `t 2.66`, `75 of 92`, `121/155 vs 43/152`."""
    if side.table is not None:
        if all(len(row) == 2 for row in side.table):
            return " vs ".join(
                f"{formats.count(row[0])}/{formats.count(sum(row))}" for row in side.table
            )

        return "; ".join(",".join(map(formats.count, row)) for row in side.table)

    if side.statistic is None:
        return formats.UNKNOWN
    if kind in {"binomial", "proportion"}:
        k, n = (formats.number(value, digits=0) for value in (side.statistic, side.n_eff))
        return f"{k} of {n}"

    digits = 0 if kind == "mannwhitney" else 2
    return f"{_SYMBOLS.get(kind, kind)} {formats.number(side.statistic, digits=digits)}"


def named(condition: StudyCondition) -> str:
    """Its name, marked if its agent answers at random."""
    if condition.floor:
        return f"{condition.condition} (floor)"
    return condition.condition


def number_cell(value: float | None) -> Number:
    """With the digits of PAS and ECS."""
    return Number(value, digits=_DIGITS)


def pas_cell(estimate: Estimate, color: int) -> blocks.Estimate:
    """On its scale, with its interval."""
    return _estimate(estimate, Scale(0.0, 1.0), color)


def ecs_cell(estimate: Estimate, color: int) -> blocks.Estimate:
    """On its scale, with its interval."""
    return _estimate(estimate, Scale(-1.0, 1.0, 0.0), color)


def _estimate(estimate: Estimate, scale: Scale, color: int) -> blocks.Estimate:
    return blocks.Estimate(
        estimate.value,
        estimate.low,
        estimate.high,
        digits=_DIGITS,
        scale=scale,
        color=color,
    )


def _people_columns(part: StudySummary, rank: int) -> tuple[Column, ...]:
    """Who took part; none for a table of tests, of which that is not known."""
    if not any(condition.participants.planned for condition in part.conditions):
        return ()
    return tuple(Column(head, rank=rank) for head in PEOPLE)


def _people(part: StudySummary, participants: Participants) -> tuple[Cell, ...]:
    """Asked, answered, parsed; marked if participants were lost on the way."""
    if not _people_columns(part, 0):
        return ()
    counts = (participants.asked, participants.answered, participants.parsed)
    before = (participants.planned, participants.asked, participants.answered)
    return tuple(
        Count(count, tone="bad" if count < more else "")
        for count, more in zip(counts, before, strict=True)
    )


def coverage_cell(coverage: float | None) -> Share:
    """Marked where few answers could be read."""
    few = coverage is not None and coverage < FLAGGED
    return Share(coverage, tone="bad" if few else "")


def sections(summary: Summary) -> KindBlocks:
    """Everything that human studies add to a report."""
    part = summary.part(StudySummary)
    settings = summary.provenance.settings
    asked_with = [
        *([f"wording {settings['dataset.wording']}"] if settings.get("dataset.wording") else []),
        *(["other names and amounts"] if settings.get("dataset.relabel") else []),
        *(["options in reverse order"] if settings.get("dataset.reorder") else []),
    ]
    if part is None:
        return KindBlocks(asked_with=tuple(asked_with))
    asked = ""
    if part.conditions:
        people = part.conditions[0].participants.planned // max(1, summary.repetitions)
        studies = formats.plural(len(part.studies), "study", "studies")
        asked = f"{formats.plural(people, 'participant')} of {studies}"

    # Effects beside those of people, by study and finding, and who took part.
    parts: list[Block] = [*_by_domain(part), by_study(part)]
    for at, condition in enumerate(part.conditions):
        figures = (
            *condition_charts(condition, floor=part.scored_floor),
            *participants_chart(condition),
        )
        if at and figures:
            parts.append(
                Fold(f"{condition.condition}: {formats.plural(len(figures), 'chart')}", figures)
            )
        else:
            parts += figures

        parts += _findings(condition, part, folded=bool(at))

    parts += _auxiliary(part)
    beside_people = Section(
        id="study", title="Beside what people did", blocks=tuple(map(blocks.explained, parts))
    )
    return KindBlocks(
        asked=asked,
        asked_with=tuple(asked_with),
        scorers=(part.scorer,),
        results=tuple(map(blocks.explained, _agreement(part))),
        differences=tuple(map(blocks.explained, _differences(part))),
        variation=tuple(map(blocks.explained, _repetitions(part))),
        sections=(beside_people,),
        failing=tuple(map(blocks.explained, _lost(part))),
        cost=tuple(map(blocks.explained, _used(part))),
        origin=tuple(_sources(part)),
    )


def blocks_of_tests(part: StudySummary) -> Iterator[Block]:
    """The same for a table of tests, in one repetition and without participants."""
    yield from _agreement(part)
    yield from _by_domain(part)
    yield by_study(part)
    for condition in part.conditions:
        for chart in condition_charts(condition):
            yield chart.table
        yield from _findings(condition, part, folded=False)

    yield from _lost(part)
    yield from _auxiliary(part)


def _heading(condition: StudyCondition) -> Group:
    return Group(named(condition), condition.participants.took_part)


def _agreement(part: StudySummary) -> Iterator[Block]:
    """PAS and ECS of each condition (the main numbers), and who took part."""
    rows = []
    for at, condition in enumerate(part.conditions):
        scores = condition.benchmark
        cells = (
            pas_cell(scores.pas, at),
            number_cell(scores.ceiling),
            ecs_cell(scores.ecs, at),
            number_cell(scores.ecs_ceiling),
            Count(scores.tests_used, of=scores.tests_planned),
            *_people(part, condition.participants),
        )
        rows.append(Row(name=named(condition), color=at, cells=cells))

    # Scores of simulated answers without knowledge, as a reference
    nothing = Text(formats.UNKNOWN, tone="quiet")
    color = len(part.conditions)
    for name, floor in ((_FLOOR, part.floor), (_ONE_ANSWER, part.floor_one_answer)):
        if part.floor is not None and floor is not None and floor.benchmark.pas.value is not None:
            rows.append(
                Row(
                    name=name,
                    cells=(
                        pas_cell(floor.benchmark.pas, color),
                        nothing,
                        ecs_cell(floor.benchmark.ecs, color),
                        nothing,
                        Count(floor.benchmark.tests_used, of=floor.benchmark.tests_planned),
                        nothing,
                        nothing,
                        nothing,
                    ),
                )
            )

    level = formats.level(part.level)
    yield Table(
        caption="Agreement with people",
        columns=columns(
            "condition",
            f"PAS [{level}]",
            Column("copy", rank=2, legend=PAS_CEILING),
            f"ECS [{level}]",
            Column("ceiling", rank=2, legend=ECS_CEILING),
            Column("tests", rank=3),
            *_people_columns(part, 1),
        ),
        rows=tuple(rows),
        legend=_legend(part),
        brief=True,
    )
    unknown = tuple(
        f"{condition.condition}: {condition.benchmark.reason}"
        for condition in part.conditions
        if condition.benchmark.pas.value is None and condition.benchmark.reason
    )
    if unknown:
        yield Note(texts=unknown, tone="quiet", title="No score")


def _legend(part: StudySummary) -> str:
    studies = studies_counted(part)
    parts = [
        (
            f"PAS: the probability that agent and people are in the same state (effect or none), "
            f"mean over {studies}."
        ),
        (
            f"ECS: concordance of their effects, Cohen's d ({part.convention}); 1 is equal, 0 "
            f"unrelated."
        ),
        (
            f"Intervals: {part.drawn} drawn again, {formats.plural(part.replicates, 'time')}; "
            f"people's numbers are fixed."
        ),
    ]
    if part.scored_floor is not None:
        drawn = formats.plural(part.scored_floor.repetitions, "repetition")
        parts.append(
            f"Random answers: a reference, the same participants and questions answered by chance "
            f"({drawn}). One answer an arm: the same random answer from all of an arm."
        )
    elif part.floor is not None:
        parts.append(
            f"No {_FLOOR}: {formats.clean(part.floor.benchmark.pas.reason or 'not known')}."
        )

    if any(condition.floor for condition in part.conditions):
        parts.append("(floor): a condition whose agent answers at random.")
    if part.repetitions > 1:
        parts.append(
            f"Means over {formats.plural(part.repetitions, 'repetition')}; participants are summed."
        )

    return " ".join(parts)


def _differences(part: StudySummary) -> Iterator[Block]:
    """Each condition against chance, then each pair of conditions, over the tests that both have
    scores for.
    """
    chance = part.scored_floor
    if chance is not None and chance.differences:
        floors = (("", chance), (", less one answer an arm", part.floor_one_answer))
        without = ""
        if chance.without:
            without = f" Without a floor: {formats.excerpt(', '.join(chance.without), 120)}."

        yield Table(
            caption="Above the floor: each condition less random answers",
            columns=columns(
                "condition",
                f"PAS [{formats.level(part.level)}]",
                f"ECS [{formats.level(part.level)}]",
                "tests",
            ),
            rows=tuple(
                _distance(f"{gap.condition}{name}", gap.pas, gap.ecs, _both(part, gap.condition))
                for name, floor in floors
                for gap in (() if floor is None else floor.differences)
            ),
            legend=f"Over the tests that both have a score of. *: the interval leaves out 0. An "
            f"agent counts as above chance only if it is above both floors, also by direction, and "
            f"no finding is opposite.{without}",
        )

    if not part.differences:
        return
    paired = {difference.paired for difference in part.differences}
    level = formats.level(part.level)
    how = (
        "The same participants, drawn together."
        if paired == {True}
        else "Different participants where not paired."
    )
    yield Table(
        caption="Differences between conditions",
        columns=columns("second − first", f"PAS [{level}]", f"ECS [{level}]", "tests"),
        rows=tuple(
            _distance(f"{gap.b} − {gap.a}", gap.pas, gap.ecs, _both(part, gap.b, gap.a))
            for gap in part.differences
        ),
        legend=f"Second minus first, over the tests that have a score under both. *: the interval "
        f"leaves out 0. Intervals are not adjusted for multiple comparisons; the headline "
        f"is (Holm). {how} {pairs_sentence(part)}".rstrip(),
    )


def _both(part: StudySummary, *names: str) -> str:
    """Who took part under these conditions."""
    sides = [part.of(name) for name in names]
    return "; ".join(
        f"{side.condition}: {side.participants.took_part}" for side in sides if side is not None
    )


def _distance(name: str, pas: Estimate, ecs: Estimate, people: str) -> Row:
    cells = []
    for estimate in (pas, ecs):
        above = estimate.low is not None and estimate.low > 0
        below = estimate.high is not None and estimate.high < 0
        cells.append(
            blocks.Estimate(
                estimate.value,
                estimate.low,
                estimate.high,
                signed=True,
                digits=_DIGITS,
                scale=Scale(-1.0, 1.0, 0.0),
                tone="good" if above else "bad" if below else "",
                mark="*" if above or below else "",
            )
        )

    return Row(name=name, cells=(*cells, Count(pas.n)), note=people, tone="quiet")


def _repetitions(part: StudySummary) -> Iterator[Block]:
    """The scores of each repetition of the experiment, and how much they vary."""
    if part.repetitions < 2:
        return
    rows: list[Row | Group] = []
    for condition in part.conditions:
        scores = condition.benchmark
        rows.append(_heading(condition))
        for repetition in scores.repetitions:
            values = map(
                number_cell,
                (repetition.pas, repetition.pas_se, repetition.pas_directional, repetition.ecs),
            )
            cells: tuple[Cell, ...] = (*values, Count(repetition.tests_used))
            rows.append(
                Row(name=f"repetition {formats.count(repetition.repetition + 1)}", cells=cells)
            )

        spread = (
            number_cell(scores.pas_sd),
            Text(""),
            Text(""),
            number_cell(scores.ecs_sd),
            Text(""),
        )
        rows.append(Row(name="± between them", cells=spread, total=True))

    heads = ("repetition", "PAS", "SE", "directional", "ECS", "tests")
    yield Table(
        caption="Repetitions",
        columns=columns(*heads),
        rows=tuple(rows),
        legend="Each repetition runs the experiment again with the same participants.",
    )


def _floor_heading(floor: StudyFloor) -> Group:
    drawn = formats.plural(floor.repetitions, "repetition")
    return Group(_FLOOR, f"a reference, {drawn}; no agent was asked")


def _by_domain(part: StudySummary) -> Iterator[Block]:
    """Nothing if every condition has one domain."""
    if not any(len(condition.domains) > 1 for condition in part.conditions):
        return
    rows: list[Row | Group] = []
    for at, condition in enumerate(part.conditions):
        rows.append(_heading(condition))
        for score in condition.domains:
            cells: tuple[Cell, ...] = (
                pas_cell(score.pas, at),
                ecs_cell(score.ecs, at),
                Count(score.used, of=score.planned),
                Count(score.tests_used, of=score.tests_planned),
            )
            rows.append(Row(name=score.name, cells=cells))

    if part.scored_floor is not None:
        rows.append(_floor_heading(part.scored_floor))
        for random in part.scored_floor.domains:
            tests = Count(random.tests_used, of=random.tests_planned, tone="quiet")
            cells = (pas_cell(random.pas, 0), ecs_cell(random.ecs, 0), Text(""), tests)
            rows.append(Row(name=random.name, cells=cells))

    level = formats.level(part.level)
    yield Table(
        caption="By domain",
        columns=columns(
            "domain",
            f"PAS [{level}]",
            f"ECS [{level}]",
            Column("studies", rank=1),
            Column("tests", rank=2),
        ),
        rows=tuple(rows),
        legend="PAS: means over the studies of a domain. ECS: studies weigh the same.",
    )


def by_study(part: StudySummary) -> Table:
    """The scores of each study under each condition, and who took part."""
    rows: list[Row | Group] = []
    for at, condition in enumerate(part.conditions):
        rows.append(_heading(condition))
        for study in condition.studies:
            score = study.score
            cells: tuple[Cell, ...] = (
                pas_cell(score.pas, at),
                number_cell(score.ceiling),
                ecs_cell(score.ecs, at),
                number_cell(score.ecs_ceiling),
                Count(score.tests_agreeing, of=score.tests_directed),
                Count(score.tests_used, of=score.tests_planned),
                coverage_cell(score.coverage),
                *_people(part, study.participants),
            )
            rows.append(Row(name=study.study, cells=cells))

    blank = Text("")
    if part.scored_floor is not None:
        rows.append(_floor_heading(part.scored_floor))
        for random in part.scored_floor.studies:
            tests = Count(random.tests_used, of=random.tests_planned, tone="quiet")
            scores = (pas_cell(random.pas, 0), blank, ecs_cell(random.ecs, 0), blank, blank, tests)
            rows.append(Row(name=random.name, cells=(*scores, *[blank] * 4)))

    level = formats.level(part.level)
    narrow = ", ".join(narrow_studies(part))
    coverage = (
        "Coverage: the lowest share, over the arms of a finding, of participants with every "
        "needed answer."
    )
    return Table(
        caption="By study",
        columns=columns(
            "study",
            f"PAS [{level}]",
            Column("copy", rank=4, legend=PAS_CEILING),
            f"ECS [{level}]",
            Column("ceiling", rank=4, legend=ECS_CEILING),
            Column("same direction", rank=3),
            Column("tests", rank=2),
            Column("coverage", rank=1, legend=coverage),
            *_people_columns(part, 2),
        ),
        rows=tuple(rows),
        legend=(
            "ECS needs three tests with effects. Intervals: of what such an experiment is "
            "expected to give."
        )
        + (f" {narrow}: {NARROW_STUDY}." if narrow else ""),
    )


def _findings(condition: StudyCondition, part: StudySummary, *, folded: bool) -> Iterator[Block]:
    """Each finding under one condition: people beside the agent, test by test."""
    blank = Text("")
    rows: list[Row | Group] = []
    for study in condition.studies:
        for finding in study.findings:
            marks = [
                *(["few answers"] if finding.flagged else []),
                *(["opposed"] if finding.opposed else []),
            ]
            rows.append(Group(f"{study.study} {finding.name}", finding.claim, ", ".join(marks)))
            for test in finding.tests:
                sides = [formats.UNKNOWN] * 2
                if test.repetitions:
                    row = test.repetitions[0]
                    sides = [statistic_of(test.kind, side) for side in (row.human, row.agent)]

                direction = {
                    True: "same",
                    False: "opposite" if test.opposed else "other",
                    None: formats.UNKNOWN,
                }[test.same_direction]
                cells: tuple[Cell, ...] = (
                    *(Text(side) for side in sides),
                    pas_cell(test.pas, 0),
                    Number(test.d_human, signed=True),
                    Number(test.d_agent, signed=True),
                    Text(direction, tone="bad" if test.opposed else ""),
                    coverage_cell(test.coverage),
                )
                rows.append(Row(name=test.id, cells=cells))

            if len(finding.tests) > 1:
                pooled = (blank, blank, number_cell(finding.pas.value), blank, blank, blank)
                cells = (*pooled, coverage_cell(finding.coverage))
                rows.append(Row(name="pooled", total=True, cells=cells))

    first = " Statistics are those of the first repetition." if part.repetitions > 1 else ""
    captions = (f"Findings, {named(condition)}", condition.participants.took_part)
    yield Table(
        caption=": ".join(filter(None, captions)),
        columns=columns(
            "test",
            "people",
            "agent",
            f"PAS [{formats.level(part.level)}]",
            Column("d people", rank=2),
            Column("d agent", rank=2),
            "direction",
            Column("coverage", rank=1),
            text=("people", "agent", "direction"),
        ),
        rows=tuple(rows),
        legend=f"PAS of a finding is pooled over its tests; a test has no interval without a "
        f"signed statistic, nor if all answers within each group are the same. {DIRECTION} "
        f"Few answers: coverage below {formats.share(FLAGGED)}.{first}",
        folded=folded,
    )


def _lost(part: StudySummary) -> Iterator[Block]:
    """What went wrong: opposite directions, findings without a score, unreadable answers."""
    without: list[tuple[StudyCondition, FindingResult]] = []
    effects: list[tuple[StudyCondition, FindingResult, TestResult]] = []
    for condition in part.conditions:
        for finding in condition.findings:
            effects += [(condition, finding, test) for test in finding.tests if test.opposed]
            if finding.pas.value is None:
                without.append((condition, finding))

    effects.sort(key=lambda effect: not effect[2].decisive)
    rows: dict[str, list[Row | Group]] = {}  # condition → its rows
    for one, finding, test in effects[:_LISTED]:
        row = next(
            (repetition for repetition in test.repetitions if repetition.opposed),
            test.repetitions[0],
        )
        cells: tuple[Cell, ...] = (
            *(Number(side.log_bf, digits=1) for side in (row.human, row.agent)),
            *(Number(side.d, signed=True) for side in (row.human, row.agent)),
            Text("decisive" if test.decisive else "", tone="bad"),
        )
        name = f"{finding.study} {finding.name} {test.id}"
        rows.setdefault(one.condition, [_heading(one)]).append(Row(name=name, cells=cells))

    if effects:
        yield Table(
            caption="Effects in the opposite direction",
            columns=columns(
                "test",
                "ln BF people",
                "ln BF agent",
                "d people",
                "d agent",
                "evidence",
                text=("evidence",),
            ),
            rows=tuple(row for group in rows.values() for row in group),
            legend=f"An effect on both sides, in opposite directions: PAS alone would hide it. "
            f"Decisive: evidence above 1,000 to 1 on both sides.{_left(len(effects))}",
        )

    rows = {}
    for one, finding in without[:_LISTED]:
        cells = (coverage_cell(finding.coverage), Text(finding.reason or "not known"))
        rows.setdefault(one.condition, [_heading(one)]).append(
            Row(name=f"{finding.study} {finding.name}", cells=cells)
        )

    if rows:
        yield Table(
            caption="Findings without a score",
            columns=columns("finding", "coverage", "why", text=("why",)),
            rows=tuple(row for group in rows.values() for row in group),
            legend="Missing data is not evidence of no effect: these are left out of the means."
            + _left(len(without)),
        )

    yield from unread(part)
    yield from _not_answered(part)


def _left(many: int, most: int = _LISTED) -> str:
    if many > most:
        return f" {formats.plural(many - most, 'further one')} left out."
    return ""


def unread(
    part: StudySummary,
    *,
    link: Callable[[StudyCondition, str, str, str, str], str] | None = None,
    most: int = _LISTED,
) -> Iterator[Table]:
    """Answers that could not be read, by field of an arm; nothing if all could.

    `link`: the address of those of a condition, study, arm, field and kind.
    """
    fields = sorted(
        (
            (condition, study.study, arm, field, kinds)
            for condition in part.conditions
            for study in condition.studies
            for arm in study.arms
            for field, kinds in arm.unread.items()
            if sum(kinds.values())
        ),
        key=lambda row: -sum(row[-1].values()),
    )
    if not fields:
        return
    kinds: dict[str, None] = {}
    for *_, counts in fields:
        kinds.update((kind, None) for kind in counts if counts[kind])

    rows = []
    for condition, study, arm, field, counts in fields[:most]:
        cells: list[Cell] = [Text(named(condition))]
        for kind in kinds:
            path = ""
            if link is not None and counts.get(kind):
                path = link(condition, study, arm.arm, field, kind)
            cells.append(Count(counts.get(kind, 0), link=path))

        cells += [Share(arm.share_read), *_people(part, arm.participants)]
        rows.append(Row(name=f"{study} {arm.arm}: {field}", cells=tuple(cells)))

    heads = columns(
        "field",
        "condition",
        *(kind.replace("_", " ") for kind in kinds),
        Column("read", legend="Read: of all answers in the arm."),
        *_people_columns(part, 1),
        text=("condition",),
    )
    yield Table(
        caption="What could not be read",
        columns=heads,
        rows=tuple(rows),
        legend=(
            f"Answers, by field of an arm; none was turned into another "
            f"answer.{_left(len(fields), most)}"
        ),
    )


def _not_answered(part: StudySummary) -> Iterator[Block]:
    missing = []
    for condition in part.conditions:
        failures: Counter[str] = Counter()
        for result in condition.studies:
            failures.update(result.failures)

        parts = [f"{kind} {formats.count(count)}" for kind, count in failures.items()]
        not_run = sum(result.not_run for result in condition.studies)
        if not_run:
            parts += [f"not run {formats.count(not_run)}"]
        if condition.participants.stopped:
            parts += [f"stopped early {formats.count(condition.participants.stopped)}"]
        if parts:
            missing.append(f"{condition.condition}: {', '.join(parts)}")

    if missing:
        yield Note(texts=tuple(missing), title="No answer")


def _auxiliary(part: StudySummary) -> Iterator[Block]:
    """Numbers that help to interpret the two main ones."""
    legends = {
        "directional": "Directional: PAS that counts opposite effects as different.",
        "normalised": "Normalised: on the scale from chance to a perfect copy.",
        "strict": "Strict: ECS-Strict.",
        "slope": "Slope: of the agent's effects on people's; above 1 is exaggeration.",
        "r": "r, bias: the two parts of ECS.",
        "bias": "",
        "perfect": (
            "Perfect: the ECS that a perfect copy would get, given the errors of both sides."
        ),
    }
    rows = []
    for at, one in enumerate(part.conditions):
        scores = one.benchmark
        new = one.benchmark.ecs_new
        values = (
            scores.pas_directional,
            scores.normalized,
            scores.ecs_strict,
            one.caricature.slope,
            scores.concordance.pearson,
            scores.concordance.bias,
            one.noise_ceiling.value,
        )
        anew = formats.UNKNOWN
        if new is not None:
            anew = (
                formats.interval(new.low, new.high, digits=_DIGITS) or new.reason or formats.UNKNOWN
            )

        same = Count(scores.tests_agreeing, of=scores.tests_directed)
        cells: tuple[Cell, ...] = (
            *map(number_cell, values),
            same,
            Text(anew),
            number_cell(one.ecs_other.value),
        )
        rows.append(
            Row(
                name=named(one),
                color=at,
                cells=cells,
                note=one.participants.took_part,
                tone="quiet",
            )
        )

    yield Table(
        caption="Auxiliary numbers",
        columns=columns(
            "condition",
            *(Column(head, legend=legend) for head, legend in legends.items()),
            Column("same direction", rank=1),
            Column("ECS, new studies", rank=2),
            Column(f"ECS, {part.convention_other}", rank=3),
        ),
        rows=tuple(rows),
    )


def _used(part: StudySummary) -> Iterator[Block]:
    """What the answers of each study cost."""
    rows: list[Row | Group] = []
    for condition in part.conditions:
        if len(part.conditions) > 1:
            rows += [Group(named(condition))]
        for study in condition.studies:
            usage = study.usage
            counts = map(Count, (usage.calls, usage.input_tokens, usage.output_tokens))
            rows.append(
                Row(name=study.study, cells=(*counts, Money(usage.dollars, usage.dollars_unknown)))
            )

    heads = ("study", "calls", "tokens in", "out", "dollars")
    yield Table(
        caption="What each study cost",
        columns=columns(*heads),
        rows=tuple(rows),
        folded=True,
        legend="Of the answers that count; failed attempts are in the table above.",
    )


def _sources(part: StudySummary) -> Iterator[Block]:
    """The studies as they were run."""
    rows = tuple(
        Row(
            name=study.study,
            cells=(
                Text(study.title, below="; ".join(filter(None, (study.source, study.caveat)))),
                Text(study.domain),
                Text(
                    f"{study.design}, "
                    f"{blocks.plain(Count(len(study.arms), of=study.arms_in_file))} arms"
                ),
                Text(study.wording or "original"),
                Text(study.sha256[:16], code=True),
            ),
        )
        for study in part.studies
    )
    heads = ("study", "what it is", "domain", "design", "wording", "sha256")
    yield Table(caption="Studies", columns=columns(*heads, text=heads), rows=rows)
