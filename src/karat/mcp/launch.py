"""Becomes an MCP server: clean environment, its own session. Run as ``python -m karat.mcp.launch``.

Every stdio server of every agent starts through here. The command comes as JSON in one
environment variable, and the whole environment is replaced before the server sees
it, so a secret is neither in ``ps`` nor in another process's environment. The session keeps
a terminal's Ctrl-C away: servers must survive it until the trials in flight have finished.

    {"argv": [...], "env": {...}, "cwd": "/folder", "parent": 4711}

`parent`, if given, is the process that the server must end with (Linux; elsewhere a
server ends because its stdin closes). Only the standard library, and little of it: each start
waits for this: 10 ms more than for a bare interpreter.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import NoReturn

VARIABLE = "KARAT_MCP_LAUNCH"
CANNOT_START = "karat: cannot start "
EXIT_CANNOT_START = 127  # as in shells


def main() -> None:
    """Replaces this process by the server; returns only to report why it could not."""
    text = os.environ.get(VARIABLE)
    if text is None:
        sys.exit(
            f"{CANNOT_START}an MCP server: the variable {VARIABLE} is not set (karat sets it "
            f"for the servers it starts)"
        )

    definition = json.loads(text)
    argv: list[str] = definition["argv"]
    try:  # noqa: SIM105 - each import costs every start of a server
        os.setsid()
    except PermissionError:
        pass  # this process is a session leader already

    # Asks the kernel for a SIGTERM when the parent dies, also by SIGKILL; this survives exec
    parent: int | None = definition.get("parent")
    if parent is not None and sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(EXIT_CANNOT_START)

    # Python ignores these signals, and the program that replaces it would inherit that.
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.chdir(definition["cwd"])
    except OSError as error:
        _refuse(argv, f"in '{definition['cwd']}': {error.strerror}")

    try:
        os.execvpe(argv[0], argv, definition["env"])  # noqa: S606 - that is the purpose
    except OSError as error:
        _refuse(argv, error.strerror or str(error))
    except ValueError as error:  # a NUL byte, or a name with "="
        _refuse(argv, str(error))


def _refuse(argv: list[str], reason: str) -> NoReturn:
    sys.stderr.write(f"{CANNOT_START}'{argv[0]}': {reason}\n")
    sys.exit(EXIT_CANNOT_START)


if __name__ == "__main__":
    main()
