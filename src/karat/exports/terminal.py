"""`--to terminal`: which condition is better on what, then the numbers behind it."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from karat.analysis import Summary
from karat.document.render.terminal import render_terminal
from karat.document.run import document
from karat.journal import RunFolder

__all__ = ["Terminal"]


class Terminal:
    """The result for people: one line for each comparison that shows something, means, failures,
    warnings.

    `full` adds everything else: differences, variation, the lowest questions, cost, and how to
    repeat the run.
    """

    shows_corrected = True

    class Options(BaseModel):
        """How much is shown, and how it looks."""

        model_config = ConfigDict(extra="forbid")

        full: bool = Field(
            default=False, description="whether all sections are shown; --full sets it"
        )
        width: int | None = Field(
            default=None, ge=40, le=400, description="columns; default: the terminal's, at most 140"
        )
        color: bool = Field(default=False, description="whether to write colour codes")
        lowest: int = Field(
            default=3,
            ge=0,
            le=5,
            description="how many of the lowest questions are shown with `full`",
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        options = self._options
        page = document(summary, lowest=options.lowest, drawn=options.full)
        text = render_terminal(
            page, width=options.width, full=options.full, color=options.color, lowest=options.lowest
        )
        return {"report.txt": text}
