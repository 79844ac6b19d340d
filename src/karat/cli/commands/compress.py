"""`karat compress`: compresses the journals of runs that have ended."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

__all__ = ["command"]

_MEGABYTE = 1_000_000


@click.command("compress")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--undo", is_flag=True, help="Turn journal.jsonl.zst back into journal.jsonl.")
@options.results
@options.output()
def command(runs: tuple[str, ...], undo: bool, results: Path, output: Output) -> Exit:
    """Compress the journal of each RUN that has ended.

    RUN is a run folder, the beginning of its name or id, or a folder of runs (then all of them). journal.jsonl becomes
    journal.jsonl.zst, which every command still reads, and so does `zstd -d`. `run --resume` and `score` first
    decompress the journal that they continue. Exit code 2 if a run could not be compressed; the others still are.
    """
    from karat import api, formats
    from karat.errors import BadRun, RunBusy
    from karat.journal import RunLock
    from karat.journal.compressed import compress_journal, expand_journal

    rewritten, lines, failed = [], [], []
    paths: list[Path] = []
    for named in runs:
        try:
            paths += api.folders(named, results=results)
        except BadRun as error:
            failed.append(str(error))
    for path in paths:
        try:
            run = api.open(path)
            before = _bytes(run.journal)
            with RunLock(path):
                if undo:
                    expand_journal(path)
                else:
                    compress_journal(path, checksums=run.has_checksums)
        except (BadRun, RunBusy) as error:
            failed.append(str(error))
            continue
        after = _bytes(run.journal)
        rewritten.append({"run": str(path), "file": run.journal.name, "bytes_before": before, "bytes": after})
        sizes = " to ".join(f"{formats.number(size / _MEGABYTE)} MB" for size in (before, after))
        lines.append(formats.clean(f"{path}: {run.journal.name}, {sizes if before != after else 'as it was'}\n"))
    output.say(*(f"warning: {problem}" for problem in failed))
    output.result("".join(lines), {"runs": rewritten, "problems": failed})
    return Exit.CHANGE_SOMETHING if failed else Exit.DONE


def _bytes(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0
