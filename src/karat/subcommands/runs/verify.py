"""`karat runs verify`: whether run folders are as karat wrote them."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("verify")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@options.results
@options.output()
def command(runs: tuple[str, ...], results: Path, output: Output) -> Exit:
    """Check that each RUN is as karat wrote it. Says what is damaged and how to repair it.

    RUN is a run folder, the beginning of its name or id, `latest`, or a folder of runs. Every line
    of the journal, the samples and the reviews is compared with its checksum. Changes nothing.
    Exit code 2 if anything is damaged.
    """
    from karat.cli.verifying import check

    checked = check(runs, results)
    output.result(str(checked), checked)
    return Exit.DONE if checked.ok else Exit.CHANGE_SOMETHING
