"""Acts as an MCP server: carries messages between its standard streams and karat. ``python -m
karat.mcp.proxy``.

karat gives this to agents that start their servers themselves, when traffic is recorded or
replayed. The address to connect to and the token come as JSON in one environment variable;
neither the server's address nor its key is known here. Only the standard library, because
every trial may start several of these.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading

VARIABLE = "KARAT_MCP_PROXY"
EXIT_NO_RUN = 127
_PIECE = 65536


def main() -> None:
    """Carries messages until either side closes."""
    text = os.environ.get(VARIABLE)
    if text is None:
        sys.exit(f"karat: the variable {VARIABLE} is not set (karat sets it for its own proxies)")
    where = json.loads(text)
    # karat handles a terminal's Ctrl-C: it lets the trials in flight finish.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(where["socket"])
        line.sendall(where["token"].encode("ascii") + b"\n")
    except OSError as error:
        sys.stderr.write(f"karat: the run that this proxy belongs to is over ({error.strerror})\n")
        sys.exit(EXIT_NO_RUN)

    threading.Thread(target=_send, args=(line,), daemon=True).start()
    try:
        while piece := line.recv(_PIECE):
            while piece:
                piece = piece[os.write(1, piece) :]
    except OSError:
        pass  # the agent no longer reads

    os._exit(0)  # the other thread may wait for stdin forever


def _send(line: socket.socket) -> None:
    try:
        while piece := os.read(0, _PIECE):
            line.sendall(piece)
        line.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # karat has closed the connection; the other direction sees it


if __name__ == "__main__":
    main()
