"""Whether the answer is the golden answer, exactly or nearly so."""

from __future__ import annotations

import unicodedata

from pydantic import BaseModel, ConfigDict, Field

from karat.records import Answer, Metric, Sample, Turn
from karat.scorers import ScorerSetting, Verdict, accepted, golden_turns

__all__ = ["Equals"]


class Equals:
    """True if the answer equals a golden answer, or one of the texts given instead.

    White space at the ends, runs of it inside and different Unicode forms of
    the same text do not count; letter case does. Without a golden answer there is no score.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        any_of: list[str] = Field(
            default=[], description="right answers, instead of the golden one"
        )
        case_sensitive: bool = True  # whether A and a differ
        strip: bool = Field(default=True, description="leave out white space at both ends")
        normalize_whitespace: bool = Field(
            default=True, description="read runs of white space as one space"
        )
        normalize_unicode: bool = Field(default=True, description="compare in Unicode's form NFKC")

    def __init__(
        self, options: Options | None = None, setting: ScorerSetting | None = None
    ) -> None:
        self._options = options or self.Options()
        name = setting.name if setting is not None else "equals"
        self.metrics = (
            Metric(
                name=name,
                low=0,
                high=1,
                kind="share",
                description="answers equal to the golden one",
            ),
        )
        self._right = frozenset(self._plain(text) for text in self._options.any_of)

    def score(self, sample: Sample, answer: Answer) -> list[Verdict] | bool | None:
        """For each turn with a golden answer. None: there is no golden answer to compare with."""
        if self._right:
            return self._plain(answer.text) in self._right
        if len(sample.turns) < 2:
            if not sample.turns or sample.turns[-1].golden is None:
                return None
            (turn,) = sample.turns
            return answer.text == turn.golden or self._is_right(turn, answer.text)

        (name,) = (metric.name for metric in self.metrics)
        verdicts = [
            Verdict(values={name: self._is_right(turn, text)}, turn=number)
            for number, turn, text in golden_turns(sample, answer)
        ]
        return verdicts or None

    def _is_right(self, turn: Turn, text: str) -> bool:
        given = self._plain(text)
        return any(given == self._plain(right) for right in accepted(turn))

    def _plain(self, text: str) -> str:
        if self._options.normalize_unicode:
            text = unicodedata.normalize("NFKC", text)
        if self._options.normalize_whitespace:
            start, end = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
            middle = " ".join(text.split())
            text = f"{' ' if start and middle else ''}{middle}{' ' if end and middle else ''}"

        if self._options.strip:
            text = text.strip()
        if self._options.case_sensitive:
            return text
        return text.casefold()
