"""A file of conversations → drafts of them and every fault, whichever of the three forms it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from karat.errors import BadDataset, Fault
from karat.kinds._rows import Rows, read_rows
from karat.kinds.conversation.drafts import Draft, sized_wrong
from karat.kinds.conversation.formats import cleaned, original
from karat.kinds.conversation.lines import by_conversation, column_names, looks_like_turns

__all__ = ["Drafts", "Form", "looks_like_conversations", "read_drafts"]

Form = Literal["cleaned", "original", "turns"]
_RECORDS: Mapping[str, Callable[[int, Mapping[str, Any]], tuple[Draft | None, list[str]]]] = {
    "cleaned": cleaned,
    "original": original,
}
_NO_FORM = (
    "holds no conversations: each needs `dialogue` (cleaned ConvFinQA) or `annotation` (original ConvFinQA), "
    "or the file has one line a turn with the columns conversation_id, turn_idx, question and answer"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Drafts:
    """The conversations that could be read, and what is wrong with the others."""

    form: Form
    sha256: str
    unit: str  # what a row is called: "line", "item", "row"
    drafts: list[Draft]
    faults: list[Fault]

    def place(self, fault: Fault) -> int:
        """Where a fault stands in the order of the file; 0: it is none of a row."""
        unit, _, number = fault.place.rpartition(" ")
        return int(number) if unit == self.unit else 0


def read_drafts(path: Path, *, split: str | None, keys: Mapping[str, str | None]) -> Drafts:
    """All of the file. Raises BadDataset where nothing can be read at all."""
    rows = read_rows(path, lists=True, section=split)
    form = "turns" if any(keys.values()) else _form_of(rows)
    if form is None:
        faults = [*rows.sorted_faults(), Fault(place="file", message=_NO_FORM)] if rows.count else rows.sorted_faults()
        return Drafts(form="turns", sha256=rows.sha256, unit=rows.unit, drafts=[], faults=faults)
    drafts, general = _turns(rows, keys) if form == "turns" else (_conversations(rows, form), [])
    drafts = _sound(rows, drafts)
    faults = [*general, *rows.sorted_faults()]
    return Drafts(form=form, sha256=rows.sha256, unit=rows.unit, drafts=drafts, faults=faults)


def looks_like_conversations(path: Path) -> bool:
    """Whether a row of the file is one, or one turn of one. Raises BadDataset where nothing can be read at all."""
    try:
        return _form_of(read_rows(path, lists=True)) is not None
    except BadDataset as error:
        if error.faults[0].place == "dataset.split":
            return True
        raise


def _form_of(rows: Rows) -> Form | None:
    """Which form the file has: that of the first row that has one. None: it holds no conversations."""
    for _, row in rows.rows:
        if "dialogue" in row:
            return "cleaned"
        if "annotation" in row:
            return "original"
        if looks_like_turns(row):
            return "turns"
    return None


def _turns(rows: Rows, keys: Mapping[str, str | None]) -> tuple[list[Draft], list[Fault]]:
    names, missing = column_names(rows, keys)
    return ([], missing) if missing else (by_conversation(rows, names), [])


def _conversations(rows: Rows, form: Form) -> list[Draft]:
    drafts = []
    for number, row in rows.rows:
        draft, wrong = _RECORDS[form](number, row)
        for message in wrong:
            rows.fault(number, message)
        if draft is not None and not wrong:
            drafts.append(draft)
    return drafts


def _sound(rows: Rows, drafts: list[Draft]) -> list[Draft]:
    """Those with an id of their own and of a bearable length; the others become faults."""
    sound: list[Draft] = []
    seen: dict[str, int] = {}
    for draft in drafts:
        wrong = sized_wrong(draft.turns)
        first = seen.setdefault(draft.id, draft.number)
        if first != draft.number:
            wrong = f"the id '{draft.id:.80}' stands also in {rows.unit} {first}; each conversation needs its own"
        if wrong is None:
            sound.append(draft)
        else:
            rows.fault(draft.number, wrong)
    return sound
