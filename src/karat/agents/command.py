"""Any program: one JSON object in, one JSON object or plain text out."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from typing import Annotated, cast

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.agents import AgentSetting
from karat.agents._answers import framework_reply
from karat.agents._prompt import prompt_and_history, trial_values
from karat.agents._reading import begins_object
from karat.agents._watchdog import Watchdog
from karat.config.model import AsWords
from karat.context import Workspace
from karat.errors import AgentFault, LimitReached
from karat.records import Condition, History, Reply, Sample, Trial, Turn

__all__ = ["Command"]

_STDERR_SHOWN = 3000  # characters of its end
_STDERR_KEPT = 64_000  # bytes: enough that a secret cut in half at the start is not shown
_REST_SECONDS = 0.5


class Command:
    """Starts a program for every turn, in its own process group, and ends the group with the turn.

    On standard input: `question`, `system_prompt`, `history`, `mcp_servers`, `sample`, `condition`,
    `repetition`, `turn` and `seed`, as one JSON object. On standard output: the answer, as plain
    text or as a JSON object with `text` and, where known, `tool_calls`, `usage`, `dollars`,
    `model`. The program sees only PATH, HOME, LANG and `env`. It starts in the experiment's folder,
    or in its condition's workspace (then `workspace` is the path, and the program or its first
    argument may still name a file in the experiment's folder).
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")

        command: Annotated[list[str], AsWords] = Field(
            min_length=1, description="program and arguments; one text is split as a shell would"
        )
        env: dict[str, str] = Field(
            default_factory=dict, description="its environment besides PATH, HOME and LANG"
        )
        max_output_bytes: int = Field(
            default=10_000_000, ge=1, description="more on standard output ends the attempt"
        )

    indifferent = ("max_output_bytes",)
    bounds_replies = True

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy
    context = ("workspace",)
    enters_workspace = True

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self.unread: set[str] = set()
        program, *arguments = options.command
        if program in ("python", "python3"):
            program = sys.executable
        self._command = [program, *arguments]
        self._folder = setting.folder
        self._redact = setting.redact
        self._toolbox = setting.toolbox
        self._limit = options.max_output_bytes
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._env = {**kept, **options.env}
        self._encode = msgspec.json.Encoder().encode
        self._watchdog = Watchdog()

    def aclose(self) -> None:
        """End the watchdog process."""
        self._watchdog.close()

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: History,
        trial: Trial,
        number: int,
        workspace: Workspace | None,
    ) -> Reply:
        question, past = prompt_and_history(sample, turn, history)
        task = trial_values(
            condition, sample, trial, number, folder=self._folder, toolbox=self._toolbox
        )
        del task["materials"], task["metadata"]
        if workspace is not None:
            task["workspace"] = str(workspace.path)
        output = (
            await self._run(
                self._encode({"question": question, "history": past, **task}), workspace
            )
        ).strip()
        if not output:
            raise AgentFault(
                "empty_output", "the program ended well but printed nothing", retriable=True
            )

        if begins_object(output):
            try:
                # NaN is no answer
                value = json.loads(output, strict=False, parse_constant=lambda constant: None)
                return framework_reply(value, self.unread)
            except (ValueError, RecursionError) as error:
                raise AgentFault(
                    "bad_json",
                    f"standard output begins with '{{' but is not JSON: {error}",
                    retriable=True,
                ) from error

        return Reply(text=output)

    async def _run(self, task: bytes, workspace: Workspace | None) -> str:
        done = asyncio.Event()
        command = self._command
        if workspace is not None:
            command = list(command)
            for place, part in enumerate(command[:2]):
                if (self._folder / part).is_file():
                    command[place] = str(self._folder / part)

            command = workspace.command(command)

        try:
            transport, output = await asyncio.get_running_loop().subprocess_exec(
                lambda: _ProcessOutput(self._limit, done),
                *command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._folder if workspace is None else workspace.path,
                env=self._env,
                start_new_session=True,
            )
        except OSError as error:
            hint = "" if shutil.which(self._command[0]) else " (it is not on PATH)"
            raise AgentFault(
                "no_program", f"cannot start {self._command[0]!r}: {error.strerror}{hint}"
            ) from error

        group = transport.get_pid()
        try:
            self._watchdog.watch(group)
            stdin = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
            stdin.write(task)
            stdin.write_eof()
            await done.wait()
            _end_group(group)
            await _within(output.closed)
        finally:
            _end_group(group)
            self._watchdog.release(group)
            await _within(output.exited)
            transport.close()

        code = transport.get_returncode()
        if output.too_long:
            raise LimitReached(
                "output_too_long", f"more than {self._limit} bytes on standard output"
            )

        if code == 0:
            return output.out.decode("utf-8-sig", "replace")
        how = f"ended with exit code {code}"
        if code is not None and code < 0:
            name: str | int = -code
            with suppress(ValueError):
                name = signal.Signals(-code).name
            how = f"was ended by signal {name}"

        stderr = self._redact(output.err.decode("utf-8", "replace"))[-_STDERR_SHOWN:].strip()
        if stderr:
            stderr_text = f": {stderr}"
        else:
            stderr_text = " and wrote nothing to standard error"

        raise AgentFault("exit_code", f"the program {how}{stderr_text}", retriable=True)


class _ProcessOutput(asyncio.SubprocessProtocol):
    """The output of a program, until it ends or exceeds the limit."""

    def __init__(self, limit: int, done: asyncio.Event) -> None:
        self.out = bytearray()
        self.err = bytearray()
        self.too_long = False
        self._limit = limit
        self._done = done
        self._open = {1, 2}
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self.err = (self.err + data)[-_STDERR_KEPT:]
        elif not self.too_long:
            self.out += data
            if len(self.out) > self._limit:
                self.too_long = True
                self._done.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.closed.set()

    def process_exited(self) -> None:
        self.exited.set()
        self._done.set()


async def _within(event: asyncio.Event) -> None:
    """Waits briefly: a grandchild that left the group may keep the pipes open forever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_REST_SECONDS):
            await event.wait()


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
