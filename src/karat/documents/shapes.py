"""Roles that the cells or groups of columns decide before any name: messages, choices, scores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, get_args

from karat.documents.candidates import Candidates, Taken
from karat.documents.cells import are_marked_choices, several_choices
from karat.documents.columns import number_in
from karat.documents.names import (
    ADDED,
    Known,
    Role,
    is_choice_stem,
    is_score_name,
    joined,
    roles_of,
    sure_roles,
    with_role,
    word_set,
    words_of,
)
from karat.documents.results import OF_JUDGES, joining_id, score_columns
from karat.documents.sentences import is_aside

_SINGLE: tuple[Role, ...] = (
    "id",
    "repetition",
    "condition",
    "model",
    "reason",
    "error",
    "stop_reason",
    "latency",
    "cost",
    "tokens",
    "started",
    "tools",
    "turn",
    *sorted({*ADDED.roles} - {*get_args(Known)}),
)


_PLAIN = frozenset({"id", "repetition", "condition", "model", "latency", "cost"})
"""Roles that no object has."""
_PARTS = word_set(
    "generation retrieval inference search embedding rerank reranking first ttft judge"
)
"""Words of a part of the time that an answer takes."""
_OF_CALLS = word_set("usd dollar dollars api llm token tokens call")
_DEAR = 1  # dollars that one answer costs, if nothing else speaks of calls
_OF_SYSTEMS = word_set("response responses output outputs completion generation reply model system")


def shapes_of(file: Candidates) -> Taken:
    """Roles that values or groups of columns decide: messages, choices, scores and so on."""
    found: Taken = {}
    messages = [path for path, column in file.free.items() if 2 * column.messages > column.rows]
    if messages:
        found["messages"] = tuple(messages)
    choices = _choices(file)
    if choices and "choices" not in file.named:
        found["choices"] = choices
    distractors = [path for path in file.strong("distractor") if path not in choices]
    if distractors:
        found["distractor"] = tuple(distractors)
    scores = [*file.named.get("score", ())]
    if file.door == "results":
        taken = {path for paths in file.named.values() for path in paths}
        scores += [path for path in score_columns(file.columns) if path not in taken]
    else:
        for path, column in file.free.items():
            if not column.is_numeric or not is_score_name(path):
                continue
            roles = [meaning.role for meaning in file.meanings[path]]
            only = not roles or roles[0] in ("score", "metadata", "condition")
            of_choices = bool(choices) and roles[:1] == ["golden"]  # the place of the right one
            if only or (column.is_yes_or_no and not of_choices):
                scores.append(path)

    if scores:
        found["score"] = tuple(scores)
    for role in _SINGLE:
        paths = [path for path in file.strong(role) if path not in choices]
        if file.door == "results" and role in ("latency", "cost", "tokens", "model"):
            paths = about_answers(file, role, paths)
        if role in _PLAIN:
            paths = [path for path in paths if not file.free[path].objects]
        if role in ("condition", "model") and file.door == "results":
            paths = paths or _settings(file, role)

        # what differs identifies more
        paths.sort(key=lambda path: role == "id" and file.free[path].is_constant)
        if paths and role not in file.named:
            found[role] = tuple(paths[:1])

    context = [path for path in file.strong("context") if path not in choices]
    if context:
        found["context"] = tuple(context)
    criteria = [path for path in file.strong("criterion") if path not in choices]
    marked = [path for path in criteria if joined(path) != "keywords"]
    criteria = marked or criteria  # of the question, where others say what is expected
    if criteria:
        found["criterion"] = tuple(criteria)
    if file.door == "results" and not found.get("id") and not file.strong("question"):
        joining = joining_id(file.free)
        if joining is not None and "id" not in file.named:
            found["id"] = (joining,)

    return found


def about_answers(file: Candidates, role: Role, paths: Sequence[str]) -> list[str]:
    """Those of the columns with a role that tell something of answers and not of their judges: the
    whole time before its parts, and no cost that a contract is about.
    """
    found = [path for path in paths if not OF_JUDGES & {*words_of(path)}]
    if role == "latency":
        found.sort(key=lambda path: bool(_PARTS & {*words_of(path)}))
    called = bool(file.strong("latency") or file.strong("tokens"))
    if role != "cost" or called:
        return found
    spent = []
    for path in found:
        costs = filter(None, map(number_in, file.free[path].values))
        of_calls = not _OF_CALLS.isdisjoint(words_of(path))
        if of_calls or max(costs, default=0) <= _DEAR:
            spent.append(path)

    return spent


def right_letters(file: Candidates, choices: Sequence[str]) -> list[str]:
    """The columns that tell by its letter which choice is right; `choices`: columns with one
    choice each.
    """
    if len(choices) < 2:
        return []
    return _letters(file, [chr(ord("a") + place) for place in range(len(choices))])


def _letters(file: Candidates, letters: Sequence[str]) -> list[str]:
    """The columns that hold nothing but these letters, and several of them."""
    found = []
    for path, column in file.columns.items():
        marks: Iterable[str] = column.values
        if file.door == "dataset":
            marks = chain.from_iterable(map(several_choices, marks))
        held = {mark.strip().casefold() for mark in marks}
        if len(held) > 1 and held <= {*letters}:
            found.append(path)

    return found


def _choices(file: Candidates) -> tuple[str, ...]:
    """A column with a list, or columns that differ by a running letter or number."""
    for path in file.strong("choices"):
        column = file.free[path]
        if column.lists + column.objects > 0:
            return (path,)
        if isinstance(column.example, str):
            text = column.example.strip()
            if text.startswith(("[", "{")) or any(mark in text for mark in "\n|;,"):
                return (path,)

    lists = {}
    for path, column in file.free.items():
        if isinstance(column.example, list):
            lists[path] = column.example

    indexed: tuple[str, ...] = ()
    if lists and file.door == "dataset":
        indexed = _indexed_lists(file, lists)
    if indexed:
        return indexed
    stems: dict[str, dict[str, str]] = {}  # stem → path → mark
    for path, column in file.columns.items():
        match = re.fullmatch(r"([^.]*?)[\s_-]*([0-9]|[A-Ea-e])[).]?", path)
        if match is None:
            continue
        stem = match[1].strip("([ ")
        of_some = file.door == "dataset" and stem != "" and is_choice_stem(stem)
        taken = any(path in paths for paths in file.named.values())
        if path in file.free or (of_some and column.filled and not taken):
            stems.setdefault(stem.casefold(), {})[path] = match[2].casefold()

    for stem, paths in stems.items():
        marks = [*paths.values()]
        running = [chr(ord(marks[0]) + place) for place in range(len(marks))]
        if len(paths) < 2 or marks != running or marks[0] not in "01a":
            continue
        # in any language, if a column of such letters tells which is right
        letters = _letters(file, marks)
        if file.door == "results" and _of_systems(file, stem, letters):
            continue
        if marks[0] == "a":
            has_key = bool(letters)
        else:
            has_key = _has_key(file, [*paths], letters)

        asked = {*file.strong("question"), *file.called("question", weak=True)}
        asked -= {*paths}
        may_have_key = marks[0] != "a" and not _OF_SYSTEMS & {*words_of(stem)}
        if not has_key and may_have_key and asked:
            from_0 = [*map(str, range(len(marks)))]
            places = _letters(file, from_0)
            has_key = _has_key(file, [*paths], places, "label")
        if not stem or is_choice_stem(stem) or has_key:
            return tuple(paths)

    return ()


def _has_key(
    file: Candidates,
    choices: Sequence[str],
    numbers: Sequence[str],
    called: str = "",
) -> bool:
    """Whether a column of questions that is right by its name, or `called` so, holds the texts of
    choices, or is among those with their `numbers`.
    """
    if file.door != "dataset":
        return False
    texts = set()
    for path in choices:
        column = file.columns[path]
        if not column.is_text:
            return False
        texts |= column.values

    for path in [*with_role(file.columns, "golden"), called]:
        if path in choices or path not in file.columns:
            continue
        values = file.columns[path].values
        if not values:
            continue
        if path in numbers or values <= texts:
            return True

    return False


def _indexed_lists(file: Candidates, lists: Mapping[str, list[Any]]) -> tuple[str, ...]:
    """The column whose lists are choices, each of which says whether it is right, or texts beside
    the index of the right one.
    """
    for path, listed in lists.items():
        if are_marked_choices(listed):
            return (path,)

    places: set[str] = set()
    for path in with_role(file.columns, "golden"):
        column = file.columns[path]
        whole = column.filled == column.rows == column.numbers
        if whole and all(map(str.isdecimal, column.values)):
            places |= column.values

    if len(places) < 2:
        return ()
    last = max(map(int, places))
    several = []
    for path, listed in lists.items():
        if "golden" in sure_roles(path) or not roles_of(path) & {"answer", "choices", "golden"}:
            continue
        texts = {part for part in listed if isinstance(part, str)}
        if 1 < len(texts) == len(listed) >= last:
            several.append(path)

    if len(several) == 1:
        return (several[0],)
    return ()


def _of_systems(file: Candidates, stem: str, letters: Sequence[str]) -> bool:
    """Whether columns such as `response_a` and `response_b` are answers of several systems;
    `letters`: columns that hold nothing but their marks, as one with the winner does.
    """
    words = {*words_of(stem)}
    if words & _OF_SYSTEMS:
        return True
    if file.strong("answer") or not all(map(is_score_name, letters)):
        return False
    return bool(words & {"answer", "answers"})


def _settings(file: Candidates, role: Role) -> list[str]:
    """The columns with the role inside an object beside the answer, such as `metadata.model`."""
    found = []
    for path in with_role(file.columns, role):
        column = file.columns[path]
        plain = column.filled and not column.objects + column.lists
        if is_aside(path) and plain and not OF_JUDGES & {*words_of(path)}:
            found.append(path)

    return found
