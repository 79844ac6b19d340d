"""Fuzzes the parser, the matches and the extractors: any text must give an answer, and quickly.

    python benchmarks/fuzz_numeric.py

Reads 100,000 texts made of tokens of the grammar and of random characters: no exception, none over
50 ms. Then tokens repeated to 50,000 and to 400,000 characters: eight times the text may take
eight times as long, not sixty-four times.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import _results as results  # beside this file
from limits import Limits

from karat_conversations.numeric import extract, match, match_many, parse_value

MANY = 100_000
SHORT, LONG = 50_000, 400_000
GROWTH = 22  # times as long for eight times the text: halfway, in logarithms, between linear (8) and quadratic (64)
PIECES = [
    *"0123456789.,-+()$%€ {}[]:\"\\\n\t\u2212\u00a0_eExkm`'",
    "\u0665",
    "\ud800",
    "\x00",
    "1,234",
    "million",
    "bn",
]
PIECES += ["percent", "basis points", "yes", "nan", "inf", "1e999", "```", "```json\n", '{"answer": ', '"unit"', "null"]
PIECES += ['{"a":', '{"a":"', '{"a":x', '{"', "}}", "\\u12", "answer", "1,1", "9" * 400, "0.", " " * 40, "($", "%)"]

Reader = Callable[[str], object]
READERS: dict[str, Reader] = {
    "parse_value": parse_value,
    "extract json": extract,
    "extract last_number": lambda text: extract(text, "last_number"),
    "match": lambda text: match(text, text, declared_unit=text, printed=text),
}


def main() -> None:
    """Prints the tables."""
    options, limits = results.parser(__doc__).parse_args(), Limits()
    draw = random.Random(7)
    texts = [text(draw) for _ in range(MANY)]
    print(f"{MANY:,} texts, the longest of {max(map(len, texts)):,} characters: no exception in")
    for name, reader in READERS.items():
        slowest = max(1000 * seconds(lambda each=item, reader=reader: reader(each)) for item in texts)
        verdict = limits.check(f"{name}, slowest", limits.scaled(slowest, clock=time.process_time), "≤", 50, "ms")
        print(f"  {name:20} slowest {slowest:8.2f} ms  {verdict}")
    many = match_many(texts, texts[1:] + texts[:1], declared_unit=texts, printed=texts)
    wrong = sum(differs(texts, many, at) for at in range(MANY))
    verdict = limits.check("match_many, rows that differ", wrong, "≤", 0)
    print(f"  {'match_many':20} {wrong} of {MANY:,} rows other than one by one ({verdict})")
    print(f"{len(PIECES)} pieces, repeated to {SHORT:,} and to {LONG:,} characters")
    for name, reader in READERS.items():
        factor, piece = max(growth(reader, piece) for piece in PIECES)
        verdict = limits.check(f"{name}, growth", factor, "<", GROWTH)
        print(f"  {name:20} at most {factor:6.1f} times as long ({verdict}), for {piece!r}")
    about = f"{MANY:,} random texts, and pieces repeated to {LONG:,} characters; no exception."
    results.write(options.json, limits.section("Any text as a numeric answer", about))
    limits.exit()


def text(draw: random.Random) -> str:
    if draw.random() < 0.2:
        return "".join(chr(draw.randrange(0x2100)) for _ in range(draw.randrange(40)))
    return "".join(draw.choices(PIECES, k=draw.randrange(30)))


def differs(texts: list[str], many: dict[str, object], at: int) -> bool:
    matches = match(texts[at], texts[(at + 1) % MANY], declared_unit=texts[at], printed=texts[at])
    return any(getattr(matches, name) != column[at] for name, column in many.items())  # type: ignore[index]  # arrays


def growth(reader: Reader, piece: str) -> tuple[float, str]:
    """How many times as long the longer text takes; 0 if it takes less than 50 ms."""
    times = [min(timed(reader, piece * (size // len(piece))) for _ in range(2)) for size in (SHORT, LONG)]
    return (times[1] / times[0] if times[1] > 0.05 else 0.0), piece


def timed(reader: Reader, long: str) -> float:
    return seconds(lambda: reader(long))


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


if __name__ == "__main__":
    main()
