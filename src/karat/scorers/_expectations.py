"""Several expectations of one answer: a metric for each, and one with the scorer's name that is
true if all hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from karat.records import Metric
from karat.scorers import Values, Verdict

Outcome = tuple[bool | None, str]
"""Whether an expectation is met (None: not known), and why not; "" if it is."""


def metrics_of(name: str, whole: str, parts: Mapping[str, str]) -> tuple[Metric, ...]:
    """The metrics of a scorer; a single expectation has none of its own.

    `parts`: expectation → its description.
    """
    described = {name: whole}
    if len(parts) > 1:
        described.update(parts)
    return tuple(
        Metric(name=key, low=0, high=1, kind="share", description=text)
        for key, text in described.items()
    )


def verdict_of(name: str, parts: Sequence[str], outcomes: Mapping[str, Outcome]) -> Verdict:
    """The value of each metric. An expectation that this sample does not have has no outcome."""
    met = [value for value, _ in outcomes.values()]
    passed: bool | None = True
    if False in met:
        passed = False
    elif None in met or not met:
        passed = None

    reasons = {part: reason for part, (_, reason) in outcomes.items() if reason}
    if outcomes:
        because = "; ".join(reasons.values())
    else:
        because = "the sample expects nothing"

    values: Values = {name: passed}
    if len(parts) > 1:
        for part in parts:
            if part in outcomes:
                values[part] = outcomes[part][0]
            else:
                values[part] = None
    else:
        reasons = {}

    return Verdict(values=values, reasons={name: because, **reasons} if because else {})
