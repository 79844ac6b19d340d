"""`--to html`: one self-contained page for people."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from pydantic import BaseModel, ConfigDict, Field

from karat import __version__, formats
from karat.analysis import Summary
from karat.document import assets
from karat.document.html_texts import experiment_file, read_texts
from karat.document.run import document, shortened
from karat.document.templating import environment
from karat.journal import RunFolder

__all__ = ["LARGEST", "Html"]

LARGEST = 2_000_000
"""Bytes of a page: small enough for an e-mail. A larger one is rendered again with less on it."""


class _Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much goes on a page."""

    charts: int
    rows: int  # of one table
    answer: int  # characters of one answer
    file: int  # characters of the experiment file


_LIMITS = (
    _Limits(charts=40, rows=1000, answer=8_000, file=64_000),
    _Limits(charts=20, rows=300, answer=1_000, file=16_000),
    _Limits(charts=8, rows=50, answer=200, file=4_000),
)


class Html:
    """One page for people: opens from disk, loads nothing, works in light and dark, on a phone and
    on paper.

    It has the sections of the report and everything needed to repeat the run. Nothing needs a
    script. A page stays below 2 MB, and says what was left out for that.
    """

    shows_corrected = True

    class Options(BaseModel):
        """What is on the page."""

        model_config = ConfigDict(extra="forbid")

        charts: bool = Field(
            default=True,
            description="whether charts are drawn; if not, only their tables are shown",
        )
        texts: bool = Field(
            default=True,
            description=(
                "whether golden answers, answers, claims and the experiment file are quoted"
            ),
        )
        lowest: int = Field(
            default=5, ge=0, le=5, description="how many of the lowest questions are shown"
        )

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        from markupsafe import Markup

        if self._options.texts:
            texts, without = read_texts(run, summary)
            file = experiment_file(run)
        else:
            texts, without = (None, [])
            file = None

        style, script = assets.css(), assets.script()
        template = environment().get_template("pages/report.html.j2")
        page = ""
        for limits in _LIMITS:
            if file is None:
                files = {}
            else:
                files = {"The experiment file, as it was run": file[: limits.file]}

            report = document(
                summary,
                texts=texts,
                files=files,
                lowest=self._options.lowest,
                longest=limits.answer,
            )
            most = limits.charts if self._options.charts else 0
            sections, undrawn = shortened(report.sections, rows=limits.rows, charts=most)
            left_out = list(without)
            if undrawn:
                left_out.append(
                    f"{formats.plural(undrawn, 'chart')}, whose numbers are in tables: see "
                    f"`karat report --charts`."
                )

            if texts is not None and limits is not _LIMITS[0]:
                shown = formats.plural(limits.answer, "character")
                left_out.append(
                    f"Answers after their first {shown}, to keep this page below 2 MB: see "
                    f"the journal."
                )

            if file is not None and len(file) > limits.file:
                shown = formats.plural(limits.file, "character")
                left_out.append(f"The experiment file after its first {shown}: see the run folder.")

            text = template.render(
                policy=assets.policy(scripts=[script], styles=[style]),
                title=f"{summary.name[:100]} {summary.run}",
                icon=assets.icon(),
                css=Markup(style),  # noqa: S704 - our own file, which holds no foreign text
                script=Markup(script),  # noqa: S704 - as above
                eyebrow=(
                    f"{summary.name} · run {summary.run} · {summary.created[:10]} · "
                    f"{summary.status}"
                ),
                verdicts=report.verdicts,
                facts=report.facts,
                warnings=report.warnings,
                sections=sections,
                left_out=left_out,
                run=summary.run,
                version=__version__,
            )
            # Halves of surrogate pairs: UTF-8 has none, and readers show U+FFFD for them.
            page = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            if len(page.encode()) <= LARGEST:
                break

        return {"report.html": page}
