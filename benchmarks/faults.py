"""Runs with random faults, and checks of their outcome: 500 by default, each reproducible by its seed.

Each run is `karat run` in a process and a folder of its own, with an experiment of 12 to 36 questions. It is hit by a
fault; then `--resume` finishes it without faults. After every command the checks of `_fault_checks.py` must hold: the
journal is readable; nothing acknowledged is lost; no question with a journalled answer is asked again, as counted by
agents and judges themselves; exit codes are the documented ones; no traceback; no process, mount, connection or
temporary file is left. At the end, scores, tokens and costs equal those of the same run without faults.

    python benchmarks/faults.py --runs 500 --jobs 2 --log LOG --json benchmarks/measured/faults.json
    python benchmarks/faults.py --seed 17 --keep       # one of them again, keeping its folder
    python benchmarks/faults.py --fault SIGHUP         # the first seed that has this fault
    python benchmarks/faults.py --list

`--log LOG` records a line per run as it ends; running the same command again makes only the missing runs.

Not random: which fault a seed has (each in turn, so all are equally frequent, but faults of the process are four times
as frequent as those of single questions), and what agents and judges answer. Random, by seed: kind of dataset, agent,
judge, servers, workspace, concurrency, which questions the fault hits and how often, after how many questions a process
is killed or signalled, the free disk space, and whether there is a second fault. Not reproducible: the scheduling of
processes, so a replay meets the same fault only at nearly the same moment.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import _fault_checks as checks
import _results as results
from _fault_table import Outcome, Table
from _fault_world import KINDS, LoopbackServer, World, drawn, lay_out, ledger, short_limits

_LONGEST_SECONDS = 180.0
_RAY = Path(__file__).resolve().parents[1] / ".venv" / "ray"
_FAKETIME = next((str(path) for path in Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")), None)
During = Callable[["Process"], None]


class Process:
    """`karat` in a process of its own, and what it prints."""

    def __init__(self, case: Case, arguments: Sequence[str], *, wrap: Sequence[str] = (), env: dict[str, str]) -> None:
        command = [*wrap, sys.executable, "-m", "karat", *arguments]
        self.case = case
        self.popen = subprocess.Popen(
            command, cwd=case.folder, env={**case.env, **env}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._printed: list[bytes] = [b"", b""]
        self._readers = [threading.Thread(target=self._read, args=(number,), daemon=True) for number in range(2)]
        for reader in self._readers:
            reader.start()

    def _read(self, number: int) -> None:
        pipe = (self.popen.stdout, self.popen.stderr)[number]
        assert pipe is not None
        while data := pipe.read1(65536):  # type: ignore[attr-defined]  # a BufferedReader
            self._printed[number] += data

    def wait_for_asks(self, count: int) -> None:
        """Waits until `count` questions were asked in this phase, or the process has ended."""
        while self.popen.poll() is None and self.case.asks() < count:
            time.sleep(0.002)

    def send(self, number: int) -> None:
        """Sends a signal, if the process is still running."""
        if self.popen.poll() is None:
            self.popen.send_signal(number)

    def wait(self) -> int:
        """The exit code; a process that does not end is killed, which counts as a complaint."""
        try:
            code = self.popen.wait(_LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            self.case.complain(f"did not end within {_LONGEST_SECONDS:g} s")
            self.popen.kill()
            code = self.popen.wait()
        for reader in self._readers:
            reader.join(5)
        return code

    @property
    def errors(self) -> str:
        return self._printed[1].decode("utf-8", "replace")

    def acknowledged(self) -> list[dict[str, Any]]:
        """Answers and scores that it reported as journalled."""
        lines = [line for line in self.errors.split("\n")[:-1] if line.startswith('{"event":')]
        return [json.loads(line) for line in lines]


@dataclass
class Phase:
    """One command, and the journal's content before it."""

    name: str
    before: checks.Reading
    asked: int = 0  # questions before it
    killed: int = 0


class Case:
    """One seed: a folder, a world, a fault, and the commands run in it."""

    def __init__(self, folder: Path, world: World, dice: random.Random, keys: Sequence[str]) -> None:
        self.folder, self.world, self.dice, self.keys = folder, world, dice, sorted(keys)
        self.marker = f"case-{folder.name}-{os.getpid()}"
        self.plan: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.shards: dict[str, Path | None] = {}
        self.phases: list[Phase] = []
        self.past: set[Path] = set()  # finished run folders
        self._shown: list[dict[str, Any]] = []
        self.killed = False
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder / "home"), "LANG": "C.UTF-8", "TMPDIR": str(folder / "tmp"),
            "KARAT_FAULTS": self.marker, "MODEL_KEY": "no secret at all",
        }  # fmt: skip

    @contextmanager
    def opened(self) -> Iterator[Case]:
        """Starts its server, and removes its mounts at the end."""
        self.folder.mkdir(parents=True)
        with ExitStack() as stack:
            self.server = stack.enter_context(LoopbackServer(self.folder))
            concurrency = self.dice.choice((1, 3, 6))
            lay_out(self.world, self.folder, port=self.server.port, marker=self.marker, concurrency=concurrency)
            self.stack = stack
            yield self
        self.complaints += [f"the loopback server broke: {crash}" for crash in self.server.crashes]

    def complain(self, message: str) -> None:
        self.complaints.append(f"{self.phases[-1].name if self.phases else 'before'}: {message}")

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def run(self) -> Path | None:
        """The current run folder."""
        runs = [path for path in self.results.iterdir() if path.name[0] != "." and path not in self.past]
        return max(runs, default=None)

    def journal(self) -> bytes:
        run = self.run
        return (run / "journal.jsonl").read_bytes() if run is not None and (run / "journal.jsonl").exists() else b""

    def asks(self) -> int:
        """Questions to agents and judges in this phase."""
        try:
            data = (self.folder / "ledger.jsonl").read_bytes()
        except FileNotFoundError:
            return 0
        return data.count(b'"event": "asked"') - self.phases[-1].asked

    def most_asks(self) -> int:
        return max(2, len(self.keys))

    def begin(self, name: str, *, faults: bool) -> None:
        """Starts a phase; `faults`: whether faults happen in it."""
        number = sum(phase.name.startswith(name) for phase in self.phases)
        name = f"{name} {number + 1}" if number else name
        asked = sum(entry["event"] == "asked" for entry in ledger.entries(self.folder))
        self.phases.append(Phase(name, checks.read_journal(self.journal(), torn=True), asked))
        text = json.dumps({"phase": name, "faults": self.plan if faults else []})
        (self.folder / "faults.new").write_text(text)
        (self.folder / "faults.new").rename(self.folder / "faults.json")

    def start(self, *arguments: str, wrap: Sequence[str] = (), **env: str) -> Process:
        return Process(self, arguments, wrap=wrap, env=env)

    def command(
        self, *arguments: str, codes: Sequence[int], during: During | None = None, faults: bool = True,
        killed: bool = False, name: str = "with the fault", wrap: Sequence[str] = (), **env: str,
    ) -> int:  # fmt: skip
        """Runs one command to its end, then all checks. `killed`: it could not clean up."""
        self.begin(name, faults=faults)
        process = self.start(*arguments, wrap=wrap, **env)
        if during is not None:
            during(process)
        return self.ended(process, codes=codes, killed=killed)

    def ended(self, process: Process, *, codes: Sequence[int], killed: bool = False) -> int:
        """Runs the checks; returns the exit code."""
        code, phase = process.wait(), self.phases[-1]
        killed = killed and code not in (0, 2, 3, 130)
        phase.killed += killed
        self.killed |= killed
        self._shown += process.acknowledged()
        complaints = checks.words(code, process.errors, codes=codes)
        complaints += checks.leftovers(
            self.folder, self.marker, connections=lambda: self.server.connections, temporary=not self.killed
        )
        after = self.journal()
        reading = checks.read_journal(after, torn=killed)
        complaints += reading.complaints + checks.appended_only(phase.before.whole, after)
        for complaint in complaints:
            self.complain(complaint)
        return code

    def run_arguments(self, *more: str, patient: bool = False) -> tuple[str, ...]:
        """Arguments of a run. `patient`: with the file's time limits, which only runs with a fault replace."""
        waits = any(entry["do"] in WAITS or entry["at"].startswith("mcp") for entry in self.plan)
        short = short_limits(self.world) if waits and not patient else []
        return ("run", "experiment.yaml", "--results", "results", "--events", *short, *more)

    def resume_arguments(self, *, patient: bool = False) -> tuple[str, ...]:
        """Arguments of a resume; of a new run if there is none yet."""
        resumed = ("--resume", str(self.run), "--retry-failed") if self.run is not None else ()
        return self.run_arguments(*resumed, patient=patient)

    def finish(self, *more: str) -> None:
        """Finishes the run without faults. `more`: arguments for a run that has to start again."""
        for path in (self.folder / "tmp").iterdir():  # leftovers of killed processes are only removed after two hours
            os.utime(path, (time.time() - 7200,) * 2)
        self.killed = False
        arguments = self.resume_arguments(patient=True) if self.run else self.run_arguments(*more, patient=True)
        self.command(*arguments, codes=(0,), faults=False, name="resumed")

    def hold_against(self, run: Path | None, reference: Reference | None) -> None:
        """Compares the finished run with the ledger, and with the same run without faults."""
        if run is None:
            self.complain("there is no run folder")
            return
        journal = (run / "journal.jsonl").read_bytes()
        final, book = checks.read_journal(journal, torn=False), ledger.entries(self.folder)
        complaints = final.complaints + checks.acknowledged(self._shown, final)
        complaints += checks.as_delivered(final, book) + checks.once(final)
        turns = not (self.world.workspace and self.world.kind == "conversation")
        for phase in self.phases:
            complaints += checks.not_again(book, phase.before, final, phase.name, turns=turns)
            complaints += checks.not_too_often(book, final, phase.name, killed=phase.killed)
        if self.world.workspace:
            complaints += checks.archives(run, final)
        if reference is not None:
            complaints += checks.equal(checks.totals(final), reference.totals)
            summary = Summary.of(run)
            if summary.numbers != reference.summary.numbers:
                both = zip(summary.numbers, reference.summary.numbers, strict=False)
                at = next((place for place, (a, b) in enumerate(both) if a != b), 0)
                ours, theirs = (
                    text[max(0, at - 200) : at + 200] for text in (summary.numbers, reference.summary.numbers)
                )
                complaints.append(f"the summary differs: {ours} instead of {theirs}")
            complaints += self._costs(summary, reference.summary, book, exact=turns and not checks.paid_again(final))
        for complaint in complaints:
            self.complain(complaint)

    def _costs(self, ours: Summary, theirs: Summary, book: list[dict[str, Any]], *, exact: bool) -> Iterator[str]:
        """Checks reported costs: at least those of the run without faults, at most what was delivered."""
        delivered = checks.spent(book, ("agent", "step")), checks.spent(book, ("judge",))
        for who, paid, least, most in zip(("agents", "judges"), ours.dollars, theirs.dollars, delivered, strict=True):
            if not least - 1e-9 <= paid <= (least if exact else most) + 1e-9:
                yield f"{who} cost {paid}, without faults {least}, by the ledger {most}"


@dataclass(frozen=True)
class Summary:
    """karat's own figures for a run."""

    numbers: str
    dollars: tuple[float, float]

    @classmethod
    def of(cls, run: Path) -> Summary:
        import karat
        from karat.journal import RunFolder

        facts = karat.summarize(RunFolder.open(run))
        ledgers = {name: account.ledger for name, account in facts.accounts.items()}
        numbers = (ledgers, facts.headline, facts.results, facts.differences, facts.table_of_samples, facts.duplicates)
        # Because of the fault, answers may take several attempts, and failed calls have no known price.
        shown = re.sub(r"(first_attempt|retried)=Group\([^)]*\)|cost=[\w.]+", "", repr(numbers))
        return cls(shown, (facts.total.cost.agent.known, facts.total.cost.judge.known))


@dataclass(frozen=True)
class Reference:
    """The same run without faults."""

    keys: tuple[str, ...]
    totals: dict[str, Any]
    summary: Summary


# Faults. Each is one class, or one row of `IN_TRIALS`.


class Fault:
    """One thing that goes wrong: `plan` if agents and servers cause it, `run` if it hits the process."""

    name: str
    weight = 4
    codes: tuple[int, ...] = (0, 3)
    agents = ("command", "python", "http", "chat", "mcp")
    missing: str | None = None  # why it is not possible on this machine

    def world(self, dice: random.Random) -> World:
        return drawn(dice, agents=self.agents)

    def plan(self, case: Case) -> list[dict[str, Any]]:
        """Entries of `faults.json`."""
        return []

    def run(self, case: Case) -> None:
        """Runs everything up to the resume without faults."""
        case.command(*case.run_arguments(), codes=case_codes(case, self.codes))

    def finish(self, case: Case) -> Path | None:
        """The finished run."""
        case.finish()
        return case.run


def case_codes(case: Case, codes: tuple[int, ...]) -> tuple[int, ...]:
    """The expected exit codes; a second fault adds its own."""
    return tuple(sorted({*codes, *(code for entry in case.plan for code in entry.get("codes", ()))}))


class InTrial(Fault):
    """An agent, a judge or a server that fails at some questions."""

    weight = 1

    def __init__(
        self,
        at: str,
        do: str,
        *,
        agents: tuple[str, ...],
        codes: tuple[int, ...] = (0, 3),
        few: bool = False,
        **wanted: Any,
    ) -> None:
        """`few`: only at one or two questions, because it is slow. `wanted`: fields of the world."""
        who = f"{'/'.join(agents)} agent" if at == "agent" else at
        self.name = f"{who}: {do}"
        self.at, self.do, self.agents, self.codes, self.few, self.wanted = at, do, agents, codes, few, wanted

    def world(self, dice: random.Random) -> World:
        return drawn(dice, agents=self.agents, **self.wanted)

    def fits(self, world: World) -> bool:
        """Whether it can be a second fault."""
        wanted = {**self.wanted, **({"kind": world.kind} if self.at.startswith("mcp") else {})}
        return world.agent in self.agents and all(getattr(world, name) == value for name, value in wanted.items())

    def plan(self, case: Case) -> list[dict[str, Any]]:
        dice = case.dice
        steps = self.at in ("mcp initialize", "mcp tools/list")
        first = dice.choice((0, 1, 2, 5)) if steps else 0  # 0: it also hits the check before the run
        some = dice.choice((1, 2, 4)) if not self.few else dice.choice((1, 2))
        keys = ["first"] if steps else dice.sample(case.keys, min(some, len(case.keys)))
        if not steps and not self.few and dice.random() < 0.15:
            keys = []  # all of them
        times = dice.choice((1, 2, 1000))
        codes = list(self.codes)
        return [{"at": self.at, "do": self.do, "keys": keys or None, "first": first, "times": times, "codes": codes}]

    def run(self, case: Case) -> None:
        killed = self.do == "os_exit"
        case.command(*case.run_arguments(), codes=case_codes(case, self.codes), killed=killed)


WAITS = {"hang", "stubborn"}
SLOW = {*WAITS, "huge", "flood", "stderr", "wrong_id"}
_in_trial = partial(InTrial, "agent")
_HTTP = ("status 429", "status 500", "garbage", "truncated", "hang", "reset", "huge", "deep")
_COMMAND = (
    "crash", "signal", "hang", "child", "daemon", "flood", "stderr", "surrogates", "nan", "deep", "garbage", "empty",
)  # fmt: skip
_PYTHON = ("base", "exit", "hang", "stubborn", "fork", "stdout", "huge", "surrogates", "nan", "deep", "odd")
_ASK_SERVERS = ("chat", "mcp")
_MCP = ("crash", "hang", "garbage", "wrong_id", "wrong_schema", "huge")
IN_TRIALS: tuple[InTrial, ...] = (
    *(InTrial("agent", do, agents=("command",), few=do in SLOW) for do in _COMMAND),
    *(InTrial("agent", do, agents=("python",), few=do in SLOW) for do in _PYTHON),
    InTrial("agent", "keyboard", agents=("python",), codes=(0, 3, 130)),
    InTrial("agent", "os_exit", agents=("python",), codes=(77,)),
    *(InTrial("agent", do, agents=("http",), few=do in SLOW) for do in (*_HTTP, "nan")),
    *(InTrial("agent", do, agents=("chat",), few=do in SLOW) for do in _HTTP),
    *(
        InTrial("judge", do, agents=("command", "python", "http", "chat"), few=do in SLOW, judge=True, kind=kind)
        for do in ("status 429", "status 500", "garbage", "truncated", "hang", "reset", "out_of_range")
        for kind in ("golden",)
    ),
    *(
        InTrial(f"mcp {step}", do, agents=agents, few=do in SLOW or step == "tools/call", mcp=transport)
        # For the agent `mcp`, the error of a failed call is an answer, not a fault.
        for step, agents in (("initialize", _ASK_SERVERS), ("tools/list", _ASK_SERVERS), ("tools/call", ("chat",)))
        for transport in ("stdio", "http")
        for do in (*_MCP, *(("flood",) if transport == "stdio" else ()))
    ),
)


class KillNine(Fault):
    name = "kill -9"

    def run(self, case: Case) -> None:
        self.kill(case, case.run_arguments())

    def kill(self, case: Case, arguments: tuple[str, ...]) -> None:
        moment = case.dice.randint(0, case.most_asks())

        def during(process: Process) -> None:
            process.wait_for_asks(moment)
            time.sleep(case.dice.random() * 0.03)
            process.send(signal.SIGKILL)

        case.command(*arguments, codes=(*case_codes(case, (0, 3)), -9), during=during, killed=True)


class KillNineRepeatedly(KillNine):
    name = "kill -9 repeatedly"

    def run(self, case: Case) -> None:
        self.kill(case, case.run_arguments())
        for _ in range(case.dice.randint(1, 3)):
            self.kill(case, case.resume_arguments())


class Signals(Fault):
    """One signal, or two shortly after each other, after some questions."""

    def __init__(self, number: signal.Signals, count: int) -> None:
        self.name = f"{number.name} twice" if count > 1 else number.name
        self._number, self._count = number, count

    def run(self, case: Case) -> None:
        moment = case.dice.randint(1, case.most_asks())

        def during(process: Process) -> None:
            process.wait_for_asks(moment)
            for _ in range(self._count):
                process.send(self._number)
                time.sleep(case.dice.random() * 0.2)

        ended = -int(self._number)  # it arrived when karat was already exiting
        code = case.command(*case.run_arguments(), codes=case_codes(case, (0, 3, 130, ended)), during=during)
        last = checks.read_journal(case.journal(), torn=False).events[-1:]
        if code == ended and not (last and last[0]["event"] == "end"):
            case.complain(f"{self._number.name} ended the process before the run had ended")


class FullDisk(Fault):
    """A small file system for the results; if nothing can be mounted, a limit on file sizes."""

    name = "full disk"
    codes = (0, 2, 3)

    def run(self, case: Case) -> None:
        size = case.dice.choice((4, 8, 12, 20, 40, 80))  # kB
        if can_mount() and case.dice.random() < 0.7:
            mount(case, "-t", "tmpfs", "-o", f"size={size}k", "none", str(case.results))
            case.command(*case.run_arguments(), codes=case_codes(case, self.codes))
            mount(case, "-o", "remount,size=256m", str(case.results), undo=False)
        else:
            case.command(
                *case.run_arguments(), codes=case_codes(case, self.codes), wrap=["prlimit", f"--fsize={size * 1024}"]
            )


class FullTemporaryFolder(Fault):
    name = "full temporary folder"
    codes = (0, 2, 3)
    missing = None if os.geteuid() == 0 else "it takes a mount"

    def run(self, case: Case) -> None:
        size = case.dice.choice((4, 16, 64))  # kB
        mount(case, "-t", "tmpfs", "-o", f"size={size}k", "none", str(case.folder / "tmp"))
        case.command(*case.run_arguments(), codes=case_codes(case, self.codes))
        mount(case, "-o", "remount,size=64m", str(case.folder / "tmp"), undo=False)


class ReadOnlyFolder(Fault):
    name = "read-only folder"
    missing = None if os.geteuid() == 0 else "it takes a mount"

    def run(self, case: Case) -> None:
        if case.dice.random() < 0.7:
            Signals(signal.SIGINT, 1).run(case)
        place = str(case.results)
        mount(case, "--bind", place, place)
        mount(case, "-o", "remount,ro,bind", place, undo=False)
        case.command(*case.resume_arguments(), codes=(2,), name="read-only")
        mount(case, "-o", "remount,rw,bind", place, undo=False)


class ClockGoesBack(Fault):
    """The wall clock jumps back during the run, and is still behind when the run is resumed.

    Not for studies: libfaketime also moves the deadline of the monotonic sleep with which Python waits for the programs
    that run SQL, which then fails (EINVAL) although it would not with a real clock.
    """

    name = "clock going back"
    missing = None if _FAKETIME else "libfaketime is not installed (apt-get install faketime)"

    def world(self, dice: random.Random) -> World:
        agent = dice.choice(self.agents)
        return drawn(dice, agents=(agent,), kind=dice.choice([kind for kind in KINDS[agent] if kind != "study"]))

    def run(self, case: Case) -> None:
        clock = case.folder / "clock"
        clock.write_text("+0\n")
        assert _FAKETIME is not None
        env = {
            "LD_PRELOAD": _FAKETIME, "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }  # fmt: skip
        back = case.dice.choice((2, 3600, 86_400 * 400))

        def during(process: Process) -> None:
            process.wait_for_asks(case.dice.randint(1, case.most_asks()))
            clock.write_text(f"-{back}\n")
            if stop:
                process.wait_for_asks(case.most_asks() // 2)
                process.send(signal.SIGINT)

        stop = case.dice.random() < 0.6
        case.command(*case.run_arguments(), codes=case_codes(case, (0, 3, 130)), during=during, **env)
        case.command(*case.resume_arguments(), codes=case_codes(case, (0, 3)), **env)


class TwoRuns(KillNine):
    """Two processes resume one run, or one resumes a run that is still running."""

    name = "two runs on one folder"

    def run(self, case: Case) -> None:
        if case.dice.random() < 0.5:
            self.kill(case, case.run_arguments())
            if case.run is None:  # it was killed before it had created a folder to share
                case.command(*case.run_arguments(), codes=case_codes(case, (0, 3)))
            case.begin("two at once", faults=True)
            processes = [case.start(*case.resume_arguments()) for _ in range(2)]
        else:
            case.begin("with the fault", faults=True)
            processes = [case.start(*case.run_arguments())]
            while processes[0].popen.poll() is None and case.run is None:
                time.sleep(0.005)
            processes.append(case.start(*case.resume_arguments()))
        codes = [process.wait() for process in processes]
        for process in processes:
            case.ended(process, codes=case_codes(case, (0, 2, 3)))
        refused = [process for process, code in zip(processes, codes, strict=True) if code == 2]
        if len(refused) > 1 or any("is writing to this run" not in process.errors for process in refused):
            case.complain(f"two runs ended with {codes}: {[process.errors[-300:] for process in refused]}")


class ShardsKilled(KillNine):
    """Shards, some of them killed; merged as they are, then resumed and merged again."""

    name = "shards killed and merged"
    agents = ("command", "python", "http", "chat")

    def run(self, case: Case) -> None:
        of = case.dice.randint(2, 3)
        case.shards = {f"{number}/{of}": None for number in range(1, of + 1)}
        for shard in case.shards:
            arguments = case.run_arguments("--shard", shard)
            if case.dice.random() < 0.6:
                self.kill(case, arguments)
            else:
                case.command(*arguments, codes=case_codes(case, (0, 3)))
            case.shards[shard] = case.run
            case.past |= {case.run} - {None}

    def finish(self, case: Case) -> Path | None:
        if any(case.shards.values()):
            self.merge(case)
        for shard, run in case.shards.items():
            case.past -= {run}
            case.finish("--shard", shard)
            case.shards[shard] = case.run
            case.past |= {case.run} - {None}
        before = self.merge(case)
        if (merged := self.merge(case)) != before:
            case.complain(f"merging once more made another run: {merged}, {before}")
        return merged

    def merge(self, case: Case) -> Path | None:
        """The merged run; a new one if the shards have changed."""
        runs = [str(run) for run in case.shards.values() if run is not None]
        case.command("runs", "merge", *case.dice.sample(runs, len(runs)), "--out", "merged", codes=(0,), name="merged")
        lines = {
            path: (path / "journal.jsonl").read_bytes().count(b"\n") for path in (case.folder / "merged").iterdir()
        }
        return max(lines, key=lambda path: lines[path], default=None)


class RayWorkerKilled(Fault):
    """The workers of a run on Ray, killed once or twice while they ask; the driver starts others."""

    name = "Ray worker killed"
    weight = 1  # starting Ray takes longer than a run
    missing = None if (_RAY / "ray").is_dir() else "Ray is not in .venv/ray (scripts/setup dev)"

    def world(self, dice: random.Random) -> World:
        # These keep the ledger on their server; a program of the case would write to the worker's copy of the folder.
        return drawn(dice, agents=("http", "chat"), mcp=None)

    def run(self, case: Case) -> None:
        moments = sorted(case.dice.randint(1, case.most_asks()) for _ in range(case.dice.randint(1, 2)))

        def during(process: Process) -> None:
            for moment in moments:
                process.wait_for_asks(moment)
                for pid, line in checks.processes(case.folder, case.marker):
                    if line.startswith("ray::Actor"):
                        os.kill(pid, signal.SIGKILL)

        case.killed = True  # a killed worker leaves its folder, which the next one there removes two hours later
        arguments = case.run_arguments("--executor", "ray")
        case.command(*arguments, codes=case_codes(case, (0, 3)), during=during, PYTHONPATH=str(_RAY))
        case.phases[-1].killed += len(moments)
        for folder in (case.folder / "tmp").glob("karat-worker-*"):
            shutil.rmtree(folder)


ON_PROCESSES: tuple[Fault, ...] = (
    KillNine(), KillNineRepeatedly(), Signals(signal.SIGTERM, 1), Signals(signal.SIGHUP, 1), Signals(signal.SIGINT, 2),
    FullDisk(), FullTemporaryFolder(), ReadOnlyFolder(), ClockGoesBack(), TwoRuns(),
    ShardsKilled(), RayWorkerKilled(),
)  # fmt: skip


def can_mount() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


def mount(case: Case, *arguments: str, undo: bool = True) -> None:
    """Mounts something. `undo`: unmount at the end of the case. The last argument is the mount point."""
    subprocess.run(["mount", *arguments], check=True, capture_output=True)
    if undo:
        case.stack.callback(subprocess.run, ["umount", "--lazy", arguments[-1]], check=False)


# The campaign.


@dataclass
class Campaign:
    """Runs seeds, several at a time."""

    folder: Path
    keep: bool
    _references: dict[World, Reference] = field(default_factory=dict)
    _making: dict[World, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seed: int) -> Outcome:
        """One seed, from its world to its checks."""
        started, dice = time.monotonic(), random.Random(seed)
        fault = deck()[seed % len(deck())]
        if fault.missing is not None:
            return Outcome(seed, [fault.name], fault.missing, skipped=True)
        world = fault.world(dice)
        names, folder, complaints = [fault.name], self.folder / f"{seed:04}", list[str]()
        try:
            reference = self.reference(world)
            case = Case(folder, world, dice, reference.keys)
            with case.opened():
                case.plan = fault.plan(case)
                second = [other for other in IN_TRIALS if other is not fault and other.at != getattr(fault, "at", None)]
                second = [other for other in second if other.fits(world) and other.do not in ("os_exit", "keyboard")]
                if second and dice.random() < 0.3:
                    chosen = dice.choice(second)
                    case.plan += chosen.plan(case)
                    names.append(chosen.name)
                fault.run(case)
                case.hold_against(fault.finish(case), reference)
            complaints = case.complaints
        except Exception:  # noqa: BLE001 -- a case that breaks has not survived
            complaints = [f"the campaign itself broke: {traceback.format_exc()}"]
        if not complaints and not self.keep:
            shutil.rmtree(folder, ignore_errors=True)
        return Outcome(seed, names, str(world), time.monotonic() - started, complaints)

    def reference(self, world: World) -> Reference:
        """The world's run without faults, made once."""
        with self._lock:
            making = self._making.setdefault(world, threading.Lock())
        with making:
            if world not in self._references:
                case = Case(
                    self.folder / f"reference-{len(self._references)}-{os.urandom(2).hex()}",
                    world,
                    random.Random(0),
                    (),
                )
                with case.opened():
                    case.command(*case.run_arguments(), codes=(0,), name="reference")
                    case.hold_against(case.run, None)
                    if case.complaints or case.run is None:
                        raise RuntimeError(f"the run without faults ({world}) has failed: {case.complaints}")
                    journal = checks.read_journal(case.journal(), torn=False)
                    keys = tuple(checks.answered(journal))
                    self._references[world] = Reference(keys, checks.totals(journal), Summary.of(case.run))
            return self._references[world]


def deck() -> list[Fault]:
    """Every fault, as often as its weight, in a mixed order; a seed has the same fault on every machine."""
    every = [fault for fault in (*ON_PROCESSES, *IN_TRIALS) for _ in range(fault.weight)]
    return random.Random(0).sample(every, len(every))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="runs with random faults, and what is left of them")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, action="append", help="only this one; may be repeated")
    parser.add_argument("--fault", action="append", help="only the first seed with this fault; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument(
        "--keep", action="store_true", help="keep every folder; else only of runs that have not survived"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="a line a run; seeds that are there are not repeated")
    results.add_option(parser)
    parser.add_argument("--list", action="store_true", help="the faults, with their seeds below 500")
    options, names = parser.parse_args(), [fault.name for fault in deck()]
    if options.list:
        for name in dict.fromkeys(names):
            print(f"{name:40} {' '.join(str(seed) for seed in range(500) if names[seed % len(names)] == name)}")
        return
    if unknown := set(options.fault or ()).difference(names):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}; --list shows them")
    seeds = [*(options.seed or ()), *(names.index(name) for name in options.fault or ())]
    seeds = seeds or range(options.first, options.first + options.runs)
    folder = Path(tempfile.mkdtemp(prefix="karat-faults-"))
    campaign, table = Campaign(folder, options.keep), Table(options.log, len(seeds))
    table.not_here = {fault.name: fault.missing for fault in ON_PROCESSES if fault.missing is not None}
    with ThreadPoolExecutor(options.jobs) as pool:
        for outcome in pool.map(campaign.run, [seed for seed in seeds if seed not in table.outcomes]):
            table.add(outcome)
            if len(table.outcomes) % 10 == 0:
                results.write(options.json, table.section())
    results.write(options.json, table.section())
    table.show()
    if options.keep or not table.reached:
        print(f"folders: {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if table.reached else 1)


if __name__ == "__main__":
    main()
