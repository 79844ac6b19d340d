"""A file as a tree of nodes: every value keeps its line, its column, its spelling and its
source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Literal, get_args

import msgspec
from pydantic import BaseModel

from karat.errors import Fault

Place = tuple[str | int, ...]
Source = Literal["default", "file", "environment", "flag"]


class Node(msgspec.Struct, eq=False):
    """One value of the file: a scalar, a mapping of nodes, or a list of nodes."""

    value: object
    line: int | None = None  # 1-based, of the key; None: not from a file
    column: int | None = None  # 1-based, likewise
    written: str | None = None  # an unquoted scalar as the file has it
    source: Source = "file"
    template: str | None = None  # the text before ${NAME} was filled in; None: it names no variable
    variables: tuple[str, ...] = ()  # the environment variables that the text names
    unset: bool = False  # one of them is not set, so this value is unknown
    file: str = ""  # another file that it was read from, with its line there

    def get(self, *place: str | int) -> Node | None:
        """The node at `place` below this one; None if there is none."""
        node, missing = self.nearest(place)
        return None if missing else node

    def nearest(self, place: Place) -> tuple[Node, Place]:
        """The deepest existing node on the way to `place`, and the rest of the place."""
        node = self
        for depth, key in enumerate(place):
            below: object = None
            if isinstance(node.value, dict):
                below = node.value.get(key)
            elif (
                isinstance(node.value, list) and isinstance(key, int) and 0 <= key < len(node.value)
            ):
                below = node.value[key]

            if not isinstance(below, Node):
                return node, place[depth:]
            node = below

        return node, ()

    def children(self) -> list[tuple[str | int, Node]]:
        """Keys or positions with their nodes; nothing for a scalar."""
        if isinstance(self.value, dict):
            return list(self.value.items())
        return list(enumerate(self.value)) if isinstance(self.value, list) else []

    def keys(self) -> set[str | int]:
        """Its keys or positions."""
        return {key for key, _ in self.children()}

    @property
    def strongest(self) -> Source:
        """Where the value comes from; for a list, the strongest source of its entries."""
        return max(
            [self.source, *(child.strongest for _, child in self.children())],
            key=get_args(Source).index,
        )


def dotted(place: Place) -> str:
    """A place as messages and `--set` write it: `scorers.0.pattern`."""
    return ".".join(str(part) for part in place)


def fault_at(root: Node, place: Place, message: str) -> Fault:
    """A fault with its line and column, or with the flag that set the value; a missing value uses
    its parent's.
    """
    node, _ = root.nearest(place)
    if node.file:
        message = f"{message} ({node.file})"
    if node.source == "flag":
        return Fault(place=f"--set {dotted(place)}", message=message)
    if node is root:
        return Fault(place=dotted(place) or "file", message=message)
    return Fault(place=dotted(place), message=message, line=node.line, column=node.column)


def plain(node: Node) -> Any:
    """The values alone."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def printable(value: object) -> Any:
    """A value as YAML and JSON can hold it: a function by its name, another object by its
    type's, also a mapping, a list or a text that can be called.
    """
    if not callable(value):
        if isinstance(value, Mapping):
            return {str(key): printable(below) for key, below in value.items()}
        if isinstance(value, (list, tuple)):
            return [printable(below) for below in value]
        if value is None or isinstance(value, (str, int, float, bool)):
            return value
        if isinstance(value, PurePath):
            return str(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(named, "__module__", None) or "builtins"  # methods of built-in types have none
    return f"{module}:{named.__qualname__}"


def walk(node: Node, place: Place = ()) -> list[tuple[Place, Node]]:
    """Every node with its place, parents first."""
    nodes = [(place, node)]
    for key, child in node.children():
        nodes.extend(walk(child, (*place, key)))

    return nodes


def from_python(value: object) -> Node:
    """Mappings, models, sequences, texts and paths as nodes; anything else (a function, say) stays
    itself, and so does the `target` of an agent, which may be a model.
    """
    if callable(value) and isinstance(value, (Mapping, Sequence)):
        return Node(value.__call__)
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_unset=True)
    if isinstance(value, Mapping):
        entries = {}
        for key, child in value.items():
            kept = str(key) == "target" and isinstance(child, BaseModel)
            entries[str(key)] = Node(child) if kept else from_python(child)

        return Node(entries)

    if isinstance(value, PurePath):
        return Node(str(value))
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return Node([from_python(child) for child in value])
    return Node(value)
