"""Google Cloud's Vertex AI: which models karat can reach there, and with which credentials, project
and location.

Settings are read in this order; LiteLLM's names come first because k-eval's judge uses them.

    project     VERTEXAI_PROJECT, ANTHROPIC_VERTEX_PROJECT_ID, GOOGLE_CLOUD_PROJECT, the
                credentials' own project
    location    VERTEXAI_LOCATION, CLOUD_ML_REGION, GOOGLE_CLOUD_LOCATION
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from karat.errors import BadOption
from karat.models.names import ModelName
from karat.records import JsonObject

_PROJECT = ("VERTEXAI_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT")
_LOCATION = ("VERTEXAI_LOCATION", "CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION")
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]

# Publishers and families on Vertex AI with neither Gemini's nor Anthropic's protocol.
_PARTNERS = re.compile(
    r"(ai21|codestral|deepseek|gpt-oss|grok|jamba|kimi|llama|meta|minimax|ministral|mistral|moonshot|openai|qwen|xai|zai)"
)


def is_claude(named: ModelName) -> bool:
    """Whether this is one of Anthropic's models on Vertex AI.

    >>> (
    ...     is_claude(ModelName("google-cloud", "claude-opus-4-5")),
    ...     is_claude(ModelName("anthropic", "claude-opus-4-5")),
    ... )
    (True, False)
    """
    return named.provider == "google-cloud" and named.name.rpartition("/")[2].startswith("claude")


def route(named: ModelName, env: Mapping[str, str], base_url: str | None = None) -> str:
    """Which service a model is reached through, for `karat check`.

    >>> route(ModelName("google-cloud", "claude-opus-4-5"), {"VERTEXAI_LOCATION": "global"})
    "google-cloud:claude-opus-4-5 (Anthropic's API on Vertex AI, location global)"
    >>> route(ModelName("openai", "gpt-4.1"), {}, "http://localhost:8000/v1")
    'openai:gpt-4.1 (at http://localhost:8000/v1)'
    """
    words = []
    if named.provider == "google-cloud":
        words.append(
            "Anthropic's API on Vertex AI" if is_claude(named) else "Gemini's API on Vertex AI"
        )
        known = {"project": _first(env, _PROJECT), "location": _first(env, _LOCATION)}
        words += [f"{name} {value}" for name, value in known.items() if value is not None]

    if base_url is not None:
        words += [f"at {base_url}"]
    if words:
        return f"{named} ({', '.join(words)})"
    return str(named)


def refuse_partner_model(named: ModelName, place: str) -> None:
    """Raises BadOption for a model on Vertex AI that karat has no client for."""
    if named.provider == "google-cloud" and _PARTNERS.match(
        named.name.removeprefix("publishers/").lower()
    ):
        message = (
            f"'{named}' cannot be reached: on Vertex AI karat speaks to Gemini and Claude only; "
            f"use the publisher's own provider, or `openai:MODEL` with the `base_url` of a "
            f"compatible service"
        )
        raise BadOption(place, message)


def anthropic_provider(
    env: Mapping[str, str], *, base_url: str | None, key: str | None, place: str, http_client: Any
) -> Any:
    """pydantic-ai's Anthropic provider with Anthropic's client for Vertex AI.

    `key`: an access token, for a proxy that requires one; without it, Google's credentials are
    loaded. Raises BadOption if credentials, project or location are missing.
    """
    from anthropic import AsyncAnthropicVertex
    from pydantic_ai.providers.anthropic import AnthropicProvider

    if key is not None:
        credentials, project = (None, None)
    else:
        credentials, project = _credentials(env, place)

    project = _first(env, _PROJECT) or project
    location = _first(env, _LOCATION)
    if project is None:
        raise BadOption(
            place, "Claude on Vertex AI needs a Google Cloud project; set VERTEXAI_PROJECT"
        )

    if location is None:
        raise BadOption(
            place, "Claude on Vertex AI needs a location; set VERTEXAI_LOCATION, e.g. to global"
        )

    client = AsyncAnthropicVertex(
        project_id=project,
        region=location,
        access_token=key,
        credentials=credentials,
        base_url=base_url,
        http_client=http_client,
    )
    return AnthropicProvider(anthropic_client=client)


def google_settings(env: Mapping[str, str], place: str) -> JsonObject:
    """The arguments of pydantic-ai's provider for Gemini on Vertex AI; empty if an API key is
    used.
    """
    if not env.get("GOOGLE_APPLICATION_CREDENTIALS") and (
        env.get("GOOGLE_API_KEY") or env.get("GEMINI_API_KEY")
    ):
        return {}

    credentials, project = _credentials(env, place)
    project = _first(env, _PROJECT) or project
    if project is None:
        raise BadOption(
            place, "Gemini on Vertex AI needs a Google Cloud project; set VERTEXAI_PROJECT"
        )

    return {"credentials": credentials, "project": project, "location": _first(env, _LOCATION)}


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)


def _credentials(env: Mapping[str, str], place: str) -> tuple[Any, str | None]:
    """Google's credentials and the project they belong to.

    The token is fetched with the first request.
    """
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    path = env.get("GOOGLE_APPLICATION_CREDENTIALS")
    try:
        if not path:
            return google.auth.default(scopes=_SCOPES)
        with warnings.catch_warnings():
            # It warns of untrusted files; this one belongs to the user.
            warnings.simplefilter("ignore", DeprecationWarning)
            load: Callable[..., tuple[Any, str | None]] = google.auth.load_credentials_from_file
            return load(path, scopes=_SCOPES)
    except (GoogleAuthError, OSError, ValueError) as error:
        if path:
            fault = f"GOOGLE_APPLICATION_CREDENTIALS ('{path}') cannot be used"
        else:
            fault = "no Google credentials found"

        remedy = (
            "set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, "
            "or run `gcloud auth application-default login`"
        )
        raise BadOption(
            place, f"{fault}: {str(error).partition('. To set up')[0].rstrip('.')}; {remedy}"
        ) from error
