"""A reply without what is not said to the asker: thoughts that a model writes down, and marks of a final answer."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["marked_answers", "spoken"]

_THOUGHTS = r"(?:think|thinking|thought|thoughts|reasoning|scratchpad)"
_OPENS, _CLOSES = re.compile(rf"<{_THOUGHTS}>", re.IGNORECASE), re.compile(rf"</{_THOUGHTS}>", re.IGNORECASE)
_BOXED = re.compile(r"\$?\\boxed\s?\{\s*(?:\\text(?:bf)?\s?\{)?([^{}\n]{1,200})\}\s?\}?\s?\$?")
_TAGGED = re.compile(r"<(\w{1,40})>([^<>]{1,400})</\1>")
_MOST = 50  # marks that are looked at: the last ones


def spoken(text: str) -> str:
    """What stands behind a model's thoughts. Some servers hand them on, with or without the tag that opens them.

    Thoughts that do not end are a reply that was cut off before anything was said.

    >>> spoken("<think>choice: B?</think>\\nchoice: A"), spoken("<think>Hmm, choice: B")
    ('\\nchoice: A', '')
    """
    ends = list(_CLOSES.finditer(text))
    if ends:
        behind = text[ends[-1].end() :]
        first = _OPENS.search(text)
        before = text[: first.start()] if first is not None and first.start() < ends[0].start() else ""
        text = before + behind
    opened = _OPENS.search(text)
    return text if opened is None else text[: opened.start()]


def marked_answers(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    r"""(name, answer) of `<name>A</name>`, and ("", answer) of `\boxed{A}` and `<answer>A</answer>`.

    >>> marked_answers(r"<kind>6</kind>, so $\boxed{\text{A}}$", ["kind"])
    [('kind', '6'), ('', 'A')]
    """
    found = [(match.start(), "", match[1]) for match in _BOXED.finditer(text)]
    for match in _TAGGED.finditer(text):
        name = match[1].casefold()
        if name in names or name == "answer":
            found.append((match.start(), name if name in names else "", match[2]))
    return [(name, said.strip()) for _, name, said in sorted(found)[-_MOST:]]
