"""The run over two studies, made and analysed once: `study_story.py` says what it is."""

from __future__ import annotations

import pytest
from tests.exports.study_story import story

from karat.analysis import Summary, summarize
from karat.journal import RunFolder


@pytest.fixture(scope="session")
def study_run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return story(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def study_summary(study_run: RunFolder) -> Summary:
    return summarize(study_run)


@pytest.fixture(scope="session")
def repeated_study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Summary, RunFolder]:
    """With two repetitions."""
    run = story(tmp_path_factory.mktemp("repeated"), repetitions=2)
    return summarize(run), run
