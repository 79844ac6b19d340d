"""The script: which response answers which request."""

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

__all__ = ["Hook", "Rule", "Script", "ScriptedResponse", "ToolUse", "When", "filled", "read_script"]

FORMAT_VERSION = 1  # 1: the first

_Strictly = ConfigDict(extra="forbid", frozen=True)


class ToolUse(BaseModel):
    """One tool call of the model. Templates in the texts of `arguments` are filled; text is sent unchanged."""

    model_config = _Strictly

    name: str
    arguments: JsonObject | str = {}


class Tokens(BaseModel):
    """The tokens that a response reports; those not given are counted, four characters a token."""

    model_config = _Strictly

    input: int | None = None  # cache included, as karat counts
    output: int | None = None  # reasoning included
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None


class ScriptedResponse(BaseModel):
    """One response of the model, or one fault.

    Texts may contain `{{ question }}` (the last message of the user), `{{ tool_result }}` (the result of the last
    tool call), `{{ system }}` and `{{ model }}`.
    """

    model_config = _Strictly

    text: str = ""
    reasoning: str = ""  # shown before the text
    tool_calls: tuple[ToolUse, ...] = ()
    improvise: bool = False  # as where no rule matches
    usage: Tokens = Tokens()
    model: str | None = None  # the model that the response names; None: the one that was asked for
    stop: Literal["length", "refusal"] | None = None  # None: as it should be

    delay: float = Field(default=0.0, ge=0)  # seconds before anything is sent
    chunk_seconds: float = Field(default=0.0, ge=0)  # between the events of a stream

    status: int | None = Field(default=None, ge=400, le=599)  # an error instead of an answer: 429, 500, 529, …
    error: str = ""  # its message
    retry_after: float | str | None = None  # the header, with `status`
    after: int | None = Field(default=None, ge=1)  # with `status`: in the stream, after so many events
    hang: float | Literal[True] | None = None  # no answer for so many seconds, or until the client gives up
    malformed: bool = False  # what is sent is not JSON
    truncate: int | Literal[True] | None = None  # the connection breaks after so many events, or half way
    disconnect: bool = False  # the connection breaks before anything is sent
    body: str | None = None  # exactly this, as text/html, like an error page of a proxy
    times: int = Field(default=1, ge=1)  # a fault: how often, before the next response comes

    @property
    def fault(self) -> bool:
        """Whether the client will ask again and get the next response."""
        wrong = (self.malformed, self.disconnect, self.truncate is not None, self.body is not None)
        return self.status is not None or self.hang is not None or any(wrong)

    @field_validator("hang", "truncate", mode="before")
    @classmethod
    def _false_is_none(cls, value: object) -> object:
        return None if value is False else value


class When(BaseModel):
    """Which requests a rule answers; everything that is given must hold."""

    model_config = _Strictly

    api: Api | None = None
    model: str | None = None  # a pattern: claude-*
    contains: str | None = None  # in a message of the user
    system: str | None = None  # contained in the system prompt
    tool: str | None = None  # offered under this name, prefixed or not
    tools: bool | None = None  # whether any tool is offered
    structured: bool | None = None  # whether structured output is asked for
    stream: bool | None = None
    busy: int | None = None  # more requests than this are being answered at the moment, this one included
    times: int | None = Field(default=None, ge=1)  # only so many requests, then the rule is passed over

    def holds(self, request: Request, *, busy: int) -> bool:
        """For this request; `times` aside."""
        conditions = (
            self.api in (None, request.api),
            self.model is None or fnmatch.fnmatchcase(request.model, self.model),
            self.contains is None
            or any(self.contains in message.text for message in request.messages if message.role == "user"),
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
        listed = value if isinstance(value, list | tuple) else [value]
        return tuple({"text": one} if isinstance(one, str) else one for one in listed)


class Script(BaseModel):
    """Rules in order; the first that matches answers."""

    model_config = _Strictly

    format: Literal[1] = 1
    models: tuple[str, ...] = ("rehearsal",)  # what a listing of models names
    rules: tuple[Rule, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _rules_alone_will_do(cls, value: object) -> object:
        return {"rules": value} if isinstance(value, list | tuple) else value


Hook = Callable[[Request], "str | ScriptedResponse | JsonObject | None"]
"""A script in Python; None improvises. Called on the server's thread, one request at a time."""


def read_script(source: Script | Sequence[object] | Mapping[str, object] | Path | str | None) -> Script:
    """The script in a file, or made of values; None is the empty one. Raises BadOption with every fault."""
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
        lines = [f"\n  {'.'.join(map(str, one['loc'])) or 'file'}: {one['msg']}" for one in error.errors()]
        raise BadOption(where, "is not a script:" + "".join(lines)) from error


def filled(value: object, request: Request) -> object:
    """The value with the templates in its texts filled; what is put in is not looked at again."""
    if isinstance(value, str):
        return _SLOT.sub(lambda found: _put(found[1], request), value) if "{{" in value else value
    if isinstance(value, Mapping):
        return {key: filled(one, request) for key, one in value.items()}
    return [filled(one, request) for one in value] if isinstance(value, list | tuple) else value


_SLOT = re.compile(r"\{\{\s*(question|tool_result|system|model)\s*\}\}")


def _put(name: str, request: Request) -> str:
    if name == "tool_result":
        return next((message.text for message in reversed(request.messages) if message.role == "tool"), "")
    return str(getattr(request, name))
