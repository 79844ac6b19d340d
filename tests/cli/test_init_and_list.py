"""`karat init` and `karat list`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import karat as package
from karat import plugins
from karat.config.prompts import presets

STUDIES = Path(package.__file__).parents[1] / "karat_studies" / "kinds" / "study" / "studies"

SCHEMA = ".karat/experiment.schema.json"


@pytest.mark.needs_package("karat_viewer")
def test_init_writes_an_example_that_runs_as_it_stands(process, here):
    made = process("init", "golden", "mine")
    assert made.code == 0
    assert made.out.splitlines() == [
        f"mine/{name}" for name in (SCHEMA, "README.md", "agent.py", "experiment.yaml", "questions.jsonl")
    ]
    commands = [shlex.split(line) for line in made.err.partition("Next:\n")[2].splitlines()]
    assert [words[1] for words in commands] == ["check", "run"]
    for words in commands:
        done = process(*words[1:])
        assert done.code == 0, done.err
    assert "with-notes" in done.out


SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("notes")

@server.tool()
def look_up(word: str) -> str:
    "Looks a word up."
    return word

server.run("stdio")
"""


@pytest.mark.slow
def test_the_example_shows_how_an_mcp_server_is_measured(karat, here):
    """The lines that are commented out work as they are."""
    karat("init", "golden", ".")
    (here / "my_server.py").write_text(SERVER, encoding="utf-8")
    file = here / "experiment.yaml"
    text = file.read_text(encoding="utf-8")
    for line in ("  # with-server:", "# mcp_servers:", "#   notes:"):
        assert text.count(f"\n{line}") == 1
        text = text.replace(f"\n{line}", f"\n{line.replace('# ', '', 1)}")
    file.write_text(text, encoding="utf-8")
    done = karat("check", "experiment.yaml")
    assert done.code == 0, done.err
    assert "with-server with notes" in done.out
    assert "notes (stdio, scope trial, protocol 2026-07-28): 1 tool: look_up" in done.out


@pytest.mark.slow
@pytest.mark.needs_kind("conversation")
def test_init_writes_conversations_that_run_as_they_stand(karat, here):
    made = karat("init", "conversation", "mine")
    assert made.out.splitlines() == [
        f"mine/{name}"
        for name in (
            ".karat/experiment.schema.json",
            "README.md",
            "answers.jsonl",
            "conversations.jsonl",
            "experiment.yaml",
        )
    ]
    commands = [shlex.split(line) for line in made.err.partition("Next:\n")[2].splitlines()]
    for words in commands:
        done = karat(*words[1:])
        assert done.code == 0, done.err
    assert "numerical" in done.out


@pytest.mark.slow
def test_init_writes_a_study_that_checks_and_runs_as_it_stands(karat, here):
    made = karat("init", "study", "mine")
    assert made.out.splitlines() == [
        f"mine/{name}"
        for name in (
            SCHEMA, ".karat/study.schema.json", "README.md", "bridge/README.md", "bridge/copy.jsonl",
            "bridge/materials/bridge.md", "bridge/study.yaml", "experiment.yaml",
        )
    ]  # fmt: skip
    commands = [shlex.split(line) for line in made.err.partition("Next:\n")[2].splitlines()]
    for words in [*commands, ["karat", "check", "mine/bridge"], ["karat", "check", "--lint", "mine/bridge"]]:
        done = karat(*words[1:])
        assert done.code == 0, done.err
        assert "warning" not in done.err
    assert all(name in karat("report", "latest").out for name in ("empty", "human", "demographic", "background"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["golden", "conversation", "study"])
def test_the_commands_of_the_example_s_readme_work(karat, here, kind):
    karat("init", kind, ".")
    text = (here / "README.md").read_text(encoding="utf-8")
    commands = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("    karat")]
    assert len(commands) == 4
    for words in commands:
        assert karat(*words[1:]).code == 0, words


def test_init_overwrites_nothing(karat, here):
    (here / "golden").mkdir()
    (here / "golden" / "agent.py").write_text("mine", encoding="utf-8")
    done = karat("init", "golden")
    assert done.code == 2
    assert "agent.py" in done.err
    assert [path.name for path in (here / "golden").iterdir()] == ["agent.py"]


def test_init_json(karat):
    found = karat("init", "golden", "--json").json
    assert (found["format"], found["folder"], len(found["files"])) == (1, "golden", 5)


@pytest.mark.parametrize(("old", "family"), [("datasets", "kinds"), ("reports", "exports")])
def test_a_family_is_listed_under_its_old_name(karat, old, family):
    assert karat("list", old, "--json").json == karat("list", family, "--json").json


@pytest.mark.parametrize("family", ["agents", "scorers", "kinds", "exports"])
def test_every_plug_in_is_listed_with_its_options(karat, family):
    found = karat("list", family, "--json").json
    assert [one["name"] for one in found["plugins"]] == sorted(
        getattr(plugins.find(family, name), "listed_as", name) for name in plugins.names(family)
    )
    assert all(one["summary"] for one in found["plugins"])
    for name in plugins.names(family):
        model = plugins.options_model(plugins.find(family, name))
        one = karat("list", family, name, "--json").json
        assert [option["name"] for option in one["options"]] == list(
            model.model_json_schema().get("properties", {}) if model else ()
        )
        shown = karat("list", family, name)
        assert all(f"  {option['name']}: " in shown.out for option in one["options"])


@pytest.mark.slow
@pytest.mark.needs_kind("study")
def test_shipped_studies_are_listed(karat):
    names = [path.parent.name for path in sorted(STUDIES.glob("*/study.yaml"))]
    found = karat("list", "studies", "--json").json
    assert [one["name"] for one in found["studies"]] == names
    framing = next(one for one in found["studies"] if one["name"] == "framing")
    assert {key: framing[key] for key in ("domain", "participants", "questions", "findings", "tests")} == {
        "domain": "cognition", "participants": 1350, "questions": 1350, "findings": 5, "tests": 6,
    }  # fmt: skip
    shown = karat("list", "studies").out.splitlines()
    assert shown[0].split() == ["name", "title", "domain", "participants", "findings", "tests", "forms", "source"]
    assert [line.split()[0] for line in shown[1:]] == names
    assert "paraphrase, relabelled  Tversky & Kahneman (1981)" in shown[1 + names.index("framing")]
    assert (framing["wordings"], framing["relabelled"]) == (["paraphrase"], True)


@pytest.mark.needs_kind("study")
def test_one_study_is_shown_with_its_arms_and_tests(karat):
    page = karat("list", "studies", "beauty_contest")
    assert "166 participants in 10 groups, 664 questions" in page.out
    assert "dataset: {kind: study, path: beauty_contest}" in page.out
    found = karat("list", "studies", "beauty_contest", "--json").json["study"]
    assert (len(found["arms"]), len(found["tests"]), found["groups"]) == (3, 8, 10)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["studies", "framng"], "NAME: no study 'framng' comes with karat (did you mean 'framing'?)"),
        (["presets", "humann"], "no preset is called 'humann' (did you mean 'human'?)"),
        (["study"], "'study' is not one of"),
    ],
)
@pytest.mark.needs_kind("study", cases="words[01]")
def test_a_name_that_is_not_there(karat, words, said):
    done = karat("list", *words)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


@pytest.mark.needs_kind("study")
def test_presets_are_listed_with_their_text(karat):
    assert [line.split()[0] for line in karat("list", "presets").out.splitlines()] == list(presets())
    assert str(presets()["human"].text) in karat("list", "presets", "human").out


def test_rubrics_are_listed_with_their_text(karat):
    assert "default" in karat("list", "rubrics").out
    assert "factual_adherence" in karat("list", "rubrics", "default").out


def test_the_search_baseline_is_listed_by_its_plain_name_and_found_by_both(karat):
    listed = karat("list", "agents").out
    assert "search-baseline" in listed
    assert "\nfloor" not in listed
    assert karat("list", "agents", "floor").out == karat("list", "agents", "search-baseline").out
    assert karat("list", "agents", "search-baseline").out.startswith("search-baseline\n")


@pytest.mark.needs_package("karat_imports")
def test_the_configuration_of_another_tool_becomes_an_experiment_and_overwrites_nothing(karat, here):
    (here / "promptfooconfig.yaml").write_text(
        "prompts: ['Where is {{place}}?']\nproviders: ['openai:gpt-4o-mini']\n"
        "tests:\n  - vars: {place: Oslo}\n    assert: [{type: equals, value: Norway}]\n"
        "  - vars: {place: Rome}\n    assert: [{type: javascript, value: 'output.length < 3 && await x()'}]\n",
        encoding="utf-8",
    )
    done = karat("init", "--from", "promptfooconfig.yaml", "mine")
    assert done.code == 0, done.err
    written = ["mine/.karat/experiment.schema.json", "mine/experiment.yaml", "mine/questions.jsonl"]
    assert done.out.splitlines() == written
    text = (here / "mine/experiment.yaml").read_text(encoding="utf-8")
    assert text.startswith(
        "# yaml-language-server: $schema=.karat/experiment.schema.json\n"
        "# Written by `karat init --from promptfooconfig.yaml`.\n"
    )
    assert (here / "mine/questions.jsonl").read_text(encoding="utf-8").count("\n") == 2
    again = karat("init", "--from", "promptfooconfig.yaml", "mine")
    assert again.code == 2
    there = ".karat/experiment.schema.json, experiment.yaml, questions.jsonl"
    assert f"DIR: mine already holds {there}; name another folder (nothing was written)" in again.err
    (here / "file").write_text("")
    assert "DIR: cannot write file" in karat("init", "--from", "promptfooconfig.yaml", "file").err
