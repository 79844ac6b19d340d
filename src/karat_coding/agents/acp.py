"""Any agent that speaks the Agent Client Protocol over its standard streams."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, Field

import karat
from karat.agents import AgentSetting
from karat.agents._prompt import prompt
from karat.config.model import AsWords, Name, Strictly, Text
from karat.errors import (
    AgentFault,
    BadExperiment,
    BadOption,
    Fault,
    InfrastructureFault,
    LimitReached,
    MissingExtra,
    TrialFault,
)
from karat.files import temporary_folder
from karat.foreign import Json
from karat.mcp.observed import Observed
from karat.models.metering import spent
from karat.models.prices import own_price
from karat.records import Condition, JsonObject, Reply, Sample, Turn, Usage
from karat_coding import launch
from karat_coding.agents._acp_session import (
    LARGEST_MESSAGE,
    Files,
    Lines,
    TurnUpdates,
    known_agent,
    reported_usage,
)
from karat_coding.workspace import Workspace, refuse_instructions_above

__all__ = ["Acp"]

_PROTOCOL = 1  # the version in use
_START_SECONDS = 60.0  # for the agent to identify itself, and to open a session
_GONE_SECONDS = 5.0  # longer than the launcher may take to end everything
_STDERR_SHOWN = 3000  # characters of its end
_STDERR_KEPT = 64_000  # bytes: enough that a secret cut in half at the start is not shown
_EXIT_SECONDS = 1.0  # for an agent that has closed its output to end
_WANTS_LOGIN = -32000
_NOT_FOUND = -32002
_REFUSED = -32602  # of JSON-RPC and ACP


class Acp:
    """An agent over the Agent Client Protocol: OpenCode, Claude Code, Gemini CLI and others.

    Each trial has its own process, HOME and working directory: the condition's workspace, else an
    empty folder. The agent sees only PATH, LANG and `env`. It gets permission for the condition's
    MCP tools and for those of its own that the condition lists in `tools`; running another tool
    without asking is a fault of the agent. The condition's system prompt is sent before the first
    question.
    """

    class Options(BaseModel):
        """What to start, e.g. `opencode acp --pure`, and with which environment."""

        model_config = Strictly

        command: Annotated[tuple[Name, ...], AsWords] = Field(
            min_length=1, description="program and arguments; one text is split as a shell would"
        )
        env: dict[str, Text] = {}  # its environment, in addition to PATH, LANG, HOME and TMPDIR

    connects_itself = True  # to its MCP servers, through karat's proxy
    context = ("workspace", "tools")
    enters_workspace = True
    reports_tool_calls = True  # those of MCP servers pass through karat

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        try:
            import acp.connection  # noqa: F401 - a missing extra shows here, before the first trial
        except ImportError as error:
            raise MissingExtra("acp", "the agent 'acp'") from error

        refuse_instructions_above(Path(tempfile.gettempdir()))
        self._options = options
        self._setting = setting
        program, *self._arguments = options.command
        if "/" in program:
            named = str(setting.folder / Path(program).expanduser())
        else:
            named = program

        path = shutil.which(named, path=options.env.get("PATH"))
        if path is None:
            raise BadOption(
                "agent.command",
                f"'{program}' is not a program; install the agent, or give its path",
            )

        self._program = path
        self._named: str | None = None  # name and version, from the first session
        self.changes: list[str] = []

    @asynccontextmanager
    async def session(
        self, condition: Condition, sample: Sample, workspace: Workspace | None = None
    ) -> AsyncIterator[_Conversation]:
        """One trial's session.

        At its end, every process that it started has ended, and its folder is removed.
        """
        with temporary_folder("acp") as base:
            for folder in ("home", "work", "tmp"):
                (base / folder).mkdir()
            if workspace is not None:
                shown = workspace.path
            else:
                shown = (base / "work").resolve()

            own = {
                "PATH": os.environ.get("PATH", os.defpath),
                "LANG": os.environ.get("LANG", "C.UTF-8"),
                **self._options.env,
                "HOME": str(base / "home"),
                "TMPDIR": str(base / "tmp"),
                "PWD": str(shown),
            }
            started = [self._program, *self._arguments]
            definition = {
                "command": started,
                "env": own,
                "home": str(base),
                "parent": os.getpid(),
                "cwd": str(shown),
            }
            file = base / "launch.json"
            file.write_text(json.dumps(definition), encoding="utf-8")
            command = [sys.executable, "-I", "-S", launch.__file__, str(file)]
            if workspace is not None:
                command = workspace.command(command)
            program = _Program(
                await asyncio.create_subprocess_exec(
                    *command,
                    stdin=PIPE,
                    stdout=PIPE,
                    stderr=PIPE,
                    env={},
                    cwd=base,
                    limit=LARGEST_MESSAGE,
                ),
                self._setting.redact,
            )

            try:
                if workspace is not None:
                    root = workspace.root(program.process.pid)
                else:
                    root = shown

                conversation = _Conversation(
                    self._setting, condition, sample, program, Files(shown, root)
                )
                async with conversation.opened(shown):
                    agent = conversation.agent
                    self._named = self._named or agent
                    words = f"the agent was {self._named} and is now {agent}"
                    if agent != self._named and words not in self.changes:
                        self.changes.append(words)
                    yield conversation
            finally:
                await asyncio.shield(asyncio.create_task(program.end()))


class _Program:
    """The agent's process, a child of the launcher that ends it with all that it started."""

    def __init__(self, process: Process, redact: Callable[[str], str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.process = process
        self._redact = redact
        self.lines = Lines(process.stdout, process.stdin)
        self._stderr = bytearray()
        self._reading = asyncio.create_task(self._read_stderr())

    async def end(self) -> None:
        """End everything that was started, and wait for it."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        for _ in range(2):
            with suppress(TimeoutError):
                async with asyncio.timeout(_GONE_SECONDS):
                    await self.process.wait()
                break

            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)

        self._reading.cancel()

    async def ended(self, *, asked: bool) -> TrialFault:
        """Why the agent's output ended. `asked`: after a question."""
        if self.lines.too_long:
            message = (
                f"the agent sent more than {LARGEST_MESSAGE} bytes in one message, or four times "
                f"that in one turn"
            )
            return LimitReached("output_too_long", message)

        with suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_SECONDS):
                await self.process.wait()
                await self._reading

        words = self._redact(self._stderr.decode("utf-8", "replace"))[-_STDERR_SHOWN:].strip()
        if launch.CANNOT_START in words:
            return InfrastructureFault("acp_start", words[words.index(launch.CANNOT_START) :])
        code = self.process.returncode
        if code is None:
            message = "the agent closed its standard output"
        else:
            message = f"the agent ended with exit code {code}"

        if not asked:
            message += (
                " before it had opened a session: does the command start it as an agent of ACP?"
            )

        if self.lines.noise:
            message += (
                f"; on standard output, instead of a message: "
                f"{self._redact(self.lines.noise)[:_STDERR_SHOWN]}"
            )

        if words:
            message += f"; its stderr ends:\n{words}"
        if asked:
            return AgentFault("agent_ended", message, retriable=True)
        return InfrastructureFault("acp_start", message, retriable=True)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(65536):
            self._stderr = (self._stderr + piece)[-_STDERR_KEPT:]


class _Conversation:
    """One session with the agent."""

    def __init__(
        self,
        setting: AgentSetting,
        condition: Condition,
        sample: Sample,
        program: _Program,
        files: Files,
    ) -> None:
        self._setting = setting
        self._condition = condition
        self._sample = sample
        self._program = program
        self._files = files
        self._observed = [Observed(server.name, setting.redact) for server in condition.mcp_servers]
        self._known = known_agent("")
        self.agent = ""
        self._id = ""
        self._model = ""
        self._turn: TurnUpdates | None = None
        self._first = True
        self._spent = 0.0
        self._commands: set[str] = set()  # of the agent's own, such as /help

    @asynccontextmanager
    async def opened(self, work: Path) -> AsyncIterator[None]:
        """A session of the agent that has the tools of the condition's servers.

        Raises TrialFault, OperatorError.
        """
        from acp.connection import Connection

        self._connection = Connection(self._answer, self._program.lines)
        try:
            await self._introduce()
            start = asyncio.get_running_loop().time()
            # Every server through karat's proxy: any agent can use it, and karat sees when it has
            # the tools.
            servers = []
            for server, observed in zip(self._condition.mcp_servers, self._observed, strict=True):
                command, env = self._setting.toolbox.observed_command(server, observed)
                variables = [{"name": name, "value": value} for name, value in env.items()]
                servers.append(
                    {
                        "name": server.name,
                        "command": command[0],
                        "args": command[1:],
                        "env": variables,
                    }
                )

            session = await self._request("session/new", {"cwd": str(work), "mcpServers": servers})
            self._id = str(session.get("sessionId"))
            self._model = _model(session)
            await self._wait_for_tools(start)
            yield
        finally:
            await self._connection.close()

    async def ask(self, turn: Turn) -> Reply:
        """The answer to one question. Raises TrialFault, with the reply so far."""
        text = prompt(self._sample, turn, first=self._first)
        if self._first and self._condition.system_prompt:
            text = f"{self._condition.system_prompt}\n\n{text}"
        self._first = False
        if text.partition(" ")[0].strip() in self._commands:
            raise AgentFault(
                "slash_command",
                "the question begins with a command of the agent, which would run it",
            )

        updates = self._turn = TurnUpdates(
            self._known,
            self._observed,
            tools=self._condition.context.tools,
            outside=self._files.outside,
            redact=self._setting.redact,
        )
        usage = None
        dollars = None
        stop = None
        self._program.lines.received = 0
        asked = {"sessionId": self._id, "prompt": [{"type": "text", "text": text}]}
        try:
            result = await self._request("session/prompt", asked, seconds=None)
            stop = result.text("stopReason")
            usage = reported_usage(result.get("usage"))
            if updates.used_tools and not self._known.whole_usage:
                usage = None
            fault = updates.fault(stop)
        except TrialFault as error:
            fault = error
        finally:
            self._turn = None
            dollars = self._dollars(usage, updates.cost)
            spent(usage, dollars)  # also of an attempt that is cut off

        fault = next((server.fault for server in self._observed if server.fault is not None), fault)
        if fault is not None and not updates.anything:
            raise fault
        reply = msgspec.structs.replace(
            updates.reply(whole=fault is not None),
            usage=usage,
            dollars=dollars,
            model=self._model or None,
            stop_reason=stop,
            agent=self.agent,
        )
        if fault is not None:
            fault.reply = reply
            raise fault

        return reply

    def _dollars(self, usage: Usage | None, cost: float | None) -> float | None:
        """By the user's own price, else the increase in the session cost that the agent reports."""
        before = self._spent
        self._spent = self._spent if cost is None else cost
        if self._model:
            price = own_price(self._model, self._setting.prices)
        else:
            price = None

        if price is not None:
            if usage is not None:
                return price.dollars(usage)
            return None

        if cost is not None:
            return max(0.0, cost - before)
        return None

    async def _request(
        self,
        method: str,
        params: JsonObject,
        *,
        seconds: float | None = _START_SECONDS,
    ) -> Json:
        """The result of a request. Raises TrialFault."""
        from acp.exceptions import RequestError

        asked = seconds is None
        try:
            async with asyncio.timeout(seconds):
                result = await self._connection.send_request(method, params)
        except TimeoutError:
            message = (
                f"the agent did not answer '{method}' within {seconds:g} s: does it speak ACP?"
            )
            raise InfrastructureFault("acp_start", message, retriable=True) from None
        except RequestError as error:
            if error.data is not None:
                more = f" ({json.dumps(error.data, ensure_ascii=False)})"
            else:
                more = ""

            words = self._setting.redact(f"{error}{more}")[:_STDERR_SHOWN]
            if error.code == _WANTS_LOGIN:
                message = (
                    f"the agent requires a login: give it a key with `env`, as each trial has its "
                    f"own HOME: {words}"
                )
                raise InfrastructureFault("unauthorized", message) from error

            message = f"the agent answered '{method}' with an error: {words}"
            if method == "initialize":
                raise InfrastructureFault("acp_start", f"{message}; does it speak ACP?") from error
            raise InfrastructureFault("agent_error", message, retriable=asked) from error
        except ConnectionError as error:
            raise await self._program.ended(asked=asked) from error

        return Json(result)

    async def _introduce(self) -> None:
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        about = {"name": "karat", "version": karat.__version__}
        asked = {
            "protocolVersion": _PROTOCOL,
            "clientCapabilities": capabilities,
            "clientInfo": about,
        }
        reply = await self._request("initialize", asked)
        if reply.get("protocolVersion") != _PROTOCOL:
            message = (
                f"the agent speaks version {reply.get('protocolVersion')!r:.20} of the protocol, "
                f"not {_PROTOCOL}"
            )
            raise InfrastructureFault("acp_start", message)

        info = reply.at("agentInfo")
        name = str(info.get("name") or "unnamed")
        self._known = known_agent(name)
        self.agent = f"{name} {info.get('version') or '(no version)'}"[:_STDERR_SHOWN]
        if self._known.decides_itself and self._condition.context.tools:
            place = f"conditions.{self._condition.name}.tools"
            message = (
                f"{name} lets a model of its own answer permission requests, so an allow-list "
                f"would have no effect"
            )
            raise BadExperiment("experiment", [Fault(place=place, message=message)])

    async def _wait_for_tools(self, start: float) -> None:
        """Waits until the agent has listed the tools of every server: it would start without late
        ones.
        """
        ended = asyncio.create_task(self._program.process.wait())
        try:
            for server, observed in zip(self._condition.mcp_servers, self._observed, strict=True):
                ready = asyncio.create_task(observed.ready.wait())
                left = start + server.init_timeout_seconds - asyncio.get_running_loop().time()
                await asyncio.wait(
                    {ready, ended}, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
                )
                ready.cancel()
                if observed.fault is not None:
                    raise observed.fault
                if ended.done():
                    raise await self._program.ended(asked=False)
                if not observed.ready.is_set():
                    limit = f"{server.init_timeout_seconds:g} s (init_timeout_seconds)"
                    message = (
                        f"the agent did not list the tools of MCP server '{server.name}' within "
                        f"{limit}"
                    )
                    raise InfrastructureFault("mcp_init_timeout", message, retriable=True)
        finally:
            ended.cancel()

    async def _answer(self, method: str, params: object, notification: bool) -> JsonObject | None:
        """The agent's requests and notifications."""
        from acp.exceptions import RequestError

        values = Json(params)
        match method:
            case "session/update":
                self._update(values)
            case "session/request_permission":
                return self._permission(values)
            case "fs/read_text_file" | "fs/write_text_file":
                return self._file(method, values)
            case _ if not notification:
                raise RequestError.method_not_found(method)

        return None

    def _update(self, params: Json) -> None:
        update = params.at("update")
        if self._id and params.get("sessionId") != self._id:
            return  # of a nested session
        if update.get("sessionUpdate") == "available_commands_update":
            commands = update.list("availableCommands")
            self._commands = {f"/{command.get('name')}" for command in commands}
        elif self._turn is not None:
            self._turn.add(update)

    def _permission(self, params: Json) -> JsonObject:
        call = params.at("toolCall")
        kinds = ("reject_once", "reject_always")
        if self._turn is not None and call and self._turn.permits(call):
            kinds = ("allow_once", "allow_always")
        for kind in kinds:
            for option in params.list("options"):
                if option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}

        return {"outcome": {"outcome": "cancelled"}}

    def _file(self, method: str, params: JsonObject) -> JsonObject:
        from acp.exceptions import RequestError

        path, content, line, limit = (
            params.get(name) for name in ("path", "content", "line", "limit")
        )
        try:
            if not self._condition.context.tools:
                raise ValueError("the condition allows no tool of the agent's own")
            if method == "fs/read_text_file":
                numbers = (number if isinstance(number, int) else None for number in (line, limit))
                return {"content": self._files.read(str(path), *numbers)}

            self._files.write(str(path), content if isinstance(content, str) else "")
        except FileNotFoundError:
            raise RequestError(_NOT_FOUND, f"no such file: {path}") from None
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            if self._turn is not None:
                self._turn.refuse(method, str(path), reason)
            raise RequestError(_REFUSED, f"{path}: {reason}") from error

        return {}


def _model(session: Json) -> str:
    """The model that the agent reports; empty if it reports none."""
    options = session.list("configOptions")
    chosen = (
        option.text("currentValue") for option in options if option.get("category") == "model"
    )
    return session.at("models").text("currentModelId") or next(chosen, None) or ""
