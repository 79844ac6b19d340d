"""What a run on Ray shares with a local one: rates, servers, judges, early stopping, signals, conversations."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.execution import test_stopping, test_turns
from tests.karat_scale import test_ray
from tests.karat_scale.test_ray import Cluster, Questions, answered_once, carried_out, needs_ray, newest, numbers, until
from tests.scorers import test_judge

from karat.journal import Attempt, Decided, RunFolder
from karat.records import Answer, Score
from karat.testing.models import serve

Write = Callable[..., Path]

SCRIPT = Path(__file__).parents[2] / "examples" / "ray" / "run.sh"
pytestmark = [needs_ray, pytest.mark.slow]
questions = test_ray.questions
cluster = test_ray.cluster
conversations = test_turns.conversations

AGENT = """
from urllib.request import urlopen

def query(question, *, condition, repetition, **_):
    urlopen(f"{url}/{{question}}-{{condition}}-{{repetition}}", timeout=60).read()
    return "a" + question[1:]
"""
CONVERSATION = (
    test_turns.DATASET
    + """
from urllib.request import urlopen
def query(user_query, history, sample):
    urlopen(f"{url}/{{sample.id}}/{{len(history)}}", timeout=60).read()
    return "A:" + user_query
"""
)


def execution(cluster: Cluster, **keys: Any) -> dict[str, Any]:
    return {"num_repetitions": 1, "executor": "ray", "ray": {"address": cluster.address, "num_workers": 2}, **keys}


def test_a_rate_is_for_all_workers_together(
    experiment: Write, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider counts by ten seconds: the limit spreads requests evenly.

    Two workers that each kept the limit alone would send all 18 in nine seconds. The provider bears half as many more
    than the limit allows, since requests that were sent apart arrive together at a busy machine.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    seen: deque[float] = deque()
    refused = []

    def answer(_: object) -> dict[str, object]:
        now = monotonic()
        while seen and seen[0] <= now - 10:
            seen.popleft()
        if len(seen) >= 15:
            refused.append(now)
            return {"status": 429}
        seen.append(now)
        return {"text": "forty-two", "usage": {"input": 4, "output": 1}}

    with serve(answer) as server:
        file = experiment(
            questions=9, agent={"type": "chat", "model": "openai:m", "base_url": server.openai_url},
            limits={"openai:m": {"requests_per_minute": 60}}, execution=execution(cluster, max_concurrent=20),
        )  # fmt: skip
        code, talk = carried_out(file)
    run = newest(file)
    assert (code, refused, list(run.events_of(Attempt))) == (0, [], []), talk
    assert answered_once(run) == 18


def test_a_server_of_the_run_is_started_once_a_worker(experiment: Write, cluster: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "started.txt"
    command = (
        f"import os; open({str(log)!r}, 'a').write(f'{{os.getppid()}}\\n')\n"
        "from karat.testing.mcp_server import main; main([])"
    )
    server = {"type": "stdio", "command": "python", "args": ["-c", command], "scope": "run"}
    file = experiment(
        questions=30, agent={"type": "floor"}, mcp_servers={"docs": server},
        conditions={"docs": {"mcp_servers": ["docs"]}}, execution=execution(cluster, max_concurrent=6),
    )  # fmt: skip
    code, talk = carried_out(file)
    assert code == 0, talk
    assert answered_once(newest(file)) == 30
    parents = log.read_text().split()
    assert len(set(parents)) == len(parents), "no process starts the server twice"
    assert 2 <= len(parents) <= 3, "the driver lists its tools; a worker that comes late may find no trial left"


def test_replayed_answers_and_a_judge_give_the_numbers_of_a_local_run(
    experiment: Write, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    rows = [
        {"id": f"q{number}", "condition": name, "repetition": again, "answer": f"a{number % (3 + again)}"}
        for number in range(12) for name in "ab" for again in range(2)
    ]  # fmt: skip
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def judged(request: Any) -> dict[str, Any]:
        return test_judge.tool(1 + len(json.dumps(request.body)) % 5)

    with serve(judged) as server:
        file = experiment(
            questions=12, dataset={"path": "questions.jsonl", "id_key": "question"},
            agent={"type": "replay", "path": "answers.jsonl"}, scorers=["equals"],
            judge={"model": "openai:judge", "base_url": server.openai_url},
            execution=execution(cluster, num_repetitions=2, max_concurrent=6),
        )  # fmt: skip
        code, talk = carried_out(file)
        assert code == 0, talk
        asked = server.asked
        remote = newest(file)
        assert carried_out(file, "--executor", "local")[0] == 0
        assert server.asked == 2 * asked
    assert answered_once(remote) == 48
    assert len(list(remote.events_of(Score))) == 96
    assert numbers(newest(file)) == numbers(remote)


def test_it_stops_when_it_is_decided_as_a_local_run_does(experiment: Write, cluster: Cluster) -> None:
    file = experiment(
        test_stopping.AGENT, questions=100, conditions=test_stopping.BETTER,
        execution=execution(cluster, max_concurrent=4, stop={"metric": "quality"}),
    )  # fmt: skip
    code, talk = carried_out(file)
    assert code == 0, talk
    remote = newest(file)
    answers = answered_once(remote)
    assert answers < 200
    assert carried_out(file, "--resume", str(remote.path))[0] == 0
    assert answered_once(remote) == answers
    assert carried_out(file, "--executor", "local")[0] == 0
    assert list(map(decision, newest(file).events_of(Decided))) == list(map(decision, remote.events_of(Decided)))


def decision(event: Decided) -> tuple[str, str, str, int]:
    return event.a, event.b, event.verdict, event.questions


def test_after_sigterm_what_was_asked_is_journalled_and_the_rest_can_be_resumed(
    experiment: Write, cluster: Cluster, questions: Callable[[float], Questions]
) -> None:
    server = questions(0.2)
    file = experiment(
        AGENT.format(url=server.url), questions=40, execution=execution(cluster, num_repetitions=2, max_concurrent=6)
    )
    process = test_ray.started(file)
    until(lambda: len(server.asked) > 15, process)
    process.send_signal(signal.SIGTERM)
    _, talk = process.communicate(timeout=240)
    assert process.returncode == 130, talk
    before = answered_once(newest(file))
    assert 15 < before < 160
    assert sum(server.asked.values()) == before
    assert actors(cluster) == []
    code, talk = carried_out(file, "--resume", str(newest(file).path))
    assert code == 0, talk
    assert answered_once(newest(file)) == 160
    assert set(server.asked.values()) == {1}


def test_a_conversation_goes_on_where_its_lost_worker_left_it(
    conversations: Write, cluster: Cluster, questions: Callable[[float], Questions]
) -> None:
    server = questions(0.3)
    rows = [{"turns": [{"question": f"{sample}-{turn}"} for turn in range(4)]} for sample in range(20)]
    file = conversations(CONVERSATION.format(url=server.url), rows, execution=execution(cluster, max_concurrent=6))
    process = test_ray.started(file)
    until(lambda: sum(path.endswith("/2") for path in [*server.asked]) >= 6, process)
    for pid in actors(cluster):
        os.kill(pid, signal.SIGKILL)
    at_loss = Counter(server.asked)
    _, talk = process.communicate(timeout=240)
    assert process.returncode == 0, talk
    assert "was lost" in talk
    run = newest(file)
    assert answered_once(run) == 20
    assert texts(run) == [[f"A:{sample}-{turn}" for turn in range(4)] for sample in range(20)]
    assert set(server.asked) == {f"/{sample}/{turn}" for sample in range(20) for turn in range(4)}
    twice = {path for path, count in server.asked.items() if count > 1}
    assert 0 < len(twice) <= 6
    for path in twice:
        sample, turn = path[1:].split("/")
        assert f"/{sample}/{int(turn) + 1}" not in at_loss, "a reply is on the driver's disk before the next turn"


def test_the_script_of_the_example_runs_and_continues_and_shards_may_share_a_cluster(
    experiment: Write, cluster: Cluster
) -> None:
    file = experiment(questions=12, agent={"type": "floor"}, execution={"num_repetitions": 1, "max_concurrent": 4})
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**test_ray.environment(), "RAY_ADDRESS": cluster.address, "PATH": path}
    for _ in range(2):
        done = subprocess.run(["bash", SCRIPT], cwd=file.parent, env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
    assert len(list((file.parent / "results").glob("[!.]*/run.json"))) == 1
    assert answered_once(newest(file)) == 24
    code, talk = carried_out(file, "--shard", "1/2", "--executor", "ray", "--address", cluster.address)
    assert code == 0, talk
    assert 0 < answered_once(newest(file)) < 24


def actors(cluster: Cluster) -> list[int]:
    """Processes of workers."""
    nodes = [pid for pid in test_ray.processes(cluster.folder) if test_ray.program(pid).endswith("raylet/raylet")]
    return [pid for node in nodes for pid in test_ray.children(node) if test_ray.program(pid).startswith("ray::Actor")]


def texts(run: RunFolder) -> list[list[str]]:
    answers = sorted(run.events_of(Answer), key=lambda answer: int(answer.sample))
    return [[reply.text for reply in answer.replies] for answer in answers]
