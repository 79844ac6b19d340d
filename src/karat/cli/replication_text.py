"""Agreement of people and agent as text for a terminal, and as plain data."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from karat import formats

if TYPE_CHECKING:
    from karat.replication import Agreement, Spread, TestScore, Uncertainty

__all__ = ["as_data", "told"]

DIGITS = 3


def told(condition: str, agreement: Agreement, sure: Uncertainty) -> str:
    """One condition: the two main numbers, then studies, then findings with both posteriors."""
    whole, ecs = agreement.benchmark, agreement.ecs_interval
    spread, fixed = sure.pas.get(("benchmark", "")), sure.ecs_fixed.get(("benchmark", ""))
    tests, studies = formats.plural(whole.tests_planned, "test"), formats.plural(whole.planned, "study", "studies")
    agreeing = f"same direction in {whole.tests_agreeing} of {whole.tests_directed}"
    lines = [
        f"{condition}: {tests} of {studies}",
        "",
        f"PAS  {_estimate(whole.pas, spread)}   of {whole.tests_used} of {whole.tests_planned} tests",
        f"     with direction {_number(whole.pas_directional)}; {agreeing}",
        f"ECS  {_number(whole.ecs.value)}   of {whole.tests_with_effects} of {whole.tests_planned} tests",
        f"     for new studies {formats.interval(ecs.low, ecs.high, digits=DIGITS) or ecs.reason}",
        f"     for these studies {_span(fixed)}",
        f"     r {_number(whole.ecs.pearson)}, bias factor {_number(whole.ecs.bias)}, "
        f"agent's slope {_number(agreement.caricature.slope)} "
        f"{formats.interval(agreement.caricature.low, agreement.caricature.high, digits=2)}".rstrip(),
    ]
    if whole.tests_used == 0:
        lines += ["     no test has a statistic on both sides: there is an ECS and no PAS"]
    lines += [
        "",
        f"effects as Cohen's d, convention {agreement.convention}; ECS depends on the orientation of effects",
        "",
    ]
    lines += _studies(agreement, sure)
    lines += ["", *_tests(agreement)]
    if agreement.opposed:
        names = ", ".join("/".join(part for part in name if part) for name in agreement.opposed)
        lines += ["", f"Effects in opposite directions, which PAS alone would hide: {names}"]
    return "\n".join(lines)


def _studies(agreement: Agreement, sure: Uncertainty) -> list[str]:
    rows: list[tuple[str, ...]] = [("study", "PAS", "SE", "directional", "ECS", "scored")]
    for study in agreement.studies:
        spread = sure.pas[("study", study.name)]
        cells = (_number(value) for value in (study.pas, spread.se, study.pas_directional, study.ecs.value))
        rows.append((study.name, *cells, f"{study.tests_used} of {study.tests_planned}"))
    return _table(rows)


def _tests(agreement: Agreement) -> list[str]:
    head = ("finding", "test", "π people", "π agent", "PAS", "directional", "d people", "d agent", "")
    rows: list[tuple[str, ...]] = [head]
    for score in agreement.tests:
        test = score.test
        rows.append(
            (
                "/".join(part for part in test.finding_id if part),
                test.test,
                *(_number(value) for value in (score.pi_human, score.pi_agent, score.pas, score.pas_directional)),
                *(formats.signed(_known(value)) for value in (score.human.d, score.agent.d)),
                _note(score),
            )
        )
    return _table(rows)


def _note(score: TestScore) -> str:
    if score.opposed:
        return "opposite directions"
    return "; ".join(dict.fromkeys([*score.human.reasons, *score.agent.reasons]))


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(formats.width(formats.clean(row[at])) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [formats.clean(cell) for cell in row]
        padded = [cell + " " * (wide - formats.width(cell)) for cell, wide in zip(cells, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines


def _number(value: float) -> str:
    return formats.number(_known(value), digits=DIGITS)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _estimate(value: float, spread: Spread | None) -> str:
    if spread is None:
        return _number(value)
    return formats.estimate(_known(value), spread.low, spread.high, digits=DIGITS)


def _span(spread: Spread | None) -> str:
    if spread is None:
        return formats.UNKNOWN
    return formats.interval(spread.low, spread.high, digits=DIGITS) or str(spread.reason)


def as_data(agreement: Agreement, sure: Uncertainty) -> dict[str, Any]:
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
        "tests": [plain(one) for one in agreement.tests],
        "uncertainty": {
            "replicates": sure.replicates,
            "pas": [{"level": level, "of": plain(name), **plain(one)} for (level, name), one in sure.pas.items()],
            "ecs_these_studies": [
                {"level": level, "of": plain(name), **plain(one)} for (level, name), one in sure.ecs_fixed.items()
            ],
        },
    }


def plain(value: Any) -> Any:
    """Values that JSON has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    return value
