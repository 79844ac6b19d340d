"""What karat adds to the cost of model calls: the same calls by the `chat` agent and by pydantic-ai alone.

    python benchmarks/chat.py

Every trial asks a scripted model on this machine twice, with one MCP tool call in between, 50
trials at a time. CPU seconds are those of the asking process; the servers of model and tool are
separate processes. `requests` is the minimum with pydantic-ai: its bare model requests, and a tool
call by the MCP SDK. `Agent` is its Agent with its own MCP toolset. The rounds alternate, and the
fastest of each counts, because the machine may be busy. Targets: karat, including its journal,
needs at most 20 % more than the bare requests, and its memory does not grow with the trials.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import _results as results  # beside this file
from limits import Limits

AT_ONCE = 50
MODEL = "gpt-4.1"
PROMPT = "Use the search tool."
TOOL = {"tool_calls": [{"name": "search", "arguments": {"query": "lamp"}}]}
SCRIPT = {"rules": [{"say": [TOOL, "A lamp is lit with a match."]}]}
SERVER = ["-m", "karat.testing.mcp_server"]
EXPERIMENT = """name: bench
dataset: {{path: questions.jsonl, id_key: id}}
agent: {{type: chat, model: "openai:{model}", base_url: "{url}"}}
mcp_servers: {{docs: {{command: python, args: {server}, scope: run}}}}
conditions: {{with-docs: {{system_prompt: {prompt}, mcp_servers: [docs]}}}}
execution: {{num_repetitions: 1, max_concurrent: {at_once}}}
scorers: []
"""


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ask", choices=tuple(ASKED), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ask:
        print(json.dumps(asyncio.run(measured(ASKED[options.ask], options.url, options.trials))))
        return
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in ASKED}
    with model_server() as url:
        for _ in range(options.rounds):
            for name in ASKED:
                try:
                    rounds[name].append(one_round(name, url, options.trials))
                except subprocess.CalledProcessError as error:
                    if name != "Agent":  # if a peer fails here, only its own figure is missing
                        raise
                    print(f"{name} failed: {(error.stderr.strip() or '-').splitlines()[-1]}", flush=True)
    report(rounds, options.trials, options.json)


def report(rounds: dict[str, list[dict[str, float]]], trials: int, file: Path | None) -> None:
    """Prints the table and the verdicts."""
    limits = Limits()
    least = {name: min(runs, key=lambda run: run["cpu"]) for name, runs in rounds.items() if runs}
    print(f"{trials:,} trials, {AT_ONCE} at a time, one tool call each")
    print(f"{'':14} {'CPU ms/trial':>12} {'trials/s':>9} {'MB then':>8} {'MB end':>8}")
    for name, run in least.items():
        limits.note(f"{name}: processor time a trial", 1000 * run["cpu"] / trials, "ms")
        row = (
            f"{1000 * run['cpu'] / trials:12.2f} {trials / run['seconds']:9.1f} {run['middle']:8.1f} {run['end']:8.1f}"
        )
        print(f"{name:14} {row}")
    ratio = {name: least["karat"]["cpu"] / run["cpu"] for name, run in least.items()}
    verdict = limits.check("karat's CPU time against the bare requests", ratio["requests"], "≤", 1.2, "×")
    print(f"karat takes {ratio['requests']:.2f} × the CPU time of the bare requests ({verdict})")
    if "Agent" in ratio:
        print(f"and {ratio['Agent']:.2f} × that of Agent")
        limits.note("and against Agent", ratio["Agent"], "×")
    grown = least["karat"]["end"] - least["karat"]["middle"]
    verdict = limits.check("growth of its memory in the second half", grown, "≤", 5, "MB")
    print(f"its memory grew by {grown:.1f} MB in the second half ({verdict})")
    about = f"{trials:,} trials of two requests and one tool call, {AT_ONCE} at a time; the least of each way's rounds."
    results.write(file, limits.section("Asking a model", about))
    limits.exit()


@contextmanager
def model_server() -> Iterator[str]:
    """The address of a scripted model, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps(SCRIPT))
        argv = [sys.executable, "-m", "karat.testing.models", "--script", str(script)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield json.loads(process.stdout.readline())["openai_url"]
            finally:
                process.terminate()


def one_round(name: str, url: str, trials: int) -> dict[str, float]:
    """Runs all trials in a process of its own."""
    argv = [sys.executable, __file__, "--ask", name, "--url", url, "--trials", str(trials)]
    environment = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "ignore"}
    process = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(process.stdout)
    return figures


Tick = Callable[[], None]


async def measured(ask: Callable[[str, int, Tick], Awaitable[None]], url: str, trials: int) -> dict[str, float]:
    """CPU and wall seconds, and resident megabytes halfway and at the end, after a few warm-up trials."""
    await ask(url, AT_ONCE, lambda: None)
    count, memory = 0, {}

    def tick() -> None:
        nonlocal count
        count += 1
        if count in (trials // 2, trials):
            memory[count] = resident()

    cpu, clock = time.process_time(), time.perf_counter()
    await ask(url, trials, tick)
    cpu, seconds = time.process_time() - cpu, time.perf_counter() - clock
    assert count == trials, f"{count} of {trials} trials were answered"
    return {"cpu": cpu, "seconds": seconds, "middle": memory[trials // 2], "end": memory[trials]}


def resident() -> float:
    """Resident megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def by_karat(url: str, trials: int, tick: Tick) -> None:
    """A whole run, including its journal."""
    import karat
    from karat.execution import RunStatus, run_experiment
    from karat.records import Answer

    def listener(event: Any) -> None:
        if isinstance(event, Answer):
            assert event.replies[0].tool_calls[0].error is None
            tick()

    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as place:
        folder = Path(place)
        rows = (
            {"id": str(number), "question": f"How is lamp {number} lit?", "answer": "-"} for number in range(trials)
        )
        (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        text = EXPERIMENT.format(model=MODEL, url=url, server=SERVER, prompt=PROMPT, at_once=AT_ONCE)
        (folder / "experiment.yaml").write_text(text)
        experiment = karat.load(folder / "experiment.yaml")
        await run_experiment(experiment, results=folder / "results", status=RunStatus(listener))


async def by_agent(url: str, trials: int, tick: Tick) -> None:
    """pydantic-ai's Agent, with its own MCP toolset."""
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    tools: Any = MCPToolset(StdioTransport(sys.executable, SERVER), init_timeout=60)
    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url))
    agent = Agent(model, system_prompt=PROMPT, toolsets=[tools])

    async def one(number: int) -> None:
        result = await agent.run(f"How is lamp {number} lit?")
        assert "match" in result.output
        tick()

    async with agent:
        await crowd(one, trials)


async def by_requests(url: str, trials: int, tick: Tick) -> None:
    """Two model requests and a tool call, with nothing around them."""
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from pydantic_ai.messages import ModelRequest, SystemPromptPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.tools import ToolDefinition

    model = OpenAIChatModel(MODEL, provider=OpenAIProvider(base_url=url))
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=SERVER))) as client:
        listed = (await client.list_tools()).tools
        offered = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema, strict=False
            )
            for tool in listed
        ]
        parameters = ModelRequestParameters(function_tools=offered)

        async def one(number: int) -> None:
            asked: list[Any] = [SystemPromptPart(PROMPT), UserPromptPart(f"How is lamp {number} lit?")]
            messages: list[Any] = [ModelRequest(parts=asked)]
            wanted = await model.request(messages, None, parameters)
            call = wanted.tool_calls[0]
            result: Any = await client.call_tool(call.tool_name, call.args_as_dict())
            content = result.content[0].text
            returned = ToolReturnPart(tool_name=call.tool_name, content=content, tool_call_id=call.tool_call_id)
            messages += [wanted, ModelRequest(parts=[returned])]
            assert "match" in ((await model.request(messages, None, parameters)).text or "")
            tick()

        await crowd(one, trials)


async def crowd(one: Callable[[int], Awaitable[None]], trials: int) -> None:
    """Runs all trials, with a limit on how many at a time."""
    numbers = iter(range(trials))

    async def work() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))


ASKED = {"requests": by_requests, "Agent": by_agent, "karat": by_karat}


if __name__ == "__main__":
    main()
