"""k-eval's files load and plan unchanged."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest

from karat.config import Experiment, load
from karat.errors import BadExperiment
from karat.execution.plan import plan

ENV = {"GRAPH_HOME": "./graph", "SEARCH_API_KEY": "canary-secret-1"}
QUESTIONS = "".join(f'{{"question": "What is {n}?", "answer": "{n}"}}\n' for n in range(12))


@pytest.fixture
def files(shared_data: Path, tmp_path: Path) -> Path:
    for source in (shared_data / "keval").glob("*.yaml"):
        shutil.copy(source, tmp_path)
    (tmp_path / "questions.jsonl").write_text(QUESTIONS)
    return tmp_path


def loaded(path: Path) -> Experiment:
    # From another directory: the dataset's path is the file's, not the caller's.
    with contextlib.chdir(path.anchor):
        return load(path, env=ENV)


@pytest.mark.needs_package("karat_coding")
@pytest.mark.parametrize(("name", "conditions", "calls"), [("quickstart.yaml", 2, 72), ("full.yaml", 3, 108)])
def test_the_files_load_and_plan_unchanged(files: Path, name: str, conditions: int, calls: int) -> None:
    found = loaded(files / name)
    (relative,) = (warning for warning in found.warnings if "SSE is no longer part" not in warning)
    assert relative.startswith("judge.model (line ")
    assert "is of the agent's family of models (claude)" in relative
    assert len(found.conditions) == conditions
    trials = list(plan(found, found.load_dataset()))
    assert len(trials) == calls == len({trial.id for trial in trials})
    assert found.agent.type == "claude"
    assert found.agent.options["model"] == "claude-sonnet-4-5"
    assert found.scorers[0].name == "judge"
    assert found.scorers[0].options["model"] == "vertex_ai/claude-opus-4-5"


@pytest.mark.needs_package("karat_coding")
def test_every_key_of_the_full_file_has_its_meaning(files: Path) -> None:
    found = loaded(files / "full.yaml")
    graph, rag, feed = found.servers
    assert (graph.type, graph.command, graph.args) == ("stdio", "python", ("-m", "graph_server"))
    assert graph.env == {"GRAPH_HOME": "./graph"}
    assert (rag.type, rag.headers) == ("http", {"Authorization": "Bearer canary-secret-1"})
    assert (feed.type, feed.url) == ("sse", "http://localhost:8081/sse")
    assert found.execution.retry.backoff_multiplier == 2.0
    assert found.execution.retry.max_backoff_seconds == 60.0
    last = found.conditions[-1]
    assert (last.name, last.position) == ("with_graph_and_search", 2)
    assert [server.name for server in last.mcp_servers] == ["graph", "rag", "feed"]
    assert last.gate.require_mcp_tool_use
    assert last.gate.require_mcp_tool_success


@pytest.mark.needs_package("karat_coding")
def test_the_missing_retry_block_is_the_default(files: Path) -> None:
    assert loaded(files / "quickstart.yaml").execution.retry.max_attempts == 3


def without_list(warning: str) -> str:
    """Without the known keys, which are listed only where they are few."""
    return re.sub(r" \(known: [^)]*\)", "", warning)


@pytest.mark.needs_package("karat_coding")
def test_unknown_keys_of_a_keval_file_are_warnings(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(QUESTIONS)
    text = """\
dataset: {path: questions.jsonl, shuffle: true}
agent: {type: claude_code_sdk, model: m, max_turn: 3}
judge: {model: m/n, timeout: 5}
output: results
mcp_servers: {docs: {command: python, headers: {}}}
conditions: {a: {sytem_prompt: x, mcp_servers: [docs]}}
execution: {retry: {jitter: true}}
"""
    path = tmp_path / "e.yaml"
    path.write_text(text)
    said = [without_list(warning) for warning in loaded(path).warnings]
    assert said == [
        "dataset.shuffle (line 1, column 34): no such key; it is ignored",
        "agent.max_turn (line 2, column 42): no such key (did you mean 'max_turns'?); it is ignored",
        "judge.timeout (line 3, column 21): no such key; it is ignored",
        (
            "mcp_servers.docs.headers (line 5, column 39): a server of type stdio takes no `headers`; it is a program; "
            "write `env`; it is ignored"
        ),
        "conditions.a.sytem_prompt (line 6, column 18): no such key (did you mean 'system_prompt'?); it is ignored",
        "execution.retry.jitter (line 7, column 21): no such key; it is ignored",
        "output (line 4, column 1): no such key; it is ignored",
    ]
    path.write_text(text.replace("claude_code_sdk", "claude"))
    with pytest.raises(BadExperiment, match="7 faults"):
        loaded(path)


EARLIER = """\
name: "terms"
version: "1"
dataset: {path: "./questions.jsonl", question_key: "question", answer_key: "answer"}
agent: {type: "claude_code_sdk", model: "claude-sonnet-4-5"}
judge: {model: "vertex_ai/claude-opus-4-5", temperature: 0.5}
mcp_servers:
  terms: {type: "http", url: "http://localhost:9090", headers: {X-API-Key: "${SEARCH_API_KEY}"}}
conditions:
  with_terms:
    mcp_servers: [terms]
    system_prompt_file: "prompt.md"
    require_mcp_tool_use: true
  files_only:
    mcp_servers: []
    allowed_tools: [Read, Grep]
    system_prompt: |
      Read the files.
execution:
  num_samples: 2
  max_concurrent: 1
  retry: {max_attempts: 1, initial_backoff_seconds: 20, backoff_multiplier: 2}
"""


@pytest.mark.needs_package("karat_coding")
def test_files_of_earlier_versions_are_read_with_their_meaning(tmp_path: Path) -> None:
    (tmp_path / "questions.jsonl").write_text(QUESTIONS)
    (tmp_path / "prompt.md").write_text("Use the server.")
    (tmp_path / "e.yaml").write_text(EARLIER)
    found = loaded(tmp_path / "e.yaml")
    assert found.execution.num_repetitions == 2
    assert [condition.system_prompt for condition in found.conditions] == ["Use the server.", "Read the files.\n"]
    said = [without_list(warning) for warning in found.warnings]
    assert said[1] == "conditions.files_only.allowed_tools (line 15, column 5): no such key; it is ignored"
    assert said[0].startswith("execution.num_samples (line 19, column 3): is read as `num_repetitions`")
    assert said[2].startswith("judge.temperature (line 5, column 45): above 0 the judge scores one answer differently")
    assert len(list(plan(found, found.load_dataset()))) == 12 * 2 * 2
