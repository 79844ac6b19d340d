"""Which column is the question, the golden answer, the agent's answer, the choices, …

`assign` reads names by the grammar in `names` and decides weak ones by their company: the twin
column, the other role under an exact name, the door the file came through, and evidence of a run
(scores, a model, latencies). What stays open is returned as complete readings to choose from,
never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain, product

import msgspec

from karat.documents.agent_answers import with_all
from karat.documents.candidates import SHOWN, Candidates, Door, Roles, Taken
from karat.documents.columns import Columns, without_number, without_point
from karat.documents.golden_answers import add_findings, add_together, golden_answers
from karat.documents.names import (
    Role,
    criterion_type,
    joined,
    meanings,
    names_documents,
    sure_roles,
    word_set,
)
from karat.documents.questions import add_texts, is_place, questions_of
from karat.documents.results import judged_apart, likewise_named
from karat.documents.sentences import asks, describes, sentences, unexplained
from karat.documents.shapes import shapes_of

_LONG = 80  # characters of a text on which there may be questions
_INSTRUCTIONS = word_set("instruction instructions task prompt")
"""Names of what is asked of a text in another column."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The role of each column that has one; `unused`: columns that have none."""

    roles: Taken
    unused: tuple[str, ...] = ()

    def one(self, role: Role) -> str | None:
        """The first column of a role; None: it has none."""
        return next(iter(self.roles.get(role, ())), None)

    def changed(self, change: Taken) -> Reading:
        """The same with some columns in other roles, which they have instead of their own."""
        moved = {path for paths in change.values() for path in paths}
        roles: Taken = {}
        for named, held in self.roles.items():
            kept = tuple(path for path in held if path not in moved)
            if kept or not held:
                roles[named] = kept

        unused = tuple(path for path in self.unused if path not in moved)
        return Reading(roles={**roles, **change}, unused=unused)


class Undecided(msgspec.Struct, frozen=True, kw_only=True):
    """Complete readings to choose from, the likeliest first; none: the file does not say enough.

    `asked`: what has to be decided, as the end of a sentence.
    """

    asked: str
    readings: tuple[Reading, ...] = ()
    columns: tuple[str, ...] = ()  # that may hold a question or an answer


def assign(
    columns: Columns,
    *,
    door: Door,
    file: str = "",
    named: Roles | None = None,
    needs_golden: bool = True,
) -> Reading | Undecided:
    """The role of each column, or the readings to choose from.

    `named`: roles that the user has decided. `file`: its name may raise a question, never settle
    one.
    """
    plain = {without_point(path): path for path in columns}
    given: Taken = {}
    for role, paths in (named or {}).items():
        given[role] = tuple(map(without_point, paths))

    seen = {name: columns[path] for name, path in plain.items()}
    result = _result(Candidates(seen, door, file, given, needs_golden))
    if isinstance(result, Reading):
        return _renamed(result, plain)
    return Undecided(
        asked=result.asked,
        readings=tuple(_renamed(reading, plain) for reading in result.readings),
        columns=tuple(plain.get(name, name) for name in result.columns),
    )


def _renamed(reading: Reading, names: Mapping[str, str]) -> Reading:
    """With the columns as the file calls them."""
    roles: Taken = {}
    for role, paths in reading.roles.items():
        roles[role] = tuple(names.get(path, path) for path in paths)

    return Reading(roles=roles, unused=tuple(names.get(path, path) for path in reading.unused))


def _result(file: Candidates) -> Reading | Undecided:
    shapes = shapes_of(file)
    used = {*chain.from_iterable(shapes.values())}
    file.free = {path: column for path, column in file.free.items() if path not in used}
    goldens = golden_answers(file, shapes)
    first = goldens[0] if goldens else {}
    questions = questions_of(
        file,
        {*first.get("golden", ())},
        shapes,
        answers={*first.get("answer", ())},
    )
    add_texts(file, shapes, goldens, questions)
    if len(goldens) > 1:
        add_together(file, shapes, goldens)
        add_findings(file, shapes, goldens)

    if file.door == "results":
        goldens = with_all(file, goldens, shapes)
    readings = []
    places = [*product(range(len(questions)), range(len(goldens)))]
    if len(places) > SHOWN:  # the first of each, rather than all golden answers of one question
        places.sort(key=sum)
    for place, right in places:
        reading = _reading(file, shapes, questions[place], goldens[right])
        if reading is not None and reading not in readings:
            readings.append(reading)

    if len(readings) == 1 and not file.unsure and not _has_further_turns(file, readings[0]):
        others = _with_unexplained(file, readings[0])
        text = readings[0].one("question")
        long = text is not None and file.columns[text].mean_length > _LONG
        if long and not others and file.door == "dataset":
            others = made_of_texts(file, readings[0])
        if not others:
            return readings[0]
        about = []  # their golden answer only describes the question
        for other in others:
            if any(map(describes, other.roles.get("golden", ()))):
                about.append(other)
            else:
                readings.insert(len(readings) - 1, other)

        readings += about

    if len(readings) > 1 and file.door == "dataset" and "golden" not in file.named:
        add_left_over(file, readings)
    if not questions:
        asked = "which column is the question"
    elif not goldens:
        asked = "which column is the golden answer"
        if file.door == "results":
            asked = "which column is the answer"
    else:
        asked = "what the columns hold"

    return Undecided(asked=asked, readings=tuple(readings[:SHOWN]), columns=tuple(file.texts()))


def made_of_texts(file: Candidates, reading: Reading) -> list[Reading]:
    """The same with the golden answers as questions on texts, if they are questions, which agents
    may have to make of the texts, or to answer.
    """
    if {"question", "golden"} & {*file.named}:
        return []
    (text, *_) = reading.roles["question"]
    for path in reading.roles.get("golden", ()):
        longer = file.columns[text].mean_length > 2 * file.columns[path].mean_length
        if path != text and longer and asks(file.columns[path]) and not asks(file.columns[text]):
            return [reading.changed({"question": (path,), "golden": (), "context": (text,)})]

    return []


def add_left_over(file: Candidates, readings: list[Reading]) -> None:
    """Offers as golden answer a text that no name explains, before a likeliest one that is a class,
    and the documents to retrieve, unless a reading has them.
    """
    used = set[str]()
    for reading in readings:
        for role in ("question", "golden", "answer"):
            used |= {*reading.roles.get(role, ())}

    texts = []
    for path in sentences(file.columns, "golden"):
        known = meanings(path) or meanings(path.partition(".")[0])
        if path not in used and not known and not describes(path):
            texts.append(path)

    documents: dict[str, int] = {}  # → where they are offered
    for path, column in file.columns.items():
        single = not column.objects + column.flags and criterion_type(path) is None
        varies = column.lists > 0 or len(column.values) > SHOWN // 2
        if path in used or not single or not varies:
            continue
        if sure_roles(path) & {"golden", "criterion"} and names_documents(path):
            documents[path] = 1
        elif is_place(file, path) and len(readings) < SHOWN:
            documents[path] = len(readings)

    first = readings[0]
    golden = first.one("golden")
    for path in sorted(documents, key=lambda path: (documents[path], path.count(".")))[:1]:
        readings.insert(documents[path], first.changed({"golden": (path,)}))
    for path in texts[:1]:
        place = len(readings)
        if golden is not None and file.columns[golden].repeats:
            place = 0
        readings.insert(place, first.changed({"golden": (path,)}))


def _has_further_turns(file: Candidates, reading: Reading) -> bool:
    """Whether columns such as `response 2` follow the one that was taken: a row has turns."""
    roles: tuple[Role, ...] = ("question", "answer", "golden")
    for role in roles:
        if role in file.named:
            continue
        taken = {*map(without_number, reading.roles.get(role, ()))}
        for path in file.columns:
            numbered = re.search(r"[2-9]$", path) is not None
            others = path not in reading.roles.get(role, ())
            if numbered and without_number(path) in taken and others:
                return path not in reading.roles.get("choices", ())

    return False


def _with_unexplained(file: Candidates, reading: Reading) -> list[Reading]:
    """The same with other texts in a role that is empty, or that a weak name has."""
    second: Role = "answer" if file.door == "results" else "golden"
    texts: dict[Role, list[str]] = {}
    for role in ("question", second):
        paths = [] if role in file.named else unexplained(file.columns, reading.roles, role)
        if role == "golden" and reading.roles.get("criterion"):
            paths = [path for path in paths if not describes(path)]
        texts[role] = paths[:SHOWN]

    changes: list[Taken] = []
    several = likewise_named(texts[second]) if texts[second] else []
    if second == "answer" and not several and texts[second]:
        several = judged_apart(texts[second], file.columns)
    elif reading.roles.get("score"):
        several = []

    if several and second == "answer":
        changes.append({"answer": tuple(several)})
    asked = reading.roles.get("question", ())
    for role, paths in texts.items():
        for path in paths:
            if role == "golden" and asked and joined(asked[0]) in _INSTRUCTIONS:
                changes.append({"question": (*asked, path)})

        changes += [{role: (path,)} for path in paths]

    classes = []
    if second == "answer" and file.of_a_run and not {"answer"} & {*reading.roles, *file.named}:
        for path, column in file.free.items():
            repeated = 1 < len(column.values) < column.filled and column.texts == column.filled
            few = len(column.values) <= SHOWN
            short = not any(" " in value.strip() for value in column.values)
            if repeated and few and short and not meanings(column.path):
                classes.append(path)

    for path in classes if len(classes) == 1 else ():  # of predictions, before any sentence
        if not texts["question"] and not reading.roles.get("score"):
            changes.insert(0, {"answer": (path,)})
        for question in texts["question"]:
            changes.insert(0, {"question": (question,), "answer": (path,)})

    for question, other in product(texts["question"], texts[second]):
        if question != other:
            changes.append({"question": (question,), second: (other,)})

    return [*map(reading.changed, changes)]


def _reading(
    file: Candidates,
    shapes: Roles,
    question: Taken,
    golden: Taken,
) -> Reading | None:
    chosen = {*question.get("question", ()), *file.named.get("question", ())}
    roles: Taken = {}
    named = {**file.named, "score": shapes.get("score", ())}  # the named ones are among them
    for role, paths in {**shapes, **question, **golden, **named}.items():
        kept = paths
        decided = role in question or role in golden or role in file.named
        if not decided:
            kept = tuple(path for path in paths if path not in chosen)

        if kept or role in golden:
            roles[role] = kept  # none: decided that no column has the role

    nothing_said = not {"question", "answer", "messages"} & {*roles}
    if file.door == "results" and nothing_said and "golden" not in file.named:
        roles.pop("golden", None)  # nothing is compared with it, and ids are called so too
    said = []
    for role in ("question", "golden", "answer"):
        said.append(roles.get(role, ()))

    flat = [*chain.from_iterable(said)]
    named_questions = {*file.named.get("question", ())}
    if chosen & {*shapes.get("choices", ())} - named_questions:
        return None

    chats = set()
    for path in roles.get("golden", ()):
        if file.columns[path].messages:
            chats.add(path)

    asked = {*roles.get("question", ())}
    if chats - asked - {*file.named.get("golden", ())}:
        return None  # a reply is golden for what comes before it

    if len(flat) != len({*flat}) + len(chats & asked):
        return None

    taken = {*chain.from_iterable(roles.values())}
    holders = {""}  # the row itself, and objects of which a part is used
    for path in taken:
        parts = path.split(".")
        for end in range(1, len(parts)):
            holders.add(".".join(parts[:end]))

    unused = []
    for path, column in file.columns.items():
        above = path.rpartition(".")[0]
        apart = path not in taken | holders and above in holders
        if column.filled and apart:
            unused.append(path)

    return Reading(roles=roles, unused=tuple(unused))
