"""`karat check --lint`: finds golden answers that contradict themselves."""

from __future__ import annotations

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output


@click.command("check --lint")
@options.gathered("linting", options.Linting)
@options.output()
def command(linting: options.Linting, output: Output) -> Exit:
    """Show which golden answers in DATASET contradict each other.

    Asks no agent and changes nothing. In conversations with numbers: programs whose result is not
    the answer, and numbers that differ from the table or are not in it. In questions with golden
    answers: duplicate questions, and duplicates with different answers. The exit code is 0 whatever
    is found, 2 if a run would refuse the file.
    """
    from karat.cli.linting import lint, write_quarantine

    report = lint(linting)
    output.result(str(report), report)
    if linting.quarantine is not None:
        output.say(write_quarantine(report, linting.quarantine))
    output.complain(*report.faults)
    return Exit.DONE if not report.faults else Exit.CHANGE_SOMETHING
