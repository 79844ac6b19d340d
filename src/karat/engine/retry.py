"""What is tried again, and when. Pure: the clock and the dice are handed in."""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from karat.errors import TrialFault
from karat.records import LedgerClass, Usage

__all__ = ["LONGEST_RETRY_AFTER", "Fallen", "RetryPolicy", "classify", "delay", "timed_out"]


class RetryPolicy(Protocol):
    """The experiment file's `execution.retry`."""

    @property
    def max_attempts(self) -> int: ...
    @property
    def initial_backoff_seconds(self) -> float: ...
    @property
    def backoff_multiplier(self) -> float: ...
    @property
    def max_backoff_seconds(self) -> float: ...
    @property
    def timeouts(self) -> bool: ...


class Fallen(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that failed, in the journal's words."""

    cls: LedgerClass
    kind: str
    message: str
    retriable: bool
    retry_after: float | None = None  # seconds that the other side asked for
    usage: Usage | None = None
    dollars: float | None = None


_KARAT = Path(__file__).resolve().parents[1]
_STANDARD_LIBRARY = str(Path(os.__file__).parent)

LONGEST_RETRY_AFTER = 3600.0
"""Seconds."""

_LONGEST_MESSAGE = 4000


def classify(error: BaseException, *, stage: Literal["agent", "score"], redact: Callable[[str], str] = str) -> Fallen:
    """Whose fault an exception is, and whether another attempt could help.

    What a plug-in raises as a TrialFault says it itself. Of other exceptions, those that
    carry an HTTP status and those of the network and the operating system are
    infrastructure; the rest is a crash of the agent, or of the scorer. Crashes are tried
    again: most come from a service behind. Secrets are masked before a long message is
    cut, so that no half of one is left.
    """
    error = _innermost(error)
    if isinstance(error, TrialFault):
        cls: LedgerClass = error.ledger_class  # type: ignore[assignment]  # a ClassVar[str]: errors.py lies below records.py
        if stage == "score" and cls == "agent":
            cls = "judge"
        usage = error.usage if isinstance(error.usage, Usage) else None
        return Fallen(
            cls=cls,
            kind=error.kind,
            message=redact(error.message)[:_LONGEST_MESSAGE],
            retriable=error.retriable,
            retry_after=error.retry_after,
            usage=usage,
            dollars=error.dollars,
        )
    message = redact(f"{type(error).__name__}: {error}{_where(error)}")[:_LONGEST_MESSAGE]
    if (refused := _from_http(error, message)) is not None:
        return refused
    if stage == "score":
        return Fallen(cls="judge", kind="crash", message=message, retriable=isinstance(error, OSError))
    if isinstance(error, (OSError, EOFError)):
        return Fallen(cls="infrastructure", kind="os_error", message=message, retriable=True)
    return Fallen(cls="agent", kind="crash", message=message, retriable=True)


def _where(error: BaseException) -> str:
    """The line that raised it, so that whoever wrote the agent can find it; the plug-in's own, not a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and not _ours(frame.filename)]
    if not own:
        return ""
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno}, in {own[-1].name})"


def _ours(filename: str) -> bool:
    return filename.startswith((str(_KARAT), _STANDARD_LIBRARY, "<"))


def _from_http(error: BaseException, message: str) -> Fallen | None:
    """What a provider's SDK raised: they all carry the status, most the response with its headers."""
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    if not isinstance(status, int) or status < 400:
        return None
    if status in (429, 529):
        return Fallen(
            cls="infrastructure", kind="rate_limit", message=message, retriable=True, retry_after=_retry_after(response)
        )
    if status >= 500 or status == 408:
        return Fallen(cls="infrastructure", kind="server_error", message=message, retriable=True)
    kind = "unauthorized" if status in (401, 403) else "refused"
    return Fallen(cls="infrastructure", kind=kind, message=message, retriable=False)


def _retry_after(response: object) -> float | None:
    """Seconds; the header's other form, a date, is rare among model providers and is passed over."""
    headers = getattr(response, "headers", None)
    try:
        return max(0.0, float(headers["retry-after"])) if headers is not None else None
    except (KeyError, TypeError, ValueError):
        return None


def timed_out(seconds: float, *, stage: Literal["agent", "score"], paid: Fallen | None = None) -> Fallen:
    """An attempt that took too long. `paid`: what it said, while it was cut off, that it had cost."""
    what = "answer" if stage == "agent" else "score"
    return Fallen(
        cls="limit" if stage == "agent" else "judge",
        kind="timeout",
        message=f"no {what} within {seconds:g} s",
        retriable=False,
        dollars=paid.dollars if paid is not None else None,
        usage=paid.usage if paid is not None else None,
    )


def delay(policy: RetryPolicy, attempt: int, fallen: Fallen, dice: random.Random) -> float | None:
    """Seconds until the next attempt; None when there is none.

    `attempt` counts from 1 and includes the first. Full jitter: uniform between 0 and
    initial × multiplier^(attempt−1), capped. What `Retry-After` asks for is the least; more
    than an hour is as good as a refusal.

    Brooker (2015), "Exponential backoff and jitter", AWS Architecture Blog.
    """
    if attempt >= policy.max_attempts:
        return None
    asked = fallen.retry_after
    if asked is not None and not 0 <= asked <= LONGEST_RETRY_AFTER:
        return None
    if not fallen.retriable and not (fallen.kind == "timeout" and policy.timeouts):
        return None
    # The exponent is bounded so that a large attempt number cannot overflow.
    growth = policy.backoff_multiplier ** min(attempt - 1, 64)
    wait = dice.uniform(0.0, min(policy.max_backoff_seconds, policy.initial_backoff_seconds * growth))
    return wait if asked is None else asked + wait


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        faults = [one for one in error.exceptions if isinstance(one, (TrialFault, BaseExceptionGroup))]
        error = faults[0] if faults else error.exceptions[0]
    return error
