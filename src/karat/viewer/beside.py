"""Texts side by side: an answer against the golden one word by word, a program against the golden one step by step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from karat import formats

__all__ = ["MOST_WORDS", "aligned", "difference", "steps"]

MOST_WORDS = 1_500
"""Of one text: comparing takes time with the square of it."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_STEP = re.compile(r"\b[A-Za-z_]\w*+\([^()]*+\)")
_MOST_STEPS = 60
_RUN = 2  # words in a row that make a match


def difference(golden: str, answer: str) -> tuple[list[tuple[str, str]], str]:
    """What of the golden answer goes (del), comes (ins) and stays (same) to make the answer; and what was not compared.

    >>> difference("use --resume", "just use --resume")
    ([('ins', 'just '), ('same', 'use --resume')], '')
    """
    old, new = _WORDS.findall(golden[: 20 * MOST_WORDS]), _WORDS.findall(answer[: 20 * MOST_WORDS])
    # It passes over what comes again and again in a long text: with that, some texts would take minutes.
    matcher = SequenceMatcher(None, old[:MOST_WORDS], new[:MOST_WORDS])
    found: list[tuple[str, str]] = []
    gone, come = "", ""
    ends = min(len(old), MOST_WORDS), min(len(new), MOST_WORDS)
    a = b = 0
    for block in matcher.get_matching_blocks():
        gone += "".join(old[a : block.a])
        come += "".join(new[b : block.b])
        a, b = block.a + block.size, block.b + block.size
        same = "".join(new[block.b : b])
        if block.size and (gone or come) and len(same.split()) < _RUN and (a, b) != ends:
            gone, come = gone + same, come + same  # single words that both happen to use say nothing
            continue
        found += [(kind, words) for kind, words in (("del", gone), ("ins", come), ("same", same)) if words]
        gone = come = ""
    left = max(len(old), len(new)) > MOST_WORDS or max(len(golden), len(answer)) > 20 * MOST_WORDS
    return found, f"Compared: the first {formats.count(MOST_WORDS)} words and signs of each." if left else ""


def steps(program: str | None) -> list[str]:
    """A program, step by step.

    >>> steps("subtract(5, 3), divide(#0, 3)"), steps("412.5"), steps(None)
    (['subtract(5, 3)', 'divide(#0, 3)'], ['412.5'], [])
    """
    if not program:
        return []
    short = program[:20_000]
    return (_STEP.findall(short) or [short])[:_MOST_STEPS]


def aligned(golden: Sequence[str], program: Sequence[str]) -> list[tuple[str, bool]]:
    """Each step of a program, and whether the golden one has it at this place.

    >>> aligned(["subtract(5, 3)", "divide(#0, 3)"], ["subtract(5, 3)", "divide(#0, 5)"])
    [('subtract(5, 3)', True), ('divide(#0, 5)', False)]
    """
    same: set[int] = set()
    old, new = ([step.replace(" ", "") for step in one] for one in (golden, program))
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        same.update(range(block.b, block.b + block.size))
    return [(step, at in same) for at, step in enumerate(program)]
