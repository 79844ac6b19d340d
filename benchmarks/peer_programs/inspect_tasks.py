"""Tasks of inspect-ai: `inspect eval inspect_tasks.py@instant -T dataset=FILE`."""

import asyncio

from inspect_ai import Task, task
from inspect_ai.dataset import Sample, json_dataset
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver, system_message, use_tools
from inspect_ai.tool import ToolDef, mcp_connection, mcp_server_http


@solver
def answer(seconds: float) -> Solver:
    async def solve(state: TaskState, _: Generate) -> TaskState:
        if seconds:
            await asyncio.sleep(seconds)
        state.output = ModelOutput.from_content("agent", state.input_text.removeprefix("Say "))
        state.completed = True
        return state

    return solve


@task
def instant(dataset: str, seconds: float = 0.0) -> Task:
    return Task(dataset=json_dataset(dataset), solver=answer(seconds), scorer=exact())


@solver
def ask_with_tools(tools: str) -> Solver:
    server = mcp_server_http(name="docs", url=tools)

    async def solve(state: TaskState, more: Generate) -> TaskState:
        async with mcp_connection(server):  # one session a sample, as its documentation recommends
            state = await use_tools(server)(state, more)
            state = await generate()(state, more)
        assert "match" in state.output.completion
        return state

    return solve


@task
def chat(tools: str, trials: int) -> Task:
    samples = [Sample(input=f"How is lamp {number} lit?") for number in range(trials)]
    return Task(dataset=samples, solver=[system_message("Use the search tool."), ask_with_tools(tools)])


@solver
def call_tool(tools: str) -> Solver:
    server = mcp_server_http(name="docs", url=tools)

    async def solve(state: TaskState, _: Generate) -> TaskState:
        async with mcp_connection(server):
            by_name = {ToolDef(tool).name: tool for tool in await server.tools()}
            result = await by_name["search"](query=state.input_text)
        state.output = ModelOutput.from_content("agent", str(result))
        state.completed = True
        return state

    return solve


@task
def mcp(tools: str, trials: int) -> Task:
    return Task(dataset=[Sample(input=f"lamp {number}") for number in range(trials)], solver=call_tool(tools))
