"""Writes charts as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from karat.cli.output import Output
from karat.errors import BadOption
from karat.formats import OUTPUT_FORMAT

if TYPE_CHECKING:
    from karat.blocks import Chart

FORMATS = ("png", "svg", "json")


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """One chart, and where it is."""

    name: str
    title: str
    paths: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # the same numbers as a table


class Plotted(msgspec.Struct, frozen=True, kw_only=True):
    """`karat report --charts --json`."""

    format: int = OUTPUT_FORMAT
    charts: tuple[Drawn, ...]

    def __str__(self) -> str:
        return "\n".join(path for chart in self.charts for path in chart.paths)


def draw(
    charts: Iterable[Chart], folder: Path, forms: Sequence[str], *, dark: bool, output: Output
) -> Plotted:
    """Writes each chart in each format, into a folder that is created if missing.

    Raises MissingExtra, before it writes anything, if drawing needs an extra; BadOption if it
    cannot write.
    """
    wanted = [form for form in FORMATS if form in forms] or ["svg"]
    drawings = []
    for chart in charts:
        files = {f"{chart.name}.{form}": _content(chart, form, dark=dark) for form in wanted}
        paths = tuple(str(_written(folder / name, content)) for name, content in files.items())
        output.say(f"{chart.name}: {chart.title}")
        drawings.append(
            Drawn(
                name=chart.name,
                title=chart.title,
                paths=paths,
                columns=chart.columns,
                rows=chart.rows,
            )
        )

    return Plotted(charts=tuple(drawings))


def _content(chart: Chart, form: str, *, dark: bool) -> bytes:
    from karat.document.charts import png, svg

    if form == "png":
        return png(chart, dark=dark)
    if form == "svg":
        return svg(chart, dark=dark).encode()
    numbers = {
        "title": chart.title,
        "description": chart.description,
        "columns": chart.columns,
        "rows": chart.rows,
    }
    return msgspec.json.format(msgspec.json.encode(numbers), indent=1) + b"\n"


def _written(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise BadOption(
            "--out", f"cannot write {error.filename or path}: {error.strerror}"
        ) from error

    return path
