"""Experiments as tests: what the fixture and the marker `karat` do in a suite of pytest."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy  # noqa: F401 - compiled modules cannot be loaded twice, and pytester forgets what a suite loads
import pytest
import scipy.special
import scipy.stats  # noqa: F401 - likewise

import karat.analysis.gate
import karat.execution  # noqa: F401 - likewise

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent
# A checkout that was installed before the plug-in was there does not announce it.
PLUGIN = (
    () if any(point.name == "karat" for point in importlib.metadata.entry_points(group="pytest11"))
    else ("-p", "karat.pytest_plugin")
)  # fmt: skip

SUITE = """
import pytest

ROWS = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(30)]
KEYS = {
    "dataset": ROWS, "judge": {"type": "overlap"}, "scorers": ["equals"], "execution": {"num_repetitions": 1},
}

def adder(question):
    return str(sum(int(word) for word in question.removesuffix("?").split() if word.isdigit()))

def guess(question):
    return "7"

"""


@pytest.fixture
def suite(pytester):
    """`suite("def test_x(karat): …")`: the outcome of a suite with these tests."""

    def run(body: str, *options: str):
        pytester.makepyfile(SUITE + body)
        return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", *options)

    return run


def test_a_function_that_keeps_its_thresholds_passes(suite, pytester):
    done = suite("""
def test_adder(karat):
    assert karat(adder, min={"equals": 0.8}, max={"failed": 0}, **KEYS).verdict == "passed"
""")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines([
        "*= karat =*",
        "*::test_adder  passed  0.0 %* failed at most 0",
        "*::test_adder  passed  100.0 % [[]90.5 %, 100.0 %[]]  equals at least 0.8 under agent",
    ])  # fmt: skip
    (folder,) = (pytester.path / "results" / "tests").iterdir()
    assert folder.name.startswith("test-adder-")  # what was asked is kept


def test_one_that_misses_them_fails_with_the_table(suite):
    done = suite("""
@pytest.mark.karat(guess, min={"equals": 0.8}, **KEYS)
def test_guess():
    raise AssertionError("the test itself is not run")
""")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["Gate failed: 1 failed", "*equals at least 0.8  agent*failed*"])
    done.stdout.no_fnmatch_line("*the test itself is not run*")
    done.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("undecided", "outcome"),
    [("", {"failed": 1}), (", undecided='skip'", {"skipped": 1}), (", undecided='xfail'", {"xfailed": 1})],
)
def test_an_undecided_threshold_is_not_green(suite, undecided, outcome):
    done = suite(f"""
def test_adder(karat):
    karat(adder, min={{"equals": 0.99}}{undecided}, **KEYS)
""")
    done.assert_outcomes(**outcome)
    done.stdout.fnmatch_lines(["*::test_adder  undecided  100.0 %*"])


def test_the_configuration_says_what_undecided_does(suite, pytester):
    pytester.makeini("[pytest]\nkarat_undecided = skip\nkarat_results = kept\n")
    suite('def test_adder(karat):\n    karat(adder, min={"equals": 0.99}, **KEYS)\n').assert_outcomes(skipped=1)
    assert len(list((pytester.path / "kept").iterdir())) == 1


def test_an_experiment_file_is_found_beside_the_test_and_its_own_thresholds_decide(suite, pytester):
    (pytester.path / "questions.jsonl").write_text('{"question": "1 + 1?", "answer": "2"}\n' * 1, encoding="utf-8")
    (pytester.path / "mine.yaml").write_text(
        "dataset: {path: questions.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n"
        "gate: {max: {failed: 0}}\n",
        encoding="utf-8",
    )
    done = suite("""
@pytest.mark.karat("mine.yaml")
def test_mine():
    pass

@pytest.mark.karat("mine.yaml", max={"failed": -1})
def test_stricter():
    pass
""")
    done.assert_outcomes(passed=1, failed=1)


def test_a_drop_is_measured_from_the_last_run(suite):
    done = suite("""
@pytest.mark.parametrize("agent", [adder, guess])
def test_agent(karat, agent):
    karat(agent, name="agent", max_drop={"equals": 0.5}, baseline="latest:agent", undecided="skip", **KEYS)
""")
    done.assert_outcomes(skipped=1, failed=1)  # the first has no run before it
    done.stdout.fnmatch_lines(["*drops by at most 0.5*failed*100.0*"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("karat(adder, min={'equal': 1}, **KEYS)", "*no metric is called 'equal' (did you mean 'equals'[?])*"),
        ("karat(adder, **KEYS)", "*gate: names no threshold*"),
        ("karat(adder, min={'equals': 1})", "*dataset*"),
        ("karat('nowhere.yaml', min={'equals': 1})", "*there is no such file*"),
        ("karat('nowhere.yaml', dataset=ROWS, min={'equals': 1})", "*an experiment has its own keys*"),
        ("karat(adder, min={'equals': 1}, undecided='pass', **KEYS)", "*must be fail, skip or xfail, got 'pass'*"),
    ],
)
def test_what_cannot_be_run_fails_before_anything_is_asked(suite, pytester, call, message):
    done = suite(f"def test_wrong(karat):\n    {call}\n")
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([message])
    assert not (pytester.path / "results").exists()


@pytest.mark.slow
def test_the_table_comes_from_several_processes(pytester):
    pytester.makepyfile(
        SUITE
        + """
@pytest.mark.parametrize("agent", [adder, guess])
def test_agent(karat, agent):
    karat(agent, min={"equals": 0.8}, **KEYS)
"""
    )
    done = pytester.runpytest_subprocess(*PLUGIN, "-n", "2", "--junitxml", "out.xml")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*= karat =*", "*adder]*passed*", "*guess]*failed*"])
    assert 'value="failed | 0.0 % [0.0 %, 9.5 %] | equals at least 0.8 under agent"' in (
        pytester.path / "out.xml"
    ).read_text(encoding="utf-8")


def test_a_suite_without_it_loads_nothing_of_karat_but_the_plug_in(tmp_path):
    code = (
        "import sys, pytest\n"
        "pytest.main(['--collect-only', '-q', '-p', 'karat.pytest_plugin', '-p', 'no:hypothesispytest'])\n"
        "print(*sys.modules)"
    )
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    ours = {name for name in loaded if name.partition(".")[0] == "karat"}
    assert ours == {"karat", "karat.lazy", "karat.pytest_plugin"}
    assert not loaded & {"numpy", "scipy", "msgspec", "pydantic", "asyncio"}


def test_the_plug_in_is_announced():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"karat": "karat.pytest_plugin"}
