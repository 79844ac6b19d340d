"""Programs: what they are told, what they may say, and that nothing of them is left."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karat.errors import AgentFault, LimitReached
from karat.records import Reply, ToolCall, Usage

Ask = Callable[..., tuple[Reply, ...]]


def program(code: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-S", "-c", code]}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that init has not collected yet is dead all the same.
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_program_is_told_everything_about_its_turn(ask: Ask) -> None:
    code = "import sys, json; task = json.load(sys.stdin); print(json.dumps({'text': json.dumps(task)}))"
    first, second = ask("command", program(code), turns=("one", "two"), repetition=2, sample="s1")
    task = json.loads(second.text)
    assert json.loads(first.text)["history"] == []
    assert task == {
        "question": "two", "system_prompt": "be brief", "history": [{"question": "one", "answer": first.text}],
        "mcp_servers": {}, "sample": "s1", "condition": "a", "repetition": 2, "turn": 1, "seed": 7,
    }  # fmt: skip


def test_plain_text_and_whole_replies_are_answers(ask: Ask) -> None:
    assert ask("command", {"command": "echo hello there"}) == (Reply(text="hello there"),)
    whole = {
        "text": "x",
        "tool_calls": [{"tool": "t", "server": "s", "result": "r"}],
        "usage": {"input_tokens": 3},
        "dollars": 0.5,
    }
    assert ask("command", program(f"print('''{json.dumps(whole)}''')")) == (
        Reply(
            text="x", tool_calls=(ToolCall(tool="t", server="s", result="r"),), usage=Usage(input_tokens=3), dollars=0.5
        ),
    )


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("import sys; sys.exit('my own words')", "exit_code", "exit code 1: my own words"),
        ("import os; os.kill(os.getpid(), 11)", "exit_code", "signal SIGSEGV"),
        ("pass", "empty_output", "printed nothing"),
        ("print('{broken')", "bad_json", "is not JSON"),
        ("print('{}')", "bad_reply", "has no 'text'"),
    ],
)
def test_each_way_to_fail_has_a_name(ask: Ask, code: str, kind: str, says: str) -> None:
    with pytest.raises(AgentFault, match=says) as fault:
        ask("command", program(code))
    assert fault.value.kind == kind


def test_a_program_that_is_not_there_is_named(ask: Ask) -> None:
    with pytest.raises(AgentFault, match="'no-such-program': No such file or directory"):
        ask("command", {"command": ["no-such-program"]})


def test_too_much_output_ends_the_attempt(ask: Ask) -> None:
    with pytest.raises(LimitReached, match="more than 1000 bytes"):
        ask("command", {**program("while True: print('x' * 100)"), "max_output_bytes": 1000})


def test_a_program_need_not_read_its_input_and_may_speak_latin_1(ask: Ask) -> None:
    code = "import os; os.close(0); os.write(1, b'caf\\xe9')"
    assert ask("command", program(code), turns=("q" * 1_000_000,))[0].text == "caf\ufffd"


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        ('\ufeff{"text": "Paris"}', "Paris"),
        ('{"text": "Paris", "usage": {"input_tokens": NaN}}', "Paris"),
        ('{"text": "one\ttwo"}', "one\ttwo"),
        ("{1, 2, 3}", "{1, 2, 3}"),
        ('{"text": NaN, "result": "Paris"}', "Paris"),
    ],
)
def test_what_a_program_prints_is_read_as_it_is_meant(ask: Ask, printed: str, text: str) -> None:
    assert ask("command", {"command": ["printf", "%s", printed]})[0].text == text


def test_the_environment_is_path_home_lang_and_the_files_own(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_OF_THE_PARENT", "sings")
    code = "import os, json; print(json.dumps({'text': json.dumps(dict(os.environ))}))"
    seen = json.loads(ask("command", {**program(code), "env": {"KEY": "given"}})[0].text)
    assert set(seen) - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "KEY"}
    assert seen["KEY"] == "given"


@pytest.mark.parametrize("way", ["timeout", "leaves a child that holds the pipe"])
def test_the_whole_group_ends_with_the_turn(ask: Ask, tmp_path: Path, way: str) -> None:
    code = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(60)'])\n"
        "pathlib.Path('pids').write_text(str(child.pid))\nprint('done', flush=True)\n"
    )
    started = time.monotonic()
    if way == "timeout":
        with pytest.raises(TimeoutError):
            ask("command", program(code + "time.sleep(60)"), timeout=1)
    else:
        assert ask("command", program(code))[0].text == "done"
    assert time.monotonic() - started < 20
    child = int((tmp_path / "pids").read_text())
    for _ in range(600):
        if not alive(child):
            return
        time.sleep(0.05)
    pytest.fail(f"process {child} is left")


def test_a_grandchild_that_left_the_group_cannot_keep_the_answer(ask: Ask) -> None:
    started = time.monotonic()
    assert ask("command", {"command": ["sh", "-c", "setsid sleep 60 >/dev/null & echo answer"]})[0].text == "answer"
    assert ask("command", {"command": ["sh", "-c", "setsid sleep 60 2>/dev/null & echo answer"]})[0].text == "answer"
    assert time.monotonic() - started < 40
