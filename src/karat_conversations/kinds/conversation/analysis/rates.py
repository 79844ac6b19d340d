"""Rates over turns with intervals clustered by conversation; errors and how they propagate; cost,
pace, verdicts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from karat import formats
from karat.analysis.estimates import estimated
from karat.analysis.model import Account
from karat.analysis.numbers import known, quantile
from karat.stats import ClusteredRatio, Sums, ratio_gap, ratio_interval
from karat_conversations.kinds.conversation.analysis.model import (
    Cost,
    Diagnosed,
    Example,
    Feature,
    Pace,
    Propagation,
    Quarantine,
    Rate,
    Rung,
    Shares,
    Stratum,
    Verdicts,
)
from karat_conversations.kinds.conversation.analysis.turns import (
    WITHIN,
    Flags,
    Floats,
    Ints,
    Turns,
)

ACCURACIES = {
    "numerical": "numerical_accuracy",
    "soft": "soft_match_accuracy",
    "unit_agnostic": "unit_agnostic_accuracy",
    "sign_agnostic": "sign_agnostic_accuracy",
    "general": "general_accuracy",
    "exact": "exact_accuracy",
    "declared": "declared_accuracy",
    "right": "right_accuracy",  # by the match that was chosen, or the same yes or no
}
"""Metric → its name in `statistics.json`."""

_READINGS = (
    "logic_recall",
    "logic_precision",
    "logic_f1",
    "order_score",
    "operand_recall",
    "operand_precision",
    "partial_credit",
    "program_match",
    "execution_match",
    "self_consistent",
)

_RUNGS = {
    "exact": "nothing: equal to five decimals",
    "numerical": "1 %, or 0.001",
    "declared": "a unit that the agent declared",
    "unit_agnostic": "any factor 100, named or not",
    "sign_agnostic": "the sign",
    "scale_and_sign": "factor 100 and sign together",
}


Nulls = Mapping[str, Mapping[str, Floats]]
"""The scores of trivial answerers: name → metric → 1, 0 or NaN for each declared turn, once."""


def accuracies(part: Turns, nulls: Nulls, kept: Flags | bool = True) -> tuple[Rate, ...]:
    """The accuracy by each match, and that of trivial answerers over the same turns, with the same
    weights.

    `kept`: the turns to include, of those that count.
    """
    rates = []
    for metric, name in ACCURACIES.items():
        values = np.where(kept, part.rate(metric), np.nan)
        there = ~np.isnan(values)
        null: Shares = {}
        for answerer, metrics in nulls.items():
            theirs = np.where(there, np.tile(metrics[metric], part.repetitions), np.nan)
            null[answerer] = known(_sums(theirs, part).ratio)

        rates.append(rate_of(values, part, name=name, metric=metric, nulls=null))

    return tuple(rates)


def rate_of(
    values: Floats,
    part: Turns,
    *,
    name: str,
    metric: str,
    nulls: Shares | None = None,
    samples: Ints | None = None,
) -> Rate:
    """A rate, or a mean, over what has a value.

    `samples`: the sample of each value; None: the values are of turns.
    """
    ratio = _ratio(values, part, samples)
    there = values[~np.isnan(values)]
    if there.size:
        total = float(there.sum())
    else:
        total = None

    return Rate(
        name=name,
        metric=metric,
        estimate=estimated(ratio.interval, 0.0, 1.0),
        n=there.size,
        total=total,
        naive_se=known(ratio.naive_se),
        design_effect=known(ratio.design_effect),
        nulls=nulls or {},
    )


def conversation_accuracy(part: Turns, nulls: Nulls, kept: Flags | bool = True) -> Rate:
    """The share of conversations with every turn right; one with an unscored turn is not.

    Of conversations that have a turn with a number.
    """
    wholly = _wholly(part.rate("right"), part, kept, part.unscored)
    samples = np.arange(wholly.size) % len(part.base.ids)
    null: Shares = {}
    for answerer, metrics in nulls.items():
        right = np.where(part.counted, np.tile(metrics["right"], part.repetitions), np.nan)
        theirs = _wholly(right, part, kept, part.counted & ~part.asked)
        null[answerer] = known(_sums(theirs, part, samples).ratio)

    name = "conversation_accuracy"
    return rate_of(wholly, part, name=name, metric=name, nulls=null, samples=samples)


def _wholly(right: Floats, part: Turns, kept: Flags | bool, unscored: Flags) -> Floats:
    """Per conversation and repetition: whether every turn is right; NaN without turns."""
    there = ~np.isnan(right) & kept
    size = len(part.base.ids) * part.repetitions
    turns = np.bincount(part.conversation[there], minlength=size)
    wins = np.bincount(part.conversation[there], weights=right[there], minlength=size)
    unknown = np.bincount(part.conversation[unscored & kept], minlength=size)
    return np.where(turns > 0, ((wins == turns) & (unknown == 0)).astype(np.float64), np.nan)


def reasoning(part: Turns) -> tuple[Rate, ...]:
    """The quality of the programs, over the turns where it is known; the `step` metrics after the
    `chain` ones.
    """
    rates = []
    for prefix in ("", "step_"):
        for reading in _READINGS:
            values = part.value(prefix + reading)
            if not np.isnan(values).all():
                name = f"avg_{prefix}{reading}"
                rates.append(rate_of(values, part, name=name, metric=prefix + reading))

    return tuple(rates)


def ladder(part: Turns) -> tuple[Rung, ...]:
    """From the strictest match to the most lenient one."""
    numerical = part.rate("numerical")
    rungs = []
    for metric, forgives in _RUNGS.items():
        values = part.rate(metric)
        there = ~np.isnan(values) & ~np.isnan(numerical)
        right = int(values[there].sum())
        sums = _sums(values, part)
        rungs.append(
            Rung(
                metric=metric,
                forgives=forgives,
                rate=known(sums.ratio),
                right=right,
                forgiven=right - int(numerical[there].sum()),
                n=int(there.sum()),
            )
        )

    return tuple(rungs)


def strata(part: Turns, keys: Floats) -> tuple[Stratum, ...]:
    """Accuracy for each whole number in `keys` (one per slot; NaN: none)."""
    right = part.rate("right")
    there = ~np.isnan(keys) & ~np.isnan(right)
    return tuple(
        _stratum(part, np.where(there & (keys == key), right, np.nan), str(int(key)))
        for key in np.unique(keys[there]).tolist()
    )


def _stratum(part: Turns, values: Floats, key: str) -> Stratum:
    there = ~np.isnan(values)
    golden = np.tile(part.base.operations, part.repetitions)
    attempted = part.value("agent_operations")

    def mean(operations: Floats) -> float | None:
        return known(_sums(np.where(there, operations, np.nan), part).ratio)

    return Stratum(
        key=key,
        estimate=estimated(_ratio(values, part).interval, 0.0, 1.0),
        n=int(there.sum()),
        right=int(values[there].sum()),
        golden_operations=mean(golden),
        agent_operations=mean(attempted),
    )


def features(part: Turns) -> tuple[Feature, ...]:
    """By every feature of the dataset that has few values: yes or no, whole numbers, short
    texts.
    """
    found = []
    for name in {name: None for metadata in part.base.metadata for name in metadata}:
        given = [metadata.get(name) for metadata in part.base.metadata]
        values = {value for value in given if isinstance(value, (bool, int, str))}
        kinds = {type(value) for value in values}
        if not values or len(values) > _MOST_VALUES or len(kinds) > 1:
            continue
        ordered: list[Any] = sorted(values)
        place = {value: number for number, value in enumerate(ordered)}
        codes = np.array(
            [place.get(value, -1) if isinstance(value, (bool, int, str)) else -1 for value in given]
        )[part.sample]
        right = part.rate("right")
        right = np.where(codes < 0, np.nan, right)
        parts = [np.where(codes == number, right, np.nan) for number in range(len(ordered))]
        by_value = []
        for value, column in zip(ordered, parts, strict=True):
            key = str(value)
            if isinstance(value, bool):
                key = key.lower()
            by_value.append(_stratum(part, column, key))

        correlation = None
        if kinds <= {bool, int}:
            numbers = np.array([float(value) for value in ordered])
            # Pearson's, weighted, over the turns that have both
            second = numbers[codes]
            there = ~np.isnan(right) & ~np.isnan(second)
            weights = part.base.weights[part.sample][there]
            if weights.sum() > 0:
                x, y = (
                    column[there] - np.average(column[there], weights=weights)
                    for column in (right, second)
                )
                # Sums of products: the last digit of matrix products differs between processors
                scale = math.sqrt(float((weights * x**2).sum()) * float((weights * y**2).sum()))
                if scale > 1e-12:
                    correlation = known(float((weights * (x * y)).sum()) / scale)

        difference = None
        if kinds == {bool} and len(parts) == 2:
            # The last group's rate minus the first one's.
            first, second = (_sums(column, part) for column in parts)
            gap = ratio_gap(first, second, level=part.level)
            if not math.isnan(gap.se):
                difference = estimated(gap, -1.0, 1.0)

        found.append(
            Feature(
                name=name,
                strata=tuple(stratum for stratum in by_value if stratum.n),
                correlation=correlation,
                difference=difference,
            )
        )

    return tuple(found)


_MOST_VALUES = 12  # of a feature; not an id or free text


def _ratio(values: Floats, part: Turns, samples: Ints | None = None) -> ClusteredRatio:
    there = values[~np.isnan(values)]
    is_share = bool(np.isin(there, (0.0, 1.0)).all())
    return ratio_interval(_sums(values, part, samples), share=is_share, level=part.level)


def _sums(values: Floats, part: Turns, samples: Ints | None = None) -> Sums:
    weights = part.base.weights
    there = ~np.isnan(values)
    samples = (part.sample if samples is None else samples)[there]
    counts = np.bincount(samples, minlength=weights.size).astype(np.float64)
    totals, squares = (
        np.bincount(samples, weights=parts[there], minlength=weights.size).astype(np.float64)
        for parts in (values, values**2)
    )
    return Sums(totals=totals, counts=counts, squares=squares, weights=weights)


_EXAMPLES = 3  # of each diagnosis
_LONGEST = 160  # columns of an excerpt


def diagnosed(part: Turns) -> tuple[Diagnosed, ...]:
    """Answered turns that failed, by diagnosis, the most frequent first, with the first few of each
    as examples.
    """
    slots: dict[str, list[int]] = {}
    wrong = part.value("right") == 0
    for slot in sorted(part.failed_turns):
        if part.scored[slot] and part.reached[slot] and wrong[slot]:
            slots.setdefault(part.failed_turns[slot].diagnosis, []).append(slot)

    strict = int((wrong & part.scored & part.reached & (part.value("numerical") == 1)).sum())
    failed = sum(map(len, slots.values())) + strict
    ordered = sorted(slots.items(), key=lambda item: (-len(item[1]), item[0]))
    diagnoses = []
    for label, there in ordered:
        # The first few examples, of different conversations if there are enough
        examples = []
        seen: set[int] = set()
        first: list[int] = []
        others: list[int] = []
        for candidate in there:
            sample = int(part.base.sample[candidate % part.base.size])
            (others if sample in seen else first).append(candidate)
            seen.add(sample)

        for slot in [*first, *others][:_EXAMPLES]:
            base = part.base
            failed_turn = part.failed_turns[slot]
            place = slot % base.size
            if failed_turn.expected is None:
                expected = None
            else:
                expected = formats.excerpt(failed_turn.expected, _LONGEST)

            if failed_turn.actual is None:
                actual = None
            else:
                actual = formats.excerpt(failed_turn.actual, _LONGEST)

            examples.append(
                Example(
                    trial=failed_turn.trial,
                    conversation=base.ids[int(base.sample[place])],
                    repetition=slot // base.size,
                    turn=int(base.number[place]),
                    question=formats.excerpt(base.turns[place].question, _LONGEST),
                    expected=expected,
                    actual=actual,
                    evidence=formats.excerpt(failed_turn.evidence, _LONGEST),
                )
            )

        diagnoses.append(
            Diagnosed(
                label=label,
                turns=len(there),
                share=len(there) / failed,
                examples=tuple(examples),
            )
        )

    # Only a turn that is not numerical has a diagnosis; stricter matches count others as wrong,
    # too.
    return (
        *diagnoses,
        *([Diagnosed(label=WITHIN, turns=strict, share=strict / failed)] if strict else []),
    )


def counted(part: Turns, kinds: Mapping[int, str]) -> dict[str, int]:
    """How many scored turns there are of each kind, by its name. `kinds`: of slots."""
    return dict(sorted(Counter(kind for slot, kind in kinds.items() if part.scored[slot]).items()))


def propagation(part: Turns) -> Propagation:
    """Over the answered turns: nothing else is known about the others."""
    right = np.where(part.scored, part.value("right"), np.nan)
    # The value of the turn before, in the same conversation; NaN for first turns
    if right.size:
        earlier = np.concatenate(([np.nan], right[:-1]))
    else:
        earlier = right

    before = np.where(part.number > 0, earlier, np.nan)
    wrong = right == 0
    proved, carried = np.zeros((2, right.size), dtype=bool)
    proved[
        [slot for slot, failed in part.failed_turns.items() if failed.diagnosis == "propagated"]
    ] = True
    carried[[slot for slot, failed in part.failed_turns.items() if failed.carried]] = True
    first: dict[int, int] = {}
    for conversation, number in zip(
        part.conversation[wrong].tolist(), part.number[wrong].tolist(), strict=True
    ):
        first[conversation] = min(first.get(conversation, number), number)

    unknown = (part.counted & ~part.scored) | part.unscored
    complete = np.setdiff1d(part.conversation[~np.isnan(right)], part.conversation[unknown])
    name = "accuracy_after_right", "accuracy_after_wrong", "accuracy_had_earlier_been_right"
    return Propagation(
        first_wrong={
            str(number): count for number, count in sorted(Counter(first.values()).items())
        },
        never_wrong=int(np.setdiff1d(complete, list(first)).size),
        after_right=rate_of(
            np.where(before == 1, right, np.nan),
            part,
            name=name[0],
            metric="right",
        ),
        after_wrong=rate_of(
            np.where(before == 0, right, np.nan),
            part,
            name=name[1],
            metric="right",
        ),
        cascades=int((wrong & (before == 0)).sum()),
        propagated=int((proved & wrong).sum()),
        had_earlier_been_right=rate_of(
            np.where(carried & wrong, 1.0, part.rate("right")),
            part,
            name=name[2],
            metric="right",
        ),
    )


def cost(part: Turns, account: Account, right_conversations: int) -> Cost:
    """The cost of all conversations, divided by the right answers."""
    right_turns = int(np.nansum(part.rate("right")))
    usage = account.tokens
    known = [count for count in (usage.input, usage.output) if count is not None]
    if known:
        tokens = max(sum(known) - part.scoring_tokens, 0)
    else:
        tokens = None

    spent = account.cost.agent.known
    unknown = account.cost.agent.unknown
    dollars = None if unknown and not spent else spent
    return Cost(
        right_conversations=right_conversations,
        right_turns=right_turns,
        tokens=tokens,
        tokens_unknown=usage.unknown,
        dollars=dollars,
        dollars_unknown=unknown,
        tokens_per_right_conversation=_each(tokens, right_conversations),
        tokens_per_right_turn=_each(tokens, right_turns),
        dollars_per_right_conversation=_each(dollars, right_conversations),
        dollars_per_right_turn=_each(dollars, right_turns),
    )


def _each(amount: float | None, count: int) -> float | None:
    if amount is not None and count:
        return amount / count
    return None


def pace(part: Turns) -> Pace:
    """Time and tokens of the answered turns."""
    times = np.sort(part.milliseconds[~np.isnan(part.milliseconds)]).tolist()
    prompt = part.prompt_tokens
    completion = part.completion_tokens
    metered = ~np.isnan(prompt) | ~np.isnan(completion)
    both = (np.nan_to_num(prompt) + np.nan_to_num(completion))[metered]
    return Pace(
        milliseconds_mean=_mean_of(np.array(times)),
        milliseconds_median=quantile(times, 0.5),
        milliseconds_p95=quantile(times, 0.95),
        tokens_mean=_mean_of(both),
        prompt_tokens_mean=_mean_of(prompt[~np.isnan(prompt)]),
        completion_tokens_mean=_mean_of(completion[~np.isnan(completion)]),
        timed=len(times),
        metered=int(metered.sum()),
    )


def _mean_of(values: Floats) -> float | None:
    if values.size:
        return float(values.mean())
    return None


def quarantine(part: Turns, nulls: Nulls) -> Quarantine | None:
    """The accuracies without the turns that a quarantine file names; None without one."""
    marks = part.base.quarantined
    if not any(mark is not None for mark in marks):
        return None
    out: Flags = np.tile(np.array([bool(mark) for mark in marks], dtype=bool), part.repetitions)
    reasons = Counter(
        reason
        for slot in np.flatnonzero(out & part.counted).tolist()
        for reason in marks[slot % part.base.size] or ()
    )
    return Quarantine(
        turns=int((out & part.counted).sum()),
        reasons=dict(sorted(reasons.items())),
        accuracies=accuracies(part, nulls, ~out),
        conversation_accuracy=conversation_accuracy(part, nulls, ~out),
    )


def verdicts(part: Turns) -> Verdicts | None:
    """The file's own verdicts compared with ours; None if it has none."""
    theirs = part.verdicts
    there = ~np.isnan(theirs) & part.scored
    if not there.any():
        return None
    agreement: Shares = {}
    only_theirs, only_ours = {}, {}
    for metric in (*ACCURACIES, "scale_and_sign"):
        ours = part.value(metric)
        both = there & ~np.isnan(ours)
        agreement[metric] = _mean_of((ours[both] == theirs[both]).astype(np.float64))
        only_theirs[metric] = int((theirs[both] > ours[both]).sum())
        only_ours[metric] = int((theirs[both] < ours[both]).sum())

    return Verdicts(
        n=int(there.sum()),
        right=int(theirs[there].sum()),
        agreement=agreement,
        only_theirs=only_theirs,
        only_ours=only_ours,
    )
