"""`karat import`: turns other tools' results into runs."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed

PLACE = ("run", 40)  # in `karat --help`


@click.command("import")
@click.argument("kind", metavar="FORMAT")
@click.argument("paths", type=options.PATH, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=options.FOLDER,
    metavar="DIR",
    default="results",
    show_default=True,
    help="Where to make run folders.",
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="TARGET=COLUMN",
    help="csv: which column is what, e.g. score.accuracy=correct. Repeatable.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the importer (`karat list importers NAME` shows them). Repeatable.",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help=(
        "The column with what questions share, such as their document: questions of one are not "
        "independent."
    ),
)
@options.output()
def command(
    kind: str,
    paths: tuple[Path, ...],
    out: Path,
    columns: tuple[str, ...],
    settings: tuple[str, ...],
    cluster: str | None,
    output: Output,
) -> Exit:
    """Turn results of other tools into runs.

    Every command reads these runs. Asks no model. FORMAT is one of `karat list importers`: inspect,
    csv, …. PATH is a file of results or a folder of them; files that can be compared become
    conditions of one run. Whatever a file does not record stays missing; whatever cannot be read is
    counted.
    """
    from karat_imports.importing import import_results

    made = import_results(
        kind,
        paths,
        results=out,
        columns=columns,
        settings=settings,
        cluster=cluster,
    )
    output.result(str(made), made)
    output.say("", "Next:", *(f"  {typed('report', run.folder)}" for run in made.runs[:3]))
    return Exit.DONE
