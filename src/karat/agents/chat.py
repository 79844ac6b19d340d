"""Any language model, with a tool loop over the condition's MCP servers."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from karat.agents import AgentSetting
from karat.agents._prompt import prompt
from karat.agents._reading import empty_answer
from karat.config.model import Address, Count, ModelName, Number, Strictly, Text, VariableName
from karat.errors import LimitReached, TrialFault
from karat.mcp import Tool, Tools
from karat.models import (
    Meter,
    close_model,
    fault_of,
    metered,
    open_model,
    price,
    settings_of,
    stop_reason,
)
from karat.records import Condition, History, Reply, Sample, ToolCall, Turn, Usage, was_cut
from karat.thoughts import without_thoughts

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

__all__ = ["Chat"]

Images = Sequence[tuple[str, bytes]]
"""Media type and bytes of each."""

_NO_TOKENS = Usage(input_tokens=0, output_tokens=0)


class Chat:
    """A language model, with a tool loop over the condition's MCP servers.

    Every provider that pydantic-ai supports, and every server that speaks OpenAI's protocol
    (`base_url`). The model sees the condition's tools and no others, and the error messages of
    tools; a server that dies ends the attempt. All turns of a sample are one conversation.
    """

    class Options(BaseModel):
        """`model` is provider:model; inference parameters default to the provider's."""

        model_config = Strictly

        model: ModelName = Field(description="provider:model, e.g. openai:gpt-4.1")
        base_url: Address | None = None  # of a service with the provider's protocol
        api_key_env: VariableName | None = None  # the variable that holds the API key
        # null: the provider's default, as below
        temperature: Number | None = Field(default=None, ge=0, le=2)
        # nucleus sampling: the probability mass drawn from
        top_p: Number | None = Field(default=None, gt=0, le=1)
        max_tokens: Count | None = Field(default=None, ge=1)  # of one response of the model
        seed: Count | None = None  # if the provider supports it; every repetition sends the same
        # how hard it thinks
        thinking: bool | Literal["minimal", "low", "medium", "high", "xhigh", "max"] | None = None
        # responses of the model to one question; null: no limit
        max_turns: Count | None = Field(default=50, ge=1)
        # send the images that tools return; false: only describe them, for models without vision
        images: bool = True
        headers: dict[str, Text] = {}  # sent with each request
        extra_body: dict[str, object] = {}  # added to each request's body, unchanged

    indifferent = ("api_key_env", "headers")

    reports_tool_calls = True

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._max_turns = options.max_turns
        self._toolbox = setting.toolbox
        self._images = options.images
        self._model = open_model(
            options.model,
            base_url=options.base_url,
            api_key_env=options.api_key_env,
            env=setting.env,
            prices=setting.prices,
            place="agent.model",
        )
        self._settings = settings_of(
            self._model,
            place="agent",
            temperature=options.temperature,
            top_p=options.top_p,
            max_tokens=options.max_tokens,
            seed=options.seed,
            thinking=options.thinking,
        )
        if options.headers:
            self._settings["extra_headers"] = dict(options.headers)
        if options.extra_body:
            self._settings["extra_body"] = dict(options.extra_body)
        known = price(options.model, _NO_TOKENS, setting.prices, base_url=options.base_url)
        self.unpriced = () if known is not None else (options.model,)

    @asynccontextmanager
    async def session(self, condition: Condition, sample: Sample) -> AsyncIterator[_ChatSession]:
        """One trial's conversation, with the condition's servers open."""
        async with self._toolbox.open(condition) as tools:
            yield _ChatSession(
                self._model,
                self._settings,
                tools,
                system_prompt=condition.system_prompt,
                sample=sample,
                max_turns=self._max_turns,
                images=self._images,
            )

    async def aclose(self) -> None:
        """Closes the model's connections."""
        await close_model(self._model)


class _ChatSession:
    """The messages so far, and the tools."""

    def __init__(
        self,
        model: Model,
        settings: ModelSettings,
        tools: Tools,
        *,
        system_prompt: str | None,
        sample: Sample,
        max_turns: int | None,
        images: bool,
    ) -> None:
        self._model = model
        self._settings = settings
        self._tools = tools
        self._system_prompt = system_prompt
        self._sample = sample
        self._max_turns = max_turns
        self._images = images
        self._named = named_tools(tools.tools)
        self._parameters = _parameters(self._named)
        self._messages: list[ModelMessage] = []

    def restore(self, history: History) -> None:
        """Resume after these replies of an earlier attempt."""
        calls = 0
        for turn, reply in history:
            self._messages.append(self._question(turn))
            from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart

            names = {(tool.server, tool.name): name for name, tool in self._named.items()}
            messages: list[ModelMessage] = []
            for number, call in enumerate(reply.tool_calls, start=calls):
                name = names.get((call.server or "", call.tool))
                if name is None:
                    continue
                key = f"karat{number:04}"  # nine letters and digits: Mistral takes no other
                messages.append(
                    ModelResponse(
                        parts=[ToolCallPart(tool_name=name, args=call.input, tool_call_id=key)]
                    )
                )
                messages.append(ModelRequest(parts=[_tool_return(call, name=name, key=key)]))

            messages.append(
                ModelResponse(parts=[TextPart(content=reply.text)], model_name=reply.model)
            )
            self._messages += messages
            calls += len(reply.tool_calls)

    async def ask(self, turn: Turn) -> Reply:
        """The model's answer, after as many tool calls as it makes.

        Raises TrialFault, with the reply so far.
        """
        with metered() as meter:
            progress = _Progress()
            try:
                return await self._answer(turn, progress, meter)
            except TrialFault as fault:
                if meter.responses:
                    fault.reply = progress.reply(meter, whole=True)
                raise

    async def _answer(self, turn: Turn, progress: _Progress, meter: Meter) -> Reply:
        from pydantic_ai.exceptions import AgentRunError
        from pydantic_ai.messages import ModelRequest, ToolCallPart

        self._messages.append(self._question(turn))
        while self._max_turns is None or len(progress.responses) < self._max_turns:
            try:
                response = await self._model.request(
                    self._messages, self._settings, self._parameters
                )
            except (AgentRunError, OSError) as error:
                raise fault_of(error) from error

            progress.responses.append(response)
            self._messages.append(response)
            wanted = [part for part in response.parts if isinstance(part, ToolCallPart)]

            if not wanted:
                reply = progress.reply(meter)
                if reply.text.strip():
                    return reply
                raise empty_answer(reply.stop_reason)

            if len(wanted) == 1:
                results = [await self._call_one(wanted[0], progress)]
            else:
                try:
                    async with asyncio.TaskGroup() as group:
                        tasks = [
                            group.create_task(self._call_one(part, progress)) for part in wanted
                        ]
                except BaseExceptionGroup as failed:
                    raise fault_of(failed) from failed

                results = [task.result() for task in tasks]

            self._messages.append(ModelRequest(parts=results))

        message = (
            f"the model wanted more than {self._max_turns} responses for one question (max_turns)"
        )
        raise LimitReached("max_turns", message)

    def _question(self, turn: Turn) -> ModelMessage:
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart

        first = not self._messages
        asked = UserPromptPart(content=prompt(self._sample, turn, first=first))
        if self._system_prompt and first:
            return ModelRequest(parts=[SystemPromptPart(content=self._system_prompt), asked])
        return ModelRequest(parts=[asked])

    async def _call_one(self, part: ToolCallPart, progress: _Progress) -> ToolReturnPart:
        images: Images = ()
        place = len(progress.calls)
        progress.calls.append(None)
        tool = self._named.get(part.tool_name)
        if tool is None:
            known = ", ".join(self._named) or "none"
            call = ToolCall(
                tool=part.tool_name,
                error=f"there is no tool '{part.tool_name}' (there are: {known})",
            )
        else:
            try:
                arguments = part.args_as_dict(raise_if_invalid=True)
            except (ValueError, AssertionError):
                message = f"the arguments are not a JSON object: {part.args}"
                call = ToolCall(tool=tool.name, error=message)  # no server: it never reached one
            else:
                try:
                    call, images = await self._tools.call_with_images(
                        tool.server, tool.name, arguments
                    )
                except TrialFault as fault:
                    progress.calls[place] = ToolCall(
                        tool=tool.name, server=tool.server, input=arguments, error=fault.message
                    )
                    raise

        progress.calls[place] = call
        return _tool_return(
            call, name=part.tool_name, key=part.tool_call_id, images=images if self._images else ()
        )


def _tool_return(call: ToolCall, *, name: str, key: str, images: Images = ()) -> ToolReturnPart:
    """What the model reads of a call.

    `images`: media type and bytes of those sent with its text.
    """
    from pydantic_ai.messages import BinaryContent, ToolReturnPart

    if call.error is not None:
        return ToolReturnPart(
            tool_name=name, content=call.error, tool_call_id=key, outcome="failed"
        )

    text = call.result or ""
    pictures = [BinaryContent(data, media_type=media_type) for media_type, data in images]
    return ToolReturnPart(
        tool_name=name, content=[text, *pictures] if pictures else text, tool_call_id=key
    )


class _Progress:
    """The responses and tool calls of one question so far."""

    def __init__(self) -> None:
        self.responses: list[ModelResponse] = []
        # in the order the model requested them; None: not finished
        self.calls: list[ToolCall | None] = []
        self._started = monotonic()

    def reply(self, meter: Meter, *, whole: bool = False) -> Reply:
        """The last response, with all calls and costs; `whole`: with the text of every response."""
        last = self.responses[-1]
        texts = [response.text for response in (self.responses if whole else [last])]
        thoughts = [response.thinking for response in self.responses]
        said = "\n\n".join(filter(None, texts))
        stopped = stop_reason(last)
        said, thought = without_thoughts(said, cut=was_cut(stopped))
        thoughts.append(thought)
        return Reply(
            text=said,
            reasoning="\n\n".join(filter(None, thoughts)) or None,
            tool_calls=tuple(filter(None, self.calls)),
            usage=meter.usage,
            dollars=meter.dollars,
            milliseconds=round((monotonic() - self._started - meter.waited) * 1000, 3),
            model=last.model_name or None,
            stop_reason=stopped,
        )


def _parameters(named: Mapping[str, Tool]) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    # Not strict: providers would rewrite the schema that the server gives, which is part of what is
    # measured.
    tools = []
    for name, tool in named.items():
        tools.append(
            ToolDefinition(
                name=name,
                description=tool.description,
                parameters_json_schema=tool.input_schema,
                strict=False,
            )
        )

    return ModelRequestParameters(function_tools=tools)


_LONGEST = 64  # every provider accepts this length
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")


def named_tools(tools: Sequence[Tool]) -> dict[str, Tool]:
    """Each tool under a unique name, in order: its plain name, or `server__tool` where two servers
    share it.

    Characters that providers refuse become `_`; a name that is too long is cut and ends in its
    hash.
    """
    shared = Counter(_allowed(tool.name) for tool in tools)
    named: dict[str, Tool] = {}
    for tool in tools:
        name = _allowed(tool.name)
        if shared[name] > 1 or name in named:
            name = _allowed(f"{tool.server}__{tool.name}")
        if name in named:
            name = _hashed(name, f"{tool.server}\0{tool.name}")
        named[name] = tool

    return named


def _allowed(name: str) -> str:
    plain = _NOT_ALLOWED.sub("_", name)
    if 0 < len(plain) <= _LONGEST:
        return plain
    return _hashed(plain, name)


def _hashed(plain: str, original: str) -> str:
    digest = blake2b(original.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{plain[: _LONGEST - 9]}_{digest}"
