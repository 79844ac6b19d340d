"""Where it fails: the lowest questions, failures, claims that could not be verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nsmallest

import msgspec

from karat import formats
from karat.analysis import Summary
from karat.analysis.format_metric import measured
from karat.analysis.model import FailureKind
from karat.blocks import (
    Block,
    Cell,
    Column,
    Count,
    Fold,
    Low,
    LowAnswer,
    LowTurn,
    Note,
    Number,
    Row,
    Share,
    Table,
    Text,
    columns,
)
from karat.kinds import of
from karat.sums import exact_sum

_KINDS = 20  # of failures
_CLAIMS = 10  # of one answer
_QUESTIONS = 300  # in one table


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One detail of an answer that the judge could neither confirm nor reject."""

    condition: str
    sample: str
    text: str


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The unverified claims of one condition."""

    total: int
    answers: int  # with at least one


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Texts not in a summary: read from the run if it is not too long."""

    golden: Mapping[str, tuple[str | None, ...]]  # sample → golden answers, turn by turn
    questions: Mapping[str, tuple[str, ...]]  # sample → questions, turn by turn
    # (sample, condition) → the lowest answer, turn by turn
    answers: Mapping[tuple[str, str], tuple[str, ...]]
    claims: Mapping[str, Claims]  # by condition
    claimed: Sequence[Claim]  # some of them; equal ones of one condition and sample once
    different: int  # the total number of such claims


def lowest(
    summary: Summary,
    texts: Texts | None,
    *,
    most: int = 5,
    limit: int = 8_000,
) -> Iterator[Block]:
    """The questions with the lowest mean on the first metric, with the expected and the given
    answers.
    """
    infos = {info.key: info for info in summary.metrics}
    for low in summary.lowest[:most]:
        info = infos[low.metric]
        if low.gap is not None:
            apart = formats.between(low.gap, None, None, percent=info.percent, plain=True)[0]
            if info.percent:
                unit = " points"
            else:
                unit = ""

            gap = f", {apart}{unit} apart between conditions"
        else:
            gap = ""

        if info.offline:
            mark = " (offline)"
        else:
            mark = ""

        if texts is not None:
            golden = texts.golden.get(low.sample, ())
        else:
            golden = ()

        answers = []
        for cell in low.cells:
            answer: str | None = None
            turns: tuple[LowTurn, ...] = ()
            if texts is not None:
                given = texts.answers.get((low.sample, cell.condition), ())
                asked = texts.questions.get(low.sample, ())
                right = texts.golden.get(low.sample, ())
                if len(asked) > 1:
                    turns = tuple(
                        LowTurn(
                            question=question,
                            golden=right[at] if at < len(right) else None,
                            answer=given[at] if at < len(given) else None,
                        )
                        for at, question in enumerate(asked)
                    )
                elif given:
                    answer = given[-1]

            if cell.n == 0:
                score = "no score"
            else:
                if cell.sd is not None:
                    spread = f" ± {measured(cell.sd, percent=info.percent)}"
                else:
                    spread = ""

                mean = measured(cell.mean, percent=info.percent)
                score = f"{mean}{spread} ({formats.plural(cell.n, 'answer')})"

            answers.append(
                LowAnswer(
                    condition=cell.condition,
                    color=summary.conditions.index(cell.condition),
                    score=score,
                    reason=cell.reason,
                    answer=None if turns else answer or cell.answer,
                    excerpt=answer is None,
                    turns=turns,
                    claims=cell.claims[:_CLAIMS],
                )
            )

        yield Low(
            sample=low.sample,
            question=low.question,
            score=f"{low.metric}{mark} {measured(low.mean, percent=info.percent)} on average{gap}",
            golden=golden[0] if len(golden) == 1 else None,
            answers=tuple(answers),
            limit=limit,
        )


def every(summary: Summary) -> Iterator[Block]:
    """Every question with its means on the first metric, the lowest first."""
    table = summary.table_of_samples
    info = summary.metrics[0] if summary.metrics else None
    if table is None or info is None or not of(summary.kind).compared:
        return
    own = {column.condition: column.mean for column in table.columns if column.metric == info.key}
    if own:
        ranks = []
        for of_question in zip(*own.values(), strict=True):
            known = [mean for mean in of_question if mean is not None]
            if known:
                badness = exact_sum(known) / len(known)
            else:
                badness = 0.0

            ranks.append((not known, -badness if info.direction == "lower" else badness))
    else:
        ranks = []

    places = nsmallest(_QUESTIONS, range(len(table.ids)), key=ranks.__getitem__ if own else None)
    write = Share if info.percent else Number
    means = [own.get(name) for name in summary.conditions]
    rows = tuple(
        Row(
            name=table.ids[at],
            cells=tuple(write(None if values is None else values[at]) for values in means),
        )
        for at in places
    )
    unit = of(summary.kind).unit
    left = len(table.ids) - len(rows)
    if not left:
        caption = f"Every {unit}: {info.key}"
    else:
        caption = f"The {formats.plural(len(rows), f'lowest {unit}')}"

    legend = f"Means over repetitions of {info.key}, the lowest {unit} first."
    if left:
        legend += (
            f" {formats.plural(left, f'further {unit}')} left out: `karat report --to json` has "
            f"them."
        )

    table_of_all = Table(
        caption=caption,
        columns=columns(unit, *summary.conditions),
        rows=rows,
        legend=legend,
    )
    yield Fold(caption, (table_of_all,))


def failures(kinds: Sequence[FailureKind]) -> Iterator[Block]:
    """Groups of similar failures, the most frequent first."""
    if not kinds:
        yield Note(texts=("No trial and no attempt failed.",), tone="quiet", title="Failures")
        return

    rows = []
    for kind in kinds[:_KINDS]:
        where = kind.cls.replace("_", " ")
        if kind.scorer is not None:
            where += f", scorer {kind.scorer}"
        cells: list[Cell] = [
            Text(where),
            Count(kind.trials, tone="bad" if kind.trials else "quiet"),
        ]
        if kind.calls is None:
            cells.append(Count(kind.attempts))
        else:
            cells.append(Text(formats.plural(kind.calls, "call")))

        cells.append(Text(kind.example))
        rows.append(Row(name=kind.kind.replace("_", " "), cells=tuple(cells)))

    left = len(kinds) - len(rows)
    if left > 0:
        legend = f"{formats.plural(left, 'rarer kind')} left out."
    else:
        legend = ""

    if any(kind.calls for kind in kinds):
        legend = f"Class mcp: calls of the server that failed; the agent went on. {legend}".rstrip()
    attempts = "Failed attempts: whether a later one succeeded or not."
    yield Table(
        caption="Failures",
        columns=columns(
            "failure",
            "class",
            Column("trials", legend="Trials: that ended so."),
            Column("failed attempts", rank=1, legend=attempts),
            "newest message",
            text=("class", "newest message"),
        ),
        rows=tuple(rows),
        legend=legend,
        brief=True,
        limit=3,
        rest="`--full` shows them",
    )


def claims(summary: Summary, texts: Texts | None) -> Iterator[Block]:
    """The number of details that could not be verified, and some of them."""
    if texts is None or not any(tally.total for tally in texts.claims.values()):
        return
    unit = of(summary.kind).unit
    rows = tuple(
        Row(
            name=name,
            color=summary.conditions.index(name),
            cells=(
                Count(tally.total),
                Count(tally.answers),
                Count(summary.accounts[name].ledger.scored),
            ),
        )
        for name, tally in texts.claims.items()
    )
    yield Table(
        caption="Unverified claims",
        columns=columns("condition", "claims", "answers with a claim", "scored answers"),
        rows=rows,
        legend=(
            "Details that the golden answer neither confirms nor contradicts: helpful, or made up."
        ),
        slim=True,
    )
    shown = tuple(
        Row(name=claim.sample, cells=(Text(claim.condition), Text(claim.text)))
        for claim in texts.claimed
    )
    left = texts.different - len(shown)
    caption = formats.plural(len(shown), "different claim") + (
        f" of {formats.count(texts.different)}" if left else ""
    )
    if left:
        legend = f"{formats.plural(left, 'further claim')} left out: they are in the journal."
    else:
        legend = ""

    listed = Table(
        caption=caption,
        columns=columns(unit, "condition", "claim", text=("condition", "claim")),
        rows=shown,
        legend=legend,
    )
    yield Fold(caption, (listed,))
