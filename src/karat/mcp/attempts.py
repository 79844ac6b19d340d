"""The attempt of a trial that the current task belongs to: set by the trial, read for recording and
replay.

A context variable, because the agent between a trial and an MCP session does not know it: sessions
are opened in the task of the attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import ContextVar, Token
from types import TracebackType

from karat.errors import InfrastructureFault, OperatorError, TrialFault
from karat.records import Elicited

WHOLE_RUN = "run"
"""The name of the preflight, which belongs to no trial."""


class Attempt:
    """`with Attempt("4f0e…-1"):` around one attempt of a trial.

    Leaving it releases the attempt's resources, and raises a fault that karat itself met
    if the agent did not raise it.
    """

    def __init__(self, name: str, *, elicit: Sequence[Elicited] = ()) -> None:
        self.name = name
        self.elicit = elicit
        self.lent = ExitStack()  # resources of the attempt
        self.fault: InfrastructureFault | None = None  # the first
        self.started: set[str] = set()  # cassettes that include it
        # whether it resumes an interrupted attempt: earlier answers still count
        self.goes_on = False
        self._counts: Counter[tuple[str, str]] = Counter()
        self._before: Token[Attempt | None] | None = None

    def next(self, server: str, request: str) -> int:
        """How often this was asked before, from 0."""
        n = self._counts[server, request]
        self._counts[server, request] += 1
        return n

    def elicited(self, server: str) -> Elicited:
        """The answer to the server's next question to the user: the last one if there are no
        more.
        """
        return self.elicit[min(self.next(server, "elicitation"), len(self.elicit) - 1)]

    def __enter__(self) -> Attempt:
        self._before = _CURRENT.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            _CURRENT.reset(self._before)
        self.lent.close()
        # A cancellation is not an outcome of the attempt, and an OperatorError comes first.
        outcome = error is None or (
            isinstance(error, Exception) and not isinstance(error, OperatorError)
        )
        if self.fault is not None and error is not self.fault and outcome:
            if isinstance(error, TrialFault):
                self.fault.dollars = error.dollars
                self.fault.usage = error.usage

            raise self.fault from error


def current() -> Attempt | None:
    """The attempt that this task belongs to; None outside one."""
    return _CURRENT.get()


_CURRENT: ContextVar[Attempt | None] = ContextVar("karat_attempt", default=None)
