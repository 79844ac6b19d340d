"""What to ask about a table of results that can be read in several ways, or in none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from shlex import quote

from karat.documents.columns import (
    Columns,
    Row,
    cell,
    paths_in,
)
from karat.documents.names import (
    ADDED,
    Role,
    holds_scores,
    is_measure,
    meanings,
    repeats,
    roles_of,
    sure_roles,
    with_role,
    word_set,
    words_of,
)
from karat.documents.results import (
    may_be_scores,
    on_one_scale,
    only_counts,
    pattern_of,
    score_columns,
)
from karat.documents.roles import Reading, Undecided, assign
from karat.documents.understood import examples
from karat.errors import BadOption
from karat.formats import some_of, text_of
from karat_imports.importers._metrics import (
    is_spread,
    not_of_answers,
)
from karat_imports.importers._unread import (
    judges_in_words,
    listed,
    mapping,
    may_judge,
    worth,
)
from karat_imports.importers.chats import table

ROLES: Mapping[str, Role] = {
    "id": "id",
    "question": "question",
    "golden": "golden",
    "answer": "answer",
    "condition": "condition",
    "repetition": "repetition",
    "model": "model",
    "error": "error",
    "stop_reason": "stop_reason",
    "seconds": "latency",
    "dollars": "cost",
    "started": "started",
}
"""Target → the role of the column that it is taken from, if `map` does not name it."""

TOLD: tuple[Role, ...] = ("id", "question", "golden", "answer")
"""The roles that a reading tells; each is a target too."""

_WITHOUT_IDS = "holds scores without ids or questions"

_LONGEST_NAME = 60  # characters, on average

_MOST_CONDITIONS = 6  # different values of a column whose name says nothing

_SUMMED_UP = word_set(
    """average avg mean sum lr decay epsilon momentum dropout max min maximum minimum possible pos
    position rank order line page"""
)
"""Words of what sums up the numbers beside it, sets how a program ran, or is a place."""

_MANY = 10  # rows of each class
_MANY_ANSWERS = 3  # columns of answers that are named one by one
_SAID_OR_RIGHT = frozenset({"golden", "answer"})


def columns_found(reading: Reading, columns: Columns) -> dict[str, str]:
    """Target → column, as a reading of the columns has it."""
    found: dict[str, str] = {}
    for target, role in ROLES.items():
        paths = reading.roles.get(role, ())
        if paths:
            found[target] = paths[0]

    if "id" in found and repeats(found["id"]) and columns[found["id"]].is_constant:
        del found["id"]  # that of the run, not of a question
    scores = reading.roles.get("score", ())
    shares = [path for path in scores if not only_counts(columns[path])]
    if shares or "answer" in found:
        scores = tuple(shares)
    names = []  # `scores.tone` and `metrics.tone.score` are `tone`
    for path in scores:
        short = path.removeprefix("scores.").removeprefix("metrics.")
        names.append(short.removesuffix(".score"))

    for path, short in zip(scores, names, strict=True):
        if names.count(short) == 1:
            name = short
        else:
            name = path

        found[f"score.{name}"] = path
        for end in ("reason", "reasons", "explanation"):
            stem = path.removesuffix("_score").removesuffix(" score")
            beside = f"{path.removesuffix('.score')}.{end}"
            for written in (f"{stem}_{end}", f"{path}_{end}", f"{stem} {end}", beside):
                if written in columns:
                    found[f"reason.{name}"] = written

    return found


def is_result(targets: Iterable[str]) -> bool:
    return any(target in ("answer", "score") or target.startswith("score.") for target in targets)


def undecided(
    path: Path,
    columns: Columns,
    result: Undecided,
    named: Mapping[Role, tuple[str, ...]],
    mapped: Mapping[str, str],
) -> BadOption:
    """The readings to choose from, also with numbers that may be scores; without a reading, what
    the user has to say.
    """
    if result.readings and is_result(columns_found(result.readings[0], columns)):
        ways = _readings(path, result, columns, mapped)
        answers = [reading.one("answer") or "" for reading in result.readings]
        judging = "".join(_grades_in(columns, answers))
        return BadOption("--map", f"{ways}{judging}")

    numbers = {}
    for name in _unnamed_numbers(result, columns):
        numbers[f"score.{name}"] = name

    if numbers and "score" not in named and result.asked.endswith("is the answer"):
        judged = {**named, "score": tuple(numbers.values())}
        with_scores = assign(columns, door="results", file=path.name, named=judged)
        if isinstance(with_scores, Undecided) and with_scores.readings:
            text = _readings(path, with_scores, columns, {**mapped, **numbers})
            return BadOption("--map", f"if {some_of([*numbers.values()])} judge answers, {text}")

    return no_results(path, columns, result, mapped)


def _readings(path: Path, result: Undecided, columns: Columns, mapped: Mapping[str, str]) -> str:
    """A line for each reading, with all that the user has named: whoever follows it is not asked
    again.
    """
    lines = []
    for reading in result.readings:
        targets = dict(mapped)
        for role in TOLD:
            if reading.roles.get(role):
                targets[role] = reading.roles[role][0]

        for rule in reading.roles.get("criterion", ())[:1]:
            different = len(columns[rule].values)
            are_labels = 0 < _MANY * different <= columns[rule].filled
            if not are_labels:  # those of something else than the answer
                targets.setdefault("golden", rule)

        if "answer" not in targets:  # nothing but its scores makes it a result
            for target, column in columns_found(reading, columns).items():
                if target.startswith("score."):
                    targets.setdefault(target, column)

        further = reading.roles.get("answer", ())[1:]
        if len(further) >= _MANY_ANSWERS:
            pattern = pattern_of(reading.roles["answer"], columns)
            if pattern is not None:
                targets["answer"] = pattern
                further = ()

        pairs = [*targets.items()]
        pairs += [("answer", answer) for answer in further]
        options = [f"--map {quote(target)}={quote(column)}" for target, column in pairs]
        if options:
            lines.append(f"  {' '.join(options)}")

    first = f"the columns of {path} can be read in several ways; say one:"
    return "\n".join([first, *dict.fromkeys(lines), *examples(result, columns)])


def no_results(
    path: Path,
    columns: Columns,
    result: Reading | Undecided,
    known: Collection[str],
) -> BadOption:
    """Why nothing can be imported: what the file holds instead, or what has to be said. `known`:
    targets that have a column.
    """
    asked = isinstance(result, Reading) or result.asked.endswith("is the answer")
    judged = bool(score_columns(columns))
    identified = "id" in known or "question" in known
    is_of_answers = judged or with_role(columns, "answer")
    if asked or identified or not is_of_answers:
        unnamed = _unnamed_numbers(result, columns)
        numbers = [f"--map {quote(f'score.{name}={name}')}" for name in unnamed]
        none = "no column is an answer or a score by its name"
        say = f"{none}: say which column is the answer or a score"
        if numbers:
            say += f"; if these numbers judge the answers:\n  {' '.join(numbers)}"
        if on_one_scale(columns, unnamed):
            together = [f"--map {quote(f'score={name}')}" for name in unnamed]
            say += f"\n  and if each is the score of another system:\n  {' '.join(together)}"

        say += "".join(_grades_in(columns, paths_in(columns)))
        in_words = []
        for name, column in columns.items():
            if holds_scores(name) and judges_in_words(column):
                in_words.append(name)

        if in_words:
            say += (
                f"; these judge in words, which have no value: {listed(in_words)}. To count the "
                f"words of one of them, --map {quote(f'answer={in_words[0]}')}"
            )

        return BadOption("--map", say)

    say = "say which column is the sample's id or its question"
    if judged:
        return BadOption(
            "--map",
            f"{path} {_WITHOUT_IDS}. If they are means, one row a setting, "
            f"they cannot be compared by question: give the file with a row a question. Else {say}",
        )

    return BadOption("--map", say)


def _grades_in(columns: Columns, paths: Iterable[str]) -> Iterator[str]:
    """The end of a sentence for each of these columns that may hold grades in words."""
    for path in dict.fromkeys(paths):
        answers = "answer" in roles_of(path)
        if path in columns and not answers and may_judge(columns[path]):
            option = f"--map {quote(f'score.{path}={path}')} {worth(columns[path])}"
            yield f"; if '{path}' judges:\n  {option}"


def _unnamed_numbers(result: Reading | Undecided, columns: Columns) -> list[str]:
    """The columns that may be scores, though no word says so."""
    if isinstance(result, Reading):
        used = {*chain.from_iterable(result.roles.values())}
    else:
        used = {*filter(meanings, columns)}

    summed_up = _SUMMED_UP
    if any(map(is_spread, columns)):
        summed_up -= {"mean", "avg", "average"}
    found = []
    for name in paths_in(columns):
        words = words_of(name)
        if name in used or is_measure(words) or not summed_up.isdisjoint(words):
            continue
        if repeats(name) or is_spread(name):
            continue
        if columns[name].is_scored and not columns[name].is_constant:
            found.append(name)

    return found


def with_sheets(path: Path, error: BadOption) -> BadOption:
    """The same error; if the sheets are alike and hold no answers, also what they hold."""
    if "'*'" not in str(error) or "sheet" not in error.option:
        return error
    other = not_of_answers(table(path, part=None, sheet="*").seen_columns())
    if other is None:
        return error
    message = str(error).removeprefix(f"{error.option}: ")
    return BadOption(
        error.option,
        f"{message}. Rows say {other}: give the file with a row an answer",
    )


def by_names(message: str, rows: Sequence[Row], columns: Columns) -> str:
    """The end of a message about scores without ids: the options that read names as ids. Empty: the
    message is about something else, or no column may hold ids.
    """
    if _WITHOUT_IDS not in message:
        return ""
    return repeated_names(rows, columns) or different_names(rows, columns)


def repeated_names(rows: Sequence[Row], columns: Columns) -> str:
    """The end of a sentence with the options that read names which repeat as ids, once in each of
    a few conditions. Empty: there are no two such columns.
    """
    labels = []
    for path, column in columns.items():
        if column.texts == column.filled == len(rows) > len(column.values) > 1:
            labels.append(path)

    scores = score_columns(columns)
    further = may_be_scores(columns, [path for path in columns if path not in scores])
    for condition, name in product(labels, labels):
        conditions = len(columns[condition].values)
        names = len(columns[name].values)
        if conditions > _MOST_CONDITIONS or names < 2 * conditions or 10 * names > 9 * len(rows):
            continue
        if sure_roles(name) - {"id", "metadata", "cluster"} or roles_of(name) & _SAID_OR_RIGHT:
            continue
        pairs = set()
        for row in rows:
            pairs.add((text_of(cell(row, condition)), text_of(cell(row, name))))

        if len(pairs) < len(rows):
            continue
        lines = []
        for judged in dict.fromkeys([(*scores, *further), (*scores,)]):
            targets = {f"score.{path}": path for path in judged}
            lines.append(mapping({"id": name, "condition": condition, **targets}))

        first = f"; names that repeat may be ids, '{name}' once a '{condition}':"
        return "\n  ".join([first, *lines])

    return ""


def different_names(rows: Sequence[Row], columns: Columns) -> str:
    """The end of a sentence with the options that read as ids a column whose values all differ.
    Empty: there is no such column.
    """
    scores = score_columns(columns)
    targets = {f"score.{score}": score for score in scores}
    ways = []
    for path, column in columns.items():
        if path in scores or not column.texts or column.mean_length >= _LONGEST_NAME:
            continue
        if sure_roles(path) - {"id", "metadata", "cluster", *ADDED.identifying}:
            continue
        if is_measure({*words_of(path)} - {"id"}):
            continue
        if len(column.values) == column.filled == len(rows) > 1:
            ways.append(mapping({"id": path, **targets}))

    if not ways:
        return ""
    return "\n  ".join(["; each row has another name:", *ways])
