"""What of an experiment may change between the parts of a run, and what the journal says of the earlier ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.config import load
from karat.errors import ResumeRefused
from karat.execution import Outcome, Selection
from karat.execution.plan import plan
from karat.execution.resume import JournalState, read_journal
from karat.journal import Resume
from karat.records import Answer, Score

Write = Callable[..., Path]
Run = Callable[..., Outcome]
FLOOR: dict[str, Any] = {"agent": {"type": "floor"}, "execution": {"num_repetitions": 1}}
ANEW = "Start a new run without --resume, or undo the change."


def rows(file: Path, *rows: dict[str, Any]) -> Path:
    file.with_name("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def refused(run: Run, file: Path, outcome: Outcome) -> ResumeRefused:
    journal = outcome.run.journal.read_bytes()
    with pytest.raises(ResumeRefused) as caught:
        run(file, resume=outcome.run.path)
    assert outcome.run.journal.read_bytes() == journal
    assert str(caught.value).splitlines() == [
        f"{outcome.run.path}: cannot resume, because the experiment has changed since the run got its answers",
        *(f"  {change}" for change in caught.value.changes),
        caught.value.remedy,
    ]
    return caught.value


def test_a_later_part_may_select_less_than_an_earlier_one(experiment: Write, run: Run) -> None:
    file = experiment(**FLOOR)
    first = run(file, selection=Selection(conditions=("a",)))
    again = run(file, resume=first.run.path, selection=Selection(limit=1))
    asked = [(answer.sample, answer.condition) for answer in again.run.events_of(Answer)]
    assert sorted(asked) == [("0", "a"), ("0", "b"), ("1", "a"), ("2", "a")]
    assert [sample.id for sample in again.run.samples()] == ["0", "1", "2"]


def test_a_condition_that_changed_names_four_of_its_keys_and_long_values_in_part(experiment: Write, run: Run) -> None:
    def written(prompt: str, gate: bool, command: str) -> Path:
        docs = {"type": "stdio", "command": command, "args": [command]}
        gates = {"require_mcp_tool_use": gate, "require_mcp_tool_success": gate}
        conditions = {"a": {}, "b": {"system_prompt": prompt, "mcp_servers": ["docs"], **gates}}
        return experiment(**FLOOR, mcp_servers={"docs": docs}, conditions=conditions)

    first = run(written("A" * 90, False, "x"), selection=Selection(conditions=("a",)))
    second = run(written("A" * 90, False, "nowhere"), resume=first.run.path)
    (event,) = second.run.events_of(Resume)
    assert [(server.name, server.fault is None) for server in event.servers] == [("docs", False)]
    error = refused(run, written("B", True, "nothing"), second)
    assert [*error.changes] == [
        (
            "condition 'b' changed: conditions.b.require_mcp_tool_success was False, is True; "
            "conditions.b.require_mcp_tool_use was False, is True; "
            f"conditions.b.system_prompt was '{'A' * 79}, is 'B'; "
            "mcp_servers.docs.args was ['x'], is ['nothing']"
        )
    ]
    assert error.remedy == ANEW


def test_every_change_is_named_at_once(experiment: Write, run: Run) -> None:
    first = run(experiment(**FLOOR, conditions={"a": {}, "b": {"system_prompt": "B"}, "c": {}}))
    own = {"agent": {"obey_length": False}}
    file = rows(experiment(**FLOOR, conditions={"b": {"system_prompt": "other"}, "c": own}),
                {"question": "q0", "answer": "a0"}, {"question": "q1", "answer": "changed"})  # fmt: skip
    assert refused(run, file, first).changes == (
        "condition 'a' is gone",
        "condition 'b' changed: conditions.b.system_prompt was 'B', is 'other'",
        "the agent of condition 'c' changed: conditions.c.agent.obey_length was None, is False",
        "the dataset changed in sample '1': what is asked, golden answer or materials differ",
        "the dataset no longer has sample '2'",
    )


READING = """
class Agent:
    columns = ("style",)
    async def ask(self, condition, sample, turn, history):
        from karat import Reply
        return Reply(text="x")
"""


def test_columns_that_are_part_of_a_question_stay_and_others_may_change(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    agent = {"type": f"agent_of_{tmp_path.name.replace('-', '_')}:Agent"}
    docs = {"type": "stdio", "command": "nowhere"}
    conditions = {"a": {}, "b": {"mcp_servers": ["docs"], "elicit": {"column": "said"}}}
    secret = {"STYLE": "a-style-that-nobody-knows"}

    def written(**changed: Any) -> Any:
        file = experiment(READING, agent=agent, mcp_servers={"docs": docs}, conditions=conditions, secrets=["STYLE"])
        row = {"question": "q", "answer": "a", "style": secret["STYLE"], "said": {"user": "yes"}, "note": "first"}
        return load(rows(file, {**row, **changed}), env=secret)

    first = run(written(), selection=Selection(conditions=("a",)))
    assert secret["STYLE"] not in (first.run.path / "samples.jsonl").read_text()
    run(written(note="second"), resume=first.run.path, selection=Selection(conditions=("a",)))
    for changed in ({"style": "plain"}, {"said": {"user": "no"}}):
        with pytest.raises(ResumeRefused, match="the dataset changed in sample '0'"):
            run(written(**changed), resume=first.run.path)


def test_without_any_scorer_a_scored_run_does_not_go_on_and_without_some_it_does(experiment: Write, run: Run) -> None:
    first = run(experiment(**FLOOR, scorers=["equals", "contains"]))
    fewer = run(experiment(**FLOOR, scorers=["contains"]), resume=first.run.path)
    assert [event.scorers for event in fewer.run.events_of(Resume)] == [()]
    error = refused(run, experiment(**FLOOR, scorers=[]), first)
    assert error.changes == ("the scorer 'equals' is gone", "the scorer 'contains' is gone")
    assert error.remedy == (
        f"To score the answers that are there in another way, use `karat score {first.run.path} --judge …` "
        "(or --scorer)."
    )


def test_a_scorer_whose_rule_changed_is_another_even_with_equal_options(
    experiment: Write, run: Run, tmp_path: Path
) -> None:
    code = """
from pathlib import Path
def query(question): return question
class Scorer:
    def __init__(self): self.fingerprint = Path(__file__).with_name("rule").read_text()
    def score(self, sample, answer):
        if self.fingerprint == "fails": raise ValueError("not yet")
        return 1.0
"""
    rule = tmp_path / "rule"
    rule.write_text("fails")
    file = experiment(code, conditions={"a": {}}, questions=2, execution=FLOOR["execution"])
    first = run(file)
    rule.write_text("one")
    second = run(file, resume=first.run.path)
    assert len(list(second.run.events_of(Score))) == 2, "one that has scored nothing may be changed"
    (event,) = second.run.events_of(Resume)
    assert [scorer.scoring for scorer in event.scorers] == [
        score.scoring for score in list(second.run.events_of(Score))[:1]
    ]
    rule.write_text("two")
    (name,) = load(file).scorers
    assert refused(run, file, second).changes == (
        f"the scorer '{name.name}' changed: its rubric or its rule is another",
    )


COSTLY = """
from karat import Reply, Usage
from karat.scorers import Verdict
def query(question):
    number = int(question[1:])
    known = {"dollars": 0.5 * number, "usage": Usage(input_tokens=10 * number, output_tokens=1)}
    return Reply(text="x", **({} if question == UNKNOWN else known))
class Scorer:
    offline = False
    def score(self, sample, answer):
        return Verdict(values={"m": 1.0}, dollars=0.25 * int(sample.id), usage=Usage(output_tokens=4))
"""


def past(file: Path, outcome: Outcome) -> JournalState:
    experiment = load(file)
    return read_journal(outcome.run, plan(experiment, experiment.load_dataset()))


def test_what_a_run_has_spent_is_known_from_its_journal(experiment: Write, run: Run) -> None:
    file = experiment(f"UNKNOWN = None\n{COSTLY}", questions=4, conditions={"a": {}}, execution=FLOOR["execution"])
    state = past(file, run(file))
    assert (state.dollars, state.tokens) == (0.5 * 6 + 0.25 * 6, 10 * 6 + 4 + 4 * 4)
    assert (state.largest_trial, state.largest_score) == ((1.5, 31), (0.75, 4))
    assert not state.price_unknown
    assert not state.tokens_unknown
    assert len(state.offsets) == len(state.agent_faults) == 4
    assert all(state.offsets)
    assert [bytes(scored) for scored in state.scored.values()] == [b"\1" * 4]
    assert (state.torn, state.interrupted, state.horizon) == ({}, {}, None)
    only = past(file, run(file, selection=Selection(samples=("3",))))
    assert (only.dollars, only.tokens, only.largest_trial, only.largest_score) == (2.25, 35, (1.5, 31), (0.75, 4))
    assert [offset > 0 for offset in only.offsets] == [False, False, False, True]
    assert [bytes(scored) for scored in only.scored.values()] == [b"\0\0\0\1"]


def test_of_a_reply_without_its_cost_the_rest_is_known(experiment: Write, run: Run) -> None:
    file = experiment(f"UNKNOWN = 'q3'\n{COSTLY}", questions=4, conditions={"a": {}}, execution=FLOOR["execution"])
    state = past(file, run(file))
    assert (state.dollars, state.tokens) == (0.5 * 3 + 0.25 * 6, 10 * 3 + 3 + 4 * 4)
    assert (state.price_unknown, state.tokens_unknown) == (True, True)
    assert state.largest_trial == (1.0, 21)
