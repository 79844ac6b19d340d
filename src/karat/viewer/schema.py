"""The tables of the index: where in the journal everything stands, and what pages filter and sort by.

Disposable: it holds nothing that the run folder does not, and another version is not read
but made anew. Texts stay in the journal; the index knows their place. A missing number is
NULL, or NaN in a packed column.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

__all__ = ["FORMAT_VERSION", "TABLES", "create", "is_ours", "rows"]

_Row = TypeVar("_Row")

FORMAT_VERSION = 3
"""1: 2026-11, the first. 2: with the participants of studies. 3: with the digests of samples."""

TABLES = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE samples (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, position INTEGER NOT NULL,
  at INTEGER NOT NULL, length INTEGER NOT NULL, question TEXT NOT NULL, turns INTEGER NOT NULL, digest TEXT NOT NULL
)""",
    "CREATE INDEX samples_position ON samples (position)",
    "CREATE TABLE conditions (n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    """CREATE TABLE metrics (
  n INTEGER PRIMARY KEY, scorer TEXT NOT NULL, scoring TEXT NOT NULL, name TEXT NOT NULL,
  numbers INTEGER NOT NULL, UNIQUE (scorer, scoring, name)
)""",
    """CREATE TABLE trials (
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
  sample INTEGER NOT NULL, condition INTEGER NOT NULL, repetition INTEGER NOT NULL,
  answer_at INTEGER, answer_length INTEGER,
  failure_at INTEGER, failure_length INTEGER, stage TEXT, class TEXT, kind TEXT, scorer TEXT,
  seconds REAL, dollars REAL, tokens INTEGER, calls INTEGER, call_errors INTEGER, attempts INTEGER,
  vals BLOB,
  UNIQUE (sample, condition, repetition)
)""",
    "CREATE INDEX trials_failed ON trials (kind, sample) WHERE kind IS NOT NULL",
    """CREATE TABLE scores (
  trial INTEGER NOT NULL, scorer TEXT NOT NULL, scoring TEXT NOT NULL, turn INTEGER NOT NULL, judge TEXT NOT NULL,
  repeat INTEGER NOT NULL, rows INTEGER NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL, claims INTEGER NOT NULL,
  PRIMARY KEY (trial, scorer, scoring, turn, judge, repeat)
) WITHOUT ROWID""",
    "CREATE INDEX scores_claims ON scores (trial) WHERE claims > 0",
    """CREATE TABLE labels (
  trial INTEGER NOT NULL, scorer TEXT NOT NULL, turn INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (trial, scorer, turn, name)
) WITHOUT ROWID""",
    "CREATE INDEX labels_value ON labels (name, value, trial)",
    "CREATE INDEX labels_of_any_name ON labels (value, trial)",
    """CREATE TABLE people (
  sample INTEGER PRIMARY KEY, study TEXT NOT NULL, arms TEXT NOT NULL, profile TEXT NOT NULL, members INTEGER NOT NULL
)""",
    "CREATE INDEX people_members ON people (members)",
    """CREATE TABLE arms (
  study TEXT NOT NULL, arm TEXT NOT NULL, sample INTEGER NOT NULL, PRIMARY KEY (study, arm, sample)
) WITHOUT ROWID""",
    """CREATE TABLE attempts (
  n INTEGER PRIMARY KEY, trial TEXT NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL
)""",
    "CREATE INDEX attempts_trial ON attempts (trial)",
    """CREATE TABLE heard (
  trial TEXT NOT NULL, turn INTEGER NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY (trial, turn)
) WITHOUT ROWID""",
    "CREATE TABLE parts (n INTEGER PRIMARY KEY, event TEXT NOT NULL, at INTEGER NOT NULL, length INTEGER NOT NULL)",
    """CREATE TABLE cells (
  metric INTEGER NOT NULL, condition INTEGER NOT NULL, sample INTEGER NOT NULL,
  mean REAL NOT NULL, sd REAL, n INTEGER NOT NULL, PRIMARY KEY (metric, condition, sample)
) WITHOUT ROWID""",
    """CREATE TABLE standings (
  metric INTEGER NOT NULL, sample INTEGER NOT NULL,
  mean REAL NOT NULL, low REAL NOT NULL, high REAL NOT NULL, gap REAL, sd REAL, PRIMARY KEY (metric, sample)
) WITHOUT ROWID""",
    "CREATE INDEX standings_low ON standings (metric, low)",
    "CREATE INDEX standings_high ON standings (metric, high)",
    "CREATE INDEX standings_gap ON standings (metric, gap)",
    "CREATE INDEX standings_sd ON standings (metric, sd)",
)
"""Of every index. `vals`: a trial's number of each metric, as doubles in the order of `metrics.n`."""

WORDS = "CREATE VIRTUAL TABLE words USING fts5(said, content='', tokenize='unicode61', detail=none, columnsize=0)"
"""Rows 2·n are samples, 2·n + 1 are trials. Without the places of words in a text, which no page asks for: half the
time, and 7 in place of 18 MB for 100,000 answers of 50 words."""

_GATHERED = 16 * 2**20  # bytes of words that are held back before they are written: fewer parts to be merged later


def create(base: sqlite3.Connection) -> None:
    """Makes the tables. Without FTS5 there is no search in texts, and everything else."""
    for table in TABLES:
        base.execute(table)
    searchable = "yes"
    try:
        base.execute(WORDS)
        base.execute("INSERT INTO words (words, rank) VALUES ('hashsize', ?)", (_GATHERED,))
    except sqlite3.OperationalError:
        searchable = "no"
    base.execute("INSERT INTO meta VALUES ('format', ?), ('searchable', ?)", (str(FORMAT_VERSION), searchable))


def is_ours(base: sqlite3.Connection) -> bool:
    """Whether the file holds these tables and nothing else: a run folder may come from somebody else.

    A foreign schema could carry triggers, views and expressions that run when a page is asked for.
    """
    found = {row[0] for row in base.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL LIMIT 100")}
    found = {sql for sql in found if not sql.startswith("CREATE TABLE 'words_")}
    return found - {WORDS} == set(TABLES)


def rows(base: sqlite3.Connection, sql: str, given: Sequence[Any], row: type[_Row]) -> list[_Row]:
    """Rows of the types that the tables promise: a file from elsewhere may hold others."""
    try:
        return msgspec.convert(base.execute(sql, tuple(given)).fetchall(), list[row])  # type: ignore[valid-type] # the type is given
    except msgspec.ValidationError as error:
        raise sqlite3.DatabaseError(f"the index is damaged: {error}") from error
