"""Packages whose names are imported from their modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str, held: Mapping[str, str], *, family: str | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    `held`: module → the names it holds, or "" for the module itself. `family`: the plug-ins that
    add names, each in a module with its name.
    """
    homes = {name: module for module, names in held.items() for name in names.split() or [module]}

    def modules() -> Mapping[str, str]:
        # only for names that are not here: it lists folders
        from karat.installation import plugin_modules

        if family:
            return plugin_modules(family)
        return {}

    def get(name: str) -> object:
        if name not in homes:
            module = modules().get(name)
            if module is not None:
                return getattr(import_module(module), name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        home = import_module(f"{package}.{homes[name]}")
        if held[homes[name]]:
            return getattr(home, name)
        return home

    return get, lambda: sorted({*vars(sys.modules[package]), *homes, *modules()})
