"""`karat run`."""

from __future__ import annotations

import json
import re
from pathlib import Path


def the_run(here: Path) -> Path:
    (found,) = (here / "results").iterdir()
    return found


def test_a_run_prints_its_table_its_files_and_what_to_type_next(karat, experiment, here):
    done = karat("run", experiment.name)
    run = the_run(here).relative_to(here)
    assert done.code == 0
    assert "sums" in done.out
    assert "guess" in done.out
    assert f"{run}/" in done.err
    for name in re.findall(r"\w+\.jsonl?|\w+\.yaml", done.err.partition("Next:")[0]):
        assert (here / run / name).is_file()


def test_the_commands_to_type_next_can_be_typed(karat, experiment):
    done = karat("run", experiment.name)
    commands = [line.partition("#")[0].split() for line in done.err.partition("Next:")[2].splitlines()]
    commands = [words for words in commands if words]
    assert [words[:2] for words in commands] == [["karat", "compare"], ["karat", "report"]]
    for words in commands:
        again = karat(*words[1:])
        assert again.code == 0, again.err
        assert again.out


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
    assert set(kinds) == {"answer", "score"}


def test_selections_choose_trials_and_settings_lie_over_the_file(karat, experiment):
    chosen = ("--only-sample", "q2", "--only-sample", "q4", "--only-condition", "add")
    done = karat("run", experiment.name, *chosen, "--set", "execution.num_repetitions=2", "--json", "-q")
    summary = done.json["summary"]
    assert (summary["samples"], summary["conditions"], summary["repetitions"]) == (2, ["add"], 2)
    assert karat("run", experiment.name, "--limit", "1", "--json", "-q").json["summary"]["samples"] == 1


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
    again = next(line for line in done.err.splitlines() if "--retry-failed" in line).partition("#")[0].split()
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


def test_secrets_do_not_show_in_the_events(karat, experiment, here, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_TOKEN", "correct-horse-battery")
    (here / "adder.py").write_text("import os\nprint('it is', os.environ['TOKEN'])\n", encoding="utf-8")
    settings = ("--set", "agent.env.TOKEN=${KARAT_TEST_TOKEN}", "--set", "secrets=[KARAT_TEST_TOKEN]")
    done = karat("run", experiment.name, *settings, "--events")
    assert "it is ${KARAT_TEST_TOKEN}" in done.err
    everything = done.out + done.err + "".join(path.read_text() for path in the_run(here).iterdir())
    assert "correct-horse" not in everything
