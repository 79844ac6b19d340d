"""One trial: what its agent is given, what is journalled of it, and what follows from a failure."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.execution.parts import AT_ONCE, Parts, Saying, Tried, answer, condition, sample, scorer, trial, work_of

from karat.config import Retry
from karat.context import Workspace
from karat.errors import AgentFault, InfrastructureFault, LimitReached
from karat.execution.retry import AttemptError
from karat.execution.scoring import Scoring
from karat.execution.trial import Job, TrialRunner
from karat.journal import Attempt, ReplyEvent
from karat.mcp import attempts
from karat.models.metering import waiting
from karat.records import (
    Answer,
    Context,
    ContextPart,
    Failure,
    Gate,
    McpServer,
    Reply,
    Score,
    ToolCall,
    Turn,
    Usage,
    WorkspaceChanges,
)

THREE = sample(*(Turn(question=f"q{number}", golden="g") for number in range(3)))


def test_an_answer_says_what_was_asked_when_and_how_long_it_took() -> None:
    before = datetime.now(UTC)

    async def slow() -> str:
        await asyncio.sleep(0.02)
        return "a"

    agent = Saying(lambda turn: slow())
    done = Tried(agent).run(trial(repetition=3))
    (one,) = done.answers
    assert (one.trial, one.sample, one.condition, one.repetition, one.text) == ("t", "s", "c", 3, "a")
    assert (one.attempts, one.kept, one.workspace, one.detail) == (1, 0, None, {})
    assert one.started is not None
    assert one.started.endswith("+00:00")
    assert len(one.started.partition(".")[2]) == len("123+00:00"), "milliseconds"
    assert (datetime.fromisoformat(one.started) - before).total_seconds() > -0.001
    assert one.seconds is not None
    assert one.seconds >= 0.019
    assert one.seconds == round(one.seconds, 6)
    assert one.replies == (Reply(text="a"),), "the one turn's time is the answer's"
    assert agent.turns[0].question == "q"


def test_a_trial_holds_its_slot_until_its_answer_is_with_the_journal_and_not_until_it_is_judged() -> None:
    seen: list[int] = []

    def asked(turn: object) -> str:
        seen.append(done.parts.status.conditions["c"].in_flight)
        return "a"

    done = Tried(Saying(asked))

    async def judged(sample: object, answer: object) -> bool:
        seen.append(done.parts.status.conditions["c"].in_flight)
        return True

    done.work["scorers"] = (scorer(lambda sample, answer: True, "rule"), scorer(judged, "judge", waits=True))
    done.run(trial())
    assert seen == [1, 0]
    assert done.asked == [2], "the answer and the score of the rule"
    assert [type(event) for event in done.parts.journal.events] == [Answer, Score, Score]
    progress = done.parts.status.conditions["c"]
    assert (progress.settled, progress.failed, progress.in_flight) == (1, 0, 0)
    assert (done.parts.status.answered, done.parts.status.unasked) == (1, 0)
    assert done.parts.failures.judged


@pytest.mark.parametrize("allowed", [True, False])
def test_an_agent_sees_golden_answers_only_if_it_is_allowed_to(allowed: bool) -> None:
    agent = Saying(allow_golden=allowed)
    Tried(agent).run(trial(), trial(), trial(sample(Turn(question="other", golden="b"))))
    assert [one.sample.turns[0].golden for one in agent.trials] == (["a", "a", "b"] if allowed else [None] * 3)
    assert [turn.golden for turn in agent.turns] == (["a", "a", "b"] if allowed else [None] * 3)
    assert [turn.question for turn in agent.turns] == ["q", "q", "other"]


def test_a_condition_that_cannot_be_asked_fails_before_it_is_asked() -> None:
    agent = Saying()
    down = AttemptError(cls="infrastructure", kind="mcp_start", message="no server", retriable=True)
    done = Tried(agent, Parts(max_failures=1), broken={"c": down}).run(trial())
    assert agent.turns == []
    assert done.parts.fields(
        Failure, "trial", "sample", "condition", "repetition", "stage", "cls", "kind", "message"
    ) == [("t", "s", "c", 0, "preflight", "infrastructure", "mcp_start", "no server")]
    assert done.asked == [1]
    assert not done.parts.draining.is_set(), "it does not count towards the limit of failures"
    status = done.parts.status
    assert (status.failed, status.unasked, status.settled) == (1, 1, 1)
    assert (status.conditions["c"].failed, status.conditions["c"].in_flight) == (1, 0)


@pytest.mark.parametrize(
    ("fault", "drains"),
    [(AgentFault("k", "m"), True), (InfrastructureFault("k", "m"), True), (LimitReached("k", "m"), False)],
)
def test_a_trial_that_fails_for_good_counts_unless_it_met_a_limit(fault: Exception, drains: bool) -> None:
    async def fails() -> str:
        await asyncio.sleep(0.02)
        raise fault

    done = Tried(Saying(lambda turn: fails()), Parts(max_failures=1)).run(trial())
    assert done.again == []
    (attempt,) = done.parts.written(Attempt)
    assert (attempt.trial, attempt.n, attempt.stage, attempt.replies, attempt.dollars) == ("t", 1, "agent", (), None)
    assert attempt.seconds == round(attempt.seconds, 6) >= 0.019
    assert done.parts.fields(Failure, "trial", "stage", "kind", "message") == [("t", "agent", "k", "m")]
    status = done.parts.status
    assert (status.answered, status.settled, status.unasked, status.failed) == (0, 1, 1, 1)
    assert done.parts.draining.is_set() is drains


def test_a_failed_attempt_is_tried_again_with_the_next_number_and_keeps_what_is_on_disk() -> None:
    said: dict[str, Any] = {"q0": Reply(text="r0", dollars=1.0), "q1": Reply(text="r1", dollars=2.0)}
    fault = InfrastructureFault("gone", "m", retriable=True, dollars=0.5)
    done = Tried(Saying(lambda turn: said.get(turn.question, fault)), Parts(retry=AT_ONCE)).run(trial(THREE))
    ((again, seconds),) = done.again
    assert (again.trial.id, again.attempt, [reply.text for reply in again.kept], seconds) == ("t", 2, ["r0", "r1"], 0.0)
    assert done.parts.fields(ReplyEvent, "trial", "attempt", "turn") == [("t", 1, 0), ("t", 1, 1)]
    (attempt,) = done.parts.written(Attempt)
    assert (attempt.n, attempt.retriable, [reply.text for reply in attempt.replies]) == (1, True, ["r0", "r1"])
    assert attempt.dollars == 0.0, "the replies cost more than the fault tells"
    assert done.parts.budget.dollars == 3.0
    assert done.parts.written(Failure) == []
    assert done.parts.status.settled == 0

    rest = Tried(Saying(lambda turn: "r2"), Parts()).run(again)
    (one,) = rest.answers
    assert [reply.text for reply in one.replies] == ["r0", "r1", "r2"]
    assert (one.attempts, one.kept) == (2, 2)
    assert rest.agent.restored == ["r0", "r1"]
    kept = sum(reply.milliseconds or 0.0 for reply in again.kept) / 1000
    own = one.replies[2].milliseconds
    assert own is not None
    assert one.seconds == pytest.approx(kept + own / 1000, abs=2e-6)
    assert rest.parts.fields(ReplyEvent, "attempt", "turn") == [(2, 2)]


def test_each_turn_of_a_conversation_has_its_time_in_milliseconds() -> None:
    async def slow() -> str:
        await asyncio.sleep(0.02)
        return "a"

    said = {"q0": slow(), "q1": Reply(text="own", milliseconds=7.0), "q2": "quick"}
    (one,) = Tried(Saying(lambda turn: said[turn.question])).run(trial(THREE)).answers
    times = [reply.milliseconds or 0.0 for reply in one.replies]
    assert times[0] >= 19
    assert times[0] == round(times[0], 3)
    assert times[1] == 7.0, "as the agent says"
    assert one.seconds is not None
    assert one.seconds * 1000 >= times[0]
    (alone,) = Tried(Saying(lambda turn: asyncio.sleep(0.02, "a"))).run(trial(THREE)).answers
    assert alone.seconds is not None
    total = sum(reply.milliseconds or 0.0 for reply in alone.replies)
    assert alone.seconds * 1000 == pytest.approx(total, abs=0.004)


def test_what_karat_makes_an_agent_wait_for_is_no_time_of_any_turn() -> None:
    async def waits(turn: Turn) -> str:
        with waiting():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.01)
        return "a"

    (one,) = Tried(Saying(waits)).run(trial(THREE)).answers
    times = [reply.milliseconds or 0.0 for reply in one.replies]
    assert min(times) >= 9, "a wait is taken off the turn that it was in, and no other"
    assert one.seconds is not None
    assert one.seconds * 1000 == pytest.approx(sum(times), abs=0.004)


def test_an_answer_made_elsewhere_took_as_long_as_it_says_and_else_it_is_not_known() -> None:
    agent = Saying(source={"file": "answers.jsonl"})
    assert [one.seconds for one in Tried(agent).run(trial(), trial(THREE)).answers] == [None, None]
    timed = Saying(lambda turn: Reply(text="a", milliseconds=500.0), source={"file": "answers.jsonl"})
    assert [one.seconds for one in Tried(timed).run(trial(), trial(THREE)).answers] == [0.5, 1.5]
    (one,) = Tried(agent).run(trial(THREE)).answers
    assert [reply.milliseconds for reply in one.replies] == [None] * 3


@pytest.mark.parametrize(
    ("seats", "limit"), [((None,), 0.01), ((None, None), 0.01), ((0, 1, 0), 0.02), ((2, 1, 0), 0.03), ((0, 0), 0.01)]
)
def test_a_group_has_the_time_of_each_of_its_members(seats: tuple[int | None, ...], limit: float) -> None:
    async def hangs() -> str:
        await asyncio.sleep(60)
        return "late"

    group = sample(*(Turn(question="q", seat=seat) for seat in seats))
    done = Tried(Saying(lambda turn: hangs()), Parts(timeout_seconds=0.01)).run(trial(group))
    assert done.parts.fields(Failure, "cls", "kind", "message") == [
        ("limit", "timeout", f"no answer within {limit:g} s")
    ]


def test_what_an_agent_says_after_its_trial_was_cut_off_is_nobodys_answer() -> None:
    parts = Parts()
    said: list[str] = []

    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)  # longer than anybody waits for it
        said.append("late")
        return "late"

    async def go() -> None:
        agent = Saying(lambda turn: stubborn())
        trials = TrialRunner(work_of(c=agent), Scoring(parts.context), parts.context)
        running = asyncio.create_task(
            trials.run(Job(trial(THREE)), asked=lambda: None, retry=lambda job, seconds: None)
        )
        while not agent.turns:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert said == []
        while not said:
            await asyncio.sleep(0.01)
        for _ in range(9):
            await asyncio.sleep(0)
        assert len(agent.turns) == 1

    asyncio.run(go())
    assert parts.journal.events == []
    assert parts.status.conditions["c"].in_flight == 0


def test_a_reply_that_comes_with_a_fault_is_kept_and_paid_once() -> None:
    fault = AgentFault("cut", "m", dollars=3.0, usage=Usage(input_tokens=9))
    fault.reply = Reply(text="half", dollars=1.0, usage=Usage(input_tokens=4))  # type: ignore[attr-defined]
    done = Tried(Saying(lambda turn: fault)).run(trial())
    (attempt,) = done.parts.written(Attempt)
    assert [reply.text for reply in attempt.replies] == ["half"]
    assert (attempt.dollars, attempt.usage) == (2.0, Usage(input_tokens=5))
    assert (done.parts.budget.dollars, done.parts.budget.tokens) == (3.0, 9)
    absurd = AgentFault("cut", "m")
    absurd.reply = Reply(text="half", dollars=-1.0)  # type: ignore[attr-defined]
    assert Tried(Saying(lambda turn: absurd)).run(trial()).parts.written(Attempt)[0].replies == ()


def test_a_failure_of_unknown_cost_is_charged_as_the_dearest_call_unless_its_replies_are_known() -> None:
    said: list[Any] = [Reply(text="a", dollars=2.0), AgentFault("k", "m")]
    done = Tried(Saying(lambda turn: said.pop(0)), Parts(usd=100.0)).run(trial(), trial())
    assert done.parts.budget.dollars == 4.0
    replied = AgentFault("k", "m")
    replied.reply = Reply(text="half", dollars=0.5)  # type: ignore[attr-defined]
    said = [Reply(text="a", dollars=2.0), replied]
    assert Tried(Saying(lambda turn: said.pop(0)), Parts(usd=100.0)).run(trial(), trial()).parts.budget.dollars == 2.5


def test_a_wait_that_is_too_long_ends_the_trial_and_says_so() -> None:
    fault = InfrastructureFault("rate_limit", "slow down", retriable=True, retry_after=700)
    done = Tried(Saying(lambda turn: fault), Parts(retry=Retry(max_attempts=3))).run(trial())
    assert done.again == []
    ((retriable, message),) = done.parts.fields(Failure, "retriable", "message")
    assert not retriable
    assert message.startswith("slow down; it asks to wait 700 s")


def test_secrets_are_masked_in_replies_before_anybody_reads_them() -> None:
    heard: list[str] = []
    parts = Parts(secrets={"KEY": "correct-horse-battery"})

    def reads(sample: object, answer: Answer) -> bool:
        heard.append(answer.text)
        return True

    done = Tried(Saying(lambda turn: "it is correct-horse-battery"), parts, scorers=(scorer(reads),)).run(trial(THREE))
    assert heard == ["it is ${KEY}"]
    assert [reply.text for reply in done.answers[0].replies] == ["it is ${KEY}"] * 3
    assert [event.reply.text for event in done.parts.written(ReplyEvent)] == ["it is ${KEY}"] * 3


def test_a_missed_gate_begins_anew_and_a_call_of_an_mcp_server_passes_it() -> None:
    gated = condition(gate=Gate(require_mcp_tool_use=True))
    done = Tried(Saying(), Parts(retry=AT_ONCE)).run(trial(THREE, gated))
    ((again, _),) = done.again
    assert (again.attempt, again.kept) == (2, ())
    assert done.parts.fields(Attempt, "kind") == [("gate_tool_use",)]
    calls = (ToolCall(tool="t", server="docs", error="broken"),)
    failing = Saying(lambda turn: Reply(text="a", tool_calls=calls))
    assert len(Tried(failing).run(trial(under=gated)).answers) == 1
    both = condition(gate=Gate(require_mcp_tool_success=True))
    assert Tried(failing).run(trial(under=both)).parts.fields(Failure, "kind") == [("gate_tool_success",)]


def test_what_an_earlier_part_of_the_run_was_told_is_not_asked_again() -> None:
    saved = (Reply(text="r0", milliseconds=250.0),)
    done = Tried(Saying(), saved_replies=lambda name: saved if name == "t" else ()).run(trial(THREE))
    (one,) = done.answers
    assert (one.kept, [reply.text for reply in one.replies]) == (1, ["r0", "a", "a"])
    assert [turn.question for turn in done.agent.turns] == ["q1", "q2"]
    later = Tried(Saying(), saved_replies=lambda name: saved).run(Job(trial(THREE), 2))
    assert later.answers[0].kept == 0, "the second attempt has what the first one kept"


def test_a_fault_that_karat_met_fails_the_attempt_though_the_agent_went_on() -> None:
    seen: list[Any] = []

    def answers(turn: Turn) -> Reply:
        scope = attempts.current()
        assert scope is not None
        seen.append((scope.name, scope.goes_on))
        scope.fault = InfrastructureFault("mcp_gone", "the server is gone", retriable=True)
        return Reply(text="anyway", dollars=0.5)

    docs = McpServer(name="docs", type="stdio", digest="d", command="x")
    served = condition(mcp_servers=(docs,))
    done = Tried(Saying(answers), Parts(retry=AT_ONCE)).run(trial(under=served))
    assert seen == [("t-1", False)]
    assert done.answers == []
    (attempt,) = done.parts.written(Attempt)
    assert (attempt.kind, [reply.text for reply in attempt.replies]) == ("mcp_gone", ["anyway"])
    assert done.parts.budget.dollars == 0.5
    saved = (Reply(text="r0"), Reply(text="r1"))
    Tried(Saying(answers), saved_replies=lambda name: saved).run(trial(THREE, served))
    assert seen[1:] == [("t-1", True)], "it resumes what an earlier part of the run began"
    Tried(Saying(answers)).run(Job(trial(THREE, served), 2, saved))
    assert seen[2:] == [("t-2", False)], "a later attempt counts its calls from the start"
    seen.clear()
    without = Tried(Saying(lambda turn: str(attempts.current()))).run(trial())
    assert without.answers[0].text == "None", "a condition without servers has nothing to note"


CHANGES = WorkspaceChanges(file="t.tar", sha256="0", base="1", changed=1, removed=0, bytes=3)


class Folders:
    """Workspaces that are objects, with notes of what was done with them."""

    def __init__(
        self, *, stored: Answer | None = None, refuses: OSError | None = None, breaks: OSError | None = None
    ) -> None:
        self.kept, self.refuses, self.breaks = stored, refuses, breaks
        self.opened: list[tuple[str, bool]] = []
        self.stored: list[tuple[object, str, bytes | None]] = []
        self.place: Any = object()

    async def open(self, trial: Any, *, overlay: bool) -> Workspace:
        self.opened.append((trial.id, overlay))
        if self.refuses is not None:
            raise self.refuses
        place: Workspace = self.place
        return place

    def store(self, workspace: object, trial: Any, answer: bytes | None) -> Future[WorkspaceChanges]:
        self.stored.append((workspace, trial.id, answer))
        done: Future[WorkspaceChanges] = Future()
        if self.breaks is not None:
            done.set_exception(self.breaks)
        else:
            done.set_result(CHANGES)
        return done

    async def stored_answer(self, trial: str) -> Answer | None:
        return self.kept


@pytest.fixture
def in_a_folder(tmp_path: Any) -> Any:
    return condition(context=Context(workspace=ContextPart(name="start", path=tmp_path, digest="d")))


def test_what_an_agent_left_in_its_workspace_is_stored_with_its_answer(in_a_folder: Any) -> None:
    folders = Folders()
    done = Tried(Saying(), workspaces=folders, scorers=(scorer(lambda sample, answer: True),)).run(
        trial(under=in_a_folder)
    )
    assert folders.opened == [("t", False)]
    assert done.agent.workspaces == [folders.place]
    ((place, name, line),) = folders.stored
    assert (place, name) == (folders.place, "t")
    assert line is not None
    assert b'"event":"answer"' in line
    assert [one.workspace for one in done.answers] == [CHANGES]
    assert [type(event) for event in done.parts.journal.events] == [Answer, Score]
    plain = Tried(Saying(), workspaces=Folders()).run(trial())
    assert plain.agent.workspaces == [None], "a condition without one has none"


@pytest.mark.parametrize(("seats", "overlay"), [((None,), True), ((0, 1), False)])
def test_an_agent_that_enters_its_workspace_may_have_an_overlay_but_a_group_may_not(
    in_a_folder: Any, seats: tuple[int | None, ...], overlay: bool
) -> None:
    folders = Folders()
    group = sample(*(Turn(question="q", seat=seat) for seat in seats))
    Tried(Saying(enters_workspace=True), workspaces=folders).run(trial(group, in_a_folder))
    assert folders.opened == [("t", overlay)]


def test_an_answer_made_elsewhere_needs_no_workspace(in_a_folder: Any) -> None:
    folders = Folders()
    done = Tried(Saying(source={"file": "f"}), workspaces=folders).run(trial(under=in_a_folder))
    assert (folders.opened, [one.workspace for one in done.answers]) == ([], [None])


def test_a_workspace_that_cannot_be_opened_fails_the_attempt(in_a_folder: Any) -> None:
    parts = Parts(secrets={"KEY": "correct-horse-battery"})
    folders = Folders(refuses=OSError("no room in correct-horse-battery"))
    done = Tried(Saying(), parts, workspaces=folders).run(trial(under=in_a_folder))
    ((cls, kind, message),) = done.parts.fields(Failure, "cls", "kind", "message")
    assert (cls, kind) == ("infrastructure", "os_error")
    assert message.startswith("OSError: no room in ${KEY}")
    assert (folders.stored, done.agent.turns) == ([], [])


def test_a_workspace_that_cannot_be_stored_costs_no_answer(in_a_folder: Any) -> None:
    done = Tried(Saying(), workspaces=Folders(breaks=OSError("the disk is full"))).run(trial(under=in_a_folder))
    assert [(one.text, one.workspace) for one in done.answers] == [("a", None)]
    assert done.parts.status.notices == ["the changed workspace of trial t could not be stored: the disk is full"]


def test_a_failed_attempt_leaves_its_workspace_without_an_answer_and_begins_anew(in_a_folder: Any) -> None:
    folders = Folders()
    fault = InfrastructureFault("gone", "m", retriable=True)
    agent = Saying(lambda turn: "r0" if turn.question == "q0" else fault)
    saved = (Reply(text="earlier"),)
    done = Tried(agent, Parts(retry=AT_ONCE), workspaces=folders, saved_replies=lambda name: saved).run(
        trial(THREE, in_a_folder)
    )
    assert [turn.question for turn in agent.turns] == ["q0", "q1"], "nothing is left of an earlier part's workspace"
    assert folders.stored == [(folders.place, "t", None)]
    ((again, _),) = done.again
    assert (again.attempt, again.kept) == (2, ())


def test_an_answer_that_a_killed_run_stored_with_its_workspace_is_not_asked_again(in_a_folder: Any) -> None:
    kept = answer("from before")
    folders = Folders(stored=kept)
    done = Tried(Saying(), workspaces=folders, scorers=(scorer(lambda sample, answer: True),)).run(
        trial(under=in_a_folder)
    )
    assert (done.answers, done.agent.turns, folders.opened) == ([kept], [], [])
    assert [type(event) for event in done.parts.journal.events] == [Answer, Score]
    again = Tried(Saying(), workspaces=folders).run(Job(trial(under=in_a_folder), 2))
    assert [one.text for one in again.answers] == ["a"], "only the first attempt looks"


def test_a_session_that_fails_after_its_answer_is_only_noticed() -> None:
    class Clumsy(Saying):
        @asynccontextmanager
        async def session(self, trial: Any, first: int = 0, workspace: object = None) -> Any:
            yield self
            raise ConnectionError("gone while closing")

    done = Tried(Clumsy()).run(trial())
    assert len(done.answers) == 1
    (notice,) = done.parts.status.notices
    assert notice.startswith("an agent's session did not close well: ConnectionError: gone while closing")
    assert done.parts.written(Attempt) == []
