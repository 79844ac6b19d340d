"""Conversations as plain rows: one line a turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat.documents.validation import shown
from karat.errors import Fault, did_you_mean
from karat.kinds._rows import Rows
from karat.kinds.conversation.drafts import Draft, DraftTurn, Record, plain_answer
from karat.kinds.conversation.table import Table

__all__ = ["NAMES", "by_conversation", "column_names", "looks_like_turns"]

NAMES = {
    "conversation_key": ("conversation_id", "record_id", "conv_id", "conversation", "dialogue_id"),
    "turn_key": ("turn_idx", "turn", "turn_index", "turn_ind", "turn_number"),
    "question_key": ("question",),
    "answer_key": ("answer", "executed", "executed_answer", "gold", "printed"),
}
"""Option → what the column is called where the option says nothing; the first that a row has."""

_TURN_ONLY = {"id", "executed", "printed", "program", "unit", "qa_split", "document", "pre_text", "post_text", "table"}
"""Columns that have a meaning of their own: no features of the conversation."""

_SPLIT = {"0": False, "1": True, "false": False, "true": True}  # of files without types


def looks_like_turns(row: Mapping[str, Any]) -> bool:
    """Whether a row is one turn."""
    return "question" in row and any(name in row for name in NAMES["conversation_key"])


def column_names(rows: Rows, given: Mapping[str, str | None]) -> tuple[dict[str, str], list[Fault]]:
    """Option → column of this file; one fault for each column that no row has. Without `turn_key`: in their order."""
    present = {column for _, row in rows.rows for column in row}
    names, faults = {}, []
    for key, known in NAMES.items():
        wanted = given.get(key)
        column = wanted or next((name for name in known if name in present), None)
        if column in present and column is not None:
            names[key] = column
        elif wanted is not None or key != "turn_key":
            near = did_you_mean(wanted or known[0], present)
            faults.append(
                Fault(place=f"dataset.{key}", message=f"no {rows.unit} has the key '{wanted or known[0]}'{near}")
            )
    return names, faults if rows.count else []


@dataclass(slots=True)
class _Line:
    """One row, read."""

    number: int
    conversation: str
    index: int | None  # None: the file has no such column
    turn: DraftTurn
    document: Mapping[str, Any]  # what of pre_text, post_text and table the row gives
    rest: Mapping[str, Any]


def by_conversation(rows: Rows, names: Mapping[str, str]) -> list[Draft]:
    """The conversations, in the order of their first lines. What is wrong goes to the rows' faults."""
    groups: dict[str, list[_Line]] = {}
    broken: set[str] = set()  # conversations with a line that cannot be read: what they lack is said already
    for number, row in rows.rows:
        line, wrong = _line(number, row, names)
        for message in wrong:
            rows.fault(number, message)
        if wrong:
            broken.add(line.conversation)
        groups.setdefault(line.conversation, []).append(line)
    return [_draft(rows, lines) for name, lines in groups.items() if name not in broken]


def _line(number: int, row: Mapping[str, Any], names: Mapping[str, str]) -> tuple[_Line, list[str]]:
    record = Record(row)
    conversation = record.id(names["conversation_key"])
    question = row.get(names["question_key"])
    if not isinstance(question, str) or not question.strip():
        record.wrong.append(_wrong_text(names["question_key"], row))
        question = ""
    answer = record.get(names["answer_key"])
    if isinstance(answer, (list, dict)):
        record.wrong.append(f"'{names['answer_key']}' must be a number or a text, got {shown(answer)}")
    executed = record.get("executed") if "executed" in record else answer
    texts = {key: _optional_text(record, key) for key in ("printed", "program", "unit")}
    printed = texts["printed"] or (answer if isinstance(answer, str) and answer.strip() else None)
    turn = DraftTurn(
        question=question,
        executed=plain_answer(executed),
        printed=printed,
        program=texts["program"],
        qa_split=_SPLIT.get(str(record.get("qa_split")).strip().lower()),
        unit=texts["unit"],
    )
    index = _index(record, names.get("turn_key"))
    used = {*names.values(), *_TURN_ONLY}
    rest = {key: value for key, value in row.items() if key not in used}
    line = _Line(number, conversation, index, turn, _document(record), rest)
    return line, record.wrong


def _wrong_text(key: str, row: Mapping[str, Any]) -> str:
    if key not in row:
        return f"has no '{key}'{did_you_mean(key, row)}"
    if isinstance(row[key], str):
        return f"'{key}' is empty; fill it in, or remove the row"
    return f"'{key}' must be a text, got {shown(row[key])}"


def _optional_text(record: Record, key: str) -> str | None:
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value if value and value.strip() else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    record.wrong.append(f"'{key}' must be a text, got {shown(value)}")
    return None


def _index(record: Record, key: str | None) -> int | None:
    if key is None:
        return None
    value = record.get(key)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        found = f"must be a whole number from 0, got {shown(value)}" if value is not None else "is missing"
        record.wrong.append(f"'{key}' {found}")
        return None
    return value


def _document(record: Record) -> dict[str, Any]:
    """What the row says of the report; `document` is its text, or an object that says it all."""
    holder = (record.within("document") or record) if isinstance(record.get("document"), dict) else record
    found: dict[str, Any] = {}
    for key in ("pre_text", "post_text", *(["document"] if holder is record else [])):
        text = holder.document(key)
        if text.strip():
            found["pre_text" if key == "document" else key] = text
    if "table" in holder and holder.get("table") != "":  # an empty cell of a file without types
        table = holder.table("table")
        found |= {"table": table} if table is not None else {}
    return found


def _draft(rows: Rows, lines: Sequence[_Line]) -> Draft:
    first = lines[0]
    if first.index is not None:
        lines = _in_order(rows, lines)
    document: dict[str, Any] = {}
    for line in lines:
        for key, value in line.document.items():
            if document.setdefault(key, value) != value:
                message = f"its '{key}' differs from that of another turn of '{line.conversation}'; give it once"
                rows.fault(line.number, message)
    table: Table | None = document.get("table")
    return Draft(
        number=first.number,
        id=first.conversation,
        turns=[line.turn for line in lines],
        pre_text=document.get("pre_text", ""),
        post_text=document.get("post_text", ""),
        table=table,
        features=_shared([line.rest for line in lines]),
    )


def _in_order(rows: Rows, lines: Sequence[_Line]) -> Sequence[_Line]:
    """By their index. Turns that are there twice, and gaps, are faults."""
    ordered = sorted(lines, key=lambda line: line.index or 0)
    start = 1 if ordered[0].index == 1 else 0
    seen: dict[int, int] = {}
    for line in ordered:
        index = line.index or 0
        if index in seen:
            rows.fault(line.number, f"turn {index} of '{line.conversation}' stands also in {rows.unit} {seen[index]}")
        seen.setdefault(index, line.number)
    missing = next((index for index in range(start, start + len(seen)) if index not in seen), None)
    if missing is not None:
        rows.fault(ordered[0].number, f"'{ordered[0].conversation}' has no turn {missing}; it has {_few(seen)}")
    return ordered


def _few(indexes: Iterable[int]) -> str:
    listed = [str(index) for index in indexes]
    return ", ".join(listed[:8]) + (", …" if len(listed) > 8 else "")


def _shared(rests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The further columns that hold the same on every line: they describe the conversation."""
    first = rests[0]
    return {key: value for key, value in first.items() if all(key in rest and rest[key] == value for rest in rests)}
