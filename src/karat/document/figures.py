"""Charts on a page: what the script reads."""

from __future__ import annotations

import json
import re
from typing import Any

from markupsafe import Markup

from karat.document.assets import INK
from karat.document.charts.theme import config

__all__ = ["chart_look", "embedded"]

PAGE_FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
_BREAKING = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_SURROGATES = re.compile("[\ud800-\udfff]")


def embedded(value: Any) -> Markup:
    """JSON for a script element: no text in it can end the element or begin a comment.

    >>> embedded({"said": "</script><!--"})
    Markup('{"said":"\\\\u003c/script\\\\u003e\\\\u003c!--"}')
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = _SURROGATES.sub("\ufffd", text)
    for char, escaped in _BREAKING.items():
        text = text.replace(char, escaped)
    return Markup(text)  # noqa: S704 - JSON in which nothing is left that HTML would read


def chart_look() -> dict[str, Any]:
    """How charts look: on the page, and in a file that is saved from it."""
    page = {**config(ink=INK), "padding": 4, "font": PAGE_FONT, "aria": False}
    for part in ("axis", "legend", "header"):
        page[part] = {**page[part], "labelFontSize": 12}
    # Letters of a page are a little wider than those that were measured.
    page["axis"] |= {"titlePadding": 10}
    page["legend"] |= {"labelLimit": 220}
    return {"page": page, "file": config()}
