"""Which packages beside karat a module of tests needs: that of its folder, and those that it imports in any way."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import karat
from karat.installation import plugin_modules

__all__ = ["EVERY_PACKAGE", "has_kind", "has_package", "needed_packages"]

EVERY_PACKAGE = (
    "karat_coding", "karat_conversations", "karat_imports", "karat_query", "karat_scale", "karat_servers",
    "karat_studies", "karat_viewer",
)  # fmt: skip
"""For tests of what all of them make together, such as the first help."""

TESTS = Path(__file__).resolve().parent
_PACKAGE = re.compile(r"^\s*(?:from|import) (?:tests\.)?(karat_[a-z]+)\b", re.MULTILINE)
_OURS = re.compile(r"^\s*from (?:(tests|benchmarks)\.?|\.)([\w.]*) import (.+)", re.MULTILINE)


def has_kind(kind: str) -> bool:
    """Whether this copy of karat has a kind of dataset."""
    return kind in plugin_modules("kinds")


def has_package(package: str) -> bool:
    """Whether this copy of karat has a package beside the core; another copy may be installed too."""
    return (Path(karat.__file__).resolve().parents[1] / package).is_dir()


@cache
def needed_packages(module: Path) -> frozenset[str]:
    """The names of the packages without which a module of tests cannot be imported."""
    text = module.read_text(encoding="utf-8")
    needed = set(_PACKAGE.findall(text))
    if module.is_relative_to(TESTS):
        needed |= {name for name in module.relative_to(TESTS).parts[:1] if name.startswith("karat_")}
    for top, place, names in _OURS.findall(text):
        folder = (TESTS.parent / top if top else module.parent).joinpath(*place.split("."))
        for path in (folder.with_suffix(".py"), *(folder / f"{name.split()[0]}.py" for name in names.split(","))):
            if path.is_file() and path != module:
                needed |= needed_packages(path)
    return frozenset(needed)
