"""Journals written line by line, so that a test says exactly what happened and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from karat import plugins
from karat.journal import (
    CHECKSUMS_SINCE,
    Attempt,
    Choice,
    Codec,
    DatasetInfo,
    End,
    Head,
    PlanInfo,
    ReplyEvent,
    Resume,
    RunFolder,
    RunInfo,
    ScorerInfo,
    with_checksum,
)
from karat.records import Answer, Failure, Metric, Reply, Sample, Score, Turn

SCALE = Metric(name="completeness", low=1, high=5, kind="ordinal")
JUDGE = ScorerInfo(
    name="judge",
    type="overlap",
    scoring="0f" * 16,
    metrics=(SCALE,),
    offline=True,
    rubric="default",
    rubric_digest="ab" * 16,
)


def sample(index: int, *, digest: str | None = None, name: str | None = None) -> Sample:
    return Sample(
        id=name if name is not None else str(index),
        position=index,
        digest=digest or f"{index:032x}",
        turns=(Turn(question=f"Question {index}?", golden=f"Golden answer {index}."),),
    )


class Script:
    """A run folder that a test fills. Trials are named by sample index, condition name and repetition."""

    def __init__(
        self,
        folder: Path,
        *,
        samples: int | Sequence[Sample] = 2,
        conditions: Sequence[str] = ("baseline", "with-docs"),
        repetitions: int = 1,
        scorers: Sequence[ScorerInfo] = (JUDGE,),
        **info: Any,
    ) -> None:
        self.samples = [sample(index) for index in range(samples)] if isinstance(samples, int) else list(samples)
        self.conditions, self.repetitions = tuple(conditions), repetitions
        facts: dict[str, Any] = {
            "format": 1,
            "run": "1234abcd",
            "name": "support-kb",
            "version": "1",
            "created": "2026-11-20T12:00:00Z",
            "kind": "golden",
            "plan": PlanInfo(samples=len(self.samples), conditions=self.conditions, repetitions=repetitions),
            "dataset": DatasetInfo(kind="golden", path="questions.jsonl", sha256="5a" * 32, samples=len(self.samples)),
            "experiment": {"agent.type": Choice(value="floor", source="file")},
            "conditions": {name: f"{index:032x}" for index, name in enumerate(self.conditions)},
            "prompts": dict.fromkeys(self.conditions, "00" * 32),
            "agents": dict.fromkeys(self.conditions, "aa" * 16),
            "agent_type": "floor",
            "scorers": tuple(scorers),
            "versions": {"karat": "0.1.0", "python": "3.11.0"},
            "host": "testhost",
        }
        self.info = RunInfo(**{**facts, **info})
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder
        line = msgspec.json.encode(self.info)
        old = self.info.format < CHECKSUMS_SINCE
        (folder / "run.json").write_bytes(line if old else with_checksum(line))
        codec = Codec()
        (folder / "samples.jsonl").write_bytes(b"".join(codec.line(item) for item in self.samples))
        self._line = codec.line
        self._file = (folder / "journal.jsonl").open("wb")
        self.write(Head(format=self.info.format, run=self.info.run))

    def write(self, event: Any) -> None:
        self._file.write(self._line(event))

    def trial(self, row: int, condition: str, repetition: int = 0) -> str:
        column = self.conditions.index(condition) if condition in self.conditions else 99
        return f"{row:08x}{column:08x}{repetition:08x}"

    def place(self, row: int, condition: str, repetition: int) -> dict[str, Any]:
        return {
            "trial": self.trial(row, condition, repetition),
            "sample": self.samples[row].id if row < len(self.samples) else str(row),
            "condition": condition,
            "repetition": repetition,
        }

    def answer(
        self,
        row: int,
        condition: str,
        repetition: int = 0,
        *,
        reply: Reply | None = None,
        attempts: int = 1,
        seconds: float = 1.0,
        replies: tuple[Reply, ...] = (),
    ) -> None:
        said = replies or (reply or Reply(text=f"Answer {row} {condition} {repetition}.", dollars=0.0),)
        place = self.place(row, condition, repetition)
        self.write(Answer(**place, replies=said, attempts=attempts, started="2026-11-20T12:00:00Z", seconds=seconds))

    def reply(
        self, row: int, condition: str, repetition: int = 0, *, reply: Reply, attempt: int = 1, turn: int = 0
    ) -> None:
        self.write(ReplyEvent(trial=self.trial(row, condition, repetition), attempt=attempt, turn=turn, reply=reply))

    def score(
        self,
        row: int,
        condition: str,
        repetition: int = 0,
        *,
        value: float | bool | None = None,
        values: Mapping[str, float | bool | None] | None = None,
        scorer: ScorerInfo = JUDGE,
        **more: Any,
    ) -> None:
        given = dict(values) if values is not None else {scorer.metrics[0].name: value}
        facts: dict[str, Any] = {"offline": scorer.offline, **more}
        trial = self.trial(row, condition, repetition)
        self.write(Score(trial=trial, scorer=scorer.name, scoring=scorer.scoring, values=given, **facts))

    def scored(self, row: int, condition: str, repetition: int = 0, *, value: float | bool | None) -> None:
        self.answer(row, condition, repetition)
        self.score(row, condition, repetition, value=value)

    def failure(
        self, row: int, condition: str, repetition: int = 0, *, cls: str = "agent", stage: str = "agent", **more: Any
    ) -> None:
        facts: dict[str, Any] = {"kind": "crash", "message": "it fell over", **more}
        self.write(Failure(**self.place(row, condition, repetition), stage=stage, cls=cls, **facts))

    def attempt(self, row: int, condition: str, repetition: int = 0, *, n: int = 1, **more: Any) -> None:
        facts: dict[str, Any] = {"cls": "infrastructure", "kind": "rate_limit", "message": "slow down", **more}
        self.write(Attempt(trial=self.trial(row, condition, repetition), n=n, **facts))

    def resume(self, *scorers: ScorerInfo, plan: PlanInfo | None = None, **more: Any) -> None:
        command = "score" if scorers else "run"
        self.write(
            Resume(
                at="2026-11-20T13:00:00Z",
                versions={},
                host="testhost",
                pid=1,
                command=command,
                scorers=scorers,
                plan=plan,
                **more,
            )
        )

    def pause(self, reason: str, **more: Any) -> None:
        """The end of a part that is not the last."""
        self.write(End(at="2026-11-20T12:10:00Z", reason=reason, seconds=600.0, **more))

    def end(self, reason: str = "done", **more: Any) -> RunFolder:
        self.pause(reason, **more)
        return self.stop()

    def stop(self) -> RunFolder:
        """The journal as it stands, without an end."""
        self._file.close()
        return RunFolder.open(self.path)


def table(
    folder: Path,
    scores: Mapping[str, Sequence[Sequence[float | bool | None]]],
    *,
    metric: Metric = SCALE,
    **more: Any,
) -> RunFolder:
    """A finished run with these scores: condition → questions → repetitions. None: the trial failed."""
    scorer = msgspec.structs.replace(JUDGE, metrics=(metric,))
    first = next(iter(scores.values()))
    repetitions = len(first[0])
    script = Script(
        folder,
        samples=more.pop("samples", len(first)),
        conditions=tuple(scores),
        repetitions=repetitions,
        scorers=(scorer,),
        **more,
    )
    for row in range(len(first)):
        for repetition in range(repetitions):
            for condition, questions in scores.items():
                value = questions[row][repetition]
                if value is None:
                    script.failure(row, condition, repetition)
                else:
                    script.answer(row, condition, repetition)
                    script.score(row, condition, repetition, value=value, scorer=scorer)
    return script.end()


_METRICS = plugins.find("scorers", "numeric").metrics if "numeric" in plugins.names("scorers") else ()
NUMERIC = ScorerInfo(name="numeric", type="numeric", scoring="1e" * 16, metrics=_METRICS, offline=True)


def asked(name: str, position: int, turns: Sequence[Mapping[str, Any]], **facts: Any) -> Sample:
    """A conversation; each turn as `golden`, and what else is known of it."""
    built = []
    for turn in turns:
        detail = {"executed": turn["golden"], "printed": None, "program": None, "operations": 0, **turn}
        golden = detail.pop("golden")
        program = detail["program"]
        operations = program.count("(") if program else 0
        built.append(Turn(question="=how much?", golden=golden, detail={**detail, "operations": operations}))
    return Sample(id=name, position=position, digest=f"{position:032x}", turns=tuple(built), **facts)


def conversations(
    folder: Path,
    samples: Sequence[Sample],
    said: Mapping[str, Sequence[Sequence[Sequence[Reply] | None]]],
    **more: Any,
) -> RunFolder:
    """A finished run over conversations: condition → samples → repetitions → replies. None: the trial failed.

    Scored by the real scorer. An empty list of replies: the trial was not run.
    """
    repetitions = len(next(iter(said.values()))[0])
    script = Script(
        folder, samples=samples, conditions=tuple(said), repetitions=repetitions, scorers=(NUMERIC,),
        kind="conversation", **more,
    )  # fmt: skip
    scorer = plugins.find("scorers", "numeric")()
    for row, sample in enumerate(samples):
        for repetition in range(repetitions):
            for condition, given in said.items():
                replies = given[row][repetition]
                if replies is None:
                    script.failure(row, condition, repetition)
                elif replies:
                    script.answer(row, condition, repetition, replies=tuple(replies))
                    answer = Answer(
                        **script.place(row, condition, repetition), replies=tuple(replies), started="", seconds=1.0
                    )
                    verdicts = scorer.score(sample, answer)
                    for verdict in verdicts:
                        script.score(
                            row, condition, repetition, scorer=NUMERIC, values=verdict.values, turn=verdict.turn,
                            labels=verdict.labels, detail=verdict.detail, rows=len(verdicts), offline=True,
                        )  # fmt: skip
    return script.end()


def resealed(lines: bytes) -> bytes:
    """Lines that a test has changed, with the checksums of what they are now."""
    bare = [re.sub(rb',"crc":"[0-9a-f]{8}"}$', b"}", line) for line in lines.splitlines()]
    return b"".join(with_checksum(line) + b"\n" for line in bare)


def resealed_file(path: Path, old: str, new: str) -> None:
    """Changes the text of a run.json, and gives it the checksum that it then has."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    line = re.sub(rb',"crc":"[0-9a-f]{8}"}$', b"}", msgspec.json.format(text.replace(old, new).encode(), indent=-1))
    path.write_bytes(msgspec.json.format(with_checksum(line), indent=2) + b"\n")
