"""A run that was imported is shown as every other, with what its tool recorded besides."""

from __future__ import annotations

import re

from tests.karat_imports.test_results import trial, written
from tests.karat_viewer.serving import Viewer

from karat.importers import ImportedScore


def test_what_the_tool_recorded_besides_is_shown_and_inert(tmp_path):
    score = ImportedScore(scorer="s", values={"s": 1.0}, detail={"seen": "</pre><img src=x onerror=alert(1)>"})
    folder, _ = written(
        tmp_path, trial(detail={"sandbox": "docker"}, scores=[score]), trial(sample="q2", scores=[score])
    )
    with Viewer(tmp_path) as running:
        viewer = running.enter()
        pages = [viewer.get(f"/runs/{folder.path.name}/samples/{n}").text for n in (1, 2)]
    assert "What its tool recorded besides" in pages[0]
    assert "sandbox" in pages[0]
    assert "docker" in pages[0]
    assert not re.search(r"<img[^>]*onerror", pages[0])
    assert "What its tool recorded besides" not in pages[1]
