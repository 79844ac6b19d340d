"""The work of `karat runs merge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karat import api
from karat.cli.ending import Exit
from karat.cli.output import Output, typed
from karat_scale.merging import merge_runs


def merge(runs: Sequence[str], out: Path, *, results: Path, output: Output) -> Exit:
    """Merges the runs into a folder in `out`. Raises BadRun."""
    paths = [path for run in runs for path in api.folders(run, results=results)]
    merged = merge_runs([api.open(path) for path in paths], out)
    path = str(merged.run.path)
    state = "merged" if merged.changed else "nothing new"
    output.say(*(f"warning: {note}" for note in merged.notes))
    output.result(
        f"{state}: {path}\n", {"run": path, "changed": merged.changed, "notes": list(merged.notes)}
    )
    output.say(f"next: {typed('report', path)}")
    return Exit.DONE
