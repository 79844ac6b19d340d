"""An agent of any protocol, in the form in which trials call it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from karat.agents import as_agent, turns_from, without_golden
from karat.errors import BadPlugin
from karat.kinds import of_sample
from karat.records import AgentSpec, Condition, Criterion, Reply, Sample, Trial, Turn


class Notes:
    async def ask(self, condition: object, sample: object, turn: object, history: object) -> None: ...

    def source_notes(self, samples: object, *, conditions: object, repetitions: int) -> Mapping[str, str]:
        return {"faults": f"{repetitions} rows are missing"}


class Neither:
    async def ask(self, condition: object, sample: object, turn: object, history: object) -> None: ...


@pytest.mark.parametrize(
    ("agent", "notes"),
    [(Notes(), {"faults": "2 rows are missing"}), (Neither(), {})],
    ids=["some", "none"],
)
def test_what_an_agent_says_of_its_source_is_found(agent, notes):
    assert as_agent(agent).source_notes((), conditions=["a"], repetitions=2) == notes


def trial(*turns: Turn) -> Trial:
    sample = Sample(id="s", position=0, digest="d", turns=turns, criteria=(Criterion(text="polite"),))
    condition = Condition(name="c", position=0, digest="d", agent=AgentSpec(type="t"))
    return Trial(id="0" * 24, index=0, sample=sample, condition=condition, repetition=0, seed=7)


def said(agent: object, asked: Trial, *, first: int = 0, turns: int | None = None) -> list[str]:
    async def go() -> list[str]:
        async with as_agent(agent).session(asked, first) as session:
            mine = turns_from(asked.sample, first)[:turns]
            return [(await session.ask(asked.sample.turns[number])).text for number in mine]

    return asyncio.run(go())


class Counting:
    """Says what it is told besides the question."""

    def ask(
        self, condition: Condition, sample: Sample, turn: Turn, history: Any, *, trial: Trial, number: int
    ) -> Reply:
        return Reply(text=f"{number} {turn.question} {trial.seed} after {[reply.text[:1] for _, reply in history]}")


def test_an_agent_without_sessions_gets_the_turns_before_and_what_it_names() -> None:
    asked = trial(Turn(question="p"), Turn(question="q"), Turn(question="r"))
    assert said(Counting(), asked) == ["0 p 7 after []", "1 q 7 after ['0']", "2 r 7 after ['0', '1']"]
    assert said(Counting(), asked, first=1) == ["1 q 7 after []", "2 r 7 after ['1']"]


def test_a_member_of_a_group_is_asked_its_own_turns() -> None:
    seats = trial(*(Turn(question=f"q{at}", seat=at % 2) for at in range(4)))
    assert said(Counting(), seats, first=1) == ["1 q1 7 after []", "3 q3 7 after ['1']"]


def test_a_session_is_restored_with_the_history_of_an_earlier_attempt() -> None:
    asked = trial(Turn(question="p"), Turn(question="q"))

    async def go() -> str:
        async with as_agent(Counting()).session(asked) as session:
            session.restore([(asked.sample.turns[0], Reply(text="kept"))])  # type: ignore[attr-defined]
            return (await session.ask(asked.sample.turns[1])).text

    assert asyncio.run(go()) == "1 q 7 after ['k']"


class Opening:
    """An agent with sessions that takes only what it names."""

    def __init__(self) -> None:
        self.opened: list[Any] = []

    @contextlib.asynccontextmanager
    async def session(self, condition: Condition, sample: Sample, first: int) -> AsyncIterator[Any]:
        self.opened.append((condition.name, sample.id, first))
        yield SimpleNamespace(ask=self.ask)

    async def ask(self, turn: Turn) -> Reply:
        return Reply(text=turn.question)


def test_a_session_is_opened_with_what_it_names() -> None:
    agent = Opening()
    assert said(agent, trial(Turn(question="p"), Turn(question="q")), first=1) == ["q"]
    assert agent.opened == [("c", "s", 1)]


class NoMethod:
    pass


class TooMany:
    async def ask(self, condition: object, sample: object, turn: object, history: object, mood: object) -> None: ...


class TooFew:
    def session(self, condition: object) -> None: ...


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        (NoMethod(), r"NoMethod: an agent needs a method 'session' or 'ask'"),
        (
            TooMany(),
            r"TooMany\.ask.*cannot be called by karat: .*'mood'; expected ask\(condition, sample, turn, history\)",
        ),
        (TooFew(), r"TooFew\.session.*cannot be called by karat: .*; expected session\(condition, sample\)"),
    ],
)
def test_what_karat_cannot_call_is_no_agent(agent: object, says: str) -> None:
    with pytest.raises(BadPlugin, match=says):
        as_agent(agent)


def test_an_agent_is_closed_as_it_can_be() -> None:
    class Closing(Counting):
        closed = 0

        def aclose(self) -> None:
            self.closed += 1

    class Waiting(Counting):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    closing, waiting = Closing(), Waiting()
    for agent in (closing, waiting, Counting()):
        asyncio.run(as_agent(agent).aclose())
    assert (closing.closed, waiting.closed) == (1, 1)


def test_what_an_agent_does_not_say_of_itself_is_not_claimed() -> None:
    plain: Any = as_agent(Neither())
    assert (plain.source, plain.versions, plain.unpriced, plain.takes, plain.changes, plain.unread) == (
        {},
        {},
        (),
        None,
        (),
        (),
    )
    flags = ("allow_golden", "bounds_replies", "enters_workspace", "reports_tool_calls", "measures_calls")
    assert [getattr(plain, flag) for flag in flags] == [False] * 5
    assert (plain.shown, plain.taken) == ("Neither", "")
    assert (plain.never_made, plain.recorded_reply, plain.check_sample) == (None, None, None)

    class Telling(Neither):
        allow_golden = bounds_replies = enters_workspace = reports_tool_calls = measures_calls = 1
        shown, taken, takes, unread = "query()", "by run()", ["system_prompt"], {"extra"}

    telling: Any = as_agent(Telling())
    assert [getattr(telling, flag) for flag in flags] == [True] * 5
    assert (telling.shown, telling.taken, telling.takes, telling.unread) == (
        "query()",
        "by run()",
        ["system_prompt"],
        {"extra"},
    )


def test_golden_answers_criteria_and_what_follows_from_them_are_removed() -> None:
    whole = trial(Turn(question="q", golden="g", detail={"answers": ["g", "h"]})).sample
    bare = without_golden(whole, of_sample(whole))
    assert (bare.turns, bare.criteria) == ((Turn(question="q"),), ())
    assert (bare.id, bare.digest) == (whole.id, whole.digest)
