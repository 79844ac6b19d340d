"""Answers that exist are looked up, not asked for: no session, no slot, no time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

from karat.errors import TrialFault
from karat.execution.retry import classify
from karat.execution.scoring import PendingScore, RunContext
from karat.execution.trial import Work, checked_reply, failure_of, question_for
from karat.journal import Attempt
from karat.mcp import gates
from karat.records import NOT_ASKED, Answer, Failure, Reply, Trial, recorded_seconds


def are_recorded(work: Work) -> bool:
    """Whether every agent looks its answers up."""
    return all(agent.recorded_reply is not None for agent in work.agents.values())


def recorded_answers(work: Work, run: RunContext) -> Iterator[PendingScore]:
    """The answers of a run's trials, not yet in the journal.

    A trial without one is given to the journal here, as failed.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    redact = run.journal.redact
    for trial in work.trials:
        if run.draining.is_set():
            return
        name = trial.condition.name
        broken = work.broken.get(name)
        if broken is not None:
            _failed(run, trial, failure_of(trial, "preflight", broken))
            run.failures.unanswered(broken, counts=False)
            continue

        replies: list[Reply] = []
        try:
            look_up = work.agents[name].recorded_reply
            assert look_up is not None, "the caller has asked `are_recorded`"

            sample = trial.sample
            for number in range(len(sample.turns)):
                reply = NOT_ASKED
                if question_for(sample, number, replies) is not None:
                    reply = redact.struct(checked_reply(look_up(trial, number)))
                replies.append(reply)

            gate = trial.condition.gate
            if gate.require_mcp_tool_use or gate.require_mcp_tool_success:
                gates.check(gate, [call for reply in replies for call in reply.tool_calls])
        except TrialFault as fault:
            error = classify(fault, stage="agent", redact=redact).besides(replies)
            attempt = Attempt(
                trial=trial.id,
                n=1,
                seconds=0.0,
                replies=tuple(replies),
                dollars=error.dollars,
                usage=error.usage,
                **error.fields(),
            )
            _failed(run, trial, attempt, failure_of(trial, "agent", error))
            run.failures.unanswered(error, counts=error.cls != "limit")
            continue

        run.failures.answered()
        answer = Answer(
            trial=trial.id,
            sample=sample.id,
            condition=name,
            repetition=trial.repetition,
            replies=tuple(replies),
            started=started,
            seconds=recorded_seconds([reply.milliseconds for reply in replies]),
        )
        yield PendingScore(answer=answer, sample=sample, scorers=work.scorers, is_new=True)


def _failed(run: RunContext, trial: Trial, *events: Attempt | Failure) -> None:
    written = run.journal.append(*events)  # not awaited: the answers that follow are, and after it
    written.add_done_callback(asyncio.Future.exception)  # what the disk refused, they say
    run.status.journalled(*events)
    run.status.settled_trial(
        trial.id, trial.condition.name, trial.sample, answered=False, failed=True
    )
