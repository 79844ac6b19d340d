"""How to repeat a run: what it was made of, in facts and tables."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import Summary
from karat.blocks import Facts, Fold, Listing, Note, Table, plain
from karat.document.origin import origin
from karat.journal import ServerInfo


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}
    return summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))


def blocks(summary: Summary, files: dict[str, str] | None = None, **fields: Any) -> list[Any]:
    return list(origin(structs.replace(summary, provenance=structs.replace(summary.provenance, **fields)), files or {}))


def facts(summary: Summary, **fields: Any) -> dict[str, str]:
    first = blocks(summary, **fields)[0]
    assert isinstance(first, Facts)
    return dict(first.items)


def tables(found: list[Any]) -> dict[str, list[tuple[str, ...]]]:
    return {
        block.caption: [(row.name, *map(plain, row.cells)) for row in block.rows]
        for block in found
        if isinstance(block, Table)
    }


def test_the_facts_of_a_run(summary):
    source = {"asked": "by hand", "tool": "t"}
    found = facts(
        summary, agent="a", model="m", judge="j", rubric="r", rubric_digest="0f", source=source,
        first_row={"question": "Why?"}, dataset="q.jsonl", samples_in_file=1, sha256="ab", host="h",
    )  # fmt: skip
    assert found["Run"] == f"{summary.name} {summary.run}"
    assert {name: found[name] for name in [*found][[*found].index("Status") :]} == {
        "Status": summary.status,
        "Kind": "golden",
        "Dataset": "q.jsonl (1 sample in the file)",
        "Its first row: question": "Why?",
        "Its sha256": "ab",
        "Agent": "a (m)",
        "How it was asked": "by hand",
        "Judge": "j",
        "Rubric": "r (0f)",
        "Answers made elsewhere: tool": "t",
        "Host": "h",
    }
    few = facts(summary, agent="a", model=None, judge=None, rubric="r", rubric_digest=None, source={})
    assert (few["Agent"], few["Rubric"]) == ("a", "r")
    assert not {"Judge", "How it was asked"} & {*few}
    assert "Version of the experiment" not in facts(structs.replace(summary, version=""))
    assert "Rubric" not in facts(summary, rubric=None)
    assert facts(structs.replace(summary, version="2"))["Version of the experiment"] == "2"


@pytest.mark.parametrize(
    ("created", "made"),
    [
        ("2026-10-05T08:09:10.123Z", "2026-10-05 08:09 UTC"),
        ("2026-10-05T08:09+00:00", "2026-10-05 08:09 UTC"),
        ("2026-10-05T08:09:10+02:00", "2026-10-05T08:09:10+02:00"),
        ("yesterday", "yesterday"),
    ],
)
def test_a_time_in_utc_is_readable(summary, created, made):
    assert facts(structs.replace(summary, created=created))["Made"] == made


def test_commands_repeat_a_run_that_karat_made(summary):
    note, listing = blocks(summary)[1:3]
    assert isinstance(note, Note)
    assert isinstance(listing, Listing)
    assert note.title == "To repeat it"
    assert not listing.folded
    page = f"karat report {summary.run} --to html --out report.html"
    commands = ["karat run experiment.yaml", page, f"karat score {summary.run}"]
    comments = ["run it again", "an HTML page", "add missing scores"]
    longest = max(map(len, commands))
    assert listing.text.split("\n") == [
        f"{command:{longest}}   # {comment}" for command, comment in zip(commands, comments, strict=True)
    ]
    assert isinstance(blocks(summary, source={"format": "inspect"})[1], Table)


def test_conditions_scorers_and_servers_are_rows(summary):
    digest = "0123456789abcdef0123"
    docs = ServerInfo(
        name="docs", tools=("find", "read"), protocol="2025-06-18", digest=digest, tools_digest=None, fault=None,
    )  # fmt: skip
    down = structs.replace(docs, name="down", tools=(), protocol=None, fault="could not be started")
    found = blocks(
        summary,
        condition_servers={"old": ("docs", "down")},
        conditions={"old": digest, "new": "ab"},
        agents={"old": "", "new": digest},
        prompts={},
        scorers={"judge": "s1", "rule": "s2", "other": "s3"},
        judges={"other": {"model": "m", "repeats": 2, "temperature": None}},
        servers=(docs, down),
    )
    shown = tables(found)
    assert shown["Conditions"] == [
        ("old", "docs, down", digest[:16], "–", "–"),
        ("new", "–", "ab", digest[:16], "–"),
    ]
    assert shown["Scorers"] == [
        ("judge", "s1", "a rule, offline"),
        ("rule", "s2", "–"),
        ("other", "s3", "model m; repeats 2"),
    ]
    servers = shown["MCP servers, as they were at the start"]
    assert servers == [
        ("docs", "find, read", "2025-06-18", digest[:16], "–", "answered"),
        ("down", "–", "–", digest[:16], "–", "could not be started"),
    ]
    table = next(block for block in found if isinstance(block, Table) and block.caption.startswith("MCP"))
    assert [row.cells[-1].tone for row in table.rows] == ["quiet", "bad"]
    assert not {"Scorers", "MCP servers, as they were at the start"} & {
        *tables(blocks(summary, scorers={}, servers=()))
    }


def test_every_setting_and_file_is_shown(summary):
    *_, versions, fold, listing = blocks(
        summary,
        {"experiment.yaml": "name: x\n"},
        settings={"b": ["x", 1], "a": "text", "c": None},
        versions={"karat": "1"},
    )
    assert (versions.title, versions.items, versions.code) == ("Versions", (("karat", "1"),), True)
    assert isinstance(fold, Fold)
    assert tables([*fold.blocks]) == {"Every setting, defaults as well": [("a", "text"), ("b", '["x",1]'), ("c", "–")]}
    assert listing == Listing(title="experiment.yaml", text="name: x\n")
