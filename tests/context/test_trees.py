"""Folders that agents are given: what may be in them, what their digest covers, and copies of them."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.context import read_tree, snapshots
from karat.context.trees import copy_tree
from karat.errors import BadExperiment
from karat.records import AgentSpec, Condition, Context, ContextPart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    (made / "below").mkdir(parents=True)
    (made / "a.txt").write_text("a")
    (made / "below" / "run.sh").write_text("#!/bin/sh\n")
    (made / "below" / "run.sh").chmod(0o755)
    (made / "below" / "up").symlink_to("../a.txt")
    return made


def test_what_is_in_a_folder(folder: Path) -> None:
    tree = read_tree(folder)
    assert [entry.path for entry in tree.entries] == ["a.txt", "below", "below/run.sh", "below/up"]
    assert [entry.executable for entry in tree.entries] == [False, False, True, False]
    assert tree.entries[3].link == "../a.txt"
    assert tree.size == 11


def _link(made: Path) -> Path:
    link = made / "link"
    link.symlink_to("run.sh")
    return link


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda made: (made / "a.txt").write_text("b"),
    "name": lambda made: (made / "a.txt").rename(made / "b.txt"),
    "new": lambda made: (made / "b.txt").write_text(""),
    "empty folder": lambda made: (made / "empty").mkdir(),
    "executable": lambda made: (made / "a.txt").chmod(0o755),
    "link": lambda made: os.replace(_link(made), made / "below/up"),
    "file for link": lambda made: os.replace(made / "a.txt", made / "below/up"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_changes_the_digest(folder: Path, change: str) -> None:
    before = read_tree(folder).digest
    CHANGES[change](folder)
    assert read_tree(folder).digest != before


def test_dates_and_owners_do_not(folder: Path) -> None:
    before = read_tree(folder).digest
    os.utime(folder / "a.txt", (1, 1))
    (folder / "a.txt").chmod(0o600)
    assert read_tree(folder).digest == before


def _socket(made: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(made / "s"))


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "FIFO": (lambda made: os.mkfifo(made / "f"), "not regular"),
    "socket": (_socket, "not regular"),
    "set-uid": (lambda made: (made / "a.txt").chmod(0o4755), "set-uid"),
    "set-gid": (lambda made: (made / "a.txt").chmod(0o2755), "set-uid or set-gid"),
    "link out": (lambda made: (made / "l").symlink_to("../secret"), "leads out"),
    "link out from below": (lambda made: (made / "below/l").symlink_to("../../secret"), "leads out"),
    "absolute link": (lambda made: (made / "l").symlink_to("/etc/passwd"), "leads out"),
    "line break": (lambda made: (made / "a\nb").write_text(""), "printable"),
    "not UTF-8": (lambda made: Path(os.fsdecode(os.fsencode(made) + b"/\xff")).write_text(""), "printable"),
    "deep": (lambda made: (made / "/".join("d" * 120)).mkdir(parents=True), "levels of folders"),
    "large": (lambda made: os.truncate(made / "a.txt", 2**40), "MiB"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_no_agent_is_given(folder: Path, what: str) -> None:
    make, message = REFUSED[what]
    make(folder)
    with pytest.raises(ValueError, match=message):
        read_tree(folder)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.binary(max_size=40), max_size=5))
def test_a_copy_has_the_same_digest(files: dict[str, bytes]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        source = Path(made, "source")
        source.mkdir()
        for name, data in files.items():
            (source / name).write_bytes(data)
        tree = read_tree(source)
        copy_tree(tree, source, Path(made, "copy"))
        assert read_tree(Path(made, "copy")) == tree
        assert {one.name: one.read_bytes() for one in Path(made, "copy").iterdir()} == files


def test_a_copy_shares_nothing_with_its_source(folder: Path, tmp_path: Path) -> None:
    copy_tree(read_tree(folder), folder, tmp_path / "copy")
    (tmp_path / "copy/a.txt").write_text("changed")
    assert (folder / "a.txt").read_text() == "a"
    assert os.access(tmp_path / "copy/below/run.sh", os.X_OK)


def _condition(folder: Path) -> Condition:
    part = ContextPart(name=folder.name, path=folder, digest=read_tree(folder).digest)
    context = Context(workspace=part, skills=(msgspec.structs.replace(part, name="other"),))
    return Condition(name="a", position=0, digest="", agent=AgentSpec(type="x"), context=context)


def test_conditions_get_copies_that_go_again(folder: Path) -> None:
    with snapshots([_condition(folder)]) as (copied,):
        workspace = copied.context.workspace
        assert workspace is not None
        assert workspace.path != folder
        shutil.rmtree(folder)
        assert (workspace.path / "a.txt").read_text() == "a"
        assert [part.name for part in copied.context.skills] == ["other"]
    assert not workspace.path.exists()


def test_what_changed_since_the_file_was_read_is_refused(folder: Path) -> None:
    condition = _condition(folder)
    (folder / "a.txt").write_text("b")
    with pytest.raises(BadExperiment, match="has changed since"), snapshots([condition]):
        pass


def test_what_is_gone_is_refused(folder: Path) -> None:
    condition = _condition(folder)
    shutil.rmtree(folder)
    with pytest.raises(BadExperiment, match="made"), snapshots([condition]):
        pass
