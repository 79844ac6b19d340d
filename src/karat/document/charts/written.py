"""Numbers of charts, written: shares in percent, everything else as `karat.formats` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import estimated, share_estimate, signed_estimate
from karat.analysis.model import MetricInfo

if TYPE_CHECKING:  # its package reads studies, and takes 0.15 s to import
    from karat.kinds.study.analysis.model import SideNumbers

__all__ = ["estimated", "group_label", "is_share", "share_estimate", "signed_estimate", "statistic_of", "unit_of"]

_SYMBOLS = {
    "ttest_ind": "t", "welch": "t", "ttest_paired": "t", "ttest_one": "t", "anova": "F",
    "interaction": "F", "correlation": "r",
    "spearman": "rₛ", "mannwhitney": "U", "wilcoxon": "z", "variance_ratio": "ratio",
}  # fmt: skip


def is_share(info: MetricInfo) -> bool:
    """Whether a metric is shown in percent."""
    return info.percent


def unit_of(summary: Summary) -> str:
    """What one sample is called: the independent unit of every interval."""
    return "conversation" if summary.kind == "conversation" else "question"


def group_label(group: Sequence[MetricInfo]) -> str:
    """Metrics by name: one, or the first and how many more."""
    return group[0].key if len(group) == 1 else f"{group[0].key} and {len(group) - 1} more"


def statistic_of(kind: str, side: SideNumbers) -> str:
    """A statistic with its sign, or counts of a table: `t 2.66`, `75 of 92`, `121/155 vs 43/152`."""
    if side.table is not None:
        if all(len(row) == 2 for row in side.table):
            return " vs ".join(f"{formats.count(row[0])}/{formats.count(sum(row))}" for row in side.table)
        return "; ".join(",".join(map(formats.count, row)) for row in side.table)
    if side.statistic is None:
        return formats.UNKNOWN
    if kind in {"binomial", "proportion"}:
        total = formats.UNKNOWN if side.n_eff is None else formats.count(round(side.n_eff))
        return f"{formats.number(side.statistic, digits=0)} of {total}"
    digits = 0 if kind == "mannwhitney" else 2
    return f"{_SYMBOLS.get(kind, kind)} {formats.number(side.statistic, digits=digits)}"
