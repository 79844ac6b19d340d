"""The reference vectors of `../shared/data/vectors/numeric.json`, and the conversations beside them."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


@cache
def vectors() -> list[dict[str, Any]]:
    path = DATA / "vectors" / "numeric.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def rows(ending: str, *, key: str = "expected") -> list[Any]:
    """The rows of these functions as parameters; without the data one that is skipped by name."""
    if not vectors():
        return [pytest.param(None, marks=pytest.mark.skip(reason="no ../shared/data/vectors/numeric.json"))]
    matching = [row for row in vectors() if row["function"].endswith(ending) and key in row]
    return [pytest.param(row, id=f"{at} {row['function']} {row['note'][:40]}") for at, row in enumerate(matching)]


def table_of(given: Any) -> Any:
    """`"TAB"` stands for the fixture."""
    if given != "TAB":
        return given
    return next(row["expected"] for row in vectors() if row["function"] == "fixture")


@cache
def conversations() -> list[dict[str, Any]]:
    path = DATA / "convfinqa" / "dev.json"
    if not path.is_file():
        pytest.skip("no ../shared/data/convfinqa/dev.json")
    return json.loads(path.read_text(encoding="utf-8"))["dev"]
