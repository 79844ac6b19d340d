"""Agreement of people and agent as text for a terminal, and as plain data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from karat import formats
from karat.cli.replication_tables import (
    by_finding,
    by_level,
    effects,
    interval,
    known,
    measures,
    number,
    with_interval,
)

if TYPE_CHECKING:
    from karat.replication import Agreement, Difference, TestScore, Uncertainty

__all__ = ["as_data", "compared", "told"]


def told(condition: str, agreement: Agreement, sure: Uncertainty, *, bound: float | None = None) -> str:
    """One condition: the two main numbers, what is auxiliary, then levels, findings, effects, other measures."""
    whole = agreement.benchmark
    tests, studies = formats.plural(whole.tests_planned, "test"), formats.plural(whole.planned, "study", "studies")
    parts = [
        [f"{condition}: {tests} of {studies}"],
        [*_pas(agreement, sure), *_ecs(agreement, sure), *_auxiliary(agreement)],
        [f"effects as Cohen's d, convention {agreement.convention}; ECS depends on the orientation of effects"],
        by_level(agreement, sure),
        by_finding(agreement),
        effects(agreement),
        measures(agreement, bound),
        _opposed(agreement),
        _covered(agreement),
    ]
    return "\n\n".join("\n".join(formats.clean(line) for line in lines) for lines in parts if lines)


def _pas(agreement: Agreement, sure: Uncertainty) -> list[str]:
    whole, spread = agreement.benchmark, sure.pas.get(("benchmark", ""))
    agreeing = f"same direction in {whole.tests_agreeing} of {whole.tests_directed}"
    return [
        f"PAS  {with_interval(whole.pas, spread)}   of {whole.tests_used} of {whole.tests_planned} tests",
        f"     with direction {number(whole.pas_directional)}; {agreeing}",
        *(["     no test has a statistic on both sides: there is an ECS and no PAS"] if not whole.tests_used else []),
    ]


def _ecs(agreement: Agreement, sure: Uncertainty) -> list[str]:
    whole, new, other = agreement.benchmark, agreement.ecs_interval, agreement.other
    slope = formats.estimate(*map(known, (agreement.caricature.slope, agreement.caricature.low,
                                          agreement.caricature.high)))  # fmt: skip
    ceiling = f"{number(sure.noise_ceiling)}, over {formats.plural(sure.noise_ceiling_n, 'test')} with errors"
    differs = f"another d in {other.differs} of {formats.plural(len(agreement.tests), 'test')}"
    return [
        f"ECS  {number(whole.ecs.value)}   of {whole.tests_with_effects} of {whole.tests_planned} tests",
        f"     for new studies {interval(new.low, new.high) or new.reason}",
        f"     for these studies {_span(sure)}",
        f"     of a perfect copy, given the errors of both sides: {ceiling}",
        f"     r {number(whole.ecs.pearson)}, bias factor {number(whole.ecs.bias)}, agent's slope {slope}",
        f"     by the convention {other.convention} {number(other.ecs.value)}; {differs}",
    ]


def _span(sure: Uncertainty) -> str:
    spread = sure.ecs_fixed.get(("benchmark", ""))
    if spread is None:
        return formats.UNKNOWN
    return interval(spread.low, spread.high) or str(spread.reason)


def _auxiliary(agreement: Agreement) -> list[str]:
    whole = agreement.benchmark
    strict = f"ECS-Strict {number(whole.ecs_strict)} as published, {number(whole.ecs_strict_chi2)} as a χ² test"
    return [f"auxiliary: normalised PAS {number(whole.normalized)}; {strict}"]


def _opposed(agreement: Agreement) -> list[str]:
    """Which findings they are, and how strong the evidence of either side is."""
    if not agreement.opposed:
        return []
    names = ", ".join("/".join(part for part in name if part) for name in agreement.opposed)
    lines = [f"Effects in opposite directions, which PAS alone would hide: {names}"]
    for score in agreement.tests:
        if score.opposed:
            sides = (("people", score.human), ("agent", score.agent))
            evidence = ", ".join(
                f"{who} {'+' if side.sign > 0 else '−'} ln BF {formats.number(side.log_bf, digits=1)}"
                for who, side in sides
            )
            name = "/".join(part for part in score.test.finding_id if part)
            decisive = ": decisive on both sides" if score.decisive else ""
            lines.append(f"  {name} {score.test.test}  {evidence}{decisive}")
    return lines


def _covered(agreement: Agreement) -> list[str]:
    low = [finding for finding in agreement.findings if finding.flagged]
    if not low:
        return []
    names = ", ".join(f"{'/'.join(part for part in one.id if part)} {formats.share(one.coverage)}" for one in low)
    least = formats.share(agreement.min_coverage)
    return [f"Few answers could be read (below {least} a finding is not scored): {names}"]


def compared(names: tuple[str, str], pas: Difference, ecs: Difference) -> str:
    """How much higher the second condition scores than the first."""
    found = [f"{names[1]} − {names[0]}"]
    for what, one in (("PAS", pas), ("ECS", ecs)):
        span = formats.signed_interval(known(one.low), known(one.high), digits=3)
        value = f"{formats.signed(known(one.value), digits=3)} {span}".rstrip()
        found.append(f"  {what}  {value}   over {formats.plural(one.n, 'test')} ({one.method})")
    return "\n".join(formats.clean(line) for line in found)


def as_data(agreement: Agreement, sure: Uncertainty, *, bound: float | None = None) -> dict[str, Any]:
    """The same as plain values: NaN is null, infinities are strings."""
    return {
        "benchmark": plain(agreement.benchmark),
        "ecs_interval": plain(agreement.ecs_interval),
        "caricature": plain(agreement.caricature),
        "convention": agreement.convention,
        "opposed": [list(name) for name in agreement.opposed],
        "domains": [plain(one) for one in agreement.domains],
        "studies": [plain(one) for one in agreement.studies],
        "findings": [plain(one) for one in agreement.findings],
        "tests": [
            _test(one, pair, bound, level=agreement.level)
            for one, pair in zip(agreement.tests, agreement.other.effects, strict=True)
        ],
        "other_convention": {
            "convention": agreement.other.convention,
            "ecs": plain(agreement.other.ecs),
            "tests_that_differ": agreement.other.differs,
        },
        "noise_ceiling": plain({"ecs": sure.noise_ceiling, "tests": sure.noise_ceiling_n}),
        "min_coverage": agreement.min_coverage,
        "uncertainty": {
            "replicates": sure.replicates,
            "pas": [{"level": level, "of": plain(name), **plain(one)} for (level, name), one in sure.pas.items()],
            "ecs_these_studies": [
                {"level": level, "of": plain(name), **plain(one)} for (level, name), one in sure.ecs_fixed.items()
            ],
        },
    }


def _test(score: TestScore, other: tuple[float, float], bound: float | None, *, level: float) -> dict[str, Any]:
    from karat.replication import pas_interval_of_test, replication_measures

    return {
        **plain(score),
        "opposed": score.opposed,
        "decisive": score.decisive,
        "pas_interval": plain(pas_interval_of_test(score, level=level)),
        "other_convention": plain({"human_d": other[0], "agent_d": other[1]}),
        "measures": plain(replication_measures(score, bound=bound)),
    }


def plain(value: Any) -> Any:
    """Values that JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return value
