"""The terminal's tables of a run over conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from karat import formats
from karat.analysis.numbers import Estimate
from karat.document.terminal_layout import Cell, Columns, Section
from karat.kinds.conversation.analysis.model import (
    ConversationResult,
    ConversationSummary,
    Diagnosed,
    Example,
    Rate,
    Stratum,
)

__all__ = ["sections"]

_NULLS = {"zero": "0", "one": "1", "sign_flipped": "−x", "times_100": "100x", "another_turn": "other"}
_CLOSED = 12  # columns of a bar


def sections(part: ConversationSummary, *, wide: bool) -> Iterator[Section]:
    """The tables, in the order in which they are read."""
    yield _accuracies(part, wide=wide)
    if any(one.reasoning or one.unreadable_programs for one in part.conditions):
        yield _reasoning(part)
    yield _ladder(part)
    yield _strata(part, "Accuracy by turn", "turn", lambda one: one.by_turn, _BY_TURN)
    if any(one.by_operations for one in part.conditions):
        yield _strata(part, "Complexity ceiling", "golden operations", lambda one: one.by_operations, _CEILING)
    if any(one.diagnoses for one in part.conditions):
        yield _diagnoses(part)
    yield _propagation(part)
    if any(one.features for one in part.conditions):
        yield _features(part)
    yield _costs(part, wide=wide)
    yield from _besides(part)


def _shares(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return formats.UNKNOWN
    return f"[{formats.share(found.low)}, {formats.share(found.high)}]"


def _rule(part: ConversationSummary) -> str:
    """What the headings of everything that counts right turns say."""
    return f"right: {part.right}"


def _heading(part: ConversationSummary, table: Columns, one: ConversationResult) -> None:
    """The condition's name, where there are several."""
    if len(part.conditions) > 1:
        table.title(Text(formats.excerpt(one.condition, 60), style="bold"))


def _plain(*texts: str) -> list[Cell]:
    return [(text, "") for text in texts]


def _accuracies(part: ConversationSummary, *, wide: bool) -> Section:
    level = formats.level(part.level)
    nulls = [one.name for one in part.nulls]
    shown = [_NULLS.get(name, name) for name in nulls] if wide else ["null"]
    table = Columns(["", "right", f"{level} interval", "n", "effect", *shown])
    for one in part.conditions:
        _heading(part, table, one)
        for rate in (*one.accuracies, one.conversation_accuracy):
            name = rate.metric if rate is not one.conversation_accuracy else "conversations"
            table.row(name, _accuracy_cells(rate, nulls, wide=wide), indent=2 * (len(part.conditions) > 1))
    return Section(f"Accuracy (offline), {_rule(part)}", table, _accuracy_legend(part, wide=wide))


def _accuracy_cells(rate: Rate, nulls: Sequence[str], *, wide: bool) -> list[Cell]:
    found = rate.estimate
    known = {name: value for name, value in rate.nulls.items() if value is not None}
    given = [formats.share(known.get(name)) for name in nulls]
    if not wide:
        worst = max(known, key=lambda name: known[name], default=None)
        given = [formats.UNKNOWN if worst is None else f"{formats.share(known[worst])} {_NULLS.get(worst, worst)}"]
    effect = formats.number(rate.design_effect)
    return _plain(formats.share(found.value), _shares(found), formats.count(rate.n), effect, *given)


def _accuracy_legend(part: ConversationSummary, *, wide: bool) -> str:
    unreached = sum(one.unreached for one in part.conditions)
    turns = formats.plural(sum(one.turns for one in part.conditions), "declared turn")
    parts = [f"over all {turns}; intervals are clustered by conversation."]
    parts.append(f"right, and conversations: {part.right}, or the same yes or no.")
    if unreached:
        parts.append(f"{formats.plural(unreached, 'turn')} never reached: wrong.")
    parts.append("effect: how many times the variance is that of independent turns.")
    names = "; ".join(f"{_NULLS.get(one.name, one.name)}: {one.meaning}" for one in part.nulls)
    kind = "what somebody gets who knows nothing" if wide else "the most that somebody gets who knows nothing"
    parts.append(f"The last columns: {kind} ({names})." if wide else f"null: {kind} ({names}).")
    parts.append(part.extraction())
    if part.weighted:
        parts.append("Conversations have weights; rates are of the file they were drawn from.")
    if len(part.rules) != 1:
        parts.append(f"Rules: {', '.join(part.rules) or 'not told'}: do not compare numbers of different rules.")
    return " ".join(filter(None, parts))


def _reasoning(part: ConversationSummary) -> Section:
    table = Columns(["", "chain", f"{formats.level(part.level)} interval", "step", "turns"])
    for one in part.conditions:
        _heading(part, table, one)
        found = {rate.metric: rate for rate in one.reasoning}
        for metric, rate in found.items():
            if not metric.startswith("step_"):
                step = found.get(f"step_{metric}")
                stepwise = formats.number(step.estimate.value) if step is not None else formats.UNKNOWN
                mean = rate.estimate
                interval = formats.interval(mean.low, mean.high) or formats.UNKNOWN
                cells = _plain(formats.number(mean.value), interval, stepwise, formats.count(rate.n))
                table.row(metric, cells, indent=2 * (len(part.conditions) > 1))
    legend = "over turns with a golden and a predicted program; chain: against the whole golden program; "
    legend += f"step: without what an earlier turn had computed. {part.unreadable_programs()}".rstrip()
    return Section("Reasoning (offline)", table, legend)


def _ladder(part: ConversationSummary) -> Section:
    table = Columns(["", "right", "turns", "forgiven", "what it passes over"], left=["what it passes over"])
    for one in part.conditions:
        _heading(part, table, one)
        for rung in one.ladder:
            forgiven = formats.signed(float(rung.forgiven), digits=0)
            cells = _plain(formats.share(rung.rate), formats.count(rung.right), forgiven, rung.forgives)
            table.row(rung.metric, cells, indent=2 * (len(part.conditions) > 1))
    return Section("Ladder of matches", table, "forgiven: turns that are right here and not numerical.")


_BY_TURN = "turns count from 0."
_CEILING = "by the number of compute operations in the golden program."
_OPERATIONS = "ops: operations on average, of the golden program and of the agent's, where it has a readable one."


def _strata(
    part: ConversationSummary,
    title: str,
    head: str,
    of: Callable[[ConversationResult], Sequence[Stratum]],
    legend: str,
) -> Section:
    heads = [head, "right", f"{formats.level(part.level)} interval", "turns", "golden ops", "agent's ops", ""]
    table = Columns(heads, left=[""])
    for one in part.conditions:
        _heading(part, table, one)
        for stratum in of(one):
            table.row(stratum.key, _stratum_cells(stratum), indent=2 * (len(part.conditions) > 1))
    return Section(f"{title}, {_rule(part)}", table, f"{legend} {_OPERATIONS}")


def _stratum_cells(stratum: Stratum) -> list[Cell]:
    found = stratum.estimate
    operations = formats.number(stratum.golden_operations), formats.number(stratum.agent_operations)
    cells = _plain(formats.share(found.value), _shares(found), formats.count(stratum.n), *operations)
    return [*cells, ("█" * round(_CLOSED * (found.value or 0.0)), "dim")]


def _diagnoses(part: ConversationSummary) -> Section:
    table = Columns(["", "turns", "of wrong"])
    for one in part.conditions:
        _heading(part, table, one)
        for found in one.diagnoses:
            _diagnosis(table, found, indent=2 * (len(part.conditions) > 1))
        if one.unreached:
            table.row("never reached", _plain(formats.count(one.unreached), ""), indent=2 * (len(part.conditions) > 1))
    legend = "the first that fits of each wrong turn; below it a turn, with what was expected → what was answered."
    return Section(f"Diagnoses, {_rule(part)}", table, legend)


def _diagnosis(table: Columns, found: Diagnosed, *, indent: int) -> None:
    table.row(found.label, _plain(formats.count(found.turns), formats.share(found.share)), indent=indent)
    for example in found.examples[:1]:
        table.title(Text(" " * (indent + 2) + _example(example), style="dim"))


def _example(example: Example) -> str:
    place = f"{formats.excerpt(example.conversation, 32)} turn {example.turn}"
    expected = formats.excerpt(example.expected or formats.UNKNOWN, 24)
    actual = formats.excerpt(example.actual or formats.UNKNOWN, 24)
    evidence = f" ({formats.excerpt(example.evidence, 60)})" if example.evidence else ""
    return f"{place}: {expected} → {actual}{evidence}"


def _propagation(part: ConversationSummary) -> Section:
    table = Columns(["", "", f"{formats.level(part.level)} interval", "turns"])
    for one in part.conditions:
        _heading(part, table, one)
        found, indent = one.propagation, 2 * (len(part.conditions) > 1)
        for name, rate in (
            ("right after a right turn", found.after_right),
            ("right after a wrong turn", found.after_wrong),
            ("had earlier turns been right", found.had_earlier_been_right),
        ):
            cells = _plain(formats.share(rate.estimate.value), _shares(rate.estimate), formats.count(rate.n))
            table.row(name, cells, indent=indent)
        for name, count in (
            ("wrong after a wrong turn", found.cascades),
            ("proved to be propagated", found.propagated),
            ("conversations without a wrong turn", found.never_wrong),
            *((f"first wrong turn: {turn}", many) for turn, many in found.first_wrong.items()),
        ):
            table.row(name, _plain(formats.count(count), "", ""), indent=indent)
    legend = "proved: with the agent's own wrong answers in it, the golden program gives what the agent answered."
    if any(one.conversations > part.conversations for one in part.conditions):
        legend += " A conversation that was asked several times counts each time."
    return Section(f"Propagation, {_rule(part)}", table, legend)


def _features(part: ConversationSummary) -> Section:
    table = Columns(["", "right", f"{formats.level(part.level)} interval", "turns", "correlation"])
    for one in part.conditions:
        _heading(part, table, one)
        for feature in one.features:
            for place, stratum in enumerate(feature.strata):
                found = stratum.estimate
                tie = formats.signed(feature.correlation) if place == 0 else ""
                cells = _plain(formats.share(found.value), _shares(found), formats.count(stratum.n), tie)
                table.row(f"{feature.name} {stratum.key}", cells, indent=2 * (len(part.conditions) > 1))
    legend = "by feature of the dataset; correlation: over turns, of the feature and being right."
    return Section(f"Features, {_rule(part)}", table, legend)


def _costs(part: ConversationSummary, *, wide: bool) -> Section:
    shown = [*_COSTS] if wide else [head for head in _COSTS if head not in ("tokens", "cost")]
    table = Columns(["", *shown])
    for one in part.conditions:
        texts = _cost_texts(one)
        table.row(one.condition, _plain(*(texts[head] for head in shown)))
    legend = "right: conversations and turns; each: what all of them together cost, over those that are right; – where "
    return Section(
        f"Cost of right answers, {_rule(part)}", table, f"{legend}none is, or nobody told. time: median, of one turn."
    )


_COSTS = ("right conv.", "right turns", "tokens", "each conv.", "each turn", "cost", "$ each conv.", "time")


def _cost_texts(one: ConversationResult) -> dict[str, str]:
    cost, pace = one.cost, one.pace
    seconds = None if pace.milliseconds_median is None else pace.milliseconds_median / 1000
    return {
        "right conv.": formats.count(cost.right_conversations),
        "right turns": formats.count(cost.right_turns),
        "tokens": formats.count(cost.tokens),
        "each conv.": formats.number(cost.tokens_per_right_conversation, digits=0),
        "each turn": formats.number(cost.tokens_per_right_turn, digits=0),
        "cost": formats.dollars(cost.dollars, unknown=cost.dollars_unknown),
        "$ each conv.": formats.dollars(cost.dollars_per_right_conversation, unknown=cost.dollars_unknown),
        "time": formats.duration(seconds),
    }


def _besides(part: ConversationSummary) -> Iterator[Section]:
    if any(one.quarantine for one in part.conditions):
        table = Columns(["", "right", "without quarantine", f"{formats.level(part.level)} interval", "turns"])
        for one in part.conditions:
            _heading(part, table, one)
            left = one.quarantine.accuracies if one.quarantine is not None else ()
            for rate, kept in zip(one.accuracies, left, strict=False):
                shares = formats.share(rate.estimate.value), formats.share(kept.estimate.value)
                cells = _plain(*shares, _shares(kept.estimate), formats.count(kept.n))
                table.row(rate.metric, cells, indent=2 * (len(part.conditions) > 1))
        yield Section("Without quarantined turns", table, "quarantined: the golden data contradicts itself there.")
    if any(one.verdicts for one in part.conditions):
        table = Columns(["", "ours", "the file's", "agree", "only ours", "only the file's"])
        for one in part.conditions:
            _heading(part, table, one)
            _verdict_rows(table, one, indent=2 * (len(part.conditions) > 1))
        yield Section("Verdicts of the file", table, "turns that the file itself calls right or wrong.")


def _verdict_rows(table: Columns, one: ConversationResult, *, indent: int) -> None:
    found = one.verdicts
    if found is None:
        return
    for metric, agreement in found.agreement.items():
        ours, theirs = found.only_ours[metric], found.only_theirs[metric]
        right = found.right - theirs + ours
        counts = formats.count(right), formats.count(found.right)
        cells = _plain(*counts, formats.share(agreement), formats.count(ours), formats.count(theirs))
        table.row(metric, cells, indent=indent)
