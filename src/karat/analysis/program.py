"""Which code a process of karat is: its files, and what reckons for them."""

from __future__ import annotations

import hashlib
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import karat

__all__ = ["program"]

_SETTLED = 2 * 10**9  # nanoseconds by which the clock of a file system may be behind
_RECKONING = ("msgspec", "numpy", "pydantic", "pyyaml", "scipy")


def program(root: Path = Path(__file__).parents[1], *, begun: int = karat.BEGUN) -> str:
    """Changes with the code below `root`: a version says nothing of a checkout that somebody works in.

    Empty where a file has changed since the process began, `begun` in nanoseconds since 1970: what runs may be what
    it was before. Raises OSError.
    """
    told = [karat.__version__, sys.version, *(f"{name} {_version(name)}" for name in _RECKONING)]
    for file in sorted(root.rglob("*.py")):
        found = file.stat()
        if max(found.st_mtime_ns, found.st_ctime_ns) > begun - _SETTLED:
            return ""
        told.append(f"{file.relative_to(root)} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(told).encode("utf-8", "replace")).hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
