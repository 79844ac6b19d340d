"""Packages whose names are imported from their modules when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy(package: str, held: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package. `held`: module → the names it holds, or "" for the module itself."""
    homes = {name: module for module, names in held.items() for name in names.split() or [module]}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        return getattr(module, name) if held[homes[name]] else module

    return get, lambda: sorted({*vars(sys.modules[package]), *homes})
