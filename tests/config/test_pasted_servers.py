"""Servers as other tools write them: everything that karat does not take is a fault that names it."""

from __future__ import annotations

import pytest

from karat import Experiment
from karat.errors import BadExperiment

SERVER = {"command": "python", "args": ["server.py"]}


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({**SERVER, "args": ["${workspaceFolder}/server.py"]}, "the environment variable workspaceFolder is not set"),
        ({**SERVER, "env": {"PORT": 8080}}, "must be text, got 8080; put it in quotes"),
        ({**SERVER, "env": {"TOKEN": "${TOKEN:-}"}}, "${TOKEN:-} is not an environment variable"),
        ({**SERVER, "disabled": False}, "mcp_servers.docs.disabled: no such key"),
        ({**SERVER, "autoApprove": ["search"]}, "mcp_servers.docs.autoApprove: no such key"),
        ({"type": "streamable-http", "url": "http://127.0.0.1:9/mcp"}, "must be stdio, http or sse"),
    ],
)
def test_what_karat_does_not_take_of_a_server_is_named(tmp_path, server, said):
    path = tmp_path / "q.jsonl"
    path.write_text('{"question": "A?", "answer": "x"}\n')
    with pytest.raises(BadExperiment) as caught:
        Experiment(
            dataset={"path": str(path)},
            agent={"type": "floor"},
            scorers=["equals"],
            mcp_servers={"docs": server},
            conditions={"base": {"mcp_servers": ["docs"]}},
        )
    assert said in str(caught.value)
