"""The outcomes of faults.py: one line per run as it ends, and the table of survived faults."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Outcome:
    """The outcome of one seed."""

    seed: int
    faults: list[str]
    world: str
    seconds: float = 0.0
    complaints: list[str] = field(default_factory=list)
    skipped: bool = False  # the fault is not possible on this machine


class Table:
    """The outcomes so far, by seed. `log`: a file with one line for each; read at the start, then appended to."""

    def __init__(self, log: Path | None, planned: int) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self.not_here: dict[str, str] = {}  # fault → why it is not possible on this machine
        self._log, self._planned = log, planned
        if log is not None and log.exists():
            for line in log.read_text(encoding="utf-8").split("\n")[:-1]:
                outcome = Outcome(**json.loads(line))
                self.outcomes[outcome.seed] = outcome

    def add(self, outcome: Outcome) -> None:
        """Adds and prints an outcome."""
        self.outcomes[outcome.seed] = outcome
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
        verdict = "skipped" if outcome.skipped else "survived" if not outcome.complaints else "NOT SURVIVED"
        print(f"{outcome.seed:4} {outcome.seconds:5.1f} s  {verdict}  {' + '.join(outcome.faults)}  ({outcome.world})")
        print(*(f"       {complaint[:2000]}\n" for complaint in outcome.complaints[:5]), sep="", end="", flush=True)

    @property
    def _made(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes.values() if not outcome.skipped]

    @property
    def reached(self) -> bool:
        """Whether all planned runs were made and survived."""
        return len(self.outcomes) >= self._planned and not any(outcome.complaints for outcome in self._made)

    def section(self) -> dict[str, Any]:
        """The table, for _results.py."""
        runs, survived = Counter[str](), Counter[str]()
        for outcome in self._made:
            runs.update(outcome.faults)
            survived.update(outcome.faults if not outcome.complaints else [])
        alive = sum(not outcome.complaints for outcome in self._made)
        notes = [f"{name}: not on this machine: {why}" for name, why in self.not_here.items()]
        notes += [
            f"seed {outcome.seed}, {' + '.join(outcome.faults)} ({outcome.world}): {outcome.complaints[0][:300]}"
            for outcome in self._made
            if outcome.complaints
        ]
        counts = f"{alive} of {len(self._made)} runs; {self._planned} planned"
        return {
            "title": "Runs with faults",
            "about": "A fault befalls a run, which is then resumed. Survived: the journal reads, nothing that was "
            "acknowledged is lost, nothing that was answered is asked again, the totals are those of the same run "
            "without faults, and no process, mount, connection or file is left. A run may have two faults.",
            "columns": ["fault", "runs", "survived"],
            "rows": [*([name, runs[name], survived[name]] for name in sorted(runs)), ["all", len(self._made), alive]],
            "verdicts": [f"every run survives: {'reached' if self.reached else 'MISSED'} ({counts})"],
            "notes": notes,
        }

    def show(self) -> None:
        """Prints the survived runs by fault."""
        section = self.section()
        print()
        for name, injected, survived in [section["columns"], *section["rows"]]:
            print(f"{name:44} {injected:>5} {survived:>9}")
        print(*section["notes"], *section["verdicts"], sep="\n")
