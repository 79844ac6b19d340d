"""One judge: its model, what it is sent, and its output asked for until it can be used."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from karat.errors import InfrastructureFault, JudgeFault, TrialFault
from karat.models import Meter, close_model, fault_of, metered, open_model, parse_model, price, settings_of
from karat.records import Usage
from karat.rubrics import Rubric
from karat.scorers import ScorerSetting
from karat.scorers._judge_output import Judgement, Unusable, is_copy, judgement_of, read_object, schema_of
from karat.scorers._judge_prompt import TOOL, Material, instructions, message, prompt_digest

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from karat.scorers.judge import Judge

__all__ = ["Call", "Said", "key_of"]

_FREE = frozenset({"rate_limit", "server_error", "unauthorized", "quota", "no_model", "refused"})
"""Kinds of failure in which the provider said that it did nothing, so that nothing is to pay."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a judge said of one answer, and what that cost."""

    scores: dict[str, int]
    reasons: dict[str, str]
    extra: dict[str, Any]
    model: str | None  # as the provider names the model that answered
    asks: int  # how often it was asked; 0: it had said it before
    usage: Usage | None
    dollars: float | None


class _Output(msgspec.Struct, frozen=True, kw_only=True):
    """One usable output, and what came with it."""

    judgement: Judgement
    model: str | None
    asks: int


class Call:
    """One model with its parameters."""

    def __init__(self, options: Judge.Options, member: Any, rubric: Rubric, *, setting: ScorerSetting) -> None:
        own = member if isinstance(member, str) else member.model
        self._base_url, self._key = options.base_url, options.api_key_env
        if not isinstance(member, str):
            self._base_url, self._key = member.base_url or self._base_url, member.api_key_env or self._key
        self.name = parse_model(own, place=f"{setting.name}.model")
        self.address = _without_secrets(self._base_url) if self._base_url is not None else None
        self._options, self._rubric, self._setting = options, rubric, setting
        self._parts = rubric.single() if options.call_per_metric else (rubric,)  # each is asked for in a call
        self._given: dict[str, dict[int, _Output]] = {}  # key → part → what was paid for before a later part failed
        self._opened: tuple[Model, ModelSettings] | None = None

    def open(self) -> tuple[Model, ModelSettings]:
        """The model, ready to be asked, and what is sent with each request.

        Raises BadOption where the provider, its key or a parameter is missing, and MissingExtra.
        """
        if self._opened is None:
            options, setting = self._options, self._setting
            model = open_model(
                self.name,
                base_url=self._base_url,
                api_key_env=self._key,
                env=setting.env,
                prices=setting.prices,
                place=f"{setting.name}.model",
            )
            settings = settings_of(
                model,
                place=setting.name,
                temperature=options.temperature,
                top_p=options.top_p,
                max_tokens=options.max_tokens,
                seed=options.seed,
            )
            self._opened = model, settings
        return self._opened

    @property
    def priced(self) -> bool:
        """Whether the price of a call will be known."""
        return price(self.name, Usage(), self._setting.prices, base_url=self._base_url) is not None

    @property
    def parameters(self) -> tuple[object, ...]:
        """Everything but the material that a judgement depends on."""
        options = self._options
        return (
            *(str(self.name), self.address, options.temperature, options.top_p, options.max_tokens, options.seed),
            *(self._rubric.digest, prompt_digest(self._rubric, options.output)),
            *(["call_per_metric"] if options.call_per_metric else []),
        )

    async def ask(self, material: Material, repeat: int, *, key: str) -> Said:
        """One usable judgement, in one call or in one call a metric.

        Raises InfrastructureFault, and JudgeFault where no output of several is usable. What
        was given until then is kept under `key`, so that asking again pays only for the rest.
        """
        given = self._given.setdefault(key, {})
        with metered() as meter:
            for place, part in enumerate(self._parts):
                if place not in given:
                    given[place] = await self._usable(part, material, repeat, meter)
        self._given.pop(key, None)
        outputs = [given[place] for place in range(len(self._parts))]
        return Said(
            scores={name: score for output in outputs for name, score in output.judgement.scores.items()},
            reasons={name: text for output in outputs for name, text in output.judgement.reasons.items()},
            extra={name: value for output in outputs for name, value in output.judgement.extra.items()},
            model=outputs[-1].model,
            asks=sum(output.asks for output in outputs),
            usage=meter.usage,
            dollars=meter.dollars,
        )

    async def _usable(self, part: Rubric, material: Material, repeat: int, meter: Meter) -> _Output:
        """One usable output of one call."""
        fault: str | None = None
        for asks in range(1, self._options.max_asks + 1):
            response = await self._request(part, message(material, fault=fault), repeat, meter)
            try:
                return _Output(judgement=_read(response, part, material[-1]), model=response.model_name, asks=asks)
            except Unusable as unusable:
                fault = str(unusable)
        times = f"in {self._options.max_asks} outputs" if self._options.max_asks > 1 else "in its output"
        raise JudgeFault(
            "bad_output",
            f"{self.name} gave no usable judgement {times}; the last fault: {fault}",
            retriable=True,
            usage=meter.usage,
            dollars=meter.dollars,
        )

    async def aclose(self) -> None:
        """Closes the connections."""
        opened, self._opened = self._opened, None
        if opened is not None:
            await close_model(opened[0])

    async def _request(self, part: Rubric, text: str, repeat: int, meter: Meter) -> ModelResponse:
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.messages import InstructionPart, ModelRequest, UserPromptPart
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.tools import ToolDefinition

        told = instructions(part, self._options.output)
        asked = ModelRequest(parts=[UserPromptPart(content=text)], instructions=told)
        parameters = ModelRequestParameters(instruction_parts=[InstructionPart(content=told)])
        if self._options.output == "tool":
            tool = ToolDefinition(
                name=TOOL,
                description="Records the judgement of the agent's answer.",
                parameters_json_schema=schema_of(part),
                kind="output",
            )
            parameters = ModelRequestParameters(
                instruction_parts=parameters.instruction_parts,
                output_mode="tool",
                output_tools=[tool],
                allow_text_output=False,
            )
        model, settings = self.open()
        if self._options.seed is not None:
            # With one seed for all, repeats would be copies, and the judge's noise would look like zero.
            settings = {**settings, "seed": self._options.seed + repeat}
        try:
            return await model.request([asked], settings, parameters)
        except (AgentRunError, OSError) as error:
            raise _priced(fault_of(error), meter) from error


def _priced(fault: TrialFault, meter: Meter) -> TrialFault:
    """The fault with what was paid until then; nothing was where the provider refused the only request."""
    usage, dollars = meter.usage, meter.dollars
    if fault.kind in _FREE and not meter.responses:
        usage, dollars = Usage(), 0.0
    elif fault.kind not in _FREE:
        dollars = None
    kind = InfrastructureFault if isinstance(fault, InfrastructureFault) else JudgeFault
    return kind(
        fault.kind,
        fault.message,
        retriable=fault.retriable,
        retry_after=fault.retry_after,
        usage=usage,
        dollars=dollars,
    )


def _read(response: ModelResponse, rubric: Rubric, answer: str) -> Judgement:
    """The judgement in a response: by the tool, else in its text. Raises Unusable."""
    if response.finish_reason == "length":
        raise Unusable("it was cut off at the limit of tokens; be brief")
    if response.finish_reason == "content_filter":
        raise Unusable("it was stopped by the provider's filter")
    calls = [part.args for part in response.parts if part.part_kind == "tool-call" and part.tool_name == TOOL]
    given = [args if isinstance(args, dict) else read_object(args or "", rubric) for args in calls]
    distinct = [args for place, args in enumerate(given) if args not in given[:place]]
    if len(distinct) > 1:
        raise Unusable("it recorded several judgements; give one")
    values = distinct[0] if distinct else read_object(response.text or "", rubric)
    if is_copy(values, answer, rubric):
        raise Unusable("it repeats a judgement that stands in the agent's answer; give your own")
    return judgement_of(values, rubric)


def key_of(call: Call, material: Material, repeat: int) -> str:
    """32 hex digits over all that a judgement depends on: two judgements with one key could be exchanged."""
    told = [*call.parameters, *material, repeat]
    return blake2b(msgspec.json.encode([_encodable(one) for one in told]), digest_size=16).hexdigest()


def _encodable(value: object) -> object:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


def _without_secrets(url: str) -> str:
    """Without user and query, where secrets stand."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
