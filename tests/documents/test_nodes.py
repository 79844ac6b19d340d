"""A file as a tree of values that know where they are from."""

from __future__ import annotations

from pathlib import PurePath

from pydantic import BaseModel

from karat.documents.nodes import Node, dotted, fault_at, from_python, plain, printable, walk
from karat.errors import Fault

TREE = Node(
    {
        "a": Node([Node(1, line=2, column=5), Node(2, line=3, column=5, source="flag")], line=2, column=1),
        "b": Node("x", line=4, column=1, file="other.yaml"),
    }
)


class Model(BaseModel):
    name: str
    size: int = 3


def test_a_node_is_found_by_its_place():
    assert TREE.get("a", 1).value == 2
    for missing in (("a", 2), ("a", -1), ("a", "0"), ("b", "c"), ("b", 0), ("c",)):
        assert TREE.get(*missing) is None
    assert TREE.get() is TREE
    assert TREE.nearest(("a", 5, "x")) == (TREE.value["a"], (5, "x"))
    assert TREE.nearest(("a", 0)) == (TREE.value["a"].value[0], ())


def test_children_are_keys_or_positions():
    assert TREE.keys() == {"a", "b"}
    assert TREE.get("a").keys() == {0, 1}
    assert TREE.get("b").children() == []
    assert [place for place, _ in walk(TREE)] == [(), ("a",), ("a", 0), ("a", 1), ("b",)]
    assert [place for place, _ in walk(TREE, ("top",))][:2] == [("top",), ("top", "a")]
    assert plain(TREE) == {"a": [1, 2], "b": "x"}


def test_the_strongest_source_of_a_list_counts():
    assert TREE.get("a").strongest == "flag"
    assert TREE.get("b").strongest == "file"
    assert Node([Node(1, source="default")], source="default").strongest == "default"
    assert Node([Node(1, source="environment")], source="default").strongest == "environment"


def test_a_fault_has_the_place_of_its_value_or_of_what_should_hold_it():
    assert fault_at(TREE, ("a", 0), "is wrong") == Fault(place="a.0", message="is wrong", line=2, column=5)
    assert fault_at(TREE, ("a", 1), "is wrong") == Fault(place="--set a.1", message="is wrong")
    assert fault_at(TREE, ("a", 7), "is wrong") == Fault(place="a.7", message="is wrong", line=2, column=1)
    assert fault_at(TREE, ("c",), "is wrong") == Fault(place="c", message="is wrong")
    assert fault_at(TREE, (), "is wrong") == Fault(place="file", message="is wrong")
    assert fault_at(TREE, ("b",), "is wrong") == Fault(place="b", message="is wrong (other.yaml)", line=4, column=1)
    assert dotted(("scorers", 0, "pattern")) == "scorers.0.pattern"


def test_values_are_printable():
    value = {1: (True, None, 2.5), "path": PurePath("a/b"), "function": test_values_are_printable, "object": PurePath}
    assert printable(value) == {
        "1": [True, None, 2.5],
        "path": "a/b",
        "function": f"{__name__}:test_values_are_printable",
        "object": "pathlib:PurePath",
    }
    assert printable(object()) == "builtins:object"
    assert printable("x".upper) == "builtins:str.upper"


def test_python_values_become_nodes():
    assert plain(from_python({"a": (1, PurePath("b/c")), 2: Model(name="x"), "text": "abc", "bytes": b"d"})) == {
        "a": [1, "b/c"],
        "2": {"name": "x"},
        "text": "abc",
        "bytes": b"d",
    }
    model = Model(name="x")
    kept = from_python({"target": model, "other": {"target": model, "targets": model}})
    assert kept.get("target").value is model
    assert kept.get("other", "target").value is model
    assert plain(kept.get("other", "targets")) == {"name": "x"}
    assert from_python(len).value is len
