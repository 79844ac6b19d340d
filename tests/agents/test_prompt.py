"""What an agent outside karat gets for one turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.agents._prompt import client_config, prompt_and_history
from karat.mcp import Toolbox, launch_command
from karat.records import AgentSpec, Condition, McpServer, Reply, Sample, Turn
from karat.redact import Redactor


def test_servers_are_what_an_mcp_client_takes(tmp_path: Path) -> None:
    local = McpServer(name="docs", type="stdio", command="serve", args=("--all", "x"), env={"KEY": "k"})
    remote = McpServer(name="far", type="http", url="https://a.example/mcp", headers={"x-key": "k"})
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=(local, remote))
    toolbox = Toolbox((local, remote), redact=Redactor({}), folder=tmp_path)
    (program, *arguments), env = launch_command(local, folder=tmp_path)
    assert client_config(condition, tmp_path, toolbox) == {
        "docs": {"type": "stdio", "command": program, "args": arguments, "env": env},
        "far": {"type": "http", "url": "https://a.example/mcp", "headers": {"x-key": "k"}},
    }
    assert arguments


@pytest.mark.parametrize(
    ("options", "said", "past"),
    [
        ({}, "Then?", "A table.\n\nFirst?"),
        ({"remembers": False}, "A table.\n\nThen?", "A table.\n\nFirst?"),
        ({"bare": True}, "Then?", "First?"),
    ],
)
def test_materials_precede_the_first_question_that_an_agent_sees(options, said, past) -> None:
    first, then = Turn(question="First?"), Turn(question="Then?")
    sample = Sample(id="1", position=0, digest="", turns=(first, then), materials="A table.")
    history = [(first, Reply(text="One."))]
    assert prompt_and_history(sample, then, history, **options) == (said, [{"question": past, "answer": "One."}])
    assert prompt_and_history(sample, first, [], **options)[1] == []
