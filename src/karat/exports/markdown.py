"""`--to markdown`: the result for a pull request."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from karat.analysis import Summary
from karat.document.render.markdown import render_markdown
from karat.document.run import document
from karat.journal import RunFolder

__all__ = ["Markdown"]


class Markdown:
    """The result as Markdown, for a pull request: verdicts and means on one screen, everything else
    folded.

    Foreign text stays text: an answer cannot create a heading, link or mention.
    """

    shows_corrected = True

    class Options(BaseModel):
        """What is shown."""

        model_config = ConfigDict(extra="forbid")

        lowest: int = Field(
            default=3, ge=0, le=5, description="how many of the lowest questions are shown"
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        return {"report.md": render_markdown(document(summary, lowest=self._options.lowest))}
