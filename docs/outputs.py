"""Runs the commands that a page shows, and writes what they print into it: ``python docs/outputs.py [--check]``.

A page that is run so is a sequence of fenced blocks, worked through in an empty folder:

* a block without a language holds commands; a block ```` ```text output ```` below them holds what they print.
  ``until=WORD`` cuts the output before the first line that begins with that word;
* ``file=NAME`` saves a block as a file; ``replace=NAME`` replaces the assignment of the same name in that file;
* other ``python`` blocks are run; the comment ``<!-- run: COMMAND -->`` runs a command that the page does not show.

What differs from run to run (identifiers of runs, dates, durations) is shown as it was when the page was written.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parent
PAGES = ("tutorial/first-experiment.md",)
_FENCE = re.compile(
    r"^```(?P<language>\w*)(?P<words>[^\n]*)\n(?P<text>.*?)^```$|^<!-- run: (?P<hidden>.*?) -->$",
    re.MULTILINE | re.DOTALL,
)
_HEADING = re.compile(
    r"^shop ([0-9a-f]{8}) ", re.MULTILINE
)  # the first line of a report: the experiment's name, the run's id
_DATED = re.compile(r"shop-(\d{8})-")
# What no two runs share; a duration of another width also moves the columns beside it.
_CHANGING = (
    (re.compile(r"(?:<1|\d+) ms"), "DURATION"),
    (re.compile(r'"(started|seconds|crc)":(?:"[^"]*"|[-\d.e]+)'), r"\1"),
    (re.compile(r"[ ─]+"), " "),
)


class Step(NamedTuple):
    """One block of a page: what to do, and where its text is."""

    kind: str
    words: dict[str, str]
    text: str
    span: tuple[int, int]


def steps(page: str) -> Iterator[Step]:
    """The blocks of a page that say something to do or to print, in order."""
    for match in _FENCE.finditer(page):
        if match["hidden"]:
            yield Step("hidden", {}, match["hidden"], match.span("hidden"))
            continue
        words = dict((*word.partition("=")[::2],) for word in match["words"].split())
        kind = next((word for word in ("file", "replace", "output") if word in words), match["language"] or "commands")
        yield Step(kind, words, match["text"], match.span("text"))


def rendered(page: str, folder: Path) -> str:
    """The page with the outputs of its commands, which are run in `folder`. Raises SystemExit if a command fails."""
    parts, done, printed = [], 0, ""
    date = _DATED.search(page)
    known = [f"shop-{date[1] if date else ''}-{identifier}" for identifier in dict.fromkeys(_HEADING.findall(page))]
    for step in steps(page):
        if step.kind == "file":
            (folder / step.words["file"]).write_text(step.text, encoding="utf-8")
        elif step.kind == "replace":
            replace_assignment(folder / step.words["replace"], step.text)
        elif step.kind in {"commands", "hidden", "python"}:
            printed = execute(step, folder, known)
        elif step.kind == "output":
            shown = as_on_page(printed, folder, known)
            if until := step.words.get("until"):
                shown = re.split(rf"^{until}", shown, maxsplit=1, flags=re.MULTILINE)[0].rstrip() + "\n…\n"
            same = comparable(shown) == comparable(step.text)
            parts += [page[done : step.span[0]], step.text if same else shown]
            done = step.span[1]
    return "".join([*parts, page[done:]])


def replace_assignment(file: Path, text: str) -> None:
    """Puts `NAME = {…}` in place of the assignment that begins with the same line."""
    first = text.partition("\n")[0]
    before = file.read_text(encoding="utf-8")
    after, count = re.subn(rf"^{re.escape(first)}\n.*?^\}}\n", lambda _: text, before, flags=re.MULTILINE | re.DOTALL)
    assert count == 1, f"{file.name} has {count} assignments that begin with {first!r}"
    file.write_text(after, encoding="utf-8")


def execute(step: Step, folder: Path, known: list[str]) -> str:
    """What the commands print on both streams, with the identifiers of the page replaced by those of this folder."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": "100",
        "LANG": "C.UTF-8",
    }
    text = step.text
    for shown, name in zip(known, runs(folder), strict=False):
        text = text.replace(shown, name)
    command = [sys.executable, "-c", text] if step.kind == "python" else ["bash", "-c", text]
    done = subprocess.run(
        command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode and step.kind != "hidden":
        raise SystemExit(f"{text}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def runs(folder: Path) -> list[str]:
    """The names of the runs below the folder, oldest first."""
    found = (folder / "results").glob("*/run.json")
    return [path.parent.name for path in sorted(found, key=lambda path: json.loads(path.read_text())["created"])]


def comparable(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text


def as_on_page(printed: str, folder: Path, known: list[str]) -> str:
    """The output with the identifiers of runs that the page uses."""
    for shown, name in zip(known, runs(folder), strict=False):
        printed = printed.replace(name, shown).replace(name[-8:], shown[-8:])
    return re.sub(rf"{re.escape(str(folder))}/?", "", printed)


def main() -> int:
    """Writes, or only checks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is out of date")
    check = parser.parse_args().check
    stale = 0
    for name in PAGES:
        path = DOCS / name
        page = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            new = rendered(page, Path(folder).resolve())
        if new != page:
            stale += 1
            sys.stdout.write(f"docs/{name}: {'is out of date, run: make docs' if check else 'written'}\n")
            if not check:
                path.write_text(new, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
