"""A run over conversations: where the chain of answers breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from karat import formats
from karat.document.blocks import Bar, Block, Cell, Group, Note, Row, Span, Table, columns, numbers, words
from karat.document.charts.written import share_estimate
from karat.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Diagnosed,
    Rate,
    Stratum,
)

__all__ = ["accuracies", "besides", "diagnoses", "features", "ladder", "propagation", "reasoning", "strata"]

_NULLS = {"zero": "0", "one": "1", "sign_flipped": "−x", "times_100": "100 x", "another_turn": "other turn"}
_SIDES = {"expected": "the golden answer", "actual": "the agent's answer", "both": "both answers"}
_OPERATIONS = ("golden operations", "agent's operations")
_EXAMPLES = 3  # of a diagnosis
_LONGEST = 160  # columns of an excerpt


def _each(part: ConversationSummary, rows: Callable[[ConversationResult], Sequence[Row]]) -> tuple[Row | Group, ...]:
    """Rows of every condition, under its name where there are several."""
    found: list[Row | Group] = []
    for one in part.conditions:
        own = rows(one)
        found += [Group(name=one.condition)] if own and len(part.conditions) > 1 else []
        found += own
    return tuple(found)


def _color(part: ConversationSummary, one: ConversationResult) -> int:
    return [each.condition for each in part.conditions].index(one.condition)


def _rated(rate: Rate) -> str:
    found = rate.estimate
    return share_estimate(found.value, found.low, found.high)


def _line(value: float | None, low: float | None, high: float | None, color: int) -> Span | None:
    if value is None:
        return None
    return Span(value=value, low=low, high=high, start=0.0, end=1.0, color=color)


def _share_cells(found: Rate | Stratum, color: int) -> tuple[Cell, Cell]:
    told = found.estimate
    value, bracket, rest = share_estimate(told.value, told.low, told.high).partition(" [")
    drawn = _line(told.value, told.low, told.high, color)
    return Cell(text=value), Cell(text=f"[{rest}" if bracket else formats.UNKNOWN, drawn=drawn)


def accuracies(part: ConversationSummary) -> Iterator[Block]:
    """Accuracy under each rule, beside what somebody gets who knows nothing."""
    nulls = [one.name for one in part.nulls]

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name="conversations" if rate is one.conversation_accuracy else rate.metric.replace("_", " "),
                cells=(
                    *_share_cells(rate, _color(part, one)),
                    *numbers(formats.count(rate.n), formats.number(rate.design_effect)),
                    *(Cell(text=formats.share(rate.nulls.get(name)), tone="quiet") for name in nulls),
                ),
            )
            for rate in (*one.accuracies, one.conversation_accuracy)
        ]

    heads = ("rule", "right", "interval", "n", "design effect", *(_NULLS.get(name, name) for name in nulls))
    yield Table(
        caption=f"Accuracy under each rule, with {formats.level(part.level)} intervals clustered by conversation, "
        f"right: {part.right}",
        columns=columns(*heads),
        rows=_each(part, rows),
        legend=_accuracy_legend(part),
    )


def _accuracy_legend(part: ConversationSummary) -> str:
    unreached = sum(one.unreached for one in part.conditions)
    parts = [f"Over all {formats.plural(sum(one.turns for one in part.conditions), 'declared turn')}."]
    parts.append(f"Right, and conversations: {part.right}, or the same yes or no.")
    if unreached:
        parts.append(f"{formats.plural(unreached, 'turn')} never reached: wrong.")
    parts.append("Design effect: how many times the variance is that of independent turns.")
    names = "; ".join(f"{_NULLS.get(one.name, one.name)}: {one.meaning}" for one in part.nulls)
    parts.append(f"The last columns: what somebody gets who knows nothing ({names})." if names else "")
    parts.append(part.extraction())
    if part.weighted:
        parts.append("Conversations have weights; rates are of the file they were drawn from.")
    if len(part.rules) != 1:
        parts.append(f"Rules: {', '.join(part.rules) or 'not told'}: do not compare numbers of different rules.")
    return " ".join(filter(None, parts))


def reasoning(part: ConversationSummary) -> Iterator[Block]:
    """How far the agent's program is the golden one."""

    def rows(one: ConversationResult) -> list[Row]:
        found = {rate.metric: rate for rate in one.reasoning}
        return [
            Row(
                name=metric.replace("_", " "),
                cells=(
                    Cell(text=formats.estimate(rate.estimate.value, rate.estimate.low, rate.estimate.high)),
                    *numbers(
                        formats.number(step.estimate.value if (step := found.get(f"step_{metric}")) else None),
                        formats.count(rate.n),
                    ),
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
            caption="Reasoning programs",
            columns=columns("measure", f"chain [{formats.level(part.level)} interval]", "step", "turns"),
            rows=listed,
            legend="Over turns with a golden and a predicted program. Chain: against the whole golden program; step: "
            f"without what an earlier turn had computed. {unreadable}".rstrip(),
            slim=True,
        )  # fmt: skip


def ladder(part: ConversationSummary) -> Iterator[Block]:
    """The same answers under rules from the strictest to the most forgiving."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=rung.metric.replace("_", " "),
                cells=(
                    Cell(text=formats.share(rung.rate), drawn=_line(rung.rate, None, None, _color(part, one))),
                    *numbers(formats.count(rung.right), formats.signed(float(rung.forgiven), digits=0)),
                    words(rung.forgives, tone="quiet"),
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


def strata(
    part: ConversationSummary, caption: str, head: str, of: Callable[[ConversationResult], Sequence[Stratum]]
) -> Iterator[Block]:
    """Accuracy along turns, or operations."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=stratum.key,
                cells=(
                    *_share_cells(stratum, _color(part, one)),
                    *numbers(
                        formats.count(stratum.right),
                        formats.count(stratum.n),
                        formats.number(stratum.golden_operations),
                        formats.number(stratum.agent_operations),
                    ),
                ),
            )
            for stratum in of(one)
        ]

    listed = _each(part, rows)
    if listed:
        yield Table(
            caption=f"{caption}, right: {part.right}",
            columns=columns(head, "right", "interval", "right turns", "turns", *_OPERATIONS),
            rows=listed,
            legend="Operations: on average, of the golden program and of the agent's, where it "
            "gave one that can be read.",
            folded=True,
        )


def diagnoses(part: ConversationSummary) -> Iterator[Block]:
    """Why turns failed, with turns to show for it."""

    def rows(one: ConversationResult) -> list[Row]:
        found = [
            Row(name=each.label.replace("_", " "), color=None, cells=_diagnosed(each)) for each in one.diagnoses
        ]  # fmt: skip
        if one.unreached:
            found.append(Row(name="never reached", cells=(*numbers(formats.count(one.unreached), ""), words(""))))
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


def _diagnosed(each: Diagnosed) -> tuple[Cell, ...]:
    example = each.examples[0] if each.examples else None
    told, place = "", ""
    if example is not None:
        expected, actual = (formats.excerpt(one or formats.UNKNOWN, 40) for one in (example.expected, example.actual))
        told = f"{expected} → {actual}"
        place = f"{formats.excerpt(example.conversation, 40)}, turn {formats.count(example.turn)}"
    share = Bar(parts=(("spread", each.share),)) if each.share else None
    return (
        Cell(text=formats.count(each.turns)),
        Cell(text=formats.share(each.share), drawn=share),
        words(told, below=place),
    )


def _examples(part: ConversationSummary) -> Iterator[Block]:
    rows: list[Row | Group] = []
    for one in part.conditions:
        for each in one.diagnoses:
            shown = each.examples[:_EXAMPLES]
            several = f", {one.condition}" if len(part.conditions) > 1 else ""
            rows += [Group(name=f"{each.label.replace('_', ' ')}{several}")] if shown else []
            for example in shown:
                cells = (
                    words(formats.count(example.turn)),
                    *(words(formats.excerpt(text or formats.UNKNOWN, _LONGEST))
                      for text in (example.question, example.expected, example.actual, example.evidence)),
                )  # fmt: skip
                rows.append(Row(name=formats.excerpt(example.conversation, 60), cells=cells))
    if rows:
        heads = ("conversation", "turn", "question", "expected", "answered", "evidence")
        yield Table(
            caption="Wrong turns, by diagnosis", columns=columns(*heads, text=heads), rows=tuple(rows), folded=True
        )


def propagation(part: ConversationSummary) -> Iterator[Block]:
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
        rated = [
            Row(name=name, cells=(*_share_cells(rate, at), *numbers(formats.count(rate.n)), words("turns")))
            for name, rate in rates
        ]
        counted = [
            Row(name=name, cells=(*numbers("", "", formats.count(many)), words(of)))
            for name, many, of in counts
        ]  # fmt: skip
        return rated + counted

    legend = "Proved: with the agent's own wrong answers in it, the golden program gives what the agent answered."
    if any(one.conversations > part.conversations for one in part.conditions):
        legend += " A conversation that was asked several times counts each time."
    heads = ("what", "share", "interval", "n", "of")
    yield Table(
        caption=f"Propagation of errors, right: {part.right}",
        columns=columns(*heads, text=("of",)),
        rows=_each(part, rows),
        legend=legend,
    )


def features(part: ConversationSummary) -> Iterator[Block]:
    """Accuracy by what the dataset says of a conversation or a turn."""

    def rows(one: ConversationResult) -> list[Row]:
        return [
            Row(
                name=f"{feature.name.replace('_', ' ')}: {stratum.key}",
                cells=(
                    *_share_cells(stratum, _color(part, one)),
                    *numbers(formats.count(stratum.n), formats.signed(feature.correlation) if place == 0 else ""),
                ),
            )
            for feature in one.features
            for place, stratum in enumerate(feature.strata)
        ]

    listed = _each(part, rows)
    if listed:
        yield Table(
            caption=f"Accuracy by feature of the dataset, right: {part.right}",
            columns=columns("feature", "right", "interval", "turns", "correlation"),
            rows=listed,
            legend="Correlation: over turns, of the feature and being right.",
            folded=True,
        )


def besides(part: ConversationSummary) -> Iterator[Block]:
    """Without the turns whose golden data contradicts itself; the file's own verdicts; what was not answered."""

    def quarantined(one: ConversationResult) -> list[Row]:
        left = one.quarantine.accuracies if one.quarantine is not None else ()
        return [
            Row(name=rate.metric.replace("_", " "),
                cells=numbers(formats.share(rate.estimate.value), _rated(kept), formats.count(kept.n)))
            for rate, kept in zip(one.accuracies, left, strict=False)
        ]  # fmt: skip

    def verdicts(one: ConversationResult) -> list[Row]:
        found = one.verdicts
        return [] if found is None else [
            Row(name=metric.replace("_", " "),
                cells=numbers(formats.share(agreement), formats.count(found.only_ours[metric]),
                              formats.count(found.only_theirs[metric]), formats.count(found.n)))
            for metric, agreement in found.agreement.items()
        ]  # fmt: skip

    if listed := _each(part, quarantined):
        heads = ("rule", "all turns", "without quarantined turns", "turns left")
        yield Table(caption="Without quarantined turns", columns=columns(*heads), rows=listed,
                    legend="Quarantined: the golden data contradicts itself there.")  # fmt: skip
    if listed := _each(part, verdicts):
        judged = columns("rule", "agree", "only ours", "only the file's", "turns")
        yield Table(caption="Verdicts of the file itself", columns=judged, rows=listed)
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
