"""Exit codes, and what is said on the way out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import karat as package
from karat.cli.ending import Ending, Exit
from karat.errors import BadOption, KaratError

OURS = "karat: a bug in karat: {}; --debug shows where\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(BadOption("--limit", "must be at least 1"), 2, "--limit: must be at least 1\n", id="operator"),
        pytest.param(KaratError("lost"), 70, OURS.format("KaratError: lost"), id="ours"),
        pytest.param(KeyError("x"), 70, OURS.format("KeyError: 'x'"), id="bug"),
        pytest.param(
            RuntimeError("two\nlines \x1b[31mred"), 70, OURS.format("RuntimeError: two lines red"), id="clean"
        ),
        pytest.param(KeyboardInterrupt(), 130, "stopped\n", id="Ctrl-C"),
        pytest.param(click.Abort(), 130, "stopped\n", id="click's abort"),
        pytest.param(click.UsageError("no"), 2, "Error: no\n", id="click's usage"),
        pytest.param(PermissionError(13, "Permission denied", "/x"), 2, "karat: /x: Permission denied\n", id="a file"),
    ],
)
def test_whatever_ends_a_command_becomes_a_code_and_a_sentence(error, code, said, capsys):
    ending = Ending()
    with ending:
        raise error
    assert ending.code == code
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", said)


def test_debug_shows_the_traceback(capsys):
    ending = Ending()
    ending.debug = True
    with ending:
        raise KeyError("deep")
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert "test_ending.py" in told


def test_nothing_that_is_told_holds_a_secret(capsys):
    ending = Ending()
    ending.secrets["RAG_KEY"] = "correct-horse-battery"
    ending.debug = True
    with ending:
        raise BadOption("--set", "no server at correct-horse-battery")
    told = capsys.readouterr().err
    assert "no server at ${RAG_KEY}" in told
    assert "Traceback" in told
    assert "correct-horse" not in told


def test_a_command_keeps_the_secrets_of_its_experiment_to_itself(karat, experiment, here, monkeypatch):
    monkeypatch.setenv("KARAT_TEST_TOKEN", "correct-horse-battery")
    (here / "bad.py").write_text("import os\nraise ImportError(os.environ['KARAT_TEST_TOKEN'])\n", encoding="utf-8")
    settings = ("--set", "secrets=[KARAT_TEST_TOKEN]", "--set", "agent={type: python, target: 'bad:query'}")
    done = karat("run", experiment.name, *settings, "--debug")
    assert done.code == 2
    assert "correct-horse" not in done.err
    assert "${KARAT_TEST_TOKEN}" in done.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("--version",), ("list", "scorers"), ("list", "scorers", "--json")])
def test_a_full_device_is_told_in_one_line(here, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "karat", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "karat: the output could not be written: No space left on device\n")


def test_the_codes_of_the_errors_are_those_of_the_commands():
    assert {error.exit_code for error in (KaratError, BadOption)} == {Exit.KARAT_FAULT, Exit.CHANGE_SOMETHING}


def test_the_version(karat):
    assert karat("--version").out == f"karat {package.__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("list", "-h")])
def test_help_is_a_result(karat, arguments):
    done = karat(*arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Usage: karat")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("rnu", "experiment.yaml"), "did you mean 'run'?"),
        (("run", "experimnt.yaml"), "did you mean 'experiment.yaml'?"),
        (("run",), "Missing argument 'FILE'"),
        (("run", "experiment.yaml", "--limit", "0"), "--limit"),
        (("run", "experiment.yaml", "--limt", "1"), "--limit"),
        (("run", "experiment.yaml", "--only-condition", "ad"), "did you mean 'add'?"),
        (("run", "experiment.yaml", "--only-sample", "q9"), "no sample is called 'q9'"),
        (("run", "experiment.yaml", "--set", "execution.max_concurent=2"), "did you mean 'max_concurrent'?"),
        (("run", "experiment.yaml", "--env-file", "no.env"), "no.env"),
        (("run", "experiment.yaml", "--resume", "nothing"), "no run in results"),
        (("report", "latest"), "no run in results"),
        (("report", "."), "no run.json"),
        (("compare", "one", "two"), "one: there is no such file or folder"),
        (("score", "nope.csv"), "nope.csv: there is no such file or folder"),
        (("compare", ":a", ":b"), "write RUN:a"),
        (("list", "agnets"), "agents"),
        (("list", "agents", "flor"), "did you mean 'floor'?"),
        (("init", "goldn"), "did you mean 'golden'?"),
        (("score", "questions.jsonl"), "--dataset"),
        (("score", "nothing"), "no run in results"),
    ],
)  # fmt: skip
def test_what_you_must_change_ends_with_2_and_says_how(karat, experiment, arguments, hint):
    done = karat(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert hint in done.err
    assert "Traceback" not in done.err


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "words",
    [
        ("report", "latest", "--json"),
        ("report", "latest", "--to", "csv"),
        ("report", "latest", "--to", "html"),
        ("report", "latest"),
        ("query", "latest", "SELECT * FROM range(20000)", "--json", "-q"),
        ("query", "latest", "SELECT * FROM range(20000)", "--to", "csv", "-q"),
        ("query", "latest", "SELECT repeat('x', 200) FROM range(2000)", "-q"),
        ("query", "latest"),
        ("list", "scorers"),
        ("list", "scorers", "--json"),
        ("check", "--lint", "questions.jsonl"),
        ("run", "experiment.yaml", "--json", "-q"),
        ("--help",),
        ("--version",),
    ],
    ids=" ".join,
)
@pytest.mark.needs_package("karat_query", cases="query")
def test_a_reader_that_has_gone_ends_a_command_quietly_with_141(experiment, results, here, words):
    shutil.copytree(results, here / "results")
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        done = subprocess.run(
            [sys.executable, "-m", "karat", *words], cwd=here, stdout=nobody, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.needs_package("karat_query")
def test_what_was_read_before_the_reader_went_is_whole(process, experiment, here):
    process("run", experiment.name)
    reading = f"{sys.executable} -m karat query latest 'SELECT * FROM range(200000)' --to csv -q | head -n 3; "
    reading += 'echo "${PIPESTATUS[0]}"'
    done = subprocess.run(["bash", "-c", reading], cwd=here, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("range\n0\n1\n141\n", "")


def test_talk_and_result_may_go_to_the_same_reader_that_has_gone(karat, experiment, here):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        command = [sys.executable, "-m", "karat", "run", experiment.name]
        done = subprocess.run(command, cwd=here, stdout=nobody, stderr=nobody, check=False)
    assert done.returncode == 141
    (run,) = (here / "results").iterdir()
    assert (run / "journal.jsonl").read_text(encoding="utf-8").count('"reason":"done"') == 1


def test_a_reader_of_the_talk_that_goes_away_does_not_end_the_run(experiment, here):
    running = f"{sys.executable} -m karat run {experiment.name} --events 2>&1 >/dev/null | head -n 1"
    subprocess.run(running, shell=True, cwd=here, capture_output=True, check=True)
    (run,) = (here / "results").iterdir()
    events = (run / "journal.jsonl").read_text(encoding="utf-8")
    assert events.count('{"event":"answer"') == 8
    assert events.count('"reason":"done"') == 1


def test_a_terminal_that_cannot_show_a_sign_gets_a_question_mark(process, experiment):
    done = process("run", experiment.name, PYTHONIOENCODING="iso-8859-1")
    assert done.code == 0
    assert "????" in done.out


def test_a_results_folder_that_cannot_be_written_is_your_fault(karat, experiment, here):
    Path(here / "results").write_text("a file", encoding="utf-8")
    done = karat("run", experiment.name)
    assert done.code == 2
    assert "results" in done.err


def test_what_an_agent_wrote_and_never_closed_is_on_disk(process, experiment, here):
    (here / "keeper.py").write_text(
        "class Log:\n"
        "    def __init__(self, name):\n"
        "        self.me, self.file = self, open(name, 'w')\n"
        "\n"
        "LOG, PLAIN = Log('in-a-cycle.txt'), open('plain.txt', 'w')\n"
        "\n"
        "def query(user_query, system_prompt, mcp_servers):\n"
        "    print('asked', file=LOG.file)\n"
        "    print('asked', file=PLAIN)\n"
        "    return 'It is 2.'\n"
    )
    command = "{type: command, command: [python, adder.py]}"
    text = experiment.read_text(encoding="utf-8").replace(command, "{type: python, target: 'keeper:query'}")
    experiment.write_text(text, encoding="utf-8")
    assert process("run", experiment, "--quiet").code == 0
    assert (here / "in-a-cycle.txt").read_text() == (here / "plain.txt").read_text() == "asked\n" * 8
