"""Reads, executes and compares 100,000 random programs: no exception, none over 50 ms.

    python benchmarks/fuzz_programs.py [how many]

Texts, token lists, nested programs, plans and other input, drawn by hypothesis
(`tests/karat_conversations/strategies.py`; a short version runs in the suite), then handwritten worst cases
within the limits. Times are CPU times of one call.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _results as results  # beside this file
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.karat_conversations.strategies import anything

from karat_conversations.numeric.equivalence import equivalent
from karat_conversations.numeric.programs import execute, parse_program

MANY = 100_000
LONGEST = 0.050
TABLE = [["", *map(str, range(2000, 2020))], ["revenue", *["$ 1,234.5"] * 20], ["loss", *["( 5 )", "-"] * 10]]


def main() -> None:
    """Prints the slowest calls; fails on an exception or one that is too slow."""
    parser = results.parser(__doc__)
    parser.add_argument("many", type=int, nargs="?", default=MANY)
    options = parser.parse_args()
    many = options.many
    slowest: dict[str, tuple[float, str]] = {}

    def meet(first: Any, second: Any) -> None:
        for name, call in calls(first, second):
            gc.disable()  # a collection of hypothesis's objects would fall into a measured call
            start = time.thread_time()
            call()
            took = time.thread_time() - start
            gc.enable()
            if took > slowest.get(name, (0.0, ""))[0]:
                slowest[name] = took, f"{str(first)[:60]} … {str(second)[:30]}"

    drawn = settings(
        max_examples=many // 2,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    start = time.perf_counter()
    drawn(given(st.tuples(anything(), anything()))(lambda pair: meet(*pair)))()
    print(f"{many:,} programs in {time.perf_counter() - start:.0f} s, and {len(worst())} by hand")
    for program in worst():
        for other in (program, "add(1, 2)"):
            meet(program, other)
    for name, (took, slow) in slowest.items():
        print(f"{name:28} slowest {took * 1e3:7.2f} ms   {slow!r}")
    rows = [[name, took * 1e3] for name, (took, _) in slowest.items()]
    about = f"{many:,} random programs, no exception; limit: {LONGEST * 1e3:.0f} ms."
    section = {"title": "Any text as a program", "about": about, "columns": ["", "slowest, ms"], "rows": rows}
    results.write(options.json, section)
    if max(took for took, _ in slowest.values()) > LONGEST:
        raise SystemExit(f"over {LONGEST * 1e3:.0f} ms")


def calls(first: Any, second: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    history = [(first, 7.5), (second, "60.94"), ("add(1, 2)", 3)]
    yield "parse_program", lambda: parse_program(first)
    yield "its tree", lambda: parse_program(first).tree
    yield "execute", lambda: execute(first, TABLE, history)
    yield "execute, official rules", lambda: execute(first, TABLE, rounding="official")
    yield "equivalent", lambda: equivalent(first, second)
    yield "equivalent, to itself", lambda: equivalent(first, first, table=TABLE, scale=True)
    yield "equivalent, with history", lambda: equivalent(first, second, history=history)
    yield "equivalent, official rules", lambda: equivalent(first, second, official=True)
    yield "equivalent, official, itself", lambda: equivalent(first, first, official=True, dialect="finqa")


def worst() -> list[Any]:
    """The largest and worst programs of each kind."""
    chain = ["add(", "3", "4", ")"]
    for at in range(199):
        chain += ["multiply(", f"#{at}", f"#{at}", ")"]
    powers = ", ".join(["exp(3, 64)", *(f"exp(#{at}, -64)" for at in range(190))])
    roots = ", ".join(["exp(3, 0.5)", *(f"exp(#{at}, #{at})" for at in range(190))])
    long_chain = ["add(", "3", "4", ")"]
    for at in range(998):
        long_chain += ["divide(", f"#{at}", f"#{at}", ")"]
    compute = {"tool": "compute", "operation": "add", "operands": list(range(190))}
    return [
        "(" * 10_000,
        ")" * 10_000,
        "add(" * 2_500,
        "add(" * 49 + "1" + ", 2)" * 49,
        "table_sum(" * 1_000,
        "1," * 5_000,
        "add(" + "1,234," * 1_500 + ")",
        "a" * 10_000,
        " " * 10_000,
        "#" * 10_000,
        "9" * 10_000,
        "table_sum(" + "(a)" * 3_000 + ", none)",
        "EOF " * 2_500,
        "1e" + "9" * 50,
        "add(1e9999, 1e-9999)",
        "[" * 40_000,
        '{"a":' * 8_000,
        "add(1, " + "9" * 4_299 + ")",
        [*chain, "EOF"],
        [*long_chain, "EOF"],
        ["table_sum(", "revenue", "none", ")"] * 999 + ["EOF"],
        ["greater(", "2", "1", ")", *["add(", "#0", "#0", ")"] * 900, "EOF"],
        ["add("] * 10_000,
        ["1"] * 10_000,
        ["9" * 9_000, "EOF"],
        ["add(", "#" + "9" * 9_000, "1", ")", "EOF"],
        ["x" * 1_000] * 1_000,
        powers,
        roots,
        {"steps": [compute] * 100},
        {"steps": [{"tool": "compute", "operation": "percentage_change", "operands": ["#0", "#0"]}] * 10_000},
        {"steps": [{"tool": "extract_value", "value": 10**5_000}] * 100},
        json.dumps({"steps": [compute] * 50}),
        [[[]]] * 1_000,
        {str(at): {"steps": at} for at in range(10_000)},
    ]


if __name__ == "__main__":
    main()
