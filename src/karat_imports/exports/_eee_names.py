"""Names of models and files in Every Eval Ever: developer/model, and folder names valid on every
system.
"""

from __future__ import annotations

import msgspec

from karat.analysis import Summary
from karat.files import file_safe
from karat.records import ToolCall

_LONGEST = 200  # characters of an id: a folder has room for 255 bytes
_MADE_BY = {"claude": "anthropic"}
"""Agents whose model names do not include the developer."""


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model as the format knows it."""

    id: str  # developer/model
    name: str  # as the experiment names it

    @classmethod
    def named(cls, name: str, *, developer: str = "local") -> Model:
        """From `anthropic:claude-opus-4-5`, `developer/model` or a name alone."""
        maker, colon, model = name.partition(":")
        if not colon:
            maker, slash, model = name.partition("/")
            if not slash:
                maker, model = developer, name

        parts = (file_safe(maker), *(file_safe(part) for part in model.split("/") if part))
        if len(parts) == 1:
            parts = (*parts, "unnamed")
        return cls(id="/".join(parts)[:_LONGEST].rstrip("-./ "), name=name)

    @property
    def folder(self) -> str:
        """Its two folders in the datastore."""
        developer, _, model = self.id.partition("/")
        return f"{developer}/{model.replace('/', '_')}"

    def info(self) -> dict[str, object]:
        return {
            "name": self.name,
            "id": self.id,
            "developer": self.id.partition("/")[0],
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        }


def model_of(summary: Summary, condition: str, wanted: str | None) -> Model:
    """The model that answered under a condition.

    An agent without a model counts as one: local/its type.
    """
    if wanted is not None:
        return Model.named(wanted)
    origin = summary.provenance
    own = {
        key: origin.settings.get(f"conditions.{condition}.agent.{key}") for key in ("model", "type")
    }
    agent = str(own["type"] or origin.agent)
    model = own["model"] or (origin.model if own["type"] in (None, origin.agent) else None)
    return Model.named(str(model) if model else agent, developer=_MADE_BY.get(agent, "local"))


def tool_name(call: ToolCall) -> str:
    """The name of a tool as models are given it; that of an MCP tool says its server."""
    if call.server is None:
        return call.tool
    return f"mcp__{call.server}__{call.tool}"


def described(summary: Summary, condition: str, metric: str) -> str:
    """The id of one result."""
    return f"{summary.run}/{condition}/{metric}"
