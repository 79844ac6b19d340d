"""What 10⁶, 10⁸ and 10⁹ trials need: machines, tokens per minute, money, the driver, the journal, the index.

    python benchmarks/scale.py                                    # prints the tables
    python benchmarks/scale.py --page docs/explanation/scale.md   # writes them there, and what they were computed from

What a trial costs karat is measured: the driver's processor time by `ray_driver.py` and the index by `index_size.py`,
if their figures are in `benchmarks/measured/`, else the defaults of `Costs`; the bytes of a trial are measured here, on
the journal of `long_journal.py`. What a trial costs its agent is an assumption, `AGENTS`: change it to your own.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from _results import MEASURED  # beside this file
from long_journal import write

from karat.journal import RunFolder

SIZES = (10**6, 10**8, 10**9)
CORES = 32  # of a machine
BUSY = 0.5  # of a driver's core: the rest is for peaks


@dataclass(frozen=True)
class Costs:
    """What one trial costs karat. The defaults were measured on two cores of a shared machine."""

    driver_single: float = 1530.0  # µs of the driver's processor time if each answer arrives alone
    driver_batch: float = 103.0  # µs if answers arrive in batches: 50 trials per worker
    journal_bytes: float = 1172.0  # for an answer of 85 words and one judge's score
    index_microseconds: float = 8.0  # of processor time, to build the index; one score of four metrics
    index_bytes: float = 286.0  # of memory, at the peak


@dataclass(frozen=True)
class Agent:
    """What one trial costs its agent."""

    name: str
    seconds: float
    cores: float  # busy meanwhile
    tokens: float  # input and output
    dollars: float


AGENTS = (
    Agent("one question to a model", seconds=5, cores=0.01, tokens=1_500, dollars=0.003),
    Agent("an agent with tools", seconds=60, cores=0.1, tokens=30_000, dollars=0.05),
    Agent("a coding agent in a workspace", seconds=600, cores=1, tokens=500_000, dollars=1),
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--days", type=float, default=7, help="until all trials are answered")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the tables into this page")
    options = parser.parse_args()
    if options.page is None:
        print("\n\n".join(tables(measured(), options.days).values()))
    else:
        inputs = {"days": options.days, **asdict(measured())}
        options.page.write_text(filled(options.page.read_text("utf-8"), inputs), encoding="utf-8")


def measured() -> Costs:
    """This machine's figures, as far as they exist."""
    costs = replace(Costs(), **journal_bytes(samples=300))
    rows = {row[0]: row for row in _rows("ray_driver.json")}
    if {"1", "50"} <= rows.keys():
        costs = replace(costs, driver_single=float(rows["1"][1]), driver_batch=float(rows["50"][1]))
    if index := [row for row in _rows("index_size.json") if row[1] == "index, first"]:
        scores, _, _, processor, megabytes = max(index, key=lambda row: int(row[0].replace(",", "")))
        trials = int(scores.replace(",", "")) / 4
        costs = replace(costs, index_microseconds=1e6 * processor / trials, index_bytes=1e6 * megabytes / trials)
    return costs


def _rows(name: str) -> list[list[Any]]:
    file = MEASURED / name
    return [row for section in json.loads(file.read_text("utf-8")) for row in section["rows"]] if file.exists() else []


def journal_bytes(*, samples: int) -> dict[str, float]:
    """Bytes of the journal per trial."""
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        write(run, samples)
        plain = RunFolder.open(run).journal.stat().st_size
        trials = sum(b'"event":"answer"' in line for line in RunFolder.open(run).lines())
    return {"journal_bytes": plain / trials}


def tables(costs: Costs, days: float) -> dict[str, str]:
    """Markdown by the name of the table."""
    seconds = 86_400 * days
    agents = [
        [
            f"{agent.name}, {power(trials)}",
            figure(trials * agent.seconds / 3600), figure(trials * agent.seconds / seconds),
            figure(math.ceil(trials * agent.seconds * agent.cores / seconds / CORES)),
            figure(trials * agent.tokens / (seconds / 60)), figure(trials * agent.dollars),
        ]
        for agent in AGENTS
        for trials in SIZES
    ]  # fmt: skip
    lines: dict[str, Callable[[int], str]] = {
        "trials per second": lambda trials: figure(trials / seconds),
        "driver's cores, answers one by one": lambda trials: figure(trials * costs.driver_single / 1e6 / seconds),
        "driver's cores, answers in batches": lambda trials: figure(trials * costs.driver_batch / 1e6 / seconds),
        f"shards, each driver's core {BUSY:.0%} busy": lambda trials: figure(
            math.ceil(trials * costs.driver_single / 1e6 / seconds / BUSY)
        ),
        "shortest time with one driver": lambda trials: time(trials * costs.driver_batch / 1e6),
        "written per second": lambda trials: size(trials * costs.journal_bytes / seconds),
        "journal": lambda trials: size(trials * costs.journal_bytes),
        "index: processor time": lambda trials: time(trials * costs.index_microseconds / 1e6),
        "index: memory": lambda trials: size(trials * costs.index_bytes),
        "95 % interval of a share, ± points": lambda trials: figure(100 * 1.96 * math.sqrt(0.25 / trials)),
    }
    within = f"in {days:g} days"
    return {
        "agents": table(
            ["agent, trials", "hours of agents", f"at a time, {within}", f"machines of {CORES} cores",
             "tokens a minute", "dollars"], agents,
        ),
        "driver": table([within, *map(power, SIZES)], [[name, *map(line, SIZES)] for name, line in lines.items()]),
        "saturation": table(
            ["answers arrive", "driver, µs a trial", "its core is full at, trials a second"],
            [
                [name, figure(cost), figure(1e6 / cost)]
                for name, cost in (("one by one", costs.driver_single), ("in batches", costs.driver_batch))
            ],
        ),
    }  # fmt: skip


def table(columns: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [columns, ["---"] + ["--:"] * (len(columns) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def power(number: int) -> str:
    """
    >>> power(10**6)
    '10⁶'
    """
    return "10" + str(round(math.log10(number))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def figure(value: float) -> str:
    """Two significant digits.

    >>> [figure(value) for value in (0.001234, 0.5, 3, 17.2, 1653.4, 148_800_000, 3e9)]
    ['0.0012', '0.5', '3', '17', '1,700', '150 million', '3 billion']
    """
    rounded = float(f"{value:.2g}")
    for least, name in ((1e9, "billion"), (1e6, "million")):
        if rounded >= least:
            return f"{rounded / least:g} {name}"
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def size(count: float) -> str:
    """Bytes, for people.

    >>> [size(count) for count in (2_000, 1.172e9, 1.172e12)]
    ['2 kB', '1.2 GB', '1.2 TB']
    """
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{figure(count)} {unit}"
        count /= 1000
    return f"{figure(count)} TB"


def time(seconds: float) -> str:
    """
    >>> [time(seconds) for seconds in (8, 800, 12_400, 124_000)]
    ['8 s', '13 min', '3.4 h', '34 h']
    """
    if seconds < 100:
        return f"{figure(seconds)} s"
    return f"{figure(seconds / 60)} min" if seconds < 6000 else f"{figure(seconds / 3600)} h"


def filled(page: str, inputs: dict[str, float]) -> str:
    """The page with its tables computed from `inputs`, which are stored in a comment."""
    page = between(page, "inputs", json.dumps({name: float(f"{value:.4g}") for name, value in inputs.items()}))
    given = inputs_of(page)
    for name, text in tables(Costs(**{key: given[key] for key in asdict(Costs())}), given["days"]).items():
        page = between(page, name, text)
    return page


def inputs_of(page: str) -> dict[str, float]:
    """The inputs from which a page's tables were computed."""
    inputs: dict[str, float] = json.loads(page.split("<!-- inputs\n")[1].split("\n-->", maxsplit=1)[0])
    return inputs


def between(page: str, name: str, text: str) -> str:
    """The page with new text in one of its places. Raises ValueError if it has no such place."""
    begin, end = ("<!-- inputs\n", "\n-->") if name == "inputs" else (f"<!-- {name} -->\n", "\n<!-- end -->")
    start = page.index(begin) + len(begin)
    body = text if name == "inputs" else f"\n{text}\n"
    return page[:start] + body + page[page.index(end, start - 1) :]


if __name__ == "__main__":
    main()
