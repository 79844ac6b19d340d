"""Where a run stands, in words: a block of lines for a terminal of any size, one line for a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10

from karat import formats
from karat.analysis.format_metric import share_estimate
from karat.cli.sofar import ConditionSoFar, LastFailure, MeanSoFar, SoFar

__all__ = ["bar", "block", "log_line"]

_BAR_COLUMNS = 20
_WIDE = 64  # columns from which on a condition is one row of a table
_FAILURE_COLUMNS = 160  # of a log line
_MOST_NAMED = 4  # conditions in a log line
_MOST_SLOWED = 3  # providers, each on a line
_NAME_COLUMNS = 24


def block(now: SoFar, *, columns: int, rows: int) -> list[str]:
    """At most `rows` lines of at most `columns` columns; what matters least is left out first.

    Where a run cannot show each of its conditions, the rest of them is one line.
    """
    if rows < 1 or columns < 1:
        return []
    if not now.planned:
        return [formats.cut("preparing", columns)]
    head = [_headline(now, columns), *_folded(_counts(now), columns)]
    money = _folded(_spent(now), columns)
    slowed = [formats.cut(f"{name} at most {limit} at a time: it refused more", columns) for name, limit in _few(now)]
    failure = [_failure(now.last_failure, columns)] if now.last_failure is not None else []
    room = rows - len(head) - len(failure)
    lines = [*head]
    if room >= len(money):
        lines, room = [*lines, *money], room - len(money)
    slowed = slowed[: max(0, room)]
    lines += _conditions(now, columns, room - len(slowed))
    return [_one_line(line) for line in [*lines, *slowed, *failure][:rows]]


def log_line(now: SoFar) -> str:
    """Everything in one line, which can be read without the lines before it."""
    if not now.planned:
        return "preparing"
    parts = [f"after {formats.duration(now.seconds)}: {_ended(now)}", *_counts(now), *_time(now), *_spent(now)]
    parts += [f"{name} at most {limit} at a time" for name, limit in now.slowed.items()]
    parts += _means(now)
    if now.last_failure is not None:
        parts.append(_failure(now.last_failure, _FAILURE_COLUMNS))
    return _one_line(" · ".join(parts))


def bar(share: float, columns: int = _BAR_COLUMNS) -> str:
    """How much is done, drawn; full only when everything is.

    >>> bar(0.26, 8), bar(0.999, 8), bar(1.0, 8)
    ('━━──────', '━━━━━━━─', '━━━━━━━━')
    """
    full = floor(columns * max(0.0, min(1.0, share)))
    return "━" * full + "─" * (columns - full)


def _one_line(text: str) -> str:
    """Names and messages are foreign: not one of them moves the cursor."""
    return formats.clean(text).replace("\n", " ").replace("\t", " ")


def _headline(now: SoFar, columns: int) -> str:
    drawn = bar(now.ended / now.planned, _BAR_COLUMNS if columns >= _WIDE else _BAR_COLUMNS // 2)
    return _folded([f"{drawn} {_ended(now)}", *_time(now)], columns)[0]


def _ended(now: SoFar) -> str:
    return f"{formats.count(now.ended)}/{formats.count(now.planned)}"


def _counts(now: SoFar) -> list[str]:
    if now.most_in_flight:
        parts = [f"in flight {formats.count(now.in_flight)} of {formats.count(now.most_in_flight)}"]
    else:
        parts = []
    parts += [f"being scored {formats.count(now.scoring)}"] if now.scoring else []
    parts += [f"failed {formats.count(now.failed)}"] if now.failed else []
    parts += [f"retries {formats.count(now.retries)}"] if now.retries else []
    return parts


def _time(now: SoFar) -> list[str]:
    if now.finishing:
        return ["finishing"]
    if now.per_second is None or now.seconds_left is None:
        return []
    rate = now.per_second
    pace = f"{formats.number(rate, digits=1)}/s" if rate >= 1 else f"{formats.number(60 * rate, digits=1)}/min"
    # Until it has ended something is left.
    return [f"{formats.duration(float(max(1, round(now.seconds_left))))} left", pace]


def _spent(now: SoFar) -> list[str]:
    """What nobody told is no amount: a run without prices shows a dash, one without tokens nothing of them."""
    parts = []
    if now.dollars or now.ended:
        known = formats.dollars(now.dollars, unknown=int(now.dollars_unknown))
        known = f"cost {known}" if known == formats.UNKNOWN else known
        more = now.dollars_in_all is not None and now.dollars_in_all > now.dollars > 0
        parts.append(f"{known} of about {formats.dollars(_rounded(now.dollars_in_all))}" if more else known)
    if now.tokens:
        known = f"{'≥ ' if now.tokens_unknown else ''}{formats.count(now.tokens)}"
        whole = now.tokens_in_all
        more = whole is not None and whole > now.tokens
        parts.append(f"{known} of about {formats.count(int(_rounded(whole)))} tokens" if more else f"{known} tokens")
    return parts


def _rounded(value: float | None) -> float:
    """To two digits: a projection is no measurement."""
    if not value:
        return 0.0
    return round(value, 1 - floor(log10(abs(value))))


def _few(now: SoFar) -> Iterable[tuple[str, int]]:
    return list(now.slowed.items())[:_MOST_SLOWED]


def _failure(found: LastFailure, columns: int) -> str:
    ago = formats.duration(float(int(found.seconds_ago))) if found.seconds_ago >= 1 else "a moment"
    return formats.excerpt(f"last failure {ago} ago: {found.kind}: {found.message}", columns)


def _mean(now: SoFar, mean: MeanSoFar | None) -> str:
    if mean is None:
        return formats.UNKNOWN
    if now.metric_kind == "share":
        return share_estimate(mean.value, mean.low, mean.high)
    return formats.estimate(mean.value, mean.low, mean.high)


def _name(name: str, columns: int = _NAME_COLUMNS) -> str:
    """Cut in its middle: conditions that are called alike differ at their ends."""
    return formats.middle(formats.excerpt(name, 20 * columns), columns)


def _metric(now: SoFar) -> str:
    return f"{formats.clean(now.metric or '')} so far{', this part' if now.continued else ''}"


def _means(now: SoFar) -> list[str]:
    known = {name: one for name, one in now.conditions.items() if one.mean is not None}
    if not known:
        return []
    named = [f"{_name(name)} {_mean(now, one.mean)}" for name, one in list(known.items())[:_MOST_NAMED]]
    more = [f"{len(known) - _MOST_NAMED} more"] if len(known) > _MOST_NAMED else []
    return [f"{_metric(now)}: {', '.join([*named, *more])}"]


def _conditions(now: SoFar, columns: int, room: int) -> list[str]:
    """The conditions in at most `room` lines."""
    if room < 1 or not now.conditions:
        return []
    wide, names = columns >= _WIDE, list(now.conditions)
    write, each = (_table, 1) if wide else (_pairs, 2)
    head = int(wide or now.metric is not None)
    if head + each * len(names) <= room:
        return write(now, now.conditions, columns)
    shown = (room - 1 - head) // each
    if shown < 1:
        return [_rest(now, names, columns)]
    lines = write(now, {name: now.conditions[name] for name in names[:shown]}, columns)
    return [*lines, _rest(now, names[shown:], columns)]


def _rest(now: SoFar, names: Sequence[str], columns: int) -> str:
    found = [now.conditions[name] for name in names]
    more = " more" if len(names) < len(now.conditions) else ""
    parts = [f"{formats.count(len(names))}{more} conditions: done {formats.count(sum(one.done for one in found))}"]
    parts += [f"failed {formats.count(failed)}"] if (failed := sum(one.failed for one in found)) else []
    parts += [f"in flight {formats.count(sum(one.in_flight for one in found))}"] if now.most_in_flight else []
    return formats.cut(" · ".join(parts), columns)


def _table(now: SoFar, conditions: Mapping[str, ConditionSoFar], columns: int) -> list[str]:
    asked, scored = bool(now.most_in_flight), now.metric is not None
    heads = ["", "done", "failed", *(["in flight"] if asked else []), *([_metric(now)] if scored else [])]
    table = [heads]
    for name, one in conditions.items():
        row = [_name(name), _done(one), formats.count(one.failed)]
        row += [formats.count(one.in_flight)] if asked else []
        row += [_with_size(now, one.mean)] if scored else []
        table.append(row)
    numbers = 4 if asked else 3  # the first columns, of which all but the name stand to the right
    widths = [max(formats.width(row[at]) for row in table) for at in range(numbers)]
    return [formats.cut(_row(row, widths), columns) for row in table]


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [row[0] + " " * (widths[0] - formats.width(row[0]))]
    cells += [" " * (width - formats.width(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=False)]
    return "  ".join([*cells, *row[len(widths) :]]).rstrip()


def _with_size(now: SoFar, mean: MeanSoFar | None) -> str:
    if mean is None:
        return formats.UNKNOWN
    noun = "conversation" if now.unit == "turn" else "question"
    return f"{_mean(now, mean)} over {formats.plural(mean.n, noun)}"


def _pairs(now: SoFar, conditions: Mapping[str, ConditionSoFar], columns: int) -> list[str]:
    """For narrow terminals: two lines a condition, its name with its mean, and its counts."""
    lines = [formats.cut(_metric(now), columns)] if now.metric is not None else []
    for name, one in conditions.items():
        mean = _mean(now, one.mean) if now.metric is not None else ""
        room = columns - formats.width(mean) - 1
        lines.append(formats.cut(f"{_name(name, max(8, room))} {mean}".rstrip(), columns))
        counts = [f"  {_done(one)}"]
        counts += [f"failed {formats.count(one.failed)}"] if one.failed else []
        counts += [f"in flight {formats.count(one.in_flight)}"] if now.most_in_flight else []
        lines.append(formats.cut(" · ".join(counts), columns))
    return lines


def _done(one: ConditionSoFar) -> str:
    return formats.count(one.done) + (f"/{formats.count(one.planned)}" if one.planned is not None else "")


def _folded(parts: Sequence[str], columns: int) -> list[str]:
    """Parts with dots between them, on as many lines as they take."""
    lines: list[str] = []
    for part in parts:
        if lines and formats.width(f"{lines[-1]} · {part}") <= columns:
            lines[-1] += f" · {part}"
        else:
            lines.append(formats.cut(part, columns))
    return lines
