"""kill −9 in the middle of a game: real processes, killed while known turns are being answered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from karat.analysis import summarize
from karat.execution import Outcome
from karat.journal import RunFolder
from karat.records import Answer

from .games import MEMBERS, ROUNDS, asked, write_game

Write = Callable[..., Path]
Run = Callable[..., Outcome]
TURNS = MEMBERS * ROUNDS

# Waits for ever where STOPS says so, once each; logs a question when it is answered.
WAITS = """
import asyncio
STOPS = {}
async def query(user_query, history, system_prompt, sample, turn, seed):
    place = f"{sample.id}:{turn}"
    mark = LOG.with_name("waiting-" + place)
    if place in STOPS and not mark.exists():
        mark.touch()
        await asyncio.sleep(600)
    asked(sample=sample.id, turn=turn, question=user_query, system=system_prompt, seed=seed,
          history=[[one["question"], one["answer"]] for one in history])
    return {"text": f"number: {number(sample, turn)}", "dollars": 1.0}
"""
MOMENTS = {  # of each kill: the turns of both groups that are then being answered
    "from the first turn to the last": [(0, 0), (1, 2), (3, 3), (4, 7), (8, 8)],
    "again and again": [(1, 4), (2, 5), (7, 8)],
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_game_goes_on_with_the_same_prompts_and_nothing_is_asked_or_paid_twice(
    experiment: Write, run: Run, tmp_path: Path, moment: str
) -> None:
    kills = MOMENTS[moment]
    whole = write_game(tmp_path, experiment, WAITS, execution={"max_concurrent": 2})
    undisturbed = run(whole)
    wanted = {(one["sample"], one["turn"]): one for one in asked(whole)}
    figures = summarize(undisturbed.run).total
    whole.with_name("asked.jsonl").unlink()
    stops = [{f"game-group-0{group}:{turn}" for group, turn in enumerate(turns, 1)} for turns in kills]
    code = WAITS.replace("STOPS = {}", f"STOPS = {set().union(*stops)}")
    file = write_game(tmp_path, experiment, code, execution={"max_concurrent": 2})
    results = tmp_path / "killed"
    for waiting in stops:
        kill_when(file, results, [f"waiting-{place}" for place in waiting])
    end(start(file, results))
    (folder,) = results.iterdir()
    found = RunFolder.open(folder)
    heard = asked(file)
    assert Counter((one["sample"], one["turn"]) for one in heard) == dict.fromkeys(wanted, 1)
    assert all(one == wanted[one["sample"], one["turn"]] for one in heard), "byte by byte"
    assert [len(one.replies) for one in found.events_of(Answer)] == [TURNS, TURNS]
    after = summarize(found).total
    assert (after.cost.agent, after.ledger) == (figures.cost.agent, figures.ledger)
    assert after.cost.agent.known == 2 * TURNS


def start(file: Path, results: Path) -> subprocess.Popen[bytes]:
    """`karat run`, or what is left of it."""
    command = [sys.executable, "-m", "karat", "run", str(file), "--results", str(results)]
    if results.exists():
        command += ["--resume", str(next(results.iterdir()))]
    return subprocess.Popen(command, cwd=file.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def end(process: subprocess.Popen[bytes]) -> None:
    """It must end well."""
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()


def kill_when(file: Path, results: Path, marks: list[str]) -> None:
    """Starts, and kills once every mark is there."""
    process = start(file, results)
    try:
        for _ in range(1200):
            if all(file.with_name(mark).exists() for mark in marks):
                break
            assert process.poll() is None, process.communicate()[0].decode()
            time.sleep(0.05)
        else:
            pytest.fail("it never came to where it is to be killed")
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.communicate()
