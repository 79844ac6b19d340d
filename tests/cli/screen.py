"""A small screen that obeys what karat writes to a terminal, and nothing else."""

from __future__ import annotations

import re

CODES = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


class Screen:
    """What a person sees: a few rows, and what has scrolled out above them."""

    def __init__(self, columns: int, rows: int, *, folds: bool = False) -> None:
        """`folds`: a line may be longer than a row, and goes on in the next one."""
        self.columns, self.rows, self.folds = columns, rows, folds
        self.lines = [""] * rows
        self.gone: list[str] = []
        self.row = self.column = 0

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            code = CODES.match(text, at)
            if code:
                self._obey(code[2], int(code[1] or 0) if code[2] != "m" else 0)
                at = code.end()
                continue
            self._put(text[at])
            at += 1

    def _obey(self, letter: str, number: int) -> None:
        if letter == "A":
            self.row = max(0, self.row - max(1, number))
        elif letter in "JK":
            assert number == 0, "nothing that is still to be seen is erased"
            self.lines[self.row] = self.lines[self.row][: self.column]
            if letter == "J":
                self.lines[self.row + 1 :] = [""] * (self.rows - self.row - 1)
        else:
            assert letter == "m"

    def _put(self, char: str) -> None:
        if char == "\r":
            self.column = 0
        elif char == "\n":
            self.row += 1
            if self.row == self.rows:
                self.row -= 1
                self.gone.append(self.lines.pop(0))
                self.lines.append("")
        else:
            if self.column == self.columns:
                assert self.folds, "no line reaches the last column"
                self._put("\r")
                self._put("\n")
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
            self.column += 1

    @property
    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.lines]
