"""What a file holds instead of questions with golden answers, as far as its columns show it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import msgspec

from karat.documents.columns import Column, Columns, are_objects, paths_in
from karat.documents.names import (
    Meaning,
    is_score_name,
    joined,
    meanings,
    names_documents,
    roles_of,
    sure_roles,
    with_role,
    word_set,
    words_of,
)
from karat.documents.sentences import describes
from karat.formats import some_of

_GRADES = word_set("relevance relevant grade rel gain")
_MOST_GRADES = 6  # different ones of relevance; more numbers are something else
_NO_MEANING = frozenset({"0", "Q0", "q0"})
"""What the second column of a file of qrels holds in each row."""
_QUERY_IDS = word_set("queryid qid topicid topic query")
_DOCUMENT_IDS = word_set("corpusid docid documentid docno passageid pid")
_QUERIES = _QUERY_IDS | word_set("question querytext questiontext questionid")
_WORDS_OF_NAMES = 4
_LONGEST_CLASS = 24  # characters, in the mean
_MOST_OF_QRELS = 6  # columns
_CALLED = word_set("tool toolname function functionname")
_GIVEN = word_set("params parameters arguments args kwargs toolinput toolargs")


class _Sort(msgspec.Struct, frozen=True):
    """A sort of file without questions: what it holds, and a name of each column that shows it."""

    holds: str
    columns: tuple[frozenset[str], ...]


_SORTS = (
    _Sort(
        "holds the tools that an agent may call",
        (
            word_set("parameters inputschema functionparameters functioninputschema argsschema"),
            word_set("description functiondescription"),
        ),
    ),
    _Sort(
        "holds the steps of an agent's run",
        (
            word_set("thought thoughts reasoning"),
            word_set("action actions tool toolname toolcall toolcalls"),
            word_set("observation observations actioninput toolinput toolresult"),
        ),
    ),
    _Sort("holds the spans of a trace", (word_set("traceid"), word_set("spanid"))),
    _Sort(
        "holds a rubric for a judge (rules for each question go into a column `criteria` of its "
        "file)",
        (
            word_set("criterion criteria check rubric rubrics dimension aspect name description"),
            word_set(
                """scale levels scoring scoringguide scoringrubric anchors rubriclevels scorelevels
                gradingscale passthreshold"""
            ),
        ),
    ),
    _Sort(
        "holds a rubric for a judge (rules for each question go into a column `criteria` of its "
        "file)",
        (word_set("criterion check dimension aspect"), word_set("weight maxscore maxpoints")),
    ),
    _Sort(
        "holds stories of a chatbot (Rasa), with intents and actions that must follow a message",
        (word_set("story rule"), word_set("steps")),
    ),
    _Sort(
        "holds tests of promptfoo for a prompt elsewhere: variables and assertions",
        (word_set("vars"), word_set("assert")),
    ),
    _Sort("holds the cells of a notebook", (word_set("celltype"), word_set("source"))),
    _Sort("holds the results of tests of code", (word_set("nodeid"), word_set("outcome"))),
    _Sort(
        "holds a graph's edges",
        (
            word_set("subject head"),
            word_set("predicate relation relationship"),
            word_set("object tail"),
        ),
    ),
    _Sort(
        "holds the lines of a program's log",
        (
            word_set("level loglevel severity levelname"),
            word_set("message msg event"),
            word_set("ts timestamp time datetime asctime"),
        ),
    ),
    _Sort(
        "holds a catalogue of goods",
        (word_set("sku price"), word_set("name title productname"), word_set("description")),
    ),
    _Sort(
        "holds the tables of a database",
        (word_set("columns fields"), word_set("name table tablename")),
    ),
)
_MARKED = word_set(
    """embedding embeddings vector chunkid passageid pagecontent textcontent chunkindex
    chunktext"""
)
"""Names of columns that documents have which are to be searched."""
_TEXTS = word_set(
    """text content pagecontent textcontent chunktext passage chunk body document contents
    passagetext"""
)
_LONG = 300  # characters: more than questions have, in the mean
_ASKS = re.compile(r"[?？؟]\W*$|^\W*[¿]")
_FIELD = re.compile(r"\{\{?\s*\w+\s*\}?\}|\[[A-Z][A-Z _]{2,}\]|<[A-Z][A-Z_]{2,}>")
_OF_A_KEY = re.compile(r"\W*(?:q(?:uestion)?\s*)?\d+\s*[:.)=-]\s*[A-Ea-e]\W*", re.IGNORECASE)
"""A question's number and the letter of what is right."""
_TAG = re.compile(
    r"(?:ADJ|ADP|ADV|AUX|CCONJ|CONJ|DET|INTJ|NOUN|NUM|PART|PRON|PROPN|PUNCT|SCONJ|SYM|VERB|X|O"
    r"|[BIES]-[A-Za-z]+)"
)
"""What a word of a sentence is, or a part of a name."""
_TWO_WORDS = re.compile(r"\S\s+\S")
_LETTER = re.compile("[A-E]")
_ANSWERED = word_set("answer solution")
_OF_KEYS = word_set("answer answers solution solutions label labels")
_FEWEST_TAGS = 4
_FEWEST_OF_A_RECORD = 8  # columns
_FEWEST_BY_KEY = 5  # columns of a record with an id, and short values that differ
_LONGEST_BY_KEY = 100  # characters
_FEWEST_OF_A_GRID = 8  # rows
_LONG_OF_A_GROUP = 60  # characters, in the mean


def no_questions(columns: Columns, *, talks: bool = False) -> str | None:
    """What a file without questions holds instead; None: nothing known. `talks`: whether people
    speak in it, who are no records.
    """
    names = {"".join(words_of(path)) for path in columns}
    if names == {"id", "value"}:
        held = "a list of texts" if columns["value"].lists else "one text"
        return f"holds {held} an id, but no questions: give the file with the questions, too"

    filled = {}
    for path, column in columns.items():
        if column.filled:
            filled[path] = column

    if _are_qrels(filled):
        held = "says which documents are relevant to a question (qrels): give the questions' file"
        return held + all_the_same(columns)
    for known in (
        answers_to_judge(filled),
        answers_alone(filled),
        results(filled),
        of_raters(filled),
        None if talks else groups(filled),
    ):
        if known is not None:
            return known + all_the_same(columns)

    asked = with_role(filled, "question")
    for path in asked if len(asked) == 1 else ():
        column = filled[path]
        (text,) = column.values if column.is_constant else ("",)
        unfilled = placeholder({path: text}) or ("_" in text and text.isupper())
        if unfilled and "." not in path:
            return (
                f"has no questions yet: '{path}' holds the same placeholder in all "
                f"{column.rows} rows ('{text}'): write the questions there"
            )

    if len(filled) > 1 and all(column.is_numeric for column in filled.values()):
        return f"holds nothing but numbers ({len(filled)} columns), and no questions"
    sort = _sort_of(filled, names)
    if sort is None and not talks and are_records(filled):
        sort = "holds records, such as a catalogue or annotations"
    if sort is not None:
        wanted = "it seems, and no questions: give the file with the questions"
        return f"{sort}, {wanted}{all_the_same(columns)}"

    asked = with_role(paths_in(columns), "question", "messages")
    texts = [path for path, column in filled.items() if column.is_text and "." not in path]
    called = []
    for path in filled:
        if joined(path) in _CALLED:
            called.append(path)

    given = []
    for path in filled:
        if joined(path) in _GIVEN and "." not in path:
            given.append(path)

    if called and given and not asked and not any("question" in roles_of(path) for path in texts):
        return (
            f"holds calls of tools ('{called[0]}', '{given[0]}'), and no questions to an agent: "
            "write what a user asks, and the tools that must be called as `expected_tools`"
        )

    return None


def all_the_same(columns: Iterable[str]) -> str:
    """What to write if a file that seems to hold no questions does, as the end of a sentence."""
    tops = ", ".join(path for path in columns if "." not in path)
    return (
        "; if its rows are asked all the same, name the columns: "
        f"roles: {{question: …, golden: …}} (columns: {tops})"
    )


def _sort_of(columns: Columns, names: Collection[str]) -> str | None:
    """What rows hold in which no column is surely a question or what is expected; None: unknown."""
    texts = {path: column for path, column in columns.items() if column.is_text}
    words = not any(_most(column, _TWO_WORDS) for column in texts.values())
    for path, column in texts.items():
        if words and len(column.values) >= _FEWEST_TAGS and all(map(_TAG.fullmatch, column.values)):
            return f"holds the words of sentences with their tags ('{path}')"

    if is_grid(columns):
        return "holds combinations of a few values, such as the settings of runs"
    surely = with_role(paths_in(columns), "question", "messages")
    expected = []
    for path in with_role(paths_in(columns), "golden"):
        if joined(path) in _RIGHT:
            expected.append(path)

    if surely or expected:
        return None
    templates = [path for path, column in texts.items() if _most(column, _FIELD)]
    if templates:
        return f"holds templates of prompts ('{templates[0]}')"
    for sort in _SORTS:
        if all(not one_of.isdisjoint(names) for one_of in sort.columns):
            return sort.holds

    documents = [path for path in texts if joined(path) in _TEXTS]
    marked = not _MARKED.isdisjoint(names) or {"id", "title", "text"} == {*names}
    for path in documents:
        column = texts[path]
        others = []  # which do not only say which document a row is
        for other in paths_in(columns):
            about = roles_of(other) & _ABOUT or joined(other) in _IDS
            if other != path and (joined(other) in _MAY_BE_RIGHT or not about):
                others.append(other)

        long = column.mean_length >= _LONG or not _DOCUMENT_IDS.isdisjoint(names)
        if not _most(column, _ASKS) and (marked or (long and not others)):
            return f"holds documents ('{path}') to be searched (a corpus)"

    if is_table(columns):
        return "holds a table of data"
    of_what = with_role(paths_in(columns), "model", "condition", "repetition")
    numbers = [path for path, column in columns.items() if column.is_numeric]
    if of_what and not texts.keys() - of_what and len(numbers) > 1:
        return f"holds numbers for each '{of_what[0]}', such as means"
    return None


_RIGHT = word_set(
    """golden gold expected groundtruth answerkey goldanswer goldenanswer correctanswer target
    expectedanswer expectedoutput expectedresponse expectedresult"""
)


_ABOUT = frozenset({"id", "cluster", "context", "metadata", "started"})
_IDS = _DOCUMENT_IDS | word_set("url link title subtitle author uri path")
_MAY_BE_RIGHT = word_set("category categories type level tag tags")


def is_table(columns: Columns) -> bool:
    """Whether rows are data, as of orders: numbers, short texts that repeat, and no name of
    a question or of what is right.
    """
    numbers = classes = names = 0
    for path, column in columns.items():
        roles = sure_roles(path)
        if column.lists + column.objects or roles & _OF_QUESTIONS or joined(path) in _ANSWERS:
            return False
        if column.is_numeric:
            numbers += not roles & {"id", "score"}
            continue

        if any(_DATED.match(value) is None for value in column.values) and not roles & _NO_DATA:
            words = max(len(value.split()) for value in column.values)
            if words > _WORDS_OF_NAMES:
                return False
            if words > 1 and not column.repeats:
                names += 1
            else:
                classes += 1

    return names < min(numbers, 2) and numbers > 0 and classes > 0


_DATED = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}")
_OF_QUESTIONS = frozenset({"question", "golden", "criterion", "messages", "answer", "turn"})
_ANSWERS = word_set("answer answers response responses reply output outputs text")
_NO_DATA = frozenset({"id", "started"})


def is_grid(columns: Columns) -> bool:
    """Whether rows are combinations of a few values each, none of them a sentence or expected."""
    if len(columns) < 3 or with_role(columns, "golden", "criterion", "messages"):
        return False
    for column in columns.values():
        few = column.repeats or column.is_constant
        if not few or column.lists + column.objects or column.filled < _FEWEST_OF_A_GRID:
            return False
        if _has_words(column) or any(map(_ASKS.search, column.values)):
            return False

    return any(column.is_text for column in columns.values())


def are_records(columns: Columns) -> bool:
    """Whether rows have many columns, and none is a question, or expected, by its name or text."""
    top = [path for path in columns if "." not in path]
    asked = with_role(paths_in(columns), "question", "golden", "messages")
    keyed = short = True
    for column in columns.values():
        keyed = keyed and not column.repeats
        short = short and max(map(len, column.values), default=0) < _LONGEST_BY_KEY

    fewest = _FEWEST_OF_A_RECORD
    if keyed and short and any("id" in roles_of(path) for path in columns):
        fewest = _FEWEST_BY_KEY
    if asked or len(top) < fewest:
        return False
    for path, column in columns.items():
        if column.messages or (column.is_text and _most(column, _ASKS)):
            return False
        expects = roles_of(path) & _OF_QUESTIONS - {"question"} and joined(path) != "keywords"
        if expects and not column.is_numeric and not describes(path):
            return False

    return True


def answers_alone(columns: Columns) -> str | None:
    """What a key to questions elsewhere is: numbers with letters, or golden answers beside nothing
    but numbers and classes; None: it is another file.
    """
    without = "without their questions (a key): give the questions' file, with these in a column"
    for path, column in columns.items():
        if len(columns) == 1 and all(map(_OF_A_KEY.fullmatch, [path, *column.values])):
            return f"holds letters of answers {without}"

    right = []
    for path, column in columns.items():
        letters = len(column.values) > 1 and all(map(_LETTER.fullmatch, column.values))
        varied = column.is_text and not column.repeats
        answers = varied and not _ANSWERED.isdisjoint(words_of(path))
        named = joined(path) in _RIGHT | _OF_KEYS or answers
        if (named or letters) and "." not in path and not names_documents(path):
            right.append(path)

    numbered = False
    for path, column in columns.items():
        if path in right or "." in path or 2 * column.filled < column.rows:
            continue
        counted = len(column.values) == column.filled
        unnamed = column.is_numeric and path.isdecimal()
        if counted and (unnamed or "id" in roles_of(path)) and not _has_words(column):
            numbered = True
            continue

        few = column.repeats or column.is_constant or column.is_numeric or column.lists > 0
        classes = column.repeats and column.mean_length <= _LONGEST_CLASS
        worded = _has_words(column) and not classes
        if not few or "question" in roles_of(path) or worded:
            return None

    if len(right) == 1 and numbered:
        return f"holds answers ('{right[0]}') {without}"
    return None


def results(columns: Columns) -> str | None:
    """What rows are that say how good each repetition of a question was, and not what is right;
    None: they are others.
    """
    expected = with_role(columns, "golden", "criterion", "choices")
    asked = with_role(columns, "question")
    runs = with_role(columns, "repetition")
    scores = []
    for path, column in columns.items():
        if is_score_name(path) and column.is_scored:
            scores.append(path)

    if expected or not scores or not runs or not any(columns[path].repeats for path in asked):
        return None
    return (
        f"holds results: scores ('{scores[0]}') of each '{runs[0]}' of a question, and nothing "
        "that is right: `karat import csv FILE` reads them"
    )


def of_raters(columns: Mapping[str, Column]) -> str | None:
    """What rows are that give the same values of several raters for an item each, in columns whose
    names differ by a number; None: they are others.
    """
    if with_role(columns, "question", "choices", "messages"):
        return None
    raters: dict[str, list[str]] = {}
    for path, column in columns.items():
        stem = re.sub(r"\d+", "", path)
        if stem != path and column.is_numeric:
            raters.setdefault(stem, []).append(path)
        elif joined(path) in _RIGHT:
            return None

    alike = [paths for paths in raters.values() if len(paths) > 1]
    if len(alike) < 2 or len({*map(len, alike)}) > 1:
        return None
    listed = some_of([f"'{path}'" for path in alike[0]])
    return (
        f"holds values that each of several gave ({listed}), such as scores of judges: results, "
        "which `karat import csv FILE` reads"
    )


def groups(columns: Mapping[str, Column]) -> str | None:
    """What rows are that hold nothing but a long text each, and the number of its group; None: they
    are others.
    """
    texts, numbered = [], []
    for path, column in columns.items():
        if roles_of(path) & (_OF_QUESTIONS | {"score"}) or column.lists + column.objects:
            return None
        if column.is_numeric and column.repeats and "id" in roles_of(path):
            numbered.append(path)
        elif column.is_text and _has_words(column):
            texts.append(path)

    if len(texts) != 1 or len(numbered) != 1 or columns[texts[0]].mean_length < _LONG_OF_A_GROUP:
        return None
    return (
        f"holds texts ('{texts[0]}') and the group of each ('{numbered[0]}'), such as clusters or "
        "parts of documents"
    )


def _most(column: Column, pattern: re.Pattern[str]) -> bool:
    """Whether a pattern is in most texts of a column."""
    found = sum(pattern.search(value) is not None for value in column.values)
    return 2 * found > len(column.values)


_PLACEHOLDER = re.compile(
    r"\W*(?:(?:an?|the|my|your|some) )?(?:(?:example|sample|placeholder|dummy) "
    r"(?:question|query|prompt|input)s?|(?:question|query|prompt) (?:goes )?here|your question.*"
    r"|placeholder|todo|tbd|\.\.\.|…|lorem ipsum.*|<[^<>]*>|пример (?:запроса?|вопроса?)"
    r"|(?:exemple|ejemplo|exemplo) de .{0,20}|beispielfrage|示例问题|问题示例|例)\W*\d*",
    re.IGNORECASE,
)


def placeholder(row: Mapping[str, object]) -> str | None:
    """A placeholder in a row, such as `<question>`; None if the row has none."""
    for value in row.values():
        if isinstance(value, str) and _PLACEHOLDER.fullmatch(value.strip()):
            return value

    return None


def graded_documents(column: Column) -> list[str]:
    """The keys of the objects in a column that holds documents with a grade of relevance each; none
    if it holds something else.
    """
    listed = column.example
    if not isinstance(listed, list) or not are_objects(listed):
        return []
    for part in listed[:1]:
        documents = []
        for key in part:
            if names_documents(key):
                documents.append(key)

        graded = []
        for key in part:
            if {*words_of(key)} & _GRADES and key not in documents:
                graded.append(key)

        numbers = []
        for key in graded:
            if isinstance(part[key], (int, float)):
                numbers.append(key)

        if documents and numbers:
            return [documents[0], numbers[0]]

    return []


def answers_to_judge(columns: Columns) -> str | None:
    """What a file is that holds answers and the verdicts that a judge should give on them; None: it
    is another one.
    """
    answers = with_role(paths_in(columns), "answer")
    for path in columns:
        if joined(path) in _ANSWERS - {"text"}:
            answers.append(path)

    asked = with_role(paths_in(columns), "question", "messages")
    verdicts = with_role(paths_in(columns), "golden")
    verdicts += [path for path in columns if {"golden", "score"} <= roles_of(path)]
    for path in verdicts:
        if columns[path].is_judgement and len(columns[path].values) > 1 and answers and not asked:
            return (
                f"holds answers ('{answers[0]}') with the verdict that a judge should give "
                f"('{path}'): a test of a judge, and no questions to an agent"
            )

    return None


def _are_qrels(columns: Columns) -> bool:
    """Whether rows are the id or the text of a question, the id of a document and a grade, as TREC
    writes them: perhaps without names of the columns.
    """
    names = {joined(path) for path in columns}
    if len(columns) <= _MOST_OF_QRELS and names & _DOCUMENT_IDS and names & _QUERIES:
        for path, column in columns.items():
            few = column.is_numeric and len(column.values) <= _MOST_GRADES
            if few and {*words_of(path)} & _GRADES:
                return True

    if names & _DOCUMENT_IDS and names & _QUERY_IDS and not any(map(_has_words, columns.values())):
        return True
    if len(columns) not in (3, 4):
        return False
    query, *others, document, grade = columns.values()
    headless = grade.path.isdecimal()
    if headless and len(others) == 1 and {*others[0].values} - _NO_MEANING:
        others = []  # the text of the question
    grades = {*grade.values, grade.path}
    ids = [query, *others, document, grade]
    all_ids = not any(map(_has_words, ids))
    graded = len(grades) <= _MOST_GRADES and all(map(str.isdecimal, grades))
    same = all({*column.values, column.path} <= _NO_MEANING for column in others)
    unnamed = not any(Meaning("question") in meanings(path) for path in columns)
    return all_ids and graded and same and unnamed and query.repeats and not document.is_constant


def _has_words(column: Column) -> bool:
    """Whether a cell holds more than one word."""
    return any(len(value.split()) > 1 for value in column.values)
