"""Numbers of charts, written: shares in percent, everything else as `karat.formats` writes it."""

from __future__ import annotations

from collections.abc import Sequence

from karat.analysis import Summary
from karat.analysis.format_metric import estimated, share_estimate, signed_estimate
from karat.analysis.model import MetricInfo
from karat.kinds import of

__all__ = ["estimated", "group_label", "is_share", "share_estimate", "signed_estimate", "unit_of"]


def is_share(info: MetricInfo) -> bool:
    """Whether a metric is shown in percent."""
    return info.percent


def unit_of(summary: Summary) -> str:
    """What one sample is called: the independent unit of every interval."""
    return of(summary.kind).unit


def group_label(group: Sequence[MetricInfo]) -> str:
    """Metrics by name: one, or the first and how many more."""
    return group[0].key if len(group) == 1 else f"{group[0].key} and {len(group) - 1} more"
