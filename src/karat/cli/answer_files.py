"""Files of answers that were made elsewhere: which column holds what, and everything that is wrong, at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karat.cli.output import Output
from karat.errors import BadDataset, BadOption, Fault, did_you_mean
from karat.formats import count, plural
from karat.installation import shown_path

if TYPE_CHECKING:
    from karat.cli.options import Answers
    from karat.config import Experiment

__all__ = ["in_one_file", "mapped_columns", "named_columns", "report_faults"]

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


_MOST_NAMED = 50
"""Faults of one kind that are listed; all are counted."""

_OF_SAMPLES = {
    "id": "id_key",
    "answer": "answer_key",
    "condition": "condition_key",
    "repetition": "repetition_key",
}
"""What can be named in a file with one answer a sample → the agent's option."""


def mapped_columns(pairs: Sequence[str], replay: type[Any], *, kind: str) -> dict[str, str]:
    """`--map TARGET=COLUMN` as options of the agent. Raises BadOption for targets that there are not."""
    kinds = {"conversation": (*replay.turn_columns, "first_turn"), "study": replay.participant_columns}
    known = kinds.get(kind, tuple(_OF_SAMPLES))
    mapped: dict[str, str] = {}
    for pair in pairs:
        target, equals, column = (part.strip() for part in pair.partition("="))
        if not equals:
            raise BadOption(f"--map {pair}", "want TARGET=COLUMN, e.g. --map answer=predicted_answer")
        if target not in known:
            elsewhere = kind != "conversation" and target in replay.turn_columns
            hint = " (it is for --kind conversation)" if elsewhere else did_you_mean(target, known, listing=False)
            raise BadOption("--map", f"nothing is called '{target}'{hint}; known are {', '.join(known)}")
        if target in mapped:
            raise BadOption("--map", f"'{target}' is there twice: '{mapped[target]}' and '{column}'")
        mapped[target] = column
    return mapped if kind in kinds else {_OF_SAMPLES[target]: column for target, column in mapped.items()}


def report_faults(held: Any, experiment: Experiment, *, strict: bool, output: Output) -> list[str]:
    """Prints what is wrong with the file: all of it at once, each kind counted. Returns it as sentences.

    Without `strict` the file is scored as far as it goes. Raises BadDataset with it.
    """
    names = [condition.name for condition in experiment.conditions]
    repetitions = experiment.execution.num_repetitions
    census = held.census(experiment.load_dataset(), conditions=names, repetitions=repetitions)
    if census is None:
        return []
    columns = " ".join(f"{target}={column}" for target, column in census.columns.items())
    output.say(f"columns: {columns} (change one with --map TARGET=COLUMN)")
    if not census.faults:
        return []
    listed: list[tuple[str, list[Fault]]] = []  # of each kind how many there are, and the first of them
    for fault_kind, line in zip(census.counts, census.lines, strict=True):
        faults = [
            Fault(place=fault.place, message=fault.message) for fault in census.faults if fault.kind == fault_kind
        ]
        more = len(faults) - _MOST_NAMED
        rest = [Fault(place="and", message=f"{more} more like these")] if more > 0 else []
        listed.append((line, faults[:_MOST_NAMED] + rest))
    file = shown_path(Path(held.source["file"]))
    if strict or not census.used:
        hint = [Fault(place="file", message=census.hint)] if census.hint else []
        nothing = Fault(place="file", message="no row answers a turn of the dataset: nothing is scored")
        each = (fault for _, faults in listed for fault in faults)
        raise BadDataset(file, [*([] if census.used else [nothing]), *hint, *each])
    output.say(f"{file}: {plural(sum(census.counts.values()), 'fault')} in {count(census.rows)} rows")
    for line, faults in listed:
        output.say(f"  {line}", *(f"    {fault}" for fault in faults))
    output.say(*([f"  {census.hint}"] if census.hint else []))
    output.say("  The rest is scored; with --strict nothing would be.")
    return [f"the file of answers: {line}" for line in census.lines]
