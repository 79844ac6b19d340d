"""Files of results of other tools, read as runs."""

from __future__ import annotations

from pathlib import Path

from karat.journal import RunFolder
from karat_imports.imported import cached_import, readable_as

__all__ = ["OtherTools"]


class OtherTools:
    """Every format of `karat import` that can be recognized."""

    def format_of(self, path: Path) -> str | None:
        """The importer that recognizes a file; None: none does."""
        return readable_as(path)

    def opened(self, path: Path) -> RunFolder | None:
        """The run in a file, made in the user's cache."""
        return cached_import(path)
