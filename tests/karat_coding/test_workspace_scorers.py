"""Scorers that look at the workspace a trial left: files, tests and programs."""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from karat import plugins
from karat.errors import BadOption, JudgeFault
from karat.records import Answer, Reply, Sample, Turn, WorkspaceChanges
from karat.scorers import ScorerSetting
from karat_coding.scorers import command, files, tests
from karat_coding.scorers._junit import BadReport, read_junit
from karat_coding.scorers._programs import ProgramOptions
from karat_coding.workspace import Workspace

SAMPLE = Sample(id="7", position=0, digest="", turns=(Turn(question="q", golden="g"),), metadata={"want": "four"})
CHANGES = WorkspaceChanges(
    file="", sha256="", base="", changed=1, removed=0, bytes=9, added_lines=3, removed_lines=2
)  # fmt: skip
ANSWER = Answer(trial="t", sample="7", condition="a", repetition=0, replies=(Reply(text="r"),), workspace=CHANGES)


@pytest.fixture
def setting(tmp_path: Path) -> ScorerSetting:
    """With a workspace that a trial left; each score gets it afresh."""
    left = tmp_path / "left"
    left.mkdir()

    @contextmanager
    def workspace_of(answer):
        place = tmp_path / f"again-{time.monotonic_ns()}"
        place.mkdir()
        workspace = place / "workspace"
        workspace.mkdir()
        (workspace / "out.json").write_text('{"n": 4}')
        (workspace / "seven.txt").write_text("it is four\n")
        (workspace / "7.txt").write_text("own")
        (workspace / "host").symlink_to("/etc/passwd")
        (workspace / "folder").mkdir()
        for path in left.iterdir():
            path.rename(workspace / path.name)
        yield Workspace(workspace)

    return ScorerSetting(folder=tmp_path, name="named", workspace_of=workspace_of)


def scored(module, options: dict, setting: ScorerSetting):
    scorer = next(getattr(module, name) for name in module.__all__)
    made = scorer(scorer.Options(**options), setting)
    return made.score(SAMPLE, ANSWER)


@pytest.mark.parametrize(
    ("options", "right", "reason"),
    [
        ({"exists": ["seven.txt", "folder", "{{ sample }}.txt"]}, True, None),
        ({"exists": ["seven.txt", "eight.txt"]}, False, "eight.txt is missing"),
        ({"absent": ["eight.txt"]}, True, None),
        ({"absent": ["folder"]}, False, "folder is there"),
        ({"equals": {"seven.txt": "it is {{ metadata.want }}"}}, True, None),
        ({"equals": {"seven.txt": "it is"}}, False, "seven.txt is not 'it is'"),
        ({"contains": {"seven.txt": "four"}}, True, None),
        ({"contains": {"seven.txt": "five"}}, False, "seven.txt does not contain 'five'"),
        ({"contains": {"host": "root"}}, False, "host is a symbolic link, not a regular file"),
        ({"equals": {"host/x": ""}}, False, "host/x is a symbolic link, not a regular file"),
        ({"contains": {"folder": ""}}, False, "folder is a folder, not a regular file"),
        ({"schemas": {"out.json": {"required": ["n"]}}}, True, None),
        ({"schemas": {"out.json": {"required": ["m"]}}}, False, "out.json the whole: 'm' is a required property"),
        ({"schemas": {"seven.txt": {}}}, False, "seven.txt is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ({"max_changed_lines": 5}, True, None),
        ({"max_changed_lines": 4}, False, "5 lines were changed, expected at most 4"),
    ],
)
def test_what_files_must_be(setting, options, right, reason):
    verdict = scored(files, options, setting)
    assert (verdict.values, verdict.reasons) == ({"named": right}, {"named": reason} if reason else {})


LEFT_OUT = (
    ".venv/bin/python3: a link that leads out of the workspace, to '/usr/bin/python3'",
    "pipe: neither a file nor a folder nor a link",
    "seven.txt: 100,000,000 bytes, which would make the changes more than 64,000,000",
    "node_modules: a build or an installation made it",
)
MOSTLY = ("more than 20,000 changed files, or 500,000 in all", "pipe: neither a file nor a folder nor a link")


@pytest.mark.parametrize(
    ("options", "left_out", "right"),
    [
        ({"exists": ["7.txt", "folder"], "absent": ["eight.txt"]}, LEFT_OUT, True),
        ({"exists": ["pipe", ".venv/bin/python3", "seven.txt"]}, LEFT_OUT, True),
        ({"absent": ["pipe"]}, LEFT_OUT, False),
        ({"exists": ["node_modules/x"]}, LEFT_OUT, None),
        ({"absent": ["node_modules/x/y"]}, LEFT_OUT, None),
        ({"contains": {"pipe": "x"}}, LEFT_OUT, None),
        ({"contains": {"seven.txt": "four"}}, LEFT_OUT, None),  # what stands there is of the starting folder
        ({"contains": {"7.txt": "own"}}, LEFT_OUT, True),
        ({"contains": {"7.txt": "own"}}, MOSTLY, True),
        ({"exists": ["eight.txt"]}, MOSTLY, None),
        ({"absent": ["eight.txt"]}, MOSTLY, None),
        ({"exists": ["pipe"]}, MOSTLY, True),
    ],
)
def test_what_could_not_be_kept_matters_only_where_it_is_named(setting, options, left_out, right):
    @contextmanager
    def lacking(answer):
        with setting.workspace_of(answer) as workspace:
            workspace.left_out = left_out
            yield workspace

    changed = msgspec.structs.replace(setting, workspace_of=lacking)
    if right is None:
        with pytest.raises(JudgeFault, match="was is not known, as it was not kept"):
            scored(files, options, changed)
    else:
        assert scored(files, options, changed).values["named"] is right
    if left_out is MOSTLY:
        with pytest.raises(JudgeFault, match="not everything that the trial left could be kept"):
            scored(tests, {"command": "true"}, changed)
    else:
        assert scored(tests, {"command": "true"}, changed).values == {"named": True}


def test_each_expectation_of_files_is_a_metric(setting):
    verdict = scored(files, {"exists": ["no"], "contains": {"seven.txt": "four"}, "changed_lines": True}, setting)
    assert verdict.values == {"exists": False, "contains": True, "named": False, "changed_lines": 5}
    assert verdict.reasons == {"exists": "no is missing", "named": "no is missing"}


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a\nb"])
def test_a_path_out_of_the_workspace_is_refused(path):
    with pytest.raises(ValueError, match="no path within the workspace"):
        files.Files.Options(exists=[path])


PYTHON = [sys.executable, "-c"]
REPORT = (
    '<testsuites><testsuite><testcase classname="m" name="a"/><testcase classname="m" name="b"><failure message="no'
    ' &amp; no"/></testcase><testcase classname="m" name="c"><skipped/></testcase></testsuite></testsuites>'
)
WRITES = f"open('report.xml', 'w').write({REPORT!r})"


@pytest.mark.parametrize(
    ("code", "expected", "share", "reason"),
    [
        pytest.param(WRITES, [], 0.5, "m.b: no & no", id="some fail"),
        pytest.param(WRITES, ["m.a"], 1.0, None, id="those expected pass"),
        pytest.param(WRITES, ["m.a", "m.z"], 0.5, "m.z: did not run", id="one did not run"),
        pytest.param(WRITES, ["m.c"], 0.0, "no test ran", id="skipped"),
        pytest.param("pass", [], 0.0, "there is no report 'report.xml'; the program ended with exit code 0", id="none"),
        pytest.param(
            "import os; os.symlink('/etc/passwd', 'report.xml')", [], 0.0, "there is no report 'report.xml'; the "
            "program ended with exit code 0", id="a link",
        ),
        pytest.param("open('report.xml', 'w').write('<a')", [], 0.0, "the report 'report.xml' is not XML: ", id="torn"),
    ],
)  # fmt: skip
def test_the_share_of_tests_that_pass(setting, code, expected, share, reason):
    verdict = scored(tests, {"command": [*PYTHON, code], "junit": "report.xml", "expected": expected}, setting)
    assert verdict.values == {"named": share, "all_passed": share == 1.0}
    assert verdict.reasons.get("named", "").startswith(reason or "")
    assert bool(verdict.reasons) == (reason is not None)


def test_a_report_that_the_agent_left_is_not_read(setting, tmp_path):
    (tmp_path / "left" / "report.xml").write_text(REPORT)
    verdict = scored(tests, {"command": [*PYTHON, "pass"], "junit": "report.xml"}, setting)
    assert verdict.values["named"] == 0.0


@pytest.mark.parametrize(("code", "passed"), [("0", True), ("3", False)])
def test_without_a_report_the_exit_code_counts(setting, code, passed):
    verdict = scored(tests, {"command": ["sh", "-c", f"echo why >&2; exit {code}"]}, setting)
    assert verdict.values == {"named": passed}
    assert verdict.reasons == ({} if passed else {"named": "the program ended with exit code 3: why"})


def test_hidden_tests_are_laid_over_what_the_agent_left(setting, tmp_path):
    (tmp_path / "hidden" / "folder").mkdir(parents=True)
    (tmp_path / "hidden" / "test.sh").write_text("grep -q hidden folder/in")
    (tmp_path / "hidden" / "folder" / "in").write_text("hidden")
    (outside := tmp_path / "outside").write_text("kept")
    (tmp_path / "left" / "test.sh").symlink_to(outside)
    assert scored(tests, {"command": "sh test.sh", "add": "hidden"}, setting).values == {"named": True}
    assert outside.read_text() == "kept"
    with pytest.raises(BadOption, match="add: 'gone' No such file"):
        scored(tests, {"command": "true", "add": "gone"}, setting)


def test_every_process_has_ended_also_one_that_left_the_session(setting, tmp_path):
    code = f"setsid sleep 50 & echo $! > {tmp_path}/pid; sleep 50"
    verdict = scored(tests, {"command": ["sh", "-c", code], "timeout_seconds": 1}, setting)
    assert verdict.reasons == {"named": "the program did not end within 1 seconds"}
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("code", "options", "reason"),
    [
        ("while True: print('x' * 10**6)", {}, "wrote more than 10000000 bytes"),
        ("bytearray(10**9)", {"memory_mb": 256}, "MemoryError"),
        ("open('big', 'wb').truncate(2**40)", {}, "ended with exit code"),
    ],
    ids=["output", "memory", "file"],
)
def test_a_program_is_limited(setting, code, options, reason):
    verdict = scored(tests, {"command": [*PYTHON, code], **options}, setting)
    assert verdict.values == {"named": False}
    assert reason in verdict.reasons["named"]


def test_a_program_sees_no_variable_of_the_run(setting, monkeypatch):
    monkeypatch.setenv("RUN_SECRET", "s3cr3t")
    code = "import json, os; print(json.dumps({'n': len(os.environ), 'secret': 'RUN_SECRET' in os.environ}))"
    metrics: dict[str, dict] = {"n": {}, "secret": {}}
    verdict = scored(command, {"command": [*PYTHON, code], "env": {"MORE": "1"}, "metrics": metrics}, setting)
    assert verdict.values["secret"] is False
    assert verdict.values["n"] <= 7  # PATH, LANG, HOME, TMPDIR, MORE, and what the shell and Python add


def test_a_program_gives_metrics_of_what_it_is_told(setting):
    code = "import json, sys; t = json.load(sys.stdin); print(json.dumps({'a': len(t['replies']), 'b': t['golden'] == ['g'], 'c': None}))"  # noqa: E501 -- one program
    options = {"command": [*PYTHON, code], "metrics": {"a": {"low": 0}, "b": {"high": 1}, "c": {}}}
    assert scored(command, options, setting).values == {"a": 1, "b": True, "c": None}
    made = command.Command(command.Command.Options(**options), setting)
    assert [(one.name, one.low, one.high) for one in made.metrics] == [
        ("a", 0, None),
        ("b", None, 1),
        ("c", None, None),
    ]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("exit 1", "program_failed"),
        ("echo no", "bad_output"),
        ('echo \'{"a": "x"}\'', "bad_output"),
        ("echo 3", "bad_output"),
    ],
)
def test_a_program_that_gives_no_metrics_gives_no_score(setting, line, kind):
    with pytest.raises(JudgeFault) as caught:
        scored(command, {"command": ["sh", "-c", line], "metrics": {"a": {}}}, setting)
    assert caught.value.kind == kind


def test_a_program_that_is_not_there_is_the_scorers_fault(setting):
    with pytest.raises(JudgeFault, match="not found"):
        scored(tests, {"command": "no-such-program-at-all"}, setting)


LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><testsuite><testcase name="&c;"/></testsuite>'
FILE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&b;"/></testsuite>'


@pytest.mark.parametrize("report", [LAUGHS, FILE, "<a>" * 100, "", "no", '<?xml version="1.0" encoding="x"?><a/>'])
def test_a_hostile_report_is_refused(report):
    with pytest.raises(BadReport):
        read_junit(report.encode())


def test_a_test_that_ran_twice_passed_if_it_always_did():
    report = '<s><testcase name="a"><error/></testcase><testcase name="a"/><testcase name="b"/><testcase name="b"/></s>'
    assert read_junit(report.encode()) == {"a": "error", "b": "passed"}


def test_the_files_of_the_host_are_not_read(setting):
    assert os.path.exists("/etc/passwd")
    verdict = scored(files, {"schemas": {"host": True}}, setting)
    assert verdict.reasons == {"named": "host is a symbolic link, not a regular file"}


def test_scorers_whose_options_name_a_program_say_so():
    found = {name: plugins.find("scorers", name) for name in plugins.names("scorers")}
    programs = {name for name, plugin in found.items() if issubclass(plugins.options_model(plugin), ProgramOptions)}
    assert programs == {name for name, plugin in found.items() if getattr(plugin, "runs_programs", False)}
    assert programs == {"tests", "command"}
