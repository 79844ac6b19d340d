"""`karat runs verify`, and what every command does with a damaged or hostile run folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from tests.analysis.journals import Script

import karat as package
from karat.journal import CHECKSUMS_SINCE, RunFolder, RunLock
from karat.redact import Redactor

STUDIES = Path(package.__file__).parents[1] / "karat_studies" / "kinds" / "study" / "studies"

COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "RUN"),
    "page": ("report", "RUN", "--to", "html", "--out", "page.html"),
    "compare": ("compare", "RUN:baseline", "RUN:with-docs"),
    "query": ("query", "RUN", "SELECT count(*) AS n FROM trials"),
    "plot": ("report", "--charts", "RUN", "--format", "json", "--out", "charts"),
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
    assert karat("runs", "verify", "run").code == 0
    older = "journal.jsonl: of an older karat, with no running checksum: missing lines go unnoticed"
    assert karat("runs", "verify", "run").out == f"run: ok, 12 lines\n  {older}\n"
    lines = run.journal.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"Answer", b"answer")
    lines[4] = b"\0" * 40 + b"\n"
    run.journal.write_bytes(b"".join(lines) + b'{"event":"ans')
    done = karat("runs", "verify", "run")
    assert (done.code, done.err) == (2, "")
    golden("cli/verify-damaged.txt", done.out)
    found = karat("runs", "verify", "run", "--json")
    assert (found.code, found.json["ok"]) == (2, False)
    assert [one["line"] for one in found.json["runs"][0]["damages"]] == [4, 5]


def test_a_folder_of_runs_is_verified_run_by_run(karat, run, here):
    shutil.copytree(run.path, here / "results" / "one")
    shutil.copytree(run.path, here / "results" / "two")
    (here / "results" / "two" / "run.json").write_bytes(b"{}")
    done = karat("runs", "verify", "results", "run")
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
    assert "karat runs verify" in done.err


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
    found = karat("runs", "verify", "run")
    assert found.code == (0 if file in ("experiment.yaml", "journal.lock") else 2)


def test_a_link_to_the_run_folder_itself_works(karat, run, here):
    (here / "link").symlink_to(run.path, target_is_directory=True)
    for words in (("report", "link"), ("query", "link", "SELECT 1 AS one"), ("runs", "verify", "link")):
        assert karat(*words).code == 0
    assert not RunLock(here / "link").held()


def test_nothing_is_written_through_a_link_of_the_folder(karat, run, here):
    (here / "mine.txt").write_text("mine", encoding="utf-8")
    (run.path / ".samples.jsonl.part").symlink_to(here / "mine.txt")
    run.write_samples(run.samples(), redact=Redactor({}))
    assert (here / "mine.txt").read_text(encoding="utf-8") == "mine"
    assert karat("runs", "verify", "run").code == 0


def _made_hostile(folder: Path, file: str, shape: str) -> None:
    path = folder / file
    if path.exists():
        path.rename(path.with_name(f"{file}.before"))
    else:
        path.with_name(f"{file}.before").touch()
    SHAPES[shape][0](path)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("file", [*NEEDED, *BESIDES])
def test_a_resume_does_not_wait_for_follow_or_swallow_a_hostile_file(karat, experiment, here, results, file, shape):
    shutil.copytree(results, here / "results")
    (folder,) = (here / "results").iterdir()
    _made_hostile(folder, file, shape)
    done = karat("run", experiment, "--resume", folder, "-q")
    assert done.code in ((2,) if file in NEEDED else (0, 2)), done.err
    if done.code:
        assert file in done.err or (file == "journal.jsonl" and "of the journal" in done.err), done.err
    if file in NEEDED:
        assert SHAPES[shape][1] in done.err, done.err


@pytest.mark.slow
def test_the_viewer_does_not_wait_for_follow_or_swallow_a_hostile_file(karat, run, here):
    pytest.importorskip("starlette", reason="the extra 'view' brings the pages")
    from tests.karat_viewer.serving import Viewer

    runs = {(file, shape): f"{at:02}" for at, (file, shape) in enumerate(product([*NEEDED, *BESIDES], SHAPES))}
    for (file, shape), name in runs.items():
        shutil.copytree(run.path, here / "all" / name)
        _made_hostile(here / "all" / name, file, shape)
        if file == "run.json":
            done = karat("view", here / "all" / name, "--no-open")
            assert (done.code, "run.json" in done.err) == (2, True), (shape, done.err)
    shutil.copytree(run.path, here / "all" / "sound")
    with Viewer(here / "all") as viewer:
        viewer.enter()
        for (file, shape), name in runs.items():
            for page in ("", "/state", "/samples", "/samples/1", "/find?q=a", "/reviews", "/conditions"):
                while (heard := viewer.get(f"/runs/{name}{page}")).status == 202:  # while the run is added up
                    pass
                assert heard.status in (200, 404, 409), (file, shape, page, heard.text[:500])
                assert "elsewhere-" not in heard.text
            if file in NEEDED:
                assert viewer.get(f"/runs/{name}").status in (404, 409), (file, shape)
        assert viewer.get("/").status == 200
        assert viewer.get("/runs/sound").status == 200
        assert viewer.stop() == 0


GIVEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "experiment": ("other.yaml", ("check", "other.yaml")),
    "run": ("other.yaml", ("run", "other.yaml")),
    "study": ("other.yaml", ("check", "--lint", "other.yaml")),
    "study folder": ("mine/study.yaml", ("check", "mine")),
    "material": ("plain/materials/gain.md", ("check", "plain")),
    "dataset": ("rows.jsonl", ("check", "experiment.yaml", "--set", "dataset.path=rows.jsonl")),
    "dataset alone": ("rows.csv", ("check", "--lint", "rows.csv")),
    "answers": ("rows.jsonl", ("score", "rows.jsonl", "--question", "q", "--golden", "g", "--answer", "a")),
    "replay": ("rows.csv", ("check", "experiment.yaml", "--set", "agent={type: replay, path: rows.csv}")),
    "variables": ("secrets", ("check", "experiment.yaml", "--env-file", "secrets")),
    "rubric": (
        "own.yaml",
        ("check", "experiment.yaml", "--set", "judge={type: judge, model: 'openai:x', rubric: own.yaml}"),
    ),
    "study tests": ("tests.csv", ("score", "tests.csv", "--kind", "study-tests")),
    "import": ("run.json", ("import", "deepeval", "run.json", "--out", "made")),
}
"""What names a file on the command line, or in the experiment file → that file, and the command."""


@pytest.mark.parametrize("shape", ["fifo", "endless", "folder"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.needs_kind("study", cases="material")
def test_no_command_waits_for_a_file_that_is_given(karat, experiment, here, given, shape):
    file, words = GIVEN[given]
    path = here / file
    path.parent.mkdir(parents=True, exist_ok=True)
    if given == "material":
        shutil.copytree(STUDIES / "framing", here / "plain", dirs_exist_ok=True)
        path = next(iter(sorted((here / "plain" / "materials").glob("*.md"))))
        path.unlink()
    SHAPES[shape][0](path)
    done = karat(*words)
    assert done.code == 2, done.out
    assert path.name in done.err + done.out


def test_an_experiment_can_be_given_as_an_open_descriptor(here, experiment):
    command = f"cat {experiment} | {sys.executable} -m karat check /dev/stdin"
    done = subprocess.run(["bash", "-c", command], cwd=here, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "sums" in done.stdout


def test_runs_are_listed(karat, here, results):
    (run,) = results.iterdir()
    shutil.copytree(run, here / "results" / "whole")
    shutil.copytree(run, here / "results" / "stopped")
    journal = here / "results" / "stopped" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    listed = karat("runs", "list", "--json").json["runs"]
    assert {Path(one["folder"]).name: (one["status"], one["trials"]) for one in listed} == {
        "whole": ("done", 8),
        "stopped": ("crashed", 8),
    }
    shown = karat("runs", "list", "results").out.splitlines()
    assert {line.split()[0] for line in shown} == {"run", "results/whole", "results/stopped"}


def test_a_folder_without_runs_and_one_that_is_damaged(karat, here):
    assert karat("runs", "list").out == "There are no runs here.\n"
    (here / "results" / "broken").mkdir(parents=True)
    (here / "results" / "broken" / "run.json").write_text("{}", encoding="utf-8")
    done = karat("runs", "list")
    assert done.code == 0
    assert "left out: " in done.err
    assert "is not a folder" in karat("runs", "list", "nowhere").err
