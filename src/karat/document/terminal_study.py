"""The terminal's tables of a run over human studies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from karat import formats
from karat.analysis.numbers import Estimate
from karat.document.terminal_layout import Cell, Columns, Section
from karat.document.terminal_study_findings import finding_sections
from karat.document.terminal_study_floor import FLOOR_ROW, above, floor_heading, floor_legend, floor_scores, shown_floor
from karat.document.terminal_study_words import FLOOR, PEOPLE, heading, low, people_cells, took_part
from karat.kinds.study.analysis.chance import NARROW_STUDY, narrow_studies
from karat.kinds.study.analysis.model import (
    FloorScore,
    LevelScore,
    StudyCondition,
    StudyDifference,
    StudySummary,
)
from karat.kinds.study.analysis.verdicts import ECS_CEILING, pairs_sentence, studies_counted

__all__ = ["sections"]

_NARROW = " ‡"
_UNREAD = 16  # lines of what could not be read; the rest is summed up


def sections(part: StudySummary, *, wide: bool, findings: int) -> Iterator[Section]:
    """The tables, in the order in which they are read. `findings`: how many of each condition are shown at most."""
    yield _main(part, wide=wide)
    if part.differences:
        yield _differences(part, wide=wide)
    beyond = above(part, wide=wide)
    if beyond is not None:
        yield beyond
    if part.repetitions > 1:
        yield _repetitions(part, wide=wide)
    if any(len(one.domains) > 1 for one in part.conditions):
        yield _domains(part, wide=wide)
    yield _studies(part, wide=wide)
    yield from finding_sections(part, wide=wide, most=findings)
    unread = _unread(part)
    if unread is not None:
        yield unread
    yield _auxiliary(part, wide=wide)


def _named(one: StudyCondition) -> str:
    return f"{one.condition}{FLOOR if one.floor else ''}"


def _span(found: Estimate, digits: int) -> str:
    return formats.interval(found.low, found.high, digits=digits) or formats.UNKNOWN


def _main(part: StudySummary, *, wide: bool) -> Section:
    level, digits = formats.level(part.level), 3 if wide else 2
    heads = ["", "PAS", f"{level} interval", "copy", "ECS", "interval", "ceiling"]
    heads = heads if wide else [name for name in heads if name not in {"copy", "ceiling"}]
    table = Columns([*heads, *(["tests"] if wide else []), *PEOPLE])
    for one in part.conditions:
        whole = one.benchmark
        tests = f"{formats.count(whole.tests_used)} of {formats.count(whole.tests_planned)}"
        cells: list[Cell] = [
            (formats.number(whole.pas.value, digits=digits), "bold"),
            (_span(whole.pas, digits), ""),
            *([(formats.number(whole.ceiling, digits=digits), "dim")] if wide else []),
            (formats.number(whole.ecs.value, digits=digits), "bold"),
            (_span(whole.ecs, digits), ""),
            *([(formats.number(whole.ecs_ceiling, digits=digits), "dim")] if wide else []),
            *([(tests, "")] if wide else []),
            *people_cells(one.participants),
        ]
        table.row(_named(one), cells)
        if whole.pas.value is None:
            table.title(Text(f"    no score: {formats.excerpt(whole.reason or 'not known', 120)}", style="red"))
    if (floor := shown_floor(part)) is not None:
        table.row(FLOOR_ROW if wide else "floor (random)", _main_floor(floor.benchmark, wide=wide, digits=digits))
        if part.floor_one_answer is not None:
            second = part.floor_one_answer.benchmark
            table.row(
                "floor (one answer an arm)" if wide else "floor (one)", _main_floor(second, wide=wide, digits=digits)
            )
    return Section("Agreement with people", table, _main_legend(part, wide=wide))


def _main_floor(whole: FloorScore, *, wide: bool, digits: int) -> list[Cell]:
    """Its row: nobody was asked, so nothing stands there of people."""
    pas, span, ecs, ecs_span = floor_scores(whole, digits)
    tests = f"{formats.count(whole.tests_used)} of {formats.count(whole.tests_planned)}"
    blank: list[Cell] = [("", "")]
    more = [*blank, (tests, "dim")] if wide else []
    return [pas, span, *(blank if wide else []), ecs, ecs_span, *more, *blank * 3]


def _main_legend(part: StudySummary, *, wide: bool) -> str:
    studies = studies_counted(part)
    parts = [
        (
            f"PAS: the probability that agent and people are in the same state (effect or none), mean over {studies}. "
            f"ECS: concordance of their effects, Cohen's d ({part.convention}); 1 is equal, 0 unrelated."
        ),
        f"Intervals: {part.drawn} drawn again, {formats.count(part.replicates)} times; people's numbers are fixed.",
    ]
    parts += ["copy: the PAS that a perfect copy of people would get.", ECS_CEILING] if wide else []
    if any(one.floor for one in part.conditions):
        parts.append("(floor): a condition whose agent answers at random.")
    if (legend := floor_legend(part)) != "":
        parts.append(legend)
    if part.repetitions > 1:
        parts.append(f"Means over {formats.plural(part.repetitions, 'repetition')}; participants are added up.")
    parts.append("These two are the main numbers.")
    return " ".join(parts)


def _differences(part: StudySummary, *, wide: bool) -> Section:
    level, digits = formats.level(part.level), 3 if wide else 2
    table = Columns(["", "PAS", f"{level} interval", "ECS", "interval", "tests"])
    for one in part.differences:
        table.row(f"{one.b} − {one.a}", _difference_cells(one, digits))
        for name in (one.b, one.a):
            found = part.of(name)
            if found is not None:
                table.title(Text(f"    {formats.excerpt(name, 40)}: {took_part(found.participants)}", style="dim"))
    drawn = {one.paired for one in part.differences}
    how = "the same participants, drawn together" if drawn == {True} else "participants of their own where not paired"
    legend = f"second minus first, over the tests that have a score under both; {how}. * leaves out 0."
    if len(part.differences) > 1:
        legend += " An interval stands for its comparison alone; the first line looks at all of them (Holm)."
    legend += f" {pairs_sentence(part)}".rstrip()
    return Section("Differences between conditions", table, legend)


def _difference_cells(one: StudyDifference, digits: int) -> list[Cell]:
    cells: list[Cell] = []
    for found in (one.pas, one.ecs):
        span = formats.signed_interval(found.low, found.high, digits=digits) or formats.UNKNOWN
        shown = found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)
        cells += [(formats.signed(found.value, digits=digits), ""), (f"{span}{'*' if shown else ''}", "")]
    return [*cells, (formats.count(one.pas.n), "")]


def _repetitions(part: StudySummary, *, wide: bool) -> Section:
    digits = 3 if wide else 2
    table = Columns(["", "PAS", "SE", "directional", "ECS", "tests"])
    for one in part.conditions:
        table.title(heading(one))
        whole = one.benchmark
        for found in whole.repetitions:
            values = (found.pas, found.pas_se, found.pas_directional, found.ecs)
            cells: list[Cell] = [(formats.number(value, digits=digits), "") for value in values]
            table.row(f"repetition {found.repetition + 1}", [*cells, (formats.count(found.tests_used), "")], indent=2)
        spread = ((whole.pas_sd, 0), (whole.ecs_sd, 3))
        blank: list[Cell] = [("", "")] * 5
        for value, place in spread:
            blank[place] = (formats.number(value, digits=digits), "dim")
        table.row("± between them", blank, indent=2)
    return Section("Repetitions", table, "each repetition is the experiment once more, with the same participants.")


def _domains(part: StudySummary, *, wide: bool) -> Section:
    level, digits = formats.level(part.level), 3 if wide else 2
    table = Columns(["", "PAS", f"{level} interval", "ECS", "interval", "studies", "tests"])
    for one in part.conditions:
        table.title(heading(one))
        for found in one.domains:
            table.row(found.name, [*_scores(found, digits), *_used(found)], indent=2)
    if (floor := shown_floor(part)) is not None:
        table.title(floor_heading(floor))
        for each in floor.domains:
            table.row(each.name, [*floor_scores(each, digits), ("", ""), (_tests_of(each), "dim")], indent=2)
    return Section("By domain", table, "means of the studies of a domain.")


def _scores(found: LevelScore, digits: int) -> list[Cell]:
    cells: list[Cell] = []
    for one in (found.pas, found.ecs):
        cells += [(formats.number(one.value, digits=digits), ""), (_span(one, digits), "")]
    return cells


def _used(found: LevelScore) -> list[Cell]:
    pairs = ((found.used, found.planned), (found.tests_used, found.tests_planned))
    return [(f"{used} of {planned}" if used < planned else formats.count(used), "") for used, planned in pairs]


def _studies(part: StudySummary, *, wide: bool) -> Section:
    digits = 3 if wide else 2
    own = ["PAS", f"{formats.level(part.level)} interval", "ECS", "interval"] if wide else ["PAS", "SE", "ECS"]
    table = Columns(["", *own, "tests", "coverage", *PEOPLE])
    narrow = narrow_studies(part)
    for one in part.conditions:
        table.title(heading(one))
        for study in one.studies:
            found = study.score
            cells = _of_study(found, wide=wide, digits=digits)
            cells += [_used(found)[1], (formats.share(found.coverage), low(found.coverage))]
            name = f"{study.study}{_NARROW}" if study.study in narrow else study.study
            table.row(name, [*cells, *people_cells(study.participants)], indent=2)
    if (floor := shown_floor(part)) is not None:
        table.title(floor_heading(floor))
        for each in floor.studies:
            table.row(each.name, _study_floor(each, wide=wide, digits=digits), indent=2)
    legend = "coverage: the lowest share, over the arms of a finding, of participants with every needed answer."
    few = [one for one in part.conditions[:1] for study in one.studies if study.score.ecs.value is None]
    legend += " ECS needs three tests with effects." if few else ""
    legend += f"{_NARROW} {NARROW_STUDY}." if narrow else ""
    return Section("By study", table, legend)


def _of_study(found: LevelScore | FloorScore, *, wide: bool, digits: int, style: str = "") -> list[Cell]:
    """PAS and ECS of a study: in a wide table with their intervals, else with the standard error of PAS."""
    spans = (_span(found.pas, digits), _span(found.ecs, digits))
    pas, se, ecs = (formats.number(one, digits=digits) for one in (found.pas.value, found.pas.se, found.ecs.value))
    return [(text, style) for text in ((pas, spans[0], ecs, spans[1]) if wide else (pas, se, ecs))]


def _study_floor(one: FloorScore, *, wide: bool, digits: int) -> list[Cell]:
    blank: list[Cell] = [("", "")]
    return [*_of_study(one, wide=wide, digits=digits, style="dim"), (_tests_of(one), "dim"), *blank * 4]


def _tests_of(one: FloorScore) -> str:
    used, planned = one.tests_used, one.tests_planned
    return f"{used} of {planned}" if used < planned else formats.count(used)


def _unread(part: StudySummary) -> Section | None:
    """Answers that were none, by kind; None where every answer could be read."""
    rows = [
        (condition, study.study, arm, field, kinds)
        for condition in part.conditions
        for study in condition.studies
        for arm in study.arms
        for field, kinds in arm.unread.items()
        if sum(kinds.values())
    ]
    lost = [line for condition in part.conditions for line in _lost(condition)]
    if not rows and not lost:
        return None
    heads = list(dict.fromkeys(kind for *_, kinds in rows for kind in kinds if kinds[kind]))
    table = Columns(["", *(head.replace("_", " ") for head in heads), *PEOPLE])
    shown = sorted(rows, key=lambda row: -sum(row[-1].values()))[:_UNREAD]
    for condition in part.conditions:
        if not any(row[0] is condition for row in rows):
            continue
        table.title(heading(condition))
        for _, study, arm, field, kinds in (row for row in shown if row[0] is condition):
            counts: list[Cell] = [(formats.count(kinds[head]) if kinds.get(head) else "", "") for head in heads]
            table.row(f"{study} {arm.arm}: {field}", [*counts, *people_cells(arm.participants)], indent=2)
        _others(table, [row[-1] for row in rows if row[0] is condition and row not in shown], heads)
    legend = "answers, by field of an arm; none of them was turned into another answer."
    return Section("What could not be read", table, " ".join([legend, *lost]))


def _others(table: Columns, rest: Sequence[dict[str, int]], heads: Sequence[str]) -> None:
    if rest:
        sums: list[Cell] = [(formats.count(sum(kinds.get(head, 0) for kinds in rest)), "") for head in heads]
        table.row(f"{formats.plural(len(rest), 'further field')}", [*sums, *[("", "")] * len(PEOPLE)], indent=2)


def _lost(condition: StudyCondition) -> Iterator[str]:
    """Those who were not asked, or gave no answer, in a sentence."""
    failures: dict[str, int] = {}
    for study in condition.studies:
        for kind, count in study.failures.items():
            failures[kind] = failures.get(kind, 0) + count
    parts = [f"{formats.excerpt(kind, 60)} {formats.count(count)}" for kind, count in failures.items()]
    not_run = sum(study.not_run for study in condition.studies)
    parts += [f"not run {formats.count(not_run)}"] if not_run else []
    stopped = condition.participants.stopped
    parts += [f"stopped early {formats.count(stopped)}"] if stopped else []
    if parts:
        yield f"{formats.excerpt(condition.condition, 48)}: {', '.join(parts)}."


def _auxiliary(part: StudySummary, *, wide: bool) -> Section:
    digits = 3 if wide else 2
    table = Columns(["", "directional", "normalised", "strict", "slope", "r", "bias", "perfect"])
    for one in part.conditions:
        table.title(heading(one))
        whole = one.benchmark
        values = (
            whole.pas_directional,
            whole.normalized,
            whole.ecs_strict,
            one.caricature.slope,
            whole.concordance.pearson,
            whole.concordance.bias,
            one.noise_ceiling.value,
        )
        table.row("in all", [(formats.number(value, digits=digits), "dim") for value in values], indent=2)
        for told in _also(one, part, digits):
            table.title(Text(f"      {told}", style="dim"))
    legend = (
        "directional: PAS that counts opposite effects as different; normalised: on the scale from chance to a perfect "
        "copy; strict: ECS-Strict; slope: of the agent's effects on people's, above 1 is exaggeration; r, bias: the "
        "two parts of ECS; perfect: the ECS that a perfect copy would get, given the errors of both sides."
    )
    return Section("Auxiliary numbers", table, legend)


def _also(one: StudyCondition, part: StudySummary, digits: int) -> Iterator[str]:
    whole, new = one.benchmark, one.benchmark.ecs_new
    yield f"same direction as people in {whole.tests_agreeing} of {formats.plural(whole.tests_directed, 'test')}"
    if new is not None:
        yield f"ECS for new studies: {_span(new, digits) if new.low is not None else new.reason or formats.UNKNOWN}"
    yield f"ECS by {part.convention_other}: {formats.number(one.ecs_other.value, digits=digits)}"
