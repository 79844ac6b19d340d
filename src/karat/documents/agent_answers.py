"""Which columns of a file of results may be the agent's answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from karat.documents.candidates import AGENTS_IN_RESULTS, Candidates, Roles, Taken, each
from karat.documents.names import (
    DECIDED,
    Meaning,
    holds_scores,
    is_gold,
    joined,
    last_part,
    roles_of,
    word_set,
    words_of,
)
from karat.documents.results import (
    OF_JUDGES,
    belongs_to,
    ended_in_words,
    likewise_named,
    names_system,
    numbered_runs,
    repeats_scores,
    same_classes,
    systems_in,
)

_LONG_ANSWER = 60  # characters on average; labels are shorter
_LABEL_LENGTH = 20  # characters on average of a class
_OFTEN = 10  # rows of each class
_CLASSES = word_set("label labels class category")
BARE_ANSWER = frozenset({"answer", "answers", "finalanswer", "answertext", "fullanswer"})
BESIDE_ANSWER = word_set(
    """category class value result description intent verdict outcome topic concept title code
    content query translation"""
)
_ASKED_ALONE = word_set("intent label labels category class code result outcome")
_TWINS = word_set(
    """answer answers finalanswer answertext fullanswer output outputs result label labels
    groundtruthlabel solution sql query program translation"""
)
"""Names that are golden beside another column with the agent's answer."""
_SUMMED_UP = word_set("dialogue dialog article document passage")
_MADE = word_set("sql sqlquery querysql sqlstatement code program cypher translation summary")
"""Names of what agents make, in files of results."""
_ABOUT_QUESTIONS = word_set("category description topic concept title content query")
_IDS = {"questionid", "qid", "promptid", "queryid", "caseid", "taskid"}


def answers_in_results(
    file: Candidates,
    exact: list[str],
    agents: list[str],
    weak: list[str],
    shapes: Roles,
) -> list[Taken]:
    """What may be golden answer and agent's answer in a file of results, the likeliest first.

    `exact`, `weak`: columns whose names say golden answer, or may say it; `agents`: the agent's.
    """
    paired = _paired_parts(file)
    if paired and not {"golden", "answer"} & {*file.named}:
        return paired
    options = _of_pairs(file, agents)
    options = options or _compared(file, [*exact, *agents], weak)
    if options:
        return options
    answered = [*agents, *file.named.get("answer", ())]
    may_answer = []
    for path in weak:
        column = file.free[path]
        shared = any(column.values & file.columns[other].values for other in answered)
        judges = ended_in_words(column) and not shared
        beside = joined(path) in BESIDE_ANSWER - {"code"}
        judges = judges or repeats_scores(column.example, file.columns)
        if not judges and not beside:
            may_answer.append(path)

    weak = may_answer
    part_of_both = bool(exact and agents) and last_part(exact[0]) == last_part(agents[0])
    if not part_of_both and (not exact or "." in exact[0]):  # an object as golden answer
        exact = [path for path in file.strong("golden") if "." not in path] or exact[:1]
    goldens = each("golden", exact) or [{}]
    if "golden" in file.named:
        goldens = [{}]
    may_be_golden = not exact and "golden" not in file.named

    agents = [path for path in agents if not repeats_scores(file.free[path].example, file.columns)]
    if "answer" in file.named:
        if may_be_golden and len(weak) == 1:
            return [{"golden": (weak[0],)}]
        return goldens

    said = _without_models(file, _said(file, agents, weak, exact), shapes.get("model", ()))
    if said and may_be_golden and all(paths[0] not in weak for paths in said):
        with_twins = _with_twins(file, said, weak)
        if with_twins:
            return with_twins

    two = [paths[0] for paths in said if len(paths) == 1 and paths[0] in weak]
    if may_be_golden and len(said) == len(two) == 2:
        first, second = two
        if joined(first) not in BARE_ANSWER:
            first, second = second, first

        if joined(second) not in BARE_ANSWER:
            return [{"golden": (first,), "answer": (second,)}]

    decided = decisions(file)
    # several systems, or the answer by its very name
    exact_names = [
        paths for paths in said if len(paths) > 1 or joined(paths[0]) in AGENTS_IN_RESULTS
    ]
    judged_alone = bool(shapes.get("score")) and not said and not file.strong("question")
    if decided and not exact_names and (judged_alone or not shapes.get("score")):
        said = [*decided, *said]
        file.unsure = True

    if not said:
        said = [(path,) for path in weak if joined(path) in _MADE]
        # also texts about other things are called `summary`
        may_be_other = bool(said) and not file.strong("question")
        file.unsure = file.unsure or may_be_other

    if said:
        for golden in goldens:
            options += [{**golden, "answer": paths} for paths in said]

        return [*options, *goldens] if judged_alone and said == decided else options

    return _without_answer(file, goldens, exact, shapes)


def _without_models(
    file: Candidates, said: Sequence[tuple[str, ...]], models: Sequence[str]
) -> list[tuple[str, ...]]:
    """The answers without a column that has another name of each model: `model_label` beside
    `model_id`.
    """
    found = []
    for paths in said:
        named = False
        for model in models if len(paths) == 1 else ():
            alike = words_of(paths[0])[:1] == words_of(model)[:1] and paths[0] != model
            values, names = len(file.columns[paths[0]].values), len(file.columns[model].values)
            named = named or (alike and 1 < values <= 2 * names)

        if not named:
            found.append(paths)

    return found


def decisions(file: Candidates) -> list[tuple[str, ...]]:
    """The columns with what an agent chose, by their names; none in pairs to train models with."""
    found: list[tuple[str, ...]] = []
    for path in file.free if not file.holds_preferences else ():
        if joined(path) in DECIDED and not holds_scores(path):
            found.append((path,))

    return found


def with_all(file: Candidates, options: list[Taken], shapes: Roles) -> list[Taken]:
    """The options, and before them one with all columns of answers that are called alike, each of
    which is a condition, or a run of one.
    """
    if "answer" in file.named or not options or file.pairs:
        return options
    single = []
    for option in options:
        if len(option.get("answer", ())) == 1:
            single += [path for path in option["answer"] if path not in single]

    texts = []
    for path in file.free:
        if file.free[path].is_text or file.free[path].numbers:
            texts.append(path)

    numbered = []
    for path in texts:
        strong = set()
        for meaning in file.meanings[path]:
            if not meaning.weak:
                strong.add(meaning.role)

        if re.search(r"\d$", path) and not strong - {"answer"}:
            numbered.append(path)

    runs = [*numbered_runs(numbered)]
    alike = runs
    if single and not {*runs} & {*single}:
        alike = likewise_named(single)
        systems = {path: words_of(path) for path in alike}
        of_row = [path for path in shapes.get("score", ()) if belongs_to(path, systems) is None]
        if of_row and not alike:
            return options

        if of_row:  # it judges one of them
            together = {**options[0], "answer": tuple(alike)}
            return [*options, together]

    if not alike or not single:
        return options
    return [{**options[0], "answer": tuple(alike)}, *options]


def _compared(file: Candidates, known: Sequence[str], weak: Sequence[str]) -> list[Taken]:
    """Two columns, if none is known by its name, that another one says to be equal or not: as what
    is right and what was answered, both ways round unless a name tells. None where a column of
    texts is called an answer.
    """
    for path in weak:
        if joined(path) in BARE_ANSWER and file.free[path].mean_length > _LABEL_LENGTH:
            return []

    pairs = []
    for column in file.columns.values():
        if column.compares is not None:
            pairs.append(column.compares)

    named = {"golden", "answer"} & {*file.named}
    if known or named or not pairs:
        return []

    if not {*pairs[0]} <= {*file.free}:
        return []

    file.unsure = True
    first, second = pairs[0]
    options: list[Taken] = []
    for golden, answer in ((first, second), (second, first)):
        options.append({"golden": (golden,), "answer": (answer,)})

    decided = []
    for taken in options:
        if joined(taken["answer"][0]) in DECIDED:
            decided.append(taken)

    return decided or options


def _of_pairs(file: Candidates, agents: Sequence[str]) -> list[Taken]:
    """Each of several pairs such as `expected_path` and `actual_path`, then other answers, as far
    as they hold what the user has named.
    """
    options: list[Taken] = []
    if not file.pairs or {"golden", "answer"} <= {*file.named}:
        return options
    for golden, answer in file.pairs:
        pair: Taken = {"golden": (golden,), "answer": (answer,)}
        unnamed: Taken = {}
        fits = True
        for role, paths in pair.items():
            fits = fits and file.named.get(role, paths) == paths
            if role not in file.named:
                unnamed[role] = paths

        if fits:
            options.append(unnamed)

    paired = {answer for _, answer in file.pairs}
    if not {"golden", "answer"} & {*file.named}:
        for path in agents:
            if path not in paired:
                options.append({"answer": (path,)})

    return options


def _paired_parts(file: Candidates) -> list[Taken]:
    """Parts of one name in an object of what is right and in one of what the agent said."""
    objects = {}
    for role in ("golden", "answer"):
        found = []
        for path in file.strong(role):
            if file.free[path].objects:
                found.append(path)

        if len(found) != 1:
            return []
        objects[role] = found[0]

    pairs: list[Taken] = []
    for path in file.free:
        if path.startswith(f"{objects['golden']}.") and file.holds_answer(path):
            other = objects["answer"] + path.removeprefix(objects["golden"])
            if other in file.free and file.holds_answer(other):
                pairs.append({"golden": (path,), "answer": (other,)})

    return pairs


def _without_answer(
    file: Candidates,
    goldens: list[Taken],
    exact: list[str],
    shapes: Roles,
) -> list[Taken]:
    """Where no name is the agent's answer: scores are enough; else what there is, to ask."""
    of_others = {*chain.from_iterable(shapes.values())}
    if shapes.get("messages"):
        return goldens

    others = [path for path in file.free if path not in of_others]
    may_answer = roles_of(*others) & {"golden"}
    only_one = len(others) == 1 and shapes.get("id")
    if only_one and may_answer and file.holds_answer(others[0]):
        file.unsure = others[0] in exact or joined(others[0]) in _ASKED_ALONE
        return [{"answer": (others[0],)}]

    if shapes.get("score") or shapes.get("error"):
        return goldens
    file.unsure = True
    answers = []
    for path in (*exact, *file.called("golden", weak=True)):
        if (
            not is_gold(words_of(last_part(path)))
            and file.holds_answer(path)
            and joined(path) not in _ABOUT_QUESTIONS
        ):
            answers.append(path)

    labels = []
    for path in answers:
        if joined(path) in ("label", "labels"):
            labels.append(path)

    if len(labels) == 1 and len(answers) > 1:
        rest = [path for path in answers if path not in labels]
        return [{"golden": (labels[0],), "answer": (path,)} for path in rest]

    # an object that is the whole answer, as JSON
    wholes = []
    for path, column in file.free.items():
        words = words_of(path)
        of_agent = "." not in path and bool(words) and words[-1] in AGENTS_IN_RESULTS
        if of_agent and 2 * column.objects > column.filled:
            wholes.append(path)

    return each("answer", (*wholes, *answers))


def _with_twins(file: Candidates, said: list[tuple[str, ...]], weak: Sequence[str]) -> list[Taken]:
    """The answers with the golden ones beside them; empty: there are no golden ones."""
    names = _TWINS
    if any(joined(path) in _SUMMED_UP for path in file.free):
        names = _TWINS | {"summary"}
    may_be = [path for path in weak if joined(path) in names]
    options: list[Taken] = []
    for paths in said:
        # the only column that may be, or that shares values with the answer; a label may be
        # what somebody says of long answers
        answer = file.free[paths[0]]
        answered = {value.casefold() for value in answer.values}
        for path, column in file.free.items():
            if words_of(path)[:1] in (("extracted",), ("parsed",)):
                answered |= {value.casefold() for value in column.values}

        sharing, alone = [], []
        for path in may_be:
            shares = answered & {value.casefold() for value in file.free[path].values}
            is_label = joined(path) in ("label", "labels")
            if shares:
                sharing.append(path)
            if shares or not is_label or answer.mean_length < _LONG_ANSWER:
                alone.append(path)

        left = sharing if len(alone) > 1 else alone
        twin = left[0] if len(left) == 1 else None
        both: Taken = {"answer": paths}
        if twin is not None:
            both = {"golden": (twin,), "answer": paths}
        if twin is not None and len(said) == 1:
            if joined(paths[0]) == "actual":  # what is right, or what was done
                options.append({"golden": paths, "answer": (twin,)})

            if "raw" in words_of(last_part(paths[0])):  # it may be read from the raw answer
                options.append({"answer": (twin,)})

        options.append(both)

    return options if any("golden" in option for option in options) else []


def _are_labels(file: Candidates, paths: Sequence[str], others: Sequence[str]) -> bool:
    """Whether columns hold few classes by name and values, and no other column holds these."""
    for path in paths:
        column = file.free[path]
        named = _CLASSES & {*words_of(last_part(path))}
        repeated = _OFTEN * len(column.values) <= column.filled
        short = column.mean_length <= _LABEL_LENGTH
        shared = any(file.free[other].values & column.values for other in others)
        if not named or shared or not (repeated and short):
            return False

    return bool(paths)


def _said(
    file: Candidates,
    agents: Sequence[str],
    weak: Sequence[str],
    goldens: Sequence[str],
) -> list[tuple[str, ...]]:
    """What may be the agent's answer: several columns together if each is a system's."""
    candidates = []
    for path in file.free:
        right = Meaning("golden") in file.meanings[path]
        if file.holds_answer(path) and not holds_scores(path) and not right:
            candidates.append(path)

    systems = systems_in(file.columns, candidates)
    # `predicted_answer` is sure, and `suggested_answer` beside it is no other system's
    others = {path for path in agents if file.holds_answer(path)} - {*systems}
    if systems and (not others or any(names_system(path) for path in systems)):
        return [tuple(systems)]
    of_agent = []
    for path in agents:
        if not OF_JUDGES & {*words_of(last_part(path))}:
            of_agent.append(path)

    if len(of_agent) == 1 and words_of(of_agent[0])[:1] == ("raw",):
        alike = likewise_named([*dict.fromkeys([*of_agent, *candidates])])
        if alike:
            return [(path,) for path in alike]

    parsed = [path for path in of_agent if "raw" not in words_of(last_part(path))]
    named = [path for path in weak if joined(path) in AGENTS_IN_RESULTS]
    written = []
    for path in named:
        if file.free[path].mean_length > _LABEL_LENGTH:
            written.append(path)

    if written and not goldens and _are_labels(file, of_agent, weak):
        return [(path,) for path in written]  # somebody's classes of what was written
    if of_agent:
        return [(path,) for path in parsed or of_agent]
    said: list[tuple[str, ...]] = [(path,) for path in named]
    if not said:
        ends = {path: words_of(last_part(path)) for path in weak}
        said = [(path,) for path, words in ends.items() if words[-1] in AGENTS_IN_RESULTS]

    # rows have ids of questions, but no questions
    has_ids = any(joined(path) in _IDS for path in file.columns)
    joins = has_ids and not file.strong("question")
    given = []
    for path in file.free:
        if words_of(path)[-1:] == ("text",):  # `seed_text`
            given.append(path)

    if not said and (joins or (file.of_a_run and len(given) > 1)):
        said = [(path,) for path in file.free if joined(path) == "text"]
    if not said and len(goldens) == 1:
        classes = same_classes(
            {path: file.free[path] for path in (*candidates, *goldens)},
            goldens[0],
        )
        return [tuple(classes)] if classes else []

    return said
