"""`karat view`: shows runs in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = 140  # in `karat --help`


@click.command("view")
@click.argument("run", metavar="[RUN|FOLDER]", required=False)
@options.gathered("viewing", options.Viewing)
@options.results
@options.output()
def command(run: str | None, viewing: options.Viewing, results: Path, output: Output) -> Exit:
    """View RUN, or every run in FOLDER (default: results), in the browser.

    The pages are served to this machine only, until Ctrl-C. The printed address works once, for the browser that
    opens it first. Reviews are saved in labels.jsonl in the run folder; nothing else there changes. Needs the extra
    `view`.
    """
    from karat.cli.viewing import view

    view(run, results, viewing, output)
    return Exit.DONE
