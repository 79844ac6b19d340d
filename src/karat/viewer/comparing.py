"""The page that compares two runs, or two conditions of one: the questions that flipped first."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from karat import formats
from karat.charts.written import signed_estimate
from karat.errors import OperatorError
from karat.summary import Comparison
from karat.summary.comparison import Flip, Pairing
from karat.summary.model import MetricInfo
from karat.viewer.opened import Opened
from karat.viewer.summing import compared
from karat.viewer.web import Site, address, asked

__all__ = ["compare_page"]


def compare_page(site: Site, request: Request) -> Response:
    """`run` once or twice; `a` and `b` name conditions."""
    names = list(dict.fromkeys(name for name in request.query_params.getlist("run")[:2] if len(name) <= 300))
    if not names:
        return site.problem(request, 400, "Nothing to compare", "Choose two runs in the list of runs.")
    first = site.library.open(names[0])
    second = site.library.open(names[-1])
    chosen = _chosen(request, first, second)
    if chosen is None:
        return _choice(site, request, first, second, "")
    a, b = chosen
    key = (first.name, first.stamp(), second.name, second.stamp(), a, b)
    try:
        found = site.compared.result(key, lambda: compared(first.run, second.run, a or None, b or None))
    except OperatorError as error:
        return _choice(site, request, first, second, str(error))
    return site.page(
        request,
        "compare.html.j2",
        title="Comparison",
        found=found,
        choice=_choices(first, second, a, b),
        pairings=[_pairing(one, found, (first, second)) for one in found.pairings],
    )


def _chosen(request: Request, first: Opened, second: Opened) -> tuple[str, str] | None:
    a, b = asked(request, "a"), asked(request, "b")
    if first is second and not (a and b):
        conditions = first.run.info.plan.conditions
        return (conditions[0], conditions[1]) if len(conditions) == 2 else None
    return a, b


def _choice(site: Site, request: Request, first: Opened, second: Opened, problem: str) -> Response:
    choice = _choices(first, second, asked(request, "a"), asked(request, "b"))
    return site.page(request, "compare_choice.html.j2", title="Comparison", choice=choice, problem=problem)


def _choices(first: Opened, second: Opened, a: str, b: str) -> dict[str, Any]:
    return {
        "runs": [first.name, second.name],
        "names": [first.run.info.name, second.run.info.name],
        "same": first is second,
        "conditions": [list(one.run.info.plan.conditions) for one in (first, second)],
        "chosen": [a, b],
    }


def _pairing(one: Pairing, found: Comparison, sides: tuple[Opened, Opened]) -> dict[str, Any]:
    info = next((metric for metric in found.metrics if metric.key == one.difference.metric), None)
    percent = info is not None and info.kind == "share"
    write = formats.share if percent else formats.number
    told = one.difference
    return {
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


def _flip(flip: Flip, write: Any, sides: tuple[Opened, Opened]) -> dict[str, Any]:
    paths = [address("runs", side.name, "find", id=flip.sample) for side in dict.fromkeys(sides)]
    return {
        "sample": flip.sample,
        "a": write(flip.a),
        "b": write(flip.b),
        "difference": formats.signed(flip.difference),
        "paths": paths,
    }
