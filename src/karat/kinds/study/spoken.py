"""A reply without what is not said to the asker: thoughts that a model writes down, and marks of a final answer."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["marked_answers", "spoken"]

_THOUGHTS = r"(?:think|thinking|thought|thoughts|reasoning|scratchpad)"
_OPENS = re.compile(
    rf"<(?:\w{{1,20}}:)?{_THOUGHTS}(?:\s[^<>\n]{{0,80}})?>|\[{_THOUGHTS}\]|◁think▷|<\|channel\|>\s{{0,4}}analysis\b",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    rf"</(?:\w{{1,20}}:)?{_THOUGHTS}\s{{0,4}}>|\[/{_THOUGHTS}\]|◁/think▷"
    r"|<\|channel\|>\s{0,4}final\s{0,4}<\|message\|>",
    re.IGNORECASE,
)
_BOXED = re.compile(r"\$?\\boxed\s?\{\s*(?:\\text(?:bf)?\s?\{)?([^{}\n]{1,200})\}\s?\}?\s?\$?")
_DENIED = re.compile(r"(?:\b(?:not|never|nor)\b|n['’]t\b)[^\n.,;:!?]*$", re.IGNORECASE)  # `not \boxed{A}`
_TAGGED = re.compile(r"<(\w{1,40})>([^<>]{1,400})</\1>")
_MOST = 50  # marks that are looked at: the last ones


def spoken(text: str) -> str:
    """What stands behind a model's thoughts. Some servers hand them on, with or without the tag that opens them.

    Thoughts that do not end are a reply that was cut off before anything was said.

    >>> spoken("<think>choice: B?</think>\\nchoice: A"), spoken("<think>Hmm, choice: B")
    ('\\nchoice: A', '')
    """
    said: list[str] = []
    at, thinks = 0, False  # a closing mark whose opening one was kept back ends thoughts, too
    for mark in sorted([*_OPENS.finditer(text), *_CLOSES.finditer(text)], key=re.Match.start):
        opens = _OPENS.fullmatch(mark[0]) is not None
        if opens and not thinks:
            said.append(text[at : mark.start()])
        at, thinks = mark.end(), opens
    return "".join(said if thinks else [*said, text[at:]])


def marked_answers(text: str, names: Collection[str]) -> list[tuple[str, str]]:
    r"""(name, answer) of `<name>A</name>`, and ("", answer) of `\boxed{A}` and `<answer>A</answer>`.

    >>> marked_answers(r"<kind>6</kind>, so $\boxed{\text{A}}$", ["kind"])
    [('kind', '6'), ('', 'A')]
    """
    boxes = [(match, text[max(0, match.start() - 40) : match.start()]) for match in _BOXED.finditer(text)]
    found = [(match.start(), "", match[1]) for match, before in boxes if not _DENIED.search(before)]
    for match in _TAGGED.finditer(text):
        name = match[1].casefold()
        if name in names or name == "answer":
            found.append((match.start(), name if name in names else "", match[2]))
    return [(name, said.strip()) for _, name, said in sorted(found)[-_MOST:]]
