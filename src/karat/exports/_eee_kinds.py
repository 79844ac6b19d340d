"""What only some kinds of run have, for Every Eval Ever: a study's PAS and ECS, whole conversations.

These are numbers of a condition, not means over samples: they have no instances.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Any

from karat.analysis import Summary
from karat.analysis.numbers import Estimate

__all__ = ["Whole", "wholes"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Whole:
    """One number of a condition."""

    condition: str
    key: str  # with the scorer before it: no metric is called so
    meaning: str
    estimate: Estimate
    low: float
    high: float
    unit: str  # what `estimate.n` counts
    scorer: str
    scoring: str
    kind: str
    details: dict[str, str]

    def config(self) -> dict[str, Any]:
        """As `metric_config`."""
        return {
            "evaluation_description": self.meaning,
            "metric_id": f"karat.{self.key}",
            "metric_name": self.key,
            **({"metric_unit": "proportion"} if self.kind == "share" else {}),
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": self.low,
            "max_score": self.high,
            "additional_details": {
                "direction": "higher",
                "kind": self.kind,
                "scorer": self.scorer,
                "scoring": self.scoring,
            },
        }

    def score(self) -> dict[str, Any]:
        """As `score_details`."""
        found = self.estimate
        numbers: dict[str, Any] = {"num_samples": found.n}
        if found.se is not None:
            method = "bootstrap" if "bootstrap" in found.method else "analytic"
            numbers["standard_error"] = {"value": found.se, "method": method}
        if found.low is not None and found.high is not None:
            numbers["confidence_interval"] = {
                "lower": found.low, "upper": found.high, "confidence_level": found.level, "method": found.method,
            }  # fmt: skip
        details = {"num_samples": f"{found.n} {self.unit}", **self.details}
        return {"score": found.value, "details": details, "uncertainty": numbers}


def wholes(summary: Summary, conditions: Container[str]) -> Iterator[Whole]:
    """Those that have a value."""
    for one in (*_studies(summary), *_conversations(summary)):
        if one.condition in conditions and one.estimate.value is not None:
            yield one


def _studies(summary: Summary) -> Iterator[Whole]:
    study = summary.study
    for one in study.conditions if study is not None else ():
        assert study is not None
        level = one.benchmark
        details = {
            "tests": f"{level.tests_used} of {level.tests_planned}",
            "findings": f"{level.findings_used} of {level.findings_planned}",
            "participants": f"{one.participants.parsed} read, of {one.participants.planned}",
            **({} if level.ceiling is None else {"pas_of_a_perfect_copy": str(level.ceiling)}),
        }
        for name, meaning, estimate, low in (
            (
                "pas",
                "PAS: how far the agents' tests say what people's tests say",
                level.pas,
                0.0,
            ),
            ("ecs", "ECS: concordance of the agents' effects with people's", level.ecs, -1.0),
        ):
            yield Whole(
                condition=one.condition, key=f"{study.scorer}.{name}", meaning=meaning, estimate=estimate, low=low,
                high=1.0, unit="tests", scorer=study.scorer, scoring=study.scoring, kind="number", details=details,
            )  # fmt: skip


def _conversations(summary: Summary) -> Iterator[Whole]:
    found = summary.conversation
    for one in found.conditions if found is not None else ():
        assert found is not None
        rate = one.conversation_accuracy
        yield Whole(
            condition=one.condition, key=f"{found.scorer}.{rate.name}", meaning="conversations with every turn right",
            estimate=rate.estimate, low=0.0, high=1.0, unit="conversations", scorer=found.scorer,
            scoring=found.scoring, kind="share", details={"conversations": str(one.conversations)},
        )  # fmt: skip
