"""`karat report`, `karat compare`, and how a run is named."""

from __future__ import annotations

import json

import pytest


def test_a_report_goes_to_standard_output_or_to_a_file(karat, run, here):
    shown = karat("report", run, "--to", "csv")
    assert shown.code == 0
    assert shown.out.startswith("condition,metric,")
    written = karat("report", run, "--to", "csv", "--out", "scores.csv")
    assert (written.out, written.err) == ("scores.csv\n", "")
    assert (here / "scores.csv").read_text(encoding="utf-8") == shown.out


def test_a_report_is_the_same_every_time(karat, run):
    assert karat("report", run).out == karat("report", run).out
    assert karat("report", run, "--json").out == karat("report", run, "--to", "json").out


@pytest.mark.needs_package("karat_imports")
def test_a_report_of_several_files_wants_a_folder(karat, run, here):
    refused = karat("report", run, "--to", "keval")
    assert refused.code == 2
    assert "--out" in refused.err
    done = karat("report", run, "--to", "keval", "--out", "files", "--json")
    assert done.code == 0
    assert sorted(done.json["paths"]) == sorted(f"files/{path.name}" for path in (here / "files").iterdir())


@pytest.mark.needs_kind("conversation")
def test_a_folder_full_of_files_is_one_line(karat, here):
    asked = [{"conversation_id": f"c{number}", "question": "how much?", "answer": number} for number in range(12)]
    (here / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    score = ("score", "asked.jsonl", "--dataset", "asked.jsonl", "--kind", "conversation", "--map", "answer=answer")
    assert karat(*score).code == 0
    refused = karat("report", "latest", "--to", "convfinqa")
    assert refused.code == 2
    assert "errors.csv, traces/ (12 files), statistics.json" in refused.err
    written = karat("report", "latest", "--to", "convfinqa", "--out", "files")
    names = ["summary.csv", "turns.csv", "errors.csv", "traces/ (12 files)", "statistics.json"]
    assert written.out.splitlines() == [f"files/{name}" for name in names]
    assert len(karat("report", "latest", "--to", "convfinqa", "--out", "files", "--json").json["paths"]) == 16


def test_a_report_takes_its_options_and_no_others(karat, run):
    assert karat("report", run, "--to", "json", "--set", "indent=0").out.count("\n") == 1
    refused = karat("report", run, "--to", "json", "--set", "indnt=0")
    assert refused.code == 2
    assert refused.err == "report json: --set indnt: no such key (did you mean 'indent'?)\n"


def test_a_report_never_imports_code_that_is_named(karat, run, here):
    (here / "mine.py").write_text("open('imported', 'w')\nclass Report: pass\n", encoding="utf-8")
    done = karat("report", run, "--to", "mine:Report")
    assert done.code == 2
    assert not (here / "imported").exists()


@pytest.mark.parametrize("name", ["latest", "results", "sums", "sums-2", "{id}", "{id4}", "{run}", "{run}/run.json"])
def test_a_run_is_named_by_folder_beginning_or_id(karat, run, name):
    names = {"run": run, "id": run[-8:], "id4": run[-8:-4]}
    assert karat("report", name.format(**names), "--json").json["run"] == run[-8:]


def test_a_name_that_means_several_runs_is_refused_with_the_newest(karat, run, experiment):
    newer = karat("run", experiment.name, "--json", "-q").json["run"]
    done = karat("report", "sums")
    assert done.code == 2
    assert done.err.rstrip().endswith(newer)
    assert karat("report", "latest", "--json").json["run"] == newer[-8:]


def test_conditions_are_compared_question_by_question(karat, run):
    done = karat("compare", f"{run}:guess", ":add")
    assert done.code == 0
    assert "(Holm)" in done.out
    assert "better 4, worse 0, equal 0" in done.out
    same = karat("compare", f"{run}:guess", "latest:add")
    assert same.out == done.out
    found = karat("compare", f"{run}:guess", ":add", "--json").json
    assert found["format"] == 1
    assert found["pairings"][0]["better"] == 4


def test_two_runs_are_compared_condition_by_condition(karat, run, experiment):
    other = karat("run", experiment.name, "--json", "-q").json["run"]
    found = karat("compare", run, other, "--json").json
    assert (found["a"]["run"], found["b"]["run"]) == (run[-8:], other[-8:])
    assert {pairing["difference"]["winner"] for pairing in found["pairings"]} == {None}


def test_a_condition_that_is_not_there_is_refused(karat, run):
    done = karat("compare", f"{run}:guess", ":ad")
    assert done.code == 2
    assert "did you mean 'add'?" in done.err


def test_a_condition_may_hold_a_colon(karat, experiment):
    text = experiment.read_text(encoding="utf-8").replace("add: {", "'model:add': {")
    experiment.write_text(text, encoding="utf-8")
    karat("run", experiment.name, "-q")
    assert karat("compare", "latest:guess", "latest:model:add").code == 0


def test_foreign_escape_sequences_do_not_reach_the_terminal(karat, experiment, here):
    (here / "adder.py").write_text("print('\\x1b]0;owned\\x07 \\x1b[2Jno')\n", encoding="utf-8")
    done = karat("run", experiment.name)
    run = next((here / "results").iterdir())
    assert "owned" in (run / "journal.jsonl").read_text(encoding="utf-8")
    for shown in (done.out, done.err, karat("compare", "latest:guess", ":add").out):
        assert "\x1b" not in shown


def test_a_run_that_is_not_done_can_be_read(karat, run, here):
    journal = here / run / "journal.jsonl"
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(lines[:6]) + lines[6][:20], encoding="utf-8")
    found = karat("report", run, "--json").json
    assert found["status"] == "crashed"
    assert found["total"]["ledger"]["not_run"] > 0
    assert json.loads((here / run / "run.json").read_text(encoding="utf-8"))["plan"]["samples"] == 4


def conversations(here, **answers):
    """Two conversations of one turn each and one of four; `answers`: file → what is answered to each turn."""
    turns = [("a", 0), ("b", 0), ("c", 0), ("c", 1), ("c", 2), ("c", 3)]
    for name, given in {"asked": [1, 2, 3, 4, 5, 6], **answers}.items():
        rows = [
            {"conversation_id": conversation, "turn_idx": turn, "question": f"{conversation}{turn}?", "answer": answer}
            for (conversation, turn), answer in zip(turns, given, strict=True)
        ]
        (here / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.needs_kind("conversation")
def test_conversations_are_compared_by_the_rates_whose_difference_is_shown(karat, here):
    conversations(here, before=[1, 2, 0, 0, 0, 0], after=[1, 2, 3, 0, 0, 0])
    runs = [
        karat("score", f"{name}.jsonl", "--dataset", "asked.jsonl", "--kind", "conversation", "--json", "-q").json[
            "run"
        ]
        for name in ("before", "after")
    ]
    numerical = karat("compare", *runs, "--json").json["pairings"][0]
    assert numerical["difference"]["metric"] == "numerical"
    assert (numerical["mean_a"], numerical["mean_b"]) == pytest.approx((2 / 6, 3 / 6))
    assert numerical["difference"]["estimate"]["value"] == pytest.approx(1 / 6)


@pytest.mark.needs_kind("conversation")
def test_the_same_answers_under_other_weights_differ_by_nothing(karat, here):
    conversations(here, given=[1, 0, 3, 0, 5, 0])
    runs = []
    for allocation in ("proportional", "equal"):
        (here / "experiment.yaml").write_text(
            "dataset: {kind: conversation, path: asked.jsonl, sample_size: 2, seed: 1, stratify: [turns],\n"
            f"          allocation: {allocation}}}\n"
            "agent: {type: replay, path: given.jsonl, turns: {}}\nconditions: {any: {}}\n"
            "execution: {num_repetitions: 1}\n",
            encoding="utf-8",
        )
        runs.append(karat("run", "experiment.yaml", "--json", "-q").json["run"])
    found = karat("compare", *runs, "--json").json
    assert not any(one["difference"]["estimate"]["value"] for one in found["pairings"])
    assert "compared without weights" in " ".join(found["warnings"])


@pytest.mark.needs_kind("conversation")
def test_what_golden_history_changes_can_be_compared(karat, here):
    conversations(here)
    runs = []
    for history in ("own", "golden"):
        (here / "experiment.yaml").write_text(
            f"dataset: {{kind: conversation, path: asked.jsonl, history: {history}}}\n"
            "agent: {type: floor}\nconditions: {any: {}}\n",
            encoding="utf-8",
        )
        runs.append(karat("run", "experiment.yaml", "--json", "-q").json["run"])
    found = karat("compare", *runs, "--json").json
    assert (found["pairings"][0]["difference"]["n_pairs"], found["changed"]) == (3, 0)


def test_full_shows_every_section_and_is_refused_for_other_reports(karat, run):
    brief, full = karat("report", "latest"), karat("report", "latest", "--full")
    assert brief.out.partition("\n\n")[0] == full.out.partition("\n\n")[0]
    assert "Cost and time" in full.out and "Cost and time" not in brief.out
    assert " view " in brief.err
    assert " view " in brief.err and "--full" in brief.err and "--full" not in full.err
    refused = karat("report", "latest", "--to", "csv", "--full")
    assert refused.code == 2
    assert "--full: is for the terminal" in refused.err
