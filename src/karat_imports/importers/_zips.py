"""Reads members of untrusted zip archives: stored, deflate or zstd, each within a limit.

Nothing is extracted to disk, so the names of members do no harm.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from collections.abc import Iterable
from io import BufferedReader

from karat.formats import count

if sys.version_info >= (3, 14):
    from zipfile import BadZipFile, ZipFile

    from compression.zstd import ZstdError
else:  # zipfile reads zstd from 3.14 on
    from backports.zstd import ZstdError
    from backports.zstd.zipfile import BadZipFile, ZipFile

MOST_ENTRIES = 150_000
MOST_DIRECTORY = 32 << 20  # bytes
# bytes, unpacked; Inspect writes larger ones in frames, and zipfile reads only the first
LARGEST_MEMBER = 200 << 20
ALWAYS_UNPACKED = 384 << 20  # bytes: any archive may be unpacked up to this size
MOST_RATIO = 200  # unpacked to packed size of larger archives; logs reach some dozens
_END = struct.Struct("<4s4H2LH")


class BadZip(ValueError):
    """What is wrong with the archive or one of its members."""


class Archive:
    """A zip archive.

    Raises BadZip if it is truncated, has too many entries, or would unpack to more than any log.
    """

    def __init__(self, file: BufferedReader) -> None:
        length = os.fstat(file.fileno()).st_size
        file.seek(max(0, length - 0xFFFF - _END.size))
        tail = file.read()
        start = tail.rfind(b"PK\5\6")
        if start < 0 or start + _END.size > len(tail):
            raise BadZip("it is truncated, or not a zip archive: its central directory is missing")
        # each entry becomes an object before they are counted
        if _END.unpack_from(tail, start)[5] > MOST_DIRECTORY:
            raise BadZip(f"it has more than {count(MOST_ENTRIES)} entries")
        try:
            self._zip = ZipFile(file)
        except (BadZipFile, ValueError, OverflowError, struct.error, NotImplementedError) as error:
            raise BadZip(f"it is damaged ({error})") from error

        total = sum(info.file_size for info in self._zip.infolist())
        if len(self._zip.infolist()) > MOST_ENTRIES:
            raise BadZip(f"it has more than {count(MOST_ENTRIES)} entries")
        if total > ALWAYS_UNPACKED + MOST_RATIO * length:
            raise BadZip(
                f"it would unpack to {count(total >> 20)} MiB, more than {MOST_RATIO} times "
                f"its size"
            )

    @property
    def names(self) -> Iterable[str]:
        """The names of the members, each once."""
        return self._zip.NameToInfo.keys()

    def read(self, name: str) -> bytes:
        """The unpacked member; the last one if several have the name. Raises BadZip."""
        size = self._zip.getinfo(name).file_size
        if size > LARGEST_MEMBER:
            raise BadZip(f"it is larger than {LARGEST_MEMBER >> 20} MiB")
        try:
            with self._zip.open(name) as member:
                data: bytes = member.read(size + 1)
        except (
            BadZipFile,
            zlib.error,
            ZstdError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            OSError,
        ) as error:
            raise BadZip(f"it is damaged ({error})") from error

        return data
