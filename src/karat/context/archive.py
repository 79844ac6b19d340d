"""Archives in a run folder: gzipped tar files, read without trusting them.

`tarfile` only parses headers. Every size is checked before anything is read, and only regular
files, folders and links that stay inside are accepted.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from karat.context.trees import LONGEST_PATH, Entry, is_plain_name, leads_inside

_BLOCK = 512
END = bytes(2 * _BLOCK)
"""The end of an archive."""


class BadArchive(ValueError):
    """An archive that karat did not write."""


def member(entry: Entry, data: bytes = b"") -> bytes:
    """An entry in the archive's format."""
    info = tarfile.TarInfo(entry.path)
    if entry.folder:
        info.type = tarfile.DIRTYPE
    elif entry.link is None:
        info.type = tarfile.REGTYPE
    else:
        info.type = tarfile.SYMTYPE

    info.size = len(data)
    info.mode = 0o755 if entry.folder or entry.executable else 0o644
    info.linkname = entry.link or ""
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "strict") + data + bytes(-len(data) % _BLOCK)


def members(file: BinaryIO, *, at_most: int) -> Iterator[tuple[Entry, bytes]]:
    """The entries of an archive of at most `at_most` bytes, with files' contents.

    Raises BadArchive.
    """
    long: dict[bytes, str] = {}
    with gzip.GzipFile(fileobj=file) as stream:
        while (block := _read(stream, _BLOCK)) != END[:_BLOCK]:
            try:
                info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
            except (tarfile.HeaderError, UnicodeDecodeError) as error:
                raise BadArchive(f"a header in it is damaged: {error}") from error

            extra = info.type in (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
            at_most -= _BLOCK + info.size
            if info.size < 0 or at_most < 0 or (extra and info.size > 4 * LONGEST_PATH + 1):
                raise BadArchive("it holds more than karat writes")
            data = _read(stream, info.size + -info.size % _BLOCK)[: info.size]
            if extra:
                long[info.type] = data.rstrip(b"\0").decode("utf-8", "replace")
            else:
                name = long.get(tarfile.GNUTYPE_LONGNAME, info.name).rstrip("/")
                target = long.get(tarfile.GNUTYPE_LONGLINK, info.linkname)
                if not is_plain_name(name):
                    raise BadArchive(f"a name in it is {name!a:.200}")
                if info.type == tarfile.SYMTYPE and leads_inside(
                    name.removeprefix("files/"), target
                ):
                    entry = Entry(name, link=target)
                elif info.type in (tarfile.REGTYPE, tarfile.DIRTYPE):
                    folder = info.type == tarfile.DIRTYPE
                    entry = Entry(
                        name,
                        executable=bool(info.mode & 0o100) and not folder,
                        folder=folder,
                        size=info.size,
                    )
                else:
                    raise BadArchive(
                        f"'{name}' is neither a file nor a folder nor a link that stays inside"
                    )

                yield entry, data
                long = {}


def _read(stream: gzip.GzipFile, size: int) -> bytes:
    try:
        data = stream.read(size)
    except (OSError, EOFError, zlib.error) as error:
        raise BadArchive(f"it is damaged: {error}") from error

    if len(data) != size:
        raise BadArchive("it ends too early")
    return data
