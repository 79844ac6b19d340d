"""Access to templates: everything is escaped, and an undefined name is an error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from karat import formats
from karat.blocks import kind_of, legend_of, place, written
from karat.document import assets
from karat.document.markdown import markdown_html
from karat.document.render.svg import SHAPES, render_svg
from karat.document.text import foreign, line, short, tied, visible

if TYPE_CHECKING:
    from jinja2 import Environment

_OWN = Path(__file__).parent / "templates"


def environment(**folders: Path) -> Environment:
    """Templates of this package as `pages/…`, and those of other folders by their own prefix.

    Filters: `foreign`, `line`, `short`, `markdown` and `visible` for foreign text (`visible` inside
    attributes), `drawing` for charts, and those of `karat.formats`.
    """
    import jinja2

    loaders = {
        name: jinja2.FileSystemLoader(path) for name, path in {"pages": _OWN, **folders}.items()
    }
    templates = jinja2.Environment(
        loader=jinja2.PrefixLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {
        "foreign": foreign,
        "line": line,
        "short": short,
        "markdown": markdown_html,
        "tied": tied,
        "visible": visible,
        "drawing": lambda chart: Markup(render_svg(chart)),  # noqa: S704 - it escapes every text
        "kind": kind_of,
        "legend": lambda table: legend_of(table, table.columns),
        "place": place,
        "written": written,
        **{
            name: getattr(formats, name)
            for name in (
                "count",
                "dollars",
                "duration",
                "level",
                "number",
                "p_value",
                "plural",
                "share",
                "signed",
            )
        },
    }
    templates.globals["source"] = assets.source
    templates.globals["shapes"] = SHAPES
    return templates
