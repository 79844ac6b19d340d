"""`karat import csv`: any table with one result per row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from karat.documents.answers import (
    Copies,
    Repetitions,
    condition_columns,
    condition_of,
    key_of,
    like_conditions,
    repetition_value,
    sample_columns,
)
from karat.documents.cells import dialogue
from karat.documents.columns import (
    MISSING,
    Column,
    are_messages,
    cell,
    columns_of,
    paths_in,
    score_in,
)
from karat.documents.names import SAID, Role, lower_is_better, meanings, words_of
from karat.documents.results import (
    belongs_to,
    models_by_system,
    score_columns,
    scores_by_system,
    systems_in,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.rows import FORMATS, Row, Rows, read_rows
from karat.documents.understood import examples
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset, BadOption, Fault, OperatorError, did_you_mean
from karat.formats import some_of, text_of
from karat.hashes import Tally
from karat.importers import Findings, ImportedFailure, ImportedRun, ImportedScore, ImportedTrial
from karat.layouts import laid_out, speakers
from karat.records import Metric, Reply, Usage, was_cut
from karat_imports.importers._reading import title
from karat_imports.importers.chats import who_answers

__all__ = ["Csv"]

_TARGETS = (
    *(
        "id",
        "question",
        "golden",
        "answer",
        "condition",
        "repetition",
        "model",
        "error",
        "stop_reason",
    ),
    *("seconds", "dollars", "input_tokens", "output_tokens", "started"),
)
_TEXTS = ("question", "golden", "answer", "model", "error", "stop_reason", "started")
_NUMBERS = ("input_tokens", "output_tokens", "dollars", "seconds")
_MILLISECONDS = {"ms", "millis", "milliseconds"}
_ROLES: Mapping[str, Role] = {
    "id": "id",
    "question": "question",
    "golden": "golden",
    "answer": "answer",
    "condition": "condition",
    "repetition": "repetition",
    "model": "model",
    "error": "error",
    "stop_reason": "stop_reason",
    "seconds": "latency",
    "dollars": "cost",
    "started": "started",
}
"""Target → the role of the column that it is taken from, if `map` does not name it."""
_MANY = 10  # rows of a sample that are rarely its repetitions, if nothing numbers them
_NO_ERROR = (*MISSING, "false", "no", "0")


class Csv:
    """Any table (CSV, TSV, JSON Lines, JSON, Parquet, …) with one result per row; --map says which
    column is what.
    """

    class Options(BaseModel):
        """Without an entry in `map`, a target's column is the one with the target's name."""

        model_config = ConfigDict(extra="forbid")

        map: dict[str, str] = Field(
            default={},
            description="target → column; targets: "
            + ", ".join(_TARGETS)
            + ", score.NAME (a metric), reason.NAME (why it has its value)",
        )
        lower_is_better: list[str] = Field(
            default=[], description="metrics for which lower is better"
        )
        part: str | None = Field(
            default=None, description="which list of a JSON file holds the results, of several"
        )
        sheet: str | None = Field(default=None, description="which sheet of a workbook")

    listed_as: ClassVar[str] = "csv"

    def __init__(self, options: Options) -> None:
        self._options = options

    @staticmethod
    def recognizes(path: Path, head: bytes) -> bool:
        """Never: the user must say which column is what."""
        return False

    @staticmethod
    def reader_of(path: Path) -> str | None:
        """The importer of a table without a format of its own: `csv` if it has scores, `chats` if
        it holds conversations; None: it has neither.
        """
        if path.suffix.lower() not in FORMATS:
            return None
        try:
            rows = unfolded(read_rows(path, results=True))
        except BadDataset:
            return None
        reading = assign(columns_of(row for _, row in rows.rows), door="results", file=path.name)
        if isinstance(reading, Reading) and "score" in reading.roles:
            return Csv.listed_as
        answered = isinstance(reading, Reading) and "answer" in reading.roles
        return "chats" if not answered and _holds_chats(rows) else None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per file.

        Raises BadDataset for a file that is not a table, BadOption for a missing column.
        """
        for path in paths:
            rows = self._rows(path)
            if not rows.count:
                raise BadDataset(str(path), list(rows.sorted_faults()))
            for text in rows.notes:
                findings.note(text)
            for fault in rows.sorted_faults():
                findings.lose(fault.message, f"{path.name}, {fault.place}")
            columns = columns_of(row for _, row in rows.rows)
            try:
                chosen, systems = self._columns(path, columns, findings)
                models = models_by_system(systems, columns)
            except BadOption as error:
                raise _instead(path, rows, error, self._options) from error
            table: Iterable[tuple[int, Row]] = rows.rows
            if systems:
                table = _ARowASystem(rows.rows, systems, models)
                part = "repetition" if "repetition" in table.columns else "condition"
                named = f", named by {_listed([*models.values()])}" if models else ""
                findings.note(f"each column of answers is a {part}{named}: {_listed([*systems])}")
                chosen |= table.columns
            if not {"id", "question"} & {*chosen}:
                table = _Numbered(table)
                chosen["id"] = _ROW
                findings.note(f"there are neither ids nor questions: each {rows.unit} is a sample")
            metrics = {}
            for name, column in chosen.items():
                if name.startswith("score."):
                    metrics[name.partition(".")[2]] = column
            lower = set(self._options.lower_is_better)
            if unknown := lower - set(metrics):
                raise BadOption("--set lower_is_better", f"no metric is called '{min(unknown)}'")
            assumed = []
            for name in metrics:
                by_name = lower_is_better(name)
                if by_name and name not in lower:
                    lower.add(name)
                    findings.note(f"'{name}' is better when lower, by its name")
                elif by_name is None and name not in lower:
                    assumed.append(name)
            if assumed:
                findings.note(
                    f"taken to be better when higher: {', '.join(assumed)} (name others with "
                    f"--set lower_is_better=[…])"
                )

            announced = {}
            for name in metrics:
                if name in lower:
                    announced[name] = (Metric(name=name, direction="lower"),)
            trials = _Trials(
                f"{path.name}, {rows.unit}",
                table,
                chosen,
                metrics,
                findings,
                present=rows.columns if table is rows.rows else (),
                has_conditions="condition" in self._options.map
                or chosen.get("condition") == _SYSTEM,
            )
            if trials.hint is not None:
                findings.note(trials.hint)
            yield ImportedRun(
                name=title(path),
                tool="table",
                dataset=path.name,
                metrics=announced,
                trials=trials,
                sparse=trials.sparse,
            )

    def _rows(self, path: Path) -> Rows:
        asked = self._options
        try:
            rows = read_rows(path, section=asked.part, sheet=asked.sheet, results=True)
        except BadDataset as error:
            (first, *_) = error.faults
            option = {"dataset.split": "part", "dataset.sheet": "sheet"}.get(first.place)
            if option is None:
                raise
            raise BadOption(f"--set {option}=NAME", f"{path}: {first.message}") from error
        return unfolded(rows)

    def _columns(
        self, path: Path, columns: Mapping[str, Column], findings: Findings
    ) -> tuple[dict[str, str], Mapping[str, Mapping[str, str]]]:
        """Target → column: those that `map` names, then those that are found by their names; and
        column of answers → metric → column, if each such column is a system's.

        Raises BadOption for what is missing or not certain.
        """
        mapped = self._options.map
        _check_map(path, mapped, columns)
        named: dict[Role, tuple[str, ...]] = {}
        chosen = {name: name for name in columns if _is_target(name)} | mapped
        for target, column in mapped.items():
            role = _ROLES.get(target)
            if role is not None:
                named[role] = (column,)
        judged = [column for target, column in chosen.items() if target.startswith("score.")]
        if judged:
            named["score"] = tuple(dict.fromkeys(judged))
        taken = {column for target, column in chosen.items() if target not in _ROLES}
        free = {name: columns[name] for name in columns if name in judged or name not in taken}
        result = assign(free, door="results", file=path.name, named=named)
        if isinstance(result, Undecided):
            if {"id", "question"} & {*mapped} and _is_result(mapped):
                return chosen, {}
            if not result.readings or not _is_result(_found(result.readings[0], columns)):
                raise _no_results(path, columns, result)
            raise BadOption("--map", _readings(path, result, columns))
        found = {}
        for target, column in _found(result, columns).items():
            if column not in taken:
                found[target] = column
        if not _is_result(found | chosen):
            raise _no_results(path, columns, result)
        systems: Mapping[str, Mapping[str, str]] = {}
        if len(result.roles.get("answer", ())) > 1:
            answers = result.roles["answer"]
            names = systems_in(columns, answers) or {path: words_of(path) for path in answers}
            systems = scores_by_system(names, columns, file=path.stem)
            own = {column for metrics in systems.values() for column in metrics.values()}
            own |= {path for path in columns if belongs_to(path, names) is not None}
            found = {name: column for name, column in found.items() if column not in own}
            of_rows = [name for name in found if name.startswith(("score.", "reason."))]
            if of_rows:
                left = _listed([found.pop(name) for name in of_rows])
                findings.note(f"not taken, as it judges no single answer of its row: {left}")
        taken_by_name = []
        for target, column in found.items():
            if target not in (*chosen, column) and not (systems and target == "answer"):
                taken_by_name.append(f"{target}={column}")
        if taken_by_name:
            findings.note(f"columns found by their names: {', '.join(taken_by_name)}")
        return found | chosen, systems


def _check_map(path: Path, mapped: Mapping[str, str], columns: Mapping[str, Column]) -> None:
    """Raises BadOption for an unknown target, or a column that there is not."""
    for target, column in mapped.items():
        if target not in _TARGETS and target.partition(".")[0] not in ("score", "reason"):
            known = ", ".join((*_TARGETS, "score.NAME", "reason.NAME"))
            raise BadOption("--map", f"unknown target '{target}' (known: {known})")
        if column not in columns:
            raise BadOption(
                f"--map {target}",
                f"{path} has no column '{column}'{did_you_mean(column, [*columns])}",
            )


def _found(reading: Reading, columns: Mapping[str, Column]) -> dict[str, str]:
    """Target → column, as a reading of the columns has it."""
    found: dict[str, str] = {}
    for target, role in _ROLES.items():
        paths = reading.roles.get(role, ())
        if paths:
            found[target] = paths[0]
    scores = reading.roles.get("score", ())
    names = [_metric(path) for path in scores]
    for path, short in zip(scores, names, strict=True):
        name = short if names.count(short) == 1 else path
        found[f"score.{name}"] = path
        for end in ("reason", "reasons", "explanation"):
            stem = path.removesuffix("_score").removesuffix(" score")
            beside = f"{path.removesuffix('.score')}.{end}"
            for written in (f"{stem}_{end}", f"{path}_{end}", f"{stem} {end}", beside):
                if written in columns:
                    found[f"reason.{name}"] = written
    return found


def _metric(path: str) -> str:
    """The name of the metric in a column: `scores.tone` and `metrics.tone.score` are `tone`."""
    return path.removeprefix("scores.").removeprefix("metrics.").removesuffix(".score")


def _is_target(name: str) -> bool:
    """Whether a column's name is that of a target without a role."""
    return name in {*_TARGETS} - {*_ROLES} or name.startswith(("score.", "reason."))


def _is_result(targets: Iterable[str]) -> bool:
    return any(target == "answer" or target.startswith("score.") for target in targets)


def _holds_chats(rows: Rows) -> bool:
    """Whether most rows hold a conversation, whatever its form."""
    columns = columns_of(row for _, row in laid_out(rows, whole=True).rows).values()
    return any(2 * column.messages > column.rows for column in columns)


def _instead(path: Path, rows: Rows, error: BadOption, options: Csv.Options) -> OperatorError:
    """The same error, or what else the file holds."""
    if options.map:
        return error
    message = "holds conversations: `karat import chats` reads them"
    if not _holds_chats(rows):
        names = speakers(rows)
        if not names:
            return error
        message += f" with --set agent=NAME; {who_answers(names)}"
    return BadDataset(str(path), [Fault(place="file", message=message)])


def _no_results(
    path: Path, columns: Mapping[str, Column], result: Reading | Undecided
) -> BadOption:
    """Why nothing can be imported: what the file holds instead, or what has to be said."""
    listed = f"(columns: {_listed(paths_in(columns))})"
    if isinstance(result, Reading) or result.asked.endswith("is the answer"):
        numbers = [f"--map score.{name}={name}" for name in _unnamed_numbers(result, columns)]
        say = f"say which column is the answer or a score {listed}"
        if numbers:
            say += f"; if these numbers judge the answers:\n  {' '.join(numbers)}"
        return BadOption("--map", say)
    say = f"say which column is the sample's id or its question {listed}"
    if score_columns(columns):
        return BadOption(
            "--map",
            f"{path} holds scores without ids or questions. If they are means, one row a setting, "
            f"they cannot be compared by question: give the file with a row a question. Else {say}",
        )
    return BadOption("--map", say)


def _unnamed_numbers(result: Reading | Undecided, columns: Mapping[str, Column]) -> list[str]:
    """The columns that may be scores, though no word says so."""
    if isinstance(result, Reading):
        used = {path for paths in result.roles.values() for path in paths}
    else:
        used = {path for path in columns if meanings(path)}
    return [name for name in paths_in(columns) if name not in used and columns[name].is_scored]


def _readings(path: Path, result: Undecided, columns: Mapping[str, Column]) -> str:
    lines = []
    for reading in result.readings:
        options = []
        for target, role in _ROLES.items():
            if target in ("id", "question", "golden", "answer") and reading.roles.get(role):
                options.append(f"--map {target}={reading.roles[role][0]}")
        if options:
            lines.append(f"  {' '.join(options)}")
    lines = [*dict.fromkeys(lines)]
    first = f"the columns of {path} can be read in several ways; say one:"
    return "\n".join([first, *lines, *examples(result, columns)])


class _ARowASystem:
    """The rows of a table with a column of answers for each system, one row a system."""

    def __init__(
        self,
        rows: Iterable[tuple[int, Row]],
        systems: Mapping[str, Mapping[str, str]],
        models: Mapping[str, str],
    ) -> None:
        """`models`: column of answers → the column that names the system, if rows differ in it."""
        self._rows, self._systems, self._models = rows, systems, models
        metrics = dict.fromkeys(name for of_one in systems.values() for name in of_one)
        words = [words_of(path) for path in systems]
        stems = {tuple(path[:-1]) for path in words}
        numbered = len(stems) == 1 and all(path[-1].isdecimal() for path in words)
        numbered = numbered and bool(SAID & {*words[0]})  # `gpt_3` and `gpt_4` are systems
        numbered = numbered and not models
        self.columns = {"answer": _ANSWER, "repetition" if numbered else "condition": _SYSTEM}
        self.columns |= {f"score.{name}": f"{_SYSTEM} {name}" for name in metrics}

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        own = {*self._systems}
        for metrics in self._systems.values():
            own |= {*metrics.values()}
        for number, row in self._rows:
            shared = {name: value for name, value in row.items() if name not in own}
            for path, metrics in self._systems.items():
                scores = {f"{_SYSTEM} {name}": cell(row, at) for name, at in metrics.items()}
                name = cell(row, self._models[path]) if self._models else path
                yield number, {**shared, _SYSTEM: name, _ANSWER: cell(row, path), **scores}


_SYSTEM, _ANSWER, _ROW = "karat system", "karat answer", "karat row"
"""Columns of our own."""


class _Numbered:
    """The rows of a table with their numbers in a column."""

    def __init__(self, rows: Iterable[tuple[int, Row]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return ((number, {_ROW: number, **row}) for number, row in self._rows)


class _OnlyRows:
    """The rows of a table without their numbers, read anew each time."""

    def __init__(self, rows: Iterable[tuple[int, Row]]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return (row for _, row in self._rows)


class _Trials:
    """The trials of a table, which is read several times and never kept."""

    def __init__(
        self,
        place: str,
        rows: Iterable[tuple[int, Row]],
        columns: Mapping[str, str],
        metrics: Mapping[str, str],
        findings: Findings,
        *,
        present: Sequence[str],
        has_conditions: bool,
    ) -> None:
        """`present`: the columns of every row; (): rows may differ."""
        self._place, self._rows, self._columns, self._metrics = place, rows, columns, metrics
        self._findings, self._has_conditions = findings, has_conditions
        self._used = {*columns.values()}
        self._texts = [(target, columns[target]) for target in _TEXTS if target in columns]
        self._texts += [pair for pair in columns.items() if pair[0].startswith("reason.")]
        self._numbers = [(f"score.{name}", column) for name, column in metrics.items()]
        self._numbers += [(target, columns[target]) for target in _NUMBERS if target in columns]
        in_milliseconds = _MILLISECONDS & {*words_of(columns.get("seconds", ""))}
        self._a_second = 1000 if in_milliseconds else 1
        self._ids, self._conditions = self._grouping(present)
        texts = [columns[target] for target in ("question", "golden") if target in columns]
        self._of_one_sample = list(dict.fromkeys([*self._ids, *texts]))
        samples, groups, conditions = Tally(), Tally(), set[str | None]()
        for _, row in rows:
            group = self._group(row)
            samples.add(group[0])
            conditions.add(group[1])
            if self._conditions:
                groups.add(group)

        self._repeated = samples.again()  # with several rows
        # whether no question lacks a result: each has rows under each condition, and none says
        # which repetition
        is_complete = not self._conditions or (
            groups.different() == samples.different() * len(conditions)
        )
        self.sparse = is_complete and "repetition" not in columns
        self.hint = None
        if self._repeated:
            used = {*self._used, *self._conditions}
            self.hint = like_conditions(_OnlyRows(rows), self._group, used=used)

    def _group(self, row: Row) -> tuple[tuple[str, ...], str | None]:
        """The row's sample and condition."""
        return key_of(row, self._of_one_sample), condition_of(row, self._conditions)

    def __iter__(self) -> Iterator[ImportedTrial]:
        repetitions, copies = Repetitions(), Copies("row")
        for _, row in self._rows if "repetition" in self._columns else ():
            with suppress(ValueError):  # counted below
                repetitions.add(*self._group(row), self._repetition(row))
        counts = Counter[tuple[tuple[str, ...], str | None]]()
        first: dict[tuple[str, ...], tuple[str, str | None]] = {}
        for number, row in self._rows:
            place = f"{self._place} {number}"
            group = self._group(row)
            if not group[0][0]:
                self._findings.lose("row without an id or a question", place)
                continue
            texts = self._said(row)
            is_repeated = bool(self._repeated) and hash(group[0]) in self._repeated
            if is_repeated and texts["answer"] and copies.is_copy(number, row):
                self._findings.left_out("row identical to an earlier one: it counts once", place)
                continue
            value = None
            try:
                value = self._repetition(row)
            except ValueError as error:
                self._findings.unreadable(str(error), place)

            if value is None:
                repetition = counts[group]
            else:
                repetition = repetitions.number(*group, value)

            asked = texts["question"] or group[0][0], texts["golden"] or None
            if is_repeated:
                counts[group] += 1
                asked = first.setdefault(group[0], asked)
            reply, failure, scores, seconds = self._result(row, texts, place)
            yield ImportedTrial(
                sample=group[0][0],
                question=asked[0],
                golden=asked[1],
                condition=group[1] or "answers",
                repetition=repetition,
                reply=reply,
                seconds=seconds,
                started=texts["started"] or None,
                failure=failure,
                scores=scores,
                metadata={name: value for name, value in row.items() if name not in self._used},
            )

        most = max(counts.values(), default=0)
        if most > _MANY and "repetition" not in self._columns:
            self._findings.note(
                f"up to {most} rows of one sample under one condition are taken as repetitions; if "
                f"they are not, --map condition=COLUMN or --map id=COLUMN"
            )

    def _grouping(self, present: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """The columns in which rows of one question agree, and those that name the condition."""
        columns, rows = self._columns, _OnlyRows(self._rows)
        ids = [columns.get("id") or columns["question"]]
        if "question" in columns:
            ids = sample_columns(
                rows,
                question=columns["question"],
                golden=columns.get("golden"),
                id_column=columns.get("id"),
            )

        if self._has_conditions and columns["condition"] != _SYSTEM:
            return ids, (columns["condition"],)
        used = set()
        for target, column in columns.items():
            if target not in ("condition", "model"):
                used.add(column)
        own = (_SYSTEM,) if self._has_conditions else ()
        conditions = condition_columns(
            rows, lambda row: key_of(row, [*own, *ids]), used=used, present=present
        )
        if own or conditions:
            return ids, (*own, *conditions)
        # what differs from question to question only is a property of questions
        for target in ("condition", "model"):
            if target in columns and len({key_of(row, [columns[target]]) for row in rows}) == 1:
                return ids, (columns[target],)
        return ids, ()

    def _repetition(self, row: Row) -> int | str | None:
        column = self._columns.get("repetition")
        if column is None:
            return None
        return repetition_value(cell(row, column), column)

    def _said(self, row: Row) -> dict[str, str]:
        """Target → text, of every target of a text; "" where the row has none."""
        texts = dict.fromkeys(_TEXTS, "")
        for target, column in self._texts:
            value = cell(row, column)
            if value is not None:
                texts[target] = _text(value)
        return texts

    def _result(
        self, row: Row, texts: Mapping[str, str], place: str
    ) -> tuple[Reply | None, ImportedFailure | None, Sequence[ImportedScore], float | None]:
        """The reply of a row, why there is none, its scores, and its seconds."""
        numbers = dict[str, float | None]()
        for target, column in self._numbers:
            numbers[target] = self._number(cell(row, column), place, target)
        seconds = numbers.get("seconds")
        if seconds is not None:
            seconds /= self._a_second
        error, answer, stop = texts["error"], texts["answer"], texts["stop_reason"]
        if error.strip().lower() in _NO_ERROR:
            error = ""
        scores = []
        is_scored = False
        for name in self._metrics:
            value = numbers[f"score.{name}"]
            is_scored = is_scored or value is not None
            reasons = {name: texts.get(f"reason.{name}")}
            scores.append(ImportedScore(scorer=name, values={name: value}, reasons=reasons))

        if error:
            failure = ImportedFailure(cls="agent", kind="error", message=error)
            return None, failure, (), seconds
        if not (answer or is_scored or was_cut(stop)):
            return None, None, (), seconds
        reply = Reply(
            text=answer,
            stop_reason=stop or None,
            dollars=numbers.get("dollars"),
            usage=_usage(numbers.get("input_tokens"), numbers.get("output_tokens")),
            model=texts["model"] or None,
        )
        return reply, None, scores, seconds

    def _number(self, value: object, place: str, target: str) -> float | None:
        """A number or a verdict in any usual spelling; None if the cell is empty."""
        number = score_in(value)
        if number is not None or value is None or isinstance(value, float):
            return number
        if not isinstance(value, str) or value.strip().lower() not in MISSING:
            name = target.removeprefix("score.")
            self._findings.unreadable(f"'{name}' is not a number", place)
        return None


def _text(value: object) -> str:
    """A cell as text; chat messages as people read them."""
    if isinstance(value, list) and are_messages(value):
        return dialogue(value)
    return text_of(value)


def _usage(read: float | None, written: float | None) -> Usage | None:
    if read is None and written is None:
        return None
    counts = [None if count is None else int(count) for count in (read, written)]
    return Usage(input_tokens=counts[0], output_tokens=counts[1])


def _listed(columns: Sequence[str]) -> str:
    return some_of(columns, most=12) or "none"
