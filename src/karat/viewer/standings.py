"""Trials' numbers → one row a question, condition and metric, and one a question and metric: what lists sort by."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["stand"]

_AT_ONCE = 2000  # samples
_LARGEST = 1e100  # of a score, as summaries have it

Floats = NDArray[np.float64]


def stand(base: sqlite3.Connection, samples: Iterable[int] | None) -> None:
    """Computes the rows of these samples anew; None: of all."""
    width = base.execute("SELECT count(*) FROM metrics").fetchone()[0]
    for rows, some in _batches(base, samples):
        base.executemany("DELETE FROM cells WHERE metric = ? AND condition = ? AND sample = ?", _cells_of(base, some))
        base.executemany(
            "DELETE FROM standings WHERE metric = ? AND sample = ?", [(m + 1, n) for n in some for m in range(width)]
        )
        if rows and width:
            _insert(base, rows, width)


def _batches(
    base: sqlite3.Connection, samples: Iterable[int] | None
) -> Iterator[tuple[list[tuple[int, int, bytes]], Sequence[int]]]:
    if samples is None:
        base.execute("DELETE FROM cells")
        base.execute("DELETE FROM standings")
        last = base.execute("SELECT max(n) FROM samples").fetchone()[0] or 0
        for first in range(0, last + 1, _AT_ONCE):
            yield base.execute(f"{_VALS} BETWEEN ? AND ? {_ORDER}", (first, first + _AT_ONCE - 1)).fetchall(), ()
        return
    wanted = sorted(samples)
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        found = [row for n in some for row in base.execute(f"{_VALS} = ? {_ORDER}", (n,))]
        yield found, some


_VALS = "SELECT sample, condition, vals FROM trials WHERE vals IS NOT NULL AND sample"
_ORDER = "ORDER BY sample, condition, repetition"


def _cells_of(base: sqlite3.Connection, samples: Sequence[int]) -> list[tuple[int, int, int]]:
    if not samples:
        return []
    metrics = [n for (n,) in base.execute("SELECT n FROM metrics")]
    conditions = [n for (n,) in base.execute("SELECT n FROM conditions")]
    return [(metric, condition, n) for n in samples for metric in metrics for condition in conditions]


def _insert(base: sqlite3.Connection, rows: Sequence[tuple[int, int, bytes]], width: int) -> None:
    of_samples, of_conditions, vals = zip(*rows, strict=True)
    values = _matrix(vals, width)
    keys = np.array([of_samples, of_conditions], dtype=np.int64).T
    starts = _starts(keys)
    means, variances, counts = _groups(values, starts)
    samples, conditions = keys[starts, 0], keys[starts, 1]
    group, metric = np.nonzero(counts)
    sds = np.sqrt(variances)
    base.executemany(
        "INSERT OR REPLACE INTO cells VALUES (?, ?, ?, ?, ?, ?)",
        zip(
            (metric + 1).tolist(),
            conditions[group].tolist(),
            samples[group].tolist(),
            means[group, metric].tolist(),
            sds[group, metric].tolist(),  # SQLite keeps NaN as NULL
            counts[group, metric].tolist(),
            strict=True,
        ),
    )
    _insert_standings(base, samples, means, variances)


def _insert_standings(base: sqlite3.Connection, samples: NDArray[np.int64], means: Floats, variances: Floats) -> None:
    starts = np.concatenate(([0], np.flatnonzero(np.diff(samples)) + 1))
    overall, _, counts = _groups(means, starts)
    within, _, _ = _groups(variances, starts)
    low = np.minimum.reduceat(np.where(np.isnan(means), np.inf, means), starts)
    high = np.maximum.reduceat(np.where(np.isnan(means), -np.inf, means), starts)
    gap = np.where(counts > 1, high - low, np.nan)
    row, metric = np.nonzero(counts)
    parts = (overall, low, high, gap, np.sqrt(within))
    base.executemany(
        "INSERT OR REPLACE INTO standings VALUES (?, ?, ?, ?, ?, ?, ?)",
        zip(
            (metric + 1).tolist(),
            samples[starts][row].tolist(),
            *(part[row, metric].tolist() for part in parts),
            strict=True,
        ),
    )


def _matrix(packed: Sequence[bytes], width: int) -> Floats:
    """Rows of doubles; trials that were scored before a metric was met have none of it."""
    size = 8 * width
    if all(len(one) == size for one in packed):
        return np.frombuffer(b"".join(packed), dtype="<f8").reshape(-1, width)
    found = np.full((len(packed), width), np.nan)
    for row, one in enumerate(packed):
        there = np.frombuffer(one[: len(one) // 8 * 8], dtype="<f8")[:width]
        found[row, : len(there)] = there
    return found


def _starts(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    changed = (keys[1:] != keys[:-1]).any(axis=1)
    return np.concatenate(([0], np.flatnonzero(changed) + 1))


def _groups(values: Floats, starts: NDArray[np.int64]) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean, variance (n−1) and count of each group of rows, NaN left out, and what cannot be added up as well."""
    values = np.where(np.abs(values) <= _LARGEST, values, np.nan)
    known = ~np.isnan(values)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    sums = np.add.reduceat(np.where(known, values, 0.0), starts)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    spread = np.repeat(means, np.diff(np.append(starts, len(values))), axis=0)
    squares = np.add.reduceat(np.where(known, (values - spread) ** 2, 0.0), starts)
    variances = np.divide(squares, counts - 1, out=np.full(sums.shape, np.nan), where=counts > 1)
    return means, variances, counts
