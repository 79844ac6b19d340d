"""Summaries that are kept; `tests/index/test_cache.py` shows when a file is kept at all."""

from __future__ import annotations

import pytest

from karat.analysis import summarize
from karat.analysis.cached import cached_summary, summarize_cached


@pytest.mark.parametrize("asked", [{}, {"pairs": "all"}, {"baseline": "with-docs"}], ids=str)
def test_a_summary_of_which_nothing_is_kept_is_computed(tmp_path, journals, monkeypatch, asked):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    run = journals.table(tmp_path / "run", {"baseline": [[3.0], [4.0]], "with-docs": [[4.0], [5.0]]})
    assert cached_summary(run) is None
    assert summarize_cached(run, **asked) == summarize(run, **asked)
