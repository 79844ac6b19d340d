"""Style and script of a page, and their Content-Security-Policy."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from karat.document.ink import DARK, LIGHT, Ink

_FOLDER = Path(__file__).parent / "templates"

# In addition to the colours of charts: text has a contrast of 4.5 to 1 or more on white and on the
# dark background.
_LIGHT = {
    "faint": "#f6f7f8",
    "line": "#d9dce1",
    "link": "#005a8f",
    "good": "#00684a",
    "bad": "#a83200",
    "focus": "#0072b2",
    "warn-back": "#fff6e0",
    "warn-line": "#c98a00",
    "card": "#ffffff",
    "shadow": "#1b1b1b14",
}
_DARK = {
    "faint": "#1e2128",
    "line": "#3a3f49",
    "link": "#7cc4f0",
    "good": "#3fcfa5",
    "bad": "#ff9d66",
    "focus": "#56b4e9",
    "warn-back": "#2c2616",
    "warn-line": "#d09a2a",
    "card": "#1b1e24",
    "shadow": "#00000066",
}


@lru_cache(maxsize=1)
def css() -> str:
    """The style of every page: colours, light and dark, then the rest."""
    light = _variables(LIGHT, _LIGHT)
    dark = _variables(DARK, _DARK)
    colours = (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media screen and "
        f"(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n"
    )
    return colours + (_FOLDER / "page.css").read_text(encoding="utf-8")


def _variables(ink: Ink, more: Mapping[str, str]) -> str:
    named: dict[str, str] = {}
    for name, value in msgspec.structs.asdict(ink).items():
        if isinstance(value, str):
            named[name] = value
        else:
            named |= {
                f"{'category' if name == 'categories' else 'step'}-{at}": color
                for at, color in enumerate(value)
            }

    return "".join(f"--{name}:{value};" for name, value in {**named, **more}.items())


@lru_cache(maxsize=1)
def script() -> str:
    """The script of every page: the switch between light and dark."""
    return (_FOLDER / "page.js").read_text(encoding="utf-8")


def icon() -> str:
    """The favicon, as a data URL that makes no request."""
    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#0072b2" d="M8 '
        '1l6 5-6 9-6-9z"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.encode()).decode()}"


def policy(*, scripts: Iterable[str] = (), styles: Iterable[str] = ()) -> str:
    """A Content-Security-Policy that allows exactly these scripts and styles, and no requests.

    A browser compares the text between the tags, byte for byte: pass exactly that.
    """
    allowed = {"script-src": scripts, "style-src": styles}
    lists = [f"{name} {' '.join(map(source, texts)) or _NONE}" for name, texts in allowed.items()]
    return "; ".join(
        ["default-src 'none'", *lists, "img-src data:", "base-uri 'none'", "form-action 'none'"]
    )


_NONE = "'none'"


def source(text: str) -> str:
    """The source of a script or style in a policy.

    >>> source("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
