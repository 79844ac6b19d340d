"""YAML as plain values: duplicate keys and aliases are faults, and nothing is constructed but plain data."""

from __future__ import annotations

from typing import Any

import yaml

from karat.errors import BadRubric, Fault

__all__ = ["document"]

_MAX_DEPTH = 20


def document(raw: bytes, source: str) -> Any:
    """What the file holds. Raises BadRubric where it cannot be read."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"must be UTF-8: byte {error.start} cannot be read"
        raise BadRubric(source, [Fault(place="file", message=message)]) from error
    try:
        _refuse_aliases(text, source)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        return _plain(root, yaml.SafeLoader(""), source) if root is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else None
        message = f"cannot be read as YAML: {getattr(error, 'problem', None) or error}"
        raise BadRubric(source, [Fault(place="file", message=message, line=line)]) from error


def _refuse_aliases(text: str, source: str) -> None:
    """An alias can make a small file large, and nesting can exhaust the stack: a rubric needs neither."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark is not None else None
        if isinstance(event, yaml.AliasEvent):
            raise BadRubric(source, [Fault(place="file", message="a rubric may not hold YAML aliases", line=line)])
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH:
            raise BadRubric(source, [Fault(place="file", message="is nested too deeply", line=line)])


def _plain(node: yaml.Node, loader: yaml.SafeLoader, source: str) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(inner, loader, source) for inner in node.value]
    if not isinstance(node, yaml.MappingNode):
        try:
            return loader.construct_object(node)
        except ValueError as error:  # 2026-13-45 looks like a date
            fault = Fault(place="file", message=f"cannot be read: {error}", line=node.start_mark.line + 1)
            raise BadRubric(source, [fault]) from error
    found: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise BadRubric(source, [Fault(place="file", message="a key must be a plain text or number", line=line)])
        key = _plain(key_node, loader, source)
        if key in found:
            raise BadRubric(source, [Fault(place=str(key), message="stands twice in the same mapping", line=line)])
        found[key] = _plain(value_node, loader, source)
    return found
