"""Claude Code, through its Agent SDK."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, field_validator

from karat.agents import AgentSetting
from karat.agents._prompt import client_config
from karat.config.model import Address, Count, Name, Strictly, Text, VariableName
from karat.errors import BadOption, MissingExtra
from karat.files import temporary_folder
from karat.mcp.results import LONGEST_MESSAGE
from karat.models import ModelName
from karat.models.prices import own_price
from karat.records import Condition, JsonObject, McpServer, Sample
from karat.redact import Redactor
from karat_coding import launch
from karat_coding.agents._claude_context import check_context
from karat_coding.agents._claude_session import Conversation, Terms, ToolNames
from karat_coding.launch import PID_FILE
from karat_coding.workspace import Workspace

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions
    from claude_agent_sdk.types import ThinkingConfig

__all__ = ["Claude"]

_SETTINGS = {
    # else hidden requests for titles falsify usage
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # wait for slow tool calls
    "DISABLE_AUTOUPDATER": "1",
    "ENABLE_TOOL_SEARCH": "false",  # every tool of the condition is offered, however many there are
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

# Files of the clouds' own tools below the real HOME, which Claude Code does not see.
_FILES = {
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "GOOGLE_APPLICATION_CREDENTIALS": ".config/gcloud/application_default_credentials.json",
}
_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
)
_NOT_SECRET = ("_URL", "_REGION", "_PROFILE", "_PROJECT", "_PROJECT_ID", "_FILE", "CREDENTIALS")


def provider_of(named: str | None, base_url: str | None, env: Mapping[str, str]) -> str:
    """The provider: from `base_url`, else the option, else the switches in the environment."""
    if base_url is not None:
        return "anthropic"
    if named is not None:
        return named
    on = (
        provider
        for provider, switch in _SWITCHES.items()
        if env.get(switch, "").lower() in ("1", "true", "yes")
    )
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
    """Settings, the provider's credentials and address, and what the experiment file sets (`own`).

    An address or a key in the options takes precedence, so that no other
    service is asked, and no other key is sent there. Raises BadOption where there is no key.
    """
    values = {name: env[name] for name in PROVIDERS[provider] if env.get(name)}
    if provider in _SWITCHES:
        home = Path(env.get("HOME") or Path.home())
        files = {
            name: str(home / path) for name, path in _FILES.items() if name in PROVIDERS[provider]
        }
        values |= {
            name: path for name, path in files.items() if name not in env and Path(path).is_file()
        }
        values[_SWITCHES[provider]] = "1"

    values |= {**_SETTINGS, "CLAUDE_CODE_MAX_RETRIES": str(max_retries), **own}
    if base_url is not None:
        for switch in _SWITCHES.values():
            values.pop(switch, None)
        values["ANTHROPIC_BASE_URL"] = base_url
        if (host := urlsplit(base_url).hostname or "") in ("127.0.0.1", "::1", "localhost"):
            # No proxy is needed between two programs on this machine.
            values["NO_PROXY"] = values["no_proxy"] = ",".join(
                filter(None, [values.get("NO_PROXY"), host])
            )

    if api_key_env is not None:
        for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
            values.pop(name, None)
        if not env.get(api_key_env):
            raise BadOption(
                "agent.api_key_env", f"the environment variable {api_key_env} is not set"
            )

        values["ANTHROPIC_API_KEY"] = env[api_key_env]

    if provider == "anthropic" and not any(values.get(name) for name in _KEYS):
        if base_url is None and "ANTHROPIC_BASE_URL" not in values:
            message = (
                "Claude Code needs a key: set ANTHROPIC_API_KEY, or name the variable that holds "
                "it (a login on this machine is not used: each trial has its own HOME)"
            )
            raise BadOption("agent.api_key_env", message)

        # a local server needs no key, but Claude Code does not start without one
        values["ANTHROPIC_API_KEY"] = "none"

    return values


def credentials(env: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that must not be shown."""
    known = set()
    for names in PROVIDERS.values():
        for name in names:
            if not name.endswith(_NOT_SECRET):
                known.add(name)

    return {name: value for name, value in env.items() if name in known}


_EXIT_SECONDS = 1.5  # for Claude Code to exit by itself after the last question
_LOOK_SECONDS = 0.05  # how soon after a cancellation a program that is just starting can be ended
_VERSION_SECONDS = 10.0
_NAME = "claude-code"
_QUIET = logging.NullHandler()


class Claude:
    """Claude Code through its Agent SDK: a model with what its condition defines, and nothing else.

    Each trial has its own session and HOME, works in its workspace or an empty folder, and sees
    only the variables that it needs. A run in which another tool reaches the model is stopped.
    """

    class Options(BaseModel):
        """`model` is the model's name.

        Claude Code takes no sampling parameters: no temperature, no seed.
        """

        model_config = Strictly

        model: Name = Field(description="the model's own name, e.g. claude-sonnet-4-5")
        # responses of the model to one question; null: no limit
        max_turns: Count | None = Field(default=50, ge=1)
        # 0: no thinking; null: Claude Code's default
        thinking_tokens: Count | None = Field(default=None, ge=0)
        # null: Claude Code's default
        effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
        # null: see CLAUDE_CODE_USE_BEDROCK, …_VERTEX
        provider: Literal["anthropic", "bedrock", "vertex"] | None = None
        # of a service with Anthropic's Messages API; takes precedence over `provider`
        base_url: Address | None = None
        # the variable that holds the API key; null: ANTHROPIC_API_KEY, …
        api_key_env: VariableName | None = None
        # of one request, before the attempt fails
        max_retries: Count = Field(default=2, ge=0, le=10)
        env: dict[str, Text] = {}  # further variables that Claude Code sees, e.g. HTTPS_PROXY
        program: Name | None = None  # another Claude Code than the one bundled with the SDK
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
                    raise ValueError(
                        f"must be the model's own name: '{model.removeprefix(prefix)}'"
                    )

            return model

    indifferent = ("api_key_env", "max_retries", "temperature")

    context = ("skills", "plugins", "instructions", "workspace", "tools")
    enters_workspace = True
    check_context = staticmethod(check_context)
    connects_itself = True  # to its MCP servers: recorded or replayed, through karat's proxy

    reports_tool_calls = True

    def __init__(self, options: Options, setting: AgentSetting) -> None:
        self._options = options
        self._setting = setting
        self._program = _program(options.program, setting.folder)
        self.versions = _versions(self._program)  # in run.json
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
        hide = Redactor(credentials(self._env))
        # The SDK logs what it also raises; our own handler keeps Python from printing it to stderr.
        logging.getLogger("claude_agent_sdk").addHandler(_QUIET)
        price = own_price(ModelName(provider="anthropic", name=options.model), setting.prices)
        self._terms = Terms(
            version=self.versions.get(_NAME),
            provider=provider,
            base_url=options.base_url,
            price=price,
            redact=lambda text: hide(setting.redact(text)),
        )

    @asynccontextmanager
    async def session(
        self, condition: Condition, sample: Sample, workspace: Workspace | None = None
    ) -> AsyncIterator[Conversation]:
        """One trial's session.

        At its end, every process that it started has ended, and its folder is removed.
        """
        names = ToolNames(condition)
        with trial_folder(workspace) as folder:
            servers = client_config(condition, self._setting.folder, self._setting.toolbox)
            for server in condition.mcp_servers:
                servers[server.name] = _literal(server, servers[server.name])
                servers[server.name]["timeout"] = int(server.call_timeout_seconds * 1000)

            start = max((server.init_timeout_seconds for server in names.servers), default=0.0)
            if start:
                env = {**self._env, "MCP_TIMEOUT": str(int(start * 1000))}
            else:
                env = self._env

            plugins, folders, more = names.given.put(folder.home)
            folder.fill(
                program=self._program,
                env=env | more,
                prompt=condition.system_prompt or "",
                servers=servers,
            )
            stderr_lines: deque[str] = deque(maxlen=40)
            options = self._sdk_options(condition, names, folder, stderr_lines)
            options.plugins = [{"type": "local", "path": str(path)} for path in plugins]
            options.add_dirs = list(folders)
            conversation = Conversation(
                options,
                names=names,
                materials=sample.materials,
                terms=self._terms,
                stderr_lines=stderr_lines,
            )
            at_once = True
            try:
                await _finish(conversation.open(), folder)
                yield conversation
                at_once = False
            finally:
                if at_once:
                    folder.end()
                await _finish(_end(conversation, folder), folder)

    def _sdk_options(
        self, condition: Condition, names: ToolNames, folder: Folder, stderr_lines: deque[str]
    ) -> ClaudeAgentOptions:
        from claude_agent_sdk import ClaudeAgentOptions

        thinking: dict[str, object] | None = None
        if self._options.thinking_tokens is not None:
            budget = self._options.thinking_tokens
            if budget:
                thinking = {"type": "enabled", "budget_tokens": budget}
            else:
                thinking = {"type": "disabled"}

        return ClaudeAgentOptions(
            model=self._options.model,
            max_turns=self._options.max_turns,
            thinking=cast("ThinkingConfig | None", thinking),
            effort=self._options.effort,
            system_prompt={"type": "file", "path": str(folder.prompt)}
            if condition.system_prompt
            else "",
            tools=list(names.given.tools),
            allowed_tools=names.allowed,
            mcp_servers=folder.servers if condition.mcp_servers else {},
            setting_sources=[],
            skills=list(names.given.loadable),
            **{"strict_mcp_config": True, "permission_mode": "dontAsk", **names.given.options},
            # else a question with @path reads that file, and one with /word runs a command
            verbatim_prompts=True,
            cwd=folder.work,
            cli_path=folder.wrapper,
            max_buffer_size=LONGEST_MESSAGE,  # the SDK's own limit is 1 MB
            stderr=stderr_lines.append,
        )


async def _end(conversation: Conversation, folder: Folder) -> None:
    patience = asyncio.get_running_loop().call_later(_EXIT_SECONDS, folder.end)
    await conversation.close()
    await folder.gone()
    patience.cancel()


async def _finish(work: Coroutine[object, object, None], folder: Folder) -> None:
    """Runs `work` to its end in a separate task: a cancelled SDK leaves pipes half open.

    A cancellation ends the program, so there is little to wait for, and is then raised.
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
        task.exception()  # the program was ended deliberately
        raise cut_off

    task.result()


def _program(named: str | None, folder: Path) -> Path:
    """The program to start: the SDK's own, unless `program` is set.

    Raises MissingExtra, BadOption.
    """
    try:
        import claude_agent_sdk
    except ImportError as error:
        raise MissingExtra("claude", "the agent 'claude'") from error

    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    if named is None and bundled.is_file():
        return bundled
    if named is not None and "/" in named:
        named = str(folder / Path(named).expanduser())
    path = shutil.which(named or "claude")
    if path is None:
        if named is not None:
            problem = f"'{named}' is not a program"
        else:
            problem = "this build of claude-agent-sdk brings none along"

        raise BadOption("agent.program", f"{problem}; install Claude Code, and give its path here")

    return Path(path)


def _versions(program: Path) -> dict[str, str]:
    """The version that the program reports; empty if none."""
    with temporary_folder("claude") as home:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), **_SETTINGS}
        command = [str(program), "--version"]
        try:
            result = subprocess.run(
                command,
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_VERSION_SECONDS,
            )
        except (OSError, subprocess.SubprocessError):
            return {}

    match = re.match(rb"\d+\.\d+[0-9A-Za-z.+-]{0,40}", result.stdout)
    if match:
        return {_NAME: match[0].decode()}
    return {}


def _literal(server: McpServer, config: JsonObject) -> dict[str, object]:
    """The server's definition, escaped: Claude Code would expand `${…}`, which karat has already
    done.
    """
    if "env" in config:  # one JSON text, in which "$" may be escaped; the rest is ours
        return {
            **config,
            "env": {name: text.replace("${", "\\u0024{") for name, text in config["env"].items()},
        }

    for text in (config["url"], *config["headers"].values()):
        if "${" in text:
            message = "a literal ${ cannot be sent to a remote server by way of Claude Code"
            raise BadOption(f"mcp_servers.{server.name}", message)

    return dict(config)


GONE_SECONDS = 5.0  # longer than the launcher may take to end everything
_POLL_SECONDS = 0.01


class Folder:
    """The files of one trial. Readable by their owner only: they contain keys."""

    def __init__(self, home: Path, workspace: Workspace | None) -> None:
        self.home = home
        self._workspace = workspace
        self._launcher: int | None = None
        self._over = False
        if workspace is None:
            self.work = home / "work"
        else:
            self.work = workspace.path

        self.temporary = home / "tmp"
        self.wrapper = home / "claude"
        self.prompt = home / "prompt.txt"
        self.servers = home / "servers.json"

    def fill(
        self, *, program: Path, env: Mapping[str, str], prompt: str, servers: Mapping[str, object]
    ) -> None:
        """What Claude Code needs, as files: on a command line, `ps` would show prompts and keys to
        everyone.
        """
        self.temporary.mkdir()
        command = [str(program)]
        if self._workspace is None:
            self.work.mkdir()
        else:
            command = self._workspace.command(command)

        self.prompt.write_bytes(prompt.encode("utf-8", "surrogatepass"))
        self.servers.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        own = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **env,
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PWD": str(self.work),
        }
        definition = {"command": command, "env": own, "home": str(self.home), "parent": os.getpid()}
        (self.home / "launch.json").write_text(json.dumps(definition), encoding="utf-8")
        # The SDK takes one path and passes its whole environment on; the wrapper keeps only the
        # SDK's own variables.
        kept = " ".join(f'{name}="${name}"' for name in launch.OF_THE_SDK)
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(self.home / "launch.json")]
        self.wrapper.write_text(
            f"#!/bin/sh\ntrap '' INT\nexec env -i {kept} {shlex.join(launcher)} \"$@\"\n",
            encoding="utf-8",
        )
        self.wrapper.chmod(0o700)

    def end(self) -> None:
        """Tell the launcher to end everything now.

        Returns at once, so that a cancellation cannot prevent it.
        """
        pid = self._pid()
        if pid is not None and not self._over:  # its number may be reused after its end
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    async def gone(self) -> None:
        """Wait for the launcher, which ends last; kill its session if it does not end."""
        pid = self._pid()
        if pid is None:
            return
        deadline = asyncio.get_running_loop().time() + GONE_SECONDS
        while _runs(pid) and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(_POLL_SECONDS)
        if _runs(pid):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)

        self._over = True

    def _pid(self) -> int | None:
        if self._launcher is None:
            with suppress(FileNotFoundError, ValueError):
                self._launcher = int((self.home / PID_FILE).read_text(encoding="ascii"))

        return self._launcher


@contextmanager
def trial_folder(workspace: Workspace | None) -> Iterator[Folder]:
    """A new folder, removed at the end of the block.

    `workspace`: where Claude Code works; None: below it.
    """
    with temporary_folder("claude") as home:
        yield Folder(home, workspace)


def _runs(pid: int) -> bool:
    """Whether the process is alive; a zombie is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False

    stat = Path(f"/proc/{pid}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        return stat.read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    return not Path("/proc/self/stat").exists()
