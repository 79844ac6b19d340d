"""The floor in the terminal's tables: what random answers get, beside the conditions."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from karat import formats
from karat.analysis.numbers import Estimate
from karat.document.terminal_layout import Cell, Columns, Section
from karat.document.terminal_study_words import took_part
from karat.kinds.study.analysis.model import FloorScore, StudyFloor, StudySummary

__all__ = ["ABOVE", "FLOOR_ROW", "above", "floor_heading", "floor_legend", "floor_scores", "shown_floor"]

FLOOR_ROW = "floor (random answers)"
ABOVE = "Above the floor"


def shown_floor(part: StudySummary) -> StudyFloor | None:
    """The floor; None where it has no score at all."""
    found = part.floor
    return None if found is None or found.benchmark.pas.value is None else found


def floor_heading(found: StudyFloor) -> Text:
    """A line over all columns, as a condition has one."""
    drawn = formats.plural(found.repetitions, "repetition")
    return Text(FLOOR_ROW, style="bold dim").append(f": a reference, {drawn}; nobody was asked", style="not bold dim")


def floor_scores(one: FloorScore, digits: int) -> list[Cell]:
    """PAS and ECS, each with its interval."""
    cells: list[Cell] = []
    for found in (one.pas, one.ecs):
        span = formats.interval(found.low, found.high, digits=digits) or formats.UNKNOWN
        cells += [(formats.number(found.value, digits=digits), "dim"), (span, "dim")]
    return cells


def floor_legend(part: StudySummary) -> str:
    """What the row is; or why there is none."""
    found = part.floor
    if found is None:
        return ""
    if found.benchmark.pas.value is None:
        return f"No {FLOOR_ROW}: {formats.clean(found.benchmark.pas.reason or 'not known')}."
    drawn = formats.plural(found.repetitions, "repetition")
    each = "" if found.benchmark.pas_sd is None else f", ± {formats.number(found.benchmark.pas_sd, digits=3)} PAS each"
    row = f"{FLOOR_ROW}: a reference, the same participants and questions answered by chance ({drawn}{each})."
    return row + (" one answer an arm: the same random answer from all of an arm." if part.floor_one_answer else "")


def above(part: StudySummary, *, wide: bool) -> Section | None:
    """How far each condition is above the floors; None without one."""
    found = shown_floor(part)
    if found is None:
        return None
    second = part.floor_one_answer
    level, digits = formats.level(part.level), 3 if wide else 2
    table = Columns(["", "PAS", f"{level} interval", "ECS", "interval", "tests"])
    for at, one in enumerate(found.differences):
        beside = [("floor", one), *([] if second is None else [("one answer", second.differences[at])])]
        for name, more in beside:
            cells = [cell for each in (more.pas, more.ecs) for cell in _difference(each, digits)]
            table.row(f"{one.condition} − {name}", [*cells, (formats.count(more.pas.n), "")])
        condition = part.of(one.condition)
        if condition is not None:
            table.title(Text(f"    {took_part(condition.participants)}", style="dim"))
    legend = (
        "over the tests that both have a score of; * leaves out 0: more than the mean of that floor, or less. An agent "
        "counts as above chance only if it is above both floors, also by direction, and no finding is opposite."
    )
    return Section(ABOVE, table, " ".join([legend, *_without(found)]))


def _difference(found: Estimate, digits: int) -> Iterator[Cell]:
    span = formats.signed_interval(found.low, found.high, digits=digits) or formats.UNKNOWN
    shown = found.low is not None and found.high is not None and (found.low > 0 or found.high < 0)
    yield formats.signed(found.value, digits=digits), ""
    yield f"{span}{'*' if shown else ''}", ""


def _without(found: StudyFloor) -> Iterator[str]:
    if found.without:
        yield f"Without a floor: {formats.excerpt(', '.join(found.without), 120)}."
