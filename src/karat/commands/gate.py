"""`karat gate`: thresholds on what a run measured."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output

PLACE = ("decide", 20)  # in `karat --help`


@click.command("gate")
@options.run_argument
@options.gathered("asked", options.Gating)
@options.results
@options.output()
def command(run: str, asked: options.Gating, results: Path, output: Output) -> Exit:
    """Decide whether a run meets its thresholds.

    The outcome is passed, failed or undecided. Passed means that the lower 95 % bound (for --max:
    the upper) meets the threshold, failed that the other bound misses it. In between, the run has
    too few questions to decide. Thresholds in the run's experiment file (`gate:`) count too, unless
    an option of the same name replaces them. Exit code 0: passed, 1: failed, 4: undecided. The
    outcome is kept in the run folder: a run whose gate failed, or left a drop undecided, is no
    baseline for `latest`.
    """
    from karat.cli.gating import decide

    return decide(run, asked, results=results, output=output)
