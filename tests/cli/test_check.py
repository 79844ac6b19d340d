"""`karat check`."""

from __future__ import annotations

import json
import re
import shutil

import pytest

PLAN = """\
sums: 4 samples × 2 conditions × 1 repetition = 8 agent calls

dataset      golden, questions.jsonl (sha256 DIGEST)
first row    question   What is 1 + 1?  [question]
             golden     It is 2.  [answer]
             id         q1  [id]
agent        command
conditions   guess
             add
scored by    judge: overlap (offline): factual_adherence, completeness, helpfulness_and_clarity
MCP servers  none
running      4 at a time, 10 min 00 s for an answer, up to 3 attempts, stops after 5 failed trials
will detect  no difference between conditions: ask at least 7 questions for 3 comparisons
results      results/sums-<date>-<id>/
"""


def server(name: str, *arguments: str) -> str:
    listed = ", ".join(f"'{argument}'" for argument in ("-m", "karat.testing.mcp_server", *arguments))
    return f"mcp_servers.{name}={{type: stdio, command: python, args: [{listed}]}}"


def test_the_plan_is_printed_and_nothing_is_made(karat, experiment, here):
    done = karat("check", experiment.name)
    digest = done.out.partition("sha256 ")[2][:12]
    assert (done.code, done.err) == (0, "")
    assert done.out.replace(f"{here}/", "").replace(digest, "DIGEST") == PLAN
    assert sorted(path.name for path in here.iterdir()) == ["adder.py", "experiment.yaml", "questions.jsonl"]


def test_a_file_of_questions_is_checked_alone(karat, here):
    (here / "faq.csv").write_text("id,Question,Reference\n7,How long?,3 days\n", encoding="utf-8")
    done = karat("check", "faq.csv")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "faq.csv: 1 sample (golden)\n\n"
        "first row\n"
        "  question   How long?  [Question]\n"
        "  golden     3 days  [Reference]\n"
        "  not used   id\n"
        "  ids        0, 1, 2, …; for the file's, set dataset.id_key: id\n"
    )
    assert karat("check", "faq.csv", "--json").json["first_row"]["unused"] == ["id"]
    refused = karat("check", "faq.csv", "--limit", "3")
    assert (refused.code, "--limit: is for an experiment file" in refused.err) == (2, True)


def test_an_experiment_may_be_written_as_json(karat, here):
    (here / "q.jsonl").write_text('{"question": "q", "answer": "a"}', encoding="utf-8")
    experiment = {"agent": {"type": "floor"}, "scorers": ["equals"], "conditions": {"a": {}}, "dataset": "q.jsonl"}
    for name, indent in (("e.json", None), ("e.yaml", 1)):
        (here / name).write_text(json.dumps({"name": "e", **experiment}, indent=indent), encoding="utf-8")
        assert karat("check", name).out.startswith("e: 1 sample × 1 condition")


def test_no_piece_of_a_secret_is_shown_or_kept_of_the_first_row(karat, here, monkeypatch):
    secret = "CANARYabcdefghijklmnopqrstuvwxyz0123456789"
    monkeypatch.setenv("TOKEN", secret)
    (here / "e.yaml").write_text(
        "dataset: q.jsonl\nagent: {type: floor}\nscorers: [equals]\nconditions: {a: {}}\nsecrets: [TOKEN]\n",
        encoding="utf-8",
    )
    for length in (60, 280):  # where a line of the screen and a text of run.json are cut
        (here / "q.jsonl").write_text(
            json.dumps({"question": "x" * length + secret, "answer": "a"}) + "\n", encoding="utf-8"
        )
        checked = karat("check", "e.yaml")
        ran = karat("run", "e.yaml", "--results", f"r{length}")
        assert (checked.code, ran.code) == (0, 0), ran.err
        kept = "".join(path.read_text(encoding="utf-8") for path in (here / f"r{length}").glob("*/run.json"))
        assert '"first_row"' in kept
        assert "CANARY" not in checked.out + ran.out + ran.err + kept


def test_a_dataset_may_be_its_path_alone(karat, experiment, here):
    (here / "short.yaml").write_text(
        "dataset: questions.jsonl\nagent: {type: floor}\njudge: {type: overlap}\nconditions: {a: {}}\n",
        encoding="utf-8",
    )
    done = karat("check", "short.yaml", "--json")
    assert (done.code, done.json["samples"]) == (0, 4)


def test_json_is_the_same_for_programs(karat, experiment, here, golden):
    done = karat("check", experiment.name, "--json")
    digest = done.json["sha256"]
    golden("cli/check.json", done.out.replace(f"{here}/", "").replace(digest, "DIGEST"))


def test_all_faults_come_at_once(karat, experiment, here):
    experiment.write_text(
        "dataset: {path: question.jsonl}\n"
        "agent: {type: flor}\n"
        "judge: {type: overlap}\n"
        "conditions: {a: {servers: []}}\n",
        encoding="utf-8",
    )
    done = karat("check", experiment.name)
    assert done.code == 2
    assert done.out == ""
    places = [line.split()[0] for line in done.err.splitlines()[1:]]
    assert places == ["dataset.path", "agent.type", "conditions.a.servers"]


def test_faults_of_the_dataset_come_before_a_server_is_started(karat, experiment, here):
    (here / "questions.jsonl").write_text('{"id": "a", "question": "?", "answer": 7}\nno json\n', encoding="utf-8")
    done = karat("check", experiment.name, "--set", server("docs"), "--set", "conditions.add.mcp_servers=[docs]")
    assert done.code == 2
    assert "line 2" in done.err
    assert "starting" not in done.err


def test_servers_are_started_and_their_tools_listed(karat, experiment):
    settings = ("--set", server("docs"), "--set", "conditions.add.mcp_servers=[docs]")
    done = karat("check", experiment.name, *settings, "--json")
    (found,) = done.json["servers"]
    assert done.code == 0
    assert (found["name"], found["conditions"], found["tools"][:2]) == ("docs", ["add"], ["search", "echo"])


@pytest.mark.needs_package("karat_servers")
def test_samples_that_cannot_be_asked_are_counted(karat, here):
    rows = ('{"question": "a", "tool": "echo", "arguments": {"text": "x"}, "ask": "decline", "answer": "x"}',
            '{"question": "b", "tool": "echo", "arguments": "{", "answer": "x"}',
            '{"question": "c", "tool": "echo", "ask": "perhaps", "answer": "x"}')  # fmt: skip
    (here / "calls.jsonl").write_text("\n".join(rows), encoding="utf-8")
    (here / "calls.yaml").write_text(
        "dataset: {path: calls.jsonl}\nagent: {type: mcp}\nscorers: [equals]\n"
        "mcp_servers: {docs: {type: stdio, command: python, args: [-m, karat.testing.mcp_server]}}\n"
        "conditions: {plain: {mcp_servers: [docs]}, asks: {mcp_servers: [docs], elicit: {column: ask}}}\n",
        encoding="utf-8",
    )
    done = karat("check", "calls.yaml")
    assert done.code == 0
    assert "1 of 3 samples cannot be asked under 'plain', first '1': the column `arguments` is not JSON" in done.err
    assert "2 of 3 samples cannot be asked under 'asks', first '1': the column `arguments`" in done.err


def test_a_broken_server_is_a_fault_with_its_own_words_and_a_remedy(karat, experiment):
    broken = server("docs", "--exit", "4", "--words", "no index here")
    done = karat("check", experiment.name, "--set", broken, "--set", "conditions.add.mcp_servers=[docs]")
    assert done.code == 2
    assert "docs (stdio, scope trial): does not work" in done.out
    assert "MCP server 'docs' ended with exit code 4" in done.err
    assert "no index here" in done.err
    assert "Fix mcp_servers.docs" in done.err


def test_no_start_starts_no_program_and_imports_no_agent(karat, experiment, here):
    (here / "loud.py").write_text("open('imported', 'w')\ndef query(*_): return ''\n", encoding="utf-8")
    broken = ("--set", server("docs", "--exit", "4"), "--set", "conditions.add.mcp_servers=[docs]")
    agent = ("--set", "agent={type: python, target: 'loud:query'}")
    done = karat("check", experiment.name, *broken, *agent, "--no-start")
    assert done.code == 0
    assert "not started" in done.out
    assert not (here / "imported").exists()


def test_an_agent_that_cannot_be_imported_is_a_fault(process, experiment):
    done = process("check", experiment.name, "--set", "agent={type: python, target: 'nowhere:query'}")
    assert done.code == 2
    assert "module 'nowhere' cannot be imported" in done.err


def test_warnings_are_said_and_do_no_harm(karat, experiment):
    done = karat("check", experiment.name, "--set", server("unused"), "--no-start")
    assert done.code == 0
    assert done.err.startswith("warning: mcp_servers.unused")


@pytest.mark.needs_package("karat_coding")
@pytest.mark.parametrize("file", ["quickstart.yaml", "full.yaml"])
def test_files_of_k_eval_are_planned(karat, here, shared_data, file):
    shutil.copy(shared_data / "keval" / file, here)
    (here / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n' * 3, encoding="utf-8")
    (here / ".env").write_text("GRAPH_HOME=/tmp\nSEARCH_API_KEY=0123456789\nJUDGE=x\n", encoding="utf-8")
    done = karat("check", file, "--no-start", "--env-file", ".env")
    assert "3 samples × " in done.out, done.err
    route = "google-cloud:claude-opus-4-5 (Anthropic's API on Vertex AI)"
    assert f"judge: factual_adherence, completeness, helpfulness_and_clarity; asks {route}\n" in done.out
    assert done.code == 0


@pytest.mark.slow
@pytest.mark.needs_package("karat_coding")
def test_a_judge_without_credentials_is_refused_with_its_place(process, here, shared_data):
    shutil.copy(shared_data / "keval" / "quickstart.yaml", here)
    (here / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n', encoding="utf-8")
    done = process("check", "quickstart.yaml", HOME=str(here), NO_GCE_CHECK="true", GOOGLE_APPLICATION_CREDENTIALS="")
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("judge.model: no Google credentials found: ")
    assert done.err.endswith("`gcloud auth application-default login`\n")


SCORERS = """
import time
from karat import Metric

class Typo:
    metrics = (Metric(name="words", low=0, direction="lower"),)
    def score(self, sample, answer):
        return {"wrods": len(answer.text.split())}

class Service(Typo):
    offline = False

class Crash(Typo):
    def score(self, sample, answer):
        raise ValueError("I want the agent's own words")

class Nonsense(Typo):
    metrics = ("words",)
"""


def own_scorer(here, name: str) -> tuple[str, str]:
    module = f"check_{here.name.replace('-', '_')}"
    (here / f"{module}.py").write_text(SCORERS, encoding="utf-8")
    return "--set", f'scorers=[{{type: "{module}:{name}", name: brevity}}]'


def test_a_scorer_that_returns_what_it_does_not_announce_is_a_problem(karat, experiment, here):
    (experiment).write_text(experiment.read_text().replace("judge: {type: overlap}\n", ""), encoding="utf-8")
    done = karat("check", experiment.name, *own_scorer(here, "Typo"))
    assert done.code == 2
    assert "scorer 'brevity' announces words, but returned 'wrods' (did you mean 'words'?)" in done.err
    assert "(tried on the golden answer of 'q1')" in done.err
    refused = karat("check", experiment.name, *own_scorer(here, "Nonsense"))
    assert refused.code == 2
    assert "`metrics` must be a tuple of karat.Metric" in refused.err


@pytest.mark.parametrize("name", ["Service", "Crash"])
def test_a_scorer_that_asks_a_model_is_not_called_and_one_that_raises_may_do_so(karat, experiment, here, name):
    (experiment).write_text(experiment.read_text().replace("judge: {type: overlap}\n", ""), encoding="utf-8")
    assert karat("check", experiment.name, *own_scorer(here, name)).code == 0


def test_check_says_what_so_few_questions_cannot_show(karat, here):
    rows = "".join(f'{{"question": "q{row}?", "answer": "yes"}}\n' for row in range(10))
    (here / "few.jsonl").write_text(rows, encoding="utf-8")
    conditions = ", ".join(f"c{at}: {{}}" for at in range(8))
    text = "dataset: {path: few.jsonl}\nagent: {type: floor}\njudge: {type: overlap}\n"
    text += f"conditions: {{{conditions}}}\n"
    (here / "few.yaml").write_text(text, encoding="utf-8")
    said = " ".join(karat("check", "few.yaml").out.split())
    assert "ask at least 11 questions for 39 comparisons" in said


def test_the_option_that_a_refusal_names_leaves_rows_out(tmp_path, karat):
    file = tmp_path / "q.jsonl"
    file.write_text('{"question": "a?", "expected_answer": "1"}\n{"question": "b?", "expected_answer": ""}\n')
    refused = karat("check", str(file))
    assert (refused.code, "--skip-unreadable" in refused.err) == (2, True)
    left_out = karat("check", str(file), "--skip-unreadable")
    assert (left_out.code, "1 sample (golden)" in left_out.out) == (0, True)
    assert "1 unreadable line left out: line 2" in left_out.err


LIMITED = """
name: limited
dataset: {path: questions.jsonl}
agent: {type: chat, model: "openai:gpt-5"}
judge: {judges: ["openai:gpt-5-mini", "openai:gpt-5"], rubric: rubric.md, repeats: 2}
conditions: {a: {}, b: {}}
execution: {num_repetitions: 3}
limits:
  "openai:gpt-5": {requests_per_minute: 60, tokens_per_minute: 1000}
  "openai:gpt-5-mini": {tokens_per_minute: 500}
"""


def test_rates_of_models_say_how_long_the_plan_takes_at_least(karat, here):
    (here / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n{"question": "c?", "answer": "d"}\n')
    (here / "experiment.yaml").write_text(LIMITED.replace(", rubric: rubric.md", ""), encoding="utf-8")
    done = karat("check", "experiment.yaml", "--no-start", "--json")
    assert done.code == 0, done.err
    told = done.json
    assert (told["agent_calls"], told["judge_calls"]) == (12, 12 * 2 * 2)
    # 12 answers, and half of the judge's 48 calls: 36 requests
    assert told["rates"] == [
        "openai:gpt-5: at most 60 requests and 1,000 tokens a minute: 36.0 s or more",
        "openai:gpt-5-mini: at most 500 tokens a minute",
    ]
    each = LIMITED.replace(", rubric: rubric.md", ", call_per_metric: true")
    (here / "experiment.yaml").write_text(each, encoding="utf-8")
    told = karat("check", "experiment.yaml", "--no-start", "--json").json
    metrics = len(told["scorers"][0]["metrics"])
    assert told["judge_calls"] == 12 * 2 * 2 * metrics


@pytest.mark.parametrize(("selected", "calls"), [((), 3 * 2 * 2 * 2), (("--only-condition", "b"), 0)])
def test_pairs_of_answers_are_judged_in_both_orders(karat, here, selected, calls):
    pairwise = 'scorers: [{type: pairwise, judges: ["openai:gpt-5-mini", "openai:gpt-5"]}]'
    text = re.sub(r"judge: .*|limits:[\s\S]*", "", LIMITED)
    (here / "questions.jsonl").write_text('{"question": "a?", "answer": "b"}\n{"question": "c?", "answer": "d"}\n')
    (here / "experiment.yaml").write_text(f"{text}\n{pairwise}\n", encoding="utf-8")
    done = karat("check", "experiment.yaml", "--no-start", "--json", *selected)
    assert done.code == 0, done.err
    assert done.json["judge_calls"] == calls  # two judges, two orders, two questions, three repetitions


def test_questions_beside_the_name_of_their_dataset_are_no_experiment(karat, here):
    text = "dataset: demo\nquestions:\n  - {question: What is it?, reference_answer: A lid.}\n"
    (here / "cases.yaml").write_text(text, encoding="utf-8")
    checked = karat("check", "cases.yaml")
    assert (checked.code, "golden     A lid." in checked.out) == (0, True)
