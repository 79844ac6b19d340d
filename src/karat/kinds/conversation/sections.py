"""What a report says of a run over conversations: where the chain of answers breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from karat import formats
from karat.analysis.model import Summary
from karat.blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Count,
    Duration,
    Estimate,
    Fold,
    Group,
    KindBlocks,
    Money,
    Note,
    Number,
    Row,
    Scale,
    Section,
    Share,
    Table,
    Text,
    columns,
)
from karat.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Diagnosed,
    Rate,
    Stratum,
)

__all__ = ["reasoning", "sections"]

_NULLS = {"zero": "0", "one": "1", "sign_flipped": "−x", "times_100": "100 x", "another_turn": "other turn"}
_SIDES = {"expected": "the golden answer", "actual": "the agent's answer", "both": "both answers"}
_OPERATIONS = ("golden ops", "agent's ops")  # on average; of the agent where its program is readable
_EXAMPLES = 3  # of a diagnosis
_LONGEST = 160  # columns of an excerpt


def _each(part: ConversationSummary, rows: Callable[[ConversationResult], Sequence[Row]]) -> tuple[Row | Group, ...]:
    """Rows of every condition, under its name where there are several."""
    found: list[Row | Group] = []
    for one in part.conditions:
        own = rows(one)
        found += [Group(one.condition)] if own and len(part.conditions) > 1 else []
        found += own
    return tuple(found)


def _color(part: ConversationSummary, one: ConversationResult) -> int:
    return [each.condition for each in part.conditions].index(one.condition)


def _rate(found: Rate | Stratum, color: int) -> Estimate:
    mean = found.estimate
    return Estimate(mean.value, mean.low, mean.high, percent=True, scale=Scale(0.0, 1.0), color=color)


def _interval(part: ConversationSummary, head: str = "right") -> str:
    return f"{head} [{formats.level(part.level)}]"


def sections(summary: Summary, charts: Callable[..., tuple[Block, ...]]) -> KindBlocks:
    """What conversations add to a document. `charts`: those of these names."""
    part, settings = summary.part(ConversationSummary), summary.provenance.settings
    asked = formats.plural(summary.samples, "conversation")
    asked_with = [
        *(["golden answers as history"] if settings.get("dataset.history") == "golden" else []),
        *(["the printed answers as golden answers"] if settings.get("dataset.expected") == "printed" else []),
    ]
    if part is None:
        return KindBlocks(asked=asked, asked_with=tuple(asked_with))
    return KindBlocks(
        asked=f"{asked} ({formats.plural(part.turns, 'turn')})",
        asked_with=tuple(asked_with),
        scorers=(part.scorer,),
        results=tuple(_accuracies(part)),
        details=tuple(reasoning(part)),
        sections=(_chain(part, charts),),
        cost=tuple(_right_answers(part)),
    )


def _chain(part: ConversationSummary, charts: Callable[..., tuple[Block, ...]]) -> Section:
    """Along the turns, the rules, the reasons, what follows from an error."""
    blocks: list[Block] = [
        *charts("accuracy-by-turn"),
        *_strata(part, "Accuracy by turn", "turn", lambda one: one.by_turn),
        *charts("complexity-ceiling"),
        *_strata(part, "Complexity ceiling", "golden operations", lambda one: one.by_operations),
        *charts("ladder-of-matches"),
        *_ladder(part),
        *charts("diagnoses"),
        *_diagnoses(part),
        *charts("propagation"),
        *_propagation(part),
        *charts("first-wrong-turn", "features"),
        *_features(part),
        *_others(part),
    ]
    return Section(id="conversation", title="Where the chain breaks", blocks=tuple(blocks))


def _accuracies(part: ConversationSummary) -> Iterator[Block]:
    """Accuracy under each rule, beside what somebody gets who knows nothing."""
    nulls = [one.name for one in part.nulls]

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name="conversations" if rate is one.conversation_accuracy else rate.metric.replace("_", " "),
                cells=(
                    _rate(rate, _color(part, one)),
                    Count(rate.n),
                    Number(rate.design_effect),
                    *(Share(rate.nulls.get(name), tone="quiet") for name in nulls),
                ),
            )
            for rate in (*one.accuracies, one.conversation_accuracy)
        ]

    effect = "Design effect: how many times the variance is that of independent turns."
    yield Table(
        caption=f"Accuracy under each rule (offline), right: {part.right}",
        columns=columns(
            "rule", _interval(part), "n", Column("design effect", rank=2, legend=effect),
            *(Column(_NULLS.get(null.name, null.name), rank=1, legend=f"{_NULLS.get(null.name, null.name)}: "
                     f"{null.meaning}.") for null in part.nulls),
        ),
        rows=_each(part, rows),
        legend=_accuracy_legend(part),
        brief=True,
    )  # fmt: skip


def _accuracy_legend(part: ConversationSummary) -> str:
    unreached = sum(one.unreached for one in part.conditions)
    turns = sum(one.turns for one in part.conditions)
    parts = [
        f"Over all {formats.plural(turns, 'declared turn')}; intervals are clustered by conversation.",
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
        parts.append(f"Rules: {', '.join(part.rules) or 'unknown'}: do not compare numbers of different rules.")
    return " ".join(filter(None, parts))


def reasoning(part: ConversationSummary) -> Iterator[Block]:
    """How far the agent's program is the golden one."""

    def rows(one: ConversationResult) -> list[Row]:
        found = {rate.metric: rate for rate in one.reasoning}
        return [
            Row(
                name=metric.replace("_", " "),
                cells=(
                    Estimate(rate.estimate.value, rate.estimate.low, rate.estimate.high),
                    Number(step.estimate.value if (step := found.get(f"step_{metric}")) else None),
                    Count(rate.n),
                ),
                color=_color(part, one),
            )
            for metric, rate in found.items()
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
            legend="Over turns with a golden and a predicted program. Chain: against the whole golden program; step: "
            f"without what an earlier turn had computed. {unreadable}".rstrip(),
            slim=True,
        )  # fmt: skip


def _ladder(part: ConversationSummary) -> Iterator[Block]:
    """The same answers under rules from the strictest to the most forgiving."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=rung.metric.replace("_", " "),
                cells=(
                    Estimate(rung.rate, percent=True, scale=Scale(0.0, 1.0), color=_color(part, one)),
                    Count(rung.right),
                    Number(float(rung.forgiven), digits=0, signed=True),
                    Text(rung.forgives, tone="quiet"),
                ),
            )
            for rung in one.ladder
        ]

    listed = _each(part, rows)
    if listed:
        heads = ("match", "right", "turns", "forgiven", "what it passes over")
        yield Table(
            caption="Ladder of matches",
            columns=columns(*heads, text=heads[-1:]),
            rows=listed,
            legend="Forgiven: turns that are right here and not numerical.",
        )


def _strata(
    part: ConversationSummary, caption: str, head: str, of: Callable[[ConversationResult], Sequence[Stratum]]
) -> Iterator[Block]:
    """Accuracy along turns, or operations."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=stratum.key,
                cells=(
                    _rate(stratum, _color(part, one)),
                    Count(stratum.right),
                    Count(stratum.n),
                    Number(stratum.golden_operations),
                    Number(stratum.agent_operations),
                ),
            )
            for stratum in of(one)
        ]

    listed = _each(part, rows)
    if listed:
        yield Table(
            caption=f"{caption}, right: {part.right}",
            columns=columns(
                head, _interval(part), Column("right turns", rank=1), "turns",
                *(Column(name, rank=2) for name in _OPERATIONS),
            ),
            rows=listed,
            legend="Turns count from 0." if head == "turn" else "By compute operations in the golden program.",
        )  # fmt: skip


def _diagnoses(part: ConversationSummary) -> Iterator[Block]:
    """Why turns failed, with turns to show for it."""

    def rows(one: ConversationResult) -> list[Row]:
        found = [Row(name=each.label.replace("_", " "), cells=_diagnosed(each)) for each in one.diagnoses]
        if one.unreached:
            found.append(Row(name="never reached", cells=(Count(one.unreached), Text(""), Text(""))))
        return found

    listed = _each(part, rows)
    if listed:
        yield Table(
            caption=f"Diagnoses of wrong turns, right: {part.right}",
            columns=columns("diagnosis", "turns", "of wrong turns", "for example", text=("for example",)),
            rows=listed,
            legend="The first diagnosis that fits, for each wrong turn; then a turn: expected → answered.",
        )
    yield from _examples(part)


def _diagnosed(each: Diagnosed) -> tuple[Count | Share | Text, ...]:
    example = each.examples[0] if each.examples else None
    told, place = "", ""
    if example is not None:
        expected, actual = (formats.excerpt(one or formats.UNKNOWN, 40) for one in (example.expected, example.actual))
        told = f"{expected} → {actual}"
        place = f"{formats.excerpt(example.conversation, 40)}, turn {formats.count(example.turn)}"
    share = Bar((("spread", each.share),)) if each.share else None
    return (
        Count(each.turns),
        Share(each.share, bar=share),
        Text(told, below=place),
    )


def _examples(part: ConversationSummary) -> Iterator[Block]:
    rows: list[Row | Group] = []
    for one in part.conditions:
        for each in one.diagnoses:
            shown = each.examples[:_EXAMPLES]
            several = f", {one.condition}" if len(part.conditions) > 1 else ""
            rows += [Group(f"{each.label.replace('_', ' ')}{several}")] if shown else []
            for example in shown:
                cells = (
                    Text(formats.count(example.turn)),
                    *(Text(formats.excerpt(text or formats.UNKNOWN, _LONGEST))
                      for text in (example.question, example.expected, example.actual, example.evidence)),
                )  # fmt: skip
                rows.append(Row(name=formats.excerpt(example.conversation, 60), cells=cells))
    if rows:
        heads = ("conversation", "turn", "question", "expected", "answered", "evidence")
        caption = "Wrong turns, by diagnosis"
        yield Fold(caption, (Table(caption=caption, columns=columns(*heads, text=heads), rows=tuple(rows)),))


def _propagation(part: ConversationSummary) -> Iterator[Block]:
    """How errors go on from turn to turn."""

    def rows(one: ConversationResult) -> list[Row]:
        found = one.propagation
        rates = (
            ("right after a right turn", found.after_right),
            ("right after a wrong turn", found.after_wrong),
            ("right, had earlier turns been", found.had_earlier_been_right),
        )
        counts = (
            ("wrong after a wrong turn", found.cascades, "turns"),
            ("proved to be propagated", found.propagated, "turns"),
            ("without a wrong turn", found.never_wrong, "conversations"),
            *((f"first wrong at turn {turn}", many, "conversations") for turn, many in found.first_wrong.items()),
        )
        at = _color(part, one)
        rated = [Row(name=name, cells=(_rate(rate, at), Count(rate.n), Text("turns"))) for name, rate in rates]
        counted = [Row(name=name, cells=(Text(""), Count(many), Text(of))) for name, many, of in counts]
        return rated + counted

    legend = "Proved: with the agent's own wrong answers in it, the golden program gives what the agent answered."
    if any(one.conversations > part.conversations for one in part.conditions):
        legend += " A conversation that was asked several times counts each time."
    yield Table(
        caption=f"Propagation of errors, right: {part.right}",
        columns=columns("what", _interval(part, "share"), "n", "of", text=("of",)),
        rows=_each(part, rows),
        legend=legend,
    )


def _features(part: ConversationSummary) -> Iterator[Block]:
    """Accuracy by what the dataset says of a conversation or a turn."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=f"{feature.name.replace('_', ' ')}: {stratum.key}",
                cells=(
                    _rate(stratum, _color(part, one)),
                    Count(stratum.n),
                    Number(feature.correlation, signed=True) if place == 0 else Text(""),
                ),
            )
            for feature in one.features
            for place, stratum in enumerate(feature.strata)
        ]

    listed = _each(part, rows)
    if listed:
        yield Table(
            caption=f"Accuracy by feature of the dataset, right: {part.right}",
            columns=columns("feature", _interval(part), "turns", "correlation"),
            rows=listed,
            legend="Correlation: over turns, of the feature and being right.",
        )


def _others(part: ConversationSummary) -> Iterator[Block]:
    """Without the turns whose golden data contradicts itself; the file's own verdicts; what was not answered."""
    if listed := _each(part, lambda one: _quarantined(one, _color(part, one))):
        yield Table(
            caption="Without quarantined turns",
            columns=columns("rule", "all turns", _interval(part, "without quarantined turns"), "turns left"),
            rows=listed,
            legend="Quarantined: the golden data contradicts itself there.",
        )
    if listed := _each(part, _file_verdicts):
        heads = columns("rule", "ours", "the file's", "agree", "only ours", "only the file's", "turns")
        yield Table(caption="Verdicts of the file itself", columns=heads, rows=listed)
    yield from _unreadable(part)


def _quarantined(one: ConversationResult, color: int) -> list[Row]:
    left = one.quarantine.accuracies if one.quarantine is not None else ()
    return [
        Row(name=rate.metric.replace("_", " "), cells=(Share(rate.estimate.value), _rate(kept, color), Count(kept.n)))
        for rate, kept in zip(one.accuracies, left, strict=False)
    ]


def _file_verdicts(one: ConversationResult) -> list[Row]:
    found = one.verdicts
    if found is None:
        return []
    rows = []
    for metric, agreement in found.agreement.items():
        ours, theirs = found.only_ours[metric], found.only_theirs[metric]
        counts = Count(found.right - theirs + ours), Count(found.right)
        cells = (*counts, Share(agreement), Count(ours), Count(theirs), Count(found.n))
        rows.append(Row(name=metric.replace("_", " "), cells=cells))
    return rows


def _unreadable(part: ConversationSummary) -> Iterator[Note]:
    unreadable = [
        f"{one.condition}: {', '.join(sides)}"
        for one in part.conditions
        if (
            sides := [
                f"{_SIDES.get(side, side)} of {formats.plural(many, 'turn')}"
                for side, many in one.unreadable.items()
                if many
            ]
        )
    ]
    if unreadable:
        yield Note(texts=tuple(unreadable), tone="quiet", title="Could not be read as a number")


def _right_answers(part: ConversationSummary) -> Iterator[Block]:
    """Everything that was spent, over what came out right."""
    rows = []
    for at, one in enumerate(part.conditions):
        cost, pace = one.cost, one.pace
        median = None if pace.milliseconds_median is None else pace.milliseconds_median / 1000
        cells: tuple[Cell, ...] = (
            Count(cost.right_conversations),
            Count(cost.right_turns),
            Count(cost.tokens),
            Number(cost.tokens_per_right_conversation, digits=0),
            Number(cost.tokens_per_right_turn, digits=0),
            *(
                Money(dollars, cost.dollars_unknown)
                for dollars in (cost.dollars, cost.dollars_per_right_conversation, cost.dollars_per_right_turn)
            ),
            Duration(median),
        )
        rows.append(Row(name=one.condition, color=at, cells=cells))
    yield Table(
        caption=f"Cost of right answers, right: {part.right}",
        columns=columns(
            "condition", "right conversations", "right turns", Column("tokens", rank=1), Column("each conv.", rank=2),
            Column("each turn", rank=2), "dollars", Column("each conv.", rank=3), Column("each turn", rank=3),
            Column("time of a turn", legend="Time: median."),
        ),
        rows=tuple(rows),
        legend="Each: everything spent, over those that are right; – where none is, or the cost was not reported.",
    )  # fmt: skip
