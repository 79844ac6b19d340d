"""What a table of results holds that is not read, or not as it may be meant."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from shlex import quote
from typing import Any

from karat.documents.answers import says_not_run
from karat.documents.columns import VERDICTS, Column, Columns, score_in, without_point
from karat.documents.doubts import Seen
from karat.documents.names import (
    is_score_name,
    lower_is_better,
    side_of,
    tells_of_answers,
    with_role,
    words_of,
)
from karat.documents.results import compares, like_scores, may_be_scores, only_counts
from karat.errors import BadOption
from karat.formats import brief, plural, some_of
from karat_imports.importers._table_trials import Trials

_MOST_NAMED = 12  # columns in a note
_FEW_WORDS = 6  # of which a verdict is one
MOST_WORDS = 12  # that are asked about


def judges_in_words(column: Column) -> bool:
    """Whether cells hold few different words, which have no value."""
    few = 1 < len(column.values) <= _FEW_WORDS and not min(column.values).startswith("[")
    return (column.texts > 0 or column.is_few_verdicts) and few and not column.is_scored


def may_judge(column: Column) -> bool:
    """Whether cells hold few words, some of which are verdicts."""
    if not column.texts or not 1 < len(column.values) <= MOST_WORDS or column.is_scored:
        return False
    return any(value.strip().casefold() in VERDICTS for value in column.values)


def not_read(columns: Columns, used: Collection[str], answer: str | None) -> Iterator[str]:
    """What a file seems to hold that is not read, or not as it may be meant."""
    in_words = set()
    judged = any(map(is_score_name, used))
    for path, column in columns.items():
        words = sorted(column.values)
        names_verdict = is_score_name(path) or (not judged and words_of(path) == ("label",))
        judges = judges_in_words(column) and names_verdict
        if path not in used and is_score_name(path) and only_counts(column):
            option = f"--map {quote(f'score.{path}={path}')}"
            yield f"'{path}' holds counts: no score; if it is one, {option}"

        if path not in used and compares([path]) and column.texts:
            in_words.add(path)
            yield f"not taken, as it compares the answers of a row: '{path}' ({some_of(words)})"
        elif path not in used and (judges or may_judge(column)):
            in_words.add(path)
            option = f"--map {quote(f'score.{path}={path}')} {worth(column)}"
            yield f"not taken, as it judges in words: '{path}' ({some_of(words)}); if so: {option}"

    answers = columns.get(answer or "")
    if answers is not None and 2 * answers.lists > answers.filled:
        yield f"'{answer}' holds lists: each list is one answer"
    alone = "each is taken as a question of its own"
    conversations = with_role(columns, "conversation")
    for path in conversations:
        column = columns[path]
        if path not in used and 1 < len(column.values) < column.filled:
            yield f"rows of one '{path}' may be turns of one conversation: {alone}"

    if not conversations and {*map(side_of, used)} >= {"user", "assistant"}:
        yield f"rows may be turns of one conversation: {alone}"
    holders = {without_point(path).rpartition(".")[0] for path in used}  # "": the row itself
    whole = {*used, *in_words}  # with all objects around them
    for path in [*whole]:
        parts = path.split(".")
        for end in range(1, len(parts)):
            whole.add(".".join(parts[:end]))

    left = _left(columns, holders, whole)
    if left:
        if len(left) > _MOST_NAMED:  # those that may have a role first, of which none is hidden
            left.sort(key=lambda path: not tells_of_answers(path))
        telling = sum(map(tells_of_answers, left))
        yield f"not used: {some_of(left, most=max(_MOST_NAMED, telling))}"

    scored = [path for path in used if path in columns]
    judging = like_scores(columns, left, scored)
    if judging:
        maps = mapping({f"score.{path}": path for path in judging})
        yield f"may be scores too, by their values: {maps}"


def _left(columns: Columns, holders: Collection[str], whole: Collection[str]) -> list[str]:
    """The columns of the row, or of objects of which a part is used, that are not used."""
    left = []
    for path, column in columns.items():
        above = without_point(path).rpartition(".")[0]
        if column.filled and path not in whole and above in {*holders, ""}:
            left.append(path)

    return left


def check_read_in_one_way(
    seen: Seen,
    used: Collection[str],
    chosen: Mapping[str, str],
    trials: Trials,
    *,
    mapped: Collection[str],
) -> None:
    """Raises BadOption with all readings if further columns may be scores, by their values, or
    questions are asked again under other ids. `mapped`: what the user has decided; then all is.
    """
    if mapped:
        return
    columns = seen.columns
    reasons = []
    ways: list[list[str]] = []
    scores = {target: chosen[target] for target in chosen if target.startswith("score.")}
    free = _left(columns, ("",), used)
    judging = like_scores(columns, free, [path for path in used if path in columns])
    if not scores:
        judging = [*dict.fromkeys([*judging, *may_be_scores(columns, free)])]
    if judging:
        further = {f"score.{path}": path for path in judging}
        if scores:
            more = "scores too"
        else:
            more = "scores"

        scores = scores or {"answer": chosen["answer"]}
        reasons.append(f"{listed(judging)} may be {more}, by their values")
        both = mapping(scores | further)
        unsure = [path for path in judging if lower_is_better(path) is None]
        if trials.conditions and unsure:  # ranked by it, which is asked next
            both += f" --set {quote(f'higher_is_better={json.dumps(unsure)}')}"
        ways.append([both, mapping(scores)])
    elif not scores:
        for path in free:
            if is_score_name(path) and judges_in_words(columns[path]) and not compares([path]):
                reasons.append(f"'{path}' judges in words, some of which have no value")
                judged = f"{mapping({f'score.{path}': path})} {worth(columns[path])}"
                ways.append([judged, mapping({"answer": chosen["answer"]})])
                break

    question, name = chosen.get("question", ""), chosen.get("id", "")
    if question in columns and name in trials.ids and not trials.conditions:
        asked = [*filter(None, seen.texts(question))]
        again = len(asked) - len({*asked})
        if again and len({*seen.texts(name)}) == len(seen.rows):
            reasons.append(
                f"{plural(again, 'row repeats', 'rows repeat')} the question of an earlier row "
                f"under another '{name}': a question of its own, or a repetition"
            )
            ways.append([mapping({"id": name}), mapping({"id": question})])

    if not reasons:
        return
    lines = [f"\n  {' '.join(parts)}" for parts in product(*ways)]
    raise BadOption("--map", f"{'; '.join(reasons)}; say one:{''.join(lines)}")


def options_of(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Targets with their columns as options of the importer. Raises BadOption."""
    options: dict[str, Any] = {}
    for key, single in SEVERAL.items():
        found = [column for target, column in pairs if target == single]
        if len(found) > 1 or any("*" in column for column in found):
            options[key] = found
            pairs = [pair for pair in pairs if pair[0] != single]

    if len({target for target, _ in pairs}) < len(pairs):
        raise BadOption("--map", "names a target twice")
    options["map"] = dict(pairs)
    return options


SEVERAL = {"answers": "answer", "scored": "score", "conditions": "condition"}
"""Options that name several columns of a target: each of a system, or the parts of its name."""


def mapping(columns: Mapping[str, str]) -> str:
    """The options that name these columns. `columns`: target → column."""
    return map_options(columns.items())


def map_options(pairs: Iterable[tuple[str, str]]) -> str:
    """The same of pairs of a target and a column; a target may have several."""
    options = []
    for target, column in pairs:
        name = target.replace("=", ":")  # the first sign of equality ends it
        options.append(f"--map {quote(f'{name}={column}')}")

    return " ".join(options)


def worth(column: Column) -> str:
    """The option that says what the words of a column are worth, to be filled in."""
    pairs = []
    for value in sorted(column.values):
        worth = score_in(value)
        if worth is None:
            written = "?"
        else:
            written = brief(worth)

        if says_not_run(value):
            written = "null"
        pairs.append(f"{json.dumps(value, ensure_ascii=False)}: {written}")

    return f"--set {quote('words={' + ', '.join(pairs) + '}')}"


def listed(columns: Sequence[str], *, most: int = _MOST_NAMED) -> str:
    return some_of(columns, most=most) or "none"
