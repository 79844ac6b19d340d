"""Where the variation comes from: questions, repetitions, the judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from karat import formats
from karat.analysis import Summary
from karat.analysis.model import MetricInfo, Result
from karat.analysis.numbers import Quantity
from karat.blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Count,
    Group,
    Note,
    Number,
    Row,
    Share,
    Table,
    Text,
    columns,
    estimate,
)
from karat.document.scores import note_of
from karat.kinds import of


def variation(summary: Summary, metrics: Sequence[MetricInfo]) -> Iterator[Block]:
    """The components of the variation, how reliable answers are, and the judges of a panel."""
    results = [
        row
        for info in metrics
        for row in summary.results
        if row.metric == info.key and row.n_answers
    ]
    if not results:
        return
    unit = of(summary.kind).unit
    judged = any(result.judge_sd.value is not None for result in results)
    # for a share it would repeat the mean
    ordinal = {info.key for info in metrics if info.kind == "ordinal"}
    stepped = any(
        result.top_share.value is not None and result.metric in ordinal for result in results
    )
    reliable = any(result.reliability.value is not None for result in results)
    rows: list[Row | Group] = []
    for info in metrics:
        own = [result for result in results if result.metric == info.key]
        if own:
            if info.threshold is None:
                note = note_of(info, summary)
            else:
                bound = "at most" if info.direction == "lower" else "at least"
                note = ", ".join(
                    filter(
                        None,
                        (
                            note_of(info, summary),
                            f"reliable: {bound} {formats.brief(info.threshold)}",
                        ),
                    )
                )

            rows += [Group(info.key, note)]

        widest = max((part.value or 0.0 for result in own for part in _parts(result)), default=0.0)
        for result in own:
            best: Cell = Text("")
            if info.kind == "ordinal":
                best = Share(result.top_share.value)
            cells: list[Cell] = []
            written: type[Number] | type[Share] = Number
            if info.percent:
                written = Share
            for part in _parts(result) if judged else _parts(result)[:2]:
                bar = None
                if part.value and widest:
                    bar = Bar((("spread", part.value / widest),))
                cells.append(written(part.value, bar=bar))

            if stepped:
                cells.append(best)
            if reliable:
                cells.append(estimate(result.reliability, percent=True))
            rows.append(
                Row(
                    name=result.condition,
                    color=summary.conditions.index(result.condition),
                    cells=tuple(cells),
                )
            )

    yield Table(
        caption="Standard deviations",
        columns=tuple(_columns(unit, judged=judged, stepped=stepped, reliable=reliable)),
        rows=tuple(rows),
    )
    named = ("Variance between questions", "Variance between repetitions", "Judge variance")
    texts = dict.fromkeys(
        f"{name}: not estimated ({part.reason})."
        for result in results
        for name, part in zip(named, _parts(result), strict=True)
        if part.value is None and part.reason
    )
    if texts:
        yield Note(texts=tuple(texts), tone="quiet")

    yield from _panel(summary)


def _columns(unit: str, *, judged: bool, stepped: bool, reliable: bool) -> Iterator[Column]:
    yield Column("condition", number=False)
    yield Column(f"between {unit}s", legend=f"Between {unit}s: of their means.")
    yield Column(
        "repetitions",
        legend=f"Repetitions: between answers to one {unit}, which is what the agent does "
        f"differently each time.",
    )
    if judged:
        yield Column("judgings", legend="Judgings: of one judge on one answer.")
    if stepped:
        yield Column(
            "best answers",
            rank=1,
            legend="Best answers: the share with the best value of the scale.",
        )

    if reliable:
        legend = (
            f"Reliable (pass^k): the share of {unit}s whose every repetition reached the threshold."
        )
        yield Column("reliable", rank=2, legend=legend)


def _parts(result: Result) -> tuple[Quantity, Quantity, Quantity]:
    return result.between_sd, result.within_sd, result.judge_sd


def _panel(summary: Summary) -> Iterator[Block]:
    """Judges of a panel: the scores of each, and the agreement of each pair."""
    if not summary.panel:
        return

    scores: list[Row | Group] = []
    for info in summary.metrics:
        given = {
            (score.judge, result.condition): score
            for result in summary.results
            if result.metric == info.key
            for score in result.by_judge
        }
        if given:
            scores.append(Group(info.key))
        for judge in dict.fromkeys(judge for judge, _ in given):
            cells = []
            for condition in summary.conditions:
                score = given.get((judge, condition))
                if score is None:
                    answers = ""
                else:
                    answers = formats.plural(score.answers, "answer")

                cells.append(Number(None if score is None else score.mean, below=answers))

            scores.append(Row(name=judge, cells=tuple(cells)))

    yield Table(
        caption="What each judge gave",
        columns=columns("judge", *summary.conditions),
        rows=tuple(scores),
    )

    rows: list[Row | Group] = []
    for info in summary.metrics:
        own = [pair for pair in summary.panel if pair.metric == info.key]
        if own:
            rows += [Group(info.key)]
        rows += [
            Row(
                name=f"{pair.a} – {pair.b}",
                cells=(
                    Share(pair.exact),
                    Share(pair.within_one),
                    estimate(pair.ac2 or None),
                    Count(pair.answers),
                ),
            )
            for pair in own
        ]

    yield Table(
        caption="How far judges agree",
        columns=columns(
            "judges",
            "same step",
            "at most one apart",
            Column(
                "AC2",
                legend=(
                    "AC2: Gwet's, with quadratic weights: 1 is full agreement, 0 that of chance."
                ),
            ),
            "answers",
        ),
        rows=tuple(rows),
        legend="The share of the answers that two judges put on one step, or at most one apart.",
    )


def retried(summary: Summary) -> Iterator[Block]:
    """Whether trying again changed the result, on the first metric."""
    first = None
    if summary.metrics:
        first = summary.metrics[0].key
    results = []
    for result in summary.results:
        if result.metric == first and result.retried.answers:
            results.append(result)

    if not results:
        return
    rows = tuple(
        Row(
            name=result.condition,
            color=summary.conditions.index(result.condition),
            cells=(
                Number(result.first_attempt.mean),
                Count(result.first_attempt.answers),
                Number(result.retried.mean),
                Count(result.retried.answers),
            ),
        )
        for result in results
    )
    yield Table(
        caption=f"Retried answers: {first}",
        columns=columns("condition", "first attempt", "answers", "retried", "answers"),
        rows=rows,
        slim=True,
    )
