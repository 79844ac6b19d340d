"""`--set a.b.c=value`: settings on the command line that override the file."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from karat.documents.nodes import Node, walk
from karat.documents.reader import parse_value
from karat.errors import Fault, did_you_mean


def apply(root: Node, settings: Sequence[str]) -> list[Fault]:
    """Sets each, in order; missing keys are created.

    The value is YAML: `5`, `[a, b]`, `null`, text.
    """
    write_out(root)
    faults = []
    for setting in settings:
        message = _set(root, setting)
        if message:
            faults.append(Fault(place=f"--set {setting.partition('=')[0]}", message=message))

    return faults


def write_out(root: Node) -> None:
    """Writes `dataset: questions.jsonl` out as `dataset: {path: questions.jsonl}`."""
    dataset = root.get("dataset")
    if dataset is not None and isinstance(dataset.value, str) and dataset.value:
        dataset.value = {"path": msgspec.structs.replace(dataset)}


def follow(root: Node, place: str) -> tuple[Node, list[str]]:
    """The node at a dotted place, and the parts of the place that do not exist.

    A key may contain dots (`conditions.gpt-4.1.system_prompt`): the longest existing one is used.
    """
    here = root
    if place:
        missing = place.split(".")
    else:
        missing = []

    while missing:
        for length in range(len(missing), 0, -1):
            name = ".".join(missing[:length])
            if isinstance(here.value, list) and name.isdecimal():
                below = here.get(int(name))
            else:
                below = here.get(name)

            if below is not None:
                here = below
                missing = missing[length:]
                break
        else:
            break

    return here, missing


def _set(root: Node, setting: str) -> str:
    """The fault of the setting; "" if it was applied."""
    place, equals, text = setting.partition("=")
    keys = place.strip().split(".")
    if not equals or not all(keys):
        return "must be KEY=VALUE, e.g. --set execution.num_repetitions=5"
    value, problem = parse_value(text)
    if problem:
        return f"the value is {problem}"
    for _, node in walk(value):
        node.line = None
        node.source = "flag"

    parent, missing = follow(root, ".".join(keys))
    if not missing:
        parent.value = value.value
        parent.line = None
        parent.source = "flag"
        parent.written = value.written
        return ""

    for depth, key in enumerate(missing, start=1):
        if isinstance(parent.value, list):
            count = len(parent.value)
            return (
                f"'{key}' is not a position in a list of "
                f"{count}{did_you_mean(key, map(str, range(count)))}"
            )

        if parent.value is None:
            parent.value = {}
        if not isinstance(parent.value, dict):
            return f"'{key}' needs a mapping here, but there is a plain value"
        if depth == len(missing):
            parent.value[key] = value
        else:
            parent.value[key] = Node({}, source="flag")

        parent = parent.value[key]

    return ""
