"""An MCP server that searches a folder of Markdown documents. Run: ``python docs_server.py FOLDER``, or set INDEX.

Documents are split at their headings into sections, which SQLite's full-text index ranks
by BM25: a match in a heading counts more than one in the text. The index lives in memory
and is built at the start.
"""

from __future__ import annotations

import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

MOST_RESULTS = 20
MOST_WORDS = 100
LONGEST_SECTION = 4_000
"""Characters. A longer section is divided between paragraphs, so that a result stays readable."""

_SAY_NOTHING = """
    a about after all also am an and any are as at be because been before being both but by can could did do does
    doing done down each for from get gets give given go goes had has have having he her here his how i if in into is
    it its just let like make may me might more most much must my no nor not of off on one only or other our out own
    per she should so some such than that the their them then there these they this those to too under until up us use
    used using very want was way we were what when where which while who whose why will with would you your
"""
STOP_WORDS = frozenset(_SAY_NOTHING.split())


class Section(NamedTuple):
    """What stands under one heading."""

    file: str  # relative to the folder, with forward slashes
    title: str  # the headings above it, outermost first: "Guide › Resume"
    text: str


class Library:
    """A folder of Markdown documents and its index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        if not self.folder.is_dir():
            raise SystemExit(f"docs_server: '{folder}' is not a folder; give one with Markdown documents, or set INDEX")
        self._index = sqlite3.connect(":memory:")
        self._index.execute(
            "CREATE VIRTUAL TABLE sections USING fts5(title, text, file UNINDEXED, tokenize='porter unicode61')"
        )
        with self._index:
            self._index.executemany(
                "INSERT INTO sections (file, title, text) VALUES (?, ?, ?)",
                (
                    section
                    for path in self.documents()
                    for section in sections(path.read_text("utf-8", "replace"), self.name(path))
                ),
            )

    def close(self) -> None:
        """Gives up the index."""
        self._index.close()

    def documents(self) -> list[Path]:
        """Every Markdown file in the folder, hidden ones left out, in a fixed order."""
        found = (
            path for path in self.folder.rglob("*.md") if path.is_file() and path.resolve().is_relative_to(self.folder)
        )
        return sorted(
            path for path in found if not any(part.startswith(".") for part in path.relative_to(self.folder).parts)
        )

    def name(self, path: Path) -> str:
        """How a document is called in results, and in `read_doc`."""
        return path.relative_to(self.folder).as_posix()

    def search(self, query: str, limit: int) -> list[Section]:
        """The best sections, best first. No query is an error: what has no searchable word finds nothing."""
        wanted = match_expression(query)
        if not wanted:
            return []
        rows = self._index.execute(
            "SELECT file, title, text FROM sections WHERE sections MATCH ?"
            " ORDER BY bm25(sections, 4.0, 1.0), rowid LIMIT ?",
            (wanted, max(1, min(limit, MOST_RESULTS))),
        )
        return [Section(*row) for row in rows]

    def read(self, path: str) -> str:
        """One document. Raises ToolError for what is not a document of this folder."""
        # Looked up by name, so that no text can lead out of the folder.
        document = {self.name(document): document for document in self.documents()}.get(path.strip().removeprefix("./"))
        if document is None:
            raise ToolError(f"no document is called '{path}'; search_docs names the files that there are")
        return document.read_text("utf-8", "replace")


def match_expression(query: str) -> str:
    """Any text as an FTS5 expression: its words, quoted, joined by OR; words that say nothing left out.

    >>> match_expression('How do I resume a "run" -- NOT (crash*)?')
    '"resume" OR "run" OR "crash"'
    """
    words = dict.fromkeys(re.findall(r"\w+", query.lower()))
    telling = [word for word in words if word not in STOP_WORDS] or list(words)
    return " OR ".join(f'"{word}"' for word in telling[:MOST_WORDS])


def sections(document: str, file: str) -> Iterator[Section]:
    """The document's sections, in order; what is fenced as code contains no heading."""
    headings: list[str] = []
    lines: list[str] = []
    fence = ""
    for line in document.removeprefix("\ufeff").splitlines():
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
        heading = None if fence else re.match(r"(#{1,6})\s+(.+?)\s*#*$", line)
        if heading is None:
            lines.append(line)
            continue
        yield from _pieces(file, headings, lines)
        lines = []
        headings = [*headings[: len(heading[1]) - 1], heading[2]]
    yield from _pieces(file, headings, lines)


def _pieces(file: str, headings: list[str], lines: list[str]) -> Iterator[Section]:
    title = " › ".join(headings) or file
    piece = ""
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        if piece and len(piece) + len(paragraph) > LONGEST_SECTION:
            yield Section(file, title, piece)
            piece = ""
        piece = f"{piece}\n\n{paragraph}" if piece else paragraph
    if piece.strip():
        yield Section(file, title, piece)


def serve(library: Library) -> MCPServer[object]:
    """The server, with its two tools."""
    server: MCPServer[object] = MCPServer("docs", log_level="WARNING")

    async def search_docs(query: str, limit: int = 3) -> str:
        """Searches the documentation and returns the sections that match best, best first, each with its file."""
        found = library.search(query, limit)
        return (
            "\n\n---\n\n".join(f"# {section.title}\n\n{section.text}\n\n(from {section.file})" for section in found)
            or "nothing found"
        )

    async def read_doc(path: str) -> str:
        """Returns one whole document, by the file name that search_docs gives."""
        return library.read(path)

    server.add_tool(search_docs, structured_output=False)
    server.add_tool(read_doc, structured_output=False)
    return server


if __name__ == "__main__":
    place = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("INDEX")
    if place is None:
        raise SystemExit("docs_server: give a folder of Markdown documents, or set INDEX")
    serve(Library(Path(place))).run("stdio")
