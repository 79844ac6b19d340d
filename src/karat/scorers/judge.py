"""A language model as judge: one structured output an answer, by a rubric, with everything it depends on pinned."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from karat import rubrics
from karat.config.model import Address, Count, Name, Number, Strictly, VariableName
from karat.errors import BadOption
from karat.models import parse_model, price_table, route
from karat.records import Answer, Metric, Sample, Score, Usage
from karat.scorers import Row, ScorerSetting, Verdict, golden_turns
from karat.scorers._judge_call import Call, Said, key_of
from karat.scorers._judge_prompt import PROMPT_VERSION, Material, Output, prompt_digest

__all__ = ["Judge"]

_CLAIMS = "unverified_claims"
_EITHER: dict[str, JsonValue] = {
    "oneOf": [
        {"required": ["model"], "properties": {"model": {"type": "string"}}},
        {"required": ["judges"], "properties": {"judges": {"minItems": 1}}},
    ]
}


class Judge:
    """Scores an answer by a rubric with a language model, or with a panel of them.

    The answer is data to it: what stands in its block is scored and never followed. An output
    that cannot be used is asked for again with its fault named. Each verdict is journalled as
    it comes; what a run's judges have said already is not paid for twice.
    """

    class Member(BaseModel):
        """One judge of a panel, where it needs more than its name."""

        model_config = Strictly

        model: Name = Field(description="provider:model, e.g. anthropic:claude-opus-4-5")
        base_url: Address | None = Field(default=None, description="as above, of this judge")
        api_key_env: VariableName | None = Field(default=None, description="as above, of this judge")

    class Options(BaseModel):
        """One `model`, or `judges`, a panel; `repeats` above 1 tells the judge's noise from the agent's."""

        model_config = ConfigDict(**Strictly, json_schema_extra=_EITHER)

        model: Name | None = Field(default=None, description="provider:model, e.g. anthropic:claude-opus-4-5")
        judges: list[Name | Judge.Member] = Field(
            default=[], max_length=20, description="several models instead, or mappings {model, base_url, api_key_env}"
        )
        rubric: Name = Field(default="default", description="a built-in one, or a file")
        repeats: Count = Field(default=1, ge=1, le=100, description="how often each judge scores each answer")
        call_per_metric: bool = Field(
            default=False, description="one call for each metric instead of one for all; costs more, no halo"
        )
        temperature: Number | None = Field(
            default=0.0, ge=0, le=2, description="null: not sent, for models that refuse it"
        )
        seed: Count | None = Field(default=None, description="of the first repeat; each further one has the next")
        top_p: Number | None = Field(default=None, gt=0, le=1, description="null: the provider's default")
        max_tokens: Count | None = Field(default=None, ge=1, description="of an output; null: the provider's default")
        output: Output = Field(default="tool", description="json: for servers that cannot call tools")
        max_asks: Count = Field(default=3, ge=1, le=10, description="how often a usable output is asked for at a time")
        base_url: Address | None = Field(default=None, description="of a service that speaks the provider's protocol")
        api_key_env: VariableName | None = Field(default=None, description="the variable that holds the key")

        @field_validator("model")
        @classmethod
        def _has_provider(cls, model: str | None) -> str | None:
            return model if model is None else _named(model)

        @field_validator("judges")
        @classmethod
        def _have_providers(cls, judges: list[str | Judge.Member]) -> list[str | Judge.Member]:
            for one in judges:
                _named(one if isinstance(one, str) else one.model)
            return judges

        @model_validator(mode="after")
        def _someone_judges(self) -> Judge.Options:
            if bool(self.model) == bool(self.judges):
                raise ValueError("needs either `model` (provider:model) or `judges` (a list of them)")
            names = [one if isinstance(one, str) else one.model for one in self.judges]
            if len(set(names)) < len(names):
                raise ValueError("`judges` names a model twice; `repeats` scores each answer several times")
            return self

    offline = False

    def __init__(self, options: Options, setting: ScorerSetting | None = None) -> None:
        setting = setting or ScorerSetting(folder=Path(), name="judge")
        self._options, self._recall, self._env = options, setting.recall, setting.env
        self._rubric = rubrics.load(options.rubric, folder=setting.folder)
        members = options.judges or [options.model or ""]
        self._calls = [Call(options, member, self._rubric, setting=setting) for member in members]
        self.rubric_name, self.rubric_digest = self._rubric.source, self._rubric.digest
        self.metrics = tuple(
            Metric(
                name=metric.name,
                low=metric.low,
                high=metric.high,
                direction=metric.direction,
                kind="ordinal",
                description=metric.description,
            )
            for metric in self._rubric.metrics
        )
        told = prompt_digest(self._rubric, options.output)
        self.fingerprint = f"{PROMPT_VERSION} {told}"
        self.provenance: Mapping[str, Any] = {
            "judges": [str(call.name) for call in self._calls],
            **{name: getattr(options, name) for name in ("temperature", "seed", "top_p", "max_tokens", "output")},
            "base_url": [call.address for call in self._calls],
            "repeats": options.repeats,
            **({"call_per_metric": True} if options.call_per_metric else {}),
            "prompt": told,
            "prices": "the experiment file, " * bool(setting.prices) + price_table(),
        }

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known."""
        return tuple(str(call.name) for call in self._calls if not call.priced)

    @property
    def routes(self) -> tuple[str, ...]:
        """Each model with the service that it is reached through."""
        env = self._env if self._env is not None else os.environ
        return tuple(route(call.name, env, call.address) for call in self._calls)

    def open(self) -> None:
        """Makes the models ready. Raises BadOption and MissingExtra where one cannot be asked."""
        for call in self._calls:
            call.open()

    async def score(self, sample: Sample, answer: Answer, *, done: Collection[Row] = ()) -> AsyncGenerator[Verdict]:
        """One verdict a judge and repeat, and a turn, where several have a golden answer.

        A sample without a golden answer is not scored, and costs nothing.
        """
        judged = golden_turns(sample, answer)
        if not judged:
            yield self._unscored("there is no golden answer")
        panel = len(self._calls) > 1
        for number, turn, text in judged:
            material = (_question(sample, number), turn.golden or "", text)
            empty = None if _has_text(text) else self._rubric.of_empty_answers
            place = answer.trial if number is None else f"{answer.trial}.{number}"
            for call in self._calls:
                judge = str(call.name) if panel else None
                for repeat in range(self._options.repeats):
                    if (number, judge, repeat) not in done:
                        verdict = (
                            self._of_empty(empty, judge, repeat)
                            if empty
                            else await self._verdict(call, judge, repeat, material, (answer.trial, place))
                        )
                        yield msgspec.structs.replace(verdict, turn=number, rows=verdict.rows * len(judged))

    async def aclose(self) -> None:
        """Closes the connections."""
        for call in self._calls:
            await call.aclose()

    async def _verdict(
        self, call: Call, judge: str | None, repeat: int, material: Material, places: tuple[str, str]
    ) -> Verdict:
        """`places`: the trial, and the turn within it."""
        trial, place = places
        key = key_of(call, material, repeat)
        # A judge that draws at random has its own number for each answer, equal ones included.
        key = key if self._options.temperature == 0 else f"{key}{place}"
        before = self._recall(key, trial)
        said = _again(before) if before is not None else await call.ask(material, repeat, key=key)
        fields = {name: value for name, value in said.extra.items() if name != _CLAIMS and value not in (None, [])}
        detail = {"key": key, "model": said.model, "asks": said.asks, "fields": fields, "cached": said.asks == 0}
        return Verdict(
            values=dict(said.scores),
            judge=judge,
            repeat=repeat,
            reasons=said.reasons,
            claims=tuple(said.extra.get(_CLAIMS) or ()),
            detail={name: value for name, value in detail.items() if value or name == "asks"},
            usage=said.usage,
            dollars=said.dollars,
            rows=len(self._calls) * self._options.repeats,
        )

    def _of_empty(self, levels: Mapping[str, int], judge: str | None, repeat: int) -> Verdict:
        """The rubric's levels for an answer without text; no model is asked."""
        reason = "the answer is empty: the rubric gives it this level, and the judge is not asked"
        return Verdict(
            values=dict(levels),
            judge=judge,
            repeat=repeat,
            reasons=dict.fromkeys(levels, reason),
            detail={"asks": 0, "empty": True},
            usage=Usage(),
            dollars=0.0,
            rows=len(self._calls) * self._options.repeats,
        )

    def _unscored(self, reason: str) -> Verdict:
        names = [metric.name for metric in self.metrics]
        return Verdict(values=dict.fromkeys(names), reasons=dict.fromkeys(names, reason), usage=Usage(), dollars=0.0)


def _has_text(answer: str) -> bool:
    """Whether there is anything to read: not only spaces, control characters or characters without width."""
    return any(character.isprintable() and not character.isspace() for character in answer)


def _question(sample: Sample, number: int | None) -> str:
    """A question; in a conversation after those that it may refer to."""
    question = sample.turns[-1 if number is None else number].question
    if not number:
        return question
    before = "\n".join(f"- {one.question}" for one in sample.turns[:number])
    return f"Asked before, in the same conversation:\n{before}\n\nThe question now:\n{question}"


def _named(model: str) -> str:
    """The name, if it names a provider too. Raises ValueError."""
    try:
        parse_model(model)
    except BadOption as error:
        raise ValueError(str(error).partition(": ")[2]) from None
    return model


def _again(score: Score) -> Said:
    """What a judge said before, at no cost."""
    return Said(
        scores={name: int(value) for name, value in score.values.items() if value is not None},
        reasons=score.reasons,
        extra={**score.detail.get("fields", {}), _CLAIMS: list(score.claims)},
        model=score.detail.get("model"),
        asks=0,
        usage=Usage(),
        dollars=0.0,
    )
