"""Trials of several turns: what is sent, in which sessions, and where a conversation that was broken off goes on."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from tests.running_experiments import merged
from werkzeug import Request, Response

from karat.analysis import summarize
from karat.execution import Outcome, RunStatus
from karat.execution.plan import plan
from karat.execution.resume import read_journal
from karat.journal import Attempt, ReplyEvent, RunFolder
from karat.records import Answer, Failure

Write = Callable[..., Path]
Run = Callable[..., Outcome]

# A line of the dataset: {"turns": [{"question", "asked"?}], "materials"?, "apart"?}.
DATASET = '''
import hashlib, json, pathlib
from karat.kinds import Dataset, sample_digest
from karat.records import Sample, Turn
class Turns:
    """Samples of several turns."""
    judged = False
    def load(self, path):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        samples = [
            Sample(id=str(n), position=n, digest=sample_digest(row), materials=row.get("materials"),
                   apart=row.get("apart", False), turns=tuple(Turn(**turn) for turn in row["turns"]))
            for n, row in enumerate(rows)
        ]
        return Dataset(kind="turns", path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest(), samples=samples)
LOG = pathlib.Path(__file__).with_name("asked.txt")
def asked(*what):
    with LOG.open("a") as file:
        file.write(json.dumps(what) + "\\n")
    return sum(json.loads(line) == json.loads(json.dumps(what)) for line in LOG.read_text().splitlines())
'''

COUNTING = (
    DATASET
    + """
from karat.errors import AgentFault, InfrastructureFault
from karat.records import Usage
FAULTS = {}
def query(user_query, history, repetition, sample):
    times = asked(sample.id, repetition, user_query, [one["answer"] for one in history])
    if times <= FAULTS.get(user_query, 0):
        raise InfrastructureFault("network", "gone", retriable=True)
    return {"text": "A:" + user_query, "dollars": 1.0, "usage": {"input_tokens": 10, "output_tokens": 1}}
"""
)
THREE = {"turns": [{"question": f"t{number}"} for number in range(3)]}
ONE = {"conditions": {"a": {}}, "scorers": []}


@pytest.fixture
def conversations(experiment: Write, tmp_path: Path) -> Write:
    """`conversations(code, rows, **sections)`: an experiment on them; the agent is `query` in the code."""

    def write(code: str, rows: list[dict[str, Any]], **sections: Any) -> Path:
        lines = tmp_path / "turns.jsonl"
        lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
        module = f"agent_of_{tmp_path.name.replace('-', '_')}"
        sys.modules.pop(module, None)
        execution = {"num_repetitions": 1, **sections.pop("execution", {})}
        dataset = {"kind": f"{module}:Turns", "path": str(lines)}
        return experiment(code, dataset=dataset, execution=execution, **{**ONE, **sections})

    return write


def asked(file: Path) -> list[Any]:
    log = file.with_name("asked.txt")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def texts(outcome: Outcome) -> list[list[str]]:
    return [[reply.text for reply in one.replies] for one in outcome.run.events_of(Answer)]


def cut(run: RunFolder, event: type[Any], number: int) -> None:
    """As kill −9 leaves a journal: nothing behind the `number`-th event of a kind."""
    lines, seen = [], 0
    for line in run.lines():
        lines.append(line)
        seen += line.startswith(b'{"event":"%s"' % str(event.__struct_config__.tag).encode())
        if seen == number:
            break
    run.journal.write_bytes(b"".join(line + b"\n" for line in lines))
    (run.path / "journal.lock").write_bytes(b"")  # the number of lines is written at the end


def test_the_turns_of_a_sample_are_one_conversation_and_each_reply_is_on_disk(conversations: Write, run: Run) -> None:
    file = conversations(COUNTING, [THREE])
    outcome = run(file)
    assert asked(file) == [["0", 0, "t0", []], ["0", 0, "t1", ["A:t0"]], ["0", 0, "t2", ["A:t0", "A:t1"]]]
    assert texts(outcome) == [["A:t0", "A:t1", "A:t2"]]
    told = [one for one in outcome.run.events() if isinstance(one, ReplyEvent)]
    assert [(one.attempt, one.turn, one.reply.text) for one in told] == [(1, n, f"A:t{n}") for n in range(3)]
    (answer,) = outcome.run.events_of(Answer)
    assert answer.kept == 0
    assert all(reply.milliseconds is not None for reply in answer.replies)


def test_what_is_asked_may_be_other_than_the_question(conversations: Write, run: Run) -> None:
    row = {"turns": [{"question": "t0"}, {"question": "t1", "asked": "so far: t0 = 1. t1"}, {"question": "t2"}]}
    file = conversations(COUNTING, [row, {**row, "apart": True}])
    outcome = run(file)
    sent, answers = ["t0", "so far: t0 = 1. t1", "t2"], ["A:t0", "A:so far: t0 = 1. t1", "A:t2"]
    together = [["0", 0, text, answers[:number]] for number, text in enumerate(sent)]
    apart = [["1", 0, text, []] for text in sent]
    assert sorted(asked(file)) == sorted([*together, *apart])
    assert texts(outcome) == [answers, answers]


def test_turns_asked_apart_have_each_a_session_that_knows_its_number(conversations: Write, run: Run) -> None:
    code = (
        DATASET
        + """
import contextlib
from karat.records import Reply
class query:
    opened = 0
    @contextlib.asynccontextmanager
    async def session(self, condition, sample, first):
        query.opened += 1
        class Session:
            async def ask(self, turn):
                return Reply(text=f"{query.opened} {first} {turn.question}")
        yield Session()
"""
    )
    rows = [THREE, {**THREE, "apart": True}]
    outcome = run(conversations(code, rows, execution={"max_concurrent": 1}))
    assert texts(outcome) == [["1 0 t0", "1 0 t1", "1 0 t2"], ["2 0 t0", "3 1 t1", "4 2 t2"]]
    program = "import json,sys; task=json.load(sys.stdin); print(task['turn'], len(task['history']), task['question'])"
    agent = {"type": "command", "command": ["python", "-c", program]}
    outcome = run(conversations(DATASET, rows, agent=agent, execution={"max_concurrent": 1}))
    assert texts(outcome) == [["0 0 t0", "1 1 t1", "2 2 t2"], ["0 0 t0", "1 0 t1", "2 0 t2"]]


FUNCTIONS = {
    "history": ("user_query, history", [["R\n\nt0"], ["t1", "R\n\nt0"], ["t2", "R\n\nt0", "t1"]]),
    "none": ("user_query", [["R\n\nt0"], ["R\n\nt1"], ["R\n\nt2"]]),
    "apart": ("user_query, history, materials", [["t0"], ["t1", "t0"], ["t2", "t0", "t1"]]),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_materials_come_before_the_first_question_of_what_the_agent_sees(
    conversations: Write, run: Run, kind: str
) -> None:
    parameters, wanted = FUNCTIONS[kind]
    past = "history" if "history" in parameters else "()"
    code = DATASET + f"def query({parameters}):\n    asked([user_query, *[one['question'] for one in {past}]])\n"
    file = conversations(code + "    return 'x'\n", [{**THREE, "materials": "R"}])
    run(file)
    assert [one for (one,) in asked(file)] == wanted


def test_a_retry_goes_on_at_the_turn_that_failed(conversations: Write, run: Run) -> None:
    code = COUNTING.replace("FAULTS = {}", 'FAULTS = {"t1": 2}')
    file = conversations(code, [THREE, THREE], execution={"num_repetitions": 2})
    watch = RunStatus()
    outcome = run(file, status=watch)
    assert Counter(one[2] for one in asked(file)) == {"t0": 4, "t1": 12, "t2": 4}
    assert texts(outcome) == [["A:t0", "A:t1", "A:t2"]] * 4
    assert {(one.attempts, one.kept) for one in outcome.run.events_of(Answer)} == {(3, 1)}
    assert {len(one.replies) for one in outcome.run.events_of(Attempt)} == {0, 1}
    account = summarize(outcome.run).total
    assert (account.cost.agent.known, account.tokens.input, account.cost.agent.unknown) == (12.0, 120, 8)
    assert watch.dollars == 12.0
    past = read_journal(outcome.run, plan_of(file))
    assert (past.dollars, past.tokens, past.interrupted) == (12.0, 132, {})


def plan_of(file: Path) -> Any:
    from karat.config import load

    loaded = load(file)
    return plan(loaded, loaded.load_dataset())


WITH_SESSION = (
    DATASET
    + """
import contextlib
from karat.errors import InfrastructureFault
from karat.records import Reply
class query:
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        yield Session(sample)
class Session:
    def __init__(self, sample):
        self.sample, self.so_far = sample.id, []
    async def ask(self, turn):
        if asked(self.sample, turn.question, self.so_far) == 1 and turn.question == "t2":
            raise InfrastructureFault("network", "gone", retriable=True)
        self.so_far.append("A:" + turn.question)
        return Reply(text="A:" + turn.question, dollars=1.0)
"""
)
RESTORE = """
    def restore(self, history):
        self.so_far = [reply.text for turn, reply in history]
"""


@pytest.mark.parametrize(
    ("code", "calls", "kept"),
    [
        (WITH_SESSION, 6, 0),
        (WITH_SESSION + RESTORE, 4, 2),
        (WITH_SESSION + RESTORE.replace("def restore", "async def restore"), 4, 2),
    ],
)
def test_a_session_that_cannot_be_told_begins_anew_and_all_that_was_spent_counts(
    conversations: Write, run: Run, code: str, calls: int, kept: int
) -> None:
    file = conversations(code, [THREE])
    outcome = run(file)
    assert len(asked(file)) == calls
    assert texts(outcome) == [["A:t0", "A:t1", "A:t2"]]
    (answer,) = outcome.run.events_of(Answer)
    assert answer.kept == kept
    assert summarize(outcome.run).total.cost.agent.known == calls - 1
    assert read_journal(outcome.run, plan_of(file)).dollars == calls - 1


@pytest.mark.quick(1)
@pytest.mark.parametrize("number", range(1, 7))
def test_after_a_kill_no_turn_on_disk_is_asked_again(conversations: Write, run: Run, number: int) -> None:
    file = conversations(COUNTING, [THREE, THREE], execution={"max_concurrent": 2})
    whole = run(file)
    figures = summarize(whole.run).total
    cut(whole.run, ReplyEvent, number)
    before = {(one.trial, one.turn) for one in whole.run.events() if isinstance(one, ReplyEvent)}
    answered = {one.trial for one in whole.run.events_of(Answer)}
    assert len(before) == number
    past = read_journal(whole.run, plan_of(file))
    assert past.dollars == number
    assert {trial: len(places) for trial, places in past.interrupted.items()} == {
        trial: count for trial, count in Counter(trial for trial, _ in before).items() if trial not in answered
    }
    file.with_name("asked.txt").unlink()
    again = run(file, resume=whole.run.path)
    assert len(asked(file)) == 6 - number
    assert texts(again) == [["A:t0", "A:t1", "A:t2"]] * 2
    after = summarize(again.run).total
    assert (after.cost.agent, after.tokens, after.ledger) == (figures.cost.agent, figures.tokens, figures.ledger)
    assert read_journal(again.run, plan_of(file)).dollars == 6


@pytest.mark.slow
def test_a_kill_may_come_again_and_again(conversations: Write, run: Run) -> None:
    file = conversations(COUNTING, [{"turns": [{"question": f"t{number}"} for number in range(6)]}])
    outcome = run(file)
    for number in (1, 2, 4):
        cut(outcome.run, ReplyEvent, number)
        outcome = run(file, resume=outcome.run.path)
        assert texts(outcome) == [[f"A:t{turn}" for turn in range(6)]]
    assert Counter(one[2] for one in asked(file)) == {"t0": 1, "t1": 2, "t2": 3, "t3": 3, "t4": 4, "t5": 4}
    assert summarize(outcome.run).total.cost.agent.known == 6.0, "what was cut off was never there"


def test_a_conversation_that_failed_for_good_goes_on_with_retry_failed(conversations: Write, run: Run) -> None:
    code = COUNTING.replace("FAULTS = {}", 'FAULTS = {"t2": 1}').replace("InfrastructureFault(", "AgentFault(")
    file = conversations(code, [THREE], execution={"retry": {"max_attempts": 1}})
    first = run(file)
    assert [one.kind for one in first.run.events_of(Failure)] == ["network"]
    assert summarize(first.run).total.cost.agent.known == 2.0
    again = run(file, resume=first.run.path, retry_failed=True)
    assert texts(again) == [["A:t0", "A:t1", "A:t2"]]
    assert Counter(one[2] for one in asked(file)) == {"t0": 1, "t1": 1, "t2": 2}
    assert summarize(again.run).total.cost.agent.known == 3.0
    assert summarize(again.run).total.failed_attempts == 1


@pytest.mark.slow
def test_a_missed_gate_concerns_all_turns_and_begins_anew(conversations: Write, run: Run) -> None:
    code = (
        DATASET
        + """
from karat.records import Reply, ToolCall
def query(user_query, history):
    called = asked(user_query) > 1
    calls = (ToolCall(tool="t", server="docs", result="r"),) if called else ()
    return Reply(text="x", dollars=1.0, tool_calls=calls)
"""
    )
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"], "scope": "run"}
    gated = {"mcp_servers": ["docs"], "require_mcp_tool_use": True}
    sections: dict[str, Any] = {"mcp_servers": {"docs": docs}, "conditions": {"a": gated}}
    file = conversations(code, [THREE], **sections)
    outcome = run(file)
    assert [(one.attempts, one.kept) for one in outcome.run.events_of(Answer)] == [(2, 0)]
    assert len(asked(file)) == 6
    account = summarize(outcome.run).total
    assert (account.cost.agent.known, account.cost.agent.unknown) == (6.0, 0)
    file.with_name("asked.txt").unlink()
    stopped = run(conversations(code, [THREE], **sections, execution={"retry": {"max_attempts": 1}}))
    assert read_journal(stopped.run, plan_of(file)).interrupted == {}, "the next attempt begins anew"


def test_between_the_last_reply_and_the_answer_nothing_is_left_to_be_asked(conversations: Write, run: Run) -> None:
    for code in (COUNTING, WITH_SESSION.replace('== "t2"', '== "never"')):
        file = conversations(code, [THREE])
        outcome = run(file)
        cut(outcome.run, ReplyEvent, 3)
        file.with_name("asked.txt").unlink()
        again = run(file, resume=outcome.run.path)
        assert asked(file) == []
        assert texts(again) == [["A:t0", "A:t1", "A:t2"]]


def test_turns_asked_apart_always_go_on(conversations: Write, run: Run) -> None:
    file = conversations(WITH_SESSION, [{**THREE, "apart": True}])
    outcome = run(file)
    assert Counter(one[1] for one in asked(file)) == {"t0": 1, "t1": 1, "t2": 2}
    assert [(one.attempts, one.kept) for one in outcome.run.events_of(Answer)] == [(2, 2)]
    cut(outcome.run, ReplyEvent, 2)
    again = run(file, resume=outcome.run.path)
    assert Counter(one[1] for one in asked(file)) == {"t0": 1, "t1": 1, "t2": 3}
    assert texts(again) == [["A:t0", "A:t1", "A:t2"]]


def test_what_a_turn_said_that_failed_is_paid_once(conversations: Write, run: Run) -> None:
    code = (
        DATASET
        + """
from karat.errors import AgentFault
from karat.records import Reply, Usage
async def query(user_query, history):
    if user_query == "t1" and asked(user_query) == 1:
        fault = AgentFault("half", "of an answer", retriable=True)
        fault.reply = Reply(text="half", dollars=5.0)
        raise fault
    return Reply(text=user_query, dollars=1.0)
"""
    )
    outcome = run(conversations(code, [THREE]))
    (attempt,) = outcome.run.events_of(Attempt)
    assert [reply.text for reply in attempt.replies] == ["t0", "half"]
    assert summarize(outcome.run).total.cost.agent.known == 8.0
    assert texts(outcome) == [["t0", "t1", "t2"]]


def test_a_budget_reserves_whole_conversations(conversations: Write, run: Run) -> None:
    file = conversations(COUNTING, [THREE] * 10, execution={"max_concurrent": 2, "budget": {"usd": 14}})
    outcome = run(file)
    assert outcome.reason == "budget"
    assert len(asked(file)) == 12, "a fifth conversation would cost three"
    assert len(texts(outcome)) == 4


def test_the_timeout_bounds_the_whole_attempt(conversations: Write, run: Run) -> None:
    code = (
        DATASET
        + """
import asyncio
async def query(user_query, history):
    asked(user_query)
    await asyncio.sleep(0.5)
    return user_query
"""
    )
    row = {"turns": [{"question": f"t{number}"} for number in range(6)]}
    retry = {"timeouts": True, "max_attempts": 9, "initial_backoff_seconds": 0}
    file = conversations(code, [row], execution={"timeout_seconds": 1.9, "retry": retry})
    outcome = run(file)
    assert texts(outcome) == [[f"t{number}" for number in range(6)]]
    (answer,) = outcome.run.events_of(Answer)
    assert answer.attempts > 1
    assert answer.kept > 0
    assert answer.seconds > 2.9, "with what earlier attempts took for the replies that were kept"


def test_http_goes_on_behind_what_is_on_disk(conversations: Write, run: Run, httpserver: HTTPServer) -> None:
    def answered(request: Request) -> Response:
        return Response(json.dumps({"text": "A:" + request.json["q"]}), content_type="application/json")

    httpserver.expect_request("/ask").respond_with_handler(answered)
    body = {"q": "{{ question }}", "past": "{{ history }}", "turn": "{{ turn }}"}
    agent = {"type": "http", "url": httpserver.url_for("/ask"), "body": body, "dollars": 0}
    file = conversations(DATASET, [{**THREE, "materials": "R"}], agent=agent)
    outcome = run(file)
    cut(outcome.run, ReplyEvent, 2)
    again = run(file, resume=outcome.run.path)
    *before, last = [json.loads(request.data) for request, _ in httpserver.log]
    assert [one["q"] for one in before] == ["R\n\nt0", "t1", "t2"]
    assert last == before[-1]
    assert last == {
        "q": "t2",
        "past": [{"question": "R\n\nt0", "answer": "A:R\n\nt0"}, {"question": "t1", "answer": "A:t1"}],
        "turn": 2,
    }
    assert texts(again) == [["A:R\n\nt0", "A:t1", "A:t2"]]


MATERIALS = {
    "apart": ({"q": "{{ question }}", "m": "{{ materials }}", "h": "{{ history }}"}, ["t0", "t1", "t2"]),
    "no history": ({"q": "{{ question }}"}, ["R\n\nt0", "R\n\nt1", "R\n\nt2"]),
}


@pytest.mark.parametrize("kind", MATERIALS)
def test_an_http_service_is_sent_the_materials_whatever_its_template(
    conversations: Write, run: Run, httpserver: HTTPServer, kind: str
) -> None:
    body, wanted = MATERIALS[kind]
    httpserver.expect_request("/ask").respond_with_data("x")
    agent = {"type": "http", "url": httpserver.url_for("/ask"), "body": body, "dollars": 0}
    run(conversations(DATASET, [{**THREE, "materials": "R"}], agent=agent))
    sent = [json.loads(request.data) for request, _ in httpserver.log]
    assert [one["q"] for one in sent] == wanted
    assert {one.get("m", "R") for one in sent} == {"R"}


def test_chat_goes_on_behind_what_is_on_disk(conversations: Write, run: Run) -> None:
    pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")
    from karat.testing.models import serve

    with serve([{"say": ["I heard: {{ question }}"]}]) as server:
        agent = {"type": "chat", "model": "openai:rehearsal", "base_url": server.openai_url}
        file = conversations(DATASET, [{**THREE, "materials": "R"}], agent=agent)
        outcome = run(file)
        whole = [(one.role, one.text) for one in server.requests[-1].messages]
        cut(outcome.run, ReplyEvent, 2)
        again = run(file, resume=outcome.run.path)
        assert len(server.requests) == 4
        assert [(one.role, one.text) for one in server.requests[-1].messages] == whole
    assert texts(again) == texts(outcome)


@pytest.mark.needs_package("karat_servers")
@pytest.mark.slow
def test_a_recording_that_was_taken_up_again_is_replayed_as_one(conversations: Write, run: Run) -> None:
    code = (
        DATASET
        + """
import contextlib
from karat.errors import InfrastructureFault
from karat.records import Reply
class query:
    def __init__(self, setting):
        self.toolbox = setting.toolbox
    @contextlib.asynccontextmanager
    async def session(self, condition, sample):
        async with self.toolbox.open(condition) as tools:
            yield Session(tools)
class Session:
    def __init__(self, tools):
        self.tools = tools
    def restore(self, history):
        pass
    async def ask(self, turn):
        call = await self.tools.call("docs", "echo", {"text": turn.question})
        if turn.question == "t2" and asked(turn.question) == 1:
            raise InfrastructureFault("network", "gone")
        return Reply(text=call.result, tool_calls=self.tools.calls[-1:])
"""
    )
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"]}
    sections: dict[str, Any] = {"mcp_servers": {"docs": docs}, "conditions": {"a": {"mcp_servers": ["docs"]}}}
    file = conversations(code, [THREE], mcp={"record": "tapes"}, **sections)
    outcome = run(file)
    assert [one.kind for one in outcome.run.events_of(Failure)] == ["network"]
    recorded = run(file, resume=outcome.run.path)
    assert texts(recorded) == [["t0", "t1", "t2"]]
    again = run(conversations(code, [THREE], mcp={"replay": "tapes"}, **sections))
    assert texts(again) == [["t0", "t1", "t2"]]


def cost(run: RunFolder) -> float:
    return summarize(RunFolder.open(run.path)).total.cost.agent.known


@pytest.mark.slow
@pytest.mark.needs_package("karat_scale")
@pytest.mark.parametrize("order", [("fails", "answers"), ("answers", "fails"), ("answers", "fails once")])
def test_merging_runs_of_the_same_conversations_adds_up_what_they_cost(
    conversations: Write, run: Run, tmp_path: Path, order: tuple[str, str]
) -> None:
    code = (
        DATASET
        + """
from karat.errors import InfrastructureFault
HERE = pathlib.Path(__file__)
def query(user_query, sample):
    mode, once = HERE.with_name("mode").read_text(), HERE.with_name(f"once-{sample.id}")
    if user_query == "t2" and (mode == "fails" or mode == "fails once" and not once.exists()):
        once.touch()
        raise InfrastructureFault("network", "gone", retriable=mode == "fails once")
    return {"text": user_query + mode, "dollars": 1.0}
"""
    )
    runs = []
    for mode in order:
        (tmp_path / "mode").write_text(mode)
        runs.append(run(conversations(code, [THREE, THREE])).run)
    assert cost(merged(runs, tmp_path / "merged")) == sum(map(cost, runs))


@pytest.mark.needs_package("karat_scale")
def test_a_killed_run_is_charged_for_its_replies_when_merged_with_another(
    conversations: Write, run: Run, tmp_path: Path
) -> None:
    code = (
        DATASET
        + """
from karat.errors import AgentFault
from karat.records import Reply
def query(user_query):
    if user_query == "t1" and pathlib.Path(__file__).with_name("fails").exists():
        fault = AgentFault("refused", "not this one")
        fault.reply = Reply(text="cut off", dollars=5.0)
        raise fault
    return {"text": user_query, "dollars": 1.0}
"""
    )
    file = conversations(code, [THREE, THREE])
    killed = run(file).run
    cut(killed, ReplyEvent, 4)
    (tmp_path / "fails").touch()
    other = run(file).run
    assert cost(merged([killed, other], tmp_path / "merged")) == cost(killed) + cost(other)
