"""What is tried again, and when. Pure: the clock and the dice are handed in."""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import msgspec

from karat.errors import TrialFault, described
from karat.models import known_fault, less
from karat.records import LedgerClass, Reply, Usage, absurd_dollars, absurd_usage

__all__ = [
    "LONGEST_RETRY_AFTER",
    "AttemptError",
    "RetryPolicy",
    "classify",
    "delay",
    "is_foreign",
    "timed_out",
]


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


class AttemptError(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that failed, in the journal's words."""

    cls: LedgerClass
    kind: str
    message: str
    retriable: bool
    retry_after: float | None = None  # seconds that the other side asked for
    usage: Usage | None = None
    dollars: float | None = None
    passes: bool = True  # whether it may be gone at another question; False: most likely every trial fails so

    def fields(self) -> dict[str, Any]:
        """What the journal's rows for failed attempts and for failed trials have in common."""
        return {"cls": self.cls, "kind": self.kind, "message": self.message, "retriable": self.retriable}

    def having_spent(self, usage: Usage | None, dollars: float | None) -> AttemptError:
        """The same, with what the attempt had spent where the fault does not say it itself."""
        if self.usage is not None or self.dollars is not None or (usage is None and dollars is None):
            return self
        return msgspec.structs.replace(self, usage=usage, dollars=dollars)

    def besides(self, replies: Sequence[Reply]) -> AttemptError:
        """The same without what stands beside it as the cost of replies: nothing is counted twice."""
        if not replies or (self.usage is None and self.dollars is None):
            return self
        dollars, usage = self.dollars, self.usage
        for reply in replies:
            dollars = None if dollars is None else max(0.0, dollars - (reply.dollars or 0.0))
            usage = None if usage is None else less(usage, reply.usage)
        return msgspec.structs.replace(self, dollars=dollars, usage=usage)


_LASTING = {"unauthorized", "quota", "no_program", "redirect"}
_BROKEN = (ImportError, NameError, SyntaxError, NotImplementedError)

_KARAT = Path(__file__).resolve().parents[1]
_STANDARD_LIBRARY = str(Path(os.__file__).parent)

LONGEST_RETRY_AFTER = 3600.0
"""Seconds."""

_LONGEST_MESSAGE = 4000


def classify(
    error: BaseException, *, stage: Literal["agent", "score"], redact: Callable[[str], str] = str
) -> AttemptError:
    """Whose fault an exception is, and whether another attempt could help.

    What a plug-in raises as a TrialFault says it itself. Of other exceptions, those of
    pydantic-ai and those that carry an HTTP status are what `karat.models` takes them for,
    those of the network and the operating system are infrastructure; the rest is a crash of
    the agent, or of the scorer. Crashes are tried again, because most come from a service behind;
    not so where the code itself is broken (a name, an import, a wrong number of arguments).
    Secrets are masked before a long message is cut, so that no half of one is left.
    """
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        faults = [inner for inner in error.exceptions if isinstance(inner, (TrialFault, BaseExceptionGroup))]
        error = faults[0] if faults else error.exceptions[0]
    error = known_fault(error) or error
    if isinstance(error, TrialFault):
        return _declared(error, stage, redact)
    frames = traceback.extract_tb(error.__traceback__)
    # The line that raised it, so that its author can find it; the plug-in's own, not a library's.
    own = next((frame for frame in reversed(frames) if is_foreign(frame.filename)), None)
    where = f" ({Path(own.filename).name}, line {own.lineno}, in {own.name})" if own is not None else ""
    message = redact(f"{described(error)}{where}")[:_LONGEST_MESSAGE]
    # The plug-in could not even be called: its arguments are not those that it wants.
    at_the_call = isinstance(error, TypeError) and bool(frames) and frames[-1].filename.startswith(str(_KARAT))
    broken = isinstance(error, _BROKEN) or at_the_call
    if stage == "score":
        retriable = isinstance(error, OSError)
        return AttemptError(cls="judge", kind="crash", message=message, retriable=retriable, passes=not broken)
    if isinstance(error, (OSError, EOFError)):
        return AttemptError(cls="infrastructure", kind="os_error", message=message, retriable=True)
    return AttemptError(cls="agent", kind="crash", message=message, retriable=not broken, passes=not broken)


def _declared(error: TrialFault, stage: Literal["agent", "score"], redact: Callable[[str], str]) -> AttemptError:
    """What a fault says of itself. Plug-ins raise subclasses of their own: nothing is taken on trust."""
    cls: LedgerClass = error.ledger_class if error.ledger_class in get_args(LedgerClass) else "agent"  # type: ignore[assignment]  # a ClassVar[str]: errors.py lies below records.py
    if stage == "score" and cls in ("agent", "limit"):
        cls = "judge"
    kind, message = getattr(error, "kind", None), getattr(error, "message", None)
    usage, wait = getattr(error, "usage", None), getattr(error, "retry_after", None)
    dollars = getattr(error, "dollars", None)
    return AttemptError(
        cls=cls,
        kind=kind if isinstance(kind, str) and kind else "fault",
        message=redact(message if isinstance(message, str) else described(error))[:_LONGEST_MESSAGE],
        retriable=bool(getattr(error, "retriable", False)),
        retry_after=float(wait) if isinstance(wait, (int, float)) else None,
        usage=usage if isinstance(usage, Usage) and not absurd_usage(usage) else None,
        dollars=dollars if not absurd_dollars(dollars) else None,
        passes=kind not in _LASTING,
    )


def is_foreign(filename: str) -> bool:
    """Whether code of a plug-in stands there, rather than of karat or of a library."""
    return "site-packages" not in filename and not filename.startswith((str(_KARAT), _STANDARD_LIBRARY, "<"))


def timed_out(seconds: float, *, stage: Literal["agent", "score"], paid: AttemptError | None = None) -> AttemptError:
    """An attempt that took too long. `paid`: what it said, while it was cut off, that it had cost."""
    what = "answer" if stage == "agent" else "score"
    return AttemptError(
        cls="limit" if stage == "agent" else "judge",
        kind="timeout",
        message=f"no {what} within {seconds:g} s",
        retriable=False,
        dollars=paid.dollars if paid is not None else None,
        usage=paid.usage if paid is not None else None,
    )


def delay(policy: RetryPolicy, attempt: int, error: AttemptError, dice: random.Random) -> float | None:
    """Seconds until the next attempt; None when there is none.

    `attempt` counts from 1 and includes the first. Full jitter: uniform between 0 and
    initial × multiplier^(attempt−1), capped. What `Retry-After` asks for is the least; more
    than an hour is as good as a refusal.

    Brooker (2015), "Exponential backoff and jitter", AWS Architecture Blog.
    """
    if attempt >= policy.max_attempts:
        return None
    asked = error.retry_after
    if asked is not None and not 0 <= asked <= LONGEST_RETRY_AFTER:
        return None
    if not error.retriable and not (error.kind == "timeout" and policy.timeouts):
        return None
    # The exponent is bounded so that a large attempt number cannot overflow.
    growth = policy.backoff_multiplier ** min(attempt - 1, 64)
    wait = dice.uniform(0.0, min(policy.max_backoff_seconds, policy.initial_backoff_seconds * growth))
    return wait if asked is None else asked + wait
