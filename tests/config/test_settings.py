"""`--set` lays values over the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.reading_experiments import GOOD

from karat.config import Experiment
from karat.config.settings import follow
from karat.documents.nodes import Node
from karat.errors import BadExperiment

Read = Callable[..., Experiment]


def test_values_are_yaml_and_keys_are_made_where_they_are_missing(read: Read) -> None:
    settings = [
        "name=renamed",
        "execution.num_repetitions=5",
        "execution.budget.usd=2.5",
        "conditions.second.system_prompt=Be brief: always.",
        "conditions.third={system_prompt: hello}",
        "scorers=[equals]",
        "dataset.stratify=[a, b]",
        "dataset.stratify.1=c",
        "dataset.sample_size=null",
    ]
    found = read(GOOD, settings=settings)
    assert found.name == "renamed"
    assert found.execution.num_repetitions == 5
    assert found.execution.budget.usd == 2.5
    assert [condition.name for condition in found.conditions] == ["baseline", "second", "third"]
    assert found.conditions[1].system_prompt == "Be brief: always."
    assert [scorer.type for scorer in found.scorers] == ["overlap", "equals"]
    assert found.dataset.options["stratify"] == ["a", "c"]


def test_a_dataset_that_is_a_path_is_recorded_and_takes_options(read: Read) -> None:
    text = "dataset: questions.jsonl\nagent: {type: floor}\nscorers: [equals]\nconditions: {a: {}}\n"
    found = read(text, settings=["dataset.id_key=id"])
    assert (Path(found.dataset.path).name, found.dataset.options["id_key"]) == ("questions.jsonl", "id")
    shown = found.resolved["dataset.path"]
    assert (shown.value, shown.source) == ("questions.jsonl", "file")
    other = read(text, settings=["dataset=./questions.jsonl"]).resolved["dataset.path"]
    assert (other.value, other.source) == ("./questions.jsonl", "flag")


def test_a_star_alone_is_a_text(read: Read) -> None:
    assert read(GOOD, settings=["dataset.split=*"]).dataset.options["split"] == "*"


def test_keys_with_dots_are_found(read: Read) -> None:
    text = GOOD.replace("baseline: {}", "gpt-4.1: {}, gpt-4.1.mini: {}")
    found = read(text, settings=["conditions.gpt-4.1.system_prompt=A", "conditions.gpt-4.1.mini.system_prompt=B"])
    assert [condition.system_prompt for condition in found.conditions] == ["A", "B"]


def test_a_variable_in_a_setting_is_filled(read: Read) -> None:
    found = read(GOOD, settings=["execution.max_concurrent=${CROWD}"], env={"CROWD": "7"})
    assert found.execution.max_concurrent == 7
    assert found.resolved["execution.max_concurrent"].source == "flag"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("execution.num_repetitions=0", "--set execution.num_repetitions: must be at least 1, got 0"),
        ("execution.num_repetition=1", "--set execution.num_repetition: no such key (did you mean 'num_repetitions'?)"),
        ("execution", "--set execution: must be KEY=VALUE, e.g. --set execution.num_repetitions=5"),
        ("=5", "--set : must be KEY=VALUE, e.g. --set execution.num_repetitions=5"),
        ("a..b=5", "--set a..b: must be KEY=VALUE, e.g. --set execution.num_repetitions=5"),
        (
            "execution=[",
            "--set execution: the value is not YAML: a value is missing, or there is a bracket or comma too many",
        ),
        ("name.first=x", "--set name.first: 'first' needs a mapping here, but there is a plain value"),
        ("scorers.0.type=x", "--set scorers.0.type: '0' is not a position in a list of 0"),
        (
            "name=${NOT_SET}",
            "--set name: the environment variable NOT_SET is not set; set it, or name a file with --env-file",
        ),
        (
            "agent.type=flor",
            "--set agent.type: no agent is called 'flor' (did you mean 'floor'?); `karat list agents` describes them",
        ),
    ],
)
def test_a_fault_names_the_flag(read: Read, setting: str, said: str) -> None:
    with pytest.raises(BadExperiment) as caught:
        read(f"name: x\nscorers: []\n{GOOD}", settings=[setting])
    assert [str(fault) for fault in caught.value.faults] == [said]


def test_the_value_of_a_setting_is_no_part_of_a_message(read: Read) -> None:
    with pytest.raises(BadExperiment) as caught:
        read(GOOD, settings=["agent.api_key=canary-1234"])
    assert "canary" not in str(caught.value)


def test_a_place_is_followed_as_far_as_it_exists() -> None:
    root = Node({"a": Node({"b.c": Node("deep"), "b": Node({"c": Node("deeper")})}), "list": Node([Node("x")])})

    def found(place: str) -> tuple[object, list[str]]:
        node, missing = follow(root, place)
        return node.value, missing

    assert found("") == (root.value, [])
    assert found("a.b.c") == ("deep", []), "the longest key that exists"
    assert found("a.b.d") == (root.value["a"].value["b"].value, ["d"])
    assert found("list.0") == ("x", [])
    assert found("list.1") == (root.value["list"].value, ["1"])
    assert found("list.first") == (root.value["list"].value, ["first"])
    assert found("x.y") == (root.value, ["x", "y"])
