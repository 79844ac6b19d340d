"""Agents that block, fork, take signals or leave things running: two signals must end karat, its journal whole.

Each round runs one kind of agent, three trials with a time limit of a second. Karat may end by itself. If it has not
some seconds after the agent was asked first, it gets a signal, and some seconds later another; after that it has
`--patience` seconds, then the round counts as one that only SIGKILL ends. The journal must then be whole, and nothing
of karat's may be left running.

    python benchmarks/blocking.py --rounds 100
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import _results as results  # beside this file

HEAD = """
import asyncio, atexit, multiprocessing, os, re, signal, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
fork = multiprocessing.get_context("fork")
async def refuse():
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            pass
async def generate():
    try:
        yield 1
        yield 2
    finally:
        await asyncio.sleep(1000)
"""
SYNC, ASYNC = "def query(question):", "async def query(question):"
KINDS: dict[str, tuple[str, ...]] = {
    "to_thread": (ASYNC, "await asyncio.to_thread(time.sleep, 1000)"),
    "to_thread that is not awaited": (ASYNC, "asyncio.ensure_future(asyncio.to_thread(time.sleep, 1000))"),
    "run_in_executor": (ASYNC, "await asyncio.get_running_loop().run_in_executor(None, time.sleep, 1000)"),
    "regular expression on a thread": (SYNC, "re.match(r'(a+)+$', 'a' * 40 + 'b')"),
    "regular expression in the loop": (ASYNC, "re.match(r'(a+)+$', 'a' * 40 + 'b')"),
    "regular expression in to_thread": (ASYNC, "await asyncio.to_thread(re.match, r'(a+)+$', 'a' * 40 + 'b')"),
    "large number on a thread": (SYNC, "sum(range(10 ** 12))"),
    "large number in the loop": (ASYNC, "sum(range(10 ** 12))"),
    "sleep on a thread": (SYNC, "time.sleep(1000)"),
    "sleep in the loop": (ASYNC, "time.sleep(1000)"),
    "busy in the loop": (ASYNC, "while True: pass"),
    "lock taken twice": (ASYNC, "lock = threading.Lock(); lock.acquire(); lock.acquire()"),
    "refuses to be cancelled": (ASYNC, "await refuse()"),
    "task that refuses to be cancelled": (ASYNC, "query.task = asyncio.create_task(refuse())"),
    "generator that does not close": (ASYNC, "query.left = generate(); await anext(query.left)"),
    "fork that sleeps": (SYNC, "child = os.fork()", "if not child: time.sleep(1000)"),
    "fork that exits with sys.exit": (SYNC, "child = os.fork()", "if not child: sys.exit(0)", "os.waitpid(child, 0)"),
    "fork that returns": (SYNC, "child = os.fork()", "if child: os.waitpid(child, 0)"),
    "fork in the loop that raises": (ASYNC, "child = os.fork()", "if not child: raise OSError", "os.waitpid(child, 0)"),
    "pool that hangs": (SYNC, "fork.Pool(2).apply(time.sleep, (1000,))"),
    "pool that is terminated": (SYNC, "pool = fork.Pool(2)", "pool.terminate()", "pool.join()"),
    "process that is left": (SYNC, "fork.Process(target=time.sleep, args=(1000,)).start()"),
    "process that ignores signals": (
        SYNC, "child = fork.Process(target=ignore)", "child.start()", "child.terminate()", "child.join()",
    ),
    "program": (SYNC, "subprocess.run(['sleep', '1000'], check=False)"),
    "program that ignores signals": (SYNC, "subprocess.run(['sh', '-c', 'trap \"\" 1 2 15; sleep 1000; :'])"),
    "program in a pipe": (SYNC, "subprocess.run('sleep 1000 | cat', shell=True, capture_output=True)"),
    "thread that is left": (SYNC, "threading.Thread(target=time.sleep, args=(1000,)).start()"),
    "executor that is left": (SYNC, "query.pool = ThreadPoolExecutor()", "query.pool.submit(time.sleep, 1000)"),
    "atexit that hangs": (SYNC, "atexit.register(time.sleep, 1000)"),
    "takes signals": (ASYNC, "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)", "await asyncio.sleep(1000)"),
    "takes signals by the loop": (
        ASYNC, "for n in (1, 2, 15): asyncio.get_running_loop().add_signal_handler(n, int)", "await refuse()",
    ),
    "blocks signals": (ASYNC, "signal.pthread_sigmask(signal.SIG_BLOCK, {1, 2, 15})", "await refuse()"),
    "import that hangs": ("time.sleep(1000)", SYNC, "pass"),
}  # fmt: skip
IGNORE = "def ignore():\n    for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\n    time.sleep(1000)\n"
EXPERIMENT = """name: blocking
dataset: {path: questions.csv}
agent: {type: python, target: "agent:query"}
scorers: [equals]
conditions: {a: {}}
execution: {num_repetitions: 1, timeout_seconds: 1, max_concurrent: 2, retry: {max_attempts: 1}}
"""
MARK = "KARAT_BENCHMARK_ROUND"


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--patience", type=float, default=20.0, help="seconds after the second signal")
    options = parser.parse_args()
    # What nohup and shells that run it in the background ignore, karat would ignore as well.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    dice = random.Random(options.seed)
    names = list(KINDS)
    plans = []
    for number in range(options.rounds):
        moments = (dice.uniform(0.0, 12.0), dice.uniform(0.5, 6.0))  # sooner, both are one
        plans.append((names[number % len(names)], dice.choice(["SIGINT", "SIGTERM", "SIGHUP"]), moments))
    with ThreadPoolExecutor(4) as pool:
        ended = list(pool.map(lambda plan: one_round(*plan, patience=options.patience), plans))
    rows: list[list[object]] = []
    for (name, sent, _), (code, seconds, faults) in zip(plans, ended, strict=True):
        rows.append([name, sent, code, seconds, "; ".join(faults) or "–"])
        print(f"{name:36} {sent:8} code {code:>5} after {seconds:5.1f} s  {'; '.join(faults)}")
    kinds = Counter(fault for *_, faults in ended for fault in faults)
    verdict = f"{options.rounds} rounds: " + (", ".join(f"{n} × {fault}" for fault, n in kinds.items()) or "no fault")
    print(verdict)
    columns = ["agent", "signal", "exit code", "ended after (s)", "faults"]
    about = "Agents that block, fork, take signals or leave things running, with two signals where karat does not end."
    results.write(
        options.json,
        {"title": "Blocking agents", "about": about, "columns": columns, "rows": rows, "verdicts": [verdict]},
    )


def lay_out(folder: Path, name: str) -> None:
    """Writes an experiment with this kind of agent."""
    first, *lines = KINDS[name]
    body = ['open("asked", "w").close()', *lines, "return question"]
    if first == KINDS["import that hangs"][0]:
        first, body = f'open("asked", "w").close()\n{first}\n{lines[0]}', body[2:]
    code = "\n    ".join([first, *body])
    (folder / "agent.py").write_text(f"{HEAD}{IGNORE}{code}\n")
    (folder / "questions.csv").write_text("question,answer\na,a\nb,b\nc,c\n")
    (folder / "experiment.yaml").write_text(EXPERIMENT)


def one_round(name: str, sent: str, moments: tuple[float, float], *, patience: float) -> tuple[int, float, list[str]]:
    """The exit code, the seconds until the end, and what should not have been."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lay_out(folder, name)
        command = [sys.executable, "-m", "karat", "run", "experiment.yaml", "--results", "results", "-q"]
        started = time.monotonic()
        with (folder / "said.txt").open("wb") as said:
            process = subprocess.Popen(
                command, cwd=folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                env=os.environ | {MARK: folder.name},
            )  # fmt: skip
        while process.poll() is None and not (folder / "asked").exists():
            time.sleep(0.05)
        faults = [] if ends(process, sent, moments, patience) else ["only SIGKILL ends it"]
        process.kill()
        code, seconds = process.wait(), time.monotonic() - started
        faults += [f"journal: {fault}" for fault in broken(folder)]
        time.sleep(1.0)
        left = marked(folder.name)
        if any(b"last_resort" in command or b"_watchdog" in command for command in left.values()):
            faults.append("a process of karat is left")
        for process_id in left:  # what the agent left
            os.kill(process_id, signal.SIGKILL)
        return code, seconds, faults


def ends(process: subprocess.Popen[bytes], sent: str, moments: tuple[float, float], patience: float) -> bool:
    """Whether karat ends by itself, or by two signals."""
    waits = [partial(process.wait, moments[0]), partial(process.wait, moments[1]), partial(process.wait, patience)]
    for number, wait in enumerate(waits):
        try:
            wait()
        except subprocess.TimeoutExpired:
            if number < len(waits) - 1:
                process.send_signal(signal.Signals[sent])
        else:
            return True
    return False


def broken(folder: Path) -> list[str]:
    """What is wrong with the journals of the runs."""
    from karat.journal.verify import verify

    return [damage.reason for run in (folder / "results").glob("[!.]*") for damage in verify(run).damages]


def marked(mark: str) -> Mapping[int, bytes]:
    """Processes of this round, with their command lines; none where there is no /proc."""
    found: dict[int, bytes] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main()
