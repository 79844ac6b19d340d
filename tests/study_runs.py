"""The run over two studies, made and analysed once: `study_story.py` says what it is."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from tests.needed_packages import has_kind

from karat.analysis import Summary, summarize
from karat.journal import RunFolder


def story(folder: Path, *, repetitions: int = 1) -> RunFolder:
    """The run; tests that ask for it are skipped where the kind is not installed."""
    if not has_kind("study"):
        pytest.skip("the kind study is not installed")
    run: RunFolder = importlib.import_module("tests.karat_studies.study_story").story(folder, repetitions=repetitions)
    return run


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
