"""Which columns may be the golden answers of a file, and which the agent's beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from karat.documents.agent_answers import BARE_ANSWER, BESIDE_ANSWER, answers_in_results
from karat.documents.candidates import (
    AGENTS_IN_RESULTS,
    SHOWN,
    Candidates,
    Roles,
    Taken,
    each,
    is_in_answer,
)
from karat.documents.cells import are_marked_choices
from karat.documents.columns import Column, outermost
from karat.documents.names import (
    Meaning,
    criterion_type,
    holds_scores,
    joined,
    last_part,
    meanings,
    names_documents,
    sure_roles,
    word_set,
    words_of,
)
from karat.documents.results import label_with_score
from karat.documents.sentences import describes, tells_how_to_judge
from karat.documents.shapes import right_letters

_SURE_GOLDEN = word_set(
    """query answer answers label labels sql solution summary output outputs finalanswer shortanswer
    answertext fullanswer program cypher translation groundtruthlabel targetoutput
    targetresponse answerspan answerpassage answerexcerpt answerquote answersnippet
    answersentence answeraliases answerindex answeridx answernumber answerletter labelindex
    labelidx"""
)
_UNWRITTEN = re.compile(
    r"\W*(?:(?:golden|expected|reference|correct|right|answer|response)\W+)*"
    r"(?:tbd|tba|tbc|todo|fixme|n/?a|placeholder|to be (?:written|added|filled|determined|defined|"
    r"done|confirmed)|fill (?:me )?in)\b.{0,20}",
    re.IGNORECASE,
)
"""What people write in place of a text that is yet to be written."""
_LABEL = 40  # characters of a class, on average
_UNSURE_ALONE = word_set("intent label labels category class code value result outcome")


def golden_answers(file: Candidates, shapes: Roles) -> list[Taken]:
    """What may be golden answer and agent's answer, the likeliest first."""
    named = file.named.get("golden")
    exact = [path for path in file.strong("golden") if file.holds_answer(path)]
    agents = [path for path in file.strong("answer") if file.holds_answer(path)]
    if not exact and not file.strong("question"):
        agents = [path for path in agents if joined(path) != "hypothesis"]  # of a researcher
        agents = [path for path in agents if not _forecasts(file.free[path])]
    weak = [path for path in file.called("golden", weak=True) if file.holds_answer(path)]
    # further spellings of the golden answer, if there is another one
    weak = [path for path in weak if joined(path) != "answeraliases"] or weak
    whole = []
    for path in file.strong("golden"):
        if path not in exact and "." not in path:
            whole.append(path)

    objects = file.door == "dataset" and any(file.free[path].objects for path in whole)
    if not exact and (objects or not any("." not in path for path in weak)):
        exact = file.inside("golden")
    if file.door == "results":
        exact = [path for path in exact if not is_in_answer(path) and not holds_scores(path)]
        weak = [path for path in weak if not any(path.startswith(f"{one}.") for one in agents)]
        labels = label_with_score(file.free)
        agents = agents or [path for path in labels if path not in exact]
        if not agents:
            agents = outermost(path for path in file.inside("answer") if is_in_answer(path))

    unnamed = not exact and not weak and not agents and named is None
    if unnamed and file.door == "dataset":
        exact = right_letters(file, shapes.get("choices", ()))
    exact = file.without_copies(exact)
    weak = [path for path in weak if path not in exact]
    if "answer" in file.named:
        agents = []
    if named is not None:
        exact = []
        weak = [path for path in weak if path not in named]

    if file.door == "results":
        return answers_in_results(file, exact, agents, weak, shapes)
    if named is not None:
        return [{}]
    choices = shapes.get("choices", ())
    if len(choices) == 1 and not exact and are_marked_choices(file.columns[choices[0]].example):
        return [{"golden": choices}]
    if "messages" in shapes and not exact and not agents:
        in_chats = _in_chats(file, weak, shapes)
        if in_chats:
            return in_chats

    options = _in_dataset(file, exact, agents, weak, shapes)
    for path in options[0].get("golden", ()) if options else ():
        column = file.columns[path]
        if column.is_constant and all(map(_UNWRITTEN.fullmatch, column.values)):
            options = [{}, *options]
            break
    if exact:
        return options
    sparse = each("golden", file.sparse("golden"))
    return sparse + options


def _in_chats(file: Candidates, weak: list[str], shapes: Roles) -> list[Taken]:
    """The options where chats end with the wanted reply; none if there are no such chats."""
    for path in shapes.get("messages", ()):
        chats = file.columns[path]
        if 2 * chats.replies <= chats.messages:
            continue  # they do not end with the assistant's reply
        # examples of one question and its wanted reply, and no log
        logged = file.is_of_a_run(shapes) or "started" in shapes or file.of_a_run
        examples = 10 * chats.single >= 9 * chats.messages
        doubted = bool(weak) or "criterion" in shapes
        if examples and not logged and not doubted:
            return [{"golden": (path,)}]
        return [{"golden": (path,)}, *each("golden", weak), {}]

    return []


def _forecasts(column: Column) -> bool:
    """Whether cells are measures, with decimals, as those of no question in words are."""
    return column.numbers == column.filled and any("." in value for value in column.values)


def _in_dataset(
    file: Candidates,
    exact: list[str],
    agents: list[str],
    weak: list[str],
    shapes: Roles,
) -> list[Taken]:
    criteria = shapes.get("criterion", ())
    bare = [path for path in weak if joined(path) in BARE_ANSWER]
    if len(exact) == 1:
        (golden,) = exact
        said = agents or [path for path in weak if joined(path) in AGENTS_IN_RESULTS]
        sure: Taken = {"golden": (golden,)}
        if said:
            sure["answer"] = tuple(said[:1])
        graded = any("score" in words_of(path) for path in criteria)
        several = [path for path in criteria if not _is_stated(file, path)]
        if several and not _UNSURE_ALONE.isdisjoint(words_of(last_part(golden))):
            retrieved = [path for path in several if names_documents(path)]
            return [
                sure,
                *_each_with_others(retrieved, criteria),
                {"criterion": (golden, *criteria)},
            ]

        may_describe = file.needs_golden and "criterion" not in file.named
        if may_describe and tells_how_to_judge(file.columns[golden]):
            return [{"criterion": (golden, *criteria)}, sure]
        attack = any(joined(path) == "goal" for path in file.free)
        if graded or (attack and joined(golden) == "target"):
            return [sure, {"answer": (golden,)}]
        if bare and not agents and not file.is_of_a_run(shapes):
            return [sure, {"golden": (bare[0],)}]
        return [sure]

    if len(exact) > 1:
        return _inside_one(file, exact, criteria)

    if agents:
        return _beside_agents(file, agents, weak, shapes)
    if len(bare) == 1:
        others = [path for path in weak if path not in bare]
        if all(joined(path) in BESIDE_ANSWER for path in others):
            weak = bare
    elif not bare and criteria:
        weak = [path for path in weak if joined(path) not in BESIDE_ANSWER]

    if len(weak) == 1:
        return _of_one_weak(file, weak[0], shapes)
    if weak:
        ordered = [*bare, *(path for path in weak if path not in bare)]
        return each("golden", ordered)

    return _by_criteria(file, criteria)


def _inside_one(file: Candidates, exact: list[str], criteria: Sequence[str]) -> list[Taken]:
    """Where several columns are golden answers by name, those inside one object perhaps: each is
    one, or a criterion by its type; so is the object, which comes before its parts.
    """
    typed, plain = [], []
    for path in exact:
        kind = criterion_type(f"expect.{last_part(path)}")
        if kind is not None and "." in path:  # such as the tools of what is right
            typed.append(path)
        else:
            plain.append(path)

    plain.sort(key=lambda path: file.columns[path].is_numeric)
    around = set()  # the outermost object that is a golden answer by its name
    for path in exact:
        top = path.partition(".")[0]
        if "." in path and Meaning("golden") in meanings(top):
            around.add(top)
        elif "." in path:
            around.add(path.rpartition(".")[0])

    whole = sorted(around)
    options: list[Taken] = []
    listed = [path for path in plain if file.columns[path].lists]
    if len(plain) - len(listed) == 1 and listed:  # one of the texts in a list must be there, too
        (text,) = {*plain} - {*listed}
        options.append({"golden": (text,), "criterion": (*listed, *criteria)})

    options += [{"criterion": (path, *criteria)} for path in typed]
    for above in whole:
        outside = tuple(path for path in criteria if not path.startswith(f"{above}."))
        answer: Taken = {"golden": (above,)}
        if criteria:  # those inside it are parts of the answer
            answer["criterion"] = outside
        options += [answer, {"criterion": (above, *outside)}]

    options += each("golden", plain)
    return options


def _beside_agents(
    file: Candidates,
    agents: list[str],
    weak: list[str],
    shapes: Roles,
) -> list[Taken]:
    """Where a column is the agent's answer by its name."""
    agent, criteria = agents[0], shapes.get("criterion", ())
    of_the_run = []
    for path in agents:
        if words_of(path)[:1] == ("raw",):
            of_the_run.append(path)

    options: list[Taken] = []
    for path in weak:
        options.append({"golden": (path,), "answer": (agent,)})

    for path in agents[1:]:  # `model_answer` beside a student's
        if not options and words_of(path)[0] == "model":
            options += [{"golden": (path,), "answer": (agent,)}, {"answer": (agent,)}]

    if of_the_run or file.of_a_run:
        options += [{"answer": (agent,)}]
    if options:
        return options
    others = _by_criteria(file, criteria) or [{"answer": (agent,)}]
    if not criteria:
        file.unsure = True
    if file.is_of_a_run(shapes):
        return others
    # a teacher's `model_answer`, or a set that was generated
    return [{"golden": (agent,)}, *others]


def _of_one_weak(file: Candidates, path: str, shapes: Roles) -> list[Taken]:
    """Where one column may be the golden answer, the agent's, or a class of the question."""
    doubted = file.is_of_a_run(shapes) or file.of_a_run
    if joined(path) in _SURE_GOLDEN and not doubted:
        return [{"golden": (path,)}]
    if joined(path) in BESIDE_ANSWER:
        others = []  # that may be classes as well, such as its urgency
        for other, column in file.free.items():
            if other == path or column.is_numeric or column.has_spaces:
                continue
            if len(column.values) > 1 and describes(other):
                others.append(other)

        return [{}, {"golden": (path,)}, *each("golden", others[:2])]

    return [{"golden": (path,)}, {"answer": (path,)}]


def _by_criteria(file: Candidates, criteria: Sequence[str]) -> list[Taken]:
    """Where nothing but what must hold is given."""
    if file.named.get("criterion"):
        return [{}]
    if not criteria:
        return [] if file.needs_golden else [{}]
    types = [criterion_type(path) for path in criteria]
    scored = any(kind is not None and not kind.startswith("not-") for kind in types)
    stated = tuple(path for path in criteria if _is_stated(file, path))
    of_objects = False  # such as numbers with their tolerances, and no calls
    texts = []  # that no name explains: what is right, or rules
    for path in criteria:
        if path in stated:
            continue
        column = file.columns[path]
        if isinstance(column.example, list):
            objects = [part for part in column.example if isinstance(part, Mapping)]
            of_objects = of_objects or bool(objects)

        in_most = 2 * column.filled > column.rows
        long = column.is_text and column.mean_length > _LABEL
        if in_most and long and not names_documents(path):
            texts.append(path)

    if texts and scored and not of_objects:
        either = _each_with_others(texts, criteria)
        return [{"criterion": tuple(criteria)}, *either, {"criterion": stated}]

    if (scored and not of_objects) or len(stated) == len(criteria):
        classes = []  # of which an answer is one, as `refuse` and `answer` are
        for path in criteria:
            column = file.columns[path]
            words = column.texts == column.filled and not column.has_spaces
            if words and column.repeats and criterion_type(path) == "judge":
                classes.append(path)

        if len(classes) == 1:
            others = tuple(path for path in criteria if path not in classes)
            return [{"golden": tuple(classes), "criterion": others}, {}]

        return [{}]

    if scored:  # what no name explains may be a rule, too
        return [{}, {"criterion": stated}]
    answers = []
    for path, kind in zip(criteria, types, strict=True):
        if kind is not None:
            continue  # what must not hold is no answer
        column = file.columns[path]
        listed = column.example
        if isinstance(listed, list) and any(isinstance(part, list) for part in listed):
            continue  # nor are spellings of several facts
        if column.texts + column.numbers + column.flags + column.lists > 0:
            answers.append(path)

    answers.sort(key=lambda path: file.columns[path].is_yes_or_no)
    options = _each_with_others(answers[: SHOWN - 2], criteria)
    return [*options, {}, {"criterion": ()}]


def _each_with_others(paths: Sequence[str], criteria: Sequence[str]) -> list[Taken]:
    """Each of the columns as golden answer, with the other criteria."""
    options: list[Taken] = []
    for path in paths:
        others = tuple(other for other in criteria if other != path)
        options.append({"golden": (path,), "criterion": others})

    return options


def add_together(file: Candidates, shapes: Roles, goldens: list[Taken]) -> None:
    """Offers columns as one golden answer, an object of them: those whose names begin alike with
    what is expected, else classes of the question. Only where the user has to choose anyway.
    """
    if file.door != "dataset" or "golden" in file.named:
        return
    expected: dict[str, list[str]] = {}  # by the first words of their names
    likewise: dict[str, list[str]] = {}  # all that are called so, whatever their names say
    classes = []
    for path, column in file.columns.items():
        if not column.filled or column.mean_length > _LABEL or "." in path:
            continue
        roles = sure_roles(path)
        words = words_of(path)
        is_right = bool({"golden", "criterion"} & roles)
        is_right = is_right or Meaning("golden") in file.meanings.get(path, ())
        if len(words) > 1 and criterion_type(path) is None:
            likewise.setdefault(words[0], []).append(path)
            if is_right:
                expected.setdefault(words[0], []).append(path)

        about = describes(path) or names_documents(path) or bool(roles)
        in_most = 2 * column.filled > column.rows
        few = column.repeats and column.texts == column.filled
        if path in file.free and few and in_most and not about:
            classes.append(path)

    for word, paths in expected.items():
        if len(paths) < 2:
            continue
        alike = likewise[word]
        together: Taken = {"golden": tuple(alike)}
        if "criterion" in shapes:
            rules = [path for path in shapes["criterion"] if path not in alike]
            together["criterion"] = tuple(rules)

        goldens.insert(1, together)
        return

    right = chain.from_iterable(golden.get("golden", ()) for golden in goldens)
    if expected or any(file.columns[path].mean_length > _LABEL for path in right):
        return
    if len(classes) > 1 and any(map(meanings, classes)):
        goldens.insert(1, {"golden": tuple(classes)})


def add_findings(file: Candidates, shapes: Roles, goldens: list[Taken]) -> None:
    """Offers lists of objects that no name explains as what must be found, together or each, where
    it is asked whether there is a golden answer: before what only describes a question.
    """
    if file.door != "dataset" or "golden" in file.named or not file.needs_golden:
        return
    without = [place for place, golden in enumerate(goldens) if not golden.get("golden")]
    if not without or shapes.get("criterion"):
        return
    found: list[Taken] = []
    for path, column in file.free.items():
        if not isinstance(column.example, list) or column.messages or file.meanings[path]:
            continue
        objects = [part for part in column.example if isinstance(part, Mapping)]
        keys = [*chain.from_iterable(objects)]
        if keys and "." not in path and not any(map(names_documents, keys)):
            found += [{"golden": (path,)}, {"criterion": (path,)}]

    goldens[without[0] : without[0]] = found[: SHOWN // 2]


def _is_stated(file: Candidates, path: str) -> bool:
    """Whether cells hold what must be true of an answer, and no answer, as their name says or their
    texts do.
    """
    if criterion_type(path) is not None or path.startswith("__expected"):
        return True
    if tells_how_to_judge(file.columns[path]):
        return True
    words = words_of(last_part(path))
    return bool(words) and words[-1] in ("source", "sources")
