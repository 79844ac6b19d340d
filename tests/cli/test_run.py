"""`karat run`."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import textwrap
from pathlib import Path

import pytest


def the_run(here: Path) -> Path:
    (found,) = (here / "results").iterdir()
    return found


def next_commands(done) -> list[list[str]]:
    """What is suggested, as a shell would take it apart."""
    found = [shlex.split(line, comments=True) for line in done.err.partition("Next:\n")[2].splitlines()]
    return [words for words in found if words]


def test_a_run_prints_its_table_its_files_and_what_to_type_next(karat, experiment, here):
    done = karat("run", experiment.name)
    run = the_run(here).relative_to(here)
    assert done.code == 0
    assert "sums" in done.out
    assert "guess" in done.out
    assert f"{run}/" in done.err
    for name in re.findall(r"\w+\.jsonl?|\w+\.yaml", done.err.partition("Next:")[0]):
        assert (here / run / name).is_file()


@pytest.mark.needs_package("karat_viewer")
def test_the_commands_to_type_next_can_be_typed(karat, experiment):
    done = karat("run", experiment.name, "--results", "my results")
    commands = next_commands(done)
    assert [words[1] for words in commands] == ["compare", "report", "view", "report"]
    for words in commands:
        if words[1] == "view":  # it serves until it is stopped
            continue
        again = karat(*words[1:])
        assert again.code == 0, again.err
        assert again.out


@pytest.mark.quick(1)
@pytest.mark.needs_package("karat_viewer")
@pytest.mark.parametrize("found", [True, False], ids=["on the path", "elsewhere"])
def test_the_program_is_called_as_the_shell_finds_it(process, experiment, here, found):
    program = Path(sys.executable).with_name("karat")
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}" if found else "/usr/bin:/bin"
    done = process("run", experiment.name, "--set", f"agent.command=['{sys.executable}', adder.py]", PATH=path)
    assert done.code == 0, done.err
    assert {words[0] for words in next_commands(done)} == {"karat" if found else str(program)}


@pytest.mark.needs_package("karat_viewer")
def test_where_nothing_was_scored_no_comparison_is_suggested(karat, experiment, here):
    (here / "adder.py").write_text("import sys\nsys.exit('out of paper')\n", encoding="utf-8")
    done = karat("run", experiment.name, "--set", "execution.retry.max_attempts=1")
    assert done.code == 3
    assert "max_failures" in done.out
    again, view, _ = next_commands(done)
    assert view[1] == "view"
    assert again[-1] == "--retry-failed"
    assert "--resume" in again


def test_quiet_leaves_standard_error_empty_and_the_result_whole(karat, experiment):
    done = karat("run", experiment.name, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert "factual_adherence" in done.out


def test_json_is_versioned_and_holds_the_summary(karat, experiment, here):
    done = karat("run", experiment.name, "--json", "--quiet")
    found = done.json
    assert {key: found[key] for key in found if key != "summary"} == {
        "format": 1,
        "run": str(the_run(here).relative_to(here)),
        "status": "done",
        "failed": 0,
        "exit_code": 0,
    }
    assert found["summary"]["format"] == 1
    assert found["summary"]["conditions"] == ["guess", "add"]


def test_events_are_lines_of_json_and_nothing_else_is_on_standard_error(karat, experiment):
    done = karat("run", experiment.name, "--events")
    events = [json.loads(line) for line in done.err.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds.count("answer") == 8
    assert kinds.count("score") == 8
    assert set(kinds) == {"answer", "score", "progress"}
    assert kinds[-1] == "progress"


def test_selections_choose_trials_and_settings_lie_over_the_file(karat, experiment):
    chosen = ("--only-sample", "q2", "--only-sample", "q4", "--only-condition", "add")
    done = karat("run", experiment.name, *chosen, "--set", "execution.num_repetitions=2", "--json", "-q")
    summary = done.json["summary"]
    assert (summary["samples"], summary["conditions"], summary["repetitions"]) == (2, ["add"], 2)
    assert karat("run", experiment.name, "--limit", "1", "--json", "-q").json["summary"]["samples"] == 1


@pytest.mark.needs_package("karat_viewer")
def test_a_failed_trial_ends_the_run_with_3_and_says_how_to_go_on(karat, experiment, here):
    adder = here / "adder.py"
    right = adder.read_text(encoding="utf-8")
    adder.write_text(
        right.replace("task =", "sys.exit('out of paper') if sys.argv[1:] else 0\ntask ="), encoding="utf-8"
    )
    adder.write_text(right + "\nif '3 + 3' in task['question']: sys.exit('out of paper')\n", encoding="utf-8")
    done = karat("run", experiment.name, "--set", "execution.retry.max_attempts=1", "--set", "execution.max_failures=9")
    assert done.code == 3
    assert "out of paper" in done.out
    again = next(words for words in next_commands(done) if "--retry-failed" in words)
    adder.write_text(right, encoding="utf-8")
    mended = karat(*again[1:], "--json")
    assert mended.code == 0
    assert mended.json["summary"]["total"]["ledger"]["scored"] == 8


def test_resume_asks_only_what_is_missing(karat, experiment):
    first = karat("run", experiment.name, "--limit", "2", "--json", "-q").json
    rest = karat("run", experiment.name, "--resume", first["run"], "--events")
    answers = [json.loads(line) for line in rest.err.splitlines() if '"answer"' in line]
    assert rest.code == 0
    assert sorted((one["sample"], one["condition"]) for one in answers) == [
        ("q3", "add"), ("q3", "guess"), ("q4", "add"), ("q4", "guess"),
    ]  # fmt: skip


@pytest.mark.needs_package("karat_viewer")
def test_after_a_selection_the_rest_is_suggested_and_a_warning_says_that_it_is_missing(karat, experiment):
    first = karat("run", experiment.name, "--limit", "2", "--json", "-q").json
    second = karat("run", experiment.name, "--resume", first["run"], "--only-condition", "add")
    assert second.code == 0
    assert "2 trials not run, because the last part was a selection" in second.out
    again = next_commands(second)[0]
    assert again[1:] == ["run", experiment.name, "--resume", first["run"]]
    assert karat(*again[1:], "--json").json["summary"]["total"]["ledger"]["scored"] == 8


def test_a_changed_experiment_is_not_resumed(karat, experiment):
    first = karat("run", experiment.name, "--limit", "1", "--json", "-q").json
    refused = karat("run", experiment.name, "--resume", first["run"], "--set", "conditions.add.system_prompt=Sum up.")
    assert refused.code == 2
    assert refused.out == ""
    assert "conditions.add.system_prompt" in refused.err


def test_nothing_is_on_disk_before_the_file_is_right(karat, experiment, here):
    experiment.write_text(experiment.read_text(encoding="utf-8").replace("overlap", "overlpa"), encoding="utf-8")
    done = karat("run", experiment.name)
    assert done.code == 2
    assert "did you mean 'overlap'?" in done.err
    assert not (here / "results").exists()


def test_retry_failed_without_a_run_is_refused(karat, experiment):
    done = karat("run", experiment.name, "--retry-failed")
    assert done.code == 2
    assert "--resume" in done.err


def test_what_a_python_agent_prints_does_not_mix_with_the_result(process, experiment, here):
    (here / "chatty.py").write_text(
        "def query(user_query, *_):\n    print('hello')\n    return '4'\n", encoding="utf-8"
    )
    agent = ("--set", "agent={type: python, target: 'chatty:query'}")
    done = process("run", experiment.name, *agent, "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "done"
    assert done.err.count("hello") == 8


CHATTY = """
import logging, sys
def query(user_query, *_):
    print("\\x1b[31mhel", end="")
    print("lo\\x1b[0m")
    print("\\x1b]0;title\\x07to stderr", file=sys.stderr)
    logging.getLogger("agent").warning("logged")
    return "4"
"""


def test_what_a_python_agent_prints_is_an_event_among_events(process, experiment, here):
    (here / "chatty.py").write_text(CHATTY, encoding="utf-8")
    done = process("run", experiment.name, "--set", "agent={type: python, target: 'chatty:query'}", "--events")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.err.splitlines()]
    printed = [event["text"] for event in events if event["event"] == "output"]
    assert sorted(set(printed)) == ["hello", "logged", "to stderr"]
    assert len(printed) == 24


def test_what_a_python_agent_prints_cannot_steer_the_terminal(process, experiment, here):
    (here / "chatty.py").write_text(CHATTY, encoding="utf-8")
    done = process("run", experiment.name, "--set", "agent={type: python, target: 'chatty:query'}")
    assert done.err.count("hello\n") == done.err.count("to stderr\n") == 8
    assert "\x1b" not in done.err + done.out


def test_a_broken_server_is_told_once_and_costs_its_conditions_only(karat, experiment):
    server = "mcp_servers={gone: {type: stdio, command: python, args: [-c, 'raise SystemExit(\"no index\")']}}"
    lists = ("--set", server, "--set", "conditions.add.mcp_servers=[gone]")
    done = karat("run", experiment.name, *lists)
    assert done.code == 3
    assert done.err.count("these conditions are not run: ") == 1
    assert done.err.index("these conditions are not run: ") < done.err.index("results/")
    ledger = karat("report", "latest", "--json").json["accounts"]
    assert ledger["guess"]["ledger"]["scored"] == 4
    assert ledger["add"]["ledger"]["infrastructure"] == 4
    assert done.out.count("'gone'") == 1
    assert done.out.startswith("add: no answer, see Failures. ")
    assert "\n  add: no score on any metric, so it is compared with nothing\n" in done.out


def test_secrets_do_not_show_in_the_events(karat, experiment, here, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_TOKEN", "correct-horse-battery")
    (here / "adder.py").write_text("import os\nprint('it is', os.environ['TOKEN'])\n", encoding="utf-8")
    settings = ("--set", "agent.env.TOKEN=${KARAT_TEST_TOKEN}", "--set", "secrets=[KARAT_TEST_TOKEN]")
    done = karat("run", experiment.name, *settings, "--events")
    assert "it is ${KARAT_TEST_TOKEN}" in done.err
    everything = done.out + done.err + "".join(path.read_text() for path in the_run(here).iterdir())
    assert "correct-horse" not in everything


@pytest.mark.parametrize("margin", [0, 4])
def test_no_resume_is_offered_for_what_a_decided_run_would_not_ask(karat, here, margin):
    """An answer that fails after 10 of 60 questions; with a difference of 4 points it is decided after 20 or so."""
    rows = [{"question": f"q{number}", "answer": "x"} for number in range(60)]
    (here / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (here / "decides.py").write_text(
        textwrap.dedent(f"""
            from karat.records import Metric
            ASKED = []
            def query(user_query, system_prompt, mcp_servers):
                ASKED.append(user_query)
                if len(ASKED) == 10:
                    raise ValueError("no")
                return str(1 + (len(ASKED) % 3 == 0) + {margin} * (system_prompt == "b"))
            class Scorer:
                metrics = (Metric(name="quality", low=1, high=6),)
                def score(self, sample, answer):
                    return float(answer.text)
        """),
        encoding="utf-8",
    )
    (here / "experiment.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: python, target: 'decides:query'}\n"
        "scorers: ['decides:Scorer']\nconditions: {a: {system_prompt: a}, b: {system_prompt: b}}\n"
        "execution: {num_repetitions: 1, max_concurrent: 1, retry: {max_attempts: 1}, stop: {metric: quality}}\n",
        encoding="utf-8",
    )
    done = karat("run", "experiment.yaml")
    assert done.code == 3
    assert ("Not run, because it was decided" in done.out) == bool(margin)
    assert ("--resume" in done.err) == (not margin)
