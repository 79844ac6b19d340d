"""Sentences that say which option was chosen: `The answer to this question is no`, `I chose A`,
`No, I won't`.

Read only where nothing else in a reply is an answer. A reply that also names another option, or
repeats the form, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from karat_studies.kinds.study.format import Answered
from karat_studies.kinds.study.values import CONTRADICTORY, Value, spelled

_SENTENCE = re.compile(r"[^.!?\n]*(?:\.(?=\d)[^.!?\n]*)*[.!?\n]?")
# of several words: the question, repeated
_QUOTED = re.compile(r"[\"“][^\"“”\n]{0,400}\s[^\"“”\n]{0,400}[\"”]")
_COLON_LINE = re.compile(r":[ \t]*\n\s*")
_LONGEST = 4_000  # characters: a longer reply is weighing, not answering
_NOUN = r"(?:answer|choice|decision|selection|preference|response|pick|option)"
_VERB = (
    r"(?:choose|chose|chosen|pick|picked|select|selected|prefer|take|go with|go for|going with"
    r"|opt for|answer|say)"
)
_NOT_MEANT = re.compile(  # before the statement: someone else's, denied, or under a condition
    r"\b(?:not|never|nor|cannot|refuse|against|avoid|if|suppose|supposing|assuming|unless|whether|when|worst|worse"
    r"|wrong|bad|incorrect|least|last|second|first|other|others|another|different|most people|most"
    r"|some|people|friend"
    r"|he|she|they|his|her|their|someone|anyone|everyone|example|format|form|must|should|could|might|may|can|either"
    r"|between)\b"
    r"|(?<!\bI )(?<!\bwould )\b(?:says?|said|thinks?|believes?|argues?|claims?|recommends?|told)\b"
    r"|n['’]t\b|['’]s\s+(?:answer|choice|decision|pick)\b",
    re.IGNORECASE,
)
_HESITATES = re.compile(
    r"\b(?:depends|understand|thanks?|sorry|unsure|not sure|no idea|don['’]t know|both|neither"
    r"|either|let me|let['’]s"
    r"|wait|actually|hmm+|however|but|kidding|hold on|not answer|not choose|question|clarif\w+)\b",
    re.IGNORECASE,
)
_END = (
    r"(?=[\"'*`)\]]{0,4}\s*(?:[.,;:!)\n—–]|-\s|$|because\b|since\b|as\b|over\b|rather\b|instead\b))"
)


def stated(text: str, field: Answered, *, shown: str = "") -> Value | None:
    """The option that the sentences of a reply say was chosen, by label or in its own words; None
    if none says so.

    `shown`: the prompt, which may have a line `A: its words` for each option.

    >>> field = Answered(type="choice", options=["yes", "no"])
    >>> stated("The answer to this question is no", field)
    Value(answer='no', kind=None)
    >>> stated("Choose: no or yes", field) is None
    True
    """
    if len(text) > _LONGEST:
        return None
    return _stated(text, field.labels) or _stated(
        f"{_with_labels(text, field, shown)}\n", field.labels
    )


def _with_labels(text: str, field: Answered, shown: str) -> str:
    """The text with the label of each option in place of its own words: its meaning, or its line in
    the prompt.
    """
    line = re.compile(
        rf"^\W*(?P<label>{_any(field.labels)})\W{{0,4}}[:.)]\W*\s(?P<words>.+?)[.!]?\s*$",
        re.MULTILINE,
    )
    words = field.meanings or {match["label"]: match["words"] for match in line.finditer(shown)}
    if set(words) != set(field.labels):
        return text
    labels = {"".join(meaning.casefold().split()): label for label, meaning in words.items()}
    longest = sorted(words.values(), key=len, reverse=True)
    own = "|".join(r"\s*".join(map(re.escape, meaning.split())) for meaning in longest)
    return re.sub(
        rf"(?<!\w)(?:{own})(?!\w)",
        lambda found: labels["".join(found[0].casefold().split())],
        text,
        flags=re.IGNORECASE,
    )


def _stated(text: str, labels: Sequence[str]) -> Value | None:
    text = _COLON_LINE.sub(": ", _QUOTED.sub(" ", text))
    patterns = _patterns(tuple(labels))
    text = patterns.listing.sub(" ", text)
    chosen = set()
    for sentence in _SENTENCE.findall(text):
        statements = () if sentence.rstrip().endswith("?") else patterns.saying.finditer(sentence)
        meant = (one for one in statements if not _NOT_MEANT.search(sentence[: one.start("label")]))
        if (first := next(meant, None)) is not None:
            chosen.add(spelled(first["label"], labels))

    opening = _opening(text, labels)
    if opening is not None:
        chosen.add(opening)
    if not chosen:
        return None
    named = {spelled(match[0], labels) for match in patterns.naming.finditer(text)}
    if len(chosen) > 1 or named - chosen:
        return Value(kind=CONTRADICTORY)
    return Value(answer=chosen.pop())


def _opening(text: str, labels: Sequence[str]) -> str | None:
    """The option that a reply begins with: `No, I would not pay`, `F: You win $45`; not `A: It
    depends`.
    """
    match = _patterns(tuple(labels)).leading.match(text)
    if match is None:
        return None
    behind = text[match.end() :]
    answers_a_question = match["label"] == "A" and match["mark"] == ":"  # `Q: … A: …`
    # `First, it is rare`
    counts = match["label"].casefold() in {"first", "second", "third", "fourth", "last"}
    if answers_a_question or counts or _HESITATES.search(behind):
        return None
    return spelled(match["label"], labels)


@dataclass(frozen=True, kw_only=True)
class _Patterns:
    saying: re.Pattern[str]  # that one was chosen
    leading: re.Pattern[str]  # at the beginning of a reply
    naming: re.Pattern[str]  # letters in their own case, not `A gamble`; words that end a clause
    listing: re.Pattern[str]  # the form repeated: `A or B`, `yes, no`, `either no or yes`


@lru_cache(maxsize=512)
def _patterns(labels: tuple[str, ...]) -> _Patterns:
    """How a reply may name options with these labels."""
    label = rf"[\s\"'*`(\[]*(?P<label>{_any(labels)}){_END}"
    noun = rf"(?i:\b{_NOUN}\b[^.!?\n:]{{0,110}}?(?:\b(?:is|was|would be|will be)\b\s*:?|[:=]))"
    subject = (
        r"(?:\bI|\bI['’](?:d|ll|ve|m)|^\W{0,8})(?:\s+(?:would|will|have|rather|to|definitely"
        r"|choose to)){0,4}"
    )
    verb = rf"(?i:{subject}\s*{_VERB}\b\s*:?)"
    surely = (
        r"(?i:\s*\b(?:therefore|thus|hence|clearly|simply|still|definitely|probably|then)\b,?)?"
    )
    option = r"(?i:\s*(?:the\s+)?(?:option|programme|program|plan)\b)?"
    lead = rf"[\s\"'*`(\[]*(?P<label>{_any(labels)})[\"'*`)\]]{{0,4}}\s?(?P<mark>[.,:!\n])(?!\d)"
    letters = [label for label in labels if len(label) <= 2 and not label.islower()]
    words = [label for label in labels if label not in letters]
    parts = []
    if letters:
        parts.append(rf"(?:{_any(letters)})(?!(?<=[AI])\s+[a-z]|['’]\w)")
    if words:
        parts.append(rf"(?:{_any(words)})(?=[\"'*`)\]]{{0,4}}\s*(?:[.,;:!?)\n]|$))")
    between = r"[\"'*`)\]]{0,4}\s*(?:,\s*(?:or|and)?|/|\bor\b|\band\b)\s*[\"'*`(\[]{0,4}"
    one = rf"(?<!\w)(?:{_any(labels)})(?!\w)"
    form = rf"[^.!?\n]{{0,80}}{one}(?:{between}{one})+[^.!?\n,]{{0,80}}(?=[.!?\n]|$)"
    return _Patterns(
        saying=re.compile(rf"(?:{noun}|{verb}){surely}{option}{label}"),
        leading=re.compile(lead),
        naming=re.compile(rf"(?<!\w)(?:{'|'.join(parts)})(?!\w)"),
        listing=re.compile(form),
    )


def _any(labels: Sequence[str]) -> str:
    """Any label: one or two capitals in their own case, words in any."""
    ordered = sorted(labels, key=len, reverse=True)
    exact = []
    for label in ordered:
        if len(label) <= 2 and not label.islower():
            exact.append(re.escape(label))

    words = [re.escape(label) for label in ordered if not (len(label) <= 2 and not label.islower())]
    parts = [*exact, *([f"(?i:{'|'.join(words)})"] if words else [])]
    return rf"(?:{'|'.join(parts)})(?!\w)"
