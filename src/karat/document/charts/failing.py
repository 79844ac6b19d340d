"""Charts of turns that failed: why, what came before, and what in the dataset goes with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat import formats
from karat.document.charts.chart import Chart, labels, made
from karat.document.charts.pieces import ROW, WIDTH, beside, facets, named, number, points, tooltip, whole
from karat.document.charts.written import share_estimate, signed_estimate
from karat.kinds.conversation.analysis.model import ConversationSummary, Feature, Rate

__all__ = ["accuracy", "diagnosis_chart", "feature_chart", "first_wrong_chart", "propagation_chart"]


def accuracy(found: ConversationSummary) -> str:
    """What accuracy is called, by the match that makes a turn right."""
    return f"{found.right.replace('_', ' ')} accuracy"


def diagnosis_chart(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """Failed turns by diagnosis."""
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for order, one in enumerate(found.conditions):
        failed = sum(each.turns for each in one.diagnoses)
        for each in one.diagnoses:
            example = each.examples[0] if each.examples else None
            words = f"{example.expected} expected, {example.actual} said" if example is not None else ""
            values.append({
                "condition": names[one.condition], "condition_order": order, "label": each.label.replace("_", " "),
                "turns": each.turns, "share": each.share, "of": failed, "words": formats.excerpt(words, 80),
            })  # fmt: skip
            table.append((one.condition, each.label, formats.count(each.turns), formats.share(each.share), words))
    if not values:
        return []
    told = tooltip(
        {"condition": "condition", "label": "diagnosis", "turns": "turns", "share": "share of failed turns",
         "words": "for example"}, percent=("share",)
    )  # fmt: skip
    shown = _by_size(values)
    places = {"x": number("turns", "failed turns", zero=True), "y": named("label", shown)}
    bar = {"mark": {"type": "bar", "height": {"band": 0.7}}, "encoding": {**places, "tooltip": told}}
    first = values[0]
    chart = made(
        "diagnoses",
        f"{first['label']} is behind {formats.share(first['share'])} of the "
        f"{formats.plural(first['of'], 'failed turn')} of {first['condition']} (n {formats.count(first['turns'])})",
        "One panel a condition, one bar a diagnosis: how many failed turns it explains, each turn once.",
        facets(values, [bar], field="condition", height=ROW * len(shown)),
        ("condition", "diagnosis", "failed turns", "share of failed turns", "for example"),
        table,
    )
    return [chart]


def _by_size(values: Sequence[dict[str, Any]]) -> list[str]:
    totals: dict[str, int] = {}
    for row in values:
        totals[row["label"]] = totals.get(row["label"], 0) + row["turns"]
    return sorted(totals, key=lambda label: (-totals[label], label))


def propagation_chart(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """Accuracy after right and wrong turns, and had earlier answers been right."""
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for order, one in enumerate(found.conditions):
        passed = one.propagation
        rates: list[tuple[str, Rate | None]] = [
            ("all turns", one.rate("right")),
            ("after a right turn", passed.after_right),
            ("after a wrong turn", passed.after_wrong),
            ("had earlier turns been right", passed.had_earlier_been_right),
        ]
        for label, rate in rates:
            if rate is None or rate.estimate.value is None:
                continue
            value = rate.estimate
            values.append({
                "condition": names[one.condition], "condition_order": order, "label": label, "accuracy": value.value,
                "low": value.low, "high": value.high, "turns": rate.n, "conversations": value.n,
            })  # fmt: skip
            told = share_estimate(value.value, value.low, value.high)
            table.append((one.condition, label, told, formats.count(rate.n), formats.count(value.n)))
    if not values:
        return []
    fields = tooltip(
        {"condition": "condition", "label": "turns", "accuracy": "accuracy", "low": "low", "high": "high",
         "turns": "n turns", "conversations": "conversations"}, percent=("accuracy", "low", "high")
    )  # fmt: skip
    shown = list(dict.fromkeys(row["label"] for row in values))
    x = number("accuracy", "share of turns that are right, in percent", domain=(0, 1), percent=True)
    level = formats.level(found.level)
    chart = made(
        "propagation",
        _propagation_title(found),
        f"One panel a condition: accuracy with its {level} interval over all turns, over those after a right turn and "
        "after a wrong one, and with those counted as right that are proved to be wrong only by an earlier answer.",
        facets(values, points(x, named("label", shown), None, fields), field="condition", height=ROW * len(shown)),
        ("condition", "turns", f"accuracy [{level} interval]", "n turns", "conversations"),
        table,
    )
    return [chart]


def _propagation_title(found: ConversationSummary) -> str:
    one = next(each for each in found.conditions if each.turns)
    passed = one.propagation

    def told(rate: Rate) -> str:
        value = rate.estimate
        return f"{share_estimate(value.value, value.low, value.high)} (n {formats.count(rate.n)})"

    proved = formats.plural(passed.propagated, "wrong turn is", "wrong turns are")
    return (
        f"{one.condition}: after a wrong turn {told(passed.after_wrong)} are right, after a right one "
        f"{told(passed.after_right)}; {proved} proved to come from an earlier answer"
    )


def first_wrong_chart(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """At which turn conversations go wrong for the first time."""
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    for order, one in enumerate(found.conditions):
        went = sum(one.propagation.first_wrong.values()) + one.propagation.never_wrong
        for key, count in sorted(one.propagation.first_wrong.items(), key=lambda item: int(item[0])):
            share = count / went if went else None
            values.append({
                "condition": names[one.condition], "condition_order": order, "at": int(key),
                "conversations": count, "share": share,
            })  # fmt: skip
            table.append((one.condition, formats.count(int(key)), formats.count(count), formats.share(share)))
        table.append((one.condition, "never", formats.count(one.propagation.never_wrong),
                      formats.share(one.propagation.never_wrong / went if went else None)))  # fmt: skip
    if not values:
        return []
    fields = {"condition": "condition", "at": "turn", "conversations": "conversations", "share": "share"}
    x = whole("at", "first wrong turn, from 0", (row["at"] for row in values))
    bar = {"mark": {"type": "bar", "width": 18},
           "encoding": {"x": x, "y": number("conversations", "conversations", zero=True),
                        "tooltip": tooltip(fields, percent=("share",))}}  # fmt: skip
    one = next(each for each in found.conditions if each.propagation.first_wrong)
    most = max(one.propagation.first_wrong, key=lambda key: one.propagation.first_wrong[key])
    went = sum(one.propagation.first_wrong.values()) + one.propagation.never_wrong
    chart = made(
        "first-wrong-turn",
        f"{one.condition}: {formats.count(one.propagation.first_wrong[most])} of "
        f"{formats.plural(went, 'conversation')} go wrong first at turn {most}; "
        f"{formats.count(one.propagation.never_wrong)} never do",
        "One panel a condition, one bar a turn: the conversations whose first wrong turn it is. One that was asked "
        "several times counts each time.",
        facets(values, [bar], field="condition", height=5 * ROW),
        ("condition", "first wrong turn", "conversations", "share of conversations"),
        table,
    )
    return [chart]


def feature_chart(found: ConversationSummary, names: dict[str, str]) -> list[Chart]:
    """Accuracy by what the dataset says of a conversation or a turn."""
    values: list[dict[str, Any]] = []
    table: list[tuple[str, ...]] = []
    features = list(dict.fromkeys(each.name for one in found.conditions for each in one.features))
    words = labels(
        f"{each.name.replace('_', ' ')}: {stratum.key}"
        for name in features for one in found.conditions for each in one.features if each.name == name
        for stratum in each.strata
    )  # fmt: skip
    for place, one in enumerate(found.conditions):
        for each in one.features:
            apart = signed_estimate(each.difference, percent=True) if each.difference is not None else formats.UNKNOWN
            for stratum in each.strata:
                rate = stratum.estimate
                values.append({
                    "condition": names[one.condition], "place": place,
                    "feature": words[f"{each.name.replace('_', ' ')}: {stratum.key}"], "accuracy": rate.value,
                    "low": rate.low, "high": rate.high, "turns": stratum.n,
                })  # fmt: skip
                told = share_estimate(rate.value, rate.low, rate.high)
                table.append((one.condition, each.name, stratum.key, told, formats.count(stratum.n), apart,
                              formats.signed(each.correlation)))  # fmt: skip
    if not values:
        return []
    fields = tooltip(
        {"condition": "condition", "feature": "feature", "accuracy": "accuracy", "low": "low", "high": "high",
         "turns": "turns"}, percent=("accuracy", "low", "high")
    )  # fmt: skip
    return [_features(found, names, (values, list(words.values()), fields, table))]


Drawn = tuple[list[dict[str, Any]], list[str], list[dict[str, Any]], list[tuple[str, ...]]]


def _features(found: ConversationSummary, names: dict[str, str], drawn: Drawn) -> Chart:
    values, shown, fields, table = drawn
    level = formats.level(found.level)
    x = number("accuracy", f"{accuracy(found)}, share of turns", domain=(0, 1), percent=True)
    offset, color = beside("condition", len(names))
    y = named("feature", shown)
    layers = points(x, y, color, fields)
    for layer in layers:
        layer["encoding"]["yOffset"] = offset
    lines = max(1, len(names))
    return made(
        "features",
        _feature_title(found),
        f"One line a value of a feature, a point with its {level} interval for each condition.",
        {"data": {"values": values}, "width": WIDTH, "height": len(shown) * max(ROW, 11 * lines), "layer": layers},
        ("condition", "feature", "value", f"accuracy [{level} interval]", "turns", "with it − without it",
         "correlation with being right"),
        table,
    )  # fmt: skip


def _feature_title(found: ConversationSummary) -> str:
    one = next(each for each in found.conditions if each.features)
    known = [each for each in one.features if each.difference is not None and each.difference.value is not None]
    if not known:
        return f"{accuracy(found)} of {one.condition} by feature of the dataset (n {formats.plural(one.turns, 'turn')})"
    widest = max(known, key=_size)
    assert widest.difference is not None
    n = sum(stratum.n for stratum in widest.strata)
    return (
        f"{widest.name.replace('_', ' ')} goes with {signed_estimate(widest.difference, percent=True)} of "
        f"{accuracy(found)} under {one.condition} (n {formats.plural(n, 'turn')})"
    )


def _size(feature: Feature) -> float:
    found = feature.difference
    return abs(found.value) if found is not None and found.value is not None else 0.0
