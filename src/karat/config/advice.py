"""The models that options name: what may be said of a judge before it is paid, and the keys that are secret."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from karat.errors import BadOption
from karat.models import key_variable, parse_model

__all__ = ["judge_advice", "keys_of", "models_of"]

_FAMILIES = {"o": "gpt", "chatgpt": "gpt", "codex": "gpt", "gemma": "gemini", "codestral": "mistral"}
"""Names that do not begin as those of their relatives do."""

_FIRST_WORD = re.compile(r"[a-z]+")


def models_of(options: Mapping[str, Any]) -> list[str]:
    """Every model that a scorer's or an agent's options name."""
    listed = options.get("judges")
    named = [options.get("model"), *(listed if isinstance(listed, (list, tuple)) else ())]
    models = [one.get("model") if isinstance(one, Mapping) else one for one in named]
    return [one for one in models if isinstance(one, str) and one]


def keys_of(models: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """The providers' keys that are taken where no `api_key_env` is named, by their variables: as secret as those."""
    found = {}
    for model in models:
        try:
            variable = key_variable(parse_model(model).provider)
        except BadOption:
            continue  # a name without its provider: the agent that takes such names knows its key itself
        if variable in env:
            found[variable] = env[variable]
    return found


def judge_advice(options: Mapping[str, Any], agents: Collection[str]) -> list[tuple[str, str]]:
    """Key and warning, of a scorer's options. `agents`: the models whose answers it scores."""
    found = []
    if options.get("temperature"):
        found.append(("temperature", "above 0 the judge scores one answer differently from call to call"))
    own, families = {_bare(model) for model in agents}, {family(model) for model in agents}
    for model in models_of(options):
        key = "model" if options.get("model") == model else "judges"
        whose = "is" if key == "model" else f"'{model}' is"
        if _bare(model) in own:
            found.append((key, f"{whose} the agent's own model, and models tend to prefer their own answers"))
        elif family(model) in families:
            relatives = f"{whose} of the agent's family of models ({family(model)})"
            found.append((key, f"{relatives}, and models tend to prefer answers of their relatives"))
    return found


def family(model: str) -> str:
    """The first word of a model's name, which its relatives share.

    >>> family("anthropic:claude-opus-4-5"), family("openai/o3"), family("groq:meta-llama/Llama-3-8b")
    ('claude', 'gpt', 'llama')
    """
    name = _bare(model).rpartition("/")[2].lower()
    word = _FIRST_WORD.match(name.removeprefix("meta-").removeprefix("us.anthropic.").removeprefix("anthropic."))
    first = word[0] if word is not None else name
    return _FAMILIES.get(first, first)


def _bare(model: str) -> str:
    """A model without its provider, which two files may spell differently."""
    provider = re.match(r"[\w.-]+[:/]", model)
    return model[provider.end() :] if provider is not None else model
