"""Agreement of people and agent, test by test: as text for a terminal, and as plain data."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from karat import blocks, formats
from karat.blocks import Cell, Column, Estimate, Number, PValue, Row, Share, Table, Text
from karat.document.render.terminal import table_lines
from karat.records import Json, JsonObject
from karat_studies.replication import pas_interval_of_test, replication_measures, z_of_level

if TYPE_CHECKING:
    from karat_studies.replication import Agreement, Difference, StudyScore, TestScore, Uncertainty

_DIGITS = 3
_WIDTH = 200  # columns of a file
_INSIDE = {True: "yes", False: "no", None: formats.UNKNOWN}


def agreement_text(
    condition: str,
    agreement: Agreement,
    sure: Uncertainty,
    *,
    bound: float | None = None,
) -> str:
    """One condition: the two main numbers, auxiliary ones, then levels, findings, effects, other
    measures.
    """
    scores = agreement.benchmark
    tests = formats.plural(scores.tests_planned, "test")
    studies = formats.plural(scores.planned, "study", "studies")

    low = [finding for finding in agreement.findings if finding.flagged]
    if not low:
        covered: list[str] = []
    else:
        names = ", ".join(
            f"{'/'.join(filter(None, one.id))} {formats.share(one.coverage)}" for one in low
        )
        least = formats.share(agreement.min_coverage)
        covered = [f"Few answers could be read (below {least} a finding is not scored): {names}"]

    # The findings, and the strength of evidence on either side
    if not agreement.opposed:
        opposed: list[str] = []
    else:
        names = ", ".join("/".join(filter(None, name)) for name in agreement.opposed)
        lines = [f"Effects in opposite directions, which PAS alone would hide: {names}"]
        for score in agreement.tests:
            if score.opposed:
                sides = (("people", score.human), ("agent", score.agent))
                evidence = ", ".join(
                    (
                        f"{who} {'+' if side.sign > 0 else '−'} ln BF "
                        f"{formats.number(side.log_bf, digits=1)}"
                    )
                    for who, side in sides
                )
                name = "/".join(filter(None, score.test.finding_id))
                decisive = ": decisive on both sides" if score.decisive else ""
                lines.append(f"  {name} {score.test.test}  {evidence}{decisive}")

        opposed = lines

    parts = [
        [f"{condition}: {tests} of {studies}"],
        _scores(agreement, sure),
        [
            (
                f"effects as Cohen's d, convention {agreement.convention}; ECS depends on the "
                f"orientation of effects"
            )
        ],
        _levels("domain", "studies", agreement.domains, sure),
        _levels("study", "findings", agreement.studies, sure),
        _findings(agreement),
        _effects(agreement),
        _measures(agreement, bound),
        opposed,
        covered,
    ]
    return "\n\n".join("\n".join(formats.clean(line) for line in lines) for lines in parts if lines)


def _number(value: float | None) -> str:
    return formats.number(value, digits=_DIGITS)


def _interval(low: float, high: float) -> str:
    return formats.interval(low, high, digits=_DIGITS)


def _scores(agreement: Agreement, sure: Uncertainty) -> list[str]:
    """PAS, ECS, and auxiliary numbers."""
    scores = agreement.benchmark
    new = agreement.ecs_interval
    other = agreement.other
    spread = sure.pas.get(("benchmark", ""))
    fixed = sure.ecs_fixed.get(("benchmark", ""))
    ends = (spread.low, spread.high) if spread is not None else (None, None)
    pas = formats.estimate(scores.pas, *ends, digits=_DIGITS)
    slope = formats.estimate(
        agreement.caricature.slope, agreement.caricature.low, agreement.caricature.high
    )
    if fixed is None:
        these = formats.UNKNOWN
    else:
        these = _interval(fixed.low, fixed.high) or str(fixed.reason)

    agreeing = f"same direction in {scores.tests_agreeing} of {scores.tests_directed}"
    ceiling = (
        f"{_number(sure.noise_ceiling)}, over {formats.plural(sure.noise_ceiling_n, 'test')} with "
        f"errors"
    )
    differs = f"another d in {other.differs} of {formats.plural(len(agreement.tests), 'test')}"
    strict = (
        f"{_number(scores.ecs_strict)} as published, {_number(scores.ecs_strict_chi2)} as a χ² test"
    )
    return [
        f"PAS  {pas}   of {scores.tests_used} of {scores.tests_planned} tests",
        f"     with direction {_number(scores.pas_directional)}; {agreeing}",
        *(
            ["     no test has a statistic on both sides: there is an ECS and no PAS"]
            if not scores.tests_used
            else []
        ),
        (
            f"ECS  {_number(scores.ecs.value)}   of {scores.tests_with_effects} of "
            f"{scores.tests_planned} tests"
        ),
        f"     for new studies {_interval(new.low, new.high) or new.reason}",
        f"     for these studies {these}",
        f"     of a perfect copy, given the errors of both sides: {ceiling}",
        (
            f"     r {_number(scores.ecs.pearson)}, bias factor {_number(scores.ecs.bias)}, "
            f"agent's slope {slope}"
        ),
        f"     by the convention {other.convention} {_number(other.ecs.value)}; {differs}",
        f"auxiliary: normalised PAS {_number(scores.normalized)}; ECS-Strict {strict}",
    ]


def _named(score: TestScore) -> str:
    return " ".join(["/".join(filter(None, score.test.finding_id)), score.test.test])


def _value(value: float | None) -> Number:
    return Number(value, digits=_DIGITS)


def _effect(value: float | None) -> Number:
    return Number(value, signed=True)


def _spread(low: float, high: float, *, signed: bool = False) -> Text:
    if signed:
        interval = formats.signed_interval(low, high)
    else:
        interval = _interval(low, high)

    return Text(interval or formats.UNKNOWN)


def _table(heads: Sequence[str | Column], rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    columns = (
        head if isinstance(head, Column) else Column(head, number=at > 0)
        for at, head in enumerate(heads)
    )
    if sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    else:
        width = _WIDTH
    return table_lines(
        blocks.explained(Table(caption="", columns=tuple(columns), rows=tuple(rows))), width=width
    )


def _levels(level: str, parts: str, scores: Sequence[StudyScore], sure: Uncertainty) -> list[str]:
    """Domains or studies."""
    rows = []
    for score in scores:
        spread = sure.pas[(level, score.name)]
        fixed = sure.ecs_fixed[(level, score.name)]
        pas = Estimate(score.pas, spread.low, spread.high, digits=_DIGITS)
        rows.append(
            Row(
                name=score.name,
                cells=(
                    pas,
                    _value(spread.se),
                    _value(score.pas_directional),
                    _value(score.ecs.value),
                    _spread(fixed.low, fixed.high),
                    Text(f"{score.tests_used} of {score.tests_planned}"),
                    Text(f"{score.used} of {score.planned}"),
                    Text(f"{score.tests_with_effects} of {score.tests_planned}"),
                ),
            )
        )

    return _table(
        [level, "PAS", "SE", "directional", "ECS", "these studies", "tests", parts, "effects"], rows
    )


def _findings(agreement: Agreement) -> list[str]:
    """Agreement by finding: the posteriors of people and agent side by side, one pair per test."""
    rows = []
    for score in agreement.tests:
        spread = pas_interval_of_test(score, level=agreement.level)
        reasons = "; ".join(dict.fromkeys([*score.human.reasons, *score.agent.reasons]))
        rows.append(
            Row(
                name=_named(score),
                cells=(
                    _value(score.pi_human),
                    _value(score.pi_agent),
                    _value(score.pas),
                    _spread(spread.low, spread.high),
                    _value(score.ceiling),
                    _value(score.pas_directional),
                    Share(score.test.coverage),
                    Text("opposite directions" if score.opposed else reasons),
                ),
            )
        )

    interval = f"{formats.level(agreement.level)} interval"
    heads = [
        "finding",
        "π people",
        "π agent",
        "PAS",
        interval,
        "ceiling",
        "directional",
        "coverage",
    ]
    return _table([*heads, Column("", number=False)], rows)


def _effects(agreement: Agreement) -> list[str]:
    """The profile of effects and their differences, with the other convention next to the chosen
    one.
    """
    rows = []
    z = z_of_level(agreement.level)
    for score, (human, agent) in zip(agreement.tests, agreement.other.effects, strict=True):
        apart = score.agent.d - score.human.d
        se = math.hypot(score.human.d_se, score.agent.d_se)
        rows.append(
            Row(
                name=_named(score),
                cells=(
                    _effect(score.human.d),
                    _effect(score.agent.d),
                    _effect(apart),
                    _spread(apart - z * se, apart + z * se, signed=True),
                    _effect(score.z_diff),
                    _effect(human),
                    _effect(agent),
                ),
            )
        )

    heads = [
        "finding",
        "d people",
        "d agent",
        "agent − people",
        f"{formats.level(agreement.level)} interval",
        "z",
        f"{agreement.other.convention}: people",
        "agent",
    ]
    return _table(heads, rows)


def _measures(agreement: Agreement, bound: float | None) -> list[str]:
    """The agent as a replication of the people, by other measures; empty if no test has the
    numbers.
    """
    rows = []
    for score in agreement.tests:
        measures = replication_measures(score, bound=bound)
        if measures.prediction is None and math.isnan(measures.log_replication_bf):
            continue
        expected = inside = formats.UNKNOWN
        if measures.prediction is not None:
            unit = "r" if "Fisher" in measures.prediction.method else "d"
            expected = (
                f"{unit} "
                f"{formats.signed_interval(measures.prediction.low, measures.prediction.high)}"
            )
            inside = _INSIDE[measures.prediction.inside]

        tests = (
            (measures.telescopes, measures.equivalence)
            if bound is not None
            else (measures.telescopes,)
        )
        p_values: list[Cell] = [PValue(test.p if test is not None else None) for test in tests]
        cells = (_effect(measures.log_replication_bf), Text(expected), Text(inside), *p_values)
        rows.append(Row(name=_named(score), cells=cells))

    heads = ["finding", "ln BF replication", "expected by chance", "inside", "small telescopes p"]
    return _table([*heads, *([f"p, |difference| < {bound:g}"] if bound is not None else [])], rows)


def difference_text(first: str, second: str, pas: Difference, ecs: Difference) -> str:
    """How much higher the second condition scores than the first."""
    lines = [f"{second} − {first}"]
    for name, difference in (("PAS", pas), ("ECS", ecs)):
        span = formats.signed_interval(difference.low, difference.high, digits=_DIGITS)
        value = f"{formats.signed(difference.value, digits=_DIGITS)} {span}".rstrip()
        lines.append(
            f"  {name}  {value}   over {formats.plural(difference.n, 'test')} ({difference.method})"
        )

    return "\n".join(formats.clean(line) for line in lines)


def difference_data(first: str, pas: Difference, ecs: Difference) -> dict[str, object]:
    """The same as plain values."""
    return {"condition": first, "pas": _plain(pas), "ecs": _plain(ecs)}


def agreement_data(
    agreement: Agreement, sure: Uncertainty, *, bound: float | None = None
) -> JsonObject:
    """The same as plain values: NaN is null, infinities are strings."""
    data = {
        "benchmark": agreement.benchmark,
        "ecs_interval": agreement.ecs_interval,
        "caricature": agreement.caricature,
        "convention": agreement.convention,
        "opposed": agreement.opposed,
        "domains": agreement.domains,
        "studies": agreement.studies,
        "findings": agreement.findings,
        "tests": [
            {
                **_fields(score),
                "opposed": score.opposed,
                "decisive": score.decisive,
                "pas_interval": pas_interval_of_test(score, level=agreement.level),
                "other_convention": {"human_d": human, "agent_d": agent},
                "measures": replication_measures(score, bound=bound),
            }
            for score, (human, agent) in zip(agreement.tests, agreement.other.effects, strict=True)
        ],
        "other_convention": {
            "convention": agreement.other.convention,
            "ecs": agreement.other.ecs,
            "tests_that_differ": agreement.other.differs,
        },
        "noise_ceiling": {"ecs": sure.noise_ceiling, "tests": sure.noise_ceiling_n},
        "min_coverage": agreement.min_coverage,
        "uncertainty": {
            "replicates": sure.replicates,
            "pas": [
                {"level": level, "of": name, **_fields(spread)}
                for (level, name), spread in sure.pas.items()
            ],
            "ecs_these_studies": [
                {"level": level, "of": name, **_fields(spread)}
                for (level, name), spread in sure.ecs_fixed.items()
            ],
        },
    }
    return {key: _plain(value) for key, value in data.items()}


def _fields(value: object) -> JsonObject:
    """The fields of a record, in values valid in JSON."""
    fields: JsonObject = msgspec.to_builtins(value)
    return {key: _plain(part) for key, part in fields.items()}


def _plain(value: object) -> Json:
    """Values valid in JSON."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return None
        if value > 0:
            return "inf"
        return "-inf"

    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return _plain(msgspec.to_builtins(value))
