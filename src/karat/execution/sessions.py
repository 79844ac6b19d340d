"""Which turns of a trial are still to be asked, what is sent, and in which sessions."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from types import TracebackType

import msgspec

from karat.agents import Resumable, Session, TrialAgent
from karat.kinds import prompt_for, turn_question
from karat.records import NOT_ASKED, Reply, Sample, Trial, Turn

__all__ = ["Sessions", "as_sent", "session_count"]


def session_count(sample: Sample) -> int:
    """How many sessions are open at a time: those of everybody who plays together, else one."""
    if sample.turns and sample.turns[0].seat is None:
        return 1
    return len({turn.seat for turn in sample.turns}) or 1


def as_sent(sample: Sample, number: int, replies: Sequence[Reply]) -> Turn | None:
    """A turn with what is sent as its question: all that an agent knows of. None: it is not asked any more.

    `replies`: to every turn before it. Nothing else is looked at, so a run that goes on sends what it would
    have sent.
    """
    turn = sample.turns[number]
    if not turn.open:
        return turn if turn.asked is None else msgspec.structs.replace(turn, question=turn.asked)
    said = [None if reply.absent else reply.text for reply in replies]
    question = turn_question(sample, number, said)
    return None if question is None else msgspec.structs.replace(turn, question=question)


class Sessions:
    """`async with Sessions(agent, trial) as sessions:` around one attempt.

    One session for the sample, one a seat, or one a turn where turns are asked apart. Each is opened when its
    first question is due, and all but those of turns asked apart stay open up to the end of the attempt.
    """

    def __init__(self, agent: TrialAgent, trial: Trial) -> None:
        self._agent, self._trial, self._sample = agent, trial, trial.sample
        self._open: dict[int | None, Session] = {}
        self._contexts: list[AbstractAsyncContextManager[Session]] = []

    async def __aenter__(self) -> Sessions:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What it returns is left alone: a session that keeps an exception to itself makes no answer of it.
        await self._closed(kind, error, trace)

    async def at(self, number: int) -> Session:
        """The session that a turn is asked in."""
        if self._sample.apart:
            await self._closed(None, None, None)
            return await self._opened(number, first=number)
        seat = self._sample.turns[number].seat
        found = self._open.get(seat)
        if found is None:
            first = 0 if seat is None else next(at for at, turn in enumerate(self._sample.turns) if turn.seat == seat)
            found = self._open[seat] = await self._opened(number, first=first)
        return found

    async def take_up(self, kept: Sequence[Reply]) -> Sequence[Reply]:
        """The replies behind which the attempt goes on: `kept`, or none where a session cannot be told of its own.

        Whoever has a question left is told before anybody is asked, so that nothing is asked in vain.
        """
        if not kept or self._sample.apart:
            return kept
        histories: dict[int | None, list[tuple[Turn, Reply]]] = {}
        for seat, number in self._next_turns(len(kept)).items():
            padded = [*kept, *[NOT_ASKED] * (number - len(kept))]  # whether one is asked depends on one's own alone
            if as_sent(self._sample, number, padded) is not None and (told := self._history(seat, kept)):
                histories[seat] = told
                if not isinstance(await self.at(number), Resumable):
                    return ()
        for seat, told in histories.items():
            session = self._open[seat]
            assert isinstance(session, Resumable)
            waits = session.restore(told)
            if inspect.isawaitable(waits):
                await waits
        return kept

    def _next_turns(self, start: int) -> dict[int | None, int]:
        """Seat → its first turn from `start` on."""
        found: dict[int | None, int] = {}
        for number in range(start, len(self._sample.turns)):
            found.setdefault(self._sample.turns[number].seat, number)
        return found

    def _history(self, seat: int | None, kept: Sequence[Reply]) -> list[tuple[Turn, Reply]]:
        """What was asked at a seat, as it was sent, and answered."""
        found = []
        for number, reply in enumerate(kept):
            if self._sample.turns[number].seat != seat:
                continue
            turn = as_sent(self._sample, number, kept[:number])
            if turn is not None:
                found.append((turn, reply))
        return found

    async def _opened(self, number: int, *, first: int) -> Session:
        trial = _seated(self._trial, self._sample.turns[number].seat)
        context = self._agent.session(trial, first)
        session = await context.__aenter__()
        self._contexts.append(context)
        return session

    async def _closed(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The last one first, each of them whatever happens to the others."""
        contexts, self._contexts = self._contexts, []
        if len(contexts) == 1:  # nearly always, and a stack would cost a tenth of the engine's time
            await contexts[0].__aexit__(kind, error, trace)
            return
        stack = AsyncExitStack()
        for context in contexts:
            stack.push_async_exit(context)
        await stack.__aexit__(kind, error, trace)


def _seated(trial: Trial, seat: int | None) -> Trial:
    """The trial as who sits there sees it: with their own system prompt, and their own seed."""
    condition = trial.condition
    prompt = prompt_for(condition, trial.sample, seat)
    if prompt != condition.system_prompt:
        condition = msgspec.structs.replace(condition, system_prompt=prompt)
    if seat is None:
        return trial if condition is trial.condition else msgspec.structs.replace(trial, condition=condition)
    # Members of a group are asked alike: with one seed, an agent that draws by it would answer alike, too.
    seed = (trial.seed + seat * _STRIDE) % 2**32
    return msgspec.structs.replace(trial, condition=condition, seed=seed)


_STRIDE = 0x9E3779B9  # odd and far from any small number: 2³² session_count have seeds of their own
