"""One trial, then the crowd: what is asked, how often, how many at once, and what becomes of failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from karat.errors import BadOption, ResumeRefused
from karat.execution import Outcome, RunStatus, Selection, Shard
from karat.journal import Attempt, Codec, End, Head, Resume, RunFolder
from karat.records import Answer, Failure, Score

PLAIN = "def query(user_query, system_prompt, mcp_servers):\n    return user_query.replace('q', 'a')\n"
COUNTING = """
import json, pathlib
CALLS = pathlib.Path(__file__).with_name("calls.txt")
def called(*what):
    with CALLS.open("a") as file:
        file.write(json.dumps(what) + "\\n")
"""

Write = Callable[..., Path]
Run = Callable[..., Outcome]


def calls(file: Path) -> list[Any]:
    log = file.with_name("calls.txt")
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def failures(outcome: Outcome) -> list[tuple[str, str, str, str | None, str | None, int | None]]:
    found = outcome.run.events_of(Failure)
    return [(one.stage, one.cls, one.kind, one.sample, one.condition, one.repetition) for one in found]


def test_every_trial_is_asked_once_in_order_with_the_condition_innermost(experiment: Write, run: Run) -> None:
    file = experiment(PLAIN, execution={"max_concurrent": 1})
    outcome = run(file)
    answers = list(outcome.run.events_of(Answer))
    assert [(one.sample, one.repetition, one.condition) for one in answers] == [
        (sample, repetition, condition) for sample in "012" for repetition in (0, 1) for condition in "ab"
    ]
    assert len({one.trial for one in answers}) == 12
    assert (outcome.reason, outcome.failed) == ("done", 0)
    events = list(outcome.run.events())
    assert isinstance(events[0], Head)
    assert isinstance(events[-1], End)
    assert all(score.values == {"equals": True} for score in outcome.run.events_of(Score))


def test_two_equal_conditions_and_two_equal_questions_stay_apart(experiment: Write, run: Run) -> None:
    same = {"system_prompt": "same"}
    file = experiment(PLAIN, conditions={"one": same, "two": same})
    questions = file.with_name("questions.jsonl")
    questions.write_text('{"question":"q","answer":"a"}\n' * 2)
    outcome = run(file)
    answers = list(outcome.run.events_of(Answer))
    assert len({one.trial for one in answers}) == len(answers) == 2 * 2 * 2


def test_the_bound_on_concurrency_holds_for_agent_calls(experiment: Write, run: Run) -> None:
    code = """
import asyncio
open_now = most = 0
async def query(user_query, system_prompt, mcp_servers):
    global open_now, most
    open_now += 1
    most = max(most, open_now)
    await asyncio.sleep(0.01)
    open_now -= 1
    return str(most)
"""
    outcome = run(experiment(code, questions=10, execution={"max_concurrent": 4}))
    assert max(int(answer.text) for answer in outcome.run.events_of(Answer)) == 4


def test_an_answer_is_on_disk_before_its_scorer_is_asked(experiment: Write, run: Run, tmp_path: Path) -> None:
    code = f"""
import pathlib
def query(user_query, system_prompt, mcp_servers):
    return "text of " + user_query
class Scorer:
    async def score(self, sample, answer):
        journal = next(pathlib.Path({str(tmp_path)!r}).glob("results/*/journal.jsonl")).read_text()
        return f'"trial":"{{answer.trial}}"' in journal and f"text of {{sample.turns[0].question}}" in journal
"""
    outcome = run(experiment(code))
    found = [value for score in outcome.run.events_of(Score) for value in score.values.values()]
    assert found == [True] * 12


def test_a_failing_judge_costs_no_second_agent_call(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
def query(user_query, system_prompt, mcp_servers):
    called(user_query)
    return user_query
class Scorer:
    seen = 0
    async def score(self, sample, answer):
        if sample.id == "3":
            raise RuntimeError("no judgement today")
        return 1.0
"""
    )
    file = experiment(code, questions=10)
    outcome = run(file)
    assert Counter(question for (question,) in calls(file)) == {f"q{number}": 4 for number in range(10)}
    assert set(failures(outcome)) == {("score", "judge", "crash", "3", c, r) for c in "ab" for r in (0, 1)}
    assert outcome.failed == 4
    # Once the judge is well again, only the missing scores are asked for.
    module = next(file.parent.glob("agent_of_*.py"))
    module.write_text(code.replace('sample.id == "3"', "False"))
    import sys

    sys.modules.pop(module.stem)
    again = run(file, resume=outcome.run.path)
    assert len(calls(file)) == 40
    assert (again.failed, len(list(again.run.events_of(Score)))) == (0, 40)


def test_a_judge_is_tried_again_without_the_agent(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
from karat.errors import InfrastructureFault
def query(user_query, system_prompt, mcp_servers):
    called("agent")
    return user_query
class Scorer:
    def __init__(self): self.seen = {}
    async def score(self, sample, answer):
        self.seen[answer.trial] = self.seen.get(answer.trial, 0) + 1
        if self.seen[answer.trial] < 3:
            raise InfrastructureFault("rate_limit", "slow down", retriable=True)
        return 1.0
"""
    )
    file = experiment(code, questions=1)
    outcome = run(file)
    assert (outcome.failed, len(calls(file)), len(list(outcome.run.events_of(Score)))) == (0, 4, 4)
    assert [(one.n, one.stage, one.cls) for one in outcome.run.events_of(Attempt)].count(
        (2, "score", "infrastructure")
    ) == 4


def test_attempts_are_bounded_counted_and_journalled(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
from karat.errors import AgentFault
from karat.records import Usage
def query(user_query, system_prompt, mcp_servers, repetition):
    called(user_query, system_prompt, repetition)
    tries = CALLS.read_text().splitlines().count(json.dumps([user_query, system_prompt, repetition]))
    if user_query == "q0" and tries < 3:
        raise AgentFault("flaky", "not yet", retriable=True, dollars=0.5, usage=Usage(input_tokens=7))
    if user_query == "q1":
        raise AgentFault("never", "not ever", retriable=False)
    if user_query == "q2":
        raise ValueError("crash")
    return "fine"
"""
    )
    file = experiment(code, questions=4, execution={"num_repetitions": 1}, conditions={"a": {"system_prompt": "A"}})
    outcome = run(file)
    assert Counter(call[0] for call in calls(file)) == {"q0": 3, "q1": 1, "q2": 3, "q3": 1}
    assert failures(outcome) == [("agent", "agent", "never", "1", "a", 0), ("agent", "agent", "crash", "2", "a", 0)]
    by_sample = {one.sample: one.attempts for one in outcome.run.events_of(Answer)}
    assert by_sample == {"0": 3, "3": 1}
    attempts = [one for one in outcome.run.events_of(Attempt) if one.kind == "flaky"]
    assert [(one.n, one.dollars, one.usage and one.usage.input_tokens) for one in attempts] == [
        (1, 0.5, 7),
        (2, 0.5, 7),
    ]


def test_a_timeout_is_a_limit_and_is_not_tried_again_unless_asked(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
import asyncio
async def query(user_query, system_prompt, mcp_servers):
    called(user_query)
    await asyncio.sleep(60)
"""
    )
    sections: dict[str, Any] = {"questions": 1, "conditions": {"a": {}}}
    execution: dict[str, Any] = {"num_repetitions": 1, "timeout_seconds": 0.1}
    file = experiment(code, execution=execution, **sections)
    outcome = run(file)
    assert failures(outcome) == [("agent", "limit", "timeout", "0", "a", 0)]
    assert len(calls(file)) == 1
    execution["retry"] = {"timeouts": True, "initial_backoff_seconds": 0, "max_attempts": 2}
    file = experiment(code, execution=execution, **sections)
    run(file)
    assert len(calls(file)) == 3


def test_a_hung_sync_function_is_given_up_and_the_others_go_on(experiment: Write, run: Run) -> None:
    code = """
import time
def query(user_query, system_prompt, mcp_servers):
    time.sleep(9 if user_query == "q0" else 0)
    return user_query
"""
    file = experiment(code, questions=6, execution={"timeout_seconds": 3, "max_concurrent": 2, "num_repetitions": 1})
    outcome = run(file)
    assert {one[3] for one in failures(outcome)} == {"0"}
    assert outcome.run.info.plan.trials == 12
    assert len(list(outcome.run.events_of(Answer))) == 10


@pytest.mark.parametrize(("limit", "asked"), [(3, 3), (0.25, 5)])
def test_max_failures_drains_keeps_everything_and_says_so(
    experiment: Write, run: Run, limit: float, asked: int
) -> None:
    code = (
        COUNTING
        + """
def query(user_query, system_prompt, mcp_servers):
    called(user_query)
    raise ValueError("always")
"""
    )
    execution = {"max_failures": limit, "max_concurrent": 1, "retry": {"max_attempts": 1}}
    file = experiment(code, questions=5, execution=execution)
    outcome = run(file)
    assert (outcome.reason, len(calls(file))) == ("max_failures", asked)
    assert outcome.run.status() == "max_failures"


def test_the_budget_is_kept_and_counts_earlier_parts(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
def query(user_query, system_prompt, mcp_servers):
    called(user_query)
    return {"text": "x", "dollars": 1.0, "usage": {"input_tokens": 3, "output_tokens": 2}}
"""
    )
    sections: dict[str, Any] = {"questions": 5}
    file = experiment(code, **sections, execution={"budget": {"usd": 7}, "max_concurrent": 3})
    outcome = run(file)
    # Before the first answer no price is known, so one round of 3 starts; after it, 7 are never passed.
    assert (outcome.reason, len(calls(file))) == ("budget", 7)
    file = experiment(code, **sections, execution={"budget": {"usd": 9}, "max_concurrent": 3})
    again = run(file, resume=outcome.run.path)
    assert (again.reason, len(calls(file))) == ("budget", 9), "the price is known from the answers before"
    file = experiment(code, **sections, execution={"budget": {"tokens": 60}, "max_concurrent": 1})
    assert (run(file, resume=outcome.run.path).reason, len(calls(file))) == ("budget", 12)


def test_the_budget_also_limits_scores_that_a_resume_adds(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
from pathlib import Path
from karat.errors import JudgeFault
from karat.scorers import Verdict
def query(user_query, system_prompt, mcp_servers):
    return {"text": "x", "dollars": 0.01}
class Scorer:
    offline = False
    def score(self, sample, answer):
        if Path(__file__).with_name("down").exists():
            raise JudgeFault("down", "no judge")
        return Verdict(values={"m": 1.0}, dollars=1.0)
"""
    )
    options = {"budget": {"usd": 5}, "retry": {"max_attempts": 1}, "max_concurrent": 2}
    file = experiment(code, questions=5, execution=options)
    down = file.with_name("down")
    down.touch()
    first = run(file)
    down.unlink()
    again = run(file, resume=first.run.path)
    assert (again.reason, len(list(again.run.events_of(Score)))) == ("budget", 4)


def test_a_budget_in_dollars_stops_at_an_unknown_price(experiment: Write, run: Run) -> None:
    watch = RunStatus()
    file = experiment(PLAIN, execution={"budget": {"usd": 5}, "max_concurrent": 1})
    outcome = run(file, status=watch)
    assert outcome.reason == "budget"
    assert len(list(outcome.run.events_of(Answer))) == 1
    assert any("price" in notice for notice in watch.notices)


def test_the_operators_faults_leave_nothing_on_disk(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(PLAIN)
    with pytest.raises(BadOption, match="no condition is called 'c'"):
        run(file, selection=Selection(conditions=("c",)))
    assert not (tmp_path / "results").exists()


def test_a_selection_runs_now_and_the_rest_later(experiment: Write, run: Run) -> None:
    file = experiment(PLAIN)
    first = run(file, selection=Selection(limit=1, conditions=("b",)))
    assert [(one.sample, one.condition) for one in first.run.events_of(Answer)] == [("0", "b")] * 2
    second = run(file, resume=first.run.path)
    assert len(list(second.run.events_of(Answer))) == 12
    assert second.run.plan().trials == 12
    assert [sample.id for sample in second.run.samples()] == ["0", "1", "2"]


def test_resume_accepts_more_and_refuses_other(experiment: Write, run: Run) -> None:
    first = run(experiment(PLAIN, questions=2))
    more = experiment(
        PLAIN,
        questions=3,
        conditions={"a": {"system_prompt": "A"}, "b": {"system_prompt": "B"}, "c": {"system_prompt": "C"}},
        execution={"num_repetitions": 3, "timeout_seconds": 5, "max_concurrent": 2},
    )
    second = run(more, resume=first.run.path)
    answers = list(second.run.events_of(Answer))
    assert len(answers) == len({one.trial for one in answers}) == 27
    with pytest.raises(ResumeRefused, match=r"conditions\.b\.system_prompt was 'B', is 'Other'"):
        run(
            experiment(
                PLAIN,
                conditions={"a": {"system_prompt": "A"}, "b": {"system_prompt": "Other"}, "c": {"system_prompt": "C"}},
            ),
            resume=first.run.path,
        )
    with pytest.raises(ResumeRefused, match="condition 'c' is gone"):
        run(experiment(PLAIN), resume=second.run.path)
    other = experiment(PLAIN, questions=3)
    other.with_name("questions.jsonl").write_text(
        '{"question":"q0","answer":"changed"}\n{"question":"q1","answer":"a1"}\n'
    )
    with pytest.raises(ResumeRefused, match="sample '0'") as refused:
        run(other, resume=first.run.path)
    assert "sample '2'" in str(refused.value), "all changes at once"
    third = run(experiment(PLAIN))
    with pytest.raises(ResumeRefused, match="karat score"):
        run(experiment(PLAIN, scorers=["contains"]), resume=third.run.path)


def test_agent_faults_are_asked_again_only_on_request_and_others_always(experiment: Write, run: Run) -> None:
    code = (
        COUNTING
        + """
from karat.errors import AgentFault, InfrastructureFault
def query(user_query, system_prompt, mcp_servers):
    called(user_query)
    if len(CALLS.read_text().splitlines()) <= 3:
        if user_query == "q0": raise AgentFault("nonsense", "no")
        if user_query == "q1": raise InfrastructureFault("network", "gone")
    return "fine"
"""
    )
    execution = {"num_repetitions": 1, "max_concurrent": 1}
    file = experiment(code, conditions={"a": {}}, execution=execution)
    first = run(file)
    assert [one[1] for one in failures(first)] == ["agent", "infrastructure"]
    run(file, resume=first.run.path)
    assert calls(file)[3:] == [["q1"]]
    last = run(file, resume=first.run.path, retry_failed=True)
    assert calls(file)[4:] == [["q0"]]
    assert sorted(one.sample for one in last.run.events_of(Answer)) == ["0", "1", "2"]
    assert len(list(last.run.events_of(Resume))) == 2


def test_gates_fail_the_attempt_and_name_the_gate(experiment: Write, run: Run) -> None:
    code = """
def query(user_query, system_prompt, mcp_servers):
    if system_prompt == "calls and fails":
        return {"text": "x", "tool_calls": [{"tool": "t", "server": "docs", "error": "broken"}]}
    if system_prompt == "calls its own":
        return {"text": "x", "tool_calls": [{"tool": "bash"}]}
    return {"text": "x", "tool_calls": [{"tool": "t", "server": "docs", "result": "ok"}]}
"""
    gates = {"require_mcp_tool_use": True, "require_mcp_tool_success": True}
    prompts = ["calls and fails", "calls its own", "calls well"]
    conditions = {prompt: {"system_prompt": prompt, "mcp_servers": ["docs"], **gates} for prompt in prompts}
    docs = {"type": "stdio", "command": "python", "args": ["-m", "karat.testing.mcp_server"], "scope": "run"}
    sections = {"conditions": conditions, "mcp_servers": {"docs": docs}}
    file = experiment(code, questions=1, execution={"num_repetitions": 1}, **sections)
    outcome = run(file)
    assert {one[4]: one[2] for one in failures(outcome)} == {
        "calls and fails": "gate_tool_success",
        "calls its own": "gate_tool_use",
    }
    assert [one.condition for one in outcome.run.events_of(Answer)] == ["calls well"]
    assert len(list(outcome.run.events_of(Attempt))) == 6, "a missed gate is tried again"


def test_a_full_disk_ends_the_run_with_a_remedy(experiment: Write, run: Run, tmp_path: Path) -> None:
    import subprocess
    import sys

    file = experiment(PLAIN, questions=200)
    script = (
        "import asyncio,resource,signal,sys\nfrom pathlib import Path\nfrom karat.config import load\n"
        "from karat.execution import run_experiment\nfrom karat.errors import BadRun\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nexperiment=load(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE,(40000,40000))\n"
        "try: asyncio.run(run_experiment(experiment, results=Path(sys.argv[2])))\n"
        "except BadRun as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(file), str(tmp_path / "results")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "--resume" in done.stdout, done.stderr
    folder = next((tmp_path / "results").iterdir())
    before = [one.trial for one in RunFolder.open(folder).events_of(Answer)]
    assert before
    again = run(file, resume=folder)
    after = [one.trial for one in again.run.events_of(Answer)]
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) == 800


def test_a_resume_with_another_scorer_says_what_is_other(experiment: Write, run: Run) -> None:
    def scored(**scorers: Any) -> Path:
        given = [{"type": kind, "name": name, **options} for name, (kind, options) in scorers.items()]
        return experiment(PLAIN, questions=2, scorers=given)

    first = run(scored(form=("regex", {"pattern": "a"}), same=("equals", {}), gone=("equals", {})))
    with pytest.raises(ResumeRefused) as refused:
        run(scored(form=("regex", {"pattern": "b"}), same=("contains", {}), new=("equals", {})), resume=first.run.path)
    assert [*refused.value.changes] == [
        "the scorer 'form' changed: pattern was 'a', is 'b'",
        "the scorer 'same' changed: its type was equals, is contains",
        "the scorer 'gone' is gone",
        "the scorer 'new' is new",
    ]


def test_a_scorer_sees_no_secret_that_a_question_holds(experiment: Write, run: Run, monkeypatch) -> None:
    """It reads samples as the run folder has them."""
    monkeypatch.setenv("ANSWER_KEY", "correct-horse-battery")
    code = PLAIN + (
        "class Scorer:\n"
        "    def score(self, sample, answer):\n"
        "        return 'correct-horse' not in sample.turns[0].golden and 'It is' in sample.turns[0].golden\n"
    )
    file = experiment(code, secrets=["ANSWER_KEY"], questions=1)
    file.with_name("questions.jsonl").write_text(
        '{"question":"q","answer":"It is correct-horse-battery."}\n'
        '{"question":"q2","answer":"It is correct-horse-battery, too."}\n'
    )
    given = [value for score in run(file).run.events_of(Score) for value in score.values.values()]
    assert given == [True] * 8


def test_a_status_that_expects_nothing_yet_counts_nothing() -> None:
    status = RunStatus()
    assert (status.planned, status.before, status.answered, status.settled, status.failed, status.in_flight) == (0,) * 6
    status.expects({"a": 6, "b": 6}, {"a": 2})
    assert (status.planned, status.before, status.conditions["b"].before) == (12, 2, 0)
    status.spares(["a"])
    assert (status.planned, status.conditions["a"].planned) == (8, 2)


def test_a_run_shows_how_its_first_row_was_read_unless_the_answers_are_made_already(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    def remarks(**sections: Any) -> list[str]:
        status, said = RunStatus(), list[str]()
        status.on_remark = said.append
        run(experiment("def query(q): return q", **sections), status=status)
        return said

    assert remarks() == ["first row:\n  question   q0  [question]\n  golden     a0  [answer]"]
    (tmp_path / "answers.jsonl").write_text('{"id": "0", "answer": "a0"}\n')
    assert remarks(agent={"type": "replay", "path": "answers.jsonl"}, questions=1) == []


def test_what_a_run_must_say_of_its_agents_is_kept_in_it(experiment: Write, run: Run) -> None:
    outcome = run(experiment("def query(q): return q", questions=1))
    assert outcome.run.info.source == {
        "notes": "conditions 'a', 'b' cannot differ: they differ in system_prompt alone, "
        "and query(q) takes no system_prompt"
    }


def test_an_agent_that_leaves_the_working_directory_is_brought_back(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    code = f"""
import os
def query(user_query, system_prompt, mcp_servers):
    os.chdir({str(tmp_path / "elsewhere")!r})
    return "x"
"""
    here = Path.cwd()
    status = RunStatus()
    outcome = run(experiment(code, questions=1), status=status)
    assert Path.cwd() == here
    assert status.notices == [f"the agent changed the working directory; it is {here} again"]
    assert outcome.run.status() == "done"


def test_a_shard_is_resumed_as_the_shard_that_it_is(experiment: Write, run: Run) -> None:
    file = experiment(PLAIN)
    first = run(file, selection=Selection(shard=Shard(1, 2)))
    assert first.run.info.shard == "1/2"
    with pytest.raises(ResumeRefused, match="it is shard 1/2"):
        run(file, resume=first.run.path, selection=Selection(shard=Shard(2, 2)))
    same = run(file, resume=first.run.path, selection=Selection(shard=Shard(1, 2)))
    assert len(list(same.run.events_of(Answer))) == len(list(first.run.events_of(Answer)))
    whole = run(file)
    with pytest.raises(ResumeRefused, match="it is no shard, but the whole experiment"):
        run(file, resume=whole.run.path, selection=Selection(shard=Shard(1, 2)))


def test_a_rehearsal_is_not_continued_as_a_run(experiment: Write, run: Run) -> None:
    outcome = run(experiment(PLAIN, questions=1))
    info = structs.replace(outcome.run.info, rehearsed=True)
    (outcome.run.path / "run.json").write_bytes(Codec().line(info))
    with pytest.raises(ResumeRefused, match="it is a rehearsal, in which scripts played the models"):
        run(experiment(PLAIN, questions=1), resume=outcome.run.path)


def test_many_samples_that_changed_are_named_in_part(experiment: Write, run: Run) -> None:
    file = experiment(PLAIN, questions=8)
    outcome = run(file)
    rows = [{"question": f"q{number}", "answer": "changed"} for number in range(7)]
    file.with_name("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ResumeRefused) as refused:
        run(file, resume=outcome.run.path)
    changed, gone = refused.value.changes
    assert changed == (
        "the dataset changed in samples '0', '1', '2', '3', '4' and 2 more: what is asked, golden answer or materials "
        "differ"
    )
    assert gone == "the dataset no longer has sample '7'"


def test_a_condition_whose_agent_changed_says_in_which_option(experiment: Write, run: Run) -> None:
    def agent(**options: Any) -> Path:
        return experiment(agent={"type": "floor", **options}, conditions={"a": {}}, questions=1)

    outcome = run(agent())
    changed = agent(obey_length=False)
    with pytest.raises(ResumeRefused) as refused:
        run(changed, resume=outcome.run.path)
    assert [*refused.value.changes] == ["the agent of condition 'a' changed: agent.obey_length was True, is False"]
