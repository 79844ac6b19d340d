"""Which declared lowest versions `make test-lowest` tries, and the weekly workflow that runs it."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "versions.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared() -> dict[str, str]:
    texts = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["all"]
    bounds = (text.partition(";")[0].partition(">=") for text in texts)
    return {name.partition("[")[0].replace(".", "-"): bound.strip() for name, _, bound in bounds}


def test_a_bound_that_no_environment_has_is_named():
    lowest = declared()
    assert SCRIPT["untested"]("\n".join(f"{name}=={bound}" for name, bound in lowest.items())) == []
    assert SCRIPT["untested"]("\n".join(f"{name}=={bound}.0" for name, bound in lowest.items())) == []
    (found,) = SCRIPT["untested"]("\n".join(f"{name}=={bound}" for name, bound in (lowest | {"scipy": "9.1"}).items()))
    assert found.startswith(f"scipy>={lowest['scipy']}: 9.1 is the lowest")


def test_every_dependency_has_a_lowest_version():
    extras = [text for name, texts in PROJECT["optional-dependencies"].items() if name != "dev" for text in texts]
    assert [text for text in PROJECT["dependencies"] + extras if ">=" not in text] == []


def test_extras_ask_for_the_same_versions_as_all_of_them_together():
    together = set(PROJECT["optional-dependencies"]["all"])
    names = {text.partition("[")[0].partition(">=")[0] for text in together}
    for extra, texts in PROJECT["optional-dependencies"].items():
        shared = [text for text in texts if text.partition("[")[0].partition(">=")[0] in names]
        assert extra == "dev" or set(shared) <= together, extra


def test_a_workflow_runs_both_once_a_week():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "versions.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["quick-tests"]
    assert set(job["strategy"]["matrix"]["versions"]) == set(SCRIPT["RESOLUTIONS"])
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(f"\ntest-{name}:" in targets for name in SCRIPT["RESOLUTIONS"])
