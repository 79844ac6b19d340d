"""Agreement of people and agent, test by test: as text for a terminal, and as plain data."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from karat import formats
from karat.blocks import Cell, Number, PValue, Row, Table, Text, columns, explained
from karat.document.render.terminal import block_lines
from karat.records import Json, JsonObject
from karat_studies.kinds.study.analysis.scores import summary_of_tests
from karat_studies.kinds.study.sections import blocks_of_tests
from karat_studies.replication import pas_interval_of_test, replication_measures

if TYPE_CHECKING:
    from karat_studies.replication import Agreement, Difference, Uncertainty

_DIGITS = 3
_WIDTH = 200  # columns of a file
_INSIDE = {True: "yes", False: "no", None: formats.UNKNOWN}


def agreement_text(
    scored: Mapping[str, tuple[Agreement, Uncertainty]],
    *,
    bound: float | None = None,
) -> str:
    """The tables of a report over studies, and other measures, for every condition."""
    shown = list(blocks_of_tests(summary_of_tests(scored)))
    for name, (agreement, _) in scored.items():
        shown += _measures(name, agreement, bound)

    width = None if sys.stdout.isatty() else _WIDTH
    return "\n".join(block_lines(map(explained, shown), width=width)).strip()


def _measures(condition: str, agreement: Agreement, bound: float | None) -> Iterator[Table]:
    """The agent as a replication of the people, by other measures; nothing if no test has the
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
            low, high = measures.prediction.low, measures.prediction.high
            expected = f"{unit} {formats.between(None, low, high)[1]}"
            inside = _INSIDE[measures.prediction.inside]

        telescopes = measures.telescopes
        p_values: list[Cell] = [PValue(None if telescopes is None else telescopes.p)]
        if bound is not None:
            equivalence = measures.equivalence
            p_values.append(PValue(None if equivalence is None else equivalence.p))

        evidence = Number(measures.log_replication_bf, signed=True)
        finding = "/".join(filter(None, score.test.finding_id))
        cells = (evidence, Text(expected), Text(inside), *p_values)
        rows.append(Row(name=f"{finding} {score.test.test}", cells=cells))

    heads = ["finding", "ln BF replication", "expected by chance", "inside", "small telescopes p"]
    if bound is not None:
        heads.append(f"p, |difference| < {bound:g}")
    if rows:
        yield Table(
            caption=f"As a replication: {condition}",
            columns=columns(*heads),
            rows=tuple(rows),
        )


def difference_text(first: str, second: str, pas: Difference, ecs: Difference) -> str:
    """How much higher the second condition scores than the first."""
    lines = [f"{second} − {first}"]
    for name, difference in (("PAS", pas), ("ECS", ecs)):
        value = formats.signed_estimate(
            difference.value, difference.low, difference.high, digits=_DIGITS
        )
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
