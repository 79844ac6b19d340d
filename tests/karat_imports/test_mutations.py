"""However a file of another tool is damaged, it becomes a sound run folder, a BadDataset, or a question (BadOption)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.karat_imports.imported import FILES

import karat
from karat import plugins
from karat.errors import BadDataset, BadOption
from karat.journal import verify
from karat_imports.imported import import_results

ODD: tuple[object, ...] = (
    *(None, True, "", "0.5", "C", -1, 10**30, 1e308, 0.5, [], {}, [[]], [None], {"": {}}, {"a": [1]}),
    *(float("nan"), float("inf"), "\ud800", "<script>alert(1)</script>", "\x1b[2J", "x" * 300, [{"id": []}], "../x"),
)
CASES = [
    pytest.param(folder.name, path, id=f"{folder.name}-{path.name}")
    for folder in sorted(FILES.iterdir())
    if folder.name.replace("-", "_") in plugins.names("importers")
    for path in sorted(folder.rglob("*.json*"))
]


def places(value: Any, above: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [above, *(place for key, item in inner for place in places(item, (*above, key)))]


def damaged(whole: Any, damages: list[tuple[int, object]]) -> Any:
    """The same with a value at each of some places removed or replaced."""
    found = {"whole": copy.deepcopy(whole)}
    for number, odd in damages:
        known = [("whole", *place) for place in places(found["whole"])]
        *above, last = known[number % len(known)]
        holder: Any = found
        for key in above:
            holder = holder[key]
        if odd is ... and above:
            del holder[last]
        else:
            holder[last] = None if odd is ... else copy.deepcopy(odd)
    return found["whole"]


DAMAGES = st.lists(st.tuples(st.integers(0, 2**20), st.sampled_from((..., *ODD))), min_size=1, max_size=6)


@pytest.mark.quick(13)
@pytest.mark.parametrize(("name", "path"), CASES)
@given(damages=DAMAGES, cut=st.none() | st.floats(0, 1))
def test_a_damaged_file_is_a_sound_run_or_bad(
    name: str, path: Path, damages: list[tuple[int, object]], cut: float | None
) -> None:
    by_line = path.suffix == ".jsonl"
    text = path.read_text()
    whole = damaged([json.loads(line) for line in text.splitlines()] if by_line else json.loads(text), damages)
    text = "\n".join(map(json.dumps, whole)) if by_line and isinstance(whole, list) else json.dumps(whole)
    with TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        file.write_text(text if cut is None else text[: int(cut * len(text))])
        try:
            made = list(import_results(name, [file], Path(folder) / "runs"))
        except (BadDataset, BadOption):
            return
        for imported in made:
            assert verify(imported.run.path).damages == ()
            assert karat.summarize(imported.run).samples == imported.run.info.plan.samples
