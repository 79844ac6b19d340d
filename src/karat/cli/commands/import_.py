"""`karat import`: turns other tools' results into runs, and other people's studies into drafts of datasets."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed
from karat.errors import BadOption

__all__ = ["command"]


@click.command("import")
@click.argument("kind", metavar="FORMAT")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where to make run folders; default: results. For humanstudy: the folder for the draft (for several: the "
    "folder that holds theirs); default: the draft's name, in the current folder.",
)
@click.option("--force", is_flag=True, help="humanstudy: overwrite existing files.")
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
    help="The column with what questions share, such as their document: questions of one are not independent.",
)
@options.output()
def command(  # noqa: PLR0913 - an argument for each option
    kind: str,
    paths: tuple[Path, ...],
    out: Path | None,
    force: bool,
    columns: tuple[str, ...],
    settings: tuple[str, ...],
    cluster: str | None,
    output: Output,
) -> Exit:
    """Turn results of other tools into runs that every command reads. Asks no model.

    FORMAT is one of `karat list importers`: inspect, csv, …. PATH is a file of results or a folder of them; files
    that can be compared become conditions of one run. Whatever a file does not record stays missing; whatever cannot
    be read is counted.

    With humanstudy, PATH is a study folder of HumanStudy-Bench, or a folder of several. Each becomes a
    draft: study.yaml, its materials, README.md and DECISIONS.md. Numbers are checked against each
    other and nothing is guessed; `karat check` names what is still open.
    """
    from karat.cli import importing

    if importing.is_of_results(kind):
        if force:
            raise BadOption("--force", "is for drafts of studies; importing results never writes over anything")
        made = importing.import_results(
            kind, paths, results=out or Path("results"), columns=columns, settings=settings, cluster=cluster
        )
        output.result(str(made), made)
        output.say("", "Next:", *(f"  {typed('report', run.folder)}" for run in made.runs[:3]))
        return Exit.DONE
    if cluster is not None:
        raise BadOption("--cluster", "is for results of other tools, not for drafts")
    if len(paths) > 1 or columns:
        raise BadOption(*(("PATH", "one folder at a time, for drafts") if len(paths) > 1 else ("--map", "is for csv")))
    imported = importing.import_(kind, paths[0], out=out, force=force, settings=settings)
    output.result(str(imported), imported)
    if len(imported.drafts) == 1:
        output.say("", "Next:", f"  {typed('check', imported.drafts[0].folder)}")
    return Exit.DONE
