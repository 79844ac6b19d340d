"""Thresholds on a run's metrics: their syntax, and the number each applies to."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Literal, get_args

import msgspec

from karat.analysis.totals import TOTALS
from karat.errors import BadOption, did_you_mean
from karat.records import Metric

Bound = Literal["min", "max", "max_drop"]


class Threshold(msgspec.Struct, frozen=True, kw_only=True):
    """A bound that a number must meet.

    If `name` has no condition, each condition of the run must meet it; of a total that is of the
    whole run (`Total.of_run`), all conditions together.
    """

    name: str  # [CONDITION.]METRIC
    bound: Bound
    value: float

    def __str__(self) -> str:
        return f"{self.name} {self.words}"

    @property
    def words(self) -> str:
        """`at least 4.2`."""
        sign = {"min": "at least", "max": "at most", "max_drop": "drops by at most"}[self.bound]
        return f"{sign} {self.value:g}"


def parse_threshold(text: str, bound: Bound) -> Threshold:
    """`[CONDITION.]METRIC=VALUE`. Raises BadOption for anything else.

    >>> parse_threshold("with-docs.completeness=4.2", "min")
    Threshold(name='with-docs.completeness', bound='min', value=4.2)
    """
    option = f"--{bound.replace('_', '-')}"
    name, _, number = text.rpartition("=")
    try:
        value = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        value = math.nan

    if not name.strip() or not math.isfinite(value):
        raise BadOption(option, f"expected [CONDITION.]METRIC=NUMBER, got '{text}'")
    if bound == "max_drop" and value < 0:
        raise BadOption(option, f"a drop is 0 or more, got '{text}'")
    return Threshold(name=name.strip(), bound=bound, value=value)


def thresholds_of(settings: Mapping[str, object]) -> list[Threshold]:
    """The section `gate` of an experiment: its dotted keys, such as
    `gate.min.with-docs.completeness`, and values.
    """
    thresholds = []
    for key, value in settings.items():
        for bound in get_args(Bound):
            prefix = f"gate.{bound}."
            if key.startswith(prefix) and isinstance(value, (int, float)):
                thresholds.append(
                    Threshold(name=key.removeprefix(prefix), bound=bound, value=float(value))
                )

    return thresholds


def metric_names(scorers: Iterable[tuple[str, tuple[Metric, ...]]]) -> list[str] | None:
    """The metrics that these scorers (name, metrics) will measure; None if one of them does not
    announce them.
    """
    named = []
    for scorer, metrics in scorers:
        for metric in metrics:
            named.append((scorer, metric.name))

    if any(metrics == (Metric(name=scorer),) for scorer, metrics in scorers):
        return None
    names = [name for _, name in named]
    found = []
    for scorer, name in named:
        if names.count(name) == 1:
            found.append(name)
        else:
            found.append(f"{scorer}.{name}")

    return found


def resolve(
    name: str, conditions: Collection[str], metrics: Collection[str] | None
) -> tuple[str | None, str]:
    """Condition and metric of `[CONDITION.]METRIC`; both may contain dots. Condition None: all of
    them.

    `metrics` None: not known yet. Raises BadOption for an unknown name, and for an ambiguous one.

    >>> resolve("gpt-4.1.judge.clarity", ["gpt-4.1"], ["judge.clarity"])
    ('gpt-4.1', 'judge.clarity')
    """
    split = []
    for label in conditions:
        if name.startswith(f"{label}."):
            split.append((label, name.removeprefix(f"{label}.")))

    if metrics is None:
        if len(split) == 1:
            return split[0]
        return (None, name)

    known = [*metrics, *TOTALS]
    if name in known:
        meant: list[tuple[str | None, str]] = [(None, name)]
    else:
        meant = []

    meant += [(label, metric) for label, metric in split if metric in known]
    if len(meant) == 1:
        return meant[0]
    if meant:
        ways = " or ".join(
            f"'{metric}' {f'under {label!r}' if label else 'of all'}" for label, metric in meant
        )
        raise BadOption(
            "gate",
            f"'{name}' can be read in several ways: {ways}; rename the condition or the scorer",
        )

    if split:
        _, metric = split[0]
        raise BadOption(
            "gate", f"'{name}': no metric is called '{metric}'{did_you_mean(metric, known)}"
        )

    head, dot, metric = name.rpartition(".")
    if dot and metric in known:
        raise BadOption(
            "gate", f"'{name}': no condition is called '{head}'{did_you_mean(head, conditions)}"
        )

    every = [*known, *(f"{condition}.{metric}" for condition in conditions for metric in known)]
    raise BadOption(
        "gate",
        (
            f"no metric is called '{name}'{did_you_mean(name, every, listing=False)} "
            f"({', '.join(known)})"
        ),
    )
