"""Plug-ins that a later version brings: their options are known now, so that files that name them can be checked.

A file of this name in the family's folder takes the place of an entry here, without a
change to this table: `find` asks the folder first. Whoever adds the plug-in moves the
`Options` into it and deletes the entry; when the table is empty, this module goes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from karat import plugins
from karat.config.model import Address, Count, Name, Number, Strictly, Text
from karat.errors import UnknownPlugin

__all__ = ["find", "runs"]


class Claude:
    """Claude Code through its Agent SDK."""

    class Options(BaseModel):
        """A model by its name; a session ends after `max_turns` turns of the model."""

        model_config = Strictly

        model: Name = Field(description="e.g. claude-sonnet-4-5")
        max_turns: Count | None = Field(default=None, ge=1)  # of the model, in one session; null: no limit


class Chat:
    """A language model, with a tool loop over the condition's MCP servers."""

    class Options(BaseModel):
        """`model` is provider:model; the inference parameters are the provider's where they are not given."""

        model_config = Strictly

        model: Name = Field(description="provider:model, e.g. openai:gpt-4.1")
        base_url: Address | None = None  # of a service that speaks the provider's protocol
        api_key_env: Name | None = None  # the name of the variable that holds the key
        temperature: Number | None = Field(default=None, ge=0, le=2)  # null: the provider's default, as below
        top_p: Number | None = Field(default=None, gt=0, le=1)
        max_tokens: Count | None = Field(default=None, ge=1)
        seed: Count | None = None
        max_turns: Count | None = Field(default=None, ge=1)


class Http:
    """A service that answers over HTTP."""

    class Options(BaseModel):
        """`body` is a template; `answer`, `usage` and `dollars` are JMESPath expressions over the response."""

        model_config = Strictly

        url: Address = Field(description="where the question is sent, e.g. http://localhost:8000/ask")
        method: Literal["GET", "POST", "PUT"] = "POST"
        headers: dict[str, Text] = {}
        body: Any = None
        answer: Text | None = None
        usage: Text | None = None
        dollars: Text | None = None


class Judge:
    """A language model that scores an answer by a rubric."""

    class Options(BaseModel):
        """One model, or `judges`, a panel; `repeats` above 1 tells the judge's noise from the agent's."""

        model_config = Strictly

        model: Name | None = None
        judges: list[Name] = []
        temperature: Number = Field(default=0.0, ge=0, le=2)
        seed: Count | None = None
        top_p: Number | None = Field(default=None, gt=0, le=1)
        max_tokens: Count | None = Field(default=None, ge=1)
        repeats: Count = Field(default=1, ge=1, le=100)
        rubric: Name = "default"  # a built-in one, or a file
        base_url: Address | None = None
        api_key_env: Name | None = None

        @model_validator(mode="after")
        def _someone_judges(self) -> Judge.Options:
            if bool(self.model) == bool(self.judges):
                raise ValueError("needs either `model` (provider:model) or `judges` (a list of them)")
            return self


_ANNOUNCED: dict[tuple[str, str], type[Any]] = {
    ("agents", "claude"): Claude,
    ("agents", "chat"): Chat,
    ("agents", "http"): Http,
    ("scorers", "judge"): Judge,
}


def find(family: str, name: str, *, folder: Path) -> type[Any]:
    """As plugins.find, and the announced ones where there is no file yet."""
    try:
        return plugins.find(family, name, folder=folder)
    except UnknownPlugin as unknown:
        announced = {known: plugin for (of, known), plugin in _ANNOUNCED.items() if of == family}
        if name in announced:
            return announced[name]
        raise UnknownPlugin(family, name, {*unknown.known, *announced}) from None


def runs(plugin: type[Any]) -> bool:
    """Whether the plug-in is there, and not only announced."""
    return plugin not in _ANNOUNCED.values()
