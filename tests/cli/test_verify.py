"""`karat verify`, and what every command does with a damaged or hostile run folder."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.summary.journals import Script

from karat.journal import CHECKSUMS_SINCE, RunFolder, RunLock

COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "RUN"),
    "page": ("report", "RUN", "--to", "html", "--out", "page.html"),
    "compare": ("compare", "RUN:baseline", "RUN:with-docs"),
    "query": ("query", "RUN", "SELECT count(*) AS n FROM trials"),
    "plot": ("plot", "RUN", "--format", "json", "--out", "charts"),
    "score": ("score", "RUN", "--judge", "overlap"),
    "latest": ("report", "latest", "--results", "."),
}
"""Those that read a run folder."""


@pytest.fixture
def run(here: Path) -> RunFolder:
    """A finished run of two questions, with a review."""
    script = Script(here / "run", samples=2, format=CHECKSUMS_SINCE)
    for row in range(2):
        for condition in script.conditions:
            script.scored(row, condition, value=3)
    (here / "run" / "experiment.yaml").write_text("name: support-kb\n", encoding="utf-8")
    (here / "run" / "journal.lock").touch()
    (here / "run" / "labels.jsonl").touch()
    return script.end()


def words(name: str, run: RunFolder) -> list[str]:
    return [word.replace("RUN", str(run.path)) for word in COMMANDS[name]]


def test_a_sound_run_is_ok_and_a_damaged_one_is_named_line_by_line(karat, run, golden):
    assert karat("verify", "run").code == 0
    assert karat("verify", "run").out == "run: ok, 12 lines\n"
    lines = run.journal.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"Answer", b"answer")
    lines[4] = b"\0" * 40 + b"\n"
    run.journal.write_bytes(b"".join(lines) + b'{"event":"ans')
    done = karat("verify", "run")
    assert (done.code, done.err) == (2, "")
    golden("cli/verify-damaged.txt", done.out)
    found = karat("verify", "run", "--json")
    assert (found.code, found.json["ok"]) == (2, False)
    assert [one["line"] for one in found.json["runs"][0]["damages"]] == [4, 5]


def test_a_folder_of_runs_is_verified_run_by_run(karat, run, here):
    shutil.copytree(run.path, here / "results" / "one")
    shutil.copytree(run.path, here / "results" / "two")
    (here / "results" / "two" / "run.json").write_bytes(b"{}")
    done = karat("verify", "results", "run")
    assert done.code == 2
    assert [line for line in done.out.splitlines() if "ok" in line] == [
        "results/one: ok, 12 lines",
        "run: ok, 12 lines",
    ]
    assert "run.json: " in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_line_of_nuls_in_the_middle_is_an_error_in_every_command(karat, run, name):
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:3], b"\0" * len(lines[3][:-1]) + b"\n", *lines[4:]]))
    done = karat(*words(name, run))
    assert done.code == 2
    assert "line 4 of the journal is damaged" in done.err
    assert "karat verify" in done.err


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        place = os.getcwd()
        os.chdir(path.parent)  # the path of a socket is short
        listener.bind(path.name)
        os.chdir(place)


def _link_out(path: Path) -> None:
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    elsewhere.write_bytes(path.with_name(f"{path.name}.before").read_bytes())
    path.symlink_to(elsewhere)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(8 * 2**30)


SHAPES: dict[str, tuple[Callable[[Path], None], str]] = {
    "fifo": (_fifo, "is a FIFO, not a regular file"),
    "socket": (_socket, "is a socket, not a regular file"),
    "folder": (Path.mkdir, "is a folder, not a regular file"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "is a symbolic link, not a regular file"),
    "link out": (_link_out, "is a symbolic link, not a regular file"),
    "sparse": (_sparse, ""),
}
NEEDED = ("run.json", "journal.jsonl", "samples.jsonl")
BESIDES = ("experiment.yaml", "journal.lock", "labels.jsonl")


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file", [*NEEDED, *BESIDES])
def test_no_command_waits_for_follows_or_swallows_a_hostile_file(karat, run, file, shape):
    make, says = SHAPES[shape]
    path = run.path / file
    path.rename(path.with_name(f"{file}.before"))
    make(path)
    for name in COMMANDS:
        done = karat(*words(name, run))
        assert done.code in ((2,) if file in NEEDED else (0, 2)), (name, done.err)
        if file in NEEDED:
            assert file in done.err or (file == "journal.jsonl" and "of the journal" in done.err), done.err
            assert says in done.err, done.err
    found = karat("verify", "run")
    assert found.code == (0 if file in ("experiment.yaml", "journal.lock") else 2)


def test_a_link_to_the_run_folder_itself_works(karat, run, here):
    (here / "link").symlink_to(run.path, target_is_directory=True)
    for words in (("report", "link"), ("query", "link", "SELECT 1 AS one"), ("verify", "link")):
        assert karat(*words).code == 0
    assert not RunLock(here / "link").held()


def test_nothing_is_written_through_a_link_of_the_folder(karat, run, here):
    (here / "mine.txt").write_text("mine", encoding="utf-8")
    (run.path / ".samples.jsonl.part").symlink_to(here / "mine.txt")
    run.write_samples(run.samples(), redact=str)
    assert (here / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert karat("verify", "run").code == 0
