"""Whole runs with Claude Code: what arrives in the journal, and what is left on the machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("claude_agent_sdk") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `claude`", allow_module_level=True)

from tests.karat_coding.claude_trials import KEY, alive, descendants, wait_for

from karat.testing.models import Request, serve

EXPERIMENT = """
name: two-conditions
dataset: {{path: questions.jsonl}}
agent: {{type: claude_code_sdk, model: claude-sonnet-4-5{options}}}
judge: {{type: overlap}}
mcp_servers:
  docs: {{type: stdio, command: python, args: [-m, karat.testing.mcp_server]}}
conditions:
  without: {{system_prompt: Answer from memory.}}
  with: {{system_prompt: Use the tool., mcp_servers: [docs], require_mcp_tool_use: true}}
execution: {{num_repetitions: {repetitions}, max_concurrent: 2, retry: {{initial_backoff_seconds: 0.01}}}}
"""


class Place:
    """An experiment's folder, a HOME and a TMPDIR of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home, self.temporary, self.here = root / "home", root / "tmp", root / "here"
        for folder in (self.home / ".claude", self.temporary, self.here):
            folder.mkdir(parents=True)
        # What a person's own HOME says to Claude Code must not reach a trial.
        (self.home / "canary").write_text("tweet")
        (self.home / ".claude" / "CLAUDE.md").write_text("CANARY: always answer in Latin")
        (self.home / ".claude" / "settings.json").write_text('{"env": {"CANARY": "1"}, "model": "canary"}')
        mcp = {"mcpServers": {"stranger": {"command": "canary"}}}
        (self.home / ".claude.json").write_text(json.dumps(mcp))
        (self.here / "CLAUDE.md").write_text("CANARY: and in verse")
        (self.here / ".mcp.json").write_text(json.dumps(mcp))
        rows = [{"question": "how is a lamp lit?", "answer": "A lamp is lit with a match."}]
        (self.here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write(self, *, options: str = "", repetitions: int = 1) -> None:
        text = EXPERIMENT.format(options=options, repetitions=repetitions)
        (self.here / "experiment.yaml").write_text(text)

    def start(self, url: str, *arguments: str, key: str = KEY) -> subprocess.Popen[str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        env = {**kept, "HOME": str(self.home), "TMPDIR": str(self.temporary), "KARAT_TEST_CANARY": "tweet"}
        env |= {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": url}
        command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--json", "--quiet", *arguments]
        return subprocess.Popen(
            command, cwd=self.here, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def files(self) -> dict[str, str]:
        """Everything below HOME and the experiment's folder, results aside."""
        found = [*self.home.rglob("*"), *self.here.rglob("*")]
        kept = [path for path in found if path.is_file() and "results" not in path.parts]
        return {str(path.relative_to(self.root)): path.read_text() for path in kept}

    def events(self, kind: str) -> list[dict[str, Any]]:
        (journal,) = self.here.glob("results/*/journal.jsonl")
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        return [event for event in events if event["event"] == kind]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def search(request: Request) -> Any:
    """Searches where it can, and says what it found."""
    if request.offered("search") is None:
        return {"text": "I do not know.", "usage": {"input": 50, "output": 5}}
    if not request.tool_results:
        calls = [{"name": "search", "arguments": {"query": "lamp"}}]
        return {"tool_calls": calls, "usage": {"input": 100, "output": 10}}
    return {"text": request.tool_results[-1], "usage": {"input": 200, "output": 20}}


def test_a_run_under_two_conditions(place: Place) -> None:
    place.write()
    before = place.files()
    with serve(search) as server:
        process = place.start(server.anthropic_url)
        out, err = process.communicate(timeout=250)
    assert process.returncode == 0, out + err
    offered = {frozenset(tool.name for tool in request.tools) for request in server.requests}
    assert {len(tools) for tools in offered} == {0, 14}
    assert all(name.startswith("mcp__docs__") for tools in offered for name in tools)
    assert len(server.requests) == 3, "no hidden request"
    assert "CANARY" not in json.dumps([request.body for request in server.requests])
    answers = {event["condition"]: event["replies"] for event in place.events("answer")}
    (without,), (with_tool,) = answers["without"], answers["with"]
    assert (without["text"], without["usage"]) == ("I do not know.", {"input_tokens": 50, "output_tokens": 5})
    assert "tool_calls" not in without
    assert "A lamp is lit with a match." in with_tool["text"]
    assert with_tool["usage"] == {"input_tokens": 300, "output_tokens": 30}
    assert with_tool["dollars"] == pytest.approx(300 * 3e-6 + 30 * 15e-6)
    assert (with_tool["model"], with_tool["responses"]) == ("claude-sonnet-4-5", 2)
    (call,) = with_tool["tool_calls"]
    assert (call["server"], call["tool"], call["input"]) == ("docs", "search", {"query": "lamp"})
    assert "A lamp is lit with a match." in call["result"]
    assert call["milliseconds"] >= 0
    assert place.files() == before
    assert list(place.temporary.iterdir()) == []
    (info,) = place.here.glob("results/*/run.json")
    assert "claude-agent-sdk" in json.loads(info.read_text())["versions"]
    assert not any(KEY in path.read_text() for path in info.parent.iterdir() if path.is_file())


ENDINGS = {
    "timeout": (", --set, execution.timeout_seconds=8", ()),
    "Ctrl-C twice": ("", (signal.SIGINT, signal.SIGINT)),
    "SIGTERM twice": ("", (signal.SIGTERM, signal.SIGTERM)),
    "SIGKILL": ("", (signal.SIGKILL,)),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc; elsewhere nothing tells of a parent's SIGKILL")
@pytest.mark.parametrize("how", ENDINGS)
def test_nothing_is_left_of_a_run_that_was_ended(place: Place, how: str) -> None:
    place.write(repetitions=2)
    arguments, signals = ENDINGS[how]

    def hang(request: Request) -> Any:
        if request.offered("spawn") is None:
            return {"hang": True}
        name = "hang" if request.tool_results else "spawn"
        arguments = {"stubborn": True} if name == "spawn" else {}
        return {"tool_calls": [{"name": name, "arguments": arguments}]}

    with serve(hang) as server:
        process = place.start(server.anthropic_url, *arguments.split(", ")[1:])
        assert wait_for(lambda: any(request.tool_results for request in server.requests))
        pids = descendants(process.pid)
        assert len(pids) >= 6, "two launchers, two programs, a server and its child"
        for number in signals:
            process.send_signal(number)
            wait_for(lambda: process.poll() is not None, seconds=1)
        process.communicate(timeout=100)
        assert wait_for(lambda: not any(map(alive, pids)))
        assert wait_for(lambda: not list(place.temporary.glob("karat-claude-*")))
    if how == "timeout":
        kinds = {(event["kind"], event["class"]) for event in place.events("attempt")}
        assert kinds == {("timeout", "limit")}


@pytest.mark.slow
def test_a_stranger_among_the_tools_ends_the_run_not_the_trial(place: Place) -> None:
    from tests.karat_coding.test_claude import stranger

    program = stranger(place.here, tools=["Bash"], servers=[])
    place.write(options=f", program: {program}")
    process = place.start("http://127.0.0.1:9", "--only-condition", "without")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert "tools that the condition does not define (Bash)" in err
    assert place.events("attempt") == place.events("failure") == place.events("answer") == []


@pytest.mark.slow
def test_without_a_key_nothing_is_started(place: Place) -> None:
    place.write()
    process = place.start("", key="")
    _, err = process.communicate(timeout=100)
    assert process.returncode == 2
    assert "agent.api_key_env: Claude Code needs a key: set ANTHROPIC_API_KEY" in err
    assert not list(place.here.glob("results/*"))


WRAPPER = """#!/bin/sh
if [ "$1" = --version ]; then cat "$(dirname "$0")/version"; else exec {program} "$@"; fi
"""


@pytest.mark.slow
def test_a_run_does_not_go_on_with_another_version_of_claude_code(place: Place) -> None:
    import claude_agent_sdk
    from claude_agent_sdk._cli_version import __cli_version__

    program = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    (place.here / "wrapper").write_text(WRAPPER.format(program=program))
    (place.here / "wrapper").chmod(0o755)
    (place.here / "version").write_text(f"{__cli_version__} (Claude Code)\n")
    place.write(options=", program: ./wrapper")
    with serve(search) as server:
        process = place.start(server.anthropic_url, "--only-condition", "without")
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        (info,) = place.here.glob("results/*/run.json")
        assert json.loads(info.read_text())["versions"]["claude-code"] == __cli_version__
        asked = len(server.requests)
        (place.here / "version").write_text("1.0.0 (Claude Code)\n")
        process = place.start(server.anthropic_url, "--resume", str(info.parent))
        _, err = process.communicate(timeout=100)
        assert process.returncode == 2
        assert f"claude-code is now 1.0.0, and was {__cli_version__}" in err
        process = place.start(server.anthropic_url, "--results", "other", "--only-condition", "without")
        _, err = process.communicate(timeout=100)
        assert process.returncode == 3
        assert len(server.requests) == asked, "nothing is asked of a version that changed since the run began"
    (journal,) = place.here.glob("other/*/journal.jsonl")
    assert (
        f'"cli_changed","message":"Claude Code is now {__cli_version__}; the run began with 1.0.0'
        in journal.read_text()
    )
