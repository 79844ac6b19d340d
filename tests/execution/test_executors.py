"""Where the trials of an experiment run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.needed_packages import has_package

from karat.config import load
from karat.config.rehearsed import redirected
from karat.errors import BadOption
from karat.execution import executor_of

Write = Callable[..., Path]
FLOOR: dict[str, Any] = {"agent": {"type": "floor"}, "conditions": {"a": {}}}


def test_this_process_runs_the_trials_where_the_file_names_no_other_place(experiment: Write) -> None:
    assert executor_of(load(experiment(**FLOOR))) is None
    assert executor_of(load(experiment(**FLOOR, execution={"executor": "local"}))) is None


@pytest.mark.skipif(not has_package("karat_scale"), reason="the package that brings executors is not here")
def test_a_named_place_says_what_it_cannot_run_and_a_rehearsal_needs_none(experiment: Write) -> None:
    recording = load(experiment(**FLOOR, execution={"executor": "ray"}, mcp={"record": "tapes"}))
    with pytest.raises(BadOption) as refused:
        executor_of(recording)
    assert str(refused.value) == (
        "execution.executor: workers elsewhere cannot add to one recording: record with `executor: local`, then replay"
    )
    assert executor_of(redirected(recording, "http://127.0.0.1:9")) is None
