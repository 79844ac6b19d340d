"""The attempt of a trial that the current task works for: set by the trial, read by what records and replays.

A context variable, because the agent between a trial and an MCP session need not know it: sessions are opened in the
task of the attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import ContextVar, Token
from types import TracebackType

from karat.errors import InfrastructureFault, OperatorError, TrialFault
from karat.records import Elicited

__all__ = ["WHOLE_RUN", "Attempt", "current"]

WHOLE_RUN = "run"
"""The name of what belongs to no trial: the preflight."""


class Attempt:
    """`with Attempt("4f0e…-1"):` around one attempt of a trial.

    Leaving it releases what was lent to the attempt, and raises a fault that karat itself met
    if the agent did not pass it on.
    """

    def __init__(self, name: str, *, elicit: Sequence[Elicited] = ()) -> None:
        self.name, self.elicit = name, elicit
        self.lent = ExitStack()  # what ends with the attempt
        self.fault: InfrastructureFault | None = None  # the first
        self.begun: set[str] = set()  # cassettes that know of it
        self.goes_on = False  # where an earlier part of the run broke off: what it was told there still counts
        self._counts: Counter[tuple[str, str]] = Counter()
        self._before: Token[Attempt | None] | None = None

    def next(self, server: str, request: str) -> int:
        """How often this was asked before, from 0."""
        n = self._counts[server, request]
        self._counts[server, request] += 1
        return n

    def elicited(self, server: str) -> Elicited:
        """The answer to the server's next question to the user: the last one where there are no more."""
        return self.elicit[min(self.next(server, "elicitation"), len(self.elicit) - 1)]

    def __enter__(self) -> Attempt:
        self._before = _CURRENT.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            _CURRENT.reset(self._before)
        self.lent.close()
        # A cancellation is not an outcome of the attempt, and what the operator must fix comes first.
        outcome = error is None or (isinstance(error, Exception) and not isinstance(error, OperatorError))
        if self.fault is not None and error is not self.fault and outcome:
            if isinstance(error, TrialFault):
                self.fault.dollars, self.fault.usage = error.dollars, error.usage
            raise self.fault from error


def current() -> Attempt | None:
    """The attempt that this task works for; None outside of one."""
    return _CURRENT.get()


_CURRENT: ContextVar[Attempt | None] = ContextVar("karat_attempt", default=None)
