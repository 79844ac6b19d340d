"""Answers recorded elsewhere, one row per turn: the columns' meanings, and the faults of the file.

A row gives its conversation and turn in two columns, or in one (`<conversation>-<turn>`, also
with `_`, as in the leaderboard's ids); without a turn, rows are numbered in file order. Unusable
rows are kept as faults, never silently dropped.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat.documents.answers import (
    Repetitions,
    condition_columns,
    condition_of,
    repetition_value,
    usual,
)
from karat.documents.batches import Table
from karat.documents.columns import Row, without
from karat.documents.names import Role, with_role
from karat.documents.row_list import Rows
from karat.documents.rows import read_rows
from karat.errors import BadDataset, Fault, did_you_mean
from karat.kinds import RecordedFault, RecordedFaults
from karat.layouts import laid_out
from karat.records import Reply, Sample, Usage
from karat.thoughts import spoken
from karat_conversations.layouts._cells import messages_in
from karat_conversations.numeric import ExecutionError, execute, parse_program

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "conversation_id": (
        "conversation_id",
        "record_id",
        "conv_id",
        "conversation",
        "dialogue_id",
        "sample_id",
    ),
    "id": ("id", "question_id", "turn_id", "example_id", "qid", "uid"),
    "turn": ("turn", "turn_idx", "turn_index", "turn_ind", "turn_number"),
    "answer": (
        "predicted_answer",
        "actual_answer",
        "model_answer",
        "prediction",
        "pred",
        "response",
        "output",
        "final_answer",
        "answer",
    ),
    "unit": ("predicted_unit", "predicted_scale", "unit", "units", "scale"),
    "program": (
        "predicted_program",
        "predicted_plan",
        "predicted",
        "pred_program",
        "pred_prog",
        "program",
        "plan",
    ),
    "correct": ("correct", "is_correct", "answer_correct", "verdict"),
    # Not `reasoning`: in a file of judged answers that column is the judge's.
    "reasoning": ("predicted_reasoning", "chain_of_thought"),
    "question": ("question",),
    "condition": ("condition",),
    "repetition": ("repetition",),
    "input_tokens": ("tokens_in", "input_tokens", "prompt_tokens"),
    "output_tokens": ("tokens_out", "output_tokens", "completion_tokens"),
    "milliseconds": ("latency_ms", "turn_latency_ms", "milliseconds"),
    "dollars": ("dollars", "cost_usd"),
}
"""Purpose of a column → its usual names, compared without case; the first one found is used."""

_ROLES: Mapping[str, Role] = {
    "conversation_id": "conversation",
    "id": "id",
    "turn": "turn",
    "answer": "answer",
    "question": "question",
}
"""Purpose of a column → its role, for columns without a usual name."""
_LISTS = tuple(f"{name}s" for name in USUAL_NAMES["answer"])
_TURN_AT_THE_END = re.compile(r"(.+)[-_](\d{1,6})", re.DOTALL)
_CALL = re.compile(r"\s*[a-z_]+\(")
_COUNT = re.compile(r"\d{1,9}(?:\.0)?", re.ASCII)
_YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

_Column = str | None


class TurnColumns(BaseModel):
    """For files with one row per turn: the names of columns, e.g. {conversation_id: record_id}; {}:
    the usual names.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    conversation_id: _Column = None  # the conversation's id
    id: _Column = None  # the same, or conversation and turn in one: `<conversation>-<turn>`
    turn: _Column = None  # counted from `first_turn`
    answer: _Column = None  # a number, a text, true or false; null: unanswered
    unit: _Column = None  # the unit that the agent declared
    # text, a list of tokens, or a plan; executed if the file has no answers
    program: _Column = None
    correct: _Column = None  # whether the answer is right, according to the file
    reasoning: _Column = None  # the agent's own
    question: _Column = None  # compared with the dataset's
    condition: _Column = None  # without it a row applies to every condition
    repetition: _Column = None  # any values; they are numbered
    input_tokens: _Column = None  # of this turn
    output_tokens: _Column = None  # of this turn
    milliseconds: _Column = None  # until its answer was there
    dollars: _Column = None  # that it cost
    first_turn: Annotated[int, Field(ge=0, le=1)] = 0  # 1 if the file counts turns from 1

    def named(self) -> dict[str, str]:
        """The named columns, by their purpose."""
        return {
            target: name for target in USUAL_NAMES if (name := getattr(self, target)) is not None
        }


NOT_RECORDED = "not_recorded"
"""`stop_reason` of the empty reply to a turn without a row in the file."""

Key = tuple[str, int | None, str | None, int]
"""The id as written; the turn from 0, or None if it is in the id; the condition, or None for any;
the repetition.
"""


class TurnRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One usable row."""

    place: str
    reply: Reply
    question: str | None = None


class RecordedTurns:
    """The rows of a file, by conversation and turn; in memory, about 1 kB per turn."""

    def __init__(self, path: Path, columns: TurnColumns) -> None:
        """Raises BadDataset if the file cannot be read, or lacks required columns."""
        self.path = path
        self.first_turn = columns.first_turn
        self.faults: list[RecordedFault] = []
        self.rows: dict[Key, TurnRow] = {}
        self.count = 0  # rows of the file, unusable ones included
        self.conditions: dict[str, None] = {}  # in the order of the file
        self.repetitions = 1
        table = read_rows(path, entry=_tatqa_prediction)
        for fault in table.sorted_faults():
            self.count += 1
            self.faults.append(
                RecordedFault(kind="bad_row", place=fault.place, message=fault.message)
            )

        named = columns.named()
        rows, self._turns_counted = _by_turns(table, named, first=columns.first_turn)
        # Purpose → column: as named by the user, else by the usual names
        present = list(dict.fromkeys(column for _, row in rows for column in row))
        faults = []
        for target, name in named.items():
            if name and name not in present:
                message = f"no row has the column '{name}'{did_you_mean(name, present)}"
                faults.append(Fault(place=target, message=message))

        others = [column for column in present if column not in named.values()]
        chosen = dict(named)
        for target, names in USUAL_NAMES.items():
            if target not in named:
                for name in usual(names, others)[:1]:
                    chosen[target] = name

        _add_by_role(chosen, others, rows)
        # an empty name: ignore it
        self.columns = {target: name for target, name in chosen.items() if name}
        if not faults and "conversation_id" not in self.columns and "id" not in self.columns:
            faults.append(_lacking("conversation_id", "names the conversation", present))
        if not faults and "answer" not in self.columns and "program" not in self.columns:
            faults.append(_lacking("answer", "holds the answer, nor a program", present))
        if faults:
            raise BadDataset(str(path), faults)
        if "condition" not in self.columns and columns.condition is None:
            places = []
            for name in ("conversation_id", "id", "turn"):
                if name in self.columns:
                    places.append(self.columns[name])

            by_condition = condition_columns(Table(rows), places, used=self.columns.values())
            if by_condition:
                self.columns |= {"condition": by_condition[0]}

        self._counts_up = _counts_up(self.columns, (row for _, row in rows))
        self._repetitions = Repetitions()
        for _, row in rows:
            with suppress(ValueError):  # a fault of the row, below
                self._repetitions.add(
                    self._conversation(row), self._condition(row), self._repetition(row)
                )

        self._matched: dict[tuple[str, str, str | None, int], dict[int, int]] = {}
        self._met: Counter[tuple[str, str | None, int]] = Counter()
        for number, row in rows:
            self._add(f"{table.unit} {number}", row)

    def find(self, sample: Sample, turn: int, condition: str, repetition: int) -> Key | None:
        """The location of the answer to a turn; None if there is none.

        Rows without a condition apply to all. If the file does not number its turns, their
        questions do, as far as they are known.
        """
        counted = turn + self.first_turn
        marked = (f"{sample.id}-{counted}", f"{sample.id}_{counted}")
        for named in (condition, None):
            # The ways a file may identify a turn
            number: int | None = turn
            if self._turns_counted or self._counts_up:
                which = sample.id, sample.digest, named, repetition
                if which not in self._matched:
                    self._matched[which] = self._by_question(sample, named, repetition)
                number = self._matched[which].get(turn)
            ways: list[tuple[str, int | None]] = [(name, None) for name in marked]
            if number is not None:
                ways.insert(0, (sample.id, number))
            if turn == 0:
                ways.append((sample.id, None))  # the only row of its conversation: not counted
            for name, place in ways:
                key = name, place, named, repetition
                if key in self.rows:
                    return key

        return None

    def _by_question(
        self,
        sample: Sample,
        condition: str | None,
        repetition: int,
    ) -> dict[int, int]:
        """Turn → the number of its row in a conversation whose rows were counted: of the row that
        asks its question, perhaps after a document; in order if too many ask something else.
        """
        asked = [_plain(turn.question) for turn in sample.turns]
        found: dict[int, int] = {}
        number = 0
        while (key := (sample.id, number, condition, repetition)) in self.rows:
            said = _plain(self.rows[key].question or "")
            same = []
            inside = []
            for turn, question in enumerate(asked):
                if question == said:
                    same.append(turn)
                if question in said:
                    inside.append(turn)

            fits = same or inside
            if len(fits) > 1:
                last = max(found, default=-1)
                fits = [turn for turn in fits if turn > last]
            if fits:
                found.setdefault(fits[0], number)
            number += 1

        ask_something_else = number - len(found)
        if ask_something_else > max(0, number - len(asked)):
            return dict(enumerate(range(len(asked))))
        return found

    def reply(self, sample: Sample, turn: int, condition: str, repetition: int) -> Reply:
        """The recorded answer; empty, with `stop_reason` "not_recorded", if there is none.

        If the file has programs but no answers, the program is executed for the answer.
        """
        key = self.find(sample, turn, condition, repetition)
        if key is None:
            return Reply(text="", answer="", stop_reason=NOT_RECORDED)
        reply = self.rows[key].reply
        if "answer" in self.columns:
            return reply
        programs: list[str | None] = []
        for number in range(turn):
            past = self.find(sample, number, condition, repetition)
            if past is None:
                programs.append(None)
            else:
                programs.append(self.rows[past].reply.program)

        history: list[tuple[Any, Any]] = []
        value: float | bool | str | ExecutionError = ""
        for text in [*programs, reply.program]:
            program = parse_program(text or "")
            value = execute(program, sample.detail.get("table"), history)
            history.append((program, None if isinstance(value, ExecutionError) else value))

        match value:
            case ExecutionError():
                answer = ""
            case bool() | str():
                answer = _text(value) or ""
            case _:
                answer = repr(float(value))

        return msgspec.structs.replace(reply, text=reply.program or "", answer=answer)

    def census(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> RecordedFaults:
        """The faults of the file with respect to the samples: every row is used or a fault, and
        every turn has a row or is a fault.
        """
        asked = list(samples)
        used: dict[Key, None] = {}
        faults: list[RecordedFault] = list(self.faults)
        for repetition in range(repetitions):
            for condition in conditions:
                if len(conditions) > 1:
                    place = f", condition '{condition}'"
                else:
                    place = ""

                if repetitions > 1:
                    place += f", repetition {repetition}"
                for sample in asked:
                    faults += _seen(self, sample, (condition, repetition), place, used)

        turns = {sample.id: len(sample.turns) for sample in asked}
        left = [key for key in self.rows if key not in used]
        faults += [_unused(self, key, turns, conditions, repetitions) for key in left]
        met: Counter[str] = Counter()
        for fault in faults:
            met[fault.kind] += fault.count
        counts = {kind: met[kind] for kind in _WORDS if met[kind]}
        hint = None  # the possible cause of the faults
        past_the_end = any(turns.get(name) == turn for name, turn in map(_place, left))
        counts_from_1 = all(turn for _, turn in map(_place, self.rows))
        if past_the_end and self.first_turn == 0 and counts_from_1:
            hint = "no row is of turn 0: if the file counts turns from 1, say --map first_turn=1"
        elif self.rows and len(left) == len(self.rows):
            theirs = next(iter(self.rows))[0]
            ours = next(iter(turns), "")
            hint = (
                f"no row is of this dataset: the file's ids look like '{theirs}', the dataset's "
                f"like '{ours}'"
            )
        elif repetitions > (most := self.repetitions):
            kept = (
                f"{most} {'answer' if most == 1 else 'answers'} to a turn, and {repetitions} "
                f"repetitions are asked for"
            )
            hint = f"the file has {kept}: set execution.num_repetitions to {most}"

        return RecordedFaults(
            rows=self.count,
            used=len(used),
            turns=sum(turns.values()) * len(conditions) * repetitions,
            columns=self.columns,
            counts=counts,
            lines=[
                f"{count} {_WORDS[kind][count != 1]} {_WORDS[kind][2]}"
                for kind, count in counts.items()
            ],
            faults=tuple(faults),
            hint=hint,
        )

    def notes(
        self, samples: Iterable[Sample], *, conditions: Sequence[str], repetitions: int
    ) -> dict[str, str]:
        """For `run.json`: the file's content, and the faults as counts and as a sentence."""
        census = self.census(samples, conditions=conditions, repetitions=repetitions)
        notes = {
            "rows": str(census.rows),
            "rows_used": str(census.used),
            "turns": str(census.turns),
        }
        notes["columns"] = " ".join(f"{target}={name}" for target, name in census.columns.items())
        notes.update({kind: str(count) for kind, count in census.counts.items()})
        if census.faults:
            lines = [*census.lines, census.hint]
            said = "; ".join(filter(None, lines))
            notes["faults"] = f"the file of answers has faults: {said}"

        return notes

    def _add(self, place: str, row: Row) -> None:
        self.count += 1
        try:
            key = self._key(row)
        except ValueError as error:
            self.faults.append(RecordedFault(kind="bad_row", place=place, message=str(error)))
            return

        reply, wrong = _reply(row, self.columns)
        self.faults += [
            RecordedFault(kind="bad_value", place=place, message=message) for message in wrong
        ]
        question = row.get(self.columns.get("question", ""))
        entry = TurnRow(
            place=place, reply=reply, question=question if isinstance(question, str) else None
        )
        before = self.rows.setdefault(key, entry)
        if before is not entry:
            name, turn, condition, repetition = key
            parts = [f"'{name}'"] + ([f"turn {turn}"] if turn is not None else [])
            if condition is not None:
                parts.append(f"condition '{condition}'")
            if repetition:
                parts.append(f"repetition {repetition}")
            parts.append("alike" if before.reply == reply else "with another answer")
            message = f"a second row for {', '.join(parts)}; {before.place} counts"
            self.faults.append(RecordedFault(kind="duplicate", place=place, message=message))

        if key[2] is not None:
            self.conditions[key[2]] = None
        self.repetitions = max(self.repetitions, key[3] + 1)

    def _key(self, row: Row) -> Key:
        """Raises ValueError with what the row lacks."""
        columns = self.columns
        name = self._conversation(row)
        condition = self._condition(row)
        value = self._repetition(row)
        repetition = self._repetitions.number(name, condition, value)
        if "turn" in columns:
            cell = row.get(columns["turn"])
            if not _is_count(cell):
                raise ValueError(
                    f"'{columns['turn']}' is {_shown(cell)}, expected a whole number from 0"
                )

            turn = int(float(str(cell))) - self.first_turn
            if turn < 0:
                raise ValueError(
                    f"'{columns['turn']}' is {turn + self.first_turn}, expected {self.first_turn} "
                    f"or more"
                )

            return name, turn, condition, repetition

        if not self._counts_up:
            return name, None, condition, repetition
        turn = self._met[name, condition, repetition]
        self._met[name, condition, repetition] += 1
        return name, turn, condition, repetition

    def _conversation(self, row: Row) -> str:
        """Raises ValueError."""
        column = self.columns.get("conversation_id") or self.columns["id"]
        name = row.get(column)
        if name in (None, "") or isinstance(name, (dict, list, bool)):
            raise ValueError(f"'{column}' is {_shown(name)}, expected the id of a conversation")
        return str(name)

    def _condition(self, row: Row) -> str | None:
        column = self.columns.get("condition")
        if column is None:
            return None
        return condition_of(row, [column])

    def _repetition(self, row: Row) -> int | str:
        """Raises ValueError."""
        column = self.columns.get("repetition", "")
        return repetition_value(row.get(column), column) or 0


def _tatqa_prediction(name: str, value: object) -> dict[str, object] | None:
    """A question of TAT-QA's official file of predictions: `{id: [answer, scale]}`."""
    match value:
        case [list() | str() | int() | float() as answer, str() | None as scale]:
            return {
                "id": name,
                "answer": json.dumps({"answer": answer, "scale": scale or ""}, ensure_ascii=False),
            }

    return None


def _add_by_role(
    chosen: dict[str, str],
    columns: Sequence[str],
    rows: Sequence[tuple[int, Row]],
) -> None:
    """Adds the columns whose names say what they hold, though they are not the usual ones."""
    for target, role in _ROLES.items():
        taken = {*chosen.values()}
        free = [column for column in columns if column not in taken]
        found = with_role(free, role)
        if target == "turn" and "conversation_id" in chosen and "id" in chosen:
            # `turn_id` beside the conversation's id, if it is a number
            found += with_role([chosen["id"]], role)
            counting = []
            for name in found:
                if all(_is_count(row.get(name)) for _, row in rows):
                    counting.append(name)

            found = counting
        elif target == "answer" and "program" in chosen:
            found = []
        elif target == "answer" and [*columns] == ["id", "value"]:  # an object: id → answer
            values = [str(row.get("value")) for _, row in rows]
            if all(map(_CALL.match, values)):
                chosen["program"] = "value"
            else:
                chosen["answer"] = "value"

        if target not in chosen and found:
            chosen[target] = found[0]


def _is_count(cell: object) -> bool:
    if isinstance(cell, bool):
        return False
    return _COUNT.fullmatch(str(cell).strip()) is not None


def _by_turns(
    table: Rows,
    named: Mapping[str, str],
    *,
    first: int,
) -> tuple[list[tuple[int, Row]], bool]:
    """The rows, a turn each; and whether the turns were counted here, in conversations in one of
    the shapes of chats or in lists of answers.
    """
    present: dict[str, None] = {}
    for _, row in table.rows:
        present.update(dict.fromkeys(row))

    has_turns = bool(usual(USUAL_NAMES["turn"], present) or "turn" in named)
    answers = bool(
        usual((*USUAL_NAMES["answer"], *USUAL_NAMES["program"]), present)
        or {"answer", "program"} & {*named}
    )
    if not answers:
        table = laid_out(table, whole=True)
    columns = table.seen_columns()
    held = None
    for name, column in columns.items():
        if 2 * column.messages > column.rows and not (
            answers and (has_turns or name != "messages")
        ):
            held = held or name

    listed = None
    if not answers and not held:
        for name in usual((*_LISTS, "value"), columns):
            if 2 * columns[name].lists > columns[name].rows:
                listed = listed or name

    if held is None and listed is None:
        return list(table.rows), False
    rows: list[tuple[int, Row]] = []
    for number, row in table.rows:
        beside = without(row, (held, listed))
        given = row.get(held or listed or "")
        if held is not None:
            turns = _said_in_turn(given)
        elif not isinstance(given, list):
            turns = []
        elif any(isinstance(part, str) and part.endswith("(") for part in given):
            turns = [{"program": given}]  # its tokens
        else:
            turns = [{"answer": part} for part in given]
        if has_turns:  # the last answer is that of the turn
            for turn in turns[-1:]:
                rows.append((number, {**beside, **turn}))
        else:
            for at, turn in enumerate(turns, first):
                rows.append((number, {**beside, "turn": at, **turn}))

        if not turns:
            rows.append((number, beside))

    return rows, not has_turns


def _said_in_turn(cell: object) -> list[dict[str, object]]:
    """What the assistant says to each message of the user: the last text before the next one, that
    does not go with calls of tools. Messages of the assistant alone are a turn each.
    """
    messages = messages_in(cell)
    asks = any(message["role"] == "user" for message in messages)
    turns: list[dict[str, object]] = []
    question: object = None
    replied = asks  # whatever the assistant says unasked is no turn
    for message in messages:
        said = _said(message["content"])
        if message["role"] == "user" and said:
            question = said
            replied = False
        elif message["role"] == "assistant":
            calls = bool(message.get("tool_calls"))
            parts = message["content"]
            if isinstance(parts, list):
                kinds = {part.get("type") for part in parts if isinstance(part, Mapping)}
                calls = calls or "tool_use" in kinds
            text = None if calls else said
            if not replied or not asks:
                turns.append({"question": question, "answer": text})
                replied = True
            elif turns and text:
                turns[-1]["answer"] = text

    return turns


def _said(content: object) -> object:
    """The text of a message, whose content may be a list of parts, or an object with the text."""
    if isinstance(content, Mapping):
        return content.get("content") or content.get("text")
    if not isinstance(content, list):
        return content
    texts = []
    for part in content:
        text = part
        if isinstance(part, Mapping):
            text = part.get("text")
        texts.append(str(text or ""))

    return "".join(texts)


def _place(key: Key) -> tuple[str, int | None]:
    """The conversation and the turn of a row, as far as its id shows them."""
    name, turn, _, _ = key
    ends = _TURN_AT_THE_END.fullmatch(name)
    if turn is None and ends:
        return ends[1], int(ends[2])
    return name, turn


def _lacking(target: str, purpose: str, present: Iterable[str]) -> Fault:
    names = ", ".join(present) or "none"
    return Fault(
        place="columns",
        message=f"none {purpose}; name it with --map {target}=COLUMN (columns: {names})",
    )


def _counts_up(columns: Mapping[str, str], rows: Iterable[Row]) -> bool:
    """Whether ids name conversations, so that rows count their turns: then most ids are
    repeated.
    """
    if "turn" in columns:
        return False
    keys = [
        columns.get("conversation_id") or columns["id"],
        columns.get("condition"),
        columns.get("repetition"),
    ]
    met = Counter(tuple(str(row.get(key)) for key in keys if key) for row in rows)
    return sum(n for n in met.values() if n > 1) * 2 > met.total()


def _reply(row: Row, columns: Mapping[str, str]) -> tuple[Reply, list[str]]:
    """The row's answer, and its invalid values."""
    wrong: list[str] = []
    cells = {target: row.get(column) for target, column in columns.items()}
    said = cells.get("answer")
    if isinstance(said, list) and all(isinstance(part, (str, int, float)) for part in said):
        if len(said) == 1:
            said = said[0]
        else:
            said = {"answer": said}
    text = _text(said)
    answer = text and spoken(text)
    holds_answer = isinstance(said, dict) and {"answer", "value"} & {*said}
    if isinstance(said, (dict, list)) and not holds_answer:
        wrong.append(
            f"'{columns['answer']}' is {_shown(said)}, expected a number or a text: it "
            f"counts as wrong"
        )

    verdict = _YES.get(str(cells.get("correct")).strip().lower())
    if verdict is None and cells.get("correct") not in (None, ""):
        wrong.append(
            f"'{columns['correct']}' is {_shown(cells['correct'])}, expected true or false: "
            f"left out"
        )

    numbers: dict[str, float | None] = {}
    for target in ("input_tokens", "output_tokens", "milliseconds", "dollars"):
        cell = cells.get(target)
        numbers[target] = None
        if isinstance(cell, (int, float, str)) and not isinstance(cell, bool):
            with suppress(ValueError, OverflowError):
                number = float(cell)
                numbers[target] = number if 0 <= number < 1e15 else None

        if numbers[target] is None and cells.get(target) not in (None, ""):
            wrong.append(
                f"'{columns[target]}' is {_shown(cells[target])}, expected a number of 0 or more: "
                f"left out"
            )

    tokens = {
        name: None if numbers[name] is None else int(numbers[name] or 0)
        for name in ("input_tokens", "output_tokens")
    }
    if any(count is not None for count in tokens.values()):
        usage = Usage(**tokens)
    else:
        usage = None

    # Tokens are joined as in the dataset, a plan stays JSON
    given = cells.get("program")
    program = _text(given) or None
    if isinstance(given, list) and all(isinstance(part, (str, int, float)) for part in given):
        program = ""
        for part in map(str, given):
            if part != "EOF":
                follows = not program or program.endswith(("(", ","))
                if follows or part in (")", "(", ","):
                    program += part
                else:
                    program += f", {part}"

    reply = Reply(
        text=text or "",
        answer=answer,
        unit=_text(cells.get("unit")) or None,
        program=program,
        reasoning=_text(cells.get("reasoning")) or None,
        verdict=verdict,
        usage=usage,
        milliseconds=numbers["milliseconds"],
        dollars=numbers["dollars"],
    )
    return reply, wrong


def _text(value: object) -> str | None:
    """A value as text; None for null."""
    match value:
        case None | str():
            return value
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            return json.dumps(value, ensure_ascii=False)

    return str(value)


def _shown(value: object) -> str:
    match value:
        case None:
            return "missing"
        case dict():
            return "an object"
        case list():
            return "a list"

    return repr(value)[:40]


_WORDS = {
    "unknown_id": ("row", "rows", "of a conversation that is not asked for (left out)"),
    "unknown_turn": ("row", "rows", "of a turn that the conversation does not have (left out)"),
    "unknown_condition": (
        "row",
        "rows",
        "of a condition or repetition that is not asked for (left out)",
    ),
    "duplicate": ("further row", "further rows", "for a turn that has one (the first counts)"),
    "missing_turn": ("turn", "turns", "without a row (wrong)"),
    "other_question": ("row", "rows", "with another question than the dataset's (scored anyway)"),
    "bad_row": ("row", "rows", "that cannot be read (left out)"),
    "bad_value": ("value", "values", "of a kind that its column cannot hold"),
}


def _seen(
    recorded: RecordedTurns,
    sample: Sample,
    which: tuple[str, int],
    place: str,
    used: dict[Key, None],
) -> list[RecordedFault]:
    """Marks the rows of one conversation as used; returns their faults."""
    faults, missing = [], []
    for number, turn in enumerate(sample.turns):
        key = recorded.find(sample, number, *which)
        if key is None:
            missing.append(number)
            continue

        row = recorded.rows[key]
        if (
            key not in used
            and row.question is not None
            and _plain(turn.question) not in _plain(row.question)
        ):
            message = (
                f"asks {row.question!r:.60}, turn {number} of '{sample.id}' is "
                f"{turn.question!r:.60}"
            )
            faults.append(RecordedFault(kind="other_question", place=row.place, message=message))

        used[key] = None

    if missing:
        empty = len(missing) == len(sample.turns)
        names = ", ".join(map(str, missing))
        if empty:
            message = "has no row at all"
        else:
            message = f"has no row for {'turn' if len(missing) == 1 else 'turns'} {names}"

        fault = RecordedFault(
            kind="missing_turn",
            place=f"conversation '{sample.id}'{place}",
            message=message,
            count=len(missing),
        )
        faults.append(fault)

    return faults


def _unused(
    recorded: RecordedTurns,
    key: Key,
    turns: Mapping[str, int],
    conditions: Sequence[str],
    repetitions: int,
) -> RecordedFault:
    place = recorded.rows[key].place
    name = _place(key)[0]
    _, turn, condition, repetition = key
    if condition is not None and condition not in conditions:
        message = f"condition '{condition}' is not asked for"
        return RecordedFault(kind="unknown_condition", place=place, message=message)

    if repetition >= repetitions:
        message = (
            f"repetition {repetition} is not asked for: there are {repetitions}, counted from 0"
        )
        return RecordedFault(kind="unknown_condition", place=place, message=message)

    if name in turns:
        count = turns[name]
        if count > 1:
            has = f"turns 0 to {count - 1}"
        else:
            has = "turn 0 only"

        if turn is not None:
            subject = f"turn {turn}"
        else:
            subject = f"'{key[0]}'"

        message = f"{subject}: '{name}' has {has}"
        question = recorded.rows[key].question
        if question and turn is not None and turn < count:
            message = f"asks {question!r:.60}, as no other turn of '{name}' does"
        return RecordedFault(kind="unknown_turn", place=place, message=message)

    return RecordedFault(
        kind="unknown_id", place=place, message=f"no conversation is called '{key[0]}'"
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
