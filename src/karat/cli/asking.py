"""What `karat check --ask` asks: has each judge score a right answer and a wrong one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

import msgspec

from karat import formats
from karat.errors import BadOption, JudgeFault
from karat.execution import ScorerInUse, opened_scorers
from karat.records import Answer, Reply, Sample
from karat.redact import Redactor

_UNKNOWN_ANSWER = "This cannot be said."  # if no other question has another golden answer


class AskedJudge(msgspec.Struct, frozen=True, kw_only=True):
    """One judge's scores of a right and of a wrong answer to one question."""

    judge: str
    sample: str
    right: Mapping[str, float | bool | None] = {}
    wrong: Mapping[str, float | bool | None] = {}
    dollars: float | None = None  # None: not known
    fault: str | None = None  # why there are no scores

    @property
    def doubt(self) -> str | None:
        """That it does not tell the two apart; None: it does, or failed."""
        if self.fault is not None or self.right != self.wrong:
            return None
        return (
            f"{self.judge} gave a right and a wrong answer to '{self.sample}' the same scores "
            f"({_scores(self.right)}): use another model, or look at its rubric"
        )

    def __str__(self) -> str:
        if self.fault is not None:
            return f"{self.judge}: failed"
        if self.dollars is not None:
            cost = formats.dollars(self.dollars)
        else:
            cost = "unknown cost"

        return (
            f"{self.judge}: right answer {_scores(self.right)}; wrong answer "
            f"{_scores(self.wrong)} ({cost})"
        )


def _scores(values: Mapping[str, float | bool | None]) -> str:
    return ", ".join(
        f"{name} {formats.UNKNOWN if value is None else formats.brief(float(value))}"
        for name, value in values.items()
    )


async def asked_judges(
    scorers: Sequence[ScorerInUse], samples: Sequence[Sample], *, redact: Redactor
) -> tuple[AskedJudge, ...]:
    """Each judge's scores of the golden answer of a question, and of another question's.

    Raises BadOption if no scorer asks a model, or no question has a golden answer.
    """
    judges = [used for used in scorers if not used.info.offline and not used.late]
    if not judges:
        raise BadOption(
            "--ask", "no scorer of this experiment asks a model about single answers: leave it out"
        )

    # A question with a golden answer, the shortest conversation first, and an answer that is wrong
    # for it.
    known = [sample for sample in samples if sample.turns[-1].golden]
    if not known:
        raise BadOption(
            "--ask", "no question has a golden answer that a judge could compare with: leave it out"
        )

    sample = min(known, key=lambda one: len(one.turns))
    right = (sample.turns[-1].golden or "").casefold().strip()
    others = (one.turns[-1].golden or "" for one in known)
    wrong = next((text for text in others if text.casefold().strip() != right), _UNKNOWN_ANSWER)
    found = []
    async with opened_scorers(judges):
        for used in judges:
            try:
                found += [one async for one in _asked(used, sample, wrong)]
            except JudgeFault as fault:
                found.append(
                    AskedJudge(judge=used.info.name, sample=sample.id, fault=redact(str(fault)))
                )

    return tuple(found)


async def _asked(used: ScorerInUse, sample: Sample, wrong: str) -> AsyncIterator[AskedJudge]:
    right: dict[str, dict[str, float | bool | None]] = {}
    bad: dict[str, dict[str, float | bool | None]] = {}
    dollars: dict[str, float | None] = {}
    for scores, last in ((right, sample.turns[-1].golden or ""), (bad, wrong)):
        texts = [*(turn.golden or "" for turn in sample.turns[:-1]), last]
        replies = tuple(Reply(text=text, answer=text) for text in texts)
        answer = Answer(
            trial="0" * 24, sample=sample.id, condition="check", repetition=0, replies=replies
        )
        async for verdict in used.scorer.score(sample, answer):
            if verdict.judge:
                judge = f"{used.info.name} ({verdict.judge})"
            else:
                judge = used.info.name

            scores[judge] = verdict.values  # of the last turn and repeat
            known = dollars.get(judge, 0.0)
            more = verdict.dollars
            if known is None or more is None:
                dollars[judge] = None
            else:
                dollars[judge] = known + more

    for judge, values in right.items():
        yield AskedJudge(
            judge=judge,
            sample=sample.id,
            right=values,
            wrong=bad.get(judge, {}),
            dollars=dollars[judge],
        )
