"""Joins a file of answers to its questions: which column holds the answers, and which column of
ids is which column of the dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from karat import kinds
from karat.documents.answers import key_of
from karat.documents.columns import Columns, Row, cell, columns_of
from karat.documents.names import roles_of
from karat.documents.roles import Reading, Undecided, assign
from karat.errors import BadOption
from karat.formats import count, plural, some_names
from karat.records import Sample

_HALF = 0.5  # of the ids of the answers must be known
_ALIKE = 0.9  # of the questions that are joined: as many at least are the same in both files


class Join(msgspec.Struct, frozen=True, kw_only=True):
    """A column of ids of the answers, and the column of the dataset with the same ids.

    `dataset`: None means the number of the question, from 0.
    """

    answers: str
    dataset: str | None
    matched: int  # ids of the answers that are ids of questions
    ids: int  # of the answers, different ones
    asked: int  # questions

    def __str__(self) -> str:
        if self.dataset is None:
            column = "the number of the question, from 0"
        else:
            column = f"'{self.dataset}' of the dataset"

        said = f"{count(self.matched)} of {count(self.ids)} ids are known"
        missing = self.asked - self.matched
        if missing:
            said += f"; {plural(missing, 'question has', 'questions have')} no answer"
        return f"joined by id: '{self.answers}' is {column}: {said}"


def answer_columns(file: Path, *, named: Iterable[str]) -> tuple[str, ...]:
    """The columns with answers: several if each is a system's. Empty: none is certain by its name.

    `named`: columns that the user has said to be something else. Raises BadOption if several
    columns may be the answer.
    """
    columns = kinds.read_rows(file).seen_columns()
    others = {*named}
    free = {path: column for path, column in columns.items() if path not in others}
    result = assign(free, door="results", file=file.name)
    readings = result.readings if isinstance(result, Undecided) else (result,)
    different = list(dict.fromkeys(reading.roles.get("answer", ()) for reading in readings))
    if len(different) == 1:
        return different[0]
    if not different:
        return ()
    choices = []
    for paths in different:
        if paths:
            choices.append(f"  --answer {' --answer '.join(paths)}")

    raise BadOption(
        "--answer",
        "\n".join([f"several columns of {file} may be the answer; say one:", *choices]),
    )


def joined_by_id(file: Path, samples: Sequence[Sample]) -> Join | None:
    """The columns of ids that join a file's rows to the samples; None: the file has no ids.

    Raises BadOption if too few ids are known, several columns join them differently, or the
    questions beside equal ids differ.
    """
    rows = [row for _, row in kinds.read_rows(file).rows]
    columns = columns_of(rows)
    theirs: dict[str | None, dict[str, Sample]] = {}  # None: by the number of the sample
    for key in dict.fromkeys(key for sample in samples[:100] for key in sample.metadata):
        by_id: dict[str, Sample] = {}
        for sample in samples:
            value = sample.metadata.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                by_id[str(value)] = sample

        if len(by_id) == len(samples) and _is_id(key):
            theirs[key] = by_id

    if not theirs:
        theirs[None] = {sample.id: sample for sample in samples}
    joins = []
    named = [path for path in columns if "." not in path and (_is_id(path) or path in theirs)]
    for path in named:
        ids = {str(cell(row, path)) for row in rows if cell(row, path) is not None}
        for name, known in theirs.items():
            join = Join(
                answers=path,
                dataset=name,
                matched=len(ids & known.keys()),
                ids=len(ids),
                asked=len(samples),
            )
            if join.matched:
                joins.append(join)

    if not named:
        return None
    if not joins:
        listed = some_names(named)
        raise BadOption(
            "--map id=COLUMN", f"no id in {listed} of {file} is an id of a question of the dataset"
        )

    # of equally many ids, those of a column of the same name, then of one called `id`
    best = max(
        joins,
        key=lambda join: (
            join.matched,
            join.matched / join.ids,
            join.answers == join.dataset,
            join.answers == "id",
        ),
    )
    if best.matched < _HALF * best.ids:
        raise BadOption(
            "--map id=COLUMN",
            f"only {best.matched} of {plural(best.ids, 'id')} in '{best.answers}' of {file} are "
            f"ids of questions; say which column is, and set dataset.id_key if it has another name",
        )

    _check_questions(file, best, rows, columns, theirs[best.dataset])
    return best


def _is_id(name: str) -> bool:
    return "id" in roles_of(name)


def _check_questions(
    file: Path,
    join: Join,
    rows: Sequence[Row],
    columns: Columns,
    known: Mapping[str, Sample],
) -> None:
    """Raises BadOption if the rows' own questions, or ids that count, contradict the join."""
    reading = assign(columns, door="results")
    question = reading.one("question") if isinstance(reading, Reading) else None
    if question is not None:
        same = differ = 0
        for row in rows:
            sample = known.get(str(cell(row, join.answers)))
            asked = key_of(row, [question])[0]
            if sample is not None and asked:
                alike = asked in " ".join(sample.turns[0].question.split())
                same, differ = same + alike, differ + (not alike)

        if same < _ALIKE * (same + differ):
            raise BadOption(
                "--map id=COLUMN",
                f"'{join.answers}' of {file} and {_named(join)} hold the same ids, but "
                f"{differ} of {same + differ} have another question beside them",
            )

        return

    ids = {str(cell(row, join.answers)) for row in rows}
    counted = all(name.isdecimal() for name in (*known, *ids))
    if counted and join.matched < join.ids and join.answers != join.dataset:
        first, second = min(map(int, ids)), min(map(int, known))
        if first != second:
            raise BadOption(
                "--map id=COLUMN",
                f"'{join.answers}' of {file} counts from {first}, and {_named(join)} from "
                f"{second}: number one of them anew, or say which column is the id",
            )


def _named(join: Join) -> str:
    if join.dataset is None:
        return "the numbers of the questions"
    return f"'{join.dataset}' of the dataset"
