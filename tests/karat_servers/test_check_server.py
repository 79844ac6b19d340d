"""`karat check --server`: where the server comes from, what is printed, JUnit XML and exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

PLANTED = Path(__file__).parents[1] / "karat_servers" / "planted_server.py"

EXPERIMENT = """
name: e
dataset: {{path: q.jsonl}}
agent: {{type: floor}}
judge: {{type: overlap}}
mcp_servers:
  docs: {{type: stdio, command: python, args: ["{planted}"], env: {{KEY: "${{KEY}}"}}}}
  old: {{type: sse, url: "http://127.0.0.1:9/sse"}}
conditions:
  a: {{mcp_servers: [docs]}}
  b: {{mcp_servers: [old]}}
"""


def test_a_sound_server_as_a_table(karat, golden):
    done = karat("check", "--server", "--", sys.executable, PLANTED)
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if line[8:21].strip() not in ("ping", "calls.results", "shutdown")]
    lines[0] = lines[0].partition(" ")[2]
    golden("cli/check-server-sound.txt", "\n".join(lines) + "\n")


def test_a_fault_is_exit_code_1_with_advice_and_in_the_junit_file(karat, here):
    done = karat("check", "--server", "--junit", "checks.xml", "--", "python", PLANTED, "bad-name")
    assert done.code == 1
    assert "failed  tools.names" in done.out
    assert "→ Use letters, digits, _ and - only, up to 64 of them." in done.out
    suite = ElementTree.parse(here / "checks.xml").getroot()[0]
    assert (suite.get("name"), suite.get("failures"), suite.get("errors")) == ("python", "1", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "not 1 to 128 characters from A-Z a-z 0-9 _ - . : 'send letter!'"
    assert int(suite.get("skipped")) == len(list(suite.iter("skipped"))) > 0


def test_a_server_of_an_experiment_by_its_name(karat, here, monkeypatch):
    monkeypatch.setenv("KEY", "hush-hush-hush")
    (here / "q.jsonl").write_text('{"question": "a", "answer": "b"}\n', encoding="utf-8")
    (here / "e.yaml").write_text(EXPERIMENT.format(planted=PLANTED), encoding="utf-8")
    done = karat("check", "--server", "e.yaml", "docs", "--json")
    assert done.code == 0
    assert "hush" not in done.out
    (report,) = done.json["servers"]
    assert {key: report[key] for key in ("server", "type", "about", "protocol", "tools")} == {
        "server": "docs",
        "type": "stdio",
        "about": "planted 1",
        "protocol": "2025-11-25",
        "tools": 3,
    }
    assert {check["verdict"] for check in report["checks"]} == {"passed", "not_applicable"}
    for name, problem in (("dosc", "Did you mean 'docs'"), ("old", "uses SSE")):
        done = karat("check", "--server", "e.yaml", name)
        assert (done.code, problem.lower() in done.err.lower()) == (2, True)


def test_a_named_call_that_fails_is_a_fault(karat):
    arguments = json.dumps({"text": "a"})
    assert karat("check", "--server", "--call", f"send_letter={arguments}", "--", "python", PLANTED).code == 0
    done = karat("check", "--server", "--call", "send_letter", "--", "python", PLANTED)
    assert done.code == 1
    assert "'send_letter' reported a failure" in done.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "needs one of: FILE [SERVER], --url URL, or -- COMMAND"),
        (("--url", "http://a/mcp", "--", "python"), "needs one of"),
        (("--url", "localhost:8000"), "is not an HTTP address"),
        (("--call", "a={", "--url", "http://a/mcp"), "the arguments of 'a' are not JSON"),
        (("--call", "a=7", "--url", "http://a/mcp"), "must be an object"),
    ],
)
def test_what_cannot_be_checked_is_exit_code_2(karat, arguments, problem):
    done = karat("check", "--server", *arguments)
    assert (done.code, problem in done.err) == (2, True), done.err


def test_a_program_that_does_not_exist(karat):
    done = karat("check", "--server", "--", "no-such-program-at-all")
    assert done.code == 1
    assert "'no-such-program-at-all': No such file or directory" in " ".join(done.out.split())
