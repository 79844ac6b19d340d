"""What the agent `claude` may be told, and what it lets Claude Code see. Needs no extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from karat import plugins
from karat.errors import BadOption, Fault, ForeignTools
from karat.installation import install_extra_command
from karat.records import AgentSpec, Condition
from karat.testing.mcp_server import stdio_server
from karat_coding.agents._claude_session import ToolNames
from karat_coding.agents.claude import credentials, environment, provider_of


def faults(**options: Any) -> list[Fault]:
    plugin = plugins.find("agents", "claude")
    return plugins.check_options(plugin, {"model": "claude-sonnet-4-5", **options}, place="agent")[1]


def test_a_temperature_is_refused_with_the_reason() -> None:
    (fault,) = faults(temperature=0.0)
    assert str(fault) == (
        "agent.temperature: cannot be set: Claude Code does not let its caller choose a temperature; "
        "the agent `chat` does (anthropic:MODEL)"
    )


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"model": "anthropic:claude-sonnet-4-5"}, "agent.model"),
        ({"max_turns": 0}, "agent.max_turns"),
        ({"thinking_tokens": -1}, "agent.thinking_tokens"),
        ({"effort": "huge"}, "agent.effort"),
        ({"base_url": "localhost"}, "agent.base_url"),
        ({"max_turn": 3}, "agent.max_turn"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], place: str) -> None:
    assert [fault.place for fault in faults(**options)] == [place]


def seen(env: dict[str, str], **options: Any) -> dict[str, str]:
    """What Claude Code would see, but for karat's settings."""
    chosen: dict[str, Any] = {"own": {}, "base_url": None, "api_key_env": None, **options}
    provider = provider_of(chosen.pop("provider", None), chosen["base_url"], env)
    found = environment(provider, env, max_retries=2, **chosen)
    return {name: value for name, value in found.items() if not name.startswith(("DISABLE", "ENABLE", "CLAUDE_CODE_"))}


PARENT = {
    "ANTHROPIC_API_KEY": "key",
    "ANTHROPIC_BASE_URL": "http://gateway",
    "AWS_REGION": "eu-west-1",
    "AWS_SECRET_ACCESS_KEY": "aws-secret",
    "GOOGLE_CLOUD_PROJECT": "p",
    "OTHER_KEY": "other",
    "CANARY": "tweet",
    "HOME": "/nowhere",
}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://gateway"}),
        ({"api_key_env": "OTHER_KEY"}, {"ANTHROPIC_API_KEY": "other", "ANTHROPIC_BASE_URL": "http://gateway"}),
        ({"base_url": "http://here"}, {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": "http://here"}),
        ({"provider": "bedrock"}, {"AWS_REGION": "eu-west-1", "AWS_SECRET_ACCESS_KEY": "aws-secret"}),
        ({"provider": "vertex", "own": {"MORE": "1"}}, {"GOOGLE_CLOUD_PROJECT": "p", "MORE": "1"}),
    ],
)
def test_only_the_providers_variables_are_seen(options: dict[str, Any], wanted: dict[str, str]) -> None:
    assert seen(PARENT, **options) == wanted


def test_an_address_goes_before_a_cloud_and_a_key_before_a_login() -> None:
    env = {"CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CODE_OAUTH_TOKEN": "login", "ANTHROPIC_AUTH_TOKEN": "t", "K": "key"}
    own = {"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_BASE_URL": "http://elsewhere"}
    found = environment("anthropic", env, own=own, base_url="http://here", api_key_env="K", max_retries=2)
    assert provider_of(None, "http://here", env) == "anthropic"
    assert provider_of(None, None, env) == "bedrock"
    assert not {"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"} & set(found)
    assert not {"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_AUTH_TOKEN"} & set(found)
    assert (found["ANTHROPIC_BASE_URL"], found["ANTHROPIC_API_KEY"]) == ("http://here", "key")


def test_the_clouds_own_files_are_found_in_the_real_home(tmp_path: Path) -> None:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("")
    assert seen({"HOME": str(tmp_path)}, provider="bedrock") == {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / ".aws" / "credentials")
    }


def test_a_local_server_needs_no_key_and_no_proxy() -> None:
    found = seen({}, base_url="http://127.0.0.1:8000", own={"HTTPS_PROXY": "http://proxy"})
    assert found["ANTHROPIC_API_KEY"] == "none"
    assert found["NO_PROXY"] == "127.0.0.1"


def test_a_missing_key_is_told_before_anything_starts() -> None:
    with pytest.raises(BadOption, match="Claude Code needs a key: set ANTHROPIC_API_KEY"):
        seen({})
    with pytest.raises(BadOption, match="the environment variable NOPE is not set"):
        seen({}, api_key_env="NOPE")


def test_credentials_are_masked_and_addresses_are_not() -> None:
    assert credentials({**PARENT, "AWS_PROFILE": "me"}) == {
        "ANTHROPIC_API_KEY": "key",
        "AWS_SECRET_ACCESS_KEY": "aws-secret",
    }


def names(*servers: str) -> ToolNames:
    given = tuple(stdio_server(name) for name in servers)
    return ToolNames(Condition(name="c", position=0, digest="", agent=AgentSpec(type="claude"), mcp_servers=given))


@pytest.mark.parametrize(
    ("tool", "split"),
    [
        ("mcp__a__read", ("a", "read")),
        ("mcp__a__b__read", ("a__b", "read")),
        ("mcp__my_docs_v2__x__y", ("my docs.v2", "x__y")),
        ("mcp__other__read", (None, "mcp__other__read")),
        ("Bash", (None, "Bash")),
        ("mcp__a_read", (None, "mcp__a_read")),
    ],
)
def test_a_tool_belongs_to_the_server_that_its_name_begins_with(tool: str, split: tuple[str | None, str]) -> None:
    assert names("a", "a__b", "my docs.v2").split(tool) == split


def test_every_stranger_is_named() -> None:
    told = {"tools": ["mcp__a__read", "Task", "Bash"], "mcp_servers": [{"name": "a"}, {"name": "x"}]}
    with pytest.raises(ForeignTools) as foreign:
        names("a").check(told)
    assert foreign.value.tools == ("Bash", "Task", "x")
    assert foreign.value.exit_code == 2


def test_without_the_extra_the_options_are_known_and_the_agent_says_what_to_install(tmp_path: Path) -> None:
    script = f"""
import sys; sys.modules["claude_agent_sdk"] = None  # as where it is not installed
from pathlib import Path
from karat import plugins
from karat.agents import AgentSetting
from karat.errors import MissingExtra
plugin = plugins.find("agents", "claude")
assert not plugins.check_options(plugin, {{"model": "m"}}, place="agent")[1]
try:
    setting = AgentSetting(folder=Path({str(tmp_path)!r}), toolbox=None, env={{}})
    plugins.build(plugin, {{"model": "m"}}, setting=setting)
except MissingExtra as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    hint = install_extra_command("claude")
    assert done.stdout.strip() == f"the agent 'claude' needs the extra 'claude': {hint}", done.stderr
