"""`karat import` of results: what is made, said and refused."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.karat_imports.imported import FILES
from tests.karat_imports.test_results import TABLE

from karat import plugins
from karat.cli import cli
from karat.errors import BadDataset, BadOption
from karat.records import Answer, Score
from karat_imports.imported import Imported, import_results

MAPPED = [
    *("--map", "golden=expected", "--map", "answer=output", "--map", "repetition=run"),
    *("--map", "score.correct=correct", "--map", "score.quality=quality"),
]


def karat(*words: str) -> Result:
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def test_a_table_becomes_a_run_that_can_be_reported_and_scored(here):
    (here / "r.csv").write_text(TABLE)
    made = karat("import", "csv", "r.csv", *MAPPED)
    assert made.exit_code == 0
    (folder,) = (here / "results").iterdir()
    first, *rest = made.stdout.splitlines()
    assert first == f"results/{folder.name}: 5 answers, 9 scores, 1 not run; 3 samples × 2 conditions × 2 repetitions"
    assert [line.strip() for line in rest] == [
        "conditions: alpha, beta",
        "first row:",
        "question: What is 1+1?",
        "golden: 2",
        "answer: 2",
        "columns found by their names: dollars=cost",
        "better when higher: correct, quality",
        "not used: topic",
        "left out: a second result of a sample, condition and repetition (q1)",
    ]
    assert f"report results/{folder.name}" in made.stderr
    report = karat("report", "latest")
    assert "4 trials without a result in the imported files" in report.stdout
    assert karat("score", "latest", "--scorer", "equals").exit_code == 0
    again = karat("import", "csv", "r.csv", *MAPPED)
    assert again.stdout.startswith(f"results/{folder.name}: imported before; ")


def test_a_file_is_recognized_by_its_own_importer_only():
    importers = {name: plugins.find("importers", name) for name in plugins.names("importers")}
    for path in FILES.rglob("*"):
        if path.is_file() and path.suffix != ".md":
            own = path.relative_to(FILES).parts[0].replace("-", "_")
            head = path.read_bytes()[: 2**16]
            known = [name for name, importer in importers.items() if importer.recognizes(path, head)]
            assert known == [own], path


def test_what_was_made_is_json_for_programs(here):
    (here / "r.csv").write_text(TABLE)
    made = json.loads(karat("import", "csv", "r.csv", *MAPPED, "--json", "--out", "there").stdout)
    (run,) = made["runs"]
    assert run["folder"].startswith("there/r-")
    assert run["counts"] == {"answers": 5, "failures": 0, "scores": 9, "not run": 1}
    assert run["findings"] == [
        {
            "kind": "left out",
            "what": "a second result of a sample, condition and repetition",
            "count": 1,
            "places": ["q1"],
        }
    ]


def test_options_that_make_no_sense_are_refused(here):
    (here / "r.csv").write_text(TABLE)
    (here / "wide.csv").write_text("id,answer\na,one, two\n")
    for words, message in (
        (["csv", "r.csv", "--map", "score.x"], "expected TARGET=COLUMN"),
        (["csv", "r.csv", "--map", "id=id", "--map", "id=topic"], "names a target twice"),
        (["csv", "none.csv"], "cannot be read"),
        (["csv", "wide.csv", *MAPPED], "line 2: has 3 cells, the header has 2"),
        (["csv", "."], "holds no file of the format csv"),
        (["nothing", "r.csv"], "no importer is called 'nothing'"),
        (["lm-evl", "r.csv"], "did you mean 'lm-eval'?"),
        (["csv", "r.csv", "--set", "mapp={}"], "mapp"),
    ):
        done = CliRunner().invoke(cli, ["import", *words])
        assert done.exit_code != 0
        assert message in str(done.exception) + done.stderr, words
    assert not (here / "results").exists()


def test_a_file_that_is_no_run_is_refused(here):
    (here / "r.csv").write_text("question,answer\nOne?,one\n")
    done = CliRunner().invoke(cli, ["report", "r.csv"])
    assert done.exit_code != 0
    assert "a table without scores needs `karat score`" in str(done.exception) + done.stderr


def test_tables_of_scores_are_compared_in_one_command(here, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    for name, scores in (("before", (0.5, 0.25, 0.75)), ("after", (0.9, 0.8, 1.0))):
        rows = "".join(f"Q{number}?,{score}\n" for number, score in enumerate(scores))
        (here / f"{name}.csv").write_text(f"question,faithfulness\n{rows}")
    done = karat("compare", "before.csv", "after.csv", "--json")
    (pairing,) = json.loads(done.stdout)["pairings"]
    estimate = pairing["difference"]["estimate"]
    assert (estimate["n"], round(estimate["value"], 9)) == (3, 0.4)
    assert not (here / "results").exists()


@pytest.fixture
def logs(here, monkeypatch):
    """Two logs of Inspect, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    for name in ("one.eval", "two.eval"):
        shutil.copy(Path(__file__).parent.parent / "data" / "imports" / "inspect" / name, here)
    return here


def test_files_that_karat_recognizes_need_no_import(logs):
    report = karat("report", "one.eval")
    assert report.exit_code == 0
    assert "mockllm/one" in report.stdout
    assert "import inspect one.eval" in report.stderr
    assert str(logs / "cache") not in report.stderr
    compared = karat("compare", "one.eval", "two.eval")
    assert "conditions compared: mockllm/one with mockllm/two" in compared.stdout
    made = sorted((logs / "cache" / "karat" / "imported").iterdir())
    assert karat("report", "one.eval").stdout == report.stdout
    assert sorted((logs / "cache" / "karat" / "imported").iterdir()) == made
    assert not (logs / "results").exists()


def test_nothing_is_written_into_a_run_that_only_a_cache_holds(logs):
    for words in (["view", "one.eval", "--no-open"], ["label", "one.eval", "labels.csv"]):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code != 0
        assert "`karat import inspect one.eval` makes a run of it" in str(done.exception) + done.stderr


def test_a_file_that_changes_is_imported_again(logs):
    first = karat("report", "one.eval").stdout
    shutil.copy(logs / "two.eval", logs / "one.eval")
    assert karat("report", "one.eval").stdout != first


def test_cut_answers_of_a_file_are_named_whether_it_is_scored_or_imported(here):
    (here / "answers.csv").write_text("question,expected,response,finish_reason\na,x,x,length\nb,y,y,stop\n")
    scored = karat("score", "answers.csv", "--scorer", "equals").stdout
    said = "Answers were cut at the token limit, and scored as they are: 1 of 2 of answers"
    assert said in " ".join(scored.split())
    karat("import", "csv", "answers.csv", "--map", "answer=response", "--map", "golden=expected")
    assert said in " ".join(karat("report", "latest").stdout.split())


def conditions(run):
    return sorted({answer.condition for answer in run.events_of(Answer)})


@pytest.mark.parametrize(
    ("text", "made"),
    [
        pytest.param(
            "question,gpt_answer,claude_answer,gpt_score,claude_score\nA?,a,b,4/5,1/5\nB?,c,d,1,0\n",
            {"conditions": ["claude_answer", "gpt_answer"], "scores": {"score": [0.8, 0.2, 1.0, 0.0]}},
            id="a column a system",
        ),
        pytest.param(
            "question,response_1,response_2\nA?,a,b\n",
            {"conditions": ["answers"], "scores": {}},
            id="a column a repetition",
        ),
        pytest.param(
            "question_id,verdict\nq1,CORRECT\nq2,Incorrect\n",
            {"conditions": ["answers"], "scores": {"verdict": [1.0, 0.0]}},
            id="ids and a verdict",
        ),
        pytest.param(
            "reference,generated,nli_score\na,b,0.5\n",
            {"conditions": ["answers"], "scores": {"nli_score": [0.5]}},
            id="neither ids nor questions",
        ),
    ],
)
def test_tables_of_results_need_no_map(tmp_path, text, made):
    (tmp_path / "r.csv").write_text(text)
    (imported,) = import_results("csv", [tmp_path / "r.csv"], tmp_path / "runs")
    scores: dict[str, list[float]] = {}
    for score in imported.run.events_of(Score):
        scores.setdefault(score.scorer, []).extend(score.values.values())
    assert {"conditions": conditions(imported.run), "scores": scores} == made


def test_what_parts_the_questions_only_is_no_condition(tmp_path):
    (tmp_path / "r.csv").write_text("question,strategy,answer\nA?,x,a\nB?,y,b\nC?,x,c\n")
    (imported,) = import_results("csv", [tmp_path / "r.csv"], tmp_path / "runs")
    assert conditions(imported.run) == ["answers"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("means.csv", "configuration,faithfulness\nbase,0.5\nlarge,0.6\n", "If they are means, one row a setting"),
        ("few.csv", "id,a,b\nq1,1,2\nq2,3,4\n", "--map score.a=a --map score.b=b"),
        ("parts.json", '{"train": [{"question": "A?", "answer": "a"}], "test": [{"question": "B?", "answer": "b"}]}',
         "--set part=NAME"),
        (
            "chats.json",
            '[{"id": "c1", "log": [{"speaker": "user", "text": "A?"}, {"speaker": "bot", "text": "B"}]}]',
            "karat import chats",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_named_for_what_it_is(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises((BadOption, BadDataset), match=re.escape(said)):
        list(import_results("csv", [tmp_path / name], tmp_path / "runs"))


def test_a_file_of_conversations_is_reported_whatever_its_form(here):
    chat = [{"sender": "customer", "text": "One?"}, {"sender": "agent", "text": "1"}]
    (here / "log.json").write_text(json.dumps([{"dialogue_id": "c1", "log": chat}]))
    done = CliRunner().invoke(cli, ["report", "log.json"])
    assert done.exit_code == 0, done.output
    assert "1 question" in done.output


def test_lists_by_system_are_compared_without_an_import(here):
    rows = [{"question": f"{number}?", "answer": "a", "faithfulness": number % 2} for number in range(6)]
    (here / "r.json").write_text(json.dumps({"small": rows, "large": rows}))
    done = CliRunner().invoke(cli, ["compare", "r.json"])
    assert "small" in done.output
    assert "large" in done.output


def test_conditions_are_found_by_their_values_although_a_row_is_missing(here):
    rows = [f"{question},{style},1\n" for question in "abcdef" for style in ("kind", "rushed")]
    (here / "r.csv").write_text("question_id,style,judge_tone\n" + "".join(rows[:-1]))
    said = karat("import", "csv", "r.csv").output
    assert "6 samples × 2 conditions × 1 repetition" in said
    assert "conditions: style (kind, rushed)" in said
    said = karat("import", "csv", "r.csv", "--map", "repetition=style").output
    assert "6 samples × 1 condition × 2 repetitions" in said


def test_too_few_questions_to_find_conditions_are_named(here):
    rows = [f"{question},{style},1\n" for question in "abcd" for style in ("kind", "rushed")]
    (here / "r.csv").write_text("question_id,style,judge_tone\n" + "".join(rows))
    assert "'kind', 'rushed' in 'style': if they are conditions" in karat("import", "csv", "r.csv").output


def test_a_condition_that_is_named_is_crossed_with_the_others(here):
    cells = product("abcdef", ("kind", "rushed"), ("m", "n"))
    rows = [f"{question},{style},{model},1\n" for question, style, model in cells]
    (here / "r.csv").write_text("question_id,style,model,judge_tone\n" + "".join(rows))
    for named in ([], ["--map", "condition=style"], ["--map", "condition=model"]):
        said = karat("import", "csv", "r.csv", *named).output
        assert "6 samples × 4 conditions × 1 repetition" in said


def test_an_id_that_is_named_holds_although_questions_are_the_same(here):
    rows = [f"{number},{number % 3}?,x,y\n" for number in range(9)]
    (here / "r.csv").write_text("case,question,expected,output\n" + "".join(rows))
    flags = [*("--map", "question=question", "--map", "golden=expected", "--map", "answer=output")]
    assert "3 samples × 1 condition × 3 rep" in karat("import", "csv", "r.csv", *flags).output
    said = karat("import", "csv", "r.csv", *flags, "--map", "id=case").output
    assert "9 samples × 1 condition × 1 rep" in said


def test_a_row_of_an_error_belongs_to_the_question_of_its_id(here):
    cells = [*product("abcdefghijkl", ("kind", "rushed"))]
    rows = [{"query_id": one, "question": f"{one}?", "style": style, "response": "x"} for one, style in cells]
    rows[3] = {"query_id": "b", "style": "rushed", "error": "refused"}
    rows.insert(0, {"query_id": "a", "style": "kind", "error": "timed out"})
    (here / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = karat("import", "csv", "r.jsonl").output
    assert "23 answers, 1 failure; 12 samples × 2 conditions × 1 repetition" in said  # one was asked again
    assert "without an id or a question" not in said


def test_hashes_are_no_questions(here):
    cells = enumerate(product(range(6), ("old", "new")))
    rows = [f"{number:016x},{case},{condition},word\n" for number, (case, condition) in cells]
    (here / "r.csv").write_text("prompt_hash,case_id,condition,response\n" + "".join(rows))
    assert "6 samples × 2 conditions × 1 repetition" in karat("import", "csv", "r.csv").output


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (
            "id,unclear_request,clear_request,AmbDiff,ICR",
            "{0},Please do make the thing number {0} ready.,Please wash the thing {0} now.,0.{0},0.5",
        ),
        ("id,gold_answer,model_output,parsed_prediction,is_correct", "{0},C,B{0},B,1"),
    ],
)
def test_each_reading_that_is_offered_settles_the_question(here, head, row):
    lines = [head, *(row.format(number) for number in range(12))]
    (here / "r.csv").write_text("\n".join(lines) + "\n")
    given = ["--set", "lower_is_better=[]"]
    with pytest.raises(BadOption) as asked:
        karat("import", "csv", "r.csv", *given)
    offered = [line.split() for line in str(asked.value).splitlines() if line.startswith("  --map")]
    assert len(offered) > 1
    for flags in offered:
        followed = karat("import", "csv", "r.csv", *given, *flags)
        assert followed.exit_code == 0, (flags, followed.output, followed.exception)
        assert " 12 scores" in followed.output or " 24 scores" in followed.output


def test_prompts_that_are_named_by_labels_are_conditions_of_trials(here):
    rows = [f"P{prompt},{trial},{trial % 7}\n" for prompt, trial in product(range(4), range(8))]
    (here / "r.csv").write_text("Prompt,trial_number,Accuracy\n" + "".join(rows))
    with pytest.raises(BadOption, match="scores without ids or questions"):
        karat("import", "csv", "r.csv")
    flags = [*("--map", "id=trial_number", "--map", "condition=Prompt")]
    assert "8 samples × 4 conditions × 1 rep" in karat("import", "csv", "r.csv", *flags).output


def test_a_condition_that_differs_from_question_to_question_is_named(here):
    rows = [f"c{case},G{case},p{person},1\n" for case, person in product(range(3), range(6))]
    (here / "r.csv").write_text("case_id,Grupo_Experimental,Participante,judge_tone\n" + "".join(rows))
    said = karat("import", "csv", "r.csv").output
    assert "3 samples × 1 condition" in said
    assert "'Grupo_Experimental' is no condition here" in said
    assert "--map id=Participante" in said
    said = karat("import", "csv", "r.csv", "--map", "id=Participante").output
    assert "6 samples × 3 conditions × 1 repetition" in said


def test_details_of_metrics_do_not_part_the_rows_of_an_answer(here):
    rows = [f"{case},{metric},0.5,n={metric}\n" for case, metric in product("abc", ("tone", "facts"))]
    (here / "r.csv").write_text("scenario_id,metric,score,detail\n" + "".join(rows))
    assert "3 rows without the answers, 6 scores" in karat("import", "csv", "r.csv").output


def test_several_columns_of_answers_that_are_named_are_systems(here):
    rows = "source,reference,greedy,beam\nfirst text,r,a,b\nsecond text,r,c,d\n"
    (here / "r.csv").write_text(rows)
    named = ("--map", "question=source", "--map", "golden=reference", "--map", "answer=greedy", "--map", "answer=beam")
    made = karat("import", "csv", "r.csv", *named)
    assert "4 answers; 2 samples × 2 conditions × 1 repetition" in made.stdout
    assert "conditions: greedy, beam" in made.stdout


def test_a_marker_among_scores_is_left_out_or_asked_about(here):
    (here / "r.csv").write_text("question,answer,score.tone\nq1,a,0.5\nq2,b,-1\nq3,c,1\n")
    certain = karat("import", "csv", "r.csv")
    assert "2 scores" in certain.stdout
    assert "left out: 'tone' is -1: no score (r.csv, line 3)" in certain.stdout
    assert "3 scores" in karat("import", "csv", "r.csv", "--set", "no_score=[]").stdout

    (here / "r.csv").write_text("question,answer,score.tone\nq1,a,0\nq2,b,-1\nq3,c,1\n")
    with pytest.raises(BadOption) as asked:
        karat("import", "csv", "r.csv")
    assert "('score.tone' -1)" in str(asked.value)
    assert "--set 'no_score=[-1]'\n  --set 'no_score=[]'" in str(asked.value)
    assert "2 scores" in karat("import", "csv", "r.csv", "--set", "no_score=[-1]").stdout


_OF_THIS_IMPORT = ("crc", "digest", "run", "scoring", "sha256", "trial")


def _told(value: Any) -> Any:
    """What a line says, without sums and ids, and with the beginnings of long texts."""
    if isinstance(value, dict):
        return {key: _told(below) for key, below in value.items() if key not in _OF_THIS_IMPORT}
    if isinstance(value, list):
        return [_told(below) for below in value]
    if isinstance(value, str) and len(value) > 160:
        return f"{value[:100]}… ({len(value)} characters)"
    return value


def _whole(made: Iterable[Imported]) -> str:
    """The runs, a line for each sample, answer, failure and score."""
    lines: list[Any] = []
    for one in made:
        head, *events, _ = map(json.loads, (one.run.path / "journal.jsonl").read_text().splitlines())
        assert head["event"] == "head"
        info = json.loads((one.run.path / "run.json").read_text())
        lines.append({key: info[key] for key in ("name", "kind", "plan", "experiment", "source")})
        lines += info.get("scorers", [])
        if "time" not in info["source"]:
            lines.append({"created": info["created"]})
        samples = [json.loads(line) for line in (one.run.path / "samples.jsonl").read_text().splitlines()]
        lines += sorted(samples, key=lambda sample: sample["position"])
        lines += events
    return "".join(json.dumps(_told(line), ensure_ascii=False) + "\n" for line in lines)


@pytest.mark.parametrize("name", [path.name for path in sorted(FILES.iterdir())])
def test_the_whole_run_of_a_file_of_each_format(tmp_path, golden, name):
    golden(f"imports/{name}.jsonl", _whole(import_results(name, [FILES / name], tmp_path)))


MAP = {"golden": "expected", "answer": "output", "repetition": "run", "score.correct": "correct"}
CALLED = [{"name": "look", "arguments": {"at": 1}}]
TABLES: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "ids-systems-and-repetitions": ("r.csv", TABLE, {"map": MAP}),
    "a-system-a-column": (
        "r.csv",
        "id,question,expected,gpt-4 answer,gpt-4 score,claude answer,claude score\n"
        + "".join(f"s{n},Where is room {n}?,up {n},Up {n}.,0.{n},Down {n}.,1\n" for n in range(4)),
        {},
    ),
    "scores-of-systems": ("r.csv", "question,gpt-4,claude\n" + "".join(f"Where is {n}?,{n},3\n" for n in range(6)), {}),
    "numbered-repetitions": (
        "r.csv",
        "question,run1_answer,run1_score,run2_answer,run2_score\n"
        + "".join(f"Where is {n}?,Up {n},1,Down {n},0\n" for n in range(6)),
        {},
    ),
    "asked-again-with-errors": (
        "r.jsonl",
        [
            {"question": "Why?", "response": "", "error": "429 Too Many Requests", "timestamp": "2026-01-02T03:04:05Z"},
            {"question": "Why?", "response": "So.", "error": None, "timestamp": "2026-01-02T03:04:06Z"},
            {"question": "When?", "response": "Now.", "error": None, "timestamp": "2026-01-02T03:04:07Z"},
            {"question": "Who?", "response": None, "error": "TimeoutError: 30 s", "timestamp": "2026-01-02T03:04:08Z"},
        ],
        {},
    ),
    "the-same-question-again": (
        "r.jsonl",
        [{"question": f"Why {n % 2}?", "answer": f"So {n}.", "score": n / 4, "reason": f"it is {n}"} for n in range(4)],
        {},
    ),
    "costs-times-tools-and-topics": (
        "r.jsonl",
        [
            {
                "id": f"q{n}", "prompt": f"Why {n}?", "completion": f"So {n}.", "model": "m-1", "latency_ms": 100 * n,
                "input_tokens": 10 + n, "output_tokens": n, "cost_usd": n / 8, "tool_calls": CALLED, "topic": "math",
                "passed": n % 2 == 0, "finish_reason": "stop", "seed": n,
            }
            for n in range(3)
        ],
        {},
    ),
    "a-system-of-objects": (
        "r.json",
        [
            {"goal": f"Open {n}", "agent": {"name": name, "final_answer": f"Opened {n}"}, "success": n % 2}
            for n in range(3)
            for name in ("react", "plan")
        ],
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_whole_run_of_a_table(tmp_path, golden, name):
    file, rows, options = TABLES[name]
    path = tmp_path / file
    if file.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        path.write_text(rows if isinstance(rows, str) else json.dumps(rows))
    told = _whole(import_results("csv", [path], tmp_path / "runs", options=options))
    golden(f"imports/table-{name.replace(chr(32), chr(45)).replace(chr(44), '')}.jsonl", told)
