"""Games with two roles: the second sees what the first has just done, both see the last round; kills change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.karat_studies.studies import read

from karat.analysis import summarize
from karat.errors import BadDataset, BadOption
from karat.execution import Outcome
from karat.journal import ReplyEvent, RunFolder
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.format import Answered
from karat_studies.kinds.study.rounds import payoffs_of

from .games import AGENT, asked

Write = Callable[..., Path]
Run = Callable[..., Outcome]
PAIRS, ROUNDS = 3, 3
MATERIALS = {
    "send": "Round {{ round }}. You have 10. How much do you send?",
    "send_again": "Round {{ round }}. You sent {{ last.sender.sent }}, and {{ last.receiver.returned }} came back. "
    "How much do you send?",
    "return": "Round {{ round }}. You were sent {{ sender.sent }}, which is tripled. How much do you return?",
}
AMOUNT = {"type": "number", "range": [0, 40]}
TRUST: dict[str, Any] = {
    "study": "trust", "title": "Trust", "source": "Nobody (1999)", "domain": "strategic",
    "participants": {"per_arm": "human", "profile": {"age": [18, 60]}},
    "arms": {
        "game": {
            "n": 2 * PAIRS,
            "rounds": {
                "count": ROUNDS,
                "roles": {
                    "sender": {
                        "first": "materials/send.md", "prompt": "materials/send_again.md", "fields": {"sent": AMOUNT},
                    },
                    "receiver": {"prompt": "materials/return.md", "fields": {"returned": AMOUNT}},
                },
            },
        }
    },
    "derive": "SELECT r.*, s.sent AS got "
    "FROM responses r JOIN responses s USING (group_id, round) "
    "WHERE r.returned IS NOT NULL AND s.sent IS NOT NULL",
    "findings": [
        {
            "id": "F1", "claim": "Who is sent more returns more.",
            "tests": [
                {
                    "id": "T1", "kind": "correlation", "measure": "returned", "against": "got", "expect": "positive",
                    "by": "participant", "n_reason": "a receiver's mean", "human": {"r": 0.6, "n": PAIRS},
                }
            ],
        }
    ],
}  # fmt: skip
QUERY = """
def query(user_query, history, sample, turn):
    before = [[one["question"], one["answer"]] for one in history]
    asked(sample=sample.id, turn=turn, question=user_query, history=before)
    key = user_query.split("\\n")[-1].partition(":")[0]
    return {"text": f"{key}: {int(sample.id[-1]) * 10 + turn}", "dollars": 1.0}
"""


def write(folder: Path, study: dict[str, Any] = TRUST, materials: dict[str, str] = MATERIALS) -> Path:
    place = folder / "trust"
    (place / "materials").mkdir(parents=True, exist_ok=True)
    for name, text in (MATERIALS | materials).items():
        (place / "materials" / f"{name}.md").write_text(text, encoding="utf-8")
    (place / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return place / "study.yaml"


@pytest.fixture
def game(experiment: Write, tmp_path: Path) -> Callable[..., Path]:
    def make(
        code: str = QUERY, study: dict[str, Any] = TRUST, materials: dict[str, str] = MATERIALS, **sections: Any
    ) -> Path:
        dataset = {"kind": "study", "path": str(write(tmp_path, study, materials)), **sections.pop("dataset", {})}
        return experiment(
            AGENT + code, dataset=dataset, conditions={"a": {}}, scorers=[{"type": "replication"}],
            execution={"num_repetitions": 1, "max_concurrent": 2}, **sections,
        )  # fmt: skip

    return make


def wanted(group: int, turn: int) -> str:
    """What a turn must ask, from what this pair alone has said."""
    round_, role = divmod(turn, 2)
    before = [10 * group + at for at in range(turn)]
    if role == 1:
        text = f"Round {round_ + 1}. You were sent {before[-1]}, which is tripled. How much do you return?"
    elif round_ == 0:
        text = "Round 1. You have 10. How much do you send?"
    else:
        text = f"Round {round_ + 1}. You sent {before[-2]}, and {before[-1]} came back. How much do you send?"
    field = ("sent", "returned")[role]
    return f"{text}\n\nEnd your answer with one line in this form:\n{field}: a number from 0 to 40"


@pytest.mark.slow
def test_the_second_sees_what_the_first_did_in_this_round_and_the_first_what_came_of_the_last(
    game: Write, run: Run
) -> None:
    file = game()
    outcome = run(file)
    heard = asked(file)
    assert len(heard) == PAIRS * ROUNDS * 2
    for one in heard:
        group = int(one["sample"][-1])
        assert one["question"] == wanted(group, one["turn"])
        own = range(one["turn"] % 2, one["turn"], 2)
        assert [question for question, _ in one["history"]] == [wanted(group, at) for at in own]
    study = summarize(outcome.run).study
    assert study is not None
    (finding,) = study.conditions[0].findings
    assert finding.coverage == 1.0
    (row,) = finding.tests[0].repetitions
    assert (row.agent.n_eff, row.agent.statistic) == (PAIRS, pytest.approx(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 12))
def test_after_a_kill_the_same_is_asked_and_nothing_twice(game: Write, run: Run, number: int) -> None:
    file = game()
    whole = run(file)
    before = {(one["sample"], one["turn"]): one for one in asked(file)}
    _cut(whole.run, number)
    kept = sum(isinstance(one, ReplyEvent) for one in whole.run.events())
    assert kept == number
    file.with_name("asked.jsonl").unlink()
    again = run(file, resume=whole.run.path)
    heard = asked(file)
    assert len(heard) == len(before) - number
    assert all(one == before[one["sample"], one["turn"]] for one in heard), "prompts are the same, byte by byte"
    assert summarize(again.run).total.cost.agent.known == len(before)


def _cut(run: RunFolder, number: int) -> None:
    """As kill −9 leaves a journal: nothing behind the `number`-th reply."""
    lines, seen = [], 0
    for line in run.lines():
        lines.append(line)
        seen += line.startswith(b'{"event":"reply"')
        if seen == number:
            break
    run.journal.write_bytes(b"".join(line + b"\n" for line in lines))


EARNED = {"sender": "10 - {{ sender.sent }} + {{ receiver.returned }}",
          "receiver": "3 * {{ sender.sent }} - {{ receiver.returned }}"}  # fmt: skip


def with_payoffs(formulas: dict[str, str] = EARNED, **rounds: Any) -> dict[str, Any]:
    """The game with what each earned shown to the sender of the next round, and a test of what receivers earned."""
    study = changed(payoffs=formulas, **rounds)
    study["derive"] = study["derive"].replace("r.*", "r.* EXCLUDE (returned), r.payoff AS returned")
    return study


SHOWN = "You earned {{ last.sender.payoff }}, and the other {{ last.receiver.payoff }}. How much do you send?"


def earned_in(question: str) -> list[str]:
    found = re.search(r"You earned (\S+), and the other (\S+)\.", question)
    return list(found.groups()) if found else []


def test_what_each_earned_is_shown_in_the_next_round_and_stands_in_responses(game: Write, run: Run) -> None:
    file = game(study=with_payoffs(), materials={"send_again": SHOWN})
    outcome = run(file)
    heard = [one for one in asked(file) if one["turn"] in {2, 4}]
    assert len(heard) == PAIRS * (ROUNDS - 1)
    for one in heard:
        sent, returned = (10 * int(one["sample"][-1]) + one["turn"] - back for back in (2, 1))
        assert earned_in(one["question"]) == [str(10 - sent + returned), str(3 * sent - returned)]
    study = summarize(outcome.run).study
    assert study is not None
    (row,) = study.conditions[0].findings[0].tests[0].repetitions
    # r earns 3 s - (s + 1) = 2 s - 1: a straight line in what was sent
    assert (row.agent.n_eff, row.agent.statistic) == (PAIRS, pytest.approx(1.0))


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 3, 5, 9])
def test_payoffs_are_the_same_after_a_kill(game: Write, run: Run, number: int) -> None:
    file = game(study=with_payoffs(), materials={"send_again": SHOWN})
    whole = run(file)
    before = {(one["sample"], one["turn"]): one for one in asked(file)}
    _cut(whole.run, number)
    file.with_name("asked.jsonl").unlink()
    again = run(file, resume=whole.run.path)
    assert len(asked(file)) == len(before) - number
    assert all(one == before[one["sample"], one["turn"]] for one in asked(file)), "prompts are the same, byte by byte"
    assert summarize(again.run).study == summarize(run(file).run).study


def test_a_payoff_of_an_answer_that_could_not_be_read_is_unknown(game: Write, run: Run) -> None:
    silent = QUERY.replace("    return {", "    if 'tripled' in user_query: return {'text': 'Hm.'}\n    return {")
    file = game(silent, study=with_payoffs({**EARNED, "receiver": "3 * {{ sender.sent }}"}),
                materials={"send_again": SHOWN})  # fmt: skip
    run(file)
    for one in asked(file):
        if one["turn"] in {2, 4}:
            sent = 10 * int(one["sample"][-1]) + one["turn"] - 2
            assert earned_in(one["question"]) == ["unknown", str(3 * sent)]


@pytest.mark.parametrize(
    ("formula", "answers", "earned"),
    [
        ("10 - {{ a.offer }}", {"offer": 4.5, "takes": "no"}, 5.5),
        ("(10 - {{ a.offer }}) * {{ b.takes.yes }}", {"offer": 4.0, "takes": "yes"}, 6.0),
        ("(10 - {{ a.offer }}) * {{ b.takes.yes }}", {"offer": 4.0, "takes": "no"}, 0.0),
        ("(10 - {{ a.offer }}) * {{ b.takes.yes }}", {"offer": 4.0}, None),
        ("10 - {{ a.offer }}", {"takes": "no"}, None),
        ("2 * {{ a.offer }}", {"offer": -3.0}, -6.0),
        ("10 - {{ a.offer }}", {"offer": -3.0}, 13.0),
        ("1 / {{ a.offer }}", {"offer": 0.0}, None),
        ("{{ a.offer }} * 1e300 * 1e300", {"offer": 1.0}, None),
    ],
)  # fmt: skip
def test_a_payoff_is_the_arithmetic_of_what_was_answered(
    formula: str, answers: dict[str, Any], earned: float | None
) -> None:
    fields = {
        "a": {"offer": Answered(type="number")},
        "b": {"takes": Answered(type="choice", options=["yes", "no"])},
    }
    assert payoffs_of({"a": formula}, fields, {"a": answers, "b": answers}) == {"a": earned}


def test_what_the_first_did_not_say_is_unknown_and_the_pair_has_no_row(game: Write, run: Run) -> None:
    file = game(
        QUERY.replace("    return {", "    if 'tripled' not in user_query: return {'text': 'Hm.'}\n    return {")
    )
    outcome = run(file)
    questions = [one["question"] for one in asked(file) if one["turn"] == 1]
    assert questions
    assert all("You were sent unknown" in one for one in questions)
    study = summarize(outcome.run).study
    assert study is not None
    assert study.conditions[0].findings[0].pas.value is None


def test_answers_of_a_copy_and_the_floor_go_through_each_role(tmp_path: Path) -> None:
    path = write(tmp_path)
    rows = [
        {"participant": f"p{pair}{role}", "arm": "game", "group": f"g{pair}", "round": at, "answers": {role: 5 + pair}}
        for pair in range(PAIRS) for at in range(1, ROUNDS + 1) for role in ("sent", "returned")
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (path.parent / "copy.jsonl").write_text(text, encoding="utf-8")
    from karat_studies.kinds.study.copy import answer_copy
    from karat_studies.kinds.study.experiments import to_study_tests
    from karat_studies.kinds.study.reading import read_study

    study = read_study(path)
    (test,) = to_study_tests(study, answer_copy(study))
    assert test.coverage == 1.0
    assert (test.agent.n1, test.agent.statistic) == (PAIRS, pytest.approx(1.0))


def test_a_copy_earns_what_people_earned(tmp_path: Path) -> None:
    path = write(tmp_path, with_payoffs())
    rows = [
        {"participant": f"p{pair}{role}", "arm": "game", "group": f"g{pair}", "round": at, "answers": {role: value}}
        for pair, at in ((0, 1), (0, 2), (1, 1)) for role, value in (("sent", 2 + pair + at), ("returned", 4 * at))
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (path.parent / "copy.jsonl").write_text(text, encoding="utf-8")
    from karat_studies.kinds.study.copy import answer_copy
    from karat_studies.kinds.study.experiments import data_of
    from karat_studies.kinds.study.reading import read_study

    study = read_study(path)
    data = data_of(study, answer_copy(study)).columns
    assert sorted(zip(data["got"], data["returned"], strict=True)) == [(3.0, 5.0), (4.0, 4.0), (4.0, 8.0)]


def test_a_participant_too_many_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(BadOption, match="5 participants cannot be divided into groups of 2 roles"):
        Study(Study.Options(per_arm=5)).load(path)
    assert len(Study(Study.Options(per_arm=6)).load(path).samples) == 3


def changed(**rounds: Any) -> dict[str, Any]:
    study: dict[str, Any] = json.loads(json.dumps(TRUST))
    study["arms"]["game"]["rounds"].update(rounds)
    return study


ROLES = TRUST["arms"]["game"]["rounds"]["roles"]


@pytest.mark.parametrize(
    ("rounds", "place", "message"),
    [
        ({"payoffs": {"sender": "10 - {{ sender.send }}"}}, "arms.game.rounds.payoffs.sender", "did you mean"),
        ({"payoffs": {"sender": "10 {{ sender.sent }}"}}, "arms.game.rounds.payoffs.sender", "cannot be computed"),
        ({"payoffs": {"sender": "__import__('os')"}}, "arms.game.rounds.payoffs.sender", "cannot be computed"),
        ({"payoffs": {"sender": "{{ sender.sent }} > 3"}}, "arms.game.rounds.payoffs.sender", "yes or no"),
        ({"payoffs": {"sendr": "{{ sender.sent }}"}}, "arms.game.rounds.payoffs.sendr", "is not a role"),
        ({"group": 2}, "arms.game.rounds.roles", "leave out the others"),
        ({"roles": {"sender": ROLES["sender"]}}, "arms.game.rounds.roles", "two roles or more"),
        ({"roles": {"last": ROLES["sender"], "b": ROLES["receiver"]}}, "arms.game.rounds.roles.last", "valid role"),
        ({"roles": {**ROLES, "c": {**ROLES["receiver"]}}}, "arms.game.rounds.roles.c.fields.returned", "another role"),
        ({"roles": dict(reversed(ROLES.items()))}, "arms.game.rounds.roles.receiver.prompt", "sender.sent"),
        ({"roles": {**ROLES, "receiver": {"prompt": "materials/none.md", "fields": {"x": AMOUNT}}}},
         "arms.game.rounds.roles.receiver.prompt", "there is no file"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_roles_is_said(tmp_path: Path, rounds: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, yaml.safe_dump(changed(**rounds), sort_keys=False), MATERIALS)
    assert any(fault.place == place and message in fault.message for fault in caught.value.faults), caught.value


def test_participants_must_make_whole_pairs(tmp_path: Path) -> None:
    study = changed()
    study["arms"]["game"]["n"] = 5
    with pytest.raises(BadDataset, match="5 participants cannot be divided into groups of 2 roles"):
        read(tmp_path, yaml.safe_dump(study, sort_keys=False), MATERIALS)
