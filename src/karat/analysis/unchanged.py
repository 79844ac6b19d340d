"""Whether an agent answers as it did: every answer equal to an earlier run's, byte by byte."""

from __future__ import annotations

import hashlib

import msgspec

from karat.index import read_index, trusted
from karat.journal import RunFolder

Key = tuple[str, str]  # of a question: id and digest of its content
Answers = dict[Key, list[bytes | None]]  # digests of the repetitions' answers; None: not answered


class _Reply(msgspec.Struct, gc=False):
    """What an agent said, without what it cost."""

    text: str = ""
    answer: str | None = None
    unit: str | None = None
    program: str | None = None


class _Answer(msgspec.Struct, gc=False):
    replies: tuple[_Reply, ...]


_decode = msgspec.json.Decoder(_Answer).decode


def unchanged_conditions(run: RunFolder, baseline: RunFolder) -> frozenset[str]:
    """The conditions under which every answer to the questions of both runs is the same in both,
    and none is missing.

    Repetitions are compared in order; their number may differ if all of them are the same text.
    """
    ours = _answers(run)
    theirs = _answers(baseline)
    shared = ours.keys() & theirs.keys()
    alike = set()
    for name in shared:
        both = ours[name].keys() & theirs[name].keys()
        for key in both:
            first = ours[name][key]
            second = theirs[name][key]
            digests = {*first, *second}
            if None in digests or (first != second and len(digests) > 1):
                break
        else:
            if both:
                alike.add(name)

    return frozenset(alike)


def _answers(run: RunFolder) -> dict[str, Answers]:
    """The answers to each question, by condition."""
    with trusted(run):
        index = read_index(run)
        keys = {row: (name, index.digests[row]) for name, row in index.samples.items()}
        answers: dict[str, Answers] = {}
        for name in index.conditions:
            answers[name] = {key: [None] * index.repetitions for key in keys.values()}
        names = list(index.conditions)
        with_text = set()
        for cell, answer in index.answer_lines(_decode):
            row, condition, repetition = index.place(cell)
            if any(reply.text for reply in answer.replies):
                with_text.add(names[condition])
            said = msgspec.json.encode(answer.replies)
            answers[names[condition]][keys[row]][repetition] = hashlib.sha256(said).digest()

    if run.info.imported:  # its file may not hold the answers
        return {name: answers[name] for name in answers if name in with_text}
    return answers
