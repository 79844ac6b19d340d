"""What is installed and what is sent around: studies, presets and examples are files, and no module imports them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "karat"
DATA = ("kinds/study/studies", "kinds/study/presets", "kinds/study/scaffold", "rubrics")


def wanted() -> set[str]:
    """Every file of the package that is no module, below `karat/`."""
    return {
        path.relative_to(PACKAGE.parent).as_posix()
        for folder in DATA
        for path in (PACKAGE / folder).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }


@pytest.mark.needs_kind("study")
def test_there_is_something_to_be_sent():
    found = wanted()
    for name in (
        "kinds/study/studies/framing/copy.jsonl",
        "kinds/study/presets/human.md",
        "kinds/study/scaffold/bridge/study.yaml",
    ):
        assert f"karat/{name}" in found


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_data_files_are_in_what_is_built(kind):
    if kind == "wheel":
        from hatchling.builders.wheel import WheelBuilder as Builder
    else:
        from hatchling.builders.sdist import SdistBuilder as Builder  # type: ignore[assignment]
    builder = Builder(str(ROOT))
    found = {Path(one.distribution_path).as_posix() for one in builder.recurse_included_files()}
    before = "" if kind == "wheel" else "src/"
    missing = {name for name in wanted() if f"{before}{name}" not in found}
    assert missing == set()
