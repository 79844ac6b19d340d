"""Programs that were read before: golden ones come once a turn, condition and repetition."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from karat.numeric.programs import Program, Readable, parse_program

__all__ = ["MOST_KEPT", "TEXTS", "read_program"]

MOST_KEPT: Final = 2_000
"""Characters of the longest program text that is kept once it was read."""

TEXTS: Final = 4_096
"""Program texts that are kept."""


def read_program(source: Readable) -> Program:
    """What `parse_program` answers; text of usual length is read once."""
    return _of_text(source) if isinstance(source, str) and len(source) <= MOST_KEPT else parse_program(source)


@lru_cache(maxsize=TEXTS)
def _of_text(text: str) -> Program:
    return parse_program(text)
