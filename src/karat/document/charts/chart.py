"""One chart: a finding, its picture as Vega-Lite, and the same numbers as a table."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from karat import formats
from karat.blocks import apart, labels, slug

__all__ = ["Chart", "apart", "known", "labels", "made", "slug"]

TITLE = 76  # columns of a line of a title
LONGEST = 380  # columns of a whole title: five lines, however long the names in it are


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """A picture that says what it shows.

    `spec` is Vega-Lite made of plain JSON values: its data are inlined, it loads nothing, and it
    holds no colours and no fonts; `karat.document.charts.themed` adds those. What an agent or a file
    said stands in data and titles only, never in a field name or an expression.
    """

    name: str  # of its files: lower case, unique within a run
    title: str  # the finding, with n and interval
    description: str  # what is drawn, for those who do not see it
    spec: dict[str, Any]
    columns: tuple[str, ...]  # headings of the table, with units
    rows: tuple[tuple[str, ...], ...]  # every number that is drawn, written for people

    def to_altair(self, *, dark: bool = False) -> Any:
        """The chart for a notebook. Raises MissingExtra without altair."""
        from karat.document.charts.images import altair_chart

        return altair_chart(self, dark=dark)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """For notebooks: Vega-Lite where they draw it, else the numbers as a table."""
        from karat.document.charts.images import bundle

        return bundle(self)


def made(
    name: str,
    title: str,
    description: str,
    body: Mapping[str, Any],
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
) -> Chart:
    """A chart whose spec says its title and description itself. `body`: data, marks, encodings, size."""
    said = formats.excerpt(title, LONGEST)
    spec = {
        "title": {"text": textwrap.wrap(said.replace(" %", "\u00a0%"), TITLE) or [said]},
        "description": formats.clean(f"{said}. {description}"),
        **body,
    }
    cells = tuple(tuple(formats.clean(cell) for cell in row) for row in rows)
    return Chart(
        name=name, title=said, description=formats.clean(description), spec=known(spec), columns=tuple(columns),
        rows=cells,
    )  # fmt: skip


def known(value: Any) -> Any:
    """The same as values that JSON has: numbers that are not known are null."""
    if isinstance(value, Mapping):
        return {key: known(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
