"""Everything an answer depends on, in 32 hex digits: secrets as `${NAME}`, options only if they are
not the default.

So a new option, or a default written out, does not change a digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from karat import plugins
from karat.documents.nodes import printable
from karat.records import Context, Elicit, Gate

# Timeouts of servers do not change answers.
_PATIENCE = {"init_timeout_seconds", "call_timeout_seconds"}


def agent_digest(kind: str, plugin: type[Any], options: Mapping[str, object]) -> str:
    """Over the type and every option that can change an answer.

    Paths do not count, and neither do options in the plug-in's class attribute `indifferent`.
    """
    indifferent = set(getattr(plugin, "indifferent", ()))

    defaults: dict[str, object] = {}
    model = plugins.options_model(plugin)
    if model is not None:
        for name, field in model.model_fields.items():
            if not field.is_required():
                value = field.get_default(call_default_factory=True, validated_data={})
                if hasattr(value, "model_dump"):
                    value = value.model_dump()
                defaults[name] = value

    missing = object()
    telling = {}
    for name, value in options.items():
        if (
            name not in indifferent
            and not isinstance(value, Path)
            and value != defaults.get(name, missing)
        ):
            telling[name] = value

    return _digest({"type": kind, "options": telling})


def server_digest(definition: Mapping[str, object], defaults: Mapping[str, object]) -> str:
    """Over the definition, including the name: agents see it in the names of tools."""
    telling = {}
    for key, value in definition.items():
        if key not in _PATIENCE and value != defaults.get(key, None):
            telling[key] = value

    return _digest(telling)


def condition_digest(
    prompt: str | None,
    servers: list[str],
    gate: Gate,
    context: Context,
    elicit: Elicit | None,
) -> str:
    """Over the prompt, the digests of the servers in their order, the gates, and everything else
    that is set.
    """
    parts: dict[str, object] = {"system_prompt": prompt, "mcp_servers": servers, "gates": gate}
    if elicit is not None:
        parts["elicit"] = elicit
    if context.keys:
        named = [(part.name, part.digest) for part in (*context.skills, *context.plugins)]
        alone = [part and part.digest for part in (context.instructions, context.workspace)]
        parts["context"] = [len(context.skills), named, alone, sorted(context.tools)]

    return _digest(parts)


def _digest(parts: object) -> str:
    # What JSON cannot hold (a function given from Python) counts by its name.
    encoded = msgspec.json.encode(parts, order="sorted", enc_hook=printable)
    return blake2b(encoded, digest_size=16).hexdigest()
