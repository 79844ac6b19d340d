"""What an item of the materials asks for, as fields of a study; a field that cannot be typed stays open."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from karat.formats import excerpt
from karat.kinds.study.importers._humanstudy_files import Spot

__all__ = ["Asked", "asked_in"]

_LONGEST_LABEL = 40  # characters; a longer option gets a letter, and its text as meaning
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


@dataclass(slots=True)
class Asked:
    """One thing that is answered."""

    suffix: str  # of the field's name; "" for the only one of an item
    question: str  # what stands in the material, above the options
    options: list[str] = field(default_factory=list)  # lines that say what the options are
    answer: dict[str, Any] | None = None  # as in `fields`; None: open
    why: str = ""  # why it is open


def asked_in(item: Spot) -> tuple[list[Asked], list[str]]:
    """The fields of an item, and the names of what it holds besides and is not in the draft."""
    question = item.get("question").text() or ""
    word = (item.get("type").text() or "").lower().replace("-", "_").replace(" ", "_")
    meta = item.get("metadata")
    left = [key for key, _ in meta.pairs() if key not in _KNOWN]
    parts = word.split("_and_")
    if len(parts) == 1:
        return [_one(item, word, question, "")], left
    found: list[Asked] = []
    for part in parts[:4]:
        told = [text for one in meta.get("estimation_questions").items() if (text := one.text())]
        if part == "estimation" and told:
            found += [_one(item, part, text, f"_estimate_{at}", own=False) for at, text in enumerate(told[:9], 1)]
        else:
            suffix = {"estimation": "_estimate", "choice": "_choice", "self_categorization": "_category"}.get(part)
            found.append(_one(item, part, question, suffix or f"_{part}"[:20], own=part != "estimation"))
    found.sort(key=lambda one: one.suffix.startswith("_estimate"))  # the choice comes with the story
    for one in found[1:]:
        one.question = "" if one.question == question else one.question
    return found, left


def _one(item: Spot, word: str, question: str, suffix: str, *, own: bool = True) -> Asked:
    """One field. `own`: the item's options and scale are this field's."""
    listed = [text for one in item.get("options").items() if (text := one.said())] if own else []
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
        asked.options = [f"- {one}" for one in listed]
    if asked.answer is None and not asked.why:
        asked.why = f"its type is '{excerpt(word, 40)}', and it has no options"
    return asked


def _choose(asked: Asked, kind: str, listed: list[str]) -> None:
    folded = {" ".join(one.casefold().split()) for one in listed}
    if len(listed) < 2:
        asked.options = listed
        asked.why = f"it is a {kind} with {'one option' if listed else 'no options'}"
        return
    if len(folded) < len(listed) or len(listed) > _MOST_OPTIONS:
        asked.options = [f"- {one}" for one in listed]
        asked.why = "two of its options are the same" if len(folded) < len(listed) else f"it has {len(listed)} options"
        return
    marked = [_LETTERED.fullmatch(one) for one in listed]
    labels = [match["label"] for match in marked if match is not None]
    if len({label.casefold() for label in labels}) == len(listed):
        meanings = {match["label"]: " ".join(match["meaning"].split()) for match in marked if match is not None}
    elif any(len(one) > _LONGEST_LABEL or "\n" in one for one in listed):
        meanings = {chr(ord("A") + at): " ".join(one.split()) for at, one in enumerate(listed)}
    else:
        asked.answer = {"type": kind, "options": listed}
        asked.options = [f"- {one}" for one in listed]
        return
    asked.answer = {"type": kind, "options": meanings}
    asked.options = [f"{label}: {meaning}" for label, meaning in meanings.items()]


def _rate(asked: Asked, listed: list[str], scale: str, question: str) -> None:
    """A scale: its options are numbers in a row, or a text says from where to where it goes."""
    steps = [re.match(r"\s*([-−]?\d{1,4})\b", one) for one in listed]
    values = [int(step[1].replace("−", "-")) for step in steps if step is not None]
    ends = _span(scale) or _span(question)
    if len(values) == len(listed) > 1 and values == list(range(values[0], values[0] + len(values))):
        ends = (values[0], values[-1])
        asked.options = [", ".join(one for one in listed if not re.fullmatch(r"\s*[-−]?\d+\s*", one))]
    if scale and not any(asked.options):
        asked.options = [scale]
    asked.options = [one for one in asked.options if one]
    low, high = ends or (None, None)
    if low is None or high is None or low >= high or low != int(low) or high != int(high):
        said = f"; '{excerpt(scale, 60)}' does not say where it begins" if scale else ""
        asked.why = f"it is a scale without ends{said}"
        return
    asked.answer = {"type": "likert", "range": [int(low), int(high)]}


def _span(text: str) -> tuple[float, float | None] | None:
    """From where to where: `0 to 10`, `[0, 100]`, `(1 = not at all, 11 = very)`; the end None for `or more`."""
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
