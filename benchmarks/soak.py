"""Whether a long run leaks: memory, descriptors, sockets, threads, asyncio tasks and child processes of karat.

    python benchmarks/soak.py                    # 30 minutes
    python benchmarks/soak.py --minutes 2        # to try it

Two runs work side by side, each in a process of its own with 200 concurrent trials. In `chat`, a model on this machine
calls a tool of an MCP server and answers, `contains` scores the answer, and the model judges it. In `command`, each
trial is a program that sleeps. The model answers slowly, so the machine is not saturated. The clock starts when 200
trials are answered; at the end, a SIGTERM ends the run as Ctrl-C would. The first tenth of the samples is warm-up. For
the rest, the last quarter is compared with the first: memory by its median, counts by their maximum; the slope is by
least squares over the second half. Flat means: memory grows by at most 5 % or 10 MB, counts by at most 5 % or 2. The
connections of `chat` come and go as trials ask in waves, so they have a bound instead: one to the model and one to the
MCP server for each trial at the agent, and one to the model for each trial being judged. After the run, no socket,
thread, task or process is left.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import _results as results  # beside this file
import numpy as np
from limits import Limits

AT_ONCE = 200
QUESTIONS, REPETITIONS = 1_000, 10_000  # more trials than any soak asks
MODEL_SECONDS = 6.0  # before each of the three responses of a `chat` trial: tool call, answer, judge's scores
PROGRAM_SECONDS = 20
WARM_UP = 0.1  # of the samples
MOST_GROWTH = {"memory": (10.0, 0.05), "counts": (2, 0.05)}  # MB or count, and a share; the greater is allowed
BOUNDS = {"chat": {"descriptors": 3 * AT_ONCE + 20, "sockets": 3 * AT_ONCE + 10, "tasks": 6 * AT_ONCE + 10}}
QUANTITIES = ("memory, MB", "descriptors", "sockets", "threads", "tasks", "child processes")
COLUMNS = ("", "first quarter", "last quarter", "slope per hour", "least", "most", "before the run", "after it")

Sample = dict[str, float]

SCRIPT = {
    "rules": [
        {
            "when": {"tool": "search"},
            "say": [
                {"tool_calls": [{"name": "search", "arguments": {"query": "lamp"}}], "delay": MODEL_SECONDS},
                {"text": "A lamp is lit with a match.", "delay": MODEL_SECONDS},
            ],
        },
        {"say": {"improvise": True, "delay": MODEL_SECONDS}},
    ]
}
EXPERIMENTS = {
    "chat": """name: soak
dataset: {{path: questions.jsonl, id_key: id}}
agent: {{type: chat, model: "openai:agent", base_url: "{model}"}}
mcp_servers: {{docs: {{url: "{mcp}", scope: run}}}}
conditions: {{with-docs: {{system_prompt: Use the search tool., mcp_servers: [docs]}}}}
execution: {{num_repetitions: {repetitions}, max_concurrent: {at_once}, max_failures: 1000000}}
scorers: [contains]
judge: {{model: "openai:judge", base_url: "{model}"}}
prices: {{"openai:agent": {{input: 1, output: 2}}, "openai:judge": {{input: 1, output: 2}}}}
""",
    "command": """name: soak
dataset: {{path: questions.jsonl, id_key: id}}
agent: {{type: command, command: [sh, -c, "sleep {seconds}; echo With a match."]}}
conditions: {{plain: {{}}}}
execution: {{num_repetitions: {repetitions}, max_concurrent: {at_once}, max_failures: 1000000}}
scorers: [contains]
""",
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", choices=tuple(EXPERIMENTS), help="one of the two runs")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)  # the process that is measured
    parser.add_argument("--samples", type=Path, metavar="FILE", help="write every sample there, as JSON")
    results.add_option(parser)
    options = parser.parse_args()
    if not Path("/proc/self/fd").is_dir():
        raise SystemExit("soak.py reads /proc, which this system does not have")
    if options.inside:
        before = sample(tasks=1)
        figures = asyncio.run(measured(options.inside, options.minutes))
        gc.collect()
        print(json.dumps({**figures, "before": before, "after": sample(tasks=figures["tasks"])}))
        return
    limits = Limits()
    names = [options.only] if options.only else list(EXPERIMENTS)
    measurements = soaked(names, options.minutes)
    if options.samples:
        options.samples.write_text(json.dumps(measurements))
    sections = [section(name, values, limits) for name, values in measurements.items()]
    for block in sections:
        print(results.markdown(block))
    results.write(options.json, *sections)
    limits.exit()


def soaked(names: Sequence[str], minutes: float) -> dict[str, dict[str, Any]]:
    """The measurements of each run's process; they run at the same time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR"))))
        urls = stack.enter_context(servers(folder)) if "chat" in names else {"model": "", "mcp": ""}
        processes = {}
        for name in names:
            lay_out(name, folder / name, urls)
            argv = [sys.executable, __file__, "--inside", str(folder / name), "--minutes", str(minutes)]
            environment = {**os.environ, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "ignore"}
            processes[name] = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=environment)
            stack.callback(processes[name].kill)
        measurements = {}
        for name, process in processes.items():
            output, _ = process.communicate()
            if process.returncode:
                raise SystemExit(f"the run {name} ended with {process.returncode}")
            measurements[name] = json.loads(output)
    return measurements


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, str]]:
    """The addresses of a scripted model and a scripted MCP server, each in a process of its own."""
    from karat.testing.mcp_server import serving

    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    argv = [sys.executable, "-m", "karat.testing.models", "--script", str(script)]
    with serving("http") as mcp, subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield {"model": json.loads(process.stdout.readline())["openai_url"], "mcp": mcp}
        finally:
            process.terminate()


def lay_out(name: str, folder: Path, urls: dict[str, str]) -> None:
    """An experiment that does not end by itself."""
    folder.mkdir()
    rows = (
        {"id": str(number), "question": f"How is lamp {number} lit?", "answer": "match"} for number in range(QUESTIONS)
    )
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = EXPERIMENTS[name].format(repetitions=REPETITIONS, at_once=AT_ONCE, seconds=PROGRAM_SECONDS, **urls)
    (folder / "experiment.yaml").write_text(text)


async def measured(folder: Path, minutes: float) -> dict[str, Any]:
    """Runs everything in this process; returns samples taken at full load, and the tasks left afterwards."""
    import karat
    from karat.execution import RunStatus, run_experiment
    from karat.journal import Attempt
    from karat.records import Answer, Failure

    counts: Counter[str] = Counter()

    def listener(event: Any) -> None:
        if isinstance(event, Answer | Attempt | Failure):
            counts["answers" if isinstance(event, Answer) else f"{event.stage}: {event.kind}"] += 1

    samples, every = [], min(5.0, 60 * minutes / 100)
    run = asyncio.create_task(
        run_experiment(
            karat.load(folder / "experiment.yaml"), results=folder / "results", status=RunStatus(listener),
            handle_signals=True,
        )
    )  # fmt: skip
    started = None
    while not run.done():
        await asyncio.wait([run], timeout=every)
        if counts["answers"] >= AT_ONCE:
            started = started or time.monotonic()
            if time.monotonic() - started > 60 * minutes:
                break
            samples.append({"seconds": time.monotonic() - started, **sample(tasks=len(asyncio.all_tasks()))})
    os.kill(os.getpid(), signal.SIGTERM)
    reason = (await run).reason
    assert reason == "interrupted", reason
    return {"samples": samples, "counts": counts, "tasks": len(asyncio.all_tasks())}


def sample(*, tasks: int) -> Sample:
    """This process's current resources."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{name}"))
        except FileNotFoundError:  # the one that lists them
            continue
    threads = os.listdir("/proc/self/task")
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    values = (
        pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
        len(links),
        sum(link.startswith("socket:") for link in links),
        len(threads),
        tasks,
        sum(len(_children(thread)) for thread in threads),
    )
    return dict(zip(QUANTITIES, values, strict=True))


def _children(thread: str) -> list[str]:
    try:
        return Path(f"/proc/self/task/{thread}/children").read_text().split()
    except FileNotFoundError:  # the thread has ended
        return []


def section(name: str, figures: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """The table of one run, with its verdicts."""
    samples = figures["samples"]
    kept = samples[round(len(samples) * WARM_UP) :]
    rows, verdicts = [], []
    for quantity in QUANTITIES:
        values = [row[quantity] for row in kept]
        quarter = len(values) // 4
        ends = [figures[when][quantity] for when in ("before", "after")]
        level = statistics.median if quantity == QUANTITIES[0] else max
        first, last = level(values[:quarter]), level(values[-quarter:])
        half = kept[len(kept) // 2 :]
        slope = np.polyfit([row["seconds"] / 3600 for row in half], [row[quantity] for row in half], 1)[0]
        rows.append([quantity, first, last, float(slope), min(values), max(values), *ends])
        if (bound := BOUNDS.get(name, {}).get(quantity)) is not None:
            verdicts.append(f"{quantity}, most: {limits.check(f'{name}, {quantity}', max(values), '≤', bound)}")
            continue
        more, share = MOST_GROWTH["memory" if quantity == QUANTITIES[0] else "counts"]
        allowed = round(first + max(more, share * first), 1)
        verdicts.append(f"{quantity}, last quarter: {limits.check(f'{name}, {quantity}', last, '≤', allowed)}")
    for quantity in QUANTITIES[2:]:
        title = f"{quantity} left after the run"
        left = figures["after"][quantity] - figures["before"][quantity]
        verdicts.append(f"{title}: {limits.check(f'{name}, {title}', left, '≤', 0)}")
    return {
        "title": f"Soak: {name}, {AT_ONCE} trials at once",
        "about": f"{figures['counts'].pop('answers'):,} answers, {len(kept)} samples after warm-up.",
        "columns": COLUMNS,
        "rows": rows,
        "verdicts": verdicts,
        "notes": [f"failed attempts – {kind}: {count}" for kind, count in sorted(figures["counts"].items())],
    }


if __name__ == "__main__":
    main()
