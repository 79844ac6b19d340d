"""Any service that answers over HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from pydantic import BaseModel, Field, field_validator

from karat.agents import AgentSetting
from karat.agents._answers import framework_reply, reply_from
from karat.agents._prompt import prompt_and_history, trial_values
from karat.agents._reading import begins_object, call_in, items
from karat.config.model import Address, Count, Name, Number, Seconds, Strictly, Text
from karat.errors import AgentFault, InfrastructureFault, LimitReached, MissingExtra, did_you_mean
from karat.models import from_status, limiter
from karat.records import Condition, History, JsonObject, Reply, Sample, Trial, Turn
from karat.templates import fill, fill_body, names
from karat.waits import retry_after

if TYPE_CHECKING:
    import httpx2

__all__ = ["Http"]

_FIELDS = {
    *("question", "system_prompt", "history", "materials", "sample", "metadata", "mcp_servers"),
    *("condition", "repetition", "turn", "seed"),
}
_BODY = {
    "question": "{{ question }}",
    "system_prompt": "{{ system_prompt }}",
    "history": "{{ history }}",
}
_EXPRESSIONS = ("answer", "usage", "dollars", "tool_calls", "model")
_SHOWN = 500  # characters of an answer that cannot be used
_CONNECT_SECONDS = 20.0
# the first events of a stream of objects
_EVENTS = re.compile(
    r"\s*(?:(?:event|id|retry|):[^\n]*\n\s*)*"
    r"data: ?[\[{][^\n]*\n(?:(?:data|event|id|retry):[^\n]*\n)*\r?\n\s*"
    r"(?:\Z|(?:data|event|id|retry|):)"
)


class Http:
    """A service that answers over HTTP.

    `body` and `query` are templates over `question`, `system_prompt`, `history`, `materials`,
    `sample`, `metadata`, `condition`, `repetition`, `turn`, `seed` and `mcp_servers`; a variable
    alone in a value keeps its type. `answer` and similar options are JMESPath expressions over the
    response. Redirects are not followed, so headers go nowhere else.
    """

    class Options(BaseModel):
        """Without `answer`, the response is taken as a `command` agent's output: text, or an object
        with `text`.
        """

        model_config = Strictly

        url: Address = Field(
            description="where the question is sent, e.g. http://localhost:8000/ask"
        )
        method: Literal["GET", "POST", "PUT", "PATCH"] = "POST"  # GET sends no body
        headers: dict[str, Text] = {}  # sent with each request
        query: dict[str, Text] = {}  # parameters of the address
        body: Any = None  # null: question, system_prompt and history, as one object; none for GET
        answer: Name | None = None  # JMESPath: the text
        # JMESPath: an object with input_tokens (or prompt_tokens), output_tokens, …
        usage: Name | None = None
        dollars: Name | Number | None = None  # JMESPath, or what each request costs
        # JMESPath: a list of objects with tool (or name), server, input, result, error
        tool_calls: Name | None = None
        model: Name | None = None  # JMESPath: the model that answered
        # of one request; null: only the attempt's limit applies
        timeout_seconds: Seconds | None = None
        # a longer response ends the attempt
        max_response_bytes: Count = Field(default=10_000_000, ge=1)

        @field_validator("body", "query")
        @classmethod
        def _names_are_known(cls, template: object) -> object:
            for name in _names(template):
                if name.partition(".")[0] not in _FIELDS:
                    raise ValueError(
                        f"there is no value called '{name}'{did_you_mean(name, _FIELDS)}"
                    )

            return template

        @field_validator(*_EXPRESSIONS)
        @classmethod
        def _is_jmespath(cls, expression: object) -> object:
            try:
                _compiled(expression)
            except ValueError as error:
                words = (
                    str(error)
                    .splitlines()[0]
                    .removeprefix("Invalid jmespath expression: ")
                    .rstrip(":")
                )
                raise ValueError(f"is not a JMESPath expression: {words}") from None
            except ImportError:
                pass  # reported when the agent is created

            return expression

    indifferent = ("headers", "timeout_seconds", "max_response_bytes")
    bounds_replies = True

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self.unread: set[str] = set()
        self._options = options
        self._folder = setting.folder
        self._toolbox = setting.toolbox
        self._redact = setting.redact
        try:
            self._find = {name: _compiled(getattr(options, name)) for name in _EXPRESSIONS}
        except ImportError as error:
            raise MissingExtra("chat", "a JMESPath expression of the http agent") from error

        self._body = options.body if options.body is not None or options.method == "GET" else _BODY
        sent = {name.partition(".")[0] for name in (*_names(self._body), *_names(options.query))}
        self._remembers = "history" in sent
        self._bare = "materials" in sent
        self.takes = frozenset(sent)
        self.shown = f"http {options.url}"
        self.unpriced = (options.url,) if options.dollars is None else ()
        self._client: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def ask(
        self,
        condition: Condition,
        sample: Sample,
        turn: Turn,
        history: History,
        trial: Trial,
        number: int,
    ) -> Reply:
        """The service's response."""
        question, past = prompt_and_history(
            sample, turn, history, remembers=self._remembers, bare=self._bare
        )
        values = trial_values(
            condition, sample, trial, number, folder=self._folder, toolbox=self._toolbox
        )
        values |= {"question": question, "history": past}
        pace = limiter("http", self._options.url)
        async with pace.slot():
            started = monotonic()
            try:
                text = await self._send(values)
            except InfrastructureFault as fault:
                if fault.kind == "rate_limit":
                    pace.refused(fault.retry_after)
                raise

            pace.success()

        return msgspec.structs.replace(
            self._read(text), milliseconds=round((monotonic() - started) * 1000, 3)
        )

    async def _send(self, values: JsonObject) -> str:
        import httpx2

        options = self._options
        if self._client is None:
            self._client = httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None))
        content, headers = None, options.headers
        if self._body is not None:
            body = fill_body(self._body, values, place="agent.body")
            content = json.dumps(body).encode()
            headers = {"content-type": "application/json", **headers}

        query = {
            key: fill(text, values, place=f"agent.query.{key}")
            for key, text in options.query.items()
        }
        timeout = httpx2.Timeout(options.timeout_seconds, connect=_CONNECT_SECONDS)
        try:
            async with self._client.stream(
                options.method,
                options.url,
                params=query or None,
                headers=headers,
                content=content,
                timeout=timeout,
            ) as response:
                parts = []
                size = 0
                async for part in response.aiter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > options.max_response_bytes:
                        limit = f"{options.max_response_bytes} bytes in the response"
                        message = f"more than {limit} (max_response_bytes)"
                        raise LimitReached("output_too_long", message)
        except httpx2.TimeoutException as error:
            message = f"the service gave nothing in time ({type(error).__name__}; timeout_seconds)"
            raise LimitReached("timeout", message) from error
        except httpx2.RequestError as error:
            raise InfrastructureFault(
                "network", f"{type(error).__name__}: {error}", retriable=True
            ) from error

        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        text = b"".join(parts).decode(response.encoding or "utf-8", "replace")
        text = text.removeprefix("\ufeff")
        streams = kind == "text/event-stream" or _EVENTS.match(text)
        if streams and response.is_success:
            raise AgentFault(
                "bad_reply",
                "the service streams its answer (text/event-stream); ask it for one that is whole",
            )

        if response.status_code >= 400:
            why = self._redact(text)[:_SHOWN].strip() or response.reason_phrase
            message = f"HTTP {response.status_code}: {why}"
            raise from_status(response.status_code, message, wait=retry_after(response.headers))

        if response.status_code >= 300:
            where = response.headers.get("location", "elsewhere")
            message = (
                f"HTTP {response.status_code}: redirects to {where}, which is not followed; give "
                f"that as url"
            )
            raise InfrastructureFault("redirect", message)

        return text

    def _read(self, text: str) -> Reply:
        try:
            response = json.loads(text, strict=False)
        except (ValueError, RecursionError) as error:
            # not plain text, but a truncated object
            if any(self._find.values()) or begins_object(text.lstrip()):
                message = f"the response is not JSON ({error}): {self._redact(text)[:_SHOWN]}"
                raise AgentFault("bad_json", message, retriable=True) from error

            response = text

        if self._find["answer"] is None and isinstance(response, (bool, int, float)):
            # a body such as 42, 1.50 or true is the answer as it is written
            response = text.strip()

        values: JsonObject = {}
        for name, find in self._find.items():
            if find is None:
                continue
            try:
                values[name] = find.search(response)
            except ValueError as error:  # a function of JMESPath that got another type
                if name == "answer":
                    message = (
                        f"`answer` ({self._options.answer}) does not fit the response: {error}"
                    )
                    raise AgentFault("no_answer", message, retriable=True) from error
                self.unread.add(name)

        answer = values.pop("answer", None)
        if self._find["answer"] is None:
            try:
                reply = framework_reply(response, self.unread)
            except AgentFault as fault:
                if not isinstance(response, dict) or response.get("error"):
                    raise
                message = f"{fault.message}; say with `answer` where in the response the answer is"
                raise AgentFault(fault.kind, message) from fault
        elif answer is None or answer == "":
            shown = self._redact(json.dumps(response, ensure_ascii=False))[:_SHOWN]
            message = f"`answer` ({self._options.answer}) finds nothing in the response: {shown}"
            raise AgentFault("no_answer", message, retriable=True)
        elif isinstance(answer, str):
            reply = Reply(text=answer)
        else:
            reply = Reply(text=json.dumps(answer, ensure_ascii=False))

        if not reply.text.strip():
            raise AgentFault(
                "empty_output", "the service answered with an empty text", retriable=True
            )

        if self._find["dollars"] is None:
            values["dollars"] = self._options.dollars
        calls = values.get("tool_calls")
        if isinstance(calls, list):
            made = [call for call in calls if isinstance(call, (str, Mapping))]
            values["tool_calls"] = [call_in(call, unnamed="") for call in made]
        elif values.pop("tool_calls", None):
            self.unread.add("tool_calls")
        found = reply_from({"text": reply.text, **values}, self.unread)
        known = {name: getattr(found, name) for name in values}
        return msgspec.structs.replace(
            reply, **{name: value for name, value in known.items() if value is not None}
        )


def _names(template: object) -> list[str]:
    if isinstance(template, str):
        return list(names(template))
    if isinstance(template, Mapping):
        template = list(template.values())
    return [name for part in items(template) for name in _names(part)]


def _compiled(expression: object) -> Any:
    """The compiled expression; None if there is none. Raises ImportError without the extra."""
    if not isinstance(expression, str):
        return None
    import jmespath

    return jmespath.compile(expression)
