"""One conversation in every form of a file, and small means to write and to change it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from karat.kinds import Dataset
from karat_conversations.kinds.conversation import Conversation

TABLE = {"2007": {"price": 60.94, "volatility": -27.0}, "2005": {"price": 25.14, "volatility": 28.0}}
QUESTIONS = ["what was the price in 2007?", "and in 2005?", "what was the change?", "and relative to 2005?"]
PROGRAMS = ["60.94", "25.14", "subtract(60.94, 25.14)", "subtract(60.94, 25.14), divide(#0, 25.14)"]
EXECUTED = [60.94, 25.14, 35.8, 1.42403]
PRINTED = ["60.94", "25.14", "35.80", "142.4%"]
CLEANED: dict[str, Any] = {
    "id": "MRO/2007-1",
    "doc": {"pre_text": "prices of options .", "post_text": "all in dollars .", "table": TABLE},
    "dialogue": {
        "conv_questions": QUESTIONS,
        "conv_answers": PRINTED,
        "turn_program": PROGRAMS,
        "executed_answers": EXECUTED,
        "qa_split": [False, False, True, True],
    },
    "features": {"num_dialogue_turns": 4, "has_type2_question": True, "has_duplicate_columns": False},
}
ROWS = [["", "2007", "2005"], ["price", "$ 60.94", "$ 25.14"], ["volatility", "-27 ( 27 )", "28"]]
ORIGINAL: dict[str, Any] = {
    "id": "MRO/2007-1",
    "pre_text": ["prices of", "options ."],
    "post_text": ["all in dollars ."],
    "table": ROWS,
    "table_ori": ROWS,
    "qa": {
        "question": "what was the relative change?",
        "answer": "142%",
        "steps": [
            {"op": "minus1-1", "arg1": "60.94", "arg2": "25.14", "res": "35.80"},
            {"op": "divide1-2", "arg1": "#0", "arg2": "25.14", "res": "142.4%"},
        ],
    },
    "annotation": {
        "dialogue_break": QUESTIONS,
        "turn_program": PROGRAMS,
        "exe_ans_list": EXECUTED,
        "step_list": ["Ask for number 60.94", "Ask for number 25.14", "subtract(60.94, 25.14)", "divide(#2, #1)"],
        "answer_list": ["60.94", "25.14", "#2", "#3"],
        "qa_split": [0, 0, 1, 1],
    },
}
LINES = [
    {"conversation_id": "MRO/2007-1", "turn_idx": index, "question": question, "answer": EXECUTED[index]}
    | {"printed": PRINTED[index], "program": PROGRAMS[index], "sector": "oil"}
    for index, question in enumerate(QUESTIONS)
]
LINES[0]["document"] = {"pre_text": "prices of options .", "post_text": "all in dollars .", "table": TABLE}


def load(path: str | Path, **options: Any) -> Dataset:
    return Conversation(Conversation.Options(**options)).load(Path(path))


def write(name: str, value: Any) -> str:
    """A JSON file, or with rows and the ending .jsonl one row a line."""
    text = "".join(json.dumps(row) + "\n" for row in value) if name.endswith(".jsonl") else json.dumps(value)
    Path(name).write_text(text, encoding="utf-8")
    return name


def changed(record: dict[str, Any], **by_path: Any) -> dict[str, Any]:
    """The record with other values: `dialogue__conv_answers=…`; `...` removes a key."""
    record = copy.deepcopy(record)
    for path, value in by_path.items():
        *above, last = path.split("__")
        here = record
        for part in above:
            here = here[part]
        if value is ...:
            del here[last]
        else:
            here[last] = value
    return record
