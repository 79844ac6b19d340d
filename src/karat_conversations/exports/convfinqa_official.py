"""`--to convfinqa-official`: execution and program accuracy as counted by the official scorer of
the dataset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karat import __version__, formats
from karat.analysis import Summary, TrialRecord, trials
from karat.journal import RunFolder
from karat.records import Turn
from karat.stats.ratios import Sums, ratio_interval
from karat_conversations.exports._convfinqa_rows import Row, Shown, turn_rows
from karat_conversations.kinds.conversation.analysis.model import ConversationSummary
from karat_conversations.numeric import execute, parse_value
from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import Dialect

__all__ = ["ConvfinqaOfficial"]

FORMAT_VERSION = 1
"""1: 2026-11, the first."""


class ConvfinqaOfficial:
    """Official execution and program accuracy by condition, as JSON, with intervals clustered by
    conversation.

    For numbers comparable with a leaderboard. For each declared turn the agent's program is scored,
    not its answer: `execution_accuracy` requires that it executes to the golden answer, to five
    decimals, `program_accuracy` that it is the golden program's formula in the golden program's
    numbers. A turn without a program, or with one that the official scorer refuses, is wrong, and
    counted. FinQA's questions are scored by FinQA's scorer, which refuses a program of one number;
    `dialect` of the dataset chooses another. For runs over conversations.
    """

    kinds = ("conversation",)

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        part = summary.part(ConversationSummary)
        if part is None:
            shown = Shown("", "", None)
        else:
            shown = Shown(part.scorer, part.scoring, None)

        counts = {name: _Count() for name in summary.conditions}
        for trial in trials(run, summary):
            if trial.answer is not None or trial.failure is not None:
                counts[trial.condition].add(trial, turn_rows(trial, "", shown))

        report = {
            "format": FORMAT_VERSION,
            "made_by": f"karat {__version__}",
            "run": summary.run,
            "dialect": " and ".join(
                sorted({dialect for count in counts.values() for dialect in count.dialects})
            ),
            "level": summary.level,
            "conditions": {name: count.accuracies(summary.level) for name, count in counts.items()},
        }
        return {"official.json": formats.json_file(report)}


class _Count:
    """The turns of one condition: right ones by conversation."""

    def __init__(self) -> None:
        self._right: dict[str, dict[str, int]] = {"execution_accuracy": {}, "program_accuracy": {}}
        self._turns: dict[str, int] = {}
        self._weights: dict[str, float] = {}
        self._missing = self._invalid = self._ungolden = 0
        self.dialects: set[Dialect] = set()

    def add(self, trial: TrialRecord, rows: list[Row]) -> None:
        name = trial.sample.id
        table = trial.sample.detail.get("table") or None
        dialect: Dialect = "finqa" if trial.sample.detail.get("dialect") == "finqa" else "convfinqa"
        self.dialects.add(dialect)
        self._weights[name] = trial.sample.weight
        for turn, row in zip(trial.sample.turns, rows, strict=True):
            golden = turn.detail.get("program")
            program = row["predicted_program"]
            if not golden:
                self._ungolden += 1
                continue

            self._turns[name] = self._turns.get(name, 0) + 1
            self._missing += not program
            if program:
                value = execute(program, table, rounding="official", dialect=dialect)
            else:
                value = None

            valid = isinstance(value, float | str)
            self._invalid += bool(program) and not valid
            verdicts = {
                "execution_accuracy": valid and _same(value, turn, table, dialect),
                "program_accuracy": bool(program)
                and equivalent(golden, program, official=True, dialect=dialect),
            }
            for metric, right in verdicts.items():
                rights = self._right[metric]
                rights[name] = rights.get(name, 0) + right

    def accuracies(self, level: float) -> dict[str, object]:
        counts = list(self._turns.values())
        weights = [self._weights[name] for name in self._turns]
        rates: dict[str, object] = {}
        for metric, rights in self._right.items():
            sums = Sums.of([rights[name] for name in self._turns], counts, weights=weights)
            interval = ratio_interval(sums, share=True, level=level).interval
            known = {name: getattr(interval, name) for name in ("value", "low", "high")}
            known = {name: None if value != value else value for name, value in known.items()}
            rates[metric] = {**known, "right": sum(rights.values())}

        return {
            **rates,
            "turns": sum(counts),
            "conversations": len(counts),
            "without_program": self._missing,
            "invalid_programs": self._invalid,
            "turns_without_golden_program": self._ungolden,
        }


def _same(value: Any, turn: Turn, table: Any, dialect: Dialect) -> bool:
    """Whether the value is the golden one: the dataset's, if it has one, else that of the golden
    program.
    """
    golden = parse_value(turn.detail.get("executed"))
    if golden is None:
        return bool(
            value == execute(turn.detail["program"], table, rounding="official", dialect=dialect)
        )

    if golden.boolean is not None:
        return bool(value == ("yes" if golden.boolean else "no"))
    return isinstance(value, float) and value == round(golden.number, 5)
