"""Which kinds of dataset a module of tests needs: those that it imports, itself or through other modules of tests."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import karat

__all__ = ["installed", "needed_kinds"]

TESTS = Path(__file__).resolve().parent
KINDS = Path(karat.__file__).resolve().parent / "kinds"
_KIND = re.compile(r"^\s*(?:from|import) karat\.kinds\.([a-z]\w*)|karat\.kinds import ([a-z]+)$", re.MULTILINE)
_OURS = re.compile(r"^\s*from (?:(tests|benchmarks)\.?|\.)([\w.]*) import (.+)", re.MULTILINE)


def installed(kind: str) -> bool:
    """Whether this copy of karat has the folder of a kind."""
    return (KINDS / kind / "__init__.py").is_file()


@cache
def needed_kinds(module: Path) -> frozenset[str]:
    """The names of the kinds without which a module of tests cannot be imported."""
    text = module.read_text(encoding="utf-8")
    needed = {first or second for first, second in _KIND.findall(text)}
    for top, place, names in _OURS.findall(text):
        folder = (TESTS.parent / top if top else module.parent).joinpath(*place.split("."))
        for path in (folder.with_suffix(".py"), *(folder / f"{name.split()[0]}.py" for name in names.split(","))):
            if path.is_file() and path != module:
                needed |= needed_kinds(path)
    return frozenset(needed)
