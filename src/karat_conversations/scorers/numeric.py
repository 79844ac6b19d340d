"""Whether the numbers of a conversation are right, turn by turn, how they were computed, and why
one is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from karat.records import Answer, JsonObject, Metric, Sample, Turn
from karat.scorers import Values, Verdict
from karat.scorers._child import Child
from karat.thoughts import spoken
from karat_conversations.numeric import (
    RULES,
    Extracted,
    Stated,
    TurnFacts,
    compare_programs,
    diagnose,
    extract,
    match,
    operations_attempted,
    parse_program,
    parse_value,
    stated,
    would_be_right,
)
from karat_conversations.numeric.document import Document
from karat_conversations.numeric.matches import same_text

__all__ = ["Numeric"]

NOT_RECORDED = "not_recorded"  # `stop_reason` of a turn that is missing in a file of answers

_MATCHES = {
    "numerical": "off by less than 0.001, or by at most 1 %: the primary one",
    "soft": "off by at most 1 %; a golden 0 needs 0",
    "unit_agnostic": "numerical, also at 100 times or a hundredth of the golden number",
    "sign_agnostic": "numerical, whatever the sign",
    "general": (
        "numerical, the same yes or no, the same text, or the same number with % on one side"
    ),
    "exact": "equal to five decimals: the rule of the official scorer",
    "declared": "numerical in the unit that the agent gave, compared in the golden unit",
    "printed": "rounds to the golden answer as printed",
    "scale_and_sign": "unit_agnostic, whatever the sign",
    "right": "numerical, or the same yes or no: the basis of every count of right turns",
}
_READINGS = {
    "logic_recall": "share of the golden operations that the program has",
    "logic_precision": "share of the program's operations that are golden",
    "logic_f1": "of the two",
    "order_score": "longest common subsequence of operations, over the longer program",
    "operand_recall": "share of the golden numbers that the program has",
    "operand_precision": "share of the program's numbers that are golden",
    "partial_credit": "share of the golden sub-expressions that the program has",
    "program_match": "the program is equivalent to the golden one",
    "execution_match": "the program's own value is the golden answer",
    "self_consistent": "the program's own value is the answer that was stated",
}
_OPERATIONS = {
    "golden_operations": "operations of the golden program",
    "agent_operations": "operations that the agent's program attempts",
}
_SHARES = {*_MATCHES, "program_match", "execution_match", "self_consistent"}


_PROGRAM = """
from karat_conversations.numeric.extraction import extract
def ask(text):
    return extract(text, "regex", setting["pattern"])
"""
_UNREACHED = Stated(None, None, None, "none", None)


class _Earlier(msgspec.Struct):
    """The turns before, oldest first."""

    facts: list[TurnFacts]
    turns: list[tuple[Any, Any, Any]]  # golden program, golden answer, the agent's


class Numeric:
    """Golden numbers: nine matches per turn, the quality of the reasoning program, and a diagnosis
    for what is wrong.

    One row per declared turn: a turn without a reply is wrong too. A turn whose golden answer is
    text has no
    values: judge it with `overlap` or a model. Where `dataset.unanswerable` is the golden answer,
    abstaining is right. The answer is what the agent gives apart from its text (in a file of
    answers: its column), else what `extract` finds in the text. Metrics of the program exist if the
    turn has a golden program and the agent gave one that can be parsed; they cover the whole golden
    program, and under `detail.reasoning.step` only what no earlier turn had computed. `regex` runs
    in a separate process; if a reply takes longer than `timeout_seconds`, the answer has no scores.
    The default for `dataset.kind: conversation`.
    """

    class Options(BaseModel):
        """How the answer is found in the agent's reply."""

        model_config = ConfigDict(extra="forbid")
        extract: Literal["final", "json", "last_number", "regex"] = Field(
            default="final",
            description="final: the JSON object, else the answer that the text gives in words; "
            "json: the last "
            '`{"answer": …, "unit": …, "program": …}` of the text; last_number: its last number; '
            "regex: what `pattern` matches last",
        )
        pattern: str | None = Field(
            default=None,
            description="for regex: its group `answer`, else the first group, else the whole match",
        )
        timeout_seconds: float = Field(
            default=1.0,
            gt=0,
            le=60,
            description="for regex: of one reply",
        )

        @model_validator(mode="after")
        def _pattern_for_regex(self) -> Numeric.Options:
            if (self.pattern is not None) != (self.extract == "regex"):
                raise ValueError("`pattern` belongs to `extract: regex`, and regex needs one")
            if self.pattern is not None:
                try:
                    re.compile(self.pattern)
                except re.error as error:
                    raise ValueError(f"pattern: is not a regular expression: {error}") from error

            return self

    fingerprint = RULES
    metrics = (
        *(
            Metric(name=name, low=0, high=1, kind="share", description=text)
            for name, text in _MATCHES.items()
        ),
        *(
            Metric(
                name=name,
                low=0,
                high=1,
                kind="share" if name in _SHARES else "number",
                description=text,
            )
            for name, text in _READINGS.items()
        ),
        *(
            Metric(name=name, low=0, direction="none", description=text)
            for name, text in _OPERATIONS.items()
        ),
    )

    def __init__(self, options: Options | None = None) -> None:
        options = options or self.Options()
        self._last: tuple[str, Document] | None = None
        self._child: Child | None = None
        self._take: Callable[..., Extracted] = partial(extract, how=options.extract)
        if options.extract == "regex":
            self._child = Child(
                _PROGRAM, {"pattern": options.pattern}, seconds=options.timeout_seconds
            )
            self._take = self._by_pattern

        self.blocking = self._child is not None

    def score(self, sample: Sample, answer: Answer) -> Sequence[Verdict]:
        """One verdict per declared turn."""
        # The report; its numbers are parsed once for consecutive answers to the same sample.
        if self._last is None or self._last[0] != sample.digest:
            detail = sample.detail
            text = "\n".join(
                str(detail[part]) for part in ("pre_text", "post_text") if detail.get(part)
            )
            self._last = sample.digest, Document(table=detail.get("table") or None, text=text)

        document = self._last[1]
        replies = [*answer.replies, *[None] * (len(sample.turns) - len(answer.replies))]
        earlier = _Earlier([], [])
        verdicts = []
        for number, (turn, reply) in enumerate(zip(sample.turns, replies, strict=False)):
            if reply is None or (reply.stop_reason == NOT_RECORDED and not reply.text):
                given = _UNREACHED
            else:
                # Text: a JSON object, or as it is
                if parse_value(turn.golden) is None:
                    take = extract
                else:
                    take = partial(self._take, question=turn.question)

                said = spoken(reply.text).rjust(len(reply.text))  # spans are of the whole text
                given = stated(
                    said,
                    answer=reply.answer,
                    unit=reply.unit,
                    program=reply.program,
                    take=take,
                )

            facts = TurnFacts(
                expected=turn.golden,
                actual=given.answer,
                unit=given.unit,
                program=turn.detail.get("program") or None,
                stated=given.program,
                executed=turn.detail.get("executed"),
                printed=turn.detail.get("printed"),
                document=document,
            )
            verdicts.append(_verdict(number, turn, given, facts, earlier))
            earlier.facts.append(facts)
            earlier.turns.append(
                (turn.golden if facts.program is None else facts.program, turn.golden, given.answer)
            )

        return verdicts

    def _by_pattern(self, text: str, *, question: str) -> Extracted:
        del question
        assert self._child is not None
        answer, unit, program, how, span = self._child.ask(text)
        return Extracted(answer, unit, program, how, tuple(span) if span is not None else None)

    def close(self) -> None:
        """End the process that matches, if there is one."""
        if self._child is not None:
            self._child.close()


def _verdict(
    number: int,
    turn: Turn,
    given: Stated,
    facts: TurnFacts,
    earlier: _Earlier,
) -> Verdict:
    # How many operations the golden program has, and how many the agent's attempts
    operations: Values = dict.fromkeys(_OPERATIONS)
    if facts.program is not None:
        operations["golden_operations"] = turn.detail.get("operations")
    if given.program:
        operations["agent_operations"] = operations_attempted(parse_program(given.program))

    detail: JsonObject = {
        "rules": RULES,
        "expected": turn.golden,
        "actual": given.answer,
        "extractor": given.how,
        "span": given.span and list(given.span),
        **({"unit": given.unit} if given.unit else {}),
        **({"program": given.program} if given.program else {}),
        **({"unreached": True} if given is _UNREACHED else {}),
    }
    abstains = given is not _UNREACHED and facts.unanswered
    if turn.detail.get("unanswerable"):
        answered_nothing = given.span is None and not (given.answer or "").strip()
        says_so = abstains or same_text(turn.golden, given.answer)
        right = says_so and not answered_nothing
        values: Values = dict.fromkeys(_MATCHES, right)
        values |= dict.fromkeys(("printed", *_READINGS, *_OPERATIONS))
        labels = {"abstention": "right" if right else "unsupported"}
        return Verdict(values=values, turn=number, labels=labels, detail=detail)

    values = dict.fromkeys((*_MATCHES, *_READINGS))
    if parse_value(turn.golden) is None:  # none, or text: that is for a judge
        kept = ("rules", "expected", "actual", "unreached")
        detail = {key: detail[key] for key in kept if key in detail}
        return Verdict(values={**values, **operations}, turn=number, detail=detail)

    matches = match(
        turn.golden,
        given.answer,
        declared_unit=given.unit,
        golden_unit=turn.detail.get("unit"),
        printed=turn.detail.get("printed"),
    )
    values |= {name: getattr(matches, name) for name in _MATCHES}
    if turn.detail.get("printed") is None:
        values["printed"] = None
    labels = {}
    if abstains:
        labels["abstention"] = "over_refusal"
    elif matches.unreadable is not None and given is not _UNREACHED:
        labels["unreadable"] = matches.unreadable

    if given.program is not None and facts.program is not None:
        reasoning = compare_programs(
            facts.program,
            given.program,
            earlier=earlier.turns,
            table=facts.document.table if facts.document is not None else None,
            expected=facts.expected,
            stated=given.answer,
            unit=given.unit,
        )
        values |= {name: getattr(reasoning, name) for name in _READINGS}
        if reasoning.unreadable:
            labels["program"] = "unreadable"
        detail["reasoning"] = {"step": {name: getattr(reasoning.step, name) for name in _READINGS}}

    if matches.right:
        diagnosis = None
    else:
        diagnosis = diagnose(facts, earlier.facts)

    if diagnosis is not None:
        labels["diagnosis"] = diagnosis.label
        detail["evidence"] = diagnosis.evidence
        if would_be_right(facts, earlier.facts):
            detail["carried"] = True  # proved: right, had earlier turns been right

    return Verdict(values={**values, **operations}, turn=number, labels=labels, detail=detail)
