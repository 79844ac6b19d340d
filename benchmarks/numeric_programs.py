"""How fast programs are read, executed and compared, next to reported times of the official scorers.

    python benchmarks/numeric_programs.py

Each figure is shown next to its limit, in reference seconds (`limits.py`). The official scorers are not on any package
index; their times were measured for the issue: equivalence 3.6 to 18 s, execution 5.3 ms per 1,000. The programs are
those of `../shared/data/convfinqa`: the golden ones, and 355 that a model wrote for some of the same turns.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import _results as results  # beside this file
from limits import Limits

from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import execute, parse_program

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "convfinqa"
OFFICIAL_EXECUTION = 5.3
"""Milliseconds per 1,000."""
OFFICIAL_EQUIVALENCE = (3_600.0, 18_000.0)


def main() -> None:
    """Prints the table."""
    options = results.parser(__doc__).parse_args()
    if not DATA.is_dir():
        print("no ../shared/data/convfinqa: nothing to measure")
        return
    dialogues = [record["dialogue"] for record in json.loads((DATA / "dev.json").read_text())["dev"]]
    programs = [program for dialogue in dialogues for program in dialogue["turn_program"]]
    predicted = json.loads((DATA / "predictions_programs.json").read_text())["results"]
    pairs = [(record["expected_program"], record["predicted_program"]) for record in predicted]
    parsed = [parse_program(program) for program in programs]
    limits = Limits()
    official = f"official: {OFFICIAL_EXECUTION} ms"
    row(limits, "parse_program", programs, parse_program)
    row(limits, "execute, from text", programs, execute, official)
    row(limits, "execute, parsed before", parsed, execute, official)
    row(limits, "execute, official rules", programs, lambda program: execute(program, rounding="official"), official)
    official = f"official: {OFFICIAL_EQUIVALENCE[0]:,.0f} to {OFFICIAL_EQUIVALENCE[1]:,.0f} ms"
    compared: dict[str, tuple[list[Any], Callable[[Any], object]]] = {
        "equivalent, golden with model's": (pairs, lambda pair: equivalent(*pair)),
        "equivalent, official rules": (pairs, lambda pair: equivalent(*pair, official=True)),
        "equivalent, golden with itself": (programs, lambda program: equivalent(program, program)),
        "equivalent, with its history": (list(turns(dialogues)), lambda item: equivalent(*item[:2], history=item[2])),
    }
    for title, (items, call) in compared.items():
        row(limits, title, items, call, official, most=0.2)
    about = (
        f"{len(programs):,} golden programs. Medians of one call, the best of three passes; with a limit: reference ms."
    )
    results.write(options.json, limits.section("Numeric programs", about))
    limits.exit()


def turns(dialogues: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str, list[tuple[str, Any]]]]:
    """Each golden program, with the next turn's and all earlier turns."""
    for dialogue in dialogues:
        earlier = list(zip(dialogue["turn_program"], dialogue["executed_answers"], strict=True))
        for at, (program, _) in enumerate(earlier):
            yield program, earlier[min(at + 1, len(earlier) - 1)][0], earlier[:at]


def row(
    limits: Limits, title: str, items: list[Any], call: Callable[[Any], object], official: str = "", *,
    most: float | None = None,
) -> None:  # fmt: skip
    """Prints the median of one call and the time of 1,000, best of three passes. `most`: the median's limit in ms."""
    passes = []
    for _ in range(3):
        times = []
        for item in items:
            start = time.perf_counter()
            call(item)
            times.append(time.perf_counter() - start)
        passes.append((statistics.median(times), sum(times) / len(times)))
    median, mean = min(result[0] for result in passes), min(result[1] for result in passes)
    print(f"{title:32} median {median * 1e3:7.4f} ms   1,000: {mean * 1e6:7.1f} ms   {official}")
    if most is None:
        limits.note(title, median * 1e3, "ms")
    else:
        print(f"{'':32} {limits.check(title, limits.scaled(median * 1e3), '≤', most, 'ms')}")


if __name__ == "__main__":
    main()
