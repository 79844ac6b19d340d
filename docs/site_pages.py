"""What the site adds to the pages of `docs/`, which are written for a code host: `hooks` in mkdocs.yml.

`Comments` is an extension of griffe, which reads docstrings for mkdocstrings.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

import griffe

from karat.installation import plugin_modules
from tables import fenced

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

# On a code host these pages are a table of names with links to the source; the site shows each docstring.
DOCUMENTED = {"reference/python.md": "karat", "reference/statistics.md": "karat.stats"}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?:\.\./)+[^)\s]+)\)")
_FENCE = re.compile(r"^( *```\w+) ([^\n`]+)$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page without links out of `docs/`, with names of files as titles, and with the docstrings of listed names."""
    place = page.file.src_uri
    package = DOCUMENTED.get(place)
    text = _FENCE.sub(_titled, markdown)
    if package:
        homes = _homes(package)
        text = re.sub(
            r"`(\w+)`(?=, |$)", lambda name: f"[{name[0]}](#{homes[name[1]]}.{name[1]})", text, flags=re.MULTILINE
        )
        text += "".join(f"\n\n::: {home}.{name}" for name, home in homes.items())
    depth = place.count("/")
    return _LINK.sub(lambda link: link[1] if link[2].count("../") > depth else link[0], text)


def _homes(package: str) -> dict[str, str]:
    """Public name → the module that the site shows it from."""
    homes = dict.fromkeys(importlib.import_module(package).__all__, package)
    if package == "karat":
        for name, module in plugin_modules("names").items():  # of the packages beside it
            homes[name] = getattr(importlib.import_module(module), name).__module__
    return homes


def _titled(fence: re.Match[str]) -> str:
    """The first line of a fenced block: `file=NAME` becomes its title, and what only tests read is left out."""
    name = re.search(r"\bfile=(\S+)", fence[2])
    return f'{fence[1]} title="{name[1]}"' if name else fence[1]


class Comments(griffe.Extension):
    """The comment behind an attribute becomes its docstring: it gives the unit and the meaning of None."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: object) -> None:
        line = "" if attr.docstring or attr.lineno is None else " ".join(attr.lines)
        note = re.search(r"  # (?!noqa|type:)(.+)$", line)
        if note:
            attr.docstring = griffe.Docstring(note[1], parent=attr)

    def on_instance(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
