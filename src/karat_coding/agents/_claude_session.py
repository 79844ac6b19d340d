"""A session with Claude Code: its tools, the messages that it streams, and the replies and faults
built from them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from karat.agents._reading import empty_answer
from karat.errors import (
    AgentFault,
    BadExperiment,
    Fault,
    ForeignTools,
    InfrastructureFault,
    LimitReached,
    TrialFault,
    did_you_mean,
)
from karat.models import Price, limiter
from karat.models.faults import from_status
from karat.models.metering import spent
from karat.records import Condition, JsonObject, McpServer, Reply, ToolCall, Turn, Usage
from karat_coding.agents._claude_context import given
from karat_coding.launch import CANNOT_START

if TYPE_CHECKING:
    from claude_agent_sdk import (
        AssistantMessage,
        ClaudeAgentOptions,
        Message,
        ResultMessage,
        ToolResultBlock,
        ToolUseBlock,
    )

_MCP = "mcp__"
# Claude Code lists the tool under one name and offers it to the model under the other
_ALIASES = {"Agent": "Task"}
_USUAL = (
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "Task",
    "WebFetch",
    "WebSearch",
    "Write",
)


class ToolNames:
    """A condition's servers and tools under Claude Code's names: `my docs` becomes `my_docs`."""

    def __init__(self, condition: Condition) -> None:
        """Raises BadExperiment."""
        self.given = given(condition)
        self.servers = servers = (*condition.mcp_servers, *self.given.servers)
        self._condition = condition.name
        self._servers = {
            re.sub(r"[^a-zA-Z0-9_-]", "_", server.name): server.name for server in servers
        }
        self._built_in = frozenset(_ALIASES.get(tool, tool) for tool in self.given.tools)
        self._tools: dict[str | None, set[str]] = {}
        if len(self._servers) < len(servers):
            names = ", ".join(f"'{server.name}'" for server in servers)
            self._refuse(
                "mcp_servers",
                (
                    f"Claude Code cannot tell the servers {names} apart: it knows A-Z, a-z, 0-9, "
                    f"- and _ only"
                ),
            )

    @property
    def allowed(self) -> list[str]:
        """What the model may call: every tool of the condition's servers, and built-in tools."""
        return [*(f"{_MCP}{server}" for server in self._servers), *self.given.allowed]

    def split(self, tool: str) -> tuple[str | None, str]:
        """Server and tool; no server if it is not a tool of one of them."""
        # Longest first: with servers `a` and `a__b`, the tool mcp__a__b__c belongs to the latter.
        for spelled in sorted(self._servers, key=len, reverse=True):
            prefix = f"{_MCP}{spelled}__"
            if tool.startswith(prefix):
                return self._servers[spelled], tool.removeprefix(prefix)

        return None, tool

    def allows(self, tool: str) -> bool:
        """Whether it is a tool of the condition: of one of its servers, or a built-in one."""
        return self.split(tool)[0] is not None or _ALIASES.get(tool, tool) in self._built_in

    def check_commands(self, commands: Iterable[str]) -> None:
        """Check the skills and commands that Claude Code found. Raises BadExperiment."""
        if wrong := self.given.unexpected(commands):
            self._refuse(
                "skills",
                f"Claude Code and karat read skills or plug-ins differently: {', '.join(wrong)}",
            )

    def _refuse(self, key: str, message: str) -> NoReturn:
        raise BadExperiment(
            "experiment", [Fault(place=f"conditions.{self._condition}.{key}", message=message)]
        )

    def ran(self, tool: str) -> None:
        """Check a tool that gave a result. Raises ForeignTools."""
        if not self.allows(tool):
            raise ForeignTools(self._condition, [tool])

    def offered(self, server: str | None) -> set[str]:
        """The tools of a server that were last offered to the model."""
        if server is not None:
            return self._tools.get(server, set())
        return set()

    def check(self, reported: JsonObject) -> None:
        """Check the tools and servers that Claude Code reports.

        Raises ForeignTools and BadExperiment.
        """
        tools: Sequence[str] = reported.get("tools") or ()
        foreign = [tool for tool in tools if not self.allows(tool)]
        servers = [entry.get("name", "") for entry in reported.get("mcp_servers") or ()]
        strangers = []
        for name in servers:
            if name not in self._servers.values():
                strangers.append(name)

        if foreign or strangers:
            raise ForeignTools(self._condition, sorted({*foreign, *strangers}))
        if lacking := self._built_in - {_ALIASES.get(tool, tool) for tool in tools}:
            named = [
                f"'{tool}'{did_you_mean(tool, _USUAL, listing=False)}" for tool in sorted(lacking)
            ]
            self._refuse("tools", f"Claude Code has no tool {' or '.join(named)}")

        self._tools = {}
        for server, tool in map(self.split, tools):
            self._tools.setdefault(server, set()).add(tool)


_SYNTHETIC = "<synthetic>"  # the model of messages that Claude Code makes up to report an error

# What Claude Code reports to the model when a server has died, and when a tool takes too long.
_CLOSED = "Connection closed"
_CLOSED_CODE = "MCP error -32000: "
_LATE = re.compile(r'MCP server ".*" tool ".*" timed out after ')

# Claude Code's names for request errors without an HTTP status.
_KINDS = {
    "authentication_failed": "unauthorized",
    "billing_error": "quota",
    "invalid_request": "refused",
    "model_not_found": "not_found",
    "max_output_tokens": "max_tokens",
}


class TurnMessages:
    """Collects the messages of one turn."""

    def __init__(
        self,
        names: ToolNames,
        *,
        redact: Callable[[str], str],
        before: ResultMessage | None,
        price: Price | None = None,
    ) -> None:
        """`before`: the session's last result, whose sums Claude Code includes.

        `price`: the user's own.
        """
        self._names = names
        self._redact = redact
        self._before = before
        self._price = price
        self._started = perf_counter()
        self._texts: list[str] = []  # all texts of the model
        self._last: list[str] = []  # its texts since the last tool call
        self._trace: list[str] = []  # its thoughts, and its texts between tool calls
        self._calls: dict[str, tuple[ToolUseBlock, float]] = {}
        self._ended: dict[str, ToolCall] = {}
        self._took: dict[str, float] = {}
        self._usages: dict[str, JsonObject] = {}
        self._model: str | None = None
        self._subagents = False
        self._error: str | None = None
        self._retry_after: float | None = None
        self.result: ResultMessage | None = None

    def add(self, message: Message) -> None:
        """Add one message."""
        from claude_agent_sdk import (
            AssistantMessage,
            ResultMessage,
            SystemMessage,
            ToolResultBlock,
            UserMessage,
        )

        match message:
            case AssistantMessage():
                self._add_assistant(message)
            case UserMessage(content=list(blocks)):
                for block in blocks:
                    if isinstance(block, ToolResultBlock):
                        self._add_result(block)
            case SystemMessage(subtype="api_retry"):
                self._retry_after = (message.data.get("retry_delay_ms") or 0) / 1000 or None
            case ResultMessage():
                self.result = message

    def asked(self) -> None:
        """Starts the clock again: the question is sent only now."""
        self._started = perf_counter()

    def took(self, call: str | None, milliseconds: float | None) -> None:
        """How long a tool call took, as Claude Code measured it."""
        if call is not None and milliseconds is not None:
            self._took[call] = milliseconds

    @property
    def dollars(self) -> float | None:
        """Of this turn, as Claude Code reports them; None if it only guesses, because it does not
        know the model.
        """
        result = self.result
        usage = self.usage
        if self._price is not None:
            models = self._models(result)
            if usage is not None and len(models) < 2:
                return self._price.dollars(usage)
            return None

        if result is None or result.total_cost_usd is None:
            return None
        if any(used.get("costBasis") == "unknown" for used in (result.model_usage or {}).values()):
            return None
        return max(
            0.0, result.total_cost_usd - ((self._before and self._before.total_cost_usd) or 0.0)
        )

    @property
    def usage(self) -> Usage | None:
        """Tokens of this turn.

        Before its end only input tokens: output tokens are reported last.
        """
        if self.result is not None and self.result.usage:
            return _usage(self._whole_usage(self.result) or self.result.usage)
        if not self._usages:
            return None
        usages = [_usage(reported) for reported in self._usages.values()]
        return Usage(input_tokens=sum(usage.input_tokens or 0 for usage in usages))

    def _models(self, result: ResultMessage | None) -> JsonObject:
        """What each model has used up to a result of the session, including subagents and built-in
        tools.
        """
        if result is not None and self._names.given.tools:
            return result.model_usage or {}
        return {}

    def _whole_usage(self, result: ResultMessage) -> JsonObject | None:
        """Tokens of this turn over all models; the result's own `usage` leaves out subagents."""
        if not self._models(result):
            return None

        def total(name: str) -> int:
            now, before = (
                [used.get(name) or 0 for used in self._models(at).values()]
                for at in (result, self._before)
            )
            return sum(now) - sum(before)

        return {
            "input_tokens": total("inputTokens"),
            "cache_read_input_tokens": total("cacheReadInputTokens"),
            "cache_creation_input_tokens": total("cacheCreationInputTokens"),
            "output_tokens": total("outputTokens"),
            "output_tokens_details": {"thinking_tokens": total("thinkingTokens")},
        }

    def server_fault(self) -> InfrastructureFault | None:
        """A server that died or did not answer.

        Claude Code restarts it, and reports an error to the model.
        """
        for call in self._ended.values():
            if call.server is None or call.error is None:
                continue
            about = f"MCP server '{call.server}'"
            if call.error.removeprefix(_CLOSED_CODE) == _CLOSED:
                return InfrastructureFault(
                    "mcp_server_down", f"{about} ended while in use", retriable=True
                )

            if _LATE.match(call.error):
                message = (
                    f"{about}: tool '{call.tool}' gave no result in time (call_timeout_seconds)"
                )
                return InfrastructureFault("mcp_call_timeout", message, retriable=True)

        return None

    def reply(self, *, whole: bool = False) -> Reply:
        """The answer with its tool calls and cost; `whole`: with the texts between tool calls."""
        last = (
            "".join(self._last) or (self.result.result if self.result is not None else None) or ""
        )
        # In the order in which they were requested; those that have not ended are marked so.
        calls = []
        for key, (use, _) in self._calls.items():
            call = self._ended.get(key) or self._call(
                use, error="the attempt ended before the call did"
            )
            calls.append(msgspec.structs.replace(call, milliseconds=self._took.get(key)))

        return Reply(
            text="\n\n".join(self._texts) if whole else last,
            reasoning="\n\n".join(self._trace) or None,
            tool_calls=tuple(calls),
            usage=self.usage,
            dollars=self.dollars,
            milliseconds=round((perf_counter() - self._started) * 1000, 3),
            model=self._model,
            stop_reason=self.result.stop_reason if self.result is not None else None,
            # not all of their responses are reported
            responses=None if self._subagents else len(self._usages) or None,
        )

    @property
    def anything(self) -> bool:
        """Whether the model has answered at all."""
        return self._model is not None

    def fault(self) -> TrialFault | None:
        """Why there is no answer; None if there is one."""
        result = self.result
        if result is None:
            return InfrastructureFault(
                "cli_ended", "Claude Code ended without a result", retriable=True
            )

        if result.subtype == "error_max_turns":
            return LimitReached(
                "max_turns", "the model wanted more responses for one question than max_turns"
            )

        if result.is_error:
            return self._error_result(result)
        # e.g. it reports a blank question itself
        if self._model is None and not result.model_usage:
            return AgentFault(
                "not_asked", f"Claude Code asked no model: {self._redact(result.result or '')}"
            )

        if (fault := self.server_fault()) is not None:
            return fault
        if self.reply().text.strip():
            return None
        return empty_answer(result.stop_reason)

    def _error_result(self, result: ResultMessage) -> TrialFault:
        words = self._redact("; ".join(result.errors or []) or result.result or result.subtype)
        if result.api_error_status is not None:
            return from_status(result.api_error_status, words, wait=self._retry_after)
        if self._error == "rate_limit":
            return InfrastructureFault(
                "rate_limit", words, retriable=True, retry_after=self._retry_after
            )

        if self._error is None:
            return AgentFault(result.subtype, words, retriable=True)
        kind = _KINDS.get(self._error, "network")
        if kind == "max_tokens":
            return LimitReached(kind, words)
        return InfrastructureFault(kind, words, retriable=kind == "network")

    def _add_assistant(self, message: AssistantMessage) -> None:
        from claude_agent_sdk import TextBlock, ThinkingBlock, ToolUseBlock

        if message.error is not None and message.parent_tool_use_id is None:
            self._error = str(message.error)
        if message.model == _SYNTHETIC:
            return
        if message.parent_tool_use_id is not None:
            self._subagents = True
        else:
            self._model = message.model
            self._error = message.error

        if message.usage is not None:
            self._usages[message.message_id or ""] = message.usage
        for block in message.content:
            if isinstance(block, TextBlock):
                self._texts.append(block.text)
                self._last.append(block.text)
            elif isinstance(block, ThinkingBlock):
                if block.thinking:
                    self._trace += [block.thinking]
            elif isinstance(block, ToolUseBlock):
                self._trace += self._last
                self._last = []
                self._calls[block.id] = (block, perf_counter())

    def _add_result(self, block: ToolResultBlock) -> None:
        call = self._calls.get(block.tool_use_id)
        if call is None:
            return
        use, started = call
        if not block.is_error:
            self._names.ran(use.name)
        milliseconds = self._took.get(use.id, round((perf_counter() - started) * 1000, 3))
        content = block.content
        if isinstance(content, list):  # anything but text as JSON
            parts = []
            for part in content:
                if part.get("type") == "text":
                    parts.append(part["text"])
                else:
                    parts.append(json.dumps(part, ensure_ascii=False))

            content = "\n".join(parts)

        text = self._redact(content or "")
        self._ended[use.id] = (
            self._call(use, error=text) if block.is_error else self._call(use, result=text)
        )
        self._took.setdefault(use.id, milliseconds)

    def _call(
        self, use: ToolUseBlock, *, result: str | None = None, error: str | None = None
    ) -> ToolCall:
        server, tool = self._names.split(use.name)
        if tool not in self._names.offered(server):
            server = None
            tool = use.name  # it never reached the server

        return ToolCall(tool=tool, server=server, input=use.input, result=result, error=error)


def _usage(counted: JsonObject) -> Usage:
    """Input tokens include cached ones, as everywhere in karat."""
    read = counted.get("cache_read_input_tokens") or 0
    written = counted.get("cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=(counted.get("input_tokens") or 0) + read + written,
        output_tokens=counted.get("output_tokens"),
        cache_read_tokens=read or None,
        cache_write_tokens=written or None,
        reasoning_tokens=(counted.get("output_tokens_details") or {}).get("thinking_tokens")
        or None,
    )


_LOOK_SECONDS = 0.05  # between two checks of servers that are starting
_SHOWN = 2000  # characters of its stderr


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What every session of an agent shares."""

    version: str | None  # of Claude Code; None: not known
    provider: str
    base_url: str | None
    price: Price | None  # the user's own
    redact: Callable[[str], str]


class Conversation:
    """`open`, `ask` each question, `close`.

    Turns what Claude Code reports into replies and faults.
    """

    def __init__(
        self,
        options: ClaudeAgentOptions,
        *,
        names: ToolNames,
        materials: str | None,
        terms: Terms,
        stderr_lines: Iterable[str],
    ) -> None:
        from claude_agent_sdk import ClaudeSDKClient, HookMatcher

        timed: Any = [HookMatcher(hooks=[self._timed])]
        options.hooks = {"PostToolUse": timed, "PostToolUseFailure": timed}
        self._client = ClaudeSDKClient(options)
        self._names = names
        self._materials = materials
        self._version = terms.version
        self._limiter = limiter(terms.provider, terms.base_url)
        self._price = terms.price
        self._redact = terms.redact
        self._stderr_lines = stderr_lines
        self._messages: TurnMessages | None = None
        self._before: ResultMessage | None = None  # counts the session up to it

    async def open(self) -> None:
        """Starts Claude Code, and waits for servers: it would begin without the late ones.

        Raises TrialFault and BadExperiment.
        """
        from claude_agent_sdk import ClaudeSDKError

        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            await self._client.connect()
            info: JsonObject = await self._client.get_server_info() or {}
            version = info.get("claude_code_version")
            if version is not None and self._version not in (None, version):
                message = (
                    f"Claude Code is now {version}; the run began with {self._version}, and "
                    f"answers of two versions cannot be compared: start a new run, or install the "
                    f"old version again and resume"
                )
                raise InfrastructureFault("cli_changed", message)

            if "commands" in info:
                self._names.check_commands(command["name"] for command in info["commands"])
            waiting = {server.name: server for server in self._names.servers}
            while waiting:
                statuses: Any = (await self._client.get_mcp_status()).get("mcpServers", [])
                for status in statuses:
                    server = waiting.get(status["name"])
                    if server is None:
                        continue
                    late = clock() - started >= server.init_timeout_seconds
                    if status["status"] == "connected":
                        del waiting[server.name]
                    elif late or status["status"] != "pending":
                        raise self._refused(server, status, late=late)

                if waiting:
                    await asyncio.sleep(_LOOK_SECONDS)
        except ClaudeSDKError as error:
            raise self._ended(error) from error

    async def ask(self, turn: Turn) -> Reply:
        """The answer to one question.

        Raises TrialFault, with the reply so far, and ForeignTools.
        """
        question = turn.question
        if self._materials is not None:
            question = f"{self._materials}\n\n{question}"
            self._materials = None

        heard = TurnMessages(
            self._names, redact=self._redact, before=self._before, price=self._price
        )
        self._messages = messages = heard
        try:
            async with self._limiter.slot():
                messages.asked()
                await self._exchange(question, messages)

            fault = messages.fault()
        except TrialFault as error:
            fault = error
        finally:
            spent(messages.usage, messages.dollars)  # also of an attempt that is cut off

        self._before = messages.result or self._before
        if fault is None:
            return messages.reply()
        if messages.anything:
            fault.reply = messages.reply(whole=True)
        raise fault

    async def close(self) -> None:
        """End the session, and wait for Claude Code to exit."""
        from claude_agent_sdk import ClaudeSDKError

        with suppress(ClaudeSDKError):
            await self._client.disconnect()

    async def _exchange(self, question: str, messages: TurnMessages) -> None:
        from claude_agent_sdk import ClaudeSDKError, SystemMessage

        try:
            await self._client.query(question)
            async for message in self._client.receive_response():
                match message:
                    case SystemMessage(subtype="init"):
                        self._names.check(message.data)
                    case SystemMessage(subtype="api_retry", data={"error_status": 429 | 529}):
                        self._limiter.refused((message.data.get("retry_delay_ms") or 0) / 1000)

                messages.add(message)
        except ClaudeSDKError as error:
            if messages.result is None:
                raise self._ended(error) from error

        if messages.result is not None and not messages.result.is_error:
            self._limiter.success()

    async def _timed(self, message: Any, call: str | None, _context: object) -> Any:
        if self._messages is not None:
            self._messages.took(call, message.get("duration_ms"))
        return {}

    def _refused(self, server: McpServer, status: Any, *, late: bool) -> InfrastructureFault:
        about = f"MCP server '{server.name}'"
        if status["status"] == "needs-auth":
            message = f"{about} requires a login: check its headers in the experiment file"
            return InfrastructureFault("mcp_unauthorized", message)

        if late:
            limit = f"{server.init_timeout_seconds:g} s (init_timeout_seconds)"
            message = f"{about} did not finish its handshake with Claude Code within {limit}"
            return InfrastructureFault("mcp_init_timeout", message, retriable=True)

        kind = "mcp_server_start" if server.type == "stdio" else "mcp_unreachable"
        why = self._redact(str(status.get("error") or status["status"]))
        return InfrastructureFault(
            kind, f"{about} cannot be used by Claude Code: {why}", retriable=True
        )

    def _ended(self, error: Exception) -> InfrastructureFault:
        """Claude Code has ended, or does not follow its protocol."""
        words = self._redact("\n".join(self._stderr_lines))[-_SHOWN:].strip()
        if CANNOT_START in words:
            return InfrastructureFault("cli_start", words[words.index(CANNOT_START) :])
        message = f"Claude Code broke off: {self._redact(str(error))}"
        return InfrastructureFault(
            "cli_ended",
            f"{message}; its stderr ends:\n{words}" if words else message,
            retriable=True,
        )
