"""Claude Code, through its Agent SDK."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel, Field, field_validator

from karat.agents import AgentSetting
from karat.agents._claude_env import credentials, environment, provider_of
from karat.agents._claude_folder import Folder, trial_folder
from karat.agents._claude_session import Conversation, Terms
from karat.agents._claude_tools import ToolNames
from karat.agents._servers import client_config
from karat.config.model import Address, Count, Name, Strictly, Text, VariableName
from karat.errors import BadOption, MissingExtra
from karat.models import ModelName
from karat.models.prices import own_price
from karat.records import Condition, McpServer, Sample
from karat.redact import Redactor

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions
    from claude_agent_sdk.types import ThinkingConfig

__all__ = ["Claude"]

_EXIT_SECONDS = 1.5  # for Claude Code to end by itself, once it was told that there are no more questions
_LOOK_SECONDS = 0.05  # how soon after a cancellation a program that is just starting can be ended
_QUIET = logging.NullHandler()
_LARGEST_MESSAGE = 64 * 1024 * 1024  # bytes of one line from Claude Code; the SDK's own limit is 1 MB


class Claude:
    """Claude Code through its Agent SDK: a model with the condition's MCP tools and no tool of its own.

    Each trial has a session, a HOME and an empty working directory of its own, and sees the
    variables that it needs, no others. The system prompt is the condition's. A run in which
    a built-in tool reaches the model is stopped.
    """

    class Options(BaseModel):
        """`model` is the model's own name. Claude Code takes no sampling parameters: no temperature, no seed."""

        model_config = Strictly

        model: Name = Field(description="the model's own name, e.g. claude-sonnet-4-5")
        max_turns: Count | None = Field(default=50, ge=1)  # responses of the model to one question; null: no limit
        thinking_tokens: Count | None = Field(default=None, ge=0)  # 0: no thinking; null: as Claude Code has it
        effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None  # null: as Claude Code has it
        provider: Literal["anthropic", "bedrock", "vertex"] | None = None  # null: CLAUDE_CODE_USE_BEDROCK, …_VERTEX say
        base_url: Address | None = None  # of a service that speaks Anthropic's Messages API; it goes before `provider`
        api_key_env: VariableName | None = (
            None  # the name of the variable that holds the key; null: ANTHROPIC_API_KEY, …
        )
        max_retries: Count = Field(default=2, ge=0, le=10)  # of one request, before the attempt fails
        env: dict[str, Text] = {}  # further variables that Claude Code sees, e.g. HTTPS_PROXY
        program: Name | None = None  # another Claude Code than the one that the SDK brings along
        temperature: None = None  # cannot be set

        @field_validator("temperature", mode="before")
        @classmethod
        def _no_temperature(cls, value: object) -> object:
            if value is not None:
                raise ValueError(
                    "cannot be set: Claude Code does not let its caller choose a temperature; "
                    "the agent `chat` does (anthropic:MODEL)"
                )
            return value

        @field_validator("model")
        @classmethod
        def _is_bare(cls, model: str) -> str:
            for prefix in ("anthropic:", "anthropic/"):
                if model.startswith(prefix):
                    raise ValueError(f"must be the model's own name: '{model.removeprefix(prefix)}'")
            return model

    indifferent = ("api_key_env", "max_retries", "temperature")

    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._options, self._setting = options, setting
        self._program = _program(options.program, setting.folder)
        env = setting.env if setting.env is not None else os.environ
        provider = provider_of(options.provider, options.base_url, env)
        self._env = environment(
            provider,
            env,
            own=options.env,
            base_url=options.base_url,
            api_key_env=options.api_key_env,
            max_retries=options.max_retries,
        )
        self._hide = Redactor(credentials(self._env))
        # The SDK logs what it also raises; a handler of our own keeps Python from printing that on stderr.
        logging.getLogger("claude_agent_sdk").addHandler(_QUIET)
        price = own_price(ModelName(provider="anthropic", name=options.model), setting.prices)
        self._terms = Terms(provider=provider, base_url=options.base_url, price=price, redact=self._redact)

    @asynccontextmanager
    async def session(self, condition: Condition, sample: Sample) -> AsyncIterator[Conversation]:
        """One trial's session. When the block is left, every process that it started is gone, and its folder too."""
        names = ToolNames(condition)
        with trial_folder() as folder:
            self._fill(folder, condition)
            complaints: deque[str] = deque(maxlen=40)
            conversation = Conversation(
                self._sdk_options(condition, names, folder, complaints),
                names=names,
                servers=condition.mcp_servers,
                materials=sample.materials,
                terms=self._terms,
                complaints=complaints,
            )
            at_once = True
            try:
                await _whole(conversation.open(), folder)
                yield conversation
                at_once = False
            finally:
                if at_once:
                    folder.end()
                await _whole(_end(conversation, folder), folder)

    def _fill(self, folder: Folder, condition: Condition) -> None:
        servers = client_config(condition, self._setting.folder, self._setting.toolbox)
        for server in condition.mcp_servers:
            servers[server.name] = _literal(server, servers[server.name])
            servers[server.name]["timeout"] = int(server.call_timeout_seconds * 1000)
        start = max((server.init_timeout_seconds for server in condition.mcp_servers), default=0.0)
        env = {**self._env, "MCP_TIMEOUT": str(int(start * 1000))} if start else self._env
        folder.fill(program=self._program, env=env, prompt=condition.system_prompt or "", servers=servers)

    def _sdk_options(
        self, condition: Condition, names: ToolNames, folder: Folder, complaints: deque[str]
    ) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        thinking: dict[str, Any] | None = None
        if self._options.thinking_tokens is not None:
            budget = self._options.thinking_tokens
            thinking = {"type": "enabled", "budget_tokens": budget} if budget else {"type": "disabled"}
        return ClaudeAgentOptions(
            model=self._options.model,
            max_turns=self._options.max_turns,
            thinking=cast("ThinkingConfig | None", thinking),
            effort=self._options.effort,
            system_prompt={"type": "file", "path": str(folder.prompt)} if condition.system_prompt else "",
            tools=[],
            allowed_tools=names.allowed,
            mcp_servers=folder.servers if condition.mcp_servers else {},
            strict_mcp_config=True,
            setting_sources=[],
            skills=[],
            permission_mode="dontAsk",
            verbatim_prompts=True,  # else a question with @path reads that file, and one with /word runs a command
            cwd=folder.work,
            cli_path=folder.wrapper,
            max_buffer_size=_LARGEST_MESSAGE,
            stderr=complaints.append,
        )

    def _redact(self, text: str) -> str:
        return self._hide(self._setting.redact(text))


async def _end(conversation: Conversation, folder: Folder) -> None:
    patience = asyncio.get_running_loop().call_later(_EXIT_SECONDS, folder.end)
    await conversation.close()
    await folder.gone()
    patience.cancel()


async def _whole(work: Coroutine[Any, Any, None], folder: Folder) -> None:
    """Carries `work` to its end, in a task of its own: where the SDK is cut off it leaves pipes half open.

    A cancellation ends the program, so that there is little to wait for, and is passed on then.
    """
    task = asyncio.create_task(work)
    cut_off: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task}, timeout=_LOOK_SECONDS if cut_off else None)
        except asyncio.CancelledError as error:
            cut_off = error
        if cut_off is not None:
            folder.end()
    if cut_off is not None:
        task.exception()  # that the program went away is no news
        raise cut_off
    task.result()


def _program(named: str | None, folder: Path) -> Path:
    """The program to start: the SDK's own, unless another is named. Raises MissingExtra, BadOption."""
    try:
        import claude_agent_sdk
    except ImportError as error:
        raise MissingExtra("claude", "the agent 'claude'") from error
    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if named is None and bundled.is_file():
        return bundled
    if named is not None and "/" in named:
        named = str(folder / Path(named).expanduser())
    found = shutil.which(named or "claude")
    if found is None:
        what = f"'{named}' is no program" if named is not None else "this build of claude-agent-sdk brings none along"
        raise BadOption("agent.program", f"{what}; install Claude Code, and give its path here")
    return Path(found)


def _literal(server: McpServer, config: Mapping[str, Any]) -> dict[str, Any]:
    """The server's definition as it stands: Claude Code would put variables into `${…}`, as karat has done already."""
    if "env" in config:  # one JSON text, in which "$" may be spelled otherwise; the rest is ours
        return {**config, "env": {name: text.replace("${", "\\u0024{") for name, text in config["env"].items()}}
    for text in (config["url"], *config["headers"].values()):
        if "${" in text:
            message = "a literal ${ cannot be sent to a remote server by way of Claude Code"
            raise BadOption(f"mcp_servers.{server.name}", message)
    return dict(config)
