"""How fast numeric answers are compared.

    python benchmarks/numeric.py

What must be reached stands beside each figure. Times are of one core, the best of three.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from karat.numeric import extract, match, match_many

MANY = 1_000_000
FEW = 20_000


def main() -> None:
    """Prints the tables, one a section."""
    for section in (matches,):
        section()


def matches() -> None:
    """Reading and comparing golden and actual answers, 1 % of noise apart."""
    print("matches")
    rng = np.random.default_rng(1)
    golden = rng.lognormal(3, 3, MANY) * rng.choice([-1, 1], MANY)
    actual = golden * (1 + rng.normal(0, 0.01, MANY))
    row("1,000,000 pairs of numbers, arrays", best(lambda: match_many(golden, actual)), "≤ 0.15 s")
    lists = golden.tolist(), actual.tolist()
    row("1,000,000 pairs of numbers, lists", best(lambda: match_many(*lists)), "≤ 0.15 s")
    for title, forms in FORMS.items():
        texts = [[forms[at % len(forms)].format(x, abs(x)) for at, x in enumerate(side)] for side in lists]
        row(f"1,000,000 pairs of texts, {title}", best(lambda pair=texts: match_many(*pair)), "≤ 3 s")
    few = list(zip(lists[0][:FEW], map(str, lists[1][:FEW]), strict=True))
    one_by_one = best(lambda: [match(e, a, declared_unit="percent", printed="14.1%") for e, a in few])
    row("20,000 pairs, one by one", one_by_one, f"{FEW / one_by_one:,.0f} pairs/s")
    text = "Sales grew.\n" * 20 + '```json\n{"answer": 14.10, "unit": "percent", "program": "divide(1, 2)"}\n```'
    taken = best(lambda: [extract(text) for _ in range(FEW)])
    row("20,000 answers out of a text", taken, f"{FEW / taken:,.0f} texts/s")


FORMS = {
    "12.34": ("{0:.2f}",),
    "1,234.5 $12.34 12.3%": ("{0:,.1f}", "${0:,.2f}", "{0:.1f}%"),
    "(12.3) -$1.2 million": ("({1:,.1f})", "-${1:.1f} million", "{0:.1f} basis points", "{0:.1f}"),
    "17 digits": ("{0!r}",),
}


def best(call: Callable[[], object]) -> float:
    return min(seconds(call) for _ in range(3))


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def row(title: str, value: float, wanted: str) -> None:
    print(f"  {title:50} {value:8.3f} s  {wanted}")


if __name__ == "__main__":
    main()
