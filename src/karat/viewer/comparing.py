"""The pages that compare two runs, or two conditions of one: the questions that flipped first, and all of them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from karat import formats
from karat.analysis import Comparison
from karat.analysis.comparison import Flip, Pairing
from karat.analysis.format_metric import signed_estimate
from karat.analysis.model import MetricInfo
from karat.errors import OperatorError
from karat.kinds._views import address
from karat.viewer.open_run import OpenRun
from karat.viewer.queries import ORDERS, PAGE, Flips, Listed
from karat.viewer.samples_page import unit_of
from karat.viewer.summing import compared
from karat.viewer.web import Site, asked, whole_asked

__all__ = ["compare_page", "flips_page"]

_MOST_PAGES = 20_000


def compare_page(site: Site, request: Request) -> Response:
    """`run` once or twice; `a` and `b` name conditions."""
    found = _runs(site, request)
    if found is None:
        return site.problem(request, 400, "Nothing to compare", "Choose two runs in the list of runs.")
    first, second = found
    chosen = _chosen(request, first, second)
    if chosen is None:
        return _choice(site, request, first, second, "")
    a, b = chosen
    key = (first.name, first.stamp(), second.name, second.stamp(), a, b)
    try:
        told = site.compared.result(key, lambda: compared(first.run, second.run, a or None, b or None))
    except OperatorError as error:
        return _choice(site, request, first, second, str(error))
    return site.page(
        request,
        "compare.html.j2",
        title="Comparison",
        found=told,
        choice=_choices(first, second, a, b),
        pairings=[_pairing(one, told, (first, second), chosen) for one in told.pairings],
    )


def flips_page(site: Site, request: Request) -> Response:
    """All questions on which two conditions, `a` and `b` of one or two `run`s, differ on a `metric`."""
    runs = _runs(site, request)
    if runs is None:
        return site.problem(request, 400, "Nothing to compare", "Choose two runs in the list of runs.")
    first, second = runs
    a, b, metric = asked(request, "a"), asked(request, "b"), asked(request, "metric")
    order, number = asked(request, "order", among=ORDERS) or "worst", whole_asked(request, "page", most=_MOST_PAGES)
    with ExitStack() as stack:
        # In one order, whichever comes first in the address: two requests must not wait for each other.
        pages = {name: stack.enter_context(run.page()) for name, run in sorted({r.name: r for r in runs}.items())}
        sides = (pages[first.name].questions, pages[second.name].questions)
        column = next((each for each in sides[0].columns if each.key == metric), None)
        known = all(metric in side.values and name in side.conditions for side, name in zip(sides, (a, b), strict=True))
        if column is None or not known:
            message = "A run has no condition of this name, or no such metric."
            return site.problem(request, 404, "Nothing to compare", message)
        lower, unit = column.direction == "lower", unit_of(first, pages[first.name])
        found = Flips(sides, (a, b), metric=metric)
        rows = [_row(*row, column, first, second) for row in found.page(number, order=order, lower=lower)]
        counted, total = _counted(found.up, found.down, lower=lower, unit=unit), found.up + found.down
    names = (first.run.info.name, second.run.info.name)
    return site.page(
        request,
        "flips.html.j2",
        title="Comparison",
        metric=column,
        unit=unit,
        sides=[a, b] if first is second else [f"{name}: {each}" for name, each in zip(names, (a, b), strict=True)],
        counted=counted,
        rows=rows,
        query={"run": _named(first, second), "a": a, "b": b, "metric": metric},
        orders=[(name, told) for name, told in zip(ORDERS, _ORDERED, strict=True)],
        order=order,
        page=number,
        more=(number + 1) * PAGE < total,
    )


_ORDERED = ("lost most first", "gained most first", "moved most first")


def _runs(site: Site, request: Request) -> tuple[OpenRun, OpenRun] | None:
    names = list(dict.fromkeys(name for name in request.query_params.getlist("run")[:2] if len(name) <= 300))
    return (site.library.open(names[0]), site.library.open(names[-1])) if names else None


def _named(first: OpenRun, second: OpenRun) -> tuple[str, ...]:
    return tuple(one.name for one in dict.fromkeys((first, second)))


def _counted(up: int, down: int, *, lower: bool, unit: str) -> str:
    gained, lost = (down, up) if lower else (up, down)
    if gained + lost == 0:
        return f"No {unit} differs."
    return f"{formats.count(gained)} gained, {formats.count(lost)} lost"


def _row(
    row: int,
    other: int,
    question: Listed,
    means: tuple[float, float],
    column: MetricInfo,
    first: OpenRun,
    second: OpenRun,
) -> dict[str, Any]:
    write = formats.share if column.percent else formats.number  # means over repetitions, not one answer's value
    a, b = means
    return {
        "id": question.id,
        "question": question.question,
        "a": write(a),
        "b": write(b),
        "difference": formats.signed(b - a),
        "path": address("runs", first.name, "samples", row + 1),
        "other": None if first is second else address("runs", second.name, "samples", other + 1),
    }


def _chosen(request: Request, first: OpenRun, second: OpenRun) -> tuple[str, str] | None:
    a, b = asked(request, "a"), asked(request, "b")
    if first is second and not (a and b):
        conditions = first.run.info.plan.conditions
        return (conditions[0], conditions[1]) if len(conditions) == 2 else None
    return a, b


def _choice(site: Site, request: Request, first: OpenRun, second: OpenRun, problem: str) -> Response:
    choice = _choices(first, second, asked(request, "a"), asked(request, "b"))
    return site.page(request, "compare_choice.html.j2", title="Comparison", choice=choice, problem=problem)


def _choices(first: OpenRun, second: OpenRun, a: str, b: str) -> dict[str, Any]:
    return {
        "runs": [first.name, second.name],
        "names": [first.run.info.name, second.run.info.name],
        "same": first is second,
        "conditions": [list(one.run.info.plan.conditions) for one in (first, second)],
        "chosen": [a, b],
    }


def _pairing(
    one: Pairing, found: Comparison, sides: tuple[OpenRun, OpenRun], chosen: tuple[str, str]
) -> dict[str, Any]:
    info = next((metric for metric in found.metrics if metric.key == one.difference.metric), None)
    percent = info is not None and info.percent
    write = formats.share if percent else formats.number
    told = one.difference
    # Two runs of one condition name are told apart in their labels: their conditions are the ones that were chosen.
    names = [picked or one_.removesuffix(f" ({side.run.info.run})") for picked, one_, side in
             zip(chosen, (told.a, told.b), sides, strict=True)]  # fmt: skip
    query = {"run": _named(*sides), "a": names[0], "b": names[1], "metric": told.metric}
    return {
        "all": address("compare", "flips", **query) if one.better + one.worse > len(one.flips) else None,
        "flips": one.better + one.worse,
        "metric": told.metric,
        "a": told.a,
        "b": told.b,
        "offline": told.offline,
        "mean_a": write(one.mean_a),
        "mean_b": write(one.mean_b),
        "difference": signed_estimate(told.estimate, percent=percent),
        "p": formats.p_value(told.p_adjusted),
        "verdict": told.verdict,
        "reason": told.reason,
        "pairs": formats.plural(told.n_pairs, found.unit),
        "better": one.better,
        "worse": one.worse,
        "equal": one.equal,
        "gained": [_flip(flip, write, sides) for flip in one.flips if _gains(flip, info)],
        "lost": [_flip(flip, write, sides) for flip in one.flips if not _gains(flip, info)],
    }


def _gains(flip: Flip, info: MetricInfo | None) -> bool:
    return flip.difference < 0 if info is not None and info.direction == "lower" else flip.difference > 0


def _flip(flip: Flip, write: Any, sides: tuple[OpenRun, OpenRun]) -> dict[str, Any]:
    paths = [address("runs", side.name, "find", id=flip.sample) for side in dict.fromkeys(sides)]
    return {
        "sample": flip.sample,
        "a": write(flip.a),
        "b": write(flip.b),
        "difference": formats.signed(flip.difference),
        "paths": paths,
    }
