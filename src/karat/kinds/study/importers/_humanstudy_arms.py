"""Materials of a study folder → arms of the draft: what is shown, the fields of the answers, the number of people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from karat.formats import excerpt
from karat.importers import Open
from karat.kinds.study.importers._humanstudy_files import Notes, Spot, slug

__all__ = ["ArmDraft", "Asked", "arms_of", "profile_of", "sizes_of"]

_LONGEST_LABEL = 40  # characters; a longer option gets a letter as label, and its text as meaning
_MOST_OPTIONS = 26
_KNOWN = {"label", "gt_key", "original_scale", "response_scale", "unit", "anchors", "estimation_questions", "scale",
          "total_rounds"}  # fmt: skip
_LETTERED = re.compile(r"\(?(?P<label>[A-Za-z]|\d{1,2}|[A-Z] ?& ?[A-Z])[.):]\s*(?P<meaning>\S.*)", re.DOTALL)
_N = r"[-−]?\d+(?:\.\d+)?"
_SPAN = re.compile(
    rf"[$€£]?(?P<low>{_N})\s*(?:\([^()]*\)\s*)?(?:to|–|-|,|through)\s*[$€£]?(?P<high>{_N})(?!\s*=)(?P<more>\s+or more)?"
)
_ENDS = re.compile(rf"(?P<low>{_N})\s*=[^=]*?[,;]\s*(?P<high>{_N})\s*=[^=]*$")
_WORDS = {
    "multiple_choice": "choice", "choice": "choice", "single_choice": "choice", "forced_choice": "choice",
    "binary": "choice", "likert": "likert", "rating": "likert", "scale": "likert", "estimation": "number",
    "estimate": "number", "numeric": "number", "number": "number", "percentage": "number", "ranking": "rank",
    "rank": "rank", "text": "text", "free_text": "text",
}  # fmt: skip


class Asked(msgspec.Struct):
    """One field of an item."""

    suffix: str  # of the field's name; "" for the only field of an item
    question: str  # the text above the options in the material
    options: list[str] = []  # lines that list the options
    answer: dict[str, Any] | None = None  # the entry for `fields`; None: undecided
    why: str = ""  # why it is undecided


def asked_in(item: Spot) -> tuple[list[Asked], list[str]]:
    """The fields of an item, and the names of its other contents, which the draft leaves out."""
    question = item.get("question").text() or ""
    word = (item.get("type").text() or "").lower().replace("-", "_").replace(" ", "_")
    meta = item.get("metadata")
    left = [key for key, _ in meta.pairs() if key not in _KNOWN]
    parts = word.split("_and_")
    if len(parts) == 1:
        return [_one(item, word, question, "")], left
    fields: list[Asked] = []
    for part in parts[:4]:
        questions = [text for spot in meta.get("estimation_questions").items() if (text := spot.text())]
        if part == "estimation" and questions:
            fields += [_one(item, part, text, f"_estimate_{at}", own=False) for at, text in enumerate(questions[:9], 1)]
        else:
            suffix = {"estimation": "_estimate", "choice": "_choice", "self_categorization": "_category"}.get(part)
            fields.append(_one(item, part, question, suffix or f"_{part}"[:20], own=part != "estimation"))
    fields.sort(key=lambda field: field.suffix.startswith("_estimate"))  # the choice comes with the story
    for field in fields[1:]:
        field.question = "" if field.question == question else field.question
    return fields, left


def _one(item: Spot, word: str, question: str, suffix: str, *, own: bool = True) -> Asked:
    """One field. `own`: the item's options and scale belong to this field."""
    listed = [text for spot in item.get("options").items() if (text := spot.as_text())] if own else []
    meta = item.get("metadata")
    scale = meta.get("original_scale").text() or meta.get("response_scale").text() or ""
    asked = Asked(suffix=suffix, question=question)
    kind = _WORDS.get(word, "")
    if len(listed) == 1 and kind in {"", "choice", "number"} and (span := _span(listed[0])) is not None:
        asked.answer, asked.options = _number(span), listed
    elif kind in {"choice", "rank"}:
        _choose(asked, kind, listed)
    elif kind == "likert":
        _rate(asked, listed, scale, question)
    elif kind == "number":
        hundred = (0.0, 100.0) if re.search(r"%|\bpercent", question, re.IGNORECASE) else None
        asked.answer = _number(_span(scale) or hundred)
        asked.options = [scale] if scale and scale not in question else []
    elif kind == "text":
        asked.answer = {"type": "text"}
    else:
        asked.why = f"its type is '{excerpt(word, 40)}'" if word else "it has no type"
        asked.options = [f"- {option}" for option in listed]
    if asked.answer is None and not asked.why:
        asked.why = f"its type is '{excerpt(word, 40)}', and it has no options"
    return asked


def _choose(asked: Asked, kind: str, listed: list[str]) -> None:
    folded = {" ".join(option.casefold().split()) for option in listed}
    if len(listed) < 2:
        asked.options = listed
        asked.why = f"it is a {kind} with {'one option' if listed else 'no options'}"
        return
    if len(folded) < len(listed) or len(listed) > _MOST_OPTIONS:
        asked.options = [f"- {option}" for option in listed]
        asked.why = "two of its options are the same" if len(folded) < len(listed) else f"it has {len(listed)} options"
        return
    marked = [_LETTERED.fullmatch(option) for option in listed]
    labels = [match["label"] for match in marked if match is not None]
    if len({label.casefold() for label in labels}) == len(listed):
        meanings = {match["label"]: " ".join(match["meaning"].split()) for match in marked if match is not None}
    elif any(len(option) > _LONGEST_LABEL or "\n" in option for option in listed):
        meanings = {chr(ord("A") + at): " ".join(option.split()) for at, option in enumerate(listed)}
    else:
        asked.answer = {"type": kind, "options": listed}
        asked.options = [f"- {option}" for option in listed]
        return
    asked.answer = {"type": kind, "options": meanings}
    asked.options = [f"{label}: {meaning}" for label, meaning in meanings.items()]


def _rate(asked: Asked, listed: list[str], scale: str, question: str) -> None:
    """A scale: its options are consecutive numbers, or a text gives its ends."""
    steps = [re.match(r"\s*([-−]?\d{1,4})\b", option) for option in listed]
    values = [int(step[1].replace("−", "-")) for step in steps if step is not None]
    ends = _span(scale) or _span(question)
    if len(values) == len(listed) > 1 and values == list(range(values[0], values[0] + len(values))):
        ends = (values[0], values[-1])
        asked.options = [", ".join(option for option in listed if not re.fullmatch(r"\s*[-−]?\d+\s*", option))]
    if scale and not any(asked.options):
        asked.options = [scale]
    asked.options = [option for option in asked.options if option]
    low, high = ends or (None, None)
    if low is None or high is None or low >= high or low != int(low) or high != int(high):
        hint = f"; '{excerpt(scale, 60)}' does not say where it begins" if scale else ""
        asked.why = f"it is a scale without ends{hint}"
        return
    asked.answer = {"type": "likert", "range": [int(low), int(high)]}


def _span(text: str) -> tuple[float, float | None] | None:
    """The ends of a scale: `0 to 10`, `[0, 100]`, `(1 = not at all, 11 = very)`; the upper is None for `or more`."""
    match = _SPAN.search(text[:200]) or _ENDS.search(text[:200])
    if match is None:
        return None
    low, high = (float(match[end].replace("−", "-")) for end in ("low", "high"))
    more = match.groupdict().get("more")
    return (low, None if more else high) if low < high else None


def _number(span: tuple[float, float | None] | None) -> dict[str, Any]:
    if span is None:
        return {"type": "number"}
    return {"type": "number", "range": [None if end is None else int(end) if end == int(end) else end for end in span]}


BRACES = "left_braces"
"""The name of a value that puts two opening braces into a material: values that were put in are not parsed again."""
MAX_ITEMS = 500  # in one material; the longest published one has 31
_TAKEN = {"participant", "arm", "group_id", "round", "profile", "answer_form", "age", "gender", "population", BRACES}
_OF_HUMAN = {"t", "f", "u", "chi2", "z", "r", "ratio", "df1", "df2", "n", "k", "mean", "sd", "sign", "reported"}
_NUMERIC = {"number", "likert"}


class ArmDraft(msgspec.Struct):
    """One arm; None means undecided."""

    name: str
    label: str  # what the source calls it
    text: str = ""
    fields: dict[str, dict[str, Any] | None] = {}
    n: int | None = None
    values: dict[str, str] = {}
    rounds: int | None = None  # of a game; None: the source mentions none
    open: list[Open] = []

    @property
    def prompt(self) -> str:
        """The material's path in the draft."""
        return f"materials/{self.name}.md"


class _Field(msgspec.Struct):
    arm: ArmDraft
    name: str
    asked: Asked
    item: Spot


def arms_of(
    materials: Sequence[Spot], *, scenarios: Spot, people: Spot, notes: Notes, unlisted: bool
) -> list[ArmDraft]:
    """An arm for each material that the study names as a scenario; if it names none of them, for every material."""
    chosen = materials if unlisted else _listed(materials, scenarios, notes)
    sizes = {slug(key): spot for key, spot in people.pairs()}
    arms: list[ArmDraft] = []
    fields: list[_Field] = []
    texts: list[tuple[ArmDraft, Spot, list[list[_Field]]]] = []
    for spot in chosen:
        label = _label(spot)
        name = slug(label)
        name = f"{name}_arm" if name in _OF_HUMAN else name
        arm = ArmDraft(_free(name, {other.name for other in arms}), label)
        size = sizes.get(slug(label)) or sizes.get(slug(_stem(spot)))
        arm.n = size.get("n").whole() if size is not None else None
        if arm.n is None:
            place = size.get("n").where if size is not None else spot.where
            hint = f"; the source says {size.get('n').value!r:.20}" if size is not None else _near(name, sizes)
            arm.open.append(_open(arm, "n", f"how many people there were in this arm{hint}", place))
        items = _items(arm, spot, notes)
        if not any(items):
            arm.open.append(_open(arm, "fields", "what is answered: the material has no items", spot.where))
        arms.append(arm)
        texts.append((arm, spot, items))
        fields += [field for item in items for field in item]
    _name(fields)
    for arm, spot, items in texts:
        _write(arm, spot, items, notes)
    return arms


def in_material(text: str) -> str:
    """A foreign text for a material, escaped so that anything that looks like a template field is kept literally."""
    return text.replace("{{", f"{{{{ {BRACES} }}}}")


def _listed(materials: Sequence[Spot], scenarios: Spot, notes: Notes) -> Sequence[Spot]:
    named = {slug(text) for scenario in scenarios.items() if (text := scenario.text())}
    chosen = [material for material in materials if {slug(_label(material)), slug(_stem(material))} & named]
    if not chosen:
        return materials
    for material in materials:
        if material not in chosen:
            notes.add("left out", "is not among the scenarios that the study names (option unlisted)", material.file)
    known = {name for material in chosen for name in (slug(_label(material)), slug(_stem(material)))}
    for scenario in scenarios.items():
        if (text := scenario.text()) and slug(text) not in known:
            notes.add("unreadable", f"no material is called '{excerpt(text, 60)}'", scenario.where)
    return chosen


def _stem(spot: Spot) -> str:
    return spot.file.removeprefix("materials/").removesuffix(".json")


def _label(spot: Spot) -> str:
    return spot.get("sub_study_id").text() or _stem(spot)


def _near(name: str, sizes: dict[str, Spot]) -> str:
    """The source's number for a whole of which the arm may be part: `experiment_1` for `experiment_1_harm`."""
    totals = [(key, n) for key, spot in sizes.items() if name.startswith(f"{key}_") and (n := spot.get("n").whole())]
    return f"; the source has {totals[0][1]} for {totals[0][0]}" if totals else ""


def _items(arm: ArmDraft, spot: Spot, notes: Notes) -> list[list[_Field]]:
    """The fields of each item of a material. A number of rounds makes the arm a game."""
    fields: list[list[_Field]] = []
    besides: list[str] = []
    listed = spot.get("items").items()
    if len(listed) > MAX_ITEMS:
        notes.add(
            "left out", f"{len(listed) - MAX_ITEMS} items are beyond the first {MAX_ITEMS}", listed[MAX_ITEMS].where
        )
    for at, item in enumerate(listed[:MAX_ITEMS]):
        if not isinstance(item.value, dict):
            notes.add("unreadable", "is not an item", item.where)
            continue
        asked, left = asked_in(item)
        name = slug(item.get("id").as_text() or f"q{at + 1}", longest=30, first="q")
        fields.append([_Field(arm, f"{name}{part.suffix}", part, item) for part in asked])
        besides += left
        rounds = item.get("metadata", "total_rounds").whole()
        if rounds is not None and 1 < rounds <= 10_000 and arm.rounds is None:
            arm.rounds = rounds
            question = "how many play together; a later round also needs a prompt that shows what the others did"
            arm.open.append(_open(arm, "rounds.group", question, item.get("metadata", "total_rounds").where))
    if besides:
        named = excerpt(", ".join(dict.fromkeys(besides)), 120)
        notes.add("left out", f"items also contain: {named}", spot.file)
    return fields


def _name(fields: Sequence[_Field]) -> None:
    """Chooses unused field names. Arms share a name only if its type is the same; else the arm's name precedes it."""
    kinds: dict[str, set[str]] = {}
    for field in fields:
        if field.asked.answer is not None:
            kind = field.asked.answer["type"]
            kinds.setdefault(field.name, set()).add("number" if kind in _NUMERIC else kind)
    for field in fields:
        if len(kinds.get(field.name, ())) > 1:
            field.name = f"{field.arm.name}_{field.name}"
        if field.name in _TAKEN:
            field.name = f"{field.name}_answer"
        field.name = _free(field.name, set(field.arm.fields))
        field.arm.fields[field.name] = field.asked.answer
        if field.asked.answer is None:
            question = f"how it is answered (type, options, range): {field.asked.why}"
            field.arm.open.append(_open(field.arm, f"fields.{field.name}.type", question, field.item.where))


def _write(arm: ArmDraft, spot: Spot, items: Sequence[Sequence[_Field]], notes: Notes) -> None:
    """Writes the material: instructions, then each question with its options; karat adds the answer form."""
    many = len(arm.fields) > 1
    parts = [spot.get("instructions").text() or ""]
    for item in items:
        for one in item:
            lines = [f"[{one.name}] {one.asked.question}".rstrip() if many else one.asked.question, *one.asked.options]
            parts.append("\n".join(line for line in lines if line))
    text = "\n\n".join(part for part in parts if part) or arm.label
    # A line `choice: …` in the source would be mistaken for the answer form.
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
    """The name, with the first number that makes it unused if it is taken."""
    if name not in taken:
        return name
    numbered = (f"{name}_{number}" for number in range(2, 10_000))
    return next(candidate for candidate in numbered if candidate not in taken)


_GENDERS = {"women": "female", "female": "female", "females": "female", "woman": "female", "girls": "female",
            "men": "male", "male": "male", "males": "male", "man": "male", "boys": "male"}  # fmt: skip
_AGES = re.compile(r"(\d{1,3})\s*(?:-|–|−|to)\s*(\d{1,3})")
_READ = {"age_range", "age", "gender", "sex", *_GENDERS}


def profile_of(specification: Spot, notes: Notes) -> dict[str, Any]:
    """The profile of the draft: age, gender and population, as far as the source gives them."""
    people = specification.get("participants")
    given = people.get("demographics")
    profile: dict[str, Any] = {}
    ages = given.get("age_range").as_text() or given.get("age").as_text()
    if ages is not None:
        match = _AGES.fullmatch(ages.strip())
        if match is not None and 0 < int(match[1]) <= int(match[2]) <= 130:
            profile["age"] = [int(match[1]), int(match[2])]
        else:
            notes.add("unreadable", f"is not a range of ages: '{excerpt(ages, 60)}'", given.where)
    genders = _genders(given, notes) or _added_up(people)
    if genders:
        profile["gender"] = genders if len(genders) > 1 else next(iter(genders))
    if (population := people.get("population").text()) is not None:
        profile["population"] = " ".join(population.split())[:300]
    left = [key for key, _ in given.pairs() if key not in _READ]
    if left:
        notes.add("left out", f"also contains: {excerpt(', '.join(left), 90)}", given.where)
    return profile


def sizes_of(specification: Spot, notes: Notes) -> list[float]:
    """Every number of people in the specification; notes parts that do not add up to the whole."""
    people = specification.get("participants")
    total = people.get("n").whole()
    parts = [n for _, part in people.get("by_sub_study").pairs() if (n := part.get("n").whole()) is not None]
    if total is not None and parts and sum(parts) != total:
        notes.add("contradiction", f"n is {total}, its parts add up to {sum(parts)}", people.get("n").where)
    for key, part in people.get("by_sub_study").pairs():
        counts = [n for word, spot in part.get("demographics").pairs() if word in _GENDERS and (n := spot.whole())]
        n = part.get("n").whole()
        if n is not None and counts and sum(counts) != n:
            notes.add("contradiction", f"{excerpt(key, 40)}: n is {n}, women and men are {sum(counts)}", part.where)
    return [float(n) for n in dict.fromkeys([*([total] if total else []), *parts])]


def _genders(given: Spot, notes: Notes) -> dict[str, float]:
    """Shares by gender, from counts, shares, or a single gender."""
    for key in ("gender", "sex"):
        spot = given.get(key)
        if isinstance(spot.value, str):
            word = _GENDERS.get((spot.text() or "").lower())
            if word is None:
                notes.add("unreadable", f"does not give shares: '{excerpt(spot.value, 60)}'", spot.where)
                return {}
            return {word: 1.0}
        if isinstance(spot.value, dict):
            return _shares(spot)
    return _shares(given)


def _shares(spot: Spot) -> dict[str, float]:
    shares: dict[str, float] = {}
    for word, entry in spot.pairs():
        value, name = entry.number(), _GENDERS.get(word.lower())
        if name is not None and value is not None and value >= 0:
            shares[name] = shares.get(name, 0.0) + value
    total = sum(shares.values())
    return {name: round(value / total, 4) for name, value in shares.items()} if len(shares) > 1 and total > 0 else {}


def _added_up(people: Spot) -> dict[str, float]:
    """The sum of the counts in the parts of the study."""
    sums: dict[str, float] = {}
    for _, part in people.get("by_sub_study").pairs():
        for word, spot in part.get("demographics").pairs():
            if word in _GENDERS and (n := spot.whole()) is not None:
                sums[_GENDERS[word]] = sums.get(_GENDERS[word], 0.0) + n
    total = sum(sums.values())
    return {name: round(value / total, 4) for name, value in sums.items()} if len(sums) > 1 else {}
