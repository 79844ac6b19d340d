"""A tool of an MCP server, called as each sample specifies: the server under test, without a
model.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from pydantic import BaseModel

from karat.agents import AgentSetting
from karat.config.model import Name, Strictly
from karat.errors import AgentFault, InfrastructureFault
from karat.mcp import Tools
from karat.records import Condition, JsonObject, Reply, Sample, Turn

__all__ = ["Mcp"]


class Mcp:
    """Calls the tool in the column `tool` of each sample, with the JSON object in its column
    `arguments`.

    Or it reads the resource whose URI is in the column `resource`, or gets the prompt in the column
    `prompt`. The text is that of the result, or the error: a failed tool call is an answer too. Its
    `answer` is `structuredContent` as JSON, or the whole result of a resource or a prompt. It is
    free.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = Strictly

        server: Name | None = None  # null: the column `server`, or the condition's only one
        tool: Name | None = None  # null: the column `tool`, `resource` or `prompt`

    columns = ("server", "tool", "arguments", "resource", "prompt")
    offline = True
    reports_tool_calls = True
    measures_calls = True
    bounds_replies = True  # a result that is too large is an error of its call
    takes = frozenset({"mcp_servers"})

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._options = options
        self._toolbox = setting.toolbox

    @asynccontextmanager
    async def session(self, condition: Condition, sample: Sample) -> AsyncIterator[_Session]:
        """One trial's session, with the condition's servers open."""
        server, method, parameters = self.check_sample(condition, sample)
        async with self._toolbox.open(condition) as tools:
            yield _Session(tools, server, method, parameters)

    def check_sample(self, condition: Condition, sample: Sample) -> tuple[str, str, JsonObject]:
        """Server, method and parameters of the request.

        Raises AgentFault if the sample does not define them.
        """
        names = [server.name for server in condition.mcp_servers]
        server = (
            self._options.server
            or _text(sample, "server")
            or (names[0] if len(names) == 1 else None)
        )
        if server is None:
            message = (
                f"the condition has {len(names)} MCP servers: name one by the option or the "
                f"column `server`"
            )
            raise AgentFault("bad_call", message)

        return server, *_request(sample, self._options.tool)


class _Session:
    def __init__(self, tools: Tools, server: str, method: str, parameters: JsonObject) -> None:
        self._tools = tools
        self._server = server
        self._method = method
        self._parameters = parameters

    async def ask(self, turn: Turn) -> Reply:
        try:
            if self._method != "tools/call":
                call, answer = await self._tools.read(self._server, self._method, self._parameters)
            else:
                call, answer = await self._tools.call_in_full(
                    self._server, self._parameters["name"], self._parameters["arguments"]
                )
        except InfrastructureFault as fault:  # the call was made, and is counted
            fault.reply = Reply(
                text="",
                tool_calls=self._tools.calls[-1:],
                dollars=0.0,
                model=self._server,
            )
            raise

        failed = call.error is not None
        return Reply(
            text=call.error or call.result or "",
            answer=None
            if failed or answer is None
            else msgspec.json.encode(answer, order="sorted").decode(),
            tool_calls=(call,),
            dollars=0.0,
            milliseconds=call.milliseconds,
            model=self._server,
            stop_reason="error" if failed else None,
        )


def _request(sample: Sample, tool: str | None) -> tuple[str, JsonObject]:
    """Method and parameters.

    `tool`: the option. Raises AgentFault if the sample does not define exactly one.
    """
    named = {
        key: text
        for key in ("tool", "resource", "prompt")
        if (text := _text(sample, key)) is not None
    }
    if not named and tool is not None:
        named = {"tool": tool}
    if len(named) > 1:
        raise AgentFault(
            "bad_call",
            f"the sample has {' and '.join(f'`{key}`' for key in named)}: it is one request",
        )

    # The object in a cell, also as text (CSV)
    given = sample.metadata.get("arguments")
    if given is None or given == "":
        given = {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise AgentFault("bad_call", f"the column `arguments` is not JSON: {error}") from None

    if not isinstance(given, dict):
        raise AgentFault("bad_call", "the column `arguments` must hold a JSON object")
    arguments: JsonObject = given

    match named:
        case {"tool": name}:
            return "tools/call", {"name": tool or name, "arguments": arguments}
        case {"resource": uri}:
            return "resources/read", {"uri": uri}
        case {"prompt": name}:
            return "prompts/get", {"name": name, "arguments": arguments}

    message = (
        "the sample has no column `tool`, `resource` or `prompt`, and the agent no option `tool`"
    )
    raise AgentFault("bad_call", message)


def _text(sample: Sample, column: str) -> str | None:
    value = sample.metadata.get(column)
    return value if isinstance(value, str) and value else None
