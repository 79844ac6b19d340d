"""Writes charts as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from karat import api
from karat.analysis.cached import summarize_cached
from karat.analysis.verdicts import REHEARSED
from karat.blocks import Chart
from karat.cli.ending import Exit
from karat.cli.options import Compared
from karat.cli.output import Output
from karat.cli.printed import aside
from karat.document.charts import charts, png, svg
from karat.errors import BadOption
from karat.formats import OUTPUT_FORMAT

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


def draw_run(
    run: str,
    shown: Compared,
    out: Path | None,
    forms: Sequence[str],
    *,
    dark: bool,
    results: Path,
    output: Output,
) -> Exit:
    """Writes the charts of a run, by default into a folder called after it. Raises as `draw`, and
    BadRun.
    """
    opened = api.open(run, results=results)
    with aside():
        figures = charts(summarize_cached(opened, **shown.chosen()))
    folder = out or Path(f"{opened.path.resolve().name}-charts")
    drawn = draw(figures, folder, forms, dark=dark, output=output)
    output.result(str(drawn), drawn)
    if not figures:
        output.say("nothing was scored, so there are no charts")
    if opened.info.rehearsed:
        output.say(f"warning: {REHEARSED}")
    return Exit.DONE


def draw(
    figures: Iterable[Chart], folder: Path, forms: Sequence[str], *, dark: bool, output: Output
) -> Plotted:
    """Writes each chart in each format, into a folder that is created if missing.

    Raises MissingExtra, before it writes anything, if drawing needs an extra; BadOption if it
    cannot write.
    """
    wanted = [form for form in FORMATS if form in forms] or ["svg"]
    drawings = []
    for chart in figures:
        files = {}
        for form in wanted:
            if form == "png":
                files[f"{chart.name}.{form}"] = png(chart, dark=dark)
            elif form == "svg":
                files[f"{chart.name}.{form}"] = svg(chart, dark=dark).encode()
            else:
                numbers = {
                    "title": chart.title,
                    "description": chart.description,
                    "columns": chart.columns,
                    "rows": chart.rows,
                }
                files[f"{chart.name}.{form}"] = (
                    msgspec.json.format(msgspec.json.encode(numbers), indent=1) + b"\n"
                )

        paths = []
        for name, content in files.items():
            path = folder / name
            paths.append(str(path))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError as error:
                raise BadOption(
                    "--out", f"cannot write {error.filename or path}: {error.strerror}"
                ) from error

        output.say(f"{chart.name}: {chart.title}")
        drawings.append(
            Drawn(
                name=chart.name,
                title=chart.title,
                paths=tuple(paths),
                columns=chart.columns,
                rows=chart.rows,
            )
        )

    return Plotted(charts=tuple(drawings))
