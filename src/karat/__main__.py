"""The program `karat`: also `python -m karat`."""

from __future__ import annotations

import sys
from io import TextIOWrapper

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Carries out one command and returns its exit code."""
    from karat.cli import cli
    from karat.cli.ending import Ending

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a sign shows ? in its place
    ending = Ending()
    with ending:
        ending.code = cli.main(arguments, prog_name="karat", standalone_mode=False, obj=ending) or 0
        sys.stdout.flush()
    return ending.code


if __name__ == "__main__":
    sys.exit(main())
