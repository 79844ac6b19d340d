"""The Python way: `import karat`."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import karat
from karat.errors import BadExperiment, BadOption, OperatorError


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with three questions."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"q{n}", "question": f"{n} and {n}?", "answer": f"It is {2 * n}."} for n in (1, 2, 3)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def query(user_query: str, system_prompt: str, mcp_servers: object) -> str:
    return f"It is {2 * int(user_query.split(maxsplit=1)[0])}." if system_prompt == "Add." else "I do not know."


async def query_later(user_query: str, system_prompt: str, mcp_servers: object) -> karat.Reply:
    await asyncio.sleep(0)
    return karat.Reply(text=query(user_query, system_prompt, mcp_servers), dollars=0.25)


def sums(target: object = query, **keys: object) -> karat.Experiment:
    return karat.Experiment(
        **{
            "name": "sums",
            "dataset": {"path": "questions.jsonl", "id_key": "id"},
            "agent": {"type": "python", "target": target},
            "judge": {"type": "overlap"},
            "conditions": {"guess": {"system_prompt": "Guess."}, "add": {"system_prompt": "Add."}},
            "execution": {"num_repetitions": 2},
            **keys,
        }
    )


def test_the_names_are_sorted_and_few_and_each_resolves_once():
    assert karat.__all__ == sorted(karat.__all__)
    assert len(karat.__all__) <= 30
    for name in karat.__all__:
        assert getattr(karat, name) is getattr(karat, name)
        assert getattr(karat, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        karat.nothing  # noqa: B018 -- the look-up is what is tested


@pytest.mark.parametrize("target", [query, query_later], ids=["sync", "async"])
def test_a_function_is_an_agent(here, target):
    run = karat.run(sums(target))
    summary = karat.summarize(run)
    assert repr(run).startswith("RunFolder('results/sums-")
    assert (summary.samples, summary.total.ledger.scored, summary.status) == (3, 12, "done")
    best = {condition: summary.result(condition, "completeness") for condition in summary.conditions}
    assert best["add"].mean.value == 5.0
    assert best["guess"].mean.value == 1.0
    assert summary.total.cost.agent.known == (3.0 if target is query_later else 0.0)


def test_results_print_nicely(here):
    run = karat.run(sums())
    printed = str(karat.summarize(run))
    assert printed.splitlines()[1].startswith(f"sums {run.info.run} (done)")
    assert "factual_adherence (offline)" in printed
    assert max(map(len, printed.splitlines()[1:])) <= 100
    assert "guess → add" in str(karat.compare(run, "guess", "add"))
    assert "<table" in karat.summarize(run)._repr_html_()
    assert {row["condition"] for row in karat.summarize(run).table()} == {"guess", "add"}


def test_a_file_is_loaded_and_run_as_it_is(here):
    (here / "experiment.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {only: {}}\n",
        encoding="utf-8",
    )
    experiment = karat.load("experiment.yaml", settings=["execution.num_repetitions=1"])
    assert karat.summarize(karat.run(experiment)).total.ledger.planned == 3
    assert karat.summarize(karat.run("experiment.yaml", results="other")).total.ledger.planned == 9
    assert [path.parent.name for path in (here / "other").glob("*/run.json")]


def test_samples_and_conditions_select(here):
    few = karat.summarize(karat.run(sums(), samples=2, conditions=["add"]))
    assert (few.samples, few.conditions) == (2, ("add",))
    for chosen in ("q3", ["q3"]):
        assert [one.id for one in karat.run(sums(), samples=chosen).samples()] == ["q3"]
    with pytest.raises(karat.OperatorError, match="no sample is called 'q9'"):
        karat.run(sums(), samples=["q9"])


def test_resume_asks_only_what_is_missing(here):
    asked = []

    def remembered(user_query: str, system_prompt: str, mcp_servers: object) -> str:
        asked.append(user_query)
        return query(user_query, system_prompt, mcp_servers)

    experiment = sums(remembered)
    run = karat.run(experiment, samples=["q2"])
    again = karat.run(experiment, resume=run)
    assert again.path == run.path
    assert sorted(asked) == ["1 and 1?"] * 4 + ["2 and 2?"] * 4 + ["3 and 3?"] * 4


def test_a_failure_is_data_and_no_exception(here):
    def broken(user_query: str, system_prompt: str, mcp_servers: object) -> str:
        raise karat.AgentFault("tired", f"no more {user_query}")

    summary = karat.summarize(karat.run(sums(broken, execution={"num_repetitions": 1, "max_failures": 99})))
    assert summary.total.ledger.agent == 6
    assert summary.failures[0].kind == "tired"


def test_events_and_notices_are_handed_on(here, caplog):
    seen: list[object] = []
    karat.run(sums(), on_event=seen.append)
    assert sum(isinstance(event, karat.Answer) for event in seen) == 12
    assert sum(isinstance(event, karat.Score) for event in seen) == 12
    server = {"gone": {"type": "stdio", "command": "no-such-program-anywhere"}}
    conditions = {"only": {"mcp_servers": ["gone"]}}
    with caplog.at_level(logging.WARNING, logger="karat"):
        karat.run(sums(agent={"type": "floor"}, mcp_servers=server, conditions=conditions))
    assert [record.message for record in caplog.records if "'gone'" in record.message]


def test_in_a_running_loop_the_other_one_is_named(here):
    async def main() -> int:
        with pytest.raises(karat.OperatorError, match=r"use `await karat\.arun\(\.\.\.\)`"):
            karat.run(sums())
        return karat.summarize(await karat.arun(sums(), samples=1)).total.ledger.scored

    assert asyncio.run(main()) == 4


def test_cancelling_keeps_what_was_answered(here):
    hang = True

    async def slow_at_three(user_query: str, system_prompt: str, mcp_servers: object) -> str:
        if hang and user_query.startswith("3"):
            await asyncio.sleep(60)
        return query(user_query, system_prompt, mcp_servers)

    scores = 0

    def on_event(event: object) -> None:
        nonlocal scores
        scores += isinstance(event, karat.Score)

    async def main() -> None:
        running = asyncio.create_task(karat.arun(sums(slow_at_three), on_event=on_event))
        while scores < 8:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    run = karat.open("latest")
    assert karat.summarize(run).total.ledger.scored == 8
    hang = False
    assert karat.summarize(karat.run(sums(slow_at_three), resume=run)).total.ledger.scored == 12


def test_runs_are_opened_by_path_name_or_newest(here):
    first = karat.run(sums())
    second = karat.run(sums())
    for name in (first, first.path, str(first.path), first.path.name, first.info.run, first.info.run[:6]):
        assert karat.open(name).path.name == first.path.name
    assert karat.open("latest").path == second.path
    assert karat.open(here / "results").path.name == second.path.name
    with pytest.raises(karat.OperatorError, match="no run in results has that name"):
        karat.open("nothing")


def test_two_runs_or_two_conditions_are_compared(here):
    one, two = karat.run(sums()), karat.run(sums())
    assert {row["verdict"] for row in karat.compare(one, two).table()} == {"no difference shown"}
    with pytest.raises(karat.OperatorError, match="name a second one"):
        karat.compare(one, "add")
    with pytest.raises(karat.OperatorError, match="did you mean 'add'"):
        karat.compare(one, "guess", "ad")


def test_ctrl_c_lets_what_is_in_flight_finish_and_then_interrupts(here):
    script = """
        import os, signal, threading, time, karat
        def query(user_query, system_prompt, mcp_servers):
            if user_query.startswith("1"):
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
            return "yes"
        experiment = karat.Experiment(
            dataset={"path": "questions.jsonl"}, agent={"type": "python", "target": query}, judge={"type": "overlap"},
            conditions={"a": {}}, execution={"num_repetitions": 1, "max_concurrent": 1})
        try:
            karat.run(experiment)
        except KeyboardInterrupt as stop:
            print(stop)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "continue with karat.run(..., resume=" in done.stdout, done.stderr
    assert karat.summarize("latest").total.ledger.scored == 1


@pytest.mark.slow
def test_what_cannot_be_run_is_refused_before_anything_is_made(here, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(karat.OperatorError, match="did you mean 'question_key'"):
        sums(dataset={"path": "questions.jsonl", "questoin_key": "x"})
    with pytest.raises(karat.OperatorError, match="ANTHROPIC_API_KEY"):
        karat.run(sums(judge={"model": "anthropic:claude-opus-4-5"}))
    assert not (here / "results").exists()


def test_what_is_no_experiment_and_no_run_is_said(here: Path) -> None:
    with pytest.raises(BadOption, match="expected an Experiment or the path of an experiment file, got 5"):
        karat.run(5)  # type: ignore[arg-type]  # what somebody may try
    with pytest.raises(BadOption, match="expected a run, its folder or the beginning of its name, got 5"):
        karat.open(5)  # type: ignore[arg-type]  # what somebody may try


@pytest.mark.parametrize(
    "path",
    [
        "a" * 300,
        f"{'a' * 300}.yaml",
        "/".join(["a" * 200] * 30),
        "a\0b.yaml",
        "\ud800.yaml",
        "loop",
        "loop/x.yaml",
        "file/x",
    ],
    ids=lambda path: ascii(path[:12]),
)
@pytest.mark.parametrize(
    "call",
    [
        karat.load,
        lambda path: karat.load("sums.yaml", env_file=path),
        karat.run,
        lambda path: karat.run("sums.yaml", results=path),
        lambda path: karat.run("sums.yaml", resume=path),
        karat.open,
        lambda path: karat.open("latest", results=path),
        karat.summarize,
        lambda path: karat.query(path, "SELECT 1"),
    ],
    ids=["load", "env_file", "run", "results", "resume", "open", "open results", "summarize", "query"],
)
@pytest.mark.needs_package("karat_query", cases="query")
def test_no_path_raises_anything_but_an_operator_error(here: Path, call: Callable[[str], object], path: str) -> None:
    (here / "loop").symlink_to("loop")
    (here / "file").write_text("", encoding="utf-8")
    (here / "sums.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n",
        encoding="utf-8",
    )
    with pytest.raises(OperatorError):
        call(path)


@pytest.mark.parametrize("kind", ["golden", "conversation", "study"])
def test_a_path_of_a_dataset_that_is_too_long_is_a_fault_at_its_place(here: Path, kind: str) -> None:
    (here / "long.yaml").write_text(
        f"dataset: {{kind: {kind}, path: {'a' * 300}}}\nagent: {{type: floor}}\nconditions: {{a: {{}}}}\n",
        encoding="utf-8",
    )
    with pytest.raises(BadExperiment) as caught:
        karat.load("long.yaml")
    (fault,) = [fault for fault in caught.value.faults if fault.place == "dataset.path"]
    assert "File name too long" in fault.message
