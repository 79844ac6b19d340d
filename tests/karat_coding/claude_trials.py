"""Trials of the agent `claude` with the real program, against a scripted model."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from karat import plugins
from karat.agents import AgentSetting, TrialAgent, as_agent
from karat.mcp import Toolbox
from karat.models import Price, limiters
from karat.records import AgentSpec, Condition, Context, ContextPart, McpServer, Reply, Sample, Trial, Turn
from karat.redact import Redactor
from karat.testing.models import ModelServer
from karat_coding.workspace import Workspace

KEY = "sk-ant-canary-1234"


@dataclass
class Trials:
    """`ask(server, *questions)` as the engine would."""

    folder: Path
    servers: tuple[McpServer, ...] = ()
    system_prompt: str | None = "be brief"
    materials: str | None = None
    env: Mapping[str, str] = field(default_factory=lambda: {"ANTHROPIC_API_KEY": KEY})
    prices: Mapping[str, Price] = field(default_factory=dict)
    context: Context = field(default_factory=Context)
    workspace: Workspace | None = None
    timeout: float = 100
    limits: dict[str, int | None] = field(default_factory=dict)  # of the providers, after the last trial

    def agent(self, toolbox: Toolbox, options: Mapping[str, Any]) -> TrialAgent:
        setting = AgentSetting(folder=self.folder, toolbox=toolbox, env=self.env, prices=self.prices)
        return as_agent(plugins.build(plugins.find("agents", "claude"), options, setting=setting))

    def trial(self, *questions: str) -> Trial:
        turns = tuple(Turn(question=text) for text in questions)
        sample = Sample(id="0", position=0, digest="d", turns=turns, materials=self.materials)
        condition = Condition(
            name="a",
            position=0,
            digest="d",
            agent=AgentSpec(type="claude"),
            system_prompt=self.system_prompt,
            mcp_servers=self.servers,
            context=self.context,
        )
        return Trial(id="0" * 24, index=0, sample=sample, condition=condition, repetition=0, seed=7)

    def ask(self, server: ModelServer, *questions: str, **options: Any) -> tuple[Reply, ...]:
        async def whole() -> tuple[Reply, ...]:
            async with Toolbox(self.servers, redact=Redactor({}), folder=self.folder) as toolbox:
                chosen = {"model": "claude-sonnet-4-5", "base_url": server.anthropic_url, **options}
                agent, trial = self.agent(toolbox, chosen), self.trial(*(questions or ("why?",)))
                async with asyncio.timeout(self.timeout), agent.session(trial, workspace=self.workspace) as session:
                    replies = tuple([await session.ask(turn) for turn in trial.sample.turns])
                self.limits = {name: limiter.limit for name, limiter in limiters().items()}
                return replies

        return asyncio.run(whole())


def part(path: Path) -> ContextPart:
    """A folder or file as a condition names it."""
    return ContextPart(name=path.name, path=path, digest="d")


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """The folder, with these files in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def descendants(pid: int) -> set[int]:
    """The processes below this one, by the kernel's own listing."""
    below: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        below.setdefault(parent, set()).add(int(stat.parent.name))
    reached: set[int] = set()
    front = {pid}
    while front := set().union(*(below.get(member, set()) for member in front)):
        reached |= front
    return reached


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(holds: Any, *, seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(holds())


def environment_of(pid: int) -> dict[str, str]:
    raw = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
    return dict(entry.split("=", 1) for entry in raw.split("\0") if "=" in entry)


def is_claude(pid: int) -> bool:
    """Whether this is Claude Code, or the launcher that stays beside it."""
    command = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    return "karat_coding/launch.py" in command or os.readlink(f"/proc/{pid}/exe").endswith("/claude")
