"""Agents, scorers and servers of a run: how they are made, what is said of them before it, how they are closed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.execution.parts import Bare

from karat.analysis.thresholds import Threshold
from karat.config import Experiment, Retry, load
from karat.errors import BadExperiment, BadOption, BadPlugin
from karat.execution import Outcome
from karat.execution.limits import RunStatus
from karat.execution.plan import Plan, plan
from karat.execution.scoring import ScorerInUse, ScorerMemory
from karat.execution.setup import (
    agent_notes,
    agents_taken,
    announce_agents,
    baseline_first,
    build_agents,
    build_scorers,
    close_agents,
    experiment_scorers,
    opened_scorers,
    preflight,
    refuse_unfit_samples,
    refuse_unknown_gates,
)
from karat.journal import Choice, ServerInfo
from karat.mcp import ServerFault, ToolList
from karat.mcp.preflight import Tool
from karat.records import AgentSpec, Answer, Condition, McpServer, Sample, ScorerSpec, Turn
from karat.scorers import ScorerSetting

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
    shared: Any = Bare(**agent)
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
    agents: Any = {name: Bare(taken=taken) for name, taken in (("a", "by run()"), ("b", "by run()"))}
    agents["c"] = Bare(allow_golden=True)
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
    assert str(bad.value).startswith(f"{loaded.path}: 2 faults\n")
    without_a_file = Experiment(
        dataset={"path": "questions.jsonl"},
        folder=loaded.folder,
        agent={"type": "floor"},
        conditions={"a": {}},
        scorers=["equals"],
    )
    with pytest.raises(BadExperiment, match=r"^experiment: 2 faults\n"):
        refuse_unknown_gates(without_a_file, scorers, given[:2])
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


SCORERS = """
from karat.records import Metric

class Plain:
    def score(self, sample, answer):
        return True

class Waiting(Plain):
    metrics = (Metric(name="right", low=0, high=1),)
    async def score(self, sample, answer):
        return True

class Streaming:
    metrics = (Metric(name="x", low=0, high=1), Metric(name="y", low=0, high=1))
    async def score(self, sample, answer, *, done):
        yield True

class Blocking(Plain):
    blocking = True
    metrics = (Metric(name="length"),)

class Judge(Plain):
    offline = False
    rubric_name = "strict"
    rubric_digest = "r1"
    provenance = {"model": "m"}
    compared_with = "a"

class Setting(Plain):
    def __init__(self, setting):
        self.setting = setting
"""


@pytest.fixture
def module(tmp_path: Path) -> str:
    name = f"scorers_of_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(SCORERS)
    return name


def built(folder: Path, *specs: ScorerSpec) -> tuple[ScorerInUse, ...]:
    return build_scorers(specs, ScorerSetting(folder=folder, name=""))


@pytest.mark.parametrize(
    ("name", "metrics", "flag", "waits", "blocking", "streams"),
    [
        ("Plain", (), "mine", False, False, False),
        ("Waiting", ("right",), "right", True, False, False),
        ("Streaming", ("x", "y"), None, True, False, True),
        ("Blocking", ("length",), None, True, True, False),
    ],
)
def test_how_a_scorer_is_called_follows_from_what_it_is(
    tmp_path: Path, module: str, name: str, metrics: tuple[str, ...], flag: str | None,
    waits: bool, blocking: bool, streams: bool
) -> None:  # fmt: skip
    (used,) = built(tmp_path, ScorerSpec(type=f"{module}:{name}", name="mine"))
    assert type(used.scorer).__name__ == name
    assert tuple(metric.name for metric in used.metrics) == metrics
    assert tuple(metric.name for metric in used.info.metrics) == (metrics or ("mine",))
    assert (used.flag, used.waits, used.blocking, used.streams) == (flag, waits, blocking, streams)
    assert (used.late, used.info.offline, used.info.name, used.info.type) == (False, True, "mine", f"{module}:{name}")


def test_what_a_judge_says_of_itself_is_kept(tmp_path: Path, module: str) -> None:
    (used,) = built(tmp_path, ScorerSpec(type=f"{module}:Judge", name="judge", options={}))
    info = used.info
    assert (info.offline, info.rubric, info.rubric_digest) == (False, "strict", "r1")
    assert (info.provenance, info.compared_with, used.late) == ({"model": "m"}, "a", True)
    (plain,) = built(tmp_path, ScorerSpec(type=f"{module}:Plain", name="p"))
    assert (plain.info.rubric, plain.info.rubric_digest, plain.info.provenance) == (None, None, {})


def test_a_scoring_is_another_one_where_its_scores_may_be_others(tmp_path: Path) -> None:
    def scoring(kind: str, name: str = "form", **options: Any) -> str:
        (used,) = built(tmp_path, ScorerSpec(type=kind, name=name, options=options))
        assert used.info.options == options
        return used.info.scoring

    first = scoring("regex", pattern="a")
    assert first == scoring("regex", pattern="a")
    assert len(first) == 16
    assert len({first, scoring("regex", pattern="b"), scoring("regex", "other", pattern="a"), scoring("equals")}) == 4


def test_a_scoring_covers_the_files_that_its_options_point_at(tmp_path: Path) -> None:
    def scoring(fingerprint: str) -> str:
        code = f"class Marked:\n    fingerprint = {fingerprint!r}\n    def score(self, sample, answer): return True\n"
        folder = tmp_path / fingerprint
        folder.mkdir(exist_ok=True)
        (folder / "marked_by_files.py").write_text(code)
        (used,) = built(folder, ScorerSpec(type="marked_by_files:Marked", name="m"))
        return used.info.scoring

    assert scoring("one") != scoring("two")
    assert scoring("one") == scoring("one")


def test_a_scorer_of_an_experiment_is_given_what_it_may_ask_of_the_run(
    experiment: Write, tmp_path: Path, module: str
) -> None:
    file = experiment(
        agent={"type": "floor"},
        scorers=[{"type": f"{module}:Setting", "name": "mine"}],
        baseline="b",
        prices={"openai:x": {"input": 1, "output": 2}},
    )
    loaded = load(file, env={"KEY": "value"})
    memory = ScorerMemory()
    (used,) = experiment_scorers(loaded, memory)
    setting = used.scorer.setting
    assert (setting.folder, setting.name, setting.conditions) == (tmp_path, "mine", ["b", "a"])
    assert setting.env == {"KEY": "value"}
    assert setting.prices == loaded.prices
    assert setting.recall == memory.recall
    assert setting.answer_of == memory.answer_of
    assert setting.workspace_of == memory.workspaces.of
    (alone,) = experiment_scorers(loaded)
    assert alone.scorer.setting.recall("key", "trial") is None


AGENTS = """
BUILT = []

class Agent:
    def __init__(self, setting):
        BUILT.append(setting)
    async def ask(self, condition, sample, turn, history):
        raise NotImplementedError
"""


def test_an_agent_is_given_the_experiments_folder_servers_secrets_and_prices(experiment: Write, tmp_path: Path) -> None:
    name = f"agent_of_{tmp_path.name.replace('-', '_')}"
    prices = {"openai:x": {"input": 1, "output": 2}}
    file = experiment(AGENTS, agent={"type": f"{name}:Agent"}, secrets=["KEY"], prices=prices)
    loaded = load(file, env={"KEY": "correct-horse-battery"})
    toolbox: Any = object()
    agents = build_agents(loaded, plan(loaded, loaded.load_dataset()), toolbox)
    assert [*agents] == ["a", "b"]
    assert agents["a"] is agents["b"]
    (setting,) = sys.modules[name].BUILT
    assert (setting.folder, setting.toolbox, setting.env) == (tmp_path, toolbox, {"KEY": "correct-horse-battery"})
    assert setting.prices == loaded.prices
    assert setting.redact("correct-horse-battery") == "${KEY}"


TWO_AGENTS = """
class One:
    async def ask(self, condition, sample, turn, history):
        raise NotImplementedError

class Two(One):
    pass
"""


def first(question: str) -> str:
    return "first"


def second(question: str) -> str:
    return "second"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (("floor", {"obey_length": True}), ("floor", {"obey_length": True}), True),
        (("floor", {"obey_length": True}), ("floor", {"obey_length": False}), False),
        (("floor", {}), ("floor", {"obey_length": True}), False),
        (("{module}:One", {}), ("{module}:One", {}), True),
        (("{module}:One", {}), ("{module}:Two", {}), False),
        (("floor", {"obey_length": True}), ("floor", {"obey_length": 1}), False),
        (("python", {"target": first}), ("python", {"target": first}), True),
        (("python", {"target": first}), ("python", {"target": second}), False),
    ],
)
def test_conditions_share_an_agent_where_every_option_is_equal_and_no_function_is_another(
    experiment: Write, tmp_path: Path, one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]], alike: bool
) -> None:
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    loaded = load(experiment(TWO_AGENTS, agent={"type": "floor"}))
    conditions = []
    for name, (kind, options) in (("a", one), ("b", other)):
        spec = AgentSpec(type=kind.format(module=module), options=options, digest="same")
        conditions.append(Condition(name=name, position=0, digest=name, agent=spec))
    agents = build_agents(loaded, Plan([], conditions, 1), TOOLBOX)
    assert (agents["a"] is agents["b"]) is alike
    again = build_agents(loaded, Plan([], conditions[1:], 1), TOOLBOX, known=[(conditions[0].agent, agents["a"])])
    assert (again["b"] is agents["a"]) is alike, "one that is built already is taken as well"


def test_a_plug_in_that_is_no_agent_is_refused_by_its_own_name(experiment: Write, tmp_path: Path) -> None:
    name = f"agent_of_{tmp_path.name.replace('-', '_')}"
    loaded = load(experiment("class Nothing:\n    pass\n", agent={"type": f"{name}:Nothing"}))
    with pytest.raises(BadPlugin) as refused:
        build_agents(loaded, plan(loaded, loaded.load_dataset()), TOOLBOX)
    assert str(refused.value) == "Nothing: an agent needs a method 'session' or 'ask'"


class Servers:
    """A toolbox whose servers fail as told, and are tried again as it is told."""

    def __init__(self, **outcomes: ToolList | ServerFault) -> None:
        self.outcomes = outcomes
        self.waits: list[float | None] = []

    async def preflight(self, again: Callable[..., float | None]) -> dict[str, ToolList | ServerFault]:
        for name, outcome in self.outcomes.items():
            if isinstance(outcome, ServerFault):
                self.waits += [again(server(name), outcome, attempt) for attempt in (1, 2, 3, 9)]
        return self.outcomes


TOOLBOX: Any = Servers()


def server(name: str) -> McpServer:
    return McpServer(name=name, type="stdio", command="x", digest=f"digest of {name}", init_timeout_seconds=7.5)


def served(name: str, *servers: str) -> Condition:
    given = tuple(map(server, servers))
    return Condition(name=name, position=0, digest=name, agent=AgentSpec(type="t"), mcp_servers=given)


def before(servers: Servers, *conditions: Condition, retry: Retry | None = None) -> tuple[Any, Any, list[str]]:
    status = RunStatus()
    retry = retry or Retry(max_attempts=3, initial_backoff_seconds=0)
    toolbox: Any = servers
    infos, broken = asyncio.run(preflight(toolbox, Plan([], conditions, 1), status, retry=retry))
    return infos, broken, status.notices


def test_what_each_server_offers_is_kept_and_a_broken_one_costs_the_conditions_that_need_it() -> None:
    tools = tuple(Tool(server="good", name=name, description="", input_schema={}) for name in ("one", "two"))
    good = ToolList(server="good", tools=tools, digest="0", protocol="2025-06-18", left_out={"odd": "no schema"})
    fault = ServerFault(server="bad", kind="mcp_start", message="no licence\nat all")
    conditions = [served("plain"), served("good", "good"), served("bad", "bad"), served("both", "good", "bad")]
    infos, broken, notices = before(Servers(good=good, bad=fault), *conditions)
    assert infos == (
        ServerInfo(name="good", digest="digest of good", tools=("one", "two"), tools_digest="0",
                   protocol="2025-06-18", left_out={"odd": "no schema"}),
        ServerInfo(name="bad", digest="digest of bad", fault="no licence\nat all"),
    )  # fmt: skip
    assert [*broken] == ["bad", "both"]
    assert {(error.cls, error.kind, error.message, error.retriable) for error in broken.values()} == {
        ("infrastructure", "mcp_start", "no licence\nat all", True)
    }
    assert notices == ["these conditions are not run: bad, both. no licence\nat all"]


def test_without_servers_nothing_is_lost() -> None:
    assert before(Servers(), served("plain")) == ((), {}, [])


@pytest.mark.parametrize(
    ("fault", "attempts", "waits"),
    [
        ({"retriable": True}, 3, [0.0, 0.0, None, None]),
        ({"retriable": True, "retry_after": 4.0}, 3, [4.0, 4.0, None, None]),
        ({"retriable": False}, 3, [None] * 4),
        ({"retriable": True}, 1, [None] * 4),
        ({"retriable": True, "kind": "mcp_unreachable"}, 3, [0.0] * 4),
        ({"retriable": True, "kind": "mcp_unreachable"}, 1, [None] * 4),
        ({"retriable": False, "kind": "mcp_unreachable"}, 2, [None] * 4),
    ],
)
def test_a_server_is_tried_again_as_trials_are_and_one_that_is_not_up_yet_for_as_long_as_it_may_take(
    fault: dict[str, Any], attempts: int, waits: list[float | None]
) -> None:
    told = ServerFault(**{"server": "docs", "kind": "mcp_start", "message": "it refuses", **fault})
    servers = Servers(docs=told)
    retry = Retry(max_attempts=attempts, initial_backoff_seconds=0)
    _, _, notices = before(servers, served("c", "docs"), retry=retry)
    assert servers.waits == waits
    waiting = "it refuses; karat keeps trying for 7.5 s (init_timeout_seconds)"
    starts = told.kind == "mcp_unreachable" and attempts > 1
    assert notices == [*([waiting] if starts else []), "these conditions are not run: c. it refuses"]


def test_a_scorer_that_cannot_be_opened_ends_the_run_and_the_others_are_closed() -> None:
    calls: list[str] = []

    class Opened:
        def __init__(self, name: str, refuses: bool = False) -> None:
            self.name, self.refuses = name, refuses

        def open(self) -> None:
            calls.append(f"open {self.name}")
            if self.refuses:
                raise BadOption("judge", "no key")

        async def aclose(self) -> None:
            calls.append(f"close {self.name}")
            raise ValueError(self.name)

    used: Any = [SimpleNamespace(scorer=Opened("one")), SimpleNamespace(scorer=Opened("two", refuses=True))]
    said: list[str] = []

    async def go() -> None:
        async with opened_scorers(used, said.append):
            calls.append("never")

    with pytest.raises(BadOption, match="no key"):
        asyncio.run(go())
    assert calls == ["open one", "open two", "close one", "close two"]
    assert said == [f"an agent or scorer did not close well: ValueError: {name}" for name in ("one", "two")]
