"""A file of conversations, in a form of ConvFinQA, FinQA or TAT-QA, or one line per turn → drafts
and every fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypedDict

import msgspec

from karat.documents.columns import Row, without
from karat.documents.names import Role, with_role
from karat.documents.row_list import Rows
from karat.documents.rows import read_rows
from karat.documents.validation import shown
from karat.documents.values import Value
from karat.errors import BadDataset, Fault, did_you_mean
from karat.foreign import Json
from karat.formats import some_of
from karat.records import JsonObject
from karat_conversations.kinds.conversation.drafts import (
    Draft,
    DraftTurn,
    Table,
    entries,
    joined_text,
    marks,
    numbers,
    plain_answer,
    plain_text,
    questions,
    sized_wrong,
    table_of,
    texts,
)
from karat_conversations.layouts._lists import turns_apart

_Read = tuple[Draft | None, list[str]]
"""A conversation, None if it cannot be read; and its faults."""


def cleaned(number: int, row: Row) -> _Read:
    """A record with `doc`, `dialogue` and `features`, and its faults."""
    record = Value(row)
    name = record.at("id").id()
    doc, dialogue = record.within("doc"), record.within("dialogue")
    if doc is None or dialogue is None:
        return None, record.wrong

    turns = _dialogue(
        dialogue,
        "conv_questions",
        "executed_answers",
        lambda count: texts(dialogue.at("conv_answers"), count),
    )
    features: Mapping[str, object] = {}
    if record.at("features").value is not None:
        given = record.within("features")
        if given is not None and isinstance(given.value, Mapping):
            features = given.value

    draft = Draft(number=number, id=name, turns=turns, features=features, **_report(doc))
    return draft, record.wrong


def _dialogue(
    at: Value,
    asked: str,
    executed: str,
    printed: Callable[[int], list[str | None]],
) -> list[DraftTurn]:
    """The turns, from lists under the keys `asked` and `executed`; `printed` gives the printed
    answers of n turns.
    """
    listed = questions(at.at(asked))
    columns = zip(
        listed,
        numbers(at.at(executed), len(listed)),
        printed(len(listed)),
        texts(at.at("turn_program"), len(listed)),
        marks(at.at("qa_split"), len(listed)),
        strict=True,
    )
    found = []
    for question, answer, written, program, split in columns:
        found.append(
            DraftTurn(
                question=question,
                executed=answer,
                printed=written,
                program=program,
                qa_split=split,
            )
        )

    return found


class _Report(TypedDict):
    pre_text: str
    post_text: str
    table: Table | None


def _report(at: Value) -> _Report:
    table = at.at("table")
    return {
        "pre_text": joined_text(at.at("pre_text")),
        "post_text": joined_text(at.at("post_text")),
        "table": table_of(table if table.value is not None else at.at("table_ori")),
    }


def original(number: int, row: Row) -> _Read:
    """A record with `annotation`, `pre_text`, `post_text` and `table`, and its faults."""
    record = Value(row)
    name = record.at("id").id()
    annotation = record.within("annotation")
    if annotation is None:
        return None, record.wrong
    if any(annotation.at(key).value is not None for key in ("cur_dial", "turn_ind")):
        return None, [
            "is a single turn; use the file with whole conversations (dev.json, not dev_turn.json)"
        ]

    turns = _dialogue(
        annotation,
        "dialogue_break",
        "exe_ans_list",
        lambda count: _printed(row, count),
    )
    draft = Draft(number=number, id=name, turns=turns, **_report(record))
    return draft, record.wrong


def finqa(number: int, row: Row) -> _Read:
    """A record of FinQA, with `qa`, `pre_text`, `post_text` and `table`: one question; and its
    faults.
    """
    record = Value(row)
    name = record.at("id").id()
    qa = record.within("qa")
    if qa is None:
        return None, record.wrong
    question = qa.at("question").text()
    executed = _golden(qa.at("exe_ans"))
    printed, program = (
        qa.at(key).text(number=True, optional=True) or None for key in ("answer", "program")
    )
    turn = DraftTurn(question=question, executed=executed, printed=printed, program=program)
    draft = Draft(
        number=number,
        id=name,
        turns=[turn],
        single=True,
        dialect="finqa",
        **_report(record),
    )
    return draft, record.wrong


def _golden(at: Value) -> float | str | None:
    if isinstance(at.value, (list, dict)):
        at.refuse("a number or a text")
    return plain_answer(at.value)


_TATQA_FORMAT = """\
Answer with one JSON object and nothing else: {"answer": …, "scale": …}
- answer: words as they stand in the report, a list of them where there are several, or a number.
- scale: "thousand", "million", "billion" or "percent" where the answer counts those; else ""."""
_ANSWER_TYPES = ("span", "multi-span", "arithmetic", "count")
_TATQA_SCALES = ("", "thousand", "million", "billion", "percent")


def tatqa(number: int, row: Row) -> tuple[list[Draft], list[str]]:
    """The questions of a record of TAT-QA, each a separate conversation as none builds on another;
    and faults.
    """
    record = Value(row)
    table = record.within("table")
    text = "\n".join(
        joined_text(paragraph.at("text")) for paragraph in entries(record.at("paragraphs"))
    )
    if table is not None:
        cells = table_of(table.at("table"))
    else:
        cells = None

    drafts = []
    for asked in entries(record.at("questions")):
        question = asked.at("question").text()
        kind = asked.at("answer_type").choice(_ANSWER_TYPES)
        scale = asked.at("scale").choice(_TATQA_SCALES)
        answer = asked.at("answer").value
        if isinstance(answer, list):
            listed = answer
        else:
            listed = [answer]

        answers = [item for item in listed if item != ""]  # a published file has an empty span
        if answer is None:
            answers = []
        if any(plain_answer(item) is None or isinstance(item, bool) for item in answers):
            asked.at("answer").refuse("texts or a number")
            answers = []

        if kind == "count" and answers:
            counted = str(answers[0])
            answers = [counted.removesuffix(".0")]

        texts = [str(item) for item in answers]
        if len(answers) == 1:
            joined = plain_answer(answers[0])
        else:
            joined = "; ".join(texts) or None

        if joined is None:
            printed = None
        else:
            printed = f"{joined} {scale}".strip()

        turn = DraftTurn(
            question=question,
            executed=joined,
            printed=printed,
            detail={"answers": texts, "answer_type": kind, "scale": scale},
        )

        features = {
            key: value
            for key in ("answer_type", "answer_from")
            if (value := asked.at(key).value) is not None
        }
        draft = Draft(
            number=number,
            id=asked.at("uid").id(),
            turns=[turn],
            pre_text=text,
            table=cells,
            features=features,
            single=True,
            answer_format=_TATQA_FORMAT,
        )
        drafts.append(draft)

    return drafts, record.wrong


_REFERENCE = re.compile(r"#(\d{1,4})")


def _printed(row: Row, count: int) -> list[str | None]:
    """The answers as people wrote them, as far as the record shows them; not a fault if it does
    not.

    `answer_list` holds numbers from the page as printed, and `#k` for the result of step k of
    `step_list`. Numbers asked for come first in that list as `Ask for number …`; the other steps
    are, in order, the `steps` of `qa` (or of `qa_0` and `qa_1`), whose `res` is the printed result.
    """
    annotation = row["annotation"]
    listed = annotation.get("answer_list")
    if not isinstance(listed, list) or len(listed) != count:
        listed = [None] * count

    step_list = annotation.get("step_list")
    if not isinstance(step_list, list):
        step_list = []
    asked = [
        isinstance(step, str) and step.lower().startswith("ask for number") for step in step_list
    ]
    steps: list[str | None] = []
    for key in ("qa", "qa_0", "qa_1"):
        for step in Json(row.get(key)).list("steps"):
            steps.append(plain_text(step.get("res")))

    if len(steps) != asked.count(False):
        steps = [None] * asked.count(False)
    left = iter(steps)
    results = []
    for step, is_asked in zip(step_list, asked, strict=True):
        if is_asked:
            results.append(step.split()[-1])
        else:
            results.append(next(left))

    answers = []
    for answer in listed:
        text = plain_text(answer)
        reference = None
        if text is not None:
            reference = _REFERENCE.fullmatch(text.strip())
        if reference is not None:
            place = int(reference[1])
            text = None
            if place < len(results):
                text = results[place]

        answers.append(text)

    if answers and answers[-1] is None:
        answers[-1] = plain_text(Json(row.get("qa_1", row.get("qa"))).get("answer"))
    return answers


NAMES = {
    "conversation_key": ("conversation_id", "record_id", "conv_id", "conversation", "dialogue_id"),
    "turn_key": ("turn_idx", "turn", "turn_index", "turn_ind", "turn_number"),
    "question_key": ("question",),
    "answer_key": ("answer", "executed", "executed_answer", "gold", "printed"),
}
"""Option → default names of its column; the first that a row has is used, else a column that has
the role by its name.
"""
_ROLES: Mapping[str, Role] = {
    "conversation_key": "conversation",
    "turn_key": "turn",
    "question_key": "question",
    "answer_key": "golden",
}

_UNITS = ("unit", "units", "answer_unit", "golden_unit", "scale")
_TURN_ONLY = {
    *_UNITS,
    "id",
    "executed",
    "printed",
    "program",
    "qa_split",
    "document",
    "pre_text",
    "post_text",
    "table",
}
"""Columns with a meaning of their own, which are not features of the conversation."""

_SPLIT = {"0": False, "1": True, "false": False, "true": True}  # in files without types


def looks_like_turns(row: Row) -> bool:
    """Whether a row is one turn."""
    return "question" in row and any(name in row for name in NAMES["conversation_key"])


def column_names(rows: Rows, given: Mapping[str, str | None]) -> tuple[dict[str, str], list[Fault]]:
    """Option → column of this file; one fault for each column that no row has.

    Without `turn_key`: in file order.
    """
    present = {column: None for _, row in rows.rows for column in row}
    names, faults = {}, []
    for key, known in NAMES.items():
        wanted = given.get(key)
        usual = [name for name in known if name in present] or with_role(present, _ROLES[key])
        column = wanted or next(iter(usual), None)
        if column in present and column is not None:
            names[key] = column
        elif wanted is not None or key != "turn_key":
            near = did_you_mean(wanted or known[0], present)
            faults.append(
                Fault(
                    place=f"dataset.{key}",
                    message=f"no {rows.unit} has the key '{wanted or known[0]}'{near}",
                )
            )

    return names, faults if rows.count else []


class _Line(msgspec.Struct):
    """One row, read."""

    number: int
    conversation: str
    index: int | None  # None: the file has no such column
    turn: DraftTurn
    document: Row  # the row's pre_text, post_text and table
    rest: Row


def by_conversation(rows: Rows, names: Mapping[str, str]) -> list[Draft]:
    """The conversations, in the order of their first lines.

    Faults are added to the rows' faults.
    """
    groups: dict[str, list[_Line]] = {}
    # conversations with an unreadable line: their gaps are already reported
    broken: set[str] = set()
    for number, row in rows.rows:
        record = Value(row)
        conversation = record.at(names["conversation_key"]).id()
        question = row.get(names["question_key"])
        if not isinstance(question, str) or not question.strip():
            key = names["question_key"]
            if key not in row:
                wrong_text = f"has no '{key}'{did_you_mean(key, row)}"
            elif isinstance(row[key], str):
                wrong_text = f"'{key}' is empty; fill it in, or remove the row"
            else:
                wrong_text = f"'{key}' must be a text, got {shown(row[key])}"

            record.wrong.append(wrong_text)
            question = ""

        answer = _golden(record.at(names["answer_key"]))
        executed = record.at("executed").value
        of_unit = next((name for name in _UNITS if name in row), "unit")
        printed, program, unit = (
            record.at(key).text(number=True, optional=True) or None
            for key in ("printed", "program", of_unit)
        )
        turn = DraftTurn(
            question=question,
            executed=answer if executed is None else plain_answer(executed),
            printed=printed
            or (answer if isinstance(answer, str) and answer == row[names["answer_key"]] else None),
            program=program,
            qa_split=_SPLIT.get(str(row.get("qa_split")).strip().lower()),
            unit=unit,
        )
        index = _index(record, names.get("turn_key"))
        used = {*names.values(), *_TURN_ONLY}
        further = without(row, used)
        # The row's report; `document` is its text, or an object with everything
        document = record.at("document")
        holder = document if isinstance(document.value, Mapping) else record
        report: dict[str, object] = {}
        for key in ("pre_text", "post_text", *(["document"] if holder is record else [])):
            text = joined_text(holder.at(key))
            if text.strip():
                report["pre_text" if key == "document" else key] = text

        if holder.at("table").value not in (None, ""):  # an empty cell in a file without types
            table = table_of(holder.at("table"))
            if table is not None:
                report |= {"table": table}

        groups.setdefault(conversation, []).append(
            _Line(number, conversation, index, turn, report, further)
        )
        for message in record.wrong:
            rows.fault(number, message)
        if record.wrong:
            broken.add(conversation)

    drafts = []
    for name, lines in groups.items():
        before = len(rows.faults)
        if name in broken:
            continue
        draft = _draft(rows, lines)
        if len(rows.faults) == before:
            drafts.append(draft)

    return drafts


def _index(record: Value, key: str | None) -> int | None:
    if key is None:
        return None
    value = record.at(key).value
    if (
        isinstance(value, str)
        and value.strip().isascii()
        and value.strip().isdigit()
        and len(value) < 10
    ):
        value = int(value)

    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    wrong = f"must be a whole number from 0, got {shown(value)}"
    record.at(key).note("is missing" if value is None else wrong)
    return None


def _draft(rows: Rows, lines: Sequence[_Line]) -> Draft:
    first = lines[0]
    if first.index is not None:
        # By their index. Repeated turns, and gaps, are faults.
        ordered = sorted(lines, key=lambda line: line.index or 0)
        start = 1 if ordered[0].index == 1 else 0
        seen: dict[int, int] = {}
        for line in ordered:
            index = line.index or 0
            if index in seen:
                rows.fault(
                    line.number,
                    f"turn {index} of '{line.conversation}' is also in {rows.unit} {seen[index]}",
                )

            seen.setdefault(index, line.number)

        missing = next(
            (index for index in range(start, start + len(seen)) if index not in seen), None
        )
        if missing is not None:
            there = some_of([str(index) for index in seen], most=8)
            rows.fault(
                ordered[0].number,
                f"'{ordered[0].conversation}' has no turn {missing}; it has {there}",
            )

        lines = ordered

    document: JsonObject = {}
    for line in lines:
        for key, value in line.document.items():
            if document.setdefault(key, value) != value:
                message = (
                    f"its '{key}' differs from that of another turn of '{line.conversation}'; "
                    f"give it once"
                )
                rows.fault(line.number, message)

    # The further columns with the same value on every line describe the conversation
    features = {}
    for key, value in lines[0].rest.items():
        if all(key in line.rest and line.rest[key] == value for line in lines):
            features[key] = value

    table: Table | None = document.get("table")
    return Draft(
        number=first.number,
        id=first.conversation,
        turns=[line.turn for line in lines],
        pre_text=document.get("pre_text", ""),
        post_text=document.get("post_text", ""),
        table=table,
        features=features,
    )


Form = Literal["cleaned", "original", "finqa", "tatqa", "turns"]
_RECORDS: Mapping[str, Callable[[int, Row], tuple[Draft | list[Draft] | None, list[str]]]] = {
    "cleaned": cleaned,
    "original": original,
    "finqa": finqa,
    "tatqa": tatqa,
}
_NO_FORM = (
    "holds no conversations: each needs `dialogue` (cleaned ConvFinQA), `annotation` (original "
    "ConvFinQA), `qa` and `table` (FinQA), or `questions` and `table` (TAT-QA), or the file has "
    "one line per turn with the columns conversation_id, turn_idx, question and answer"
)


class Drafts(msgspec.Struct, frozen=True, kw_only=True):
    """The conversations that could be read, and the faults of the others."""

    form: Form
    sha256: str
    unit: str  # the word for a row: "line", "item", "row"
    drafts: list[Draft]
    faults: list[Fault]
    commit: str | None = None  # of the file's repository


def read_drafts(
    path: Path,
    *,
    split: str | None,
    sheet: str | None,
    keys: Mapping[str, str | None],
) -> Drafts:
    """The whole file. Raises BadDataset if nothing can be read."""
    rows = read_rows(path, section=split, sheet=sheet)
    form = "turns" if any(keys.values()) else _form_of(rows)
    if form is None:
        turns = turns_apart(rows)
        if turns is not None:
            form, rows = "turns", turns

    if form is None:
        faults = [*rows.sorted_faults()]
        if rows.count:
            faults.append(Fault(place="file", message=_NO_FORM))
        return Drafts(form="turns", sha256=rows.sha256, unit=rows.unit, drafts=[], faults=faults)

    general: list[Fault] = []
    drafts: list[Draft] = []
    if form != "turns":
        for number, row in rows.rows:
            read, messages = _RECORDS[form](number, row)
            for message in messages:
                rows.fault(number, message)
            if read is not None and not messages:
                if isinstance(read, list):
                    drafts += read
                else:
                    drafts.append(read)
    else:
        names, general = column_names(rows, keys)
        if not general:
            drafts = by_conversation(rows, names)

    # Those with a unique id and a limited length; the others become faults
    sound: list[Draft] = []
    seen: dict[str, int] = {}
    for draft in drafts:
        wrong = sized_wrong(draft.turns)
        is_new = draft.id not in seen
        first = seen.setdefault(draft.id, draft.number)
        if not is_new:
            wrong = (
                f"the id '{draft.id:.80}' is also in {rows.unit} {first}; each conversation needs "
                f"its own"
            )

        if wrong is None:
            sound.append(draft)
        else:
            rows.fault(draft.number, wrong)

    drafts = sound
    faults = [*general, *rows.sorted_faults()]
    return Drafts(
        form=form,
        sha256=rows.sha256,
        unit=rows.unit,
        drafts=drafts,
        faults=faults,
        commit=rows.commit,
    )


def looks_like_conversations(path: Path) -> bool:
    """Whether a row of the file is one, or one turn of one.

    Raises BadDataset if nothing can be read.
    """
    try:
        return _form_of(read_rows(path, first=True)) is not None
    except BadDataset as error:
        if error.faults[0].place == "dataset.sheet":
            return False  # with several sheets it is unknown
        raise


def _form_of(rows: Rows) -> Form | None:
    """Which form the file has: that of the first row that has one.

    None: it has no conversations.
    """
    for _, row in rows.rows:
        if isinstance(row.get("dialogue"), Mapping):
            return "cleaned"
        if isinstance(row.get("annotation"), Mapping):
            return "original"
        if isinstance(row.get("qa"), dict) and not row.keys().isdisjoint(
            {"pre_text", "table", "table_ori"}
        ):
            return "finqa"

        if "questions" in row and "table" in row:
            return "tatqa"
        if looks_like_turns(row):
            return "turns"

    return None
