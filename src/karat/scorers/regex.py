"""Whether a regular expression matches the answer."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from karat.records import Answer, Metric, Sample
from karat.scorers import ScorerSetting
from karat.scorers._child import Child

__all__ = ["Regex"]

_REPEATS = re.compile(r"[*+{]|\?.*\?", re.DOTALL)
_PROGRAM = """
import re
flags = 0
for name in setting["flags"]:
    flags |= getattr(re, name)
patterns = [re.compile(pattern, flags) for pattern in setting["patterns"]]
def ask(text):
    return [getattr(pattern, setting["match"])(text) is not None for pattern in patterns]
"""


class Regex:
    """True if a pattern is found in the answer (Python's `re`); in a conversation, in the last
    reply.

    The right text can make any pattern run for hours. A pattern that repeats something (`*`, `+`,
    `{…}`) therefore runs in a separate process that ends after `timeout_seconds`; the answer then
    has no score.
    """

    class Options(BaseModel):
        """What the experiment file may set."""

        model_config = ConfigDict(extra="forbid")
        pattern: str | list[str] = Field(description="a pattern, or several that must all match")
        match: Literal["search", "fullmatch", "match"] = Field(
            default="search", description="where it must match"
        )
        ignore_case: bool = False  # whether A and a are the same
        multiline: bool = Field(default=False, description="^ and $ match at every line")
        dot_all: bool = Field(default=False, description=". matches line breaks too")
        negate: bool = Field(default=False, description="true where it does not match")
        # for one answer; after that it has no score
        timeout_seconds: float = Field(default=1.0, gt=0, le=60)
        max_characters: int = Field(default=1_000_000, ge=1)  # a longer answer has no score

        @field_validator("pattern")
        @classmethod
        def _compiles(cls, pattern: str | list[str]) -> str | list[str]:
            for expression in [pattern] if isinstance(pattern, str) else pattern:
                if len(expression) > 10_000:
                    raise ValueError(
                        f"must be at most 10,000 characters long, is {len(expression)}"
                    )

                try:
                    re.compile(expression)
                except (re.error, OverflowError, RecursionError) as error:
                    raise ValueError(f"is not a regular expression: {error}") from error

            if not pattern:
                raise ValueError("must not be empty")
            return pattern

    def __init__(self, options: Options, setting: ScorerSetting | None = None) -> None:
        self._options = options
        name = setting.name if setting is not None else "regex"
        self.metrics = (
            Metric(
                name=name, low=0, high=1, kind="share", description="answers that match the pattern"
            ),
        )
        if isinstance(options.pattern, str):
            patterns = [options.pattern]
        else:
            patterns = options.pattern

        wanted = {
            "IGNORECASE": options.ignore_case,
            "MULTILINE": options.multiline,
            "DOTALL": options.dot_all,
        }
        flags = [flag for flag, on in wanted.items() if on]
        self._here: list[re.Pattern[str]] = []
        self._child: Child | None = None
        if any(_REPEATS.search(pattern) for pattern in patterns):
            settings = {"patterns": patterns, "flags": flags, "match": options.match}
            self._child = Child(_PROGRAM, settings, seconds=options.timeout_seconds)
        else:
            together = re.RegexFlag(sum(getattr(re, flag) for flag in flags))
            self._here = [re.compile(pattern, together) for pattern in patterns]

        self.blocking = self._child is not None

    def score(self, sample: Sample, answer: Answer) -> bool | None:
        """None: the answer is longer than `max_characters`."""
        text = answer.text
        if len(text) > self._options.max_characters:
            return None
        if self._child is not None:
            matched = all(self._child.ask(text))
        else:
            matched = all(
                getattr(pattern, self._options.match)(text) is not None for pattern in self._here
            )

        return matched != self._options.negate

    def close(self) -> None:
        """End the process that matches, if there is one."""
        if self._child is not None:
            self._child.close()
