"""Programs that score a workspace: with limits, without the run's secrets, and with nothing left at
the end.

They may run the agent's own code. It runs as this user, with the network:
`docs/explanation/security.md`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import templates
from karat.config.model import AsWords
from karat.context import Workspace, read_tree
from karat.errors import BadOption, JudgeFault
from karat.files import open_regular
from karat.records import Sample
from karat_coding import launch
from karat_coding.changes import put, why_mostly_left_out

_LIMITS = (
    'ulimit -f "$1"; [ "$2" = 0 ] || ulimit -v "$2"; ulimit -u "$3" 2>/dev/null || ulimit -p "$3"; '
    'ulimit -c 0; shift 3; exec "$@"'
)
LARGEST_READ = 10_000_000  # bytes of a file or of a program's output that a scorer reads
_LARGEST_FILE = 2**31 // 512  # blocks
_SHOWN = 1500  # characters of the end of standard error
_POLL_SECONDS = 0.02
_END_SECONDS = 5.0


class ProgramOptions(BaseModel):
    """What the experiment file may set for a program."""

    model_config = ConfigDict(extra="forbid")
    command: Annotated[list[str], AsWords] = Field(
        min_length=1,
        description="program and arguments, one text is split as a shell would; {{ sample }} is "
        "the sample's id, {{ metadata.NAME }} a column of the dataset",
    )
    add: str | None = Field(
        default=None,
        description="a folder, such as hidden tests, that is laid over the workspace before",
    )
    env: dict[str, str] = Field(
        default={}, description="its environment besides PATH, LANG and its own HOME"
    )
    timeout_seconds: float = Field(default=300.0, gt=0, le=86_400)  # for one answer
    # address space of each process; null: not limited
    memory_mb: int | None = Field(default=8192, ge=64)
    # of this user, including those of other programs
    max_processes: int = Field(default=4096, ge=1)


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """How a program ended."""

    code: int | None  # None: one of our limits ended it
    limit: str = ""  # which
    output: bytes  # what it wrote to standard output, up to the limit
    errors: str  # the end of standard error

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        how = self.limit or f"ended with exit code {self.code}"
        return f"the program {how}" + (f": {self.errors}" if self.errors else "")


def added(folder: Path, name: str | None) -> tuple[dict[str, tuple[bytes, bool]], str]:
    """The files that are copied over a workspace, each with whether it is executable; and their
    digest.

    Raises BadOption if the folder cannot be read.
    """
    if name is None:
        return {}, ""
    try:
        tree = read_tree(folder / name)
        files = {}
        for entry in tree.entries:
            if not entry.folder and entry.link is None:
                files[entry.path] = ((folder / name / entry.path).read_bytes(), entry.executable)
    except (OSError, ValueError) as error:
        raise BadOption("add", f"'{name}' {getattr(error, 'strerror', None) or error}") from error

    return files, tree.digest


def run_program(
    options: ProgramOptions,
    sample: Sample,
    workspace: Workspace,
    files: dict[str, tuple[bytes, bool]],
    given: bytes = b"",
) -> Finished:
    """Runs the command in a workspace after copying `files` over it. At its end, every process it
    started has ended.

    `given`: standard input. Raises JudgeFault if most of the workspace is missing or the program
    cannot be started, BadOption for a wrong template.
    """
    if (why := why_mostly_left_out(workspace.left_out)) is not None:
        raise JudgeFault(
            "workspace_incomplete", f"not everything that the trial left could be kept: {why}"
        )

    for name, (data, executable) in files.items():
        put(workspace.path, name, data, executable=executable)
    values = {"sample": sample.id, "metadata": sample.metadata}
    program, *arguments = [
        templates.fill(part, values, place="command") for part in options.command
    ]
    program = sys.executable if program in ("python", "python3") else program
    place = workspace.path.parent
    for folder in ("home", "tmp"):
        (place / folder).mkdir()
    kept = {"PATH": os.environ.get("PATH", os.defpath), "LANG": os.environ.get("LANG", "C.UTF-8")}
    env = {**kept, "HOME": str(place / "home"), "TMPDIR": str(place / "tmp"), **options.env}
    limits = [str(_LARGEST_FILE), str((options.memory_mb or 0) * 1024), str(options.max_processes)]
    command = ["/bin/sh", "-c", _LIMITS, "sh", *limits, program, *arguments]
    definition = {
        "command": command,
        "env": env,
        "home": str(place / "home"),
        "parent": os.getpid(),
    }
    (place / "launch.json").write_text(json.dumps(definition))
    (place / "given").write_bytes(given)
    launcher = [sys.executable, "-I", "-S", launch.__file__, str(place / "launch.json")]
    with (
        open(place / "given", "rb") as stdin,
        open(place / "output", "w+b") as output,
        open(place / "errors", "w+b") as errors,
    ):
        process = subprocess.Popen(
            launcher,
            stdin=stdin,
            stdout=output,
            stderr=errors,
            cwd=workspace.path,
            env=kept,
            start_new_session=True,
        )
        limit = _wait(process, (output.fileno(), errors.fileno()), options.timeout_seconds)
        size = errors.seek(0, os.SEEK_END)
        errors.seek(max(0, size - 4 * _SHOWN))
        stderr_end = errors.read(4 * _SHOWN).decode("utf-8", "replace").strip()[-_SHOWN:]
        output.seek(0)
        code = None if limit else process.returncode
        finished = Finished(
            code=code, limit=limit, output=output.read(LARGEST_READ), errors=stderr_end
        )

    if code in (126, 127):
        raise JudgeFault("no_program", finished.ending)
    return finished


def _wait(process: subprocess.Popen[bytes], files: tuple[int, int], seconds: float) -> str:
    """Waits until the launcher has ended, and everything with it.

    Returns the limit that ended it, if any.
    """
    limit, deadline = "", time.monotonic() + seconds
    try:
        while not limit:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
                return ""

            if time.monotonic() > deadline:
                limit = f"did not end within {seconds:g} seconds"
            elif max(os.fstat(file).st_size for file in files) > LARGEST_READ:
                limit = f"wrote more than {LARGEST_READ} bytes"

        return limit
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)  # the launcher ends every descendant, then itself
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_SECONDS)

        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_output(workspace: Workspace, name: str) -> bytes | None:
    """A file that a program wrote; None if there is no regular file that is not too long."""
    with (
        suppress(OSError),
        open_regular(workspace.path / name, within=workspace.path, at_most=LARGEST_READ) as file,
    ):
        return file.read(LARGEST_READ)

    return None
