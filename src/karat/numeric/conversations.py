"""Where a conversation breaks, and what its earlier turns do to the later ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["ConversationFacts", "Propagation", "conversation_facts", "propagation"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationFacts:
    """What one conversation shows, from which of its turns were right."""

    turns: int
    right: int
    first_wrong_turn: int | None  # zero-based; None: every turn is right
    cascade: tuple[int, ...]  # the turns that are wrong directly after a wrong turn, zero-based
    after_right: tuple[int, int]  # right turns, and turns, whose previous turn was right
    after_wrong: tuple[int, int]  # right turns, and turns, whose previous turn was wrong
    would_be_right: int | None  # right turns had the earlier ones been right, by replay; None: not replayed


@dataclass(frozen=True, kw_only=True, slots=True)
class Propagation:
    """What earlier turns do to later ones, over all turns of several conversations. NaN where there is no such turn."""

    turns: int
    accuracy: float
    counterfactual_accuracy: float  # had the earlier turns been right; NaN also where nothing was replayed
    accuracy_after_right: float
    after_right: int  # turns whose previous turn was right
    accuracy_after_wrong: float
    after_wrong: int
    cascades: int  # turns that are wrong directly after a wrong turn
    broken_conversations: int  # with at least one wrong turn
    first_wrong_turns: tuple[int, ...]  # how many conversations break first at turn 0, 1, …


def conversation_facts(right: Sequence[bool], would_be_right: Sequence[bool] | None = None) -> ConversationFacts:
    """What one conversation shows. `would_be_right` is `would_be_right` of each turn.

    >>> found = conversation_facts([True, False, False, True], [True, False, True, True])
    >>> found.first_wrong_turn, found.cascade, found.after_wrong, found.would_be_right
    (1, (2,), (1, 2), 3)
    """
    pairs = list(pairwise(right))
    return ConversationFacts(
        turns=len(right),
        right=sum(map(bool, right)),
        first_wrong_turn=next((at for at, each in enumerate(right) if not each), None),
        cascade=tuple(at for at, (before, now) in enumerate(pairs, 1) if not before and not now),
        after_right=_given(pairs, True),
        after_wrong=_given(pairs, False),
        would_be_right=None if would_be_right is None else sum(map(bool, would_be_right)),
    )


def _given(pairs: Iterable[tuple[bool, bool]], previous: bool) -> tuple[int, int]:
    now = [bool(now) for before, now in pairs if bool(before) is previous]
    return sum(now), len(now)


def propagation(conversations: Iterable[ConversationFacts]) -> Propagation:
    """What earlier turns do to later ones, each turn counted once.

    >>> found = propagation([conversation_facts([True, False, False]), conversation_facts([True, True])])
    >>> found.accuracy, found.accuracy_after_right, found.accuracy_after_wrong, found.first_wrong_turns
    (0.6, 0.5, 0.0, (0, 1))
    """
    each = list(conversations)
    turns = sum(facts.turns for facts in each)
    replayed = [facts.would_be_right for facts in each if facts.would_be_right is not None]
    broken = [facts.first_wrong_turn for facts in each if facts.first_wrong_turn is not None]
    after_right, after_wrong = (
        (sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs))
        for pairs in ([facts.after_right for facts in each], [facts.after_wrong for facts in each])
    )
    return Propagation(
        turns=turns,
        accuracy=_share(sum(facts.right for facts in each), turns),
        counterfactual_accuracy=_share(sum(replayed), turns) if len(replayed) == len(each) else math.nan,
        accuracy_after_right=_share(*after_right),
        after_right=after_right[1],
        accuracy_after_wrong=_share(*after_wrong),
        after_wrong=after_wrong[1],
        cascades=sum(len(facts.cascade) for facts in each),
        broken_conversations=len(broken),
        first_wrong_turns=tuple(broken.count(at) for at in range(max(broken, default=-1) + 1)),
    )


def _share(part: int, of: int) -> float:
    return part / of if of else math.nan
