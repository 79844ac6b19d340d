"""What a file holds instead of questions with golden answers, as far as its columns show it."""

from __future__ import annotations

from collections.abc import Mapping

from karat.documents.columns import Column, paths_in
from karat.documents.names import (
    Meaning,
    joined,
    meanings,
    names_documents,
    with_role,
    word_set,
    words_of,
)

_GRADES = word_set("relevance relevant grade rel gain")
_MOST_GRADES = 6  # different ones of relevance; more numbers are something else
_NO_MEANING = frozenset({"0", "Q0", "q0"})
"""What the second column of a file of qrels holds in each row."""
_QUERY_IDS = word_set("queryid qid topicid topic query")
_DOCUMENT_IDS = word_set("corpusid docid documentid docno passageid pid")
_CALLED = word_set("tool toolname function functionname")
_GIVEN = word_set("params parameters arguments args kwargs toolinput toolargs")


def no_questions(columns: Mapping[str, Column]) -> str | None:
    """What a file without questions holds instead; None: nothing known."""
    names = {"".join(words_of(path)) for path in columns}
    if names == {"id", "value"}:
        held = "a list of texts" if columns["value"].lists else "one text"
        return f"holds {held} an id, but no questions: give the file with the questions, too"
    filled = {path: column for path, column in columns.items() if column.filled}
    if _are_qrels(filled):
        return "says which documents are relevant to a question (qrels): give the questions' file"
    if len(filled) > 1 and all(column.is_numeric for column in filled.values()):
        return f"holds nothing but numbers ({len(filled)} columns), and no questions"
    asked = with_role(paths_in(columns), "question", "golden", "messages")
    called = [path for path in filled if joined(path) in _CALLED]
    given = [path for path in filled if joined(path) in _GIVEN and "." not in path]
    if called and given and not asked:
        return (
            f"holds calls of tools ('{called[0]}', '{given[0]}'), and no questions to an agent: "
            "write what a user asks, and the tools that must be called as `expected_tools`"
        )
    return None


def graded_documents(column: Column) -> list[str]:
    """The keys of the objects in a column that holds documents with a grade of relevance each; none
    if it holds something else.
    """
    listed = column.example
    if not isinstance(listed, list) or not all(isinstance(part, Mapping) for part in listed):
        return []
    for part in listed[:1]:
        documents = [key for key in part if names_documents(key)]
        graded = [key for key in part if {*words_of(key)} & _GRADES and key not in documents]
        numbers = [key for key in graded if isinstance(part[key], (int, float))]
        if documents and numbers:
            return [documents[0], numbers[0]]

    return []


def _are_qrels(columns: Mapping[str, Column]) -> bool:
    """Whether rows are the id of a question, that of a document and a grade, as TREC writes them:
    perhaps without names of the columns.
    """
    names = {joined(path) for path in columns}
    if names & _DOCUMENT_IDS and names & _QUERY_IDS and not any(map(_has_words, columns.values())):
        return True
    if len(columns) not in (3, 4):
        return False
    query, *others, document, grade = columns.values()
    grades = {*grade.values, grade.path}
    all_ids = not any(map(_has_words, columns.values()))
    graded = len(grades) <= _MOST_GRADES and all(map(str.isdecimal, grades))
    same = all({*column.values, column.path} <= _NO_MEANING for column in others)
    unnamed = not any(Meaning("question") in meanings(path) for path in columns)
    return all_ids and graded and same and unnamed and query.repeats and not document.is_constant


def _has_words(column: Column) -> bool:
    """Whether a cell holds more than one word."""
    return any(len(value.split()) > 1 for value in column.values)
