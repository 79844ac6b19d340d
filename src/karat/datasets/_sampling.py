"""Drawing some of the samples: the same ones for a seed, on every machine.

The order in which samples are taken depends on nothing but the seed and their ids, so
that a larger `sample_size` keeps all that a smaller one had, and a row that is added to
the file leaves the others where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from hashlib import blake2b

from karat.records import Sample

__all__ = ["draw"]


def draw(
    samples: Sequence[Sample], size: int | None, *, seed: int, stratum: Callable[[Sample], Hashable] | None = None
) -> list[Sample]:
    """`size` of the samples (all, where there are no more), in the order they came in.

    With `stratum`, each stratum gives its share of them, to within one: the i-th of the n
    samples of a stratum is taken at (i + ½) / n of the way through all of them.
    """
    if size is None or size >= len(samples):
        return list(samples)
    order = sorted(range(len(samples)), key=lambda index: _lot(samples[index], seed))
    if stratum is not None:
        order = _spread(samples, order, stratum)
    return [samples[index] for index in sorted(order[:size])]


def _spread(samples: Sequence[Sample], order: Sequence[int], stratum: Callable[[Sample], Hashable]) -> list[int]:
    members: dict[Hashable, list[int]] = {}
    for index in order:
        members.setdefault(stratum(samples[index]), []).append(index)
    # The lot of a stratum's first sample decides between strata that are due at the same time.
    rank = {index: position for position, index in enumerate(order)}
    due = {
        index: ((position + 0.5) / len(group), rank[group[0]])
        for group in members.values()
        for position, index in enumerate(group)
    }
    return sorted(order, key=lambda index: due[index])


def _lot(sample: Sample, seed: int) -> bytes:
    return blake2b(sample.id.encode("utf-8", "surrogatepass"), digest_size=16, key=str(seed).encode()).digest()
