"""Means of every metric under every condition, and the differences between conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET, structs

from karat import blocks, formats
from karat.analysis import Summary
from karat.analysis.format_metric import POINT_LEGEND, estimated, is_point
from karat.analysis.means_columns import in_reports
from karat.analysis.model import Difference, MetricInfo, Repeat
from karat.analysis.verdicts import (
    NO_DIFFERENCE,
    NOT_TESTED,
    choice_factor,
    family_words,
    main_finding,
)
from karat.blocks import (
    Block,
    Column,
    Count,
    Estimate,
    Group,
    KindBlocks,
    Note,
    PValue,
    Row,
    Scale,
    Table,
    Text,
)
from karat.kinds import of

_MOST_REASONS = 6
_MOST_BRIEF = 24  # rows of means on a first screen
_MOST_OPEN = 60  # rows of differences that a page shows unfolded


SAME_AGAIN = (
    "Same again: the chance that a run with new {unit}s gives the same verdict; then, that a run "
    "with the same {unit}s does. Both if effects of this size are usual. Where nothing differs at "
    "all, a winner repeats 2 times in 100."
)


_BOUNDS = (
    "Bounds: the difference if every missing score of the second were the lowest and of the first "
    "the highest, or the reverse."
)


def measured(summary: Summary, kind: KindBlocks) -> list[MetricInfo]:
    """The metrics that have a score, except those in the kind's own tables."""
    known = {result.metric for result in summary.results if result.n_answers}
    found = []
    for info in summary.metrics:
        if info.key in known and info.scorer not in kind.scorers:
            found.append(info)

    return found


def means(summary: Summary, metrics: Sequence[MetricInfo]) -> Iterator[Block]:
    """The table of means, whose columns `means_columns` declares, also drawn."""
    if not metrics:
        return
    keys = {info.key for info in metrics}
    results = [result for result in summary.results if result.metric in keys]
    columns = in_reports(missing=any(result.n_missing for result in results))
    rows: list[Row | Group] = []
    for info in metrics:
        rows.append(Group(info.key, note_of(info, summary)))
        if info.low is not None and info.high is not None:
            scale = Scale(info.low, info.high)
        else:
            means = [result.mean for result in results if result.metric == info.key]
            ends = []
            for mean in means:
                for end in (mean.value, mean.low, mean.high):
                    if end is not None:
                        ends.append(end)

            scale = None
            if ends:
                scale = Scale(min(ends), max(ends))

        for at, condition in enumerate(summary.conditions):
            result = summary.result(condition, info.key)
            if result is not None:
                cells = []
                for column in columns:
                    cell = column.cell_of(info, result, summary.accounts[condition])
                    if isinstance(cell, Estimate):
                        cell = structs.replace(cell, scale=scale, color=at)
                    cells.append(cell)

                rows.append(Row(name=condition, color=at, cells=tuple(cells)))

    legends = []
    differences = [pair.estimate for pair in summary.differences]  # the first line may show one
    if any(map(is_point, [*differences, *(result.mean for result in results)])):
        legends.append(POINT_LEGEND)
    if any(result.offline for result in results):
        legends.append("Offline: scored by a rule, not by a model that understands.")
    unit = of(summary.kind).unit
    level = formats.level(summary.level)
    averaged = _averaged(summary, metrics, unit)
    yield Table(
        caption=f"Means with their {level} intervals",
        columns=(
            Column("condition", number=False),
            *(column.heading(unit=unit, level=level, averaged=averaged) for column in columns),
        ),
        rows=tuple(rows),
        legend=" ".join(legends),
        brief=True,
        limit=_MOST_BRIEF,
        rest="`--full` shows them",
        chart="means",
        finding=_finding(summary, metrics[0]),
    )
    yield from _clustered(summary, metrics[0])

    # The meaning of the metrics of a scorer that also measures itself: a judge's preference and
    # position bias
    scorers = {info.scorer for info in metrics if info.compared is False}
    texts = tuple(
        f"{info.key}: {info.description}."
        for info in metrics
        if info.scorer in scorers and info.description
    )
    if texts:
        yield Note(texts=texts, tone="quiet", brief=True)

    places: dict[str, dict[str, None]] = {}
    for result in results:
        if result.mean.reason and not is_point(result.mean):
            places.setdefault(result.mean.reason, {})[f"{result.metric} of {result.condition}"] = (
                None
            )

    if places:
        texts = tuple(
            f"No interval for {formats.some_of([*named])}: {reason}."
            for reason, named in places.items()
        )
        yield Note(texts=texts, tone="quiet", brief=True)


def _clustered(summary: Summary, info: MetricInfo) -> Iterator[Block]:
    """How many clusters the questions are of, and what that costs."""
    results = []
    for result in summary.results:
        if result.metric == info.key and result.clusters is not None:
            results.append(result)

    if not results:
        return
    unit = of(summary.kind).unit
    clusters = formats.plural(results[0].clusters or 0, "cluster")
    effects = [f"{result.condition} {formats.number(result.design_effect)}" for result in results]
    text = (
        f"The {unit}s are of {clusters}, such as documents or repeated questions: intervals and "
        f"tests count these. Design effect on {info.key}, the variance relative to that of "
        f"independent {unit}s: {formats.some_of(effects)}."
    )
    yield Note(texts=(text,), tone="quiet", brief=True)


def _finding(summary: Summary, info: MetricInfo) -> str:
    """The best mean of a metric, and the worst."""
    results = [
        result
        for result in summary.results
        if result.metric == info.key and result.mean.value is not None
    ]
    if not results:
        return f"{info.key}: no mean is known"
    ranked = sorted(
        results, key=lambda result: result.mean.value or 0.0, reverse=info.direction != "lower"
    )
    best = ranked[0]
    worst = ranked[-1]
    percent = info.percent
    over = formats.plural(best.n_questions, of(summary.kind).unit) + (
        ", offline scores" if info.offline else ""
    )
    mean = estimated(best.mean, percent=percent)
    if len(ranked) == 1:
        return f"{info.key} of {best.condition}: {mean} over {over}"
    if best.mean.value == worst.mean.value:
        return (
            f"{info.key} is the same under {formats.plural(len(ranked), 'condition')}, {mean} "
            f"over {over}"
        )

    if info.direction == "lower":
        most, least = ("lowest", "highest")
    else:
        most, least = ("highest", "lowest")

    lowest = estimated(worst.mean, percent=percent)
    return (
        f"{info.key} is {most} under {best.condition}, {mean} over {over}; {least} under "
        f"{worst.condition}, {lowest}"
    )


def _averaged(summary: Summary, metrics: Sequence[MetricInfo], unit: str) -> str:
    """How many questions a mean is based on: those asked that have a score."""
    keys = {info.key for info in metrics}
    counts = sorted({result.n_questions for result in summary.results if result.metric in keys})
    asked = formats.plural(summary.samples, unit)
    if counts == [summary.samples]:
        return asked
    few = formats.count(counts[0])
    most = formats.count(counts[-1])
    return f"the {unit}s that have a score, {few if few == most else f'{few} to {most}'} of {asked}"


def note_of(info: MetricInfo, summary: Summary, *, share: str = "share, in percent") -> str:
    """How to read a metric: its scale, and its scorer if there are several.

    `share`: the meaning of a share's numbers.
    """
    if info.low is None or info.high is None:
        ends = ""
    else:
        ends = f"{formats.brief(info.low)} to {formats.brief(info.high)}"

    parts = [share if info.percent else ends]
    if info.direction == "lower":
        parts += ["lower is better"]
    if info.offline:
        parts += ["offline"]
    if len({metric.scorer for metric in summary.metrics}) > 1:
        parts += [f"by {info.scorer}"]
    return ", ".join(part for part in parts if part)


def _of_the_best(summary: Summary) -> str:
    """How p-values allow for the choice of the best condition; "" if they need not."""
    family = summary.family
    factor = choice_factor(len(summary.conditions))
    if family is None or family.pairs == "all" or factor <= 1:
        return ""
    for pair in summary.differences:
        if family.baseline not in (pair.a, pair.b):
            return (
                f" Those of the best condition with others than the baseline were first multiplied "
                f"by {formats.brief(factor)}, since the same answers chose it."
            )

    return ""


def differences(summary: Summary, *, brief: bool = False) -> Iterator[Block]:
    """Every pair of conditions on every tested metric. `brief`: only what a first screen shows."""
    tested = [pair for pair in summary.differences if pair.verdict != NOT_TESTED]
    if not tested:
        return
    if brief:
        yield from _stopped(summary)
        return

    tests = sum(pair.p_adjusted is not None for pair in tested)
    unit = of(summary.kind).unit
    missing = any(_misses(pair) for pair in tested)
    rows: list[Row | Group] = []
    for info in summary.metrics:
        alike = [pair for pair in tested if pair.metric == info.key]
        if alike:
            rows.append(Group(info.key, note_of(info, summary, share="in percentage points")))

            ends = []
            for pair in alike:
                for end in (pair.estimate.value, pair.estimate.low, pair.estimate.high):
                    if end:
                        ends.append(end)

            reach = 1.05 * max(map(abs, ends), default=1.0)
            scale = Scale(-reach, reach, 0.0)
            rows += [_difference(pair, info, scale, missing=missing) for pair in alike]

    legend = ""
    if tests > 1:
        legend = (
            f"Intervals are not adjusted for multiple comparisons; p-values are (Holm, over "
            f"{formats.plural(tests, 'comparison')}).{_of_the_best(summary)}"
        )

    parts = []
    if any(pair.verdict == NO_DIFFERENCE for pair in tested):
        parts.append("“No difference shown” does not mean that there is none.")
    if summary.family is not None and summary.family.left_out:
        parts += [family_words(summary.family)]
    if any(is_point(pair.estimate) for pair in tested):
        parts += [POINT_LEGEND]
    others = len(summary.differences) - len(tested)
    if others:
        parts.append(f"{formats.plural(others, 'further reading')} of the same answers not tested.")
    yield Table(
        caption="Differences between conditions",
        columns=(
            Column("second − first", number=False),
            Column(
                f"difference [{formats.level(summary.level)}]",
                legend=f"The second minus the first, paired by {unit}.",
            ),
            Column("p (Holm)" if tests > 1 else "p", legend=legend),
            Column("d", rank=2, legend="d: the difference over its standard deviation."),
            Column(f"{unit}s", rank=2),
            Column("verdict", number=False),
            Column("same again", rank=1, legend=SAME_AGAIN.format(unit=unit)),
            *([Column("bounds", rank=3, legend=_BOUNDS)] if missing else []),
        ),
        rows=tuple(rows),
        legend=" ".join(parts),
        folded=len(rows) > _MOST_OPEN,
        chart="differences",
        finding=main_finding(tested, summary.metrics, unit=unit),
    )
    yield from _stopped(summary)
    steps = []  # what would settle each verdict, the cheapest first
    for pair in tested:
        ways = []
        for step in pair.again.settle if pair.again and not pair.again.shown else ():
            more = f"more {unit if step.what == 'question' else step.what}"
            cost = ""
            if step.cost:
                cost = f" ({formats.dollars(step.cost)})"
            ways.append(f"{formats.plural(step.more, more)}{cost}")

        if ways:
            steps.append(f"{pair.b} − {pair.a} on {pair.metric}: {' or '.join(ways)}.")

    if steps:
        yield Note(
            texts=tuple(steps[:_MOST_REASONS]),
            title="What would show a difference, if it is as large as it looks",
        )


def _stopped(summary: Summary) -> Iterator[Block]:
    """The decisions of a run that may stop early, and how to read its numbers."""
    stopping = summary.stopping
    if stopping is UNSET:
        return
    plan = formats.plural(stopping.horizon, "question")
    alpha = formats.brief(stopping.alpha)
    if stopping.clusters is not None:
        plan = formats.plural(stopping.clusters, "cluster")
    lines, early = [], False
    for look in stopping.comparisons:
        after = f"after {formats.count(look.clusters or look.questions)} of {plan}"
        if look.verdict in ("equivalent", "futile"):
            within = f"equivalent within ±{formats.brief(stopping.margin or 0.0)}"
            words = (
                within
                if look.verdict == "equivalent"
                else "given up, because the rest would hardly decide it"
            )
            lines.append(f"{look.b} − {look.a}: {words}, {after}.")
        elif look.verdict is not None:
            lines.append(f"{look.b} − {look.a}: {look.verdict}, decided {after}.")
            early |= look.questions < stopping.horizon
        else:
            end = "at the horizon" if look.questions >= stopping.horizon else "yet"
            lines.append(f"{look.b} − {look.a}: not decided {end}, {after}.")

    lines.append(
        f"Intervals and p-values of these comparisons hold at every look (alpha {alpha})."
        + (
            " An estimate at an early stop is a little too large: by 9 to 12 % on average."
            if early
            else ""
        )
    )
    if stopping.clusters is not None:
        lines.append(
            "A look counts each cluster once, by the mean difference of its questions, "
            "whatever its size."
        )

    if stopping.out and len(summary.differences) > len(stopping.comparisons):
        lines.append("The other comparisons do not allow for the stop.")
    if all((info.name, info.scorer, info.scoring) != stopping.measured for info in summary.metrics):
        lines.append(
            "The scores that are shown are not those that decided it: their intervals do not "
            "allow for the stop."
        )

    if spared := summary.total.ledger.decided:
        lines.append(f"Not run, because it was decided: {formats.plural(spared, 'trial')}.")
    yield Note(
        texts=tuple(lines), title=f"Stopping when it is decided, by {stopping.metric}", brief=True
    )


def _misses(pair: Difference) -> bool:
    """Whether a value is missing on either side."""
    return pair.least != pair.most or pair.loss_a > 0 or pair.loss_b > 0


def _difference(pair: Difference, info: MetricInfo, scale: Scale, *, missing: bool) -> Row:
    if _misses(pair):
        bounds = formats.between(None, pair.least, pair.most, percent=info.percent)[1]
    else:
        bounds = ""

    lost = pair.lost_a + pair.lost_b + pair.lost_both
    verdict = pair.verdict
    if pair.winner is not None:
        verdict = "better" if pair.winner == pair.b else "worse"
    if lost:
        below = f"{formats.count(lost)} lost"
    else:
        below = ""

    return Row(
        name=f"{pair.b} − {pair.a}",
        cells=(
            blocks.estimate(pair.estimate, percent=info.percent, signed=True, scale=scale),
            PValue(pair.p_adjusted),
            blocks.Number(pair.effect),
            Count(pair.n_pairs, below=below),
            Text(
                verdict,
                below=pair.reason or "",
                tone="good"
                if pair.winner is not None
                else "quiet"
                if pair.verdict == NO_DIFFERENCE
                else "",
            ),
            same_again(pair.again),
            *([Text(bounds)] if missing else []),
        ),
    )


def same_again(again: Repeat | None) -> Text:
    """The chance that a repeat gives the same verdict; below, with the same questions."""
    if again is None:
        return Text(formats.UNKNOWN)
    if again.same_questions is None:
        same = ""
    else:
        same = formats.chance(again.same_questions)

    return Text(formats.chance(again.new_questions), below=same)
