"""What the recorded programs of a conversation come to: the answer where only programs were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karat.numeric import ExecutionError, execute, parse_program

__all__ = ["answer_of"]


def answer_of(programs: Sequence[str | None], table: Any) -> str:
    """The value of the last program, given those of the turns before it (None: the turn has none); "" without one."""
    history: list[tuple[Any, Any]] = []
    value: float | bool | str | ExecutionError = ""
    for text in programs:
        program = parse_program(text or "")
        value = execute(program, table, history)
        history.append((program, None if isinstance(value, ExecutionError) else value))
    if isinstance(value, ExecutionError):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else repr(float(value))
