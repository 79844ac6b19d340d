"""Which turns went wrong and how, how one error leads to the next, what it cost, what the file itself says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from karat import formats
from karat.analysis.ledger import quantile
from karat.analysis.model import Account
from karat.kinds.conversation.analysis.model import (
    Cost,
    Diagnosed,
    Example,
    Pace,
    Propagation,
    Quarantine,
    Verdicts,
)
from karat.kinds.conversation.analysis.rates import (
    ACCURACIES,
    Nulls,
    accuracies,
    conversation_accuracy,
    rate_of,
)
from karat.kinds.conversation.analysis.turns import Flags, Floats, Turns

__all__ = ["cost", "diagnosed", "extraction", "pace", "propagation", "quarantine", "unreadable", "verdicts"]

_EXAMPLES = 3  # of each diagnosis
_LONGEST = 160  # columns of an excerpt


def diagnosed(part: Turns) -> tuple[Diagnosed, ...]:
    """Answered turns that failed by diagnosis, the most frequent first, with the first few of each as examples."""
    slots: dict[str, list[int]] = {}
    wrong = part.value("right") == 0
    for slot in sorted(part.said):
        if part.scored[slot] and part.reached[slot] and wrong[slot]:
            slots.setdefault(part.said[slot].diagnosis, []).append(slot)
    strict = int((wrong & part.scored & part.reached & (part.value("numerical") == 1)).sum())
    failed = sum(map(len, slots.values())) + strict
    ordered = sorted(slots.items(), key=lambda item: (-len(item[1]), item[0]))
    found = [
        Diagnosed(
            label=label,
            turns=len(there),
            share=len(there) / failed,
            examples=tuple(_example(part, slot) for slot in _spread(part, there)),
        )
        for label, there in ordered
    ]
    # Only a turn that is not numerical has a diagnosis; stricter matches call others wrong, too.
    return (*found, *([Diagnosed(label="within_1_percent", turns=strict, share=strict / failed)] if strict else []))


def _spread(part: Turns, slots: Sequence[int]) -> list[int]:
    """The first few, of different conversations where there are enough."""
    seen: set[int] = set()
    first: list[int] = []
    rest: list[int] = []
    for slot in slots:
        sample = int(part.base.sample[slot % part.base.size])
        (rest if sample in seen else first).append(slot)
        seen.add(sample)
    return [*first, *rest][:_EXAMPLES]


def _example(part: Turns, slot: int) -> Example:
    base, said = part.base, part.said[slot]
    place = slot % base.size
    return Example(
        trial=said.trial,
        conversation=base.ids[int(base.sample[place])],
        repetition=slot // base.size,
        turn=int(base.number[place]),
        question=formats.excerpt(base.questions[place], _LONGEST),
        expected=None if said.expected is None else formats.excerpt(said.expected, _LONGEST),
        actual=None if said.actual is None else formats.excerpt(said.actual, _LONGEST),
        evidence=formats.excerpt(said.evidence, _LONGEST),
    )


def unreadable(part: Turns) -> dict[str, int]:
    """Turns with a side that could not be read."""
    return dict(sorted(Counter(side for slot, side in part.unreadable.items() if part.scored[slot]).items()))


def extraction(part: Turns) -> dict[str, int]:
    """How the answers were found in the replies: extractor → turns, the most frequent first."""
    found = Counter(how for slot, how in part.extractors.items() if part.scored[slot])
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def propagation(part: Turns, *, level: float) -> Propagation:
    """Over the turns that were answered: of those that never came, nothing is known but that."""
    right = np.where(part.scored, part.value("right"), np.nan)
    before = _before(part, right)
    wrong = right == 0
    proved, carried = np.zeros((2, right.size), dtype=bool)
    proved[[slot for slot, said in part.said.items() if said.diagnosis == "propagated"]] = True
    carried[[slot for slot, said in part.said.items() if said.carried]] = True
    first: dict[int, int] = {}
    for conversation, number in zip(part.conversation[wrong].tolist(), part.number[wrong].tolist(), strict=True):
        first[conversation] = min(first.get(conversation, number), number)
    whole = np.setdiff1d(part.conversation[~np.isnan(right)], part.conversation[part.counted & ~part.scored])
    name = "accuracy_after_right", "accuracy_after_wrong", "accuracy_had_earlier_been_right"
    return Propagation(
        first_wrong={str(number): count for number, count in sorted(Counter(first.values()).items())},
        never_wrong=int(np.setdiff1d(whole, list(first)).size),
        after_right=rate_of(np.where(before == 1, right, np.nan), part, name=name[0], metric="right", level=level),
        after_wrong=rate_of(np.where(before == 0, right, np.nan), part, name=name[1], metric="right", level=level),
        cascades=int((wrong & (before == 0)).sum()),
        propagated=int((proved & wrong).sum()),
        had_earlier_been_right=rate_of(
            np.where(carried & wrong, 1.0, part.rate("right")), part, name=name[2], metric="right", level=level
        ),
    )


def _before(part: Turns, right: Floats) -> Floats:
    """The number of the turn before, in the same conversation; NaN for first turns."""
    earlier = np.concatenate(([np.nan], right[:-1])) if right.size else right
    return np.where(part.number > 0, earlier, np.nan)


def cost(part: Turns, account: Account, right_conversations: int) -> Cost:
    """What was spent on all conversations, over what came out right."""
    right_turns = int(np.nansum(part.rate("right")))
    told = account.tokens
    known = [count for count in (told.input, told.output) if count is not None]
    tokens = max(sum(known) - part.scoring_tokens, 0) if known else None
    spent, unknown = account.cost.agent.known, account.cost.agent.unknown
    dollars = None if unknown and not spent else spent
    return Cost(
        right_conversations=right_conversations,
        right_turns=right_turns,
        tokens=tokens,
        tokens_unknown=told.unknown,
        dollars=dollars,
        dollars_unknown=unknown,
        tokens_per_right_conversation=_each(tokens, right_conversations),
        tokens_per_right_turn=_each(tokens, right_turns),
        dollars_per_right_conversation=_each(dollars, right_conversations),
        dollars_per_right_turn=_each(dollars, right_turns),
    )


def _each(amount: float | None, count: int) -> float | None:
    return amount / count if amount is not None and count else None


def pace(part: Turns) -> Pace:
    """Time and tokens of the answered turns."""
    times = np.sort(part.milliseconds[~np.isnan(part.milliseconds)]).tolist()
    prompt, completion = part.prompt_tokens, part.completion_tokens
    metered = ~np.isnan(prompt) | ~np.isnan(completion)
    both = (np.nan_to_num(prompt) + np.nan_to_num(completion))[metered]
    return Pace(
        milliseconds_mean=sum(times) / len(times) if times else None,
        milliseconds_median=quantile(times, 0.5),
        milliseconds_p95=quantile(times, 0.95),
        tokens_mean=_mean(both),
        prompt_tokens_mean=_mean(prompt[~np.isnan(prompt)]),
        completion_tokens_mean=_mean(completion[~np.isnan(completion)]),
        timed=len(times),
        metered=int(metered.sum()),
    )


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if values.size else None


def quarantine(part: Turns, nulls: Nulls, *, level: float) -> Quarantine | None:
    """The accuracies without the turns that a quarantine file names; None without one."""
    told = part.base.quarantined
    if not any(one is not None for one in told):
        return None
    out: Flags = np.tile(np.array([bool(one) for one in told], dtype=bool), part.repetitions)
    reasons = Counter(
        reason for slot in np.flatnonzero(out & part.counted).tolist() for reason in told[slot % part.base.size] or ()
    )
    return Quarantine(
        turns=int((out & part.counted).sum()),
        reasons=dict(sorted(reasons.items())),
        accuracies=accuracies(part, nulls, kept=~out, level=level),
        conversation_accuracy=conversation_accuracy(part, nulls, kept=~out, level=level),
    )


def verdicts(part: Turns) -> Verdicts | None:
    """The file's own verdicts beside ours; None where it has none."""
    theirs = part.verdicts
    there = ~np.isnan(theirs) & part.scored
    if not there.any():
        return None
    agreement: dict[str, float | None] = {}
    only_theirs, only_ours = {}, {}
    for metric in (*ACCURACIES, "scale_and_sign"):
        ours = part.value(metric)
        both = there & ~np.isnan(ours)
        agreement[metric] = _mean((ours[both] == theirs[both]).astype(np.float64))
        only_theirs[metric] = int((theirs[both] > ours[both]).sum())
        only_ours[metric] = int((theirs[both] < ours[both]).sum())
    return Verdicts(
        n=int(there.sum()),
        right=int(theirs[there].sum()),
        agreement=agreement,
        only_theirs=only_theirs,
        only_ours=only_ours,
    )
