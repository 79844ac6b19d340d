"""Starts Claude Code and watches over it: a clean environment, its own session, and nothing left
running at the end.

Run as a script, `python -I -S launch.py DEFINITION ARGUMENTS…`; DEFINITION is a JSON file:

    {"command": ["/…/claude"], "env": {…}, "home": "/tmp/…", "parent": 4711, "cwd": "/tmp/…"}

`home` is removed at the end; without `cwd` the program starts in the folder of this process.

The program inherits stdin, stdout and stderr and gets the ARGUMENTS. MCP servers that it
starts have their own sessions, so no signal to a process group would reach them all. On Linux
this process adopts orphans, and so finds every descendant; elsewhere it finds those whose
parents are alive. When the program ends, on SIGTERM, SIGINT or SIGHUP, or when karat dies,
every descendant is ended. Standard library only: each trial waits for this.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import NoReturn

CANNOT_START = "karat: cannot start "
EXIT_CANNOT_START = 127  # as in shells
PID_FILE = "launcher.pid"
TERM_SECONDS = 0.5  # after SIGTERM, before SIGKILL
KILL_SECONDS = 2.0  # for the kernel to clean up killed processes
_POLL_SECONDS = 0.005
_REMOVALS = 5

# Variables that the SDK adds to the environment; the program needs them for the SDK's protocol.
OF_THE_SDK = (
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
)


class _End(BaseException):
    """A signal asked us to end."""


def main() -> NoReturn:
    """Runs until the program has ended, and exits with its code."""
    with open(sys.argv[1], encoding="utf-8") as file:
        definition = json.load(file)
    home = definition["home"]
    parent = definition["parent"]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)
    code = 128 + signal.SIGTERM
    try:
        # A session of its own. On Linux, this process adopts orphans and ends with its parent
        try:  # noqa: SIM105 - each import costs every start of a trial
            os.setsid()
        except PermissionError:
            pass  # the parent has already made this process a leader

        if sys.platform == "linux":
            import ctypes

            set_parent_death_signal = 1
            set_child_subreaper = 36
            libc = ctypes.CDLL(None)
            libc.prctl(set_child_subreaper, 1)
            libc.prctl(set_parent_death_signal, signal.SIGTERM)

        if os.getppid() != parent:  # it died before the call
            raise _End

        with open(os.path.join(home, PID_FILE), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))
        code = _run(definition)
    except _End:
        pass

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _end_all()
    import shutil

    for _ in range(_REMOVALS):  # done here because karat may have died, and the folder holds keys
        shutil.rmtree(home, ignore_errors=True)
        if not os.path.exists(home):
            break
        time.sleep(_POLL_SECONDS)  # a program that was just killed may have made another file

    os._exit(code)


def _end(_number: int, _frame: object) -> None:
    raise _End


def _run(definition: dict[str, object]) -> int:
    command = definition["command"]
    given = definition["env"]
    cwd = definition.get("cwd")
    assert isinstance(command, list)
    assert isinstance(given, dict)
    assert isinstance(cwd, str | None)
    env = {**given, **{name: os.environ[name] for name in OF_THE_SDK if name in os.environ}}
    try:
        child = subprocess.Popen([*command, *sys.argv[2:]], env=env, cwd=cwd)
    except OSError as error:
        sys.stderr.write(f"{CANNOT_START}'{command[0]}': {error.strerror}\n")
        return EXIT_CANNOT_START

    # Readers of the program's output must see its end when the program ends, not when this process
    # does.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):
        os.dup2(nothing, stream)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child.pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            if child.returncode >= 0:
                return child.returncode
            return 128 - child.returncode


def _end_all() -> None:
    """Sends SIGTERM to every descendant, waits a moment, then sends SIGKILL until none is left."""
    doomed = set(_descendants())
    _signal(doomed, signal.SIGTERM)
    deadline = time.monotonic() + TERM_SECONDS
    while _children_left() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        # Without adoption of orphans, only the processes seen at first can be named.
        doomed.update(_descendants())
        _signal(doomed, signal.SIGKILL)
        if not _children_left() or time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)


def _children_left() -> bool:
    """Reaps ended children; whether any are left.

    With adoption, every descendant becomes a child in the end.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False

    return True


def _signal(pids: set[int], number: int) -> None:
    for pid in pids:
        try:  # noqa: SIM105 - each import costs every start of a trial
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _descendants() -> list[int]:
    below: dict[int, list[int]] = {}
    for pid, parent in _processes():
        below.setdefault(parent, []).append(pid)
    pids: list[int] = []
    front = [os.getpid()]
    while front:
        front = [pid for parent in front for pid in below.get(parent, [])]
        pids += front

    return pids


def _processes() -> list[tuple[int, int]]:
    """Every process with its parent."""
    if not os.path.exists("/proc/self/stat"):
        listed = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=False
        )
        found = []
        for pid, parent in (line.split() for line in listed.stdout.splitlines()):
            found.append((int(pid), int(parent)))
        return found

    processes = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    # The second field is the program's name in parentheses, and may contain
                    # anything.
                    processes.append((int(name), int(file.read().rpartition(")")[2].split()[1])))
            except (FileNotFoundError, ProcessLookupError):
                continue

    return processes


if __name__ == "__main__":
    main()
