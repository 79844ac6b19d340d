"""Many trials with servers of their own leave nothing behind."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.execution import Outcome
from karat.records import Answer

Write = Callable[..., Path]
Run = Callable[..., Outcome]

SERVER = Path(__file__).parents[1] / "karat_servers" / "planted_server.py"  # starts in no time: no library


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/dev/fd"))


def processes(mark: str) -> list[str]:
    """Those whose command line holds `mark`; zombies have none."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if mark in line]


@pytest.mark.slow
@pytest.mark.needs_package("karat_servers", cases="recorded")
@pytest.mark.parametrize("mcp", [{}, {"record": "tapes"}], ids=["plain", "recorded"])
def test_trials_with_their_own_servers_leave_no_process_and_no_descriptor(
    experiment: Write, run: Run, tmp_path: Path, mcp: dict[str, Any]
) -> None:
    mark = f"mark-of-{tmp_path.name}"
    server = {"command": "python", "args": [str(SERVER), mark]}
    sections = {"mcp": mcp} if mcp else {}
    file = experiment(
        questions=12,
        agent={"type": "floor"},
        mcp_servers={"shelf": {**server, "scope": "trial"}},
        conditions={"docs": {"mcp_servers": ["shelf"], "require_mcp_tool_use": True}},
        execution={"num_repetitions": 2, "max_concurrent": 8},
        **sections,
    )
    run(experiment_of_one(file))  # what is opened once and kept (selectors, libraries) is open now
    before = descriptors()
    outcome = run(file)
    assert len(list(outcome.run.events_of(Answer))) == 24
    assert processes(mark) == []
    assert descriptors() <= before


def experiment_of_one(file: Path) -> Path:
    small = file.with_name("one.yaml")
    small.write_text(file.read_text().replace("num_repetitions: 2", "num_repetitions: 1"))
    (file.parent / "one.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    small.write_text(small.read_text().replace("questions.jsonl", "one.jsonl"))
    return small
