"""What is said of agents and scorers before a run, and how they are closed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from karat.analysis.thresholds import Threshold
from karat.config import load
from karat.errors import BadExperiment, BadPlugin
from karat.execution import Outcome
from karat.execution.limits import RunStatus
from karat.execution.plan import Plan
from karat.execution.setup import (
    agent_notes,
    agents_taken,
    announce_agents,
    baseline_first,
    close_agents,
    experiment_scorers,
    opened_scorers,
    refuse_unfit_samples,
    refuse_unknown_gates,
)
from karat.journal import Choice
from karat.records import AgentSpec, Answer, Condition, McpServer, Sample, Turn

Write = Callable[..., Path]
Run = Callable[..., Outcome]


def condition(name: str, prompt: str | None = None, *servers: str) -> Condition:
    given = tuple(McpServer(name=server, type="stdio", digest=server, command="x") for server in servers)
    return Condition(
        name=name, position=0, digest=name, agent=AgentSpec(type="t"), system_prompt=prompt, mcp_servers=given
    )


def notes(*conditions: Condition, samples: int = 3, **agent: Any) -> list[str]:
    """Of one agent that all conditions share."""
    listed = [Sample(id=str(n), position=n, digest="d", turns=(Turn(question=f"q{n}"),)) for n in range(samples)]
    shared: Any = SimpleNamespace(**agent)
    return agent_notes(Plan(listed, conditions, 1), {one.name: shared for one in conditions})


def test_what_an_agent_does_not_take_is_named_and_first_the_conditions_that_cannot_differ():
    plain, other, served = condition("a", "A"), condition("b", "B"), condition("c", "A", "docs")
    assert notes(plain, other, served, takes=["system_prompt", "mcp_servers"]) == []
    assert notes(plain, other, served) == [], "what it takes is not known"
    assert notes(plain, other, takes=[], shown="query()") == [
        "conditions 'a', 'b' cannot differ: they differ in system_prompt alone, and query() takes no system_prompt"
    ]
    (both,) = notes(other, served, takes=[])
    assert both == (
        "conditions 'b', 'c' cannot differ: they differ in system_prompt and mcp_servers alone, and the agent takes no "
        "system_prompt or mcp_servers"
    )
    assert notes(plain, other, served, takes=["system_prompt"]) == [
        "conditions 'a', 'c' cannot differ: they differ in mcp_servers alone, and the agent takes no mcp_servers"
    ]
    assert notes(plain, takes=["mcp_servers"]) == ["the agent takes no system_prompt (set by 'a')"]
    assert notes(condition("a"), condition("b"), takes=[]) == [], "nothing is set"
    assert notes(plain, other, takes=["condition"]) == [], "it may do with the name what it likes"


def test_an_agent_that_may_read_golden_answers_says_so():
    assert notes(condition("a"), shown="query()", allow_golden=True) == [
        "query() may read the golden answers (allow_golden)"
    ]


def test_samples_that_cannot_be_asked_are_counted_and_the_first_is_named():
    def check(condition: Condition, sample: Sample) -> None:
        if condition.name == "b" and sample.id != "0":
            raise ValueError(f"no image for {sample.id}")

    assert notes(condition("a"), condition("b"), check_sample=check) == [
        "2 of 3 samples cannot be asked under 'b', first '1': no image for 1"
    ]


def test_what_is_called_of_each_agent_is_said_once():
    agents: Any = {name: SimpleNamespace(taken=taken) for name, taken in (("a", "by run()"), ("b", "by run()"))}
    agents["c"] = SimpleNamespace(allow_golden=True)
    assert agents_taken(agents) == ["by run()"]
    status = RunStatus()
    remarks: list[str] = []
    status.on_remark = remarks.append
    announce_agents(Plan([], [condition(name) for name in agents], 1), agents, status)
    assert remarks == ["the agent is asked by run()"]
    assert status.notices == ["the agent may read the golden answers (allow_golden)"]


def test_the_baseline_is_the_first_condition():
    names = ["a", "b", "c"]
    assert baseline_first(names, {}) == names
    assert baseline_first(names, {"baseline": Choice(value="b", source="file")}) == ["b", "a", "c"]


def test_thresholds_on_names_that_the_run_will_not_have_are_refused_together(experiment: Write):
    loaded = load(experiment("", agent={"type": "floor"}, gate={"min": {"equals": 0.5, "a.equals": 0.1}}))
    scorers = experiment_scorers(loaded)
    refuse_unknown_gates(loaded, scorers)
    given = [
        Threshold(name="equal", bound="min", value=1.0),
        Threshold(name="d.equals", bound="max", value=1.0),
        Threshold(name="b.equals", bound="max_drop", value=0.0),
    ]
    with pytest.raises(BadExperiment) as bad:
        refuse_unknown_gates(loaded, scorers, given)
    assert [fault.place for fault in bad.value.faults] == ["gate.min.equal", "gate.max.d.equals"]
    assert bad.value.faults[1].message == "'d.equals': no condition is called 'd' (known: a, b)"


def test_a_scorer_may_refuse_the_samples():
    seen: list[Any] = []
    used: Any = [SimpleNamespace(scorer=object()), SimpleNamespace(scorer=SimpleNamespace(check_samples=seen.append))]
    refuse_unfit_samples(used, ["sample"])  # type: ignore[list-item]
    assert seen == [["sample"]]


class Closing:
    """An agent, or a scorer, that counts how often it is opened and closed."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.calls: list[str] = []
        self.error = error

    def open(self) -> None:
        self.calls.append("open")

    async def aclose(self) -> None:
        self.calls.append("close")
        if self.error is not None:
            raise self.error


def test_each_agent_is_closed_once_and_one_that_fails_keeps_no_other_open():
    shared, broken, last = Closing(), Closing(ValueError("lost")), Closing()
    agents: Any = {"a": shared, "b": shared, "c": broken, "d": last}
    said: list[str] = []
    asyncio.run(close_agents(agents, said.append))
    assert (shared.calls, broken.calls, last.calls) == (["close"], ["close"], ["close"])
    assert said == ["an agent or scorer did not close well: ValueError: lost"]
    asyncio.run(close_agents(agents))


def test_a_stop_while_agents_are_closed_is_a_stop():
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(close_agents({"a": Closing(KeyboardInterrupt())}))  # type: ignore[dict-item]


def test_scorers_are_open_during_the_block_and_closed_after_an_error():
    counting = Closing()
    used: Any = [SimpleNamespace(scorer=counting), SimpleNamespace(scorer=object())]

    async def go() -> None:
        async with opened_scorers(used):
            assert counting.calls == ["open"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(go())
    assert counting.calls == ["open", "close"]


def test_conditions_with_equal_options_share_an_agent(experiment: Write, run: Run, tmp_path: Path):
    code = """
made = []
class Agent:
    def __init__(self, options=None):
        made.append(self)
    async def ask(self, condition, sample, turn, history):
        from karat import Reply
        return Reply(text=str(len(made)))
"""
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    outcome = run(experiment(code, agent={"type": f"{module}:Agent"}, questions=1))
    assert {answer.text for answer in outcome.run.events_of(Answer)} == {"1"}


def test_a_target_that_is_not_there_names_its_place_in_the_file(experiment: Write, run: Run, tmp_path: Path):
    conditions = {"a": {}, "b": {"agent": {"target": "no_such_module:query"}}}
    file = experiment("def query(question): return question", conditions=conditions)
    with pytest.raises(BadPlugin, match=r"conditions\.b\.agent\.target \(line \d+, column \d+\): .*no_such_module"):
        run(file)
