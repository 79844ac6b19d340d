"""What a run has to be looked at by: its metrics, and what questions can be filtered by."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from operator import itemgetter

import msgspec

from karat.records import Metric
from karat.viewer.schema import rows

__all__ = ["Choices", "Column", "choices", "columns"]


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that is shown."""

    n: int  # in the index, from 1
    key: str
    name: str
    scorer: str
    scoring: str
    low: float | None = None
    high: float | None = None
    direction: str = "higher"
    kind: str = "number"

    @property
    def percent(self) -> bool:
        """Whether its means are shares, which people read in percent."""
        return self.kind == "share" and self.low == 0 and self.high == 1


class Choices(msgspec.Struct, frozen=True, kw_only=True):
    """What can be filtered by."""

    conditions: tuple[str, ...]
    labels: tuple[str, ...]
    failures: tuple[str, ...]
    claims: bool
    searchable: bool
    studies: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    unread: tuple[tuple[str, str], ...] = ()  # of a study: what `Filter.label` says, and what that is


def columns(
    base: sqlite3.Connection, announced: Mapping[tuple[str, str], Sequence[Metric]], latest: Mapping[str, str]
) -> tuple[Column, ...]:
    """The metrics of the newest scoring of each scorer, in the order in which they were announced, or met.

    `announced`: scorer and scoring → its metrics.
    """
    sql = "SELECT n, scorer, scoring, name, numbers FROM metrics ORDER BY n LIMIT 1000"
    found = rows(base, sql, (), tuple[int, str, str, str, int])
    shown = [row for row in found if latest.get(row[1]) == row[2]]
    names = [row[3] for row in shown]
    known = {(pair, metric.name): metric for pair, metrics in announced.items() for metric in metrics}
    order = {key: at for at, key in enumerate(known)}
    made = []
    for n, scorer, scoring, name, numbers in shown:
        place = ((scorer, scoring), name)
        metric = known.get(place, Metric(name=name))
        key = name if names.count(name) == 1 else f"{scorer}.{name}"
        made.append((order.get(place, len(order) + n), _column(n, key, scorer, scoring, metric, bool(numbers))))
    return tuple(column for _, column in sorted(made, key=itemgetter(0)))


def _column(n: int, key: str, scorer: str, scoring: str, metric: Metric, numbers: bool) -> Column:
    """`numbers`: whether it ever was more than true or false; one that was not is a share, whatever was announced."""
    flags = metric.kind == "number" and not numbers
    low, high = (0.0, 1.0) if flags else metric.bounds
    return Column(
        n=n,
        key=key,
        name=metric.name,
        scorer=scorer,
        scoring=scoring,
        low=low,
        high=high,
        direction=metric.direction,
        kind="share" if flags else metric.kind,
    )


def choices(base: sqlite3.Connection) -> Choices:
    """What a run has to be filtered by; lists are cut at 100."""
    conditions = rows(base, "SELECT n, name FROM conditions ORDER BY n LIMIT 1000", (), tuple[int, str])
    failures = _each(base, "trials", "kind", "kind IS NOT NULL")
    labels = []
    for name in _each(base, "labels", "name"):
        labels += [f"{name}={value}" for value in _each(base, "labels", "value", "name = ?", name)]
    claimed = "SELECT EXISTS (SELECT 1 FROM scores INDEXED BY scores_claims WHERE claims > 0)"
    claims = base.execute(claimed).fetchone()[0]
    searchable = base.execute("SELECT value FROM meta WHERE name = 'searchable'").fetchone()
    studies = _each(base, "arms", "study")
    arms = dict.fromkeys(arm for study in studies for arm in _each(base, "arms", "arm", "study = ?", study))
    return Choices(
        conditions=tuple(name for _, name in conditions),
        labels=tuple(labels[:100]),
        failures=tuple(failures),
        claims=bool(claims),
        searchable=searchable == ("yes",),
        studies=tuple(studies),
        arms=tuple(arms)[:300],
        unread=_unread(labels[:100]) if studies else (),
    )


def _unread(labels: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Every kind of any field, then each field's own."""
    kinds: dict[str, list[str]] = {}
    for label in labels:
        name, _, kind = label.partition("=")
        kinds.setdefault(kind, []).append(name)
    found = [(f"={kind}", f"any field: {kind}") for kind, names in kinds.items() if names != ["turn"]]
    return (*found, *((label, label.replace("=", ": ", 1)) for label in labels))


def _each(base: sqlite3.Connection, table: str, column: str, where: str = "1", *given: str) -> list[str]:
    """The values of an indexed column, by jumping from one to the next: a scan would read every row."""
    found: list[str] = []
    after = ""
    while len(found) < 100:
        sql = f"SELECT min({column}) FROM {table} WHERE {where} AND {column} > ?"  # noqa: S608 -- names of ours
        row = base.execute(sql, (*given, after)).fetchone()
        if row is None or row[0] is None:
            break
        after = str(row[0])
        found.append(after)
    return found
