"""`karat report`: writes a report of a run."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import WithFlags, options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("look", 10)  # in `karat --help`


@click.command("report", cls=WithFlags)
@options.run_argument
@click.option(
    "--to",
    metavar="NAME",
    help="terminal (default), html, json, csv, …; `karat list reports` shows all.",
)
@options.out
@options.gathered("shown", options.Reported)
@options.results
@options.output()
def command(
    run: str,
    to: str | None,
    out: Path | None,
    shown: options.Reported,
    results: Path,
    output: Output,
) -> Exit:
    """Write a report of RUN, which may still be running.

    RUN is a run folder, the beginning of its name or id, or `latest`. The first lines say which
    condition is better than which; --full shows every section. With --json and without --to, the
    report is json. Changes nothing in the run folder.
    """
    from karat import api
    from karat.analysis.cached import summarize_cached
    from karat.analysis.verdicts import REHEARSED
    from karat.cli import reporting
    from karat.cli.printed import aside
    from karat.errors import BadOption

    folder = api.open(run, results=results)
    name = to or ("json" if output.as_json else "terminal")
    if shown.full and name != "terminal":
        raise BadOption(
            "--full", f"is for the terminal; the report {name} always has every section"
        )

    if shown.corrected and not getattr(reporting.check(name, folder), "shows_corrected", False):
        raise BadOption(
            "--corrected",
            f"the report {name} has no corrected numbers: use terminal, html, markdown or json",
        )

    asked = {**shown.asked, **({"full": True} if shown.full else {})}
    reporting.check(name, folder, asked)
    with aside():
        summary = summarize_cached(folder, **shown.chosen())
    if shown.corrected:
        from karat.analysis.calibration import with_corrected

        summary = with_corrected(folder, summary)

    files = reporting.render(name, summary, folder, {**reporting.screen(name, out), **asked})
    reporting.deliver(name, files, out, output)
    if name != "terminal":  # a spreadsheet has no place for them
        if folder.info.rehearsed:
            rehearsed = [REHEARSED]
        else:
            rehearsed = []

        output.say(*(f"warning: {text}" for text in (*rehearsed, *summary.notices)))

    if name == "terminal" and out is None:
        if folder.info.imported and Path(run).is_file():
            file = Path(run)
        else:
            file = None

        output.say(*reporting.next_steps(folder, full=shown.full, file=file))

    return Exit.DONE
