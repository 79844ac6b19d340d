"""Foreign Markdown as harmless HTML: no script, no style, no picture, no link that is followed
automatically.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from markupsafe import Markup, escape

from karat import formats
from karat.document.text import LONGEST, cut_note, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.renderer import RendererHTML
    from markdown_it.token import Token

_DEEPEST = 18  # of 20 levels; the parser drops deeper ones
# What a link may lead to, as browsers read it too: no link leads to this page or this server, since
# the author of the text does not know where it is shown.
_LEADS_AWAY = re.compile(r"(https?://|mailto:)", re.IGNORECASE)
_LINK = Markup('<a href="{}" target="_blank" rel="noopener noreferrer nofollow">')


def markdown_html(text: str | None, limit: int = LONGEST) -> Markup:
    """Markdown that an agent wrote, as HTML for a page. None is a dash.

    HTML in it is shown as text. Pictures become their description and address, since loading one
    would reveal that the page was opened. Links show their host, open in a new tab, and send no
    referrer. Headings are paragraphs: the page has its own outline. Text that Markdown would hide
    is shown: link definitions are text, and content that is nested too deeply is quoted.

    >>> markdown_html("**yes**, ![x](https://example.org/x.png)")
    Markup('<div class="md" dir="auto"><p><strong>yes</strong>, [picture: x,
    https://example.org/x.png]</p>\\n</div>')
    """
    if text is None:
        return escape(formats.UNKNOWN)

    parser = _parser()
    plain = visible(text[:limit])
    tokens = parser.parse(plain)
    if max((token.level for token in tokens), default=0) >= _DEEPEST:
        return Markup('<div class="md" dir="auto"><pre tabindex="0">{}</pre>{}</div>').format(
            plain, cut_note(text, limit)
        )

    drawn = parser.renderer.render(tokens, parser.options, {})
    body = Markup(drawn)  # noqa: S704 - the rules of `_parser` escape or drop all that is foreign
    return Markup('<div class="md" dir="auto">{}{}</div>').format(body, cut_note(text, limit))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = (
        MarkdownIt("commonmark", {"html": False})
        .enable(["table", "strikethrough"])
        .disable("reference")
    )
    # Else only the number that a list starts with becomes an attribute.
    for rule, drawn in {
        "image": _image,
        "heading_open": lambda *_: '<p class="md-heading">',
        "heading_close": lambda *_: "</p>\n",
        "link_open": _link,
        "link_close": _end_of_link,
        "fence": _code,
        "code_block": _code,
        "table_open": lambda *_: '<table tabindex="0">\n',
        "th_open": lambda *_: "<th>",
        "td_open": lambda *_: "<td>",
    }.items():
        parser.add_render_rule(rule, drawn)

    return parser


def _image(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    label = f"[picture: {tokens[at].content}, {tokens[at].attrGet('src')}]"
    return str(Markup("{}").format(label))


def _code(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    # Content wider than its container can be scrolled by keyboard.
    return str(Markup('<pre tabindex="0"><code>{}</code></pre>\n').format(tokens[at].content))


def _link(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    address = str(tokens[at].attrGet("href") or "")
    return str(_LINK.format(address)) if _LEADS_AWAY.match(address) else "<a>"


def _end_of_link(_: RendererHTML, tokens: Sequence[Token], at: int, *__: Any) -> str:
    """The host after the link, if the link's text does not show it."""
    opened = next(place for place in range(at, -1, -1) if tokens[place].type == "link_open")
    words = "".join(token.content for token in tokens[opened:at])

    address = str(tokens[opened].attrGet("href") or "")
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""

    return "</a>" + (
        str(Markup(' <span class="to">({})</span>').format(host))
        if host and host not in words
        else ""
    )
