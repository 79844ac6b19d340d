"""Questions with golden answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat import setups
from karat.documents.answers import hint, key_of
from karat.documents.columns import LOOKED_AT, without
from karat.documents.emptiness import emptiness, in_use, unanswerable
from karat.documents.hub import shown
from karat.documents.names import Known
from karat.documents.row_list import Rows
from karat.documents.rows import left_out, read_rows
from karat.documents.text_rows import in_pairs
from karat.documents.understood import Understood
from karat.errors import BadDataset, Fault
from karat.files import open_regular
from karat.formats import plural, some_of
from karat.kinds import Dataset, Kind, Linted, kind_of, of
from karat.kinds._samples import (
    Key,
    Keys,
    Packed,
    by_columns,
    clustered,
    draw,
    repeats,
    with_repeats_clustered,
)
from karat.kinds.golden import forms
from karat.kinds.golden.lint import MEANINGS, doubted, suspicions
from karat.kinds.golden.offers import in_yaml
from karat.kinds.golden.reading import BLOCK, EMPTY, Numbered, RowReader
from karat.layouts import laid_out
from karat.records import Sample

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

        # role → the column with it, or several: question, golden, answer, choices, criterion, …;
        # null: the file has no such column. Columns with usual names need none. Several columns as
        # golden are one object, which is compared as JSON
        roles: dict[Known, Key | Keys | None] = {}
        question_key: Key | None = None  # short for roles.question
        answer_key: Key | None = None  # short for roles.golden
        criteria_key: Keys | None = None  # short for roles.criterion
        # left_out: ask without the choices in other columns; null: write them into the question
        choices: Literal["left_out"] | None = None
        # what golden numbers of choices count from; null: what the file shows
        choices_from: Literal[0, 1] | None = None
        # what a list of golden answers means; null: as its name says (`answers`: any of them)
        several: Literal["any", "all"] | None = None
        # what an empty cell means: declines: where there is no golden answer, or a column such as
        # `answerable` says so, it is right to decline; no_tool: where no tool is expected, none may
        # be called; missing: it is missing, whatever `answerable` says; null: the same, but you are
        # asked if there is such a column
        empty: Literal["declines", "no_tool", "missing"] | None = None
        # the column with the sample's id; null: the position in the file, from 0, as text
        id_key: Key | None = None
        split: Key | None = None  # the list in a JSON or YAML file, e.g. data; null: the only one
        sheet: Key | None = None  # the sheet of an Excel workbook; *: all alike; null: the only one
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

        @field_validator("roles")
        @classmethod
        def _one_answer(cls, roles: dict[Known, Key | Keys | None]) -> Any:
            columns = roles.get("answer")
            if isinstance(columns, list) and len(columns) > 1:
                raise ValueError(f"answer is one column, not {some_of([*map(repr, columns)])}")
            return roles

        def named_columns(self) -> list[str]:
            """The columns that have a role by these options."""
            found = [self.question_key, self.answer_key, self.id_key, *(self.criteria_key or ())]
            for paths in self.roles.values():
                found += [paths] if isinstance(paths, str) else [*(paths or ())]

            return [path for path in found if path is not None]

    def __init__(
        self,
        options: Options,
        *,
        needs_answers: bool = True,
        criteria_suffice: bool = True,
    ) -> None:
        self._options = options
        self._needs_answers = needs_answers
        self._criteria_suffice = criteria_suffice
        self._notes: list[str] = []  # what was taken of the file that no option names
        self._understood: Understood | None = None
        self._id_key = options.id_key
        self._reader: RowReader | None = None  # None: another tool's form, or nothing read
        self._readings: tuple[str, ...] = ()  # to choose from, if the columns leave it open
        self._most: int | None = None  # rows that are enough, unless one of them has a fault

    def without_answers(self) -> Golden:
        """The same, for scorers that use no golden answer: a row need not have one."""
        return Golden(self._options, needs_answers=False)

    def without_criteria(self) -> Golden:
        """The same, for scorers that do not score criteria: every row needs a golden answer."""
        return Golden(self._options, criteria_suffice=False)

    def first(self, count: int) -> Golden:
        """The same, reading no more rows than the first `count` samples and the columns need."""
        options = self._options
        same = Golden(
            options,
            needs_answers=self._needs_answers,
            criteria_suffice=self._criteria_suffice,
        )
        needs_all = options.repeated or options.cluster is not None
        if not needs_all and options.sample_size is None:
            same._most = max(count, LOOKED_AT)
        return same

    def load(self, path: Path) -> Dataset:
        """The samples. Raises BadDataset with every bad row, by its line in an editor."""
        try:
            rows, samples, faults = self._read(path)
            if faults and rows.unread:
                self._most = None  # all faults at once
                rows, samples, faults = self._read(path)

            skip = self._options.skip is not None and len(samples) > 0
            besides = ""
            if faults:
                skip = skip or self._asks_nothing(faults, samples)
                lacking = self._lacking_golden(faults)
                besides = _OR_DECLINES if lacking else ""
                if lacking and not skip:
                    faults = self._as_meant(faults, lacking)
                if not skip:
                    faults = self._as_one(faults)

            skipped = left_out(path, faults, skip=skip, unit=rows.unit, besides=besides)
        except BadDataset as error:
            error.readings = self._readings
            if error.parts:
                return self._of_a_part(path, error)
            if error.faults[0].place in ("dataset.split", "dataset.sheet"):
                raise
            other = "golden"
            with suppress(BadDataset):
                other = kind_of(path)

            if other == "golden":
                raise
            message = (
                f"holds {of(other).content or other}, so it seems: set `dataset.kind: {other}`"
            )
            raise BadDataset(
                shown(path),
                [Fault(place="file", message=message), *error.faults],
            ) from error

        if self._options.cluster is not None:
            samples = clustered(samples, self._options.cluster, path=shown(path))
        repeated = repeats(samples)
        samples = with_repeats_clustered(samples, repeated)
        stratum = by_columns(self._options.stratify)
        drawn = draw(samples, self._options.sample_size, seed=self._options.seed, stratum=stratum)
        warnings = (
            *([] if skipped is None else [skipped]),
            *dict.fromkeys(self._notes),
            *suspicions(samples, repeated),
        )
        return Dataset(
            kind="golden",
            path=path,
            sha256=rows.sha256,
            samples=drawn,
            commit=rows.commit,
            warnings=warnings,
            understood=self._understood,
            unread=rows.unread,
        )

    def _of_a_part(self, path: Path, error: BadDataset) -> Dataset:
        """The samples in the only sheet or list that holds questions. Raises BadDataset: which of
        several it is, and what they leave open; or what all hold instead.
        """
        fault = error.faults[0]
        setting = fault.place.rpartition(".")[2]
        held: dict[str, str] = {}  # what a part holds that has no questions
        unclear: dict[str, BadDataset] = {}  # what a part leaves open
        datasets: dict[str, Dataset] = {}
        for name in error.parts[:_MOST_PARTS]:
            options = self._options.model_copy(update={setting: name})
            part = Golden(
                options,
                needs_answers=self._needs_answers,
                criteria_suffice=self._criteria_suffice,
            )
            try:
                datasets[name] = part.load(path)
            except BadDataset as wrong:
                first = wrong.faults[0]
                if first.place == "file" and len(wrong.faults) == 1:
                    held[name] = first.message
                else:
                    unclear[name] = wrong

        likely = {}
        for name, left_open in unclear.items():
            if left_open.readings or left_open.faults[0].place != "dataset.roles":
                likely[name] = left_open

        if datasets or likely:
            held |= dict.fromkeys({*unclear} - {*likely}, "has no column that may be a question")
            unclear = likely

        message = fault.message
        without = ""
        if held:
            listed = some_of([f"'{name}'" for name in error.parts if name in held])
            without = f"no questions, it seems, in {listed}"
            message += f"\n  {without}"

        if held and not datasets and not unclear:
            message = some_of([f"'{name}' {what}" for name, what in held.items()], most=2)
            raise BadDataset(shown(path), [Fault(place="file", message=message)]) from error

        if held and len(datasets) == 1 and not unclear:
            ((name, dataset),) = datasets.items()
            note = f"the {setting} '{name}' is read; {without}"
            return msgspec.structs.replace(dataset, warnings=(note, *dataset.warnings))

        if held and not datasets and len(unclear) == 1:
            ((name, left_open),) = unclear.items()
            raise _with_setting(left_open, f"{setting}: {in_yaml(name)}", without) from error

        further = ""  # what the first of those leaves open that cannot be read
        for name, left_open in [*unclear.items()][:1]:
            (first, *_) = left_open.faults
            further = f"\n  with `{setting}: {in_yaml(name)}`: {first.place}: {first.message}"

        for name, dataset in datasets.items():
            message += f"\n  '{name}' has {plural(len(dataset.samples), 'question')}"

        fault = Fault(place=fault.place, message=message + further)
        raise BadDataset(shown(path), [fault]) from error

    def _asks_nothing(self, faults: Sequence[Fault], samples: Sequence[Sample]) -> bool:
        """Whether a few rows among many have no question, which have nothing else in common, and
        nothing else is wrong.
        """
        if self._reader is None or 10 * len(faults) > len(samples):
            return False
        path = self._reader.reading.one("question") or ""
        alone = all(fault.message == EMPTY.format(path) for fault in faults)
        return alone and emptiness(self._reader.rows, path) is None

    def _as_one(self, faults: list[Fault]) -> list[Fault]:
        """The faults of rows without a question as one, and of those without a golden answer, which
        says what these have in common.
        """
        if self._reader is None:
            return faults
        roles = self._reader.reading.roles
        for path in [*roles.get("question", ())[:1], *roles.get("golden", ())[:1]]:
            lacking = EMPTY.format(path)
            empty = [fault for fault in faults if fault.message == lacking]
            if len(empty) < 2:
                continue

            said = emptiness(self._reader.rows, path)
            if said is not None:
                message = f"{said}; fill it in, or leave these rows out"
                whole = Fault(place=empty[0].place, message=message)
                others = [fault for fault in faults if fault not in empty]
                faults = [whole, *others]

        return faults

    def _as_meant(self, faults: list[Fault], lacking: Sequence[Fault]) -> list[Fault]:
        """The faults, those of rows that the file marks as without an answer as one: they are no
        rows to leave out.
        """
        if self._reader is None:
            return faults
        golden = self._reader.reading.one("golden") or ""
        found = unanswerable(self._reader.rows, golden)
        if found is None:
            return faults
        mark, numbers = found
        places = set()
        for number in numbers:
            places.add(f"{self._reader.rows.unit} {number}")

        if not all(fault.place in places for fault in lacking):
            return faults
        count = plural(len(lacking), self._reader.rows.unit)
        listed = some_of([fault.place for fault in lacking])
        message = (
            f"'{golden}' is empty in {count} that '{mark}' marks as having no answer ({listed}): "
            "it is right to decline there, so write `empty: declines` below `dataset`"
        )
        meant = Fault(place="dataset.empty", message=message)
        others = [fault for fault in faults if fault not in lacking]
        return [meant, *others]

    def _lacking_golden(self, faults: Sequence[Fault]) -> list[Fault]:
        """The faults of rows without a golden answer, whether or not they have its key."""
        if self._reader is None:
            return []
        golden = self._reader.reading.one("golden") or ""
        lacking = []
        for fault in faults:
            empty = fault.message == EMPTY.format(golden)
            if empty or fault.message.startswith(f"has no '{golden}'"):
                lacking.append(fault)

        return lacking

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
        faults, blocks = self._samples(rows, path)
        samples = Packed()
        seen: dict[str, int] = {}
        merged: dict[str, Sample] = {}
        clashes: dict[str, str] = {}  # an id with several questions or golden answers → its rows
        repeated = self._options.repeated
        for block in blocks:
            added: list[Sample] = []
            for number, sample, wrong in block:
                if sample is None:
                    for message in wrong:
                        rows.fault(number, message)

                    continue

                if sample.id not in seen:
                    seen[sample.id] = number  # one row may have several questions
                    if repeated:
                        merged[sample.id] = sample
                    else:
                        added.append(sample)
                elif repeated and _asks_the_same(merged[sample.id], sample):
                    kept = merged[sample.id]
                    other = sample.metadata
                    same = {}
                    for key, value in kept.metadata.items():
                        if other.get(key) == value:
                            same[key] = value

                    merged[sample.id] = msgspec.structs.replace(kept, metadata=same)
                elif repeated:
                    where = f"{rows.unit} {seen[sample.id]} and {rows.unit} {number}"
                    clashes.setdefault(sample.id, where)
                else:
                    where = f"{rows.unit} {seen[sample.id]}"
                    message = f"the id '{sample.id}' is also in {where}; each sample needs its own"
                    rows.fault(number, message)

            samples.extend(added)

        samples.extend(merged.values())
        if clashes:
            # cannot be skipped: their answers would be scored as those of the first
            name, where = next(iter(clashes.items()))
            message = (
                f"{plural(len(clashes), 'id')} with several questions or golden answers, such as "
                f"'{name}' ({where}): name a column that differs for each question, or make the "
                "ids unique"
            )
            faults = [*faults, Fault(place="dataset.id_key", message=message)]

        return rows, samples, faults + rows.sorted_faults()

    def _rows(self, path: Path) -> Rows:
        """The rows of the file, or of the tests in another tool's configuration."""
        options = self._options
        found = self._setup(path)
        if found is None:
            rows = read_rows(path, section=options.split, sheet=options.sheet, most=self._most)
            named = {*options.named_columns()}
            if len(rows.columns) == 1 and named <= {"question", "answer"}:
                return in_pairs(read_rows(path, section=options.split, sheet=options.sheet))
            if not rows.unread:
                return rows

            # samples may be made of several rows, or as all rows say
            needs_all = forms.known(rows)
            needs_all = needs_all or laid_out(rows, options.named_columns()) is not rows
            if needs_all:
                rows = read_rows(path, section=options.split, sheet=options.sheet)

            return rows

        tool, setup = found
        with open_regular(path) as file:
            rows = Rows(sha256=sha256(file.read()).hexdigest(), unit="question")

        left = ("answer",) if setup.answers_describe else ()
        for number, row in enumerate(setup.rows, start=1):
            rows.add(number, without(row, left))

        described = []
        for row in setup.rows:
            if "criteria" in row and {*left} & {*row}:
                described.append(row)

        if described:
            rows.notes.append(
                f"the criteria of {plural(len(described), 'question')}, and not the description of "
                "the expected answer beside them"
            )

        self._id_key = "id"
        rows.notes += [f"a configuration of {tool}, of which its tests are taken", *setup.left_out]
        self._notes += rows.notes
        return rows

    def _setup(self, path: Path) -> tuple[str, setups.Setup] | None:
        """Another tool's configuration that the file is; None: it is none, or the columns that are
        named are those of its lists.
        """
        named = {*self._options.named_columns()}
        if self._options.split is not None:
            return None
        try:
            found = setups.questions(path)
        except BadDataset:
            if named:
                return None
            raise

        if found is None:
            return None
        known = {*chain.from_iterable(found[1].rows)}
        if not named <= known:
            return None

        return found

    def _samples(self, rows: Rows, path: Path) -> tuple[list[Fault], Iterator[list[Numbered]]]:
        """Faults of the whole file; each question with its row's number, the sample or its
        faults, in blocks.
        """
        options = self._options
        columns_named = options.roles or options.question_key or options.answer_key
        items = None
        if not columns_named and options.id_key is None:
            items = forms.items(rows)
        if items is None:
            rows = in_use(laid_out(rows, options.named_columns()))
            reader = RowReader(
                rows,
                options,
                path=str(path),
                id_key=self._id_key,
                needs_golden=self._needs_answers,
                criteria_suffice=self._criteria_suffice,
            )
            self._understood = reader.understood()
            self._readings = reader.readings
            self._reader = reader
            self._notes += reader.notes
            return reader.faults, reader.samples()

        names = set()
        for item in items:
            names |= {*item.metadata}

        faults = []
        for at, name in enumerate(options.stratify):
            if name not in names:
                near = hint("", name, list(names))
                message = f"no {rows.unit} has the key '{name}'{near}"
                faults.append(Fault(place=f"dataset.stratify.{at}", message=message))

        return faults, _samples_of(items)


def _with_setting(error: BadDataset, setting: str, remark: str) -> BadDataset:
    """What one part of a file leaves open, with the setting that names it."""
    first, *others = error.faults
    message = f"{first.message}\n  in each case with `{setting}` below `dataset` ({remark})"
    same = BadDataset(error.path, [Fault(place=first.place, message=message), *others])
    same.readings = tuple(f"{reading}\n{setting}" for reading in error.readings)
    return same


_MOST_PARTS = 12
"""Sheets or lists of a file that are looked into before one must be named."""
_OR_DECLINES = "If declining is the right answer to them, set `dataset.empty: declines`."


def _samples_of(items: Sequence[forms.Item]) -> Iterator[list[Numbered]]:
    for start in range(0, len(items), BLOCK):
        block: list[Numbered] = []
        for position, item in enumerate(items[start : start + BLOCK], start):
            sample = None
            if not item.wrong:
                sample = forms.sample(item, position)
            block.append((item.number, sample, item.wrong))

        yield block


def _asks_the_same(sample: Sample, other: Sample) -> bool:
    """Whether question and golden answer are equal apart from white space."""
    first, second = (
        {"question": of.turns[0].question, "golden": of.turns[0].golden} for of in (sample, other)
    )
    return key_of(first, ["question", "golden"]) == key_of(second, ["question", "golden"])
