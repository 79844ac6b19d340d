"""What a workspace of 10,000 files costs a trial, by method: medians of processor time and wall time.

`python benchmarks/workspaces.py [FILES] [TRIALS]`. A trial opens the workspace, starts a program in it that edits one
file and adds another, stores the changes, then ends and removes everything. Processor time includes the programs'.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import _results as results  # beside this file

from karat.redact import Redactor
from karat_coding.changes import store_base, store_changes
from karat_coding.workspace import Base, Overlay, _ways, open_workspace, overlay_for


def main() -> None:
    parser, rows = results.parser(__doc__), list[list[object]]()
    parser.add_argument("files", type=int, nargs="?", default=10_000)
    parser.add_argument("trials", type=int, nargs="?", default=20)
    options = parser.parse_args()
    files, trials = options.files, options.trials
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(files):
            place = folder / "start" / f"folder{number // 100}" / f"file{number}"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"{number}\n" * 200)
        (kept := folder / "kept").mkdir()
        (probe := folder / "probe").mkdir()
        base = Base(folder / "start")
        store_base(kept, base)
        ways: list[Overlay | None] = [*(_ways() if overlay_for(probe).enter else ()), None]
        for way in ways:
            measured = [trial(folder, kept, base, way, number) for number in range(trials if way else 5)]
            wall, processor = (statistics.median(column) for column in zip(*measured, strict=True))
            shown = way.shown if way else "a copy"
            print(f"{shown:42} {processor:6.3f} s of processor time, {wall:6.3f} s, for {files} files")
            rows.append([shown, processor, wall])
    about = f"One trial in a workspace of {files:,} files: medians of {trials}, of a copy 5."
    columns = ["", "processor seconds", "seconds"]
    results.write(options.json, {"title": "Workspaces", "about": about, "columns": columns, "rows": rows})


def trial(folder: Path, kept: Path, base: Base, way: Overlay | None, number: int) -> tuple[float, float]:
    """Wall and processor time, in seconds."""
    clock, before = time.perf_counter(), os.times()
    workspace = open_workspace(folder / f"trial{number}-{way is None}", base, way)
    script = "echo more >> folder1/file150; echo new > new"
    subprocess.run(workspace.command(["sh", "-c", script]), cwd=workspace.path, check=True)
    changes = store_changes(workspace, base, kept / "ab-1.tar.gz", redact=Redactor({}), answer=None)
    workspace.close()
    assert (changes.changed, changes.removed, changes.complete) == (2, 0, True), changes
    after = os.times()
    return time.perf_counter() - clock, sum(after[:4]) - sum(before[:4])


if __name__ == "__main__":
    main()
