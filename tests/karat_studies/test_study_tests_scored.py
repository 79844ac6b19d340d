"""`karat score TESTS.csv --kind study-tests`: from rows to PAS and ECS."""

import csv
import json
import math
from pathlib import Path

import pytest
from tests.rounding import rounded

from karat.__main__ import main
from karat.errors import BadDataset
from karat_studies.replication import (
    log_bf10_contingency,
    log_bf10_ttest,
    log_replication_bayes_factor,
    posterior,
)
from karat_studies.score_tests import read_tests

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
    rows = [ROWS[0], "a,,F1,T1,t-test,,1,,,,,,,", ROWS[3], "a,,,T1,anova,,1,,,,,,,", f"{ROWS[0]},5"]
    with pytest.raises(BadDataset) as refused:
        read_tests(file(tmp_path, *rows))
    assert [(fault.line, fault.message.split(":")[0]) for fault in refused.value.faults] == [
        (3, "kind"),
        (4, "reported"),
        (5, "finding"),
        (6, "has more cells than the header"),
    ]
    with pytest.raises(BadDataset, match="human_statistics: is not a column of study tests \\(did you mean"):
        read_tests(file(tmp_path, ROWS[0], header=HEADER.replace("human_statistic,", "human_statistics,")))


def test_a_study_is_of_one_domain_said_in_any_of_its_rows(tmp_path):
    rows = ["a,,F1,T1,ttest_ind,,6,60,60,,-6,60,60,", "a,,F2,T1,ttest_ind,social,3,60,60,,2,60,60,"]
    (tests,) = read_tests(file(tmp_path, *rows)).values()
    assert [test.domain for test in tests] == ["social", "social"]
    with pytest.raises(BadDataset, match="study a: must have a single domain, got cognition, social"):
        read_tests(file(tmp_path, *rows, "a,,F3,T1,ttest_ind,cognition,3,60,60,,2,60,60,"))


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
    for text in (
        "Agreement with people",
        "Effects in the opposite direction\n",
        "a F1 [opposed]",
        "Cohen's d (humanstudy)",
    ):
        assert text in out
    assert "asked" not in out  # nobody is known who took part


def test_effect_sizes_alone_say_that_there_is_no_pas(tmp_path, capsys):
    header = "study,finding,test,kind,human_d,human_d_se,agent_d,agent_d_se"
    rows = [f"s,F{k},T1,ttest_ind,{k / 5},0.1,{k / 4},0.1" for k in range(4)]
    code, out, _ = run(capsys, "score", file(tmp_path, *rows, header=header), "--kind", "study-tests")
    assert code == 0
    assert "agent: no test statistic: no Bayes factor, no PAS" in out


def test_the_files_of_humanstudy_are_written(tmp_path, capsys):
    asked = ["--kind", "study-tests", "--to", "humanstudy", "--out", tmp_path / "out"]
    code, _, err = run(capsys, "score", file(tmp_path, *ROWS[:3]), *asked)
    assert code == 0
    assert err.count("wrote ") == 3 + 2 * 2  # three tables, and two files for each of the studies
    with (tmp_path / "out" / "detailed_stats.csv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["Test_ID"] for row in rows] == ["T1", "T2", "T1"]
    assert rows[0]["Direction_Match"] == "False"
    assert float(rows[0]["Log_BF_Human"]) == pytest.approx(math.log(4.674302193497725), abs=1e-9)
    results = json.loads((tmp_path / "out" / "evaluation_results.json").read_text(encoding="utf-8"))
    assert [one["study_id"] for one in results] == ["a", "b"]
    auxiliary = results[0]["auxiliary"]
    assert set(auxiliary) >= {"normalized_score", "ecs_strict_study", "ecs_strict_study_chi2"}
    # Nobody is known who could answer at random: a table of tests has no floor.
    assert [auxiliary[name] for name in ("floor_score", "floor_ecs_corr_study")] == [None, None]
    summary = json.loads((tmp_path / "out" / "benchmark_summary.json").read_text(encoding="utf-8"))["agent"]
    assert summary["n_tests"] == 3
    assert set(summary["ecs_per_domain"]) == {"cognition", "social"}


def test_opposite_decisive_evidence_is_named_with_its_strength(tmp_path, capsys):
    rows = ["a,,F1,T1,ttest_ind,,6,60,60,,-6,60,60,", "a,,F1,T2,ttest_ind,,2.9,60,60,,-2.9,60,60,"]
    _, out, _ = run(capsys, "score", file(tmp_path, *rows), "--kind", "study-tests")
    lines = out.partition("Effects in the opposite direction\n")[2].splitlines()
    assert [line.split() for line in lines[3:5]] == [
        ["a", "F1", "T1", "13.1", "13.1", "+1.10", "−1.10", "decisive"],
        ["a", "F1", "T2", "2.1", "2.1", "+0.53", "−0.53"],
    ]
    found = json.loads(run(capsys, "score", tmp_path / "tests.csv", "--kind", "study-tests", "--json")[1])["agent"]
    first, second = found["tests"]
    assert first["pas"] > 0.99 and first["pas_directional"] < 0.01
    assert (first["opposed"], first["decisive"], second["decisive"]) == (True, True, False)


SHARES = "a,,F2,T1,binomial,,40,60,,,50,60,,"


def test_the_other_convention_stands_beside_the_chosen_one(tmp_path, capsys):
    rows = [*ROWS[:3], SHARES]
    path = file(tmp_path, *rows)
    _, out, _ = run(capsys, "score", path, "--kind", "study-tests")
    assert "ECS, standard" in out
    found = {}
    for convention in ("humanstudy", "standard"):
        asked = ("--kind", "study-tests", "--json", "--convention", convention)
        found[convention] = json.loads(run(capsys, "score", path, *asked)[1])["agent"]
    one, other = found["humanstudy"], found["standard"]
    assert one["other_convention"]["ecs"]["value"] == pytest.approx(other["benchmark"]["ecs"]["value"])
    assert one["tests"][3]["other_convention"]["agent_d"] == pytest.approx(other["tests"][3]["agent"]["d"])
    assert other["other_convention"]["convention"] == "humanstudy"


def test_what_replication_asks_besides_is_told(tmp_path, capsys):
    path = file(tmp_path, *ROWS[:3])
    asked = ("--kind", "study-tests", "--bound", "0.5")
    _, out, _ = run(capsys, "score", path, *asked)
    assert "small telescopes p  p, |difference| < 0.5" in out
    found = json.loads(run(capsys, "score", path, *asked, "--json")[1])["agent"]
    measures = found["tests"][0]["measures"]
    assert measures["log_replication_bf"] == pytest.approx(log_replication_bayes_factor(2.66, (40, 40), -3.1, (40, 40)))
    assert measures["prediction"]["inside"] is False
    assert measures["telescopes"]["p"] < 0.05
    assert measures["equivalence"]["low"] == -0.5
    assert found["tests"][1]["measures"]["telescopes"] is None  # a table has no t
    assert 0 < found["noise_ceiling"]["ecs"] < 1 and found["noise_ceiling"]["tests"] == 3
    without = json.loads(run(capsys, "score", path, "--kind", "study-tests", "--json")[1])["agent"]
    assert without["tests"][0]["measures"]["equivalence"] is None


def test_all_that_is_told_of_tests_of_each_kind(tmp_path, capsys, golden):
    more = [
        "b,two,F2,T1,welch,,t(60) = 2.0,30,35,,2.4,30,35,",
        "b,two,F3,T1,ttest_paired,,t(29) = -2.2,30,,,-0.4,30,,",
        "c,,F1,T1,spearman,,r = .30,60,,,.28,80,,",
        "c,,F2,T1,mannwhitney,,U = 210,25,25,,190,25,25,",
        'c,,F3,T1,anova,social,"F(2, 87) = 4.10",,,,"F(2, 87) = 5.2",,,',
    ]
    path = file(tmp_path, *ROWS[:3], SHARES, *more)
    asked = ("score", path, "--kind", "study-tests", "--bound", "0.5")
    code, text, error = run(capsys, *asked)
    assert code == 0, error
    _, numbers, _ = run(capsys, *asked, "--json")
    golden("studies/score-tests.txt", text.replace(str(tmp_path), ""))
    golden("studies/score-tests.json", rounded(numbers.replace(str(tmp_path), "")))


def covered(*shares: str) -> tuple[list[str], str]:
    rows = [f"{row},{share}" for row, share in zip(ROWS[:3], shares, strict=True)]
    return rows, f"{HEADER},coverage"


def test_a_finding_of_few_readable_answers_is_not_scored(tmp_path, capsys):
    rows, header = covered("0.9", "0.45", "0.7")
    path = file(tmp_path, *rows, header=header)
    _, out, _ = run(capsys, "score", path, "--kind", "study-tests")
    assert "coverage 0.45, below 0.5: not scored" in out
    assert "b one/F1 [few answers]" in out
    found = json.loads(run(capsys, "score", path, "--kind", "study-tests", "--json")[1])["agent"]
    assert found["benchmark"]["tests_used"] == 1  # both tests of a/F1: the lowest coverage of a finding counts
    assert found["findings"][0]["pas"] is None
    asked = ["--kind", "study-tests", "--to", "humanstudy", "--out", tmp_path / "out"]
    assert run(capsys, "score", path, *asked)[0] == 0
    with (tmp_path / "out" / "detailed_stats.csv").open(encoding="utf-8", newline="") as opened:
        assert [row["Coverage"] for row in csv.DictReader(opened)] == ["0.9", "0.45", "0.7"]


def test_a_coverage_is_a_share(tmp_path):
    rows, header = covered("0.9", "95", "")
    with pytest.raises(BadDataset, match="coverage: must be a share between 0 and 1, got '95'"):
        read_tests(file(tmp_path, *rows, header=header))


def test_conditions_are_compared_over_tests_scored_under_both(tmp_path, capsys):
    rows = [f"{row},one" for row in ROWS[:3]] + [f"{row},two" for row in ROWS[:3]]
    path = file(tmp_path, *rows, header=f"{HEADER},condition")
    _, out, _ = run(capsys, "score", path, "--kind", "study-tests")
    assert "two − one" in out
    assert "  PAS  0.000 [" in out and "over 3 tests" in out
    found = json.loads(run(capsys, "score", path, "--kind", "study-tests", "--json")[1])
    against = found["two"]["against"]
    assert against["condition"] == "one"
    assert against["pas"]["low"] < 0 < against["pas"]["high"]  # drawn apart, so equal conditions still vary
    assert against["ecs"]["low"] < 0 < against["ecs"]["high"]
    assert "against" not in found["one"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "humanstudi", "--out", "x"], "'humanstudi' is not 'humanstudy'"),
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
    assert "--to: is for --kind study-tests only" in err
