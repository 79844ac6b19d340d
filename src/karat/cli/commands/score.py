"""`karat score`: scores answers that are there."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli import options
from karat.cli.ending import Exit
from karat.cli.output import Output
from karat.errors import BadOption

__all__ = ["command"]


@click.command("score")
@click.argument("target", metavar="RUN|ANSWERS")
@options.gathered("wanted", options.Scorers)
@options.gathered("answers", options.Answers)
@options.gathered("tests", options.StudyTests)
@options.results
@options.gathered("shown", options.Shown)
@options.output(events=True)
def command(
    target: str,
    wanted: options.Scorers,
    answers: options.Answers,
    tests: options.StudyTests,
    results: Path,
    shown: options.Shown,
    output: Output,
) -> Exit:
    """Score answers again, or answers that were made elsewhere; no agent is asked.

    RUN: every answer is scored by --judge and --scorer, or, without them, by the run's own
    scorers where a score is missing. The new scores are added, the newest are shown, all are
    kept. ANSWERS: a file (JSONL, CSV, JSON, Parquet) with the columns `id` and `answer` and,
    if you like, `condition` and `repetition`; it becomes a run of its own. Without --dataset each
    row holds its question and golden answer too: --question, --golden and --answer name the columns. With --kind
    conversation: one turn a row, with numbers or programs as answers
    (docs/how-to/score-conversations.md); turns without a row are wrong. With --kind
    study: what participants of the study --dataset answered (docs/how-to/run-human-studies.md). With --kind
    study-tests: a CSV with one statistical test a row, of people and of an agent, becomes PAS
    and ECS (docs/explanation/replication.md).
    """
    if tests.kind == "study-tests":
        from karat.cli.study_tests import score_study_tests

        score_study_tests(Path(target), tests, output)
        return Exit.DONE
    if any(one is not None for one in (tests.to, tests.out, tests.fallbacks, tests.bound, tests.plot)):
        flags = "--to, --out, --fallbacks, --bound, --plot"
        raise BadOption(flags, "are for --kind study-tests; the scores of answers go to their run")
    from karat.cli import run_footer, scoring

    if Path(target).is_file() and Path(target).name not in ("run.json", "journal.jsonl"):
        outcome, left_out = scoring.score_answers(Path(target), wanted, answers, results, output, kind=tests.kind)
    else:
        left_out = []
        outcome = scoring.score_run(target, wanted, answers, results, output)
    return run_footer.show_outcome(
        outcome, output, scorings=shown.scorings, warnings=left_out, allow_code=shown.code, right=shown.right
    )
