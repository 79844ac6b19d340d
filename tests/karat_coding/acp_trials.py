"""Trials of the agent `acp`, with scripted and with real agents, against a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat import plugins
from karat.agents import AgentSetting, as_agent
from karat.mcp import Toolbox
from karat.models import Price
from karat.records import AgentSpec, Cassettes, Condition, Context, McpServer, Reply, Sample, Trial, Turn
from karat.redact import Redactor
from karat.testing.models import ModelServer
from karat_coding.workspace import Base, Overlay, Workspace, open_workspace

NPM = Path(os.environ.get("KARAT_TEST_NPM") or Path(__file__).parents[2] / ".venv/npm") / "node_modules"

# Instead of all models of the world, which OpenCode takes a second to read at each start.
NO_MODELS = Path(__file__).with_name("no_models.json")

# What is not meant for this machine goes to a port where nothing listens.
LOOPBACK = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
}


@dataclass
class AcpTrials:
    """`ask(command, *questions)` as the engine would."""

    folder: Path
    servers: tuple[McpServer, ...] = ()
    system_prompt: str | None = None
    materials: str | None = None
    tools: tuple[str, ...] = ()
    work: Path | None = None  # the workspace
    overlay: Overlay | None = None  # then `work` is what it begins with
    changed: dict[str, str] = field(default_factory=dict)  # the files of the overlay's last session
    prices: Mapping[str, Price] = field(default_factory=dict)
    cassettes: Cassettes | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 100
    changes: Sequence[str] = ()

    def trial(self, *questions: str) -> Trial:
        turns = tuple(Turn(question=text) for text in questions or ("why?",))
        sample = Sample(id="0", position=0, digest="d", turns=turns, materials=self.materials)
        condition = Condition(
            name="a",
            position=0,
            digest="d",
            agent=AgentSpec(type="acp"),
            system_prompt=self.system_prompt,
            mcp_servers=self.servers,
            context=Context(tools=self.tools),
        )
        return Trial(id="0" * 24, index=0, sample=sample, condition=condition, repetition=0, seed=7)

    @contextmanager
    def workspace(self) -> Iterator[Workspace | None]:
        if self.work is None or self.overlay is None:
            yield Workspace(self.work) if self.work is not None else None
            return
        with tempfile.TemporaryDirectory(prefix="karat-test-") as folder:
            workspace = open_workspace(Path(folder) / "w", Base(self.work), self.overlay)
            yield workspace
            files = [path for path in workspace.changed.rglob("*") if path.is_file()]
            self.changed = {str(path.relative_to(workspace.changed)): path.read_text() for path in files}
            workspace.close()

    def ask(self, options: Mapping[str, Any], *questions: str, times: int = 1) -> tuple[Reply, ...]:
        """The replies of the last of `times` sessions."""

        async def whole() -> tuple[Reply, ...]:
            redact = Redactor(self.secrets)
            async with Toolbox(self.servers, redact=redact, folder=self.folder, cassettes=self.cassettes) as toolbox:
                setting = AgentSetting(folder=self.folder, toolbox=toolbox, redact=redact, prices=self.prices)
                plugin = plugins.build(plugins.find("agents", "acp"), options, setting=setting)
                agent, trial = as_agent(plugin), self.trial(*questions)
                replies: tuple[Reply, ...] = ()
                for _ in range(times):
                    with self.workspace() as workspace:
                        async with asyncio.timeout(self.timeout), agent.session(trial, workspace=workspace) as session:
                            replies = tuple([await session.ask(turn) for turn in trial.sample.turns])
                self.changes = tuple(getattr(agent, "changes", ()))
                return replies

        return asyncio.run(whole())


def opencode(server: ModelServer, **permission: str) -> dict[str, Any]:
    """The options of the agent for OpenCode."""
    config = {
        "model": "local/scripted",
        "provider": {
            "local": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": server.openai_url, "apiKey": "none"},
                "models": {"scripted": {}},
            }
        },
        "agent": {"title": {"disable": True}},
        "permission": permission or {"*": "ask"},
        "experimental": {"continue_loop_on_deny": True},
    }
    env = {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_MODELS_PATH": str(NO_MODELS),
        **LOOPBACK,
    }
    return {"command": [str(NPM / ".bin/opencode"), "acp", "--pure"], "env": env}


def claude(server: ModelServer) -> dict[str, Any]:
    """The options of the agent for Claude Code by way of its adapter."""
    env = {
        "ANTHROPIC_BASE_URL": server.anthropic_url,
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **LOOPBACK,
    }
    return {"command": [str(NPM / ".bin/claude-agent-acp")], "env": env}


def gemini(server: ModelServer) -> dict[str, Any]:
    """The options of the agent for Gemini CLI."""
    env = {
        "GOOGLE_GEMINI_BASE_URL": server.gemini_url,
        "GEMINI_API_KEY": "none",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        **LOOPBACK,
    }
    return {"command": [str(NPM / ".bin/gemini"), "--acp", "--model", "gemini-2.5-flash"], "env": env}
