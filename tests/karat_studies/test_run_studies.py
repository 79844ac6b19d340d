"""Several human studies in one run, under the presets that come with karat."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from tests.karat_studies import studies

from karat.config import load

PROFILE = "  profile: {age: [18, 25], gender: {female: 0.5, male: 0.5}, occupation: student}\n"
EXPERIMENT = """\
name: designs
dataset: {kind: study, path: studies, per_arm: 2, findings: [one/F1, two/F1]}
agent: {type: python, target: 'told:query'}
conditions: {empty: {preset: empty}, who: {preset: demographic}, all: {preset: background}}
execution: {num_repetitions: 1, max_concurrent: 1}
"""
AGENT = """\
    import json, pathlib

    def query(user_query, system_prompt, mcp_servers):
        with (pathlib.Path(__file__).parent / "asked.jsonl").open("a") as file:
            file.write(json.dumps([system_prompt, user_query]) + "\\n")
        return "choice: A" if "A: 200" in user_query else "choice: C"
"""


@pytest.fixture
def folder(here) -> Path:
    """Two studies whose participants differ in what is known of them, and an agent that notes what it is asked."""
    write_study(here, "one", PROFILE)
    write_study(here, "two", "  profile: {country: [Ruritania, Freedonia], age: [60, 70]}\n")
    (here / "told.py").write_text(textwrap.dedent(AGENT), encoding="utf-8")
    (here / "e.yaml").write_text(EXPERIMENT, encoding="utf-8")
    return here


def write_study(folder: Path, name: str, profile: str) -> None:
    text = studies.STUDY.replace(PROFILE, profile).replace("study: small", f"study: {name}")
    materials = {"first": "How much do you like rain?\n\n{{ answer_form }}"}
    studies.write(folder / "studies" / name, text, materials)


def asked(folder: Path) -> list[tuple[str | None, str]]:
    path = folder / "asked.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return [(row[0], row[1]) for row in rows]


def test_each_participant_is_told_who_they_are(karat, folder):
    done = karat("run", "e.yaml", "--quiet")
    assert done.code == 0, done.err
    prompts = [prompt or "" for prompt, _ in asked(folder)]
    profiles = [sample.detail["profile"] for sample in load("e.yaml").load_dataset()]
    assert len(prompts) == 3 * len(profiles) == 24
    for at, profile in enumerate(profiles):
        empty, who, everything = prompts[3 * at : 3 * at + 3]
        assert empty == ""
        assert f"Age: {profile['age']}\n" in who and f"You are {profile['age']} years old" in everything
        assert ("Gender: " in who) == ("gender" in profile) == ("your gender" in everything)
        assert ("Occupation: student" in who) == ("occupation" in profile)
        assert (f"country: {profile.get('country')}" in everything) == ("country" in profile)
        assert "{{" not in who + everything


@pytest.mark.slow
def test_another_study_is_added_to_a_run_that_is_there(karat, folder):
    karat("run", "e.yaml", "--quiet")
    first = asked(folder)
    write_study(folder, "three", PROFILE)
    more = ("--set", "dataset.findings=[one/F1, two/F1, three/F1]")
    done = karat("run", "e.yaml", *more, "--resume", "latest", "--quiet")
    assert done.code == 0, done.err
    assert len(asked(folder)) == 12
    again = karat("run", "e.yaml", "--quiet")
    assert again.code == 0 and asked(folder) == first


def test_the_run_says_where_its_studies_come_from(karat, folder):
    karat("run", "e.yaml", "--quiet")
    run = next((folder / "results").iterdir())
    info = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert (info["dataset"]["kind"], info["dataset"]["path"], info["dataset"]["samples"]) == ("study", "studies", 8)
    assert info["experiment"]["conditions.who.preset"]["value"] == "demographic"
    assert "{{? profile.age }}" in info["experiment"]["conditions.who.system_prompt"]["value"]
