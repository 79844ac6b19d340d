"""What Claude Code streams in one turn → Reply, or the fault that it amounts to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec

from karat.agents._claude_tools import ToolNames
from karat.errors import AgentFault, InfrastructureFault, LimitReached, TrialFault
from karat.models import Price
from karat.models.faults import from_status
from karat.records import Reply, ToolCall, Usage

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, Message, ResultMessage, ToolResultBlock, ToolUseBlock

__all__ = ["Said"]

_SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code makes up, to tell of an error

# What Claude Code tells the model of a server that is gone, and of a tool that takes too long.
_CLOSED, _CLOSED_CODE = "Connection closed", "MCP error -32000: "
_LATE = re.compile(r'MCP server ".*" tool ".*" timed out after ')

# How Claude Code calls what went wrong with a request that has no HTTP status.
_KINDS = {
    "authentication_failed": "unauthorized",
    "billing_error": "quota",
    "invalid_request": "refused",
    "model_not_found": "not_found",
    "max_output_tokens": "max_tokens",
}


class Said:
    """Takes the messages of one turn as they come."""

    def __init__(
        self, names: ToolNames, *, redact: Callable[[str], str], spent: float, price: Price | None = None
    ) -> None:
        """`spent`: dollars of the session's earlier turns, which Claude Code counts in. `price`: the user's own."""
        self._names, self._redact, self._before, self._price = names, redact, spent, price
        self._begun = perf_counter()
        self._texts: list[str] = []  # all that it said
        self._last: list[str] = []  # what it said since its last tool call
        self._trace: list[str] = []  # its thoughts, and what it said on the way
        self._calls: dict[str, tuple[ToolUseBlock, float]] = {}
        self._ended: dict[str, ToolCall] = {}
        self._took: dict[str, float] = {}
        self._usages: dict[str, Mapping[str, Any]] = {}
        self._model: str | None = None
        self._error: str | None = None
        self._retry_after: float | None = None
        self.result: ResultMessage | None = None

    def add(self, message: Message) -> None:
        """Notes what the message tells."""
        from claude_agent_sdk import AssistantMessage, ResultMessage, SystemMessage, ToolResultBlock, UserMessage

        match message:
            case AssistantMessage():
                self._spoken(message)
            case UserMessage(content=list(blocks)):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._came_back(block)
            case SystemMessage(subtype="api_retry"):
                self._retry_after = (message.data.get("retry_delay_ms") or 0) / 1000 or None
            case ResultMessage():
                self.result = message

    def took(self, call: str | None, milliseconds: float | None) -> None:
        """How long a tool call took, as Claude Code measured it."""
        if call is not None and milliseconds is not None:
            self._took[call] = milliseconds

    @property
    def dollars(self) -> float | None:
        """Of this turn, as Claude Code reports them; None where it only guesses, because it does not know the model."""
        result, usage = self.result, self.usage
        if self._price is not None:
            return self._price.dollars(usage) if usage is not None else None
        if result is None or result.total_cost_usd is None:
            return None
        if any(used.get("costBasis") == "unknown" for used in (result.model_usage or {}).values()):
            return None
        return max(0.0, result.total_cost_usd - self._before)

    @property
    def usage(self) -> Usage | None:
        """Tokens of this turn. Before its end, those that went in: how many came out is told last."""
        if self.result is not None and self.result.usage:
            return _usage(self.result.usage)
        if not self._usages:
            return None
        each = [_usage(one) for one in self._usages.values()]
        return Usage(input_tokens=sum(one.input_tokens or 0 for one in each))

    def server_fault(self) -> InfrastructureFault | None:
        """A server that died or was silent. Claude Code starts it again, tells the model of an error, and goes on."""
        for call in self._ended.values():
            if call.server is None or call.error is None:
                continue
            about = f"MCP server '{call.server}'"
            if call.error.removeprefix(_CLOSED_CODE) == _CLOSED:
                return InfrastructureFault("mcp_server_down", f"{about} ended while in use", retriable=True)
            if _LATE.match(call.error):
                message = f"{about}: tool '{call.tool}' gave no result in time (call_timeout_seconds)"
                return InfrastructureFault("mcp_call_timeout", message, retriable=True)
        return None

    def reply(self, *, whole: bool = False) -> Reply:
        """The answer, with all that was called and spent; `whole`: with everything that was said on the way."""
        last = "".join(self._last) or (self.result.result if self.result is not None else None) or ""
        return Reply(
            text="\n\n".join(self._texts) if whole else last,
            reasoning="\n\n".join(self._trace) or None,
            tool_calls=self._tool_calls(),
            usage=self.usage,
            dollars=self.dollars,
            milliseconds=round((perf_counter() - self._begun) * 1000, 3),
            model=self._model,
            stop_reason=self.result.stop_reason if self.result is not None else None,
            responses=len(self._usages) or None,
        )

    @property
    def anything(self) -> bool:
        """Whether the model has answered at all."""
        return self._model is not None

    def fault(self) -> TrialFault | None:
        """Why there is no answer; None if there is one."""
        result = self.result
        if result is None:
            return InfrastructureFault("cli_ended", "Claude Code ended without a result", retriable=True)
        if result.subtype == "error_max_turns":
            return LimitReached("max_turns", "the model wanted more responses for one question than max_turns")
        if result.is_error:
            return self._error_result(result)
        if self._model is None and not result.model_usage:  # e.g. of a blank question it says itself that it is blank
            return AgentFault("not_asked", f"Claude Code asked no model: {self._redact(result.result or '')}")
        if (fault := self.server_fault()) is not None:
            return fault
        return None if self.reply().text.strip() else _silence(result.stop_reason)

    def _error_result(self, result: ResultMessage) -> TrialFault:
        words = self._redact("; ".join(result.errors or []) or result.result or result.subtype)
        if result.api_error_status is not None:
            return from_status(result.api_error_status, words, wait=self._retry_after)
        if self._error == "rate_limit":
            return InfrastructureFault("rate_limit", words, retriable=True, retry_after=self._retry_after)
        if self._error is None:
            return AgentFault(result.subtype, words, retriable=True)
        kind = _KINDS.get(self._error, "network")
        if kind == "max_tokens":
            return LimitReached(kind, words)
        return InfrastructureFault(kind, words, retriable=kind == "network")

    def _spoken(self, message: AssistantMessage) -> None:
        from claude_agent_sdk import TextBlock, ThinkingBlock, ToolUseBlock

        if message.error is not None:
            self._error = str(message.error)
        if message.model == _SYNTHETIC:
            return
        self._model, self._error = message.model, message.error
        if message.usage is not None:
            self._usages[message.message_id or ""] = message.usage
        for block in message.content:
            if isinstance(block, TextBlock):
                self._texts.append(block.text)
                self._last.append(block.text)
            elif isinstance(block, ThinkingBlock):
                self._trace += [block.thinking] if block.thinking else []
            elif isinstance(block, ToolUseBlock):
                self._trace += self._last
                self._last = []
                self._calls[block.id] = (block, perf_counter())

    def _came_back(self, block: ToolResultBlock) -> None:
        found = self._calls.get(block.tool_use_id)
        if found is None:
            return
        use, begun = found
        milliseconds = self._took.get(use.id, round((perf_counter() - begun) * 1000, 3))
        text = self._redact(_text(block.content))
        self._ended[use.id] = self._call(use, error=text) if block.is_error else self._call(use, result=text)
        self._took.setdefault(use.id, milliseconds)

    def _tool_calls(self) -> tuple[ToolCall, ...]:
        """In the order in which they were wanted; those that have not ended say so."""
        calls = []
        for key, (use, _) in self._calls.items():
            call = self._ended.get(key) or self._call(use, error="the attempt ended before the call did")
            calls.append(msgspec.structs.replace(call, milliseconds=self._took.get(key)))
        return tuple(calls)

    def _call(self, use: ToolUseBlock, *, result: str | None = None, error: str | None = None) -> ToolCall:
        server, tool = self._names.split(use.name)
        if tool not in self._names.offered(server):
            server, tool = None, use.name  # it never got there
        return ToolCall(tool=tool, server=server, input=use.input, result=result, error=error)


def _usage(counted: Mapping[str, Any]) -> Usage:
    """Input tokens include cached ones, as everywhere in karat."""
    read, written = counted.get("cache_read_input_tokens") or 0, counted.get("cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=(counted.get("input_tokens") or 0) + read + written,
        output_tokens=counted.get("output_tokens"),
        cache_read_tokens=read or None,
        cache_write_tokens=written or None,
        reasoning_tokens=(counted.get("output_tokens_details") or {}).get("thinking_tokens") or None,
    )


def _silence(stop_reason: str | None) -> TrialFault:
    if stop_reason == "max_tokens":
        return LimitReached("max_tokens", "the model's tokens ran out before it said anything")
    if stop_reason == "refusal":
        return AgentFault("content_filter", "the provider's filter stopped the answer, or the model refused")
    return AgentFault("empty_answer", "the model ended its turn and said nothing", retriable=True)


def _text(content: str | list[dict[str, Any]] | None) -> str:
    """A tool's result; what is not text as JSON."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [one["text"] if one.get("type") == "text" else json.dumps(one, ensure_ascii=False) for one in content]
    return "\n".join(parts)
