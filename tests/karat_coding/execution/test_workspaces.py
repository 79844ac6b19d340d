"""Workspaces in runs: a fresh one for each attempt, its changes kept before the answer, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.execution.test_turns import DATASET
from tests.running_experiments import merged

import karat
from karat.config import load
from karat.execution import RunStatus, Selection, run_experiment
from karat.journal import Attempt, RunFolder, verify
from karat.records import Answer, Score
from karat_coding.changes import read_stored

SCRIPT = """
import json, os, sys
task = json.load(sys.stdin)
with open({calls!r}, "a") as file:
    file.write(task["sample"] + "\\n")
assert os.getcwd() == task["workspace"]
assert sorted(os.listdir()) == ["start.txt"], os.listdir()
with open("start.txt", "a") as file:
    file.write(task["question"])
{more}
print("done")
"""
SCORER = """
class Scorer:
    def __init__(self, setting):
        self.workspace_of = setting.workspace_of
    blocking = True
    def score(self, sample, answer):
        with self.workspace_of(answer) as workspace:
            return (workspace.path / "start.txt").read_text() == "start " + sample.turns[0].question
"""


@pytest.fixture
def with_workspace(experiment, tmp_path):
    """An experiment whose agent, a program, adds the question to `start.txt` and then does `more`."""

    def write(more: str = "", agent: dict | None = None, code: str = SCORER, **sections) -> Path:
        (tmp_path / "start").mkdir()
        (tmp_path / "start" / "start.txt").write_text("start ")
        (tmp_path / "program.py").write_text(SCRIPT.format(calls=str(tmp_path / "calls"), more=more))
        agent = agent or {"type": "command", "command": ["python", "program.py"]}
        return experiment(code, agent=agent, conditions={"a": {"workspace": "start"}}, **sections)

    return write


def calls(tmp_path: Path) -> list[str]:
    return (tmp_path / "calls").read_text().split()


def scores(run: RunFolder) -> list[object]:
    return [value for score in run.events_of(Score) for value in score.values.values()]


def nothing_is_left(process: int | None = None) -> None:
    """Of the workspaces of a process: no folder, no mount and no program in one."""
    name = f"karat-workspaces-{process or os.getpid()}-"
    assert [path for path in Path(tempfile.gettempdir()).iterdir() if path.name.startswith(name)] == []
    assert programs_in(name) == []


def programs_in(name: str) -> list[Path]:
    return [pid for pid in Path("/proc").iterdir() if pid.name.isdigit() and name in text(pid, "mountinfo")]


def test_each_attempt_has_a_fresh_workspace_and_its_changes_are_kept(with_workspace, run, tmp_path):
    outcome = run(with_workspace())
    answers = list(outcome.run.events_of(Answer))
    assert len(answers) == 6
    assert {(answer.workspace.changed, answer.workspace.complete) for answer in answers} == {(1, True)}
    for answer in answers:
        diff = read_stored(outcome.run.path, answer.workspace.file)[1]
        assert "-start \n" in diff
    assert scores(outcome.run) == [True] * 6
    nothing_is_left()


def test_an_agent_that_leaves_what_cannot_be_kept_is_scored_and_its_trial_says_so(with_workspace, run, tmp_path):
    more = "os.mkfifo('pipe'); os.makedirs('.venv/bin'); os.symlink('/usr/bin/python3', '.venv/bin/python3')"
    outcome = run(with_workspace(more))
    assert scores(outcome.run) == [True] * 6
    left = {answer.workspace.left_out for answer in outcome.run.events_of(Answer)}
    assert left == {("pipe: neither a file nor a folder nor a link",)}
    listed = karat.query(outcome.run, "SELECT DISTINCT not_kept FROM trials").rows
    assert [tuple(row) for row in listed] == [("pipe: neither a file nor a folder nor a link",)]


def test_an_agent_inside_karat_gets_a_copy_and_the_run_says_what_it_costs(with_workspace, run, tmp_path):
    code = SCORER + (
        "def query(question, workspace):\n"
        "    assert [path.name for path in workspace.iterdir()] == ['start.txt']\n"
        "    (workspace / 'start.txt').write_text('start ' + question)\n"
        "    return 'done'\n"
    )
    status = RunStatus()
    agent = {"type": "python", "target": f"agent_of_{tmp_path.name.replace('-', '_')}:query"}
    outcome = run(with_workspace(agent=agent, code=code), status=status)
    assert scores(outcome.run) == [True] * 6
    (notice,) = status.notices
    assert notice.startswith("workspaces are copied for each attempt, because the agent runs in karat's own process: ")
    assert notice.endswith(" for 1 file with 6 bytes")
    nothing_is_left()


def test_a_failed_attempt_keeps_its_changes_and_the_next_one_starts_afresh(with_workspace, run, tmp_path):
    fails_first = f"if len(open({str(tmp_path / 'calls')!r}).readlines()) < 3: sys.exit('not yet')"
    file = with_workspace(fails_first, questions=1, execution={"num_repetitions": 1})
    outcome = run(file)
    assert len(list(outcome.run.events_of(Attempt))) == 2
    (answer,) = outcome.run.events_of(Answer)
    assert answer.workspace.file == f"{answer.trial}-3.tar.gz"
    for number in (1, 2):
        assert "start q0" in read_stored(outcome.run.path, f"{answer.trial}-{number}.tar.gz")[1]
    assert scores(outcome.run) == [True]
    nothing_is_left()


def cut(run: RunFolder, *kinds: str) -> None:
    """Takes lines from the journal that a killed run would not have written yet."""
    lines = run.journal.read_bytes().splitlines(keepends=True)
    gone = tuple(b'{"event":"%s"' % kind.encode() for kind in (*kinds, "end"))
    run.journal.write_bytes(b"".join(line for line in lines if not line.startswith(gone)))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [("answer", "score"), ("score",)], ids=["before the answer", "before the scores"])
def test_killed_after_the_changes_were_stored_nothing_is_asked_twice(with_workspace, run, tmp_path, kinds):
    file = with_workspace()
    first = run(file)
    before = {answer.trial: answer for answer in first.run.events_of(Answer)}
    cut(first.run, *kinds)
    resumed = run(file, resume=first.run.path)
    assert len(calls(tmp_path)) == 6
    assert {answer.trial: answer for answer in resumed.run.events_of(Answer)} == before
    assert scores(resumed.run) == [True] * 6


def test_a_conversation_begins_again_with_its_workspace(with_workspace, run, tmp_path):
    more = f"if len(open({str(tmp_path / 'calls')!r}).readlines()) == 2: sys.exit('not yet')"
    module = f"agent_of_{tmp_path.name.replace('-', '_')}"
    dataset = {"path": str(tmp_path / "questions.jsonl"), "kind": f"{module}:Turns"}
    file = with_workspace(more, code=DATASET + SCORER, dataset=dataset, execution={"num_repetitions": 1})
    (tmp_path / "questions.jsonl").write_text(json.dumps({"turns": [{"question": "q0"}, {"question": "q1"}]}) + "\n")
    outcome = run(file)
    (answer,) = outcome.run.events_of(Answer)
    assert (answer.attempts, answer.kept) == (2, 0)
    assert "+start q0q1" in read_stored(outcome.run.path, answer.workspace.file)[1]


CLOSES_LATE = SCORER + (
    "import asyncio, contextlib\n"
    "class Session:\n"
    "    def __init__(self, workspace): self.workspace = workspace\n"
    "    async def ask(self, turn):\n"
    "        from karat import Reply\n"
    "        (self.workspace.path / 'start.txt').write_text('start ' + turn.question)\n"
    "        return Reply(text='done')\n"
    "class Agent:\n"
    "    @contextlib.asynccontextmanager\n"
    "    async def session(self, condition, sample, workspace):\n"
    "        yield Session(workspace)\n"
    "        await asyncio.sleep(60)\n"
    "query = Agent()\n"
)


def closes_late(tmp_path: Path) -> dict:
    target = f"agent_of_{tmp_path.name.replace('-', '_')}:query"
    return {"agent": {"type": "python", "target": target}, "code": CLOSES_LATE}


def test_an_answer_is_kept_where_its_session_does_not_close(with_workspace, run, tmp_path):
    execution = {"num_repetitions": 1, "timeout_seconds": 0.5}
    status = RunStatus()
    outcome = run(with_workspace(**closes_late(tmp_path), questions=2, execution=execution), status=status)
    assert scores(outcome.run) == [True, True]
    assert not list(outcome.run.events_of(Attempt))
    assert "an agent's session did not close well" in status.notices[-1]
    nothing_is_left()


def test_an_answer_is_kept_where_the_run_is_cancelled_while_its_session_closes(with_workspace, run, tmp_path):
    file = with_workspace(**closes_late(tmp_path), questions=1, execution={"num_repetitions": 1})

    async def cancelled() -> None:
        running = asyncio.create_task(run_experiment(load(file), results=tmp_path / "results"))
        await until(lambda: any(b"start q0" in path.read_bytes() for path in opened()))
        await asyncio.sleep(0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    def opened() -> list[Path]:
        name = f"karat-workspaces-{os.getpid()}-*/*-1/workspace/start.txt"
        return list(Path(tempfile.gettempdir()).glob(name))

    asyncio.run(cancelled())
    (folder,) = (tmp_path / "results").iterdir()
    (answer,) = RunFolder.open(folder).events_of(Answer)
    assert "+start q0" in read_stored(folder, answer.workspace.file)[1]
    nothing_is_left()


def test_instructions_above_the_temporary_folder_end_the_run_before_it_begins(with_workspace, tmp_path):
    (tmp_path / "CLAUDE.md").touch()
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-m", "karat", "run", with_workspace(), "--results", tmp_path / "results"]
    done = subprocess.run(command, env=os.environ | {"TMPDIR": f"{tmp_path}/tmp"}, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"where agents would also find '{tmp_path}/CLAUDE.md'" in " ".join(done.stderr.split())
    assert not (tmp_path / "results").exists()


def test_keeping_workspaces_keeps_the_whole_folder(with_workspace, run):
    outcome = run(with_workspace(questions=1, execution={"num_repetitions": 1, "keep_workspaces": True}))
    (answer,) = outcome.run.events_of(Answer)
    folder = outcome.run.path / "workspaces" / f"{answer.trial}-1"
    assert (folder / "start.txt").read_text() == "start q0"


@pytest.mark.slow
def test_a_killed_run_leaves_no_process_and_no_mount(with_workspace, tmp_path):
    file = with_workspace("import time; time.sleep(100)", questions=1, execution={"num_repetitions": 1})
    code = "import asyncio, sys; from karat.config import load; from karat.execution import run_experiment; "
    code += "from pathlib import Path; asyncio.run(run_experiment(load(Path(sys.argv[1])), results=Path(sys.argv[2])))"
    process = subprocess.Popen([sys.executable, "-c", code, file, tmp_path / "results"])
    asyncio.run(until((tmp_path / "calls").exists))
    process.kill()
    process.wait()
    name = f"karat-workspaces-{process.pid}-"
    asyncio.run(until(lambda: not programs_in(name)))


def text(process: Path, name: str) -> str:
    try:
        return (process / name).read_text()
    except OSError:
        return ""


async def until(holds) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.02)


@pytest.mark.slow
def test_two_hundred_trials_leave_nothing(with_workspace, tmp_path):
    file = with_workspace(questions=100, scorers=["equals"])
    asyncio.run(run_experiment(load(file), results=tmp_path / "results"))
    assert len(calls(tmp_path)) == 200
    nothing_is_left()


@pytest.mark.needs_package("karat_scale")
def test_merged_runs_keep_their_workspaces(with_workspace, run, tmp_path):
    file = with_workspace()
    runs = [run(file, selection=Selection(samples=(name,))).run for name in ("0", "1")]
    whole = merged(runs, tmp_path / "merged")
    files = {answer.workspace.file for answer in whole.events_of(Answer)}
    assert len(files) == 4
    assert {path.name for path in (whole.path / "workspaces").glob("*-?.tar.gz")} == files
    for answer in whole.events_of(Answer):
        assert "start q" in read_stored(whole.path, answer.workspace.file)[1]


def test_a_run_folder_cannot_make_its_programs_run(with_workspace, run, tmp_path):
    scorers = [{"tests": {"command": ["touch", str(tmp_path / "ran")]}}]
    outcome = run(with_workspace(scorers=scorers, questions=1, execution={"num_repetitions": 1}))
    (tmp_path / "ran").unlink()
    cut(outcome.run, "score")
    command = [sys.executable, "-m", "karat", "score", outcome.run.path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "karat runs no code that only a run folder names" in " ".join(done.stderr.split())
    named = json.dumps(scorers[0])
    assert subprocess.run([*command, "--scorer", named], capture_output=True).returncode == 0
    assert (tmp_path / "ran").exists()


def test_a_damaged_archive_is_found(with_workspace, run):
    outcome = run(with_workspace(questions=1, execution={"num_repetitions": 2}))
    assert verify(outcome.run.path).ok
    first, second = sorted((outcome.run.path / "workspaces").glob("*-1.tar.gz"))
    first.unlink()
    second.write_bytes(second.read_bytes() + b"x")
    found = [(damage.file, damage.reason) for damage in verify(outcome.run.path).damages]
    assert sorted(found) == [
        (f"workspaces/{first.name}", "it is missing"),
        (f"workspaces/{second.name}", "it has changed since the answer was given"),
    ]
