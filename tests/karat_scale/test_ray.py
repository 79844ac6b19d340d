"""Trials that run on a Ray cluster: karat in a process of its own, real nodes on this machine, real kills."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.karat_scale import test_merging

from karat.config import load
from karat.errors import BadExperiment
from karat.journal import RunFolder, verify
from karat.records import Answer

Write = Callable[..., Path]

RAY = Path(__file__).parents[2] / ".venv" / "ray"
TOKEN = secrets.token_hex(32)
needs_ray = pytest.mark.skipif(not (RAY / "ray").is_dir(), reason="no Ray in .venv/ray: scripts/setup dev installs it")

AGENT = """
import os
from urllib.request import Request, urlopen
from karat import AgentFault, Reply, Usage

URL = {url!r}

def query(question, *, condition, repetition, **_):
    number = int(question[1:])
    if URL:
        url = f"{{URL}}/{{number}}-{{condition}}-{{repetition}}"
        urlopen(Request(url, headers={{"Worker": str(os.getpid())}}), timeout=60).read()
    if number % 9 == 8:
        raise AgentFault("refused", "not this one")
    text = f"a{{number}}" if (number + repetition) % 3 or condition == "b" else "?"
    return Reply(text=text, dollars=0.1 * number + 0.03, usage=Usage(input_tokens=number, output_tokens=1))
"""


class Questions:
    """A server on this machine that counts the questions that it is asked."""

    def __init__(self, seconds: float) -> None:
        self.asked: Counter[str] = Counter()
        self.workers: set[str | None] = set()  # their process ids
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked[self.path] += 1
                outer.workers.add(self.headers.get("Worker"))
                time.sleep(seconds)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def questions() -> Iterator[Callable[[float], Questions]]:
    made: list[Questions] = []

    def make(seconds: float) -> Questions:
        made.append(Questions(seconds))
        return made[-1]

    yield make
    for one in made:
        one.server.shutdown()
        one.server.server_close()


def environment() -> dict[str, str]:
    # Nodes show each other a token, so that nobody else on this machine joins.
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAY_USAGE_STATS_ENABLED": "0"}
    return {**os.environ, "PYTHONPATH": str(RAY), **own}


def started(file: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(file.parent / "results"), *options]
    return subprocess.Popen(
        command, cwd=file.parent, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def carried_out(file: Path, *options: str) -> tuple[int, str]:
    process = started(file, *options)
    _, talk = process.communicate(timeout=240)
    return process.returncode, talk


def numbers(run: RunFolder) -> dict[str, Any]:
    """All that a report says but for where the run was carried out."""
    return {key: value for key, value in test_merging.numbers(run).items() if key != "provenance"}


def newest(file: Path) -> RunFolder:
    return RunFolder.open(
        max((file.parent / "results").glob("[!.]*/run.json"), key=lambda at: at.stat().st_mtime).parent
    )


def processes(with_text: str) -> list[int]:
    """Processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if with_text in (entry / "cmdline").read_text(errors="replace"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += [int(entry.name), *children(int(entry.name))]
        except (OSError, IndexError, ValueError):
            continue
    return found


class Cluster:
    """One or two nodes on this machine, at addresses of their own, each with room for two workers."""

    def __init__(self) -> None:
        self.address = ""
        self.folder = tempfile.mkdtemp(prefix="karat-cluster-", dir="/tmp")

    def begin(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.2", 0))
            self.address = f"127.0.0.2:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self._start("--head", f"--port={port}", "--node-ip-address=127.0.0.2", f"--temp-dir={self.folder}",
                    "--include-dashboard=false", "--no-monitor")  # fmt: skip

    def add_second_node(self) -> None:
        """With one `there`, which the first has not."""
        self._start(f"--address={self.address}", "--node-ip-address=127.0.0.3", '--resources={"there": 1}')

    def _start(self, *options: str) -> None:
        # No monitors: what scales clusters and what sends logs to drivers, for a fifth of the processor's time.
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats", "--num-cpus=2",
                   "--object-store-memory=80000000", "--include-log-monitor=false", *options]  # fmt: skip
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def kill_second_node(self) -> None:
        """Its raylet and every worker of it, with SIGKILL."""
        (raylet,) = [pid for pid in processes("--node_ip_address=127.0.0.3") if "raylet/raylet" in program(pid)]
        for pid in [raylet, *children(raylet)]:
            os.kill(pid, signal.SIGKILL)

    def end(self) -> None:
        mine = {pid for text in (self.folder, self.address) if text for pid in processes(text)}
        mine |= {child for pid in mine for child in children(pid)}
        for pid in mine - {os.getpid()}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        shutil.rmtree(self.folder, ignore_errors=True)


def program(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One node for all tests of a file that start no cluster of their own."""
    made = Cluster()
    try:
        made.begin()
        yield made
    finally:
        made.end()


@pytest.fixture
def two_nodes(cluster: Cluster) -> Cluster:
    """For tests that kill the second."""
    cluster.add_second_node()
    return cluster


def until(true: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 180
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answered_once(run: RunFolder) -> int:
    answers = [answer.trial for answer in run.events_of(Answer)]
    assert len(set(answers)) == len(answers)
    assert verify(run.path).ok
    return len(answers)


@needs_ray
@pytest.mark.slow
def test_a_cluster_for_one_run_gives_the_numbers_of_a_local_run_and_leaves_nothing(experiment: Write) -> None:
    file = experiment(AGENT.format(url=""), questions=40, scorers=["equals", "contains"])
    process = started(file, "--executor", "ray")
    _, talk = process.communicate(timeout=240)
    code, of_ray = process.returncode, f"karat-ray-{process.pid}-"
    assert "trials run on" in talk
    assert "Traceback" not in talk
    remote = newest(file)
    assert answered_once(remote) == 36 * 4
    assert code == 3  # some trials failed, as they do here
    assert carried_out(file)[0] == 3
    assert numbers(newest(file)) == numbers(remote)
    assert processes(of_ray) == []
    assert list(Path(tempfile.gettempdir()).glob(f"{of_ray}*")) == []


@needs_ray
@pytest.mark.slow
def test_what_a_lost_node_had_not_delivered_is_asked_again(
    experiment: Write, two_nodes: Cluster, questions: Callable[[float], Questions]
) -> None:
    server = questions(0.3)
    # No faults: one whose attempt is journalled when its worker is lost would have another attempt, and so be counted.
    agent = AGENT.format(url=server.url).replace("number % 9 == 8", "number < 0")
    one_a_node = {"num_cpus": 2}
    file = experiment(agent, questions=60, execution={"max_concurrent": 8, "ray": one_a_node})
    process = started(file, "--executor", "ray", "--address", two_nodes.address)
    until(lambda: len(server.asked) > 40 and len(server.workers) == 2, process)
    two_nodes.kill_second_node()
    _, talk = process.communicate(timeout=240)
    assert process.returncode == 0, talk
    assert "was lost" in talk
    assert "asked again because of it" in talk
    run = newest(file)
    assert answered_once(run) == 60 * 4
    twice = sum(count - 1 for count in server.asked.values())
    assert 1 <= twice <= 4 + 50  # what its worker ran, and what it held besides
    again = max(
        int(word) for line in talk.splitlines() if "asked again" in line for word in line.split("; ")[1].split()[:1]
    )
    assert twice <= again
    server.asked.clear()
    carried_out(file)
    assert numbers(newest(file)) == numbers(run)


@needs_ray
@pytest.mark.slow
def test_a_resource_that_only_a_lost_node_had_ends_the_run_and_it_can_be_resumed(
    experiment: Write, two_nodes: Cluster, questions: Callable[[float], Questions]
) -> None:
    server = questions(0.1)
    # A busy machine needs half a minute to start a worker, and the first one must have started in time.
    ray = {"num_workers": 1, "num_cpus": 0, "resources": {"there": 1}, "start_timeout_seconds": 60}
    file = experiment(
        AGENT.format(url=server.url), questions=40, execution={"max_concurrent": 4, "executor": "ray", "ray": ray}
    )
    process = started(file, "--address", two_nodes.address)
    until(lambda: len(server.asked) > 12, process)
    two_nodes.kill_second_node()
    _, talk = process.communicate(timeout=240)
    assert process.returncode == 3, talk
    assert "worker 1 did not start within 1 min 00 s" in talk, talk
    assert "no node has room for it (it needs num_cpus 0, there 1)" in talk
    assert newest(file).status() == "no_workers"
    before = answered_once(newest(file))
    assert 0 < before < 36 * 4
    assert carried_out(file, "--executor", "local", "--resume", str(newest(file).path))[0] == 3
    assert answered_once(newest(file)) == 36 * 4


@needs_ray
@pytest.mark.slow
def test_a_killed_driver_loses_no_answer_that_was_journalled(
    experiment: Write, cluster: Cluster, questions: Callable[[float], Questions]
) -> None:
    server = questions(0.1)
    file = experiment(AGENT.format(url=server.url), questions=40, execution={"max_concurrent": 4, "executor": "ray"})
    process = started(file)
    until(lambda: len(server.asked) > 20, process)
    busy = subprocess.run(
        [sys.executable, "-m", "karat", "run", str(file), "--resume", str(newest(file).path), "--executor", "local"],
        capture_output=True, text=True, cwd=file.parent,
    )  # fmt: skip
    assert busy.returncode == 2
    assert str(process.pid) in busy.stderr
    family = children(process.pid)
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 60
    while left := [pid for pid in family if may_ask(pid)]:
        assert time.monotonic() < deadline, [(pid, program(pid)) for pid in left]
        time.sleep(0.2)
    for pid in filter(is_alive, family):  # agents of a node, which ask nobody: Ray ends them late or never
        os.kill(pid, signal.SIGKILL)
    before = answered_once(newest(file))
    asked = sum(server.asked.values())
    assert carried_out(file, "--resume", str(newest(file).path), "--address", cluster.address)[0] == 3
    assert answered_once(newest(file)) == 36 * 4
    assert sum(count - 1 for count in server.asked.values()) <= asked - before


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def may_ask(pid: int) -> bool:
    return is_alive(pid) and program(pid) not in ("ray::DashboardAgent", "ray::RuntimeEnvAgent")


@pytest.mark.needs_package("karat_coding")
@needs_ray
@pytest.mark.slow
def test_workspaces_and_a_budget_are_as_in_a_local_run(experiment: Write, cluster: Cluster) -> None:
    code = """
from karat import Reply, Usage

async def query(question, *, workspace, **_):
    (workspace / "made.txt").write_text(question)
    return Reply(text="a" + question[1:], dollars=0.25, usage=Usage(input_tokens=1, output_tokens=1))
"""
    file = experiment(
        code, questions=10, conditions={"a": {"workspace": "start"}},
        execution={"num_repetitions": 1, "max_concurrent": 2, "executor": "ray", "budget": {"usd": 2.0}},
    )  # fmt: skip
    (file.parent / "start").mkdir()
    (file.parent / "start" / "given.txt").write_text("given")
    (file.parent / "start" / ".hidden").mkdir()
    (file.parent / "start" / ".hidden" / ".gitignore").write_text("*.pyc")
    code_, talk = carried_out(file, "--address", cluster.address)
    run = newest(file)
    assert run.status() == "budget", talk
    assert code_ == 3
    answers = list(run.events_of(Answer))
    assert 6 <= len(answers) <= 8
    for answer in answers:
        assert answer.workspace is not None
        assert (answer.workspace.changed, answer.workspace.removed) == (1, 0)
        assert (run.path / "workspaces" / answer.workspace.file).is_file()
    assert answered_once(run) == len(answers)


def test_an_address_of_rays_client_is_refused(experiment: Write) -> None:
    file = experiment("", execution={"executor": "ray", "ray": {"address": "ray://head:10001"}})
    with pytest.raises(BadExperiment, match="must be HOST:PORT or `auto`"):
        load(file)


def test_recording_and_kept_workspaces_are_refused_before_anything_is_asked(experiment: Write) -> None:
    file = experiment(AGENT.format(url=""), execution={"executor": "ray"}, mcp={"record": "tapes"})
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(file.parent / "results")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=file.parent)
    assert ended.returncode == 2
    assert "cannot add to one recording" in ended.stderr
    ended = subprocess.run([*command, "--set", "mcp={}", "--keep-workspaces"], capture_output=True, text=True)
    assert ended.returncode == 2
    assert "folders stay with the worker" in ended.stderr
    assert not (file.parent / "results").exists()


@pytest.mark.parametrize("command", [("run", "--executor", "ray"), ("check", "--set", "execution.executor=ray")])
def test_without_the_extra_it_is_named_and_nothing_is_on_disk(experiment: Write, command: tuple[str, ...]) -> None:
    file = experiment(AGENT.format(url=""))
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    argv = [sys.executable, "-m", "karat", *command, str(file)]
    ended = subprocess.run(argv, capture_output=True, text=True, cwd=file.parent, env=env)
    assert ended.returncode == 2
    assert "needs the extra 'ray'" in ended.stderr
    assert json.dumps(sorted(path.name for path in file.parent.iterdir())).count("results") == 0


@pytest.mark.slow
def test_an_address_of_a_cluster_is_not_passed_over(experiment: Write) -> None:
    code, talk = carried_out(experiment(AGENT.format(url="")), "--executor", "local", "--address", "127.0.0.1:1")
    assert (code, "--address: is for a Ray cluster" in talk) == (2, True), talk


@needs_ray
@pytest.mark.slow
def test_what_a_plug_in_raises_as_a_worker_opens_is_said(experiment: Write, cluster: Cluster) -> None:
    code = (
        AGENT.format(url="")
        + """
from pathlib import Path
class Scorer:
    def open(self):
        if b"ray::" in Path("/proc/self/cmdline").read_bytes():
            raise RuntimeError("no GPU on this node")
    def score(self, sample, answer):
        return True
"""
    )
    file = experiment(code, questions=4, execution={"executor": "ray", "ray": {"start_timeout_seconds": 60}})
    code_, talk = carried_out(file, "--address", cluster.address)
    assert code_ == 2, talk
    assert "RuntimeError: no GPU on this node" in talk


@pytest.mark.needs_package("karat_coding")
@needs_ray
@pytest.mark.slow
def test_a_second_interrupt_keeps_the_answer_of_a_session_that_is_closing(experiment: Write, cluster: Cluster) -> None:
    code = """
import asyncio
from contextlib import asynccontextmanager
from karat import Reply
class Session:
    def __init__(self, workspace):
        self.workspace = workspace
    async def ask(self, turn):
        return Reply(text="a" + turn.question[1:], dollars=0.1)
class Agent:
    @asynccontextmanager
    async def session(self, condition, sample, workspace):
        yield Session(workspace)
        with open("PLACE", "a") as file:
            file.write("closing\\n")
        await asyncio.sleep(60)
query = Agent()
"""
    execution = {"num_repetitions": 1, "max_concurrent": 1, "executor": "ray", "ray": {"num_workers": 1}}
    conditions = {"a": {"workspace": "start"}}
    file = experiment(code, questions=2, conditions=conditions, execution=execution)
    (file.parent / "start").mkdir()
    closing = file.parent / "closing"
    (agent,) = file.parent.glob("agent_of_*.py")
    agent.write_text(code.replace("PLACE", str(closing)))
    process = started(file, "--address", cluster.address)
    until(closing.exists, process)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(1)
    _, talk = process.communicate(timeout=60)
    assert process.returncode == 130, talk
    assert answered_once(newest(file)) == 1
