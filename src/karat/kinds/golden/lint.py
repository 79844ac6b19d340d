"""Contradictions in a file of questions with golden answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from operator import itemgetter
from typing import Any

from karat.formats import excerpt, plural, some_of
from karat.kinds import Doubted
from karat.kinds._samples import folded, repeats
from karat.records import Sample

MEANINGS = {
    "contradicts": "an earlier sample asks the same and has another golden answer",
    "same_question": "an earlier sample asks the same, and has the same golden answer",
    "same_answer": "other questions have the same long golden answer",
    "no_answer_equals": (
        "no answer is likely to equal the golden text: it holds working, a rule or a list"
    ),
    "answer_is_question": "the golden answer repeats the question",
}

_FEW = 3
"""So many questions with one answer are worth a look: an answer that fits many questions is often a
placeholder.
"""
_EXAMPLE = 40  # characters of a golden answer in a sentence
_SHORT = 24  # characters: `yes`, `42` and `Paris` rightly answer many questions


def doubted(samples: Iterable[Sample]) -> list[Doubted]:
    """Repeated questions, and answers that contradict each other, echo their question, or occur
    everywhere.
    """
    listed = list(samples)
    reasons: dict[int, list[tuple[str, dict[str, Any]]]] = {}
    for reason, place, evidence in (
        *_repeated(listed, repeats(listed)),
        *_unequalled(map(_golden, listed)),
        *_everywhere(listed),
    ):
        reasons.setdefault(place, []).append((reason, evidence))

    found: list[Doubted] = []
    for place, of_sample in sorted(reasons.items()):
        found.append(
            Doubted(
                id=listed[place].id,
                turn=None,
                reasons=tuple(reason for reason, _ in of_sample),
                evidence=dict(of_sample),
            )
        )

    return found


def suspicions(samples: Sequence[Sample], repeated: Sequence[tuple[int, int]]) -> list[str]:
    """What `karat check` says of the samples: the `repeats` among them, golden texts that no answer
    can equal, and how many have nothing to compare an answer with.
    """
    sentences = []
    if repeated:
        names = [f"'{excerpt(sample.id, 24)}'" for sample in samples]
        pairs = []
        for first, later in repeated:
            pairs.append(f"{names[first]} and {names[later]}")

        sentences.append(
            f"{plural(len(pairs), 'question')} asked twice, counted as one: {some_of(pairs)}"
        )
        found = _repeated(samples, repeated)
        differing = {}
        for reason, place, said in found:
            if reason == "contradicts":
                differing[place] = said

        if differing:
            sentences.append(_contradicting(names, differing))

    goldens = []
    bare = 0
    for sample in samples:
        golden = sample.turns[0].golden
        goldens.append(golden or "")  # not `_golden`, which is not free for a whole file
        if golden is None and not sample.criteria:
            bare += 1

    unequalled = [*_unequalled(goldens)]
    if unequalled:
        names = []
        for _, place, _ in unequalled:
            names.append(f"'{excerpt(samples[place].id, 24)}'")

        sentences.append(
            f"no answer can equal {plural(len(names), 'golden text')} "
            f"({some_of(names)}): {unequalled[0][2]['why']}"
        )

    if 0 < bare < len(samples):
        sentences.append(
            f"questions without a golden answer or a criterion: {bare} of {len(samples)}"
        )

    return sentences


def _contradicting(names: Sequence[str], differing: Mapping[int, Mapping[str, Any]]) -> str:
    """How many repeated questions have another golden answer, and one of them with both."""
    listed = some_of([names[place] for place in differing])
    examples = []
    for place, said in differing.items():
        there, here = (excerpt(said[key], _EXAMPLE) for key in ("there", "answer"))
        shown = f"'{excerpt(said['id'], 24)}' with '{there}' and {names[place]} with '{here}'"
        examples.append((there == here, shown))  # long ones may begin alike

    _, example = min(examples, key=itemgetter(0))
    return (
        f"asked again with another golden answer: {len(differing)} of them ({listed}), such as "
        f"{example}: an answer that fits one fails the other; `karat check --lint FILE` lists all"
    )


_RULE = re.compile(
    r"(?:not-)?(?:equals|i?contains(?:-any|-all|-json)?|i?starts-with|regex|is-(?:json|sql|xml)|javascript|similar"
    r"|llm-rubric|factuality|answer-relevance|levenshtein|rouge-n|webhook)(?:\([^)]*\))?:"
)


def _golden(sample: Sample) -> str:
    return sample.turns[0].golden or ""


_Finding = tuple[str, int, dict[str, Any]]


def _repeated(samples: Sequence[Sample], repeated: Iterable[tuple[int, int]]) -> Iterable[_Finding]:
    """Each repeated question: `contradicts` with another answer, else `same_question`."""
    for earlier, place in repeated:
        answers = [_golden(samples[at]) for at in (earlier, place)]
        # the same text except for case and spaces, or the same value: `10 %` and `0.1`
        first, second = folded(answers)
        value = _value(answers[0])
        same = first == second or (value is not None and value == _value(answers[1]))
        reason = "same_question" if same else "contradicts"
        evidence = {
            "id": samples[earlier].id,
            "there": answers[0][:200],
            "answer": answers[1][:200],
        }
        yield reason, place, evidence


def _unequalled(goldens: Iterable[str]) -> Iterable[_Finding]:
    """Golden texts that no answer is likely to equal."""
    for place, golden in enumerate(goldens):
        text = golden.strip()
        why = None
        if _RULE.match(text):
            why = (
                f"it is a rule of promptfoo ('{excerpt(text, 24)}'); keep the text, and name the "
                f"scorer"
            )
        elif text.startswith("[") and text.endswith("]"):
            with suppress(ValueError):
                if isinstance(json.loads(text), list):
                    why = (
                        "it is a list as one text; keep one answer, and give the others to "
                        "`equals` as `any_of`"
                    )

        if why is not None:
            yield "no_answer_equals", place, {"answer": golden[:200], "why": why}


def _everywhere(samples: Sequence[Sample]) -> Iterable[_Finding]:
    """Answers that are their question, and long ones that several different questions share."""
    sharing: dict[str, dict[str, int]] = {}
    for place, sample in enumerate(samples):
        question, golden = folded((sample.turns[0].question, _golden(sample)))
        if question == golden:
            yield "answer_is_question", place, {"answer": _golden(sample)[:200]}
        if len(_golden(sample)) >= _SHORT:
            sharing.setdefault(golden, {}).setdefault(question, place)

    for questions in sharing.values():
        if len(questions) >= _FEW:
            first, *others = questions.values()
            for place in others:
                evidence = {"id": samples[first].id, "questions": len(questions)}
                yield "same_answer", place, evidence | {"answer": _golden(samples[place])[:200]}


_WORDS = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_NUMBER = re.compile(
    r"([-+]?) ?[$€£¥]? ?([1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]*)?|[0-9]+(?:\.[0-9]*)?"
    r"|\.[0-9]+) ?((?:%|percent)?)"
)


def _value(text: str) -> Decimal | str | None:
    """A plain number (10 % is 0.1), or `yes` or `no`; None for any other text."""
    words = " ".join(text.split()).lower().replace("\u2212", "-")
    number = _NUMBER.fullmatch(words)
    if number is None:
        return _WORDS.get(words)
    sign, digits, percent = number.groups()
    return Decimal(f"{sign}{digits.replace(',', '')}{'e-2' if percent else ''}")
