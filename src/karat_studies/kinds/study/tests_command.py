"""The command of `karat score TESTS.csv --kind study-tests`, loaded for its help too."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.output import Output


class StudyTests(options.Options):
    """How the tests are scored, and where the results go."""

    to: str | None = options.option(
        "--to",
        type=click.Choice(["humanstudy"]),
        help="Of study tests. humanstudy: the files of HumanStudy-Bench.",
    )
    out: Path | None = options.option(
        "--out",
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Of study tests: the folder for these files.",
    )
    convention: str = options.option(
        "--convention",
        type=click.Choice(["humanstudy", "standard"]),
        default="humanstudy",
        show_default=True,
        help="Of study tests: how shares and ranks become Cohen's d.",
    )
    fallbacks: str | None = options.option(
        "--fallbacks",
        type=click.Choice(["documented"]),
        help="Of study tests: numbers for what is missing, as HumanStudy-Bench documents them.",
    )
    bound: float | None = options.option(
        "--bound",
        type=click.FloatRange(min=0, min_open=True),
        metavar="D",
        help=(
            "Of study tests: test that agent and people differ by less than this Cohen's d; state "
            "it beforehand."
        ),
    )
    plot: Path | None = options.option(
        "--plot",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Of study tests: also write the charts there, as SVG.",
    )


@click.command("study-tests", short_help="one statistical test per row, people beside an agent")
@options.gathered("asked", StudyTests)
def study_tests(path: Path, output: Output, asked: StudyTests) -> None:
    """Writes the tests of each condition, then each further condition against the first."""
    from karat_studies.score_tests import score_file

    score_file(path, asked, output)
