"""A study in the viewer: who takes part, what they were shown, what they answered and how it was
read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal

import msgspec
from pydantic import ValidationError

from karat import formats
from karat.analysis import Summary
from karat.errors import KaratError
from karat.journal import Label, RunInfo
from karat.kind_views import (
    Judgement,
    KindPage,
    ReviewTexts,
    SampleList,
    SamplePage,
    TrialRecord,
    Views,
    address,
)
from karat.kinds import of_sample
from karat.records import AgentSpec, Condition, Reply, Sample, Score
from karat_studies.kinds.study.fields import KINDS
from karat_studies.kinds.study.format import Answered
from karat_studies.kinds.study.study_page import study_page

Reading = float | str | list[str]
Object = Mapping[str, object]
_NO_MAPPING: Object = {}

_SHOWN = 20_000  # characters of a reply on a page
_LONG = 300  # characters of one answer, or of a profile
_LONGEST_NAME = 200
_LONGEST_READING = 10_000  # characters of an answer as JSON that a form sends back
_LONGEST_TEMPLATE = 100_000  # characters of a system prompt that is filled
# upper bound of the filled prompt's characters: fields times the whole profile
_MOST_FILLED = 10_000_000
_MOST = 60  # tasks on a page, fields of a task, options, attributes
_MOST_ARMS = 100  # of one participant
_MOST_CELLS = 400  # of one table: members × rounds
_MOST_CONDITIONS = 50
_MOST_LINKS = 100
_MOST_IN_CELL = 40  # values in a cell
# of a sample whose texts are filled, as each depends on the texts of a whole group
_MOST_TURNS = 1_000
_NAMED = 60  # characters of an answer in a list of choices
_WITHOUT = {"stopped": "not asked any more", "unrecorded": "not recorded"}


class _Person(msgspec.Struct, kw_only=True, gc=False):
    participant: str = ""
    profile: dict[str, object] = {}


class _Detail(_Person, kw_only=True, gc=False):
    study: str
    members: tuple[_Person, ...] = ()


_UNKNOWN = _Detail(study="")


def _detail(sample: Sample) -> _Detail | None:
    """None if it is not a participant: the run folder may come from anywhere."""
    try:
        return msgspec.convert(sample.detail, _Detail)
    except msgspec.ValidationError:
        return None


class StudyViews(Views):
    """Participants, their sessions, and the games of groups."""

    templates = Path(__file__).parent / "templates"
    label_head = "Not read"
    label_any = "read or not"
    searched = "profile, task or answers"
    reviews = ReviewTexts(
        judge="karat",
        head="what",
        reviewed="replies",
        empty=(
            "Nobody has reviewed yet how an answer is read: open a session, and “Review” below "
            "one of its replies."
        ),
        legend="Over what both read. Kappa is the agreement beyond chance, given how often each "
        "gives each reading; a reading is an answer, or why there is none; its interval is "
        "clustered by session. karat's latest scores are used.",
    )

    def listing(self, samples: Iterable[tuple[int, Sample]]) -> SampleList:
        listing = SampleList(heads=("arm", "profile"), choices={"study": {}, "arm": {}})
        groups = 0
        for row, sample in samples:
            detail = _detail(sample)
            if detail is None:
                continue
            names = (str(turn.detail.get("arm", ""))[:_LONGEST_NAME] for turn in sample.turns)
            arms = list(dict.fromkeys(names))[:_MOST_ARMS]
            study = detail.study[:_LONGEST_NAME]
            members = len(detail.members)
            groups += members > 0
            if members:
                who = f"group of {formats.plural(members, 'member')}"
            else:
                who = profile_text(detail.profile)

            listing.parts[row] = study
            listing.cells[row] = ((formats.excerpt(", ".join(arms), _LONG), ""), (who, ""))
            listing.choices["study"].setdefault(study, []).append(row)
            for arm in arms:
                listing.choices["arm"].setdefault(arm, []).append(row)

        if groups and groups == len(listing.parts):
            listing.unit = "group"
        elif groups:
            listing.unit = "session"
        else:
            listing.unit = "participant"

        if len(listing.choices["study"]) > 1:
            for row, (arms_cell, who_cell) in listing.cells.items():
                listing.cells[row] = ((arms_cell[0], listing.parts[row]), who_cell)

        return listing

    def searched_texts(self, sample: Sample) -> list[str]:
        detail = _detail(sample)
        if detail is None:
            return []
        members = (
            text
            for member in detail.members
            for text in (member.participant, profile_text(member.profile))
        )
        return [profile_text(detail.profile), *members]

    def label_choices(self, labels: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """Each kind for any field, then the kinds of each field."""
        of_fields = dict.fromkeys(value for name, value in labels if name != "turn")
        choices = [(f"={kind}", f"any field: {kind}") for kind in of_fields]
        choices += [(f"{name}={value}", f"{name}: {value}") for name, value in labels]
        return [(value, words.replace("_", " ")) for value, words in choices]

    def sample_page(self, page: SamplePage) -> tuple[str, dict[str, object]]:
        """The session of a participant, or of the member asked for; otherwise the game of a
        group.
        """
        detail = _detail(page.sample) or _UNKNOWN
        members = detail.members
        if page.seat.isascii() and page.seat.isdigit() and len(page.seat) < 6:
            seat = int(page.seat)
        else:
            seat = -1

        if members and not 0 <= seat < len(members):
            return "group.html.j2", {"group": _game(page, detail)}
        content: dict[str, object] = {"seat": None, "group_path": None}
        if members:
            near = (at if 0 <= at < len(members) else None for at in (seat - 1, seat + 1))
            before, after = (None if at is None else _path(page, seat=str(at)) for at in near)
            content = {
                "seat": str(seat),
                "group_path": _path(page),
                "before": before,
                "after": after,
            }

        chosen = seat if members else None

        # The participant, and each task with the replies of every trial and how reviewers read
        # them.
        sample = page.sample
        trials = [_Turns(trial) for trial in page.trials]
        turns = []
        for at, turn in enumerate(sample.turns):
            if chosen is None or turn.seat == chosen:
                turns.append(at)

        who = detail if chosen is None else members[chosen]
        profile = list(who.profile.items())[:_MOST]
        session = {
            "who": who.participant or sample.id,
            "study": detail.study,
            "arms": list(
                dict.fromkeys(str(sample.turns[at].detail.get("arm", "")) for at in turns)
            )[:_MOST],
            "profile": [(name.replace("_", " "), str(value)) for name, value in profile],
            "tasks": [_task(page, at, trials) for at in turns[:_MOST]],
            "left": max(0, len(turns) - _MOST),
        }
        content |= {
            "session": session,
            "prompts": prompts(page.info, page.sample, chosen),
        }
        return "session.html.j2", content

    def place_of(self, sample: Sample, turn: int) -> tuple[dict[str, str], str]:
        if not (_detail(sample) or _UNKNOWN).members:
            return {}, f"task-{turn + 1}"
        seat = None
        if 0 <= turn < len(sample.turns):
            seat = sample.turns[turn].seat
        return ({} if seat is None else {"seat": str(seat)}), ""

    def judgements(
        self,
        label: Label,
        scores: Sequence[Score],
        part: str,
        rule: str,
    ) -> Iterator[Judgement]:
        yield from super().judgements(label, scores, part, rule)
        assert label.turn is not None
        row = _reading_rows(scores).get(label.turn)
        for name in [*label.answers, *label.unread][:_MOST]:
            person = _read_by(label, name)
            karat = _read_by_karat(row, name)
            known = karat != (None, "")
            differs = known and person != karat
            yield Judgement(
                what=f"{part}: {name}",
                person=_hashable(person),
                karat=_hashable(karat) if known else None,
                words=f"{name}: {_shown_value(*person)}"
                + (f" (karat: {_shown_value(*karat)})" if differs else ""),
                differs=differs,
                field=True,
            )

    def check_readings(
        self,
        sample: Sample,
        turn: int,
        scores: Sequence[Score],
        readings: Mapping[str, tuple[Reading | None, str]],
    ) -> tuple[dict[str, Reading], dict[str, str]]:
        answers: dict[str, Reading] = {}
        unread: dict[str, str] = {}
        row = _reading_rows(scores).get(turn)
        if readings and row is None:
            raise ValueError("this turn has not been read yet")
        for place, reading in readings.items():
            name, value, kind = checked_reading(sample, turn, row, place, reading)
            if value is None:
                unread[name] = kind
            else:
                answers[name] = value

        return answers, unread

    def links(self, summary: Summary) -> tuple[str, list[tuple[str, str]]]:
        part = summary.study
        studies = () if part is None else part.studies[:_MOST_LINKS]
        return "Study" if len(studies) == 1 else "Studies", [
            ("studies", study.study) for study in studies
        ]

    def page(self, summary: Summary, run: str, group: str, name: str) -> KindPage | None:
        if group == "studies" and summary.study is not None:
            return study_page(summary.study, run, name)
        return None


class _Turns:
    """The replies of one trial and how they were read, by turn."""

    def __init__(self, trial: TrialRecord) -> None:
        self.trial = trial
        self.texts = [None if reply.absent else reply.text for reply in trial.replies]
        self.rows = _reading_rows(trial.scores)

    def reply(self, turn: int) -> Reply | None:
        """The reply; None if there is none."""
        replies = self.trial.replies
        if turn < len(replies) and not replies[turn].absent:
            return replies[turn]
        return None

    def why_missing(self, turn: int) -> str:
        """Why there is no reply; empty if there is one."""
        if self.reply(turn) is not None:
            return ""
        if turn in self.rows:
            why = self.rows[turn].labels.get("turn")
        else:
            why = None

        if turn < len(self.trial.replies):
            stopped = self.trial.replies[turn].stop_reason == "not_asked"
            why = why or ("stopped" if stopped else "unrecorded")

        if why is None:
            return self.trial.why_missing()
        return _WITHOUT.get(why, why)

    def shown(self, sample: Sample, turn: int) -> str | None:
        """What the participant was shown; None if they were not asked, or if it is unknown."""
        if not sample.turns[turn].open:
            return sample.turns[turn].question
        if turn > len(self.texts) or len(sample.turns) > _MOST_TURNS:
            return None
        try:
            return of_sample(sample).next_turn(sample, turn, self.texts)
        except (AttributeError, ArithmeticError, KaratError, LookupError, TypeError, ValueError):
            return None  # not a sample of a study

    def fields(self, sample: Sample, turn: int) -> list[dict[str, str | None]]:
        """Each field of a turn with its answer, or why there is none."""
        row = self.rows.get(turn)
        values = _mapping(None if row is None else row.detail.get("answers"))
        if row is None:
            labels = {}
        else:
            labels = {name: why for name, why in row.labels.items() if name != "turn"}

        fields = _fields_of(sample, turn)
        found = []
        for name in list(dict.fromkeys([*fields, *values, *labels]))[:_MOST]:
            # The meaning of a chosen option, if the study gives one
            meaning = ""
            value = values.get(name)
            if isinstance(value, str):
                field = fields.get(name)
                if field is not None:
                    words = field.meanings.get(value, value)
                else:
                    words = value

                if words != value:
                    meaning = _cut(words)

            found.append(
                {
                    "name": name,
                    "value": _value_text(values[name]) if name in values else None,
                    "meaning": meaning,
                    "why": labels.get(name, "").replace("_", " "),
                }
            )

        return found

    def head(self, page: SamplePage) -> dict[str, object]:
        """Identifies the trial."""
        trial = self.trial
        return {
            "n": trial.n,
            "condition": trial.condition,
            "repetition": trial.repetition,
            "name": page.name_of(trial),
        }


def _task(page: SamplePage, at: int, trials: Sequence[_Turns]) -> dict[str, object]:
    sample = page.sample
    turn = sample.turns[at]
    number = sample.turns[at].detail.get("round")
    own = [trial.shown(sample, at) for trial in trials]
    texts = {text for text in own if text is not None}
    same = len(texts) == 1 or not turn.open
    answers = []
    for trial, asked in zip(trials, own, strict=True):
        record = trial.trial
        row = trial.rows.get(at)
        reply = trial.reply(at)
        text = ""
        if reply is not None:
            text = reply.text or reply.answer or ""
        # How reviewers read it
        people: dict[str, list[tuple[str, str, bool]]] = {}
        for label in page.reviews.of_turn(record.id, at):
            for name in [*label.answers, *label.unread][:_MOST]:
                person = _read_by(label, name)
                people.setdefault(name, []).append(
                    (label.who, _shown_value(*person), person == _read_by_karat(row, name))
                )

        mine = page.reviews.by_reviewer(record.id, at)
        ended = row is not None and record.answer is not None and reply is not None
        whole = None
        if len(text) > _SHOWN:
            whole = address("runs", page.run, "text", record.id, at)

        answers.append(
            {
                **trial.head(page),
                "missing": trial.why_missing(at),
                "read": row is not None,
                "text": text,
                "fields": trial.fields(page.sample, at),
                "whole": whole,
                "damaged": record.damaged,
                "turn": at,
                "trial": record.id,
                "people": people,
                "ask": reading_choices(page.sample, at, row, mine) if ended else [],
                "own_note": "" if mine is None else mine.note,
                "saw": None if same or asked is None else asked,
                "put_in": [] if same else filled_values(turn.question, asked)[:_MOST],
            }
        )

    return {
        # A task by its file: `materials/first.md` is `first`.
        "name": str(turn.detail.get("task", ""))
        .rpartition("/")[2]
        .removesuffix(".md")
        .replace("_", " "),
        "round": number if isinstance(number, int) else None,
        "arm": str(turn.detail.get("arm", "")),
        "question": next(iter(texts), turn.question) if same else turn.question,
        "open": not same and "{{" in turn.question,
        "asks": [(name, _field_text(field)) for name, field in _fields_of(sample, at).items()],
        "answers": answers,
    }


def _game(page: SamplePage, detail: _Detail) -> dict[str, object]:
    """A group's answers, members × rounds, in every trial."""
    sample = page.sample
    members = detail.members
    numbers = (turn.detail.get("round") for turn in sample.turns)
    rounds_of = [number if isinstance(number, int) else 1 for number in numbers]
    places = {
        (turn.seat, number): at
        for at, (turn, number) in enumerate(zip(sample.turns, rounds_of, strict=True))
    }
    rounds = sorted(set(rounds_of))
    seats = range(len(members))[: max(1, _MOST_CELLS // max(1, min(len(rounds), _MOST)))]
    left = len(members) - len(seats), max(0, len(rounds) - _MOST)
    rounds = rounds[:_MOST]
    people = []
    for seat in seats:
        people.append(
            {
                "who": members[seat].participant or str(seat + 1),
                "profile": profile_text(members[seat].profile),
                "path": _path(page, seat=str(seat)),
            }
        )

    # each text once, as the first member gets it, with {{ … }} not filled
    asks: dict[str, list[int]] = {}
    for number in rounds:
        at = next((places[seat, number] for seat in seats if (seat, number) in places), None)
        if at is not None:
            asks.setdefault(sample.turns[at].question, []).append(number)

    return {
        "study": detail.study,
        "arms": list(dict.fromkeys(str(turn.detail.get("arm", "")) for turn in sample.turns))[
            :_MOST
        ],
        "people": people,
        "rounds": rounds,
        "asks": [{"rounds": numbers, "text": text} for text, numbers in asks.items()],
        "left": left,
        "tables": [
            {
                **trial.head(page),
                "rows": [
                    [_cell(sample, places.get((seat, number)), trial) for number in rounds]
                    for seat in seats
                ],
            }
            for trial in map(_Turns, page.trials)
        ],
    }


def _cell(sample: Sample, turn: int | None, trial: _Turns) -> dict[str, object]:
    """What a member answered in a round, and the values they were shown."""
    if turn is None:
        return {"answers": [], "missing": "", "saw": []}
    missing = trial.why_missing(turn)
    fields = trial.fields(sample, turn)
    if missing:
        saw = []
    else:
        saw = filled_values(sample.turns[turn].question, trial.shown(sample, turn))[:_MOST_IN_CELL]

    answers = []
    for field in fields:
        answers.append(
            (field["name"] if len(fields) > 1 else "", field["value"] or "", field["why"])
        )

    return {"missing": missing, "answers": answers[:_MOST_IN_CELL], "saw": saw}


def _path(page: SamplePage, **query: str) -> str:
    return address("runs", page.run, "samples", page.n, **query, **page.query)


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """The system prompt that a participant read before the first task."""

    conditions: list[tuple[int, str]]  # position in the plan, and name
    # as read; none; could not be filled; not in the run folder
    what: Literal["read", "none", "template", "unknown"]
    text: str = ""
    # whether the run recorded another text's digest: here secrets are replaced by ${NAME}
    other: bool = False


def prompts(info: RunInfo, sample: Sample, seat: int | None) -> list[Prompt]:
    """One per text, with the conditions under which it was read, in the plan's order.

    `seat`: in a group, from 0.
    """
    merged: list[Prompt] = []
    for at, name in enumerate(info.plan.conditions[:_MOST_CONDITIONS]):
        prompt = _prompt(info, name, sample, seat)
        same = next(
            (other for other in merged if msgspec.structs.replace(other, conditions=[]) == prompt),
            None,
        )
        if same is None:
            merged.append(msgspec.structs.replace(prompt, conditions=[(at, name)]))
        else:
            same.conditions.append((at, name))

    return merged


def _prompt(info: RunInfo, name: str, sample: Sample, seat: int | None) -> Prompt:
    choice = info.experiment.get(f"conditions.{name}.system_prompt")
    template = None if choice is None else choice.value
    if choice is None or not (template is None or isinstance(template, str)):
        return Prompt(conditions=[], what="unknown")
    noted = info.prompts.get(name)
    other = (
        noted is not None
        and noted != sha256((template or "").encode("utf-8", "surrogatepass")).hexdigest()
    )
    if not template:
        return Prompt(conditions=[], what="none", other=other)
    unfilled = Prompt(conditions=[], what="template", text=template, other=other)
    detail = _detail(sample)
    if detail is None:
        return unfilled
    who: _Person = detail
    if seat is not None and seat < len(detail.members):
        who = detail.members[seat]

    size = len(msgspec.json.encode(who.profile))
    if len(template) > _LONGEST_TEMPLATE or (1 + template.count("{{")) * size > _MOST_FILLED:
        return unfilled
    condition = Condition(
        name=name,
        position=0,
        digest="",
        agent=AgentSpec(type=""),
        system_prompt=template,
    )
    try:
        prompt = of_sample(sample).prompt
        if prompt is None:
            text = template
        else:
            text = prompt(condition, sample, seat) or ""
    except (AttributeError, KaratError, LookupError, TypeError, ValueError):
        return unfilled  # not a sample of a study

    return Prompt(conditions=[], what="read", text=text, other=other)


def reading_choices(
    sample: Sample,
    turn: int,
    row: Score | None,
    own: Label | None,
) -> list[dict[str, object]]:
    """For each field of a turn's review form: the choices as JSON with their names, and the
    reviewer's label.

    `row`: how karat read the turn.
    """
    asked: list[dict[str, object]] = []
    for place, (name, field) in enumerate(_fields_of(sample, turn).items()):
        karat = _read_by_karat(row, name)
        options = _options(field)
        choices = [_choice(value, "", karat) for value in options]
        if (
            karat[0] is not None
            and karat[0] not in options
            and len(_sent(*karat)) <= _LONGEST_READING
        ):
            choices.insert(0, _choice(karat[0], "", karat))

        choices += [_choice(None, kind, karat) for kind in KINDS]
        mine = (None, "") if own is None else _read_by(own, name)
        if mine == (None, ""):
            before = ""
        else:
            before = _sent(*mine)

        typed = bool(before) and before not in {value for value, _ in choices}
        asked.append(
            {
                "place": place,
                "name": name,
                "choices": choices,
                "open": not options,
                "own": "typed" if typed else before,
                "typed": _value_text(mine[0]) if typed and mine[0] is not None else "",
            }
        )

    return asked


def checked_reading(
    sample: Sample,
    turn: int,
    row: Score | None,
    place: str,
    given: tuple[Reading | None, str],
) -> tuple[str, Reading | None, str]:
    """Field, answer and why there is none, from a review form. Raises ValueError with a sentence if
    it is wrong.

    The answer is read as the study reads those of participants, unless it is the one that karat had
    read.
    """
    names = list(_fields_of(sample, turn))
    if place.isascii() and place.isdigit() and len(place) < 6:
        at = int(place)
    else:
        at = len(names)

    value, kind = given
    if at >= len(names) or (value is None) == (not kind):
        raise ValueError(
            "a reading needs one of the turn's fields, and an answer or why there is none"
        )

    name = names[at]
    if value is None:
        if kind not in KINDS:
            raise ValueError(f"{name}: expected {', '.join(KINDS)}")
        return name, None, kind

    if len(_sent(value, "")) > _LONGEST_READING:
        raise ValueError(f"{name}: an answer has at most 10,000 characters")
    if value == _read_by_karat(row, name)[0]:
        return name, value, ""
    read = of_sample(sample).read(sample, turn, json.dumps({name: value}))
    if name not in read.values:
        why = read.kinds.get(name, "invalid").replace("_", " ")
        raise ValueError(f"{name}: the study would not read that as an answer ({why})")

    return name, read.values[name], ""


def _choice(value: Reading | None, kind: str, karat: tuple[Reading | None, str]) -> tuple[str, str]:
    name = _shown_value(value, kind)
    if not (len(name) <= _NAMED):
        name = f"{name[:_NAMED]}…"
    return _sent(value, kind), f"{name}, as karat read it" if (value, kind) == karat else name


def _sent(value: Reading | None, kind: str) -> str:
    """The value of a form field: ASCII, so that no character can be mistaken for another."""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        value = int(value)
    return json.dumps({"kind": kind} if value is None else {"value": value})


def _options(field: Answered | None) -> list[Reading]:
    """The values to choose from, if they are few."""
    if field is None:
        return []
    if field.type == "choice" and len(field.labels) <= _MOST:
        return [*field.labels]
    low, high = field.range or (None, None)
    if (
        field.type == "likert"
        and low is not None
        and high is not None
        and max(abs(low), abs(high)) < 1e15
        and low == int(low)
        and 0 < high - low <= _MOST
    ):
        return [float(step) for step in range(int(low), int(high) + 1)]

    return []


def _reading_rows(scores: Iterable[Score]) -> dict[int, Score]:
    """Turn → the row that says how it was read: with the answers, or with why there are none.

    Rows of other scorers, which say neither, are skipped.
    """
    rows = ((score.turn, score) for score in scores if score.labels or "answers" in score.detail)
    return {turn: score for turn, score in rows if turn is not None}


def _read_by_karat(row: Score | None, name: str) -> tuple[Reading | None, str]:
    """The answer that karat read in a field, or why there is none; neither if it has not read the
    turn.
    """
    if row is None:
        return None, ""
    value = _mapping(row.detail.get("answers")).get(name)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value, ""
    if isinstance(value, str | float | int) and not isinstance(value, bool) and value == value:
        return value, ""
    return None, row.labels.get(name, "")


def _read_by(label: Label, name: str) -> tuple[Reading | None, str]:
    """The same for a reviewer."""
    return label.answers.get(name), label.unread.get(name, "")


def _shown_value(value: Reading | None, kind: str) -> str:
    if value is not None:
        return _value_text(value)
    return kind.replace("_", " ") or formats.UNKNOWN


def _hashable(
    reading: tuple[Reading | None, str],
) -> tuple[float | str | tuple[str, ...] | None, str]:
    value, kind = reading
    return (tuple(value) if isinstance(value, list) else value), kind


def _fields_of(sample: Sample, turn: int) -> Mapping[str, Answered | None]:
    """Field → what it asks for, according to the study; None: nothing that a study can ask for."""
    fields = sample.detail.get("fields")
    if not isinstance(fields, list) or turn >= len(fields):
        return {}
    found: dict[str, Answered | None] = {}
    asked = _mapping(fields[turn])
    for name, field in list(asked.items())[:_MOST]:
        found[name] = None
        with suppress(ValidationError):
            found[name] = Answered.model_validate(field, strict=True)

    return found


def _field_text(field: Answered | None) -> str:
    """What a field asks for, in a few words."""
    if field is None:
        return ""
    low = high = ""
    if field.range is not None:
        low, high = ("" if end is None else _value_text(end) for end in field.range)
    parts = [" / ".join(field.labels[:20])]
    if low and high:
        parts.append(f"{low} to {high}")
    elif low:
        parts.append(f"from {low}")
    elif high:
        parts.append(f"to {high}")

    if field.optional:
        parts.append("optional")

    words = ", ".join(filter(None, parts))
    text = ": ".join(filter(None, (field.type, words)))
    return formats.excerpt(text, _LONG)


def _value_text(value: object) -> str:
    """An answer as text.

    >>> _value_text(40.0), _value_text(["a", "b"])
    ('40', 'a, b')
    """
    if isinstance(value, float) and value == value and abs(value) < 1e15 and value == int(value):
        value = int(value)
    if isinstance(value, list):
        return _cut(", ".join(_value_text(item) for item in value[:100]))
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, (int, float)):
        return formats.raw(value)
    return _cut(json.dumps(value, ensure_ascii=False))


def filled_values(template: str, filled: str | None) -> list[tuple[str, str]]:
    """The values that a text has in place of the template's {{ names }}, each name once.

    Empty if the text does not match the template.

    >>> filled_values(
    ...     "You said {{ last.number }}, others {{ others.mean }}.", "You said 3, others 41.5."
    ... )
    [('last.number', '3'), ('others.mean', '41.5')]
    """
    first, *parts = template.split("{{")
    if filled is None or not parts or not filled.startswith(first):
        return []
    values: dict[str, str] = {}
    at = len(first)
    for number, part in enumerate(parts):
        name, closed, literal = part.partition("}}")
        last = number == len(parts) - 1
        if last and filled.endswith(literal):
            end = len(filled) - len(literal)
        else:
            end = filled.find(literal, at)

        if not closed or end < at or (not literal and not last):
            return []
        values.setdefault(name.strip(), filled[at:end])
        at = end + len(literal)

    return list(values.items())


def profile_text(profile: Object) -> str:
    """A profile on one line.

    >>> profile_text({"age": 30, "home_town": "Graz"})
    'age 30, home town Graz'
    """
    parts = []
    for name, value in list(profile.items())[:50]:
        if isinstance(value, str):
            text = value
        else:
            text = msgspec.json.encode(value).decode()

        parts.append(f"{name.replace('_', ' ')} {text[:_LONG]}")

    return formats.excerpt(", ".join(parts), _LONG)


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else _NO_MAPPING


def _cut(text: str) -> str:
    if len(text) <= _LONG:
        return text
    return f"{text[:_LONG]}…"
