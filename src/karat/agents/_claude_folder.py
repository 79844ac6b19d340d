"""One trial's temporary folder for Claude Code: HOME, empty working directory, and the wrapper that starts it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from karat.agents._claude_launch import PID_FILE
from karat.files import temporary_folder

__all__ = ["Folder", "trial_folder"]

GONE_SECONDS = 5.0  # more than the launcher may take to end everything
_POLL_SECONDS = 0.01


class Folder:
    """Where everything of one trial lies. Readable by its owner only: the files hold keys."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._launcher: int | None = None
        self._over = False
        self.work, self.temporary = home / "work", home / "tmp"
        self.wrapper, self.prompt, self.servers = home / "claude", home / "prompt.txt", home / "servers.json"

    def fill(self, *, program: Path, env: Mapping[str, str], prompt: str, servers: Mapping[str, Any]) -> None:
        """What Claude Code needs, as files: on a command line, `ps` would show prompts and keys to everyone."""
        for folder in (self.work, self.temporary):
            folder.mkdir()
        self.prompt.write_bytes(prompt.encode("utf-8", "surrogatepass"))
        self.servers.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        own = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **env,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PWD": str(self.work),
        }
        definition = {"program": str(program), "env": own, "home": str(self.home), "parent": os.getpid()}
        (self.home / "launch.json").write_text(json.dumps(definition), encoding="utf-8")
        self.wrapper.write_text(self._script(), encoding="utf-8")
        self.wrapper.chmod(0o700)

    def end(self) -> None:
        """Tells the launcher to end everything now. Returns at once: nothing that is cancelled can prevent it."""
        pid = self._pid()
        if pid is not None and not self._over:  # the number of what is gone may be another's by now
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    async def gone(self) -> None:
        """Waits for the launcher, which goes last; kills its session if it does not go."""
        pid = self._pid()
        if pid is None:
            return
        deadline = asyncio.get_running_loop().time() + GONE_SECONDS
        while _runs(pid) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(_POLL_SECONDS)
        if _runs(pid):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._over = True

    def _pid(self) -> int | None:
        if self._launcher is None:
            with suppress(FileNotFoundError, ValueError):
                self._launcher = int((self.home / PID_FILE).read_text(encoding="ascii"))
        return self._launcher

    def _script(self) -> str:
        """The SDK takes one path and hands on all of our environment; this leaves only the SDK's own variables."""
        from karat.agents import _claude_launch

        kept = " ".join(f'{name}="${name}"' for name in _claude_launch.OF_THE_SDK)
        launcher = [sys.executable, "-I", "-S", _claude_launch.__file__, str(self.home / "launch.json")]
        return f"#!/bin/sh\ntrap '' INT\nexec env -i {kept} {shlex.join(launcher)} \"$@\"\n"


@contextmanager
def trial_folder() -> Iterator[Folder]:
    """A new folder, gone with the block."""
    with temporary_folder("claude") as home:
        yield Folder(home)


def _runs(pid: int) -> bool:
    """Whether the process is there; a zombie is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self/stat").exists()
