"""`--to html`: one page that holds everything it needs, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from karat import __version__, formats
from karat.analysis import Summary
from karat.installation import install_extra_command
from karat.journal import RunFolder

if TYPE_CHECKING:
    from karat.document.charts import Chart
    from karat.document.failing import Texts

__all__ = ["LARGEST", "Html"]

LARGEST = 2_000_000
"""Bytes of a page: what one sends by mail without a thought. A larger one is made again with less on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Room:
    """How much goes on a page."""

    charts: int
    rows: int  # of one table, and of one chart's
    answer: int  # characters of one answer
    file: int  # characters of the experiment file


_ROOMS = (
    _Room(charts=40, rows=1000, answer=8_000, file=64_000),
    _Room(charts=20, rows=300, answer=1_000, file=16_000),
    _Room(charts=8, rows=50, answer=200, file=4_000),
)


class Html:
    """One page for people: opens from disk, asks no server, light and dark, on a phone and on paper.

    The answer with its uncertainty, conditions × metrics, differences, where the variation comes
    from, where it fails, cost and time, and everything needed to repeat it. Its charts need the extra `plots`
    while the page is made; without it there are the tables. Without script every number is there as well.
    A page stays below 2 MB; what was left out for that, it says.
    """

    class Options(BaseModel):
        """What is on the page."""

        model_config = ConfigDict(extra="forbid")

        charts: bool = Field(
            default=True, description="whether charts are drawn; without them a page is 0.9 MB smaller"
        )
        texts: bool = Field(
            default=True, description="whether golden answers, answers, claims and the experiment file are quoted"
        )
        lowest: int = Field(default=5, ge=0, le=5, description="how many of the lowest questions are shown")

    def __init__(self, options: Options | None = None) -> None:
        self._options = options or self.Options()

    def render(self, summary: Summary, run: RunFolder) -> Mapping[str, str]:
        from karat.document.charts import charts
        from karat.document.html_texts import experiment_file, read_texts

        texts, told = read_texts(run, summary) if self._options.texts else (None, [])
        file = experiment_file(run) if self._options.texts else None
        made = _Made(summary=summary, drawn=charts(summary), texts=texts, file=file, told=tuple(told))
        page = ""
        for room in _ROOMS:
            page = self._page(made, room)
            if len(page.encode()) <= LARGEST:
                break
        return {"report.html": page}

    def _page(self, made: _Made, room: _Room) -> str:
        from markupsafe import Markup

        from karat import document as pages
        from karat.document.run import shortened

        summary, shown = made.summary, made.shown(room)
        bundle = pages.bundle() if self._options.charts and shown else None
        style, script = pages.css(), pages.script()
        made_of = pages.document(
            summary, texts=made.texts, files=made.files(room), lowest=self._options.lowest, longest=room.answer,
            drawn=shown,
        )  # fmt: skip
        content: dict[str, Any] = {
            "policy": pages.policy(scripts=[script, *([bundle] if bundle is not None else [])], styles=[style]),
            "title": f"{summary.name[:100]} {summary.run}",
            "icon": pages.icon(),
            "css": Markup(style),  # noqa: S704 - our own file, which holds no foreign text
            "script": Markup(script),  # noqa: S704 - as above
            "bundle": None if bundle is None else Markup(bundle),  # noqa: S704 - as above
            "look": pages.chart_look(),
            "eyebrow": f"{summary.name} · run {summary.run} · {summary.created[:10]} · {summary.status}",
            "verdicts": made_of.verdicts,
            "facts": made_of.facts,
            "warnings": made_of.warnings,
            "sections": [shortened(section, room.rows) for section in made_of.sections],
            "left_out": [*made.told, *made.left_out(room), *self._undrawn(made, bundle)],
            "run": summary.run,
            "version": __version__,
        }  # fmt: skip
        template = pages.environment().get_template("pages/report.html.j2")
        # Halves of surrogate pairs: UTF-8 has none, and readers show U+FFFD for them.
        return template.render(content).encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _undrawn(self, made: _Made, bundle: str | None) -> Iterator[str]:
        if made.drawn and bundle is None:
            reason = (
                f"to draw them, run {install_extra_command('plots')} and write the page again"
                if self._options.charts
                else "as requested"
            )
            yield f"Charts are not drawn ({reason}); their numbers are in the tables."


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """What a page is made of."""

    summary: Summary
    drawn: tuple[Chart, ...]
    texts: Texts | None
    file: str | None  # the experiment file
    told: tuple[str, ...]

    def shown(self, room: _Room) -> tuple[Chart, ...]:
        """The charts that fit: few, and none of too many lines."""
        return tuple(one for one in self.drawn if len(one.rows) <= room.rows)[: room.charts]

    def files(self, room: _Room) -> dict[str, str]:
        return {"The experiment file, as it was run": self.file[: room.file]} if self.file is not None else {}

    def left_out(self, room: _Room) -> Iterator[str]:
        """What this room had no place for, in words."""
        further = len(self.drawn) - len(self.shown(room))
        if further:
            yield f"{formats.plural(further, 'further chart')}: `karat plot` draws them."
        if self.texts is not None and room is not _ROOMS[0]:
            shown = formats.plural(room.answer, "character")
            yield f"Answers after their first {shown}, so that this page stays below 2 MB: they stand in the journal."
        if self.file is not None and len(self.file) > room.file:
            shown = formats.plural(room.file, "character")
            yield f"The experiment file after its first {shown}: it stands in the run folder."
