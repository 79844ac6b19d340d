"""How fast numeric answers are compared.

    python benchmarks/numeric.py

Times are in reference seconds (`limits.py`) of one core, the best of three, next to their limits.
"""

from __future__ import annotations

import _results as results  # beside this file
import numpy as np
from limits import Limits

from karat_conversations.numeric import extract, match, match_many

MANY = 1_000_000
FEW = 20_000


def main() -> None:
    """Prints the table."""
    options, limits = results.parser(__doc__).parse_args(), Limits()
    matches(limits)
    results.write(options.json, limits.section("Numeric answers", "Reference seconds of one core, the best of three."))
    limits.exit()


def matches(limits: Limits) -> None:
    """Reads and compares golden and actual answers that differ by 1 % of noise."""
    best = limits.best
    rng = np.random.default_rng(1)
    golden = rng.lognormal(3, 3, MANY) * rng.choice([-1, 1], MANY)
    actual = golden * (1 + rng.normal(0, 0.01, MANY))
    limits.row("1,000,000 pairs of numbers, arrays", best(lambda: match_many(golden, actual)), at_most=0.15)
    lists = golden.tolist(), actual.tolist()
    limits.row("1,000,000 pairs of numbers, lists", best(lambda: match_many(*lists)), at_most=0.15)
    for title, forms in FORMS.items():
        texts = [[forms[at % len(forms)].format(x, abs(x)) for at, x in enumerate(side)] for side in lists]
        limits.row(f"1,000,000 pairs of texts, {title}", best(lambda pair=texts: match_many(*pair)), at_most=3)
    few = list(zip(lists[0][:FEW], map(str, lists[1][:FEW]), strict=True))
    one_by_one = best(lambda: [match(e, a, declared_unit="percent", printed="14.1%") for e, a in few])
    limits.row("20,000 pairs, one by one", one_by_one, note=f"{FEW / one_by_one:,.0f} pairs/s")
    text = "Sales grew.\n" * 20 + '```json\n{"answer": 14.10, "unit": "percent", "program": "divide(1, 2)"}\n```'
    taken = best(lambda: [extract(text) for _ in range(FEW)])
    limits.row("20,000 answers out of a text", taken, note=f"{FEW / taken:,.0f} texts/s")


FORMS = {
    "12.34": ("{0:.2f}",),
    "1,234.5 $12.34 12.3%": ("{0:,.1f}", "${0:,.2f}", "{0:.1f}%"),
    "(12.3) -$1.2 million": ("({1:,.1f})", "-${1:.1f} million", "{0:.1f} basis points", "{0:.1f}"),
    "17 digits": ("{0!r}",),
}


if __name__ == "__main__":
    main()
