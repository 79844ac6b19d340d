"""The files of an experiment that workers get: its folder and other named paths, as archives with a
digest.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from karat.context.archive import END, BadArchive, member, members
from karat.context.trees import Entry
from karat.errors import BadOption
from karat.files import open_regular

if TYPE_CHECKING:
    from karat.config import Experiment

MOST_BYTES = 256 * 2**20
"""Of all files that a worker is sent, before they are packed."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def pack(experiment: Experiment, *, results: Path) -> dict[str, bytes]:
    """Archives by the path of their content: the experiment's folder, and paths elsewhere.

    Left out are hidden files (but not of skills, plug-ins and workspaces), `results` and other run
    folders, the dataset (samples travel with their trials), links and special files. Raises
    BadOption if there is too much.
    """
    parts = []
    for condition in experiment.conditions:
        for part in condition.context.parts:
            parts.append(part.path.absolute())

    if experiment.cassettes is not None:
        cassettes = [experiment.cassettes.folder]
    else:
        cassettes = []

    roots = dict.fromkeys(path.absolute() for path in (experiment.folder, *parts, *cassettes))
    skipped = {results.resolve(), experiment.dataset.path.resolve()}
    left = MOST_BYTES
    archives = dict[str, bytes]()
    for root in roots:
        written = io.BytesIO()
        with gzip.GzipFile(fileobj=written, mode="wb", compresslevel=1, mtime=0) as stream:
            for path, entry in _entries(root, skipped, hidden=root in parts):
                left -= entry.size
                if left < 0:
                    problem = (
                        f"{root} and what belongs to it hold more than {MOST_BYTES // 2**20} MB"
                    )
                    remedy = (
                        "each worker gets a copy: move the experiment into a folder with what it "
                        "needs"
                    )
                    raise BadOption("execution.executor", f"{problem}, and {remedy}")

                with open_regular(path) as file:
                    data = file.read(entry.size)
                stream.write(member(entry, data.ljust(entry.size, b"\0")))

            stream.write(END)

        archives[str(root)] = written.getvalue()

    return archives


def _entries(
    root: Path, skipped: set[Path], *, hidden: bool = False
) -> Iterator[tuple[Path, Entry]]:
    """Files, each below `files/`, as in karat's archives."""
    if root.is_file():
        yield root, Entry(f"files/{root.name}", size=root.stat().st_size)
        return

    for folder, folders, files in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if hidden or _is_shipped(here / name, skipped))
        for path in sorted(here / name for name in files if hidden or not name.startswith(".")):
            if path.is_file() and not path.is_symlink() and path.resolve() not in skipped:
                status = path.stat()
                name = f"files/{path.relative_to(root).as_posix()}"
                yield (
                    path,
                    Entry(name, executable=bool(status.st_mode & 0o100), size=status.st_size),
                )


def _is_shipped(folder: Path, skipped: set[Path]) -> bool:
    if folder.name.startswith(".") or folder.name == "__pycache__" or folder.is_symlink():
        return False
    return folder.resolve() not in skipped and not (folder / "run.json").exists()


def digest_of(archive: bytes) -> str:
    """32 hex digits."""
    return blake2b(archive, digest_size=16).hexdigest()


def portable(experiment: Experiment) -> Experiment:
    """The experiment with only the environment variables that it names."""
    named = {*_VARIABLE.findall(experiment.text), *experiment.secrets}
    env = {name: value for name, value in experiment.env.items() if name in named}
    return experiment.moved({}, {**env, **experiment.secrets})


def unpack(
    experiment: Experiment, digests: Mapping[str, str], archives: Mapping[str, bytes], folder: Path
) -> Experiment:
    """The experiment in the new folders below `folder`, with this machine's variables in addition
    to its own.

    Raises BadOption for archives that do not match `digests`.
    """
    places: dict[Path, Path] = {}
    for number, (root, digest) in enumerate(digests.items()):
        archive = archives.get(root, b"")
        if digest_of(archive) != digest:
            raise BadOption(
                "execution.executor",
                f"the files of {root} arrived damaged: their digest is another",
            )

        target = folder / f"shipped-{number}"
        target.mkdir(mode=0o700)
        try:
            names = []
            for entry, data in members(io.BytesIO(archive), at_most=2 * MOST_BYTES):
                name = entry.path.removeprefix("files/")
                path = target / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                path.chmod(0o755 if entry.executable else 0o644)
                names.append(name)
        except BadArchive as error:
            raise BadOption(
                "execution.executor", f"the files of {root} arrived damaged: {error}"
            ) from error

        one_file = names == [Path(root).name] and Path(root) != experiment.folder
        places[Path(root)] = target / names[0] if one_file else target

    return experiment.moved(places, {**os.environ, **experiment.env})
