"""Metrics that your own program computes from the workspace that a trial left."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from karat.errors import JudgeFault
from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting, Verdict
from karat_coding.scorers._programs import ProgramOptions, added, run_program

__all__ = ["Command"]


class Scale(BaseModel):
    """How to interpret a metric."""

    model_config = ConfigDict(extra="forbid")
    low: float | None = None  # its least value; null: not bounded
    high: float | None = None  # its greatest value; null: not bounded
    direction: Literal["higher", "lower", "none"] = "higher"  # which way is better
    description: str = ""  # its meaning, for reports


class Command:
    """The numbers that a program prints: one JSON object of metric → number, true, false or null.

    It runs in a copy of the workspace, as the trial left it, with the folder `add` copied over it.
    On standard input it gets `sample`, `metadata`, `questions`, `golden` and `replies` as one JSON
    object. A program that fails, exceeds a limit or prints something else gives no score.
    """

    blocking = True
    runs_programs = True

    class Options(ProgramOptions):
        """What the experiment file may set."""

        metrics: dict[str, Scale] = Field(
            min_length=1,
            description=(
                "what the program gives: metric → {low, high, direction}, or {} for any number"
            ),
        )

    def __init__(self, options: Options, setting: ScorerSetting) -> None:
        self._options, self._workspace_of = options, setting.workspace_of
        self.metrics = tuple(
            Metric(name=name, **scale.model_dump()) for name, scale in options.metrics.items()
        )
        self._files, self.fingerprint = added(setting.folder, options.add)

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """Raises JudgeFault if there is no workspace, or the program gives no numbers."""
        given = {
            "sample": sample.id,
            "metadata": sample.metadata,
            "questions": [turn.question for turn in sample.turns],
            "golden": [turn.golden for turn in sample.turns],
            "replies": [reply.text for reply in answer.replies],
        }
        with self._workspace_of(answer) as workspace:
            finished = run_program(
                self._options, sample, workspace, self._files, json.dumps(given).encode()
            )

        if finished.code != 0:
            raise JudgeFault("program_failed", finished.ending)
        try:
            values = json.loads(finished.output)
        except (ValueError, RecursionError) as error:
            raise JudgeFault("bad_output", f"the program's output is not JSON: {error}") from error

        if not isinstance(values, dict) or not all(
            value is None or isinstance(value, (int, float)) for value in values.values()
        ):
            raise JudgeFault(
                "bad_output",
                "the program must print one JSON object of metric → number, true, false or null",
            )

        return Verdict(values=values)
