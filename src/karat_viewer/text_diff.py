"""Compares an answer with the golden answer, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from karat import formats

MOST_WORDS = 1_500
"""Limit per text: the time grows with its square."""

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_RUN = 2  # words in a row needed for a match


def difference(golden: str, answer: str) -> tuple[list[tuple[str, str]], str]:
    """What turns the golden answer into the answer (del, ins, same), and a note if some was not
    compared.

    >>> difference("use --resume", "just use --resume")
    ([('ins', 'just '), ('same', 'use --resume')], '')
    """
    old = _WORDS.findall(golden[: 20 * MOST_WORDS])
    new = _WORDS.findall(answer[: 20 * MOST_WORDS])
    # autojunk skips words that are frequent in a long text: without it, some texts would take
    # minutes.
    matcher = SequenceMatcher(None, old[:MOST_WORDS], new[:MOST_WORDS])
    pieces: list[tuple[str, str]] = []
    gone, come = "", ""
    ends = min(len(old), MOST_WORDS), min(len(new), MOST_WORDS)
    a = b = 0
    for block in matcher.get_matching_blocks():
        gone += "".join(old[a : block.a])
        come += "".join(new[b : block.b])
        a = block.a + block.size
        b = block.b + block.size
        same = "".join(new[block.b : b])
        if block.size and (gone or come) and len(same.split()) < _RUN and (a, b) != ends:
            gone, come = gone + same, come + same  # single words in common mean nothing
            continue

        pieces += [
            (kind, words) for kind, words in (("del", gone), ("ins", come), ("same", same)) if words
        ]
        gone = come = ""

    left = max(len(old), len(new)) > MOST_WORDS or max(len(golden), len(answer)) > 20 * MOST_WORDS
    return (
        pieces,
        f"Compared: the first {formats.count(MOST_WORDS)} words and signs of each." if left else "",
    )
