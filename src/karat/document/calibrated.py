"""The comparison of a judge with people, and the corrected numbers, as a document and as part of a
report.
"""

from __future__ import annotations

from collections.abc import Iterator

from karat import formats
from karat.analysis.people import Calibrated
from karat.blocks import (
    Block,
    Column,
    Count,
    Note,
    Number,
    Row,
    Section,
    Share,
    Table,
    Text,
    columns,
    estimate,
)
from karat.document.corrected import corrected_blocks, corrected_lines
from karat.document.run import Document


def calibrated_document(report: Calibrated, *, name: str) -> Document:
    """Corrected numbers first, then agreement, then the answers on which judge and people differ
    most.
    """
    labelled = f"{formats.count(report.labelled)} of {formats.plural(report.drawn, 'drawn answer')}"
    strata = formats.plural(report.strata, "stratum", "strata")
    facts = [
        ("Labels", f"{labelled}, by {', '.join(report.by)}"),
        (
            "Draw",
            (
                f"{report.draw}: {formats.plural(report.answers, 'answer')} in {strata} of "
                f"{report.strata_by}"
            ),
        ),
    ]
    agreement = [*_agreement(report)]
    if report.disagreements:
        texts = ("metric", "sample", "condition", "question")
        heads = ("row", "metric", "people", "judge", *texts[1:])
        rows = []
        for case in report.disagreements:
            cells = (
                Text(case.metric),
                Number(case.people),
                Number(case.judge),
                Text(case.sample),
                Text(case.condition),
                Text(case.question, tone="quiet"),
            )
            rows.append(Row(name=case.row, cells=cells))

        agreement.append(
            Table(
                caption="Where judge and people are farthest apart",
                columns=columns(*heads, text=texts),
                rows=tuple(rows),
            )
        )

    return Document(
        name=name,
        verdicts=tuple(corrected_lines(report)),
        facts=tuple(facts),
        warnings=report.notes,
        sections=(
            Section(
                id="corrected", title="Corrected by people", blocks=tuple(corrected_blocks(report))
            ),
            Section(
                id="agreement",
                title="Agreement of judge and people",
                blocks=tuple(agreement),
            ),
        ),
    )


def _agreement(report: Calibrated) -> Iterator[Block]:
    people = any(row.people_alpha is not None for row in report.agreement)
    yield Table(
        caption="Agreement on the labelled answers",
        columns=columns(
            "metric",
            Column("same step"),
            Column("kappa", legend="Kappa: Cohen's, with quadratic weights."),
            Column("AC2", legend="AC2: Gwet's; use it where nearly all answers are on one step."),
            Column(
                "alpha",
                rank=1,
                legend="Alpha: Krippendorff's. All three: 1 is full agreement, 0 that of chance.",
            ),
            *(
                [
                    Column(
                        "people",
                        legend="People: alpha among themselves; a judge can hardly do better.",
                    )
                ]
                if people
                else []
            ),
            Column("answers"),
        ),
        rows=tuple(
            Row(
                name=row.metric,
                cells=(
                    Share(row.exact),
                    estimate(row.kappa),
                    estimate(row.ac2),
                    estimate(row.alpha),
                    *(
                        [estimate(row.people_alpha) if row.people_alpha else Text("–")]
                        if people
                        else []
                    ),
                    Count(row.labelled),
                ),
            )
            for row in report.agreement
        ),
        brief=True,
    )
    reasons: dict[str, list[str]] = {}
    for row in report.agreement:
        if row.kappa.reason and row.steps:
            reasons.setdefault(row.kappa.reason, []).append(row.metric)
    if reasons:
        notes = [f"{', '.join(metrics)}: {reason}." for reason, metrics in reasons.items()]
        yield Note(texts=tuple(notes))
    for row in report.agreement:
        heads = [f"{step:g}" for step in row.steps]
        if row.confusion:
            yield Table(
                caption=f"{row.metric}: people's score (rows) and the judge's (columns)",
                columns=columns("people \\ judge", *heads),
                rows=tuple(
                    Row(name=head, cells=tuple(Count(count) for count in counts))
                    for head, counts in zip(heads, row.confusion, strict=True)
                ),
                slim=True,
            )
