"""A file as a tree of nodes: every value keeps its line, its spelling and its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal

from pydantic import BaseModel

from karat.errors import Fault

__all__ = ["Node", "Place", "dotted", "fault_at", "from_python", "line_of", "plain", "printable", "walk"]

Place = tuple[str | int, ...]
Source = Literal["default", "file", "environment", "flag"]


@dataclass(slots=True)
class Node:
    """One value of the file: a scalar, a mapping of nodes, or a list of nodes."""

    value: Any
    line: int | None = None  # 1-based, of the key; None: not from a file
    written: str | None = None  # an unquoted scalar as it stands in the file
    source: Source = "file"
    template: str | None = None  # the text before ${NAME} was filled in; None: it names no variable
    variables: tuple[str, ...] = field(default=())  # the environment variables that the text names
    unset: bool = False  # one of them has no value: nothing can be said of this value

    def get(self, *place: str | int) -> Node | None:
        """What stands at `place` below this node; None where nothing does."""
        found: Node | None = self
        for key in place:
            below = found.value if found is not None else None
            if isinstance(below, dict):
                found = below.get(key)
            elif isinstance(below, list) and isinstance(key, int) and 0 <= key < len(below):
                found = below[key]
            else:
                return None
        return found

    def children(self) -> list[tuple[str | int, Node]]:
        """Keys or positions, and what stands there; nothing for a scalar."""
        if isinstance(self.value, dict):
            return list(self.value.items())
        if isinstance(self.value, list):
            return list(enumerate(self.value))
        return []


def dotted(place: Place) -> str:
    """A place as messages and `--set` write it: `scorers.0.pattern`."""
    return ".".join(str(part) for part in place)


def fault_at(place: str, node: Node, message: str) -> Fault:
    """A fault in a value, with its line, or the flag that it came from."""
    if node.source == "flag":
        return Fault(place=f"--set {place}", message=message)
    return Fault(place=place, message=message, line=node.line)


def line_of(root: Node, place: Place) -> int | None:
    """The line of what stands at a place; of the nearest value above it, where nothing stands there."""
    for end in range(len(place), -1, -1):
        node = root.get(*place[:end])
        if node is not None and node.line is not None:
            return node.line
    return None


def plain(node: Node) -> Any:
    """The values alone."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def printable(value: Any) -> Any:
    """A value as YAML and JSON can hold it: a function by its name, another object by its type's."""
    if isinstance(value, Mapping):
        return {str(key): printable(below) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [printable(below) for below in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, PurePath):
        return str(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"


def walk(node: Node, place: Place = ()) -> list[tuple[Place, Node]]:
    """Every node with its place, parents first."""
    found = [(place, node)]
    for key, child in node.children():
        found.extend(walk(child, (*place, key)))
    return found


def from_python(value: Any) -> Node:
    """Mappings, models, sequences, texts and paths as nodes; anything else (a function, say) stays itself."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        return Node({str(key): from_python(child) for key, child in value.items()})
    if isinstance(value, PurePath):
        return Node(str(value))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return Node([from_python(child) for child in value])
    return Node(value)
