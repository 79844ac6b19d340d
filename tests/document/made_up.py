"""Summaries that are made up: what no small run would show, and names that want to be code."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from karat.analysis.numbers import Estimate
from karat_conversations.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Cost,
    Diagnosed,
    Example,
    Feature,
    Pace,
    Propagation,
    Rate,
    Rung,
    Stratum,
)
from karat_studies.kinds.study.analysis.floor import Guesses, floor_of
from karat_studies.kinds.study.analysis.model import ArmCount, Participants, StudySummary
from karat_studies.kinds.study.analysis.scores import summary_of_tests
from karat_studies.replication import Agreement, score_uncertainty

METRICS = ("numerical", "soft", "unit_agnostic", "sign_agnostic", "general", "exact", "declared", "scale_and_sign")
LADDER = ("exact", "numerical", "declared", "unit_agnostic", "sign_agnostic", "scale_and_sign")


def estimate(value: float | None, *, reach: float = 0.05, n: int = 421) -> Estimate:
    low = None if value is None else max(-1.0, value - reach)
    high = None if value is None else min(1.0, value + reach)
    return Estimate(value=value, low=low, high=high, se=reach / 2, n=n, level=0.95, method="made up")


def rate(metric: str, value: float | None, *, n: int = 1490) -> Rate:
    return Rate(
        name=f"{metric}_accuracy", metric=metric, estimate=estimate(value), n=n,
        total=None if value is None else value * n, naive_se=0.01, design_effect=2.0,
        nulls={"zero": 0.003, "earlier": 0.02, "hundred": None},
    )  # fmt: skip


def strata(*values: float, first: int = 0) -> tuple[Stratum, ...]:
    sizes = [421, 421, 300, 200, 100, 40, 8]
    return tuple(
        Stratum(key=str(first + at), estimate=estimate(value, reach=1.9 / n**0.5, n=n), n=n, right=int(value * n),
                golden_operations=1.0 + at)
        for at, (value, n) in enumerate(zip(values, sizes, strict=False))
    )  # fmt: skip


def result(condition: str, *, base: float = 0.67, right: int = 180) -> ConversationResult:
    rates = {metric: min(1.0, base + 0.03 * (at - 1)) for at, metric in enumerate(LADDER)}
    accuracies = tuple(rate(metric, rates.get(metric, base)) for metric in METRICS)
    ladder = tuple(
        Rung(metric=metric, forgives=f"what {metric} passes over", rate=rates[metric],
             right=900 + 30 * at, forgiven=30 * (at - 1), n=1490)
        for at, metric in enumerate(LADDER)
    )  # fmt: skip
    example = Example(
        trial="t", conversation="c", repetition=0, turn=1, question="What?", expected="0.1", actual="10",
        evidence="a hundred times",
    )  # fmt: skip
    yes_no = tuple(
        Stratum(key=key, estimate=estimate(base + shift), n=n, right=1, golden_operations=None)
        for key, shift, n in (("false", 0.03, 1000), ("true", -0.06, 490))
    )
    return ConversationResult(
        condition=condition,
        conversations=421,
        turns=1490,
        unreached=3,
        not_run=0,
        accuracies=accuracies,
        conversation_accuracy=rate("conversation", 0.4, n=421),
        reasoning=(),
        ladder=ladder,
        by_turn=strata(base + 0.12, base + 0.05, base, base - 0.05, base - 0.1, base - 0.2, 0.5),
        by_operations=strata(base + 0.2, base, base - 0.2, base - 0.3),
        features=(
            Feature(name="has_type2_question", strata=yes_no, correlation=-0.1, difference=estimate(-0.09)),
            Feature(name="turns", strata=strata(base, base - 0.1, first=2), correlation=None),
        ),
        diagnoses=(
            Diagnosed(label="scale", turns=240, share=0.49, examples=(example,)),
            Diagnosed(label="propagated", turns=55, share=0.11),
            Diagnosed(label="other", turns=40, share=0.08),
        ),
        unreadable={"actual": 3},
        propagation=Propagation(
            first_wrong={"0": 100, "1": 80, "2": 40},
            never_wrong=right,
            after_right=rate("numerical", base + 0.1, n=800),
            after_wrong=rate("numerical", base - 0.2, n=269),
            cascades=150,
            propagated=55,
            had_earlier_been_right=rate("numerical", base + 0.04),
        ),
        cost=Cost(
            right_conversations=right, right_turns=997, tokens=2_000_000, tokens_unknown=0, dollars=4.2,
            dollars_unknown=0, tokens_per_right_conversation=2_000_000 / right if right else None,
            tokens_per_right_turn=2006.0, dollars_per_right_conversation=4.2 / right if right else None,
            dollars_per_right_turn=0.0042,
        ),
        pace=Pace(
            milliseconds_mean=None, milliseconds_median=None, milliseconds_p95=None, tokens_mean=None,
            prompt_tokens_mean=None, completion_tokens_mean=None, timed=0, metered=0,
        ),
        failures={},
    )  # fmt: skip


def conversations(*conditions: str) -> ConversationSummary:
    return ConversationSummary(
        scorer="numeric",
        scoring="0f" * 16,
        rules=("karat-numeric/1",),
        conversations=421,
        turns=1490,
        weighted=False,
        level=0.95,
        nulls=(),
        conditions=tuple(
            result(name, base=0.67 - 0.1 * at, right=180 * (at == 0)) for at, name in enumerate(conditions)
        ),
    )


def studies(agreement: Agreement, *conditions: str, floor: str | None = None) -> StudySummary:
    """The same agreement under each condition, with participants of whom a part could be read.

    `floor`: a condition whose agent answers at random; it brings the reference as well.
    """
    sure = score_uncertainty(agreement, rng=np.random.default_rng(1), replicates=60)
    part = summary_of_tests(dict.fromkeys(conditions, (agreement, sure)))
    people = Participants(planned=60, asked=58, answered=50, parsed=45, stopped=2)
    copies = []
    for condition in part.conditions:
        read = tuple(
            structs.replace(study, participants=people, arms=(_arm(f"{study.study} low"), _arm("high", parsed=20)))
            for study in condition.studies
        )
        total = Participants(**{key: len(read) * value for key, value in structs.asdict(people).items()})
        copies.append(structs.replace(condition, studies=read, participants=total, floor=condition.condition == floor))
    tests = [score.test for score in agreement.tests]
    guesses = [
        Guesses(study=name, tests=[[test for test in tests if test.study == name]] * 2)
        for name in dict.fromkeys(test.study for test in tests)
    ]
    beside = floor_of(guesses, {}, questions=60, level=0.95) if floor is not None else None
    return structs.replace(part, conditions=tuple(copies), floor=beside)


def _arm(name: str, *, parsed: int = 25) -> ArmCount:
    people = Participants(planned=30, asked=29, answered=26, parsed=parsed, stopped=1)
    return ArmCount(arm=name, people=30, participants=people, unread={"choice": {"refused": 3}}, answers={})
