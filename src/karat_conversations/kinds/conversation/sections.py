"""The report sections of a run over conversations: where the chain of answers breaks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from karat import formats
from karat.analysis.format_metric import share_estimate, signed_estimate
from karat.analysis.model import Summary
from karat.analysis.numbers import Estimate as Estimated
from karat.blocks import (
    Axis,
    Bar,
    Block,
    Chart,
    Column,
    Count,
    Curve,
    Estimate,
    Fold,
    Group,
    KindBlocks,
    Line,
    Mark,
    Note,
    Number,
    Plane,
    Point,
    Row,
    Rows,
    Scale,
    Section,
    Share,
    Table,
    Text,
    columns,
    labels,
)
from karat_conversations.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Diagnosed,
    Rate,
    Rung,
    Stratum,
)
from karat_conversations.kinds.conversation.costs import right_answers

_NULLS = {
    "zero": "0",
    "one": "1",
    "sign_flipped": "−x",
    "times_100": "100 x",
    "another_turn": "other turn",
}
_SIDES = {"expected": "the golden answer", "actual": "the agent's answer", "both": "both answers"}
_OPERATIONS = ("golden ops", "agent's ops")  # means; the agent's over readable programs
_EXAMPLES = 3  # of a diagnosis
_LONGEST = 160  # columns of an excerpt
_RIGHT_TURNS = Axis(title="share of turns that are right", start=0.0, end=1.0, percent=True)
_FEW = 20  # turns: with fewer, the end of a curve is chance
_RUNGS = {
    "exact": "exact",
    "numerical": "numerical",
    "declared": "declared unit",
    "unit_agnostic": "unit forgiven",
    "sign_agnostic": "sign forgiven",
    "scale_and_sign": "both forgiven",
}


Blocks = Iterator[Block]


def _each(
    part: ConversationSummary,
    rows: Callable[[ConversationResult], Iterable[Row]],
) -> tuple[Row | Group, ...]:
    """Rows of every condition, under its name if there are several."""
    listed: list[Row | Group] = []
    for condition in part.conditions:
        own = [*rows(condition)]
        if own and len(part.conditions) > 1:
            listed += [Group(condition.condition)]
        listed += own

    return tuple(listed)


def _color(part: ConversationSummary, condition: ConversationResult) -> int:
    return [result.condition for result in part.conditions].index(condition.condition)


def _rate(rate: Rate | Stratum, color: int) -> Estimate:
    return _share(rate.estimate, color)


def _share(mean: Estimated, color: int) -> Estimate:
    return Estimate(
        mean.value,
        mean.low,
        mean.high,
        percent=True,
        scale=Scale(0.0, 1.0),
        color=color,
    )


def _interval(part: ConversationSummary, head: str = "right") -> str:
    return f"{head} [{formats.level(part.level)}]"


def sections(summary: Summary) -> KindBlocks:
    """Everything that conversations add to a report."""
    part = summary.part(ConversationSummary)
    settings = summary.provenance.settings
    asked = formats.plural(summary.samples, "conversation")
    asked_with = [
        *(["golden answers as history"] if settings.get("dataset.history") == "golden" else []),
        *(
            ["the printed answers as golden answers"]
            if settings.get("dataset.expected") == "printed"
            else []
        ),
    ]
    if part is None:
        return KindBlocks(asked=asked, asked_with=tuple(asked_with))

    # Accuracy by turn, the rules, the reasons for errors, and how errors propagate.
    blocks: list[Block] = [
        *_strata(part, "Accuracy by turn", "turn", lambda result: result.by_turn),
        *_strata(
            part,
            "Complexity ceiling",
            "golden operations",
            lambda result: result.by_operations,
        ),
        *_ladder(part, summary),
        *_diagnoses(part),
        *_propagation(part),
        *_first_wrong(part),
        *_features(part),
        *_others(part),
    ]
    chain = Section(id="conversation", title="Where the chain breaks", blocks=tuple(blocks))
    return KindBlocks(
        asked=f"{asked} ({formats.plural(part.turns, 'turn')})",
        asked_with=tuple(asked_with),
        scorers=(part.scorer,),
        results=tuple(_accuracies(part)),
        details=tuple(reasoning(part)),
        sections=(chain,),
        cost=tuple(right_answers(part)),
    )


def _accuracy(part: ConversationSummary) -> str:
    """The name of accuracy, by the match that makes a turn right."""
    return f"{part.right.replace('_', ' ')} accuracy"


def _written(estimated: Estimated) -> str:
    return share_estimate(estimated.value, estimated.low, estimated.high)


def _marks(share: Estimated, series: int | None = None, *, label: str = "") -> tuple[Mark, ...]:
    """A share with its interval; nothing if it is unknown."""
    if share.value is None:
        return ()
    return (
        Mark(
            value=share.value,
            low=share.low,
            high=share.high,
            series=series,
            label=label or _written(share),
        ),
    )


def _panels(
    part: ConversationSummary, axis: Axis, lines: Callable[[ConversationResult], Iterable[Line]]
) -> tuple[Rows, ...]:
    """A panel for each condition that has lines."""
    names = labels(condition.condition for condition in part.conditions)
    panels = [
        (names[condition.condition], tuple(lines(condition))) for condition in part.conditions
    ]
    return tuple(Rows(title=name, axis=axis, lines=drawn) for name, drawn in panels if drawn)


def _accuracies(part: ConversationSummary) -> Blocks:
    """Accuracy under each rule, compared with that of trivial answerers."""
    nulls = [null.name for null in part.nulls]

    def rows(condition: ConversationResult) -> Iterator[Row]:
        for rate in (*condition.accuracies, condition.conversation_accuracy):
            yield Row(
                name="conversations"
                if rate is condition.conversation_accuracy
                else rate.metric.replace("_", " "),
                cells=(
                    _rate(rate, _color(part, condition)),
                    Count(rate.n),
                    Number(rate.design_effect),
                    *(Share(rate.nulls.get(name), tone="quiet") for name in nulls),
                ),
            )

    effect = "Design effect: how many times the variance is that of independent turns."
    yield Table(
        caption=f"Accuracy under each rule (offline), right: {part.right}",
        columns=columns(
            "rule",
            _interval(part),
            "n",
            Column("design effect", rank=2, legend=effect),
            *(
                Column(
                    _NULLS.get(null.name, null.name),
                    rank=1,
                    legend=f"{_NULLS.get(null.name, null.name)}: {null.meaning}.",
                )
                for null in part.nulls
            ),
        ),
        rows=_each(part, rows),
        legend=_accuracy_legend(part),
        brief=True,
        chart="accuracy",
        finding="; ".join(
            (
                f"{_accuracy(part)} of {one.condition}: {_written(rate.estimate)} (n "
                f"{formats.plural(rate.n, 'turn')})"
            )
            if rate is not None
            else f"conversations of {one.condition}: {_written(one.conversation_accuracy.estimate)}"
            for one in part.conditions[:3]
            for rate in [one.rate("right")]
        ),
    )


def _accuracy_legend(part: ConversationSummary) -> str:
    unreached = sum(condition.unreached for condition in part.conditions)
    turns = sum(condition.turns for condition in part.conditions)
    parts = [
        (
            f"Over all {formats.plural(turns, 'declared turn')}; intervals are clustered by "
            f"conversation."
        ),
        f"Right, and conversations: {part.right}, or the same yes or no.",
    ]
    if unreached:
        parts.append(f"{formats.plural(unreached, 'turn')} never reached: wrong.")
    if part.nulls:
        parts.append("The last columns: the accuracy of someone who knows nothing.")
    parts.append(part.extraction())
    if part.weighted:
        parts.append("Conversations have weights; rates are of the file they were drawn from.")
    if len(part.rules) != 1:
        parts.append(
            f"Rules: {', '.join(part.rules) or 'unknown'}: do not compare numbers of "
            f"different rules."
        )

    return " ".join(filter(None, parts))


def reasoning(part: ConversationSummary) -> Blocks:
    """How close the agent's program is to the golden one."""

    def rows(condition: ConversationResult) -> list[Row]:
        rates = {rate.metric: rate for rate in condition.reasoning}
        return [
            Row(
                name=metric.replace("_", " "),
                cells=(
                    Estimate(rate.estimate.value, rate.estimate.low, rate.estimate.high),
                    Number(step.estimate.value if (step := rates.get(f"step_{metric}")) else None),
                    Count(rate.n),
                ),
                color=_color(part, condition),
            )
            for metric, rate in rates.items()
            if not metric.startswith("step_")
        ]

    listed = _each(part, rows)
    unreadable = part.unreadable_programs()
    if unreadable and not listed:
        yield Note(texts=(unreadable,), title="Reasoning programs")
    if listed:
        yield Table(
            caption="Reasoning programs (offline)",
            columns=columns("measure", _interval(part, "chain"), "step", "turns"),
            rows=listed,
            legend=(
                "Over turns with a golden and a predicted program. Chain: against the whole golden "
                f"program; step: without what an earlier turn had computed. {unreadable}"
            ).rstrip(),
            slim=True,
        )


def _ladder(part: ConversationSummary, summary: Summary) -> Blocks:
    """The same answers under rules from the strictest to the most lenient."""

    def rows(condition: ConversationResult) -> Iterator[Row]:
        for rung in condition.ladder:
            yield Row(
                name=rung.metric.replace("_", " "),
                cells=(
                    _share(_of_rung(summary, condition, rung), _color(part, condition)),
                    Count(rung.right),
                    Number(float(rung.forgiven), digits=0, signed=True),
                    Text(rung.forgives, tone="quiet"),
                ),
            )

    def lines(condition: ConversationResult) -> Iterator[Line]:
        for rung in condition.ladder:
            rate = condition.rate(rung.metric)
            if rate is not None:
                nulls = [null for null in rate.nulls.values() if null is not None]
            else:
                nulls = []

            marks = _marks(_of_rung(summary, condition, rung))
            yield Line(
                name=_RUNGS.get(rung.metric, rung.metric),
                marks=marks,
                tick=max(nulls, default=None),
            )

    listed = _each(part, rows)
    if not listed:
        return
    first = next(condition for condition in part.conditions if condition.ladder)
    rungs = {rung.metric: _written(_of_rung(summary, first, rung)) for rung in first.ladder}
    shown = []
    for name in ("numerical", "declared", "scale_and_sign"):
        if name in rungs:
            shown.append(f"{rungs[name]} {_RUNGS[name]}")

    yield Chart(
        name="ladder-of-matches",
        title=(
            f"{first.condition} is right in {', '.join(shown)} (n "
            f"{formats.plural(first.turns, 'turn')})"
        ),
        description=f"One panel per condition, one line per match: accuracy as a point with its "
        f"{formats.level(part.level)} interval; "
        "the tick is what the best of the trivial answerers gets by the same rule.",
        panels=_panels(part, _RIGHT_TURNS, lines),
        table=Table(
            caption="Ladder of matches",
            columns=columns(
                "match",
                _interval(part),
                "turns",
                "forgiven",
                "what it ignores",
                text=("what it ignores",),
            ),
            rows=listed,
            legend="Forgiven: turns that are right here and not numerical.",
        ),
    )


def _of_rung(summary: Summary, condition: ConversationResult, rung: Rung) -> Estimated:
    """The rate with the rung's name; else the metric's mean over conversations, if it is the same
    number.
    """
    rate = condition.rate(rung.metric)
    place = (condition.condition, rung.metric)
    result = next(
        (result for result in summary.results if (result.condition, result.metric) == place), None
    )
    low = high = None
    if rate is not None:
        low = rate.estimate.low
        high = rate.estimate.high
    elif (
        result is not None
        and result.mean.value is not None
        and rung.rate is not None
        and math.isclose(result.mean.value, rung.rate)
    ):
        low = result.mean.low
        high = result.mean.high

    return Estimated(
        value=rung.rate,
        low=low,
        high=high,
        se=None,
        n=rung.n,
        level=summary.level,
        method="",
    )


def _strata(
    part: ConversationSummary,
    caption: str,
    head: str,
    of: Callable[[ConversationResult], Sequence[Stratum]],
) -> Blocks:
    """Accuracy by turn, or by number of operations."""

    def rows(condition: ConversationResult) -> Iterator[Row]:
        for stratum in of(condition):
            yield Row(
                name=stratum.key,
                cells=(
                    _rate(stratum, _color(part, condition)),
                    Count(stratum.right),
                    Count(stratum.n),
                    Number(stratum.golden_operations),
                    Number(stratum.agent_operations),
                ),
            )

    listed = _each(part, rows)
    if not listed:
        return
    table = Table(
        caption=f"{caption}, right: {part.right}",
        columns=columns(
            head,
            _interval(part),
            Column("right turns", rank=1),
            "turns",
            *(Column(name, rank=2) for name in _OPERATIONS),
        ),
        rows=listed,
        legend="Turns count from 0."
        if head == "turn"
        else "By compute operations in the golden program.",
    )
    yield _curves(part, table, of) or table


def _curves(
    part: ConversationSummary, table: Table, of: Callable[[ConversationResult], Sequence[Stratum]]
) -> Chart | None:
    """Accuracy as a curve over whole numbers, one per condition; None if nothing is known."""
    solid: list[tuple[str, Stratum]] = []  # of the first condition, those with enough turns
    curves = []
    unit = "turn" if table.columns[0].head == "turn" else "operation"
    for series, result in enumerate(part.conditions):
        strata = [
            step
            for step in of(result)
            if step.key.isdigit() and step.n and step.estimate.value is not None
        ]
        points = tuple(
            Point(
                x=int(step.key),
                y=step.estimate.value or 0.0,
                low=step.estimate.low,
                high=step.estimate.high,
                label=(
                    f"{result.condition}, {unit} {step.key}: {_written(step.estimate)} (n {step.n})"
                ),
            )
            for step in sorted(strata, key=lambda step: int(step.key))
        )
        if points:
            curves.append(Curve(points=points, form="lines", series=series))
            solid = solid or [(result.condition, step) for step in strata if step.n >= _FEW]
            solid = solid or [(result.condition, step) for step in strata]

    if not curves:
        return None

    def at(stratum: Stratum) -> str:
        if unit == "turn":
            place = f"turn {stratum.key}"
        else:
            place = formats.plural(int(stratum.key), "operation")

        return f"{_written(stratum.estimate)} at {place} (n {formats.plural(stratum.n, 'turn')})"

    ends = dict.fromkeys(at(step) for _, step in (solid[0], solid[-1]))
    return Chart(
        name="accuracy-by-turn" if unit == "turn" else "complexity-ceiling",
        title=f"{_accuracy(part)} of {solid[0][0]}: {', '.join(ends)}",
        description=f"One line per condition: {_accuracy(part)} as the share of turns, with a "
        f"band of its {formats.level(part.level)} interval, clustered by conversation.",
        panels=(
            Plane(
                x=Axis(
                    title="turn of the conversation, from 0"
                    if unit == "turn"
                    else "operations of the golden program",
                    whole=True,
                ),
                y=Axis(title="share of turns", start=0.0, end=1.0, percent=True),
                curves=tuple(curves),
                height=240,
            ),
        ),
        table=table,
        legend=tuple(condition.condition for condition in part.conditions),
    )


def _diagnoses(part: ConversationSummary) -> Blocks:
    """Why turns failed, with examples."""

    def rows(condition: ConversationResult) -> list[Row]:
        shown = [
            Row(name=cause.label.replace("_", " "), cells=_diagnosed(cause))
            for cause in condition.diagnoses
        ]
        if condition.unreached:
            shown.append(
                Row(name="never reached", cells=(Count(condition.unreached), Text(""), Text("")))
            )

        return shown

    def lines(condition: ConversationResult) -> list[Line]:
        turns = {cause.label: cause.turns for cause in condition.diagnoses}
        if turns:
            found = []
            for label in order:
                found.append(
                    Line(
                        name=label.replace("_", " "),
                        marks=(
                            Mark(
                                start=0.0,
                                value=turns[label],
                                label=formats.plural(turns[label], "turn"),
                            ),
                        )
                        if label in turns
                        else (),
                    )
                )

            return found

        return []

    totals: dict[str, int] = {}
    for result in part.conditions:
        for cause in result.diagnoses:
            totals[cause.label] = totals.get(cause.label, 0) + cause.turns

    order = sorted(totals, key=lambda label: (-totals[label], label))
    listed = _each(part, rows)
    table = Table(
        caption=f"Diagnoses of wrong turns, right: {part.right}",
        columns=columns(
            "diagnosis",
            "turns",
            "of wrong turns",
            "for example",
            text=("for example",),
        ),
        rows=listed,
        legend=(
            "The first diagnosis that fits, for each wrong turn; then a turn: expected → answered."
        ),
    )
    if totals:
        first = next(result for result in part.conditions if result.diagnoses)
        worst = first.diagnoses[0]
        failed = sum(cause.turns for cause in first.diagnoses)
        yield Chart(
            name="diagnoses",
            title=f"{worst.label.replace('_', ' ')} is behind {formats.share(worst.share)} of the "
            f"{formats.plural(failed, 'failed turn')} of {first.condition} (n "
            f"{formats.count(worst.turns)})",
            description="One panel per condition, one bar per diagnosis: how many failed turns it "
            "explains, each turn once.",
            panels=_panels(part, Axis(title="failed turns", start=0.0), lines),
            table=table,
        )
    elif listed:
        yield table

    yield from _examples(part)


def _diagnosed(diagnosed: Diagnosed) -> tuple[Count | Share | Text, ...]:
    if diagnosed.examples:
        example = diagnosed.examples[0]
    else:
        example = None

    answers, place = "", ""
    if example is not None:
        expected, actual = (
            formats.excerpt(text or formats.UNKNOWN, 40)
            for text in (example.expected, example.actual)
        )
        answers = f"{expected} → {actual}"
        place = f"{formats.excerpt(example.conversation, 40)}, turn {formats.count(example.turn)}"

    if diagnosed.share:
        share = Bar((("spread", diagnosed.share),))
    else:
        share = None

    return (
        Count(diagnosed.turns),
        Share(diagnosed.share, bar=share),
        Text(answers, below=place),
    )


def _examples(part: ConversationSummary) -> Blocks:
    rows: list[Row | Group] = []
    for condition in part.conditions:
        for cause in condition.diagnoses:
            shown = cause.examples[:_EXAMPLES]
            if len(part.conditions) > 1:
                several = f", {condition.condition}"
            else:
                several = ""

            if shown:
                rows += [Group(f"{cause.label.replace('_', ' ')}{several}")]
            for example in shown:
                cells = (
                    Text(formats.count(example.turn)),
                    *(
                        Text(formats.excerpt(text or formats.UNKNOWN, _LONGEST))
                        for text in (
                            example.question,
                            example.expected,
                            example.actual,
                            example.evidence,
                        )
                    ),
                )
                rows.append(Row(name=formats.excerpt(example.conversation, 60), cells=cells))

    if rows:
        heads = ("conversation", "turn", "question", "expected", "answered", "evidence")
        caption = "Wrong turns, by diagnosis"
        yield Fold(
            caption,
            (Table(caption=caption, columns=columns(*heads, text=heads), rows=tuple(rows)),),
        )


def _propagation(part: ConversationSummary) -> Blocks:
    """How errors propagate from turn to turn."""

    def rows(condition: ConversationResult) -> list[Row]:
        propagation = condition.propagation
        rates = (
            ("right after a right turn", propagation.after_right),
            ("right after a wrong turn", propagation.after_wrong),
            ("right, had earlier turns been", propagation.had_earlier_been_right),
        )
        counts = (
            ("wrong after a wrong turn", propagation.cascades, "turns"),
            ("proved to be propagated", propagation.propagated, "turns"),
            ("without a wrong turn", propagation.never_wrong, "conversations"),
            *(
                (f"first wrong at turn {turn}", many, "conversations")
                for turn, many in propagation.first_wrong.items()
            ),
        )
        at = _color(part, condition)
        rated = [
            Row(name=name, cells=(_rate(rate, at), Count(rate.n), Text("turns")))
            for name, rate in rates
        ]
        counted = [
            Row(name=name, cells=(Text(""), Count(many), Text(of))) for name, many, of in counts
        ]
        return rated + counted

    legend = (
        "Proved: with the agent's own wrong answers in it, the golden program gives what the "
        "agent answered."
    )
    if any(condition.conversations > part.conversations for condition in part.conditions):
        legend += " A conversation that was asked several times counts each time."
    table = Table(
        caption=f"Propagation of errors, right: {part.right}",
        columns=columns("what", _interval(part, "share"), "n", "of", text=("of",)),
        rows=_each(part, rows),
        legend=legend,
    )
    yield _propagation_chart(part, table) or table


def _propagation_chart(part: ConversationSummary, table: Table) -> Chart | None:
    """Accuracy after right and wrong turns; None if nothing is known."""

    def lines(condition: ConversationResult) -> Iterator[Line]:
        rates = (
            ("all turns", condition.rate("right")),
            ("after a right turn", condition.propagation.after_right),
            ("after a wrong turn", condition.propagation.after_wrong),
            ("had earlier turns been right", condition.propagation.had_earlier_been_right),
        )
        for name, rate in rates:
            if rate is not None and rate.estimate.value is not None:
                label = f"{_written(rate.estimate)} of {formats.plural(rate.n, 'turn')}"
                yield Line(name=name, marks=_marks(rate.estimate, label=label))

    panels = _panels(part, _RIGHT_TURNS, lines)
    if not panels:
        return None
    first = next(condition for condition in part.conditions if condition.turns)
    passed = first.propagation
    after = [
        f"{_written(rate.estimate)} (n {formats.count(rate.n)})"
        for rate in (passed.after_wrong, passed.after_right)
    ]
    proved = formats.plural(passed.propagated, "wrong turn is", "wrong turns are")
    return Chart(
        name="propagation",
        title=f"{first.condition}: after a wrong turn {after[0]} are right, after a right one "
        f"{after[1]}; {proved} proved to come from an earlier answer",
        description=f"One panel per condition: accuracy with its {formats.level(part.level)} "
        f"interval over all turns, over those after a right turn and after a wrong "
        f"one, and with those counted as right that are proved to be wrong only by an "
        f"earlier answer.",
        panels=tuple(panels),
        table=table,
    )


def _first_wrong(part: ConversationSummary) -> Blocks:
    """The first wrong turn of conversations."""
    names = labels(result.condition for result in part.conditions)
    panels, first = [], None
    for result in part.conditions:
        counts = {int(turn): many for turn, many in result.propagation.first_wrong.items()}
        if counts:
            bars = tuple(
                Point(
                    x=turn,
                    y=many,
                    left=turn - 0.4,
                    right=turn + 0.4,
                    label=f"turn {turn}: {formats.plural(many, 'conversation')}",
                )
                for turn, many in sorted(counts.items())
            )
            first = first or result
            panels.append(
                Plane(
                    title=names[result.condition],
                    x=Axis(title="first wrong turn, from 0", whole=True),
                    y=Axis(title="conversations", start=0.0, whole=True),
                    curves=(Curve(points=bars, form="bars"),),
                )
            )

    if first is None:
        return

    def rows(condition: ConversationResult) -> Iterator[Row]:
        passed = condition.propagation
        went = sum(passed.first_wrong.values()) + passed.never_wrong
        counts = [
            *sorted(passed.first_wrong.items(), key=lambda item: int(item[0])),
            ("never", passed.never_wrong),
        ]
        for turn, many in counts:
            share = many / went if went else None
            yield Row(name=turn, cells=(Count(many), Share(share)))

    passed = first.propagation
    most = max(passed.first_wrong, key=lambda turn: passed.first_wrong[turn])
    went = formats.plural(sum(passed.first_wrong.values()) + passed.never_wrong, "conversation")
    yield Chart(
        name="first-wrong-turn",
        title=f"{first.condition}: {formats.count(passed.first_wrong[most])} of {went} go wrong "
        f"first at turn {most}; {formats.count(passed.never_wrong)} never do",
        description="One panel per condition, one bar per turn: the conversations whose first "
        "wrong turn it is. One that was asked several times counts each time.",
        panels=tuple(panels),
        table=Table(
            caption="First wrong turns",
            columns=columns("first wrong turn", "conversations", "share"),
            rows=_each(part, rows),
        ),
        detail=True,
    )


def _features(part: ConversationSummary) -> Blocks:
    """Accuracy by the dataset's features of a conversation or a turn."""

    def rows(condition: ConversationResult) -> Iterator[Row]:
        for feature in condition.features:
            for place, stratum in enumerate(feature.strata):
                yield Row(
                    name=f"{feature.name.replace('_', ' ')}: {stratum.key}",
                    cells=(
                        _rate(stratum, _color(part, condition)),
                        Count(stratum.n),
                        Number(feature.correlation, signed=True) if place == 0 else Text(""),
                    ),
                )

    listed = _each(part, rows)
    if not listed:
        return
    marks: dict[str, list[Mark]] = {}
    for series, result in enumerate(part.conditions):
        for feature in result.features:
            for stratum in feature.strata:
                label = (
                    f"{result.condition}: {_written(stratum.estimate)} of "
                    f"{formats.plural(stratum.n, 'turn')}"
                )
                line = marks.setdefault(f"{feature.name.replace('_', ' ')}: {stratum.key}", [])
                line.extend(_marks(stratum.estimate, series, label=label))

    first = next(condition for condition in part.conditions if condition.features)
    known = [
        (abs(feature.difference.value), feature)
        for feature in first.features
        if feature.difference is not None and feature.difference.value is not None
    ]
    title = (
        f"{_accuracy(part)} of {first.condition} by feature (n "
        f"{formats.plural(first.turns, 'turn')})"
    )
    if known:
        widest = max(known, key=lambda pair: pair[0])[1]
        turns = formats.plural(sum(stratum.n for stratum in widest.strata), "turn")
        if widest.difference is not None:
            by = signed_estimate(widest.difference, percent=True)
        else:
            by = ""

        title = (
            f"{widest.name.replace('_', ' ')} goes with {by} of {_accuracy(part)} under "
            f"{first.condition} (n {turns})"
        )

    names = labels(marks)
    axis = Axis(title="share of turns", start=0.0, end=1.0, percent=True)
    lines = tuple(Line(name=names[name], marks=tuple(line)) for name, line in marks.items())
    yield Chart(
        name="features",
        title=title,
        description=f"One line per value of a feature, a point with its "
        f"{formats.level(part.level)} interval for each condition.",
        panels=(Rows(axis=axis, lines=lines),),
        table=Table(
            caption=f"Accuracy by feature of the dataset, right: {part.right}",
            columns=columns("feature", _interval(part), "turns", "correlation"),
            rows=listed,
            legend="Correlation: over turns, of the feature and being right.",
        ),
        legend=tuple(result.condition for result in part.conditions),
    )


def _others(part: ConversationSummary) -> Blocks:
    """Without the turns whose golden data contradicts itself; the file's own verdicts; unanswered
    turns.
    """
    if listed := _each(part, lambda result: _quarantined(result, _color(part, result))):
        yield Table(
            caption="Without quarantined turns",
            columns=columns(
                "rule",
                "all turns",
                _interval(part, "without quarantined turns"),
                "turns left",
            ),
            rows=listed,
            legend="Quarantined: the golden data contradicts itself there.",
        )

    if listed := _each(part, _file_verdicts):
        heads = columns(
            "rule",
            "ours",
            "the file's",
            "agree",
            "only ours",
            "only the file's",
            "turns",
        )
        yield Table(caption="Verdicts of the file itself", columns=heads, rows=listed)

    unreadable = [
        f"{condition.condition}: {', '.join(sides)}"
        for condition in part.conditions
        if (
            sides := [
                f"{_SIDES.get(side, side)} of {formats.plural(many, 'turn')}"
                for side, many in condition.unreadable.items()
                if many
            ]
        )
    ]
    if unreadable:
        yield Note(texts=tuple(unreadable), tone="quiet", title="Could not be read as a number")
    abstained = [
        (
            f"{condition.condition}: "
            f"{', '.join(f'{formats.count(n)} {_ABSTENTIONS[kind]}' for kind, n in counts.items())}"
        )
        for condition in part.conditions
        if (counts := condition.abstentions)
    ]
    if abstained:
        yield Note(
            texts=tuple(abstained), tone="quiet", title="Turns without an answer, or that have none"
        )


def _quarantined(condition: ConversationResult, color: int) -> Iterator[Row]:
    if condition.quarantine is not None:
        left = condition.quarantine.accuracies
    else:
        left = ()

    for rate, kept in zip(condition.accuracies, left, strict=False):
        yield Row(
            name=rate.metric.replace("_", " "),
            cells=(Share(rate.estimate.value), _rate(kept, color), Count(kept.n)),
        )


def _file_verdicts(condition: ConversationResult) -> Iterator[Row]:
    verdicts = condition.verdicts
    if verdicts is None:
        return
    for metric, agreement in verdicts.agreement.items():
        ours = verdicts.only_ours[metric]
        theirs = verdicts.only_theirs[metric]
        counts = Count(verdicts.right - theirs + ours), Count(verdicts.right)
        cells = (*counts, Share(agreement), Count(ours), Count(theirs), Count(verdicts.n))
        yield Row(name=metric.replace("_", " "), cells=cells)


_ABSTENTIONS = {
    "right": "rightly not answered",
    "over_refusal": "not answered although there is an answer",
    "unsupported": "answered although it cannot be known",
}
