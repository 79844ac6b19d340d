"""`karat init` and `karat list`."""

from __future__ import annotations

import shlex

import pytest

from karat import plugins


def test_init_writes_an_example_that_runs_as_it_stands(process, here):
    made = process("init", "golden", "mine")
    assert made.code == 0
    assert made.out.splitlines() == [
        f"mine/{name}" for name in ("README.md", "agent.py", "experiment.yaml", "questions.jsonl")
    ]
    commands = [shlex.split(line) for line in made.err.partition("Next:\n")[2].splitlines()]
    assert [words[1] for words in commands] == ["check", "run"]
    for words in commands:
        done = process(*words[1:])
        assert done.code == 0, done.err
    assert "with-notes" in done.out


def test_init_writes_conversations_that_run_as_they_stand(process, here):
    made = process("init", "conversation", "mine")
    assert made.out.splitlines() == [
        f"mine/{name}" for name in ("README.md", "answers.jsonl", "conversations.jsonl", "experiment.yaml")
    ]
    commands = [shlex.split(line) for line in made.err.partition("Next:\n")[2].splitlines()]
    for words in commands:
        done = process(*words[1:])
        assert done.code == 0, done.err
    assert "numerical" in done.out


@pytest.mark.parametrize("kind", ["golden", "conversation"])
def test_the_commands_of_the_example_s_readme_work(process, here, kind):
    process("init", kind, ".")
    text = (here / "README.md").read_text(encoding="utf-8")
    commands = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("    karat")]
    assert len(commands) == 4
    for words in commands:
        assert process(*words[1:]).code == 0, words


def test_init_overwrites_nothing(karat, here):
    (here / "golden").mkdir()
    (here / "golden" / "agent.py").write_text("mine", encoding="utf-8")
    done = karat("init", "golden")
    assert done.code == 2
    assert "agent.py" in done.err
    assert [path.name for path in (here / "golden").iterdir()] == ["agent.py"]


def test_init_json(karat):
    found = karat("init", "golden", "--json").json
    assert (found["format"], found["folder"], len(found["files"])) == (1, "golden", 4)


@pytest.mark.parametrize("family", ["agents", "scorers", "datasets", "reports"])
def test_every_plug_in_is_listed_with_its_options(karat, family):
    found = karat("list", family, "--json").json
    assert [one["name"] for one in found["plugins"]] == plugins.names(family)
    assert all(one["summary"] for one in found["plugins"])
    for name in plugins.names(family):
        model = plugins.options_model(plugins.find(family, name))
        one = karat("list", family, name, "--json").json
        assert [option["name"] for option in one["options"]] == list(
            model.model_json_schema().get("properties", {}) if model else ()
        )
        shown = karat("list", family, name)
        assert all(f"  {option['name']}: " in shown.out for option in one["options"])


def test_rubrics_are_listed_with_their_text(karat):
    assert "default" in karat("list", "rubrics").out
    assert "factual_adherence" in karat("list", "rubrics", "default").out
