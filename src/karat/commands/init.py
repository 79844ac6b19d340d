"""`karat init`: a small example that runs."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed

PLACE = ("start", 10)  # in `karat --help`


@click.command("init")
@click.argument("kind")
@click.argument("folder", metavar="[DIR]", type=options.FOLDER, required=False)
@options.output()
def command(kind: str, folder: Path | None, output: Output) -> Exit:
    """Write a small working example of KIND into DIR.

    DIR is a new folder with the name of KIND, if you name none. KIND is golden (questions with
    golden answers), conversation (chains of questions about a report, answered with numbers) or
    study (an experiment with people, in which an agent takes part). The example runs offline and
    needs no API key. Nothing is overwritten.
    """
    from karat.cli.scaffold import scaffold

    scaffolded = scaffold(kind, folder or Path(kind))
    output.result("\n".join(scaffolded.files), scaffolded)
    file = str(Path(scaffolded.folder) / "experiment.yaml")
    commands = [typed("check", file), typed("run", file)]
    output.say("", "Next:", *(f"  {line}" for line in commands))
    return Exit.DONE
