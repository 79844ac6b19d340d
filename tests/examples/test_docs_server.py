"""The example's server: sections, ranking, and questions of any shape."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.mcp import Toolbox
from karat.records import AgentSpec, Condition, McpServer
from karat.redact import Redactor

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "support-kb" / "docs_server.py"


@pytest.fixture(scope="module")
def docs_server() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_server", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "guide").mkdir()
    (folder / "guide" / "resume.md").write_text(
        "\ufeff# Guide\n\nGeneral words about runs.\n\n## Resume a run\n\nType `karat run FILE --resume RUN`.\n\n"
        "```sh\n# not a heading: a comment\nkarat run\n```\n\n"
        "### When it is refused\n\nA changed prompt is refused.\n\n"
        "## Budget\n\nSet `max_failures`, or a budget in dollars.\n"
    )
    (folder / "index.md").write_text("No heading here: résumé of naïve cafés, 漢字, and runs.\n")
    (folder / "empty.md").write_text("")
    paragraphs = [f"Paragraph {number} " + "word " * 150 for number in range(20)]
    (folder / "long.md").write_text("\n\n".join(["# Long", *paragraphs]))
    (folder / "odd.md").write_bytes(b"# Caf\xe9\n\nlatin-1 bytes\n")
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "secret.md").write_text("# Secret\n\nhidden words")
    (folder / "notes.txt").write_text("not Markdown")
    (folder.parent / "outside.md").write_text("# Outside\n\noutside words")
    (folder / "link.md").symlink_to(folder.parent / "outside.md")
    return folder


@pytest.fixture(scope="module")
def library(docs_server, folder):
    with closing(docs_server.Library(folder)) as library:
        yield library


def test_documents_are_split_at_their_headings(docs_server, folder):
    text = (folder / "guide" / "resume.md").read_text("utf-8")
    assert [(section.title, section.text.splitlines()[0]) for section in docs_server.sections(text, "f.md")] == [
        ("Guide", "General words about runs."),
        ("Guide › Resume a run", "Type `karat run FILE --resume RUN`."),
        ("Guide › Resume a run › When it is refused", "A changed prompt is refused."),
        ("Guide › Budget", "Set `max_failures`, or a budget in dollars."),
    ]


def test_a_long_section_is_divided_between_paragraphs(docs_server, folder):
    pieces = list(docs_server.sections((folder / "long.md").read_text(), "long.md"))
    assert len(pieces) > 3
    assert max(len(piece.text) for piece in pieces) <= docs_server.LONGEST_SECTION
    assert {piece.title for piece in pieces} == {"Long"}
    assert "\n\n".join(piece.text for piece in pieces).count("Paragraph ") == 20


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("How do I resume a run?", "Guide › Resume a run"),
        ("resuming", "Guide › Resume a run"),
        ("Why was it refused?", "Guide › Resume a run › When it is refused"),
        ("max_failures", "Guide › Budget"),
        ("max failures", "Guide › Budget"),
        ("--resume", "Guide › Resume a run"),
        ("what of the dollars and unknownword", "Guide › Budget"),
        ("naive cafes", "index.md"),
        ("the", None),
        ("unknownword", None),
        ("", None),
        ("?!* ()\"'", None),
    ],
)
def test_what_is_found_first(library, query, best):
    found = library.search(query, 3)
    assert (found[0].title if found else None) == best


def test_hidden_files_other_files_and_files_outside_are_not_there(library):
    assert library.search("hidden outside notes secret", 20) == []


def test_the_limit_is_kept_within_bounds(docs_server, library):
    assert len(library.search("word", 2)) == 2
    assert len(library.search("word", 0)) == 1
    assert len(library.search("word", -5)) == 1
    assert len(library.search("word", 10**9)) <= docs_server.MOST_RESULTS


@settings(max_examples=300, deadline=None)
@given(query=st.text(max_size=60))
def test_any_text_is_a_query(library, query):
    library.search(query, 3)


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "NEAR(a b)",
        "title: x",
        "a AND",
        "NOT",
        "^run",
        "run*",
        "{title}: run",
        "a\x00b",
        "___",
        "x " * 50_000,
        "'; --",
    ],
)
def test_what_the_index_would_understand_as_its_own_language_does_no_harm(library, query):
    library.search(query, 3)


@pytest.mark.parametrize(
    "path",
    ["../outside.md", "/etc/passwd", "link.md", ".hidden/secret.md", "notes.txt", "", ".", "a\x00b", "guide", "~/x.md"],
)
def test_only_documents_of_the_folder_are_read(docs_server, library, path):
    with pytest.raises(docs_server.ToolError, match="no document is called"):
        library.read(path)


def test_a_document_is_read_by_the_name_that_the_search_gave(library):
    (found, *_) = library.search("resume", 1)
    assert "General words" in library.read(found.file)
    assert "General words" in library.read("./" + found.file)


def call(folder: Path, tool: str, arguments: dict, **fields) -> tuple[str | None, str | None]:
    server = McpServer(name="docs", type="stdio", command="python", scope="run", **fields)
    condition = Condition(name="c", position=0, digest="", agent=AgentSpec(type="floor"), mcp_servers=(server,))

    async def story():
        async with Toolbox([server], redact=Redactor({}), folder=folder) as box, box.open(condition) as tools:
            assert [one.name for one in tools.tools] == ["search_docs", "read_doc"]
            called = await tools.call("docs", tool, arguments)
            return called.result, called.error

    return asyncio.run(story())


@pytest.mark.slow
def test_it_serves_over_stdio_with_the_folder_from_the_environment_or_the_arguments(folder):
    from_environment = {"args": (str(SCRIPT),), "env": {"INDEX": "."}}
    result, error = call(folder, "search_docs", {"query": "How do I resume?", "limit": 1}, **from_environment)
    assert error is None
    assert result is not None
    assert result.startswith("# Guide › Resume a run\n\nType `karat run FILE --resume RUN`.")
    assert result.endswith("(from guide/resume.md)")
    from_arguments = {"args": (str(SCRIPT), str(folder))}
    assert call(folder, "search_docs", {"query": "unknownword"}, **from_arguments) == ("nothing found", None)
    assert "no document is called" in (call(folder, "read_doc", {"path": "../x"}, **from_arguments)[1] or "")


@pytest.mark.slow
def test_without_a_folder_it_says_what_is_missing(tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "INDEX"}
    for arguments, message in ([], "give a folder"), ([str(tmp_path / "absent")], "is not a folder"):
        ended = subprocess.run(
            [sys.executable, str(SCRIPT), *arguments], env=env, capture_output=True, text=True, timeout=30, check=False
        )
        assert ended.returncode == 1
        assert message in ended.stderr
        assert "Traceback" not in ended.stderr
