"""Golden datasets in special formats: SQuAD, nested or one question per row, and tasks of tau-bench
and tau2-bench.

Formats: Rajpurkar et al. 2016 (arXiv:1606.05250) and 2018 (arXiv:1806.03822); Yao et al. 2024
(arXiv:2406.12045), Barres et al. 2025 (arXiv:2506.07982).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

import msgspec

from karat.documents.row_list import Rows
from karat.documents.values import Value
from karat.records import JsonObject, Sample, Turn, sample_digest

UNANSWERABLE = "unanswerable"
"""The golden answer to a question that the text does not answer."""
_SAY_SO = f"If the text does not answer the question, reply with one word: {UNANSWERABLE}"

Row = Mapping[str, object]


class Item(msgspec.Struct, kw_only=True):
    """One question, or its fault."""

    number: int  # of its row
    wrong: list[str] = []
    id: str = ""
    question: str = ""
    golden: str = ""
    materials: str | None = None
    metadata: JsonObject = {}
    detail: JsonObject = {}  # for scorers; hidden from agents


def known(rows: Rows) -> bool:
    """Whether the rows have one of these forms. The first row decides."""
    return any(_form_of(row) is not None for _, row in islice(rows.rows, 1))


def items(rows: Rows) -> list[Item] | None:
    """The file's questions, in order; None: its rows have no known form. The first row decides."""
    first = next(iter(rows.rows), None)
    if first is not None:
        read = _form_of(first[1])
    else:
        read = None

    if read is None:
        return None
    questions: list[Item] = []
    for position, (number, row) in enumerate(rows.rows):
        questions += read(number, position, row)

    if any(item.detail.get("impossible") for item in questions):
        for item in questions:  # of all questions, so it reveals nothing
            item.materials = f"{item.materials}\n\n{_SAY_SO}"

    return questions


def sample(item: Item, position: int) -> Sample:
    """The sample of a valid item."""
    return Sample(
        kind="golden",
        id=item.id,
        position=position,
        digest=sample_digest([item.question, item.golden, item.materials, item.detail]),
        turns=(Turn(question=item.question, golden=item.golden, detail=item.detail),),
        materials=item.materials,
        metadata=item.metadata,
    )


def _form_of(row: Row) -> Callable[[int, int, Row], Iterator[Item]] | None:
    if "question" in row and "answer" in row:
        return None
    if "paragraphs" in row and "questions" not in row:
        return _article
    answers = row.get("answers")
    marked = isinstance(answers, Mapping) and "text" in answers
    if isinstance(answers, list):
        marked = all(isinstance(answer, Mapping) and "text" in answer for answer in answers)
    if "question" in row and "context" in row and marked:
        return _flat
    if "user_scenario" in row and "evaluation_criteria" in row:
        return _tau2
    if "instruction" in row and "actions" in row:
        return _tau
    return None


def _article(number: int, position: int, row: Row) -> Iterator[Item]:
    """The questions of one article of SQuAD 1.1 or 2.0."""
    del position
    of_row = Item(number=number)
    for paragraph in Value(row, wrong=of_row.wrong).at("paragraphs").list():
        context = paragraph.at("context").text()
        for asked in paragraph.at("qas").list():
            item = Item(number=number, materials=context, metadata=_kept(row, "title"))
            question = Value(asked.value, asked.path, item.wrong)
            texts = []
            for answer in question.at("answers").list(optional=True):
                texts.append(answer.at("text"))

            _squad(item, question, texts, impossible=question.at("is_impossible").value is True)
            yield item

    if of_row.wrong:
        yield of_row


def _flat(number: int, position: int, row: Row) -> Iterator[Item]:
    """One question of SQuAD per row: `answers` is [{text: …}, …] or, as in datasets on the Hugging
    Face Hub, {text: […], …}.
    """
    item = Item(number=number, metadata=_kept(row, "title"))
    place = Value({"id": str(position), **row}, wrong=item.wrong)
    item.materials = place.at("context").text()
    listed = place.at("answers")
    if isinstance(listed.value, list):
        answers = [answer.at("text") for answer in listed.list()]
    else:
        answers = listed.at("text").list()

    _squad(item, place, answers, impossible=not answers)
    yield item


def _squad(item: Item, place: Value, answers: list[Value], *, impossible: bool) -> None:
    item.id = place.at("id").id()
    item.question = place.at("question").text()
    if impossible:
        item.golden = UNANSWERABLE
        item.detail = {"impossible": True}
        return

    texts = list(dict.fromkeys(answer.text() for answer in answers))
    item.golden = "".join(texts[:1])
    item.detail = {"answers": texts}
    if not texts:
        item.wrong.append(
            f"'{place.at('answers').path}' has no golden answer, and the question is not "
            f"`is_impossible`"
        )


def _tau(number: int, position: int, row: Row) -> Iterator[Item]:
    """A task of tau-bench: `instruction`, `actions` with `name` and `kwargs`, `outputs`.

    Its id is its position.
    """
    item = Item(number=number, id=str(position))
    task = Value(row, wrong=item.wrong)
    item.question = task.at("instruction").text()
    item.metadata = _kept(row, "user_id", "annotator")
    _expect(item, task.at("actions"), "kwargs", {"outputs": task.at("outputs")})
    yield item


def _tau2(number: int, position: int, row: Row) -> Iterator[Item]:
    """A task of tau2-bench: `user_scenario.instructions`, and the expectations in
    `evaluation_criteria`.
    """
    del position
    item = Item(number=number)
    task = Value(row, wrong=item.wrong)
    item.id = task.at("id").id()
    instructions = task.at("user_scenario").at("instructions")
    if isinstance(instructions.value, Mapping):
        parts = []
        for key in ("reason_for_call", "known_info", "unknown_info", "task_instructions"):
            parts.append(instructions.at(key))

        item.question = "\n\n".join(part.text().strip() for part in parts if part.value)
        item.metadata = _kept(instructions.value, "domain")

    if not item.question:
        item.question = instructions.text()
    criteria = task.at("evaluation_criteria")
    kept = {"outputs": criteria.at("communicate_info"), "assertions": criteria.at("nl_assertions")}
    _expect(item, criteria.at("actions"), "arguments", kept)
    yield item


def _kept(row: Row, *keys: str) -> JsonObject:
    return {key: row[key] for key in keys if row.get(key) is not None}


_HEADINGS = {"outputs": "The agent tells the user", "assertions": "What must hold"}


def _expect(item: Item, actions: Value, arguments: str, others: Mapping[str, Value]) -> None:
    """The golden answer for a judge, as text; its parts for scorers."""
    calls = []
    for call in actions.list(optional=True):
        calls.append((call.at("name").text(), call.at(arguments)))

    lines = []
    for name, given in calls:
        lines.append(f"- {name} {msgspec.json.encode(given.value or {}).decode()}")

    parts = [
        "\n".join(["The agent calls, in this order:", *lines])
        if lines
        else "The agent changes nothing."
    ]
    item.detail = {
        "actions": [{"name": name, "arguments": given.value or {}} for name, given in calls]
    }
    for key, place in others.items():
        texts = []
        for text in place.list(optional=True):
            texts.append(text.text(number=True))

        if texts:
            parts += ["\n".join([f"{_HEADINGS[key]}:", *(f"- {text}" for text in texts)])]
        item.detail[key] = texts

    item.golden = "\n".join(parts)
