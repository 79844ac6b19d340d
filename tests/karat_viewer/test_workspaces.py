"""What a trial changed in its workspace, on the page of its question."""

from __future__ import annotations

import asyncio

import pytest
from tests.karat_viewer.serving import Viewer
from tests.running_experiments import write_experiment

from karat.config import load
from karat.execution import run_experiment


@pytest.mark.needs_package("karat_coding")
def test_the_difference_is_shown_and_inert(tmp_path):
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "a.txt").write_text("one\n")
    script = "echo '</pre><img src=x onerror=alert(1)>' >> a.txt; ln -s /etc/passwd out; echo done"
    file = write_experiment(
        tmp_path, questions=1, agent={"type": "command", "command": ["sh", "-c", script]},
        conditions={"a": {"workspace": "start"}, "b": {}}, execution={"num_repetitions": 1},
    )  # fmt: skip
    run = asyncio.run(run_experiment(load(file), results=tmp_path / "results")).run
    with Viewer(tmp_path / "results") as running:
        viewer, place = running.enter(), f"/runs/{run.path.name}/samples/1"
        page = viewer.get(place).text
        (archive,) = (path for path in (run.path / "workspaces").iterdir() if not path.name.startswith("base"))
        archive.write_bytes(b"damaged")
        damaged = viewer.get(place).text
    assert "2 files changed, 0 removed, not everything was saved: out: a link that leads out" in page
    assert "+&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;" in page
    assert "<img src=x" not in page
    assert "root:" not in page
    assert page.count("Workspace:") == 1
    assert "the archive cannot be read" in damaged
