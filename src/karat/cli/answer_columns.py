"""Which columns of a file hold the question, the golden answer and the answer to score."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.output import Output
from karat.errors import BadOption, did_you_mean

if TYPE_CHECKING:
    from karat.cli.options import Answers

__all__ = ["in_one_file", "named_columns"]

_USUAL = {
    "question": ("question", "query", "prompt", "input", "user_query"),
    "golden": (
        *("golden", "golden_answer", "gold", "gold_answer", "expected", "expected_answer", "reference"),
        *("reference_answer", "ground_truth", "correct_answer", "target"),
    ),
    "answer": (
        *("answer", "response", "output", "prediction", "predicted", "predicted_answer", "model_answer"),
        *("generated", "completion", "actual"),
    ),
}


def in_one_file(file: Path, answers: Answers, output: Output) -> Answers:
    """The same with the file as its own dataset: each row is a question with its golden answer and one answer.

    Columns that no option names are looked for under their usual names, and it is said which are used.
    Raises BadOption where one is missing, or named twice.
    """
    from karat.kinds import read_rows

    first = next(iter(read_rows(file).rows), None)
    columns = [] if first is None else list(first[1])
    chosen = {part: _column(part, getattr(answers, part), columns, file) for part in _USUAL}
    for part, column in chosen.items():
        others = [other for other, name in chosen.items() if name == column and other != part]
        if others:
            raise BadOption(f"--{part}", f"column '{column}' is named for --{others[0]} as well")
    output.say(f"columns used: {', '.join(f'{part} = {column}' for part, column in chosen.items())}")
    return type(answers)(**vars(answers) | {"dataset": file} | chosen)


def _column(part: str, named: str | None, columns: list[str], file: Path) -> str:
    if named is not None:
        if named not in columns:
            raise BadOption(f"--{part}", f"{file} has no column '{named}'{did_you_mean(named, columns)}")
        return named
    plain = {column.strip().casefold().replace(" ", "_").replace("-", "_"): column for column in columns}
    found = next((plain[name] for name in _USUAL[part] if name in plain), None)
    if found is None:
        what = {"question": "the question", "golden": "the golden answer", "answer": "the answer to score"}[part]
        raise BadOption(
            f"--{part}",
            f"say which column of {file} holds {what} (it has: {', '.join(columns) or 'none'}); "
            "where the questions and golden answers are in another file, name it with --dataset",
        )
    return found


def _sample_column(file: Path, question: str) -> str | None:
    """The column by which rows of several conditions are of one sample: `id`, else the question; None: one condition.

    `id` only where each id has one question, and each question one id.
    """
    from karat.kinds import read_rows

    rows = [row for _, row in read_rows(file).rows]
    if len({row.get("condition") for row in rows} - {None, ""}) < 2:
        return None
    ids, questions = ({str(row.get(name)) for row in rows} for name in ("id", question))
    pairs = {(str(row.get("id")), str(row.get(question))) for row in rows}
    named = all(row.get("id") not in (None, "") for row in rows)
    return "id" if named and len(ids) == len(questions) == len(pairs) else question


def named_columns(file: Path, answers: Answers) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Options of the dataset and of the agent that gives the answers back, from the columns that are named."""
    dataset: dict[str, Any] = {}
    if answers.question is not None:
        dataset["question_key"] = answers.question
    if answers.golden is not None:
        dataset["answer_key"] = answers.golden
    agent: dict[str, str | None] = {} if answers.answer is None else {"answer_key": answers.answer}
    if answers.dataset == file:
        column = _sample_column(file, answers.question or "question")
        agent["id_key"] = column  # None: question and answer are in one row, and its number is the id
        if column is not None:
            dataset |= {"id_key": column, "repeated": True}
    return dataset, agent
