"""Materials of a study folder → arms of the draft: what is shown, what is answered, how many people there were."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from karat.formats import excerpt
from karat.importers import Open
from karat.kinds.study.importers._humanstudy_fields import Asked, asked_in
from karat.kinds.study.importers._humanstudy_files import Notes, Spot, slug

__all__ = ["ArmDraft", "arms_of", "in_material"]

BRACES = "left_braces"
"""The value by which two opening braces of a material stay two braces: what is put in is never looked at again."""
MAX_ITEMS = 500  # of one material; the longest that was published has 31
_TAKEN = {"participant", "arm", "group_id", "round", "profile", "answer_form", "age", "gender", "population", BRACES}
_OF_HUMAN = {"t", "f", "u", "chi2", "z", "r", "ratio", "df1", "df2", "n", "k", "mean", "sd", "sign", "reported"}
_NUMERIC = {"number", "likert"}


@dataclass(slots=True)
class ArmDraft:
    """One arm; what is None is open."""

    name: str
    label: str  # what the source calls it
    text: str = ""
    fields: dict[str, dict[str, Any] | None] = field(default_factory=dict)
    n: int | None = None
    values: dict[str, str] = field(default_factory=dict)
    rounds: int | None = None  # of a game; None: the source speaks of none
    open: list[Open] = field(default_factory=list)

    @property
    def prompt(self) -> str:
        """The material's path in the draft."""
        return f"materials/{self.name}.md"


@dataclass(slots=True)
class _Field:
    arm: ArmDraft
    name: str
    asked: Asked
    item: Spot


def arms_of(
    materials: Sequence[Spot], *, scenarios: Spot, people: Spot, notes: Notes, unlisted: bool
) -> list[ArmDraft]:
    """An arm for each material that the study names as a scenario; for each of all, where it names none of them."""
    chosen = materials if unlisted else _listed(materials, scenarios, notes)
    sizes = {slug(key): spot for key, spot in people.pairs()}
    arms: list[ArmDraft] = []
    fields: list[_Field] = []
    texts: list[tuple[ArmDraft, Spot, list[list[_Field]]]] = []
    for spot in chosen:
        arm = _arm(spot, arms, sizes)
        items = _items(arm, spot, notes)
        if not any(items):
            arm.open.append(_open(arm, "fields", "what is answered: the material has no items", spot.where))
        arms.append(arm)
        texts.append((arm, spot, items))
        fields += [one for item in items for one in item]
    _name(fields)
    for arm, spot, items in texts:
        _write(arm, spot, items, notes)
    return arms


def in_material(text: str) -> str:
    """A foreign text for a material: what looks like a field of a template stands there as it is."""
    return text.replace("{{", f"{{{{ {BRACES} }}}}")


def _listed(materials: Sequence[Spot], scenarios: Spot, notes: Notes) -> Sequence[Spot]:
    named = {slug(text) for one in scenarios.items() if (text := one.text())}
    chosen = [one for one in materials if {slug(_label(one)), slug(_stem(one))} & named]
    if not chosen:
        return materials
    for one in materials:
        if one not in chosen:
            notes.add("left out", "is not among the scenarios that the study names (option unlisted)", one.file)
    found = {name for one in chosen for name in (slug(_label(one)), slug(_stem(one)))}
    for one in scenarios.items():
        if (text := one.text()) and slug(text) not in found:
            notes.add("unreadable", f"no material is called '{excerpt(text, 60)}'", one.where)
    return chosen


def _stem(spot: Spot) -> str:
    return spot.file.removeprefix("materials/").removesuffix(".json")


def _label(spot: Spot) -> str:
    return spot.get("sub_study_id").text() or _stem(spot)


def _arm(spot: Spot, arms: Sequence[ArmDraft], sizes: dict[str, Spot]) -> ArmDraft:
    label = _label(spot)
    name = slug(label)
    name = f"{name}_arm" if name in _OF_HUMAN else name
    arm = ArmDraft(_free(name, {one.name for one in arms}), label)
    size = sizes.get(slug(label)) or sizes.get(slug(_stem(spot)))
    arm.n = size.get("n").whole() if size is not None else None
    if arm.n is None:
        place = size.get("n").where if size is not None else spot.where
        said = f"; the source says {size.get('n').value!r:.20}" if size is not None else _near(name, sizes)
        arm.open.append(_open(arm, "n", f"how many people there were in this arm{said}", place))
    return arm


def _near(name: str, sizes: dict[str, Spot]) -> str:
    """What the source has of a whole that the arm is perhaps a part of: `experiment_1` of `experiment_1_harm`."""
    found = [(key, n) for key, spot in sizes.items() if name.startswith(f"{key}_") and (n := spot.get("n").whole())]
    return f"; the source has {found[0][1]} for {found[0][0]}" if found else ""


def _items(arm: ArmDraft, spot: Spot, notes: Notes) -> list[list[_Field]]:
    """The fields of each item of a material. A number of rounds makes the arm a game."""
    found: list[list[_Field]] = []
    besides: list[str] = []
    listed = spot.get("items").items()
    if len(listed) > MAX_ITEMS:
        notes.add(
            "left out", f"{len(listed) - MAX_ITEMS} items are beyond the first {MAX_ITEMS}", listed[MAX_ITEMS].where
        )
    for at, item in enumerate(listed[:MAX_ITEMS]):
        if not isinstance(item.value, dict):
            notes.add("unreadable", "is no item", item.where)
            continue
        asked, left = asked_in(item)
        name = slug(item.get("id").said() or f"q{at + 1}", longest=30, first="q")
        found.append([_Field(arm, f"{name}{one.suffix}", one, item) for one in asked])
        besides += left
        rounds = item.get("metadata", "total_rounds").whole()
        if rounds is not None and 1 < rounds <= 10_000 and arm.rounds is None:
            arm.rounds = rounds
            question = "how many play together; a later round also needs a prompt that shows what the others did"
            arm.open.append(_open(arm, "rounds.group", question, item.get("metadata", "total_rounds").where))
    if besides:
        named = excerpt(", ".join(dict.fromkeys(besides)), 120)
        notes.add("left out", f"items hold besides: {named}", spot.file)
    return found


def _name(fields: Sequence[_Field]) -> None:
    """Names that are free, and in all arms of one type: otherwise the arm's name comes first."""
    kinds: dict[str, set[str]] = {}
    for one in fields:
        if one.asked.answer is not None:
            kind = one.asked.answer["type"]
            kinds.setdefault(one.name, set()).add("number" if kind in _NUMERIC else kind)
    for one in fields:
        if len(kinds.get(one.name, ())) > 1:
            one.name = f"{one.arm.name}_{one.name}"
        if one.name in _TAKEN:
            one.name = f"{one.name}_answer"
        one.name = _free(one.name, set(one.arm.fields))
        one.arm.fields[one.name] = one.asked.answer
        if one.asked.answer is None:
            question = f"how it is answered (type, options, range): {one.asked.why}"
            one.arm.open.append(_open(one.arm, f"fields.{one.name}.type", question, one.item.where))


def _write(arm: ArmDraft, spot: Spot, items: Sequence[Sequence[_Field]], notes: Notes) -> None:
    """The material: instructions, then each question with its options; karat adds how to answer."""
    many = len(arm.fields) > 1
    parts = [spot.get("instructions").text() or ""]
    for item in items:
        for one in item:
            lines = [f"[{one.name}] {one.asked.question}".rstrip() if many else one.asked.question, *one.asked.options]
            parts.append("\n".join(line for line in lines if line))
    text = "\n\n".join(part for part in parts if part) or arm.label
    # A line `choice: …` of the source would be taken for the form of the answer.
    if arm.fields:
        names = "|".join(re.escape(name) for name in sorted(arm.fields, key=len, reverse=True))
        text = re.sub(rf"^([ \t>*`\"'-]*(?:{names})[\"'*`]*)[ \t]*:", r"[\1] :", text, flags=re.MULTILINE)
    if "{{" in text:
        arm.values[BRACES] = "{{"
        notes.add("changed", f"'{{{{' is written as {{{{ {BRACES} }}}}, so that nothing is put in", spot.where)
    arm.text = in_material(text) + "\n"


def _open(arm: ArmDraft, below: str, question: str, source: str) -> Open:
    return Open(place=f"arms.{arm.name}.{below}", question=question, source=source)


def _free(name: str, taken: set[str]) -> str:
    """The name, or with the first number that makes it free."""
    if name not in taken:
        return name
    numbered = (f"{name}_{number}" for number in range(2, 10_000))
    return next(one for one in numbered if one not in taken)
