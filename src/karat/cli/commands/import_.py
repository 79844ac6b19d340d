"""`karat import`: drafts from what others wrote down."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed

__all__ = ["command"]


@click.command("import")
@click.argument("kind")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The folder for the draft (of several: their folders); default: the draft's name, in this one.",
)
@click.option("--force", is_flag=True, help="Write over files that are there.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the importer (`karat list importers NAME` shows them). Repeatable.",
)
@options.output()
def command(kind: str, path: Path, out: Path | None, force: bool, settings: tuple[str, ...], output: Output) -> Exit:
    """Draft a dataset from the material in PATH, and list what a person must decide.

    KIND is humanstudy (a study folder of HumanStudy-Bench, or a folder of several: a draft of
    study.yaml, its materials, README.md and DECISIONS.md). Numbers are checked against each other
    and nothing is guessed; `karat check` names what is still open.
    """
    from karat.cli.importing import import_

    found = import_(kind, path, out=out, force=force, settings=settings)
    output.result(str(found), found)
    if len(found.drafts) == 1:
        output.say("", "Next:", f"  {typed('check', found.drafts[0].folder)}")
    return Exit.DONE
