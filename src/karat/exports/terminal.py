"""`--to terminal`: the answer in one sentence, then the tables that support it."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import structs
from pydantic import BaseModel, ConfigDict, Field
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import POINT_LEGEND, is_point
from karat.analysis.model import FailureKind, LowCell, LowSample, Result
from karat.analysis.verdicts import NO_DIFFERENCE, NOT_TESTED, attempts_sentence, family_words, nothing_scored
from karat.document import terminal_conversation as _conversation
from karat.document import terminal_study as _study
from karat.document.terminal_layout import Columns
from karat.document.terminal_tables import (
    conditions_table,
    differences_table,
    has_steps,
    judges_table,
    scores_table,
    servers_table,
)
from karat.journal import RunFolder

__all__ = ["Terminal"]

_WIDE = 100  # columns from which on there is room for more numbers
_SERVERS_LEGEND = "≈ tokens: what the results come to at four characters a token, each read once; an estimate."
_MOST_REASONS = 3
_MOST_KINDS = 10  # of failure that are shown


class Terminal:
    """Tables for people: scores with intervals, the ledger, differences, the lowest questions, what went wrong."""

    class Options(BaseModel):
        """How it looks."""

        model_config = ConfigDict(extra="forbid")

        width: int | None = Field(
            default=None, ge=40, le=400, description="columns; default: the terminal's, at most 140"
        )
        color: bool = Field(default=False, description="whether to write colour codes")
        lowest: int = Field(default=3, ge=0, le=5, description="how many of the lowest questions are shown")
        findings: int = Field(
            default=24, ge=0, description="how many findings of human studies are shown by condition; 0: all"
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        out = io.StringIO()
        width = self._options.width or max(60, min(140, shutil.get_terminal_size((100, 24)).columns))
        color = self._options.color
        console = Console(
            file=out,
            width=width,
            force_terminal=color,
            color_system="standard" if color else None,
            no_color=not color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )
        for part in self._parts(summary, width=width):
            # A row of a table is never folded: over two lines it could not be read.
            row = isinstance(part, Text) and bool(part.no_wrap)
            console.print(part, soft_wrap=row)
        lines = out.getvalue().split("\n")
        return {"report.txt": "\n".join(line.rstrip() for line in lines)}

    def _parts(self, summary: Summary, *, width: int) -> Iterable[Text | Padding]:
        wide = width >= _WIDE
        yield _line(summary.headline, style="bold")
        yield Text()
        yield from _facts(summary)
        if nothing_scored(summary.total, summary.failures, summary.status):
            yield from _failures(summary.failures[:_MOST_KINDS])
            yield from _warnings(summary.warnings)
            return
        whole, summary = summary, _apart(summary)
        if whole.conversation is not None:
            for one in _conversation.sections(whole.conversation, wide=wide):
                yield from _section(one.title, one.table, width, one.legend)
        if whole.study is not None:
            for one in _study.sections(whole.study, wide=wide, findings=self._options.findings):
                yield from _section(one.title, one.table, width, one.legend)
        if summary.metrics and summary.results:
            yield from _section("Scores", scores_table(summary, wide=wide), width, _scores_legend(summary, wide=wide))
        panel = judges_table(summary)
        if panel is not None:
            legend = "same, within 1: share of the answers that two judges put on one step, or at most one apart."
            yield from _section("Judges", panel, width, legend)
        yield from _section("Trials", conditions_table(summary, wide=wide), width, _trials_legend(summary))
        servers = servers_table(summary)
        if servers is not None:
            yield from _section("MCP servers", servers, width, _SERVERS_LEGEND)
        if summary.differences and whole.study is None:
            tested = _tested(whole)
            legend = _differences_legend(tested, wide=wide)
            yield from _section("Differences", differences_table(tested, wide=wide), width, legend)
        yield from _lowest(whole, summary.lowest[: self._options.lowest], width)
        yield from _failures(summary.failures[:_MOST_KINDS])
        yield from _warnings(summary.warnings)


def _apart(summary: Summary) -> Summary:
    """Without the metrics that the tables of conversations, or of studies, show."""
    part = summary.conversation or summary.study
    if part is None:
        return summary
    others = tuple(metric for metric in summary.metrics if metric.scorer != part.scorer)
    keys = {metric.key for metric in others}
    kept = structs.replace(summary, metrics=others, results=tuple(one for one in summary.results if one.metric in keys))
    if summary.study is None:
        return kept
    return structs.replace(kept, lowest=tuple(one for one in summary.lowest if one.metric in keys))


def _tested(summary: Summary) -> Summary:
    """With the comparisons alone that are tested, and their metrics."""
    differences = tuple(one for one in summary.differences if one.verdict != NOT_TESTED)
    keys = {one.metric for one in differences}
    metrics = tuple(metric for metric in summary.metrics if metric.key in keys)
    return structs.replace(summary, differences=differences, metrics=metrics)


def _facts(summary: Summary) -> Iterable[Text]:
    ledger, source = summary.total.ledger, summary.provenance
    size = (
        f"{_asked(summary)} × {formats.plural(len(summary.conditions), 'condition')} × "
        f"{formats.plural(summary.repetitions, 'repetition')} = {formats.plural(ledger.planned, 'trial')}"
    )
    yield _line(f"{summary.name} {summary.run} ({summary.status})")
    yield _line(size)
    model = f" ({source.model})" if source.model else ""
    judged = ", ".join(dict.fromkeys(_scorer(metric.scorer, offline=metric.offline) for metric in summary.metrics))
    scorers = f" · scored by {judged}" if judged else ""
    read = "".join(f" · {told}" for told in _read_as(source.settings))
    yield _line(f"{source.dataset} (sha256 {source.sha256[:12]}){read} · agent {source.agent}{model}{scorers}")
    for name, told in source.judges.items():
        yield _line(f"{name}: {_judge(told)}")


def _asked(summary: Summary) -> str:
    """What one condition is asked once."""
    if summary.study is not None and summary.study.conditions:
        people = summary.study.conditions[0].participants.planned // max(1, summary.repetitions)
        part = f"{formats.plural(people, 'participant')} of "
        part += formats.plural(len(summary.study.studies), "study", "studies")
        return part if people == summary.samples else f"{part} in {formats.plural(summary.samples, 'session')}"
    if summary.conversation is not None:
        return (
            f"{formats.plural(summary.samples, 'conversation')} ({formats.plural(summary.conversation.turns, 'turn')})"
        )
    return formats.plural(summary.samples, "question")


def _read_as(settings: Mapping[str, Any]) -> Iterator[str]:
    """What was asked otherwise than by default: numbers of such runs are not alike."""
    if settings.get("dataset.history") == "golden":
        yield "golden answers as history"
    if settings.get("dataset.expected") == "printed":
        yield "against the printed answers"
    if settings.get("dataset.wording"):
        yield f"wording {settings['dataset.wording']}"
    for option, told in (("relabel", "relabelled"), ("reorder", "options in reverse")):
        if settings.get(f"dataset.{option}"):
            yield told


def _judge(told: Mapping[str, Any]) -> str:
    """What a model's scores depend on, in one line."""
    models = " + ".join(map(str, told.get("judges", ())))
    given = [key for key in ("temperature", "seed", "top_p", "max_tokens") if told.get(key) is not None]
    parts = [
        f"rubric {told.get('rubric')} ({str(told.get('rubric_digest'))[:8]})",
        f"prompt {str(told.get('prompt'))[:8]}",
        *(f"{key} {told[key]:g}" for key in given),
        *([f"{told['repeats']} repeats"] if told.get("repeats", 1) > 1 else []),
        f"prices {told.get('prices')}",
    ]
    return ", ".join([models, *parts])


def _scorer(name: str, *, offline: bool) -> str:
    return f"{name} (offline)" if offline else name


def _section(title: str, table: Columns, width: int, legend: str = "") -> Iterable[Text | Padding]:
    yield Text()
    yield Text(title, style="bold")
    yield from table.lines(width)
    if legend:
        yield Padding(Text(legend, style="dim"), (0, 0, 0, 2))


def _scores_legend(summary: Summary, *, wide: bool) -> str:
    level = formats.level(summary.level)
    parts = [f"mean over questions with its {level} interval; ± is the spread between repetitions of one question."]
    parts += [POINT_LEGEND] if any(is_point(result.mean) for result in summary.results) else []
    parts += [f"No interval: {reason}." for reason in _reasons(summary)]
    if any(result.n_missing for result in summary.results):
        parts.append("bounds: the mean if every missing score were the worst, or the best, of the scale.")
    if wide and has_steps(summary):
        ordinal = any(metric.kind == "ordinal" for metric in summary.metrics)
        parts += ["best: the share of answers with the best value."] if ordinal else []
        reached = _thresholds(summary)
        parts += [f"reliable: the share of questions whose every repetition reached {reached}."] if reached else []
    if summary.offline:
        parts.append("offline: scored by a rule, not by a model that understands.")
    return " ".join(parts)


def _reasons(summary: Summary) -> list[str]:
    """Why a mean that is known has no interval, or one with an end that is not known."""
    without = (one.mean for one in summary.results if one.mean.value is not None and one.mean.low is None)
    return list(dict.fromkeys(mean.reason for mean in without if mean.reason))[:_MOST_REASONS]


def _thresholds(summary: Summary) -> str:
    """What an answer must reach to count as reliable; the metrics are named where they want different things."""
    wanted: dict[str, list[str]] = {}
    for metric in summary.metrics:
        if metric.threshold is not None:
            bound = "at most" if metric.direction == "lower" else "at least"
            value = formats.number(metric.threshold, digits=0 if metric.threshold.is_integer() else 2)
            wanted.setdefault(f"{bound} {value}", []).append(metric.key)
    if len(wanted) == 1:
        return next(iter(wanted))
    return ", ".join(f"{threshold} ({', '.join(metrics)})" for threshold, metrics in wanted.items())


def _trials_legend(summary: Summary) -> str:
    cost = summary.total.cost
    unknown = cost.agent.unknown + cost.judge.unknown
    first = summary.metrics[0].key if summary.metrics else None
    parts = [_retried(one) for one in summary.results if one.retried.answers and one.metric == first]
    if unknown and not cost.agent.known + cost.judge.known:
        parts.append("cost –: nobody told what a call costs.")
    elif unknown:
        calls = formats.plural(unknown, "call")
        parts.append(f"{calls} with no known price: – is not known, ≥ leaves them out.")
    parts += filter(None, [attempts_sentence(summary.total)])
    return " ".join(parts)


def _retried(result: Result) -> str:
    """Whether trying again changed the result."""
    first = formats.number(result.first_attempt.mean)
    again = formats.plural(result.retried.answers, "retried answer")
    mean = formats.number(result.retried.mean)
    metric = f"{result.metric} (offline)" if result.offline else result.metric
    return f"{formats.clean(result.condition)}, {metric}: {first} at the first attempt, {mean} for {again}."


def _differences_legend(summary: Summary, *, wide: bool) -> str:
    count = formats.plural(len(summary.differences), "comparison")
    effect = "; d: difference over its standard deviation" if wide else ""
    unit = "question" if summary.conversation is None else "conversation"
    legend = f"second minus first, paired by {unit}; p after Holm over {count}{effect}."
    if len(summary.differences) > 1:
        legend += " An interval stands for its comparison alone, so it may leave out 0 where p shows no difference."
    legend += f" {family_words(summary.family)}".rstrip()
    legend += f" {POINT_LEGEND}" if any(is_point(one.estimate) for one in summary.differences) else ""
    if all(one.verdict != NO_DIFFERENCE for one in summary.differences):
        return legend
    meant = "“No difference shown” does not mean" if wide else "“Not shown”: no difference shown, which does not mean"
    return f"{legend} {meant} that there is none."


def _lowest(summary: Summary, samples: Iterable[LowSample], width: int) -> Iterable[Text]:
    offline = {metric.key for metric in summary.metrics if metric.offline}
    for place, sample in enumerate(samples):
        if place == 0:
            yield Text()
            mark = " (offline)" if sample.metric in offline else ""
            yield _line(f"Lowest on {sample.metric}{mark}", style="bold")
        gap = f", gap {formats.number(sample.gap)}" if sample.gap is not None else ""
        end = f"  mean {formats.number(sample.mean)}{gap}"
        start = f"  {formats.excerpt(sample.sample, 24)}  "
        room = width - formats.width(start) - formats.width(end)
        yield Text(start + formats.excerpt(sample.question, room) + end)
        longest = max(formats.width(formats.excerpt(cell.condition, 24)) for cell in sample.cells)
        for cell in sample.cells:
            yield Text(_cell(cell, longest, width), style="dim")


def _cell(cell: LowCell, longest: int, width: int) -> str:
    name = formats.excerpt(cell.condition, 24)
    start = f"    {name}{' ' * (longest - formats.width(name))}  {formats.number(cell.mean)}  "
    if cell.n == 0:
        return f"{start}no score"
    end = f"  [{formats.plural(len(cell.claims), 'unverified claim')}]" if cell.claims else ""
    words = cell.reason or (f"answered: {cell.answer}" if cell.answer else "")
    return start + formats.excerpt(words, max(width - formats.width(start) - formats.width(end), 8)) + end


def _failures(kinds: Iterable[FailureKind]) -> Iterable[Text | Padding]:
    for place, kind in enumerate(kinds):
        if place == 0:
            yield Text()
            yield Text("Failures", style="bold")
        counts = [
            *([formats.plural(kind.trials, "trial")] if kind.trials else []),
            *([formats.plural(kind.attempts, "failed attempt")] if kind.attempts else []),
            *([formats.plural(kind.calls, "failed call")] if kind.calls else []),
        ]
        what = f"{kind.kind} (scorer {kind.scorer})" if kind.scorer is not None else kind.kind
        text = f"{kind.cls}: {what}, {', '.join(counts)}: {formats.excerpt(kind.example, 200)}"
        yield Padding(_line(text, style="red" if kind.trials or kind.calls else ""), (0, 0, 0, 2))


def _warnings(warnings: Iterable[str]) -> Iterable[Text | Padding]:
    for place, warning in enumerate(warnings):
        if place == 0:
            yield Text()
            yield Text("Warnings", style="bold")
        yield Padding(_line(warning, style="yellow"), (0, 0, 0, 2))


def _line(text: str, *, style: str = "") -> Text:
    return Text(" ".join(formats.clean(text).split("\n")), style=style)
