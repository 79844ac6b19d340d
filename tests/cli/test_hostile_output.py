"""The terminal is a viewer too: nothing that an agent, a tool, a judge or a dataset says steers it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.journals import resealed, resealed_file

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x1b[31m\u202egnp\u2066\x9b31m\x90q\x9c\x7f\x00\x08\u200bx\u2069"
# What a command may write by itself: colours, and the live lines' moves and clearings.
OWN = re.compile(r"\x1b\[(?:[0-9;]*m|[0-9]*A|K|J)")
OBEYED = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

AGENT = """
from karat import Reply, ToolCall, Usage
BAD = {bad!r}

def query(user_query, system_prompt, mcp_servers, seed):
    print(BAD + "printed")
    if seed % 3 == 0:
        raise ValueError(BAD + "failed")
    call = ToolCall(tool="t" + BAD, server="s" + BAD, input={{"k" + BAD: BAD}}, result="r" + BAD, error=BAD)
    return Reply(text="It is so." + BAD, tool_calls=(call,), usage=Usage(input_tokens=3, output_tokens=2), dollars=0.1,
                 model="m" + BAD, stop_reason=BAD, answer=BAD, reasoning=BAD)
"""

SCORER = """
from karat import Metric
from karat.scorers import Verdict
BAD = {bad!r}

class Claims:
    metrics = (Metric(name="good" + BAD, low=0, high=5, kind="ordinal", description=BAD),)

    def score(self, sample, answer):
        return Verdict(values={{"good" + BAD: len(answer.trial) % 5}}, reasons={{"good" + BAD: "why" + BAD}},
                       labels={{"l" + BAD: "v" + BAD}}, claims=("c" + BAD,), detail={{"d" + BAD: BAD}})
"""


def obeyed(shown: str) -> list[str]:
    """What a terminal would obey, apart from what karat itself writes."""
    return [shown[max(0, found.start() - 40) : found.end() + 20] for found in OBEYED.finditer(OWN.sub("", shown))]


IN_TURN = """
import json, sys
from karat.__main__ import main
for arguments in json.loads(sys.argv[1]):
    code = main(arguments)
    print(f"{' '.join(arguments)} ended with {code}", file=sys.stderr, flush=True)
    assert code in (0, 2, 3)
"""


def on_terminal(folder: Path, *commands: tuple[str, ...]) -> str:
    """Everything that commands write to a terminal, standard output and standard error, one after another."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(
        [sys.executable, "-c", IN_TURN, json.dumps(commands)],
        cwd=folder, env=env, stdin=slave, stdout=slave, stderr=slave,
    )  # fmt: skip
    os.close(slave)
    parts = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux: the other side has closed
            break
        if not part:
            break
        parts.append(part)
    os.close(master)
    shown = b"".join(parts).decode()
    assert process.wait(timeout=60) == 0, shown
    assert "Traceback" not in shown, shown
    return shown


@pytest.fixture
def hostile(here: Path) -> Path:
    """An experiment in which whatever is foreign is hostile."""
    rows = [
        {"id": f"q{n}{HOSTILE}", "question": f"{n}?{HOSTILE}", "answer": f"It is {n}.{HOSTILE}", "team": f"x{HOSTILE}"}
        for n in range(8)
    ]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (here / "agent.py").write_text(textwrap.dedent(AGENT.format(bad=HOSTILE)), encoding="utf-8")
    (here / "claims.py").write_text(textwrap.dedent(SCORER.format(bad=HOSTILE)), encoding="utf-8")
    experiment: dict[str, Any] = {
        "name": "bad",
        "dataset": {"path": "questions.jsonl", "id_key": "id"},
        "agent": {"type": "python", "target": "agent:query"},
        "judge": {"type": "overlap"},
        "scorers": [{"type": "claims:Claims", "name": "cccc"}],
        "conditions": {"aaaa": {"system_prompt": HOSTILE}, "bbbb": {"system_prompt": f"b{HOSTILE}"}},
        "execution": {"num_repetitions": 2, "max_failures": 1000, "retry": {"max_attempts": 2,
                      "initial_backoff_seconds": 0.01}},
    }  # fmt: skip
    (here / "experiment.yaml").write_text(json.dumps(experiment), encoding="utf-8")
    return here


@pytest.fixture
def carried(hostile: Path) -> Path:
    """Its run folder; also the names that the experiment file may not have, but a run folder from elsewhere can."""
    done = subprocess.run(
        [sys.executable, "-m", "karat", "run", "experiment.yaml", "-q"], cwd=hostile, capture_output=True, check=False
    )
    assert done.returncode == 3, done.stderr.decode()
    (run,) = (hostile / "results").iterdir()
    for name in ("aaaa", "bbbb", "cccc"):
        old, new = f'"{name}"', json.dumps(name + HOSTILE, ensure_ascii=False)
        resealed_file(run / "run.json", old, new)
        journal = run / "journal.jsonl"
        journal.write_bytes(resealed(journal.read_bytes().replace(old.encode(), new.encode())))
    return run


@pytest.mark.quick(1)
@pytest.mark.parametrize("flags", [(), ("--quiet",), ("--events",), ("--json",), ("--events", "--json")])
def test_a_run_on_a_terminal(hostile, flags):
    shown = on_terminal(hostile, ("run", "experiment.yaml", *flags))
    assert obeyed(shown) == []
    assert "faults" not in shown
    assert "It is" in shown or "gnp" in shown


@pytest.mark.slow
def test_every_command_that_prints(carried, hostile):
    run = str(carried)
    commands = [
        ("check", "experiment.yaml"),
        ("check", "experiment.yaml", "--json"),
        ("check", "--lint", "questions.jsonl"),
        ("check", "--lint", "questions.jsonl", "--json"),
        ("score", run, "--scorer", "contains"),
        ("score", run, "--scorer", "{type: 'claims:Claims', name: again}", "--events"),
        *(("report", run, "--to", name) for name in ("terminal", "json", "csv")),
        ("report", run, "--json", "--to", "csv"),
        ("report", run, "--to", "keval"),
        ("report", run, "--to", "keval", "--json"),
        ("report", run, "--to", "html"),
        ("compare", run, run),
        ("report", "--charts", run, "--out", "charts", "--format", "json"),
        ("report", "--charts", run, "--out", "charts", "--format", "json", "--json"),
        ("query", run, "SELECT * FROM trials"),
        ("query", run, "SELECT * FROM trials", "--json"),
        ("query", run, "SELECT * FROM tool_calls"),
        ("query", run, "SELECT * FROM tool_calls", "--to", "csv"),
        ("query", run, "SELECT * FROM nothing"),
        ("list", "scorers"),
    ]
    shown = on_terminal(hostile, *commands)
    assert shown.count(" ended with ") == len(commands)
    assert "damaged" not in shown
    assert obeyed(shown)[:3] == []


@pytest.mark.slow
def test_what_programs_read_is_the_same_text_as_before(carried, process):
    """In JSON what is hostile stands as escapes, so nothing is lost; a table is for eyes too, and loses it."""
    summary = process("report", carried, "--to", "json").json
    assert summary["conditions"] == [f"aaaa{HOSTILE}", f"bbbb{HOSTILE}"]
    assert obeyed(process("report", carried, "--to", "csv").out) == []


def test_events_in_a_pipe_say_what_was_said(hostile, process):
    done = process("run", "experiment.yaml", "--events")
    assert obeyed(done.err) == []
    events = [json.loads(line) for line in done.err.splitlines()]
    texts = {reply["text"] for event in events if event["event"] == "answer" for reply in event["replies"]}
    assert texts == {"It is so." + HOSTILE}


def test_a_log_file_gets_clean_lines(hostile, process):
    done = process("run", "experiment.yaml")
    assert obeyed(done.err) == []
    assert obeyed(done.out) == []
    assert "\x1b" not in done.err + done.out
