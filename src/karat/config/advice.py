"""Warnings about an experiment: settings that are allowed but probably not intended, before any
cost.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from karat.config.model import ExperimentFile, PromptFile
from karat.config.prompts import prompt_advice, prompt_problems
from karat.config.reading import Plugged, Reading
from karat.documents.nodes import Place
from karat.errors import BadOption
from karat.models import key_variable, parse_model
from karat.records import Cassettes, Condition, McpServer

_FAMILIES = {
    "o": "gpt",
    "chatgpt": "gpt",
    "codex": "gpt",
    "gemma": "gemini",
    "codestral": "mistral",
}
"""Names that do not begin as those of their relatives do."""

_FIRST_WORD = re.compile(r"[a-z]+")


def advise(
    reading: Reading,
    file: ExperimentFile,
    conditions: Sequence[Condition],
    scorers: Sequence[tuple[Place, Plugged]],
    cassettes: Cassettes | None,
) -> None:
    """Adds the warnings of a valid experiment."""
    for name, condition in file.conditions.items():
        place: Place = ("conditions", name)
        if condition.preset is not None:
            _, warnings = prompt_problems(reading, str(condition.prompt or ""), condition.preset)
            for warning in warnings:
                reading.warn((*place, "preset"), warning)
        elif warning := prompt_advice(reading.folder, condition.prompt):
            in_file = (
                ("system_prompt", "file")
                if isinstance(condition.system_prompt, PromptFile)
                else ("system_prompt",)
            )
            reading.warn(
                (*place, *(in_file if condition.prompt_file is None else ("prompt_file",))), warning
            )

    used = {server.name: server for condition in conditions for server in condition.mcp_servers}
    for name in file.mcp_servers:
        node = reading.root.get("mcp_servers", name)
        if name not in used and not (node and node.file):
            reading.warn(("mcp_servers", name), "no condition uses it")

    for name, server in used.items():
        if server.type == "sse":
            message = (
                "SSE is no longer part of the protocol; offer the server over streamable HTTP "
                "(`type: http`)"
            )
            reading.warn(("mcp_servers", name, "type"), message)

    if getattr(file.agent.plugin, "connects_itself", False):
        _advise_on_proxies(reading, file.agent.type, used, cassettes)
    if not scorers:
        reading.warn(("scorers",), "there are none: answers are kept, but nothing is scored")
    agents = {model for condition in conditions for model in models_of(condition.agent.options)}
    asked = agents.union(*(models_of(scorer.options) for _, scorer in scorers))
    known = set()
    for name in asked:
        with suppress(BadOption):
            known.add(parse_model(name).limited_as)

    for name in file.limits:
        if parse_model(name).limited_as not in known:
            reading.warn(
                ("limits", name),
                "no agent `chat` and no judge here asks this model, so it limits nothing",
            )

    for where, scorer in scorers:
        for key, message in judge_advice(scorer.options, agents):
            reading.warn((*where, key), message)


def _advise_on_proxies(
    reading: Reading, agent: str, used: Mapping[str, McpServer], cassettes: Cassettes | None
) -> None:
    """What an agent with its own MCP connections does not see through karat's proxy."""
    itself = f"the agent '{agent}' connects to its MCP servers by itself"
    if cassettes is not None and cassettes.mode == "replay":
        if used:
            message = (
                f"{itself}; a replay answers its requests, but sends no notifications and no "
                f"requests of a server"
            )
            reading.warn(("mcp", "replay"), message)

        return

    for name, server in sorted(used.items()):
        if server.scope == "run" or server.protocol != "auto" or server.auth is not None:
            if server.scope == "run":
                key = "scope"
            elif server.auth is not None:
                key = "auth"
            else:
                key = "protocol"

            if key == "auth":
                value = f"`{key}`"
            else:
                value = f"`{key}: {getattr(server, key)}`"

            message = (
                f"{itself}, and reaches a server with {value} through a proxy that passes on "
                f"tools, resources and prompts, over protocol 2025-11-25 or older: no "
                f"notifications, and no requests of the server. Without `{key}` it sees all of "
                f"the server"
            )
            reading.warn(("mcp_servers", name, key), message)


def models_of(options: Mapping[str, object]) -> list[str]:
    """Every model named in a scorer's or an agent's options."""
    listed = options.get("judges")
    named = [options.get("model"), *(listed if isinstance(listed, (list, tuple)) else ())]
    models = []
    for model in named:
        if isinstance(model, Mapping):
            models.append(model.get("model"))
        else:
            models.append(model)

    return [model for model in models if isinstance(model, str) and model]


def keys_of(models: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """The providers' default keys, used if no `api_key_env` is named, by variable: also secret."""
    keys = {}
    for model in models:
        try:
            variable = key_variable(parse_model(model).provider)
        except BadOption:
            continue  # a name without a provider: agents with such names know their key

        if variable in env:
            keys[variable] = env[variable]

    return keys


def judge_advice(options: Mapping[str, object], agents: Collection[str]) -> list[tuple[str, str]]:
    """Key and warning, for a scorer's options. `agents`: the models whose answers it scores."""
    advice = []
    if options.get("temperature"):
        advice.append(
            ("temperature", "above 0 the judge scores one answer differently from call to call")
        )

    own = {_bare(model) for model in agents}
    families = {family(model) for model in agents}
    for model in models_of(options):
        key = "model" if options.get("model") == model else "judges"
        if key == "model":
            whose = "is"
        else:
            whose = f"'{model}' is"

        if _bare(model) in own:
            advice.append(
                (key, f"{whose} the agent's own model, and models tend to prefer their own answers")
            )
        elif family(model) in families:
            relatives = f"{whose} of the agent's family of models ({family(model)})"
            advice.append(
                (key, f"{relatives}, and models tend to prefer answers of their relatives")
            )

    return advice


def family(model: str) -> str:
    """The first word of a model's name, shared by its family.

    >>> (
    ...     family("anthropic:claude-opus-4-5"),
    ...     family("openai/o3"),
    ...     family("groq:meta-llama/Llama-3-8b"),
    ... )
    ('claude', 'gpt', 'llama')
    """
    name = _bare(model).rpartition("/")[2].lower()
    word = _FIRST_WORD.match(
        name.removeprefix("meta-").removeprefix("us.anthropic.").removeprefix("anthropic.")
    )
    if word is not None:
        first = word[0]
    else:
        first = name

    return _FAMILIES.get(first, first)


def _bare(model: str) -> str:
    """A model without its provider, which two files may spell differently."""
    provider = re.match(r"[\w.-]+[:/]", model)
    if provider is not None:
        return model[provider.end() :]
    return model
