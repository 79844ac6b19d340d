"""`karat gate`: thresholds on a run, from the file and the command line."""

from __future__ import annotations

import json
import shutil
from xml.etree import ElementTree

import pytest
from tests.running_commands import write_experiment

from karat.__main__ import main

FILE_GATE = """
gate:
  min: {add.factual_adherence: 1.5}
  max: {failed: 0.1}
"""


def write_gated(folder):
    """The experiment, with thresholds of its own."""
    experiment = write_experiment(folder)
    experiment.write_text(experiment.read_text(encoding="utf-8") + FILE_GATE, encoding="utf-8")
    return experiment


@pytest.fixture(scope="module")
def gated_results(tmp_path_factory):
    """The results of that experiment, made once."""
    folder = tmp_path_factory.mktemp("gated")
    assert main(["run", str(write_gated(folder)), "--results", str(folder / "results"), "--quiet"]) == 0
    return folder / "results"


@pytest.fixture
def with_gate(gated_results, here):
    """An experiment with thresholds of its own, run."""
    shutil.copytree(gated_results, here / "results")
    return write_gated(here)


def test_passed_failed_and_undecided_have_an_exit_code_each(karat, run):
    assert karat("gate", run, "--max", "failed=0").code == 0
    assert karat("gate", run, "--min", "guess.factual_adherence=4.9").code == 1
    assert karat("gate", run, "--min", "add.factual_adherence=4.9").code == 4


def test_the_thresholds_of_the_file_count_and_options_replace_them(karat, with_gate):
    done = karat("gate", "latest", "--json")
    assert done.code == 0
    names = [(check["threshold"]["name"], check["threshold"]["value"]) for check in done.json["checks"]]
    assert names == [("add.factual_adherence", 1.5), ("failed", 0.1)]
    done = karat("gate", "latest", "--json", "--max", "failed=0.5", "--max", "cost_usd=1")
    names = [(check["threshold"]["name"], check["threshold"]["value"]) for check in done.json["checks"]]
    assert names == [("add.factual_adherence", 1.5), ("failed", 0.5), ("cost_usd", 1.0)]


def test_the_newest_other_run_is_the_baseline(karat, with_gate, here):
    first = karat("gate", "latest", "--max-drop", "add.factual_adherence=1", "--baseline", "latest:sums")
    assert first.code == 4
    assert "no earlier run of 'sums' in results to compare with" in " ".join(first.out.split())
    assert karat("run", with_gate, "-q").code == 0
    done = karat("gate", "latest", "--max-drop", "add.factual_adherence=4", "--baseline", "latest", "--json")
    assert done.code == 0
    older = [json.loads(path.read_text(encoding="utf-8"))["run"] for path in here.glob("results/*/run.json")]
    assert done.json["baseline"] in older
    assert done.json["baseline"] != done.json["run"]


def test_a_run_over_other_questions_is_no_baseline(karat, with_gate, here):
    questions = here / "questions.jsonl"
    questions.write_text(questions.read_text(encoding="utf-8").replace("It is 2.", "It is two."), encoding="utf-8")
    assert karat("run", with_gate, "-q").code == 0
    done = karat("gate", "latest", "--max-drop", "factual_adherence=4", "--baseline", "latest:sums")
    assert done.code == 4
    assert "(left out: 1 over another dataset, of a shard, or not finished)" in " ".join(done.out.split())


@pytest.mark.needs_package("karat_scale")
def test_a_shard_is_no_baseline_and_a_merged_run_is_newer_than_its_parts(karat, with_gate, here):
    for shard in ("1/2", "2/2"):
        assert karat("run", with_gate, "-q", "--results", "shards", "--shard", shard).code == 0
    merged = karat("runs", "merge", "shards", "--results", "shards").out.strip().rpartition("/")[2]
    assert karat("report", "latest", "--results", "shards", "--to", "json").json["run"] == merged[-8:]
    done = karat("gate", merged, "--max-drop", "factual_adherence=4", "--baseline", "latest", "--results", "shards")
    assert done.code == 4
    assert "(left out: 2 over another dataset, of a shard, or not finished)" in " ".join(done.out.split())
    assert karat("compare", "--history", "shards", "--json").json["runs"] == 1


def test_a_folder_can_be_the_baseline(karat, run, experiment, here):
    (here / "artifact").mkdir()
    shutil.move(here / run, here / "artifact" / "run")
    assert karat("run", experiment, "-q").code == 0
    done = karat("gate", "latest", "--max-drop", "factual_adherence=4", "--baseline", "artifact")
    assert done.code == 0


def test_a_run_compared_with_itself_is_a_fault(karat, run, here):
    shutil.copytree(here / run, here / "artifact" / "run")
    for baseline in (run, "artifact"):
        done = karat("gate", run, "--max-drop", "factual_adherence=4", "--baseline", baseline)
        assert (done.code, done.out) == (2, "")
        assert "is the run itself: name an earlier run" in done.err


BOT = """
import os

def ask(question, system_prompt):
    n = int(question.split()[-1].rstrip("?"))
    return f"The code of item {n} is {n * 7919}." if n >= int(os.environ["BAD"]) else "No idea."
"""


@pytest.fixture
def codes(here):
    """40 questions, and an agent that cannot answer the first BAD of them."""
    (here / "bot.py").write_text(BOT, encoding="utf-8")
    rows = [
        {"question": f"What is the code of item {n}?", "answer": f"The code of item {n} is {n * 7919}."}
        for n in range(40)
    ]
    (here / "q.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    lines = [
        "name: codes",
        "dataset: {path: q.jsonl}",
        'agent: {type: python, target: "bot:ask"}',
        "judge: {type: overlap}",
        "conditions: {only: {system_prompt: x}}",
    ]
    (here / "codes.yaml").write_text("\n".join(lines), encoding="utf-8")
    return "codes.yaml"


DROP = ("--max-drop", "factual_adherence=0.02", "--baseline", "latest")


@pytest.fixture
def gated(karat, codes, monkeypatch):
    """Runs the agent, and gates the run."""

    def run(bad, *options):
        monkeypatch.setenv("BAD", str(bad))
        assert karat("run", codes, "-q").code == 0
        return karat("gate", "latest", *(options or DROP), "--json")

    return run


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "code"), [(20, 1), (2, 4)], ids=["failed", "undecided"])
def test_a_job_that_did_not_pass_does_not_pass_when_it_is_run_again(karat, gated, bad, code):
    first, second, again, good = (gated(number) for number in (0, bad, bad, 0))
    assert [done.code for done in (first, second, again, good)] == [4, code, code, 0]
    assert [done.json["baseline"] for done in (first, second, again, good)] == [None, *[first.json["run"]] * 3]
    assert good.json["checks"][0]["reason"] == "unchanged: every answer is the baseline's, byte by byte"
    alone = karat("gate", "latest", "--max-drop", "factual_adherence=4", "--baseline", "latest:other")
    assert "no earlier run of 'other'" in " ".join(alone.out.split())


def test_an_unchanged_agent_passes_a_drop_with_any_number_of_questions(karat, codes, monkeypatch):
    monkeypatch.setenv("BAD", "1")
    for _ in range(2):
        assert karat("run", codes, "-q", "--limit", "3").code == 0
    (check,) = karat("gate", "latest", *DROP, "--json").json["checks"]
    assert (check["verdict"], check["questions"], check["needed"]) == ("passed", 3, None)
    monkeypatch.setenv("BAD", "0")  # one answer differs, for the better
    assert karat("run", codes, "-q", "--limit", "3").code == 0
    (check,) = karat("gate", "latest", *DROP, "--json").json["checks"]
    assert check["verdict"] == "undecided"


def test_only_the_newest_outcome_of_each_threshold_counts(karat, gated):
    first = gated(0).json["run"]
    failed = gated(20).json["run"]
    assert karat("gate", failed, "--max", "failed=0").code == 0  # another threshold does not hide the drop
    assert gated(0).json["baseline"] == first
    newest = gated(20).json["run"]
    assert karat("gate", newest, "--max-drop", "factual_adherence=4", "--baseline", first).code == 0
    assert gated(0).json["baseline"] == newest
    assert karat("runs", "verify", newest).code == 0


def test_a_run_folder_that_cannot_be_written_is_gated_with_a_warning(karat, run, here):
    (here / run / "gate.jsonl").mkdir()
    done = karat("gate", run, "--max", "failed=0")
    assert done.code == 0
    assert "the outcome is not kept in the run folder" in " ".join(done.out.split())


@pytest.mark.parametrize("damage", ["no line of karat's\n", '{"event":"head","format":99,"run":"x"}\n'])
def test_a_run_whose_outcomes_cannot_be_read_is_no_baseline(karat, gated, here, damage):
    first, second = gated(0).json["run"], gated(0).json["run"]
    (folder,) = here.glob(f"results/*{second}")
    (folder / "gate.jsonl").write_text(damage, encoding="utf-8")
    assert gated(0).json["baseline"] == first
    assert karat("runs", "verify", second).code != 0


def test_an_undecided_gate_may_be_a_warning(karat, run):
    options = ("gate", run, "--min", "add.factual_adherence=4.9", "--undecided")
    assert [karat(*options, what).code for what in ("fail", "warn")] == [4, 0]
    assert karat("gate", run, "--min", "guess.factual_adherence=4.9", "--undecided", "warn").code == 1


def test_reports_are_written_as_files(karat, run, here):
    options = (
        "--min",
        "factual_adherence=4.9",
        "--max",
        "failed=0",
        "--junit",
        "out/gate.xml",
        "--markdown",
        "gate.md",
    )
    assert karat("gate", run, *options).code == 1
    suite = ElementTree.fromstring((here / "out" / "gate.xml").read_text(encoding="utf-8"))[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("3", "1", "1")
    assert (here / "gate.md").read_text(encoding="utf-8").startswith("### Gate failed: 1 passed, 1 failed, 1 undecided")


def test_annotations_come_before_the_text_in_which_nothing_is_a_command(karat, run):
    lines = karat("gate", run, "--min", "guess.factual_adherence=4.9", "--github").out.splitlines()
    assert lines[0].startswith("::error title=karat gate%3A failed::factual_adherence at least 4.9 under guess: failed")
    token = lines[1].removeprefix("::stop-commands::")
    assert len(token) == 32
    assert lines[-1] == f"::{token}::"
    assert not [line for line in lines[2:-1] if line.lstrip().startswith("::")]
    with_json = karat("gate", run, "--min", "guess.factual_adherence=4.9", "--github", "--json")
    assert with_json.json["verdict"] == "failed"
    assert with_json.err.startswith("::error ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "no threshold: name some with --min, --max or --max-drop, or under `gate:` in the file"),
        (("--min", "adherence"), "--min: expected [CONDITION.]METRIC=NUMBER, got 'adherence'"),
        (("--min", "factual_adherance=4"), "did you mean 'factual_adherence'?"),
        (("--max-drop", "factual_adherence=1"), "needs a run to compare with: --baseline RUN"),
        (("--min", "factual_adherence=1", "--baseline", "latest"), "--baseline: nothing is compared with it"),
        (("--max-drop", "factual_adherence=1", "--baseline", "nowhere"), "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(karat, run, options, message):
    done = karat("gate", run, *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("command", [("check",), ("run",)])
def test_unknown_names_in_the_file_are_refused_before_anything_is_asked(karat, experiment, here, command):
    gate = "gate: {min: {ad.factual_adherence: 4, factual_adherance: 4}, max: {failed: 0.1, cost_usd: 5}}\n"
    experiment.write_text(experiment.read_text(encoding="utf-8") + gate, encoding="utf-8")
    done = karat(*command, experiment)
    assert done.code == 2
    assert "experiment.yaml: 2 faults" in done.err
    assert (
        "gate.min.ad.factual_adherence: 'ad.factual_adherence': no condition is called 'ad' (did you mean 'add'?)"
        in done.err
    )
    assert (
        "gate.min.factual_adherance: no metric is called 'factual_adherance' (did you mean 'factual_adherence'?)"
        in done.err
    )
    assert not (here / "results").exists()


def test_a_resumed_run_may_have_other_thresholds(karat, with_gate):
    with_gate.write_text(with_gate.read_text(encoding="utf-8").replace("1.5", "4.9"), encoding="utf-8")
    assert karat("run", with_gate, "--resume", "latest", "-q").code == 0
