"""What a kind of dataset adds to a summary, and the options that it has of its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.analysis.journals import Script, asked, conversations, table

from karat.analysis import summarize
from karat.analysis.ledger import ledger_rows
from karat.analysis.model import Summary
from karat.analysis.parts import Part, builtins_of, from_json, installed, options_of
from karat.errors import BadOption
from karat.records import Reply


class Numbers(Part, frozen=True, kw_only=True):
    """A part that says nothing."""

    value: int = 3


def test_options_that_are_not_given_are_none():
    assert options_of("golden", {}) == {}
    assert options_of("golden", {"right": None, "allow_code": False}) == {}


def test_an_option_of_no_kind_is_refused_with_the_nearest_name():
    with pytest.raises(BadOption, match="rihgt: there is no such option"):
        options_of("golden", {"rihgt": "exact"})


def test_an_option_of_another_kind_is_refused_or_left_out_as_that_kind_says():
    for kind in installed().values():
        for name, refusal in kind.reading_options.items():
            if refusal:
                with pytest.raises(BadOption) as refused:
                    options_of("golden", {name: "x"})
                assert str(refused.value) == f"--{name.replace('_', '-')}: {refusal}"
            else:
                assert options_of("golden", {name: True}) == {}


def test_the_option_of_a_kind_is_given_to_it():
    for name, kind in installed().items():
        given = dict.fromkeys(kind.reading_options, "x")
        assert options_of(name, given) == given


def summary_with(tmp_path: Any, part: Part | None) -> Summary:
    summary = summarize(table(tmp_path / "run", {"a": [[1], [2]], "b": [[2], [5]]}))
    return msgspec.structs.replace(summary, parts={} if part is None else {"study": part})


def test_a_part_adds_nothing_that_it_does_not_say():
    part = Numbers()
    assert (part.rule, part.read_by(), part.headline(), part.leads) == (None, {}, "", False)
    assert (list(part.warning_lines()), list(part.notices()), list(part.condition_scores())) == ([], [], [])
    assert (part.tables(), part.lines()) == ({}, [])
    tree: dict[str, Any] = {"value": 3}
    part.show(tree)
    assert tree == {"value": 3}


def test_a_difference_is_tested_unless_a_part_says_otherwise(tmp_path: Any):
    (metric, *_) = summary_with(tmp_path, None).metrics
    assert Numbers().is_tested(metric) is True


def test_a_part_is_found_by_its_class_and_stands_under_the_name_of_its_kind(tmp_path: Any):
    part = Numbers(value=7)
    summary = summary_with(tmp_path, part)
    assert summary.part(Numbers) is part
    assert summary_with(tmp_path, None).part(Numbers) is None
    assert builtins_of(summary)["study"] == {"value": 7}
    assert "parts" not in builtins_of(summary)
    assert builtins_of(summary_with(tmp_path, None), absent=["study"])["study"] is None
    assert summary.study is part
    with pytest.raises(AttributeError, match="'Summary' object has no attribute 'nothing_like_it'"):
        _ = summary.nothing_like_it


def test_a_summary_comes_back_from_its_json(tmp_path: Any):
    summary = summary_with(tmp_path, None)
    again = from_json(msgspec.json.encode(summary), Summary)
    assert (again.headline, again.results, again.differences, again.parts) == (
        summary.headline,
        summary.results,
        summary.differences,
        {},
    )
    unknown = msgspec.json.encode(msgspec.to_builtins(summary) | {"parts": {"no_such_kind": {"value": 1}}})
    assert from_json(unknown, Summary).parts == {}


@pytest.mark.needs_kind("conversation")
def test_a_part_comes_back_in_its_own_class(tmp_path: Any):
    samples = [asked(str(number), number, [{"golden": "1"}, {"golden": "2"}]) for number in range(3)]
    replies = [[[Reply(text="1"), Reply(text="2")]]] * 3
    one = summarize(conversations(tmp_path / "one", samples, {"a": replies}, run="11111111"))
    again = from_json(msgspec.json.encode(one), Summary)
    assert again.parts.keys() == one.parts.keys() != set()
    for name, part in one.parts.items():
        assert type(again.parts[name]) is type(part)
        assert msgspec.to_builtins(again.parts[name]) == msgspec.to_builtins(part)


def test_rows_of_the_ledger_are_conditions_and_then_the_run(tmp_path: Any):
    script = Script(tmp_path / "run", samples=3)
    for row in range(2):
        script.scored(row, "baseline", value=3.0)
    script.attempt(2, "baseline", dollars=0.5)
    script.failure(2, "baseline")
    script.attempt(0, "with-docs")
    summary = summarize(script.stop())
    first, second, whole = ledger_rows(summary.accounts, summary.total)
    assert [row["condition"] for row in (first, second, whole)] == ["baseline", "with-docs", None]
    assert (first["scored"], first["agent"], first["not_run"], first["planned"]) == (2, 1, 0, 3)
    assert (second["scored"], second["not_run"], second["planned"]) == (0, 3, 3)
    assert (whole["scored"], whole["planned"]) == (2, 6)
    for row in (first, second, whole):
        assert row["attempts"] == row["answered_attempts"] + row["failed_attempts"] + row["unfinished_attempts"]
    assert (first["answered_attempts"], first["failed_attempts"]) == (2, 1)
    assert (second["failed_attempts"], whole["failed_attempts"]) == (0, 2), "its trial has not ended"
    assert (first["lost_dollars"], first["lost_unknown"]) == (0.5, 0)
