"""Rows of a file → samples with golden answers, by the roles of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice, repeat
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from karat.documents import cells
from karat.documents.answers import hint
from karat.documents.batches import Table
from karat.documents.candidates import Taken
from karat.documents.cells import PLAIN, Options, Unread
from karat.documents.columns import LOOKED_AT, NumberedRow, Row, cell, columns_of, is_empty
from karat.documents.doubts import Seen, doubts
from karat.documents.emptiness import says_unanswerable, unanswerable_values
from karat.documents.names import (
    Meaning,
    Role,
    criterion_type,
    is_score_name,
    last_part,
    meanings,
    names_documents,
    roles_of,
    with_role,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.row_list import Rows
from karat.documents.sentences import tells_how_to_judge
from karat.documents.synonyms import as_one
from karat.documents.understood import Part, Understood, examples
from karat.errors import Fault
from karat.formats import plural, some_of, text_of
from karat.kinds.golden import criteria
from karat.kinds.golden.offers import (
    ASKED,
    OF_A_LOG,
    documents_in,
    in_yaml,
    parts_in,
    setting_lines,
    undecided_fault,
    without_words,
)
from karat.kinds.golden.other_files import no_questions, placeholder
from karat.kinds.golden.turns import asked_at_once, paths_beside
from karat.layouts import laid_out, unasked
from karat.records import Criterion, JsonObject, Sample, Turn, sample_digest

if TYPE_CHECKING:
    from karat.kinds.golden import Golden as GoldenKind

Numbered = tuple[int, Sample | None, list[str]]
"""A row's number, its sample, or what is wrong with it."""
EMPTY = "'{}' is empty; fill it in, or remove the row"
"""What is wrong with a row without a question, a golden answer or an id."""
DECLINES = "There is no answer: it is right to say so, or to decline."
"""The golden answer of a row that has none because it is right to decline."""
_FEW_ROWS = 3  # of a file that has yet to be filled
BLOCK = 64
"""Rows that are read at once."""
_SHORT_FORMS: Mapping[str, Role] = {
    "question_key": "question",
    "answer_key": "golden",
    "id_key": "id",
}
_NOT_READ = "not read as criteria:"
_OF_RESULTS = ("answer", "error", "score", "condition")
"""Roles that decide nothing about questions."""
_CALLED = {"question": "a question", "golden": "a golden answer", "id": "an id"}
_OPTION = {
    "question": "question_key",
    "golden": "answer_key",
    "id": "id_key",
    "criterion": "criteria_key",
}


class RowReader:
    """Reads the rows of one file. `faults`: those of the whole file, with which no row is read."""

    _unanswerable: Sequence[str] = ()  # columns that say where it is right to decline

    def __init__(
        self,
        rows: Rows,
        options: GoldenKind.Options,
        *,
        path: str,
        id_key: str | None,
        needs_golden: bool,
        criteria_suffice: bool,
    ) -> None:
        """`criteria_suffice`: whether a row needs nothing else, since a scorer scores criteria."""
        self._options = options
        self._needs_golden = needs_golden
        self._criteria_suffice = criteria_suffice
        named = _named(options)
        named_paths = [path for paths in named.values() for path in paths]
        self._take(rows, named_paths)
        called = with_role(self._columns, "question", "golden")
        if len(called) > 2:
            self._take(as_one(rows, self._columns, named), named_paths)
        self.faults: list[Fault] = []
        self.readings: tuple[str, ...] = ()
        self.notes: list[str] = []
        if rows.count <= _FEW_ROWS:
            placeholders = [*filter(None, map(placeholder, self._first))]
            if placeholders and len(placeholders) == len(self._first):
                self.notes.append(
                    f"no questions yet, it seems, but an example to be replaced in each row: "
                    f"'{placeholders[0]}'"
                )

        self._named = named
        self._missing_columns(named)
        self._parts = named.get("golden", ())  # of a golden answer that is an object of columns
        if len(self._parts) > 1 and not self.faults:
            self._join_parts()
        result: Reading | Undecided = Reading(roles=named)
        if not self.faults and rows.count:
            result = assign(
                self._columns,
                door="dataset",
                file=PurePath(path).name,
                named=named,
                needs_golden=needs_golden,
            )

        if isinstance(result, Undecided) and self._are_questions_alone(result):
            (result,) = result.readings
            named["golden"] = ()
            self.notes.append("the file holds questions alone: nothing to compare answers with")
        elif isinstance(result, Undecided):
            self._ask(result)
            result = Reading(roles=named)

        self.reading = result
        self._question = result.roles.get("question", ())
        # most columns of the question are values of a record, which say nothing without names
        self._as_record = len(self._question) > 1 and self._are_values(self._question)
        self._golden = result.one("golden")
        self._id = id_key or next(iter(named.get("id", ())), None)
        if "criterion" in named:
            self._criteria: Sequence[str] = named["criterion"]
        else:
            taken = {*self._question, self._golden}
            others = [path for path in self._columns if path not in taken]
            rules = criteria.columns_of(others)
            for path in result.roles.get("criterion", ()) if self._golden is None else ():
                if path not in rules and tells_how_to_judge(self._columns[path]):
                    rules.append(path)

            self._criteria = self._readable(rules)

        self._types = {}
        for path in self._criteria:
            self._types[path] = self._type_of(path)

        self._no_tool = self._without_tool() if self._types else []
        self._find_choices()
        self._base: int | None = options.choices_from
        says_nothing = self._golden is None and not (self._criteria and criteria_suffice)
        if not self.faults and rows.count and needs_golden and says_nothing:
            self._nothing_is_right(result)
        if self._golden is not None and self._types and not self.faults:
            self._ask_of_terms(result)
        if not self.faults:
            self._decide_values()
            self._add_notes()

    def _ask_of_terms(self, reading: Reading) -> None:
        """A fault if golden answers do not hold the terms that a column demands of answers."""
        for path, kind in self._types.items() if "criterion" not in self._named else ():
            pairs = [(cell(row, path), cell(row, self._golden or "")) for row in self._first]
            if criteria.most_fail(pairs, path, kind):
                rules = tuple(self._criteria)
                others = tuple(other for other in rules if other != path)
                readings = [reading.changed({"criterion": held}) for held in (others, rules)]
                asked = f"whether answers must hold '{path}', which most golden answers lack,"
                self._ask(Undecided(asked=asked, readings=tuple(readings)))
                return

    def _take(self, rows: Rows, named: Iterable[str]) -> None:
        """Takes these rows, and looks at the columns of the first."""
        self.rows = rows
        self._first = rows.first_rows()
        self._columns = columns_of(self._first, named)

    def _find_choices(self) -> None:
        """Sets the columns of further right answers and of choices, and what parts answers."""
        self._aliases = None
        decided = "golden" in self._named or self._options.several is not None
        if self._golden is not None and not decided:
            self._aliases = cells.aliases_beside(self._golden, self._columns)
        self._choices = self.reading.roles.get("choices", ())
        self._distractors = self.reading.roles.get("distractor", ())
        self._asks_choices = self._options.choices != "left_out"
        if not self._asks_choices:
            self._distractors = ()  # the question does not show their letters
        self._mark = None
        if self._golden is not None and self._golden not in self._question:
            self._mark = self._mark_between(self._golden)

    def _join_parts(self) -> None:
        """Makes one column of those that are the golden answer together: an object of what they
        hold, under their names.
        """
        name = ", ".join(self._parts)
        rows = []
        for number, row in self.rows.rows:
            joined: JsonObject = {}
            for path in self._parts:
                value = cell(row, path)
                key = last_part(path)
                if key in joined:
                    key = path
                if not is_empty(value):
                    joined[key] = value

            rows.append((number, {**row, name: joined}))

        columns = self._columns
        self._take(msgspec.structs.replace(self.rows, rows=rows, columns=()), ())
        columns[name] = self._columns[name]
        for path in self._parts:
            columns.pop(path, None)

        self._columns = columns
        self._named["golden"] = (name,)
        self.notes.append(
            f"'{name}' are one golden answer, an object in JSON: right if the agent answers with "
            "it, or as a judge compares them"
        )
        for path in self._parts:
            empty = sum(is_empty(cell(row, path)) for _, row in rows)
            if empty:
                of = plural(len(rows), self.rows.unit)
                self.notes.append(f"'{path}' is empty in {empty} of {of}, and not expected there")

    def _are_values(self, paths: Sequence[str]) -> bool:
        """Whether most columns hold single values, such as numbers and classes."""
        values = 0
        for path in paths:
            column = self._columns.get(path)
            if column is not None and not column.lists + column.objects:
                values += column.is_numeric or not column.has_spaces

        return 2 * values > len(paths)

    def _add_notes(self) -> None:
        """Notes on what may be meant otherwise, is not scored or not seen."""
        seen = Seen(rows=self._first, columns=self._columns, roles=self.reading.roles)
        self.notes += doubts(seen, named={*self._named, *_OF_RESULTS})
        if not self._criteria_suffice:
            for path in self._criteria:
                self.notes.append(
                    f"'{path}' is taken as criteria, which no scorer scores: name `criteria`"
                )

        for path, column in self._columns.items():
            if column.names_images and path != self._golden:
                self.notes.append(f"'{path}' names images, which no agent sees")

        scores = []
        for path, column in self._columns.items():
            if column.is_numeric and is_score_name(path):
                scores.append(f"'{path}'")

        for path in self.reading.roles.get("answer", ())[:1]:
            if scores:
                self.notes.append(f"'{path}' has answers, with {some_of(scores)}: {OF_A_LOG}")

        for path in self.reading.roles.get("context", ())[:1]:
            both = ", ".join(map(in_yaml, (*self._question, path)))
            self.notes.append(
                f"no agent sees '{path}': if the question is about it, set "
                f"`roles: {{question: [{both}]}}`"
            )

    def _are_questions_alone(self, undecided: Undecided) -> bool:
        """Whether a question and perhaps its id are all that the rows hold."""
        if len(undecided.readings) != 1 or no_questions(self._columns) is not None:
            return False
        roles = undecided.readings[0].roles
        others = {*roles} - {"question", "golden", "id"}
        if others or roles.get("golden") or unasked(self.rows):
            return False

        (asked, *_) = roles["question"]
        if Meaning("question") not in meanings(asked):
            return False

        for path, column in self._columns.items():
            is_id = "id" in roles_of(path) and not column.repeats
            if not is_id and path not in roles["question"]:
                return False

        return True

    def _ask(self, undecided: Undecided) -> None:
        held = other = None
        if not self._named:
            other = unasked(self.rows)
            held = no_questions(self._columns, talks=other is not None)

        documents = documents_in(self._columns)
        inside: list[str] = []  # paths in lists of turns
        unnamed = held is None and not with_role(self._columns, "question")
        if unnamed and other is not None and other.question:
            inside = paths_beside(self._columns, other.question[0])
            undecided = asked_at_once(
                columns_of(self._first, inside), other.question, self._needs_golden
            )
        elif unnamed and other is not None:
            held = other.message

        if held is not None:
            self.faults.append(Fault(place="file", message=held))
            return

        columns = columns_of(self._first, [*documents, *inside])
        offers = [*undecided.readings]
        expects = False  # a criterion, or a golden answer by its name
        for offer in offers:
            expects = expects or bool(offer.roles.get("criterion"))
            for path in offer.roles.get("golden", ()):
                expects = expects or Meaning("golden") in meanings(path)

        if offers and not expects:
            roles = {**offers[0].roles, "golden": tuple(documents[:1])}
            offers = [Reading(roles=roles) for _ in documents[:1]] + offers

        readings: list[Reading] = []
        for reading in offers:
            offered = self._offered(reading)
            if offered is not None and offered not in readings:
                readings.append(offered)

        # those with which most rows can be read come first, in their order
        readings.sort(key=lambda reading: 2 * self._unread(reading) >= len(self._first))
        tried = msgspec.structs.replace(undecided, readings=tuple(readings))
        offered_rules = set()
        for one in readings:
            offered_rules |= {*one.roles.get("criterion", ())}

        notes = dict.fromkeys([*self.rows.notes, *self.notes])
        for path in offered_rules:
            notes.pop(f"{_NOT_READ} '{path}' {criteria.NO_TEXT}", None)

        marks = self._marks_of_empty(readings)
        fault = undecided_fault(tried, columns, notes, marks)
        answered = any("answer" in reading.roles for reading in readings)
        chats = laid_out(self.rows, whole=True).seen_columns().values()
        if answered or any(2 * column.messages > column.filled for column in chats):
            fault = Fault(place=fault.place, message=f"{fault.message}\n  {OF_A_LOG}")
        if other is not None:
            fault = Fault(place=fault.place, message=f"{fault.message}\n  the file {other.message}")
        self.faults.append(fault)
        for reading in readings:
            lines = setting_lines(reading, columns, marks)
            settings = dict.fromkeys(line.partition("  #")[0] for line in lines)
            self.readings += ("\n".join(settings),)

    def _marks_of_empty(self, readings: Iterable[Reading]) -> dict[str, str]:
        """Of golden answers: the column with yes and no that has one of them just where these are
        empty.
        """
        found = {}
        flags = []
        for path, column in self._columns.items():
            whole = column.filled == column.rows and not is_score_name(path)
            if whole and column.is_yes_or_no:
                flags.append(path)

        for path in chain.from_iterable(one.roles.get("golden", ()) for one in readings):
            empty = [is_empty(cell(row, path)) for row in self._first]
            for flag in flags if any(empty) and not all(empty) else ():
                pairs = {*zip(empty, (str(cell(row, flag)) for row in self._first), strict=True)}
                if flag != path and len(pairs) == 2 == len({value for _, value in pairs}):
                    found[path] = flag

        return found

    def _offered(self, reading: Reading) -> Reading | None:
        """The reading with those of its criteria that can be read; None: nothing is left of it."""
        roles = dict(reading.roles)
        if roles.get("criterion"):
            roles["criterion"] = tuple(self._readable(roles["criterion"], asked=True))
            if not roles["criterion"] and not roles.get("golden"):
                return None

        places = []  # where an answer is found, which is no rule for it
        for path in roles.get("criterion", ()):
            if names_documents(path) and criterion_type(path) is None:
                places.append(path)

        right = [*roles.get("golden", ()), *roles.get("answer", ())]
        if places and right and not names_documents(right[0]):
            rules = roles["criterion"]
            roles["criterion"] = tuple(path for path in rules if path not in places)

        if len(self._parts) > 1 and "golden" in roles:
            roles["golden"] = self._parts
        return Reading(roles=roles, unused=reading.unused)

    def _readable(self, columns: Iterable[str], *, asked: bool = False) -> list[str]:
        """The columns whose cells can be read as criteria in most rows that have one; objects
        without a text only where the user is `asked`.
        """
        readable = []
        for column in columns:
            values = [cell(row, column) for row in self._first]
            filled = []
            for value in values:
                if not is_empty(value):
                    filled.append(value)

            kind = self._type_of(column)
            faults = []
            for value in filled:
                faults.append(criteria.unstated(value, column=column, asked=asked))

            for place, value in enumerate(filled):
                if not faults[place]:
                    faults[place] = criteria.read(value, column=column, by_default=kind)[1]

            wrong = [*filter(None, faults)]
            of_promptfoo = column.startswith("__expected")  # written by who knows what is read
            if of_promptfoo or not wrong or 2 * len(wrong) < len(filled):
                readable.append(column)
            else:
                self.notes.append(f"{_NOT_READ} {wrong[0][0]}")

        return readable

    def _without_tool(self) -> list[str]:
        """The columns of tools in which an empty cell says that none may be called."""
        paths = []
        for path, kind in self._types.items():
            if kind == "tool":
                paths.append(path)

        if self._options.empty == "no_tool":
            return paths
        for path in paths:
            empty = sum(is_empty(cell(row, path)) for row in self._first)
            if 0 < empty < len(self._first):
                self.notes.append(
                    f"'{path}' is empty in {empty} of {plural(len(self._first), 'row')}, and says "
                    "nothing there: if no tool may be called, write `empty: no_tool`"
                )

        return []

    def _marks_of_none(self) -> list[str]:
        """The columns that mark rows as having no answer, in which it is right to decline. A fault
        if the user has not said so and these rows have something else to score, or nothing.
        """
        marks: dict[str, list[Row]] = {}
        for path in self._columns:
            if not unanswerable_values(path):
                continue
            whole = [*self._criteria, self._golden]
            if any(f"{path}.".startswith(f"{taken}.") for taken in whole):
                continue
            if said := [row for row in self._first if says_unanswerable(path, cell(row, path))]:
                marks[path] = said

        if self._options.empty is not None:
            if self._options.empty == "missing":
                return []
            for path in marks:
                self.notes.append(
                    f"where '{path}' says so, it is right to decline, as a judge sees"
                )

            return [*marks]

        golden = self._golden
        marking = []
        for path, rows in marks.items():
            if golden is None and not self._criteria:
                continue

            lacking = golden is not None and any(is_empty(cell(row, golden)) for row in rows)
            if not lacking and len(rows) < len(self._first):
                marking.append(f"'{path}' marks {plural(len(rows), self.rows.unit)}")

        if marking:
            held = f"'{golden or self._criteria[0]}'"
            tools = ""
            if "tool" in self._types.values():
                tools = " (or `empty: no_tool`, if no tool may be called either)"
            self.faults.append(
                Fault(
                    place="dataset.empty",
                    message=f"{' and '.join(marking)} as having no answer: is it right to decline "
                    f"there? Write `empty: declines`{tools} below `dataset`; or `empty: missing`, "
                    f"if nothing but {held} counts{self._read_so_far()}",
                )
            )

        return []

    def _type_of(self, column: str) -> str:
        """The type of a text in a column of criteria."""
        return criteria.type_of(column, (cell(row, column) for row in self._first))

    def _unread(self, reading: Reading) -> int:
        """How many of the first rows could not be read with these roles."""
        roles = {}
        for role in ASKED:
            paths = reading.roles.get(role, ())
            if paths or role == "golden" or role in reading.roles:
                roles[role] = [*paths] or None

        beginning = msgspec.structs.replace(
            self.rows,
            rows=[*enumerate(self._first, start=1)],
            count=len(self._first),
            faults=[],
        )
        options = self._options.model_copy(update={"roles": {**self._options.roles, **roles}})
        reader = RowReader(
            beginning,
            options,
            path="",
            id_key=None,
            needs_golden=self._needs_golden,
            criteria_suffice=self._criteria_suffice,
        )
        if reader.faults:  # they ask something else
            return 0
        unread = 0
        for block in reader.samples():
            for _, _, wrong in block:
                unread += bool(wrong)

        return unread

    def samples(self) -> Iterator[list[Numbered]]:
        """A sample for each row, or what is wrong with it, in blocks."""
        if self.faults:
            return iter(())
        positions: Iterable[int] = count()
        if self._options.repeated:  # rows with one question and answer have one position
            first: dict[tuple[str, ...], int] = {}
            paths = [*self._question, self._golden or ""]
            asked = (key for batch in Table(self.rows.rows) for key in batch.keys(paths))
            positions = (first.setdefault(key, len(first)) for key in asked)

        rows = zip(positions, self.rows.rows, strict=False)
        return map(self._read, iter(lambda: [*islice(rows, BLOCK)], []))

    def understood(self) -> Understood | None:
        """The first row as it was read; None: there is none, or it could not be read."""
        if self.faults:
            return None
        for place in enumerate(self.rows.rows):
            ((_, sample, wrong),) = self._read([place])
            if not wrong:
                return self._described(sample, place[1][1])

        return None

    # --- the file as a whole --------------------------------------------------------------------

    def _missing_columns(self, named: Mapping[Role, tuple[str, ...]]) -> None:
        """A fault for each named column that no row has."""
        wanted: list[tuple[str, str, str]] = []
        for role, paths in named.items():
            if role == "golden" and not self._needs_golden:
                continue
            for path in paths:
                if role in self._options.roles:
                    place_of = f"roles.{role}"
                else:
                    place_of = _OPTION.get(role, f"roles.{role}")

                wanted.append((role, place_of, path))

        for at, name in enumerate(self._options.stratify):
            wanted.append((name, f"stratify.{at}", name))

        for what, place, path in wanted:
            if path in self._columns or not self.rows.count:
                continue
            later = (row for _, row in islice(self.rows.rows, LOOKED_AT, None))
            if any(path in row or not is_empty(cell(row, path)) for row in later):
                continue
            near = hint(what, path, [*self._columns])
            self.faults.append(
                Fault(
                    place=f"dataset.{place}",
                    message=f"no {self.rows.unit} has the key '{path}'{near}",
                )
            )

    def _decide_values(self) -> None:
        """Faults where values leave open what is asked or right: base of indexes, any or all."""
        if "question" not in self._named and len(self._first) > _FEW_ROWS:
            seen = Seen(rows=self._first, columns=self._columns, roles=self.reading.roles)
            self.faults += without_words(seen)
        if self._needs_golden:
            self._unanswerable = self._marks_of_none()
        if self._golden is None or self._golden in self._question:
            return
        golden = self._golden
        may_be_list = golden not in self._columns or self._columns[golden].lists > 0
        lists = 0
        if may_be_list:
            lists = sum(cell(row, golden) == [] for row in self._first)
        empty = expects_nothing = ""
        if lists:
            rows = plural(len(self._first), "row")
            empty = f"'{golden}' is an empty list in {lists} of {rows}"
            expects_nothing = f" ({empty}: with `all`, nothing is expected there)"

        if self._choices:
            pairs = [(cell(row, golden), self._options_of(row)) for row in self._first]
            if cells.needs_base(pairs) and self._base is None:
                self._base = cells.index_base(pairs, self._choices)
                if self._base is None:
                    self.faults.append(
                        Fault(
                            place="dataset.choices_from",
                            message=f"'{golden}' counts choices: from 0 or from 1? Write "
                            f"`choices_from: 0` or `choices_from: 1` below `dataset`",
                        )
                    )
        elif may_be_list and any(cells.has_lists(cell(row, golden)) for row in self._first):
            self.faults.append(
                Fault(
                    place="dataset.answer_key",
                    message=f"'{golden}' has lists inside a list, which no text equals: if one of "
                    f"the inner ones suffices, write `roles: {{golden: null, criterion: "
                    f"{in_yaml(golden)}}}`",
                )
            )
        elif (
            self._options.several is None
            and (may_be_list or self._mark is not None)
            and any(
                cells.is_undecided_list(self._parted(cell(row, golden)), golden)
                for row in self._first
            )
        ):
            column = self._columns.get(golden)
            parts = ""
            if column is not None and self._mark is None:
                parts = parts_in(column)
            self.faults.append(
                Fault(
                    place="dataset.several",
                    message=f"'{golden}' is a list: is any of it right, or must all be there? "
                    f"Write `several: any` or `several: all` below `dataset`{parts}"
                    f"{expects_nothing}{self._read_so_far()}",
                )
            )
        elif empty and self._options.several == "all":
            self.notes.append(f"{empty}: nothing is expected there, as `{cells.NOTHING}` says")

        if self._options.empty == "declines":
            self.notes.append(
                f"where '{golden}' is empty, it is right to decline: a judge can tell, and no "
                "comparison of texts"
            )

        self._ask_of_object(golden)

    def _ask_of_object(self, golden: str) -> None:
        """A fault if a golden answer is an object, unless this marks the right choice."""
        column = self._columns.get(golden)
        marks = golden in self._choices
        if column is not None and 2 * column.objects > column.filled and not marks:
            if "golden" in self._named:
                return
            with suppress(Unread):
                if cells.golden(column.example, path=golden, several="any") is not None:
                    return

            fields = [path for path in self._columns if path.startswith(f"{golden}.")]
            message = f"'{golden}' is an object: name the field that is the golden answer"
            if fields:
                message += f", e.g. `answer_key: {fields[0]}` (it has: {some_of(fields, most=8)})"
            self.faults.append(Fault(place="dataset.answer_key", message=message))

    def _read_so_far(self) -> str:
        """The roles of the columns, in lines below a question on one of them."""
        roles = {**self.reading.roles, "criterion": tuple(self._criteria)}
        undecided = Undecided(asked="", readings=(Reading(roles=roles),))
        first, *_ = setting_lines(undecided.readings[0], self._columns)
        return "\n".join([f"\n  read: {first}", *examples(undecided, self._columns)])

    def _mark_between(self, golden: str) -> str | None:
        """What parts the golden answers in one text from each other, such as a comma; None: a text
        is one answer.

        Texts are lists if the user says so, or if they are codes under a name of documents or ids.
        """
        may_be_list = self._options.several is not None or names_documents(golden)
        if self._choices or not may_be_list:
            return None
        texts = [cell(row, golden) for row in self._first]
        filled = []
        for text in texts:
            if isinstance(text, str) and not is_empty(text):
                filled.append(text)

        mark = cells.parts_of(filled)
        listed = any(isinstance(text, list) for text in texts)
        listed = listed or any(text.lstrip()[:1] == "[" for text in filled)
        if mark is None or listed:
            return None
        coded = not any(" " in text.replace(f"{mark} ", f"{mark}") for text in filled)
        if self._options.several is not None or coded:
            return mark
        return None

    def _parted(self, value: object) -> object:
        """A golden answer, or the list of those in one text."""
        if self._mark is None or not isinstance(value, str):
            return value
        found = []
        for part in value.split(self._mark):
            if part.strip():
                found.append(part.strip())

        return found

    def _nothing_is_right(self, reading: Reading) -> None:
        """A fault if the file says neither what is right nor that nothing does."""
        if self._criteria:
            message = (
                f"no column is the golden answer that the scorers need; to score its criteria "
                f"('{self._criteria[0]}'), write `judge: {{type: criteria, model: …}}` or "
                f"`scorers: [criteria]`"
            )
            self.faults.append(Fault(place="dataset.answer_key", message=message))
            return

        if "golden" in self._named:
            return
        expected = reading.roles.get("criterion", ())
        question: Taken = {"question": self._question}
        readings = []
        for path in expected:
            readings.append(Reading(roles={**question, "golden": (path,)}))

        if expected:
            objects = any(self._columns[path].objects for path in expected)
            place = 0 if objects else len(readings)  # an object is rarely one right text
            readings.insert(place, Reading(roles={**question, "criterion": expected}))

        readings.append(Reading(roles=question))
        self._ask(Undecided(asked="what is right", readings=tuple(readings)))

    # --- the rows -------------------------------------------------------------------------------

    def _options_of(self, row: Row) -> Options | None:
        if self._choices:
            return cells.options(row, self._choices)
        if self._distractors and self._golden is not None:
            return cells.with_distractors(row, self._golden, self._distractors)
        return None

    def _read(self, rows: Iterable[tuple[int, NumberedRow]]) -> list[Numbered]:
        """A sample for each position and row, or what is wrong with it.

        Most cells are plain texts, which need no function to be read.
        """
        used = {*self._question, self._golden, self._aliases, self._id, *self._criteria}
        apart = len(self._question) == 1 and self._golden not in self._question
        read: list[Numbered] = []
        for position, (number, row) in rows:
            wrong: list[str] = []
            question = None
            if apart:
                question = row.get(self._question[0])
            if not (isinstance(question, str) and PLAIN(question)):
                question = self._question_of(row, wrong)
            name = str(position)
            if self._id is not None:
                value = cell(row, self._id)
                name = str(value)
                if is_empty(value):
                    self._missing(row, self._id, "id", wrong)
                elif isinstance(value, bool) or not isinstance(value, (str, int)):
                    shown = msgspec.json.encode(value).decode()
                    wrong.append(f"'{self._id}' must be a text or a whole number, got {shown:.40}")

            given: Options | None = None
            if self._choices or self._distractors:
                given = self._options_of(row)
            stated: tuple[Criterion, ...] = ()
            for path in self._criteria:
                listed, faults = criteria.read(
                    cell(row, path), column=path, by_default=self._types[path]
                )
                stated += listed
                wrong += faults
                if path in self._no_tool and is_empty(cell(row, path)):
                    stated += (criteria.NO_TOOL,)

            marks = self._unanswerable
            declines = any(map(says_unanswerable, marks, map(cell, repeat(row), marks)))
            if declines and self._golden is None:
                stated += (Criterion(text=DECLINES),)
            golden: str | None = None
            detail: JsonObject = {}
            if self._golden is not None:
                golden = row.get(self._golden)
                alone = apart and self._aliases is None and self._mark is None
                plain = alone and isinstance(golden, str) and PLAIN(golden)
                if declines:
                    golden = DECLINES
                elif given is not None or not plain:
                    golden, detail = self._golden_of(row, self._golden, given, wrong)

            if wrong or question is None:
                read.append((number, None, wrong))
                continue

            if given is not None and self._asks_choices:
                question = cells.with_options(question, given)
            parts: list[object] = [question, golden]
            if detail:
                parts += [None, detail]
            if stated:
                parts.append(stated)
            sample = Sample(
                kind="golden",
                id=name,
                position=position,
                digest=sample_digest(parts),
                turns=(Turn(question=question, golden=golden, detail=detail),),
                metadata={key: value for key, value in row.items() if key not in used},
                criteria=stated,
            )
            read.append((number, sample, wrong))

        return read

    def _question_of(self, row: Row, wrong: list[str]) -> str | None:
        paths = self._question
        try:
            text = cells.question(row, paths, golden=self._golden, named=self._as_record)
        except Unread as error:
            wrong.append(f"'{paths[0]}' {error}; {_CALLED['question']} is one text")
            return None

        if text is None:
            self._missing(row, paths[0], "question", wrong)
        return text

    def _missing(self, row: Row, path: str, role: str, wrong: list[str]) -> None:
        if path in row or "." in path:
            wrong.append(EMPTY.format(path))
        else:
            wrong.append(f"has no '{path}'{hint(role, path, list(row))}")

    def _golden_of(
        self,
        row: Row,
        path: str,
        given: Options | None,
        wrong: list[str],
    ) -> tuple[str | None, JsonObject]:
        """The golden answer, and the turn's detail with all that are right, if several are."""
        value = self._parted(cell(row, path))
        golden = None
        try:
            if given is not None:
                golden = cells.of_choice(value, given, base=self._base)
                if golden is not None and not self._asks_choices:
                    golden = cells.as_written(value, golden, given)
            if golden is None and len(self._parts) > 1 and value:
                golden = cells.Golden(text_of(value), (text_of(value),))
            elif golden is None and path in self._question:
                golden = cells.reply_of(value)
            elif golden is None:
                golden = cells.golden(
                    value,
                    path=path,
                    several=self._options.several,
                    whole="golden" in self._named,
                )
        except Unread as error:
            wrong.append(f"'{path}' {error}")
            return None, {}

        if golden is None:
            stated = any(not is_empty(cell(row, path)) for path in self._criteria)
            if stated and self._criteria_suffice:
                return None, {}
            if self._options.empty == "declines":
                return DECLINES, {}
            if self._needs_golden:
                self._missing(row, path, "golden", wrong)
            return None, {}

        accepted = golden.accepted
        if self._aliases is not None:
            accepted = (*accepted, *cells.texts_in(cell(row, self._aliases)))
        accepted = tuple(dict.fromkeys(accepted))
        if len(accepted) == 1:
            return golden.text, {}
        return golden.text, {"answers": list(accepted)}

    def _described(self, sample: Sample | None, row: Row) -> Understood | None:
        if sample is None:
            return None
        (turn,) = sample.turns
        choices: Sequence[str] = ()
        if self._asks_choices:
            choices = self._choices or self._distractors
        parts = [Part(role="question", text=turn.question, columns=(*self._question, *choices))]
        if turn.golden is not None and self._golden is not None:
            others = [text for text in turn.detail.get("answers", ()) if text != turn.golden]
            text = turn.golden
            if others:
                text += f" (or: {some_of(others, most=3)})"
            elif self._options.several == "all":
                text += " (all)"

            columns = tuple(filter(None, (self._golden, self._aliases)))
            parts.append(Part(role="golden", text=text, columns=columns))

        shown = [("criterion", path) for path in self._criteria]
        for role in ("answer", "context"):
            shown += [(f"({role})", path) for path in self.reading.roles.get(role, ())]

        for label, path in shown:
            value = cell(row, path)
            elsewhere = is_empty(value) and label == "criterion" and path in self._columns
            if elsewhere:
                value = self._columns[path].example
            if not is_empty(value):
                text = text_of(value)
                if label == "criterion":
                    text = criteria.as_rule(value, path, self._types[path])
                if elsewhere:
                    text = f"(in another {self.rows.unit}) {text}"
                parts.append(Part(role=label, text=text, columns=(path,)))

        kept: list[str] = []
        for role, paths in self.reading.roles.items():
            if role not in _SHOWN_ROLES:
                kept += [path for path in paths if path not in self._criteria]

        if self._id is not None:
            parts.append(Part(role="id", text=sample.id, columns=(self._id,)))
        else:
            kept = [*self.reading.roles.get("id", ()), *kept]

        used = [path for part in parts for path in part.columns]
        unused = []
        for path in dict.fromkeys([*kept, *self.reading.unused]):
            inside = (f"{path}.", f"{path}[")
            if any(other.startswith(inside) for other in used):
                below = [other for other in self._columns if other.rpartition(".")[0] == path]
                unused += [other for other in below if other not in used]
            elif path != self._aliases:
                unused.append(path)

        return Understood(
            parts=tuple(parts),
            unused=tuple(dict.fromkeys(unused)),
            notes=tuple(self.rows.notes),
        )


_SHOWN_ROLES = ("question", "golden", "choices", "distractor", "answer", "context", "id")


def _named(options: GoldenKind.Options) -> dict[Role, tuple[str, ...]]:
    named: dict[Role, tuple[str, ...]] = {}
    for role, columns in options.roles.items():
        if columns is None:
            named[role] = ()
        elif isinstance(columns, str):
            named[role] = (columns,)
        else:
            named[role] = tuple(columns)

    for key, short in _SHORT_FORMS.items():
        column = getattr(options, key)
        if column is not None:
            named[short] = (column,)

    if options.criteria_key is not None:
        named["criterion"] = tuple(options.criteria_key)
    return named
