"""Deletes, doubles, moves, edits and adds lines of journals with new seeds: nothing may be lost or silent.

python benchmarks/vanished.py --operations 200
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import _results as results  # beside this file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.journal.test_vanished import HARMLESS, SEEN, operated, outcome


def main() -> None:
    """The command line."""
    parser = results.parser(__doc__)
    parser.add_argument("--operations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2000)
    options = parser.parse_args()
    done, silent, lost = Counter[str](), Counter[str](), Counter[str]()
    for number in range(options.operations):
        change = (*SEEN, *HARMLESS)[number % (len(SEEN) + len(HARMLESS))]
        with tempfile.TemporaryDirectory() as place:
            run, before, whole = operated(Path(place), change, seed=options.seed + number)
            after, said = outcome(run)
            done[change.__name__] += 1
            silent[change.__name__] += change in SEEN and not said
            lost[change.__name__] += change in HARMLESS and (after, said) != (before, "")
            run.journal.write_bytes(whole)
            lost[change.__name__] += outcome(run) != (before, "")
    verdict = f"{options.operations} operations: {lost.total()} lost, {silent.total()} silent"
    print(verdict)
    rows = [[name, done[name], lost[name], silent[name]] for name in done]
    columns = ["operation", "times", "lost", "silent"]
    about = "Operations on the lines of journals, each with a new seed, and whether a report says so."
    section = {"title": "Vanished lines", "about": about, "columns": columns, "rows": rows, "verdicts": [verdict]}
    results.write(options.json, section)


if __name__ == "__main__":
    main()
