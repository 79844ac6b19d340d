"""Summaries and comparisons for pages: in this process, or in a separate one for large runs.

For a large run, a summary in the user's cache is used if there is one (`karat.analysis.cached`).

`python -m karat_viewer.summing RUN [RUN]` writes one as JSON to standard output; the names of the
conditions to compare are JSON on standard input, since a run of a stranger may have a name that no
argument can hold. The separate process keeps pages responsive, and gives back the memory that a
million scores need.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from karat.analysis import Comparison, Summary, compare
from karat.analysis.cached import cached_summary, summarize_cached
from karat.analysis.parts import from_json
from karat.errors import KaratError, OperatorError
from karat.index.cache import is_large
from karat.journal import RunFolder

_Result = TypeVar("_Result", Summary, Comparison)


def summed(run: RunFolder) -> Summary:
    """Every number of a run. Raises KaratError."""
    if is_large(run):
        return cached_summary(run) or _apart(Summary, run.path)
    return summarize_cached(run)


def compared(
    a: RunFolder,
    b: RunFolder,
    condition_a: str | None,
    condition_b: str | None,
) -> Comparison:
    """Like `karat.analysis.compare_runs`."""
    if not (is_large(a) or is_large(b)):
        return compare(a, b, condition_a=condition_a, condition_b=condition_b)
    return _apart(Comparison, a.path, b.path, names=(condition_a, condition_b))


def _apart(kind: type[_Result], *paths: Path, names: Sequence[str | None] = ()) -> _Result:
    command = [sys.executable, "-m", __spec__.name, *map(str, paths)]
    given = msgspec.json.encode(names)
    process = subprocess.run(command, capture_output=True, check=False, input=given)
    if process.returncode:
        stderr = process.stderr.decode("utf-8", "replace")[-2000:].strip()
        raise (OperatorError if process.returncode == OperatorError.exit_code else KaratError)(
            stderr or "it was ended"
        )

    return from_json(process.stdout, kind)


def main(arguments: list[str]) -> int:
    """0, or an exit code with a sentence on standard error."""
    try:
        runs = [RunFolder.open(path) for path in arguments]
        result: Summary | Comparison
        if len(runs) == 1:
            result = summarize_cached(runs[0])
        else:
            a, b = msgspec.json.decode(sys.stdin.buffer.read(), type=tuple[str | None, str | None])
            result = compare(runs[0], runs[1], condition_a=a, condition_b=b)
    except KaratError as error:
        sys.stderr.write(str(error))
        return error.exit_code

    sys.stdout.buffer.write(msgspec.json.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
