"""The journal of a run that has ended, compressed: `journal.jsonl.zst`, which `zstd -d` also reads.

The bytes of the journal in frames of 1 MB each, followed by a table of the frames' sizes, as in zstd's seekable format:
a reader can still start at any byte. If there is a `journal.jsonl`, it is the journal, and the compressed
file is left over from a kill: each file is complete and on disk before the other is deleted.
"""

from __future__ import annotations

import io
import os
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from karat import formats
from karat.errors import BadRun, unreadable
from karat.files import open_regular, sync_folder, write_durably
from karat.journal.codec import LineDamaged, checked_lines, damaged

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["COMPRESSED", "JOURNAL", "compress_journal", "expand_journal", "open_compressed"]

JOURNAL, COMPRESSED = "journal.jsonl", "journal.jsonl.zst"

_FRAME = 2**20  # bytes of the journal in each frame but the last; also the largest window of a frame
_MOST_TIMES = 1000
"""How much longer than its file a journal may be, beyond its first 64 MB: ids and checksums, which do not compress,
keep real ones below 50 times. So a small file from a stranger cannot take hours to read."""
_FREE = 64 * 2**20
_MOST_FRAMES = 2**20
_LEVEL = 6
_TABLE, _FOOTER = struct.Struct("<II"), struct.Struct("<IBI")
_SKIPPABLE, _SEEKABLE = 0x184D2A5E, 0x8F92EAB1
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: _LEVEL,
    zstd.CompressionParameter.checksum_flag: 1,
}
_WINDOW: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _FRAME.bit_length() - 1}


def open_compressed(folder: Path) -> io.BufferedReader:
    """The lines of a compressed journal, readable and seekable like those of a plain one.

    Raises OSError as `open_regular` does, and BadRun for a file that karat did not write, or that is damaged at the
    position read.
    """
    path = folder / COMPRESSED
    return io.BufferedReader(_Frames(open_regular(path, within=folder), path), _FRAME)


class _Frames(io.RawIOBase):
    """The bytes of a compressed journal. Reads one frame at a time, and checks each against its size and checksum."""

    def __init__(self, file: io.BufferedReader, path: Path) -> None:
        self._file, self._path, self._at = file, path, 0
        self._number, self._frame = -1, b""  # the last frame read
        try:
            packed, sizes = self._table()
        except (struct.error, ValueError, OSError) as error:
            file.close()
            raise self._bad(f"has no table of its frames ({error})") from error
        self._places = [0, *accumulate(packed)]
        self._starts = [0, *accumulate(sizes)]
        if self._starts[-1] > _FREE + _MOST_TIMES * self._places[-1]:
            file.close()
            raise self._bad(f"holds more than {formats.count(_MOST_TIMES)} times its own size")

    def _table(self) -> tuple[list[int], list[int]]:
        """The compressed and the plain size of each frame."""
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(0, size - _FOOTER.size))
        count, _, magic = _FOOTER.unpack(self._file.read(_FOOTER.size))
        length = 8 * count + _FOOTER.size
        if magic != _SEEKABLE or count > _MOST_FRAMES or _TABLE.size + length > size:
            raise ValueError("its end is missing")
        self._file.seek(size - _TABLE.size - length)
        if self._file.read(_TABLE.size) != _TABLE.pack(_SKIPPABLE, length):
            raise ValueError("its end is damaged")
        numbers = struct.unpack(f"<{2 * count}I", self._file.read(8 * count))
        packed, sizes = list(numbers[::2]), list(numbers[1::2])
        if sum(packed) + _TABLE.size + length != size or max(sizes, default=0) > _FRAME or 0 in packed:
            raise ValueError("its sizes do not fit the file")
        return packed, sizes

    def _bad(self, problem: str) -> BadRun:
        return BadRun(str(self._path), f"{problem}; restore it from a copy")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.fileno()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._starts[-1]}[whence])
        return self._at

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override]  # any buffer type
        number = bisect_right(self._starts, self._at) - 1
        if number >= len(self._starts) - 1:
            return 0
        if number != self._number:
            self._frame, self._number = self._read(number), number
        start = self._at - self._starts[number]
        part = self._frame[start : start + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _read(self, number: int) -> bytes:
        size = self._starts[number + 1] - self._starts[number]
        self._file.seek(self._places[number])
        packed = self._file.read(self._places[number + 1] - self._places[number])
        decompressor = zstd.ZstdDecompressor(options=_WINDOW)
        try:
            frame = decompressor.decompress(packed, max_length=size + 1)
            # A further call: the checksum may still be unread if the output was exactly filled.
            if not decompressor.eof and len(frame) == size:
                frame += decompressor.decompress(b"", max_length=1)
        except zstd.ZstdError as error:
            raise self._bad(f"frame {number + 1} is damaged ({error})") from error
        if len(frame) != size or not decompressor.eof or decompressor.unused_data:
            raise self._bad(f"frame {number + 1} is damaged (its size differs from the table)")
        return frame

    def close(self) -> None:
        self._file.close()
        super().close()


def compress_journal(folder: Path, *, checksums: bool) -> None:
    """Replaces the plain journal by the compressed one. Only for the holder of the run's lock.

    `checksums`: whether each line must have one. Raises BadRun if the run has not ended or is damaged. A kill at
    any time leaves a whole journal: the plain one is deleted last.
    """
    plain, path = _without_leftovers(folder)
    if path.exists() and not plain.exists():
        return
    try:
        with open_regular(plain, within=folder) as file:
            _require_whole(file, folder, checksums=checksums)
            _require_alike(folder, file)
            file.seek(0)
            write_durably(path, _packed(file))
            try:
                _require_alike(folder, file, whole=True)  # read back from disk
            except BadRun:
                path.unlink()
                raise
        plain.unlink()
        sync_folder(folder)
    except OSError as error:
        raise BadRun(str(folder), f"the journal cannot be compressed: {unreadable(error)}") from error


def expand_journal(folder: Path) -> None:
    """Restores the plain journal for writing. Only for the holder of the run's lock. Raises BadRun."""
    plain, path = _without_leftovers(folder)
    try:
        if not path.exists():
            return
        if not plain.exists():
            with open_compressed(folder) as file:
                write_durably(plain, iter(lambda: file.read(_FRAME), b""))
        with open_regular(plain, within=folder) as file:
            _require_alike(folder, file)
        path.unlink()
        sync_folder(folder)
    except OSError as error:
        raise BadRun(str(folder), f"the compressed journal cannot be expanded: {unreadable(error)}") from error


def _without_leftovers(folder: Path) -> tuple[Path, Path]:
    """Paths of the plain and the compressed journal; removes partial files left by a killed process."""
    for name in (JOURNAL, COMPRESSED):
        (folder / f".{name}.part").unlink(missing_ok=True)
    return folder / JOURNAL, folder / COMPRESSED


def _packed(file: BinaryIO) -> Iterator[bytes]:
    sizes: list[int] = []
    while block := file.read(_FRAME):
        frame = zstd.compress(block, options=_OPTIONS)
        sizes += len(frame), len(block)
        yield frame
    count = len(sizes) // 2
    yield _TABLE.pack(_SKIPPABLE, 8 * count + _FOOTER.size) + struct.pack(f"<{2 * count}I", *sizes)
    yield _FOOTER.pack(count, 0, _SEEKABLE)


def _require_whole(file: BinaryIO, folder: Path, *, checksums: bool) -> None:
    """Raises BadRun unless every line is as karat wrote it and the last one records the end of the run."""
    read, last = 0, b""
    try:
        for last in checked_lines(file, required=checksums):
            read += len(last) + 1
    except LineDamaged as error:
        raise damaged(str(folder), error.number, error) from error
    if not last.startswith(b'{"event":"end"') or read < file.seek(0, os.SEEK_END):
        raise BadRun(str(folder), "has not ended: resume it, then compress it")


def _require_alike(folder: Path, plain: BinaryIO, *, whole: bool = False) -> None:
    """Raises BadRun unless the plain journal begins with the compressed content. `whole`: and has nothing more."""
    plain.seek(0)
    if not (folder / COMPRESSED).exists():
        return
    with open_compressed(folder) as file:
        while block := file.read(_FRAME):
            if plain.read(len(block)) != block:
                raise BadRun(str(folder), f"{JOURNAL} and {COMPRESSED} are both there and differ: delete the wrong one")
        if whole and plain.read(1):
            raise BadRun(str(folder), f"{COMPRESSED} does not hold the whole journal: compress the run again")
