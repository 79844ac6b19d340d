"""`karat check --schema`: lets an editor mark mistakes in a file."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption


@click.command("check --schema")
@click.argument("what", metavar="[experiment|KIND]", default="experiment")
@click.option("--out", type=options.FILE, help="Write it to this file.")
@options.output()
def command(what: str, out: Path | None, output: Output) -> Exit:
    """Print the JSON Schema of an experiment or dataset file.

    KIND is a kind of dataset whose file has a schema, such as study. The version is 2020-12. It
    covers the options of every installed plug-in. An editor finds it through this line in the file:
    # yaml-language-server: $schema=.karat/experiment.schema.json. `karat init` writes both the line
    and the schema.
    """
    from karat.config.schema import schema_of, schema_text

    schema = schema_of(what)
    if out is None:
        output.result(schema_text(schema).rstrip(), schema)
        return Exit.DONE

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(schema_text(schema), encoding="utf-8")
    except OSError as error:
        raise BadOption("--out", f"cannot write {out}: {error.strerror}") from error

    output.result(str(out), {"file": str(out)})
    return Exit.DONE
