"""Folders that an experiment gives to agents: what they may contain, their digest, and copies of
them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path, PurePosixPath

import msgspec

from karat.files import LARGEST_TEXT, open_regular
from karat.formats import count

MOST_ENTRIES = 200_000
"""Files and folders; more would cost every trial seconds."""

MOST_BYTES = 2**30
"""Bytes of all files together."""

_MOST_LINKS = 40  # as Linux follows
_DEEPEST = 100  # levels of folders
LONGEST_PATH = 1000  # characters of a path
_BLOCK = 2**20


class Entry(msgspec.Struct, frozen=True):
    """One file, link or folder."""

    path: str  # from the tree's folder, with "/"
    executable: bool = False  # of a file
    link: str | None = None  # target of a symbolic link; None: not a link
    folder: bool = False
    size: int = 0  # bytes, of a file


class Tree(msgspec.Struct, frozen=True):
    """The content of a folder."""

    entries: tuple[Entry, ...]  # sorted by path, a folder before what is in it
    size: int  # bytes of all files
    # 32 hex digits of paths, contents, links and execute bits; without dates and owners
    digest: str


def read_tree(folder: Path) -> Tree:
    """The folder's files, folders and links, with the digest of everything.

    Raises OSError if it cannot be read, and ValueError for content that agents are never given:
    FIFOs, sockets and devices, set-uid and set-gid files, links out of the folder, names that are
    not printable UTF-8, more than `MOST_ENTRIES` entries or `MOST_BYTES` bytes.
    """
    top = folder.resolve(strict=True)
    entries: list[Entry] = []
    size = 0
    for entry in _walk(top, ""):
        size += entry.size
        entries.append(entry)
        if len(entries) > MOST_ENTRIES:
            raise ValueError(f"has more than {count(MOST_ENTRIES)} files and folders")
        if size > MOST_BYTES:
            raise ValueError(f"has more than {count(MOST_BYTES // 2**20)} MiB of files")

    entries.sort(key=lambda entry: entry.path)
    digest = blake2b(digest_size=16)
    for entry in entries:
        digest.update(msgspec.json.encode(entry))
        if not entry.folder and entry.link is None:
            content = blake2b(digest_size=16)
            with open_regular(top / entry.path, within=top) as file:
                while block := file.read(_BLOCK):
                    content.update(block)

            digest.update(content.hexdigest().encode())

    return Tree(tuple(entries), size, digest.hexdigest())


def read_file(path: Path) -> str:
    """One file's digest, 32 hex digits.

    Raises OSError if it is not a regular file, or is larger than `LARGEST_TEXT`.
    """
    with open_regular(path, at_most=LARGEST_TEXT) as file:
        return blake2b(file.read(LARGEST_TEXT), digest_size=16).hexdigest()


def copy_tree(tree: Tree, source: Path, target: Path) -> None:
    """Copies what `read_tree` found in `source` to the new folder `target`, with the permissions of
    a checkout.

    The owner can write all files and folders, even if the originals were read-only: agents work in
    them, and they are removed later.
    """
    source = source.resolve(strict=True)
    target.mkdir(mode=0o700)
    for entry in tree.entries:
        place = target / entry.path
        if entry.folder:
            place.mkdir(mode=0o755)
        elif entry.link is not None:
            place.symlink_to(entry.link)
        else:
            mode = 0o755 if entry.executable else 0o644
            with (
                open_regular(source / entry.path, within=source) as read,
                open(place, "xb") as written,
            ):
                _copy(read.fileno(), written.fileno(), entry.size)

            place.chmod(mode)


def _copy(read: int, written: int, size: int) -> None:
    """Copies a file, sharing its blocks if the file system can."""
    left = size
    try:
        while left > 0 and (count := os.copy_file_range(read, written, left)):
            left -= count
    except (AttributeError, OSError):  # not Linux, or across two file systems
        pass

    while left > 0 and (block := os.read(read, min(left, _BLOCK))):
        os.write(written, block)
        left -= len(block)

    if left:
        raise OSError(f"a file became {left} bytes shorter while being copied")


def _walk(folder: Path, below: str, depth: int = 0) -> Iterator[Entry]:
    if depth > _DEEPEST:
        raise ValueError(f"has more than {_DEEPEST} levels of folders")
    with os.scandir(folder) as entries:
        for entry in entries:
            path = f"{below}{entry.name}"
            # false too for the surrogates of names that are not UTF-8
            if not entry.name.isprintable():
                raise ValueError(f"has a name that is not printable UTF-8: {path!a}")
            status = entry.stat(follow_symlinks=False)
            mode = status.st_mode
            if stat.S_ISDIR(mode):
                yield Entry(path, folder=True)
                yield from _walk(Path(entry.path), f"{path}/", depth + 1)
            elif stat.S_ISLNK(mode):
                # The target of a link, as text: nothing is followed.
                target = os.readlink(Path(entry.path))
                if not leads_inside(path, target):
                    raise ValueError(f"has a symbolic link that leads out of it: {path}")
                if not target.isprintable():
                    raise ValueError(
                        f"has a symbolic link with a target that is not printable UTF-8: {path}"
                    )

                yield Entry(path, link=target)
            elif not stat.S_ISREG(mode):
                raise ValueError(
                    f"has a file that is not regular (a FIFO, socket or device): {path}"
                )
            elif mode & (stat.S_ISUID | stat.S_ISGID):
                raise ValueError(f"has a set-uid or set-gid file: {path}")
            else:
                yield Entry(path, executable=bool(mode & stat.S_IXUSR), size=status.st_size)


def leads_inside(path: str, target: str) -> bool:
    """Whether a link cannot lead out of its tree, even through other such links.

    >>> (
    ...     leads_inside("a/b", "../c"),
    ...     leads_inside("a/b", "../../c"),
    ...     leads_inside("a", "/etc"),
    ...     leads_inside("a", "b/.."),
    ... )
    (True, False, False, False)
    """
    parts = target.split("/")
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    return bool(parts[0]) and up <= path.count("/") and ".." not in parts[up:]


def leads_out(folder: Path, path: str, *, root: str = "") -> bool:
    """Whether a path, relative to a folder unless absolute, leads out of that folder when its links
    are followed.

    `root`: where this process sees the root of the one that will use the path, such as
    `/proc/PID/root`.

    >>> (
    ...     leads_out(Path("/work"), "a/../b"),
    ...     leads_out(Path("/work"), "../work2/b"),
    ...     leads_out(Path("/work"), "~/b"),
    ... )
    (False, True, True)
    """
    if path.startswith("~") or "\0" in path:
        return True
    return not _followed(folder / path, root).is_relative_to(_followed(folder, root))


def _followed(path: Path, root: str) -> PurePosixPath:
    """Where a path leads; the root for a chain of links that does not end."""
    waiting = [*reversed(path.parts)]
    place = list[str]()
    links = 0
    while waiting and links <= _MOST_LINKS:
        part = waiting.pop()
        if part == "..":
            del place[-1:]
            continue

        try:
            target = PurePosixPath(os.readlink("/".join([root, *place, part.strip("/")])))
        except OSError:  # no link, or nothing
            if part != "/":
                place += [part]
        else:
            links += 1
            if target.is_absolute():
                place = []
            waiting += reversed(target.parts)

    return PurePosixPath("/", *place if not waiting else ())


def is_plain_name(path: str) -> bool:
    """Whether a tree can have an entry with that name: printable UTF-8, not too deep, inside the
    tree.

    >>> [is_plain_name(path) for path in ("a/b", "../a", "a\\nb", "/a")]
    [True, False, False, False]
    """
    parts = path.split("/")
    return (
        path.isprintable()
        and len(path) < LONGEST_PATH
        and len(parts) <= _DEEPEST
        and not {"", ".", ".."} & {*parts}
    )
