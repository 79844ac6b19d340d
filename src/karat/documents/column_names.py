"""What packages beside the core add to the meanings of columns' names: roles of their own, and
further names of any role; one file per addition, in their folders `column_names`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

import msgspec

from karat.installation import plugin_modules


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """All additions. Names are written together and without case: `sessionid`."""

    names: tuple[tuple[str, str], ...]  # role, name
    before_id: Mapping[str, str]  # first word of a name that ends with `id` → role
    identifying: frozenset[str]  # roles that say, as an id does, what a row is of
    files_of_runs: frozenset[str]  # words in the names of files of answers

    @property
    def roles(self) -> frozenset[str]:
        """The roles of these names."""
        return frozenset(role for role, _ in self.names)


def added() -> Added:
    """What the installed packages add."""
    plugins = []
    for module in plugin_modules("column_names").values():
        loaded = import_module(module)
        (name,) = loaded.__all__
        plugins.append(getattr(loaded, name))

    return Added(
        names=tuple(pair for plugin in plugins for pair in _pairs(plugin.names)),
        before_id={
            word: role
            for plugin in plugins
            for role, word in _pairs(getattr(plugin, "before_id", {}))
        },
        identifying=frozenset(
            role for plugin in plugins for role in getattr(plugin, "identifying", ())
        ),
        files_of_runs=frozenset(
            word for plugin in plugins for word in getattr(plugin, "files_of_runs", "").split()
        ),
    )


def _pairs(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for role, words in names.items():
        for word in words.split():
            yield role, word
