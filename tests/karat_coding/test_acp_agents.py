"""The agent `acp` with OpenCode, Claude Code and Gemini CLI themselves, asking a scripted model of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("acp") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("needs the extra `acp`", allow_module_level=True)

from tests.karat_coding.acp_trials import NPM, AcpTrials, claude, gemini, opencode
from tests.karat_coding.claude_trials import alive, descendants, wait_for

from karat.records import ToolCall, Usage
from karat.testing.mcp_server import stdio_server
from karat.testing.models import ModelServer, Request, serve
from karat_coding.workspace import overlay_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
    pytest.mark.skipif(not (NPM / ".bin/opencode").exists(), reason="needs npm: `make test` installs agents by it"),
]

Options = Callable[[ModelServer], dict[str, Any]]


class Real:
    """One of the agents, and how it names things for its model."""

    def __init__(self, options: Options, *, write: str, path: str, instructions: str) -> None:
        self.options, self.write, self.path, self.instructions = options, write, path, instructions


AGENTS = {
    "OpenCode": Real(opencode, write="write", path="filePath", instructions="AGENTS.md"),
    "Claude Code": Real(claude, write="Write", path="file_path", instructions="CLAUDE.md"),
    "Gemini CLI": Real(gemini, write="write_file", path="file_path", instructions="GEMINI.md"),
}


@pytest.fixture(params=AGENTS)
def real(request: pytest.FixtureRequest) -> Real:
    return AGENTS[request.param]


@pytest.fixture
def trials(tmp_path: Path) -> Iterator[AcpTrials]:
    before = descendants(os.getpid())
    yield AcpTrials(tmp_path)
    assert wait_for(lambda: not (descendants(os.getpid()) - before), seconds=5)
    assert not list(Path(tempfile.gettempdir()).glob(f"karat-acp-{os.getpid()}-*"))


def sent(server: ModelServer) -> str:
    return json.dumps([request.body for request in server.requests])


def test_it_answers_and_calls_a_tool_of_the_condition(trials: AcpTrials, real: Real) -> None:
    """The tools are there at its first question, and its tokens are those of the whole turn, or absent."""
    trials.servers, trials.system_prompt = (stdio_server("my docs.v2"),), "Be brief."
    echo = {"tool_calls": [{"name": "echo", "arguments": {"text": "a lamp"}}]}
    tokens = {"input": 100, "output": 10}
    rules = [
        {"when": {"contains": "look up"}, "say": [echo | {"usage": tokens}, {"text": "So it is.", "usage": tokens}]},
        {"say": [{"text": "plain", "usage": tokens}]},
    ]
    with serve(rules) as server:
        first, second = trials.ask(real.options(server), "hello", "look up")
        asked = [request for request in server.requests if request.tools]
    assert (first.text, second.text) == ("plain", "So it is.")
    offered = {tool.name for tool in asked[0].tools}
    assert any(re.fullmatch(r"(mcp_+)?my_docs[._]v2_+echo", name) for name in offered), offered
    assert asked[0].question.endswith("Be brief.\n\nhello")
    assert first.agent == second.agent != None  # noqa: E711 - all three are equal or not
    (call,) = second.tool_calls
    assert (call.server, call.tool, call.input, call.result) == ("my docs.v2", "echo", {"text": "a lamp"}, "a lamp")
    reported = {
        "OpenCode": (Usage(input_tokens=100, output_tokens=10), None),  # of the last response, so not of the turn
        "Claude Code": tuple(
            Usage(input_tokens=n * 100, output_tokens=n * 10, cache_read_tokens=0, cache_write_tokens=0) for n in (1, 2)
        ),
        "Gemini CLI": (None, None),
    }
    name = next(name for name, one in AGENTS.items() if one is real)
    assert (first.usage, second.usage) == reported[name]


@pytest.mark.parametrize("allowed", [True, False])
def test_it_edits_the_workspace_where_the_condition_allows_it(
    trials: AcpTrials, real: Real, tmp_path: Path, allowed: bool
) -> None:
    """In an overlay where one can be mounted: karat serves files as the agent sees them, and the base stays."""
    with tempfile.TemporaryDirectory(prefix="karat-test-") as folder:
        trials.overlay = overlay_for(Path(folder))
    work = trials.work = tmp_path / "base"
    work.mkdir()
    (work / "b.txt").write_text("there before")
    trials.tools = (real.write,) if allowed else ()

    def write(request: Request) -> Any:
        if not request.tools or request.tool_results:
            return "I have tried."
        seen = re.search(r"/[\w./-]+/w/workspace\b", json.dumps(request.body))
        arguments = {real.path: f"{seen[0] if seen else work}/a.txt", "content": "hello\n"}
        return {"tool_calls": [{"name": real.write, "arguments": arguments}]}

    with serve(write) as server:
        (reply,) = trials.ask(real.options(server), "write it")
    assert reply.text == "I have tried."
    (made,) = reply.tool_calls
    assert made.tool == real.write
    changed = trials.changed if trials.overlay.enter else {path.name: path.read_text() for path in work.iterdir()}
    changed.pop("b.txt", None)
    if allowed:
        assert (changed, made.error) == ({"a.txt": "hello\n"}, None)
    else:
        error = "rejected: the condition does not allow this tool"
        assert changed == {}
        assert made == ToolCall(tool=real.write, input=made.input, error=error, milliseconds=made.milliseconds)


def test_nothing_of_the_users_own_reaches_its_model(trials: AcpTrials, real: Real, tmp_path: Path) -> None:
    """HOME, the environment and the folder of karat; the same words in the workspace do, so the test would see them."""
    home = tmp_path / "home"
    for name in (
        f".claude/{real.instructions}",
        f".gemini/{real.instructions}",
        f".config/opencode/{real.instructions}",
    ):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text("CANARY of the home folder")
    (trials.folder / real.instructions).write_text("CANARY of the experiment's folder")
    before = {name: os.environ.get(name) for name in ("HOME", "XDG_CONFIG_HOME", "CANARY_VARIABLE")}
    here = Path.cwd()
    os.environ |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "CANARY_VARIABLE": "CANARY"}
    os.chdir(trials.folder)
    try:
        with serve([{"say": ["hi"]}]) as server:
            trials.ask(real.options(server), "hello")
            assert "CANARY" not in sent(server)
            trials.work = tmp_path / "work"
            trials.work.mkdir()
            (trials.work / real.instructions).write_text("CANARY of the workspace")
            (tmp_path / real.instructions).write_text("CANARY above the workspace")
            trials.ask(real.options(server), "hello")
            assert "CANARY of the workspace" in sent(server)
            assert "CANARY of the home" not in sent(server)
            # Two of them read on above the workspace, so karat refuses a temporary folder below such files.
            assert ("CANARY above" in sent(server)) is (real.instructions != "GEMINI.md")
    finally:
        os.chdir(here)
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def test_nothing_is_left_after_a_kill(real: Real, tmp_path: Path) -> None:
    def hang(_: Request) -> Any:
        return {"hang": True}

    with serve(hang) as server:
        options = real.options(server)
        keys = {name: "none" for name in options["env"] if name.endswith("_API_KEY")}
        options["env"] |= {name: f"${{{name}}}" for name in keys}
        (tmp_path / "data.jsonl").write_text('{"question": "why?", "answer": "because"}\n')
        server_file = stdio_server("docs")
        written = {
            "name": "kill",
            "dataset": {"path": "data.jsonl"},
            "agent": {"type": "acp", **options},
            "conditions": {"a": {"mcp_servers": ["docs"], "workspace": "base", "tools": ["read"]}},
            "mcp_servers": {
                "docs": {"command": server_file.command, "args": list(server_file.args), "env": dict(server_file.env)}
            },
            "scorers": ["contains"],
        }
        (tmp_path / "base").mkdir()
        (tmp_path / "experiment.yaml").write_text(json.dumps(written))
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--quiet"]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, **keys, "TMPDIR": str(temporary)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert wait_for(lambda: server.requests or process.poll() is not None), "the model is asked"
        assert process.poll() is None, process.communicate()[1]
        pids = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        assert len(pids) >= 3, "a launcher, the agent and its server"
        assert wait_for(lambda: not any(map(alive, pids)), seconds=20)
        assert wait_for(lambda: not list(temporary.glob("karat-acp-*")), seconds=5), sorted(temporary.rglob("*"))[:40]
