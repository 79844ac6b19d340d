"""Numbers of a run or condition that are known without error, so a threshold on one needs no
interval. Each is declared here, and nowhere else: its name, unit and meaning, and how it is read.

After adding one, `make docs` and `pytest --accept` write it into the reference and the help; name
it in docs/how-to/gate-a-pull-request.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:  # the help of `karat gate` names totals without loading what they are read from
    from karat.analysis.model import Account


class Known(NamedTuple):
    """A total; if `unknown` is true, it is at least the value."""

    value: float | None
    unknown: bool = False
    reason: str | None = None  # why there is no value, or only a lower bound


class Total(NamedTuple):
    """How a total is read from the account of a run or condition, its unit, and what it is.

    Without a condition, a threshold on it is on all conditions together if `of_run`. Else each
    condition must meet it, as with metrics.
    """

    unit: Literal["dollars", "share", "seconds"]
    about: str
    read: Callable[[Account], Known]
    of_run: bool = True


def _cost(account: Account) -> Known:
    """Dollars of agents and judges, failed attempts included."""
    agent = account.cost.agent
    judge = account.cost.judge
    calls = agent.unknown + judge.unknown
    reason = None
    if calls:
        reason = f"{calls} calls have no known price"
    return Known(agent.known + judge.known, unknown=calls > 0, reason=reason)


def _failed(account: Account) -> Known:
    """The share of planned trials without a score.

    A run that stopped because it was decided misses no trials.
    """
    wanted = account.ledger.planned - account.ledger.decided
    if not wanted:
        return Known(None, reason="nothing was planned")
    return Known((wanted - account.ledger.scored) / wanted)


def _time(seconds: float | None) -> Known:
    return Known(seconds, reason="no answer has a time" if seconds is None else None)


TOTALS = {
    "cost_usd": Total("dollars", "dollars of the whole run", _cost),
    "failed": Total("share", "share of trials of the whole run", _failed),
    "latency_p50": Total(
        "seconds",
        "median seconds an answer",
        lambda account: _time(account.latency.median),
        of_run=False,
    ),
    "latency_p95": Total(
        "seconds",
        "95 % of answers take no longer",
        lambda account: _time(account.latency.p95),
        of_run=False,
    ),
}
