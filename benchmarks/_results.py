"""Collects the results of the benchmarks on one page.

    python benchmarks/NAME.py --json benchmarks/measured/NAME.json

`make bench` does this for every benchmark. Each writes its sections there with `write`, which then writes
`benchmarks/RESULTS.md` from every file in `benchmarks/measured/`, sorted by name. After a merge, run this program alone
to do the same: `python benchmarks/_results.py`. A file holds one section, or a list of them:

    {
      "title": "Speed beside peers",          its heading
      "about": "What was measured, and how.", optional; Markdown
      "columns": ["", "karat", "inspect-ai"],
      "rows": [["10,000 trials", 2.1, null]], texts stay as they are; numbers are rounded, null is a dash
      "verdicts": ["≤ 200 MB: MISSED"],       optional; limits, and whether they were met
      "notes": ["– : it keeps no log"],       optional
      "versions": {"inspect-ai": "0.3.1"},    optional; of what was measured besides karat
      "date", "machine", "karat", "command":  filled in by `write`
    }
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

__all__ = ["add_option", "machine", "markdown", "page", "parser", "write"]

HERE = Path(__file__).resolve().parent
MEASURED, PAGE = HERE / "measured", HERE / "RESULTS.md"
Section = Mapping[str, Any]


def add_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--json FILE`, which a benchmark passes to `write`."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too, for _results.py")


def parser(about: str | None) -> argparse.ArgumentParser:
    """A benchmark's command line, with `--json`. `about`: its docstring, whose first line is shown."""
    options = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    add_option(options)
    return options


def write(path: Path | None, *sections: Section) -> None:
    """Writes sections to a file, with date, machine, karat's version and the command, and the page. None: nothing."""
    if path is None:
        return
    arguments = [Path(word).name if word.startswith("/") else word for word in sys.argv[1:]]
    origin = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "karat": importlib.metadata.version("karat-eval"),
        "command": " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *arguments]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps([{**section, **origin} for section in sections], indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    if path.resolve().parent == MEASURED:
        PAGE.write_text(page(), encoding="utf-8")


def machine() -> str:
    """Processor, cores, memory, system and Python of this machine."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    parts = [
        names[0] if names else platform.machine(),
        f"{os.cpu_count()} cores",
        f"{memory:.0f} GB",
        f"{platform.system()} {platform.release().partition('-')[0]}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(parts)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def page() -> str:
    """The whole page. Raises KeyError if a section has no title, columns or rows."""
    parts = ["# What the benchmarks measured\n", "Written by `python benchmarks/_results.py`; do not edit.\n"]
    for file in sorted(MEASURED.glob("*.json")):
        sections = json.loads(file.read_text(encoding="utf-8"))
        parts += [markdown(section) for section in (sections if isinstance(sections, list) else [sections])]
    return "\n".join(parts)


def markdown(section: Section) -> str:
    """One section of the page."""
    facts = [section.get("date", "no date"), section.get("machine", "unknown machine")]
    facts += [f"karat {section['karat']}"] if "karat" in section else []
    facts += [f"{name} {version}" for name, version in section.get("versions", {}).items()]
    lines = [f"## {section['title']}", ""]
    lines += [section["about"], ""] if section.get("about") else []
    lines += [_row(section["columns"]), "|---" + "|--:" * (len(section["columns"]) - 1) + "|"]
    lines += map(_row, section["rows"])
    for key in ("verdicts", "notes"):
        lines += ["", *(f"* {line}" for line in section[key])] if section.get(key) else []
    lines += ["", f"{', '.join(facts)}." + (f" `{section['command']}`" if "command" in section else "")]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str | float | None]) -> str:
    return f"| {' | '.join(_cell(value).replace('|', chr(92) + '|') for value in cells)} |"


def _cell(value: str | float | None) -> str:
    """
    >>> [_cell(value) for value in ("text", None, 12345, 12345.6, 12.3456, 0.0123456, 0.0)]
    ['text', '–', '12,345', '12,346', '12.3', '0.0123', '0']
    """
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if isinstance(value, int) or abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    """The command line."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
