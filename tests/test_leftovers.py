"""What killed processes leave behind goes with the next start; what is in use, new, or somebody else's stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.analysis.journals import table
from tests.journal.test_journal import new_run

from karat.files import in_use, remove_leftovers

NAME = r"karat-query-\d+-\w+"


def leftover(parent, name: str, *, hours: float = 2):
    folder = parent / name
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "file").write_text("x")
    when = time.time() - hours * 3600
    os.utime(folder, (when, when))
    return folder


def test_old_folders_that_nobody_uses_are_removed(tmp_path):
    dead, used = (leftover(tmp_path, f"karat-query-1-{name}") for name in ("dead", "used"))
    new = leftover(tmp_path, "karat-query-1-new", hours=0.5)
    with in_use(used):
        remove_leftovers(tmp_path, NAME)
        assert [folder.exists() for folder in (dead, used, new)] == [False, True, True]
    remove_leftovers(tmp_path, NAME)
    assert [folder.exists() for folder in (used, new)] == [False, True]
    remove_leftovers(tmp_path / "nowhere", NAME)


def test_links_files_and_other_names_stay_and_links_inside_are_not_followed(tmp_path):
    target = leftover(tmp_path, "target")
    (tmp_path / "karat-query-1-link").symlink_to(target)
    os.utime(tmp_path / "karat-query-1-link", (0, 0), follow_symlinks=False)
    (tmp_path / "karat-query-1-file").write_text("x")
    os.utime(tmp_path / "karat-query-1-file", (0, 0))
    leftover(tmp_path, "karat-query-mine")
    dead = leftover(tmp_path, "karat-query-1-dead")
    (dead / "inner" / "link").symlink_to(target)
    remove_leftovers(tmp_path, NAME)
    assert {path.name for path in tmp_path.iterdir()} == {
        "target", "karat-query-1-link", "karat-query-1-file", "karat-query-mine"
    }  # fmt: skip
    assert (target / "inner" / "file").read_text() == "x"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_folders_of_other_users_stay(tmp_path):
    folder = leftover(tmp_path, "karat-query-1-other")
    os.chown(folder, 12345, 12345)
    remove_leftovers(tmp_path, NAME)
    assert folder.exists()


def aged(folder):
    when = time.time() - 7200
    os.utime(folder, (when, when))
    return folder


HOLDER = """
from karat.files import temporary_folder
with temporary_folder("query") as folder:
    print(folder, flush=True)
    input()
"""


def holder(temporary) -> tuple[subprocess.Popen[str], Path]:
    """A process that uses a temporary folder until it reads a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    return process, Path(process.stdout.readline().strip())


def test_a_process_removes_what_a_killed_one_left_and_nothing_of_one_that_runs(tmp_path):
    killed, left = holder(tmp_path)
    killed.kill()
    killed.communicate()
    aged(left)
    running, own = holder(tmp_path)
    assert (left.exists(), aged(own).exists()) == (False, True)
    other, another = holder(tmp_path)
    assert own.exists()
    for process in (running, other):
        process.communicate("\n", timeout=30)
        assert process.returncode == 0
    assert not own.exists()
    assert not another.exists()


def test_a_socket_s_folder_has_a_short_path_wherever_temporary_files_go(tmp_path):
    far = tmp_path / ("x" * 120)
    far.mkdir()
    script = """
from karat.files import temporary_folder
import socket
with temporary_folder("mcp", for_socket=3) as folder, socket.socket(socket.AF_UNIX) as one:
    one.bind(str(folder / "mcp"))
with temporary_folder("query") as folder:
    assert "xxx" in str(folder)
"""
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "TMPDIR": str(far)})


@pytest.fixture
def temporary():
    """A temporary folder of its own, with a path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="k") as name:
        yield Path(name)


@pytest.mark.slow
def test_queries_exports_and_trials_remove_what_killed_ones_left(tmp_path, temporary, monkeypatch):
    table(tmp_path / "run", {"baseline": [[3.0]]})
    for purpose in ("query", "parquet", "relation", "claude", "mcp"):
        leftover(temporary, f"karat-{purpose}-1-dead")
    monkeypatch.setenv("TMPDIR", str(temporary))
    script = """
import asyncio, karat, os, sys
from karat_coding.agents.claude import trial_folder
from karat.mcp.hub import Hub
from pathlib import Path
from karat_query.tables import write_tables
temporary = Path(os.environ["TMPDIR"])
async def talk():
    hub = Hub(None)
    await hub.start()
    assert len(list(temporary.glob("karat-mcp-*"))) == 1
    await hub.stop()
relation = karat.relation(sys.argv[1], "trials")
assert relation.fetchall() and len(list(temporary.glob("karat-relation-*"))) == 1
assert karat.query(sys.argv[1], "SELECT 1").rows == ((1,),)
write_tables(karat.open(sys.argv[1]), "parquet", Path(sys.argv[1]).parent / "tables")
asyncio.run(talk())
with trial_folder(None) as folder:
    assert folder.home.stat().st_mode & 0o777 == 0o700
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "run")], check=True)
    assert list(temporary.iterdir()) == []


def test_a_run_removes_run_folders_that_were_never_finished(tmp_path):
    results = tmp_path / "results"
    names = (".demo-20260101-0123abcd.part", ".demo.part", "demo-20260101-0123abcd")
    for name in names:
        leftover(results, name)
    run = new_run(tmp_path)
    assert {path.name for path in results.iterdir()} == {*names[1:], run.path.name}
