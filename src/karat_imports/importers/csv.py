"""`karat import csv`: any table with one result per row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from karat.documents.answers import failing_status
from karat.documents.batches import Table
from karat.documents.candidates import AGENTS_IN_RESULTS
from karat.documents.cells import only_text
from karat.documents.columns import (
    LOOKED_AT,
    MISSING,
    Column,
    Columns,
    NumberedRow,
    cell,
    columns_of,
    is_empty,
    leaves,
    score_in,
)
from karat.documents.csv_rows import with_first_line
from karat.documents.doubts import Seen, doubts
from karat.documents.factors import parting, sentence
from karat.documents.names import (
    Meaning,
    Role,
    lower_is_better,
    meanings,
    with_role,
    word_set,
    words_of,
)
from karat.documents.results import (
    belongs_to,
    columns_like,
    compares,
    golden_alone,
    in_words,
    joining_id,
    lines_alone,
    models_by_system,
    scored_systems,
    scores_by_pattern,
    scores_by_system,
    systems_in,
    systems_of_scores,
    without_shared,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.row_list import Rows
from karat.documents.rows import FORMATS, read_rows
from karat.documents.sentences import explained_by
from karat.documents.understood import beginning
from karat.documents.unfolding import unfolded
from karat.errors import BadDataset, BadOption, Fault, OperatorError, did_you_mean
from karat.formats import some_of, text_of
from karat.importers import Findings, ImportedRun
from karat.layouts import laid_out, speakers
from karat.records import Metric
from karat_imports.importers._asked import (
    ROLES,
    TOLD,
    by_names,
    columns_found,
    is_result,
    no_results,
    undecided,
    with_sheets,
)
from karat_imports.importers._metrics import (
    doubted_directions,
    no_scores,
    not_of_answers,
)
from karat_imports.importers._reading import title
from karat_imports.importers._table_trials import (
    NUMBERS,
    OWN,
    PLACE,
    ROW,
    TEXTS,
    ARowASystem,
    Numbered,
    Placed,
    Trials,
    Worth,
)
from karat_imports.importers._unread import (
    MOST_WORDS,
    SEVERAL,
    check_read_in_one_way,
    listed,
    map_options,
    mapping,
    not_read,
    worth,
)
from karat_imports.importers.chats import Chats, table, who_answers

__all__ = ["Csv"]

_TARGETS = ("id", "condition", "repetition", *TEXTS, *NUMBERS)
_Chosen = Mapping[str, str]
"""Targets with the columns that they are taken from."""


class Csv:
    """Any table (CSV, TSV, JSON Lines, JSON, Parquet, …) with one result per row; --map says which
    column is what.
    """

    class Options(BaseModel):
        """Without an entry in `map`, a target's column is the one with the target's name."""

        model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

        map: dict[str, str] = Field(
            default={},
            description="target → column; targets: "
            + ", ".join(_TARGETS)
            + ", score.NAME (a metric), reason.NAME (why it has its value)",
        )
        answers: list[str] = Field(
            default=[], description="columns of answers, each of another system"
        )
        scored: list[str] = Field(
            default=[], description="columns of one score, each of another system"
        )
        conditions: list[str] = Field(
            default=[], description="columns that name the condition together"
        )
        lower_is_better: list[str] = Field(
            default=[], description="metrics for which lower is better"
        )
        higher_is_better: list[str] = Field(
            default=[], description="metrics for which higher is better, whatever their names"
        )
        no_score: list[float] | None = Field(
            default=None,
            description="numbers that mean that there is no score, such as -1; []: none does",
        )
        words: dict[str, float | None] = Field(
            default={},
            description="words in columns of scores → what they are worth, such as "
            "{correct: 1, partly: 0.5}; null: no score",
        )
        unnamed: Literal["repetitions", "conditions", "copies"] | None = Field(
            default=None,
            description="what several rows of a question are that nothing names or numbers: the "
            "n-th of each one is its n-th repetition, or of the n-th condition; copies: those that "
            "are identical count once",
        )
        header: bool = Field(
            default=True, description="whether the first line names the columns; else it is a row"
        )
        part: str | None = Field(
            default=None, description="which list of a JSON file holds the results, of several"
        )
        sheet: str | None = Field(
            default=None, description="which sheet of a workbook; `*`: all alike, each a condition"
        )

    listed_as: ClassVar[str] = "csv"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._map: dict[str, str] = {}  # what the user has named: target → column of all rows
        self._named: dict[str, list[str]] = {}  # the same, with all columns of a condition
        self._of_systems: dict[str, str] = {}  # metric → pattern of its columns, one a system

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

        reading = assign(rows.seen_columns(), door="results", file=path.name)
        offered: Sequence[Reading]
        if isinstance(reading, Reading):
            offered = [reading]
        else:
            offered = reading.readings

        if any("score" in one.roles for one in offered):
            return Csv.listed_as  # undecided columns are asked about there
        answered = isinstance(reading, Reading) and "answer" in reading.roles
        if not answered and _holds_chats(rows):
            return "chats"
        return None

    def runs(self, paths: Sequence[Path], findings: Findings) -> Iterable[ImportedRun]:
        """One run per file.

        Raises BadDataset for a file that is not a table, BadOption for a missing column.
        """
        for path in paths:
            asked = self._options
            try:
                rows = table(path, part=asked.part, sheet=asked.sheet)
                rows = unfolded(rows if asked.header else with_first_line(rows))
            except BadOption as error:
                raise with_sheets(path, error) from error

            if not rows.count:
                raise BadDataset(str(path), list(rows.sorted_faults()))
            for text in rows.notes:
                findings.note(text)

            for fault in rows.sorted_faults():
                findings.lose(fault.message, f"{path.name}, {fault.place}")

            try:
                run = self._run(path, rows, findings)
            except BadOption as error:  # what is asked next is asked with what was answered
                pairs = [*asked.map.items()]
                for key, target in SEVERAL.items():
                    pairs += [(target, column) for column in getattr(asked, key)]
                given = f"\n  {map_options(pairs)} --set ".replace("\n   --set", "\n  --set")

                text = str(error).removeprefix(f"{error.option}: ").replace("\n  --set ", given)
                raise BadOption(error.option, text) from error

            yield run

    def _run(self, path: Path, rows: Rows, findings: Findings) -> ImportedRun:
        columns = columns_of((row for _, row in rows.rows), named=self._options.map.values())
        self._take_map(columns)
        try:
            chosen, systems = self._columns(path, columns, findings)
        except BadOption as error:
            raise _instead(path, rows, error, self._options) from error

        answered = any(
            system in columns and system not in metrics.values()
            for system, metrics in systems.items()
        )
        models = models_by_system(systems, columns) if answered else {}
        _check_together(path, rows, chosen)
        _leave_out_words(rows, chosen, findings, named={*self._map})
        table: Iterable[NumberedRow] = rows.rows
        if systems:
            compared = compares(columns)
            table = ARowASystem(rows.rows, systems, models, answered=answered, compared=compared)
            for text in _systems_said(systems, models, table, answered=answered):
                findings.note(text)

            chosen |= table.columns

        items = not systems and self._are_items(rows, chosen)
        table = self._identified(rows, table, chosen, findings, items=items, systems=bool(systems))
        if self._options.unnamed == "conditions":
            table = Placed(table, [chosen[key] for key in ("id", "question") if key in chosen][:1])
            chosen["condition"] = PLACE

        metrics = {}
        for name, column_name in chosen.items():
            if name.startswith("score."):
                metrics[name.partition(".")[2]] = column_name

        of_file = {name: columns[column] for name, column in metrics.items() if column in columns}
        _check_verdicts(of_file, self._options.words)
        judged = [*of_file.items(), *_of_systems(systems, columns)]
        without = no_scores(judged, self._options.no_score)
        for name, column in of_file.items():
            if 2 * column.lists > column.filled:
                findings.note(f"'{name}' holds several numbers a row, of which the mean counts")

        explained = {name: explained_by(column, columns) for name, column in of_file.items()}
        trials = Trials(
            f"{path.name}, {rows.unit}",
            table,
            chosen,
            metrics,
            findings,
            named=self._named,
            worth=Worth(no_score=without, words=self._options.words, explained=explained),
        )
        trials.alone = self._options.sheet or trials.alone
        _check_named(trials, self._options.unnamed)
        if by_name := self._found_by_name(chosen, trials):
            findings.note(f"columns found by their names: {', '.join(by_name)}")
        lower = self._lower({name: columns.get(at) for name, at in metrics.items()}, findings)
        of_systems = {*systems, *models, *models.values(), *(column.path for _, column in judged)}
        used = of_systems | {findings.cluster or ""}
        used |= {*chosen.values(), *trials.conditions, *trials.numbered, *trials.ids}
        if chosen.get("id") not in trials.ids:  # it does not tell samples apart
            used -= {chosen.get("id", "")} - {chosen.get("condition")}
        seen = Seen(
            rows=rows.first_rows(),
            columns=columns,
            roles=_roles(chosen, columns, [*systems] if answered else ()),
        )
        if not systems and not items:
            check_read_in_one_way(seen, used, chosen, trials, mapped={*self._map})
        decided = {*self._options.lower_is_better, *self._options.higher_is_better}
        said = doubted_directions(seen, judged, lower, decided=decided, rank=trials.compared)
        for text in (*said, *self._doubted(seen, used, chosen, trials)):
            findings.note(text)

        return ImportedRun(
            name=title(path),
            tool="table",
            dataset=path.name,
            first_row=_first_row(table, chosen),
            metrics={name: (Metric(name=name, direction="lower"),) for name in sorted(lower)},
            trials=trials,
            sparse=trials.sparse,
            distinct=trials.distinct,
        )

    def _identified(
        self,
        rows: Rows,
        table: Iterable[NumberedRow],
        chosen: dict[str, str],
        findings: Findings,
        *,
        items: bool,
        systems: bool,
    ) -> Iterable[NumberedRow]:
        """The table, and in `chosen` the column that tells samples apart: if there is none, their
        numbers, added to the table.
        """
        if items:
            parting = chosen.pop("id")
            findings.note(
                f"rows of one '{parting}' say different things, and nothing numbers them: each "
                f"{rows.unit} is a sample; if they are repetitions, --map id={quote(parting)}"
            )

        if not systems and not {"id", "question"} & {*chosen}:
            chosen |= _parting_id(rows, chosen)
        if {"id", "question"} & {*chosen}:
            return table
        chosen["id"] = ROW
        if not items:
            findings.note(f"there are neither ids nor questions: each {rows.unit} is a sample")
        return Numbered(table)

    def _take_map(self, columns: Columns) -> None:
        """Parts what the user has named into columns of all rows, and those of systems."""
        self._map = {**self._options.map}
        self._of_systems = {}
        for target, column in self._options.map.items():
            if target.startswith("score.") and "*" in column and column not in columns:
                self._of_systems[target.removeprefix("score.")] = self._map.pop(target)

        for column in self._options.conditions[:1]:
            self._map["condition"] = column
        self._named = {target: [column] for target, column in self._map.items()}
        if self._options.conditions:
            self._named["condition"] = self._options.conditions

    def _are_items(self, rows: Rows, chosen: Mapping[str, str]) -> bool:
        """Whether many rows of one id, with no question and nothing that parts them, have
        different texts: they are items under it.
        """
        known = {"id", "answer"} <= {*chosen} and "id" not in self._map
        if not known or {"question", "repetition", "condition", "model"} & {*chosen}:
            return False
        first = rows.first_rows()
        ids = {text_of(cell(row, chosen["id"])) for row in first}
        said = {text_of(cell(row, chosen["answer"])) for row in first}
        return len(first) > _MANY * len(ids) and len(said) > _MANY * len(ids)

    def _found_by_name(self, chosen: _Chosen, trials: Trials) -> list[str]:
        """Each target whose column the user has not named, and that is used."""
        found = []
        for target, column in chosen.items():
            named = target in self._map or target == column
            if named or column.startswith(OWN) or (target == "id" and column not in trials.ids):
                continue
            found.append(f"{target}={column}")

        return found

    def _doubted(
        self,
        seen: Seen,
        used: Collection[str],
        chosen: _Chosen,
        trials: Trials,
    ) -> Iterator[str]:
        """What is not read, or not certain."""
        yield from not_read(seen.columns, used, chosen.get("answer"))
        yield from doubts(seen, named=_roles(self._map, seen.columns, ()))
        condition = chosen.get("condition")
        if condition is not None and condition not in trials.conditions:
            yield (
                f"'{condition}' is no condition here: it is the same in all rows of a question; if "
                f"its questions may be compared as a whole, --map {quote(f'condition={condition}')}"
            )

        if trials.factors:
            yield sentence(trials.conditions, trials.factors)
        if trials.hint is not None:
            yield trials.hint

    def _lower(self, metrics: Mapping[str, Column | None], findings: Findings) -> set[str]:
        """The metrics that are better when lower, by the user's word or by their names. Says which
        way each is taken, and which are only assumed. `metrics`: with their columns.

        Raises BadOption for a metric that there is not.
        """
        lower = {*self._options.lower_is_better}
        higher = {*self._options.higher_is_better}
        for option, names in (("lower", lower), ("higher", higher)):
            if unknown := names - set(metrics):
                raise BadOption(
                    f"--set {option}_is_better", f"no metric is called '{min(unknown)}'"
                )

        if both := lower & higher:
            raise BadOption("--set higher_is_better", f"'{min(both)}' is better when lower, too")
        assumed = []
        good = []
        for name, column in metrics.items():
            if name in higher | lower:
                continue
            by_name = lower_is_better(name)
            in_words = column is not None and column.is_judgement
            if by_name and column is not None and in_words:
                said = some_of(sorted(column.values))
                findings.note(f"'{name}' holds {said}: better when higher, whatever its name")
            elif by_name:
                lower.add(name)
                findings.note(f"'{name}' is better when lower, by its name")
            elif by_name is None and not in_words:
                assumed.append(name)
            else:
                good.append(name)

        if good:
            findings.note(f"better when higher: {listed(good)}")
        if assumed:
            findings.note(
                f"taken to be better when higher: {', '.join(assumed)} (name others with "
                f"--set lower_is_better=[…])"
            )

        return lower

    def _columns(
        self, path: Path, columns: Columns, findings: Findings
    ) -> tuple[dict[str, str], Mapping[str, _Chosen]]:
        """Target → column: those that `map` names, then those that are found by their names; and
        column of answers → metric → column, if each such column is a system's.

        Raises BadOption for what is missing or not certain.
        """
        mapped = self._map
        _check_map(path, mapped, columns)
        for column in self._options.conditions:
            _check_map(path, {"condition": column}, columns)
        named: dict[Role, tuple[str, ...]] = {}
        if self._options.answers:
            named["answer"] = _of_systems_named(path, "answer", self._options.answers, columns)
        targets = {*_TARGETS} - {*ROLES}
        targets |= {name for name in columns if name.startswith(("score.", "reason."))}
        chosen = {name: name for name in columns if name in targets} | mapped
        for target, column in mapped.items():
            role = ROLES.get(target)
            if role is not None:
                named[role] = (column,)

        judged = [column for target, column in chosen.items() if target.startswith("score.")]
        systems_scored = _of_systems_named(path, "score", self._options.scored, columns)
        for metric, pattern in self._of_systems.items():
            systems_scored += _of_systems_named(path, f"score.{metric}", [pattern], columns)
        if not (mapped or self._options.answers or systems_scored):
            systems_scored = scored_systems(columns)
        if judged or systems_scored:
            named["score"] = tuple(dict.fromkeys(judged)) or systems_scored
        taken = {column for target, column in chosen.items() if target not in ROLES}
        free = {}
        for name in columns:
            if name in judged or name not in taken:
                free[name] = columns[name]

        result = assign(free, door="results", file=path.name, named=named)
        if isinstance(result, Undecided):
            result = _decided(path, columns, result, named, mapped)

        by_name = columns_found(result, columns)
        found = {target: column for target, column in by_name.items() if column not in taken}
        status = failing_status(columns)
        if status is not None and "error" not in found | chosen:
            found["error"] = status
        if not is_result(found | chosen):
            raise no_results(path, columns, result, [*found, *chosen])
        _check_of_answers(columns, found, mapped)
        systems: Mapping[str, _Chosen] = {}
        if "answer" not in found | chosen and not judged:
            scores = [name for name in found if name.startswith("score.")]
            systems = self._by_scores([found[name] for name in scores], columns)
            for name in scores if systems else ():
                del found[name]

        if len(result.roles.get("answer", ())) > 1:
            systems, own = _of_answers(path, columns, result.roles["answer"])
            if self._of_systems:
                named_by = dict.fromkeys(result.roles["answer"], self._options.answers[0])
                systems = scores_by_pattern(named_by, self._of_systems, columns)
                own |= {*systems_scored}
            found = {name: column for name, column in found.items() if column not in own}
            of_rows = [name for name in found if name.startswith(("score.", "reason."))]
            if of_rows:
                left = listed([found.pop(name) for name in of_rows])
                findings.note(f"not taken, as it judges no single answer of its row: {left}")

        return found | chosen, systems

    def _by_scores(self, scores: Sequence[str], columns: Columns) -> Mapping[str, _Chosen]:
        """System → metric → column, where systems are in the names of scores."""
        if self._of_systems:
            return scores_by_pattern({}, self._of_systems, columns)
        if self._options.scored:
            return {
                column: {"score": column} for column in columns_like(self._options.scored, columns)
            }
        return systems_of_scores(scores)


def _decided(
    path: Path,
    columns: Columns,
    result: Undecided,
    named: Mapping[Role, tuple[str, ...]],
    mapped: _Chosen,
) -> Reading:
    """The reading that the user has named. Raises BadOption if that does not say enough."""
    agreed = []
    for reading in result.readings:  # those with the roles that are named, and no further text
        if all(named.get(role, ()) == reading.roles.get(role, ()) for role in TOLD):
            agreed.append(reading)

    named_enough = {"id", "question"} & {*mapped} or agreed or not result.readings
    if not (named_enough and is_result([*mapped, *named])):
        raise undecided(path, columns, result, named, mapped)
    if agreed:
        return agreed[0]
    roles = dict(named)
    identifying = joining_id(columns)
    if not {"id", "question"} & {*named} and identifying is not None:
        roles["id"] = (identifying,)
    grouping: tuple[Role, ...] = ("condition", "model", "repetition")
    for role in grouping:
        paths = with_role(columns, role)
        if paths and role not in named:
            roles[role] = (paths[0],)

    return Reading(roles=roles)


def _parting_id(rows: Rows, chosen: _Chosen) -> dict[str, str]:
    """The column that tells all rows of a condition and repetition apart, as an id; empty: none
    does, or rows name neither.
    """
    grouping = []
    for key in ("condition", "model", "repetition"):
        if key in chosen:
            grouping.append(chosen[key])

    if not grouping:
        return {}
    found = parting(Table(rows.rows), grouping, used={*chosen.values()})
    return dict(zip(["id"], found, strict=False))


def _leave_out_words(
    rows: Rows, chosen: dict[str, str], findings: Findings, *, named: Collection[str]
) -> None:
    """Takes away golden answers, by a name that may mean others, that say in words what the answers
    say in numbers.
    """
    golden = chosen.get("golden")
    answer = chosen.get("answer")
    if golden is None or answer is None or "golden" in named:
        return
    if Meaning("golden") in meanings(golden):
        return
    said = in_words(rows.first_rows(), answer, golden)
    if said is not None:
        del chosen["golden"]
        findings.note(
            f"'{golden}' is '{answer}' in words ({said}), and no golden answer; if it is one, "
            f"--map golden={quote(golden)}"
        )


def _check_of_answers(columns: Columns, found: _Chosen, mapped: Collection[str]) -> None:
    """Raises BadOption for scores of something else than answers, with what reads them all the
    same, unless the user has named columns. `found`: target → column.
    """
    other = not_of_answers(columns)
    if other is not None and "answer" not in found and not mapped:
        raise BadOption(
            "--map",
            f"there are no answers, and rows say {other}: give the file with a row an answer. If "
            f"each row is one result all the same:\n  " + mapping(found),
        )


def _of_answers(
    path: Path, columns: Columns, answers: Sequence[str]
) -> tuple[Mapping[str, _Chosen], set[str]]:
    """Column of answers → metric → column, where each is a system's; and the columns that say
    something of one of them alone.
    """
    names: Mapping[str, tuple[str, ...]] = systems_in(columns, answers)
    if len(names) < len(answers):
        names = {answer: words_of(answer) for answer in answers}
    names = without_shared(names)
    systems = scores_by_system(names, columns, file=path.stem)
    own = {column for metrics in systems.values() for column in metrics.values()}
    own |= {name for name in columns if belongs_to(name, names) is not None}
    for name in columns:  # `systems.b.error` says nothing of `systems.a.output`
        parent = name.rpartition(".")[0]
        if parent and not all(answer.startswith(f"{parent}.") for answer in answers):
            own.add(name)

    return systems, own


def _of_systems_named(
    path: Path, target: str, patterns: Iterable[str], columns: Columns
) -> tuple[str, ...]:
    """The columns that the user has named for `target`, each of a system. Raises BadOption."""
    found = tuple(columns_like(patterns, columns))
    for column in found:
        _check_map(path, {target: column}, columns)

    return found


def _systems_said(
    systems: Mapping[str, _Chosen],
    models: _Chosen,
    table: ARowASystem,
    *,
    answered: bool,
) -> Iterator[str]:
    """Which columns are read as several systems, or repetitions, and as the scores of each."""
    part = "condition" if "condition" in table.columns else "repetition"
    if table.runs:
        part = "repetition of the system that its name begins with"
    if models:
        named = f", named by {listed([*models.values()])}"
    else:
        named = ""

    if answered:
        parted = "each column of answers"
    else:
        parted = "each system in the names of scores"

    yield f"{parted} is a {part}{named}: {listed([*systems])}"
    columns: dict[str, list[str]] = {}
    for metrics in systems.values():
        for metric, column in metrics.items():
            columns.setdefault(metric, []).append(column)

    for metric, own in columns.items():
        yield f"score.{metric} of each: {listed(own)}"


def _check_map(path: Path, mapped: _Chosen, columns: Columns) -> None:
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


def _roles(chosen: _Chosen, columns: Columns, systems: Sequence[str]) -> dict[Role, Sequence[str]]:
    """Role → columns. `systems`: the answers of several, if they are."""
    roles: dict[Role, Sequence[str]] = {}
    if choices := with_role(columns, "choices"):
        roles["choices"] = choices
    for target, column in chosen.items():
        role = ROLES.get(target)
        if target.startswith("score."):
            role = "score"
        if role is not None:
            roles[role] = (*roles.get(role, ()), column)

    if systems:
        roles["answer"] = systems
    return roles


def _of_systems(systems: Mapping[str, _Chosen], columns: Columns) -> Iterator[tuple[str, Column]]:
    """Each metric of each system, with its column."""
    for own in systems.values():
        for name, column in own.items():
            yield name, columns[column]


def _first_row(table: Iterable[NumberedRow], chosen: _Chosen) -> dict[str, str]:
    """What is read of the first row that has an answer."""
    rows = [row for _, row in islice(table, LOOKED_AT)]
    targets = []
    for target in ("question", "golden", "answer"):
        if target in chosen:
            targets.append(target)

    if not rows or not targets:
        return {}
    said = [row for row in rows if not is_empty(cell(row, chosen[targets[-1]]))]
    row = (said or rows)[0]
    return {target: beginning(only_text(cell(row, chosen[target]))) for target in targets}


def _check_verdicts(columns: Columns, words: Mapping[str, float | None]) -> None:
    """Raises BadOption for a column of words of which not all are worth something: scores of the
    others alone would say that all is right, or all wrong. `columns`: by metric.
    """
    for name, column in columns.items():
        unknown = []
        for value in column.values - {*words}:
            judges = score_in(value) is not None or value.strip().casefold() in MISSING
            if not judges and not _NO_VERDICT & {*words_of(value)}:
                unknown.append(value)

        if unknown and not column.numbers and len(column.values) <= MOST_WORDS:
            raise BadOption(
                "--map",
                f"'{column.path}' holds words of which not all have a value: say what they are "
                f"worth:\n  --map {quote(f'score.{name}={column.path}')} {worth(column)}",
            )


def _check_named(trials: Trials, unnamed: str | None) -> None:
    """Raises BadOption if each question has as many rows, and nothing says what these are, or if
    no question has rows of two conditions, though another id has. `unnamed`: as the user says.
    """
    if unnamed is not None:
        trials.keeps_copies = unnamed == "repetitions"
        return
    copies = trials.copies
    if copies is not None:
        raise BadOption(
            "--set unnamed",
            f"{copies}, and nothing numbers them; say what they are:\n"
            f"  --set unnamed=repetitions\n  --set unnamed=copies",
        )
    if trials.apart is not None:
        raise BadOption("--map", trials.apart)
    if trials.alike:
        named = "nothing names or numbers them"
        options = "--map condition=COLUMN"
        for column in trials.parted_by[:1]:
            named = f"only '{column}' parts them"
            options = f"--map {quote(f'condition={column}')}"

        raise BadOption(
            "--set unnamed",
            f"each question has {trials.alike} rows, and {named}: say "
            f"whether these are of one system (--set unnamed=repetitions) or of several (--set "
            f"unnamed=conditions, or {options})",
        )


def _check_together(path: Path, rows: Rows, chosen: _Chosen) -> None:
    """Raises BadDataset if every answer is in a row without a question: rows are messages."""
    if not {"question", "answer"} <= {*chosen}:
        return
    question = chosen["question"]
    answer = chosen["answer"]
    answered = []
    for row in rows.first_rows():
        if not is_empty(cell(row, answer)):
            answered.append(row)

    if answered and all(is_empty(cell(row, question)) for row in answered):
        message = f"no row holds both '{question}' and '{answer}': its rows are messages"
        raise BadDataset(str(path), [Fault(place="file", message=message)])


def _holds_chats(rows: Rows) -> bool:
    """Whether a column holds conversations, whatever their form, and none the answer beside it."""
    columns = laid_out(rows, whole=True).seen_columns()
    if with_role(columns, "answer"):  # a conversation is what it was given, or a judge was
        return False
    return any(2 * column.messages > column.filled for column in columns.values())


def _instead(path: Path, rows: Rows, error: BadOption, options: Csv.Options) -> OperatorError:
    """The same error, with what was read and what else may be meant; or what the file holds."""
    chats = _holds_chats(rows) and _can_be_read_as_chats(path)
    names: Mapping[str, int] = {}
    if not chats and not options.map:
        names = speakers(rows)

    if (chats or names) and not options.map:
        message = "holds conversations: `karat import chats` reads them"
        if names:
            message += f" with --set agent=NAME; {who_answers([*names])}"
        return BadDataset(str(path), [Fault(place="file", message=message)])

    first = rows.first_rows()
    columns = columns_of(first)
    alone = lines_alone(columns)
    if alone is not None:
        return BadDataset(str(path), [Fault(place="file", message=alone)])
    message = str(error).removeprefix(f"{error.option}: ")
    message += by_names(message, first, columns)
    other = not_of_answers(columns)
    named = {word for path in columns for word in words_of(path)} & AGENTS_IN_RESULTS
    named |= {*options.map, *with_role(columns, "answer")}
    if other is not None and not named and other not in message:
        none = f"no column is an agent's answer by its name, and rows say {other}"
        message = f"{none}: give the file with a row an answer. Else {message}"

    dataset = None if options.map else golden_alone(columns)
    if dataset is not None:
        read = f"`karat check {quote(str(path))}` reads it as a dataset"
        message = f"{path} {dataset}: {read}. Else {message}"

    lines = [message, *rows.notes]
    if error.option == "--map" and "(columns: " not in message:
        roles = " ".join(f"--map {target}=…" for target in (*TOLD, "condition", "score.NAME"))
        lines.append(
            f"or name the columns: {roles} (columns: {listed(leaves(columns), most=_ALL)})"
        )

    return BadOption(error.option, "\n  ".join(lines))


def _can_be_read_as_chats(path: Path) -> bool:
    """Whether the importer of chats finds a question in a file."""
    try:
        runs = [*Chats(Chats.Options()).runs([path], Findings())]
        return any(True for run in runs for _ in run.trials)
    except OperatorError:
        return False


_NO_VERDICT = word_set(
    """error errors failure crash crashed exception timeout skip skipped blocked invalid unknown
    unparsable missing refused abstain abstained pending not"""
)
"""Words for an answer that could not be judged."""
_MANY = 10  # rows of one id that differ in all else
_ALL = 50  # columns to choose from
