"""What is retried, and when. Pure: the clock and the random generator are arguments."""

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
from karat.models.pacing import LONGEST_RETRY_AFTER
from karat.records import LedgerClass, Reply, Usage, absurd_dollars, absurd_usage


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
    """A failed attempt, in the journal's terms."""

    cls: LedgerClass
    kind: str
    message: str
    retriable: bool
    retry_after: float | None = None  # seconds requested by the other side
    usage: Usage | None = None
    dollars: float | None = None
    # whether another question may succeed; False: probably every trial fails this way
    passes: bool = True

    def fields(self) -> dict[str, Any]:
        """The common fields of the journal's rows for failed attempts and failed trials."""
        return {
            "cls": self.cls,
            "kind": self.kind,
            "message": self.message,
            "retriable": self.retriable,
        }

    def having_spent(self, usage: Usage | None, dollars: float | None) -> AttemptError:
        """The same, with the attempt's cost if the fault does not include it."""
        if (
            self.usage is not None
            or self.dollars is not None
            or (usage is None and dollars is None)
        ):
            return self

        return msgspec.structs.replace(self, usage=usage, dollars=dollars)

    def besides(self, replies: Sequence[Reply]) -> AttemptError:
        """The same without the cost already counted in replies: nothing is counted twice."""
        if not replies or (self.usage is None and self.dollars is None):
            return self
        dollars = self.dollars
        usage = self.usage
        for reply in replies:
            if dollars is not None:
                dollars = max(0.0, dollars - (reply.dollars or 0.0))
            if usage is not None:
                usage = less(usage, reply.usage)

        return msgspec.structs.replace(self, dollars=dollars, usage=usage)


_LASTING = {"unauthorized", "quota", "no_program", "redirect"}
_BROKEN = (ImportError, NameError, SyntaxError, NotImplementedError)

_KARAT = Path(__file__).resolve().parents[1]
_STANDARD_LIBRARY = str(Path(os.__file__).parent)

_LONGEST_MESSAGE = 4000


def classify(
    error: BaseException, *, stage: Literal["agent", "score"], redact: Callable[[str], str] = str
) -> AttemptError:
    """Whose fault an exception is, and whether another attempt could help.

    A TrialFault raised by a plug-in is explicit. Other exceptions: those of
    pydantic-ai and those with an HTTP status are classified by `karat.models`,
    those of the network and the operating system are infrastructure; the rest is a crash of
    the agent, or of the scorer. Crashes are retried, because most come from a backing service,
    unless the code itself is broken (a name, an import, a wrong number of arguments).
    Secrets are masked before a long message is cut, so no half of one is left.
    """
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        faults = []
        for inner in error.exceptions:
            if isinstance(inner, (TrialFault, BaseExceptionGroup)):
                faults.append(inner)

        if faults:
            error = faults[0]
        else:
            error = error.exceptions[0]

    error = known_fault(error) or error
    if isinstance(error, TrialFault):
        return _declared(error, stage, redact)
    if isinstance(error.__cause__, SystemExit):  # on a thread of its own
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    # The line that raised it, so its author can find it: in the plug-in, not in a library.
    own = next((frame for frame in reversed(frames) if is_foreign(frame.filename)), None)
    if own is not None:
        where = f" ({Path(own.filename).name}, line {own.lineno}, in {own.name})"
    else:
        where = ""

    if isinstance(error, SystemExit):
        said = f"SystemExit: it called sys.exit({'' if error.code is None else repr(error.code)})"
    else:
        said = described(error)

    message = redact(f"{said}{where}")[:_LONGEST_MESSAGE]
    # The plug-in could not even be called: its parameters do not match.
    at_the_call = (
        isinstance(error, TypeError)
        and bool(frames)
        and frames[-1].filename.startswith(str(_KARAT))
    )
    broken = isinstance(error, _BROKEN) or at_the_call
    if stage == "score":
        retriable = isinstance(error, OSError)
        return AttemptError(
            cls="judge", kind="crash", message=message, retriable=retriable, passes=not broken
        )

    if isinstance(error, (OSError, EOFError)):
        return AttemptError(cls="infrastructure", kind="os_error", message=message, retriable=True)
    return AttemptError(
        cls="agent", kind="crash", message=message, retriable=not broken, passes=not broken
    )


def _declared(
    error: TrialFault, stage: Literal["agent", "score"], redact: Callable[[str], str]
) -> AttemptError:
    """A fault's own classification. Plug-ins raise their own subclasses: nothing is trusted."""
    cls: LedgerClass = "agent"
    if error.ledger_class in get_args(LedgerClass):
        cls = error.ledger_class  # type: ignore[assignment]  # a ClassVar[str]: errors.py lies below
    if stage == "score" and cls in ("agent", "limit"):
        cls = "judge"
    kind = getattr(error, "kind", None)
    message = getattr(error, "message", None)
    usage = getattr(error, "usage", None)
    wait = getattr(error, "retry_after", None)
    dollars = getattr(error, "dollars", None)
    if isinstance(wait, (int, float)):
        retry_after = float(wait)
    else:
        retry_after = None

    return AttemptError(
        cls=cls,
        kind=kind if isinstance(kind, str) and kind else "fault",
        message=redact(message if isinstance(message, str) else described(error))[
            :_LONGEST_MESSAGE
        ],
        retriable=bool(getattr(error, "retriable", False)),
        retry_after=retry_after,
        usage=usage if isinstance(usage, Usage) and not absurd_usage(usage) else None,
        dollars=dollars if not absurd_dollars(dollars) else None,
        passes=kind not in _LASTING and bool(getattr(error, "passes", True)),
    )


def is_foreign(filename: str) -> bool:
    """Whether the file is a plug-in's, rather than karat's or a library's."""
    return "site-packages" not in filename and not filename.startswith(
        (str(_KARAT), _STANDARD_LIBRARY, "<")
    )


def timed_out(
    seconds: float, *, stage: Literal["agent", "score"], paid: AttemptError | None = None
) -> AttemptError:
    """An attempt that timed out. `paid`: the cost it reported while it was cut off."""
    missing = "answer" if stage == "agent" else "score"
    return AttemptError(
        cls="limit" if stage == "agent" else "judge",
        kind="timeout",
        message=f"no {missing} within {seconds:g} s",
        retriable=False,
        dollars=paid.dollars if paid is not None else None,
        usage=paid.usage if paid is not None else None,
    )


def bounded(policy: RetryPolicy, error: AttemptError) -> AttemptError:
    """The same error, and no other attempt if `Retry-After` asks for a longer wait than 10 minutes
    or the policy's.
    """
    asked = error.retry_after
    longest = max(LONGEST_RETRY_AFTER, policy.max_backoff_seconds)
    if asked is None or 0 <= asked <= longest:
        return error
    why = (
        f"it asks to wait {asked:g} s, and karat waits at most {longest:g} s "
        f"(execution.retry.max_backoff_seconds)"
    )
    message = f"{error.message}; {why}"
    return msgspec.structs.replace(
        error, message=message, retriable=False, retry_after=None, passes=False
    )


def delay(
    policy: RetryPolicy, attempt: int, error: AttemptError, dice: random.Random
) -> float | None:
    """Seconds until the next attempt; None if there is none.

    `attempt` counts from 1 and includes the first. Full jitter: uniform between 0 and
    initial × multiplier^(attempt−1), capped. `Retry-After` is the minimum.

    Brooker (2015), "Exponential backoff and jitter", AWS Architecture Blog.
    """
    if attempt >= policy.max_attempts:
        return None
    asked = error.retry_after
    if not error.retriable and not (error.kind == "timeout" and policy.timeouts):
        return None
    # The exponent is bounded so a large attempt number cannot overflow.
    growth = policy.backoff_multiplier ** min(attempt - 1, 64)
    wait = dice.uniform(
        0.0, min(policy.max_backoff_seconds, policy.initial_backoff_seconds * growth)
    )
    if asked is None:
        return wait
    return asked + wait
