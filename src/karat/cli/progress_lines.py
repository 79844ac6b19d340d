"""The progress of a run in words: a block of lines for a terminal of any size, or one line for a
log.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from karat import formats
from karat.analysis.format_metric import share_estimate
from karat.cli.output import aligned
from karat.cli.progress import Progress, RunningMean

_BAR_COLUMNS = 20
_WIDE = 64  # columns needed to show a condition with all its counts
_FAILURE_COLUMNS = 160  # in a log line
_MOST_NAMED = 4  # conditions in a log line


def block(now: Progress, *, columns: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `columns` columns; the least important is left out first.

    Conditions that do not fit are summed up in one line.
    """
    if rows < 1 or columns < 1:
        return []
    if not now.planned:
        return [formats.cut("preparing", columns)]
    drawn = bar(now.ended / now.planned, _BAR_COLUMNS if columns >= _WIDE else _BAR_COLUMNS // 2)
    head = [
        _folded([f"{drawn} {_ended(now)}", *_time(now)], columns)[0],
        *_folded(_counts(now), columns),
    ]
    if now.last_failure is not None:
        failure = [_failure(now, columns)]
    else:
        failure = []

    room = rows - len(head) - len(failure)
    money = _folded(_spent(now), columns)
    if not (room >= len(money)):
        money = []
    slowed = [
        formats.cut(f"{name} at most {limit} at a time: it refused more", columns)
        for name, limit in now.slowed.items()
    ][: max(0, room - len(money))]
    conditions = _conditions(now, columns, room - len(money) - len(slowed))
    return [_one_line(line) for line in [*head, *money, *conditions, *slowed, *failure][:rows]]


def log_line(now: Progress) -> str:
    """Everything in one line that makes sense without the lines before it."""
    if not now.planned:
        return "preparing"
    parts = [
        f"after {formats.duration(now.seconds)}: {_ended(now)}",
        *_counts(now),
        *_time(now),
        *_spent(now),
    ]
    parts += [f"{name} at most {limit} at a time" for name, limit in now.slowed.items()]
    known = {}
    for name, counts in now.conditions.items():
        if counts.mean is not None:
            known[name] = counts.mean

    if known:
        named = [
            f"{_name(name)} {_mean(now, mean)}" for name, mean in list(known.items())[:_MOST_NAMED]
        ]
        if len(known) > _MOST_NAMED:
            named.append(f"{len(known) - _MOST_NAMED} more")
        parts.append(f"{_metric(now)}: {', '.join(named)}")

    if now.last_failure is not None:
        parts.append(_failure(now, _FAILURE_COLUMNS))
    return _one_line(" · ".join(parts))


def bar(share: float, columns: int = _BAR_COLUMNS) -> str:
    """A progress bar, full only when everything is done.

    >>> bar(0.26, 8), bar(0.999, 8), bar(1.0, 8)
    ('━━──────', '━━━━━━━─', '━━━━━━━━')
    """
    full = floor(columns * max(0.0, min(1.0, share)))
    return "━" * full + "─" * (columns - full)


def _one_line(text: str) -> str:
    """The text on one line, cleaned: names and messages are foreign and must not move the
    cursor.
    """
    return formats.clean(text).replace("\n", " ").replace("\t", " ")


def _ended(now: Progress) -> str:
    return f"{formats.count(now.ended)}/{formats.count(now.planned)}"


def _counts(now: Progress) -> list[str]:
    of = f"in flight {formats.count(now.in_flight)} of {formats.count(now.most_in_flight)}"
    counts = {"being scored": now.scoring, "failed": now.failed, "retries": now.retries}
    parts = []
    for name, count in counts.items():
        if count:
            parts.append(f"{name} {formats.count(count)}")

    if now.most_in_flight:
        return [of, *parts]
    return parts


def _time(now: Progress) -> list[str]:
    if now.finishing:
        return ["finishing"]
    if now.per_second is None or now.seconds_left is None:
        return []
    rate = now.per_second
    if rate >= 1:
        pace = f"{formats.number(rate, digits=1)}/s"
    else:
        pace = f"{formats.number(60 * rate, digits=1)}/min"

    # Until it has ended, something is left.
    return [f"{formats.duration(float(max(1, round(now.seconds_left))))} left", pace]


def _spent(now: Progress) -> list[str]:
    """Cost and tokens.

    Unknown is not 0: without prices a dash is shown, without token counts nothing.
    """
    parts = []
    if now.dollars or now.ended:
        spent = formats.dollars(now.dollars, unknown=int(now.dollars_unknown))
        if spent == formats.UNKNOWN:
            spent = f"cost {spent}"
        more = now.dollars_in_all is not None and now.dollars_in_all > now.dollars > 0
        if more:
            parts.append(f"{spent} of about {formats.dollars(_rounded(now.dollars_in_all))}")
        else:
            parts.append(spent)

    if now.tokens:
        spent = f"{'≥ ' if now.tokens_unknown else ''}{formats.count(now.tokens)}"
        more = now.tokens_in_all is not None and now.tokens_in_all > now.tokens
        if more:
            total = f" of about {formats.count(int(_rounded(now.tokens_in_all)))}"
        else:
            total = ""

        parts.append(f"{spent}{total} tokens")

    return parts


def _rounded(value: float | None) -> float:
    """The value to two digits: a projection is not a measurement."""
    if value:
        return round(value, 1 - floor(log10(abs(value))))
    return 0.0


def _failure(now: Progress, columns: int) -> str:
    failure = now.last_failure
    assert failure is not None
    if failure.seconds_ago >= 1:
        ago = formats.duration(float(int(failure.seconds_ago)))
    else:
        ago = "a moment"

    return formats.excerpt(f"last failure {ago} ago: {failure.kind}: {failure.message}", columns)


def _mean(now: Progress, mean: RunningMean | None) -> str:
    if mean is None:
        return formats.UNKNOWN
    write = share_estimate if now.metric_kind == "share" else formats.estimate
    return write(mean.value, mean.low, mean.high)


def _name(name: str, columns: int = 24) -> str:
    """The name, cut in the middle: similar names of conditions differ at their ends."""
    return formats.middle(formats.excerpt(name, 20 * columns), columns)


def _metric(now: Progress) -> str:
    return f"{formats.clean(now.metric or '')} so far{', this part' if now.continued else ''}"


def _conditions(now: Progress, columns: int, room: int) -> list[str]:
    """One row per condition, in at most `room` lines; narrow terminals omit the counts of failed
    and in flight.
    """
    if room < 1 or not now.conditions:
        return []
    names = list(now.conditions)
    wide = columns >= _WIDE
    if len(names) < room:
        shown = names
    else:
        shown = names[: max(0, room - 2)]

    asked = wide and now.most_in_flight > 0
    scored = now.metric is not None
    table = [["", "done"] + ["failed"] * wide + ["in flight"] * asked + [_metric(now)] * scored]
    for name in shown:
        counts = now.conditions[name]
        if counts.planned is not None:
            planned = f"/{formats.count(counts.planned)}"
        else:
            planned = ""

        row = [_name(name, 24 if wide else 16), f"{formats.count(counts.done)}{planned}"]
        row += [formats.count(counts.failed)] * wide + [formats.count(counts.in_flight)] * asked
        if wide and counts.mean is not None:
            over = f" over {formats.plural(counts.mean.n, now.noun)}"
        else:
            over = ""

        table.append([*row, *[f"{_mean(now, counts.mean)}{over}"] * scored])

    if shown:
        lines = aligned(table, right=range(1, len(table[0]) - scored))
    else:
        lines = []

    if len(shown) < len(names):
        others = [now.conditions[name] for name in names[len(shown) :]]
        failed = sum(counts.failed for counts in others)
        in_flight = sum(counts.in_flight for counts in others)
        done = sum(counts.done for counts in others)
        more = " more" if shown else ""
        parts = [f"{formats.count(len(others))}{more} conditions: done {formats.count(done)}"]
        if failed:
            parts += [f"failed {formats.count(failed)}"]
        if now.most_in_flight:
            parts += [f"in flight {formats.count(in_flight)}"]
        lines.append(" · ".join(parts))

    return [formats.cut(line, columns) for line in lines]


def _folded(parts: Sequence[str], columns: int) -> list[str]:
    """The parts, joined by dots, on as many lines as they need."""
    lines: list[str] = []
    for part in parts:
        if lines and formats.width(f"{lines[-1]} · {part}") <= columns:
            lines[-1] += f" · {part}"
        else:
            lines.append(formats.cut(part, columns))

    return lines
