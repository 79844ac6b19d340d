"""Numbers of a run or condition that are known without error, so a threshold on one needs no
interval. Each is declared here: its name, its unit and how it is read. The help in `cli/options.py`
names it, too; a new unit also needs its format in `document/gated.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from karat.analysis.model import Account


class Known(NamedTuple):
    """A total; if `unknown` is true, it is at least the value."""

    value: float | None
    unknown: bool = False
    reason: str | None = None  # why there is no value, or only a lower bound


class Total(NamedTuple):
    """How a total is read from the account of a run or condition, and its unit."""

    unit: Literal["dollars", "share"]
    read: Callable[[Account], Known]


def _cost(account: Account) -> Known:
    """Dollars of agents and judges, failed attempts included."""
    agent, judge = account.cost.agent, account.cost.judge
    calls = agent.unknown + judge.unknown
    reason = f"{calls} calls have no known price" if calls else None
    return Known(agent.known + judge.known, unknown=calls > 0, reason=reason)


def _failed(account: Account) -> Known:
    """The share of planned trials without a score.

    A run that stopped because it was decided misses no trials.
    """
    wanted = account.ledger.planned - account.ledger.decided
    if not wanted:
        return Known(None, reason="nothing was planned")
    return Known((wanted - account.ledger.scored) / wanted)


TOTALS = {
    "cost_usd": Total("dollars", _cost),
    "failed": Total("share", _failed),
}
