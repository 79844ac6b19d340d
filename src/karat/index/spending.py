"""Totals while a journal is read: money, tokens, time and MCP calls of each condition."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from karat.index.lines import CallLine, ReplyLine
from karat.records import NOT_ASKED, Usage
from karat.tool_use import CalledTool, called_tool

if TYPE_CHECKING:
    Doubles = array[float]
    Ints = array[int]
else:  # msgspec needs them without parameters
    Doubles = Ints = array

_LONGEST_MESSAGE = 1000
_MOST_MESSAGES = 50  # distinct error messages per server and condition
_NUMBERS = re.compile(r"\d+")


def _doubles() -> Doubles:
    return array("d")


class Calls(msgspec.Struct):
    """Calls to one MCP server under one condition."""

    calls: int = 0
    errors: int = 0
    trials: int = 0
    characters: int = 0  # of results and errors, as in the journal
    milliseconds: Doubles = msgspec.field(default_factory=_doubles)
    # Error without its digits → the first such error, and their number.
    messages: dict[str, tuple[str, int]] = {}

    def add(self, call: CallLine) -> None:
        self.calls += 1
        self.characters += max(0, len(call.result) - 2)  # without its quotes
        if call.error is not None:
            self.errors += 1
            self.characters += len(call.error)
            self.count_error(call.error[:_LONGEST_MESSAGE], 1)

        if call.milliseconds is not None:
            self.milliseconds.append(call.milliseconds)

    def count_error(self, message: str, calls: int) -> None:
        """Counts failed calls by their message."""
        pattern = _NUMBERS.sub("0", message)
        if pattern not in self.messages and len(self.messages) >= _MOST_MESSAGES:
            pattern = message = "another error"
        first, count = self.messages.get(pattern, (message, 0))
        self.messages[pattern] = first, count + calls


class CallRows(msgspec.Struct):
    """The tools called by the answers that count, as columns: one row per answer and tool."""

    cells: Ints = msgspec.field(default_factory=lambda: array("q"))
    tools: Ints = msgspec.field(default_factory=lambda: array("i"))  # codes
    # 1: a call succeeded; 0: all failed
    succeeded: Ints = msgspec.field(default_factory=lambda: array("b"))
    codes: dict[CalledTool, int] = {}

    def add(self, cell: int, replies: Iterable[ReplyLine]) -> None:
        """Adds the calls of an answer."""
        outcomes: dict[CalledTool, bool] = {}
        for reply in replies:
            for call in reply.tool_calls:
                tool = called_tool(call.tool, call.server, call.input)
                outcomes[tool] = outcomes.get(tool, False) or call.error is None

        for tool, succeeded in outcomes.items():
            self.cells.append(cell)
            self.tools.append(self.codes.setdefault(tool, len(self.codes)))
            self.succeeded.append(succeeded)


class Tally(msgspec.Struct):
    """What the trials of one condition, or of an unknown one, have used."""

    answered: int = 0
    cut: int = 0  # of `answered`: a reply was cut at a limit of tokens
    failed_attempts: int = 0
    unfinished_attempts: int = 0
    # of these attempts; also in `dollars`
    lost_dollars: Doubles = msgspec.field(default_factory=_doubles)
    lost_unknown: int = 0
    dollars: Doubles = msgspec.field(default_factory=_doubles)
    unknown: int = 0
    judge_dollars: Doubles = msgspec.field(default_factory=_doubles)
    judge_unknown: int = 0
    judge_tokens: int = 0  # of scores: input and output
    seconds: Doubles = msgspec.field(default_factory=_doubles)
    tokens: list[int | None] = msgspec.field(default_factory=lambda: [None] * 5)
    tokens_unknown: int = 0
    unpriced_replies: int = 0  # also in `unknown`
    uncounted_replies: int = 0  # also in `tokens_unknown`
    servers: dict[str, Calls] = {}

    def pay(self, dollars: float | None) -> None:
        if dollars is None:
            self.unknown += 1
        elif dollars:
            self.dollars.append(dollars)

    def lose(self, dollars: float | None) -> None:
        """Records money spent on an attempt without an answer."""
        if dollars is None:
            self.lost_unknown += 1
        elif dollars:
            self.lost_dollars.append(dollars)

    def pay_judge(self, dollars: float | None) -> None:
        if dollars is None:
            self.judge_unknown += 1
        elif dollars:
            self.judge_dollars.append(dollars)

    def add_reply(self, reply: ReplyLine) -> None:
        """Books a reply.

        A turn that was not asked used nothing, and does not make an unknown token count known.
        """
        if (dollars := reply.dollars) is None:
            self.unknown += 1
            self.unpriced_replies += 1
        elif dollars:
            self.dollars.append(dollars)

        if (usage := reply.usage) is None:
            self.tokens_unknown += 1
            self.uncounted_replies += 1
        elif reply.stop_reason != NOT_ASKED.stop_reason or usage != NOT_ASKED.usage:
            self.use(usage)

    def use(self, usage: Usage | None) -> None:
        if usage is None:
            self.tokens_unknown += 1
            return

        sums = self.tokens
        used = (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
        )
        for place, tokens in enumerate(used):
            if tokens is not None:
                sums[place] = (sums[place] or 0) + tokens

    def count_calls(self, replies: Iterable[ReplyLine], *, answered: bool) -> None:
        """Books the MCP calls of some replies.

        `answered`: whether the replies are a trial's answer.
        """
        servers = set()
        for reply in replies:
            for call in reply.tool_calls:
                if call.server is None:
                    continue
                if call.server not in self.servers:
                    self.servers[call.server] = Calls()
                self.servers[call.server].add(call)
                servers.add(call.server)

        if answered:
            for server in servers:
                self.servers[server].trials += 1
