"""The results of `compare`, as frozen values, rows and plain text."""

from __future__ import annotations

from typing import Any

import msgspec

from karat import formats
from karat.analysis import shapes
from karat.analysis.format_metric import POINT_LEGEND, is_point, measured, signed_estimate
from karat.analysis.model import Difference, MetricInfo, ServerProblem
from karat.analysis.parts import PartHolder, builtins_of, installed
from karat.analysis.verdicts import over_units
from karat.records import JsonObject


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a comparison."""

    label: str  # as shown
    run: str
    name: str
    condition: str | None  # None: each condition that both runs have
    sha256: str  # of the dataset


class Flip(msgspec.Struct, frozen=True, kw_only=True):
    """A question on which the two sides differ."""

    sample: str
    a: float
    b: float
    difference: float  # b − a


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """One metric, one condition of each side."""

    difference: Difference
    mean_a: float | None  # over the shared questions
    mean_b: float | None
    better: int  # questions on which b is better (higher, if no direction is better)
    worse: int
    equal: int
    # those on which the better side gains most first, then the largest losses
    flips: tuple[Flip, ...]


class Comparison(PartHolder, frozen=True, kw_only=True):
    """What changed from `a` to `b`. Differences are b − a."""

    format: int
    a: Side
    b: Side
    level: float
    headline: str
    metrics: tuple[MetricInfo, ...]
    pairings: tuple[Pairing, ...]
    only_a: int  # questions that only a's run has
    only_b: int
    changed: int  # questions with the same id but different content: left out
    warnings: tuple[str, ...]
    unit: str = "question"  # the paired unit: question, conversation or participant
    # pairs: a condition of the first, one of the second
    conditions: tuple[tuple[str, str], ...] = ()
    # sides whose MCP calls failed, or that made none
    server_problems: tuple[ServerProblem, ...] = ()
    pairs: int | None = None  # of conditions, in the run that both sides are of; None: two runs
    right: str | None = None  # for conversations: the match that makes a turn right

    @property
    def p_label(self) -> str:
        """How its p-values are headed: adjusted only if there are several."""
        tests = sum(pairing.difference.p_adjusted is not None for pairing in self.pairings)
        return "p (Holm)" if tests > 1 else "p"

    @property
    def one_of_pairs(self) -> str:
        """How many pairs the run has, if this is one of several; empty if it is not."""
        if self.pairs is None or self.pairs < 2:
            return ""
        return (
            f"the run has {formats.count(self.pairs)} pairs of conditions, and this is one: "
            "`karat report RUN --pairs all` adjusts p-values for all of them"
        )

    def percent(self, pairing: Pairing) -> bool:
        """Whether a pairing's metric is a share, which people read in percent."""
        return any(info.key == pairing.difference.metric and info.percent for info in self.metrics)

    def to_builtins(self) -> JsonObject:
        """As `--json` prints it: null for kinds whose runs are compared differently."""
        return builtins_of(
            self, absent=(name for name, kind in installed().items() if len(kind.parts) > 1)
        )

    def table(self) -> list[JsonObject]:
        """One row per pairing, raw numbers."""
        rows = []
        for pairing in self.pairings:
            difference = pairing.difference
            rows.append(
                {
                    "metric": difference.metric,
                    "a": difference.a,
                    "b": difference.b,
                    "mean_a": pairing.mean_a,
                    "mean_b": pairing.mean_b,
                    "difference": difference.estimate.value,
                    "low": difference.estimate.low,
                    "high": difference.estimate.high,
                    "level": difference.estimate.level,
                    "p": difference.p,
                    "p_adjusted": difference.p_adjusted,
                    "effect": difference.effect,
                    "n_pairs": difference.n_pairs,
                    "better": pairing.better,
                    "worse": pairing.worse,
                    "equal": pairing.equal,
                    "verdict": difference.verdict,
                    "offline": difference.offline,
                    "least": difference.least,
                    "most": difference.most,
                    "loss_a": difference.loss_a,
                    "loss_b": difference.loss_b,
                }
            )

        return rows

    def to_frame(self) -> Any:
        """`table()` as a pandas (or polars) DataFrame. Raises BadOption without either."""
        return shapes.frame(self.table())

    def __str__(self) -> str:
        lines = [
            self.headline,
            "",
            f"{self.a.label} → {self.b.label}; differences are the second minus the first",
        ]
        if self.conditions and self.a.condition is None and self.b.condition is None:
            matched = (
                name if name == other else f"{name} with {other}" for name, other in self.conditions
            )
            lines.append(f"conditions compared: {', '.join(matched)}")

        if self.right is not None:
            lines += [f"right: {self.right}, or the same yes or no"]

        for pairing in self.pairings:
            difference = pairing.difference
            percent = self.percent(pairing)
            by = signed_estimate(difference.estimate, percent=percent)
            means = (measured(mean, percent=percent) for mean in (pairing.mean_a, pairing.mean_b))
            sides = zip((difference.a, difference.b), means, strict=True)
            named = ", ".join(f"{name} {mean}" for name, mean in sides)
            offline = " (offline)" if difference.offline else ""
            p = f"p {formats.p_value(difference.p_adjusted)}{self.p_label.removeprefix('p')}"
            tested = f"{over_units(difference, self.unit)}, {p}"
            effect = f"d {formats.number(difference.effect)}"
            lines += [
                "",
                f"{difference.metric}{offline}: {named}",
                f"  {by}, {tested}, {effect}: {difference.verdict}",
                f"  better {pairing.better}, worse {pairing.worse}, equal {pairing.equal}",
            ]
            if difference.n_pairs and difference.least != difference.most:
                least = difference.least
                most = difference.most
                _, bounds = formats.between(None, least, most, percent=percent)
                lines.append(
                    f"  bounds, if the missing scores were the lowest or the highest: {bounds}"
                )

            again = difference.again
            if again is not None and again.new_questions is not None:
                more = ""
                if again.same_questions is not None:
                    more = f", {formats.chance(again.same_questions)} with the same {self.unit}s"
                null = "; where nothing differs at all, 2 %" if again.shown else ""
                lines.append(
                    f"  same verdict again: {formats.chance(again.new_questions)} of runs with new "
                    f"{self.unit}s{more}, if effects of this size are usual{null}"
                )

            for flip in pairing.flips:
                label = formats.excerpt(flip.sample, 24)
                before, after = (measured(mean, percent=percent) for mean in (flip.a, flip.b))
                change = formats.between(flip.difference, None, None, percent=percent)[0]
                lines.append(f"    {label:24} {before} → {after} ({change})")

        lines += [line for part in self.parts.values() for line in part.lines()]
        counts = [
            formats.plural(self.only_a, self.unit) + " only in the first" if self.only_a else "",
            formats.plural(self.only_b, self.unit) + " only in the second" if self.only_b else "",
        ]
        if any(counts):
            lines += ["", "; ".join(text for text in counts if text)]
        if any(is_point(pairing.difference.estimate) for pairing in self.pairings):
            lines += ["", POINT_LEGEND]
        if self.one_of_pairs:
            lines += ["", self.one_of_pairs]
        lines += [f"warning: {text}" for text in self.warnings]
        return "\n".join(formats.clean(line) for line in lines) + "\n"

    def _repr_html_(self) -> str:
        from karat.document.render.notebook import comparison_html  # it imports this module

        return comparison_html(self)
