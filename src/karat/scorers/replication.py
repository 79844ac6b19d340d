"""What participants of a human study answered: every field of every turn, read, or the reason why it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from karat.errors import JudgeFault
from karat.kinds import of_sample
from karat.records import Answer, Metric, Reply, Sample
from karat.scorers import Verdict

__all__ = ["Replication"]

RULES = "answers 2"
"""How answers are read. Another rule has another number: `karat score RUN` then reads the answers of a run again."""

_WITHOUT = {"not_asked": "stopped", "not_recorded": "unrecorded"}
"""`stop_reason` of a turn that has no reply → what its row says of it."""


class Replication:
    """Reads what participants of a human study answered, and why a field is not read. For `dataset.kind: study`.

    One row a turn: `parsed` is whether every field that is not optional was read; the answers stand under
    `detail.answers`, and under `labels` each field that has none, with its reason: refused, missing,
    out_of_range, contradictory or invalid. A turn that was not asked any more, because too much
    before it could not be read, has no value. Nothing is turned into another answer. The tests, PAS
    and ECS of the study are made from these rows by every report.
    """

    class Options(BaseModel):
        """Nothing can be set: the study says how answers are read."""

        model_config = ConfigDict(extra="forbid")

    offline = True
    fingerprint = RULES
    metrics = (
        Metric(
            name="parsed", low=0, high=1, kind="share", description="every field that must be answered could be read"
        ),
    )

    def score(self, sample: Sample, answer: Answer) -> Sequence[Verdict]:
        """A verdict a declared turn."""
        replies = [*answer.replies, *[None] * (len(sample.turns) - len(answer.replies))]
        fields: Any = sample.detail.get("fields")
        if not isinstance(fields, list) or len(fields) < len(sample.turns):
            # Also a sample of another kind of dataset: there is nothing to read in its answers.
            return [Verdict(values={"parsed": None}, turn=number) for number in range(len(sample.turns))]
        return [_verdict(sample, number, replies[number]) for number in range(len(sample.turns))]


def _verdict(sample: Sample, number: int, reply: Reply | None) -> Verdict:
    text = "" if reply is None else reply.text or reply.answer or ""
    why = "unrecorded" if reply is None else _WITHOUT.get(reply.stop_reason or "") if not text else None
    if why is not None:
        return Verdict(values={"parsed": None}, turn=number, labels={"turn": why})
    try:
        read = of_sample(sample).read(sample, number, text)
    except ValueError as error:  # fields that no study has
        raise JudgeFault("bad_sample", f"the fields of turn {number} cannot be read: {error}") from error
    asked = sample.detail["fields"][number]
    parsed = all(name in read.values or bool(one.get("optional")) for name, one in asked.items())
    return Verdict(values={"parsed": parsed}, turn=number, labels=dict(read.kinds), detail={"answers": read.values})
