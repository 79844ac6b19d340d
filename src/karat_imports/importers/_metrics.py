"""What the scores of a table mean: which numbers say that there is none, which way they count, and
whether they are of single answers.

All is asked for where neither names nor values decide it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from shlex import quote

from karat.documents.candidates import FOUND_IN
from karat.documents.columns import Column, Columns
from karat.documents.doubts import Seen, attacked, marker_in, turned_round
from karat.documents.names import (
    is_measure,
    is_score_name,
    is_score_of_bad,
    is_success_only,
    joined,
    lower_is_better,
    sure_roles,
    word_set,
    words_of,
)
from karat.documents.results import compares
from karat.errors import BadOption
from karat.formats import brief, some_of

_SPREADS = word_set(
    """std stdev stddev sd stderr sem variance pvalue pearson spearman kendall krippendorff kappa"""
)
_OF_SPREADS = (("standard", "deviation"), ("standard", "error"), ("p", "value"))
_KINDS = word_set("label type category kind class pattern")
_MOST_SYSTEMS = 50  # that are compared in pairs


def not_of_answers(columns: Columns) -> str | None:
    """What the rows of a file without answers hold in place of the result of one: statistics over
    several, or which of two systems is better. None: their columns do not say so.
    """
    spreads = []
    for path, column in columns.items():
        if is_spread(path) and column.filled and not column.texts:
            spreads.append(f"'{path}'")

    if spreads:
        return f"means or statistics of several results ({some_of(spreads, most=3)})"
    measures = whole_runs(columns)
    if measures is not None:
        return measures
    of_people, kinds = [], []
    for path, column in columns.items():
        words = {*words_of(path)}
        if "human" in words and is_score_name(path) and column.is_scored:
            of_people.append(f"'{path}'")
        if "error" in words and words & _KINDS and column.texts:
            kinds.append(f"'{path}'")

    if of_people and kinds:
        return f"how well people did ({some_of(of_people)}) and kinds of errors ({some_of(kinds)})"
    for path, column in columns.items():
        if not compares([path]) or not 1 < len(column.values) <= _MOST_SYSTEMS:
            continue
        sides = []
        for other, beside in columns.items():
            if other != path and "." not in other and beside.values & column.values:
                sides.append(f"'{other}'")

        if len(sides) > 1:
            return f"which of two is better ('{path}', of {' and '.join(sides[:2])})"

    return None


def whole_runs(columns: Columns) -> str | None:
    """What rows hold that are all numbers of a whole run: its measures by name, the steps of a
    training, the means of a model, how often each class was taken for others. None: they do not.
    """
    texts = []
    numbers = []
    for path, column in columns.items():
        if column.texts and not column.numbers:
            texts.append(path)
        elif column.numbers > column.texts:
            numbers.append(path)

    if {*map(joined, columns)} & _OF_ROWS:
        return None
    several = len(numbers) > 1
    for path in numbers:
        words = {*words_of(path)}
        trained = any(_TRAINED & {*words_of(name)} for name in numbers)
        if words & _STEPS and several and not texts and trained:
            return f"how a training went, a step a row ('{path}')"

    for path in texts:
        column = columns[path]
        if not numbers or column.mean_length > _LONGEST_NAME:
            continue
        measured = []
        for name in column.values:
            if is_score_name(name) or is_measure([name]):
                measured.append(name)

        parts = path in (*FOUND_IN, "condition")  # of the file
        if parts:
            continue
        if words_of(path)[-1:] in _OF_MEASURES or len(measured) == len(column.values) > 1:
            return f"measures of a whole run, one a row ('{path}')"
        if not len(column.values) == column.filled > 1:
            continue
        crossed = [name for name in numbers if name in column.values]
        if len(texts) == 1 and len(crossed) == len(numbers) > 1:
            return "how often one class was taken for another"
        if {"model", "condition"} & sure_roles(path) or joined(path) in _OF_GROUPS:
            return f"means of several results, a row a '{path}'"

    return None


_OF_GROUPS = word_set(
    "topic category subject domain dataset benchmark task split language class checkpoint"
)
_STEPS = word_set("epoch epochs step steps iteration iter")
_TRAINED = word_set("loss lr gradnorm learningrate")
_OF_MEASURES = (("metric",), ("metrics",), ("measure",), ("metrik",), ("métrica",), ("kpi",))
_OF_ROWS = word_set("question query prompt input id answer response output")
_LONGEST_NAME = 40  # characters, on average


def is_spread(path: str) -> bool:
    """Whether a name is of how several results differ, or go together."""
    words = words_of(path)
    return bool(_SPREADS & {*words}) or words[-2:] in _OF_SPREADS


def no_scores(
    judged: Iterable[tuple[str, Column]], wanted: Collection[float] | None
) -> dict[str, Collection[float]]:
    """Metric → the numbers that mean that there is no score: those `wanted`, or those that are on
    no scale of the others. Raises BadOption for those that may be scores.
    """
    found: dict[str, Collection[float]] = {}
    unsure: dict[str, float] = {}
    for name, column in judged:
        marked = marker_in(column)
        if wanted is not None:
            found[name] = wanted
        elif marked is not None and marked[1]:
            found[name] = {*found.get(name, ()), marked[0]}
        elif marked is not None:
            unsure[column.path] = marked[0]

    if not unsure:
        return found
    known = {*unsure.values()}
    for numbers in found.values():
        known.update(numbers)

    shown = "; ".join(f"'{path}' {brief(number)}" for path, number in unsure.items())
    listed = ", ".join(map(brief, sorted(known)))
    raise BadOption(
        "--set no_score",
        f"some rows have a number below all others, which is a score or means that there is none "
        f"({shown}); say which:\n  --set {quote(f'no_score=[{listed}]')}\n  "
        f"--set {quote('no_score=[]')}",
    )


def doubted_directions(
    seen: Seen,
    judged: Sequence[tuple[str, Column]],
    lower: Collection[str],
    *,
    decided: Collection[str],
    rank: bool,
) -> list[str]:
    """What speaks against the directions of metrics, in sentences. Raises BadOption for those that
    are not certain if they `rank` conditions.

    `judged`: metrics with their columns. `lower`: those that are better when lower. `decided`:
    those whose direction the user has set.
    """
    by_name = {}
    higher = set()
    for name, column in judged:
        if name in lower and name not in decided:
            by_name[column.path] = name
        elif name not in decided:
            higher.add(name)

    attacks = [*attacked(seen, higher)]
    turned = turned_round(seen, by_name)
    if rank:
        vague = filter(is_success_only, higher if attacks else ())
        reasons = dict.fromkeys(vague, "it may be an attack's")
        reasons |= dict.fromkeys(turned, "a high one goes with high others")
        ask_directions(dict(judged), reasons, decided=decided)

    return [*turned.values(), *attacks]


def ask_directions(
    metrics: Columns, reasons: Mapping[str, str], *, decided: Collection[str]
) -> None:
    """Raises BadOption with all metrics that rank conditions and whose direction is not certain, by
    their names or for these reasons. `decided`: those whose direction the user has set.
    """
    unsure = []
    proposed: dict[str, list[str]] = {"higher": [], "lower": []}
    for name, column in metrics.items():
        lower = lower_is_better(name)
        of_object = column.path.endswith(".score")
        by_name = not is_score_of_bad(name) and (lower is not None or of_object)
        if name in decided or column.is_judgement or (by_name and name not in reasons):
            continue
        if name in reasons:
            reason = f": {reasons[name]}"
        else:
            reason = ""

        unsure.append(f"'{name}'{reason}")
        turned = bool(lower) == (name in reasons)
        proposed["higher" if turned else "lower"].append(name)

    if not unsure:
        return
    options = []
    for direction, names in proposed.items():
        if names:
            listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in names)
            options.append(f"--set {quote(f'{direction}_is_better=[{listed}]')}")

    raise BadOption(
        "--set",
        f"conditions are ranked by scores of which it is not certain whether more or less is "
        f"better ({', '.join(unsure)}): put each into its list, higher_is_better or "
        f"lower_is_better, such as\n  {' '.join(options)}",
    )
