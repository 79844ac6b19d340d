"""Contradictions in a file of conversations: the rules of `karat_conversations.numeric.lint`, turn
by turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from karat.kinds import Doubted, Linted, sample_digest
from karat_conversations.kinds.conversation.drafts import Draft
from karat_conversations.kinds.conversation.reading import Drafts
from karat_conversations.numeric.lint import REASONS, Doubt, GoldenTurn, doubts

_MEANINGS = {
    **REASONS,
    "contradicts": (
        "another conversation asks the same about the same document and has another golden answer"
    ),
    "turn_count": "the number of turns in the file is not the actual one",
}


def lint(path: Path, drafts: Drafts) -> Linted:
    """The turns with findings, in file order."""
    doubted: list[Doubted] = []
    seen = _Seen()
    for draft in drafts.drafts:
        turns = []
        for turn in draft.turns:
            # What can contradict itself. An answer of TAT-QA may be words, and is printed as karat
            # joins it and its scale.
            if "answer_type" in turn.detail:
                golden = GoldenTurn(question=turn.question)
            else:
                golden = GoldenTurn(
                    question=turn.question,
                    executed=turn.executed,
                    printed=turn.printed,
                    program=turn.program,
                )

            turns.append(golden)

        stated = draft.features.get("num_dialogue_turns")
        there = len(draft.turns)
        if stated not in (None, there):
            counts = Doubt("turn_count", {"stated": stated, "there": there})
            doubted.append(_doubted(draft.id, None, [counts]))

        contradictions = seen.contradictions(draft)
        text = f"{draft.pre_text}\n{draft.post_text}"
        for index, of_turn in enumerate(doubts(turns, text=text, table=draft.table)):
            other = contradictions[index]
            reasons = [*of_turn, *([other] if other is not None else [])]
            if reasons:
                doubted.append(_doubted(draft.id, index, reasons))

    return Linted(
        kind="conversation",
        path=path,
        sha256=drafts.sha256,
        samples=len(drafts.drafts),
        turns=sum(len(draft.turns) for draft in drafts.drafts),
        doubted=tuple(doubted),
        meanings=_MEANINGS,
        faults=tuple(drafts.faults),
    )


class _Seen:
    """The golden answers so far, by document and questions."""

    def __init__(self) -> None:
        self._answers: dict[str, tuple[str, int, Any]] = {}

    def contradictions(self, draft: Draft) -> list[Doubt | None]:
        """For each turn: the earlier conversation that asked the same of the same page, and has
        another answer.
        """
        page = sample_digest([draft.pre_text, draft.post_text, draft.table])
        doubted: list[Doubt | None] = []
        asked = page
        for index, turn in enumerate(draft.turns):
            asked = sample_digest([asked, " ".join(turn.question.casefold().split())])
            name, place, answer = self._answers.setdefault(asked, (draft.id, index, turn.executed))
            if name == draft.id or answer == turn.executed:
                doubted.append(None)
            else:
                evidence = {"executed": turn.executed, "there": answer, "id": name, "turn": place}
                doubted.append(Doubt("contradicts", evidence))

        return doubted


def _doubted(name: str, turn: int | None, reasons: Sequence[Doubt]) -> Doubted:
    return Doubted(
        id=name,
        turn=turn,
        reasons=tuple(doubt.reason for doubt in reasons),
        evidence={doubt.reason: doubt.evidence for doubt in reasons},
    )
