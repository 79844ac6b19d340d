"""Where the rows of a JSON or YAML document are: a list, or lists inside objects, an object of rows
by id, columns as lists, one row.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import chain, product
from typing import Any

from karat.documents.columns import NO_NAME, are_messages, are_objects, are_texts, score_in
from karat.documents.names import (
    ADDED,
    Meaning,
    any_speaker_and_text,
    is_score_name,
    joined,
    meanings,
    roles_of,
    side_of,
    sure_roles,
    whose,
    with_role,
    word_set,
    words_of,
)

_MOST_CELLS = 10  # of a row that is a list of texts
_DEEPEST = 4  # levels of objects above a list of rows
_Document = Mapping[str, Any]
_Rows = list[dict[str, Any]]
_Tables = dict[str, list[Any]]
"""Lists of rows by their dotted names."""


def tables_in(document: Any) -> _Tables:
    """The lists of rows in a document, by their dotted names; "" is the document itself."""
    if isinstance(document, list):
        return {"": document}
    if not isinstance(document, Mapping):
        return {}
    rows = _chats_in_branches(document)
    rows = rows or _rows_by_id(document)
    rows = rows or _chats_by_id(document)
    rows = rows or _retrieval(document)
    rows = rows or _rows_under_names(document)
    rows = rows or _best_by_id(document)
    rows = rows or _answers_by_id(document)
    if rows:
        return {"": rows}

    found: _Tables = {}
    _collect(document, "", found, depth=1)
    if len(found) > 1 and _is_a_chat(found):
        return {"": [document]}
    chat = _chat_of_pairs(document)
    if chat is not None:
        return {"": [chat]}
    if found and not _is_one_row(document):
        return found
    columns = _rows_of_columns(document)
    if columns and _speaks(columns):
        return {"": columns}
    if _is_one_row(document):
        return {"": [document]}
    parts: list[Any] = []  # texts, also those in lists
    for value in document.values():
        parts += value if isinstance(value, list) and value else [value]

    if len(document) > 1 and are_texts(parts):
        named = ("id", "value")
        if _are_sentences(document):
            named = ("question", "answer")
        texts = [*document.values()]
        asked = texts == parts and _are_sentences(texts)
        if asked and 2 * sum(map(_asks, texts)) > len(texts):
            named = ("id", "question")
        return {"": [dict(zip(named, entry, strict=True)) for entry in document.items()]}

    talks = _talks_in(document)
    return talks or _alike_by_id(document)


def rows_of(item: Any) -> _Rows:
    """The rows in an item of a list: itself, a list of chat messages as one row, the objects in a
    list, or a sentence or a list of texts as cells without names. Empty: it is no row.
    """
    if isinstance(item, dict):
        return [item]
    if isinstance(item, str) and _are_sentences([item]):
        return [{f"{NO_NAME}1": item}]
    if not isinstance(item, list):
        return []
    said_by_names = []
    for part in item:
        said_by_names.append(any_speaker_and_text(part) is not None)

    if are_messages(item) or (len(item) > 1 and all(said_by_names)):
        return [{"messages": item}]
    if 1 < len(item) <= _MOST_CELLS and are_texts(item):
        return [{f"{NO_NAME}{place}": part for place, part in enumerate(item, start=1)}]
    return item if all(isinstance(part, dict) for part in item) else []


def best_of(tables: Mapping[str, Sequence[Any]], *, results: bool = False) -> list[str]:
    """The names of the tables whose columns speak most of questions and answers; of `results`,
    first of what an agent answered to questions, last of scores and ids.
    """
    scored = {}
    for name, rows in tables.items():
        judged = 0  # columns of scores and ids that the first row names
        first = next((row for row in rows if isinstance(row, Mapping)), {})
        for key in first if results else ():
            judged += is_score_name(key) or key.casefold().endswith("id")

        said = _speaks(rows)
        answered = False
        if results and said >= _ASKS:
            answered = any(Meaning("answer") in meanings(key) for key in first)

        scored[name] = answered, said, judged

    most = max(scored.values(), default=(False, 0, 0))
    return [name for name, score in scored.items() if score == most]


def together(tables: Mapping[str, Sequence[Any]], names: Sequence[str]) -> _Rows:
    """The rows of tables with the same columns as one, with what parts their names as condition:
    `{"small": [{…}], "large": [{…}]}`. Empty if they differ, or are parts of one dataset.

    Rows without questions need answers and the same ids in each table. Where the names are
    numbered and the ids are not, as in `{"q1": {"small": {…}, "large": {…}}, "q2": …}`, the names
    are the ids.
    """
    firsts = [set(tables[name][0]) for name in names]
    shared = set.intersection(*firsts)
    all_of_them = set.union(*firsts)
    if 2 * len(shared) <= len(all_of_them):
        return []

    parts = [re.split(r"\.(?!\d)", name) for name in names]  # `gpt-4.1` is one part
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        return []

    differ = []
    for at in range(len(parts[0])):
        if len({part[at] for part in parts}) > 1:
            differ.append(at)

    if len(differ) != 1:
        return []
    systems = [part[differ[0]] for part in parts]
    if {system.casefold() for system in systems} & SPLITS:
        return []
    first = tables[names[0]]
    said = _speaks(first)
    ids = _ids_of(first)
    same_ids = bool(ids)
    for name in names:
        common = ids & _ids_of(tables[name])
        same_ids = same_ids and 2 * len(common) >= len(ids)

    by_question = same_ids and said < _ASKS and _are_questions(systems, first)
    answered = same_ids and said > 1
    if said < _ASKS and not (answered or by_question):
        return []
    rows = []
    for name, system in zip(names, systems, strict=True):
        for row in tables[name]:
            if by_question:
                rows.append({**row, "condition": row["id"], "id": system})
            else:
                rows.append({"condition": system, **row})

    return rows


def with_questions(tables: Mapping[str, Sequence[Any]]) -> tuple[_Rows, str, str]:
    """The rows of a list of results, each with the entry that its id or name has in a list of
    questions, and the names of both lists. No rows: there are no two such lists.
    """
    asking = {}
    for name, rows in tables.items():
        if any(map(_answers, rows[0])) or _speaks(rows) < 2 * _ASKS:
            continue
        scores = filter(is_score_name, rows[0])
        if all(score_in(rows[0][key]) is None for key in scores):
            asking[name] = rows

    for (asked, questions), (answered, results) in product(asking.items(), tables.items()):
        own = {*results[0]} - {*questions[0]}
        said = any(is_score_name(key) or _answers(key) for key in own)
        if not said or answered in asking:
            continue

        columns = _joining(questions, results)
        if columns is None:
            continue

        left: set[str] = set()
        if with_role(results[0], "question"):  # they need no other text for it
            left = {*with_role(questions[0], "question")} - {*results[0]}
        key_of_question, key_of_result = columns
        by_name = {}
        for row in questions:
            kept = {key: row[key] for key in row if key not in left}
            by_name[str(row[key_of_question])] = kept

        rows = []
        for row in results:
            question = by_name[str(row[key_of_result])]
            others = {}
            for key in row:
                if key not in question or key != key_of_result:
                    others[key] = row[key]

            rows.append({**question, **others})

        return rows, answered, asked

    return [], "", ""


def _answers(key: str) -> bool:
    """Whether a column of results is called as an agent's answer is."""
    return Meaning("answer") in meanings(key) or joined(key) in _ANSWERS


_ANSWERS = word_set("answer response output completion reply result")


def _joining(questions: Sequence[Any], results: Sequence[Any]) -> tuple[str, str] | None:
    """The column of ids or names of questions, and that of results which has them in each row.
    None: there are none.
    """
    for key in questions[0]:
        if _NAMING.isdisjoint(words_of(key)):
            continue
        names = {str(row.get(key)) for row in questions}
        if len(names) < max(2, len(questions)):
            continue
        for column in results[0]:
            if column != key and _NAMING.isdisjoint(words_of(column)):
                continue
            found = {str(row.get(column)) for row in results}
            if len(found) > 1 and found <= names:
                return key, column

    return None


_NAMING = word_set("id ids qid uid name key idx index case question item test task sample")


def _ids_of(rows: Sequence[Any]) -> set[str]:
    found = set()
    for row in rows:
        name = next((key for key in row if key.casefold() in _IDS), None)
        if name is not None:
            found.add(str(row[name]))

    return found


_IDS = frozenset({"id", "qid", "question_id", "questionid", "case_id", "test_id", "sample_id"})


def _are_questions(names: Sequence[str], rows: Sequence[Any]) -> bool:
    """Whether names of tables are the ids of questions, and the ids in their rows are systems."""
    stem = names[0].rstrip("0123456789")
    if {"repetition", "condition", "model"} & roles_of(stem):
        return False  # `run1`, `run2`
    systems = []
    for row in rows:
        if "id" in row:
            systems.append(str(row["id"]))

    if len(systems) < len(rows) or len(systems) > len(names):
        return False
    return _are_numbered(names) and not _are_numbered(systems)


def _are_numbered(names: Collection[str]) -> bool:
    """Whether names are words with running numbers, as those of questions are: `q1`, `q2`."""
    stems = {name.rstrip("0123456789") for name in names}
    return 2 * len(stems) <= len(names) and not stems & {*names}


SPLITS = frozenset({"train", "training", "dev", "valid", "validation", "val", "test", "eval"})


_RUNS = frozenset({"results", "runs", "evaluations", "experiments", "reports"})
_FEW_PARTS = 4  # of what is no table
_FEW = 20  # settings or systems, by whose names an object has their means
_ASKS = 10  # a question counts more than all else


def _speaks(rows: Sequence[Any]) -> int:
    """How many of question, golden answer and answer the first row names."""
    first = next((row for row in rows if isinstance(row, Mapping)), {})
    surely = any(Meaning("question") in meanings(key) for key in first)
    roles = roles_of(*first) & {"question", "golden", "answer", "messages", "criterion"}
    for value in first.values():
        if isinstance(value, Mapping):
            roles |= roles_of(*value) & {"question", "golden", "answer"}

    if roles & {"question", "messages"}:
        return _ASKS + _ASKS * surely + len(roles)
    return len(roles)


def _collect(
    value: _Document,
    prefix: str,
    found: _Tables,
    depth: int,
) -> None:
    for key, below in value.items():
        if isinstance(below, list) and below and are_objects(below):
            inner: _Tables = {}
            is_run = len(below) == 1 and key.casefold() in _RUNS and not _speaks(below)
            if is_run and depth < _DEEPEST:  # its rows are inside
                _collect(below[0], f"{prefix}{key}.", inner, depth + 1)
            elif len(below) < _FEW_PARTS and not with_role(below[0], "question"):
                inner = results_inside(below, f"{prefix}{key}")

            found |= inner or {f"{prefix}{key}": below}
        elif isinstance(below, Mapping) and depth < _DEEPEST:
            rows = _rows_by_id(below) or _answers_by_id(below)
            entries = [*below.values()]
            shapes = [{*table[0]} - {"id"} for table in found.values()]
            alone = len(entries) == 1 and isinstance(entries[0], Mapping)
            if alone and (_is_one_row(entries[0]) or {*entries[0]} in shapes):
                rows = [{"id": name, **entry} for name, entry in below.items()]
            if rows:
                found[f"{prefix}{key}"] = rows
                continue

            lists: _Tables = {}
            _collect(below, f"{prefix}{key}.", lists, depth + 1)
            for name, rows in lists.items():
                if not _SETTINGS & {*words_of(key)} or _speaks(rows):
                    found[name] = rows


_SETTINGS = word_set("config configuration settings params parameters hyperparameters environment")
"""Names of objects whose lists say how something was run."""


def results_inside(parts: Sequence[_Document], name: str) -> _Tables:
    """The lists of rows with a question and an answer in the few parts of a message, say."""
    found: _Tables = {}
    if name.count(".") > 2 * _DEEPEST:
        return found
    for number, part in enumerate(parts):
        inner: _Tables = {}
        _collect(part, f"{name}.{number}.", inner, depth=1)
        for inside, rows in inner.items():
            if with_role(rows[0], "question") and with_role(rows[0], "answer"):
                found[inside] = rows

    return found


def _rows_by_id(document: _Document) -> _Rows:
    """The entries of an object whose keys are ids: objects that have keys in common."""
    entries = list(document.values())
    if len(entries) < 2 or not all(entries) or not are_objects(entries):
        return []
    shared = set(entries[0])
    for entry in entries[1:]:
        shared &= set(entry)

    if not any(isinstance(entries[0][key], (str, int, float)) for key in shared):
        return []
    for value in entries[0].values():
        several = isinstance(value, list) and len(value) > 1
        if several and are_objects(value) and not are_messages(value):
            return []

    some = entries[:5]
    lists = []
    for entry in some:
        for value in entry.values():
            if isinstance(value, list):
                lists.append(value)

    hold_chats = any(value and are_messages(value) for value in lists)
    if not hold_chats and not any(_speaks([entry]) for entry in some):
        return []
    said = any(isinstance(value, (str, list)) for entry in entries[:5] for value in entry.values())
    are_means = not said and not _are_numbered(document) and len(entries) < _FEW
    parallel = _parallel_lists(entries)
    if parallel and len(entries) < _FEW and not _are_numbered(document):
        return _rows_of_arms(document, parallel)
    asked = _are_sentences(document)
    rows = []
    for key, entry in document.items():
        name = "id" if "id" not in entry else "key"
        if are_means:
            name = "condition"
        elif asked and "question" not in entry:
            name = "question"

        rows.append({name: key, **entry})

    return rows


def _talks_in(document: _Document) -> _Tables:
    """The lists of an object that hold a list of texts for each conversation, by their names."""
    found: _Tables = {}
    for key, talks in document.items():
        if not _holds_turns(key) or not isinstance(talks, list):
            continue
        dialogues = []
        for talk in talks:
            if isinstance(talk, list) and len(talk) > 1 and are_texts(talk):
                dialogues.append({"dialogue": talk})

        if talks and len(dialogues) == len(talks):
            found[key] = dialogues

    return found


def _alike_by_id(document: _Document) -> _Tables:
    """The entries of an object whose keys are ids, whatever they hold: many objects with most keys
    in common, of which some are texts.
    """
    entries = [*document.values()]
    if len(entries) < _FEW or not are_objects(entries):
        return {}
    shared = set.intersection(*map(set, entries))
    texts = [key for key in shared if isinstance(entries[0][key], str)]
    if not texts or any(2 * len(shared) <= len(entry) for entry in entries):
        return {}
    name = "key" if "id" in shared else "id"
    return {"": [{name: key, **entry} for key, entry in document.items()]}


def _are_sentences(names: Collection[str]) -> bool:
    """Whether most names are sentences, as questions are, and no ids."""
    said = sum(len(name.split()) > 3 or _asks(name) for name in names)
    return 2 * said > len(names)


def _asks(text: str) -> bool:
    return text.strip().endswith(("?", "？", "؟"))


def _parallel_lists(entries: Sequence[_Document]) -> list[str]:
    """Keys of lists that are equally long in each entry, of which one holds answers or scores:
    `responses` and `scores`.
    """
    found = []
    for key in entries[0]:
        cells = [entry.get(key) for entry in entries]
        lists = []
        for cell in cells:
            if isinstance(cell, list) and len(cell) > 1:
                lists.append(cell)

        parts = [*chain.from_iterable(lists)]
        if len(lists) < len(cells):
            continue
        if all(isinstance(part, (str, int, float, type(None))) for part in parts):
            found.append(key)

    lengths = []
    for entry in entries:
        lengths.append({len(entry[key]) for key in found})

    said = any(Meaning("golden", weak=True) in meanings(key) for key in found)
    judged = any(map(is_score_name, found))
    parallel = all(len(of_entry) == 1 for of_entry in lengths)
    if not parallel or not said or not judged:
        return []

    return found


def _rows_of_arms(document: _Document, lists: Sequence[str]) -> _Rows:
    """The rows of an object whose keys are conditions with lists: a position is an item."""
    rows = []
    for key, entry in document.items():
        shared = {}
        for name, value in entry.items():
            if name not in lists:
                shared[name] = value

        cells = zip(*(entry[name] for name in lists), strict=True)
        for number, values in enumerate(cells, start=1):
            row = {"condition": key, "item": number}
            row |= zip(lists, values, strict=True)
            rows.append({**row, **shared})

    return rows


def _best_by_id(document: _Document) -> _Rows:
    """The first answer to each question of an object whose keys are ids, with what else a model
    thought likely: `{"q1": [{"text": …, "probability": 0.9}, …], "q2": …}`.
    """
    lists = [*document.values()]
    if len(lists) < 2 or not all(isinstance(value, list) and value for value in lists):
        return []
    for part in chain.from_iterable(lists):
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            return []
        if _LIKELY.isdisjoint(part):
            return []

    if any(map(are_messages, lists)):
        return []
    rows = []
    for key, (first, *others) in document.items():
        rows.append({"question_id": key, **first, "other_candidates": others})

    return rows


_UNLIKE = 20  # times as long as labels are texts beside them


def _answers_by_id(document: _Document) -> _Rows:
    """The questions of an object that holds a text of each system for each question, by its id or
    its text: `{"q1": {"gpt": "…", "claude": "…"}}` or `{"gpt": {"q1": "…", "q2": "…"}, …}`.
    """
    entries = [*document.values()]
    if len(entries) < 2 or not all(entries) or not are_objects(entries):
        return []
    names = [*entries[0]]
    if len(names) < 2:
        return []
    for entry in entries:
        if [*entry] != names or not are_texts(entry.values()):
            return []

    sizes = []
    for name in names:
        sizes.append(1 + sum(len(entry[name]) for entry in entries))

    roles = roles_of(*names, *document)
    if roles & {"question", "golden", "answer"}:
        return []  # columns
    if _name_questions([*document]) and max(sizes) > _UNLIKE * min(sizes):
        return [{"id": key, **entry} for key, entry in document.items()]
    by_system = _name_questions(names) and not _name_questions([*document])
    if by_system:
        document = {name: {key: document[key][name] for key in document} for name in names}
    if not _name_questions([*document]):
        return []
    asked = "id"
    if all(" " in key for key in document):
        asked = "question"
    return [{asked: key, "answers": answers} for key, answers in document.items()]


def _name_questions(names: Sequence[str]) -> bool:
    """Whether names are those of questions: numbered, or texts."""
    return _are_numbered(names) or all(name.count(" ") > 1 for name in names)


_LIKELY = frozenset({"probability", "prob", "logit", "start_logit", "logprob", "confidence"})


def _rows_under_names(document: _Document) -> _Rows:
    """The rows of a table as pandas and W&B write it: `{"columns": […], "data": [[…], […]]}`."""
    names, cells = document.get("columns"), document.get("data") or document.get("rows")
    if not isinstance(names, list) or not isinstance(cells, list):
        return []

    if not are_texts(names):
        return []

    for row in cells:
        if not isinstance(row, list) or len(row) != len(names):
            return []

    return [dict(zip(names, row, strict=True)) for row in cells]


def _chats_by_id(document: _Document) -> _Rows:
    """The entries of an object whose keys are ids: lists of chat messages, or objects with such a
    list of their turns; the object may be the only one inside another.
    """
    inside = [value for value in document.values() if isinstance(value, (Mapping, list))]
    if len(inside) == 1 and isinstance(inside[0], Mapping):
        return _chats_by_id(inside[0])
    chats = [*document.values()]
    if len(chats) < 2:
        return []
    if all(isinstance(chat, list) and are_messages(chat) for chat in chats):
        return [{"id": key, "messages": chat} for key, chat in document.items()]
    if all(isinstance(chat, list) for chat in chats):
        return _messages_by_id(document)
    if not are_objects(chats):
        return []
    shared = set.intersection(*(set(chat) for chat in chats))
    for key in sorted(shared):
        named = key == "log" or _holds_turns(key)
        if named and all(_are_turns(chat[key]) for chat in chats):
            return [{"id": name, **chat} for name, chat in document.items()]

    return []


def _messages_by_id(document: _Document) -> _Rows:
    """The messages in lists under ids, each with the id of its chat: objects with a time and a
    text of one name. Empty: the lists hold something else, or their names are no ids.
    """
    ids = sum(_LONG_NUMBER.search(name) is not None for name in document)
    if 2 * ids <= len(document):
        return []
    rows: _Rows = []
    for name, entries in document.items():
        for entry in entries:
            if not isinstance(entry, Mapping):
                return []
            rows.append({_ID_OF_A_CHAT: name, **entry})

    if not rows:
        return []

    words = set()
    for key in rows[0]:
        words |= {*words_of(key)}

    is_said = words & {"time", "timestamp", "date"} and words & {"message", "text", "content"}
    alike = all(len(row.keys() & rows[0].keys()) > 2 for row in rows)
    return rows if is_said and alike else []


_LONG_NUMBER = re.compile(r"\d{4}")  # in what is the id of a chat or of a person
_ID_OF_A_CHAT = next((f"{word}_id" for word in ADDED.before_id), "id")


def _chats_in_branches(document: _Document) -> _Rows:
    """The chats in all branches of an object, as of users with the chats of each by id: each with
    the path of its keys. Empty: no objects part them, or not all that is below them are chats.
    """
    branches = []
    for value in document.values():
        if isinstance(value, Mapping):
            branches.append(value)

    nested = [value for value in branches if _chat_at(value) is None]
    lists = []
    for value in document.values():
        if isinstance(value, list):
            lists.append(value)

    if len(branches) + len(lists) < 2 or not branches or not (nested or lists):
        return []
    found: _Rows = []
    for name, branch in document.items():
        chats = _chats_below(branch, name, depth=1)
        if isinstance(branch, Mapping) and not chats:
            return []
        found += chats

    return found


def _chats_below(value: object, name: str, depth: int) -> _Rows:
    chat = _chat_at(value)
    if chat is not None:
        key = "id"
        if key in chat:
            key = "key"

        return [{key: name, **chat}]

    found: _Rows = []
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for key, below in value.items():
            found += _chats_below(below, f"{name}.{key}", depth + 1)
    elif isinstance(value, list):
        for part in value:
            inside = _chat_at(part)
            if isinstance(part, Mapping) and inside is not None:
                found.append(inside)

    return found


def _chat_at(value: object) -> dict[str, Any] | None:
    """The chat that an object or a list of messages is; None: it is none."""
    if isinstance(value, list) and are_messages(value):
        return {"messages": value}
    if isinstance(value, Mapping):
        for key, held in value.items():
            if _holds_turns(key) and isinstance(held, list) and are_messages(held):
                return {**value}

        lists = []
        for key, held in value.items():
            if isinstance(held, list):
                lists.append(key)

        is_one = len(lists) == 1 < len(value) and are_messages(value[lists[0]])
        if is_one:
            return {**value, "messages": value[lists[0]]}

    return None


def _are_turns(value: object) -> bool:
    """Whether a list holds messages, pairs of them, or texts in objects."""
    if not isinstance(value, list) or not value:
        return False
    texts = all(isinstance(turn, Mapping) and "text" in turn for turn in value)
    return texts or are_messages(value) or all(map(_is_pair, value))


def _is_a_chat(tables: Mapping[str, list[Any]]) -> bool:
    """Whether the longest of an object's lists holds what a user and an assistant say in turn, and
    is called so, so that the object is one chat and what is said of it.
    """
    longest = max(tables, key=lambda name: len(tables[name]))
    turns = tables[longest]
    if "." in longest or not _holds_turns(longest):
        return False

    if not are_messages(turns):
        return False

    return {"user", "assistant"} <= {*map(whose, turns)}


def _chat_of_pairs(document: _Document) -> dict[str, Any] | None:
    """The object that is one chat, whose list has an object with what each side says for every
    turn; also as the only one under its id.
    """
    chat = dict(document)
    if len(document) == 1:
        ((name, inside),) = document.items()
        if isinstance(inside, Mapping):
            chat = {"id": name, **inside}

    for key, turns in chat.items():
        if not _holds_turns(key) or not isinstance(turns, list):
            continue

        if turns and all(map(_is_pair, turns)):
            return chat

    return None


def _holds_turns(name: str) -> bool:
    """Whether a list of this name holds messages or turns."""
    return "messages" in roles_of(name) or name.casefold() in ("history", "dialog", "dialogue")


def _is_pair(turn: object) -> bool:
    """Whether a turn is what the user says and the reply: under their names, or two texts."""
    if isinstance(turn, Mapping):
        return {*map(side_of, turn)} >= {"user", "assistant"}
    return isinstance(turn, list) and len(turn) == 2 and are_texts(turn)


def _retrieval(document: _Document) -> _Rows:
    """The questions of a retrieval set, each with the ids and the texts of its documents."""
    asked = document.get("queries") or document.get("questions")
    corpus = document.get("corpus")
    relevant = document.get("relevant_docs")
    parts = (asked, corpus, relevant)
    if not are_objects(parts):
        return []
    assert isinstance(asked, Mapping)
    assert isinstance(corpus, Mapping)
    assert isinstance(relevant, Mapping)
    rows = []
    for name, question in asked.items():
        ids = relevant.get(name) or ()
        texts = [corpus[document] for document in ids if document in corpus]
        row = {
            "id": name,
            "question": question,
            "relevant_docs": [*ids],
            "context": texts,
        }
        rows.append(row)

    return rows


def _rows_of_columns(document: _Document) -> _Rows:
    """The rows of columns that are lists of one length, or objects with the same keys."""
    lists = {}
    for key, value in document.items():
        if isinstance(value, list) and value:
            lists[key] = value

    objects = {}
    for key, value in document.items():
        if isinstance(value, Mapping):
            objects[key] = value

    lengths = {len(value) for value in lists.values()}
    if len(lengths) == 1:
        cells = zip(*lists.values(), strict=True)
        return [dict(zip(lists, row, strict=True)) for row in cells]

    keys = [tuple(value) for value in objects.values()]
    if len(keys) < 2 or len(set(keys)) > 1:
        return []
    numbered = all(key.isdecimal() for key in keys[0])
    if not numbered and len(objects) < len(document):
        return []
    rows = []
    for key in keys[0]:
        row = {name: value[key] for name, value in objects.items()}
        rows.append(row if numbered else {"id": key, **row})

    return rows


def _is_one_row(document: _Document) -> bool:
    """Whether an object is itself a row: it names a question in words, and something beside it."""
    asks = False
    answers = False
    for key, value in document.items():
        roles = sure_roles(key)
        is_text = isinstance(value, str)
        if "messages" in roles and is_text and len(document) > 1:
            return True

        weak = roles_of(key) & {"golden", "answer", "criterion"}
        if "question" in roles and is_text:
            asks = True

        if weak and not isinstance(value, Mapping):
            answers = True

    return asks and answers
