"""The format of scripts: which response answers which request."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from karat.errors import BadOption
from karat.records import JsonObject
from karat.testing.models.request import Api, Request

FORMAT_VERSION = 1  # 1: the first

_Strictly = ConfigDict(extra="forbid", frozen=True)


class ToolUse(BaseModel):
    """One tool call of the model.

    Templates in the values of `arguments` are filled in; a text is sent unchanged.
    """

    model_config = _Strictly

    name: str
    arguments: JsonObject | str = {}


class Tokens(BaseModel):
    """The tokens that a response reports; those not given are counted, four characters per
    token.
    """

    model_config = _Strictly

    input: int | None = None  # including cached ones, as karat counts
    output: int | None = None  # including reasoning
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None


class ScriptedResponse(BaseModel):
    """One response of the model, or one fault.

    Texts may contain `{{ question }}` (the last message of the user), `{{ tool_result }}` (the
    result of the last tool call), `{{ system }}` and `{{ model }}`.
    """

    model_config = _Strictly

    text: str = ""
    reasoning: str = ""  # shown before the text
    tool_calls: tuple[ToolUse, ...] = ()
    improvise: bool = False  # make up a response, as if no rule matched
    usage: Tokens = Tokens()
    model: str | None = None  # the model that the response names; None: the requested one
    stop: Literal["length", "refusal"] | None = None  # None: a normal stop

    delay: float = Field(default=0.0, ge=0)  # seconds before anything is sent
    chunk_seconds: float = Field(default=0.0, ge=0)  # between the events of a stream

    # an error instead of an answer: 429, 500, 529, …
    status: int | None = Field(default=None, ge=400, le=599)
    error: str = ""  # its message
    retry_after: float | str | None = None  # the header, with `status`
    # with `status`: in the stream, after this many events
    after: int | None = Field(default=None, ge=1)
    # no answer for this many seconds, or until the client gives up
    hang: float | Literal[True] | None = None
    malformed: bool = False  # send something that is not JSON
    # the connection breaks after this many events, or halfway
    truncate: int | Literal[True] | None = None
    disconnect: bool = False  # the connection breaks before anything is sent
    body: str | None = None  # sent as text/html, like a proxy's error page
    times: int = Field(default=1, ge=1)  # for a fault: how often before the next response

    @property
    def fault(self) -> bool:
        """Whether this is a fault, after which the client asks again and gets the next response."""
        wrong = (self.malformed, self.disconnect, self.truncate is not None, self.body is not None)
        return self.status is not None or self.hang is not None or any(wrong)

    @field_validator("hang", "truncate", mode="before")
    @classmethod
    def _false_is_none(cls, value: object) -> object:
        return None if value is False else value


class When(BaseModel):
    """Which requests a rule answers; all given conditions must hold."""

    model_config = _Strictly

    api: Api | None = None
    model: str | None = None  # a pattern: claude-*
    contains: str | None = None  # contained in a user message
    system: str | None = None  # contained in the system prompt
    tool: str | None = None  # offered under this name, prefixed or not
    tools: bool | None = None  # whether any tool is offered
    structured: bool | None = None  # whether structured output is requested
    stream: bool | None = None
    busy: int | None = None  # more requests than this are being answered now, including this one
    # only this many requests, then the rule is skipped
    times: int | None = Field(default=None, ge=1)

    def holds(self, request: Request, *, busy: int) -> bool:
        """Whether the rule matches this request, apart from `times`."""
        conditions = (
            self.api in (None, request.api),
            self.model is None or fnmatch.fnmatchcase(request.model, self.model),
            self.contains is None
            or any(
                self.contains in message.text
                for message in request.messages
                if message.role == "user"
            ),
            self.system is None or self.system in request.system,
            self.tool is None or request.offered(self.tool) is not None,
            self.tools in (None, bool(request.tools)),
            self.structured in (None, request.schema is not None or request.forced is not None),
            self.stream in (None, request.stream),
            self.busy is None or busy > self.busy,
        )
        return all(conditions)


class Rule(BaseModel):
    """The responses to some requests."""

    model_config = _Strictly

    when: When = When()
    say: tuple[ScriptedResponse, ...] = Field(min_length=1)

    @field_validator("say", mode="before")
    @classmethod
    def _text_is_a_response(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            listed = value
        else:
            listed = [value]

        return tuple({"text": item} if isinstance(item, str) else item for item in listed)


class Script(BaseModel):
    """Rules in order; the first that matches answers."""

    model_config = _Strictly

    format: Literal[1] = 1
    models: tuple[str, ...] = ("rehearsal",)  # the names in a list of models
    rules: tuple[Rule, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _rules_alone_will_do(cls, value: object) -> object:
        if isinstance(value, list | tuple):
            return {"rules": value}
        return value


Hook = Callable[[Request], "str | ScriptedResponse | JsonObject | None"]
"""A script in Python; None improvises. Called on the server's thread, one request at a time."""


def read_script(
    source: Script | Sequence[object] | Mapping[str, object] | Path | str | None,
) -> Script:
    """The script in a file or in Python values; None: an empty one.

    Raises BadOption with every fault.
    """
    import yaml

    if source is None or isinstance(source, Script):
        return source or Script()
    where = "script"
    if isinstance(source, Path | str):
        where = str(source)
        try:
            source = yaml.safe_load(Path(source).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise BadOption(where, f"cannot be read: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise BadOption(where, f"is not YAML: {error}") from error

    try:
        return Script.model_validate(source if source is not None else {})
    except ValidationError as error:
        lines = [
            f"\n  {'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}"
            for fault in error.errors()
        ]
        raise BadOption(where, "is not a script:" + "".join(lines)) from error


def filled(value: object, request: Request) -> object:
    """The value with the templates in its texts filled in; the inserted texts are not searched for
    templates.
    """
    if isinstance(value, str):
        if "{{" in value:
            return _SLOT.sub(lambda match: _put(match[1], request), value)
        return value

    if isinstance(value, Mapping):
        return {key: filled(item, request) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [filled(item, request) for item in value]
    return value


_SLOT = re.compile(r"\{\{\s*(question|tool_result|system|model)\s*\}\}")


def _put(name: str, request: Request) -> str:
    if name == "tool_result":
        return next(
            (message.text for message in reversed(request.messages) if message.role == "tool"), ""
        )

    return str(getattr(request, name))
