"""Samples in blocks of bytes: many take little more memory than their texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import msgspec

from karat.records import Sample

__all__ = ["Packed"]

_BLOCK = 64  # samples: decoding one block takes some 60 µs, and trials come sample by sample


class Packed(Sequence[Sample]):
    """A sequence that decodes its samples when they are asked for: equal each time, not the same objects."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open: list[Sample] = []
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[Sample]).decode
        self._last: tuple[int, list[Sample]] = (-1, [])

    def append(self, sample: Sample) -> None:
        """At the end."""
        self._open.append(sample)
        if len(self._open) == _BLOCK:
            self._blocks.append(self._encode(self._open))
            self._open = []

    def __len__(self) -> int:
        return _BLOCK * len(self._blocks) + len(self._open)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | list[Sample]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(index)
        block, within = divmod(at, _BLOCK)
        return self._block(block)[within]

    def __iter__(self) -> Iterator[Sample]:
        for block in range(len(self._blocks)):
            yield from self._decode(self._blocks[block])
        yield from self._open

    def _block(self, block: int) -> list[Sample]:
        if block == len(self._blocks):
            return self._open
        if self._last[0] != block:
            self._last = (block, self._decode(self._blocks[block]))
        return self._last[1]
