"""What is installed and what is sent around: studies, presets and examples are files, and no module imports them."""

from __future__ import annotations

import re
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"


def wanted() -> set[str]:
    """Every file of karat and of the packages beside it, below `src/`."""
    return {
        path.relative_to(SOURCE).as_posix()
        for package in SOURCE.glob("karat*")
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.needs_kind("study")
def test_there_is_something_to_be_sent():
    found = wanted()
    for name in (
        "karat_studies/kinds/study/studies/framing/copy.jsonl",
        "karat_studies/kinds/study/presets/human.md",
        "karat_studies/kinds/study/scaffold/bridge/study.yaml",
    ):
        assert name in found


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_every_file_of_every_package_is_in_what_is_built(kind):
    if kind == "wheel":
        from hatchling.builders.wheel import WheelBuilder as Builder
    else:
        from hatchling.builders.sdist import SdistBuilder as Builder  # type: ignore[assignment]
    builder = Builder(str(ROOT))
    found = {Path(one.distribution_path).as_posix() for one in builder.recurse_included_files()}
    before = "" if kind == "wheel" else "src/"
    missing = {name for name in wanted() if f"{before}{name}" not in found}
    assert missing == set()


VENDORED: dict[str, str] = {}  # a file of others in the wheel → its licence, which `license-files` must list
NOTICE = re.compile(
    r"copyright|\(c\) [12]\d\d\d|©|@licen[cs]e|spdx-license|sourcemappingurl|permission is hereby granted|"
    r"redistribution and use|all rights reserved",
    re.IGNORECASE,
)
LONGEST_LINE = 500  # in scripts and style sheets: longer ones are what minifiers make


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    from hatchling.builders.wheel import WheelBuilder

    (path,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_the_wheel_holds_the_licences_that_its_metadata_names(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert (metadata["License-Expression"], metadata.get_all("License-File")) == ("Apache-2.0", ["LICENSE"])
    licences = name.replace("METADATA", "licenses/")
    assert wheel.read(f"{licences}LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert {f"{licences}{licence}" for licence in VENDORED.values()} <= set(wheel.namelist())


def test_what_others_made_has_its_licence_in_the_wheel(wheel):
    """Fonts, pictures, minified scripts and whatever bears a notice is somebody else's, until proven otherwise."""
    foreign = set()
    for name in wheel.namelist():
        try:
            text = wheel.read(name).decode("utf-8")
        except UnicodeDecodeError:
            foreign.add(name)
            continue
        minified = name.endswith((".css", ".js")) and max(map(len, text.splitlines())) > LONGEST_LINE
        if not name.endswith(".dist-info/licenses/LICENSE") and ("\0" in text or NOTICE.search(text) or minified):
            foreign.add(name)
    assert foreign == set(VENDORED)


@pytest.mark.needs_kind("study")
def test_each_study_in_the_wheel_says_under_which_licence_its_texts_are(wheel):
    studies = [name for name in wheel.namelist() if name.endswith("/study.yaml")]
    assert len(studies) == 11
    for name in studies:
        assert re.match(r"(Texts )?Apache-2\.0, as karat", yaml.safe_load(wheel.read(name))["license"]), name
        assert name.replace("study.yaml", "README.md") in wheel.namelist()
