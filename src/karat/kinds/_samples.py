"""Samples: kept in blocks of bytes, and drawn with a seed, identically on every machine.

The order of the draw depends only on the seed and the samples' ids, so a larger `sample_size` keeps
all samples of a smaller one, and adding a row to the file does not move the others.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from typing import Annotated, overload

import msgspec
from pydantic import BeforeValidator, Field, Strict

from karat.clusters import cluster_name
from karat.errors import BadDataset, Fault, did_you_mean
from karat.formats import excerpt, plural
from karat.records import Sample

Key = Annotated[str, Strict(), Field(min_length=1)]
"""The name of a column, as an option of a dataset."""
Keys = Annotated[
    list[Key], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]

Stratum = Callable[[Sample], Hashable]
"""What samples of one stratum have in common."""

_BLOCK = 64  # samples: decoding one block takes some 60 µs, and trials come sample by sample
_AT_HAND = 2**13  # samples that stay decoded, since a run goes through them several times


class Packed(Sequence[Sample]):
    """A sequence that keeps its first samples as they are and decodes the others on access: equal
    each time, not the same objects.
    """

    def __init__(self, samples: Iterable[Sample] = ()) -> None:
        self._first: list[Sample] = []
        self._blocks: list[bytes] = []
        self._open: list[Sample] = []
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[Sample]).decode
        self._last: tuple[int, list[Sample]] = (-1, [])
        self.extend(samples)

    def extend(self, samples: Iterable[Sample]) -> None:
        """Adds samples at the end."""
        added = iter(samples)
        self._first += islice(added, _AT_HAND - len(self._first))
        added = chain(self._open, added)
        while len(block := [*islice(added, _BLOCK)]) == _BLOCK:
            self._blocks.append(self._encode(block))
        self._open = block

    def __len__(self) -> int:
        return len(self._first) + _BLOCK * len(self._blocks) + len(self._open)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if index < 0:
            at = index + len(self)
        else:
            at = index

        if not 0 <= at < len(self):
            raise IndexError(index)
        if at < len(self._first):
            return self._first[at]
        block, within = divmod(at - len(self._first), _BLOCK)
        if block == len(self._blocks):
            return self._open[within]
        if self._last[0] != block:
            self._last = (block, self._decode(self._blocks[block]))
        return self._last[1][within]

    def __iter__(self) -> Iterator[Sample]:
        blocks = map(self._decode, self._blocks)
        return chain(self._first, chain.from_iterable(blocks), self._open)


def clustered(samples: Sequence[Sample], column: str, *, path: str) -> Packed:
    """The samples, each with its value of a metadata column as its cluster.

    Raises BadDataset if no sample has the column, or if some lack a value: whether they share
    something is not known.
    """
    known = {name for sample in samples for name in sample.metadata}
    if column not in known:
        message = (
            f"no row has the key '{column}'{did_you_mean(column, known)}, or the rows of a "
            "question differ in it"
        )
        raise BadDataset(path, [Fault(place="dataset.cluster", message=message)])

    names = [cluster_name(sample.metadata.get(column)) for sample in samples]
    pairs = zip(samples, names, strict=True)
    lacking = [sample.id for sample, name in pairs if name is None]
    if lacking:
        first = f"the first is '{excerpt(lacking[0], 40)}'"
        message = (
            f"{plural(len(lacking), 'sample')} without a text or whole number in '{column}' "
            f"({first}); fill it in"
        )
        raise BadDataset(path, [Fault(place="dataset.cluster", message=message)])

    return _with_clusters(samples, names)


def _with_clusters(samples: Iterable[Sample], names: Iterable[str | None]) -> Packed:
    pairs = zip(samples, names, strict=True)
    return Packed(msgspec.structs.replace(sample, cluster=name) for sample, name in pairs)


def folded(texts: Iterable[str]) -> tuple[str, ...]:
    """Each text without differences in case, white space and the marks at its end."""
    return tuple([" ".join(text.casefold().split()).rstrip("?.! ") for text in texts])


def repeats(samples: Iterable[Sample]) -> list[tuple[int, int]]:
    """The places of samples that ask the same about the same text as an earlier one, each after
    that of the first.
    """
    first: dict[Hashable, int] = {}
    found = []
    numbered = enumerate(samples)
    while block := [*islice(numbered, _BLOCK)]:
        turns = chain.from_iterable([sample.turns for _, sample in block])
        questions = folded([turn.question for turn in turns])
        end = 0
        for place, sample in block:
            start = end
            end += len(sample.turns)
            asked = questions[start:end], sample.materials
            earlier = first.setdefault(asked, place)
            if earlier != place:
                found.append((earlier, place))

    return found


def with_repeats_clustered(samples: Packed, repeated: Sequence[tuple[int, int]]) -> Packed:
    """The samples; those that `repeats` found share a cluster, with all of their clusters, so that
    they count as one.
    """
    if not repeated:
        return samples
    clusters = []
    for sample in samples:
        clusters.append(f"sample {sample.id}" if sample.cluster is None else sample.cluster)

    joined: dict[str, str] = {}
    for first, later in repeated:
        earlier = _joined(joined, clusters[first])
        own = _joined(joined, clusters[later])
        if own != earlier:
            joined[own] = earlier

    shared = {*joined, *joined.values()}
    names = []
    for sample, cluster in zip(samples, clusters, strict=True):
        names.append(_joined(joined, cluster) if cluster in shared else sample.cluster)
    return _with_clusters(samples, names)


def _joined(joined: Mapping[str, str], cluster: str) -> str:
    """The cluster that it is part of. `joined`: a cluster → the one that it was made part of."""
    while cluster in joined:
        cluster = joined[cluster]
    return cluster


def by_columns(columns: Sequence[str]) -> Stratum:
    """A stratum for each combination of values in these columns of the metadata."""
    return lambda sample: msgspec.json.encode(
        [sample.metadata.get(column) for column in columns], order="sorted"
    )


_ALL_ALIKE = by_columns(())


def draw(
    samples: Sequence[Sample],
    size: int | None,
    *,
    seed: int,
    stratum: Stratum = _ALL_ALIKE,
) -> Sequence[Sample]:
    """`size` of the samples (all, if there are fewer), in their original order.

    Each stratum gets its share of them, to within one.
    """
    if size is None or size >= len(samples):
        return samples
    groups = _strata(samples, seed, stratum)
    return [samples[index] for index in sorted(_taking_turns(groups, size))]


def draw_equally(
    samples: Sequence[Sample],
    size: int | None,
    *,
    seed: int,
    stratum: Stratum,
) -> Sequence[Sample]:
    """`size` of the samples, equally many from each stratum, in their original order.

    A stratum with fewer gives all it has, and the others share the rest. The `weight` of a
    sample is how many of its stratum it represents, so weighted means are those of the whole
    file. Raises ValueError if a stratum would give none: no weight could correct that.
    """
    if size is None or size >= len(samples):
        return samples
    groups = _strata(samples, seed, stratum)
    if size < len(groups):
        raise ValueError(f"there are {len(groups)} strata, and each must give a sample")
    rounds = sorted(
        (place, rank, index)
        for rank, group in enumerate(groups)
        for place, index in enumerate(group)
    )
    taken = {index for _, _, index in rounds[:size]}
    weights = {}
    for group in groups:
        chosen = taken.intersection(group)
        weights.update(dict.fromkeys(chosen, len(group) / len(chosen)))

    return [
        msgspec.structs.replace(samples[index], weight=weights[index]) for index in sorted(taken)
    ]


def _strata(samples: Sequence[Sample], seed: int, stratum: Stratum) -> list[list[int]]:
    """The samples' places by stratum, each in the order of the draw."""
    groups: dict[Hashable, list[int]] = {}
    key = str(seed).encode()
    lots = []
    for index, sample in enumerate(samples):
        name = sample.id.encode("utf-8", "surrogatepass")
        lots.append((blake2b(name, digest_size=16, key=key).digest(), index))

    for _, index in sorted(lots):
        groups.setdefault(stratum(samples[index]), []).append(index)
    return list(groups.values())


def _taking_turns(groups: Sequence[Sequence[int]], size: int) -> Iterator[int]:
    """Members of all groups, such that after each step every group has had its share, to within
    one.

    The j-th of a group may be taken from step (j - 1 + d) N / n on and is due by (j - d) N / n,
    where the group has n of the N members, d = 1 / (2 G - 2) for G groups; the one due first is
    taken.

    Tijdeman (1980), The chairman assignment problem, Discrete Mathematics 32:323.
    """
    total = sum(map(len, groups))
    parts = max(2 * len(groups) - 2, 1)
    waiting = [
        (
            -(-(j * parts + 1) * total // (len(group) * parts)),
            ((j + 1) * parts - 1) * total / (len(group) * parts),
            rank,
            j,
        )
        for rank, group in enumerate(groups)
        for j in range(len(group))
    ]
    waiting.sort(reverse=True)
    ready: list[tuple[float, int, int]] = []
    for step in range(1, size + 1):
        while waiting and waiting[-1][0] <= step:
            heapq.heappush(ready, waiting.pop()[1:])
        _, rank, j = heapq.heappop(ready)
        yield groups[rank][j]
