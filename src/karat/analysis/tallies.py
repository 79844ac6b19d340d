"""What adds up while a journal is read: money, time and calls per condition, scores per scoring."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from math import nan

from karat.analysis.lines import CallLine, ReplyLine, ScoreLine
from karat.journal import Torn
from karat.records import NOT_ASKED, Usage

__all__ = ["Calls", "Rows", "Tally"]

_LONGEST_MESSAGE = 1000
_MOST_MESSAGES = 50  # of errors that are told apart, of one server under one condition
_NUMBERS = re.compile(r"\d+")
_LARGEST = 1e100  # of a score: the squares of larger ones, added up, are no numbers any more


@dataclass(slots=True)
class Calls:
    """Calls to one MCP server under one condition."""

    calls: int = 0
    errors: int = 0
    trials: int = 0
    characters: int = 0  # of results and errors, as the journal writes them
    milliseconds: array[float] = field(default_factory=lambda: array("d"))
    # Error without its digits → the first error that was so, and how many were.
    messages: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, call: CallLine) -> None:
        self.calls += 1
        self.characters += max(0, len(call.result) - 2)  # without its quotes
        if call.error is not None:
            self.errors += 1
            self.characters += len(call.error)
            self.failed(call.error[:_LONGEST_MESSAGE], 1)
        if call.milliseconds is not None:
            self.milliseconds.append(call.milliseconds)

    def failed(self, message: str, calls: int) -> None:
        """Counts failed calls by their message."""
        pattern = _NUMBERS.sub("0", message)
        if pattern not in self.messages and len(self.messages) >= _MOST_MESSAGES:
            pattern = message = "another error"
        first, count = self.messages.get(pattern, (message, 0))
        self.messages[pattern] = first, count + calls


@dataclass(slots=True)
class Tally:
    """What one condition (or what no condition can be told of) has used up."""

    answered: int = 0
    failed_attempts: int = 0
    unfinished_attempts: int = 0
    lost_dollars: array[float] = field(default_factory=lambda: array("d"))  # of these attempts; also in `dollars`
    lost_unknown: int = 0
    dollars: array[float] = field(default_factory=lambda: array("d"))
    unknown: int = 0
    judge_dollars: array[float] = field(default_factory=lambda: array("d"))
    judge_unknown: int = 0
    seconds: array[float] = field(default_factory=lambda: array("d"))
    tokens: list[int | None] = field(default_factory=lambda: [None] * 5)
    tokens_unknown: int = 0
    servers: dict[str, Calls] = field(default_factory=dict)

    def pay(self, dollars: float | None) -> None:
        if dollars is None:
            self.unknown += 1
        elif dollars:
            self.dollars.append(dollars)

    def lose(self, dollars: float | None) -> None:
        """Notes that money which is paid went into an attempt without an answer."""
        if dollars is None:
            self.lost_unknown += 1
        elif dollars:
            self.lost_dollars.append(dollars)

    def pay_judge(self, dollars: float | None) -> None:
        if dollars is None:
            self.judge_unknown += 1
        elif dollars:
            self.judge_dollars.append(dollars)

    def heard(self, reply: ReplyLine) -> None:
        """Books a reply. A turn that was not asked used nothing: it makes no unknown number of tokens a known one."""
        self.pay(reply.dollars)
        if reply.stop_reason != NOT_ASKED.stop_reason or reply.usage != NOT_ASKED.usage:
            self.use(reply.usage)

    def use(self, usage: Usage | None) -> None:
        if usage is None:
            self.tokens_unknown += 1
            return
        mine = self.tokens
        told = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        )
        for place, tokens in enumerate(told):
            if tokens is not None:
                mine[place] = (mine[place] or 0) + tokens

    def count(self, replies: Iterable[ReplyLine], *, answered: bool) -> None:
        """Books the MCP calls of some replies. `answered`: the replies are the answer of a trial."""
        servers = self.servers
        touched = set()
        for reply in replies:
            for call in reply.tool_calls:
                if call.server is None:
                    continue
                use = servers.get(call.server)
                if use is None:
                    use = servers[call.server] = Calls()
                use.add(call)
                touched.add(call.server)
        if answered:
            for server in touched:
                servers[server].trials += 1


@dataclass(slots=True)
class Rows:
    """Every score row of one scorer under one scoring, as columns in the journal's order."""

    cells: array[int] = field(default_factory=lambda: array("Q"))
    turns: array[int] = field(default_factory=lambda: array("i"))  # −1: the whole answer
    judges: array[int] = field(default_factory=lambda: array("i"))  # −1: not named
    repeats: array[int] = field(default_factory=lambda: array("i"))
    values: dict[str, array[float]] = field(default_factory=dict)  # metric → NaN where there is none
    names: dict[str, int] = field(default_factory=dict)  # judge → code
    numbers: set[str] = field(default_factory=set)  # metrics that were ever more than true or false
    torn: Torn[int, tuple[int, int, int]] = field(default_factory=Torn)  # by cell
    whole: set[int] = field(default_factory=set)  # cells of several rows that are all there
    offline: bool = False
    endless: int = 0  # values that are left out: beyond `_LARGEST`

    @property
    def partial(self) -> Collection[int]:
        """The cells with too few rows."""
        return self.torn.there

    def add(self, cell: int, row: ScoreLine) -> None:
        before = len(self.cells)
        self.cells.append(cell)
        self.turns.append(-1 if row.turn is None else row.turn)
        self.judges.append(-1 if row.judge is None else self.names.setdefault(row.judge, len(self.names)))
        self.repeats.append(row.repeat)
        if row.rows > 1:
            self._gather(cell, row.rows)
        if row.offline:
            self.offline = True
        for metric, value in row.values.items():
            column = self.values.get(metric)
            if column is None:
                column = self.values[metric] = array("d", [nan]) * before
            if value is None or not -_LARGEST <= value <= _LARGEST:
                self.endless += value is not None
                column.append(nan)
                continue
            column.append(value)
            if value.__class__ is not bool:
                self.numbers.add(metric)
        if len(self.values) != len(row.values):
            for column in self.values.values():
                if len(column) == before:
                    column.append(nan)

    def _gather(self, cell: int, wanted: int) -> None:
        """A scoring of several rows that a kill cut short is none; a later one takes the place of its rows."""
        place = self.turns[-1], self.judges[-1], self.repeats[-1]
        if cell not in self.whole and self.torn.completes(cell, place, rows=wanted):
            self.whole.add(cell)
