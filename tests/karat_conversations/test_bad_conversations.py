"""Every fault of a file of conversations is told at once, and nothing in it crashes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import BadDataset, OperatorError
from karat_conversations.kinds.conversation import Conversation

from .conversations import CLEANED, LINES, ORIGINAL, changed, load

BIG = b"9" * 5000


def line(**by_path: Any) -> bytes:
    return json.dumps(changed(CLEANED, **by_path)).encode() + b"\n"


def turns(*rows: dict[str, Any]) -> bytes:
    return b"".join(
        json.dumps({"conversation_id": "c", "question": "q?", "answer": 1} | row).encode() + b"\n" for row in rows
    )


DIALOGUE = CLEANED["dialogue"]
BAD: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "no conversations": ("c.jsonl", b'{"question": "q", "answer": "a"}\n', {}),
    "an object without a list": ("c.json", b'{"dev": {}}', {}),
    "an empty list": ("c.json", b'{"dev": []}', {}),
    "no documents, no dialogues": ("c.jsonl", line(doc=...) + line(id="b", dialogue=...) + line(id="c", doc=[1]), {}),
    "no ids": ("c.jsonl", line(id=...) + line(id=None) + line(id=" ") + line(id=["x"]) + line(id=1.5), {}),
    "ids twice": ("c.jsonl", line(id=7) + line(id="b") + line(id="7"), {}),
    "no questions": (
        "c.jsonl",
        line(id=1, dialogue__conv_questions=...)
        + line(id=2, dialogue__conv_questions=[])
        + line(id=3, dialogue__conv_questions="q"),
        {},
    ),
    "empty questions": ("c.jsonl", line(dialogue__conv_questions=["q?", "", " ", 5]), {}),
    "lists of another length": (
        "c.jsonl",
        line(
            dialogue__executed_answers=[1.0],
            dialogue__conv_answers=["1"] * 5,
            dialogue__turn_program=[],
            dialogue__qa_split=[0] * 3,
        ),
        {},
    ),
    "answers that are none": (
        "c.jsonl",
        line(dialogue__executed_answers=[1.0, [2], {}, None], dialogue__conv_answers=[1, True, [], None]),
        {},
    ),
    "programs and splits that are none": (
        "c.jsonl",
        line(dialogue__turn_program=[["add("], 5, None, {}], dialogue__qa_split=[0, 2, "yes", True]),
        {},
    ),
    "no executed answers": ("c.jsonl", line(id=1, dialogue__executed_answers=...) + line(id=2), {}),
    "no executed answers at all": (
        "c.jsonl",
        line(id=1, dialogue__executed_answers=...) + line(id=2, dialogue__executed_answers=[None] * 4),
        {},
    ),
    "printed answers are missing": (
        "c.jsonl",
        line(id=1, dialogue__conv_answers=["1", None, "", "4"]) + line(id=2),
        {"expected": "printed"},
    ),
    "tables that are none": (
        "c.jsonl",
        b"".join(
            line(id=number, doc__table=table)
            for number, table in enumerate(["| a |", {"2007": 5}, [["a"], "b"], {"2007": {"price": [1]}}, [[{}]]])
        ),
        {},
    ),
    "a sparse table that would be huge": (
        "c.jsonl",
        line(doc__table={f"c{number}": {f"r{number}": number} for number in range(1000)}),
        {},
    ),
    "texts that are none": ("c.jsonl", line(doc__pre_text=5, doc__post_text=["a", 5]) + line(id=2, features=[1]), {}),
    "more turns than a conversation has": (
        "c.jsonl",
        line(dialogue={"conv_questions": ["q?"] * 201, "executed_answers": [1] * 201}),
        {},
    ),
    "longer than a dialogue is": ("c.jsonl", line(dialogue__conv_questions=["q" * 200_000, "a", "b", "c"]), {}),
    "longer than a document is": ("c.jsonl", line(doc__pre_text="x" * 2_000_001), {}),
    "the original form by turns": (
        "c.json",
        json.dumps([changed(ORIGINAL, annotation__cur_dial=["q"])]).encode(),
        {},
    ),
    "the original form without answers": (
        "c.json",
        json.dumps(
            [
                changed(ORIGINAL, annotation__exe_ans_list=..., annotation__turn_program="add(1, 2)"),
                changed(ORIGINAL, id=2, annotation__exe_ans_list=...),
            ]
        ).encode(),
        {},
    ),
    "two forms in one file": ("c.json", json.dumps([CLEANED, ORIGINAL, 5]).encode(), {}),
    "turns without what they need": (
        "t.jsonl",
        turns(
            {"turn_idx": 0},
            {"turn_idx": 1, "question": " "},
            {"turn_idx": 2, "question": ["q"]},
            {"turn_idx": 3, "conversation_id": None},
        )
        + turns({"turn_idx": 4, "answer": [1]}, {"turn_idx": 5, "program": ["add("]}, {"turn_idx": 6, "answer": None}),
        {},
    ),
    "turn numbers that are none": (
        "t.jsonl",
        turns({"turn_idx": -1}, {"turn_idx": "two"}, {"turn_idx": 1.5}, {"turn_idx": True}, {}, {"turn_idx": "0"}),
        {},
    ),
    "turns twice and turns missing": ("t.jsonl", turns({"turn": 0}, {"turn": 3}, {"turn": 1}, {"turn": 1}), {}),
    "documents that differ": (
        "t.jsonl",
        turns({"turn": 0, "document": "one"}, {"turn": 1, "document": "two"}, {"turn": 2, "document": 5}),
        {},
    ),
    "columns by other names": ("t.jsonl", b'{"dialog": 1, "q": "q?", "a": 1}\n', {"question_key": "quest"}),
    "a number of 5,000 digits": ("c.json", b'[{"id": 1, "dialogue": {"executed_answers": [' + BIG + b"]}}]", {}),
    "a number of 5,000 digits on a line": (
        "c.jsonl",
        b'{"id": 1, "dialogue": {"executed_answers": [' + BIG + b"]}}",
        {},
    ),
    "half a surrogate": ("c.json", b'[{"id": "\\ud800", "dialogue": {}}]', {}),
    "half a surrogate on a line": ("c.jsonl", b'{"id": "\\udfff", "dialogue": {}}', {}),
    "NaN, and numbers beyond any": ("c.json", b'[{"id": 1, "dialogue": [NaN]}, {"id": 2, "dialogue": [1e999]}]', {}),
    "nested too deeply": ("c.json", b'[{"id": 1, "dialogue": ' + b"[" * 90 + b"]" * 90 + b"}]", {}),
    "nested deeper than any": ("c.json", b'{"dev": ' + b"[" * 100_000, {}),
}


def said_of(name: str, data: bytes, options: dict[str, Any]) -> BadDataset:
    Path(name).write_bytes(data)
    with pytest.raises(BadDataset) as caught:
        load(name, **options)
    return caught.value


def test_what_is_said_of_every_bad_file_of_conversations(folder: Path, golden: Callable[[str, str], None]) -> None:
    said = []
    for name, (file, data, options) in BAD.items():
        shown = f"  {options}" if options else ""
        said.append(f"{'=' * 20} {name}{shown}\n{said_of(file, data, options)}\n")
    golden("faults/conversations.txt", "\n".join(said))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["add(1, 2)", "5%", "#0"]),
    lambda below: (
        st.lists(below, max_size=4) | st.dictionaries(st.sampled_from(["2007", "a", "turn"]), below, max_size=3)
    ),
    max_leaves=8,
)
PATHS = [
    (CLEANED, ["id", "doc", "dialogue", "features"]),
    (CLEANED, ["doc__table", "doc__pre_text", *(f"dialogue__{key}" for key in DIALOGUE)]),
    (ORIGINAL, ["id", "table", "qa", "pre_text", *(f"annotation__{key}" for key in ORIGINAL["annotation"])]),
    (LINES[0], list(LINES[0])),
]


@given(st.data())
def test_whatever_stands_in_a_file_is_a_dataset_or_a_list_of_faults(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    record, paths = data.draw(st.sampled_from(PATHS))
    some = data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=3, unique=True))
    broken = changed(record, **{path: data.draw(JSON) for path in some})
    path = tmp_path_factory.mktemp("any") / "c.json"
    path.write_text(json.dumps([broken]), encoding="utf-8")
    kind = Conversation(Conversation.Options())
    for act in (kind.load, kind.lint):
        with contextlib.suppress(OperatorError):
            act(path)
