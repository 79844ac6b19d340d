"""`--set KEY=VALUE`: a value on the command line is read as the experiment file would read it."""

from __future__ import annotations

from typing import Any

from karat.errors import BadOption

__all__ = ["parsed"]


def parsed(option: str, text: str) -> Any:
    """The value of a YAML text. Raises BadOption in the name of the option.

    >>> parsed("--set indent", "4"), parsed("--scorer", "{regex: {pattern: yes.*}}")
    (4, {'regex': {'pattern': 'yes.*'}})
    """
    from karat.documents import nodes, reader

    node, problem = reader.parse_value(text)
    if node is None:
        raise BadOption(option, f"the value is {problem}")
    return nodes.plain(node)
