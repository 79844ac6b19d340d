"""Mutates a file by a number: the same seed file and number give the same bytes on any machine.

Used by fuzz_files.py. The first numbers truncate a small file at each of its bytes; the others choose a random change.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable

from karat.journal import with_checksum

__all__ = ["SMALL", "mutated"]

SMALL = 1_500
"""Bytes of a file that is cut off at every byte."""

NUMBERS = ["NaN", "nan", ".nan", "inf", "-Infinity", ".inf", "1e400", "-1e400", "-1", "0", "-0.0", "1e-400", "010"]
NUMBERS += ["0x1F", "1_000", "1:30", "1,5", "١٢", "2.5e3", "9007199254740993", str(2**63), str(2**64), "9" * 30]
NUMBERS += ["9" * 5_000, "-" + "9" * 400, "1." + "3" * 400, "0.1e", "+5", "1e5"]
WORDS = ["null", "true", "false", "~", "yes", "[]", "{}", '""', "''", "!!python/object:os.system x", "!!binary aGk="]
WORDS += ['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"a\\u0000b"', "${HOME}", "${", "{{ x }}", "<script>", "=1+1"]
WORDS += ["../../../etc/passwd", "/dev/zero", "\u202eevil", "\ufeff", "e\u0301", "\U0001f600", "x" * 100_000]
WORDS += ["[" * 200, "[" * 100_000, "{" * 50_000, '{"a":' * 5_000, '[{"a":' * 2_000 + "1", "- " * 5_000, "(" * 20_000]
WORDS += ["&a [*a]", "*nothing", "&a {x: &b [1, 2], y: *b}", '{"a": 1, "a": 2}', "{a: 1, a: 2}", "|\n  x", "a: b: c"]
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
SCALAR = re.compile(
    rb'(?<=[:,\[ \n-])[ ]?("(?:[^"\\\n]|\\.){0,2000}+"|-?\d[\d.eE+-]{0,50}+|[A-Za-z][\w./ -]{0,80}+)(?=[,\]}\n\r]|$)'
)
KEYED = re.compile(
    rb'("(?:[^"\\\n]|\\.){1,80}+"|(?<![\w-])[\w-]{1,80}+)(\s{0,9}+:\s{0,9}+)'
    rb'("(?:[^"\\\n]|\\.){0,2000}+"|-?[\d.]{1,50}+|true|false|null)'
)

Mutator = Callable[[bytes, random.Random], bytes]


def mutated(name: str, data: bytes, number: int) -> tuple[str, bytes]:
    """A description of the mutation, and the mutated bytes."""
    if number < len(data) <= SMALL:
        return "truncated", data[:number]
    draw = random.Random(f"{name}#{number}")
    mutators, result = [], data
    for _ in range(1 if draw.random() < 0.7 else draw.randint(2, 4)):
        mutator = draw.choices(list(MUTATORS), weights=MUTATORS.values())[0]
        mutators.append(mutator.__name__)
        result = mutator(result, draw)
    return "+".join(mutators), result


def bit(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 5]) if data else 0):
        changed[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def byte(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    new = draw.choice([bytes([draw.randrange(256)]), draw.choice(b'"{}[]:,\n\r\t\0\\#&*!|>%@`').to_bytes(1, "big")])
    return data[:at] + new + data[at + draw.choice([0, 1]) :]


def deleted(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + data[at + draw.choice([1, 1, 2, 10, 100]) :]


def truncated(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def beheaded(data: bytes, draw: random.Random) -> bytes:
    return data[draw.randrange(len(data) + 1) :]


def repeated(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    part = data[at : at + draw.randint(1, 200)]
    return data[:at] + part * draw.choice([2, 2, 3, 50]) + data[at + len(part) :]


def hostile_value(data: bytes, draw: random.Random) -> bytes:
    matches = list(SCALAR.finditer(data))
    new = draw.choice(draw.choice([NUMBERS, WORDS])).encode("utf-8", "surrogatepass")
    if not matches:
        return data + new
    start, end = draw.choice(matches).span(1)
    quoted = data[start : start + 1] == b'"' and draw.random() < 0.5
    return data[:start] + (b'"%b"' % new if quoted else new) + data[end:]


def swapped_values(data: bytes, draw: random.Random) -> bytes:
    matches = list(SCALAR.finditer(data))
    if len(matches) < 2:
        return data
    first, second = sorted(draw.sample(matches, 2), key=lambda match: match.start())
    between = data[first.end(1) : second.start(1)]
    return data[: first.start(1)] + second[1] + between + first[1] + data[second.end(1) :]


def doubled_key(data: bytes, draw: random.Random) -> bytes:
    matches = list(KEYED.finditer(data))
    if not matches:
        return data
    match = draw.choice(matches)
    value = draw.choice([*NUMBERS[:12], '"other"', "null"]).encode()
    separator = b", " if match[1].startswith(b'"') else b"\n"
    return data[: match.end()] + separator + match[1] + match[2] + value + data[match.end() :]


def lines(data: bytes, draw: random.Random) -> bytes:
    rows = data.split(b"\n")
    at, to = draw.randrange(len(rows)), draw.randrange(len(rows))
    match draw.randrange(5):
        case 0:
            del rows[at]
        case 1:
            rows.insert(to, rows[at])
        case 2:
            rows[at], rows[to] = rows[to], rows[at]
        case 3:
            rows[at] = b" " * draw.choice([1, 2, 3]) + rows[at]
        case _:
            rows[at] = rows[at].lstrip(b" ") + draw.choice([b"", b"\t", b" #", b",", b";", b":"])
    return b"\n".join(rows)


def encoded(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    match draw.randrange(8):
        case 0:
            return b"\xef\xbb\xbf" + data
        case 1:
            return text.encode("utf-16")
        case 2:
            return text.encode("utf-32-be")
        case 3:
            return data.replace(b"\n", draw.choice([b"\r\n", b"\r", b"\n\n", "\u2028".encode()]))
        case 4:
            return text.encode("latin-1", "replace")
        case 5:
            return zlib.compress(data)
        case 6:
            return data.replace(b'"', draw.choice([b"'", b"", "\u201c".encode()]), draw.choice([1, 2, -1]))
        case _:
            at = draw.randrange(len(data) + 1)
            return data[:at] + draw.choice([b"\0", b"\xed\xa0\x80", b"\xff", b"\xc0\xaf", b"\x1b[31m"]) + data[at:]


def bomb(data: bytes, draw: random.Random) -> bytes:
    return draw.choice([BOMB.encode() + data, data + BOMB.encode(), b"[" * 30_000 + data, data + data, b""])


def resealed(data: bytes, draw: random.Random) -> bytes:
    """A hostile journal: a changed line with a matching checksum."""
    rows = data.split(b"\n")
    at = draw.randrange(len(rows))
    body = re.sub(rb',"crc":"[0-9a-f]{8}"}$', b"}", rows[at])
    body = draw.choice([hostile_value, swapped_values, doubled_key, bit])(body, draw).replace(b"\n", b" ")
    rows[at] = with_checksum(body or b"{}")
    return b"\n".join(rows)


MUTATORS: dict[Mutator, int] = {
    bit: 6, byte: 4, deleted: 3, truncated: 2, beheaded: 1, repeated: 2, hostile_value: 8, swapped_values: 3,
    doubled_key: 3, lines: 3, encoded: 2, bomb: 1,
}  # fmt: skip
