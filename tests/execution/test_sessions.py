"""Which session a turn is asked in, and which of them get the history of a conversation that goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.execution.parts import Bare

from karat.errors import AgentFault, LimitReached
from karat.execution.trial import LONGEST_REPLY, Sessions, checked_reply, question_for
from karat.kinds import Kind
from karat.records import NOT_ASKED, AgentSpec, Condition, Reply, Sample, ToolCall, Trial, Turn

CONDITION = Condition(name="c", position=0, digest="d", agent=AgentSpec(type="t"), system_prompt="p")


class Remembering:
    """A session, and what it was told."""

    def __init__(self, first: int, trial: Trial, *, resumable: bool) -> None:
        self.first, self.trial = first, trial
        self.history: list[tuple[str, str]] = []
        if resumable:
            self.restore = self._restore

    def _restore(self, history: Sequence[tuple[Turn, Reply]]) -> Any:
        self.history = [(turn.question, reply.text) for turn, reply in history]
        return asyncio.sleep(0) if self.first else None


class Agent(Bare):
    def __init__(self, resumable: bool = True) -> None:
        super().__init__()
        self.resumable = resumable
        self.opened: list[Remembering] = []
        self.closed: list[int] = []

    @asynccontextmanager
    async def session(self, trial: Trial, first: int = 0, workspace: object = None) -> AsyncGenerator[Remembering]:
        session = Remembering(first, trial, resumable=self.resumable)
        self.opened.append(session)
        try:
            yield session
        finally:
            self.closed.append(first)


def trial(*seats: int | None, apart: bool = False, seed: int = 7, **turn: Any) -> Trial:
    turns = tuple(Turn(question=f"q{number}", seat=seat, **turn) for number, seat in enumerate(seats))
    sample = Sample(id="s", position=0, digest="d", turns=turns, apart=apart)
    return Trial(id="t", index=0, sample=sample, condition=CONDITION, repetition=0, seed=seed)


def asked(agent: Any, trial: Trial, numbers: Sequence[int], kept: Sequence[Reply] = ()) -> Any:
    async def go() -> Any:
        async with Sessions(agent, trial, Kind) as sessions:
            restored = await sessions.restore(kept)
            return restored, [await sessions.for_turn(number) for number in numbers]

    return asyncio.run(go())


def replies(count: int) -> list[Reply]:
    return [Reply(text=f"r{number}") for number in range(count)]


def test_a_conversation_has_one_session_and_each_member_of_a_group_its_own() -> None:
    agent = Agent()
    _, (one, two) = asked(agent, trial(None, None), [0, 1])
    assert (one, one.first, agent.closed) == (two, 0, [0])
    group = Agent()
    _, sessions = asked(group, trial(3, 1, 3, 1), [0, 1, 2, 3])
    assert [session.first for session in sessions] == [0, 1, 0, 1]
    assert group.closed == [1, 0], "the last one first"
    stride = 0x9E3779B9
    assert [session.trial.seed for session in group.opened] == [(7 + seat * stride) % 2**32 for seat in (3, 1)]
    assert agent.opened[0].trial.seed == 7


def test_turns_that_are_asked_apart_have_a_session_at_a_time() -> None:
    agent = Agent()
    kept = replies(1)
    restored, sessions = asked(agent, trial(None, None, None, apart=True), [1, 2], kept)
    assert restored is kept
    assert [(session.first, session.history) for session in sessions] == [(1, []), (2, [])]
    assert agent.closed == [1, 2]


def test_every_session_with_a_question_left_gets_its_own_history() -> None:
    agent = Agent()
    kept = replies(3)
    restored, _ = asked(agent, trial(0, 1, 2, 1, 0), [], kept)
    assert restored is kept
    assert [(session.first, session.history) for session in agent.opened] == [(1, [("q1", "r1")]), (0, [("q0", "r0")])]


def test_a_session_that_has_said_nothing_yet_has_no_history() -> None:
    agent = Agent()
    restored, _ = asked(agent, trial(0, 0, 1), [], replies(1))
    assert restored == replies(1)
    assert [(session.first, session.history) for session in agent.opened] == [(0, [("q0", "r0")])]


def test_a_conversation_begins_anew_where_a_session_cannot_be_told() -> None:
    agent = Agent(resumable=False)
    restored, _ = asked(agent, trial(None, None), [], replies(1))
    assert restored == ()


def test_the_prompt_of_a_kind_is_that_of_each_seat() -> None:
    class Seated(Kind):
        prompt = staticmethod(lambda condition, sample, seat: f"{condition.system_prompt} {seat}")

    agent: Any = Agent()

    async def go() -> None:
        async with Sessions(agent, trial(0, 1), Seated) as sessions:
            for number in (0, 1):
                await sessions.for_turn(number)

    asyncio.run(go())
    assert [session.trial.condition.system_prompt for session in agent.opened] == ["p 0", "p 1"]


def test_an_open_turn_is_asked_as_its_kind_says() -> None:
    one = trial(None, asked="other words", open=True).sample
    assert question_for(one, 0, [NOT_ASKED]) == Turn(question="q0", asked="other words", open=True)


def test_an_error_of_one_session_closes_the_others() -> None:
    agent: Any = Agent()

    async def go() -> None:
        async with Sessions(agent, trial(0, 1), Kind) as sessions:
            for number in (0, 1):
                await sessions.for_turn(number)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(go())
    assert agent.closed == [1, 0]


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("text", "`ask` returned a str, expected a karat.Reply"),
        (None, "`ask` returned a NoneType, expected a karat.Reply"),
        (Reply(text=5), "the reply is not a valid Reply: "),  # type: ignore[arg-type]
        (Reply(text="x", dollars=-1.0), "the reply cannot be right: "),
    ],
)
def test_what_is_no_reply_is_a_fault_of_the_agent(reply: Any, says: str) -> None:
    with pytest.raises(AgentFault) as fault:
        checked_reply(reply)
    assert fault.value.kind == "bad_reply"
    assert fault.value.message.startswith(says)


def test_a_reply_has_an_end_and_its_calls_are_part_of_it() -> None:
    longest = Reply(text="x" * LONGEST_REPLY)
    assert checked_reply(longest) == longest
    above = Reply(text="x" * (LONGEST_REPLY + 1))
    assert checked_reply(above, bounded=True) == above
    calls = Reply(text="x" * LONGEST_REPLY, tool_calls=(ToolCall(tool="t"),))
    for long in (above, calls):
        with pytest.raises(LimitReached) as limit:
            checked_reply(long)
        assert limit.value.kind == "output_too_long"
    assert f"characters, expected at most {LONGEST_REPLY}" in limit.value.message
    both = Reply(text="x" * (LONGEST_REPLY - 1), reasoning="y")
    assert checked_reply(both) == both
    for fields in ({"reasoning": "yy"}, {"model": "m", "reasoning": "y"}):
        with pytest.raises(LimitReached, match=f"the reply has {LONGEST_REPLY + 1} characters"):
            checked_reply(Reply(text="x" * (LONGEST_REPLY - 1), **fields))  # type: ignore[arg-type]
    short = Reply(text="x", dollars=0.5)
    assert checked_reply(short) == short
