"""The one question that a file leaves open, with complete readings to choose from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from karat.documents import cells
from karat.documents.columns import Column, Columns
from karat.documents.doubts import Seen, codes
from karat.documents.names import Role, names_documents, roles_of
from karat.documents.roles import Reading, Undecided
from karat.documents.sentences import holds_code
from karat.documents.understood import examples
from karat.errors import Fault
from karat.formats import plural, some_of
from karat.kinds.golden.other_files import graded_documents

OF_A_LOG = (
    "if an agent gave these answers, they are not what is right: `karat import csv FILE` reads "
    "answers in rows, `karat import chats FILE` a log"
)
ASKED: tuple[Role, ...] = ("question", "golden", "answer", "criterion")
_PLAIN = re.compile(r"[^\W\d][\w.-]*(?: [\w.-]+)*")
_NUMBERED_FILE = re.compile(r"(\D{1,40})\d{1,9}\.(csv|tsv|jsonl?|xlsx?|txt)")
_MOST_COLUMNS = 60
"""Names of columns in a question, one of which may be what is asked for."""
_OTHER_THAN_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def undecided_fault(
    undecided: Undecided,
    columns: Columns,
    notes: Iterable[str] = (),
    marks: Mapping[str, str] = {},
) -> Fault:
    """The one question that a file leaves open, with complete readings to choose from; `notes`:
    how its rows were found; `marks`: as for `setting_lines`.
    """
    lines = [f"{undecided.asked} is not certain"]
    if undecided.readings:
        lines[0] += "; write one of these into the experiment file, below `dataset`:"
    else:
        lines[0] += "; write it into the experiment file, below `dataset`:"

    for number, reading in enumerate(undecided.readings, start=1):
        first, *settings = setting_lines(reading, columns, marks)
        lines.append(f"  {number}) {first}")
        golden = reading.one("golden")
        if len(reading.roles.get("golden", ())) > 1:
            lines[-1] += "  # golden: one object of these columns, as JSON"
        elif golden is None and reading.roles.get("criterion"):
            lines[-1] += "  # judged by the criterion alone"
        elif golden is None:
            lines[-1] += "  # nothing to compare answers with"
        elif golden in reading.roles.get("question", ()):
            lines[-1] += "  # golden: the last reply"
        elif names_documents(golden):
            lines[-1] += "  # documents to retrieve: no answer is equal to their names"

        choices = reading.roles.get("choices", ())
        if golden is not None and choices:
            lines[-1] += f"  # with the choices in '{choices[0]}'"
            if len(choices) > 1:
                lines[-1] += f" to '{choices[-1]}'"

        lines += [f"     {setting}" for setting in settings]

    for path, column in columns.items():
        keys = graded_documents(column)
        if keys:
            lines.append(
                f"  '{path}' holds documents with their relevance ({', '.join(keys)}): they are "
                "for retrieval, and karat compares no answer with them"
            )

        if "." not in path and column.filled and holds_code(column):
            lines.append(f"  '{path}' holds conditions in code, which karat does not evaluate")

    empty = []
    for path, column in columns.items():
        roles = roles_of(path)
        if 2 * column.filled < column.rows and roles & {"question", "golden"}:
            empty.append(f"'{path}'")

    if empty and not undecided.readings:
        are = "is" if len(empty) == 1 else "are"
        lines.insert(1, f"  {' and '.join(empty[:4])} {are} empty in most rows")

    top = [column for path, column in columns.items() if "." not in path]
    numbers = sum(column.is_numeric for column in top if column.filled)
    if not undecided.readings and 2 * numbers > len(top):
        lines.append(
            f"  no column looks like a question: {numbers} of {len(top)} hold numbers, or yes and "
            f"no; if several make one together, name them as a list: question: […, …]"
        )

    names = [path for path in columns if "." not in path]
    listed = some_of(names, most=_MOST_COLUMNS) or "none"
    lines.append(f"  or name the columns: roles: {{question: …, golden: …}} (columns: {listed})")
    lines.append(
        "  (a role takes a column, a path inside one, several as [a, b], or null; further roles: "
        "criterion, context, choices, id)"
    )
    lines += examples(undecided, columns)
    lines += [f"  read: {note}" for note in notes]
    return Fault(place="dataset.roles", message="\n".join(lines))


def without_words(seen: Seen) -> Iterator[Fault]:
    """A fault if what is read as questions are names of files that differ in a number alone."""
    for said in codes(seen):
        (question, *_) = seen.all("question")
        named = [*map(_NUMBERED_FILE.fullmatch, question.values)]
        stems = {match.group(1, 2) if match else None for match in named}
        if len(stems) == 1 and None not in stems:
            message = (
                f"{said}. Give the file with the questions; if these are what is asked, write "
                f"`roles: {{question: {in_yaml(question.path)}}}` below `dataset`"
            )
            yield Fault(place="dataset.roles", message=message)


def setting_lines(reading: Reading, columns: Columns, marks: Mapping[str, str] = {}) -> list[str]:
    """A reading as lines of an experiment file: the roles that it decides, and what must be said of
    their cells, each with another possibility in a comment. `marks`: of golden answers, the column
    that says yes, or no, just where these are empty.
    """
    parts = []
    for role in ASKED:
        paths = reading.roles.get(role, ())
        if not paths and (role == "golden" or role in reading.roles):
            parts.append(f"{role}: null")
        elif len(paths) == 1:
            parts.append(f"{role}: {in_yaml(paths[0])}")
        elif paths:
            parts.append(f"{role}: [{', '.join(map(in_yaml, paths))}]")

    lines = [f"roles: {{{', '.join(parts)}}}"]
    golden = reading.roles.get("golden", ())
    lacking = ""
    if len(golden) > 1:
        if all(columns[path].filled < columns[path].rows for path in golden):
            lacking = "skip: unreadable  # where all of these columns are empty"
        golden = ()  # an object, which may lack a part

    if golden and columns[golden[0]].several and not cells.means_any(golden[0]):
        if columns[golden[0]].texts:  # one text in other rows: each is right alone
            lines.append("several: any  # or `all`, if each entry of a list must be there")
        else:
            lines.append("several: all  # or `any`, if one entry of the list is enough")

    others = reading.roles.get("distractor", ())
    if others and golden:
        lines.append(f"choices: left_out  # or without: '{others[0]}' are choices in the question")
    for path in [*reading.roles.get("question", ())[:1], *golden]:
        empty = columns[path].rows - columns[path].filled
        if empty:
            of = plural(columns[path].rows, "row")
            remark = f"'{path}' is empty in {empty} of {of}"
            if path in golden and path in marks:
                remark += f", as '{marks[path]}' says; or `skip: unreadable`"
                lines.append(f"empty: declines  # {remark}")
                continue
            if path in golden:
                remark += "; or `empty: declines`, if it is right to decline there"

            lines.append(f"skip: unreadable  # {remark}")

    if lacking and lines[-1][:4] != lacking[:4]:
        lines.append(lacking)
    return lines


def documents_in(columns: Columns) -> list[str]:
    """The paths of documents in lists of objects without a grade: `relevant[].path`."""
    found = []
    for path, column in columns.items():
        listed = column.example
        if not isinstance(listed, list) or column.messages or graded_documents(column):
            continue
        roles = roles_of(path)
        if isinstance(listed[0], Mapping) and not roles & {"context", "tools", "messages"}:
            for key in listed[0]:
                if names_documents(key):
                    found.append(f"{path}[].{key}")

    return found


def parts_in(golden: Column) -> str:
    """What to name instead of a list of objects, in words: a part of them."""
    listed = golden.example
    if not isinstance(listed, list) or not listed or not isinstance(listed[0], Mapping):
        return ""
    if cells.text_key(listed[0]) is not None:
        return ""
    paths = [f"{golden.path}[].{key}" for key in listed[0]]
    return (
        f", or name a part of its objects: `golden: {in_yaml(paths[0])}` (there are "
        f"{some_of(paths)}); or, "
        f"to judge by them as they are, `criterion: {golden.path}`"
    )


def in_yaml(name: str) -> str:
    """A column's name as a text in YAML: the line is written into experiment files."""
    if _PLAIN.fullmatch(name) and name.lower() not in _OTHER_THAN_TEXT:
        return name
    return msgspec.json.encode(name).decode()
