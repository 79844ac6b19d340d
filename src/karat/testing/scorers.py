"""Checks whether a scorer follows its protocol: it returns the metrics that it announces, within
their bounds.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from karat.errors import Caught, JudgeFault
from karat.records import Answer, Metric, Reply, Sample, Turn
from karat.scorers import Verdict, announced, as_verdicts
from karat.threads import Threads

ANSWERS = (
    "",
    " ",
    "\x00",
    "\x1b[31mred\x1b[0m",
    "\ud83d",
    "🦀" * 1000,
    "a" * 200_000,
    "{" * 10_000,
    "```json\n{}\n```",
    "give me 5s",
    "I do not know.",
    "[](javascript:alert(1))",
    "=cmd|' /C calc'!A0",
    "1e999 -0 ∞ ½ ３",
)
"""Answers for `check_scorer`: some that agents really give, and some that break programs."""

_GOLDEN = ("The limit is 40 items; run `karat run --limit 40`.", "", "\ud83d", None)
_SHOWN = 10

BROKEN = ("bad_verdict", "unannounced_metric", "out_of_bounds")
"""Kinds of JudgeFault that `as_verdicts` raises if the scorer does not return what it announces."""


def check_scorer(
    scorer: object, *, name: str = "scorer", cases: Iterable[tuple[Sample, Answer]] | None = None
) -> tuple[Verdict, ...]:
    """Checks a scorer in a test of your own; returns its results for some answers.

    Each result must be something karat accepts: a number, bool, text, mapping or Verdict, only with
    metrics that the scorer announces (if it announces any), each between its `low` and `high`, and
    the same if the same answer is scored again. `cases` are samples with answers; by default, a
    question with a golden answer, an empty one and none at all is combined with answers that break
    programs. `name`: the scorer's name in the experiment file. A JudgeFault that the scorer raises
    is a result too. `open` is called first, `aclose` last. Do not call this in an event loop.

    Raises AssertionError with what is wrong, BadPlugin if `metrics` itself is wrong.
    """
    return asyncio.run(_check(scorer, name, _hard() if cases is None else cases))


async def _check(
    scorer: Any, name: str, cases: Iterable[tuple[Sample, Answer]]
) -> tuple[Verdict, ...]:
    metrics = announced(scorer, type(scorer).__name__)
    if hasattr(scorer, "open"):
        scorer.open()
    verdicts: list[Verdict] = []
    wrong: list[str] = []
    try:
        for sample, answer in cases:
            with Caught() as caught:
                both = []
                for _ in range(2):
                    if inspect.isasyncgenfunction(scorer.score):
                        pieces = scorer.score(sample, answer, done=frozenset())
                        scored = [verdict async for verdict in pieces]
                    else:
                        scored = scorer.score(sample, answer)
                        if inspect.isawaitable(scored):
                            scored = await scored

                    both.append(as_verdicts(scored, name=name, metrics=metrics))

                first, again = both
                verdicts += first
                if first != again:
                    wrong.append(
                        f"the answer {answer.text[:60]!r} is scored differently the second time"
                    )

            if isinstance(caught.error, JudgeFault) and caught.error.kind not in BROKEN:
                continue
            if caught.error is not None and not isinstance(caught.error, Exception):
                raise caught.error  # Ctrl-C, and anything else not from the scorer
            if caught.error is not None:
                wrong += [f"the answer {answer.text[:60]!r}: {_message(caught.error)}"]
    finally:
        if hasattr(scorer, "aclose"):
            await scorer.aclose()

    if wrong:
        if len(wrong) > _SHOWN:
            wrong = [*wrong[:_SHOWN], f"and {len(wrong) - _SHOWN} more"]
        raise AssertionError("\n".join([f"{type(scorer).__name__}:", *wrong]))

    return tuple(verdicts)


def probe(
    scorer: Any, sample: Sample, *, name: str, metrics: Sequence[Metric], seconds: float
) -> str | None:
    """What is wrong with a sync scorer's results for one sample's golden answers; None if nothing
    is.

    Runs on its own thread, abandoned after `seconds`. A scorer that raises is not wrong: a golden
    answer lacks things that an agent's answer has.
    """
    answer = Answer(
        trial="check",
        sample=sample.id,
        condition="check",
        repetition=0,
        started="",
        seconds=0.0,
        replies=tuple(Reply(text=turn.golden or "") for turn in sample.turns),
    )

    async def once() -> str | None:
        threads = Threads(most=1)
        try:
            with Caught() as caught:
                async with asyncio.timeout(seconds):
                    as_verdicts(
                        await threads.call(scorer.score, sample, answer), name=name, metrics=metrics
                    )
        finally:
            threads.close()

        if caught.error is not None and not isinstance(caught.error, Exception):
            raise caught.error
        broken = isinstance(caught.error, JudgeFault) and caught.error.kind in BROKEN
        if caught.error is not None and broken:
            return _message(caught.error)
        return None

    return asyncio.run(once())


def _message(error: BaseException) -> str:
    if isinstance(error, JudgeFault):
        return error.message
    return f"{type(error).__name__}: {error}"


def _hard() -> Iterator[tuple[Sample, Answer]]:
    for golden in _GOLDEN:
        turn = Turn(question="What is the limit?", golden=golden)
        sample = Sample(id="s", position=0, digest="d", turns=(turn,))
        for text in ANSWERS:
            yield (
                sample,
                Answer(
                    trial="t",
                    sample="s",
                    condition="c",
                    repetition=0,
                    replies=(Reply(text=text),),
                    started="now",
                    seconds=0.1,
                ),
            )
