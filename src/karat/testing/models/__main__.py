"""`python -m karat.testing.models`: the server as a program that runs until it is ended."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from karat.errors import OperatorError
from karat.testing.models.server import serve


def main(arguments: list[str] | None = None) -> int:
    """Prints the base URLs as one line of JSON, then serves."""
    parser = argparse.ArgumentParser(prog=__package__, description="A scripted model server.")
    parser.add_argument(
        "--script", type=Path, help="YAML or JSON; without it the server improvises"
    )
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--log", type=Path, help="gets a line of JSON for each request")
    chosen = parser.parse_args(arguments)
    ending = {signal.SIGINT, signal.SIGTERM}
    # before another thread exists that could receive one
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    try:
        with serve(chosen.script, port=chosen.port, log=chosen.log, keep=1) as server:
            urls = {
                name: getattr(server, name)
                for name in ("openai_url", "anthropic_url", "gemini_url")
            }
            sys.stdout.write(json.dumps(urls) + "\n")
            sys.stdout.flush()
            signal.sigwait(ending)
    except OperatorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code

    return 0


if __name__ == "__main__":
    sys.exit(main())
