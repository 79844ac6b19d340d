"""What an agent that takes its history as an argument is told of a turn."""

from __future__ import annotations

from collections.abc import Sequence

from karat.records import Reply, Sample, Turn

__all__ = ["asked", "told"]


def asked(sample: Sample, turn: Turn, *, first: bool) -> str:
    """The question; after the sample's materials where it is the first of its session."""
    return turn.question if sample.materials is None or not first else f"{sample.materials}\n\n{turn.question}"


def told(
    sample: Sample, turn: Turn, history: Sequence[tuple[Turn, Reply]], *, remembers: bool = True, bare: bool = False
) -> tuple[str, list[dict[str, str]]]:
    """The question, and the earlier questions and answers; the materials stand before the first of these questions.

    Not `remembers`: whoever is asked is not told of the history, so the materials stand before
    every question. `bare`: they are told apart.
    """
    if bare or sample.materials is None:
        past = [{"question": one.question, "answer": reply.text} for one, reply in history]
        return turn.question, past
    past = [
        {"question": asked(sample, one, first=number == 0), "answer": reply.text}
        for number, (one, reply) in enumerate(history)
    ]
    return asked(sample, turn, first=not history or not remembers), past
