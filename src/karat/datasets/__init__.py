"""What a dataset kind is. One file a kind; each name is the file's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from karat.records import Sample

if TYPE_CHECKING:
    from karat.datasets._rows import Rows

__all__ = ["Dataset", "DatasetKind", "read_rows", "sample_digest"]


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """Samples, in the order of the file, and the file they came from."""

    kind: str
    path: Path
    sha256: str  # hex, of the file's raw bytes
    samples: Sequence[Sample]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)

    def __len__(self) -> int:
        return len(self.samples)


class DatasetKind(Protocol):
    """Reads one kind of file. Raises BadDataset with every fault of the file at once.

    `judged` (class attribute): whether answers need a judge when the file names no scorer.
    """

    judged: bool

    def load(self, path: Path) -> Dataset: ...


def sample_digest(parts: Any) -> str:
    """A digest over whatever a sample consists of, keys sorted: 32 hex digits of blake2b."""
    from hashlib import blake2b

    return blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=16).hexdigest()


def read_rows(path: Path) -> Rows:
    """The rows of a file of any kind that datasets come in. Raises BadDataset where nothing can be read at all."""
    from karat.datasets import _rows

    return _rows.read_rows(path)
