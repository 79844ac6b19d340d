"""Participants and groups as samples, what is asked in each turn, and their answers as rows of `responses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.datasets import sample_digest
from karat.datasets._study_fields import read_answers
from karat.datasets._study_format import Answered, StudyFile
from karat.datasets._study_people import Person
from karat.datasets._study_prompts import shown_to
from karat.datasets._study_rounds import filled_round, round_task, round_template
from karat.datasets._study_tests import Response
from karat.records import Sample, Turn

__all__ = ["fields_of", "group_sample", "person_sample", "question_of", "responses_of"]


def person_sample(study: StudyFile, person: Person, *, position: int, seed: int) -> Sample:
    """One participant: their tasks are the turns, in their order."""
    shown = shown_to(study, person.arms, person.profile, seed=f"{seed}/{person.id}/order")
    fields = [_as_data(one.fields) for one in shown]
    texts = [one.text for one in shown]
    return Sample(
        id=person.id,
        position=position,
        digest=sample_digest([texts, fields, person.profile]),
        turns=tuple(Turn(question=one.text, detail={"arm": one.arm, "task": one.task}) for one in shown),
        metadata={"arm": "+".join(person.arms), "participant": person.id, **person.profile},
        detail={"study": study.study, "profile": person.profile, "fields": fields},
    )


def group_sample(study: StudyFile, arm: str, members: Sequence[Person], *, name: str, position: int) -> Sample:
    """One group of a game. A turn is one member in one round, round by round: `detail` says which.

    The question of a later round holds {{ last.… }} and {{ others.… }}: `question_of` gives what is asked.
    """
    rounds = study.arms[arm].rounds
    assert rounds is not None
    turns, fields = [], []
    for number in range(1, rounds.count + 1):
        task = round_task(study.arms[arm], number)
        for at, member in enumerate(members):
            text = round_template(study, study.arms[arm], member.profile, number)
            turns.append(Turn(question=text, detail={"arm": arm, "task": task.prompt, "round": number, "member": at}))
            fields.append(_as_data(task.fields))
    people = [{"participant": member.id, "profile": member.profile} for member in members]
    return Sample(
        id=name,
        position=position,
        digest=sample_digest([[turn.question for turn in turns], fields, people]),
        turns=tuple(turns),
        metadata={"arm": arm, "group": name, "members": len(members)},
        detail={"study": study.study, "members": people, "fields": fields},
    )


def question_of(sample: Sample, turn: int, replies: Sequence[str | None]) -> str:
    """What is asked in a turn (from 0), given the replies to all turns before it (None: there is none).

    A later round sees the last one: one's own answers, and those of the other members.
    """
    detail = sample.turns[turn].detail
    number = detail.get("round", 1)
    if number == 1:
        return sample.turns[turn].question
    members = len(sample.detail["members"])
    before = [(number - 2) * members + at for at in range(members)]
    answers = [_read(sample, at, replies[at]) for at in before]
    own = answers.pop(detail["member"])
    return filled_round(sample.turns[turn].question, fields_of(sample, turn), own=own, others=answers)


def fields_of(sample: Sample, turn: int) -> dict[str, Answered]:
    """The fields that are answered in a turn."""
    return {name: Answered.model_validate(one) for name, one in sample.detail["fields"][turn].items()}


def responses_of(sample: Sample, values: Sequence[Mapping[str, Any] | None]) -> list[Response]:
    """Rows of `responses`, from the answers read in each turn (None: no reply; too short: the rest has none).

    A participant has a row for each arm they were in; a member of a group one for each round.
    """
    rows: dict[tuple[str, str, int | None], list[Mapping[str, Any] | None]] = {}
    for at, turn in enumerate(sample.turns):
        member = turn.detail.get("member")
        who = sample.id if member is None else sample.detail["members"][member]["participant"]
        said = values[at] if at < len(values) else None
        rows.setdefault((who, turn.detail["arm"], turn.detail.get("round")), []).append(said)
    profiles = {one["participant"]: one["profile"] for one in sample.detail.get("members", ())}
    return [
        Response(
            participant=who,
            arm=arm,
            profile=profiles.get(who, sample.detail.get("profile", {})),
            values={name: value for one in said if one is not None for name, value in one.items()},
            answered=any(one is not None for one in said),
            group=sample.id if number is not None else None,
            round=number,
        )
        for (who, arm, number), said in rows.items()
    ]


def _read(sample: Sample, turn: int, reply: str | None) -> Mapping[str, Any]:
    return {} if reply is None else read_answers(reply, fields_of(sample, turn)).values


def _as_data(fields: Mapping[str, Answered]) -> dict[str, Any]:
    return {name: one.model_dump(exclude_defaults=True) for name, one in fields.items()}
