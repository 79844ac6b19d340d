"""Reports of runs over human studies: the tables, rows, and the files of HumanStudy-Bench."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.karat_studies.study_story import CONDITIONS
from tests.rounding import rounded

from karat import blocks
from karat.__main__ import main
from karat.analysis import Summary
from karat.blocks import Row, Table
from karat.errors import BadOption
from karat.exports import save
from karat.exports.csv import Csv
from karat.exports.json import Json
from karat.exports.terminal import Terminal
from karat.journal import RunFolder
from karat_studies.exports.humanstudy import HEADER, Humanstudy
from karat_studies.exports.humanstudy import files as humanstudy_files
from karat_studies.kinds.study.analysis.model import SideNumbers, StudySummary
from karat_studies.kinds.study.sections import sections, statistic_of


@pytest.fixture(scope="module")
def run(study_run: RunFolder) -> RunFolder:
    return study_run


@pytest.fixture(scope="module")
def summary(study_summary: Summary) -> Summary:
    where = msgspec.structs.replace(study_summary.provenance, dataset="studies", sha256="5a" * 32, agent="replay")
    return msgspec.structs.replace(study_summary, provenance=where)


def terminal(summary: Summary, run: RunFolder, **options: Any) -> str:
    return Terminal(Terminal.Options(full=True, **options)).render(summary, run)["report.txt"]


@pytest.mark.parametrize("width", [80, 120])
def test_the_whole_report(summary: Summary, run: RunFolder, golden: Any, width: int) -> None:
    text = terminal(_without_time(summary), run, width=width)
    before, _, after = text.partition("\n  Run: ")  # then times, paths and versions of this machine
    text = before + after[after.index("\nWarnings") :]
    golden(f"terminal-study-{width}.txt", text)
    assert max(map(len, text.split("\n"))) <= width


def test_the_whole_part_of_a_summary(summary: Summary, golden: Any) -> None:
    golden("studies/summary.json", rounded(msgspec.json.encode(summary.study)))


def _without_time(summary: Summary) -> Summary:
    """How long a trial takes is nothing that stays the same."""
    nothing = msgspec.structs.replace(summary.total.latency, median=None, p95=None)
    accounts = {name: msgspec.structs.replace(one, latency=nothing) for name, one in summary.accounts.items()}
    total = msgspec.structs.replace(summary.total, latency=nothing)
    return msgspec.structs.replace(summary, accounts=accounts, total=total)


def test_every_table_says_how_many_were_asked_answered_and_parsed(summary: Summary, run: RunFolder) -> None:
    text = terminal(summary, run, width=120)
    titles = (
        "Agreement with people", "Differences between conditions", "Above the floor", "By domain", "By study",
        "Findings, like", "Effects in the opposite direction", "Findings without a score", "What could not be read",
        "Auxiliary numbers",
    )  # fmt: skip
    for title in titles:
        table = text.partition(f"\n{title}")[2].partition("\n\n")[0]
        assert table, title
        assert ("asked" in table) + ("answered" in table) + ("parsed" in table) == 3, title


def test_every_table_explains_the_marks_that_it_shows(summary: Summary) -> None:
    shown = sections(summary)
    lists = (shown.results, shown.differences, shown.variation, shown.failing, shown.cost)
    lists = (*lists, *(section.blocks for section in shown.sections))
    tables = [block for some in lists for block in some or () if isinstance(block, Table)]
    seen = set()
    for table in tables:
        cells = [blocks.written(cell) for row in table.rows if isinstance(row, Row) for cell in row.cells]
        marks = {text for text, _ in cells if text in {"–", "opposite", "other"}}
        marks |= {"*" for _, beside in cells if beside.endswith("*")}
        explained = " ".join([table.legend, *(column.legend for column in table.columns)]).lower()
        assert not [mark for mark in marks if mark not in explained], table.caption
        heads = {"copy", "ceiling", "coverage", "direction"} & {column.head for column in table.columns}
        seen |= marks | heads
        assert not [head for head in heads if f"{head}: " not in explained and head != "coverage"], table.caption
    assert seen >= {"–", "*", "opposite", "copy", "ceiling", "direction"}


def test_the_floor_stands_beside_every_condition_and_is_no_condition(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    assert part.floor is not None
    text = terminal(summary, run, width=120)
    for title in ("Agreement with people", "By domain", "By study"):
        table = text.partition(f"\n{title}\n")[2].partition("\n\n")[0]
        assert "random answers (floor)" in table, title
    between = text.partition("\nDifferences between conditions\n")[2].partition("\n\n")[0]
    assert "floor" not in between
    above = text.partition("\nAbove the floor")[2].partition("\n\n")[0]
    assert [f"\n  {name} " in above for name in CONDITIONS] == [True] * 3
    first = msgspec.structs.replace(part.conditions[0], floor=True)
    own = msgspec.structs.replace(part, conditions=(first, *part.conditions[1:]))
    both = terminal(msgspec.structs.replace(summary, parts={"study": own}), run, width=120)
    assert "like (floor)" in both
    assert "random answers (floor)" in both


def test_why_there_is_no_floor_is_said(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    assert part.floor is not None
    whole = part.floor.benchmark
    nothing = msgspec.structs.replace(whole.pas, value=None, low=None, high=None, se=None, reason="say --allow-code")
    none = msgspec.structs.replace(part.floor, benchmark=msgspec.structs.replace(whole, pas=nothing))
    text = terminal(
        msgspec.structs.replace(summary, parts={"study": msgspec.structs.replace(part, floor=none)}), run, width=120
    )
    assert "No random answers (floor): say --allow-code." in " ".join(text.split())
    assert "Above the floor" not in text
    table = msgspec.structs.replace(part, floor=None)
    assert "floor" not in terminal(msgspec.structs.replace(summary, parts={"study": table}), run, width=120)


def test_files_hold_the_floor(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    assert part.floor is not None
    first = next(csv.DictReader(io.StringIO(Csv(Csv.Options()).render(summary, run)["tests.csv"])))
    test = part.floor.tests[0]
    assert (test.study, test.finding, test.test) == (first["study"], first["finding"], first["test"])
    assert test.pas == pytest.approx(float(first["floor_pas"]))
    files = Humanstudy().render(summary, run)
    told = json.loads(files["benchmark_summary.json"])["like"]["auxiliary"]["floor"]
    more = part.floor.of("like")
    assert more is not None
    assert (told["average_pas_raw"], told["pas_raw_above_floor"]) == (part.floor.benchmark.pas.value, more.pas.value)
    results = json.loads(files["evaluation_results.json"])
    floors = {one.name: one.pas.value for one in part.floor.studies}
    assert {one["study_id"]: one["auxiliary"]["floor_score"] for one in results} == floors
    tree = json.loads(Json().render(summary, run)["summary.json"])["study"]["floor"]
    assert tree["benchmark"]["shown"]["pas"].startswith(f"{part.floor.benchmark.pas.value:.3f} [")
    assert tree["differences"][0]["shown"]["pas"].startswith("+0.")


def test_an_agent_without_a_score_has_a_dash_and_the_reason(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    first = part.conditions[0]
    nothing = msgspec.structs.replace(first.benchmark.pas, value=None, low=None, high=None, se=None)
    empty = msgspec.structs.replace(first.benchmark, pas=nothing, reason="coverage 0, below 0.5: not scored")
    other = msgspec.structs.replace(part, conditions=(msgspec.structs.replace(first, benchmark=empty),))
    text = terminal(msgspec.structs.replace(summary, parts={"study": other}), run, width=120)
    assert "like: coverage 0, below 0.5: not scored" in text


@pytest.mark.slow
def test_repetitions_stand_below_each_other(repeated_study: tuple[Summary, RunFolder]) -> None:
    text = terminal(*repeated_study, width=100)
    table = text.partition("\nRepetitions\n")[2].partition("\n\n")[0]
    assert table.count("repetition 1") == table.count("repetition 2") == len(CONDITIONS)
    assert "468 participants of 2 studies × 3 conditions × 2 repetitions" in text
    assert "Trials scored: 2,808 of 2,808" in text
    files = Humanstudy().render(*repeated_study)
    rows = list(csv.DictReader(io.StringIO(files["detailed_stats.csv"])))
    assert list(rows[0]) == [*HEADER, "Repetition"]
    assert len(rows) == 8 * len(CONDITIONS) * 2


@pytest.mark.parametrize(
    ("kind", "side", "text"),
    [
        ("contingency", {"table": ((121, 34), (43, 109))}, "121/155 vs 43/152"),
        ("contingency", {"table": ((1, 2, 3), (4, 5, 6))}, "1,2,3; 4,5,6"),
        ("binomial", {"statistic": 75.0, "n_eff": 92.0}, "75 of 92"),
        ("welch", {"statistic": -2.664}, "t −2.66"),
        ("mannwhitney", {"statistic": 451.0}, "U 451"),
        ("anova", {"statistic": None}, "–"),
    ],
)
def test_statistics_are_written_as_one_knows_them(kind: str, side: dict[str, Any], text: str) -> None:
    nothing = dict.fromkeys(SideNumbers.__struct_fields__)
    assert statistic_of(kind, SideNumbers(**{**nothing, "reasons": (), **side})) == text


def test_csv_has_a_row_a_test_and_condition(summary: Summary, run: RunFolder) -> None:
    files = Csv().render(summary, run)
    rows = list(csv.DictReader(io.StringIO(files["tests.csv"])))
    assert len(rows) == 8 * len(CONDITIONS)
    part = summary.study
    assert part is not None
    for row in rows:
        condition = part.of(row["condition"])
        assert condition is not None
        study = condition.study(row["study"])
        assert study is not None
        counts = (study.participants.asked, study.participants.answered, study.participants.parsed)
        assert (int(row["asked"]), int(row["answered"]), int(row["parsed"])) == counts
        test = next(
            test
            for finding in study.findings
            for test in finding.tests
            if (finding.sub_study, finding.id, test.id) == (row["sub_study"], row["finding"], row["test"])
        )
        assert row["pas"] == ("" if test.pas.value is None else str(test.pas.value))
        assert (row["pas"] == "") == (row["reason"] != "")
    summaries = Csv(Csv.Options(rows="summary")).render(summary, run)["summary.csv"]
    assert summaries.startswith("condition,metric,")


def test_json_has_the_study_with_its_numbers_written(summary: Summary, run: RunFolder) -> None:
    tree = json.loads(Json().render(summary, run)["summary.json"])
    level = tree["study"]["conditions"][0]["benchmark"]
    assert level["shown"]["pas"].startswith(f"{level['pas']['value']:.3f} [")
    assert set(tree["study"]["differences"][0]["shown"]) == {"pas", "ecs"}
    del level["shown"]
    assert (
        msgspec.convert(tree["study"], StudySummary).conditions[0].benchmark.pas
        == summary.study.conditions[0].benchmark.pas
    )  # type: ignore[union-attr]


def test_files_of_humanstudy_are_refused_where_no_test_is_scored(summary: Summary, run: RunFolder) -> None:
    with pytest.raises(BadOption, match="no scores of the scorer `replication` are shown"):
        Humanstudy().render(msgspec.structs.replace(summary, parts={}), run)
    files = humanstudy_files(None)
    assert files["detailed_stats.csv"] == ",".join(HEADER) + "\n"
    assert [json.loads(files[name]) for name in ("evaluation_results.json", "benchmark_summary.json")] == [[], {}]


def test_foreign_text_stays_text(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    evil = "\x1b[31mevil\x1b[0m\x07 \u202e=1+1"
    first = part.conditions[0]
    unread = {evil: {"refused": 2}}
    arms = tuple(msgspec.structs.replace(arm, arm=evil, unread=unread) for arm in first.studies[0].arms)
    findings = tuple(
        msgspec.structs.replace(one, claim=evil, sub_study=evil, reason=evil) for one in first.studies[0].findings
    )
    study = msgspec.structs.replace(
        first.studies[0], study=evil, findings=findings, arms=arms, failures={f"agent: {evil}": 3}
    )
    nothing = msgspec.structs.replace(first.benchmark, reason=evil)
    condition = msgspec.structs.replace(first, condition=evil, studies=(study,), benchmark=nothing)
    hostile = msgspec.structs.replace(
        summary, parts={"study": msgspec.structs.replace(part, conditions=(condition,), differences=())}
    )
    for width in (80, 120):
        text = terminal(hostile, run, width=width)
        assert "evil" in text
        assert not set(text) & set("\x1b\x07\u202e")
    for files in (Csv().render(hostile, run), Humanstudy().render(hostile, run)):
        for name, written in files.items():
            assert not set(written) & set("\x1b\x07")
            if name.endswith(".csv"):
                cells = [cell for row in csv.reader(io.StringIO(written)) for cell in row]
                assert not [cell for cell in cells if cell.lstrip().startswith(("=", "@", "+"))]


def test_a_table_of_the_same_tests_gives_the_same_files(
    tmp_path: Path, summary: Summary, run: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a run exports, and what `karat score` makes of its statistics: one implementation, one result."""
    tests = list(csv.DictReader(io.StringIO(Csv().render(summary, run)["tests.csv"])))
    told = ["study", "sub_study", "finding", "test", "kind", "domain", "condition", "coverage"]
    sides = [f"{side}_{name}" for side in ("human", "agent") for name in ("statistic", "table", "n1")]
    kept = [row for row in tests if row["kind"] in {"binomial", "contingency"}]
    with (tmp_path / "tests.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*told, *sides])
        writer.writeheader()
        for row in kept:
            sizes = {f"{side}_n1": row[f"{side}_n_eff"] if row["kind"] == "binomial" else "" for side in
                     ("human", "agent")}  # fmt: skip
            writer.writerow({**{name: row[name] for name in [*told, *sides] if name in row}, **sizes})
    out = tmp_path / "out"
    assert (
        main(["score", str(tmp_path / "tests.csv"), "--kind", "study-tests", "--to", "humanstudy", "--out", str(out)])
        == 0
    )
    capsys.readouterr()
    ours = csv.DictReader(io.StringIO(Humanstudy().render(summary, run)["detailed_stats.csv"]))
    wanted = {
        (row["Condition"], row["Finding_ID"], row["Test_ID"]): row
        for row in ours
        if row["Statistical_Test_Type"] in {"binomial", "contingency"}
    }
    with (out / "detailed_stats.csv").open(encoding="utf-8", newline="") as file:
        again = {(row["Condition"], row["Finding_ID"], row["Test_ID"]): row for row in csv.DictReader(file)}
    assert again.keys() == wanted.keys()
    for key, row in wanted.items():
        for column, cell in row.items():
            assert again[key][column] == cell or float(again[key][column]) == pytest.approx(float(cell)), (key, column)
    whole = json.loads((out / "benchmark_summary.json").read_text(encoding="utf-8"))["like"]
    assert whole["participants"] is None and whole["total_cost"] is None


# ── The export, computed again from the journal, in plain Python ──


def answers_of(run: RunFolder) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Condition and arm → what each participant answered; an empty one where nothing could be read."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    trials: dict[str, tuple[str, str]] = {}
    lines = [json.loads(line) for line in (run.path / "journal.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["event"] == "answer":
            trials[line["trial"]] = (line["condition"], line["sample"])
    for line in lines:
        if line["event"] == "score":
            condition, sample = trials[line["trial"]]
            arm = sample.partition("/")[2].rpartition("-")[0]
            found.setdefault((condition, arm), []).append(line["detail"].get("answers", {}))
    return found


def beta_log(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def binomial_log_bf(k: int, n: int) -> float:
    return beta_log(k + 1, n - k + 1) + n * math.log(2)


def table_log_bf(rows: list[tuple[int, int]]) -> float:
    """Two shares, each uniform, against one share for both, uniform (Gunel and Dickey, rows fixed)."""
    apart = sum(beta_log(yes + 1, no + 1) for yes, no in rows)
    yes, no = map(sum, zip(*rows, strict=True))
    return apart - beta_log(yes + 1, no + 1)


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def pas_of(human: float, agent: float) -> float:
    one, two = logistic(human), logistic(agent)
    return one * two + (1 - one) * (1 - two)


MEASURES = {  # test → arm, and who counts as yes
    "births": ("births", lambda said: said["families"] < 72),
    "programmes": ("programmes", lambda said: said["programme"] == "A"),
    "marbles": ("marbles", lambda said: said["more"] == "first"),
    "heights": ("heights", lambda said: said["odds_one"] > said["odds_six"]),
}
PEOPLE = {"births": (75, 92), "programmes": (67, 89), "marbles": (36, 52), "heights": (86, 115)}
TABLES = {"company": ((32, 39), (9, 39)), "army": ((17, 22), (6, 20))}


@pytest.fixture(scope="module")
def files(summary: Summary, run: RunFolder) -> dict[str, str]:
    return dict(Humanstudy().render(summary, run))


@pytest.fixture(scope="module")
def rows(files: dict[str, str]) -> dict[tuple[str, ...], dict[str, str]]:
    found = list(csv.DictReader(io.StringIO(files["detailed_stats.csv"])))
    assert list(found[0]) == list(HEADER)
    return {(row["Condition"], row["Study_ID"], row["Finding_ID"], row["Test_ID"]): row for row in found}


def number(text: str) -> float | None:
    return float(text) if text else None


def test_statistics_of_the_export_come_out_of_the_journal(
    run: RunFolder, rows: dict[tuple[str, ...], dict[str, str]]
) -> None:
    said = answers_of(run)
    for condition in CONDITIONS:
        for part, (arm, counts) in MEASURES.items():
            row = next(row for key, row in rows.items() if key[0] == condition and key[2].startswith(f"{part}/"))
            read = [one for one in said[condition, arm] if one]
            k, n = sum(map(counts, read)), len(read)
            assert (number(row["Agent_Test_Statistic"]), number(row["Agent_N_Eff"])) == (k, n)
            assert number(row["Coverage"]) == pytest.approx(n / len(said[condition, arm]))
            evidence = [binomial_log_bf(*PEOPLE[part]), binomial_log_bf(k, n)]
            assert number(row["Log_BF_Human"]) == pytest.approx(evidence[0])
            assert number(row["Log_BF_Agent"]) == pytest.approx(evidence[1])
            assert number(row["PAS_Raw"]) == pytest.approx(pas_of(*evidence))
            assert row["Direction_Match"] == str((k > n / 2) == (PEOPLE[part][0] > PEOPLE[part][1] / 2))
            d = 2 * (k / n - 0.5) / 0.5
            assert number(row["Agent_Effect_d"]) == pytest.approx(d)


def test_tables_of_the_export_come_out_of_the_journal(
    run: RunFolder, rows: dict[tuple[str, ...], dict[str, str]]
) -> None:
    said = answers_of(run)
    for condition in CONDITIONS:
        for part, people in TABLES.items():
            row = rows[condition, "side_effects", f"{part}/F1", "T1"]
            table = []
            for side in ("harm", "help"):
                read = [one["intentional"] for one in said[condition, f"{part}_{side}"] if "intentional" in one]
                table.append((read.count("yes"), read.count("no")))
            coverage = min(
                sum("intentional" in one for one in said[condition, f"{part}_{side}"])
                / len(said[condition, f"{part}_{side}"])
                for side in ("harm", "help")
            )
            assert number(row["Coverage"]) == pytest.approx(coverage)
            if coverage < 0.5:
                assert row["Agent_Test_Statistic"] == row["PAS_Raw"] == row["Log_BF_Agent"] == ""
                continue
            assert row["Agent_Test_Statistic"] == ";".join(f"{yes},{no}" for yes, no in table)
            evidence = [table_log_bf([(k, n - k) for k, n in people]), table_log_bf(table)]
            assert number(row["Log_BF_Human"]) == pytest.approx(evidence[0])
            assert number(row["PAS_Raw"]) == pytest.approx(pas_of(*evidence))


def test_means_of_the_export_come_out_of_its_rows(
    files: dict[str, str], rows: dict[tuple[str, ...], dict[str, str]]
) -> None:
    """Every finding here has one test, so its score is that of the test."""
    results = json.loads(files["evaluation_results.json"])
    whole = json.loads(files["benchmark_summary.json"])
    assert [(one["study_id"], one["condition"]) for one in results] == [
        (study, condition) for condition in CONDITIONS for study in ("representativeness", "side_effects")
    ]
    for one in results:
        own = [row for key, row in rows.items() if key[:2] == (one["condition"], one["study_id"])]
        known = [value for row in own if (value := number(row["PAS_Raw"])) is not None]
        assert one["score"] == pytest.approx(sum(known) / len(known))
        assert (one["tests_used"], one["tests_planned"]) == (len(known), len(own))
        scores = [finding["finding_score"] for finding in one["finding_results"]]
        assert scores == pytest.approx([number(row["PAS_Raw"]) for row in own], nan_ok=True)
    for condition in CONDITIONS:
        scores = [one["score"] for one in results if one["condition"] == condition]
        found = whole[condition]
        assert found["average_pas_raw"] == pytest.approx(sum(scores) / 2)
        assert found["average_ecs"] == pytest.approx(
            concordance([row for key, row in rows.items() if key[0] == condition])
        )
        assert found["n_tests"] == sum(one["tests_used"] for one in results if one["condition"] == condition)


def concordance(rows: list[dict[str, str]]) -> float:
    """Lin's, with the weight of a test 1 / studies / findings in the study (each has one test here)."""
    pairs = [(row["Study_ID"], number(row["Human_Effect_d"]), number(row["Agent_Effect_d"])) for row in rows]
    known = [(study, x, y) for study, x, y in pairs if x is not None and y is not None]
    studies = {study for study, _, _ in known}
    w = [1 / len(studies) / sum(other[0] == study for other in known) for study, _, _ in known]
    mx = sum(weight * x for weight, (_, x, _) in zip(w, known, strict=True))
    my = sum(weight * y for weight, (_, _, y) in zip(w, known, strict=True))
    vx = sum(weight * (x - mx) ** 2 for weight, (_, x, _) in zip(w, known, strict=True))
    vy = sum(weight * (y - my) ** 2 for weight, (_, _, y) in zip(w, known, strict=True))
    both = sum(weight * (x - mx) * (y - my) for weight, (_, x, y) in zip(w, known, strict=True))
    return 2 * both / (vx + vy + (mx - my) ** 2)


def test_participants_and_failures_stand_beside_the_scores(run: RunFolder, files: dict[str, str]) -> None:
    said = answers_of(run)
    for one in json.loads(files["evaluation_results.json"]):
        people = one["participants"]
        arms = one["failure_rates"]["arms"]
        assert people["planned"] == sum(len(said[one["condition"], arm]) for arm in arms)
        assert people["parsed"] == sum(arm["participants"]["parsed"] for arm in arms.values())
        assert one["failure_rates"]["not_parsed"] == pytest.approx(1 - people["parsed"] / people["planned"])
        refused = sum(kinds.get("refused", 0) for arm in arms.values() for kinds in arm["unread"].values())
        assert (refused > 0) == (one["condition"] == "shy")
        assert one["usage"]["calls"] == people["planned"]
        assert one["usage"]["total_cost"] is one["usage"]["input_tokens"] is None  # nobody told


def test_the_summary_has_the_shape_of_published_results(files: dict[str, str], shared_data: Path) -> None:
    published = json.loads((shared_data / "humanstudy" / "results.json").read_text(encoding="utf-8"))
    theirs = next(iter(published["configs"].values()))
    ours = json.loads(files["benchmark_summary.json"])["like"]
    for part in ("studies", "findings"):
        assert list(ours[part][0]) == list(theirs[part][0])
    assert {"total_tokens", "total_cost"} <= set(ours) & set(theirs)


def read_as_the_benchmark_does(results: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Condition → study → numbers, as `scripts/simple_results.py --results-dir results/benchmark` takes them.

    It looks into `study_*/CONFIG/`, wants `full_benchmark.json`, takes `evaluation_results.json` as one object, and
    makes a float of every score of a finding, of tokens and of the cost; null would end it.
    """
    read: dict[str, dict[str, dict[str, Any]]] = {}
    for place in sorted(results.glob("study_*/*/full_benchmark.json")):
        whole = json.loads(place.read_text(encoding="utf-8"))
        evaluated = json.loads((place.parent / "evaluation_results.json").read_text(encoding="utf-8"))
        usage = whole["usage_stats"]
        read.setdefault(place.parent.name, {})[place.parent.parent.name] = {
            "title": whole["title"][:40],
            "participants": len(whole["individual_data"]),
            "tokens": f"{usage.get('total_tokens', 0):,}",
            "cost": f"{float(usage.get('total_cost', 0.0)):.4f}",
            "pas": evaluated.get("score"),
            "ecs": evaluated.get("ecs_corr_study"),
            "failed": evaluated.get("failure_rates", {}).get("raw_failure_rate"),
            "findings": {
                (one["sub_study_id"], one["finding_id"]): float(one.get("finding_score", 0))
                for one in sorted(
                    evaluated["finding_results"], key=lambda one: (one["sub_study_id"], one["finding_id"])
                )
            },
            "effects": [_effects(one) for one in evaluated["test_results"]],
        }
    return read


def _effects(test: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """As its `compute_ecs_corr` takes them: of a test without a d it makes one of the effect size, whatever that is."""
    human, agent = (
        float(test[f"{side}_effect_size"]) if test.get(f"{side}_effect_d") is None and f"{side}_effect_size" in test
        else test.get(f"{side}_effect_d")
        for side in ("human", "agent")
    )  # fmt: skip
    return human, agent


def test_an_effect_without_a_d_is_not_given_to_the_benchmark_s_script(summary: Summary, run: RunFolder) -> None:
    part = summary.study
    assert part is not None
    first = part.conditions[0]
    study = first.studies[0]
    finding = study.findings[0]
    test = finding.tests[0]
    row = test.repetitions[0]
    eta = msgspec.structs.replace(row.human, d=None, effect=0.3)
    test = msgspec.structs.replace(test, repetitions=(msgspec.structs.replace(row, human=eta),))
    finding = msgspec.structs.replace(finding, tests=(test,))
    study = msgspec.structs.replace(study, findings=(finding,))
    only = msgspec.structs.replace(first, studies=(study,))
    changed = msgspec.structs.replace(summary, parts={"study": msgspec.structs.replace(part, conditions=(only,))})
    files = Humanstudy().render(changed, run)
    (name,) = (name for name in files if name.startswith("benchmark/") and name.endswith("evaluation_results.json"))
    (theirs,) = json.loads(files[name])["test_results"]
    assert _effects(theirs) == (None, row.agent.d)
    assert None not in theirs.values()
    (ours,) = json.loads(files["evaluation_results.json"])
    assert ours["test_results"][0]["human_effect_size"] == 0.3


def test_the_folders_of_humanstudy_bench_are_read_by_its_own_script(
    summary: Summary, run: RunFolder, tmp_path: Path
) -> None:
    part = summary.study
    assert part is not None
    save(Humanstudy().render(summary, run), tmp_path)
    read = read_as_the_benchmark_does(tmp_path / "benchmark")
    assert set(read) == set(CONDITIONS)
    for condition in part.conditions:
        for study in condition.studies:
            found = read[condition.condition][f"study_{study.study}"]
            assert (found["pas"], found["ecs"]) == (study.score.pas.value, study.score.ecs.value)
            assert found["participants"] == study.participants.answered
            assert found["findings"] == {
                (one.sub_study, one.id): one.pas.value for one in study.findings if one.pas.value is not None
            }
            tests = [row for one in study.findings for test in one.tests for row in test.repetitions]
            assert found["effects"] == [(row.human.d, row.agent.d) for row in tests]


def test_a_finding_without_a_score_is_left_out_for_the_benchmark_and_null_in_ours(
    summary: Summary, run: RunFolder, tmp_path: Path
) -> None:
    part = summary.study
    assert part is not None
    first = part.conditions[0]
    study = first.studies[0]
    unscored = msgspec.structs.replace(
        study.findings[0], pas=msgspec.structs.replace(study.findings[0].pas, value=None)
    )
    study = msgspec.structs.replace(study, findings=(unscored, *study.findings[1:]))
    conditions = [
        msgspec.structs.replace(first, condition=name, studies=(study,)) for name in ("a/b", "A b", "../../etc", "a:b")
    ]
    changed = msgspec.structs.replace(
        summary, parts={"study": msgspec.structs.replace(part, conditions=tuple(conditions))}
    )
    files = Humanstudy().render(changed, run)
    save(files, tmp_path / "out")
    read = read_as_the_benchmark_does(tmp_path / "out" / "benchmark")
    assert sorted(read) == ["A-b-2", "a-b", "a-b-3", "etc"]
    assert sorted(tmp_path.iterdir()) == [tmp_path / "out"]
    for found in read.values():
        assert len(found[f"study_{study.study}"]["findings"]) == len(study.findings) - 1
    ours = json.loads(files["evaluation_results.json"])[0]["finding_results"]
    assert [one["finding_score"] is None for one in ours] == [True] + [False] * (len(study.findings) - 1)
