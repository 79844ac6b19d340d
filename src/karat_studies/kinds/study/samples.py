"""Participants and groups as samples: what is asked in each turn, how answers are read, and random
answers.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from karat.errors import BadOption
from karat.kinds import sample_digest
from karat.records import Condition, Sample, Turn
from karat.templates import names
from karat_studies.kinds.study.columns import PAYOFF
from karat_studies.kinds.study.fields import Read, read_answers
from karat_studies.kinds.study.format import Answered, StudyFile
from karat_studies.kinds.study.people import Person, persona
from karat_studies.kinds.study.prompts import shown_to
from karat_studies.kinds.study.rounds import (
    filled_role,
    filled_round,
    payoffs_of,
    round_names,
    round_task,
    round_template,
)

if TYPE_CHECKING:
    from karat_studies.kinds.study.experiments import Response

Value = float | str | list[str]
_SPAN = 100.0  # width of a range without an end
_WORDS = (
    "able blue clear down early far green high kind late mild near open plain quick round soft "
    "tall wide young"
)
_EACH = tuple(_WORDS.split())


def random_values(
    fields: Mapping[str, Mapping[str, object]], dice: random.Random
) -> dict[str, Value]:
    """A random answer to every field, in the form `read_answers` returns.

    >>> random_values({"choice": {"type": "choice", "options": ["A"]}}, random.Random(0))
    {'choice': 'A'}
    """
    return {name: _answer(field, dice) for name, field in fields.items()}


def random_text(fields: Mapping[str, Mapping[str, object]], dice: random.Random) -> str:
    """The same answers as text, one line per field, as the answer form asks for them.

    >>> random_text({"how": {"type": "likert", "range": [4, 4]}}, random.Random(0))
    'how: 4'
    """
    lines = []
    for name, value in random_values(fields, dice).items():
        if isinstance(value, list):
            text = ", ".join(value)
        elif isinstance(value, str):
            text = value
        else:
            if _is_whole(fields[name]):
                text = str(int(value))
            else:
                text = repr(value)

        lines.append(f"{name}: {text}")

    return "\n".join(lines)


def _answer(field: Mapping[str, Any], dice: random.Random) -> Value:
    labels: Sequence[str] = list(field.get("options") or ())
    match field["type"]:
        case "choice":
            return dice.choice(labels)
        case "rank":
            return dice.sample(labels, len(labels))
        case "text":
            return " ".join(dice.sample(_EACH, 3))

    low, high = field.get("range") or (None, None)
    if low is None:
        if high is None:
            low = 0.0
        else:
            low = high - _SPAN

    if high is None:
        high = low + _SPAN
    if _is_whole(field):
        return float(dice.randint(_up(low), max(_up(low), int(high // 1))))
    # Two decimals, or more for a narrow range
    span = high - low
    if span >= 1:
        decimals = 2
    else:
        decimals = next((some for some in range(3, 12) if span * 10**some >= 100), 12)

    return float(min(max(round(dice.uniform(low, high), decimals), low), high))


def _is_whole(field: Mapping[str, object]) -> bool:
    return field["type"] == "likert" or bool(field.get("whole"))


def _up(value: float) -> int:
    return -int(-value // 1)


def person_sample(
    study: StudyFile,
    person: Person,
    *,
    position: int,
    seed: int,
    stop_after_unread: int | None = None,
) -> Sample:
    """One participant, whose tasks are the turns, in order.

    `stop_after_unread`: the session ends after this many turns in a row without a readable answer.
    """
    shown = shown_to(study, person.arms, person.profile, seed=f"{seed}/{person.id}/order")
    fields = [as_data(task.fields) for task in shown]
    texts = [task.text for task in shown]
    stop = (
        stop_after_unread
        if stop_after_unread is not None and len(shown) > stop_after_unread
        else None
    )
    turns = (
        Turn(
            question=one.text,
            detail={"arm": one.arm, "task": one.task},
            open=stop is not None and number >= stop,
        )
        for number, one in enumerate(shown)
    )
    return Sample(
        kind="study",
        id=person.id,
        position=position,
        digest=sample_digest([texts, fields, person.profile, *_stopping(stop).values()]),
        turns=tuple(turns),
        metadata={"arm": "+".join(person.arms), "participant": person.id, **person.profile},
        detail={
            "study": study.study,
            "profile": person.profile,
            "fields": fields,
            **_stopping(stop),
        },
    )


def group_sample(
    study: StudyFile,
    arm: str,
    members: Sequence[Person],
    *,
    name: str,
    position: int,
    stop_after_unread: int | None = None,
) -> Sample:
    """One group of a game. A turn is one member in one round, round by round: `detail` says which.

    The question of a later round contains {{ last.… }} and {{ others.… }}, which `question_of`
    fills. `stop_after_unread`: a member drops out after this many rounds in a row without a
    readable answer.
    """
    rounds = study.arms[arm].rounds
    assert rounds is not None
    turns, fields = [], []
    if rounds.roles:
        roles: list[str | None] = list(rounds.roles)
    else:
        roles = [None] * len(members)

    for number in range(1, rounds.count + 1):
        for at, (member, role) in enumerate(zip(members, roles, strict=True)):
            task = round_task(study.arms[arm], number, role)
            text = round_template(study, study.arms[arm], member.profile, number, role)
            filled = number > 1 or (role is not None and at > 0)
            if filled:
                # A value that was filled in may not contain {{ … }}, which would be filled in turn
                known = round_names(study.arms[arm], first=number == 1, role=role)
                strange = [field for field in names(text) if field not in known]
                if strange:
                    message = (
                        f"{{{{ {strange[0]} }}}} occurs in a value of '{member.id}': values in a "
                        f"game must not look like fields"
                    )
                    raise BadOption("participants", message)

            detail: dict[str, object] = {
                "arm": arm,
                "task": task.prompt,
                "round": number,
                "member": at,
            }
            if role is not None:
                detail |= {"role": role}

            turns.append(Turn(question=text, detail=detail, seat=at, open=filled))
            fields.append(as_data(task.fields))

    people = [{"participant": member.id, "profile": member.profile} for member in members]
    if rounds.payoffs:
        paid = {"payoffs": rounds.payoffs}
    else:
        paid = {}

    stop = (
        stop_after_unread
        if stop_after_unread is not None and rounds.count > stop_after_unread
        else None
    )
    return Sample(
        kind="study",
        id=name,
        position=position,
        digest=sample_digest(
            [
                [turn.question for turn in turns],
                fields,
                people,
                *_stopping(stop).values(),
                *paid.values(),
            ]
        ),
        turns=tuple(turns),
        metadata={"arm": arm, "group": name, "members": len(members)},
        detail={
            "study": study.study,
            "members": people,
            "fields": fields,
            **_stopping(stop),
            **paid,
        },
    )


def _stopping(most: int | None) -> dict[str, int]:
    """The entry in a sample's detail; empty if no participant can be stopped."""
    if most is None:
        return {}
    return {"stop_after_unread": most}


def question_of(sample: Sample, turn: int, replies: Sequence[str | None]) -> str:
    """The question of a turn (from 0), given the replies to all earlier turns (None: no reply).

    A later round shows the last one: the member's own answers, and the readable ones of the other
    members.
    """
    detail = sample.turns[turn].detail
    number = detail.get("round", 1)
    if "role" in detail:
        return _role_question(sample, turn, replies)
    if number == 1:
        return sample.turns[turn].question
    members = len(sample.detail["members"])
    before = [(number - 2) * members + at for at in range(members)]
    answers = [_read(sample, at, replies[at]) for at in before]
    own = answers.pop(detail["member"])
    others = [answer for answer in answers if answer]
    return filled_round(
        sample.turns[turn].question,
        fields_of(sample, turn),
        own=own,
        others=others,
    )


def _role_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str:
    """The question for a role: it may show what earlier roles answered in this round, and all roles
    in the last.
    """
    detail = sample.turns[turn].detail
    members = len(sample.detail["members"])
    if not sample.turns[turn].open:
        return sample.turns[turn].question
    begin = turn - detail["member"]

    def answers(turns: range) -> dict[str, dict[str, object]]:
        roles = {}
        for at in turns:
            read = _read(sample, at, replies[at])
            roles[sample.turns[at].detail["role"]] = {
                name: read.get(name, "unknown") for name in fields_of(sample, at)
            }

        return roles

    if detail["round"] > 1:
        before = range(begin - members, begin)
    else:
        before = range(0)

    last = answers(before)
    if before and "payoffs" in sample.detail:
        fields = {sample.turns[at].detail["role"]: fields_of(sample, at) for at in before}
        earned = payoffs_of(sample.detail["payoffs"], fields, last)
        for role, given in last.items():
            payoff = earned.get(role)
            given[PAYOFF] = "unknown" if payoff is None else payoff

    return filled_role(sample.turns[turn].question, now=answers(range(begin, turn)), last=last)


def fields_of(sample: Sample, turn: int) -> dict[str, Answered]:
    """The fields of a turn's answer."""
    return {
        name: Answered.model_validate(field)
        for name, field in sample.detail["fields"][turn].items()
    }


def responses_of(sample: Sample, values: Sequence[Mapping[str, object] | None]) -> list[Response]:
    """Rows of `responses`, from the answers read in each turn (None, or missing at the end: no
    reply).

    A participant has a row for each of their arms; a member of a group has one for each round.
    """
    # imports NumPy, which asking does not need
    from karat_studies.kinds.study.experiments import Response

    rows: dict[tuple[str, str, int | None], list[Mapping[str, object] | None]] = {}
    # in games with roles: the role's own fields
    asked: dict[tuple[str, str, int | None], tuple[str, ...]] = {}
    # the id in a run of this study alone
    alone = sample.id.removeprefix(f"{sample.detail['study']}/")
    for at, turn in enumerate(sample.turns):
        member = turn.detail.get("member")
        if member is None:
            who = alone
        else:
            who = sample.detail["members"][member]["participant"]

        answers = None
        if at < len(values):
            answers = values[at]
        asked_now = sample.detail["fields"][at].items()
        scales = {name: field["scale"] for name, field in asked_now if "scale" in field}
        if answers is not None and scales:  # other amounts were shown than the study's
            answers = in_units(answers, scales)

        key = who, turn.detail["arm"], turn.detail.get("round")
        rows.setdefault(key, []).append(answers)
        if "role" in turn.detail:
            asked[key] = tuple(sample.detail["fields"][at])

    profiles = {
        person["participant"]: person["profile"] for person in sample.detail.get("members", ())
    }
    return [
        Response(
            participant=who,
            arm=arm,
            profile=profiles.get(who, sample.detail.get("profile", {})),
            values={
                name: value
                for answer in answers
                if answer is not None
                for name, value in answer.items()
            },
            answered=any(answer is not None for answer in answers),
            fields=asked.get((who, arm, number)),
            group=alone if number is not None else None,
            round=number,
        )
        for (who, arm, number), answers in rows.items()
    ]


def in_units(answers: Mapping[str, Any], scales: Mapping[str, float]) -> dict[str, Any]:
    """Each answer divided by its field's scale, if that has one."""
    return {**answers, **{name: answers[name] / scales[name] for name in answers.keys() & scales}}


def _read(sample: Sample, turn: int, reply: str | None) -> Mapping[str, object]:
    if reply is None:
        return {}
    return answered_in(sample, turn, reply).values


def answered_in(sample: Sample, turn: int, reply: str) -> Read:
    """What a participant answered in a turn.

    Cached, because every member of a group is shown it.
    """
    return _read_cached(
        reply, msgspec.json.encode(sample.detail["fields"][turn]), sample.turns[turn].question
    )


@lru_cache(maxsize=256)  # the last rounds of some groups
def _read_cached(reply: str, fields: bytes, shown: str) -> Read:
    asked = {
        name: Answered.model_validate(field) for name, field in msgspec.json.decode(fields).items()
    }
    return read_answers(reply, asked, shown=shown)


def as_data(fields: Mapping[str, Answered]) -> dict[str, Mapping[str, object]]:
    """Fields as samples keep them."""
    return {name: field.model_dump(exclude_defaults=True) for name, field in fields.items()}


def read_reply(sample: Sample, turn: int, text: str) -> Read:
    """What a participant answered in one turn (from 0): for each field the answer, or why there is
    none.
    """
    return read_answers(text, fields_of(sample, turn), shown=sample.turns[turn].question)


def random_answers(sample: Sample, turn: int, dice: Random) -> dict[str, float | str | list[str]]:
    """Answers to one turn (from 0) by someone who does not read it: all answers are equally likely.

    Has the form of `read_reply(…).values`; with equal dice the answers are those of `random_reply`.
    """
    return random_values(sample.detail["fields"][turn], dice)


def random_reply(sample: Sample, turn: int, dice: Random) -> str:
    """The same answers as the text of a reply, in the answer form."""
    return random_text(sample.detail["fields"][turn], dice)


def turn_question(sample: Sample, turn: int, replies: Sequence[str | None]) -> str | None:
    """The question of a turn (from 0); None if the participant was stopped because their answers
    are unreadable.
    """
    if is_stopped(sample, turn, replies):
        return None
    return question_of(sample, turn, replies)


def is_stopped(sample: Sample, turn: int, replies: Sequence[str | None]) -> bool:
    """Whether the participant of this turn was stopped, after `stop_after_unread` unreadable
    replies in a row.

    Depends only on their own replies, and is final. Turns that ask for nothing, or that have no
    reply, are not counted.
    """
    most: int | None = sample.detail.get("stop_after_unread")
    if most is None:
        return False
    seat = sample.turns[turn].seat
    unread = 0
    for at in range(turn - 1, -1, -1):
        reply = replies[at]
        if sample.turns[at].seat != seat or reply is None:
            continue
        read = answered_in(sample, at, reply)
        if read.values:
            return False
        unread += not read.complete(fields_of(sample, at))
        if unread == most:
            return True

    return False


def profile_of(sample: Sample, seat: int | None) -> Mapping[str, Any]:
    """The profile of the participant, or of the member at a seat: attribute → value."""
    if seat is None:
        who = sample.detail
    else:
        who = sample.detail["members"][seat]

    profile: Mapping[str, Any] = who["profile"]
    return profile


def prompt_for(condition: Condition, sample: Sample, session: int | None) -> str | None:
    """The condition's system prompt as one participant reads it.

    `prompt_problems` has made sure no name is missing.
    """
    prompt = condition.system_prompt
    if prompt is None or "study" not in sample.detail:
        return prompt
    return persona(prompt, profile_of(sample, session))
