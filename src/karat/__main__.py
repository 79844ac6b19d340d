"""The program `karat`: also `python -m karat`."""

from __future__ import annotations

import gc
import sys
from io import TextIOWrapper

from karat.cli import cli
from karat.cli.ending import Ending, leave_in_time
from karat.garbage import RARELY


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Without arguments it is the program, and the process ends with it.
    """
    gc.set_threshold(*RARELY)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a terminal that cannot show a character shows ? instead
            stream.reconfigure(errors="replace")

    ending = Ending()
    with ending:
        ending.code = cli.main(arguments, prog_name="karat", standalone_mode=False, obj=ending) or 0
        sys.stdout.flush()

    if arguments is None:
        leave_in_time(ending.code)
    return ending.code


if __name__ == "__main__":
    sys.exit(main())
