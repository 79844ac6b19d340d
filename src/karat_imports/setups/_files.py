"""Files that a configuration names: regular ones of its own project, of limited size."""

from __future__ import annotations

import json
from pathlib import Path

from karat.documents.nodes import Node, plain
from karat.documents.reader import Limits, parse
from karat.documents.rows import read_rows
from karat.documents.storable import why_unfit
from karat.errors import BadDataset, unreadable
from karat.files import open_regular
from karat.records import Json, JsonObject

_MOST_BYTES = 10_000_000
_MOST_FILES = 500  # that a pattern with `*` may name
_LIMITS = Limits(max_bytes=_MOST_BYTES, max_nodes=400_000)
_TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".xlsx")


class NotRead(Exception):
    """Why a named file cannot be taken, as the end of a sentence."""


class ProjectFiles:
    """The files of the project that a configuration belongs to.

    The project is the repository around it, or its folder: a configuration from elsewhere must not
    copy files of other places into questions.
    """

    def __init__(self, home: Path) -> None:
        """`home`: the folder of the configuration, where relative names start."""
        self.home = home.resolve()
        around = (self.home, *self.home.parents)
        self._root = next((folder for folder in around if (folder / ".git").exists()), self.home)

    def path(self, name: str) -> Path:
        """The path of a named file. Raises NotRead if it is outside of the project."""
        try:
            path = (self.home / name.removeprefix("file://")).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise NotRead(f"'{name:.80}' is no path") from error

        if not path.is_relative_to(self._root):
            raise NotRead(f"'{name:.80}' is outside of the project")
        return path

    def data(self, path: Path) -> bytes:
        """The content of a file. Raises NotRead."""
        try:
            with open_regular(path, within=self._root, at_most=_MOST_BYTES) as file:
                return file.read()
        except (OSError, ValueError) as error:
            raise NotRead(f"'{path.name}' cannot be read: {unreadable(error)}") from error

    def text(self, path: Path) -> str:
        """The content of a text file. Raises NotRead."""
        try:
            return self.data(path).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise NotRead(f"'{path.name}' is not UTF-8") from error

    def document(self, path: Path) -> Json:
        """The value in a YAML or JSON file. Raises NotRead."""
        return document(self.data(path), path.name)

    def rows(self, path: Path) -> list[JsonObject]:
        """The rows of a table (CSV, JSON Lines, Excel). Raises NotRead."""
        self.data(path)  # within the project, and not too large
        try:
            return [dict(row) for _, row in read_rows(path).rows]
        except BadDataset as error:
            raise NotRead(f"'{path.name}': {error.faults[0]}") from error

    def matching(self, name: str) -> list[Path]:
        """The files that a name means, which may have `*` in it. Raises NotRead."""
        pattern = name.removeprefix("file://")
        if not any(mark in pattern for mark in "*?["):
            return [self.path(name)]

        found: list[Path] = []
        try:
            for place, path in enumerate(self.home.glob(pattern.removeprefix("./"))):
                if place == _MOST_FILES:
                    raise NotRead(f"'{pattern:.80}' names more than {_MOST_FILES} files")
                found.append(self.path(str(path)))
        except (ValueError, NotImplementedError, OSError) as error:
            raise NotRead(f"'{pattern:.80}' is no pattern") from error

        return sorted(found)


def document(data: bytes, name: str) -> Json:
    """The value in YAML or JSON, with merge keys (`<<`) followed. Raises NotRead."""
    if name.lower().endswith(".json"):
        try:
            value = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise NotRead(f"'{name}' is not JSON: {error}") from error
    else:
        read = parse(data, what="a configuration", limits=_LIMITS)
        if read.faults:
            raise NotRead(f"'{name}': {read.faults[0]}")
        value = plain(read.root or Node(None))

    if (unfit := why_unfit(value)) is not None:
        raise NotRead(f"'{name}' {unfit}")
    return _merged(value)


def is_table(path: Path) -> bool:
    """Whether a file holds rows."""
    return path.suffix.lower() in _TABLES


def _merged(value: Json) -> Json:
    if isinstance(value, list):
        return [_merged(below) for below in value]
    if isinstance(value, dict):
        return _merged_object(value)
    return value


def _merged_object(value: JsonObject) -> JsonObject:
    result: JsonObject = {}
    inherited = value.get("<<")
    for parent in inherited if isinstance(inherited, list) else [inherited]:
        if isinstance(parent, dict):
            merged = _merged_object(parent)
            result |= {key: below for key, below in merged.items() if key not in result}

    own = {key: _merged(below) for key, below in value.items() if key != "<<"}
    return result | own
