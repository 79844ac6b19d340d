"""The picture of the README, from a run of the example: ``python docs/images/demo.py RUN``.

Run the example from the top of the checkout first: ``karat run examples/support-kb/experiment.yaml``.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

import karat
from karat.exports.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
OWN_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"


def report(run: karat.RunFolder) -> str:
    """The first screen of the report, with paths as they are in the checkout."""
    terminal = Terminal(Terminal.Options(color=True, width=COLUMNS))
    text = "".join(terminal.render(karat.summarize(run), run).values())
    return text.replace(f"{ROOT}/", "")


def picture(text: str) -> str:
    """The text as SVG, without the font that rich would fetch from a server."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(text.rstrip()))
    svg = console.export_svg(title="karat run examples/support-kb/experiment.yaml", unique_id="demo")
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: Fira Code[^;]*", f"font-family: {OWN_FONTS}", svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)


if __name__ == "__main__":
    text = report(karat.open(sys.argv[1]))
    (ROOT / "docs" / "images" / "demo.svg").write_text(picture(text), encoding="utf-8")
