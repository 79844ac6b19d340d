"""Which variables Claude Code sees: those that it needs, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from karat.errors import BadOption

__all__ = ["PROVIDERS", "credentials", "environment", "provider_of"]

_SETTINGS = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",  # else hidden requests for titles falsify usage
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # a slow tool call is waited for
    "DISABLE_AUTOUPDATER": "1",
    "ENABLE_TOOL_SEARCH": "false",  # every tool of the condition is told of, however many there are
}

PROVIDERS: dict[str, tuple[str, ...]] = {
    "anthropic": (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_CUSTOM_HEADERS",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ),
    "bedrock": (
        "ANTHROPIC_BEDROCK_BASE_URL",
        "AWS_ACCESS_KEY_ID",
        "AWS_BEARER_TOKEN_BEDROCK",
        "AWS_CONFIG_FILE",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SHARED_CREDENTIALS_FILE",
    ),
    "vertex": (
        "ANTHROPIC_VERTEX_BASE_URL",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "CLOUD_ML_REGION",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_PROJECT",
    ),
}
_SWITCHES = {"bedrock": "CLAUDE_CODE_USE_BEDROCK", "vertex": "CLAUDE_CODE_USE_VERTEX"}

# What the clouds' own tools wrote below the real HOME, which Claude Code does not see.
_FILES = {
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "GOOGLE_APPLICATION_CREDENTIALS": ".config/gcloud/application_default_credentials.json",
}
_NOT_SECRET = ("_URL", "_REGION", "_PROFILE", "_PROJECT", "_PROJECT_ID", "_FILE", "CREDENTIALS")


def provider_of(named: str | None, base_url: str | None, env: Mapping[str, str]) -> str:
    """Who is asked: an address of its own first, then the option, then the switches in the environment."""
    if base_url is not None:
        return "anthropic"
    if named is not None:
        return named
    on = (provider for provider, switch in _SWITCHES.items() if env.get(switch, "").lower() in ("1", "true", "yes"))
    return next(on, "anthropic")


def environment(
    provider: str,
    env: Mapping[str, str],
    *,
    own: Mapping[str, str],
    base_url: str | None,
    api_key_env: str | None,
    max_retries: int,
) -> dict[str, str]:
    """Settings, the provider's credentials and address, and what the experiment file gives (`own`).

    An address or a key that the options name goes before everything else, so that no other
    service is asked, and no other key sent there. Raises BadOption where there is no key.
    """
    found = {name: env[name] for name in PROVIDERS[provider] if env.get(name)}
    found |= _cloud(provider, env)
    found |= {**_SETTINGS, "CLAUDE_CODE_MAX_RETRIES": str(max_retries), **own}
    if base_url is not None:
        for switch in _SWITCHES.values():
            found.pop(switch, None)
        found["ANTHROPIC_BASE_URL"] = base_url
        if (host := urlsplit(base_url).hostname or "") in ("127.0.0.1", "::1", "localhost"):
            # A proxy has no business between two programs of this machine.
            found["NO_PROXY"] = found["no_proxy"] = ",".join(filter(None, [found.get("NO_PROXY"), host]))
    if api_key_env is not None:
        for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
            found.pop(name, None)
        found["ANTHROPIC_API_KEY"] = _key(api_key_env, env)
    if provider == "anthropic" and not _may_enter(found):
        if base_url is None and "ANTHROPIC_BASE_URL" not in found:
            message = (
                "Claude Code needs a key: set ANTHROPIC_API_KEY, or name the variable that holds it "
                "(a login on this machine is not used: each trial has a HOME of its own)"
            )
            raise BadOption("agent.api_key_env", message)
        found["ANTHROPIC_API_KEY"] = "none"  # a local server wants no key, but Claude Code does not start without one
    return found


def credentials(env: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that must not be shown."""
    known = {name for names in PROVIDERS.values() for name in names if not name.endswith(_NOT_SECRET)}
    return {name: value for name, value in env.items() if name in known}


def _cloud(provider: str, env: Mapping[str, str]) -> dict[str, str]:
    if provider not in _SWITCHES:
        return {}
    home = Path(env.get("HOME") or Path.home())
    files = {name: str(home / path) for name, path in _FILES.items() if name in PROVIDERS[provider]}
    lying = {name: path for name, path in files.items() if name not in env and Path(path).is_file()}
    return {_SWITCHES[provider]: "1", **lying}


def _key(name: str, env: Mapping[str, str]) -> str:
    if not env.get(name):
        raise BadOption("agent.api_key_env", f"the environment variable {name} is not set")
    return env[name]


def _may_enter(env: Mapping[str, str]) -> bool:
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")
    return any(env.get(name) for name in names)
