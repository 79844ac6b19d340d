"""The tables of an agreement: levels, findings, effects, other measures of replication."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from karat import formats

if TYPE_CHECKING:
    from karat.replication import Agreement, ReplicationMeasures, Spread, StudyScore, TestScore, Uncertainty

__all__ = ["by_finding", "by_level", "effects", "interval", "known", "measures", "number", "with_interval"]

DIGITS = 3
Row = tuple[str, ...]


def known(value: float | None) -> float | None:
    """The number, or None where it is not known."""
    return None if value is None or math.isnan(value) else value


def number(value: float | None) -> str:
    """With three decimals."""
    return formats.number(known(value), digits=DIGITS)


def interval(low: float, high: float) -> str:
    """With three decimals; nothing where there is none."""
    return formats.interval(known(low), known(high), digits=DIGITS)


def with_interval(value: float, spread: Spread | None) -> str:
    """A number with the interval that is claimed of it."""
    if spread is None:
        return number(value)
    return formats.estimate(known(value), known(spread.low), known(spread.high), digits=DIGITS)


def by_level(agreement: Agreement, sure: Uncertainty) -> list[str]:
    """Domains and studies."""
    head = ("", "PAS", "SE", "directional", "ECS", "these studies", "tests", "findings", "effects")
    lines: list[str] = []
    if agreement.domains:
        heads = ("domain", "PAS", "SE", "directional", "ECS", "these studies", "tests", "studies", "effects")
        lines += [*_table([heads, *(_level("domain", one, sure) for one in agreement.domains)]), ""]
    rows = [("study", *head[1:]), *(_level("study", one, sure) for one in agreement.studies)]
    return lines + _table(rows)


def _level(kind: str, one: StudyScore, sure: Uncertainty) -> Row:
    spread, fixed = sure.pas[(kind, one.name)], sure.ecs_fixed[(kind, one.name)]
    pas = with_interval(one.pas, spread) if kind == "domain" else number(one.pas)
    counts = ((one.tests_used, one.tests_planned), (one.used, one.planned), (one.tests_with_effects, one.tests_planned))
    return (
        one.name,
        pas,
        number(spread.se),
        number(one.pas_directional),
        number(one.ecs.value),
        interval(fixed.low, fixed.high) or formats.UNKNOWN,
        *(f"{used} of {planned}" for used, planned in counts),
    )


def by_finding(agreement: Agreement) -> list[str]:
    """Agreement by finding: the posteriors of people and agent side by side, one pair a test."""
    from karat.replication import pas_interval_of_test

    told = f"{formats.level(agreement.level)} interval"
    head = ("finding", "test", "π people", "π agent", "PAS", told, "ceiling", "directional", "coverage", "")
    rows: list[Row] = [head]
    for score in agreement.tests:
        spread = pas_interval_of_test(score, level=agreement.level)
        posteriors = (score.pi_human, score.pi_agent, score.pas)
        rows.append((
            *_named(score),
            *map(number, posteriors),
            interval(spread.low, spread.high) or formats.UNKNOWN,
            number(score.ceiling),
            number(score.pas_directional),
            formats.share(known(score.test.coverage)),
            _note(score),
        ))  # fmt: skip
    return _table(rows)


def _named(score: TestScore) -> tuple[str, str]:
    return "/".join(part for part in score.test.finding_id if part), score.test.test


def _note(score: TestScore) -> str:
    if score.opposed:
        return "opposite directions"
    return "; ".join(dict.fromkeys([*score.human.reasons, *score.agent.reasons]))


def effects(agreement: Agreement) -> list[str]:
    """The profile of effects and their differences, with the other convention beside the chosen one."""
    from karat.replication import z_of_level

    other, z = agreement.other.convention, z_of_level(agreement.level)
    head = (
        "finding",
        "test",
        "d people",
        "d agent",
        "agent − people",
        f"{formats.level(agreement.level)} interval",
        "z",
        f"{other}: people",
        "agent",
    )
    rows: list[Row] = [head]
    for score, pair in zip(agreement.tests, agreement.other.effects, strict=True):
        apart, se = score.agent.d - score.human.d, math.hypot(score.human.d_se, score.agent.d_se)
        span = formats.signed_interval(known(apart - z * se), known(apart + z * se))
        rows.append((
            *_named(score),
            *(formats.signed(known(value)) for value in (score.human.d, score.agent.d, apart)),
            span or formats.UNKNOWN,
            formats.signed(known(score.z_diff)),
            *(formats.signed(known(value)) for value in pair),
        ))  # fmt: skip
    return _table(rows)


def measures(agreement: Agreement, bound: float | None) -> list[str]:
    """The agent as a replication of the people, by other measures; nothing where no test has the numbers."""
    from karat.replication import replication_measures

    found = [(score, replication_measures(score, bound=bound)) for score in agreement.tests]
    rows = [(*_named(score), *_measured(one)) for score, one in found if _any(one)]
    if not rows:
        return []
    equivalent = (f"p, |difference| < {bound:g}",) if bound is not None else ()
    head = ("finding", "test", "ln BF replication", "expected by chance", "inside", "small telescopes p", *equivalent)
    if bound is None:
        rows = [row[:-1] for row in rows]
    return _table([head, *rows])


def _any(one: ReplicationMeasures) -> bool:
    return one.prediction is not None or not math.isnan(one.log_replication_bf)


def _measured(one: ReplicationMeasures) -> Row:
    expected, inside = formats.UNKNOWN, formats.UNKNOWN
    if one.prediction is not None:
        unit = "r" if "Fisher" in one.prediction.method else "d"
        expected = f"{unit} {formats.signed_interval(one.prediction.low, one.prediction.high)}"
        inside = {True: "yes", False: "no", None: formats.UNKNOWN}[one.prediction.inside]
    return (
        formats.signed(known(one.log_replication_bf)),
        expected,
        inside,
        formats.p_value(one.telescopes.p if one.telescopes is not None else None),
        formats.p_value(one.equivalence.p if one.equivalence is not None else None),
    )


def _table(rows: list[Row]) -> list[str]:
    widths = [max(formats.width(formats.clean(row[at])) for row in rows) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [formats.clean(cell) for cell in row]
        padded = [cell + " " * (wide - formats.width(cell)) for cell, wide in zip(cells, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return lines
