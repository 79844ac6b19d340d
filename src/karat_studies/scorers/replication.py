"""What participants of a human study answered: every field of every turn, parsed, or the reason why
it cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from karat.errors import JudgeFault
from karat.kinds import of_sample
from karat.records import Answer, Metric, Sample
from karat.scorers import Verdict

__all__ = ["Replication"]

RULES = "answers 3"
"""The version of how answers are read.

After a change, `karat score RUN` reads a run's answers again.
"""

_WITHOUT = {"not_asked": "stopped", "not_recorded": "unrecorded"}
"""`stop_reason` of a turn without a reply → the reason in its row."""


class Replication:
    """Parses the answers of a human study's participants, field by field. For `dataset.kind:
    study`.

    One row per turn: `parsed` is whether every field that is not optional was parsed; the answers
    are in `detail.answers`, and `labels` gives the reason for each field without one: refused,
    missing, out_of_range, contradictory or invalid. A turn that was not asked, because too many
    earlier answers could not be parsed, has no value. No answer is replaced by another. Every
    report computes the tests, PAS and ECS of the study from these rows.
    """

    class Options(BaseModel):
        """No options: the study defines how answers are parsed."""

        model_config = ConfigDict(extra="forbid")

    offline = True
    fingerprint = RULES
    metrics = (
        Metric(
            name="parsed",
            low=0,
            high=1,
            kind="share",
            description="turns whose required fields could all be read",
        ),
    )

    def score(self, sample: Sample, answer: Answer) -> Sequence[Verdict]:
        """One verdict per declared turn."""
        replies = [*answer.replies, *[None] * (len(sample.turns) - len(answer.replies))]
        fields: Any = sample.detail.get("fields")
        if not isinstance(fields, list) or len(fields) < len(sample.turns):
            # Also a sample of another kind of dataset: there is nothing to read in its answers.
            return [
                Verdict(values={"parsed": None}, turn=number) for number in range(len(sample.turns))
            ]

        verdicts = []
        for number in range(len(sample.turns)):
            reply = replies[number]
            text, why = "", None
            if reply is None:
                why = "unrecorded"
            else:
                text = reply.text or reply.answer or ""
                if not text:
                    why = _WITHOUT.get(reply.stop_reason or "")

            if why is not None:
                verdict = Verdict(values={"parsed": None}, turn=number, labels={"turn": why})
            else:
                try:
                    read = of_sample(sample).read(sample, number, text)
                except ValueError as error:  # fields that no study has
                    raise JudgeFault(
                        "bad_sample", f"the fields of turn {number} cannot be read: {error}"
                    ) from error

                asked = sample.detail["fields"][number]
                parsed = all(
                    name in read.values or bool(field.get("optional"))
                    for name, field in asked.items()
                )
                verdict = Verdict(
                    values={"parsed": parsed},
                    turn=number,
                    labels=dict(read.kinds),
                    detail={"answers": read.values},
                )

            verdicts.append(verdict)

        return verdicts
