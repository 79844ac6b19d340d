"""What the values of columns say against the roles that the columns have by their names.

Each doubt is a function and its sentence: it is said where a file is read, and changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from shlex import quote
from statistics import correlation

import msgspec

from karat.documents.cells import options
from karat.documents.columns import (
    LOOKED_AT,
    VERDICTS,
    Column,
    Columns,
    are_messages,
    cell,
    number_in,
)
from karat.documents.names import (
    Meaning,
    Role,
    is_measure,
    is_score_name,
    is_success_only,
    last_part,
    lower_is_better,
    meanings,
    word_set,
    words_of,
)
from karat.documents.sentences import INSTRUCTION
from karat.documents.unfolding import is_summary
from karat.formats import brief, excerpt, plural, some_of, text_of

_FEWEST = 5  # rows from which values say something
_MOST, _MANY, _TENTH, _FEW = 0.9, 0.5, 0.1, 0.03  # shares of rows
_BELOW = {-1: 100, -99: 100, -999: 100, 99: 10, 999: 100}
"""Numbers that may mean that there is no score → the most that the others are then."""
_RISES = 0.3  # from which correlation two scores rise together
_SHORT = 40  # characters of a label
_SHOWN = 50  # characters of a value in a sentence
_ROWS_OF_MEANS = 40
_FEW_ALIKE = 20  # rows of which few scores are all the same
_CUT_FROM = 50  # characters of texts that are cut at one length

_ENDS = ".!?)]}\"'`。！？»”"  # of a sentence, or of code
_CODE = re.compile(  # an id, a constant, a link or the name of a file
    r"(?=.*[_/.:#-])[\w./:#?=&%+~-]+|[A-Z]{2,}[A-Z_0-9]*|https?://\S+"
    r"|[^\n]{1,80}\.(?i:pdf|md|txt|docx?|html?|json|xlsx?|csv|py|png|jpe?g)"
)
_ERROR_WORD = "(?:error|erreur|errore?|erro|fehler|fout|ошибка|lỗi|hata|błąd|오류|エラー|错误|錯誤)"
_ERROR = re.compile(
    rf"[\W_]*(?:(?:an |unknown |api )?{_ERROR_WORD}(?:\W*[:：\])]|\W*$| (?:occurred|processing|"
    r"generating|during|calling|code|from|in|while|connecting|getting|fetching|contacting|"
    r"communicating|retrieving|loading|reading)\b)|\w+Error\W*(?:$|:)|exception\W*:|"
    r"(?:(?:request|hard) )?timed? ?out\b|traceback\b|http(?: error)? \d{3}|\w+_UNAVAILABLE|"
    r"failed to (?:generate|parse|call|connect|get|load|fetch|answer|respond)\b)"
    r"|.{0,40}(?:\berror code: ?\d{3}\b|['\"]error['\"] ?: ?[{'\"])",
    re.IGNORECASE,
)
_OF_SERVICE = re.compile(
    r"[\W_]*(?:HTTPS?ConnectionPool\(|(?:api error|error code: ?[45]\d\d)\b\W|"
    rf"(?:(?!the|this)[\w.]+ ?)?{_ERROR_WORD}(?: \w+){{0,3}}\W*[:：\])](?=.{{0,300}}(?:"
    r"HTTPS?ConnectionPool|max retries exceeded|error code: ?[45]\d\d|rate.?limit|quota|"
    r"connection (?:refused|aborted|reset|error)|timed? ?out\b|internal server error|"
    r"service unavailable|invalid api key)))",
    re.IGNORECASE | re.DOTALL,
)
"""The beginning of what a service says in place of an answer, not of an answer about an error."""
_NONE = frozenset({"nan", "NaN", "NAN", "N/A", "n/a", "#N/A", "<NA>"})
_NULL = frozenset({"None", "null", "NULL"})
_ASKING = re.compile(r"[^?]*\?.*", re.DOTALL)
_UNFILLED = re.compile(r"(?<![\\\w}_^{$])\{\{?[^\W\d][\w ]*\}+")  # and no formula
_PROGRAM = re.compile(r"=>|</\w|\breturn\b|\bdef\b|;\s*\n|[)}]\s*[;{]|\w\(\)|\bf['\"]")
_LETTER = re.compile(r"[(\[]?[A-Ja-j][)\].]?")
_FOLLOWS = re.compile(
    r"\bfollow[\s_-]?ups?\b|\bmulti[\s_-]?turn\b|\bcontinued\b|上下文|追问|多轮",
    re.IGNORECASE,
)
_PROPERTIES = word_set(
    """distance length len tokens count position rank entropy size words chars characters lines
    density curvature ratio age year temperature threshold depth step turn run idx round"""
)
_ATTACKS = word_set("attack attacks attacker adversarial jailbreak victim redteam")
_AVERAGED = word_set("avg average mean means std stdev")
_OF_ALL = word_set("overall total final global aggregate combined")
_COUNTED = word_set("n num count samples total correct")
_LABELLED = word_set(
    """intent intents label labels category class classification route routing tool agent type topic
    file source document doc page section slug status state behavior behaviour action"""
)


def is_error_of_service(text: str) -> bool:
    """Whether a text in place of an answer is the error of a service that gave none.

    >>> (
    ...     is_error_of_service("API Error: Max retries exceeded"),
    ...     is_error_of_service("Error: 3 is odd"),
    ... )
    (True, False)
    """
    return _OF_SERVICE.match(text) is not None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The first rows of a file, what its columns hold, and their roles."""

    rows: Sequence[Mapping[str, object]]
    columns: Columns
    roles: Mapping[Role, Sequence[str]]

    def all(self, role: Role) -> list[Column]:
        """The columns with the role."""
        found = []
        for path in self.roles.get(role, ()):
            if path in self.columns:
                found.append(self.columns[path])

        return found

    def texts(self, path: str) -> list[str]:
        """The text or number in each row; "" where a row holds something else, or nothing."""
        found = []
        for row in self.rows:
            if path in row:
                value = row[path]
            else:
                value = cell(row, path)

            if isinstance(value, (str, int, float)):
                found.append(str(value).strip())
            else:
                found.append("")

        return found

    def filled(self, role: Role) -> list[str]:
        """The texts of the first column with the role, without empty ones."""
        columns = self.all(role)
        if not columns:
            return []
        return [*filter(None, self.texts(columns[0].path))]


def doubts(seen: Seen, *, named: Collection[Role] = ()) -> list[str]:
    """A sentence for each doubt, for people.

    `named`: roles that the user has decided, which are not doubted; that lists are joined is said
    all the same.
    """
    found: list[str] = []
    for role, of_role in _DOUBTS.items():
        if role not in named:
            for doubt in of_role:
                found += doubt(seen)

    found += _lists(seen)
    empty = []
    for path, column in seen.columns.items():
        named_so = Meaning("golden") in meanings(path) or Meaning("answer") in meanings(path)
        if not column.filled and column.rows and (named_so or is_score_name(path)):
            empty.append(f"'{path}'")

    if empty:
        found.append(f"empty in every row: {some_of(empty)}")
    return found


def _labels(seen: Seen) -> Iterator[str]:
    """Golden answers that are few labels, codes or verdicts beside questions in words."""
    texts = seen.filled("golden")
    if len(texts) < _FEWEST or seen.roles.get("choices"):
        return
    (golden, *_) = seen.all("golden")
    different = {*map(str.casefold, texts)}
    if 2 * golden.lists > golden.filled:
        return

    if _matching(_LETTER, texts) >= _MOST * len(texts):
        return

    answers: set[str] = set()
    for column in seen.all("answer"):
        answers |= {*map(str.casefold, seen.texts(column.path))}

    asked = seen.filled("question")
    worded = 0  # questions of several words, or of a script without spaces
    for text in asked:
        worded += len(text.split()) > 2 or (len(text) > 5 and not text.isascii())

    in_words = not asked or worded > _MANY * len(asked)
    answered = different & answers
    if 2 * len(answered) >= len(different) or not in_words:
        return  # agents answer with these

    coded = _matching(_CODE, texts) - golden.numbers
    polar = different <= {"yes", "no"} and 2 * _matching(_ASKING, asked) > len(asked)
    short = all(len(text) <= _SHORT and len(text.split()) <= 4 for text in texts)
    repeated = 3 * len(different) <= len(texts)
    few = short and repeated and 2 * golden.numbers < len(texts)

    words = {*words_of(last_part(golden.path))}
    named = words & _LABELLED and short and not golden.numbers
    judged = different <= {*VERDICTS}
    codes = coded >= _MOST * len(texts)
    if not polar and (few or judged or named or codes):
        shown = some_of([*dict.fromkeys(excerpt(text, _SHOWN) for text in texts)], most=2)
        yield (
            f"the golden answers in '{golden.path}' are labels ({len(different)} different in "
            f"{len(texts)} rows: {shown}): right only if agents answer with these"
        )


def _among_others(seen: Seen) -> Iterator[str]:
    """Lists that hold the golden answer of every row and, in some, others beside it."""
    for golden in seen.all("golden")[:1]:
        right = seen.texts(golden.path)
        for path, column in seen.columns.items():
            if path == golden.path or 2 * column.lists <= column.rows:
                continue
            if path in seen.roles.get("choices", ()):
                continue
            listed = [cell(row, path) for row in seen.rows]
            pairs = [*zip(right, listed, strict=True)]
            if not all(isinstance(texts, list) and text in texts for text, texts in pairs):
                continue
            more = sum(len(texts) > 1 for texts in listed)
            if more and len(pairs) >= _FEWEST:
                yield (
                    f"'{path}' holds '{golden.path}' in every row, and more in {more} of "
                    f"{len(pairs)}: if any of them is right, set `roles: {{golden: {path}}}` and "
                    f"`several: any`"
                )


def _in_one_place(seen: Seen) -> Iterator[str]:
    """Right choices that stand at the same place in every row."""
    choices = seen.roles.get("choices", ())
    golden = seen.all("golden")[:1]
    if not choices or not golden or len(seen.rows) < _FEWEST:
        return
    places: set[object] = set()
    for row in seen.rows:
        value = cell(row, golden[0].path)
        given = options(row, choices)
        if given is None:
            return
        places.add(given.right or text_of(value))

    if len(places) == 1:
        yield (
            f"the right choice is at the same place in every row of '{choices[0]}': an agent that "
            "always names this one looks perfect"
        )


def _joined_labels(seen: Seen) -> Iterator[str]:
    """Golden answers of several labels in one text, of which each stands alone in other rows."""
    texts = seen.filled("golden")
    alone = {text for text in texts if "," not in text}
    joined = []
    for text in texts:
        parts = [part.strip() for part in text.split(",")]
        if len(parts) > 1 and alone.issuperset(parts):
            joined.append(text)

    if len(joined) > 1 and len(alone) < len(texts) / 4:
        yield (
            f"{plural(len(joined), 'golden answer')} put several labels into one text, such as "
            f"'{excerpt(joined[0], _SHOWN)}': only the same labels in the same order are right"
        )


def _instructions(seen: Seen) -> Iterator[str]:
    """Golden answers that tell how to judge an answer, or hold what is still to be filled in."""
    texts = seen.filled("golden")
    instructions = [*filter(INSTRUCTION.match, texts)]
    if len(instructions) >= max(2, _FEW * len(texts)):
        yield (
            f"golden answers in '{seen.all('golden')[0].path}' describe an answer instead of "
            f"giving it ({len(instructions)} of {len(texts)}: "
            f"{excerpt(instructions[0], _SHOWN)}): if so, they are criteria"
        )

    unfilled = []
    for text in texts:
        field = _UNFILLED.search(text)
        if field is not None and _PROGRAM.search(text) is None:
            unfilled.append(field)

    if len(unfilled) >= max(2, _TENTH * len(texts)):
        yield (
            f"golden answers in '{seen.all('golden')[0].path}' hold placeholders that nothing "
            f"fills in ({len(unfilled)} of {len(texts)}: {unfilled[0][0]}): agents do not answer "
            "with these"
        )


def _absent(seen: Seen) -> Iterator[str]:
    """Golden answers that are what programs write where there is none."""
    for column in seen.all("golden")[:1]:
        texts = [*filter(None, seen.texts(column.path))]
        varied = 3 * len({*texts}) > len(texts)  # else a class may be called so
        none = []
        for text in texts:
            if text in _NONE or (varied and text in _NULL):
                none.append(text)

        if 0 < len(none) < len(texts):
            cells = plural(len(none), "cell holds", "cells hold")
            yield f"{cells} the text '{none[0]}' in '{column.path}': it may mean that there is none"


def _summaries(seen: Seen) -> Iterator[str]:
    """A last row that sums up the others."""
    for column in [*seen.all("question")[:1], *seen.all("id")[:1]]:
        texts = seen.texts(column.path)
        beside = []
        for role in ("golden", "answer"):
            beside += seen.all(role)

        others = []
        for one in beside:
            if one.path != column.path:
                others.append(seen.texts(one.path)[-1])

        if len(texts) >= _FEWEST and is_summary(texts[-1]) and others and not any(others):
            yield (
                f"the last row seems to sum up the others and has no answer: "
                f"{excerpt(texts[-1], _SHOWN)}"
            )


def _lists(seen: Seen) -> Iterator[str]:
    """Questions that are lists of texts, as the turns of a user are."""
    for column in seen.all("question")[:1]:
        if not column.lists:
            continue
        values = [cell(row, column.path) for row in seen.rows]
        lists = []
        for value in values:
            if isinstance(value, list) and len(value) > 1:
                lists.append(value)

        at_once = []
        for value in lists:
            if not are_messages(value):
                at_once.append(value)

        if at_once:
            rows = plural(len(at_once), "row")
            yield (
                f"'{column.path}' is a list of texts in {rows}: they are asked together, as one "
                "question, even if they are turns of a chat"
            )


def _follow_ups(seen: Seen) -> Iterator[str]:
    """Questions that another column calls a continuation of those before."""
    used = {*chain.from_iterable(seen.roles.values())}
    for path, column in seen.columns.items():
        if path in used or "." in path:
            continue
        texts = seen.texts(path)
        if _FOLLOWS.search(path.replace("_", " ")):
            follows = []
            for text in texts:
                if text.casefold() in ("true", "yes", "1"):
                    follows.append(text)
        else:
            follows = []
            for text in texts:
                if _FOLLOWS.search(text) and len(text) <= _SHORT:
                    follows.append(text)

        if 0 < len(follows) < column.rows:
            yield (
                f"'{path}' is {excerpt(follows[0], _SHOWN)} in {len(follows)} of {column.rows} "
                "rows: if these questions refer to the row before, they cannot be answered by "
                "themselves, as they are asked"
            )


def codes(seen: Seen) -> Iterator[str]:
    """Questions that are ids, files or links."""
    texts = seen.filled("question")
    coded = [*filter(_CODE.fullmatch, texts)]
    if len(texts) >= _FEWEST and len(coded) >= _MOST * len(texts):
        path = seen.all("question")[0].path
        shown = excerpt(coded[0], _SHOWN)
        yield f"the questions in '{path}' are ids, files or links, not words: {shown}"


def _equals(seen: Seen) -> Iterator[str]:
    """Question, golden answer and answers that are the same text but for white space."""
    columns = [*seen.all("question")[:1], *seen.all("golden")[:1], *seen.all("answer")]
    texts: dict[str, list[str]] = {}
    for column in columns:
        said = seen.texts(column.path)
        texts[column.path] = ["".join(text.casefold().split()) for text in said]

    for first, second in combinations(texts, 2):
        pairs = [*filter(all, zip(texts[first], texts[second], strict=True))]
        if len(pairs) < _FEWEST or len({*pairs}) == 1:
            continue
        same = sum(one == other for one, other in pairs)
        words = sum(len(one) for one, _ in pairs) > _SHORT * len(pairs)
        all_same = same == len(pairs) >= 4 * _FEWEST
        if same >= _MOST * len(pairs) and (words or all_same):
            yield f"'{first}' and '{second}' say the same in {same} of {len(pairs)} rows"


def _errors(seen: Seen) -> Iterator[str]:
    """Answers that are messages of errors, or cut at one length."""
    for column in seen.all("answer"):
        texts = [*filter(None, seen.texts(column.path))]
        if len(texts) < _FEWEST:
            continue
        failed = [*filter(_ERROR.match, texts)]
        if failed:
            yield (
                f"{plural(len(failed), 'answer')} of {len(texts)} in '{column.path}' may be an "
                f"error: {excerpt(failed[0], _SHOWN)}"
            )

        length = max(map(len, texts))
        cut = set()
        for text in texts:
            if len(text) == length and text[-1] not in _ENDS:
                cut.add(text)

        if length >= _CUT_FROM and len(cut) >= max(3, _TENTH * len({*texts})):
            yield (
                f"{len(cut)} answers in '{column.path}' end after {length} characters: they seem "
                f"to be cut"
            )


def _numbers_as_systems(seen: Seen) -> Iterator[str]:
    """Several columns of answers that hold small numbers, as scores do."""
    answers = seen.all("answer")
    if len(answers) < 2 or any(golden.is_numeric for golden in seen.all("golden")):
        return
    if all(column.is_scored and not column.texts for column in answers):
        listed = some_of([column.path for column in answers])
        yield f"the columns taken as answers of several systems hold numbers or verdicts: {listed}"


def _means(seen: Seen) -> Iterator[str]:
    """Rows without a text that hold means of others."""
    scores = seen.all("score")
    texts = any(seen.roles.get(role) for role in ("question", "golden", "answer"))
    if texts or not scores or len(seen.rows) > _ROWS_OF_MEANS:
        return
    if all(column.is_yes_or_no for column in scores):
        return
    scored = {column.path for column in scores}
    for path in seen.columns:
        words = {*words_of(path)}
        if "." not in path and (words & _AVERAGED or (words & _COUNTED and path not in scored)):
            yield (
                f"rows hold no text and may be means of several answers, as '{path}' says: "
                f"intervals and differences count each row as one answer"
            )
            return


def _properties(seen: Seen) -> Iterator[str]:
    """Scores that seem to measure a property, or sum up the others."""
    numbers_of = {}
    for column in seen.all("score"):
        numbers_of[column.path] = [number_in(text) for text in seen.texts(column.path)]

    for path, own in numbers_of.items():
        others = [numbers for other, numbers in numbers_of.items() if other != path]
        rows = []
        for row in zip(own, *others, strict=True):
            if None not in row:
                rows.append(row)

        named = {*words_of(last_part(path))} & (_AVERAGED | _OF_ALL)
        if not named or len(others) < 2 or len(rows) < _FEWEST:
            continue
        for what, parts in (("mean", len(others)), ("sum", 1)):
            if all(math.isclose(row[0] * parts, sum(row[1:]), abs_tol=0.02) for row in rows):
                yield f"'{path}' is the {what} of the other scores: it tells nothing beside them"

    for column in seen.all("score"):
        if len(column.values) == 1 and column.filled >= _FEW_ALIKE:
            (value,) = column.values
            shown = excerpt(value, _SHOWN)
            every = "every row" if column.rows < LOOKED_AT else f"the first {LOOKED_AT} rows"
            yield f"'{column.path}' is {shown} in {every}, so it tells no answers apart"

        numbers = []
        for number in map(number_in, column.values):
            if number is not None:
                numbers.append(number)

        if not numbers:
            continue
        low, high = min(numbers), max(numbers)
        on_scale = (low >= -5 and high <= 10) or (low >= 0 and high <= 100)
        if not on_scale or {*words_of(last_part(column.path))} & _PROPERTIES:
            yield (
                f"'{column.path}' is taken as a score and holds {brief(low)} to {brief(high)}: it "
                f"may be a property"
            )


def turned_round(seen: Seen, lower: Mapping[str, str]) -> dict[str, str]:
    """Metric → a sentence, for each in `lower` (column → metric, better when lower by its name)
    that is high where the scores beside it are: then it may count the absence of what it names.
    """
    said: dict[str, str] = {}
    for path, metric in lower.items():
        if path not in seen.columns or metric in said:
            continue
        first = words_of(last_part(path))[:-1]
        own = [*map(number_in, seen.texts(path))]
        rising, all_of_them = [], 0
        for other in seen.columns:
            known = lower_is_better(other) is False or is_score_name(other)
            beside = words_of(last_part(other))[: len(first)] == first and other not in lower
            if not known or not beside or is_measure(words_of(other)):
                continue
            others = [*map(number_in, seen.texts(other))]
            xs, ys = [], []
            for one, value in zip(own, others, strict=True):
                if one is not None and value is not None:
                    xs.append(one)
                    ys.append(value)

            if len(xs) < 2 * _FEWEST or len({*xs}) < 2 or len({*ys}) < 2:
                continue
            all_of_them += 1
            if correlation(xs, ys) > _RISES:
                rising.append(other)

        if 2 * len(rising) > all_of_them:
            option = quote(f"higher_is_better=[{metric}]")
            said[metric] = (
                f"'{path}' rises with {some_of(rising)}, although by its name lower is better: if "
                f"a high value means that an answer has none of it, --set {option}"
            )

    return said


def attacked(seen: Seen, metrics: Collection[str]) -> Iterator[str]:
    """A sentence where columns speak of attacks, whose success is no success of the agent.
    `metrics`: those that are taken to be better when higher.
    """
    named = []
    for path in seen.columns:
        if _ATTACKS & {*words_of(path)}:
            named.append(path)

    vague = [*filter(is_success_only, sorted(metrics))]
    if named and vague:
        listed = ", ".join(vague)
        yield (
            f"'{named[0]}' speaks of attacks: if more of {listed} means that an attack succeeded, "
            f"--set {quote(f'lower_is_better=[{listed}]')}"
        )


def marker_in(column: Column) -> tuple[float, bool] | None:
    """The number in a column of scores that seems to mean that there is none, such as -1 or 999,
    and whether no score of this scale can be it. None: there is no such number.
    """
    numbers = set()
    for number in map(number_in, column.values):
        if number is not None:
            numbers.add(number)

    for marker, most in _BELOW.items():
        others = numbers - {marker}
        if marker not in numbers or not others or min(others) < 0 or max(others) > most:
            continue
        shares = max(others) <= 1 and any(number % 1 for number in others)
        rated = min(others) >= 1 and len(others) > 2
        return marker, marker != -1 or shares or rated

    return None


def _matching(pattern: re.Pattern[str], texts: Iterable[str]) -> int:
    """How many texts match as a whole."""
    return sum(1 for _ in filter(pattern.fullmatch, texts))


_DOUBTS: Mapping[Role, Sequence[Callable[[Seen], Iterator[str]]]] = {
    "golden": (_among_others, _in_one_place, _labels, _joined_labels, _instructions, _absent),
    "question": (codes, _follow_ups, _summaries),
    "answer": (_equals, _errors, _numbers_as_systems),
    "score": (_means, _properties),
}
"""A role → the doubts about it."""
