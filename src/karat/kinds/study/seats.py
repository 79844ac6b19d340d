"""What the engine asks of a study's samples: what a turn asks of whom, and how a system prompt reads for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.kinds.study.personas import persona
from karat.kinds.study.samples import fields_of, question_of, said_in
from karat.records import Condition, Sample

__all__ = ["is_stopped", "profile_of", "prompt_for", "turn_question"]


def turn_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
    """What a participant is asked in a turn (from 0); None: nothing any more, because their answers cannot be read."""
    return None if is_stopped(sample, turn, replies) else question_of(sample, turn, replies)


def is_stopped(sample: Sample, turn: int, replies: Sequence[str | None]) -> bool:
    """Whether who sits at a turn is asked no more: `stop_after_unread` times in a row nothing could be read.

    Depends on their own replies alone, and once stopped they stay so. A turn that asks for nothing, or that
    has no reply, counts neither way.
    """
    most: int | None = sample.detail.get("stop_after_unread")
    if most is None:
        return False
    seat, unread = sample.turns[turn].seat, 0
    for at in range(turn - 1, -1, -1):
        said = replies[at]
        if sample.turns[at].seat != seat or said is None:
            continue
        read = said_in(sample, at, said)
        if read.values:
            return False
        unread += not read.complete(fields_of(sample, at))
        if unread == most:
            return True
    return False


def profile_of(sample: Sample, seat: int | None) -> Mapping[str, Any]:
    """Who sits there: attribute → value."""
    who: Mapping[str, Any] = sample.detail if seat is None else sample.detail["members"][seat]
    found: Mapping[str, Any] = who["profile"]
    return found


def prompt_for(condition: Condition, sample: Sample, seat: int | None) -> str | None:
    """The condition's system prompt as one participant reads it. Nothing is missing: `persona_names` was asked."""
    prompt = condition.system_prompt
    return prompt if prompt is None or "study" not in sample.detail else persona(prompt, profile_of(sample, seat))
