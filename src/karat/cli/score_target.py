"""The work of `karat score`: scores a run again, or a file of answers as a run of its own."""

from __future__ import annotations

from pathlib import Path

from karat.cli.answer_files import score_answers
from karat.cli.ending import Exit
from karat.cli.options import Answers, Scorers, Shown
from karat.cli.output import Output
from karat.cli.run_footer import show_outcome
from karat.cli.scoring import score_run
from karat.journal import RUN_FILES


def score_target(
    target: str,
    wanted: Scorers,
    answers: Answers,
    shown: Shown,
    *,
    kind: str | None,
    results: Path,
    output: Output,
) -> Exit:
    """Prints the outcome. `kind`: of dataset, whose file of answers it is; None: one answer a row.

    Raises OperatorError for what must be changed first.
    """
    file = Path(target)
    if file.is_file() and file.name not in RUN_FILES:
        outcome, left_out = score_answers(file, wanted, answers, results, output, kind=kind)
    else:
        outcome, left_out = score_run(target, wanted, answers, results, output), []

    return show_outcome(
        outcome,
        output,
        scorings=shown.scorings,
        warnings=left_out,
        asked=shown.asked,
    )
