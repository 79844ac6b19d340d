"""What a run's judges have said already, so that scoring identical things again costs nothing."""

from __future__ import annotations

import msgspec

from karat.journal import RunFolder
from karat.records import Score

__all__ = ["ScoreCache"]


class ScoreCache:
    """Score rows by the key in their `detail`: those that were on disk when the run was opened.

    Not those that came since: which of two equal answers is judged first would then decide
    which of them costs something. The journal itself is the cache, so nothing is stored twice,
    and what is masked there is masked here.
    """

    def __init__(self) -> None:
        self._folder: RunFolder | None = None
        self._stop = 0
        self._at: dict[str, int] | None = None  # key, or key and trial → place in the journal; None: not read yet

    def open(self, folder: RunFolder) -> None:
        """What `folder` holds now is remembered. It is read when it is first asked for."""
        self._folder, self._stop, self._at = folder, folder.journal.stat().st_size, None

    def recall(self, key: str, trial: str) -> Score | None:
        """A score with this key: of the trial if there is one, else of any; of several the last."""
        if self._folder is None or not self._stop:
            return None
        if self._at is None:
            self._at = _places(self._folder, self._stop)
        place = self._at.get(f"{key} {trial}", self._at.get(key))
        if place is None:
            return None
        return msgspec.json.decode(next(self._folder.lines(start=place)), type=Score)


class _Detail(msgspec.Struct, frozen=True):
    key: str | None = None


class _Keyed(msgspec.Struct):
    trial: str
    detail: _Detail = _Detail()


def _places(folder: RunFolder, stop: int) -> dict[str, int]:
    found: dict[str, int] = {}
    decoder = msgspec.json.Decoder(_Keyed)
    at = 0
    for line in folder.lines(stop=stop):
        start, at = at, at + len(line) + 1
        if line.startswith(b'{"event":"score"') and b'"key":' in line:
            row = decoder.decode(line)
            if row.detail.key is not None:
                found[row.detail.key] = found[f"{row.detail.key} {row.trial}"] = start
    return found
