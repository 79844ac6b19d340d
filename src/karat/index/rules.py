"""What counts: the rules by which the lines of a journal become numbers, each in one place.

* A trial's first answer counts. Its place is (sample, condition, repetition).
* The last score row at a place (trial, turn, judge, repeat) counts.
* A scoring of several rows counts once all of them exist: the process may be killed between two.
* Each scorer's newest scoring is shown, unless another one is named.
* A trial's number is the mean over the repeats of each judge, then over judges, then over turns.
* In an unfinished conversation, the replies count from which the next attempt resumes.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Generic, TypeVar

from karat.errors import BadOption, did_you_mean
from karat.journal import MISSED_GATE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Scoring = TypeVar("_Scoring", bound=Hashable)
_Place = TypeVar("_Place", bound=Hashable)
_Turn = TypeVar("_Turn", bound=Hashable)
_Reply = TypeVar("_Reply")


class PartialScorings(Generic[_Scoring, _Place]):
    """The scorings with missing rows. A row's place is its turn, judge and repeat.

    An interrupted scoring may start again from its first row, so this counts distinct places, not
    lines.

    >>> partial = PartialScorings()
    >>> (
    ...     partial.completes("equals of q1", (0, None, 0), rows=2),
    ...     partial.completes("equals of q1", (0, None, 0), rows=2),
    ... )
    (False, False)
    >>> partial.completes("equals of q1", (1, None, 0), rows=2), partial.places
    (True, {})
    """

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: dict[_Scoring, set[_Place]] = {}  # incomplete scoring → its rows so far

    def completes(self, scoring: _Scoring, place: _Place, *, rows: int) -> bool:
        """Whether this row completes its scoring of `rows` rows.

        Do not call it for a complete scoring.
        """
        if rows <= 1:
            return True
        seen = self.places.setdefault(scoring, set())
        seen.add(place)
        if len(seen) < rows:
            return False
        del self.places[scoring]
        return True


class PartialAnswer(Generic[_Reply]):
    """The replies of a trial of several turns without an answer yet; `_Reply` is whatever the
    reader keeps of each.

    A `reply` line is a turn that was answered and paid for. After a failed or killed attempt, the
    next one resumes after those turns if its agent can (its next line has the next turn), or starts
    again (its next line has turn 0). So a reply replaces everything at its turn and later, in
    journals of any version.
    """

    __slots__ = ("_missed_gate", "journalled", "replies")

    def __init__(self) -> None:
        self.replies: list[_Reply] = []  # of the conversation so far, from turn 0
        self.journalled = 0  # `reply` lines of the current attempt
        self._missed_gate = False

    def add(self, turn: int, reply: _Reply) -> list[_Reply]:
        """Adds a reply; returns those that it replaces."""
        self.journalled += 1
        self._missed_gate = False
        replaced = self.replies[turn:]
        if turn > len(self.replies):  # the start is lost, which karat itself never causes
            replaced = [*self.replies, reply]
            self.replies = []
        else:
            self.replies[turn:] = [reply]

        return replaced

    def end_attempt(self, kind: str) -> int:
        """Ends a failed attempt; returns how many of its replies had separate lines.

        They come first.
        """
        journalled = self.journalled
        self.journalled = 0
        self._missed_gate = self._missed_gate or kind.startswith(MISSED_GATE)
        return journalled

    def end_process(self) -> None:
        """Records the end of a process: what follows is another attempt."""
        self.journalled = 0

    @property
    def resumable(self) -> Sequence[_Reply]:
        """Replies that the next attempt may resume from; empty if a gate failed."""
        if self._missed_gate:
            return ()
        return self.replies


def counting_rows(
    cells: NDArray[np.int64],
    turns: NDArray[np.int32],
    judges: NDArray[np.int32],
    repeats: NDArray[np.int32],
    *,
    partial: Collection[int],
) -> NDArray[np.int64]:
    """Positions of the rows that count, ordered by cell, turn, judge and repeat.

    The last row at a place counts. Cells in `partial` lack rows, so none of theirs count.
    """
    import numpy as np

    order = np.lexsort((repeats, judges, turns, cells))
    last = np.ones(len(cells), dtype=bool)
    last[:-1] = False
    for key in (cells, turns, judges, repeats):
        ordered = key[order]
        last[:-1] |= ordered[1:] != ordered[:-1]

    if partial:
        last &= ~np.isin(cells[order], np.fromiter(partial, np.int64))
    return order[last]


def shown_scorings(
    newest: Mapping[str, str],
    announced: Iterable[tuple[str, str]],
    scored: Iterable[tuple[str, str]],
    wanted: Mapping[str, str],
) -> dict[str, str]:
    """Scorer → scoring: the newest of each, unless `wanted` names another one by its first
    characters.

    `announced`, `scored`: (scorer, scoring) in the run's list of scorers and in its score rows.
    Raises BadOption.
    """
    announced = list(announced)
    order = dict.fromkeys([*(name for name, _ in announced), *sorted(newest)])
    shown = {name: newest[name] for name in order if name in newest}
    for name, prefix in wanted.items():
        if name not in shown:
            raise BadOption(
                "--scoring", f"the run has no scorer '{name}'{did_you_mean(name, shown)}"
            )

        known = {scoring for scorer, scoring in (*announced, *scored) if scorer == name}
        matches = sorted(scoring for scoring in known if scoring.startswith(prefix))
        if len(matches) != 1:
            problem = "is not a scoring of" if not matches else "matches several scorings of"
            raise BadOption(
                "--scoring", f"'{prefix}' {problem} '{name}' (known: {', '.join(sorted(known))})"
            )

        shown[name] = matches[0]

    return shown


def turn_values(rows: Iterable[tuple[_Turn, str | None, float | bool | None]]) -> list[float]:
    """One number per turn from rows (turn, judge, value): the mean over each judge's repeats, then
    over judges.

    >>> turn_values([(0, "a", 1.0), (0, "a", 3.0), (0, "b", 4.0), (1, "a", None)])
    [3.0]
    """
    turns: dict[_Turn, dict[str | None, list[float]]] = {}
    for turn, judge, value in rows:
        if value is not None:
            turns.setdefault(turn, {}).setdefault(judge, []).append(float(value))

    return [fmean(map(fmean, judges.values())) for judges in turns.values()]


def trial_value(rows: Iterable[tuple[_Turn, str | None, float | bool | None]]) -> float | None:
    """A trial's number: the mean over its turns; None if it has none."""
    values = turn_values(rows)
    if values:
        return fmean(values)
    return None
