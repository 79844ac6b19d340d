"""How fast karat is compared with its peers, each in an environment of its own, in one run.

    python benchmarks/peers.py [--only answers,chat] [--json FILE]

The peers are installed once from the package registries into `build/peers/`; remove that folder to get newer versions.
Nothing else uses the network: models and MCP servers are scripted ones on this machine. The tools take turns; each
figure is the median of `--runs` rounds, or of three if a round takes more than a minute. "Beyond start" is the time of
a run of many trials minus that of a run of ten. Processor time includes every thread, and every child process that the
tool waits for. `_peers_tools.py` and `peer_programs/` define each tool's jobs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import _results as results  # beside this file
from _peers_setup import Installed, Used, environment, install, measured, model_server, tool_server
from _peers_tools import AT_ONCE, Bare, Command, PydanticEvals, Tool, tools
from limits import Limits

FEW = 10
LONG = 60  # seconds
CHAT = ("karat-chat", "inspect-ai-chat", "pydantic-evals-chat")
NO_LOG = "pydantic-evals keeps no durable log: a run that is killed loses everything. karat's time includes its log"
NOTES = {
    "answers": [
        NO_LOG,
        "inspect-ai: a solver, `exact`, a `.eval` log with its defaults; `--display none`",
        (
            "deepeval: `evaluate` of test cases with `ExactMatchMetric` and a results folder, written at the end; "
            "its cache is off, because with it the time grows with the square of the cases"
        ),
        "lm-eval: a model class, a task from a file, `log_samples`; its results are written at the end",
        "promptfoo: a JavaScript provider, `equals`, its SQLite database",
        (
            "All agents are functions of the tool's own language that answer at once, and ten are asked at a time. "
            "lm-eval asks its model for all answers in one call"
        ),
    ],
    "sleeps": [
        "At best 1.0 s. lm-eval has no agents: only the requests of its own clients of models overlap",
        "deepeval does not ask the agent: `asyncio.gather` does in the script of this benchmark",
    ],
    "opens": [
        "Whole processes, start included. The run is that of the instant trials",
        (
            "karat: `karat.open`, `karat.query`, `RunFolder.events`. inspect-ai: `read_eval_log(header_only=True)`, "
            "`read_eval_log_sample`, `read_eval_log_sample_summaries`. promptfoo: `list evals`, `export eval`"
        ),
        (
            "– : it reads its results as a whole only. pydantic-evals: a report that was saved with its JSON adapter. "
            "deepeval: its test run read with its own class. lm-eval: its JSON files, for which it has no reader"
        ),
    ],
    "starts": ["pydantic-evals has no command: `import pydantic_evals`"],
    "chat": [
        (
            "A trial is two requests to a scripted model and one call of a tool over HTTP, ten trials at a time. The "
            "SDKs alone: bare requests by pydantic-ai's model class and one session of the MCP SDK's client, no log"
        ),
        (
            "karat and pydantic-evals (with an Agent of pydantic-ai) keep one session with the server for the run, "
            "inspect-ai one a sample, as its documentation recommends"
        ),
        (
            "– : deepeval does not ask models for answers, lm-eval has no tools, promptfoo does not ask the model "
            "again with what the tool returned"
        ),
    ],
    "calls": [
        (
            "One call of a tool a trial, without a model: karat's agent `mcp`, a solver of inspect-ai, promptfoo's "
            "provider `mcp`, a task of pydantic-evals; the SDK alone: its client's `call_tool` in one session"
        ),
    ],
    "installs": ["Without Python, Node.js, pip and npm; compiled files of Python included"],
}


SLOW = ("inspect-ai", "deepeval", "lm-eval", "promptfoo")  # more than a millisecond of processor time per instant trial


class Bench:
    """The tools, their environments and the figures so far."""

    def __init__(
        self,
        folder: Path,
        *,
        runs: int,
        trials: int,
        fewer: int,
        calls: int,
        wanted: Sequence[str],
        names: Sequence[str],
    ) -> None:
        self._folder, self.runs, self._trials, self._fewer, self.calls = folder, runs, trials, fewer, calls
        self._wanted = wanted
        self._count = 0
        self._home, inputs = folder / "home", folder / "inputs"
        self._home.mkdir()
        inputs.mkdir()
        self.tools: list[Tool] = [tool for tool in tools(inputs) if not names or tool.name in {"karat", *names}]
        self.installed: dict[str, Installed] = {tool.name: install(tool.name) for tool in self.tools}
        self.sections: list[dict[str, Any]] = []
        self.finished: dict[str, Path] = {}  # tool → its last run of the instant trials
        self.limits = Limits()

    def many(self, name: str) -> int:
        """How many instant trials a tool runs."""
        return self._fewer if name in SLOW else self._trials

    def wants(self, section: str) -> bool:
        return not self._wanted or section in self._wanted

    def out(self) -> Path:
        """A new empty folder."""
        self._count += 1
        path = self._folder / f"out-{self._count}"
        path.mkdir()
        return path

    def use(self, command: Command, out: Path) -> Used:
        return measured(command, folder=out, env=environment(self._home, out))

    def rounds(self, jobs: Mapping[str, Callable[[], Used]]) -> dict[str, list[Used]]:
        """Runs the jobs in turn: `runs` times, or three times if they are slow."""
        taken: dict[str, list[Used]] = {name: [] for name in jobs}
        for number in range(self.runs):
            for name, job in jobs.items():
                if number < 3 or taken[name][0].seconds <= LONG:
                    taken[name].append(job())
                    used = taken[name][-1]
                    print(f"  {number + 1} {name:24} {used.cpu:8.2f} s of processor, {used.seconds:8.2f} s", flush=True)
        return taken

    def section(self, key: str, title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], **more: Any) -> None:
        """Records a section, and prints it."""
        versions = {name: tool.version for name, tool in self.installed.items() if name != "karat"}
        section = {
            "title": title, "columns": ["", *names], "rows": [list(row) for row in rows],
            "notes": NOTES[key], "versions": versions, **more,
        }  # fmt: skip
        self.sections.append(section)
        print("\n" + results.markdown(section), flush=True)

    def row(self, title: str, names: Sequence[str], values: Mapping[str, float | None]) -> list[Any]:
        return [title, *(values.get(name) for name in names)]


@dataclass(frozen=True)
class Figures:
    """Medians of one job of one tool."""

    cpu: float
    seconds: float
    megabytes: float

    @classmethod
    def of(cls, taken: Sequence[Used]) -> Figures:
        used = [(process.cpu, process.seconds, process.megabytes) for process in taken]
        return cls(*(statistics.median(values) for values in zip(*used, strict=True)))


def ratios(values: Mapping[str, float], to: str = "karat") -> dict[str, float | None]:
    """Each value divided by karat's; None if karat's is 0."""
    return {name: value / values[to] if values[to] > 0 else None for name, value in values.items()}


def answers(bench: Bench) -> None:
    """10,000 instant trials."""
    sizes: dict[str, float] = {}

    def job(tool: Tool, trials: int) -> Callable[[], Used] | None:
        if tool.answers(FEW, bench.out()) is None:
            return None

        def run() -> Used:
            out = bench.out()
            command = tool.answers(trials, out)
            assert command is not None
            used = bench.use(command, out)
            if trials > FEW:
                sizes[tool.name] = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
                bench.finished[tool.name] = out
            return used

        return run

    jobs = {}
    for tool in bench.tools:
        for title, trials in ((f"{tool.name}, {FEW}", FEW), (tool.name, bench.many(tool.name))):
            if (run := job(tool, trials)) is not None:
                jobs[title] = run
    figures = {name: Figures.of(taken) for name, taken in bench.rounds(jobs).items()}
    names = [tool.name for tool in bench.tools if tool.name in figures]
    beyond = {name: (bench.many(name) - FEW) / 1000 for name in names}
    cpu = {name: (figures[name].cpu - figures[f"{name}, {FEW}"].cpu) / beyond[name] for name in names}
    wall = {name: (figures[name].seconds - figures[f"{name}, {FEW}"].seconds) / beyond[name] for name in names}
    rows = [
        bench.row("trials", names, {name: bench.many(name) for name in names}),
        bench.row("processor time, s", names, {name: figures[name].cpu for name in names}),
        bench.row("time, s", names, {name: figures[name].seconds for name in names}),
        bench.row("processor time a trial beyond start, ms", names, cpu),
        bench.row("… as a multiple of karat's", names, ratios(cpu)),
        bench.row("time a trial beyond start, ms", names, wall),
        bench.row("peak memory, MB", names, {name: figures[name].megabytes for name in names}),
        bench.row("log, MB", names, {name: size or None for name, size in sizes.items()}),
    ]
    check, own = bench.limits.check, cpu["karat"]
    title = "processor time a trial against"
    verdicts = []
    if "inspect-ai" in cpu:
        ratio = check(f"inspect-ai's {title} karat", cpu["inspect-ai"] / own, "≥", 100, "×")
        verdicts.append(f"inspect-ai against karat {ratio}")
    if "pydantic-evals" in cpu:
        ratio = check(f"karat's {title} pydantic-evals", own / cpu["pydantic-evals"], "≤", 0.5, "×")
        verdicts.append(f"karat against pydantic-evals {ratio}")
    heading = "Beside peers: instant trials, with the log that each tool keeps"
    bench.section("answers", heading, names, rows, verdicts=verdicts)


def sleeps(bench: Bench) -> None:
    """1,000 trials of 100 ms, 100 at a time."""
    jobs: dict[str, Callable[[], Used]] = {}
    for tool in bench.tools:
        for trials in (FEW, 1000):
            out = bench.out()
            command = tool.sleeps(trials, out)
            if command is not None:
                name = tool.name if trials > FEW else f"{tool.name}, {FEW}"
                jobs[name] = _fresh(bench, lambda out, tool=tool, trials=trials: tool.sleeps(trials, out))
    figures = {name: Figures.of(taken) for name, taken in bench.rounds(jobs).items()}
    names = [tool.name for tool in bench.tools if tool.name in figures]
    beyond = {name: figures[name].seconds - figures[f"{name}, {FEW}"].seconds + 0.1 for name in names}
    cpu = {name: figures[name].cpu for name in names}
    rows = [
        bench.row("time, s", names, {name: figures[name].seconds for name in names}),
        bench.row("time beyond start, s", names, beyond),
        bench.row("… as a multiple of karat's", names, ratios(beyond)),
        bench.row("processor time, s", names, cpu),
        bench.row("… as a multiple of karat's", names, ratios(cpu)),
    ]
    bench.section("sleeps", "Beside peers: 1,000 trials of 100 ms, 100 at a time", names, rows)


def _fresh(bench: Bench, command: Callable[[Path], Command | None]) -> Callable[[], Used]:
    def run() -> Used:
        out = bench.out()
        argv = command(out)
        assert argv is not None
        return bench.use(argv, out)

    return run


def opens(bench: Bench) -> None:
    """Reads the runs that `answers` left."""
    for tool in bench.tools:
        if tool.name in bench.finished and isinstance(tool, PydanticEvals):
            out = bench.finished[tool.name]
            bench.use(tool.saves(bench.many(tool.name), out), out)
    jobs: dict[str, Callable[[], Used]] = {}
    for part in ("header", "sample", "scores"):
        for tool in bench.tools:
            finished = bench.finished[tool.name]
            command = tool.opens(part, finished, bench.many(tool.name))
            if command is not None:
                jobs[f"{part}, {tool.name}"] = lambda command=command, out=finished: bench.use(command, out)
    figures = {name: Figures.of(taken) for name, taken in bench.rounds(jobs).items()}
    names = [tool.name for tool in bench.tools]
    rows = [bench.row("samples", names, {name: bench.many(name) for name in names})]
    titles = {"header": "what it was and how it ended", "sample": "one sample", "scores": "all scores"}
    for part, title in titles.items():
        cpu = {name: figures[f"{part}, {name}"].cpu for name in names if f"{part}, {name}" in figures}
        peak = {name: figures[f"{part}, {name}"].megabytes for name in cpu}
        rows += [
            bench.row(f"{title}: processor time, s", names, cpu),
            bench.row("… as a multiple of karat's", names, ratios(cpu)),
            bench.row(f"{title}: peak memory, MB", names, peak),
        ]
    bench.section("opens", "Beside peers: to open a finished run", names, rows)


def starts(bench: Bench) -> None:
    """`--help`."""
    jobs = {tool.name: _fresh(bench, lambda _, tool=tool: tool.starts()) for tool in bench.tools}
    figures = {name: Figures.of(taken) for name, taken in bench.rounds(jobs).items()}
    names = list(figures)
    cpu = {name: figures[name].cpu for name in names}
    rows = [
        bench.row("processor time, s", names, cpu),
        bench.row("… as a multiple of karat's", names, ratios(cpu)),
        bench.row("time, s", names, {name: figures[name].seconds for name in names}),
        bench.row("peak memory, MB", names, {name: figures[name].megabytes for name in names}),
    ]
    bench.section("starts", "Beside peers: to print the help", names, rows)


def chat(bench: Bench) -> None:
    """Chat trials with a tool."""
    with model_server() as model, tool_server() as server:
        urls = (model, server)
        _with_servers(
            bench, "chat", "Beside peers: a chat trial with a tool",
            lambda tool, trials, out: tool.chats(trials, urls, out), at_most=1.1,
        )  # fmt: skip


def calls(bench: Bench) -> None:
    """Calls of an MCP server's tool."""
    with tool_server() as server:
        _with_servers(
            bench, "calls", "Beside peers: a call of an MCP server's tool",
            lambda tool, trials, out: tool.calls(trials, server, out),
        )  # fmt: skip


def _with_servers(
    bench: Bench,
    key: str,
    title: str,
    command: Callable[[Any, int, Path], Command | None],
    *,
    at_most: float | None = None,
) -> None:
    for environment_name in CHAT:
        install(environment_name)
    many = bench.calls
    jobs: dict[str, Callable[[], Used]] = {}
    bare = Bare()
    for tool in (bare, *bench.tools):
        for trials in (FEW, many):
            if command(tool, trials, bench.out()) is not None:
                name = tool.name if trials > FEW else f"{tool.name}, {FEW}"
                jobs[name] = _fresh(bench, lambda out, tool=tool, trials=trials: command(tool, trials, out))
    figures = {name: Figures.of(taken) for name, taken in bench.rounds(jobs).items()}
    names = [name for name in figures if not name.endswith(f", {FEW}")]
    beyond = (many - FEW) / 1000
    cpu = {name: (figures[name].cpu - figures[f"{name}, {FEW}"].cpu) / beyond for name in names}
    wall = {name: (figures[name].seconds - figures[f"{name}, {FEW}"].seconds) / beyond for name in names}
    rows = [
        bench.row("processor time beyond start, ms", names, cpu),
        bench.row("… as a multiple of the SDKs alone", names, ratios(cpu, bare.name)),
        bench.row("time beyond start, ms", names, wall),
        bench.row("peak memory, MB", names, {name: figures[name].megabytes for name in names}),
    ]
    verdicts = []
    if at_most is not None:
        ratio = cpu["karat"] / cpu[bare.name]
        verdicts = ["karat against the SDKs alone " + bench.limits.check(f"karat's {key}", ratio, "≤", at_most, "×")]
    heading = f"{title}, {many:,} of them, {AT_ONCE} at a time"
    bench.section(key, heading, names, rows, verdicts=verdicts)


def installs(bench: Bench) -> None:
    """Packages and megabytes."""
    names = list(bench.installed)
    rows = [
        bench.row("packages", names, {name: tool.packages for name, tool in bench.installed.items()}),
        bench.row("MB", names, {name: tool.megabytes for name, tool in bench.installed.items()}),
    ]
    size = bench.installed["karat"].megabytes
    verdicts = ["karat " + bench.limits.check("size of karat's core install", size, "≤", 200, "MB")]
    bench.section("installs", "Beside peers: what is installed", names, rows, verdicts=verdicts)


SECTIONS = {function.__name__: function for function in (installs, starts, answers, opens, sleeps, chat, calls)}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="rounds; default: 5")
    parser.add_argument("--trials", type=int, default=10_000, help="instant trials; default: 10,000")
    parser.add_argument("--fewer", type=int, metavar="N", help=f"trials of the slow ones ({', '.join(SLOW)})")
    parser.add_argument("--calls", type=int, default=500, help="chat trials, and calls of a tool; default: 500")
    parser.add_argument("--tools", default="", metavar="NAMES", help="some of the tools beside karat; default: all")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some of {','.join(SECTIONS)}; default: all")
    results.add_option(parser)
    options = parser.parse_args()
    wanted = [name for name in options.only.split(",") if name]
    if unknown := [name for name in wanted if name not in SECTIONS]:
        parser.error(f"unknown: {', '.join(unknown)}")
    names = [name for name in options.tools.split(",") if name]
    if "opens" in wanted and "answers" not in wanted:
        parser.error("`opens` reads the runs of `answers`: ask for both")
    fewer = options.fewer or options.trials
    with tempfile.TemporaryDirectory(prefix="karat-peers-") as folder:
        bench = Bench(
            Path(folder),
            runs=options.runs,
            trials=options.trials,
            fewer=fewer,
            calls=options.calls,
            wanted=wanted,
            names=names,
        )
        for name, measure in SECTIONS.items():
            if bench.wants(name):
                print(f"{name}:", flush=True)
                measure(bench)
        results.write(options.json, *bench.sections)
        bench.limits.exit()


if __name__ == "__main__":
    main()
