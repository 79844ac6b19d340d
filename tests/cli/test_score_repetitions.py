"""Rows of one question are one sample: repetitions and conditions are found wherever rows hold answers."""

from __future__ import annotations

import json

import pytest

HEAD = "question,golden,answer"


def scored(karat, here, text, *flags, name="answers.csv"):
    """The summary of `karat score FILE` for a file with this content."""
    (here / name).write_text(text, encoding="utf-8")
    done = karat("score", name, "--scorer", "equals", *flags, "--json")
    assert done.code == 0, done.err
    return done.json["summary"], done.err


def shape(summary):
    repetitions = summary["total"]["ledger"]["planned"] // (summary["samples"] * len(summary["conditions"]))
    return summary["samples"], summary["conditions"], repetitions


def rows(head, *lines):
    return "\n".join([head, *lines]) + "\n"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(
            rows(f"id,{HEAD}", "a,A?,x,x", "a,A?,x,y", "b,B?,x,x", "b,B?,x,z"), (2, ["answers"], 2), id="by id"
        ),
        pytest.param(
            rows(f"id,{HEAD}", "1,A?,x,x", "2,A?,x,y", "3,B?,x,x", "4,B?,x,z"), (2, ["answers"], 2), id="ids of rows"
        ),
        pytest.param(rows(HEAD, "A?,x,x", "A? ,x,y", "B?,x,x", "B?,x,z"), (2, ["answers"], 2), id="by text"),
        pytest.param(rows(HEAD, "A?,x,x", "A?,y,y"), (2, ["answers"], 1), id="another golden answer"),
        pytest.param(
            rows(f"{HEAD},repetition", "A?,x,x,1", "A?,x,x,2", "B?,x,x,1", "B?,x,x,2"), (2, ["answers"], 2), id="from 1"
        ),
        pytest.param(
            rows(f"{HEAD},repetition", "A?,x,x,10", "A?,x,x,20", "B?,x,x,20", "B?,x,x,10"),
            (2, ["answers"], 2),
            id="10 and 20",
        ),
        pytest.param(
            rows(f"{HEAD},repetition", "A?,x,x,first", "A?,x,x,second"), (1, ["answers"], 2), id="named repetitions"
        ),
        pytest.param(
            rows(f"{HEAD},repetition", "A?,x,x,7", "A?,x,x,3", "B?,x,x,9", "B?,x,x,4"), (2, ["answers"], 2), id="seeds"
        ),
        pytest.param(rows(f"{HEAD},model", "A?,x,x,gpt", "A?,x,y,claude"), (1, ["gpt", "claude"], 1), id="models"),
        pytest.param(
            rows(f"{HEAD},Model Name", "A?,x,x,openai/gpt-4o", "A?,x,y,b:c"),
            (1, ["openai/gpt-4o", "b:c"], 1),
            id="another name",
        ),
        pytest.param(
            rows(f"{HEAD},model,variant", "A?,x,x,m,u", "A?,x,y,m,v", "A?,x,x,n,u", "A?,x,y,n,v"),
            (1, ["u · m", "v · m", "u · n", "v · n"], 1),
            id="two columns",
        ),
        pytest.param(
            rows(f"{HEAD},condition,model", "A?,x,x,u,m", "A?,x,y,v,n"), (1, ["u", "v"], 1), id="models of conditions"
        ),
        pytest.param(rows(f"{HEAD},system", "A?,x,x,u", "B?,x,y,v"), (2, ["answers"], 1), id="of questions"),
    ],
)
def test_rows_of_one_question_are_one_sample(karat, here, text, want):
    summary, _ = scored(karat, here, text)
    assert shape(summary) == want


def test_rows_of_json_lines_are_grouped_alike(karat, here):
    lines = [{"question": "A?", "golden": "x", "answer": said, "model": model} for model in "uv" for said in "xyz"]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    summary, said = scored(karat, here, text, name="answers.jsonl")
    assert shape(summary) == (1, ["u", "v"], 3)
    assert "one question: the same question and golden; conditions: model (u, v); up to 3 repetitions" in said


def test_identical_rows_count_once_and_are_named(karat, here):
    summary, _ = scored(karat, here, rows(HEAD, "A?,x,x", "A?,x,x", "B?,x,y"))
    assert shape(summary) == (2, ["answers"], 1)
    (warning,) = [text for text in summary["warnings"] if "word for word" in text]
    assert "1 line repeats an earlier line word for word and count once (line 3)" in warning


def test_a_row_after_a_copy_is_no_copy_unless_it_is_one(karat, here):
    lines = ["A?,x,x", "A?,x,x", "A?,x,y", "B?,x,x", "B?,x,z"]
    (warning,) = [text for text in scored(karat, here, rows(HEAD, *lines))[0]["warnings"] if "word for word" in text]
    assert "1 line repeats an earlier line word for word and count once (line 3)" in warning


UNEVEN = ("A?,x,x", "A?,x,y", "A?,x,z", "B?,x,x", "B?,x,y", "C?,x,x")


@pytest.mark.parametrize(
    ("text", "flags", "ledger"),
    [
        pytest.param(rows(HEAD, *UNEVEN), [], (6, 6), id="in one file"),
        pytest.param(
            rows(f"{HEAD},model", *(f"{row},{model}" for model in "uv" for row in UNEVEN[:4])), [], (8, 8), id="models"
        ),
        pytest.param(rows("id,answer", "a,x", "a,y", "b,x"), ["--dataset", "asked.jsonl"], (4, 3), id="one is missing"),
    ],
)
def test_questions_that_were_answered_less_often_lack_nothing(karat, here, text, flags, ledger):
    asked = [{"id": name, "question": f"{name}?", "answer": "x"} for name in "abc"]
    (here / "asked.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    (here / "answers.csv").write_text(text, encoding="utf-8")
    done = karat("score", "answers.csv", "--scorer", "equals", *flags, "--json")
    planned, scored = ledger
    assert done.code == (0 if planned == scored else 3)
    counts = done.json["summary"]["total"]["ledger"]
    assert (counts["planned"], counts["scored"], counts["agent"]) == (planned, scored, planned - scored)
    assert [one["n_missing"] for one in done.json["summary"]["results"]][-1] == planned - scored


@pytest.mark.parametrize(
    ("of_u", "of_v", "copies", "ledger"),
    [
        pytest.param("2222", "2222", "", (16, 16), id="as often"),
        pytest.param("2211", "2211", "", (12, 12), id="some questions less often"),
        pytest.param("2222", "1111", "", (12, 12), id="one condition asked once"),
        pytest.param("2222", "1122", "", (16, 14), id="two lost"),
        pytest.param("2222", "1122", "A", (15, 14), id="one of them a copy"),
    ],
)
def test_what_one_condition_has_less_often_than_another_was_lost(karat, here, of_u, of_v, copies, ledger):
    """Rows that are identical count once, and are not missing."""
    kept = [
        f"{name}?,x,{said},{model}"
        for model, counts in (("u", of_u), ("v", of_v))
        for name, count in zip("ABCD", counts, strict=True)
        for said in "xy"[: int(count)]
    ]
    kept += [f"{name}?,x,x,v" for name in copies]
    (here / "answers.csv").write_text(rows(f"{HEAD},model", *kept), encoding="utf-8")
    counts = karat("score", "answers.csv", "--scorer", "equals", "--json").json["summary"]["total"]["ledger"]
    assert (counts["planned"], counts["scored"]) == ledger


def test_a_repetition_that_the_rows_number_is_missing_if_it_has_no_row(karat, here):
    text = rows(f"{HEAD},repetition", "A?,x,x,0", "A?,x,y,1", "B?,x,x,0")
    (here / "answers.csv").write_text(text, encoding="utf-8")
    done = karat("score", "answers.csv", "--scorer", "equals", "--json")
    assert done.code == 3
    assert done.json["summary"]["total"]["ledger"]["agent"] == 1


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize(
    ("lines", "planned"),
    [
        pytest.param(("a,1", "a,0", "b,1"), 3, id="uneven"),
        pytest.param(("a,1", "a,0", "b,"), 4, id="a row without a result"),
        pytest.param(("a,1", "b,oops", "c,0"), 3, id="a row that cannot be read"),
    ],
)
def test_an_imported_table_lacks_only_what_its_rows_lack(karat, here, lines, planned):
    (here / "r.csv").write_text(rows("id,score.ok", *lines), encoding="utf-8")
    (made,) = karat("import", "csv", "r.csv", "--json").json["runs"]
    said = karat("report", made["run"], "--to", "json").json
    assert said["total"]["ledger"]["planned"] == planned
    lacking = any("without a result" in text for text in said["warnings"])
    assert lacking is (said["total"]["ledger"]["scored"] < planned)


@pytest.mark.parametrize(
    ("of_u", "of_v", "planned"), [("21", "21", 6), ("22", "11", 6), ("22", "21", 8), ("21", "12", 8)]
)
def test_an_imported_table_lacks_what_another_condition_has(karat, here, of_u, of_v, planned):
    table = [
        f"{name},{'10'[at]},{model}"
        for model, counts in (("u", of_u), ("v", of_v))
        for name, count in zip("ab", counts, strict=True)
        for at in range(int(count))
    ]
    (here / "r.csv").write_text(rows("id,score.ok,model", *table), encoding="utf-8")
    flags = ["--map", "condition=model", "--set", "unnamed=repetitions", "--json"]
    (made,) = karat("import", "csv", "r.csv", *flags).json["runs"]
    ledger = karat("report", made["run"], "--to", "json").json["total"]["ledger"]
    assert (ledger["planned"], ledger["scored"]) == (planned, len(table))


PARTED = [f"{q}?,x,x{value},{value}" for q in "AB" for value in ("{0}", "{1}")]


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("version", ("v1", "v2"), True),
        ("temperature", ("0", "0.7"), True),
        ("prompt", ("short", "long"), True),
        ("seed", ("1", "2"), False),
    ],
)
@pytest.mark.parametrize("command", [("score", "--scorer", "equals"), ("import", "csv")])
def test_a_column_that_looks_like_conditions_is_named(karat, here, column, values, said, command):
    text = rows(f"{HEAD},{column}", *(line.format(*values) for line in PARTED))
    (here / "answers.csv").write_text(text, encoding="utf-8")
    first, *flags = command
    done = karat(first, *(flags if first == "import" else []), "answers.csv", *(flags if first == "score" else []))
    assert done.code == 0
    assert (f"--map condition={column}" in " ".join((done.out + done.err).split())) is said


CROSSED = [f"{q}?,x,x{k}{model},{k},{model}" for q in "ABCDE" for k in (1, 3, 5) for model in "mn"]


@pytest.mark.parametrize("flags", [[], ["--map", "condition=k"], ["--map", "condition=model"]])
def test_conditions_are_crossed_whether_they_are_named_or_found(karat, here, flags):
    summary, said = scored(karat, here, rows(f"{HEAD},k,model", *CROSSED), *flags)
    _, conditions, repetitions = shape(summary)
    assert (len(conditions), repetitions) == (6, 1)
    assert "k and model" in said or "model and k" in said


def test_repetitions_that_are_named_are_no_conditions(karat, here):
    text = rows(f"{HEAD},k,model", *CROSSED)
    summary, _ = scored(karat, here, text, "--map", "repetition=k")
    assert shape(summary) == (5, ["m", "n"], 3)


def test_score_names_a_column_that_looks_like_a_cluster(karat, here):
    text = rows(f"{HEAD},page", *(f"q{n}?,x,x,p{n // 3}" for n in range(9)))
    _, said = scored(karat, here, text)
    assert "9 questions share 3 values of 'page'" in said
    assert "share" not in scored(karat, here, text, "--cluster", "page")[1]


def test_score_counts_the_clusters_that_are_named(karat, here):
    """Twelve questions of six pages, all answers of a page alike: the interval is that of six questions."""
    text = rows(f"{HEAD},page", *(f"q{n}?,x,{'xy'[n // 2 % 2]},p{n // 2}" for n in range(12)))
    found, _ = scored(karat, here, text, "--cluster", "page")
    alone, _ = scored(karat, here, rows(HEAD, *(f"q{n}?,x,{'xy'[n % 2]}" for n in range(6))))
    clustered, of_six = (summary["results"][0]["mean"] for summary in (found, alone))
    assert clustered["value"] == of_six["value"] == 0.5
    assert (clustered["low"], clustered["high"]) == pytest.approx((of_six["low"], of_six["high"]), abs=0.02)


def test_two_answers_to_one_repetition_are_a_fault(karat, here):
    (here / "answers.csv").write_text(rows(f"{HEAD},repetition", "A?,x,x,1", "A?,x,y,1"), encoding="utf-8")
    done = karat("score", "answers.csv", "--scorer", "equals")
    assert done.code == 2
    assert "line 3: a second answer for sample" in done.err


def test_each_answer_column_is_a_condition(karat, here):
    text = rows("question,golden,mine,theirs", "A?,x,x,y", "B?,x,x,x")
    summary, _ = scored(karat, here, text, "--answer", "mine", "--answer", "theirs")
    assert shape(summary) == (2, ["mine", "theirs"], 1)
    assert [result["mean"]["value"] for result in summary["results"]] == [1.0, 0.5]


def test_answer_columns_and_a_column_of_conditions_are_refused(karat, here):
    text = rows("question,golden,mine,theirs,model", "A?,x,x,y,m", "A?,x,x,x,n")
    (here / "answers.csv").write_text(text, encoding="utf-8")
    done = karat("score", "answers.csv", "--answer", "mine", "--answer", "theirs")
    assert done.code == 2
    assert "--answer: names several conditions, and so does the column 'model'" in done.err


def test_models_in_answers_to_a_dataset_are_conditions(karat, here):
    (here / "asked.jsonl").write_text('{"id": "a", "question": "A?", "answer": "x"}\n', encoding="utf-8")
    text = rows("id,answer,model", "a,x,gpt", "a,y,claude")
    summary, _ = scored(karat, here, text, "--dataset", "asked.jsonl")
    assert shape(summary) == (1, ["gpt", "claude"], 1)


def test_an_experiment_must_say_what_the_models_of_its_answers_are(karat, here):
    (here / "asked.jsonl").write_text('{"id": "a", "question": "A?", "answer": "x"}\n', encoding="utf-8")
    (here / "said.csv").write_text(rows("id,answer,model", "a,x,gpt", "a,y,claude"), encoding="utf-8")
    (here / "e.yaml").write_text(
        "dataset: {path: asked.jsonl, id_key: id}\nagent: {type: replay, path: said.csv}\n"
        "scorers: [equals]\nconditions: {recorded: {}}\nexecution: {num_repetitions: 2}\n",
        encoding="utf-8",
    )
    refused = karat("run", "e.yaml")
    assert refused.code == 2
    assert "rows differ in 'model': set `agent.condition_key: model`" in refused.err
    assert karat("run", "e.yaml", "--set", "agent.condition_key=null").code == 0


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize(
    ("text", "flags", "want"),
    [
        pytest.param(
            rows("id,epoch,score.ok", *(f"q{q},{e},1" for q in range(3) for e in (1, 2, 3))),
            ["--map", "repetition=epoch"],
            (3, 1, 3),
            id="epochs from 1",
        ),
        pytest.param(
            rows("id,repetition,score.ok", *(f"q{q},{e},1" for q in range(3) for e in (10, 20))),
            [],
            (3, 1, 2),
            id="10 and 20",
        ),
        pytest.param(rows("question,golden,answer,system", "A?,x,x,u", "A?,x,y,v"), [], (1, 2, 1), id="systems"),
        pytest.param(rows("question,golden,answer", "A?,x,x", "A?,x,x"), [], (1, 1, 1), id="identical"),
        pytest.param(rows("question,golden,answer", "A?,x,x", "A? ,x,y"), [], (1, 1, 2), id="white space"),
        pytest.param(
            rows("id,question,golden,answer", "1,A?,x,x", "1,B?,x,y", "2,C?,x,x", "2,D?,x,x"),
            [],
            (4, 1, 1),
            id="no ids",
        ),
        pytest.param(rows("id,score.ok", "a,1", "a,1", "a,0"), [], (1, 1, 3), id="scores alone"),
    ],
)
def test_an_imported_table_has_no_phantom_repetition(karat, here, text, flags, want):
    (here / "r.csv").write_text(text, encoding="utf-8")
    (made,) = karat("import", "csv", "r.csv", *flags, "--json").json["runs"]
    assert (made["samples"], len(made["conditions"]), made["repetitions"]) == want
    answers = made["counts"]["answers"]
    assert answers == want[0] * want[1] * want[2]


@pytest.mark.parametrize("flags", [(), ("--skip-unreadable",)])
@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(("1,How many?,2,2", "2,Who?,Ann,Ann", "1,Where?,Rome,Rome"), id="another question"),
        pytest.param(("1,How many?,2,2", "2,Who?,Ann,Ann", "1,How many?,3,3"), id="another golden answer"),
    ],
)
def test_answers_to_another_question_with_the_same_id_are_never_repetitions(karat, here, lines, flags):
    (here / "answers.csv").write_text(rows(f"id,{HEAD}", *lines), encoding="utf-8")
    refused = karat("score", "answers.csv", "--scorer", "equals", "--set", "dataset.id_key=id", *flags)
    assert refused.code == 2
    assert "1 id with several questions or golden answers, such as '1' (line 2 and line 4)" in " ".join(
        refused.err.split()
    )
    assert not [*here.glob("results/*")]
