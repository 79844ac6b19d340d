"""`provider:model`, or k-eval's `provider/model`, taken apart."""

from __future__ import annotations

import re

import msgspec

from karat.errors import BadOption

# Names in other tools, mainly LiteLLM.
_ALIASES = {
    "gemini": "google",
    "google-gla": "google",
    "google-vertex": "google-cloud",
    "vertex": "google-cloud",
    "vertex_ai": "google-cloud",
    "vertex_ai_beta": "google-cloud",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "azure_openai": "azure",
    "cohere_chat": "cohere",
    "dashscope": "alibaba",
    "hosted_vllm": "vllm",
    "litellm_proxy": "litellm",
    "meta_llama": "meta",
    "moonshot": "moonshotai",
    "ollama_chat": "ollama",
    "vercel_ai_gateway": "vercel",
}

_KEYS = {
    "google": "GOOGLE_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "huggingface": "HF_TOKEN",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
}

_KNOWN = {
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "google",
}


class ModelName(msgspec.Struct, frozen=True):
    """A model of a provider."""

    provider: str  # pydantic-ai's name: openai, anthropic, google, …
    name: str  # the provider's name

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"

    @property
    def vendor(self) -> str:
        """The provider without the kind of its interface: `openai` for openai-chat and
        openai-responses.
        """
        provider = self.provider.rpartition("/")[2]
        return "openai" if provider in ("openai-chat", "openai-responses") else provider

    @property
    def limited_as(self) -> tuple[str, str]:
        """Vendor and name, by which `limits` compares models."""
        return self.vendor, self.name


_PARTS = re.compile(r"((?:gateway/)?+[^:/]+)[:/](.*)", re.DOTALL)


def parse_model(text: str, *, place: str = "model") -> ModelName:
    """Provider and name of a model. Raises BadOption, naming `place`, if one of them is missing.

    >>> parse_model("anthropic/claude-opus-4-5")
    ModelName(provider='anthropic', name='claude-opus-4-5')
    >>> str(parse_model("ollama/llama3:8b"))
    'ollama:llama3:8b'
    """
    parts = _PARTS.fullmatch(text)
    provider, name = parts.groups() if parts else ("", text)
    provider = provider.strip()
    name = name.strip()
    if provider == "bedrock":
        # LiteLLM's name of the interface, which karat always uses
        name = name.removeprefix("converse/")

    if not provider or not name:
        maker = next((maker for sign, maker in _KNOWN.items() if text.startswith(sign)), "openai")
        raise BadOption(
            place, f"must be provider:model, e.g. {maker}:{name or 'gpt-4.1'}; got '{text}'"
        )

    return ModelName(_ALIASES.get(provider, provider), name)


def key_variable(provider: str) -> str:
    """The environment variable with the provider's key unless the file names another.

    >>> key_variable("openai-responses")
    'OPENAI_API_KEY'
    """
    vendor = ModelName(provider, "").vendor
    return _KEYS.get(vendor) or f"{vendor.upper().replace('-', '_')}_API_KEY"


def with_provider(model: str) -> str:
    """The name, if it includes a provider. Raises ValueError, as a validator of options does."""
    try:
        parse_model(model)
    except BadOption as error:
        raise ValueError(str(error).partition(": ")[2]) from None

    return model
