"""How each tool does each job: command lines, and the files they need.

A tool returns None for a job that it cannot do. `out` is an empty folder in which the job runs and leaves its log.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from _peers_setup import HERE, PLACE

__all__ = ["PROGRAMS", "Bare", "Tool", "tools"]

PROGRAMS = HERE / "peer_programs"
PROMPT = "Use the search tool."
AT_ONCE = 10
Command = Sequence[str]


class Tool(Protocol):
    """A tool that evaluates agents."""

    name: str

    def answers(self, trials: int, out: Path) -> Command | None:
        """A run of an agent that answers at once, scored by equality, with the tool's usual log."""

    def sleeps(self, trials: int, out: Path) -> Command | None:
        """The same with an agent that takes 100 ms, 100 at a time."""

    def opens(self, what: str, out: Path, trials: int) -> Command | None:
        """Reads `header`, one `sample` or all `scores` of a run that `answers` left in `out`."""

    def starts(self) -> Command:
        """Shows its help; for a library, imports it."""

    def chats(self, trials: int, urls: tuple[str, str], out: Path) -> Command | None:
        """Trials in which a model calls a tool of an MCP server. `urls`: of the model and of the server."""

    def calls(self, trials: int, url: str, out: Path) -> Command | None:
        """Trials of one call each to an MCP server's tool."""


def program(environment: str, name: str, *arguments: object) -> Command:
    """A Python program of `peer_programs/` in one of the environments."""
    return [str(PLACE / environment / "bin" / "python"), str(PROGRAMS / name), *map(str, arguments)]


def command(environment: str, name: str, *arguments: object) -> Command:
    """A command of one of the environments."""
    return [str(PLACE / environment / "bin" / name), *map(str, arguments)]


class Karat:
    name = "karat"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs
        shutil.copy(PROGRAMS / "karat_agent.py", inputs)

    def _run(
        self, environment: str, name: str, rows: list[dict[str, object]], out: Path, **settings: object
    ) -> Command:
        path = self._inputs / f"{name}-{len(rows)}"
        _write_lines(path.with_suffix(".jsonl"), rows)
        execution = {"num_repetitions": 1, "max_concurrent": AT_ONCE, **settings.pop("execution", {})}  # type: ignore[dict-item]
        experiment = {
            "name": "instant", "dataset": {"path": f"{path.name}.jsonl", "id_key": "id"},
            "conditions": {"plain": {}}, "execution": execution, "scorers": [], **settings,
        }  # fmt: skip
        path.with_suffix(".yaml").write_text(json.dumps(experiment), encoding="utf-8")  # JSON is YAML
        return command(environment, "karat", "run", f"{path}.yaml", "--results", out)

    def answers(self, trials: int, out: Path) -> Command:
        agent = {"type": "python", "target": "karat_agent:instant"}
        return self._run("karat", "instant", _questions(trials), out, agent=agent, scorers=["equals"])

    def sleeps(self, trials: int, out: Path) -> Command:
        agent, execution = {"type": "python", "target": "karat_agent:slow"}, {"max_concurrent": 100}
        rows = _questions(trials)
        return self._run("karat", "slow", rows, out, agent=agent, scorers=["equals"], execution=execution)

    def opens(self, what: str, out: Path, trials: int) -> Command:
        (run,) = out.iterdir()
        return program("karat", "karat_open.py", what, run, trials)

    def starts(self) -> Command:
        return command("karat", "karat", "--help")

    def chats(self, trials: int, urls: tuple[str, str], out: Path) -> Command:
        rows: list[dict[str, object]] = [
            {"id": str(number), "question": f"How is lamp {number} lit?", "answer": "-"} for number in range(trials)
        ]
        agent = {"type": "chat", "model": "openai:gpt-4.1", "base_url": urls[0]}
        return self._run("karat-chat", "chat", rows, out, agent=agent, **_with_tools(urls[1], PROMPT))

    def calls(self, trials: int, url: str, out: Path) -> Command:
        rows: list[dict[str, object]] = [
            {"id": str(number), "question": f"lamp {number}", "arguments": {"query": "lamp"}, "answer": "-"}
            for number in range(trials)
        ]
        agent = {"type": "mcp", "tool": "search"}
        return self._run("karat-chat", "mcp", rows, out, agent=agent, **_with_tools(url))


def _with_tools(url: str, prompt: str | None = None) -> dict[str, object]:
    condition: dict[str, object] = {"mcp_servers": ["docs"]}
    if prompt is not None:
        condition["system_prompt"] = prompt
    server = {"type": "http", "url": url, "scope": "run"}
    return {"mcp_servers": {"docs": server}, "conditions": {"with-docs": condition}}


class Inspect:
    name = "inspect-ai"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs

    def _eval(self, environment: str, task: str, out: Path, *arguments: object) -> Command:
        path = f"{PROGRAMS / 'inspect_tasks.py'}@{task}"
        return command(environment, "inspect", "eval", path, "--display", "none", "--log-dir", out, *arguments)

    def _answers(self, trials: int, out: Path, *arguments: object) -> Command:
        path = self._inputs / f"inspect-{trials}.jsonl"
        rows = _questions(trials)
        _write_lines(path, [{"id": row["id"], "input": row["question"], "target": row["answer"]} for row in rows])
        return self._eval("inspect-ai", "instant", out, "-T", f"dataset={path}", "--model", "none", *arguments)

    def answers(self, trials: int, out: Path) -> Command:
        return self._answers(trials, out)

    def sleeps(self, trials: int, out: Path) -> Command:
        return self._answers(trials, out, "-T", "seconds=0.1", "--max-samples", 100)

    def opens(self, what: str, out: Path, trials: int) -> Command:
        (log,) = out.glob("*.eval")
        return program("inspect-ai", "inspect_open.py", what, log, trials)

    def starts(self) -> Command:
        return command("inspect-ai", "inspect", "--help")

    def chats(self, trials: int, urls: tuple[str, str], out: Path) -> Command:
        given = ("-T", f"tools={urls[1]}", "-T", f"trials={trials}", "--max-connections", AT_ONCE)
        model = ("--model", "openai/gpt-4.1", "--model-base-url", urls[0], "-M", "responses_api=false")
        return self._eval("inspect-ai-chat", "chat", out, *given, *model)

    def calls(self, trials: int, url: str, out: Path) -> Command:
        given = ("-T", f"tools={url}", "-T", f"trials={trials}", "--max-samples", AT_ONCE, "--model", "none")
        return self._eval("inspect-ai-chat", "mcp", out, *given)


class PydanticEvals:
    name = "pydantic-evals"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs

    def _answers(self, what: str, trials: int, *arguments: object) -> Command:
        path = self._inputs / f"pydantic-{trials}.jsonl"
        _write_lines(path, _questions(trials))
        return program("pydantic-evals", "pydantic_evals_run.py", what, path, *arguments)

    def answers(self, trials: int, out: Path) -> Command:
        return self._answers("instant", trials, 0, AT_ONCE)

    def sleeps(self, trials: int, out: Path) -> Command:
        return self._answers("instant", trials, 0.1, 100)

    def saves(self, trials: int, out: Path) -> Command:
        """Writes its report as JSON with its own adapter, for `opens`."""
        return self._answers("save", trials, out / "report.json")

    def opens(self, what: str, out: Path, trials: int) -> Command | None:
        path = out / "report.json"
        return program("pydantic-evals", "pydantic_evals_run.py", "open", path, trials) if what == "scores" else None

    def starts(self) -> Command:
        return command("pydantic-evals", "python", "-c", "import pydantic_evals")

    def chats(self, trials: int, urls: tuple[str, str], out: Path) -> Command:
        return program("pydantic-evals-chat", "pydantic_evals_run.py", "chat", trials, urls[1], urls[0])

    def calls(self, trials: int, url: str, out: Path) -> Command:
        return program("pydantic-evals-chat", "pydantic_evals_run.py", "mcp", trials, url)


class DeepEval:
    name = "deepeval"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs

    def _answers(self, trials: int, out: Path, *arguments: object) -> Command:
        path = self._inputs / f"deepeval-{trials}.jsonl"
        _write_lines(path, _questions(trials))
        return program("deepeval", "deepeval_run.py", path, *arguments, out / "results")

    def answers(self, trials: int, out: Path) -> Command:
        return self._answers(trials, out, 0, AT_ONCE)

    def sleeps(self, trials: int, out: Path) -> Command:
        return self._answers(trials, out, 0.1, 100)

    def opens(self, what: str, out: Path, trials: int) -> Command | None:
        (run,) = (out / "results").glob("*.json")
        return program("deepeval", "deepeval_open.py", run, trials) if what == "scores" else None

    def starts(self) -> Command:
        return command("deepeval", "deepeval", "--help")

    def chats(self, *_: object) -> None:
        """It only scores answers; getting them is up to the user."""

    def calls(self, *_: object) -> None:
        """Like `chats`."""


TASK = """task: instant
dataset_path: json
dataset_kwargs: {{data_files: {{test: {path}}}}}
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs: {{until: ["\\n"]}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
"""


class LmEval:
    name = "lm-eval"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs

    def answers(self, trials: int, out: Path) -> Command:
        folder = self._inputs / f"lm-eval-{trials}"
        folder.mkdir(exist_ok=True)
        _write_lines(folder / "questions.jsonl", _questions(trials))
        (folder / "instant.yaml").write_text(TASK.format(path=folder / "questions.jsonl"), encoding="utf-8")
        return program("lm-eval", "lm_eval_run.py", folder, out)

    def sleeps(self, *_: object) -> None:
        """Only requests of its own model clients run concurrently, not an agent."""

    def opens(self, what: str, out: Path, trials: int) -> Command | None:
        names = {"header": "results_*.json", "scores": "samples_*.jsonl"}
        if what not in names:
            return None
        (path,) = out.rglob(names[what])
        return program("lm-eval", "lm_eval_open.py", what, path, trials)

    def starts(self) -> Command:
        return command("lm-eval", "lm-eval", "--help")

    def chats(self, *_: object) -> None:
        """It has no tools."""

    def calls(self, *_: object) -> None:
        """It has no tools."""


class Promptfoo:
    name = "promptfoo"

    def __init__(self, inputs: Path) -> None:
        self._inputs = inputs
        self._provider = shutil.copy(PROGRAMS / "promptfoo_provider.mjs", inputs)

    def _promptfoo(self, *arguments: object) -> Command:
        return [str(PLACE / "promptfoo/node_modules/.bin/promptfoo"), *map(str, arguments)]

    def _eval(self, name: str, provider: object, rows: list[dict[str, object]], at_once: int) -> Command:
        path = self._inputs / f"promptfoo-{name}-{len(rows)}"
        _write_lines(path.with_suffix(".jsonl"), rows)
        config = {"prompts": ["{{question}}"], "providers": [provider], "tests": f"file://{path}.jsonl"}
        path.with_suffix(".json").write_text(json.dumps(config), encoding="utf-8")
        options = ("--no-cache", "--no-table", "--no-progress-bar", "--no-share", "--max-concurrency", at_once)
        return self._promptfoo("eval", "-c", f"{path}.json", *options)

    def _answers(self, name: str, trials: int, milliseconds: int, at_once: int) -> Command:
        provider = {"id": f"file://{self._provider}", "config": {"milliseconds": milliseconds}}
        rows = [_test(str(row["question"]), {"type": "equals", "value": row["answer"]}) for row in _questions(trials)]
        return self._eval(name, provider, rows, at_once)

    def answers(self, trials: int, out: Path) -> Command:
        return self._answers("instant", trials, 0, AT_ONCE)

    def sleeps(self, trials: int, out: Path) -> Command:
        return self._answers("slow", trials, 100, 100)

    def opens(self, what: str, out: Path, trials: int) -> Command | None:
        if what == "header":
            return self._promptfoo("list", "evals", "-n", 1)
        return self._promptfoo("export", "eval", "latest", "-o", out / "exported.json") if what == "scores" else None

    def starts(self) -> Command:
        return self._promptfoo("--help")

    def chats(self, *_: object) -> None:
        """Its OpenAI provider returns the tool's result; it does not ask the model again."""

    def calls(self, trials: int, url: str, out: Path) -> Command:
        provider = {"id": "mcp", "config": {"enabled": True, "server": {"name": "docs", "url": url}}}
        asked = [json.dumps({"tool": "search", "args": {"query": f"lamp {number}"}}) for number in range(trials)]
        return self._eval(
            "mcp", provider, [_test(text, {"type": "contains", "value": "lamp"}) for text in asked], AT_ONCE
        )


class Bare:
    """The SDKs alone, to measure karat's own share of a chat trial and of a tool call."""

    name = "the SDKs alone"

    def chats(self, trials: int, urls: tuple[str, str], _: Path) -> Command:
        return program("karat-chat", "bare.py", "chat", "--model", urls[0], "--tools", urls[1], "--trials", trials)

    def calls(self, trials: int, url: str, _: Path) -> Command:
        return program("karat-chat", "bare.py", "mcp", "--tools", url, "--trials", trials)


def tools(inputs: Path) -> list[Tool]:
    """All tools, karat first. `inputs`: a folder for their datasets and configurations."""
    return [make(inputs) for make in (Karat, Inspect, PydanticEvals, DeepEval, LmEval, Promptfoo)]


def _questions(count: int) -> list[dict[str, object]]:
    return [{"id": str(number), "question": f"Say {number}", "answer": str(number)} for number in range(count)]


def _test(question: str, expected: dict[str, object]) -> dict[str, object]:
    return {"vars": {"question": question}, "assert": [expected]}


def _write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
