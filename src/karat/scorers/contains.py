"""Whether the answer contains a text: the golden answer, or given texts."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from karat.records import Answer, Metric, Sample, Turn
from karat.scorers import ScorerSetting, Verdict, accepted, golden_turns

__all__ = ["Contains"]

_SHORT = 3  # characters


class Contains:
    """True if the answer contains the golden answer, or all or any of the texts given instead.

    Runs of white space count as one space. Case is ignored by default. Without texts and
    without a golden answer there is no score.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        texts: Annotated[
            list[str],
            BeforeValidator(lambda texts: [texts] if isinstance(texts, str) else texts),
        ] = Field(default=[], description="what is looked for, instead of the golden answer")
        match: Literal["all", "any"] = Field(
            default="all", description="how many of the texts must be there"
        )
        case_sensitive: bool = False  # whether A and a differ
        negate: bool = Field(default=False, description="true where they are not there")

        @field_validator("texts")
        @classmethod
        def _not_empty(cls, texts: list[str]) -> list[str]:
            if any(not text.strip() for text in texts):
                raise ValueError("must not hold an empty text: every answer contains it")
            return texts

    def __init__(
        self, options: Options | None = None, setting: ScorerSetting | None = None
    ) -> None:
        self._options = options or self.Options()
        name = setting.name if setting is not None else "contains"
        self.metrics = (
            Metric(
                name=name, low=0, high=1, kind="share", description="answers that hold the text"
            ),
        )
        self._texts = [self._plain(text) for text in self._options.texts]

    def score(self, sample: Sample, answer: Answer) -> list[Verdict] | bool | None:
        """For each turn with a golden answer, or for the last reply.

        None: no text and no golden answer is given.
        """
        if self._texts:
            plain = self._plain(answer.text)
            quantity = all if self._options.match == "all" else any
            return quantity(text in plain for text in self._texts) != self._options.negate

        (name,) = (metric.name for metric in self.metrics)
        turns = golden_turns(sample, answer)
        if len(sample.turns) < 2:
            if turns:
                return self._holds_golden(turns[0][1], answer.text)
            return None

        verdicts = [
            Verdict(values={name: self._holds_golden(turn, text)}, turn=number)
            for number, turn, text in turns
        ]
        return verdicts or None

    def _holds_golden(self, turn: Turn, answer: str) -> bool:
        """Whether the answer contains a golden answer of the turn, or any of several.

        Of several, one of a letter or two, such as that of a choice, must be a word of its own.
        """
        plain, texts = self._plain(answer), [self._plain(text) for text in accepted(turn)]
        whole_words = {*re.findall(r"\w+", plain)}
        found = False
        for text in texts:
            if len(texts) > 1 and len(text) < _SHORT:
                found = found or text in whole_words
            else:
                found = found or text in plain

        return found != self._options.negate

    def _plain(self, text: str) -> str:
        text = " ".join(text.split())
        if self._options.case_sensitive:
            return text
        return text.casefold()
