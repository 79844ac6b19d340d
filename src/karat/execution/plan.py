"""Samples × repetitions × conditions → Trials, lazily, with stable ids. Pure."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, count, islice
from typing import TYPE_CHECKING

import msgspec

from karat.analysis.stopping import in_order
from karat.errors import BadOption, did_you_mean
from karat.records import Condition, Sample, Trial

if TYPE_CHECKING:
    from karat.config import Experiment
    from karat.kinds import Dataset


_BLOCK = 64  # trials that are made at once
_size = struct.Struct(">Q").pack
_Cell = tuple[Condition, int, bytes]  # a repetition under a condition, and the end of its ids


class Shard(msgspec.Struct, frozen=True):
    """One of several equal parts of a plan that run separately: shard 2 of 4.

    A trial's id determines its shard, so `--limit`, `--resume` and a longer dataset do not move
    trials.
    """

    number: int  # from 1
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """`2/4`. Raises BadOption."""
        match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise BadOption(
                "--shard", f"must be I/N with I from 1 to N, at most 999999, e.g. 2/4, got '{text}'"
            )

        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, trial: str) -> bool:
        """Whether the trial with this id is in it.

        Uses the id's last digits: its first ones are the trial's seed.
        """
        return int(trial[-12:], 16) % self.of == self.number - 1


class Plan:
    """Every trial of a run, in order: sample, then repetition, condition innermost.

    So drift over time affects all conditions equally. Iterating makes trials one by one;
    memory does not grow with their number.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        conditions: Sequence[Condition],
        repetitions: int,
        shard: Shard | None = None,
    ) -> None:
        self.samples = samples
        self.conditions = tuple(conditions)
        self.repetitions = repetitions
        self.shard = shard  # None: every trial

    def with_conditions(self, conditions: Sequence[Condition]) -> Plan:
        """The same trials under conditions of the same names and digests."""
        return Plan(self.samples, conditions, self.repetitions, self.shard)

    def __len__(self) -> int:
        return sum(self.counts().values())

    def counts(self) -> dict[str, int]:
        """The number of trials per condition."""
        if self.shard is None:
            count = len(self.samples) * self.repetitions
        else:
            count = 0

        counts = Counter({condition.name: count for condition in self.conditions})
        if self.shard is not None:
            counts.update(trial.condition.name for trial in self)
        return counts

    def __iter__(self) -> Iterator[Trial]:
        cells = list[_Cell]()
        for repetition in range(self.repetitions):
            for condition in self.conditions:
                cells.append((condition, repetition, end_of_id(condition, repetition)))

        # Those of some samples at a time, so that one more trial costs little.
        samples, size = iter(self.samples), max(1, _BLOCK // max(1, len(cells)))
        blocks = zip(count(0, size * len(cells)), iter(lambda: [*islice(samples, size)], []))
        trials = chain.from_iterable(_trials(some, cells, first=first) for first, some in blocks)
        shard = self.shard
        if shard is None:
            return trials
        return (trial for trial in trials if shard.has(trial.id))

    def __getitem__(self, index: int) -> Trial:
        rest, at = divmod(index, len(self.conditions))
        sample, repetition = divmod(rest, self.repetitions)
        condition = self.conditions[at]
        cell = condition, repetition, end_of_id(condition, repetition)
        return _trials([self.samples[sample]], [cell], first=index)[0]


def plan(
    experiment: Experiment,
    dataset: Dataset,
    *,
    limit: int | None = None,
    only_samples: Sequence[str] = (),
    only_conditions: Sequence[str] = (),
    shard: Shard | None = None,
) -> Plan:
    """The planned trials. `limit` takes the first samples; names select, in the file's order.

    A run that may stop early asks them in random order, those of a cluster together.

    Raises BadOption for a name that the experiment does not have.
    """
    conditions: list[Condition] = list(experiment.conditions)
    if only_conditions:
        _known(
            "--only-condition",
            only_conditions,
            [condition.name for condition in conditions],
            "condition",
        )
        conditions = [condition for condition in conditions if condition.name in only_conditions]

    samples: Sequence[Sample] = dataset.samples
    if only_samples:
        _known("--only-sample", only_samples, [sample.id for sample in samples], "sample")
        wanted = set(only_samples)
        samples = [sample for sample in samples if sample.id in wanted]

    if limit is not None:
        if limit < 1:
            raise BadOption("--limit", f"must be at least 1, got {limit}")
        samples = samples[:limit]

    if experiment.execution.stop is not None:
        if shard is not None:
            message = (
                "a run that may stop early looks at all answers together: leave out execution.stop"
            )
            raise BadOption("--shard", message)

        named = {sample.id: sample for sample in samples}
        clusters = {name: sample.cluster for name, sample in named.items()}
        samples = []
        for unit in in_order(clusters, experiment.execution.stop.seed):
            for name in unit:
                samples.append(named[name])

    return Plan(samples, conditions, experiment.execution.num_repetitions, shard)


def end_of_id(condition: Condition, repetition: int) -> bytes:
    """What the ids of all trials of one condition and repetition cover."""
    parts = condition.name, condition.digest, condition.agent.digest, str(repetition)
    return _framed([parts])[0]


def id_of(sample: Sample, end: bytes) -> str:
    """24 hex digits that name this trial in every run of the same experiment.

    Covers everything the answer depends on: the sample's id and content, the condition's name
    (two equal conditions stay apart) and content, the agent with its options, and the
    repetition. Not judge, scorers, gates' names, `execution`, or paths. `end`: of `end_of_id`.
    """
    (begin,) = _framed([(sample.id, sample.digest)])
    return blake2b(begin + end, digest_size=12).hexdigest()


def _framed(rows: Iterable[Sequence[str]]) -> list[bytes]:
    """The texts of each row, each preceded by its length."""
    framed = []
    for texts in rows:
        row = b""
        for text in texts:
            data = text.encode("utf-8", "surrogatepass")
            row += _size(len(data)) + data

        framed.append(row)

    return framed


def _trials(samples: Sequence[Sample], cells: Sequence[_Cell], *, first: int) -> list[Trial]:
    """The trials of these samples. `first`: the number of the first one."""
    trials = list[Trial]()
    begins = _framed([(sample.id, sample.digest) for sample in samples])
    index = first
    for sample, begin in zip(samples, begins, strict=True):
        for condition, repetition, end in cells:
            name = blake2b(begin + end, digest_size=12).hexdigest()
            trial = Trial(
                id=name,
                index=index,
                sample=sample,
                condition=condition,
                repetition=repetition,
                seed=int(name[:8], 16),
            )
            trials.append(trial)
            index += 1

    return trials


def _known(option: str, wanted: Sequence[str], names: Sequence[str], kind: str) -> None:
    known = set(names)
    for name in wanted:
        if name not in known:
            raise BadOption(option, f"no {kind} is called '{name}'{did_you_mean(name, known)}")
