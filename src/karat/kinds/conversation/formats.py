"""Conversations in the two forms of ConvFinQA: cleaned (`dialogue`) and original (`annotation`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from karat.kinds.conversation.drafts import Draft, DraftTurn, Record

__all__ = ["cleaned", "original"]


def cleaned(number: int, row: Mapping[str, Any]) -> tuple[Draft | None, list[str]]:
    """A record with `doc`, `dialogue` and `features`, and what is wrong with it."""
    record = Record(row)
    name = record.id()
    doc, dialogue = record.within("doc"), record.within("dialogue")
    if doc is None or dialogue is None:
        return None, record.wrong
    questions = dialogue.questions("conv_questions")
    count = len(questions)
    columns = zip(
        questions,
        dialogue.numbers("executed_answers", count),
        dialogue.texts("conv_answers", count, numbers=True),
        dialogue.texts("turn_program", count, numbers=True),
        dialogue.marks("qa_split", count),
        strict=True,
    )
    draft = Draft(
        number=number,
        id=name,
        turns=_turns(columns),
        pre_text=doc.document("pre_text"),
        post_text=doc.document("post_text"),
        table=doc.table("table"),
        features=_features(record),
    )
    return draft, record.wrong


def _turns(columns: Iterable[tuple[str, Any, str | None, str | None, bool | None]]) -> list[DraftTurn]:
    return [
        DraftTurn(question=question, executed=executed, printed=printed, program=program, qa_split=split)
        for question, executed, printed, program, split in columns
    ]


def _features(record: Record) -> Mapping[str, Any]:
    if "features" not in record:
        return {}
    within = record.within("features")
    found = record.get("features")
    return found if within is not None else {}


def original(number: int, row: Mapping[str, Any]) -> tuple[Draft | None, list[str]]:
    """A record with `annotation`, `pre_text`, `post_text` and `table`, and what is wrong with it."""
    record = Record(row)
    name = record.id()
    annotation = record.within("annotation")
    if annotation is None:
        return None, record.wrong
    if "cur_dial" in annotation or "turn_ind" in annotation:
        return None, ["is one turn of a file by turns; give the file by conversations (dev.json, not dev_turn.json)"]
    questions = annotation.questions("dialogue_break")
    count = len(questions)
    columns = zip(
        questions,
        annotation.numbers("exe_ans_list", count),
        _printed(row, count),
        annotation.texts("turn_program", count, numbers=True),
        annotation.marks("qa_split", count),
        strict=True,
    )
    draft = Draft(
        number=number,
        id=name,
        turns=_turns(columns),
        pre_text=record.document("pre_text"),
        post_text=record.document("post_text"),
        table=record.table("table" if "table" in record else "table_ori"),
    )
    return draft, record.wrong


_REFERENCE = re.compile(r"#(\d{1,4})")


def _printed(row: Mapping[str, Any], count: int) -> list[str | None]:
    """The answers as people wrote them, as far as the record lets one know: a help, and no fault where it does not.

    `answer_list` holds what was read from the page as it stands there, and `#k` for what step k of
    `step_list` gives. What was asked for comes first in that list as `Ask for number …`; the other steps are,
    in order, the `steps` of `qa` (or of `qa_0` and `qa_1`), whose `res` is the printed result.
    """
    annotation = row["annotation"]
    listed = annotation.get("answer_list")
    if not isinstance(listed, list) or len(listed) != count:
        listed = [None] * count
    results = _results(row, annotation.get("step_list"))
    found = [_one_printed(answer, results) for answer in listed]
    last = row.get("qa_1", row.get("qa"))
    if found and found[-1] is None and isinstance(last, dict):
        found[-1] = _text(last.get("answer"))
    return found


def _one_printed(answer: Any, results: Sequence[str | None]) -> str | None:
    text = _text(answer)
    reference = _REFERENCE.fullmatch(text.strip()) if text is not None else None
    if reference is None:
        return text
    place = int(reference[1])
    return results[place] if place < len(results) else None


def _results(row: Mapping[str, Any], step_list: Any) -> list[str | None]:
    """The printed result of each entry of `step_list`."""
    if not isinstance(step_list, list):
        return []
    asked = [isinstance(step, str) and step.lower().startswith("ask for number") for step in step_list]
    parts = (row.get(key) for key in ("qa", "qa_0", "qa_1"))
    steps = list(chain.from_iterable(_steps(part) for part in parts))
    if len(steps) != asked.count(False):
        steps = [None] * asked.count(False)
    left = iter(steps)
    return [step.split()[-1] if is_asked else next(left) for step, is_asked in zip(step_list, asked, strict=True)]


def _steps(part: Any) -> list[str | None]:
    steps = part.get("steps") if isinstance(part, dict) else None
    if not isinstance(steps, list):
        return []
    return [_text(step.get("res")) if isinstance(step, dict) else None for step in steps]


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return str(value) if str(value).strip() else None
