"""What a broken server leaves behind: its last words, its exit, the status it answered with."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from karat.redact import Redactor

__all__ = ["Evidence", "Tail", "printable"]

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Foreign text without escape sequences and control characters; line breaks and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


class Tail:
    """The last of what a server wrote to stderr, in bounded memory."""

    KEPT_BYTES = 16_384
    SHOWN_CHARACTERS = 2_000
    SHOWN_LINES = 12

    def __init__(self) -> None:
        self._kept = bytearray()
        self._cut = False

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * self.KEPT_BYTES:
            del self._kept[: -self.KEPT_BYTES]
            self._cut = True

    def text(self, redact: Redactor) -> str:
        """Readable and free of secrets. Redacted before it is shortened: half a secret would not be recognised."""
        text = self._kept.decode("utf-8", "replace")
        if self._cut:  # what comes before the first line break may begin in the middle of a secret
            text = text.partition("\n")[2]
        lines = [line.rstrip() for line in redact(printable(redact(text))).splitlines() if line.strip()]
        return "\n".join(lines[-self.SHOWN_LINES :])[-self.SHOWN_CHARACTERS :]


@dataclass(kw_only=True, slots=True)
class Evidence:
    """Gathered by a link while it is up; read once it is down."""

    stderr: Tail = field(default_factory=Tail)
    exit_code: int | None = None  # None: still running, not a process, or ended by us; negative: killed by that signal
    not_mcp: str | None = None  # the first line on stdout that is no message
    status: int | None = None  # the last HTTP status of 400 and above, or a redirect that was not followed
    location: str | None = None  # where that redirect points
    retry_after: float | None = None  # seconds that came with the status
