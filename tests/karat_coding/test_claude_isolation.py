"""What an experiment does not declare does not reach the model of Claude Code: one canary a channel, in a whole run.

That each canary can sing is shown with Claude Code's own settings, in the same folders and with the same tools.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("claude_agent_sdk") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `claude`", allow_module_level=True)

from tests.karat_coding.claude_trials import KEY, write

from karat.testing.models import Request, serve

pytestmark = pytest.mark.slow  # a smaller case is in test_claude_run.py
TOOLS = ("Read", "Write", "Bash", "Skill", "Task")
EXPERIMENT = f"""
dataset: {{path: questions.jsonl}}
agent: {{type: claude, model: claude-sonnet-4-5}}
judge: {{type: overlap}}
conditions:
  bare: {{system_prompt: bare}}
  tools: {{system_prompt: tools, tools: &tools [{", ".join(TOOLS)}]}}
  workspace: {{system_prompt: workspace, workspace: starter, tools: *tools}}
  plugged: {{system_prompt: plugged, workspace: starter, tools: *tools, plugins: [style]}}
execution: {{num_repetitions: 1, max_concurrent: 1}}
"""


def _hooks(name: str) -> dict[str, Any]:
    return {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": f"echo CANARY-{name}"}]}]}}


def _described(name: str) -> str:
    return f"---\nname: x{name}\ndescription: CANARY-{name}\n---\nx"


SERVER = {"command": sys.executable, "args": ["-m", "karat.testing.mcp_server"]}
HOME = {  # of the person who measures
    ".claude/CLAUDE.md": "CANARY-homeclaudemd",
    ".claude/rules/r.md": "CANARY-homerule",
    ".claude/skills/hs/SKILL.md": _described("homeskill"),
    ".claude/commands/hc.md": _described("homecommand"),
    ".claude/agents/a.md": _described("homeagent"),
    ".claude/settings.json": json.dumps({"env": {"SETTING": "CANARY-homesetting"}, **_hooks("homehook")}),
    ".claude.json": json.dumps({"mcpServers": {"CANARY-homeserver": SERVER}}),
}
MARKET = {  # a plug-in is installed from it, for the person who measures
    ".claude-plugin/marketplace.json": json.dumps(
        {"name": "m", "owner": {"name": "o"}, "plugins": [{"name": "p", "source": "./p"}]}
    ),
    "p/.claude-plugin/plugin.json": '{"name": "p", "version": "1.0.0"}',
    "p/skills/s/SKILL.md": _described("installedskill"),
    "p/hooks/hooks.json": json.dumps(_hooks("installedhook")),
}
ABOVE = {"CLAUDE.md": "CANARY-parentclaudemd", ".claude/rules/r.md": "CANARY-parentrule"}
WORKSPACE = {
    "CLAUDE.md": "CANARY-workclaudemd",
    ".claude/CLAUDE.md": "CANARY-workdotclaude",
    ".claude/rules/r.md": "CANARY-workrule",
    ".claude/skills/s/SKILL.md": _described("workskill"),
    ".claude/commands/c.md": _described("workcommand"),
    ".claude/agents/a.md": _described("workagent"),
    ".claude/settings.json": json.dumps(_hooks("workhook")),
    ".mcp.json": json.dumps({"mcpServers": {"stranger": SERVER}}),  # with it the run would end: see ForeignTools
    "sub/CLAUDE.md": "CANARY-worknested",
    "sub/file.txt": "text\n",
}
VARIABLES = {
    "KARAT_TEST_CANARY": "CANARY-variable",
    "CLAUDE_CODE_EXTRA_BODY": '{"canary": "CANARY-extrabody"}',
}
CHANNELS = sorted(re.findall(r"CANARY-([a-z]+)", json.dumps([HOME, MARKET, WORKSPACE, ABOVE, VARIABLES])))


def look(request: Request) -> Any:
    """Prints variables and reads a file in a folder with instructions of its own, where there are tools for that."""
    steps = [("Bash", {"command": "echo $SETTING $KARAT_TEST_CANARY; pwd"})]
    if request.tool_results or any(message.tool_calls for message in request.messages):
        folder = next(line for text in _results(request) for line in text.splitlines() if line.startswith("/"))
        steps += [("Read", {"file_path": f"{folder}/sub/file.txt"})] * 2
        steps += [
            ("Write", {"file_path": f"{folder}/{name}", "content": "made"}) for name in ("made.txt", "../out.txt")
        ]
        steps += [("Bash", {"command": "echo made >> sub/file.txt; cat sub/file.txt"})]
    done = sum(len(message.tool_calls) for message in request.messages)
    if request.offered("Bash") is None or done == len(steps) > 1:
        return "done"
    return {"tool_calls": [{"name": steps[done][0], "arguments": steps[done][1]}]}


def _results(request: Request) -> list[str]:
    return [message.text for message in request.messages if message.role == "tool"]


def found(requests: list[Request]) -> set[str]:
    return set(re.findall(r"CANARY-([a-z]+)", json.dumps([request.body for request in requests])))


class Machine:
    """A home, a temporary folder below instructions, an experiment, and variables."""

    def __init__(self, root: Path) -> None:
        self.home, self.above, self.here = root / "home", root / "above", root / "here"
        self.temporary = write(self.above, ABOVE) / "tmp"
        self.temporary.mkdir()
        write(self.home, HOME)
        write(self.here / "starter", WORKSPACE)
        write(self.here / "style", {"commands/greet.md": "Say hello."})
        question = json.dumps({"question": "how?", "answer": "so"})
        write(self.here, {"experiment.yaml": EXPERIMENT, "questions.jsonl": f"{question}\n"})
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TMPDIR": str(self.temporary), **VARIABLES}
        self.env |= {
            "ANTHROPIC_API_KEY": KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "ENABLE_TOOL_SEARCH": "false",
        }
        write(root / "market", MARKET)
        for command in (["marketplace", "add", str(root / "market")], ["install", "p@m"]):
            subprocess.run([_program(), "plugin", *command], env=self.env, check=True, capture_output=True, timeout=60)


def _program() -> str:
    import claude_agent_sdk

    return str(Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="module")
def isolated(machine: Machine) -> list[Request]:
    """What karat's runs ask. Workspaces lie elsewhere: karat refuses to make them below somebody's instructions."""
    elsewhere = machine.here.with_name("elsewhere")
    elsewhere.mkdir()
    requests: list[Request] = []
    for temporary, conditions in ((machine.temporary, ["bare", "tools"]), (elsewhere, ["workspace", "plugged"])):
        with serve(look) as server:
            env = {**machine.env, "ANTHROPIC_BASE_URL": server.anthropic_url, "TMPDIR": str(temporary)}
            command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--quiet", "--results", conditions[0]]
            command += [argument for name in conditions for argument in ("--only-condition", name)]
            done = subprocess.run(
                command, cwd=machine.here, env=env, capture_output=True, text=True, timeout=200, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            requests += server.requests
        assert not list(temporary.glob("karat-*"))
    return requests


@pytest.fixture(scope="module")
def open_to_all(machine: Machine) -> list[Request]:
    """What Claude Code asks with its own settings."""
    from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

    async def ask(url: str) -> None:
        options = ClaudeAgentOptions(
            model="claude-sonnet-4-5",
            tools=list(TOOLS),
            allowed_tools=["Bash"],
            permission_mode="acceptEdits",
            skills="all",
            setting_sources=["user", "project", "local"],
            cwd=work,
            env={**machine.env, "ANTHROPIC_BASE_URL": url, "NO_PROXY": "127.0.0.1"},
        )
        async with asyncio.timeout(100), ClaudeSDKClient(options) as client:
            while any(one["status"] == "pending" for one in (await client.get_mcp_status())["mcpServers"]):
                await asyncio.sleep(0.05)
            await client.query("how?")
            async for _ in client.receive_response():
                pass

    work = write(machine.temporary / "x" / "work", WORKSPACE)
    with serve(look) as server:
        asyncio.run(ask(server.anthropic_url))
        return list(server.requests)


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_canary_reaches_the_model_only_with_claude_codes_own_settings(
    channel: str, isolated: list[Request], open_to_all: list[Request]
) -> None:
    assert channel in found(open_to_all), "the canary can sing"
    assert channel not in found(isolated)


def test_the_run_had_the_tools_that_could_have_let_them_in(isolated: list[Request]) -> None:
    offered = {frozenset(tool.name for tool in request.tools) for request in isolated}
    assert offered == {frozenset(), frozenset({"Read", "Write", "Bash", "Skill", "Agent"})}
    (_, _, read, inside, outside, both), *_ = (
        texts for texts in map(_results, isolated) if len(texts) == 6 and "text" in texts[-1]
    )
    assert "text" in read
    assert "File created" in inside
    assert "is outside" in outside
    assert both.split() == ["text", "made"]


def test_a_workspace_is_a_fresh_copy(machine: Machine, isolated: list[Request]) -> None:
    assert isolated
    assert (machine.here / "starter/sub/file.txt").read_text() == "text\n"
    assert not (machine.here / "starter/made.txt").exists()
    (journal,) = machine.here.glob("workspace/*/journal.jsonl")
    answers = [json.loads(line) for line in journal.read_text().splitlines() if '"event":"answer"' in line]
    assert {answer["condition"]: answer["workspace"]["changed"] for answer in answers} == {"workspace": 2, "plugged": 2}
