"""Whether the answer is JSON, and valid against a schema."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting, Verdict
from karat.scorers._child import Schemas, read_schema

__all__ = ["JsonSchema"]


class JsonSchema:
    """True if the answer is JSON (also in a code fence) and valid against a JSON schema.

    In a conversation it checks the last reply.

    The schema is applied in a separate process that ends after `timeout_seconds`. References
    outside the schema are not followed: nothing is fetched. `reasons` gives the first fault.
    """

    blocking = True

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid", populate_by_name=True)
        json_schema: dict[str, object] | bool | str = Field(
            alias="schema",
            description=(
                "the schema, or the path of a JSON file with it, from the experiment's folder"
            ),
        )
        fence: bool = Field(
            default=True, description="read the first code fence, where the answer has one"
        )
        # for one answer; after that it has no score
        timeout_seconds: float = Field(default=5.0, gt=0, le=60)
        max_characters: int = Field(default=1_000_000, ge=1)  # a longer answer has no score

    golden = False

    def __init__(self, options: Options, setting: ScorerSetting | None = None) -> None:
        self._options = options
        self._name = setting.name if setting is not None else "json_schema"
        description = "answers valid against the schema"
        self.metrics = (
            Metric(name=self._name, low=0, high=1, kind="share", description=description),
        )
        schema = read_schema(options.json_schema, setting.folder if setting is not None else Path())
        self.fingerprint = blake2b(
            json.dumps(schema, sort_keys=True).encode(), digest_size=16
        ).hexdigest()
        self._schemas = Schemas([schema], seconds=options.timeout_seconds)

    def score(self, sample: Sample, answer: Answer) -> Verdict:
        """The reason names the first fault; None: the answer is longer than `max_characters`."""
        text = answer.text
        if len(text) > self._options.max_characters:
            return self._verdict(None, f"is longer than {self._options.max_characters} characters")
        valid, reason = self._schemas.check(0, unfenced(text) if self._options.fence else text)
        return self._verdict(valid, reason)

    def close(self) -> None:
        """End the process that validates."""
        self._schemas.close()

    def _verdict(self, valid: bool | None, reason: str) -> Verdict:
        if reason:
            reasons = {self._name: reason}
        else:
            reasons = {}

        return Verdict(values={self._name: valid}, reasons=reasons)


def unfenced(text: str) -> str:
    """The content of the first code fence; the text itself if there is none."""
    start = text.find("```")
    if start < 0:
        return text
    line_end = text.find("\n", start)
    end = text.find("```", line_end)
    if 0 <= line_end < end:
        return text[line_end + 1 : end]
    return text
