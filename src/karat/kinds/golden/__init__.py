"""Questions with golden answers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import setups
from karat.documents.answers import (
    ROLES,
    TEXTS,
    choice_columns,
    choices_left_out,
    hint,
    key_of,
    usual,
)
from karat.documents.hub import shown
from karat.documents.rows import Row, Rows, left_out, read_rows
from karat.errors import BadDataset, Fault
from karat.files import open_regular
from karat.kinds import Dataset, Kind, Linted, of, sample_digest
from karat.kinds._samples import (
    Key,
    Keys,
    Packed,
    by_columns,
    clustered,
    draw,
    with_repeats_clustered,
)
from karat.kinds.golden import criteria, forms
from karat.kinds.golden.lint import MEANINGS, doubted, suspicions
from karat.records import Criterion, Sample, Turn

__all__ = ["Golden"]


class Golden(Kind):
    """One question and its golden answer per row: JSON Lines, JSON, CSV, TSV, YAML, Excel or
    Parquet.

    Also SQuAD 1.1 and 2.0, whose text precedes the question, and tasks of tau-bench and tau2-bench.
    They are recognised by their keys if no column is named; several golden answers and expected
    actions are kept for scorers.
    """

    judged = True
    content = "golden answers"

    class Options(BaseModel):
        """Which columns hold what, and how many samples are drawn.

        Further columns become metadata.
        """

        model_config = ConfigDict(extra="forbid", frozen=True)

        # the column with the question; null: question, or the only usual name
        question_key: Key | None = None
        # the column with the golden answer; null: answer, or the only usual name
        answer_key: Key | None = None
        # ask without the choices in other columns; null: refuse
        choices: Literal["left_out"] | None = None
        # columns with what must hold of the answer; null: those with usual names
        criteria_key: Keys | None = None
        # the column with the sample's id; null: the position in the file, from 0, as text
        id_key: Key | None = None
        split: Key | None = None  # the list in a JSON or YAML file, e.g. data; null: the only one
        sheet: Key | None = None  # the sheet of an Excel workbook; null: the only one
        # rows with the same id (else question and golden answer) are one sample, not a fault
        repeated: bool = False
        # leave rows out that cannot be read, and count them; null: refuse
        skip: Literal["unreadable"] | None = None
        sample_size: Annotated[int, Field(ge=1)] | None = None  # how many are drawn; null: all
        # of the draw; a larger sample_size keeps the smaller one's samples
        seed: Annotated[int, Field(ge=0)] = 0
        stratify: Keys = []  # one or more columns: each value gets its share of the draw
        # the column with what questions share, such as their document; null: nothing
        cluster: Key | None = None

    def __init__(
        self, options: Options, *, needs_answers: bool = True, criteria_suffice: bool = True
    ) -> None:
        self._options, self._needs_answers = options, needs_answers
        self._criteria_suffice = criteria_suffice
        self._columns = {
            "question_key": options.question_key or "question",
            "answer_key": options.answer_key or "answer",
        }
        if options.id_key is not None:
            self._columns["id_key"] = options.id_key
        self._criteria: list[str] = [*(options.criteria_key or ())]
        self._notes: list[str] = []  # what was taken of the file that no option names

    def without_answers(self) -> Golden:
        """The same, for scorers that use no golden answer: a row need not have one."""
        return Golden(self._options, needs_answers=False)

    def without_criteria(self) -> Golden:
        """The same, for scorers that do not score criteria: every row needs a golden answer."""
        return Golden(self._options, criteria_suffice=False)

    def load(self, path: Path) -> Dataset:
        """The samples. Raises BadDataset with every bad row, by its line in an editor."""
        try:
            rows, samples, faults = self._read(path)
            skip = self._options.skip is not None and len(samples) > 0
            skipped = left_out(path, faults, skip=skip, unit=rows.unit)
        except BadDataset as error:
            which = error.faults[0].place in ("dataset.split", "dataset.sheet")
            if which or (other := _other_kind(path)) is None:
                raise
            message = (
                f"holds {of(other).content or other}, so it seems: set `dataset.kind: {other}`"
            )
            raise BadDataset(
                shown(path), [Fault(place="file", message=message), *error.faults]
            ) from error

        if self._options.cluster is not None:
            samples = clustered(samples, self._options.cluster, path=shown(path))
        samples = with_repeats_clustered(samples)
        stratum = by_columns(self._options.stratify)
        drawn = draw(samples, self._options.sample_size, seed=self._options.seed, stratum=stratum)
        warnings = (
            *([] if skipped is None else [skipped]),
            *dict.fromkeys(self._notes),
            *suspicions(samples),
        )
        return Dataset(
            kind="golden",
            path=path,
            sha256=rows.sha256,
            samples=drawn,
            commit=rows.commit,
            warnings=warnings,
        )

    def lint(self, path: Path) -> Linted:
        """Contradictions between samples. Raises BadDataset only if nothing can be read."""
        rows, samples, faults = self._read(path)
        return Linted(
            kind="golden",
            path=path,
            sha256=rows.sha256,
            samples=len(samples),
            turns=len(samples),
            doubted=tuple(doubted(samples)),
            meanings=MEANINGS,
            faults=tuple(faults),
        )

    def _read(self, path: Path) -> tuple[Rows, Packed, list[Fault]]:
        """The readable samples, and the faults of the others."""
        rows = self._rows(path)
        faults, questions = self._samples(rows)
        samples = Packed()
        seen: dict[str, int] = {}
        merged: dict[str, Sample] = {}
        for number, sample, wrong in questions:
            problems = wrong
            if sample is not None:
                is_new, first = sample.id not in seen, seen.setdefault(sample.id, number)
                if self._options.repeated and _asks_the_same(
                    merged.setdefault(sample.id, sample), sample
                ):
                    same = {}
                    for name, value in merged[sample.id].metadata.items():
                        if sample.metadata.get(name) == value:
                            same[name] = value
                    merged[sample.id] = msgspec.structs.replace(merged[sample.id], metadata=same)
                    continue

                if is_new:
                    samples.append(sample)
                    continue
                problems = [
                    (
                        f"the id '{sample.id}' is also in {rows.unit} {first}; each sample needs "
                        f"its own"
                    )
                ]

            for message in problems:
                rows.fault(number, message)

        for sample in merged.values():
            samples.append(sample)
        return rows, samples, faults + rows.sorted_faults()

    def _rows(self, path: Path) -> Rows:
        """The rows of the file; those that another tool's configuration stands for."""
        section, sheet = self._options.split, self._options.sheet
        plain = self._columns == _USUAL and section is None
        found = setups.questions(path) if plain else None
        if found is None:
            return read_rows(path, lists=True, section=section, sheet=sheet)
        tool, setup = found
        with open_regular(path) as file:
            rows = Rows(sha256=sha256(file.read()).hexdigest(), unit="question")
        for number, row in enumerate(setup.rows, start=1):
            rows.add(number, row)
        self._columns["id_key"] = "id"
        self._notes += [f"a configuration of {tool}, of which its tests are taken", *setup.left_out]
        return rows

    def _samples(
        self, rows: Rows
    ) -> tuple[list[Fault], Iterator[tuple[int, Sample | None, list[str]]]]:
        """Faults of the whole file; each question with its row's number, the sample or its
        faults.
        """
        if self._columns == _USUAL:
            items = forms.items(rows)
        else:
            items = None

        if items is None:
            present = {column for _, row in rows.rows for column in row}
            self._take_usual_columns(present)
            self._take_criteria(present)
            faults = self._missing_columns(rows, present)
            return faults, self._by_columns(
                rows, {fault.place.rpartition(".")[2] for fault in faults}
            )

        names = {name for item in items for name in item.metadata}
        samples = (
            (item.number, None if item.wrong else forms.sample(item, position), item.wrong)
            for position, item in enumerate(items)
        )
        return self._absent(rows, {}, names), samples

    def _take_usual_columns(self, present: Collection[str]) -> None:
        """Where no row has `question` or `answer` and no option names another column, the one with
        a usual name.
        """
        for key, role in _ROLES.items():
            found = usual(dict.fromkeys([_USUAL[key], *ROLES[role]]), present)
            if (
                getattr(self._options, key) is None
                and self._columns[key] not in present
                and len(found) == 1
            ):
                self._columns[key] = found[0]
                self._notes.append(f"'{found[0]}' is taken as {_CALLED[key]} (`{key}`)")

    def _take_criteria(self, present: Collection[str]) -> None:
        """The columns with usual names for criteria, unless an option names them."""
        if self._options.criteria_key is not None:
            return
        columns = criteria.columns_of({*present} - {*self._columns.values()})
        self._criteria = columns
        for column in columns:
            scored = "" if self._criteria_suffice else ", which no scorer scores: name `criteria`"
            self._notes.append(f"'{column}' is taken as criteria (`criteria_key`){scored}")

    def _by_columns(
        self, rows: Rows, absent: Collection[str]
    ) -> Iterator[tuple[int, Sample | None, list[str]]]:
        numbers: dict[tuple[str, ...], int] = {}  # of questions that several rows ask
        for position, (number, row) in enumerate(rows.rows):
            wrong = [
                message
                for key in self._columns
                if key not in absent
                for message in self._wrong(key, row, rows.as_text)
            ]
            stated, faults = self._stated(row)
            wrong += faults
            place = position
            if self._options.repeated:
                asked = key_of(row, [self._columns["question_key"], self._columns["answer_key"]])
                place = numbers.setdefault(asked, len(numbers))
            sample = None if wrong or absent else self._sample(place, row, stated)
            yield number, sample, wrong

    def _stated(self, row: Row) -> tuple[tuple[Criterion, ...], list[str]]:
        """The criteria of a row, and the faults of its cells."""
        found: tuple[Criterion, ...] = ()
        wrong: list[str] = []
        for column in self._criteria:
            read, faults = criteria.read(row.get(column), column=column)
            found += read
            wrong += faults
        return found, wrong

    def _missing_columns(self, rows: Rows, present: Collection[str]) -> list[Fault]:
        """Columns that no row has: one fault each, not one per row."""
        needed = {}
        for key, name in self._columns.items():
            optional = key == "answer_key" and self._may_lack_answers
            if not optional:
                needed[key] = name
        for place, name in enumerate(self._options.criteria_key or ()):
            needed[f"criteria_key.{place}"] = name
        if not rows.count:
            return []
        unseen = usual(TEXTS, {*present} - {*self._columns.values()})
        if unseen:
            self._notes.append(
                f"no agent sees '{unseen[0]}': write it into the question if it is about that"
            )

        return [
            *self._absent(rows, needed, present),
            *self._two_golden(present),
            *self._without_choices(rows, present),
        ]

    def _two_golden(self, present: Collection[str]) -> Iterator[Fault]:
        """A fault if another column than `answer` could be the golden answer, and no option names
        one.
        """
        others = usual(ROLES["golden"], present)
        if (
            self._options.answer_key is None
            and self._needs_answers
            and "answer" in present
            and others
        ):
            message = (
                f"'answer' and '{others[0]}' could both be the golden answer: write `answer_key: "
                f"answer` "
            )
            message += f"or `answer_key: {others[0]}` below `dataset`"
            yield Fault(place="dataset.answer_key", message=message)

    def _without_choices(self, rows: Rows, present: Collection[str]) -> Iterator[Fault]:
        """A fault if choices are beside the question, unless it is asked without them."""
        question = self._columns["question_key"]
        columns = choice_columns(present)
        found = (
            choices_left_out(row, question, columns) for _, row in (rows.rows if columns else ())
        )
        column = next((column for column in found if column is not None), None)
        if column is None:
            return
        beside = f"the choices in '{column}' are not part of '{question}', so "
        if self._options.choices is None:
            message = (
                f"{beside}they would not be asked: write them into '{question}', or set `choices: "
                f"left_out`"
            )
            yield Fault(place="dataset.question_key", message=message)
        else:
            self._notes.append(
                f"{beside}no scorer sees them: a golden letter or number fits only an answer "
                f"like it"
            )

    def _absent(
        self, rows: Rows, columns: Mapping[str, str], present: Collection[str]
    ) -> list[Fault]:
        wanted = {
            **columns,
            **{f"stratify.{at}": name for at, name in enumerate(self._options.stratify)},
        }
        found = []
        for key, column in wanted.items():
            if column not in present:
                found.append(
                    Fault(
                        place=f"dataset.{key}",
                        message=(
                            f"no {rows.unit} has the key "
                            f"'{column}'{hint(_ROLES.get(key, key), column, present)}"
                            f"{self._instead(key)}"
                        ),
                    )
                )

        return found

    def _wrong(self, key: str, row: Row, as_text: str) -> list[str]:
        column = self._columns[key]
        needed = self._needs_answers and not self._has_criteria(row)
        optional = key == "answer_key" and not needed
        if column not in row:
            if optional:
                return []
            near = hint(_ROLES.get(key, key), column, row)
            return [f"has no '{column}'{near}"]

        value = row[column]
        if optional and not value:
            return []
        if isinstance(value, str):
            if value.strip():
                return []
            return [f"'{column}' is empty; fill it in, or remove the row"]

        if key == "id_key" and isinstance(value, int) and not isinstance(value, bool):
            return []
        if key == "id_key":
            return [
                (
                    f"'{column}' must be a text or a whole number, got "
                    f"{msgspec.json.encode(value).decode():.40}"
                )
            ]

        description = _FOUND.get(type(value), "no text").format(it=_CALLED[key], as_text=as_text)
        return [f"'{column}' is {description}"]

    def _instead(self, key: str) -> str:
        """What to do if there are criteria in place of golden answers that scorers need."""
        if key == "answer_key" and self._criteria:
            return "; to score its criteria, write `judge: {type: criteria, model: …}`"
        return ""

    @property
    def _may_lack_answers(self) -> bool:
        """Whether a row of the file may be without a golden answer."""
        return not self._needs_answers or (self._criteria_suffice and len(self._criteria) > 0)

    def _has_criteria(self, row: Row) -> bool:
        return self._criteria_suffice and any(row.get(column) for column in self._criteria)

    def _sample(self, position: int, row: Row, stated: tuple[Criterion, ...]) -> Sample:
        columns = self._columns
        question, golden = row[columns["question_key"]], row.get(columns["answer_key"]) or None
        taken = {*columns.values(), *self._criteria}
        metadata = {name: value for name, value in row.items() if name not in taken}
        content: list[object] = [question, golden]
        if stated:
            content.append(stated)
        return Sample(
            kind="golden",
            id=str(row[columns["id_key"]]) if "id_key" in columns else str(position),
            position=position,
            digest=sample_digest(content),
            turns=(Turn(question=question, golden=golden),),
            metadata=metadata,
            criteria=stated,
        )


def _asks_the_same(sample: Sample, other: Sample) -> bool:
    """Whether question and golden answer are equal apart from white space."""
    first, second = (
        {"question": of.turns[0].question, "golden": of.turns[0].golden} for of in (sample, other)
    )
    return key_of(first, ["question", "golden"]) == key_of(second, ["question", "golden"])


def _other_kind(path: Path) -> str | None:
    """The kind that a file seems to have instead."""
    from karat.kinds import kind_of

    try:
        kind = kind_of(path)
    except BadDataset:
        return None

    return kind if kind != "golden" else None


_ROLES = {"question_key": "question", "answer_key": "golden"}
_USUAL = {"question_key": "question", "answer_key": "answer"}
_FOUND = {
    list: "a list; {it} is one text: join the parts, or keep the one that counts",
    dict: "an object; {it} is one text: keep the part that counts",
    bool: "true or false; {it} is a text: {as_text}",
    int: "a number; {it} is a text: {as_text}",
    float: "a number; {it} is a text: {as_text}",
    type(None): "null; {it} is a text: fill it in, or remove the row",
}
_CALLED = {"question_key": "a question", "answer_key": "a golden answer"}
