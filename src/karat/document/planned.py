"""What a planned experiment can show, as a document."""

from __future__ import annotations

import math

from karat import formats
from karat.analysis.planning import MARGIN, Design, Plan
from karat.blocks import (
    Axis,
    Block,
    Chart,
    Column,
    Count,
    Curve,
    Duration,
    Money,
    Note,
    Number,
    Plane,
    Point,
    Row,
    Section,
    Share,
    Table,
    Text,
    columns,
)
from karat.document.run import Document


def plan_document(plan: Plan, *, title: str, percent: bool) -> Document:
    """Sizes of an experiment, and the differences between two conditions that each can show.

    `percent`: the metric is a share, so differences are in percentage points.
    """
    pilot = plan.pilot
    if pilot.questions:
        known = f"{formats.plural(pilot.questions, 'question')} × {pilot.repetitions}"
    else:
        known = "assumed"

    facts = [("Variation from", known)]
    if not math.isnan(pilot.between):
        between = _points(math.sqrt(pilot.between), percent)
        facts.append(("Differences between questions", f"sd {between}"))
        if sum(pilot.within) > 0:
            within = dict.fromkeys(pilot.within)
            listed = ", ".join(_points(math.sqrt(part), percent) for part in within)
            facts.append(("Answers to one question", f"sd {listed}"))

    if plan.pilot.seconds is not None:
        facts.append(("Time of an answer", formats.duration(pilot.seconds)))
    blocks: list[Block] = [plan_chart(plan, percent=percent)]
    if plan.needed:
        needed = Table(
            caption=f"Fewest questions that show {_points(plan.delta or 0.0, percent)}",
            columns=_columns(plan, percent),
            rows=tuple(_row(plan, design, percent=percent) for design in plan.needed),
            brief=True,
            slim=True,
        )
        blocks.insert(0, needed)

    if pilot.repetitions > 1 and not pilot.reason and not sum(pilot.within):
        text = (
            "Repeated answers to a question did not differ in this run, so one answer to each is "
            "enough."
        )
        blocks.append(Note(texts=(text,), brief=True))

    if pilot.reason:
        blocks.append(Note(texts=(f"{pilot.reason[0].upper()}{pilot.reason[1:]}.",), brief=True))

    lines: list[str] = []
    if pilot.questions:
        lines += [
            f"This run: {sentence(plan, design, percent=percent)}"
            for design in plan.designs
            if (design.questions, design.repetitions) == (pilot.questions, pilot.repetitions)
        ]
    elif plan.delta is None:
        lines += [
            sentence(plan, design, percent=percent)
            for design in (plan.designs[0], plan.designs[-1])
        ]

    if plan.delta is not None and not plan.needed:
        lines.append(f"To show {_points(plan.delta, percent)}: more questions than can be counted.")
    for design in plan.needed:
        if design.cheapest and plan.delta is not None:
            price = ""
            if design.cost:
                price = f", {formats.dollars(design.cost)}"
            lines.append(f"To show {_points(plan.delta, percent)}: {_size(design)}{price}.")

    return Document(
        name=title,
        verdicts=tuple(lines),
        facts=tuple(facts),
        sections=(Section(id="plan", title="Plan", blocks=tuple(blocks)),),
    )


def sentence(plan: Plan, design: Design, *, percent: bool = False) -> str:
    """What one experiment can show, in one line."""
    size = _size(design)
    if design.detectable is None:
        return f"{size} cannot show a difference: too few questions."
    return (
        f"{size} show a difference of {_points(design.detectable, percent)} or more in "
        f"{_percent(plan.power)} of runs."
    )


def _size(design: Design) -> str:
    return (
        f"{formats.plural(design.questions, 'question')} × "
        f"{formats.plural(design.repetitions, 'repetition')}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _points(value: float, percent: bool) -> str:
    if percent:
        return f"{formats.number(100 * value, digits=1)} points"
    return formats.number(value, digits=2)


def _row(plan: Plan, design: Design, *, percent: bool) -> Row:
    if design.detectable is None:
        detectable = None
    else:
        detectable = design.detectable * (100 if percent else 1)

    if plan.delta is None:
        power = []
    else:
        power = [Share(design.power)]

    return Row(
        name=formats.count(design.questions),
        cells=(
            Count(design.repetitions),
            Number(detectable, digits=1 if percent else 2),
            *power,
            Money(design.cost) if design.cost is not None else Text("not known"),
            Duration(design.seconds),
            Text(formats.chance(design.undecided)),
        ),
    )


def _columns(plan: Plan, percent: bool) -> tuple[Column, ...]:
    unit = " (points)" if percent else ""
    legend = (
        f"Detectable: the smallest difference that {_percent(plan.power)} of runs show at alpha "
        f"{plan.alpha:g}."
    )
    if plan.delta is None:
        asked = []
    else:
        asked = [f"power for {_points(plan.delta, percent)}"]

    return columns(
        "questions",
        "repetitions",
        Column(f"detectable{unit}", legend=legend),
        *asked,
        Column("cost", legend="Cost: of both conditions, judging included."),
        Column("time", rank=1, legend="Time: one answer after the other."),
        Column(
            "undecided gates",
            rank=2,
            legend=f"Undecided gates: the chance that `karat gate` is undecided on a mean "
            f"{MARGIN:g} standard deviations above its threshold.",
        ),
    )


def plan_chart(plan: Plan, *, percent: bool) -> Chart:
    """Detectable difference by questions, one line per number of repetitions."""
    scale = 100 if percent else 1
    times = sorted({design.repetitions for design in plan.designs})
    curves = tuple(
        Curve(
            points=tuple(
                Point(x=design.questions, y=design.detectable * scale)
                for design in plan.designs
                if design.repetitions == k and design.detectable is not None
            ),
            form="lines",
            series=at,
        )
        for at, k in enumerate(times)
    )
    if plan.delta is not None:
        zero = plan.delta * scale
    else:
        zero = None

    unit = ", percentage points" if percent else ""
    panel = Plane(
        x=Axis(title="questions", whole=True),
        y=Axis(title=f"detectable difference{unit}", start=0, zero=zero),
        curves=curves,
        height=220,
    )

    table = Table(
        caption="What a run of each size shows",
        columns=_columns(plan, percent),
        rows=tuple(_row(plan, design, percent=percent) for design in plan.designs),
        brief=True,
        slim=True,
    )

    return Chart(
        name="plan",
        title=f"Smallest difference that {_percent(plan.power)} of runs show",
        description=(
            "Lines fall as the number of questions grows; one line for each number of repetitions."
        ),
        panels=(panel,),
        table=table,
        legend=tuple(formats.plural(k, "repetition") for k in times),
        ordered=True,
    )
