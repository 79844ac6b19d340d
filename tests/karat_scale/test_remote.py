"""Trials on workers elsewhere, in one process: a scripted Ray whose actors are threads, and are lost when told to."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execution import test_turns
from tests.karat_scale.test_merging import numbers

from karat.config import Experiment, load
from karat.errors import BadOption
from karat.execution import Outcome, RunStatus
from karat.journal import RunFolder, verify
from karat.records import Answer, Failure
from karat_scale.shipping import MOST_BYTES, digest_of, pack, portable, unpack

Write = Callable[..., Path]
Run = Callable[..., Outcome]
conversations = test_turns.conversations
FAKE = Path(__file__).parent / "scripted_ray"
AGENT = """
from karat import AgentFault, InfrastructureFault, Reply, Usage
ASKED = set()

def query(question, *, condition, repetition, **_):
    number = int(question[1:])
    if number % 9 == 8:
        raise AgentFault("refused", "not this one")
    if number % 5 == 4 and (question, condition, repetition) not in ASKED:
        ASKED.add((question, condition, repetition))
        raise InfrastructureFault("busy", "not yet", retriable=True)
    text = f"a{number}" if (number + repetition) % 3 or condition == "b" else "?"
    return Reply(text=text, dollars=0.1 * number + 0.03, usage=Usage(input_tokens=number, output_tokens=1))
"""


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The scripted module `ray`, in place of any that is installed."""
    monkeypatch.chdir(tmp_path)  # workers change to their folder
    monkeypatch.syspath_prepend(str(FAKE))
    there = sys.modules.pop("ray", None)
    before = dict(os.environ)
    try:
        yield importlib.import_module("ray")
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.modules.pop("ray")
        if there is not None:
            sys.modules["ray"] = there


def told(run: RunFolder) -> dict[str, Any]:
    """All that a report says but for where the run was carried out."""
    return {key: value for key, value in numbers(run).items() if key != "provenance"}


def answered_once(run: RunFolder) -> int:
    counts = Counter(answer.trial for answer in run.events_of(Answer))
    assert set(counts.values()) == {1}
    assert verify(run.path).ok
    return len(counts)


ALL = AGENT.replace("number % 9 == 8", "number < 0").replace("number % 5 == 4", "number < 0")
CONVERSATION = (
    test_turns.DATASET
    + """
import ray
def query(user_query, history, sample):
    ray.plan.calls.append(user_query)
    if user_query == "1-2" and ray.plan.calls.count("1-2") == 1:
        for handle in ray.handles():
            ray.kill(handle)
    return "A:" + user_query
"""
)


def of_ray(file: Path, *settings: str) -> Experiment:
    return load(file, settings=["execution.executor=ray", *settings])


def watch() -> tuple[list[str], RunStatus]:
    notices: list[str] = []
    return notices, RunStatus(on_notice=notices.append)


def test_workers_give_the_numbers_of_a_local_run(experiment: Write, run: Run, ray: Any) -> None:
    file = experiment(AGENT, questions=20, scorers=["equals", "contains"], execution={"max_concurrent": 3})
    local = run(file).run
    notices, status = watch()
    elsewhere = run(of_ray(file, "execution.ray.resources={there: 2}"), status=status).run
    assert told(elsewhere) == told(local)
    assert answered_once(elsewhere) == 18 * 4
    assert notices == ["trials run on 1 worker of a cluster of this machine alone, 3 at a time"]
    (started, settings) = ray.plan.calls
    assert started[1]["address"] == "local"
    assert settings[1] == {
        "num_cpus": 1.0, "num_gpus": 0.0, "resources": {"there": 2.0}, "max_restarts": 0, "max_task_retries": 0,
    }  # fmt: skip


def test_what_a_lost_worker_had_not_delivered_is_asked_again(experiment: Write, run: Run, ray: Any) -> None:
    file = experiment(ALL, questions=12, execution={"max_concurrent": 4, "num_repetitions": 1})
    local = run(file).run
    ray.plan.lost_after = [2, 1, 3]
    notices, status = watch()
    elsewhere = run(of_ray(file, "execution.ray.batch_size=2"), status=status).run
    assert told(elsewhere) == told(local)
    assert answered_once(elsewhere) == 24
    assert notices[0] == "trials run on 2 workers of a cluster of this machine alone, 4 at a time"
    lost = [re.sub(r"\d+ trials?", "N trials", text) for text in notices[1:]]
    again = "N trials asked again because of it, [0-9]+ in all"
    assert all(re.fullmatch(rf"worker [12] was lost \(RayError: its node died\); {again}", text) for text in lost)
    assert len(lost) == 3
    counts = [int(re.search(r"(\d+) trials? asked", text)[1]) for text in notices[1:]]
    assert notices[-1].endswith(f"asked again because of it, {sum(counts)} in all")


def test_without_a_worker_the_run_ends_and_can_be_resumed(experiment: Write, run: Run, ray: Any) -> None:
    file = experiment(ALL, execution={"num_repetitions": 1})
    ray.plan.lost_after = [0] * 5
    notices, status = watch()
    ended = run(of_ray(file, "execution.ray.num_workers=1"), status=status).run
    assert ended.status() != "done"
    assert notices[-2:] == [
        "worker 1 is not started again: it was lost 5 times",
        "the run ends here, because it has no worker; --resume continues it",
    ]
    assert list(ended.events_of(Answer)) == []
    again = run(file, resume=ended.path).run
    assert answered_once(again) == 6
    assert again.status() == "done"


def test_a_conversation_goes_on_where_its_lost_worker_left_it(conversations: Write, run: Run, ray: Any) -> None:
    rows = [{"turns": [{"question": f"{sample}-{turn}"} for turn in range(4)]} for sample in range(3)]
    file = conversations(CONVERSATION, rows, execution={"max_concurrent": 1})
    outcome = run(of_ray(file))
    assert answered_once(outcome.run) == 3
    assert sorted(test_turns.texts(outcome)) == [[f"A:{one}-{turn}" for turn in range(4)] for one in range(3)]
    asked = Counter(call for call in ray.plan.calls if isinstance(call, str))
    assert asked == {f"{one}-{turn}": 1 for one in range(3) for turn in range(4)} | {"1-2": 2}


def test_what_is_not_started_at_the_end_of_the_budget_is_left_to_a_resume(
    experiment: Write, run: Run, ray: Any
) -> None:
    file = experiment(ALL, questions=20, execution={"num_repetitions": 1, "max_concurrent": 2, "budget": {"usd": 2.0}})
    ended = run(of_ray(file)).run
    spent = sum(reply.dollars or 0.0 for answer in ended.events_of(Answer) for reply in answer.replies)
    assert 1.0 < spent <= 4.0
    assert 0 < answered_once(ended) < 40
    again = run(of_ray(file, "execution.budget.usd=100"), resume=ended.path).run
    assert answered_once(again) == 40
    assert again.status() == "done"


def test_failures_elsewhere_count_for_the_limit_of_the_run(experiment: Write, run: Run, ray: Any) -> None:
    file = experiment(AGENT.replace("number % 9 == 8", "True"), questions=30, execution={"max_failures": 2})
    ended = run(of_ray(file, "execution.max_concurrent=1", "execution.ray.batch_size=0"))
    assert ended.reason == run(file).reason
    assert 2 <= len(list(ended.run.events_of(Failure))) < 20


def test_a_worker_for_which_there_is_no_room_is_named(experiment: Write, run: Run, ray: Any) -> None:
    ray.plan.silent = True
    notices, status = watch()
    file = experiment(ALL, execution={"ray": {"num_workers": 1, "num_gpus": 0.5, "start_timeout_seconds": 0.01}})
    ended = run(of_ray(file), status=status).run
    assert list(ended.events_of(Answer)) == []
    waited = "worker 1 did not start within 10 ms: no node has room for it (it needs num_cpus 1, num_gpus 0.5)"
    assert notices[-2:] == [
        f"{waited}, or its node is slow",
        "the run ends here, because it has no worker; --resume continues it",
    ]


@pytest.mark.parametrize(
    ("plan", "setting", "message"),
    [
        ({"damaged": True}, "num_workers=1", "worker 1 cannot run this experiment: .*arrived damaged: their digest is"),
        ({}, "address='127.0.0.1:9'", "nothing answers at 127.0.0.1:9: is the head node of the cluster running"),
        ({}, "address=auto", "Ray cannot connect to auto: .*no cluster; if its nodes have a token, set RAY_AUTH_MODE"),
    ],
)
def test_what_cannot_run_is_said(
    experiment: Write, run: Run, ray: Any, plan: dict[str, Any], setting: str, message: str
) -> None:
    vars(ray.plan).update(plan)
    with pytest.raises(BadOption, match=message):
        run(of_ray(experiment(ALL), f"execution.ray.{setting}"))


def test_files_arrive_as_they_are_without_runs_and_hidden_ones(experiment: Write, tmp_path: Path) -> None:
    file = experiment(ALL)
    for name in ("data/more.txt", ".git/config", "results/x", "old/run.json", "tool.sh", "__pycache__/a.pyc", ".env"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "tool.sh").chmod(0o700)
    (tmp_path / "link").symlink_to("tool.sh")
    loaded = load(file)
    archives = pack(loaded, results=tmp_path / "results")
    digests = {root: digest_of(archive) for root, archive in archives.items()}
    there = tmp_path / "there"
    there.mkdir()
    moved = unpack(portable(loaded), digests, archives, there)
    files = {str(path.relative_to(moved.folder)) for path in moved.folder.rglob("*") if path.is_file()}
    assert files == {"experiment.yaml", f"agent_of_{tmp_path.name}.py", "data/more.txt", "tool.sh"}
    assert (moved.folder / "tool.sh").read_text() == "tool.sh"
    assert [os.access(moved.folder / name, os.X_OK) for name in ("tool.sh", "data/more.txt")] == [True, False]

    with (tmp_path / "large").open("wb") as large:
        large.truncate(MOST_BYTES)
    with pytest.raises(BadOption, match="hold more than 256 MB, and each worker gets a copy"):
        pack(loaded, results=tmp_path / "results")
