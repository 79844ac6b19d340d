"""`karat run --rehearse`: an experiment with scripted models, without a key."""

from __future__ import annotations

import json
import shutil
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest

from karat.cli.output import typed

if find_spec("pydantic_ai") is None:  # importing it takes a second, which all processes would pay
    pytest.skip("the extra 'chat' brings pydantic-ai", allow_module_level=True)

FILE = """
    name: lamps
    dataset: {path: questions.jsonl, id_key: id}
    agent: {type: chat, model: "openai:gpt-4.1", temperature: 0}
    judge: {model: "anthropic:claude-opus-5", temperature: null, repeats: 2}
    mcp_servers:
      shelf: {type: stdio, command: python, args: [-m, karat.testing.mcp_server], scope: run}
    conditions:
      alone: {system_prompt: Answer from your own knowledge.}
      with-shelf: {system_prompt: Use the shelf., mcp_servers: [shelf], require_mcp_tool_use: true}
      another: {agent: {model: "mistral:some-large-model"}}
    execution: {num_repetitions: 1, retry: {max_attempts: 2, initial_backoff_seconds: 0}, budget: {usd: 1}}
"""


@pytest.fixture
def experiment(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two questions to a model with and without a search, judged by another; nobody has a key."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    rows = [
        {"id": "lamps", "question": "What is a lamp lit with?", "answer": "With a match."},
        {"id": "boats", "question": "How is a boat steered?", "answer": "With a rudder."},
    ]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    path = here / "experiment.yaml"
    path.write_text(textwrap.dedent(FILE), encoding="utf-8")
    return path


def the_run(here: Path) -> Path:
    (found,) = (here / "results" / "rehearsed").iterdir()
    return found


def journal(run: Path, event: str) -> list[dict]:
    lines = (run / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    return [line for line in map(json.loads, lines) if line["event"] == event]


@pytest.mark.slow
def test_an_experiment_is_rehearsed_without_a_key_and_says_so_everywhere(karat, experiment, here):
    done = karat("run", "--rehearse", experiment.name, "--log", "asked.jsonl")
    assert done.code == 0, done.err
    assert done.err.startswith("REHEARSAL: ")
    assert done.err.endswith(f"; for a real run: {typed('run', experiment.name)}\n")
    assert "a rehearsal: scripts played the models, and no number means anything" in done.out
    assert "lamps (rehearsed)" in done.out
    run = the_run(here)
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert info["rehearsed"] is True
    assert info["experiment"]["agent.base_url"]["source"] == "flag"
    assert info["experiment"]["agent.temperature"] == {"value": 0.0, "source": "file"}
    assert info["experiment"]["judge.base_url"]["value"].startswith("http://127.0.0.1:")
    answers = {(one["sample"], one["condition"]): one["replies"][0] for one in journal(run, "answer")}
    assert len(answers) == 6
    assert answers["lamps", "alone"]["text"].startswith("This is a rehearsal")
    assert "A lamp is lit with a match." in answers["lamps", "with-shelf"]["text"]
    (call,) = answers["boats", "with-shelf"]["tool_calls"]
    assert (call["tool"], call["input"]) == ("search", {"query": "How is a boat steered?"})
    scores = journal(run, "score")
    assert len(scores) == 6 * 2
    assert all(1 <= value <= 5 for score in scores for value in score["values"].values())
    asked = [json.loads(line) for line in (here / "asked.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {one["model"] for one in asked} == {"gpt-4.1", "mistral/some-large-model", "claude-opus-5"}


@pytest.mark.slow
def test_the_same_rehearsal_gives_the_same_scores(karat, experiment, here):
    found = []
    for _ in range(2):
        assert karat("run", "--rehearse", experiment.name, "--limit", "1", "--results", "twice").code == 0
    for run in (here / "twice").iterdir():
        rows = [(one["trial"], one.get("repeat", 0), one["values"]) for one in journal(run, "score")]
        found.append(sorted(rows, key=str))
    assert len(found) == 2
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.needs_package("karat_coding")
def test_claude_code_is_rehearsed_too(karat, experiment, here):
    pytest.importorskip("claude_agent_sdk", reason="the extra 'claude' brings Claude Code")
    agent = ("--set=agent={type: claude, model: claude-opus-5}", "--set=conditions.another={}")
    done = karat(
        "run", "--rehearse", experiment.name, *agent, "--limit=1", "--only-condition=with-shelf", "--log=asked.jsonl"
    )
    assert done.code == 0, done.err
    (answer,) = journal(the_run(here), "answer")
    assert "A lamp is lit with a match." in answer["replies"][0]["text"]
    assert [call["tool"] for call in answer["replies"][0]["tool_calls"]] == ["search"]
    asked = [json.loads(line) for line in (here / "asked.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["api"] for one in asked] == ["messages"] * 4
    assert "a-real-key" not in (here / "asked.jsonl").read_text(encoding="utf-8")


@pytest.mark.quick(1)
def test_a_script_says_what_the_models_say(karat, experiment, here):
    (here / "script.yaml").write_text(
        textwrap.dedent("""
            rules:
              - when: {model: gpt-4.1, contains: lamp}
                say: [{status: 429, retry_after: 0}, With a match.]
              - when: {model: gpt-4.1}
                say: [{status: 400, error: not with me}]
        """),
        encoding="utf-8",
    )
    chosen = ("--only-condition", "alone")
    done = karat(
        "run", "--rehearse", experiment.name, "--script", "script.yaml", "--set=execution.max_failures=9", *chosen
    )
    assert done.code == 3
    (answer,) = journal(the_run(here), "answer")
    assert (answer["sample"], answer["replies"][0]["text"], answer["attempts"]) == ("lamps", "With a match.", 2)
    (failure,) = journal(the_run(here), "failure")
    assert failure["sample"] == "boats"
    assert "not with me" in failure["message"]


def test_a_rehearsal_and_a_run_are_never_mixed(karat, experiment, here, monkeypatch):
    assert karat("run", "--rehearse", experiment.name, "--limit", "1").code == 0
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.setenv(name, "a-real-key")
    done = karat("run", experiment.name, "--resume", the_run(here))
    assert done.code == 2
    assert "it is a rehearsal, in which scripts played the models" in done.err
    assert "no run in results" in karat("report", "latest").err


def test_a_table_without_a_place_for_warnings_is_written_with_one_beside_it(karat, experiment, here):
    assert karat("run", "--rehearse", experiment.name, "--limit", "1").code == 0
    done = karat("report", the_run(here), "--to", "csv")
    assert done.out.startswith("condition,")
    assert "warning: a rehearsal" in done.err
    told = karat("report", the_run(here), "--to", "json").json
    assert any("a rehearsal" in warning for warning in told["warnings"])
    both = karat("compare", f"{the_run(here)}:alone", ":with-shelf")
    assert "a rehearsal" in both.out + both.err


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("agent={type: command, command: [python, adder.py]}", "the agent 'command' asks its models by itself"),
        ("agent={type: http, url: 'http://127.0.0.1:1/'}", "the agent 'http' asks its models by itself"),
    ],
)
def test_an_agent_that_cannot_be_kept_from_real_models_is_refused(karat, experiment, here, setting, told):
    (here / "adder.py").write_text("", encoding="utf-8")
    done = karat("run", "--rehearse", experiment.name, "--set", setting, "--set", "conditions.another={}")
    assert done.code == 2
    assert told in done.err
    assert not (here / "results").exists()


def test_offline_agents_and_scorers_are_left_as_they_are(karat, experiment, here):
    settings = ("--set=agent={type: floor}", "--set=judge={type: overlap}", "--set=conditions.another={}")
    assert karat("run", "--rehearse", experiment.name, *settings).code == 0
    info = json.loads((the_run(here) / "run.json").read_text(encoding="utf-8"))
    assert info["rehearsed"] is True
    assert "agent.base_url" not in info["experiment"]


def test_a_bad_script_is_refused_before_anything_happens(karat, experiment, here):
    (here / "script.yaml").write_text("rules: [{say: hi, whan: {}}]\n", encoding="utf-8")
    done = karat("run", "--rehearse", experiment.name, "--script", "script.yaml")
    assert done.code == 2
    assert "rules.0.whan" in done.err
    assert not (here / "results").exists()


@pytest.mark.slow
def test_a_file_of_k_eval_is_rehearsed_unchanged(karat, here, shared_data):
    pytest.importorskip("claude_agent_sdk", reason="the extra 'claude' brings Claude Code")
    shutil.copy(shared_data / "keval" / "quickstart.yaml", here)
    (here / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n', encoding="utf-8")
    (here / "graph_server.py").write_text("from karat.testing.mcp_server import main\n\nmain([])\n", encoding="utf-8")
    done = karat("run", "--rehearse", "quickstart.yaml")
    assert done.code == 0, done.err
    scores = journal(the_run(here), "score")
    assert len(scores) == 6
    assert all(value is not None for score in scores for value in score["values"].values())
    calls = [call for answer in journal(the_run(here), "answer") for call in answer["replies"][0].get("tool_calls", [])]
    assert {call["server"] for call in calls} == {"graph"}
