"""Documents that hold no rows of questions are named for what they are."""

from __future__ import annotations

import json

import pytest

from karat.documents.rows import read_rows
from karat.errors import BadDataset


def read(tmp_path, document):
    path = tmp_path / "q.json"
    path.write_text(json.dumps(document))
    return [row for _, row in read_rows(path).rows]


SERVERS = [{"url": "http://a.org", "description": "The main server."}]
TEXTS = {"hello": "Hello there!", "bye": "See you soon."}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"openapi": "3.0.0", "paths": {}, "servers": SERVERS}, "describes an API (OpenAPI)"),
        ({"cells": [{"cell_type": "code", "source": ["1"]}], "nbformat": 4}, "is a notebook (Jupyter)"),
        ({"$schema": "x", "properties": {"question": {"type": "string"}}}, "describes how rows look"),
        ({"mcpServers": {"a": {"command": "b"}}}, "is a configuration of MCP servers"),
        ({"servers": {"a": {"type": "http", "url": "http://a.org"}}}, "is a configuration of MCP servers"),
        ({"mcp": {"inputs": [], "servers": {"a": {"command": "b"}}}}, "is a configuration of MCP servers"),
        ({"a": {"command": "b", "args": ["c"]}, "d": {"command": "e"}}, "is a configuration of MCP servers"),
        ({"name": "a", "version": "1.0.0", "dependencies": {"b": "^2"}}, "describes a package"),
        ({"en": TEXTS, "de": TEXTS}, "holds the same texts in several languages"),
    ],
)
def test_a_document_is_known_by_its_keys(tmp_path, document, said):
    with pytest.raises(BadDataset) as bad:
        read(tmp_path, document)
    assert f"{said}" in str(bad.value)
    assert "no questions" in str(bad.value)


def test_a_list_of_questions_is_read_whatever_is_beside_it(tmp_path):
    rows = [{"question": "Why?", "answer": "So."}]
    assert read(tmp_path, {"name": "set", "version": "1", "dependencies": {}, "questions": rows}) == rows


def test_rows_by_their_ids_with_a_command_are_no_servers(tmp_path):
    rows = {f"t{at}": {"task": f"Do {at} please", "command": f"pytest {at}", "expected": "ok"} for at in range(6)}
    assert len(read(tmp_path, rows)) == 6
    for row in rows.values():
        row["check"] = {"tool": {"command": "a"}}
    assert len(read(tmp_path, rows)) == 6
