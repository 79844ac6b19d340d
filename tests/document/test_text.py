"""Foreign text on a page: whole, visible, and nothing but text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.document.hostile import HOSTILE

from karat.document import assets
from karat.document.assets import policy
from karat.document.markdown import markdown_html
from karat.document.text import foreign, line, tied, visible


class Found(HTMLParser):
    """The elements of a piece of HTML, its attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str | None]] = {}
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof two lines", "plain\ttext\nof two lines"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("\x1b[31mred\x00\x7f", "␛[31mred␀␡"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u200b" * 5000, "⟨5,000 × U+200B⟩"),
        ("\U000e0041\U000e0042", "⟨2 × U+E0041⟩"),
        ("\u2028\u0085", "⟨U+2028⟩⟨U+0085⟩"),
        ("half \ud800 \udfff", "half \ufffd \ufffd"),
        ("e\u0301 " + "Z" + "\u0301" * 14, "e\u0301 Z\u0301\u0301\u0301\u0301⟨10 more marks⟩"),
        ("👩\u200d💻 שלום\u200f", "👩\u200d💻 שלום\u200f"),
    ],
)
def test_what_cannot_be_seen_is_made_visible(text, shown):
    assert visible(text) == shown


@given(st.text(st.characters(exclude_categories=())))
def test_visible_text_has_no_controls_and_can_be_written(text):
    shown = visible(text)
    shown.encode()
    assert not any(ord(char) < 32 and char not in "\t\n" for char in shown)
    assert visible(shown) == shown


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("draw", [foreign, line])
def test_foreign_text_is_text(text, draw):
    found = Found(str(draw(text, 2000)))
    assert found.tags == {"bdi"}
    assert found.attributes == {}
    assert "".join(found.text.split()) == "".join(visible(text).split())


def test_a_text_of_five_megabytes_is_cut_and_says_by_how_much():
    html = str(foreign("x" * 5_000_000, 1000))
    assert len(html) < 1200
    assert "4,999,000 characters left out" in html
    assert "left out" in str(markdown_html("x " * 2_500_000, 1000))
    assert "left out" not in str(foreign("x" * 1000, 1000))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_markdown_can_do_nothing(text):
    found = Found(
        str(markdown_html(f"# {text}\n\n* {text}\n\n> {text}\n\n```\n{text}\n```\n\n| a |\n|---|\n| {text} |"))
    )
    assert not found.tags & {"script", "style", "img", "svg", "iframe", "meta", "base", "link", "form", "input", "h1"}
    assert not [name for name in found.attributes if name.startswith("on")]
    assert set(found.attributes) <= {"class", "dir", "href", "rel", "start", "tabindex", "target"}
    assert not [one for one in found.attributes.get("href", ()) if not one.startswith(("http:", "https:", "mailto:"))]


class Seen(Found):
    """What a browser would see: elements in their order, and texts."""

    def __init__(self, html: str) -> None:
        self.events: list[tuple[str, object]] = []
        super().__init__(html)

    def handle_starttag(self, tag, attrs):
        self.events.append((tag, sorted(attrs)))

    def handle_endtag(self, tag):
        self.events.append(("end", tag))

    def handle_data(self, data):
        if self.events and self.events[-1][0] == "text":
            data = str(self.events.pop()[1]) + data
        self.events.append(("text", data))


# What a sanitiser lets through: whatever karat draws beyond it would be missing from what it returns.
ALLOWED = {
    "tags": {"a", "bdi", "blockquote", "br", "code", "div", "em", "hr", "li", "ol", "p", "pre", "s", "span", "strong",
             "table", "tbody", "td", "th", "thead", "tr", "ul"},
    "attributes": {"a": {"href", "target"}, "ol": {"start"}, "pre": {"tabindex"}, "table": {"tabindex"},
                   "div": {"dir"}},
    "allowed_classes": {"p": {"md-heading"}, "span": {"to", "cut"}, "div": {"md"}},
    "attribute_filter": lambda tag, name, value: None if name == "href" and ":" not in value else value,
    "url_schemes": {"http", "https", "mailto"},
    "link_rel": "noopener noreferrer nofollow",
}  # fmt: skip
MARKS = ["[a](", ")", "![", "](", "<", ">", "\n\n", "\n", "# ", "- ", "3. ", "> ", "```", "    ", "|", "|-:|", "*",
         "~~", "javascript:", "http://", "https://e.org/", "HTTPS:", "mailto:a@b.c", "data:text/html,", "//x", "\\",
         '"', "'", "&quot;", "&#106;", "<script>", "<b onclick=x>", ' "title"', "\x01", "\t", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(MARKS) | st.text(max_size=4), max_size=30).map("".join))
def test_a_sanitiser_finds_nothing_to_take_out_of_drawn_markdown(text):
    html = str(markdown_html(text))
    drawn, clean = (Seen(one).events for one in (html, nh3.clean(html, **ALLOWED)))
    assert drawn == clean


def test_markdown_is_drawn():
    html = str(markdown_html("# A title\n\n**bold** and `code`\n\n1. one\n2. two\n\n| a | b |\n|--:|---|\n| 1 | 2 |"))
    found = Found(html)
    assert {"strong", "code", "ol", "li", "table", "td"} <= found.tags
    assert "style" not in found.attributes, "the policy of the page forbids it"
    assert '<p class="md-heading">A title</p>' in html


def test_a_link_is_followed_by_a_person_only_and_shows_where_it_leads():
    html = str(markdown_html("[our bank](https://evil.example/login) and <https://docs.example/a>"))
    assert 'rel="noopener noreferrer nofollow"' in html
    assert 'target="_blank"' in html
    assert '<span class="to">(evil.example)</span>' in html
    assert "(docs.example)" not in html


@pytest.mark.parametrize(
    "address", ["page.html", "//evil.example", "http:page", "https:/page", "data:x", "ftp://a.example"]
)
def test_a_link_leads_to_another_server_or_nowhere(address):
    assert "href" not in Found(str(markdown_html(f"[a]({address})"))).attributes


def test_a_picture_is_named_and_not_loaded():
    assert "[picture: a chart, https://evil.example/x.png]" in str(
        markdown_html("![a chart](https://evil.example/x.png)")
    )


@pytest.mark.parametrize(
    "text",
    ["> " * 60 + "hidden", "".join("  " * deep + "- item\n" for deep in range(60)) + " " * 120 + "hidden",
     "[1]: https://evil.example/hidden", "[hidden]: <x> 'title'\n\nand more", "<!-- hidden -->",
     "<p hidden>hidden</p>"],
)  # fmt: skip
def test_markdown_hides_nothing(text):
    assert "hidden" in Found(str(markdown_html(text))).text


@pytest.mark.parametrize(
    "text", [">" * 20_000, "[" * 20_000, "![" * 10_000, "*a " * 7_000, "|a" * 9_000 + "\n" + "|-" * 900]
)
def test_markdown_made_to_be_slow_is_drawn(text):
    assert str(markdown_html(text)).endswith("</div>")


def test_what_is_not_known_is_a_dash():
    assert [str(draw(None)) for draw in (foreign, line, markdown_html)] == ["–"] * 3


def test_intervals_and_units_are_not_broken_over_two_lines():
    told = tied("by 0.84 [0.47, 1.21] over 50 questions, p < 0.001, 95 % (n 33 turns)")
    assert told == "by 0.84 [0.47,\xa01.21] over 50 questions, p\xa0<\xa00.001, 95\xa0% (n\xa033\xa0turns)"


def test_a_policy_names_what_may_run_and_nothing_else():
    assert (
        policy()
        == "default-src 'none'; script-src 'none'; style-src 'none'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    found = policy(scripts=["a", "b"], styles=["c"])
    assert found.count("'sha256-") == 3
    assert "unsafe" not in found


def test_every_colour_that_the_style_uses_is_defined_for_light_and_dark() -> None:
    style = assets.css()
    used = set(re.findall(r"var\(--([\w-]+)", style))
    assert used
    local = set(re.findall(r"[;{\s]--([\w-]+):", style.partition("\n")[2]))
    for theme in re.findall(r"\{color-scheme:(?:light|dark);([^}]*)\}", style):
        assert used <= {*re.findall(r"--([\w-]+):", theme), *local}
        assert {"text", "quiet", "category-0", "step-0", "link"} <= {*re.findall(r"--([\w-]+):", theme)}
