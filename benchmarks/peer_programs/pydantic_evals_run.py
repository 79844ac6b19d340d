"""Evaluates with pydantic-evals.

pydantic_evals_run.py instant DATASET SECONDS CONCURRENT
pydantic_evals_run.py save DATASET FILE                    the same, with its report as JSON at the end
pydantic_evals_run.py open FILE COUNT
pydantic_evals_run.py chat|mcp TRIALS TOOLS_URL [MODEL_URL]
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected


def cases_of(path: str) -> list[Case[str, str, Any]]:
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [Case(name=row["id"], inputs=row["question"], expected_output=row["answer"]) for row in rows]


def instant(path: str, seconds: str = "0", concurrent: str = "10") -> Any:
    wait = float(seconds)

    async def answer(question: str) -> str:
        if wait:
            await asyncio.sleep(wait)
        return question.removeprefix("Say ")

    dataset = Dataset(name="instant", cases=cases_of(path), evaluators=[EqualsExpected()])
    report = dataset.evaluate_sync(answer, max_concurrency=int(concurrent), progress=False)
    assert len(report.cases) == len(dataset.cases)
    assert all(case.assertions["EqualsExpected"].value for case in report.cases)
    return report


def save(path: str, out: str) -> None:
    from pydantic_evals.reporting import EvaluationReportAdapter

    Path(out).write_bytes(EvaluationReportAdapter.dump_json(instant(path)))


def open_report(path: str, count: str) -> None:
    from pydantic_evals.reporting import EvaluationReportAdapter

    report = EvaluationReportAdapter.validate_json(Path(path).read_bytes())
    assert len(report.cases) == int(count)


async def with_server(what: str, trials: str, tools: str, model: str = "") -> None:
    from pydantic_ai.mcp import MCPToolset

    toolset: Any = MCPToolset(tools, init_timeout=60)
    questions = [f"How is lamp {number} lit?" for number in range(int(trials))]
    dataset = Dataset(name=what, cases=[Case(name=question, inputs=question) for question in questions])
    if what == "mcp":

        async def answer(_: str) -> str:
            return str(await toolset.direct_call_tool("search", {"query": "lamp"}))

        async with toolset:
            report = await dataset.evaluate(answer, max_concurrency=10, progress=False)
    else:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        client = OpenAIChatModel("gpt-4.1", provider=OpenAIProvider(base_url=model))
        agent = Agent(client, system_prompt="Use the search tool.", toolsets=[toolset])

        async def answer(question: str) -> str:
            return (await agent.run(question)).output

        async with agent:
            report = await dataset.evaluate(answer, max_concurrency=10, progress=False)
        assert all("match" in case.output for case in report.cases)
    assert len(report.cases) == len(questions)


def main() -> None:
    what, *rest = sys.argv[1:]
    if what in {"chat", "mcp"}:
        asyncio.run(with_server(what, *rest))
    else:
        {"instant": instant, "save": save, "open": open_report}[what](*rest)


if __name__ == "__main__":
    main()
