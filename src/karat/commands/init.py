"""`karat init`: a small example that runs, or another tool's configuration as an experiment."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output, typed
from karat.errors import BadOption
from karat.installation import plugin_modules

PLACE = ("start", 10)  # in `karat --help`


@click.command("init")
@click.argument("kind", metavar="[KIND]", required=False)
@click.argument("folder", metavar="[DIR]", type=options.FOLDER, required=False)
@click.option(
    "--from",
    "source",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Instead of KIND: write the experiment in another tool's configuration.",
)
@options.output()
def command(kind: str | None, folder: Path | None, source: Path | None, output: Output) -> Exit:
    """Write a small working example of KIND into DIR.

    DIR is a new folder with the name of KIND, if you name none. KIND is golden (questions with
    golden answers), conversation (chains of questions about a report, answered with numbers) or
    study (an experiment with people, in which an agent takes part). The example runs offline and
    needs no API key. Nothing is overwritten.

    With --from, PATH is a configuration of promptfoo (promptfooconfig.yaml), or the folder of an
    Agent Skill with evals/evals.json. DIR (default: promptfoo or skill) gets an experiment with
    its prompts, tests and assertions. karat says what it could not take. Nothing in PATH is run.
    """
    from karat.cli.scaffold import scaffold, scaffold_from

    if source is not None:
        if folder is not None:
            raise BadOption("KIND", "leave it out with --from: karat init --from PATH [DIR]")
        scaffolded = scaffold_from(source, Path(kind) if kind is not None else None)
    elif kind is None:
        known = ", ".join(plugin_modules("kinds"))
        raise BadOption("KIND", f"is required: {known}; or --from PATH")
    else:
        scaffolded = scaffold(kind, folder or Path(kind))

    output.result("\n".join(scaffolded.files), scaffolded)
    for title, sentences in (("Taken:", scaffolded.taken), ("Not taken:", scaffolded.left_out)):
        if sentences:
            output.say("", title, *(f"  {sentence}" for sentence in sentences))

    file = str(Path(scaffolded.folder) / "experiment.yaml")
    commands = [typed("check", file), typed("run", file)]
    output.say("", "Next:", *(f"  {line}" for line in commands))
    return Exit.DONE
