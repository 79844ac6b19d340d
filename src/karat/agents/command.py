"""Any program: one JSON object in, one JSON object or plain text out."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat.agents import AgentSetting
from karat.agents._answers import reply_from
from karat.agents._servers import client_config
from karat.errors import AgentFault, LimitReached
from karat.records import Condition, Reply, Sample, Trial, Turn

__all__ = ["Command"]

_STDERR_SHOWN = 3000  # characters of its end
_STDERR_KEPT = 64_000  # bytes: so many more that a secret cut in half at their begin is not shown
_GRACE_SECONDS = 2.0
_LOOK_SECONDS = 0.1  # how soon an exit is noticed when a grandchild holds the pipe


class Command:
    """Starts a program for every turn, in a process group of its own, and ends the group with the turn.

    On standard input: `question`, `system_prompt`, `history`, `mcp_servers`, `sample`,
    `condition`, `repetition`, `turn` and `seed`, as one JSON object. On standard output: the
    answer, as plain text or as a JSON object with `text` and, where known, `tool_calls`,
    `usage`, `dollars`, `model`. The program sees PATH, HOME, LANG and `env`, nothing else.
    """

    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")

        command: list[str] = Field(
            min_length=1, description="program and arguments; one text is split as a shell would"
        )
        env: dict[str, str] = Field(default_factory=dict, description="its environment besides PATH, HOME and LANG")
        max_output_bytes: int = Field(default=10_000_000, ge=1, description="more on standard output ends the attempt")

        @field_validator("command", mode="before")
        @classmethod
        def _split(cls, command: object) -> object:
            return shlex.split(command) if isinstance(command, str) else command

    indifferent = ("max_output_bytes",)

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        program, *arguments = options.command
        if program in ("python", "python3"):
            program = sys.executable
        self._command = [program, *arguments]
        self._folder, self._redact = setting.folder, setting.redact
        self._limit = options.max_output_bytes
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self._env = {**kept, **options.env}
        self._encode = msgspec.json.Encoder().encode

    async def ask(
        self, condition: Condition, sample: Sample, turn: Turn, history: Sequence[tuple[Turn, Reply]], trial: Trial
    ) -> Reply:
        task = {
            "question": turn.question,
            "system_prompt": condition.system_prompt,
            "history": [{"question": asked.question, "answer": reply.text} for asked, reply in history],
            "mcp_servers": client_config(condition, self._folder),
            "sample": sample.id,
            "condition": condition.name,
            "repetition": trial.repetition,
            "turn": len(history),
            "seed": trial.seed,
        }
        said = (await self._run(self._encode(task))).strip()
        if not said:
            raise AgentFault("empty_output", "the program ended well but printed nothing", retriable=True)
        if said.startswith("{"):
            try:
                return reply_from(msgspec.json.decode(said))
            except (msgspec.DecodeError, UnicodeEncodeError) as error:
                raise AgentFault(
                    "bad_json", f"standard output begins with '{{' but is no JSON: {error}", retriable=True
                ) from error
        return Reply(text=said)

    async def _run(self, task: bytes) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self._folder,
                env=self._env,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError) as error:
            hint = "" if shutil.which(self._command[0]) else " (it is not on PATH)"
            raise AgentFault("no_program", f"cannot start {self._command[0]!r}: {error.strerror}{hint}") from error
        try:
            return await self._talk(process, task)
        finally:
            await _ended(process)

    async def _talk(self, process: asyncio.subprocess.Process, task: bytes) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        feeding = asyncio.create_task(_feed(process.stdin, task))
        complaining = asyncio.create_task(_tail(process.stderr))
        reading = asyncio.create_task(_all(process.stdout, self._limit))
        try:
            while not reading.done():
                await asyncio.wait({reading}, timeout=_LOOK_SECONDS)
                if process.returncode is not None:
                    # A child of the program that keeps the pipe open must not hold the trial.
                    _end_group(process.pid)
            out = await reading
            code = await process.wait()
            _end_group(process.pid)
            complaint = self._redact((await complaining).decode("utf-8", "replace"))[-_STDERR_SHOWN:].strip()
        finally:
            for task_of_pipe in (feeding, complaining, reading):
                task_of_pipe.cancel()
            await asyncio.gather(feeding, complaining, reading, return_exceptions=True)
        if code != 0:
            how = f"was ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            said = f": {complaint}" if complaint else " and wrote nothing to standard error"
            raise AgentFault("exit_code", f"the program {how}{said}", retriable=True)
        return out.decode("utf-8", "replace")


async def _feed(stdin: asyncio.StreamWriter, task: bytes) -> None:
    # A program may answer without reading its input, or close it early: that is its right.
    with suppress(BrokenPipeError, ConnectionResetError):
        stdin.write(task)
        await stdin.drain()
        stdin.close()
        await stdin.wait_closed()


async def _all(stdout: asyncio.StreamReader, limit: int) -> bytes:
    parts, size = [], 0
    while part := await stdout.read(65536):
        size += len(part)
        if size > limit:
            raise LimitReached("output_too_long", f"more than {limit} bytes on standard output")
        parts.append(part)
    return b"".join(parts)


async def _tail(stderr: asyncio.StreamReader) -> bytes:
    kept = b""
    while part := await stderr.read(65536):
        kept = (kept + part)[-_STDERR_KEPT:]
    return kept


async def _ended(process: asyncio.subprocess.Process) -> None:
    _end_group(process.pid)
    # asyncio calls a process ended only when its pipes are read to their end. A grandchild
    # that left the group can keep them open, so the wait has a bound; the program is dead.
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_SECONDS):
            for pipe in (process.stdout, process.stderr):
                while pipe is not None and await pipe.read(65536):
                    pass
            await process.wait()


def _end_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
