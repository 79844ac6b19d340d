"""A participant's session, and the table of a group's game, as their pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karat.records import Sample
from karat.viewer.people import profile_text
from karat.viewer.readings import asked, read_by, read_by_karat, said
from karat.viewer.tasks import Heard, answer_of, field_told, fields_of, heard, put_in, shown
from karat.viewer.texts import Told
from karat.viewer.voices import NOBODY, Voices
from karat.viewer.web import address

__all__ = ["is_group", "seat_of", "session", "table"]

_SHOWN = 20_000  # characters of a reply on a page
_MOST_TASKS = 60
_MOST_CELLS = 400  # of one table: members × rounds
_MOST_ATTRIBUTES = 60
_MOST_SAID = 40  # characters of one value in a cell


def is_group(sample: Sample) -> bool:
    """Whether a sample is a group of a game."""
    return bool(_members(sample))


def seat_of(sample: Sample, text: str) -> int | None:
    """The seat that a page asks for; None where it asks for none, or there is none."""
    seat = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else -1
    return seat if 0 <= seat < len(_members(sample)) else None


def session(
    sample: Sample,
    trials: Sequence[Told],
    conditions: Sequence[str],
    *,
    run: str,
    seat: int | None = None,
    voices: Voices = NOBODY,
) -> dict[str, Any]:
    """Who it is, and each task with what every trial made of it, and what people said. `seat`: of a group, from 0."""
    answers = heard(trials)
    turns = [at for at, turn in enumerate(sample.turns) if seat is None or turn.seat == seat]
    who: Mapping[str, Any] = sample.detail if seat is None else _members(sample)[seat]
    profile = who.get("profile")
    return {
        "who": str(who.get("participant", sample.id)),
        "study": str(sample.detail.get("study", "")),
        "arms": list(dict.fromkeys(str(sample.turns[at].detail.get("arm", "")) for at in turns))[:_MOST_TASKS],
        "profile": _facts(profile) if isinstance(profile, dict) else [],
        "tasks": [_task(sample, at, answers, conditions, run, voices) for at in turns[:_MOST_TASKS]],
        "left": max(0, len(turns) - _MOST_TASKS),
    }


def table(
    sample: Sample, trials: Sequence[Told], conditions: Sequence[str], *, n: int, run: str, query: Mapping[str, Any]
) -> dict[str, Any]:
    """A group's answers, members × rounds, in every trial."""
    members = _members(sample)
    places = {(turn.seat, _round(turn.detail)): at for at, turn in enumerate(sample.turns)}
    rounds = sorted({number for _, number in places})
    seats = range(len(members))[: max(1, _MOST_CELLS // max(1, min(len(rounds), _MOST_TASKS)))]
    rounds, left = rounds[:_MOST_TASKS], len(rounds) - _MOST_TASKS
    people = [
        {
            "seat": seat,
            "who": str(members[seat].get("participant", seat + 1)),
            "profile": _profile(members[seat]),
            "path": address("runs", run, "samples", n, seat=str(seat), **query),
        }
        for seat in seats
    ]
    return {
        "study": str(sample.detail.get("study", "")),
        "arms": list(dict.fromkeys(str(turn.detail.get("arm", "")) for turn in sample.turns))[:_MOST_TASKS],
        "people": people,
        "rounds": rounds,
        "asks": _asks(sample, places, seats, rounds),
        "left": (max(0, len(members) - len(people)), max(0, left)),
        "tables": [
            {
                **_named(one, conditions),
                "rows": [[_cell(sample, places.get((seat, number)), one) for number in rounds] for seat in seats],
            }
            for one in heard(trials)
        ],
    }


def _task(
    sample: Sample, turn: int, answers: Sequence[Heard], conditions: Sequence[str], run: str, voices: Voices
) -> dict[str, Any]:
    one = sample.turns[turn]
    own = [shown(sample, turn, each) for each in answers]
    texts = {text for text in own if text is not None}
    same = len(texts) == 1 or not one.open
    asks = fields_of(sample, turn)
    return {
        "name": _name(one.detail),
        "round": one.detail.get("round") if isinstance(one.detail.get("round"), int) else None,
        "arm": str(one.detail.get("arm", "")),
        "question": next(iter(texts), one.question) if same else one.question,
        "open": not same and "{{" in one.question,
        "asks": [(str(name), field_told(what)) for name, what in list(asks.items())[:_MOST_ATTRIBUTES]],
        "answers": [
            {
                **_named(each, conditions),
                **_reply(sample, turn, each, run),
                **_read(sample, turn, each, voices),
                "saw": None if same or text is None else text,
                "put_in": [] if same else put_in(one.question, text)[:_MOST_ATTRIBUTES],
            }
            for each, text in zip(answers, own, strict=True)
        ],
    }


def _reply(sample: Sample, turn: int, one: Heard, run: str) -> dict[str, Any]:
    found = answer_of(sample, turn, one)
    whole = address("runs", run, "text", one.told.id, turn) if len(found["text"]) > _SHOWN else None
    return {**found, "whole": whole, "damaged": one.told.damaged}


def _read(sample: Sample, turn: int, one: Heard, voices: Voices) -> dict[str, Any]:
    """What people read in a reply, by field, and what the form asks; nothing before the trial came to its end."""
    labels, own = voices.of_turn(one.told.id, turn), voices.own(one.told.id, turn)
    row = one.rows.get(turn)
    ask = row is not None and one.told.answer is not None and one.reply(turn) is not None
    people: dict[str, list[tuple[str, str, bool]]] = {}
    for label in labels:
        for name in [*label.answers, *label.unread][:_MOST_ATTRIBUTES]:
            theirs = read_by(label, name)
            people.setdefault(name, []).append((label.who, said(*theirs), theirs == read_by_karat(row, name)))
    return {
        "turn": turn,
        "trial": one.told.id,
        "people": people,
        "ask": asked(sample, turn, row, own) if ask else [],
        "own_note": "" if own is None else own.note,
    }


def _cell(sample: Sample, turn: int | None, one: Heard) -> dict[str, Any]:
    """What a member said in a round, and the values that they saw."""
    if turn is None:
        return {"said": [], "missing": "", "saw": [], "turn": 0}
    found = answer_of(sample, turn, one)
    several = len(found["fields"]) > 1
    return {
        "missing": found["missing"],
        "said": [
            (each["name"] if several else "", each["value"] or "", each["why"]) for each in found["fields"][:_MOST_SAID]
        ],
        "saw": [] if found["missing"] else put_in(sample.turns[turn].question, shown(sample, turn, one))[:_MOST_SAID],
    }


def _asks(sample: Sample, places: Mapping[Any, int], seats: range, rounds: Sequence[int]) -> list[dict[str, Any]]:
    """The texts of the rounds, each once: as the first member is asked, what depends on answers still open."""
    found: dict[str, list[int]] = {}
    for number in rounds:
        at = next((places[seat, number] for seat in seats if (seat, number) in places), None)
        if at is not None:
            found.setdefault(sample.turns[at].question, []).append(number)
    return [{"rounds": numbers, "text": text} for text, numbers in found.items()]


def _named(one: Heard, conditions: Sequence[str]) -> dict[str, Any]:
    told = one.told
    return {
        "n": told.n,
        "condition": told.condition,
        "repetition": told.repetition,
        "name": conditions[told.condition] if 0 <= told.condition < len(conditions) else "?",
    }


def _facts(profile: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown_ = list(profile.items())[:_MOST_ATTRIBUTES]
    return [(str(name).replace("_", " "), value if isinstance(value, str) else str(value)) for name, value in shown_]


def _profile(member: Mapping[str, Any]) -> str:
    profile = member.get("profile")
    return profile_text(profile) if isinstance(profile, dict) else ""


def _name(detail: Mapping[str, Any]) -> str:
    """A task by its file: `materials/first.md` is `first`."""
    return str(detail.get("task", "")).rpartition("/")[2].removesuffix(".md").replace("_", " ")


def _round(detail: Mapping[str, Any]) -> int:
    number = detail.get("round")
    return number if isinstance(number, int) else 1


def _members(sample: Sample) -> list[Mapping[str, Any]]:
    found = sample.detail.get("members")
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else []
