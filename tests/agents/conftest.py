"""An agent by name and options, asked as the engine asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat import plugins
from karat.agents import AgentSetting, as_agent
from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition, Reply, Sample, Trial, Turn
from karat.redact import Redactor

Ask = Callable[..., tuple[Reply, ...]]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """`ask(type, options, sample="0", condition="a", repetition=0, turns=("q",), timeout=30)`."""

    def go(
        name: str,
        options: dict[str, Any],
        *,
        sample: str = "0",
        condition: str = "a",
        repetition: int = 0,
        turns: tuple[str, ...] = ("q",),
        timeout: float = 30,
    ) -> tuple[Reply, ...]:
        async def whole() -> tuple[Reply, ...]:
            async with Toolbox((), redact=Redactor({}), folder=tmp_path) as toolbox:
                setting = AgentSetting(folder=tmp_path, toolbox=toolbox)
                agent = as_agent(plugins.build(plugins.find("agents", name), options, setting=setting))
                asked = tuple(Turn(question=text) for text in turns)
                spec = AgentSpec(type=name)
                trial = Trial(
                    id="0" * 24,
                    index=0,
                    sample=Sample(id=sample, position=0, digest="d", turns=asked),
                    condition=Condition(name=condition, position=0, digest="d", agent=spec, system_prompt="be brief"),
                    repetition=repetition,
                    seed=7,
                )
                async with asyncio.timeout(timeout), agent.session(trial) as session:
                    return tuple([await session.ask(turn) for turn in asked])

        return asyncio.run(whole())

    return go
