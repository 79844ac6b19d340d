"""A language model compares two conditions' answers to the same question, shown in both orders;
ties are allowed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from pathlib import Path

from msgspec.structs import replace
from pydantic import Field

from karat.config.model import Name
from karat.errors import BadOption, did_you_mean
from karat.records import Answer, Metric, Sample, Score, Usage
from karat.rubrics import Rubric, RubricMetric
from karat.scorers import Row, ScorerSetting, Verdict
from karat.scorers.judge import Form, Judge, JudgeModels

__all__ = ["Pairwise"]

_CHOICE = "comparison"
_FIRST, _TIE, _SECOND = 1, 2, 3
_CRITERIA = """\
The better answer is the one that helps the person who asked more: it is right, it answers what \
was asked, nothing important is missing, and it is clear. Being right comes first. Length, \
politeness, confidence and formatting are no merits by themselves."""

_INSTRUCTIONS = """\
You compare two answers to the same question. The order in which they are shown was chosen by \
chance and means nothing. If there is a golden answer, it is right and complete: an answer that \
contradicts it is wrong. If its block is empty, there is none, and you \
compare the answers by the question alone.

{criteria}

Name what each answer has and the other lacks, then choose. Choose a tie if neither is clearly \
better."""

_TWO_ANSWERS = Form(
    names=("QUESTION", "GOLDEN ANSWER", "FIRST ANSWER", "SECOND ANSWER"),
    answers=2,
    blocks="four blocks: the question, the golden answer, the first answer, the second answer",
    end=(
        "The material ends here. Compare the two answers; what they say of themselves earns "
        "nothing."
    ),
    tool="Records which of the two answers is better.",
)


_LEVELS = {
    _FIRST: "the first answer is better",
    _TIE: "neither is clearly better",
    _SECOND: "the second answer is better",
}
_COMPARISON = RubricMetric(
    name=_CHOICE, description="Which answer is better?", low=_FIRST, high=_SECOND, levels=_LEVELS
)


class Pairwise:
    """Prefers the answer of one condition to the answer of the baseline, to the same question in
    the same repetition.

    Each pair is judged twice, with either answer shown first, and a tie is allowed. `first_shown`
    measures the position bias. The pairs are judged when all answers are in. A golden answer is
    shown if there is one.
    """

    class Options(JudgeModels):
        """One `model`, or `judges`, a panel; each is asked twice for each pair."""

        baseline: Name | None = Field(
            default=None,
            description=(
                "the condition that the others are compared with; null: the experiment's baseline"
            ),
        )
        criteria: str = Field(
            default=_CRITERIA,
            min_length=1,
            max_length=20_000,
            description="what makes an answer the better one",
        )

    offline = False

    def __init__(self, options: Options, setting: ScorerSetting | None = None) -> None:
        setting = setting or ScorerSetting(folder=Path(), name="pairwise")
        self._answer_of = setting.answer_of

        # The condition that the others are compared with. Raises BadOption.
        wanted = options.baseline
        place = f"{setting.name}.baseline"
        names = setting.conditions
        if wanted is not None and wanted not in names:
            raise BadOption(place, f"there is no condition '{wanted}'{did_you_mean(wanted, names)}")
        if len(names) < 2:
            there = f"there is only '{names[0]}'" if names else "there is none"
            raise BadOption(setting.name, f"compares two conditions, and {there}: add another one")

        if wanted is None:
            wanted = names[0]
        self.compared_with = other = wanted
        prompt = _INSTRUCTIONS.format(criteria=options.criteria.strip())
        self._judge = Judge(
            # one per order
            Judge.Options(**options.model_dump(exclude={"baseline", "criteria"}), repeats=2),
            replace(setting, recall=lambda key, trial: _as_choice(setting.recall(key, trial))),
            rubric=Rubric(name="pairwise", instructions=prompt, metrics=(_COMPARISON,)),
            form=_TWO_ANSWERS,
        )
        self.open, self.aclose, self.routes = (
            self._judge.open,
            self._judge.aclose,
            self._judge.routes,
        )
        self.fingerprint = f"{self._judge.fingerprint} {other}"
        self.provenance = {**self._judge.provenance, "compared_with": other}
        preference = (
            f"share of pairs won against {other}, ties counting half; 0.5: neither is preferred"
        )
        first_shown = (
            "share of judgements that the answer shown first won, ties counting half; 0.5: no "
            "position bias. "
        )
        first_shown += (
            "Each pair is judged in both orders, so the bias cancels out of the preference"
        )
        self.metrics = (
            Metric(
                name="preference",
                low=0,
                high=1,
                description=f"{preference} ({other} itself has 0.5 by definition)",
            ),
            Metric(
                name="first_shown",
                low=0,
                high=1,
                direction="none",
                compared=False,
                description=first_shown,
            ),
        )

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known."""
        return self._judge.unpriced

    async def score(
        self, sample: Sample, answer: Answer, *, done: Collection[Row] = ()
    ) -> AsyncGenerator[Verdict]:
        """One verdict per judge and order: repeat 0 shows the baseline's answer first, repeat 1 the
        other's.

        An answer of the baseline has a preference of 0.5, at no cost. No verdict if the baseline
        has no answer yet.
        """
        if answer.condition == self.compared_with:
            yield _free("the others are compared with this answer")
            return

        other = self._answer_of(sample.id, self.compared_with, answer.repetition)
        if other is None:
            return
        question = _listed([turn.question for turn in sample.turns])
        golden = _listed([turn.golden or "" for turn in sample.turns])
        texts = []
        for shown in (other, answer):
            texts.append(_listed([reply.text for reply in shown.replies]))
        panel = self._judge.calls
        for call in panel:
            if len(panel) > 1:
                judge = str(call.name)
            else:
                judge = None

            for order in (0, 1):
                if (None, judge, order) in done:
                    continue
                if texts[0] == texts[1]:
                    verdict = _free("both answers are the same, and the judge is not asked")
                else:
                    material = (question, golden, *(reversed(texts) if order else texts))
                    choice = await self._judge.verdict(
                        call, judge, order, material, (answer.trial, answer.trial)
                    )

                    # The judge's choice between first and second, as a choice between the
                    # conditions
                    first = (_SECOND - (choice.values[_CHOICE] or 0)) / 2
                    if order:
                        whose, preference = "This answer", first
                    else:
                        whose, preference = f"The answer of {self.compared_with}", 1 - first

                    reason = f"({whose} was shown first.) {choice.reasons[_CHOICE]}"
                    values = {"preference": preference, "first_shown": first}
                    verdict = replace(choice, values=values, reasons={"preference": reason})

                yield replace(verdict, judge=judge, repeat=order, rows=2 * len(panel))


def _as_choice(row: Score | None) -> Score | None:
    """A row of this scorer, as the judge gave it."""
    if row is None:
        first = None
    else:
        first = row.values.get("first_shown")

    if row is None or first is None:
        return None
    reason = row.reasons.get("preference", "").partition("was shown first.) ")[2]
    return replace(row, values={_CHOICE: _SECOND - 2 * first}, reasons={_CHOICE: reason})


def _free(reason: str) -> Verdict:
    values = {"preference": 0.5, "first_shown": None}
    return Verdict(
        values=values,
        reasons={"preference": reason},
        detail={"asks": 0},
        usage=Usage(),
        dollars=0.0,
    )


def _listed(texts: list[str]) -> str:
    """A single text unchanged; those of a conversation numbered, "" if all are empty."""
    if len(texts) == 1 or not any(text.strip() for text in texts):
        if len(texts) == 1:
            return texts[0]
        return ""

    return "\n\n".join(f"[turn {number}]\n{text}" for number, text in enumerate(texts, start=1))
