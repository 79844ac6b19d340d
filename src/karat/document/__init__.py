"""What pages are made of, for the report and for the viewer: a run as blocks, and blocks as HTML.

`document` turns a summary into sections of blocks (`blocks.py`: tables, charts, facts, foreign texts), which
renderers draw; `environment` is the only way to a template. Everything that an agent, a tool, a
dataset or a run folder said is hostile: it reaches a page through `foreign` or `markdown_html`,
and through nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from karat.document.assets import bundle, css, icon, policy, script, source
    from karat.document.figures import chart_look, embedded
    from karat.document.markdown import markdown_html
    from karat.document.run import document
    from karat.document.templating import environment
    from karat.document.text import foreign, visible

__all__ = [
    "bundle",
    "chart_look",
    "css",
    "document",
    "embedded",
    "environment",
    "foreign",
    "icon",
    "markdown_html",
    "policy",
    "script",
    "source",
    "visible",
]

_HOME = {
    "bundle": "assets",
    "chart_look": "figures",
    "css": "assets",
    "document": "run",
    "embedded": "figures",
    "environment": "templating",
    "foreign": "text",
    "icon": "assets",
    "markdown_html": "markdown",
    "policy": "assets",
    "script": "assets",
    "source": "assets",
    "visible": "text",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{home}"), name)
