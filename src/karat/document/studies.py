"""A run over human studies: how far the agent does what people did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from karat import formats
from karat.analysis.numbers import Estimate
from karat.document.blocks import Block, Cell, Column, Group, Note, Row, Span, Table, columns, numbers, words
from karat.document.charts.written import statistic_of
from karat.kinds.study.analysis.chance import NARROW_STUDY, narrow_studies
from karat.kinds.study.analysis.model import (
    FindingResult,
    LevelScore,
    Participants,
    StudyCondition,
    StudyDifference,
    StudyResult,
    StudySummary,
    TestResult,
)
from karat.kinds.study.analysis.verdicts import ECS_CEILING, pairs_sentence, studies_counted

__all__ = ["agreement", "auxiliary", "differences", "findings", "levels", "lost", "repetitions", "sources", "used"]

_DIGITS = 3
_FLAGGED = 0.8  # of coverage
_LISTED = 30  # tests in opposite directions, findings without a score, fields that could not be read
_FLOOR = "random answers (floor)"
_ONE_ANSWER = "one answer an arm (floor)"
PEOPLE = ("asked", "answered", "parsed")


def _named(one: StudyCondition) -> str:
    return f"{one.condition} (floor)" if one.floor else one.condition


def _value(value: float | None) -> str:
    return formats.number(value, digits=_DIGITS)


def _estimated(found: Estimate, start: float, color: int, *, signed: bool = False) -> tuple[Cell, Cell]:
    """The number, and its interval, drawn from `start` to 1."""
    write = formats.signed_interval if signed else formats.interval
    drawn = None
    if found.value is not None:
        drawn = Span(value=found.value, low=found.low, high=found.high, start=start, end=1.0, color=color,
                     zero=0.0 if start < 0 else None)  # fmt: skip
    value = formats.signed(found.value, digits=_DIGITS) if signed else _value(found.value)
    interval = write(found.low, found.high, digits=_DIGITS) or formats.UNKNOWN
    return Cell(text=value), Cell(text=interval, drawn=drawn)


def _people(found: Participants) -> tuple[Cell, ...]:
    """Asked, answered, parsed; marked where somebody is missing."""
    counts = (found.asked, found.answered, found.parsed)
    before = (found.planned, found.asked, found.answered)
    return tuple(
        Cell(text=formats.count(count), tone="bad" if count < more else "")
        for count, more in zip(counts, before, strict=True)
    )


def _of(used: int, planned: int) -> str:
    return f"{formats.count(used)} of {formats.count(planned)}" if used < planned else formats.count(used)


def _covered(coverage: float | None) -> Cell:
    few = coverage is not None and coverage < _FLAGGED
    return Cell(text=formats.share(coverage), tone="bad" if few else "")


def agreement(part: StudySummary) -> Iterator[Block]:
    """PAS and ECS of each condition, the main numbers, and who took part."""
    rows = []
    for at, one in enumerate(part.conditions):
        whole = one.benchmark
        cells = (
            *_estimated(whole.pas, 0.0, at), Cell(text=_value(whole.ceiling), tone="quiet"),
            *_estimated(whole.ecs, -1.0, at), Cell(text=_value(whole.ecs_ceiling), tone="quiet"),
            Cell(text=_of(whole.tests_used, whole.tests_planned)),
            *_people(one.participants),
        )  # fmt: skip
        rows.append(Row(name=_named(one), color=at, cells=cells))
    rows += _floor_rows(part)
    heads = ("condition", "PAS", "interval", "copy", "ECS", "interval", "ceiling", "tests", *PEOPLE)
    level = formats.level(part.level)
    yield Table(
        caption=f"Agreement with people, with {level} intervals", columns=columns(*heads), rows=tuple(rows),
        legend=_legend(part),
    )  # fmt: skip
    unknown = tuple(
        f"{one.condition}: {one.benchmark.reason}" for one in part.conditions
        if one.benchmark.pas.value is None and one.benchmark.reason
    )  # fmt: skip
    if unknown:
        yield Note(texts=unknown, tone="quiet", title="No score")


def _floor_rows(part: StudySummary) -> list[Row]:
    """Scores of simulated answers that use no knowledge, as a reference."""
    people, nothing = numbers(*(formats.UNKNOWN for _ in PEOPLE)), Cell(text=formats.UNKNOWN, tone="quiet")
    quiet = len(part.conditions)
    return [
        Row(name=name, cells=(
            *_estimated(found.benchmark.pas, 0.0, quiet), nothing, *_estimated(found.benchmark.ecs, -1.0, quiet),
            nothing, Cell(text=_of(found.benchmark.tests_used, found.benchmark.tests_planned)), *people,
        ))
        for name, found in ((_FLOOR, part.floor), (_ONE_ANSWER, part.floor_one_answer))
        if found is not None and found.benchmark.pas.value is not None
    ]  # fmt: skip


def _legend(part: StudySummary) -> str:
    studies = studies_counted(part)
    parts = [
        f"PAS: the probability that agent and people are in the same state (effect or none), mean over {studies}.",
        f"ECS: concordance of their effects, Cohen's d ({part.convention}); 1 is equal, 0 unrelated.",
        f"Intervals: {part.drawn} drawn again, {formats.plural(part.replicates, 'time')}; people's numbers are fixed.",
        "Copy: the PAS that a perfect copy of people would get.",
        ECS_CEILING,
    ]
    if part.floor is not None and part.floor.benchmark.pas.value is not None:
        drawn = formats.plural(part.floor.repetitions, "repetition")
        parts.append(
            f"Random answers: a reference, the same participants and questions answered by chance ({drawn}). "
            "One answer an arm: the same random answer from all of an arm."
        )
    elif any(one.floor for one in part.conditions):
        parts.append("Floor: random answers, what knowing nothing gives.")
    if part.repetitions > 1:
        parts.append(f"Means over {formats.plural(part.repetitions, 'repetition')}; participants are added up.")
    return " ".join(parts)


def differences(part: StudySummary) -> Iterator[Block]:
    """Each condition and chance, then every two conditions, over the tests that have a score under both."""
    yield from _above_floor(part)
    if not part.differences:
        return
    paired = {one.paired for one in part.differences}
    how = (
        "The same participants, drawn together." if paired == {True} else "Participants of their own where not paired."
    )
    yield Table(
        caption="Pairs of conditions: differences with their intervals",
        columns=columns("second − first", "PAS", "interval", "ECS", "interval", "tests"),
        rows=tuple(_difference(one) for one in part.differences),
        legend="Second minus first, over the tests that have a score under both. Bold: its interval leaves out 0, "
        f"for this comparison alone; the first sentence of the page looks at all of them (Holm). {how} "
        f"{pairs_sentence(part)}".rstrip(),
    )


def _above_floor(part: StudySummary) -> Iterator[Block]:
    """How far each condition is from random answers."""
    found = part.floor
    if found is None or found.benchmark.pas.value is None or not found.differences:
        return
    yield Table(
        caption="Each condition less random answers, with intervals",
        columns=columns("condition", "PAS", "interval", "ECS", "interval", "tests"),
        rows=tuple(
            _distance(f"{one.condition}{name}", one.pas, one.ecs)
            for name, floor in (("", found), (", less one answer an arm", part.floor_one_answer))
            for one in (() if floor is None else floor.differences)
        ),
        legend="Over the tests that both have a score of. Bold: its interval leaves out 0. An agent counts as above "
        "chance only if it is above both floors, also by direction, and no finding is opposite.",
    )


def _difference(one: StudyDifference) -> Row:
    return _distance(f"{one.b} − {one.a}", one.pas, one.ecs)


def _distance(name: str, pas: Estimate, ecs: Estimate) -> Row:
    cells: list[Cell] = []
    for found in (pas, ecs):
        value, interval = _estimated(found, -1.0, 0, signed=True)
        above = found.low is not None and found.low > 0
        below = found.high is not None and found.high < 0
        cells += [Cell(text=value.text, tone="good" if above else "bad" if below else ""), interval]
    return Row(name=name, cells=(*cells, *numbers(formats.count(pas.n))))


def repetitions(part: StudySummary) -> Iterator[Block]:
    """Each repetition is the experiment once more; how far they lie apart."""
    if part.repetitions < 2:
        return
    rows: list[Row | Group] = []
    for one in part.conditions:
        whole = one.benchmark
        rows.append(Group(name=_named(one)))
        for found in whole.repetitions:
            shown = map(_value, (found.pas, found.pas_se, found.pas_directional, found.ecs))
            cells = numbers(*shown, formats.count(found.tests_used))
            rows.append(Row(name=f"repetition {formats.count(found.repetition + 1)}", cells=cells))
        spread = numbers(_value(whole.pas_sd), "", "", _value(whole.ecs_sd), "")
        rows.append(Row(name="± between them", cells=spread, total=True))
    heads = ("repetition", "PAS", "SE", "directional", "ECS", "tests")
    yield Table(caption="Repetitions", columns=columns(*heads), rows=tuple(rows),
                legend="Each repetition is the experiment once more, with the same participants.")  # fmt: skip


def levels(part: StudySummary) -> Iterator[Block]:
    """By domain, where there are several, and by study."""
    domains: list[Row | Group] = []
    studies: list[Row | Group] = []
    for at, one in enumerate(part.conditions):
        several = len(part.conditions) > 1
        domains += [Group(name=_named(one))] if several else []
        domains += [Row(name=found.name, cells=_level(found, at)) for found in one.domains]
        studies += [Group(name=_named(one))] if several else []
        studies += [Row(name=each.study, cells=_study(each, at)) for each in one.studies]
    if any(len(one.domains) > 1 for one in part.conditions):
        heads = ("domain", "PAS", "interval", "ECS", "interval", "studies", "tests")
        yield Table(caption="By domain", columns=columns(*heads), rows=tuple(domains),
                    legend="Means of the studies of a domain.")  # fmt: skip
    scores = ("PAS", "interval", "copy", "ECS", "interval", "ceiling", "same direction", "tests", "coverage")
    own, narrow = columns("study", *scores, *PEOPLE), ", ".join(narrow_studies(part))
    yield Table(
        caption="By study", columns=own, rows=tuple(studies),
        legend="Coverage: the lowest share, over the arms of a finding, of participants with every needed answer. "
        "ECS needs three tests with effects. Intervals: of what such an experiment is expected to give."
        + (f" {narrow}: {NARROW_STUDY}." if narrow else ""),
    )  # fmt: skip


def _level(found: LevelScore, color: int) -> tuple[Cell, ...]:
    counts = (_of(found.used, found.planned), _of(found.tests_used, found.tests_planned))
    return (*_estimated(found.pas, 0.0, color), *_estimated(found.ecs, -1.0, color), *numbers(*counts))


def _study(each: StudyResult, color: int) -> tuple[Cell, ...]:
    found = each.score
    same = f"{formats.count(found.tests_agreeing)} of {formats.count(found.tests_directed)}"
    return (
        *_estimated(found.pas, 0.0, color), Cell(text=_value(found.ceiling), tone="quiet"),
        *_estimated(found.ecs, -1.0, color), Cell(text=_value(found.ecs_ceiling), tone="quiet"),
        *numbers(same, _of(found.tests_used, found.tests_planned)),
        _covered(found.coverage),
        *_people(each.participants),
    )  # fmt: skip


def findings(one: StudyCondition, *, folded: bool = False) -> Iterator[Block]:
    """Each finding of one condition: what people did beside what the agent did, test by test."""
    heads = ("test", "people", "agent", "PAS", "d people", "d agent", "direction", "coverage")
    rows: list[Row | Group] = []
    for study in one.studies:
        for finding in study.findings:
            marks = [*(["few answers"] if finding.flagged else []), *(["opposed"] if finding.opposed else [])]
            rows.append(Group(name=f"{study.study} {finding.name}", note=f"{finding.claim}{_marked(marks)}"))
            rows += [_test(test) for test in finding.tests]
            if len(finding.tests) > 1:
                pooled = Row(name="pooled", total=True, cells=(
                    words(""), words(""), *numbers(_value(finding.pas.value), "", ""), words(""),
                    _covered(finding.coverage)))  # fmt: skip
                rows.append(pooled)
    yield Table(
        caption=f"Findings, {_named(one)}",
        columns=columns(*heads, text=("people", "agent", "direction")),
        rows=tuple(rows),
        legend="PAS of a finding is pooled over its tests. Direction: of the agent's effect against that of people. "
        "Statistics are those of the first repetition.",
        folded=folded,
    )


def _marked(marks: Sequence[str]) -> str:
    return f" ({', '.join(marks)})" if marks else ""


def _test(test: TestResult) -> Row:
    row = test.repetitions[0] if test.repetitions else None
    sides = [formats.UNKNOWN] * 2 if row is None else [statistic_of(test.kind, side) for side in (row.human, row.agent)]
    direction = {True: "same", False: "opposite" if test.opposed else "other", None: formats.UNKNOWN}
    tone: Literal["bad", ""] = "bad" if test.opposed else ""
    drawn = None
    if test.pas.value is not None:
        drawn = Span(value=test.pas.value, low=test.pas.low, high=test.pas.high, start=0.0, end=1.0)
    return Row(
        name=test.id,
        cells=(
            *(words(side) for side in sides),
            Cell(text=_value(test.pas.value), below=formats.interval(test.pas.low, test.pas.high), drawn=drawn),
            *numbers(formats.signed(test.d_human), formats.signed(test.d_agent)),
            words(direction[test.same_direction], tone=tone),
            _covered(test.coverage),
        ),
    )


def lost(part: StudySummary) -> Iterator[Block]:
    """What failed: opposite directions, findings without a score, what could not be read."""
    every = [(one, finding) for one in part.conditions for finding in one.findings]
    yield from _opposed([(one, finding, test) for one, finding in every for test in finding.tests if test.opposed])
    yield from _without([(one, finding) for one, finding in every if finding.pas.value is None])
    yield from _unread(part)


def _opposed(found: Sequence[tuple[StudyCondition, FindingResult, TestResult]]) -> Iterator[Block]:
    if not found:
        return
    rows = []
    for one, finding, test in sorted(found, key=lambda each: not each[2].decisive)[:_LISTED]:
        row = next((each for each in test.repetitions if each.opposed), test.repetitions[0])
        evidence = (formats.number(side.log_bf, digits=1) for side in (row.human, row.agent))
        effects = (formats.signed(side.d) for side in (row.human, row.agent))
        cells = (words(_named(one)), *numbers(*evidence, *effects), words("decisive" if test.decisive else ""))
        rows.append(Row(name=f"{finding.study} {finding.name} {test.id}", cells=cells))
    heads = ("test", "condition", "ln BF people", "ln BF agent", "d people", "d agent", "evidence")
    yield Table(
        caption="Effects in the opposite direction",
        columns=columns(*heads, text=("condition", "evidence")),
        rows=tuple(rows),
        legend="An effect on both sides, in opposite directions: PAS alone would hide it. Decisive: evidence above "
        f"1,000 to 1 on both sides.{_left(len(found))}",
    )  # fmt: skip


def _without(found: Sequence[tuple[StudyCondition, FindingResult]]) -> Iterator[Block]:
    if found:
        rows = tuple(
            Row(
                name=f"{finding.study} {finding.name}", cells=(words(_named(one)), words(finding.reason or "not known"))
            )
            for one, finding in found[:_LISTED]
        )
        heads = ("finding", "condition", "why")
        yield Table(caption="Findings without a score", columns=columns(*heads, text=heads), rows=rows,
                    legend=_left(len(found)).strip())  # fmt: skip


def _left(many: int) -> str:
    return f" {formats.plural(many - _LISTED, 'further one')} left out." if many > _LISTED else ""


def _unread(part: StudySummary) -> Iterator[Block]:
    found = sorted(
        ((one, study.study, arm, field, kinds) for one in part.conditions for study in one.studies
         for arm in study.arms for field, kinds in arm.unread.items() if sum(kinds.values())),
        key=lambda row: -sum(row[-1].values()),
    )  # fmt: skip
    if found:
        kinds = list(dict.fromkeys(kind for *_, counts in found for kind in counts if counts[kind]))
        rows = tuple(
            Row(name=f"{study} {arm.arm}: {field}", cells=(
                words(_named(one)), *numbers(*(formats.count(counts.get(kind, 0)) for kind in kinds)),
                *_people(arm.participants)))
            for one, study, arm, field, counts in found[:_LISTED]
        )  # fmt: skip
        heads = (Column(text="field", number=False), Column(text="condition", number=False),
                 *(Column(text=kind.replace("_", " ")) for kind in kinds), *map(_column, PEOPLE))  # fmt: skip
        yield Table(
            caption="What could not be read", columns=heads, rows=rows,
            legend=f"Answers, by field of an arm; none was turned into another answer.{_left(len(found))}",
        )  # fmt: skip
    told = tuple(line for one in part.conditions for line in _missing(one))
    if told:
        yield Note(texts=told, title="Who gave no answer")


def _column(text: str) -> Column:
    return Column(text=text)


def _missing(one: StudyCondition) -> Iterator[str]:
    failures: dict[str, int] = {}
    for study in one.studies:
        for kind, count in study.failures.items():
            failures[kind] = failures.get(kind, 0) + count
    parts = [f"{kind} {formats.count(count)}" for kind, count in failures.items()]
    not_run = sum(study.not_run for study in one.studies)
    parts += [f"not run {formats.count(not_run)}"] if not_run else []
    parts += [f"stopped early {formats.count(one.participants.stopped)}"] if one.participants.stopped else []
    if parts:
        yield f"{one.condition}: {', '.join(parts)}"


def auxiliary(part: StudySummary) -> Iterator[Block]:
    """Numbers that help to read the two main ones."""
    heads = ("condition", "directional", "normalised", "strict", "slope", "r", "bias", "perfect", "same direction",
             "ECS, new studies", f"ECS, {part.convention_other}")  # fmt: skip
    rows = tuple(Row(name=_named(one), color=at, cells=_auxiliary(one)) for at, one in enumerate(part.conditions))
    yield Table(
        caption="Auxiliary numbers", columns=columns(*heads), rows=rows, folded=True,
        legend="Directional: PAS that counts opposite effects as different. Normalised: on the scale from chance to a "
        "perfect copy. Strict: ECS-Strict. Slope: of the agent's effects on people's, above 1 is exaggeration. r, "
        "bias: the two parts of ECS. Perfect: the ECS that a perfect copy would get, given the errors of both sides.",
    )  # fmt: skip


def _auxiliary(one: StudyCondition) -> tuple[Cell, ...]:
    whole, new = one.benchmark, one.benchmark.ecs_new
    values = (whole.pas_directional, whole.normalized, whole.ecs_strict, one.caricature.slope,
              whole.concordance.pearson, whole.concordance.bias, one.noise_ceiling.value)  # fmt: skip
    same = f"{formats.count(whole.tests_agreeing)} of {formats.count(whole.tests_directed)}"
    anew = formats.UNKNOWN if new is None else formats.interval(new.low, new.high, digits=_DIGITS) or formats.UNKNOWN
    return numbers(*map(_value, values), same, anew, _value(one.ecs_other.value))


def used(part: StudySummary) -> Iterator[Block]:
    """What the answers of each study cost."""
    rows: list[Row | Group] = []
    for one in part.conditions:
        rows += [Group(name=_named(one))] if len(part.conditions) > 1 else []
        for study in one.studies:
            told = study.usage
            shown = map(formats.count, (told.calls, told.input_tokens, told.output_tokens))
            paid = formats.dollars(told.dollars, unknown=told.dollars_unknown)
            rows.append(Row(name=study.study, cells=numbers(*shown, paid)))
    heads = ("study", "calls", "tokens in", "out", "dollars")
    yield Table(caption="What each study cost", columns=columns(*heads), rows=tuple(rows), folded=True,
                legend="Of the answers that count; failed attempts stand in the table above.")  # fmt: skip


def sources(part: StudySummary) -> Iterator[Block]:
    """The studies as they were run."""
    rows = tuple(
        Row(
            name=one.study,
            cells=(
                words(one.title, below="; ".join(filter(None, (one.source, one.caveat)))),
                words(one.domain),
                words(f"{one.design}, {_of(len(one.arms), one.arms_in_file)} arms"),
                words(one.wording or "as it stands"),
                Cell(text=one.sha256[:16], number=False, code=True),
            ),
        )
        for one in part.studies
    )
    heads = ("study", "what it is", "domain", "design", "wording", "sha256")
    yield Table(caption="Studies", columns=columns(*heads, text=heads), rows=rows)
