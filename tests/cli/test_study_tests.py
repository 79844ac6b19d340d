"""`karat score TESTS.csv --kind study-tests`: from rows to PAS and ECS."""

import csv
import json
import math
from pathlib import Path

import pytest

from karat.__main__ import main
from karat.cli.study_tests import read_tests
from karat.errors import BadDataset
from karat.replication import log_bf10_contingency, log_bf10_ttest, posterior

SIDE = ("statistic", "n1", "n2", "table")
HEADER = ",".join(
    ["study,sub_study,finding,test,kind,domain", *(f"{who}_{what}" for who in ("human", "agent") for what in SIDE)]
)
ROWS = [
    'a,,F1,T1,ttest_ind,cognition,"t(78) = 2.66, p < .01",40,40,,t(78) = −3.1,40,40,',
    'a,,F1,T2,contingency,cognition,,,,"121,34;43,109",,,,"90,10;50,50"',
    'b,one,F1,T1,correlation,social,r(48) = .40,,,,"r = .35, N = 50",,,',
    "b,two,F1,T1,anova,social,n.s.,,,,3.0,,,",
]


def file(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "tests.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def run(capsys, *arguments) -> tuple[int, str, str]:
    code = main([*map(str, arguments)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_reported_strings_and_numbers_are_read_for_either_side(tmp_path):
    (tests,) = read_tests(file(tmp_path, *ROWS[:3])).values()
    assert (tests[0].human.statistic, tests[0].human.n1, tests[0].agent.statistic) == (2.66, 40, -3.1)
    assert tests[1].human.table == ((121, 34), (43, 109))
    assert (tests[2].human.n1, tests[2].agent.n1) == (50, 50)


def test_every_fault_is_told_with_its_line(tmp_path):
    rows = [ROWS[0], "a,,F1,T1,t-test,,1,,,,,,,", ROWS[3], "a,,,T1,anova,,1,,,,,,,"]
    with pytest.raises(BadDataset) as refused:
        read_tests(file(tmp_path, *rows))
    assert [(fault.line, fault.message.split(":")[0]) for fault in refused.value.faults] == [
        (3, "kind"),
        (4, "reported"),
        (5, "finding"),
    ]
    with pytest.raises(BadDataset, match="human_statistics: is no column of study tests \\(did you mean"):
        read_tests(file(tmp_path, ROWS[0], header=HEADER.replace("human_statistic,", "human_statistics,")))


def test_the_numbers_come_as_json(tmp_path, capsys):
    code, out, _ = run(capsys, "score", file(tmp_path, *ROWS[:3]), "--kind", "study-tests", "--json")
    assert code == 0
    found = json.loads(out)["agent"]
    first, second = found["tests"][0], found["tests"][1]
    assert first["pi_human"] == pytest.approx(posterior(log_bf10_ttest(2.66, 40, 40)))
    assert second["human"]["log_bf"] == pytest.approx(log_bf10_contingency([[121, 34], [43, 109]]))
    assert first["same_direction"] is False
    assert found["benchmark"]["tests_used"] == 3
    assert found["uncertainty"]["replicates"] == 2000
    assert found["uncertainty"]["pas"][0]["level"] == "benchmark"


def test_the_text_names_both_numbers_and_opposite_findings(tmp_path, capsys):
    rows = ["a,,F1,T1,ttest_ind,,6,60,60,,-6,60,60,", "a,,F2,T1,ttest_ind,,3,60,60,,2,60,60,"]
    code, out, _ = run(capsys, "score", file(tmp_path, *rows), "--kind", "study-tests")
    assert code == 0
    assert "PAS  " in out and "ECS  " in out
    assert "Effects in opposite directions, which PAS alone would hide: a/F1" in out
    assert "convention humanstudy" in out


def test_effect_sizes_alone_say_that_there_is_no_pas(tmp_path, capsys):
    header = "study,finding,test,kind,human_d,human_d_se,agent_d,agent_d_se"
    rows = [f"s,F{k},T1,ttest_ind,{k / 5},0.1,{k / 4},0.1" for k in range(4)]
    code, out, _ = run(capsys, "score", file(tmp_path, *rows, header=header), "--kind", "study-tests")
    assert code == 0
    assert "no test has a statistic on both sides: there is an ECS and no PAS" in out


def test_the_files_of_humanstudy_are_written(tmp_path, capsys):
    asked = ["--kind", "study-tests", "--to", "humanstudy", "--out", tmp_path / "out"]
    code, _, err = run(capsys, "score", file(tmp_path, *ROWS[:3]), *asked)
    assert code == 0
    assert err.count("wrote ") == 3
    with (tmp_path / "out" / "detailed_stats.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["Test_ID"] for row in rows] == ["T1", "T2", "T1"]
    assert rows[0]["Direction_Match"] == "False"
    assert float(rows[0]["Log_BF_Human"]) == pytest.approx(math.log(4.674302193497725), abs=1e-9)
    results = json.loads((tmp_path / "out" / "evaluation_results.json").read_text(encoding="utf-8"))
    assert [one["study_id"] for one in results] == ["a", "b"]
    assert set(results[0]["auxiliary"]) == {"normalized_score", "ecs_strict_study"}
    summary = json.loads((tmp_path / "out" / "benchmark_summary.json").read_text(encoding="utf-8"))["agent"]
    assert summary["n_tests"] == 3
    assert set(summary["ecs_per_domain"]) == {"cognition", "social"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "humanstudi", "--out", "x"], "'humanstudi' is no form of study tests (did you mean 'humanstudy'?)"),
        (["--to", "humanstudy"], "--out: is needed with --to humanstudy"),
        (["--out", "x"], "--out: is for --to humanstudy"),
    ],
)
def test_flags_that_make_no_sense_are_refused(tmp_path, capsys, arguments, message):
    code, _, err = run(capsys, "score", file(tmp_path, ROWS[0]), "--kind", "study-tests", *arguments)
    assert code == 2
    assert message in err


def test_flags_of_study_tests_are_refused_for_answers(tmp_path, capsys):
    code, _, err = run(capsys, "score", file(tmp_path, ROWS[0]), "--to", "humanstudy")
    assert code == 2
    assert "are for --kind study-tests" in err
