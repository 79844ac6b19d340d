"""`karat score`: scores existing answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import click
from click.core import ParameterSource

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption

PLACE = ("run", 30)  # in `karat --help`

_ANSWERS = "answers"  # --kind of a file with one answer per row


@cache
def _kinds() -> tuple[dict[str, str], dict[str, click.Command]]:
    """Kinds of dataset that --kind accepts → what a row of their answer files holds; and the kinds'
    commands.
    """
    from karat import kinds  # slow to load, and most commands need none

    every = kinds.installed()
    rows = {}
    for name, kind in every.items():
        if kind.answer_file is not None:
            rows[name] = kind.answer_file.rows

    commands: dict[str, click.Command] = {}
    for kind in every.values():
        commands |= kind.commands()
    return rows, commands


class _Score(click.Command):
    """Adds --kind and the options of the kinds' commands; loads the kinds for that."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        rows, commands = _kinds()
        contents = [
            f"{_ANSWERS}: one answer per row",
            *(f"{name}: {text}" for name, text in rows.items()),
        ]
        contents += [f"{name}: {command.short_help}" for name, command in commands.items()]
        kind = click.Option(
            ["--kind"],
            type=click.Choice([_ANSWERS, *rows, *commands]),
            default=_ANSWERS,
            show_default=True,
            help=f"What the file holds. {'. '.join(contents)}.",
        )
        own = super().get_params(ctx)
        at = [param.name for param in own].index("results")
        return [
            *own[:at],
            kind,
            *(param for command in commands.values() for param in command.params),
            *own[at:],
        ]


@click.command("score", cls=_Score)
@click.argument("target", metavar="RUN|ANSWERS")
@options.gathered("wanted", options.Scorers)
@options.gathered("answers", options.Answers)
@options.results
@options.gathered("shown", options.Shown)
@options.output(events=True)
def command(
    target: str,
    kind: str,
    wanted: options.Scorers,
    answers: options.Answers,
    results: Path,
    shown: options.Shown,
    output: Output,
    **given: object,
) -> Exit:
    """Score the answers of a run again, or answers made elsewhere. Asks no agent.

    RUN: --judge and --scorer score every answer; without them, the run's own scorers add the scores
    that are missing. New scores are added to the old ones, and reports show the newest. ANSWERS: a
    file (JSONL, CSV, JSON, Parquet) with the columns `id` and `answer` and, optionally, `condition`
    and `repetition`; it becomes a run of its own. Without --dataset each row also holds its
    question
    and golden answer: --question, --golden and --answer name the columns. Other files need --kind:
    see docs/how-to/prepare-conversations.md (a turn without a row counts as wrong),
    docs/how-to/run-human-studies.md and docs/explanation/replication.md.
    """
    for name, other in _kinds()[1].items():
        if name == kind and other.callback is not None:
            values = {str(param.name): given[str(param.name)] for param in other.params}
            other.callback(path=Path(target), output=output, **values)
            return Exit.DONE

        source = click.get_current_context().get_parameter_source
        flags = []
        for param in other.params:
            if source(str(param.name)) is not ParameterSource.DEFAULT:
                flags.append(param.opts[0])

        if flags:
            raise BadOption(
                ", ".join(flags),
                f"is for --kind {name} only; scores of answers are saved in their run",
            )

    from karat.cli.score_target import score_target

    kind_of_answers = None if kind == _ANSWERS else kind
    return score_target(
        target, wanted, answers, shown, kind=kind_of_answers, results=results, output=output
    )
