"""promptfoo's providers as karat's agents.

Source: promptfoo's pages on providers and its type `ProviderOptions` (version 0.121).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from karat import foreign
from karat.errors import BadOption
from karat.models import parse_model
from karat.records import Json, JsonObject
from karat.setups import Findings
from karat_imports.setups._files import NotRead, ProjectFiles

_CHAT = {
    **{name: name for name in ("mistral", "groq", "openrouter", "deepseek", "cohere", "cerebras")},
    **{name: name for name in ("anthropic", "google", "ollama", "bedrock", "azure", "huggingface")},
    **{name: name for name in ("fireworks", "litellm", "openai", "vertex", "xai", "perplexity")},
    "togetherai": "together",
    "azureopenai": "azure",
    "palm": "google",
    "vercel": "vercel",
}
"""Providers of models in promptfoo → their names here."""
_MODES = ("chat", "messages", "completion", "text-generation", "converse")
_NO_MODELS = (
    *("embedding", "embeddings", "assistant", "image", "realtime", "moderation", "live", "video"),
    *("transcription", "speech", "classification", "agents", "codex-sdk", "chatkit"),
)
_SECRET = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"\{\{\s*env\.(\w+)\s*\}\}|\$\{?(\w+)\}?|process\.env\.(\w+)")
_PATH_IN_JSON = re.compile(r"(?:json|data|response)((?:\.\w+|\[\d+\]|\?\.\w+)+)\Z")
_TEMPLATE = re.compile(r"\{\{\s*(prompt|question|message|input|query|q)\s*(?:\|\s*\w+\s*)?\}\}")
_SETTINGS = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "top_p": "top_p",
    "topP": "top_p",
    "seed": "seed",
    "apiBaseUrl": "base_url",
    "baseUrl": "base_url",
    "apiKeyEnvar": "api_key_env",
}
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "max_tokens": (1, 10**9), "seed": (0, 2**62)}


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A provider as an agent."""

    name: str  # its label, else its id
    agent: JsonObject  # `type`, and its options
    servers: JsonObject = {}  # MCP servers, by name
    files: dict[str, bytes] = {}  # that the agent needs
    workspace: str = ""


class Providers:
    """Reads the providers of one configuration. What is not taken goes to the findings."""

    def __init__(self, files: ProjectFiles, findings: Findings, folder: Path) -> None:
        """`folder`: where the experiment will be."""
        self._files, self._findings, self._folder = files, findings, folder

    def read(self, value: Json) -> list[Provider]:
        """Each provider that has an equivalent."""
        found = []
        for given in self._listed(value):
            name = str(given.get("label") or given["id"])
            try:
                found.append(self._provider(name, given["id"], given.get("config") or {}))
            except NotRead as error:
                self._findings.leave("provider", f"{name:.80}: {error}")

        return found

    def model(self, name: str | None) -> str | None:
        """The model of a provider that judges; None if it is no model that karat asks."""
        if name is None:
            return None
        try:
            return _model_of(name, {})
        except NotRead as error:
            self._findings.leave("judge", f"{name:.80}: {error}")
            return None

    def _listed(self, value: Json) -> list[JsonObject]:
        """Providers as objects with an id, those in files included."""
        found: list[JsonObject] = []
        for entry in value if isinstance(value, list) else [value]:
            given: JsonObject = {}
            if isinstance(entry, str):
                given = {"id": entry}
            elif isinstance(entry, dict) and "id" not in entry and len(entry) == 1:
                ((alone, options),) = entry.items()  # its options under its name
                given = {"id": alone, **(options if isinstance(options, dict) else {})}
            elif isinstance(entry, dict):
                given = entry

            name = given.get("id")
            if not isinstance(name, str):
                if entry is not None:
                    self._findings.leave("provider", "it has no id")
                continue

            if name.startswith("file://") and name.endswith((".yaml", ".yml", ".json")):
                try:
                    found += self._listed(self._files.document(self._files.path(name)))
                except NotRead as error:
                    self._findings.leave("provider", str(error))
            else:
                config = given.get("config")
                found.append(given | {"config": config if isinstance(config, dict) else {}})

        return found

    def _provider(self, name: str, identity: str, config: JsonObject) -> Provider:
        scheme, _, rest = identity.partition(":")
        if identity == "echo":
            return Provider(
                name=name,
                agent={"type": "python", "target": "provider_echo:answer"},
                files=ECHO,
            )

        if scheme in ("http", "https"):
            return Provider(name=name, agent=self._http(identity, config))
        if scheme in ("python", "file"):
            # A file of the configuration's project, through a function that calls it
            plain = identity.removeprefix("python:").removeprefix("file://")
            file, _, function = plain.partition(":")
            if not file.endswith(".py"):
                raise NotRead("karat does not run it; write an agent of type `command` or `http`")
            if not (function or "call_api").isidentifier():
                raise NotRead(f"'{function:.40}' is no name of a function")
            path = self._files.path(file)
            self._files.data(path)
            module = f"provider_{re.sub(r'[^0-9a-z]+', '_', name.lower()).strip('_') or 'python'}"
            near = os.path.relpath(path, self._folder.resolve())
            source = _ADAPTER.format(
                file=near, function=function or "call_api", config=_literal(config)
            )
            self._findings.take(f"{file} is called by {module}.py")
            return Provider(
                name=name,
                agent={"type": "python", "target": f"{module}:answer"},
                files={f"{module}.py": source.encode()},
            )

        if scheme == "exec":
            # A program that takes the prompt as its first argument
            try:
                words = shlex.split(rest)
            except ValueError as error:
                raise NotRead(f"its command cannot be read ({error})") from error

            if not words:
                raise NotRead("it names no program")
            code = _EXEC.format(
                words=_literal(words),
                folder=os.path.relpath(self._files.home, self._folder.resolve()),
            )
            return Provider(
                name=name,
                agent={"type": "python", "target": "provider_exec:answer"},
                files={"provider_exec.py": code.encode()},
            )

        if identity in ("anthropic:claude-agent-sdk", "anthropic:claude-code"):
            agent: JsonObject = {"type": "claude", "model": str(config.get("model") or "sonnet")}
            turns = config.get("max_turns")
            if isinstance(turns, int) and turns > 0:
                agent["max_turns"] = turns
            workspace = ""
            place = config.get("working_dir")
            if isinstance(place, str) and "{{" not in place:
                path = self._files.path(place)
                if path.is_dir():
                    workspace = os.path.relpath(path, self._folder.resolve())
                else:
                    self._findings.leave("`config.working_dir`", "there is no such folder", name)

            return Provider(
                name=name,
                agent=agent,
                servers=self._servers(config.get("mcp")),
                workspace=workspace,
            )

        options: JsonObject = {"type": "chat", "model": _model_of(identity, config)}
        for key, value in config.items():
            if key in _SETTINGS:
                options |= self._setting(_SETTINGS[key], value, name)
            elif key in ("apiKey", "apiHost", "showThinking", "mcp", "tools", "max_turns"):
                if key == "apiKey" and value:
                    self._findings.take("API keys are read from the environment, not from the file")
                elif key == "tools":
                    self._findings.leave("`config.tools`", "give tools by MCP servers", name)
            else:
                self._findings.leave(f"`config.{key}`", "no such option of the agent `chat`", name)

        return Provider(name=name, agent=options, servers=self._servers(config.get("mcp")))

    def _setting(self, key: str, value: Json, name: str) -> JsonObject:
        if key in _RANGES:
            low, high = _RANGES[key]
            if (
                not isinstance(value, int | float)
                or isinstance(value, bool)
                or not low <= value <= high
            ):
                self._findings.leave(f"`{key}`", f"{value!r:.40} is not from {low} to {high}", name)
                return {}

            return {key: value}

        if isinstance(value, str) and value:
            return {key: _from_environment(value)}
        return {}

    def _servers(self, mcp: Json) -> JsonObject:
        """The MCP servers of a provider."""
        given = foreign.Json(mcp)
        if given.get("enabled") is False:
            return {}
        servers = given.list("servers") or [given.at("server")]
        found: JsonObject = {}
        for place, server in enumerate(filter(None, servers), start=1):
            name = re.sub(r"\W+", "-", str(server.get("name") or f"server-{place}"))
            if command := server.text("command"):
                args = server.get("args")
                found[name] = {
                    "command": command,
                    "args": [str(one) for one in args] if isinstance(args, list) else [],
                }
            elif url := server.text("url"):
                found[name] = {"url": _from_environment(url)}
            else:
                self._findings.leave("MCP server", "it has neither `command` nor `url`", name)

        return found

    def _http(self, identity: str, config: JsonObject) -> JsonObject:
        url = str(config.get("url") or identity)
        if "://" not in url:
            raise NotRead("it has no address (`config.url`)")
        if config.get("request") is not None:
            raise NotRead("a raw HTTP request; write it as `url`, `headers` and `body`")
        options: JsonObject = {"type": "http", "url": _from_environment(url)}
        method = str(config.get("method") or ("POST" if config.get("body") else "GET")).upper()
        if method != "POST":
            options["method"] = method
        headers = config.get("headers")
        if isinstance(headers, dict):
            options["headers"] = {}
            for key, value in headers.items():
                shown = _from_environment(str(value))
                if "${" not in shown and _SECRET.search(str(key)):  # it comes from the environment
                    variable = re.sub(r"[^0-9A-Z]+", "_", str(key).upper()).strip("_")
                    shown = f"${{{variable}}}"

                options["headers"][key] = shown

        if config.get("body") is not None:
            options["body"] = _body(config["body"])
        query = config.get("queryParams")
        if isinstance(query, dict):
            options["query"] = {key: _body(str(value)) for key, value in query.items()}
        transform = config.get("transformResponse") or config.get("responseParser")
        if isinstance(transform, str):
            path = _PATH_IN_JSON.fullmatch(transform.strip())
            if path is None:
                self._findings.leave("`transformResponse`", "a program; set `answer`", url)
            else:
                options["answer"] = path[1].replace("?.", ".").lstrip(".")

        for key in ("session", "auth", "signatureAuth", "transformRequest", "validateStatus"):
            if config.get(key) is not None:
                self._findings.leave(f"`config.{key}`", "no such option of the agent `http`", url)

        return options


def _model_of(identity: str, config: JsonObject) -> str:
    """`provider:model` as karat names it. Raises NotRead."""
    scheme, _, rest = identity.partition(":")
    mode, _, model = rest.partition(":")
    if scheme not in _CHAT:
        raise NotRead("there is no such agent")
    if mode in _NO_MODELS:
        raise NotRead(f"{mode} is no chat model")
    provider = _CHAT[scheme]
    if mode in _MODES and model:
        rest = model
    elif mode == "responses" and model:
        provider, rest = "openai-responses", model

    rest = rest or str(config.get("model") or "")
    if rest in ("", "chat", *_MODES):
        raise NotRead("it names no model")
    if provider == "google" and rest.startswith("claude"):
        provider = "google-cloud"
    try:
        return str(parse_model(f"{provider}:{rest}"))
    except BadOption as error:
        raise NotRead(str(error)) from error


def _from_environment(text: str) -> str:
    """A text with promptfoo's references to the environment as karat writes them."""

    def one(match: re.Match[str]) -> str:
        return f"${{{match[1] or match[2] or match[3]}}}"

    return _ENVIRONMENT.sub(one, text)


def _body(value: Json) -> Json:
    """The body of a request, with the prompt's field as karat's."""
    if isinstance(value, str):
        return _from_environment(_TEMPLATE.sub("{{ question }}", value))
    if isinstance(value, Mapping):
        return {str(key): _body(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_body(below) for below in value]
    return value


def _literal(value: list[str] | JsonObject) -> str:
    """A value as Python, without keys that may hold secrets."""
    if isinstance(value, dict):
        value = {key: below for key, below in value.items() if not _SECRET.search(str(key))}
    return repr(value)


_ECHO = '''\
"""Says the question back, as promptfoo's provider `echo` does."""


def answer(question):
    return question
'''
ECHO = {"provider_echo.py": _ECHO.encode()}
"""The file of an agent that says the question back."""

_ADAPTER = '''\
"""Asks a provider of promptfoo: FILE defines it."""

import importlib.util
import inspect
from pathlib import Path

FILE = Path(__file__).resolve().parent / {file!r}
CONFIG = {config}


def _provider():
    spec = importlib.util.spec_from_file_location("promptfoo_provider", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.{function}


async def answer(question, system_prompt, metadata):
    prompt = "\\n\\n".join(part for part in (system_prompt, question) if part)
    given = _provider()(prompt, {{"config": CONFIG}}, {{"vars": dict(metadata or {{}})}})
    result = await given if inspect.isawaitable(given) else given
    if result.get("error"):
        raise RuntimeError(result["error"])
    output = result.get("output")
    return output if isinstance(output, str) else str(output)
'''
_EXEC = '''\
"""Runs the program of promptfoo's provider `exec:`, with the prompt as its last argument."""

import asyncio
from pathlib import Path

WORDS = {words}
FOLDER = Path(__file__).resolve().parent / {folder!r}


async def answer(question, system_prompt):
    prompt = "\\n\\n".join(part for part in (system_prompt, question) if part)
    program = await asyncio.create_subprocess_exec(
        *WORDS, prompt, cwd=FOLDER, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await program.communicate()
    if program.returncode:
        why = err.decode(errors="replace")[-2000:]
        raise RuntimeError(why or f"exit code {{program.returncode}}")
    return out.decode(errors="replace").strip()
'''
