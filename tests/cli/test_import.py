"""`karat import`: what is written where, what is said, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.importers.folders import said_as, whole, written

from karat.__main__ import main
from karat.cli import cli

pytestmark = pytest.mark.needs_kind("study")


def imported(*words: str) -> Result:
    return CliRunner().invoke(cli, ["import", *words], catch_exceptions=False)


def data(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(imported(*words, "--json").stdout)
    return found


def test_a_draft_is_written_into_a_new_folder_of_its_name(here):
    written(here / "Some Study", whole())
    found = data("humanstudy", "Some Study")
    assert found["format"] == 1
    (draft,) = found["drafts"]
    assert draft["folder"] == "some_study"
    assert draft["files"] == [
        f"some_study/{name}"
        for name in ("study.yaml", "materials/gain.md", "materials/loss.md", "README.md", "DECISIONS.md")
    ]
    assert all((here / file).is_file() for file in draft["files"])


def test_several_studies_are_written_below_the_folder_that_is_named(here):
    for name in ("one", "two"):
        written(here / "all" / name, whole())
    done = imported("humanstudy", "all", "--out", "drafts")
    assert sorted(path.name for path in (here / "drafts").iterdir()) == ["one", "two"]
    assert [line.split()[0] for line in done.stdout.splitlines()[:4]] == ["draft", "one", "two", "all"]


def test_what_is_open_and_in_doubt_is_listed_with_its_place(here):
    written(here / "study", said_as("AD = 0.58, p = .66"))
    done = imported("humanstudy", "study", "--out", "draft")
    assert "Could not be read:\n  'AD = 0.58, p = .66' gives a p but no statistic – ground_truth.json" in done.stdout
    assert "For you to decide (`karat check` names these too):\n  findings.0.tests.0.kind: " in done.stdout


def test_files_are_not_written_over_unless_it_is_said(here, capsys):
    written(here / "study", whole())
    assert imported("humanstudy", "study", "--out", "draft").exit_code == 0
    (here / "draft" / "DECISIONS.md").write_text("mine", encoding="utf-8")
    assert main(["import", "humanstudy", "study", "--out", "draft"]) == 2
    assert "already holds DECISIONS.md" in capsys.readouterr().err
    assert (here / "draft" / "DECISIONS.md").read_text(encoding="utf-8") == "mine"
    assert imported("humanstudy", "study", "--out", "draft", "--force").exit_code == 0
    assert (here / "draft" / "DECISIONS.md").read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["humanstudie", "study"], "no importer is called 'humanstudie' (did you mean 'humanstudy'?)"),
        (["module:Class", "study"], "does not import code"),
        (["humanstudy", "nothing"], "is not a folder: a study of HumanStudy-Bench is a folder with ground_truth.json"),
        (["humanstudy", "study", "--set", "unlistd=true"], "did you mean 'unlisted'?"),
        (["humanstudy", "study", "--set", "unlisted"], "want KEY=VALUE, got 'unlisted'"),
        (["humanstudy", "twice"], "2 drafts are called 'a_b'; import them one by one"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(here, capsys, words, said):
    written(here / "study", whole())
    written(here / "twice" / "a b", whole())
    written(here / "twice" / "a_b", whole())
    before = sorted(here.rglob("*"))
    assert main(["import", *words]) == 2
    assert said in capsys.readouterr().err
    assert sorted(here.rglob("*")) == before
