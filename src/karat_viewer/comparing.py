"""The pages that compare two runs, or two conditions of one: the questions that changed most, and
all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress

from starlette.requests import Request
from starlette.responses import Response

from karat import formats, kinds
from karat.analysis import Comparison
from karat.analysis.comparison import Pairing
from karat.analysis.format_metric import measured
from karat.analysis.model import Difference
from karat.blocks import (
    Block,
    Column,
    Count,
    Number,
    PValue,
    Row,
    Scale,
    Section,
    Share,
    Table,
    Text,
    columns,
    estimate,
)
from karat.document.scores import SAME_AGAIN, same_again
from karat.errors import OperatorError
from karat.index.cache import is_large
from karat.kind_views import address
from karat_viewer.jobs import NotYet
from karat_viewer.open_run import OpenRun
from karat_viewer.queries import ORDERS, PAGE, Flips
from karat_viewer.samples_page import unit_of
from karat_viewer.summing import compared
from karat_viewer.web import Site, asked, whole_asked


def compare_page(site: Site, request: Request) -> Response:
    """The comparison. Parameters: `run` once or twice; `a` and `b` name conditions."""
    runs = _runs(site, request)
    if runs is None:
        return site.problem(
            request,
            400,
            "Nothing to compare",
            "Select two runs in the list of runs.",
        )

    first, second = runs
    a, b = asked(request, "a"), asked(request, "b")
    conditions = first.run.info.plan.conditions
    if first is second and not (a and b):
        if len(conditions) < 2:
            return _choice(site, request, first, second, "")
        a, b = conditions[:2]

    key = (first.name, first.stamp(), second.name, second.stamp(), a, b)
    try:
        comparison = site.compared.result(
            key, lambda: compared(first.run, second.run, a or None, b or None)
        )
    except OperatorError as error:
        return _choice(site, request, first, second, str(error))

    # Questions by id; empty for a large run that is not indexed yet
    texts: dict[str, str] = {}
    wanted = {flip.sample: None for pairing in comparison.pairings for flip in pairing.flips}
    for run in dict.fromkeys(runs):
        if is_large(run.run) and not run.index.progress().finished:
            continue
        with suppress(NotYet), run.page() as page:
            rows = page.questions.index.samples
            for sample in wanted:
                if sample in rows and sample not in texts:
                    texts[sample] = page.questions.question(rows[sample]).question

    return site.page(
        request,
        "compare.html.j2",
        title="Comparison",
        found=comparison,
        result=_result(comparison),
        choice=_choices(first, second, a, b),
        sections=[
            _section(at, pairing, comparison, runs, (a, b), texts)
            for at, pairing in enumerate(comparison.pairings, 1)
        ],
    )


def _result(comparison: Comparison) -> Table:
    """One line per pairing: means, difference with its interval, verdict."""
    shares = [pairing for pairing in comparison.pairings if comparison.percent(pairing)]
    reach = {
        True: _reach(shares),
        False: _reach([other for other in comparison.pairings if other not in shares]),
    }
    rows = []
    for pairing in comparison.pairings:
        difference = pairing.difference
        percent = comparison.percent(pairing)
        write = Share if percent else Number
        verdict = Text(
            difference.verdict,
            below=difference.reason
            or f"{pairing.better} better, {pairing.worse} worse, {pairing.equal} equal",
            tone="good" if difference.winner is not None else "",
        )
        offline = " · offline" if difference.offline else ""
        rows.append(
            Row(
                name=difference.metric,
                note=f"{_conditions(difference)}{offline}",
                cells=(
                    estimate(
                        difference.estimate,
                        percent=percent,
                        signed=True,
                        scale=Scale(-reach[percent], reach[percent], 0.0),
                    ),
                    verdict,
                    write(pairing.mean_a),
                    write(pairing.mean_b),
                    PValue(difference.p_adjusted),
                    Count(difference.n_pairs),
                    same_again(difference.again),
                ),
            )
        )

    level = f"difference, {formats.level(comparison.level)} interval"
    unit = comparison.unit
    again = Column("same again", legend=SAME_AGAIN.format(unit=unit))
    heads = ("metric", level, "verdict", "first", "second", comparison.p_label, f"{unit}s", again)
    return Table(
        caption="Differences", columns=columns(*heads, text=("verdict",)), rows=tuple(rows)
    )


def _reach(pairings: Sequence[Pairing]) -> float:
    """How far the scale of differences reaches on either side of 0."""
    estimates = [pairing.difference.estimate for pairing in pairings]
    ends = []
    for effect in estimates:
        for end in (effect.value, effect.low, effect.high):
            if end is not None:
                ends.append(abs(end))

    return max([end for end in ends if math.isfinite(end)], default=0.0) or 1.0


def _section(
    at: int,
    pairing: Pairing,
    comparison: Comparison,
    sides: tuple[OpenRun, OpenRun],
    chosen: tuple[str, str],
    texts: Mapping[str, str],
) -> tuple[Section, str, str]:
    """The questions that gained and lost most on one metric; the link to all of them, and its
    text.
    """
    difference = pairing.difference
    percent = comparison.percent(pairing)
    info = next((metric for metric in comparison.metrics if metric.key == difference.metric), None)
    better = -1 if info is not None and info.direction == "lower" else 1
    gained = [flip for flip in pairing.flips if better * flip.difference > 0]
    lost = [flip for flip in pairing.flips if better * flip.difference <= 0]
    blocks: list[Block] = []
    for title, flips in (("Gained most", gained), ("Lost most", lost)):
        rows = []
        for flip in flips:
            links = []
            for side in dict.fromkeys(sides):
                links.append(address("runs", side.name, "find", id=flip.sample))

            text = texts.get(flip.sample, "")
            rows.append(_row(text, flip.sample, flip.a, flip.b, percent, links))

        if rows:
            blocks.append(
                Table(
                    caption=f"{title}: {difference.metric}",
                    columns=_columns(comparison.unit, sides),
                    rows=tuple(rows),
                    slim=True,
                )
            )

    # In two runs, labels tell apart conditions of the same name: these are the chosen ones.
    names = [
        picked or name.removesuffix(f" ({side.run.info.run})")
        for picked, name, side in zip(chosen, (difference.a, difference.b), sides, strict=True)
    ]
    flipped = pairing.better + pairing.worse
    path = ""
    if flipped > len(pairing.flips):
        query = {"run": _named(*sides), "a": names[0], "b": names[1], "metric": difference.metric}
        path = address("compare", "flips", **query)

    counts = f"{formats.count(pairing.better)} better, {formats.count(pairing.worse)} worse"
    section = Section(
        id=f"pairing-{at}",
        title=formats.clean(f"{difference.metric}: {_conditions(difference)}"),
        lead=f"{counts}, {formats.count(pairing.equal)} equal",
        blocks=tuple(blocks),
    )
    return section, path, f"All {formats.plural(flipped, comparison.unit)} that differ"


def flips_page(site: Site, request: Request) -> Response:
    """All questions for which conditions `a` and `b` of one or two `run`s differ on a `metric`."""
    runs = _runs(site, request)
    if runs is None:
        return site.problem(
            request,
            400,
            "Nothing to compare",
            "Select two runs in the list of runs.",
        )

    first, second = runs
    a = asked(request, "a")
    b = asked(request, "b")
    metric = asked(request, "metric")
    order = asked(request, "order", among=ORDERS) or "worst"
    number = whole_asked(request, "page")
    with ExitStack() as stack:
        # Always in the same order, so that two requests cannot wait for each other.
        pages = {}
        for name, run in sorted({r.name: r for r in runs}.items()):
            pages[name] = stack.enter_context(run.page())
        sides = (pages[first.name].questions, pages[second.name].questions)
        column = next(
            (candidate for candidate in sides[0].columns if candidate.key == metric), None
        )
        known = all(
            metric in side.values and name in side.conditions
            for side, name in zip(sides, (a, b), strict=True)
        )
        if column is None or not known:
            message = "One of the runs has no such condition or metric."
            return site.problem(request, 404, "Nothing to compare", message)

        lower = column.direction == "lower"
        unit = unit_of(first, pages[first.name])
        flips = Flips(sides, (a, b), metric=metric)
        rows = []
        for row, other, question, means in flips.page(number, order=order, lower=lower):
            links = [address("runs", first.name, "samples", row + 1)]
            if second is not first:
                links.append(address("runs", second.name, "samples", other + 1))

            rows.append(_row(question.question, question.id, *means, column.percent, links))

        total = flips.up + flips.down
        if lower:
            gained = flips.down
            lost = flips.up
        else:
            gained = flips.up
            lost = flips.down

        if total:
            counted = f"{formats.count(gained)} gained, {formats.count(lost)} lost"
        else:
            counted = f"No {unit} differs."

    names = (first.run.info.name, second.run.info.name)
    return site.page(
        request,
        "flips.html.j2",
        title="Comparison",
        metric=column,
        unit=unit,
        by_turn=kinds.of(first.run.info.kind).by_turn,
        sides=[a, b]
        if first is second
        else [f"{name}: {side}" for name, side in zip(names, (a, b), strict=True)],
        counted=counted,
        table=Table(
            caption=f"{unit.capitalize()}s that differ",
            rows=tuple(rows),
            columns=_columns(unit, runs),
        ),
        query={"run": _named(first, second), "a": a, "b": b, "metric": metric},
        orders=list(zip(ORDERS, _ORDERED, strict=True)),
        order=order,
        page=number,
        more=(number + 1) * PAGE < total,
    )


_ORDERED = ("lost most first", "gained most first", "moved most first")


def _runs(site: Site, request: Request) -> tuple[OpenRun, OpenRun] | None:
    names = list(
        dict.fromkeys(name for name in request.query_params.getlist("run")[:2] if len(name) <= 300)
    )
    if names:
        return (site.library.open(names[0]), site.library.open(names[-1]))
    return None


def _named(first: OpenRun, second: OpenRun) -> tuple[str, ...]:
    return tuple(run.name for run in dict.fromkeys((first, second)))


def _row(
    question: str,
    sample: str,
    a: float,
    b: float,
    percent: bool,
    links: Sequence[str],
) -> Row:
    """A question whose means differ, with its page in each run."""
    # for means over repetitions, not single answers
    before, after = (measured(mean, percent=percent) for mean in (a, b))
    first, *other = links
    scale, digits = (100, 1) if percent else (1, 2)
    change = Number(scale * (b - a), digits=digits, signed=True, below=f"{before} → {after}")
    return Row(
        name=question or sample,
        note=sample if question else "",
        link=first,
        cells=(change, *(Text("in the second run", link=path) for path in other)),
    )


def _columns(unit: str, runs: tuple[OpenRun, OpenRun]) -> tuple[Column, ...]:
    heads = [unit, "difference"]
    if runs[0] is not runs[1]:
        heads.append("other run")

    return columns(*heads, text=("other run",))


def _conditions(difference: Difference) -> str:
    if difference.a == difference.b:
        return difference.a
    return f"{difference.a} → {difference.b}"


def _choice(
    site: Site,
    request: Request,
    first: OpenRun,
    second: OpenRun,
    problem: str,
) -> Response:
    choice = _choices(first, second, asked(request, "a"), asked(request, "b"))
    return site.page(
        request,
        "compare_choice.html.j2",
        title="Comparison",
        choice=choice,
        problem=problem,
    )


def _choices(first: OpenRun, second: OpenRun, a: str, b: str) -> dict[str, object]:
    return {
        "runs": [first.name, second.name],
        "names": [first.run.info.name, second.run.info.name],
        "same": first is second,
        "conditions": [list(opened.run.info.plan.conditions) for opened in (first, second)],
        "chosen": [a, b],
    }
