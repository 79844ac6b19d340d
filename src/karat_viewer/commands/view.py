"""`karat view`: shows runs in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("look", 30)  # in `karat --help`


class Viewing(options.Options):
    """Where the viewer listens, and who reviews."""

    host: str = options.option(
        "--host",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Listen at this address.",
    )
    port: int = options.option(
        "--port",
        type=click.IntRange(min=0, max=65535),
        default=0,
        metavar="N",
        help="Listen at this port; default: any free one.",
    )
    allow_remote: bool = options.option(
        "--allow-remote",
        is_flag=True,
        help="Allow a --host that other machines can reach. The pages travel unencrypted.",
    )
    open_browser: bool = options.option(
        "--open/--no-open", default=True, help="Open the browser; default: --open."
    )
    reviewer: str | None = options.option(
        "--reviewer", metavar="NAME", help="Name of the reviewer; default: your account's."
    )


@click.command("view")
@click.argument("run", metavar="[RUN|FOLDER]", required=False)
@options.gathered("viewing", Viewing)
@options.results
@options.output()
def command(run: str | None, viewing: Viewing, results: Path, output: Output) -> Exit:
    """View RUN, or every run in FOLDER, in the browser.

    FOLDER is results, if you name none. The pages are served to this machine only, until Ctrl-C.
    The printed address works once, for the browser that opens it first. Reviews are saved in
    labels.jsonl in the run folder; nothing else there changes. Needs the extra `view`.
    """
    from karat_viewer.viewing import view

    view(run, results, viewing, output)
    return Exit.DONE
