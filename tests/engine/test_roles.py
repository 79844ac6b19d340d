"""Games with two roles: the second sees what the first has just done, both see the last round; kills change nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.datasets.studies import read

from karat.datasets.study import Study
from karat.engine import Outcome
from karat.errors import BadDataset, BadOption
from karat.journal import ReplyEvent, RunFolder
from karat.summary import summarize

from .games import AGENT, asked

Write = Callable[..., Path]
Run = Callable[..., Outcome]
PAIRS, ROUNDS = 2, 3
MATERIALS = {
    "send": "Round {{ round }}. You have 10. How much do you send?",
    "send_again": "Round {{ round }}. You sent {{ last.sender.sent }}, and {{ last.receiver.returned }} came back. "
    "How much do you send?",
    "return": "Round {{ round }}. You were sent {{ sender.sent }}, which is tripled. How much do you return?",
}
AMOUNT = {"type": "number", "range": [0, 30]}
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
    "derive": "SELECT r.*, s.sent AS got FROM responses r JOIN responses s USING (group_id, round) "
    "WHERE r.returned IS NOT NULL AND s.sent IS NOT NULL",
    "findings": [
        {
            "id": "F1", "claim": "Who is sent more returns more.",
            "tests": [
                {
                    "id": "T1", "kind": "correlation", "measure": "returned", "against": "got", "expect": "positive",
                    "reason": "a row a pair and round", "n_reason": "a row a pair and round",
                    "human": {"r": 0.6, "n": PAIRS * ROUNDS},
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


def write(folder: Path, study: dict[str, Any] = TRUST) -> Path:
    place = folder / "trust"
    (place / "materials").mkdir(parents=True, exist_ok=True)
    for name, text in MATERIALS.items():
        (place / "materials" / f"{name}.md").write_text(text, encoding="utf-8")
    (place / "study.yaml").write_text(yaml.safe_dump(study, sort_keys=False), encoding="utf-8")
    return place / "study.yaml"


@pytest.fixture
def game(experiment: Write, tmp_path: Path) -> Callable[..., Path]:
    def make(code: str = QUERY, **sections: Any) -> Path:
        dataset = {"kind": "study", "path": str(write(tmp_path)), **sections.pop("dataset", {})}
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
    return f"{text}\n\nEnd your answer with one line in this form:\n{field}: a number from 0 to 30"


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
    assert (row.agent.n_eff, row.agent.statistic) == (PAIRS * ROUNDS, pytest.approx(1.0))


@pytest.mark.parametrize("number", range(1, PAIRS * ROUNDS * 2))
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
    from karat.datasets._study.copy import answer_copy
    from karat.datasets._study.reading import read_study
    from karat.datasets._study.tests import to_study_tests

    study = read_study(path)
    (test,) = to_study_tests(study, answer_copy(study))
    assert test.coverage == 1.0
    assert (test.agent.n1, test.agent.statistic) == (PAIRS * ROUNDS, pytest.approx(1.0))


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
        ({"group": 2}, "arms.game.rounds.roles", "leave out the others"),
        ({"roles": {"sender": ROLES["sender"]}}, "arms.game.rounds.roles", "two roles or more"),
        ({"roles": {"last": ROLES["sender"], "b": ROLES["receiver"]}}, "arms.game.rounds.roles.last", "no name of a"),
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
