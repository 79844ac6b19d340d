"""`karat runs`: the run folders."""

from __future__ import annotations

import click

from karat.cli import Subcommands, options

PLACE = ("keep", 10)  # in `karat --help`


@click.group("runs", cls=Subcommands)
@options.debug
@options.show_help
def command() -> None:
    """List, merge or verify run folders."""
