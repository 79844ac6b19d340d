"""The comparison of a judge with people, and the corrected numbers, as a document and as part of a report."""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.numbers import Estimate as Found
from karat.analysis.people import Calibrated, MetricAgreement
from karat.blocks import Block, Column, Count, Estimate, Note, Number, Row, Section, Share, Table, Text, columns
from karat.document.corrected import corrected_blocks, corrected_lines
from karat.document.run import Document

__all__ = ["calibrated_document"]


def calibrated_document(found: Calibrated, *, name: str) -> Document:
    """Corrected numbers first, then agreement, then the answers on which judge and people differ most."""
    labelled = f"{formats.count(found.labelled)} of {formats.plural(found.drawn, 'drawn answer')}"
    strata = formats.plural(found.strata, "stratum", "strata")
    facts = [
        ("Labels", f"{labelled}, by {', '.join(found.by)}"),
        ("Draw", f"{found.draw}: {formats.plural(found.answers, 'answer')} in {strata} of {found.strata_by}"),
    ]
    return Document(
        name=name,
        verdicts=tuple(corrected_lines(found)),
        facts=tuple(facts),
        warnings=found.notes,
        sections=(
            Section(id="corrected", title="Corrected by people", blocks=tuple(corrected_blocks(found))),
            Section(id="agreement", title="Agreement of judge and people", blocks=tuple(_agreement(found))),
        ),
    )


def _agreement(found: Calibrated) -> Iterator[Block]:
    people = any(one.people_alpha is not None for one in found.agreement)
    yield Table(
        caption="Agreement on the labelled answers",
        columns=columns(
            "metric",
            Column("same step"),
            Column("kappa", legend="Kappa: Cohen's, with quadratic weights."),
            Column("AC2", legend="AC2: Gwet's; use it where nearly all answers are on one step."),
            Column("alpha", rank=1, legend="Alpha: Krippendorff's. All three: 1 is full agreement, 0 that of chance."),
            *(
                [Column("people", legend="People: alpha among themselves; a judge can hardly do better.")]
                if people
                else []
            ),
            Column("answers"),
        ),
        rows=tuple(
            Row(
                name=one.metric,
                cells=(
                    Share(one.exact),
                    _estimate(one.kappa),
                    _estimate(one.ac2),
                    _estimate(one.alpha),
                    *([_estimate(one.people_alpha) if one.people_alpha else Text("–")] if people else []),
                    Count(one.labelled),
                ),
            )
            for one in found.agreement
        ),
        brief=True,
    )
    reasons = {one.kappa.reason: one.metric for one in found.agreement if one.kappa.reason and one.steps}
    if reasons:
        yield Note(texts=tuple(f"{metric}: {reason}." for reason, metric in reasons.items()))
    for one in found.agreement:
        yield from _confusion(one)
    if found.disagreements:
        yield _disagreements(found)


def _estimate(found: Found) -> Estimate:
    return Estimate(found.value, found.low, found.high)


def _confusion(one: MetricAgreement) -> Iterator[Block]:
    heads = [f"{step:g}" for step in one.steps]
    if one.confusion:
        yield Table(
            caption=f"{one.metric}: people's score (rows) and the judge's (columns)",
            columns=columns("people \\ judge", *heads),
            rows=tuple(
                Row(name=head, cells=tuple(Count(count) for count in counts))
                for head, counts in zip(heads, one.confusion, strict=True)
            ),
            slim=True,
        )


def _disagreements(found: Calibrated) -> Table:
    texts = ("metric", "sample", "condition", "question")
    return Table(
        caption="Where judge and people are farthest apart",
        columns=columns("row", "metric", "people", "judge", "sample", "condition", "question", text=texts),
        rows=tuple(
            Row(
                name=one.row,
                cells=(
                    Text(one.metric), Number(one.people), Number(one.judge), Text(one.sample), Text(one.condition),
                    Text(one.question, tone="quiet"),
                ),
            )
            for one in found.disagreements
        ),
    )  # fmt: skip
