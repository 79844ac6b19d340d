"""One trial from top to bottom: open the agent's sessions, ask turn by turn, check the gate, append
the answer, score.

`TrialRunner.run` is the whole trial, and `_attempt` the part that the agent's time limit covers.
`runner.py` decides how many trials run at a time; `scoring.py` scores answers.
"""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    nullcontext,
    suppress,
)
from datetime import UTC, datetime
from time import monotonic
from typing import Literal

import msgspec

from karat.agents import Resumable, Session, TrialAgent, without_golden
from karat.context import TrialWorkspaces, Workspace
from karat.errors import AgentFault, LimitReached, TrialFault
from karat.execution.retry import AttemptError, bounded, classify, delay
from karat.execution.scoring import PendingScore, RunContext, ScorerInUse, Scoring, Unfinished
from karat.journal import MISSED_GATE, ReplyEvent
from karat.journal import Attempt as FailedAttempt
from karat.journal.codec import Codec
from karat.kinds import Kind, of_sample
from karat.mcp import attempts, gates
from karat.mcp.elicitation import answers_for
from karat.models.metering import METER
from karat.records import (
    NOT_ASKED,
    Answer,
    Failure,
    Reply,
    Sample,
    Score,
    Trial,
    Turn,
    absurd_reply,
    checked,
    recorded_seconds,
)


class Job(msgspec.Struct, frozen=True):
    """One attempt to make."""

    trial: Trial
    attempt: int = 1
    # of the attempt before, from turn 0: the conversation resumes after them
    kept: tuple[Reply, ...] = ()


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """The work to do, and who does it."""

    trials: Iterator[Trial]  # to ask
    pending: Iterator[PendingScore]  # answered by an earlier part of the run, to score
    agents: Mapping[str, TrialAgent]  # by condition
    broken: Mapping[str, AttemptError]  # conditions that cannot be asked because a server is down
    scorers: Sequence[ScorerInUse]  # of each answer as it comes
    # what to score when all answers are in
    late: Callable[[], Iterator[PendingScore]] = lambda: iter(())
    kind: type[Kind] = Kind  # of the dataset
    # trial → its turns answered in an earlier part
    saved_replies: Callable[[str], tuple[Reply, ...]] = lambda _: ()
    workspaces: TrialWorkspaces | None = None  # None: no condition has one


class Attempt(msgspec.Struct):
    """One attempt at a trial, as far as it got."""

    job: Job
    kept: Sequence[Reply]  # of earlier attempts
    replies: list[Reply] = []  # its own
    journalled: int = 0  # how many of its own, from the first, are journalled
    answer: Answer | None = None
    scores: Sequence[Score] = ()  # of the scorers that do not wait
    unfinished: Mapping[str, Unfinished] = {}  # scoring → what became of those without a score
    durable: asyncio.Future[None] | None = None  # done when answer and `scores` are on disk
    seconds: float = 0.0  # from each question to its reply, without waits that karat imposes
    over: bool = False  # nothing waits for it any longer
    workspace: Workspace | None = None

    def resumable_replies(self, error: AttemptError) -> tuple[Reply, ...]:
        """Replies the next attempt resumes from; none if a gate failed, or if it starts with a
        fresh workspace.
        """
        if error.kind.startswith(MISSED_GATE) or self.workspace is not None:
            return ()
        return (*self.kept, *self.replies[: self.journalled])


class TrialRunner:
    """Runs trials independently of each other."""

    def __init__(self, work: Work, scoring: Scoring, run: RunContext) -> None:
        self._work = work
        self._scoring = scoring
        self._run = run
        self._random = random.Random()
        # the last sample that was asked, with and without its golden
        self._shown: tuple[Sample, Sample] | None = None

    async def run(
        self, job: Job, *, asked: Callable[[], None], retry: Callable[[Job, float], None]
    ) -> None:
        """One attempt at a trial, and everything that follows.

        `asked` is called when the agent is done; `retry` if another attempt is due, with the
        seconds until then.
        """
        trial = job.trial
        clock = monotonic()
        attempt = Attempt(job, job.kept)
        progress = self._run.status.conditions[trial.condition.name]
        progress.in_flight += 1
        try:
            if (broken := self._work.broken.get(trial.condition.name)) is not None:
                await self.fail(trial, "preflight", broken)
                return

            seconds = self._run.limits.timeout_seconds * session_count(trial.sample)
            workspaces = (
                self._work.workspaces if trial.condition.context.workspace is not None else None
            )
            if self._work.agents[trial.condition.name].source:
                workspaces = None  # an answer made elsewhere changes nothing here
            if workspaces is None:
                error = await self._run.foreign_code.call(
                    lambda: self._attempt(attempt), seconds, "agent"
                )
            else:
                error = await self._with_workspace(workspaces, attempt, seconds)

            self._run.budget.add_replies(attempt.replies)
            if attempt.durable is None:
                assert error is not None
                await self._failed(
                    attempt, error.besides(attempt.replies), monotonic() - clock, retry
                )
                return
        finally:
            attempt.over = True
            progress.in_flight -= 1
            asked()

        if error is not None:
            # The answer was complete and is being written: the end of its session does not affect
            # it.
            self._run.status.notice(f"an agent's session did not close well: {error.message}")

        assert attempt.answer is not None, "it is being written"
        self._run.failures.answered()
        await attempt.durable
        self._run.status.journalled(attempt.answer, *attempt.scores)
        scorers = []
        for used in self._work.scorers:
            if used.waits or used.info.scoring in attempt.unfinished:
                scorers.append(used)

        pending = PendingScore(answer=attempt.answer, sample=trial.sample, scorers=scorers)
        await self._scoring.score(pending, attempt.unfinished)

    async def _with_workspace(
        self, workspaces: TrialWorkspaces, attempt: Attempt, seconds: float
    ) -> AttemptError | None:
        """The agent's part in a workspace.

        What it changed there is stored before its answer is journalled.
        """
        trial = attempt.job.trial
        agent = self._work.agents[attempt.job.trial.condition.name]
        if (
            attempt.job.attempt == 1
            and (answer := await workspaces.stored_answer(trial.id)) is not None
        ):
            attempt.answer = answer
            attempt.replies = list(answer.replies)
            self._append_answer(attempt)
            return None

        overlay = agent.enters_workspace and session_count(trial.sample) == 1
        try:
            attempt.workspace = workspace = await workspaces.open(trial, overlay=overlay)
        except OSError as error:
            return classify(error, stage="agent", redact=self._run.journal.redact)

        try:
            return await self._run.foreign_code.call(
                lambda: self._attempt(attempt), seconds, "agent"
            )
        finally:
            # Even if the session did not close cleanly, the time is over or the run is cancelled: a
            # complete answer is stored and journalled.
            attempt.over = True
            if attempt.answer is None:
                line = None
            else:
                line = Codec(self._run.journal.redact).line(attempt.answer)

            stored = workspaces.store(workspace, trial, line)
            try:
                await asyncio.shield(asyncio.wrap_future(stored))
            except OSError as error:
                self._run.status.notice(
                    f"the changed workspace of trial {trial.id} could not be stored: {error}"
                )
            finally:
                if attempt.answer is not None:
                    futures.wait([stored])
                    changes = stored.result() if stored.exception() is None else None
                    attempt.answer = msgspec.structs.replace(attempt.answer, workspace=changes)
                    self._append_answer(attempt)

    async def _attempt(self, attempt: Attempt) -> None:
        """The part covered by the agent's time limit. Raises anything an agent raises."""
        job = attempt.job
        trial = job.trial
        sample = trial.sample
        scope: attempts.Attempt | None = None
        around: AbstractContextManager[object] = nullcontext()
        if trial.condition.mcp_servers:
            elicit = answers_for(trial.condition, sample)
            around = scope = attempts.Attempt(f"{trial.id}-{job.attempt}", elicit=elicit)

        agent = self._work.agents[trial.condition.name]
        if not agent.allow_golden:
            # a sample's trials are consecutive
            if self._shown is None or self._shown[0] is not sample:
                self._shown = sample, without_golden(sample, self._work.kind)
            sample = self._shown[1]
            trial = msgspec.structs.replace(trial, sample=sample)

        started = datetime.now(UTC)
        # An answer in one turn is stored with its only reply.
        if job.attempt == 1 and len(sample.turns) > 1 and attempt.workspace is None:
            attempt.kept = self._work.saved_replies(trial.id)
        if scope is not None:
            scope.goes_on = job.attempt == 1 and bool(attempt.kept)
        sessions = Sessions(agent, trial, self._work.kind, attempt.workspace)
        with around:
            async with sessions:
                if attempt.kept:
                    attempt.kept = await sessions.restore(attempt.kept)
                for number in range(len(attempt.kept), len(sample.turns)):
                    turn = question_for(sample, number, (*attempt.kept, *attempt.replies))
                    if turn is None:
                        await self._add_reply(attempt, number, NOT_ASKED)
                    else:
                        session = await sessions.for_turn(number)
                        await self._add_reply(
                            attempt, number, await _ask(attempt, agent, session, turn, scope)
                        )

                attempt.answer = self._answer(attempt, started)
                # else its content is stored first, when the session is closed
                if attempt.workspace is None:
                    self._append_answer(attempt)

    async def _add_reply(self, attempt: Attempt, number: int, reply: Reply) -> None:
        if self._run.journal.redact.active:
            # so scorers, later questions and the journal have the same
            reply = self._run.journal.redact.struct(reply)

        attempt.replies.append(reply)
        if attempt.over:
            raise asyncio.CancelledError
        if len(attempt.job.trial.sample.turns) > 1:
            attempt.journalled += 1  # even if this attempt ends before it is on disk
            event = ReplyEvent(
                trial=attempt.job.trial.id, attempt=attempt.job.attempt, turn=number, reply=reply
            )
            await self._run.write(event)

    def _answer(self, attempt: Attempt, started: datetime) -> Answer:
        """The answer, if the gate lets it through. Raises AgentFault."""
        trial = attempt.job.trial
        replies = (*attempt.kept, *attempt.replies)
        gate = trial.condition.gate
        if gate.require_mcp_tool_use or gate.require_mcp_tool_success:
            gates.check(gate, [call for reply in replies for call in reply.tool_calls])
        # reading a recorded answer is not latency
        if self._work.agents[trial.condition.name].source:
            seconds = recorded_seconds([reply.milliseconds for reply in replies])
        else:
            kept = sum(reply.milliseconds or 0.0 for reply in attempt.kept) / 1000
            seconds = round(attempt.seconds + kept, 6)

        return Answer(
            trial=trial.id,
            sample=trial.sample.id,
            condition=trial.condition.name,
            repetition=trial.repetition,
            replies=replies,
            attempts=attempt.job.attempt,
            kept=len(attempt.kept),
            started=started.isoformat(timespec="milliseconds"),
            seconds=seconds,
        )

    def _append_answer(self, attempt: Attempt) -> None:
        assert attempt.answer is not None
        # Given to the journal before anything can happen to it: a scorer that ends the process, a
        # session that hangs while closing. The scores follow in the same step of the event loop, so
        # one sync of the disk serves both.
        attempt.durable = self._run.journal.append(attempt.answer)
        pending = PendingScore(
            answer=attempt.answer, sample=attempt.job.trial.sample, scorers=self._work.scorers
        )
        attempt.scores, attempt.unfinished = self._scoring.score_at_once(pending)
        if attempt.scores:
            attempt.durable = self._run.journal.append(*attempt.scores)

    async def _failed(
        self,
        attempt: Attempt,
        error: AttemptError,
        seconds: float,
        retry: Callable[[Job, float], None],
    ) -> None:
        job = attempt.job
        error = bounded(self._run.limits.retry, error)
        if error.dollars is not None or error.usage is not None or not attempt.replies:
            self._run.budget.add_failure("agent", error.dollars, error.usage)
        wait = delay(self._run.limits.retry, job.attempt, error, self._random)
        await self._run.write(
            FailedAttempt(
                trial=job.trial.id,
                n=job.attempt,
                stage="agent",
                seconds=round(seconds, 6),
                replies=tuple(attempt.replies),
                dollars=error.dollars,
                usage=error.usage,
                **error.fields(),
            )
        )
        if wait is None:
            await self.fail(job.trial, "agent", error)
        else:
            retry(Job(job.trial, job.attempt + 1, attempt.resumable_replies(error)), wait)

    async def fail(
        self, trial: Trial, stage: Literal["preflight", "agent"], error: AttemptError
    ) -> None:
        """Journals that a trial finally has no answer."""
        await self._run.write(failure_of(trial, stage, error))
        self._run.status.settled_trial(
            trial.id, trial.condition.name, trial.sample, answered=False, failed=True
        )
        self._run.failures.unanswered(error, counts=stage != "preflight" and error.cls != "limit")


def failure_of(trial: Trial, stage: Literal["preflight", "agent"], error: AttemptError) -> Failure:
    """Why a trial finally has no answer."""
    return Failure(
        trial=trial.id,
        stage=stage,
        sample=trial.sample.id,
        condition=trial.condition.name,
        repetition=trial.repetition,
        **error.fields(),
    )


async def _ask(
    attempt: Attempt,
    agent: TrialAgent,
    session: Session,
    turn: Turn,
    scope: attempts.Attempt | None,
) -> Reply:
    # Waits that karat imposes, for a rate limit or after a refusal, are no latency.
    meter = METER.get()
    assert meter is not None, "each call of foreign code has one"
    waited = meter.waited
    started = monotonic()
    try:
        reply = checked_reply(await session.ask(turn), bounded=agent.bounds_replies)
    except TrialFault as fault:
        with suppress(TrialFault):  # an invalid or absurd reply is left out
            attempt.replies.append(checked_reply(getattr(fault, "reply", None)))

        raise

    seconds = monotonic() - started - (meter.waited - waited)
    attempt.seconds += seconds
    if len(attempt.job.trial.sample.turns) > 1 and reply.milliseconds is None and not agent.source:
        reply = msgspec.structs.replace(reply, milliseconds=round(seconds * 1000, 3))

    if scope is not None and scope.fault is not None:
        attempt.replies.append(reply)
        raise scope.fault  # karat met it on the agent's behalf, and the agent did not raise it

    return reply


LONGEST_REPLY = 10_000_000
"""Characters, where its agent has no limit of its own."""


def checked_reply(reply: object, *, bounded: bool = False) -> Reply:
    """The reply from `ask`, checked to fit into the journal and to contain no absurd number. Raises
    TrialFault.

    `bounded`: its agent has already refused too long texts.
    """
    if not isinstance(reply, Reply):
        raise AgentFault(
            "bad_reply", f"`ask` returned a {type(reply).__name__}, expected a karat.Reply"
        )

    if (
        type(reply.text) is str
        and len(reply.text) <= LONGEST_REPLY
        and reply == Reply(text=reply.text)
    ):
        return reply  # only text

    try:
        reply = checked(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise AgentFault("bad_reply", f"the reply is not a valid Reply: {error}") from error

    if (wrong := absurd_reply(reply)) is not None:
        raise AgentFault("bad_reply", f"the reply cannot be right: {wrong}")
    if not bounded:
        size = sum(len(value) for value in msgspec.structs.astuple(reply) if isinstance(value, str))
        if reply.tool_calls:
            size += len(repr(reply.tool_calls))
        if size > LONGEST_REPLY:
            raise LimitReached(
                "output_too_long",
                f"the reply has {size} characters, expected at most {LONGEST_REPLY}",
            )

    return reply


def session_count(sample: Sample) -> int:
    """How many sessions are open at a time: one per member of a group, else one."""
    if sample.turns and sample.turns[0].seat is None:
        return 1
    return len({turn.seat for turn in sample.turns}) or 1


def question_for(sample: Sample, number: int, replies: Sequence[Reply]) -> Turn | None:
    """A turn with the question as sent: all that an agent sees. None: it is no longer asked.

    `replies`: to every turn before it. The question depends on nothing else, so a resumed run sends
    the same.
    """
    turn = sample.turns[number]
    if not turn.open:
        if turn.asked is None:
            return turn
        return msgspec.structs.replace(turn, question=turn.asked)

    question = of_sample(sample).next_turn(
        sample, number, [None if reply.absent else reply.text for reply in replies]
    )
    if question is None:
        return None
    return msgspec.structs.replace(turn, question=question)


class Sessions(msgspec.Struct):
    """`async with Sessions(agent, trial, kind) as sessions:` around one attempt.

    One session for the sample, one per seat, or one per turn if turns are asked separately. Each is
    opened when its first question is due, and all but those of separate turns stay open until the
    end of the attempt.
    """

    agent: TrialAgent
    trial: Trial
    kind: type[Kind]
    workspace: Workspace | None = None
    by_seat: dict[int | None, Session] = {}
    contexts: list[AbstractAsyncContextManager[Session]] = []

    async def __aenter__(self) -> Sessions:
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # The last one first, each regardless of errors in the others. What they return is ignored:
        # a session that suppresses an exception does not turn it into an answer.
        contexts = self.contexts
        self.contexts = []
        details = (None, None, None) if error is None else (type(error), error, error.__traceback__)
        if len(contexts) == 1:  # nearly always, and a stack takes longer than all the rest
            await contexts[0].__aexit__(*details)
            return

        stack = AsyncExitStack()
        for context in contexts:
            stack.push_async_exit(context)

        await stack.__aexit__(*details)

    async def for_turn(self, number: int) -> Session:
        """The session that a turn is asked in."""
        if self.trial.sample.apart:
            await self.__aexit__(None, None, None)
            return await self._open(number, first=number)

        turns = self.trial.sample.turns
        seat = turns[number].seat
        session = self.by_seat.get(seat)
        if session is None:
            if seat is None:
                first = 0
            else:
                first = next(at for at, turn in enumerate(turns) if turn.seat == seat)

            session = self.by_seat[seat] = await self._open(number, first=first)

        return session

    async def restore(self, kept: Sequence[Reply]) -> Sequence[Reply]:
        """The replies that the attempt resumes from: `kept`, or none if a session cannot be given
        its history.

        Every session with a question left gets its history before the first question is asked, so
        none is asked in vain.
        """
        sample = self.trial.sample
        if sample.apart:
            return kept
        turns = sample.turns
        histories = list[tuple[Resumable, list[tuple[Turn, Reply]]]]()
        next_turns = {
            turns[number].seat: number for number in reversed(range(len(kept), len(turns)))
        }
        for seat, number in sorted(next_turns.items(), key=lambda item: item[1]):
            # whether a seat is asked depends on its own replies
            padded = [*kept, *[NOT_ASKED] * (number - len(kept))]
            if question_for(sample, number, padded) is None:
                continue
            history = list[tuple[Turn, Reply]]()
            for at, reply in enumerate(kept):
                asked = question_for(sample, at, kept[:at]) if turns[at].seat == seat else None
                if asked is not None:
                    history.append((asked, reply))

            if not history:
                continue

            session = await self.for_turn(number)
            if not isinstance(session, Resumable):
                return ()
            histories.append((session, history))

        for resumable, history in histories:
            waits = resumable.restore(history)
            if inspect.isawaitable(waits):
                await waits

        return kept

    async def _open(self, number: int, *, first: int) -> Session:
        """A new session, with the system prompt and the seed of the turn's seat."""
        trial = self.trial
        condition = trial.condition
        seat = trial.sample.turns[number].seat
        if self.kind.prompt is not None:
            prompt = self.kind.prompt(condition, trial.sample, seat)
            condition = msgspec.structs.replace(condition, system_prompt=prompt)
            trial = msgspec.structs.replace(trial, condition=condition)

        if seat is not None:
            # Members of a group get the same questions: with one seed, agents that draw by it would
            # answer the same.
            seed = (trial.seed + seat * _SEED_STRIDE) % 2**32
            trial = msgspec.structs.replace(trial, seed=seed)

        context = self.agent.session(trial, first, self.workspace)
        session = await context.__aenter__()
        self.contexts.append(context)
        return session


_SEED_STRIDE = 0x9E3779B9  # odd and far from any small number: 2³² seats have different seeds
