"""The folder in which one attempt at a trial works: an overlay mount where the system allows it,
else a copy.

The overlay is mounted in the agent process's own mount namespace, never in karat's: however the
process ends, the mount goes with it. Changes go to a separate folder (`upper`), so starting and
ending cost the same whatever the size of the workspace. If overlays cannot be mounted, and for
agents that run inside karat's process, the folder is copied; the file system shares the blocks if
it can. Hard links would not do: a file edited in place would change for every trial.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from karat.context.trees import copy_tree, read_tree
from karat.errors import BadOption
from karat.files import remove_tree

_OPTIONS = (
    "lowerdir=base,upperdir=upper,workdir=work,nosuid,nodev,redirect_dir=nofollow,"
    "metacopy=off,index=off"
)
_MOUNT = (
    'cd "$1" && "$2" -t overlay karat -o "$3" workspace && cd workspace && shift 3 && exec "$@"'
)
_PROBE_SECONDS = 10
_END_SECONDS = 2.0
_INSTRUCTIONS = (
    *(
        "CLAUDE.md",
        "CLAUDE.local.md",
        ".claude",
        "AGENTS.md",
        "AGENT.md",
        ".agents",
        "GEMINI.md",
        ".gemini",
        "QWEN.md",
    ),
    *(
        ".qwen",
        "opencode.json",
        ".opencode",
        ".codex",
        ".cursor",
        ".cursorrules",
        ".mcp.json",
        ".git",
    ),
)


class Base:
    """The folder that trials start from, which no longer changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = read_tree(path)
        self.entries = {entry.path: entry for entry in self.tree.entries}


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """How a process gets its own overlay mount."""

    shown: str  # for people
    enter: tuple[str, ...] = ()  # start of its command line; (): overlays cannot be mounted here
    leave: tuple[str, ...] = ()  # follows once it is mounted
    options: str = ""


class Workspace:
    """A fresh copy of the condition's workspace."""

    def __init__(
        self, path: Path, overlay: Overlay | None = None, *, left_out: Sequence[str] = ()
    ) -> None:
        self.path = path  # as the agent's processes see it
        # of a rebuilt one: what is not there although the trial left it, and why
        self.left_out = left_out
        # None: a folder like any other
        self.overlay = overlay if overlay is not None and overlay.enter else None

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command line for a process that sees the workspace; with an overlay it also starts
        there.
        """
        if self.overlay is None:
            return list(argv)
        mount = shutil.which("mount") or "mount"
        return [
            *self.overlay.enter,
            str(self.path.parent),
            mount,
            self.overlay.options,
            *self.overlay.leave,
            *argv,
        ]

    def root(self, pid: int | None) -> Path:
        """The workspace as karat's own process sees it.

        `pid`: of a process started by `command`.
        """
        if self.overlay is None or pid is None:
            return self.path
        return Path(f"/proc/{pid}/root{self.path}")

    @property
    def changed(self) -> Path:
        """The folder with the changes; for a copy, everything."""
        if self.overlay is None:
            return self.path
        return self.path.with_name("upper")

    def close(self) -> None:
        """Ends the workspace's processes and removes it."""
        self.end_processes()
        remove_tree(self.path.parent)

    def end_processes(self) -> None:
        """Ends processes still in the overlay's namespace, such as a program that left its process
        group.
        """
        deadline = time.monotonic() + _END_SECONDS
        while self.overlay is not None and self._kill() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _kill(self) -> bool:
        killed = False
        ours = os.readlink("/proc/self/ns/mnt")
        # our names need no escaping
        mark = os.fsencode("/".join(["", *self.path.parts[-3:], ""]))[:-1] + b" "
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError):
                if (
                    os.readlink(f"/proc/{pid}/ns/mnt") != ours
                    and mark in Path(f"/proc/{pid}/mountinfo").read_bytes()
                ):
                    os.kill(int(pid), signal.SIGKILL)
                    killed = True

        return killed


def open_workspace(folder: Path, base: Base, overlay: Overlay | None) -> Workspace:
    """A workspace in the new folder `folder`. `overlay`: None for a copy. Raises OSError."""
    workspace = Workspace(folder / "workspace", overlay)
    folder.mkdir(mode=0o700)
    if workspace.overlay is None:
        copy_tree(base.tree, base.path, workspace.path)
    else:
        # mount options cannot express every path
        (folder / "base").symlink_to(base.path.absolute())
        for name in ("upper", "work", "workspace"):
            (folder / name).mkdir(mode=0o700)

    return workspace


def overlay_for(folder: Path) -> Overlay:
    """An overlay that works below `folder`, tried with a real mount; if none works, `shown` says
    why.
    """
    missing = []
    for name in ("unshare", "mount"):
        if shutil.which(name) is None:
            missing.append(name)

    if missing:
        return Overlay(shown=f"there is no program `{missing[0]}`")
    base = folder / "probed"
    (base / "below").mkdir(parents=True)
    (base / "below" / "file").touch()
    reasons: list[str] = []
    for number, way in enumerate(_ways()):
        workspace = open_workspace(folder / f"probe-{number}", Base(base), way)
        argv = workspace.command(["sh", "-c", "rm -r below && mkdir below && : > made"])
        try:
            process = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
            effective = (workspace.changed / "made").exists() and (base / "below" / "file").exists()
        except (OSError, subprocess.TimeoutExpired) as error:
            reasons.append(str(error))
            continue
        finally:
            workspace.close()

        if process.returncode == 0 and effective:
            return way
        reasons.append(
            " ".join(process.stderr.decode("utf-8", "replace").split())[:200] or "it has no effect"
        )

    return Overlay(shown="; ".join(dict.fromkeys(reasons)))


def _ways() -> list[Overlay]:
    """Ways to mount an overlay, the better one first."""
    unshare = shutil.which("unshare") or "unshare"
    script = ("--mount", "sh", "-c", _MOUNT, "karat")
    root = Overlay(shown="an overlay mount", enter=(unshare, *script), options=_OPTIONS)
    user = Overlay(
        shown="an overlay mount in a user namespace",
        enter=(unshare, "--user", "--map-root-user", *script),
        # The program runs in another namespace, with its own user id and without the right to
        # unmount.
        leave=(unshare, "--user", f"--map-user={os.getuid()}", f"--map-group={os.getgid()}", "--"),
        options=f"userxattr,{_OPTIONS}",
    )
    if os.geteuid() == 0:
        return [root, user]
    return [user]


def refuse_instructions_above(folder: Path) -> None:
    """Raises BadOption if an agent below `folder` would find instructions, or a repository, there
    or above.
    """
    for above in (folder.resolve(), *folder.resolve().parents):
        for name in _INSTRUCTIONS:
            if os.path.lexists(above / name):
                problem = (
                    f"workspaces lie in '{folder}', where agents would also find '{above / name}'"
                )
                raise BadOption(
                    "workspace", f"{problem}; remove that, or set TMPDIR to a folder elsewhere"
                )
