"""Plug-ins that a later version brings: their options are known now, so that files that name them can be checked.

A file of this name in the family's folder takes the place of an entry here, without a
change to this table: `find` asks the folder first. Whoever adds the plug-in moves the
`Options` into it and deletes the entry; when the table is empty, this module goes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from karat import plugins
from karat.errors import UnknownPlugin

__all__ = ["find", "runs"]


_ANNOUNCED: dict[tuple[str, str], type[Any]] = {}


def find(family: str, name: str, *, folder: Path) -> type[Any]:
    """As plugins.find, and the announced ones where there is no file yet."""
    try:
        return plugins.find(family, name, folder=folder)
    except UnknownPlugin as unknown:
        announced = {known: plugin for (of, known), plugin in _ANNOUNCED.items() if of == family}
        if name in announced:
            return announced[name]
        raise UnknownPlugin(family, name, {*unknown.known, *announced}) from None


def runs(plugin: type[Any]) -> bool:
    """Whether the plug-in is there, and not only announced."""
    return plugin not in _ANNOUNCED.values()
