"""What makes questions dependent: the values of a column that several share, such as their
document.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from karat.documents.columns import VERDICTS
from karat.documents.names import Meaning, is_score_name, meanings
from karat.formats import excerpt, plural

_VERDICTS = frozenset({*VERDICTS, "0", "1"})


def cluster_name(value: object) -> str | None:
    """A value of a column as the name of a cluster; None for anything but a text, a whole number or
    a truth value.
    """
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, int):
        return str(value)
    return None


class SharedValues:
    """Finds the column whose values questions share, as questions of one document do."""

    def __init__(self) -> None:
        self._samples = 0
        self._counts: dict[str, Counter[str]] = {}
        self._others: set[str] = set()  # columns that number turns, and scores

    def add(self, metadata: Mapping[str, object]) -> None:
        """The metadata of the next sample."""
        self._samples += 1
        for name, value in metadata.items():
            cluster = cluster_name(value)
            if cluster is None or isinstance(value, bool) or name in self._others:
                continue
            counts = self._counts.get(name)
            if counts is not None:
                counts[cluster] = counts.get(cluster, 0) + 1
            elif Meaning("turn") in meanings(name) or is_score_name(name) or name.endswith("_rate"):
                self._others.add(name)
            else:
                self._counts[name] = Counter([cluster])

    @property
    def names(self) -> list[str]:
        """The columns so far."""
        return list(self._counts)

    def hint(self, option: str) -> str | None:
        """A sentence that names the column that looks most like a cluster; None if none does.

        `option`: to write.
        """
        found = {}
        for name, counts in self._counts.items():
            # at least 2 questions a value in 80 % of the values, and at most half as many values
            # as questions
            shared = sum(count > 1 for count in counts.values())
            if {name.casefold() for name in counts} <= _VERDICTS:
                continue  # what is said of answers
            if 1 < len(counts) <= self._samples / 2 and shared >= 0.8 * len(counts):
                found[name] = counts

        if not found:
            return None
        name = max(found, key=lambda one: len(found[one]))
        few = plural(len(found[name]), "value")
        values = f"{plural(self._samples, 'question')} share {few} of '{excerpt(name, 40)}'"
        return (
            f"{values}: if it names their document or another source, they are not independent; "
            f"{option} {name}"
        )


def codes_of(clusters: Sequence[str | None]) -> list[int] | None:
    """A number for each cluster, and one for each unit without one; None if no two units share a
    cluster.

    >>> codes_of(["a", None, "a"]), codes_of(["a", "b"])
    ([0, 1, 0], None)
    """
    codes: dict[object, int] = {}
    keys = (row if name is None else name for row, name in enumerate(clusters))
    listed = [codes.setdefault(key, len(codes)) for key in keys]
    return None if len(codes) == len(listed) else listed
