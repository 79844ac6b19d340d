"""The summary of a run that has ended, from the user's cache if it is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from karat.analysis.model import Summary
from karat.analysis.parts import from_json, kind_of
from karat.analysis.summary import summarize
from karat.index.cache import CacheFile
from karat.installation import plugin_modules

if TYPE_CHECKING:
    from karat.journal import RunFolder


_NAME = "summary"
_LEVEL = 0.95


def cached_summary(run: RunFolder, *, at_least: int | None = None) -> Summary | None:
    """The summary that `summarize` would give; None if there is none for this state of the run."""
    return _decoded(_file(run, at_least))


def summarize_cached(
    run: RunFolder,
    *,
    at_least: int | None = None,
    scorings: Mapping[str, str] | None = None,
    level: float = _LEVEL,
    pairs: Literal["baseline", "all"] = "baseline",
    baseline: str | None = None,
    **asked: Any,
) -> Summary:
    """Like `summarize`, but caches the summary of an ended run whose journal has `at_least` bytes;
    None: as many as its kind says.

    Only the default summary is cached: with an option that changes numbers, it is computed again,
    and so it is for a kind whose code is not karat's, which may change under the same version.
    """
    other_code = run.info.kind not in plugin_modules("kinds")
    other_numbers = scorings or level != _LEVEL or pairs != "baseline" or baseline
    if other_numbers or any(asked.values()) or other_code:
        return summarize(
            run, scorings=scorings, level=level, pairs=pairs, baseline=baseline, **asked
        )
    file = _file(run, at_least)
    summary = _decoded(file)
    if summary is None:
        summary = summarize(run)
        if summary.status != "running":
            file.write(msgspec.json.encode(summary))

    return summary


def _file(run: RunFolder, at_least: int | None) -> CacheFile:
    if at_least is None:
        at_least = kind_of(run.info.kind).cached_from
    return CacheFile(run, _NAME, at_least=at_least)


def _decoded(file: CacheFile) -> Summary | None:
    data = file.read()
    try:
        if data is None:
            return None
        return from_json(data, Summary)
    except msgspec.DecodeError:
        return None
