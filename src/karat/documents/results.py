"""What files of results have beside questions and golden answers: columns of scores, ids that join
them to a dataset, and one column of answers a system.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from os.path import commonprefix

from karat.documents.candidates import AGENTS_IN_RESULTS
from karat.documents.columns import Column, Columns, Row, cell, number_in, score_in, without_point
from karat.documents.names import (
    ADDED,
    SAID,
    holds_scores,
    is_gold,
    is_measure,
    is_score_name,
    joined,
    last_part,
    meanings,
    names_persons,
    repeats,
    roles_of,
    sure_roles,
    with_role,
    word_set,
    words_of,
)
from karat.formats import plural, text_of

_JUDGED_BY_NAME = ("score", "metadata", "condition")  # roles beside which a word of judgement wins
_NOT_JUDGED = word_set("label labels class answer answers prediction predicted pred")
_ASIDE = word_set(
    """metadata meta info config usage params parameters settings context contexts sources retrieved
    documents"""
)
_MAY_BE_COUNTS = frozenset({"pass", "verified"})
_OF_ITEMS = word_set(
    """question query item sample case task example problem test message prompt record pair row
    entry image document instance"""
)
COUNTED = word_set(
    """passed pass matched match matches correct hit hits found grounded supported covered met
    succeeded solved"""
)
"""Words of what is counted, if whole numbers beyond 1 follow."""
_OF_SCORES = word_set("score scores scored rating ratings judged graded human")
_NUMBERS = word_set("index idx number no key case")
_FORMS = word_set(
    """raw parsed clean cleaned full final extracted original processed normalized normalised text
    texts short long first second initial last generated predicted actual expected user human
    expert customer teacher question start end type id ids length count time key index url source
    sources tokens score reason judge grader evaluator error status list wrong incorrect right"""
)
"""Words that tell forms of one answer, its parts or its judges apart, not the systems that gave it.
"""
OF_JUDGES = word_set("judge grader evaluator")
_COUNTED = word_set(
    """depth step steps turn turns calls rank k top year age position seed words chars
    characters difficulty probability prob confidence uncertain needs review avg average mean std
    stdev median min max threshold"""
)
_RATES = word_set("ratio rate")
_POINTS = word_set("points point marks mark")
_TOPS = (1, 5, 10, 100)
_FEW_CODES = 10
_FEW_OUTCOMES = 10
_OUTCOMES = word_set(
    """success successful succeeded failure failed fail pass passed error errors null timeout
    blocked refused refusal complied jailbroken bypassed correct incorrect wrong right fabricated
    fabrication hallucinated hallucination"""
)
_LONG = 20  # characters on average; labels, of which several systems give the same, are shorter
_GENERIC = word_set("model agent llm ai bot system assistant chatbot")
_SYSTEMS = word_set(
    """rag gpt chatgpt claude llama gemini mistral qwen deepseek baseline base naive finetuned
    tuned bard copilot perplexity bing palm falcon vicuna alpaca bloom cohere glm ernie kimi
    doubao nova titan whisper tesseract easyocr blip blip2 llava t5 bart roberta gemma phi mixtral
    grok sonnet opus haiku vanilla control treatment cot shot bm25 tfidf
    hybrid rerank lora sft dpo agentic google deepl"""
)
_VERSIONS = word_set("b k m o v x r mini nano small large max plus pro flash turbo instruct chat")
_CHANGE = (("before",), ("after",))
"""Whole names of columns with the answers of one system before and after it was changed."""
_BETTER = word_set("winner preferred preference better")
"""Words of a column that says which of several answers is the better one."""
_HOLDERS = word_set("systems models agents variants llms answers responses predictions outputs")
"""Objects that hold a text of each system under its name."""
_PREDICTED = word_set("pred preds prediction predictions predicted")
_AFTER = _PREDICTED | word_set(
    """answer answers output outputs response responses sql reply replies completion completions
    solution label labels translation summary"""
)
_BEFORE = _AFTER | {"generated"}
_SET = word_set("temp temperature prompt variant version model shot shots topk k")
"""First words of names that say how each of several answers was asked for."""
Names = Mapping[str, tuple[str, ...]]
"""Columns with the words that name the system of each."""
_Families = dict[tuple[str, str], dict[str, tuple[str, ...]]]
"""Columns of answers that are called alike, by what is alike in their names."""


def score_columns(columns: Columns) -> list[str]:
    """The columns that judge answers: by a word of judgement in their names or in that of the
    object around them, or by cells that hold nothing but *correct* and *incorrect*, say.
    """
    found = []
    for path, column in columns.items():
        parents = set()
        for parent in path.split(".")[:-1]:
            parents |= {*words_of(parent)}

        aside = parents & _ASIDE and not holds_scores(path)
        if not column.filled or aside or not column.is_scored:
            continue
        if _of_label(path, columns):
            continue
        words = {*words_of(last_part(path))}
        roles = [meaning.role for meaning in meanings(path)]
        named = is_score_name(path) and not words & (_NOT_JUDGED - {"answer"})
        if named and words <= _MAY_BE_COUNTS and not column.is_yes_or_no:
            # whole numbers, and not only 0 and 1, are the number of a pass, say
            named = not all(value.isdecimal() for value in column.values)

        by_name = not roles or roles[0] in _JUDGED_BY_NAME
        by_cells = column.is_yes_or_no or column.is_judgement
        judged = named and (by_name or by_cells)
        verdict = column.is_judgement and not sure_roles(path) and not words & _NOT_JUDGED
        compared = column.compares is not None and not words & _OF_QUESTIONS_TOO
        times = "metrics" in parents and not is_score_name(path) and _may_be_times(column)
        held = holds_scores(path) and not times
        if judged or verdict or compared or held:
            found.append(path)

    # an object `{score: 0.7, threshold: 0.5, success: true}` is one score
    kept = []
    for path in found:
        above = path.rpartition(".")[0]
        if path.endswith(".score") or f"{above}.score" not in found:
            kept.append(path)

    return kept


def _may_be_times(column: Column) -> bool:
    """Whether a number is beyond 100, as times in milliseconds are."""
    numbers = filter(None, map(number_in, column.values))
    return max(numbers, default=0.0) > _TOPS[-1]


def label_with_score(columns: Columns) -> list[str]:
    """The label of a classifier that says how sure it is of each, as `bert_label` is beside
    `bert_score`; empty: there is none, or several.
    """
    sure = [path for path in columns if _of_label(path, columns)]
    if len(sure) != 1:
        return []
    stem = sure[0].removesuffix("score")
    return [f"{stem}label"]


def _of_label(path: str, columns: Columns) -> bool:
    """Whether a column is how sure a classifier is of the label beside it: `bert_score` with
    `bert_label`. Where another column is the answer, both judge it.
    """
    stem = path.removesuffix("score")
    name = f"{stem}label"
    label = columns.get(name)
    if stem == path or stem[-1:] in ("", ".") or label is None:
        return False
    if OF_JUDGES & {*words_of(stem)} or "score" in sure_roles(name):
        return False
    for other in columns:
        said = "answer" in sure_roles(other) or joined(other) in AGENTS_IN_RESULTS
        if said and other not in (name, path):
            return False

    return label.texts > 0 and not label.is_scored


def lines_alone(columns: Columns) -> str | None:
    """What a text file is that has no columns; None: these are columns."""
    if [*columns] != ["transcript"]:
        return None
    text = columns["transcript"].example
    if not isinstance(text, str):
        return None
    return (
        f"holds {plural(len(text.splitlines()), 'line')} of text and no columns: give a table with "
        f"a row an answer, such as a CSV file with the columns id, question, golden and answer"
    )


def golden_alone(columns: Columns) -> str | None:
    """What a file is that has questions and golden answers, and nothing that an agent said or that
    judges it. None: it has more, or less.
    """
    asked = with_role(columns, "question")
    right = with_role(columns, "golden")
    answered = with_role(columns, "answer", "latency", "tokens", "error")
    if not asked or not right or answered or score_columns(columns):
        return None
    others = []
    for path, column in columns.items():
        text = column.is_text and column.mean_length > _LONG and not meanings(path)
        if text or {"golden", "answer"} & roles_of(path):
            others.append(path)

    if others != right[:1] or not columns[asked[0]].filled:
        return None
    return (
        f"holds questions ('{asked[0]}') and golden answers ('{right[0]}'), and no answers of an "
        f"agent by their names"
    )


def only_counts(column: Column) -> bool:
    """Whether a column such as `checks_passed` holds how many were right, and not of how many."""
    words = {*words_of(last_part(column.path))}
    if not words & COUNTED or words & _OF_SCORES:
        return False
    if not all(map(str.isdecimal, column.values)):
        return False
    return any(int(value) > 1 for value in column.values)


def ended_in_words(column: Column) -> bool:
    """Whether cells hold few different words, half of which say how something ended: `refused`,
    `partial_success`, `hedged_wrong`.
    """
    different = {value.strip().casefold() for value in column.values}
    if not column.texts or not 1 < len(different) <= _FEW_OUTCOMES:
        return False
    ended = 0
    for value in different:
        ended += not _OUTCOMES.isdisjoint(words_of(value))

    return 2 * ended >= len(different)


def like_scores(
    columns: Columns,
    paths: Iterable[str],
    used: Iterable[str],
) -> list[str]:
    """Those of these columns that hold values as recognized scores in `used` do, beside them:
    the same two words, or numbers on the same scale; or that have a usual name for points.
    """
    most = 0
    scales = set()
    for path in {*score_columns(columns)} & {*used}:
        most = max(most, columns[path].filled)
        scale = _scale(columns[path])
        if scale is not None:
            scales.add((path.rpartition(".")[0], scale))

    found = []
    for path in paths:
        words = words_of(last_part(path))
        column = columns[path]
        if not column.is_scored or len(column.values) < 2:
            continue
        if is_measure(words) or _COUNTED & {*words} or any(map(names_persons, words[-1:])):
            continue
        if words[:1] == ("has",) and 2 * column.filled < most:
            continue  # of some questions, and no answer
        if _RATES & {*words}:
            numbers = map(number_in, column.values)
            if all(number is None or number.is_integer() for number in numbers):
                continue
        known = sure_roles(path)
        points = _POINTS & {*words} and column.is_numeric
        beside = (path.rpartition(".")[0], _scale(column)) in scales
        if points or (beside and known <= {"score", "metadata"}):
            found.append(path)

    return found


def on_one_scale(columns: Columns, paths: Sequence[str]) -> bool:
    """Whether a few columns hold values on one usual scale, as those of several systems do."""
    scales = {_scale(columns[path]) for path in paths}
    return 1 < len(paths) <= _FEW_CODES and len(scales) == 1 and None not in scales


def may_be_scores(columns: Columns, paths: Iterable[str]) -> list[str]:
    """Those of these columns of a file without scores that may be some: yes and no, or whole
    numbers on a short scale, under a name that says nothing else.
    """
    found = []
    for path in paths:
        words = words_of(last_part(path))
        column = columns[path]
        if not words or not column.is_scored:
            continue
        if is_measure(words) and words != ("ok",):
            continue
        if (_COUNTED | _RATES) & {*words} or names_persons(words[-1]):
            continue
        if words[0] in _OF_QUESTIONS or {*words} & _OF_QUESTIONS_TOO:
            continue
        if sure_roles(path) - {"score"} and words != ("note",):  # a mark, in French
            continue
        whole = all(value.isdecimal() and int(value) <= _TOPS[2] for value in column.values)
        if column.is_yes_or_no or (column.repeats and whole):
            found.append(path)

    return found


_OF_QUESTIONS = word_set("has have needs need requires require contains contain use uses used in")
_OF_QUESTIONS_TOO = word_set(
    """answerable multi hop hops required cached truncated stream streaming available train
    enabled needed ground truth gold expected question query fold cluster group shots shot turns
    error errors fallback escalated retry valid parsing parsed exceeded limit complete done"""
)
"""Words of columns that say something of questions, or of how they were asked."""


def _scale(column: Column) -> str | int | None:
    """On what a column's values are: two words or signs, or the top of a scale from 0; None: on no
    usual scale.
    """
    if column.flags == column.filled and len(column.values) == 2:
        return " ".join(sorted(value.casefold() for value in column.values))
    numbers = []
    for number in map(number_in, column.values):
        if number is not None:
            numbers.append(number)

    if not numbers or min(numbers) < 0 or len(numbers) < len(column.values):
        return None
    return next((top for top in _TOPS if max(numbers) <= top), None)


def repeats_scores(text: object, columns: Collection[str]) -> bool:
    """Whether a cell is JSON with scores that its row has in columns: it is a judge's output."""
    if not isinstance(text, str) or not text.strip().startswith("{"):
        return False
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return False

    alike = []
    for key in said:
        if key in columns and score_in(said[key]) is not None:
            alike.append(key)

    return len(alike) > 1 and any(map(is_score_name, alike))


def in_words(rows: Sequence[Row], codes: str, named: str) -> str | None:
    """Each value of a column with the one of another that always is beside it, where these are
    different few that repeat: the one column says the other in words. None: it does not.
    """
    pairs = Counter[tuple[str, str]]()
    for row in rows:
        code = text_of(cell(row, codes))
        word = text_of(cell(row, named))
        if code and word:
            pairs[code, word] += 1

    first = {code for code, _ in pairs}
    second = {word for _, word in pairs}
    alone = len(first) == len(second) == len(pairs) and not first & second
    few = 1 < len(pairs) <= _FEW_CODES
    if not alone or not few or min(pairs.values()) < 2:
        return None

    return ", ".join(f"{code} {word}" for code, word in sorted(pairs))


def joining_id(columns: Columns) -> str | None:
    """The column with the ids of the rows of a file without questions; None: there is none, or
    not one alone.

    Ids of questions count before others, and those that differ from row to row before those that
    repeat.
    """
    named = []
    for path, column in columns.items():
        roles = roles_of(path)
        words = words_of(path)
        if {*words[:-1]} & (_GENERIC | _SYSTEMS):
            continue  # of who answered
        identifies = bool({"id", *ADDED.identifying} & roles)
        if len(words) == 2:
            identifies = identifies or (words[0] in _OF_ITEMS and words[1] in _NUMBERS)
        identifies = identifies or words == ("item",)
        plain = 2 * column.filled > column.rows and not column.lists + column.objects
        if plain and identifies:
            named.append(path)

    # `sample_idx` beside `prompt_id` numbers the samples of a prompt
    numbers = []
    for path in named:
        if repeats(path) and words_of(path)[-1] in _NUMBERS:
            numbers.append(path)

    if len(numbers) < len(named):
        named = [path for path in named if path not in numbers]

    items = []
    for path in named:
        if words_of(path)[0] in (*_OF_ITEMS, "id", "qid", "uid", "uuid"):
            items.append(path)

    for some in (items, named):
        different = []
        for path in some:
            if len(columns[path].values) == columns[path].filled:
                different.append(path)

        if different or len(some) == 1:
            return (different or some)[0]

    return None


def systems_in(columns: Columns, paths: Iterable[str]) -> Names:
    """Columns of answers that differ by the name of a system alone → the words of that name.

    `gpt_answer` and `claude_answer`, `pred_small` and `pred_large`, `systems.a.output` and
    `systems.b.output`, or columns of text that are called `RAG` and `Baseline`. Empty: there are
    none. `paths`: columns that may hold answers.
    """
    families: _Families = {}
    paths = [*paths]
    for path in paths:
        words = words_of(path)
        roles = sure_roles(path)
        if is_gold(words) or roles - {"answer"} or not words:
            continue
        depth = str(without_point(path).count("."))
        for at, word in enumerate(words):
            last = at == len(words) - 1
            first = at == 0
            at_its_end = (last and word in _AFTER) or (first and word in _BEFORE)
            name = words[:at] + words[at + 1 :]
            if not name or not (at_its_end or word in _PREDICTED):
                continue
            if {*name} <= _FORMS | SAID or name[-1] in _FORMS - {"raw", "text"}:
                continue
            if first and columns[path].is_numeric and word not in _PREDICTED:
                continue
            kind = "first" if first else "last"
            families.setdefault((f"{kind} {depth}", word), {}).setdefault(path, name)

        parent, _, last_name = path.rpartition(".")
        own = words_of(last_name)
        if not columns[path].is_text:
            continue
        held = "".join(words_of(last_part(parent))) in _HOLDERS
        if held and len(last_name) > 1 and not {*own} <= _FORMS | SAID:
            families.setdefault((depth, parent), {})[path] = own

        if len(words) == 2 and repeats(words[0]) and words[1].isdecimal():
            families.setdefault((depth, words[0]), {})[path] = words

        unnumbered = [word for word in words if not word.isdecimal()]
        named = not _SYSTEMS.isdisjoint((words[0], *unnumbered[-1:])) or words in _CHANGE
        if named and words[-1] not in SAID:
            families.setdefault((depth, ""), {})[path] = words

    _add_measured(families, columns, paths)
    add_judged(families, columns, paths)
    best: Names = {}
    for (kind, head), found in sorted(
        families.items(),
        key=lambda one: (_depth(one[1]), not one[0][1]),
    ):
        family = _without_copies(columns, found)
        different = len({*family.values()}) == len(family) > 1
        predicted = kind.startswith("first") and head in _PREDICTED
        if predicted and not _answer_alike(columns, family):
            continue

        generic = all({*words} <= _GENERIC for words in family.values())
        deeper = bool(best) and _depth(family) > _depth(best)
        # `gpt_answer` and `bert_answer` before `gpt_flipped` and `gpt_perturbed`
        says_less = bool(best) and not head
        worse = generic or deeper or says_less
        if different and not worse and len(family) > len(best):
            best = family

    return best


def _add_measured(
    families: _Families,
    columns: Columns,
    paths: Iterable[str],
) -> None:
    """Adds the columns of text beside which others have their names and a measure: `gpt-4o` and
    `gpt-4o latency`; and to a family those with its word inside: `base_model_answer_v2`.
    """
    for path in paths:
        words = words_of(path)
        plain = columns[path].is_text and not {*words} <= _FORMS | SAID | _GENERIC
        if not plain or not words or roles_of(path):
            continue
        for other in columns:
            rest = words_of(other)[len(words) :]
            if words_of(other)[: len(words)] == words and rest and is_measure(rest):
                families.setdefault(("0", "measured"), {})[path] = words

        for word in words[1:-1]:
            family = families.get(("last 0", word), {})
            if len(family) > 2 and "." not in path:
                family[path] = tuple(part for part in words if part != word)


def add_judged(
    families: _Families,
    columns: Columns,
    paths: Iterable[str],
) -> None:
    """Adds the columns of text that others judge by name: `BLIP` and `correct_BLIP`."""
    scored = []
    for path, column in columns.items():
        words = words_of(path)
        if column.is_scored and (is_score_name(path) or words[:1] == ("correct",)):
            scored.append(words)

    judged = {}
    for path in paths:
        words = words_of(path)
        plain = columns[path].texts and not {*words} <= _FORMS | SAID | _GENERIC
        if not words or not plain or roles_of(path):
            continue
        for name in scored:
            if name[-len(words) :] == words != name:
                judged[path] = words

    if len(judged) > 1:
        families.setdefault(("0", "judged"), {}).update(judged)


def _without_copies(
    columns: Columns,
    family: Names,
) -> Names:
    """A family without a column of texts that are all in the others, such as the better one, but
    with each of numbered repetitions, which may agree.
    """
    kept = dict(family)
    if all(words[-1].isdecimal() for words in family.values()):
        return kept
    for path in reversed([*family]):
        others = set[str]()
        for other in kept:
            if other != path:
                others |= columns[other].values

        own = columns[path]
        copied = bool(own.values) and own.values <= others
        if copied and len(kept) > 2 and own.mean_length > _LONG:
            del kept[path]

    return kept


def without_shared(names: Names) -> Names:
    """Words of names without those at one end that all share; as they are, if none is left of
    one: `translation`, `google` and `translation`, `deepl` are `google` and `deepl`.
    """
    found = dict(names)
    for at in (0, -1):
        while len({words[at] for words in found.values() if words}) == 1:
            shorter = {}
            for path, words in found.items():
                shorter[path] = words[1:] if at == 0 else words[:-1]
                if all(map(str.isdecimal, shorter[path])):  # also where no word is left
                    return dict(names)

            found = shorter

    return found


def _answer_alike(columns: Columns, family: Names) -> bool:
    """Whether columns such as `predicted_small` are answers to one question, not its several parts:
    a name is that of a system, or each holds values that a golden column has.
    """
    if any({*words} & _SYSTEMS for words in family.values()):
        return True
    right = set()
    for path, column in columns.items():
        if "golden" in sure_roles(path):
            right |= column.values

    return bool(right) and all(columns[path].values & right for path in family)


def _depth(paths: Iterable[str]) -> int:
    return min(without_point(path).count(".") for path in paths)


def same_classes(columns: Columns, golden: str) -> list[str]:
    """The columns that hold the classes of a golden column and nothing else: they are answers."""
    classes = columns[golden].values
    if not 1 < len(classes) < columns[golden].filled / 2:
        return []
    found = []
    for path, column in columns.items():
        alike = column.values and column.values <= classes and column.is_text
        words = words_of(last_part(path))
        golden_too = "golden" in roles_of("".join(words[-1:]))
        twin = words_of(last_part(golden))
        if is_gold(twin) and twin[-1:] == words[-1:] != words:
            golden_too = False  # `expected_label` and `bert_label`
        if path != golden and alike and not is_gold(words) and not golden_too:
            found.append(path)

    return found


def judged_apart(paths: Sequence[str], columns: Columns) -> list[str]:
    """The columns whose names end or begin those of the same scores: `Clarity Writer` and `Clarity
    Editor` beside `Writer` and `Editor`. Empty: there are no two.
    """
    systems = scores_by_system({path: words_of(path) for path in paths}, columns, file="")
    judged = [path for path in paths if systems[path]]
    return judged if len(judged) > 1 else []


def likewise_named(paths: Sequence[str]) -> list[str]:
    """The columns whose names end with the same word as that of the first, and differ before it, or
    begin with the same word for answers: `baseline_review` and `clarified_review`.
    """
    longest: list[str] = []
    of_answers = _SET | (_AFTER - _PREDICTED)
    for at in (-1, 0):
        shared = words_of(paths[0])[at:][:1]
        if all(map(str.isdecimal, shared)) or (at == 0 and of_answers.isdisjoint(shared)):
            continue
        alike = []
        for path in paths:
            words = words_of(path)
            own = words[:-1] if at else words[1:]
            forms = {*own} <= _FORMS | SAID and own != ("raw",)
            if words[at:][:1] == shared and own and not forms:
                alike.append(path)

        if len(alike) > len(longest):
            longest = alike

    if len(longest) > 1:
        return longest
    return []


_RUN_OF_A_SYSTEM = re.compile(r"(?P<system>.+)[\s_#-]+(?P<run>\d+)")


def numbered_runs(paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Column → system and number of its run, if the columns are all runs of several systems:
    `gpt_0`, `gpt_1`, `llama_0`, `llama_1`. Else empty; numbers that do not count from 0 or 1 are
    versions.
    """
    found = {}
    runs: dict[str, list[int]] = {}
    for path in paths:
        match = _RUN_OF_A_SYSTEM.fullmatch(path)
        if match is None:
            return {}
        system, run = match.group("system", "run")
        found[path] = system, run
        runs.setdefault(system, []).append(int(run))

    several = 0
    first = min((min(numbers) for numbers in runs.values()), default=2)
    for numbers in runs.values():
        if sorted(numbers) != [*range(first, first + len(numbers))]:
            return {}
        several += len(numbers) > 1

    if first < 2 <= several:
        return found
    return {}


def pattern_of(paths: Sequence[str], columns: Collection[str]) -> str | None:
    """What matches these columns and no others, with `*` for what differs; None: nothing does."""
    first = commonprefix([*paths])  # noqa: RUF071 -- by character
    last = commonprefix([path[::-1] for path in paths])[::-1]  # noqa: RUF071 -- by character
    for pattern in (f"{first}*", f"*{last}", f"{first}*{last}", "*_[0-9]", "*_[0-9]*"):
        if pattern != "*" and columns_like([pattern], columns) == [*paths]:
            return pattern

    return None


def columns_like(patterns: Iterable[str], columns: Collection[str]) -> list[str]:
    """The columns with these names. A `*` in a name matches any characters; a name that matches no
    column is returned unchanged.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        matched = [pattern]
        if "*" in pattern and pattern not in columns:
            matched = fnmatch.filter(columns, pattern) or matched
        found |= dict.fromkeys(matched)

    return [*found]


def names_system(path: str) -> bool:
    """Whether a name has a word that is a system's, such as `rag` or `gpt`."""
    return bool(_SYSTEMS & {*words_of(path)})


def is_a_system(path: str) -> bool:
    """Whether a name is a system's and nothing else, such as `gpt-4` or `claude`."""
    words = words_of(last_part(path))
    if not words or words[0] not in _SYSTEMS:
        return False
    further = {word for word in words[1:] if not word.isdecimal()}
    return further <= _SYSTEMS | _VERSIONS


def scored_systems(columns: Columns) -> tuple[str, ...]:
    """The columns that are called as systems are and hold nothing but scores, if there are two and
    none is an answer.
    """
    found = []
    for path, column in columns.items():
        if is_a_system(path) and column.filled:
            if not column.is_scored:
                return ()
            found.append(path)

    return tuple(found) if len(found) > 1 else ()


def scores_by_system(
    systems: Names,
    columns: Columns,
    *,
    file: str,
) -> dict[str, dict[str, str]]:
    """Column of answers → metric → the column with its values for this system: the scores whose
    names begin or end with the system's, if two systems have that metric.

    `file`: if its name speaks of scores, numbers without a word of judgement are scores too.
    """
    unnamed = bool({*words_of(file)} & _OF_SCORES)
    judged = {*score_columns(columns)}
    found: dict[str, dict[str, str]] = {path: {} for path in systems}
    for column_path, column in columns.items():
        place = belongs_to(column_path, systems)
        if place is None or not column.is_scored:
            continue
        if _of_label(column_path, columns):
            continue
        path, rest = place
        metric = "_".join(rest) or "score"
        by_file = unnamed and not is_measure(rest)
        if by_file or column_path in judged or is_score_name(metric):
            found[path].setdefault(metric.removeprefix("scores_"), column_path)

    counts = Counter[str]()
    for metrics in found.values():
        counts.update([*metrics])

    for metrics in found.values():
        for metric in [*metrics]:
            if counts[metric] < 2:
                del metrics[metric]

    return found


def scores_by_pattern(
    answers: Mapping[str, str], patterns: Mapping[str, str], columns: Collection[str]
) -> dict[str, dict[str, str]]:
    """Column of answers, or system → metric → column: those that stand for the same under `*`.

    `answers`: column → the pattern that it was named by. `patterns`: of the columns of each metric.
    """
    found: dict[str, dict[str, str]] = {}
    system_of = {}
    for path, pattern in answers.items():
        system_of[_under_star(path, pattern)] = path
        found[path] = {}

    for metric, pattern in patterns.items():
        for path in columns_like([pattern], columns):
            system = _under_star(path, pattern)
            name = system_of.get(system) if answers else system
            if name is not None:
                found.setdefault(name, {})[metric] = path

    return found


def _under_star(path: str, pattern: str) -> str:
    """The part of a name that the `*` of a pattern matches."""
    before, _, after = pattern.partition("*")
    return path[len(before) : len(path) - len(after)]


def systems_of_scores(scores: Sequence[str]) -> dict[str, dict[str, str]]:
    """System → metric → column, if columns of scores without answers differ by the name of a system
    before or after the same metrics: `LLM Faithfulness` and `RAG Faithfulness`; or are called as
    systems are: `GPT-4`, `Claude`. Empty: they do not, or another column has the metric too.
    """
    if len(scores) > 1 and all(map(is_a_system, scores)):
        return {path: {"score": path} for path in scores}
    for last in (True, False):
        found: dict[str, dict[str, str]] = {}
        for path, metric in _shared_metrics(scores, last=last).items():
            if OF_JUDGES & {*words_of(path)}:
                return {}  # each judged the same
            written = r"[\W_]*".join(map(re.escape, metric))
            pattern = rf"(?P<system>.*?)[\W_]*(?P<metric>{written})"
            if not last:
                pattern = rf"(?P<metric>{written})[\W_]*(?P<system>.*)"
            system, name = last_part(path), ""
            match = re.fullmatch(pattern, system, re.IGNORECASE)
            if match is not None:
                system, name = match["system"], match["metric"]
            found.setdefault(system, {})[name] = path

        known = all((_SYSTEMS | {"llm"}) & {*words_of(system)} for system in found)
        counts = Counter(metric for metrics in found.values() for metric in metrics)
        shared = [metric for metric, number in counts.items() if number == len(found)]
        if known and len(found) > 1 and shared:
            return {name: {metric: found[name][metric] for metric in shared} for name in found}

    return {}


def _shared_metrics(scores: Sequence[str], *, last: bool) -> Names:
    """Column → the most words that another column ends with, too, after a name of its own; not
    `last`: that it begins with. Without columns that share none.
    """
    words = {path: words_of(last_part(path)) for path in scores}
    if not last:
        words = {path: of_path[::-1] for path, of_path in words.items()}
    found = {}
    for path, own in words.items():
        for length in range(len(own) - 1, 0, -1):
            metric = own[-length:]
            if length > 1 and len(metric[0]) == 1:
                continue  # the end of `8b`
            others = []
            for other in words:
                if other != path and words[other][-length:] == metric:
                    others.append(other)

            if any(words[other][:-length] for other in others):
                found[path] = metric if last else metric[::-1]
                break

    return found


def compares(columns: Iterable[str]) -> bool:
    """Whether a column says which of the answers beside it people or a judge prefer."""
    return any(_BETTER & {*words_of(column)} for column in columns)


def models_by_system(systems: Iterable[str], columns: Columns) -> dict[str, str]:
    """Column of answers → the column that names the model which gave them, where each has one:
    `model_a` and `model_b` beside `response_a` and `response_b`. Else empty.
    """
    names = systems_in(columns, systems)
    found = {}
    for column in columns:
        place = belongs_to(column, names)
        if place is None:
            continue
        answer, rest = place
        if "model" in roles_of("_".join(rest)):
            found[answer] = column

    if len(found) < len(names):
        return {}

    models = {columns[path].example for path in found.values()}
    if len(models) == 1:
        return {}

    return found


def belongs_to(
    column: str,
    systems: Names,
) -> tuple[str, tuple[str, ...]] | None:
    """The column of answers of the system whose object holds another column, or whose name it
    begins or ends with, and the rest of its words. None: no system's.
    """
    if column in systems:
        return None
    above, _, last = column.rpartition(".")
    named = above if above and last in ("score", "value") else column  # after its metric
    for path in systems:
        inside = f"{path.rpartition('.')[0]}."
        alone = sum(other.startswith(inside) for other in systems) == 1
        if alone and column.startswith(inside):
            metric, _, end = column.removeprefix(inside).rpartition(".")
            if not metric or end not in ("score", "value"):
                metric = column.removeprefix(inside)
            return path, words_of(metric)

    if named != column:
        named = last_part(above)
    words = words_of(named)
    for path in sorted(systems, key=lambda path: -len(systems[path])):
        short = tuple(word for word in systems[path] if word not in _GENERIC)
        for name in filter(None, (systems[path], short)):
            if words[: len(name)] == name:
                return path, words[len(name) :]
            if words[-len(name) :] == name:
                return path, words[: -len(name)]

    return None
