"""Every exception that karat raises, and the value that describes one fault.

    KaratError                      70  a bug in karat, unless a branch says otherwise
    ├── OperatorError                2  something the person at the keyboard must change
    │   ├── BadExperiment            2  the experiment file: all faults at once
    │   ├── BadDataset               2  the dataset: all faults at once
    │   ├── BadRubric                2  a rubric file: all faults at once
    │   ├── BadLabels                2  a sheet of people's scores: all faults at once
    │   ├── BadOption                2  a command-line or Python argument
    │   │   └── QueryTooLong         2  a query that was stopped at its time limit
    │   ├── UnknownPlugin            2  no agent, scorer, … is called that
    │   ├── BadPlugin                2  a plug-in that cannot be loaded or breaks its protocol
    │   ├── MissingExtra             2  an optional dependency is not installed
    │   ├── ForeignTools             2  an agent has tools that its condition does not give it
    │   ├── BadRun                   2  a folder that is not a run, or has a newer format
    │   ├── RunBusy                  2  another process writes to this run
    │   └── ResumeRefused            2  the experiment changed in a way that answers depend on
    └── TrialFault                   –  one trial failed: data for the journal, no traceback
        ├── AgentFault                  the agent crashed or replied nonsense
        ├── InfrastructureFault         network, rate limit, MCP server, disk
        ├── JudgeFault                  the scorer failed; the answer is safe
        └── LimitReached                time, turns, tokens, dollars

Each class carries a ``slug`` (its paragraph in docs/reference/errors.md) and the
exit code of the command that it ends.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import ClassVar

from karat.installation import install_extra_command

__all__ = [
    "AgentFault",
    "BadDataset",
    "BadExperiment",
    "BadLabels",
    "BadOption",
    "BadPlugin",
    "BadRubric",
    "BadRun",
    "Caught",
    "Fault",
    "ForeignTools",
    "InfrastructureFault",
    "JudgeFault",
    "KaratError",
    "LimitReached",
    "MissingExtra",
    "OperatorError",
    "QueryTooLong",
    "ResumeRefused",
    "RunBusy",
    "TrialFault",
    "UnknownPlugin",
    "described",
    "did_you_mean",
    "unreadable",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is wrong in a file: where, and what would be right."""

    place: str  # dotted path ("judge.repeats") or "line 7"
    message: str  # what was found and what is expected, in one sentence
    line: int | None = None  # 1-based, as an editor counts
    column: int | None = None  # 1-based, of that line

    def __str__(self) -> str:
        if self.column is not None:
            column = f", column {self.column}"
        else:
            column = ""

        if self.line:
            return f"{self.place} (line {self.line}{column}): {self.message}"
        return f"{self.place}: {self.message}"


def did_you_mean(
    word: str, known: Iterable[str], *, listing: bool = True, other_roles: Collection[str] = ()
) -> str:
    """A hint with the nearest known name, or (with `listing`) with the whole list where it is
    short.

    `other_roles`: known names that cannot be meant.
    """
    names = sorted(known)
    near = difflib.get_close_matches(
        word, [name for name in names if name not in other_roles], n=1, cutoff=0.6
    )
    if near:
        return f" (did you mean '{near[0]}'?)"
    if listing and 0 < len(names) <= 12:
        return f" (known: {', '.join(names)})"
    return ""


def unreadable(error: OSError | ValueError) -> str:
    """Why a path cannot be used: the system's message, or that it is not a path (a NUL, half a
    surrogate pair).
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "not a valid path (it holds a character that no file name can have)"


class Caught:
    """What a block of foreign code raised, kept instead of passed on.

    For the two places where foreign code is called and its caller must get the error
    elsewhere: importing a plug-in, and a call on a separate thread.

    >>> with Caught() as caught:
    ...     int("x")
    >>> type(caught.error).__name__
    'ValueError'
    """

    error: BaseException | None = None

    def __enter__(self) -> Caught:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self.error = error
        return True


def described(error: BaseException) -> str:
    """The exception's class and message; works even if the message cannot be read.

    >>> described(ValueError("no"))
    'ValueError: no'
    """
    name, message = type(error).__name__, ""
    with Caught() as caught:
        message = str(error)[:_LONGEST_MESSAGE]
    if caught.error is not None:
        return f"{name} (its message cannot be read: {type(caught.error).__name__})"
    return f"{name}: {message}"


# characters; it is cut further when it is written, after secrets are masked
_LONGEST_MESSAGE = 100_000


class KaratError(Exception):
    """The root: ``except KaratError`` catches whatever karat raises on purpose."""

    slug: ClassVar[str] = "internal"
    exit_code: ClassVar[int] = 70


class OperatorError(KaratError):
    """Something that the person at the keyboard must change; raised before the first paid call."""

    slug: ClassVar[str] = "operator"
    exit_code: ClassVar[int] = 2


_SHOWN = 50  # faults; a file with a fault on every line needs no longer list


class _FaultList(OperatorError):
    """A file with faults, listed all at once."""

    def __init__(
        self, path: str | PathLike[str], faults: Sequence[Fault], *, remedy: str = ""
    ) -> None:
        """`remedy`: what helps against all of them, in a sentence."""
        self.path = str(path)
        self.faults = tuple(faults)
        if len(self.faults) == 1:
            count = "1 fault"
        else:
            count = f"{len(self.faults)} faults"

        lines = [f"  {fault}" for fault in self.faults[:_SHOWN]]
        if len(self.faults) > _SHOWN:
            lines.append(f"  … and {len(self.faults) - _SHOWN} more")
        super().__init__("\n".join([f"{path}: {count}", *lines, *([remedy] if remedy else [])]))


class BadExperiment(_FaultList):
    """The experiment file cannot be run as it is."""

    slug: ClassVar[str] = "bad-experiment"


class BadDataset(_FaultList):
    """The dataset cannot be used as it is.

    `readings`: what its columns can mean, each as a line below `dataset`; empty: that is certain.
    `parts`: the sheets or lists of which one must be named; empty: that is not what is wrong.
    """

    slug: ClassVar[str] = "bad-dataset"
    readings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class BadRubric(_FaultList):
    """The rubric cannot be used as it is."""

    slug: ClassVar[str] = "bad-rubric"


class BadLabels(_FaultList):
    """A sheet of people's scores cannot be used as it is."""

    slug: ClassVar[str] = "bad-labels"


class BadOption(OperatorError):
    """A command-line option or an argument of a Python call that is invalid here."""

    slug: ClassVar[str] = "bad-option"

    def __init__(self, option: str, message: str) -> None:
        self.option = option
        super().__init__(f"{option}: {message}")


class QueryTooLong(BadOption):
    """An SQL query that was stopped at its time limit."""

    slug: ClassVar[str] = "query-too-long"


class UnknownPlugin(OperatorError):
    """No plug-in of the family has this name."""

    slug: ClassVar[str] = "unknown-plugin"

    def __init__(self, family: str, name: str, known: Iterable[str]) -> None:
        self.family, self.name, self.known = family, name, tuple(sorted(known))
        if family == "kinds":
            noun = "kind of dataset"
        else:
            noun = family.rstrip("s")

        super().__init__(f"no {noun} is called '{name}'{did_you_mean(name, self.known)}")


class BadPlugin(OperatorError):
    """A plug-in that cannot be imported, or breaks the protocol of its family."""

    slug: ClassVar[str] = "bad-plugin"

    def __init__(self, target: str, message: str, *, fault_at: str | None = None) -> None:
        self.target, self.message = target, message
        # the file and the place there that name it; None: not known
        self.fault_at = fault_at
        super().__init__(": ".join(filter(None, [fault_at, target, message])))


class MissingExtra(OperatorError):
    """A feature needs packages that are not installed."""

    slug: ClassVar[str] = "missing-extra"

    def __init__(self, extra: str, why: str) -> None:
        self.extra, self.why = extra, why
        super().__init__(f"{why} needs the extra '{extra}': {install_extra_command(extra)}")


class ForeignTools(OperatorError):
    """An agent's model was offered tools beyond its condition's: the run does not measure what the
    file defines.
    """

    slug: ClassVar[str] = "foreign-tools"

    def __init__(self, condition: str, tools: Sequence[str]) -> None:
        self.condition, self.tools = condition, tuple(tools)
        named = ", ".join(self.tools)
        super().__init__(
            f"condition '{condition}': the agent has tools that the condition does not define "
            f"({named}); answers with them would not measure the condition, so the run was "
            f"stopped: install a version of the agent's SDK that karat was tested with, and "
            f"report this"
        )


class BadRun(OperatorError):
    """A folder that is not a run, is damaged beyond its last line, or has a newer format."""

    slug: ClassVar[str] = "bad-run"

    def __init__(self, path: str | PathLike[str], message: str) -> None:
        self.path, self.problem = str(path), message
        super().__init__(f"{path}: {message}")


class RunBusy(OperatorError):
    """Another process holds the run's journal."""

    slug: ClassVar[str] = "run-busy"

    def __init__(self, path: str | PathLike[str], *, pid: int | None, host: str | None) -> None:
        self.path, self.pid, self.host = str(path), pid, host
        if pid is not None:
            who = f"process {pid} on {host}"
        else:
            who = "another process"

        super().__init__(f"{path}: {who} is writing to this run; wait for it, or stop it")


class ResumeRefused(OperatorError):
    """The experiment differs from the one that produced the run's answers."""

    slug: ClassVar[str] = "resume-refused"

    def __init__(self, path: str | PathLike[str], changes: Sequence[str], remedy: str) -> None:
        self.path, self.changes, self.remedy = str(path), tuple(changes), remedy
        lines = [
            (
                f"{path}: cannot resume, because the experiment has changed since the run got its "
                f"answers"
            )
        ]
        lines += [f"  {change}" for change in self.changes]
        super().__init__("\n".join([*lines, remedy]))


class TrialFault(KaratError):
    """One trial failed.

    The engine journals it and continues; agents, servers and scorers raise it.
    """

    slug: ClassVar[str] = "trial"
    ledger_class: ClassVar[str] = "agent"

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retriable: bool = False,
        retry_after: float | None = None,
        dollars: float | None = None,
        usage: object | None = None,
        reply: object | None = None,
    ) -> None:
        """``kind``: a short slug; ``retry_after``: seconds to wait, as asked by the other side;
        ``dollars`` and ``usage`` (records.Usage): what the failed attempt cost, where known;
        ``reply`` (records.Reply): the agent's reply so far, which is kept."""
        self.kind, self.message = kind, message
        self.retriable, self.retry_after = retriable, retry_after
        self.passes = True  # False: every other trial would probably fail so, too
        self.dollars, self.usage, self.reply = dollars, usage, reply
        super().__init__(f"{kind}: {message}")


class AgentFault(TrialFault):
    """The agent crashed, answered nonsense, or missed a gate."""

    slug: ClassVar[str] = "agent-fault"
    ledger_class: ClassVar[str] = "agent"


class InfrastructureFault(TrialFault):
    """Network, rate limit, MCP server, disk: not the agent's fault."""

    slug: ClassVar[str] = "infrastructure-fault"
    ledger_class: ClassVar[str] = "infrastructure"


class JudgeFault(TrialFault):
    """A scorer failed. The answer is safe; scoring again costs no agent call."""

    slug: ClassVar[str] = "judge-fault"
    ledger_class: ClassVar[str] = "judge"


class LimitReached(TrialFault):
    """Time, turns, tokens or dollars ran out."""

    slug: ClassVar[str] = "limit-reached"
    ledger_class: ClassVar[str] = "limit"
