"""Scripted players: a sender trusts with a part of the money, a receiver sends back a share of what has arrived."""

from __future__ import annotations

import random
import re


def answer(question: str, system_prompt: str, seed: int) -> str:
    """`system_prompt` names the share of what has arrived that a receiver sends back."""
    dice = random.Random(seed)
    came = re.search(r"has sent \$(\d+)", question)
    if came is None:
        return f"sent: {dice.randint(0, 10)}"
    share = float(system_prompt.rpartition(" ")[2])
    return f"back: {3 * int(came[1]) * share}"
