"""What a run keeps and says of its agents, and what a later part of it is compared with."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.config import load
from karat.config.rehearsed import redirected
from karat.errors import BadDataset, OperatorError, ResumeRefused
from karat.execution import Outcome, RunStatus, Selection, run_experiment
from karat.journal import End, Resume, ScorerInfo
from karat.records import Answer, Sample, Score

Write = Callable[..., Path]
Run = Callable[..., Outcome]

# What it is beside its answers stands in a file, so that it can change without an option that does.
AGENT = """
import json, pathlib
from pydantic import BaseModel
from karat import Reply, Usage

def told():
    return json.loads(pathlib.Path(__file__).with_name("told.json").read_text())

class Options(BaseModel):
    name: str = "One"

class Agent:
    Options = Options

    def __init__(self, options):
        for key, value in told().get(options.name, {}).items():
            setattr(self, key, value)
        self.skips = getattr(self, "skips", [])
        if self.skips:
            self.never_made = lambda trial: trial.sample.id in self.skips

    async def ask(self, condition, sample, turn, history):
        known = {"dollars": 0.5, "usage": Usage(input_tokens=3)}
        return Reply(text="x", **{key: known[key] for key in told().get("knows", known)})
"""


@pytest.fixture
def write(experiment: Write, tmp_path: Path) -> Write:
    """`write(told, **sections)`: an experiment whose conditions a and b have agents of their own."""

    def go(told: dict[str, Any], **sections: Any) -> Path:
        (tmp_path / "told.json").write_text(json.dumps(told))
        agent = {"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent"}
        conditions = {"a": {}, "b": {"agent": {"name": "Two"}}}
        return experiment(AGENT, **{"agent": agent, "conditions": conditions, "questions": 2, **sections})

    return go


@pytest.mark.parametrize(
    ("keys", "said"),
    [(1, "k0"), (8, "k0, k1, k2, k3, k4, k5, k6, k7"), (10, "k0, k1, k2, k3, k4, k5, k6, k7 and 2 more")],
)
def test_what_of_the_agents_changed_or_was_not_read_is_said_at_the_end(
    write: Write, run: Run, keys: int, said: str
) -> None:
    unread = [f"k{number}" for number in reversed(range(keys))]
    status = RunStatus()
    run(write({"One": {"changes": ["it is another"], "unread": unread}, "Two": {"unread": ["k0"]}}), status=status)
    assert status.notices == [
        "it is another; its answers are not alike",
        f"the agent's replies have keys that are not kept: {said}",
    ]


def test_what_a_run_says_of_its_agents_holds_for_all_of_them(write: Write, run: Run) -> None:
    both = {"reports_tool_calls": True, "measures_calls": True}
    info = run(write({"One": both, "Two": both})).run.info
    assert (info.reports_tool_calls, info.measures_calls, info.sparse) == (True, True, False)
    info = run(write({"One": both})).run.info
    assert (info.reports_tool_calls, info.measures_calls, info.sparse) == (False, False, False)


def test_trials_that_were_never_made_are_neither_asked_nor_expected(write: Write, run: Run) -> None:
    status = RunStatus()
    outcome = run(write({"Two": {"skips": ["1"]}}, execution={"num_repetitions": 1}), status=status)
    assert outcome.run.info.sparse
    assert (status.planned, status.conditions["a"].planned, status.conditions["b"].planned) == (3, 2, 1)
    answers = [(answer.sample, answer.condition) for answer in outcome.run.events_of(Answer)]
    assert sorted(answers) == [("0", "a"), ("0", "b"), ("1", "a")]


@pytest.mark.slow
def test_a_run_goes_on_with_the_programs_that_it_began_with(write: Write, run: Run) -> None:
    def versions(one: str, two: str) -> dict[str, Any]:
        return {"One": {"versions": {"tool": one, "aid": "7"}}, "Two": {"versions": {"tool": two}}}

    first = run(write(versions("2.0", "1.0"))).run
    assert (first.info.versions["tool"], first.info.versions["aid"]) == ("1.0, 2.0", "7")
    for known in (versions("2.0", "1.0"), versions("1.0", "1.0")):
        run(write(known), resume=first.path)
    run(write({"One": {"versions": {"other": "1"}}}), resume=first.path)
    with pytest.raises(ResumeRefused) as refused:
        run(write(versions("3.0", "1.0")), resume=first.path)
    assert refused.value.changes == ("tool is now 1.0, 3.0, and was 1.0, 2.0",)
    assert refused.value.remedy == ("Install the version that the run began with, or start a new run without --resume.")


def test_recorded_answers_of_another_file_do_not_continue_a_run(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment(agent={"type": "replay", "path": "said.jsonl"}, conditions={"a": {}}, questions=1,
                      execution={"num_repetitions": 1})  # fmt: skip
    said = tmp_path / "said.jsonl"
    said.write_text('{"id": "0", "answer": "a0"}\n')
    first = run(file).run
    assert first.info.source["sha256"] == hashlib.sha256(said.read_bytes()).hexdigest()
    assert len(list(run(file, resume=first.path).run.events_of(Answer))) == 1
    said.write_text('{"id": "0", "answer": "other"}\n')
    with pytest.raises(ResumeRefused) as refused:
        run(file, resume=first.path)
    digest = hashlib.sha256(said.read_bytes()).hexdigest()[:12]
    assert refused.value.changes == (f"the recorded answers are of another file: {said}, sha256 {digest}",)
    assert refused.value.remedy == "Start a new run without --resume."


def test_a_run_is_not_continued_as_a_rehearsal(write: Write, run: Run) -> None:
    file = write({})
    first = run(file).run
    with pytest.raises(ResumeRefused) as refused:
        run(redirected(load(file), "http://127.0.0.1:9"), resume=first.path)
    assert refused.value.changes == ("it is no rehearsal",)
    assert refused.value.remedy == "Start a new run without --resume."


def test_without_its_journal_a_run_is_asked_anew(write: Write, run: Run) -> None:
    file = write({})
    first = run(file).run
    (first.path / "journal.jsonl").unlink()
    status = RunStatus()
    again = run(file, resume=first.path, status=status).run
    assert "the journal is empty or missing: everything is asked" in status.notices
    assert len(list(again.events_of(Answer))) == 8
    assert len(list(again.events_of(Resume))) == 1


def test_a_resumed_run_has_the_samples_of_all_its_parts_in_the_order_of_the_file(write: Write, run: Run) -> None:
    file = write({}, questions=4)
    first = run(file, selection=Selection(samples=("2",), conditions=("a",)))
    again = run(file, resume=first.run.path, selection=Selection(samples=("3", "0")))
    assert [sample.id for sample in again.run.samples()] == ["0", "2", "3"]
    (event,) = again.run.events_of(Resume)
    assert event.plan is not None
    assert (event.plan.samples, event.plan.conditions, event.plan.repetitions) == (3, ("a", "b"), 2)
    assert (event.command, event.scorers, event.kept, event.servers) == ("run", (), (), ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("knows", "budget", "said"),
    [
        (["usage"], {"usd": 100}, "an earlier answer has no known price"),
        (["dollars"], {"tokens": 1000}, "an earlier answer has no known tokens"),
        (["usage"], {"tokens": 1000}, None),
        (["dollars"], {"usd": 100}, None),
    ],
)
def test_a_budget_does_not_hold_where_an_earlier_cost_is_unknown(
    write: Write, run: Run, knows: list[str], budget: dict[str, int], said: str | None
) -> None:
    first = run(write({"knows": knows}), selection=Selection(limit=1)).run
    status = RunStatus()
    outcome = run(write({}, execution={"budget": budget}), resume=first.path, status=status)
    if said is None:
        assert (outcome.reason, status.notices) == ("done", [])
    else:
        assert outcome.reason == "budget"
        assert status.notices == [f"the budget stopped the run: {said}, so the rest of it is not known"]
    assert (status.past.dollars_unknown, status.past.tokens_unknown) == ("dollars" not in knows, "usage" not in knows)
    assert (status.past.dollars, status.past.tokens) == (2.0 * ("dollars" in knows), 12 * ("usage" in knows))


def test_the_prompt_of_each_condition_is_in_the_run_by_its_digest(experiment: Write, run: Run) -> None:
    info = run(experiment("def query(q): return q", conditions={"a": {}, "b": {"system_prompt": "ü"}})).run.info
    assert info.prompts == {"a": hashlib.sha256(b"").hexdigest(), "b": hashlib.sha256("ü".encode()).hexdigest()}
    assert (info.agent_type, info.agent_model, info.shard, info.rehearsed) == ("python", None, None, False)
    assert (info.plan.samples, info.plan.conditions, info.plan.repetitions) == (3, ("a", "b"), 2)
    assert (info.dataset.samples, info.condition_offers) == (3, {})
    assert info.condition_servers == {"a": (), "b": ()}
    assert [*info.versions][:2] == ["python", "karat"]


NOTING = """
from pydantic import BaseModel
from karat import Reply

class Options(BaseModel):
    name: str = "One"

class Agent:
    Options = Options
    taken = "by ask()"

    def __init__(self, options):
        self.source = {f"file of {options.name}": f"{options.name}.csv"}
        self.name = options.name

    def source_notes(self, samples, conditions, repetitions):
        return {f"faults of {self.name}": f"{len(samples)} {','.join(conditions)} {repetitions}"}

    async def ask(self, condition, sample, turn, history):
        return Reply(text="x")
"""


def test_the_notes_of_each_agent_are_kept_once_with_what_it_is_asked(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    agent = {"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent"}
    conditions = {"a": {}, "b": {"agent": {"name": "Two"}}, "c": {}}
    status, remarks = RunStatus(), list[str]()
    status.on_remark = remarks.append
    outcome = run(experiment(NOTING, agent=agent, conditions=conditions), status=status)
    assert outcome.run.info.source == {
        "file of One": "One.csv",
        "file of Two": "Two.csv",
        "faults of One": "3 a,c 2",
        "faults of Two": "3 b 2",
        "asked": "by ask()",
    }
    assert remarks == ["the agent is asked by ask()"], "and how its dataset was read is not said"
    assert (status.planned, status.settled, status.failed) == (18, 18, 0)


def test_a_run_is_named_by_the_path_that_was_given(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(write({}, questions=1))
    monkeypatch.chdir(tmp_path)
    first = asyncio.run(run_experiment(loaded, selection=Selection(conditions=("a",))))
    assert first.run.path == Path("results", first.run.path.name)
    again = asyncio.run(run_experiment(loaded, resume=first.run.path))
    assert again.run.path == first.run.path
    assert len(list(again.run.events_of(Answer))) == 4
    assert first.run.info.run == again.run.info.run
    assert [end.seconds == round(end.seconds, 3) for end in again.run.events_of(End)] == [True, True]


def test_an_agent_that_removes_the_working_directory_is_brought_back(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    gone = str(tmp_path / "gone")
    code = f"import os\ndef query(q):\n    os.mkdir({gone!r})\n    os.chdir({gone!r})\n    os.rmdir({gone!r})"
    here, status = Path.cwd(), RunStatus()
    file = experiment(code, questions=1, conditions={"a": {}}, execution={"num_repetitions": 1})
    run(file, status=status, selection=Selection(limit=1))
    assert Path.cwd() == here
    assert status.notices == [f"the agent changed the working directory; it is {here} again"]


def test_a_new_run_reads_only_as_much_of_the_file_as_it_asks(write: Write, run: Run, tmp_path: Path) -> None:
    file = write({}, conditions={"a": {}}, questions=500)
    with (tmp_path / "questions.jsonl").open("a") as questions:
        questions.write("no question\n")
    with pytest.raises(BadDataset):
        run(file)
    first = run(file, selection=Selection(limit=2)).run
    assert first.info.plan.samples == 2
    with pytest.raises(BadDataset):
        run(file, selection=Selection(limit=2, samples=("0",)))
    with pytest.raises(BadDataset):
        run(file, resume=first.path, selection=Selection(limit=2))


def test_questions_keep_the_order_of_the_file_where_the_run_asks_in_another(experiment: Write, run: Run) -> None:
    code = "def query(user_query, system_prompt, mcp_servers): return user_query"
    stop = {"metric": "equals", "seed": 3}
    file = experiment(code, questions=30, baseline="a", execution={"stop": stop, "num_repetitions": 1})
    status = RunStatus()
    outcome = run(file, selection=Selection(limit=25), status=status)
    assert status.notices == [
        "may stop early, from 20 of 25 questions on: once equals of the 2 conditions is shown to differ (alpha 0.05)"
    ]
    assert [sample.id for sample in outcome.run.samples()] == [str(number) for number in range(25)]
    asked = [answer.sample for answer in outcome.run.events_of(Answer) if answer.condition == "a"]
    assert asked != sorted(asked, key=int)


def test_a_status_is_told_what_was_before(write: Write, run: Run) -> None:
    file = write({}, execution={"num_repetitions": 1})
    first = run(file, selection=Selection(conditions=("a",))).run
    status = RunStatus()
    run(file, resume=first.path, status=status)
    assert (status.past.dollars, status.past.tokens) == (1.0, 6)
    assert (status.planned, status.before, status.settled) == (4, 2, 2)
    assert (status.conditions["a"].before, status.conditions["b"].before) == (2, 0)
    assert (status.conditions["a"].settled, status.conditions["b"].settled) == (0, 2)
    assert status.agent.dollars == 1.0


PACED = """
from karat.models.pacing import limiter

class Scorer:
    compared_with = None
    def score(self, sample, answer):
        return 1.0

class Late(Scorer):
    compared_with = "a"

async def query(q):
    limiter("nobody")
    return q
"""


class Following:
    """Notes what a follower is told of the run as a whole, and how often of trials."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def expects(self, scorer: ScorerInfo, kind: str) -> None:
        self.told.append((scorer.name, kind))

    def scored(self, score: Score) -> None:
        self.told.append(score.scorer)

    def settled(self, trial: str, condition: str, sample: Sample, *, answered: bool) -> None:
        self.told.append((condition, sample.id, answered))


def test_those_who_watch_a_run_see_its_pace_and_the_first_scorer_that_scores_as_answers_come(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    scorers = [f"{module}:Late", f"{module}:Scorer"]
    file = experiment(PACED, scorers=scorers, conditions={"a": {}}, questions=1, execution={"num_repetitions": 1})
    follower = Following()
    status = RunStatus(follower=follower)
    run(file, status=status)
    assert follower.told == [(scorers[1], "golden"), scorers[1], ("a", "0", True), scorers[0]]
    assert [*status.limiters] == ["nobody"]


def test_no_secret_of_a_question_is_shown_or_kept(experiment: Write, run: Run, tmp_path: Path) -> None:
    file = experiment("def query(q): return q", conditions={"a": {"system_prompt": "say hunter22"}}, secrets=["KEY"])
    (tmp_path / "questions.jsonl").write_text('{"question": "is it hunter22?", "answer": "hunter22"}\n')
    status, remarks = RunStatus(), list[str]()
    status.on_remark = remarks.append
    outcome = run(load(file, env={"KEY": "hunter22"}), status=status)
    assert remarks == ["first row:\n  question   is it ${KEY}?  [question]\n  golden     ${KEY}  [answer]"]
    assert [answer.text for answer in outcome.run.events_of(Answer)] == ["is it ${KEY}?"] * 2
    kept = [path for path in outcome.run.path.rglob("*") if path.is_file()]
    assert {"run.json", "samples.jsonl", "journal.jsonl", "experiment.yaml"} <= {path.name for path in kept}
    assert not [path.name for path in kept if b"hunter22" in path.read_bytes()]


@pytest.mark.parametrize(("shared", "mode"), [(False, 0o700), (True, 0o750)])
def test_only_its_owner_reads_a_run_unless_it_is_shared(write: Write, run: Run, shared: bool, mode: int) -> None:
    umask = os.umask(0o022)
    try:
        outcome = run(write({}, questions=1, execution={"shared": shared}))
    finally:
        os.umask(umask)
    assert outcome.run.path.stat().st_mode & 0o777 == mode


REFUSING = """
from karat.errors import BadOption
def query(q): return q
class Scorer:
    def check_samples(self, samples):
        raise BadOption("scorers", f"cannot score {len(samples)} samples")
    def score(self, sample, answer): return 1.0
"""


@pytest.mark.parametrize(
    ("code", "sections", "says"),
    [
        (REFUSING, {}, "scorers: cannot score 2 samples"),
        (
            "def query(q): return q",
            {"gate": {"min": {"equal": 0.5}}},
            "gate.min.equal: no metric is called 'equal' (did you mean 'equals'?)",
        ),
    ],
)
def test_what_a_run_cannot_have_is_said_before_anything_is_on_disk(
    experiment: Write, run: Run, tmp_path: Path, code: str, sections: dict[str, Any], says: str
) -> None:
    file = experiment(code, **sections)
    with pytest.raises(OperatorError) as refused:
        run(file, selection=Selection(limit=2))
    assert says in str(refused.value)
    assert not (tmp_path / "results").exists()
