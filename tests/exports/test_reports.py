"""Whole reports, byte for byte; and what no report may do with foreign text."""

from __future__ import annotations

import csv
import io
import json
import re

import msgspec
import pytest

from karat import plugins
from karat.analysis import Summary, summarize
from karat.document.render.terminal import render_terminal
from karat.document.run import document
from karat.errors import BadOption
from karat.exports import save
from karat.exports.csv import Csv
from karat.exports.json import Json
from karat.exports.terminal import Terminal
from karat.records import Metric, Reply, ToolCall, Usage

METRICS = tuple(
    Metric(name=name, low=1, high=5, kind="ordinal")
    for name in ("factual_adherence", "completeness", "helpfulness_and_clarity")
)
CONDITIONS = ("baseline", "with-docs", "with-docs-terse")
# Question × condition: a level that repetitions and metrics then vary around, by a fixed rule.
LEVELS = [(1, 4, 4), (2, 5, 4), (1, 4, 4), (3, 4, 5), (1, 5, 4), (2, 4, 3), (1, 3, 4), (2, 5, 4)]


def story(folder, journals):
    """Eight questions, three conditions, three repetitions; one server fault, one retry, one silent judge."""
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=METRICS)
    script = journals.Script(folder, samples=8, conditions=CONDITIONS, repetitions=3, scorers=(scorer,))
    for row, levels in enumerate(LEVELS):
        for repetition in range(3):
            for column, (condition, level) in enumerate(zip(CONDITIONS, levels, strict=True)):
                place = (row, condition, repetition)
                if place == (3, "with-docs", 1):
                    fault = {"kind": "mcp_server_down", "message": "\x1b[31mdocs\x1b[0m: ModuleNotFoundError: fts"}
                    script.failure(*place, cls="infrastructure", **fault)
                    continue
                if place == (5, "with-docs-terse", 2):
                    script.attempt(*place, dollars=0.001)
                script.answer(*place, reply=reply(column), seconds=0.4 + 0.1 * row + 0.03 * repetition)
                if place == (6, "baseline", 0):
                    malformed = {"kind": "malformed", "message": "metric 'completeness' is 7: expected 1 to 5"}
                    script.failure(*place, cls="judge", stage="score", scorer="judge", **malformed)
                    continue
                values = {
                    metric.name: min(5, max(1, level + (row + repetition + shift) % 3 - 1))
                    for shift, metric in enumerate(METRICS)
                }
                reasons = {"factual_adherence": f"Says nothing of `--resume` ([red]{row}[/red])."}
                claims = ("It also reads YAML.",) if column else ()
                script.score(*place, values=values, scorer=scorer, reasons=reasons, claims=claims)
    return script.end()


def reply(column: int) -> Reply:
    call = ToolCall(tool="search", server="docs", input={"query": "resume"}, result="a page", milliseconds=12.5)
    return Reply(
        text="Run it again with `--resume`.",
        dollars=0.002 * (column + 1),
        usage=Usage(input_tokens=100, output_tokens=20),
        tool_calls=(call,) if column else (),
    )


@pytest.fixture
def run(tmp_path, journals):
    return story(tmp_path / "run", journals)


def nine_digits(text: str) -> str:
    """The last digits of a sum depend on the processor."""
    return re.sub(r"\d+\.\d{9,}(?:e-\d+)?", lambda found: str(float(f"{float(found[0]):.9g}")), text)


def terminal(summary, run, **options) -> str:
    return Terminal(Terminal.Options(**options)).render(summary, run)["report.txt"]


@pytest.mark.parametrize("width", [80, 120])
def test_terminal(run, golden, width):
    text = terminal(summarize(run), run, width=width, full=True)
    golden(f"terminal-{width}.txt", text)
    assert max(map(len, text.split("\n"))) <= width


def test_the_first_screen_says_who_is_better_on_what(run, golden):
    text = terminal(summarize(run), run, width=80)
    golden("terminal-brief.txt", text)
    assert max(map(len, text.split("\n"))) <= 80
    whole = terminal(summarize(run), run, width=80, full=True)
    assert text.split("\n")[:9] == whole.split("\n")[:9]
    assert "Cost and time" not in text


def test_the_first_screen_is_that_of_the_whole_document(run):
    summary = summarize(run)
    whole = render_terminal(document(summary), width=80, full=False)
    assert terminal(summary, run, width=80) == whole


def test_many_differences_are_named_by_pair(tmp_path, journals):
    metrics = tuple(Metric(name=f"metric_{at}", low=1, high=5, kind="ordinal") for at in range(9))
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=metrics)
    script = journals.Script(tmp_path / "run", samples=8, conditions=("a", "b"), scorers=(scorer,))
    for row in range(8):
        for condition, level in (("a", 1), ("b", 4)):
            script.answer(row, condition)
            values = {metric.name: level + row // level % 2 for metric in metrics}
            script.score(row, condition, values=values, scorer=scorer)
    run = script.end()
    first = " ".join(terminal(summarize(run), run, width=120).partition("\nOffline")[0].split())
    assert first == "b is better than a on " + ", ".join(f"metric {at} (+3.00)" for at in range(9))


def test_less_is_better_keeps_the_sign_of_the_difference(tmp_path, journals):
    fewer = Metric(name="errors", low=0, high=9, kind="ordinal", direction="lower")
    scores = {"many": [[8 + row % 2] for row in range(8)], "few": [[2 + row % 3] for row in range(8)]}
    run = journals.table(tmp_path / "run", scores, metric=fewer)
    line = terminal(summarize(run), run, width=120).split("\n")[0]
    assert line.startswith("few is better than many on errors: −5.")
    assert re.search(r"\[−6\.\d+, −4\.\d+\]$", line)


def test_terminal_in_colour_says_the_same(run):
    summary = summarize(run)
    coloured = terminal(summary, run, width=100, color=True)
    assert "\x1b[" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in plain.split("\n")] == terminal(summary, run, width=100).split("\n")


def test_terminal_of_an_a_a_run_names_no_winner(tmp_path, journals, golden):
    same = [[3, 4], [2, 2], [5, 4], [1, 2], [4, 4], [2, 3]]
    other = [[4, 3], [2, 3], [4, 4], [2, 2], [4, 5], [3, 2]]
    run = journals.table(tmp_path / "run", {"one": same, "the same": other})
    text = terminal(summarize(run), run, width=80, full=True)
    golden("terminal-a-a.txt", text)
    assert not re.search(r"beats|better|worse(?!\s*,? or)|winner", text.replace("worst", ""))


def test_terminal_without_scores(tmp_path, journals, golden):
    script = journals.Script(tmp_path / "run", samples=3, scorers=())
    for row in range(3):
        script.answer(row, "baseline")
    script.failure(0, "with-docs", cls="limit", kind="timeout", message="600 s are over")
    run = script.end("interrupted")
    golden("terminal-no-scores.txt", terminal(summarize(run), run, width=80, full=True))


def test_terminal_with_names_that_do_not_fit(tmp_path, journals, golden):
    names = ("a condition with a very long name that somebody wrote down in a hurry", "漢字の条件" * 6)
    run = journals.table(tmp_path / "run", {name: [[1, 2], [3, None]] for name in names})
    text = terminal(summarize(run), run, width=80, full=True)
    golden("terminal-long-names.txt", text)


def test_bounds_go_from_low_to_high_also_where_lower_is_better(tmp_path, journals):
    fewer = Metric(name="errors", low=0, high=4, kind="ordinal", direction="lower")
    run = journals.table(tmp_path / "run", {"a": [[1], [None]], "b": [[2], [3]]}, metric=fewer)
    text = terminal(summarize(run), run, width=120, full=True)
    assert "0.50 … 2.50" in text
    assert "reliable: at most 1)" in " ".join(text.split())


def test_the_legend_says_what_best_and_reliable_are(tmp_path, journals):
    scorer = msgspec.structs.replace(journals.JUDGE, metrics=(METRICS[0], Metric(name="right", kind="share")))
    script = journals.Script(tmp_path / "run", samples=1, conditions=("only",), scorers=(scorer,))
    script.answer(0, "only")
    script.score(0, "only", values={"factual_adherence": 4, "right": True}, scorer=scorer)
    run = script.end()
    text = " ".join(terminal(summarize(run), run, width=120, full=True).split())
    assert "Best answers: the share with the best value of the scale." in text
    assert "factual_adherence (1 to 5, offline, reliable: at least 4)" in text
    assert "right (share, in percent, offline, reliable: at least 1)" in text
    assert "whose every repetition reached the threshold" in text
    narrow = terminal(summarize(run), run, width=40, full=True)
    assert "Best answers:" not in narrow, "a legend goes with its column"


@pytest.mark.parametrize("name", ["../up.txt", "/etc/up.txt", "a\\b", "..", "", "a\0b"])
def test_a_report_writes_plain_names_only(tmp_path, name):
    with pytest.raises(BadOption, match="plain name"):
        save({"good.txt": "", name: "text"}, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.needs_package("karat_imports")
def test_the_names_of_files_are_harmless_whatever_the_run_folder_says(tmp_path, journals):
    keval = plugins.find("exports", "keval")()
    run = journals.Script(tmp_path / "run", run="../../../up", created="../../../..", name="../x").end()
    names = list(keval.render(summarize(run), run))
    assert save(dict.fromkeys(names, ""), tmp_path / "out") == [tmp_path / "out" / name for name in names]


def test_offline_stands_beside_every_score(run):
    text = terminal(summarize(run), run, width=120, full=True)
    for metric in METRICS:
        lines = [line for line in text.split("\n") if line.startswith(f"  {metric.name} (")]
        assert len(lines) == 3  # means, differences, standard deviations
        assert all("offline" in line for line in lines)
    assert "\nOffline scores: given by a rule" in text.partition("\n\n")[0]
    assert text.count("factual_adherence (offline) 2.83 on average") == 1


def test_a_models_scores_are_not_called_offline(tmp_path, journals):
    model = msgspec.structs.replace(journals.JUDGE, offline=False)
    script = journals.Script(tmp_path / "run", samples=2, scorers=(model,))
    for row in range(2):
        for condition in script.conditions:
            script.answer(row, condition)
            script.score(row, condition, value=3, scorer=model)
    run = script.end()
    assert "offline" not in terminal(summarize(run), run, width=120)


EVIL = "\x1b]0;owned\x07\x1b[2J=cmd()\u202e\r\nnext [bold]"


def test_no_report_hands_foreign_escapes_to_a_terminal(tmp_path, journals):
    sample = journals.sample(0)
    sample = msgspec.structs.replace(sample, turns=(msgspec.structs.replace(sample.turns[0], question=EVIL),))
    script = journals.Script(tmp_path / "run", samples=[sample], conditions=("a", EVIL), name=EVIL)
    script.answer(0, "a", reply=Reply(text=EVIL))
    script.score(0, "a", value=2, reasons={"completeness": EVIL}, claims=(EVIL,))
    script.failure(0, EVIL, kind=EVIL, message=EVIL)
    run = script.end()
    summary = summarize(run)
    texts = [terminal(summary, run, width=80)]
    for rows in ("summary", "scores", "servers"):
        texts += Csv(Csv.Options(rows=rows)).render(summary, run).values()
    for text in texts:
        assert not set("\x1b\x07\u202e\r\x9b") & set(text)
    assert "[bold]" in texts[0]  # shown, not obeyed


@pytest.mark.parametrize("cell", ["=1+1", "+1+1", "-x", "@x", " =1", "|calc", "\t=1"])
def test_foreign_text_becomes_no_formula(tmp_path, journals, cell):
    script = journals.Script(tmp_path / "run", samples=1, conditions=(cell,))
    script.answer(0, cell)
    script.score(0, cell, value=2, reasons={"completeness": cell})
    run = script.end()
    summary = summarize(run)
    for rows in ("summary", "scores"):
        (text,) = Csv(Csv.Options(rows=rows)).render(summary, run).values()
        for row in csv.DictReader(io.StringIO(text)):
            assert row["condition"] == f"'{cell}"


def test_csv(run, golden):
    summary = summarize(run)
    golden("summary.csv", nine_digits(Csv().render(summary, run)["summary.csv"]))
    golden("scores.csv", Csv(Csv.Options(rows="scores")).render(summary, run)["scores.csv"])
    golden("servers.csv", Csv(Csv.Options(rows="servers")).render(summary, run)["servers.csv"])


def test_csv_without_scores_still_tells_how_it_ended(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2, conditions=("only",), scorers=())
    script.answer(0, "only")
    run = script.end()
    (row,) = csv.DictReader(io.StringIO(Csv().render(summarize(run), run)["summary.csv"]))
    assert (row["condition"], row["metric"], row["planned"], row["scored"], row["mean"]) == ("only", "", "2", "1", "")


def test_csv_has_a_row_for_every_trial_that_has_no_score(run):
    text = Csv(Csv.Options(rows="scores")).render(summarize(run), run)["scores.csv"]
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["failure"]]
    assert [(row["position"], row["condition"], row["failure"]) for row in rows] == [
        ("3", "with-docs", "infrastructure: mcp_server_down"),
        ("6", "baseline", "judge: malformed"),
    ]


def test_json(run, golden):
    golden("summary.json", nine_digits(Json().render(summarize(run), run)["summary.json"]))


def test_json_is_the_summary_with_the_text_people_see_beside_it(run):
    summary = summarize(run)
    text = Json(Json.Options(indent=0)).render(summary, run)["summary.json"]
    assert msgspec.json.decode(text, type=Summary) == summary
    tree = json.loads(text)
    assert next(iter(tree)) == "format"
    shown = tree["results"][0]["shown"]
    share = msgspec.structs.replace(summary.metrics[0], kind="share", low=0.0, high=1.0)
    read = Json().render(msgspec.structs.replace(summary, metrics=(share, *summary.metrics[1:])), run)
    in_percent = json.loads(read["summary.json"])
    assert in_percent["results"][0]["shown"]["mean"].count("%") == 3
    assert in_percent["lowest"][0]["shown"]["mean"].endswith("%")
    assert shown["mean"] in " ".join(terminal(summary, run, width=120).split())
    small = Json(Json.Options(samples=False)).render(summary, run)["summary.json"]
    assert json.loads(small)["table_of_samples"] is None


def test_files_are_saved_where_they_were_asked_for(tmp_path):
    one, two = {"a.txt": "ä\n"}, {"a.txt": "1", "b.txt": "2"}
    assert save(one, tmp_path / "deep" / "report") == [tmp_path / "deep" / "report"]
    assert (tmp_path / "deep" / "report").read_bytes() == "ä\n".encode()
    assert save(one, tmp_path) == [tmp_path / "a.txt"]
    assert save(two, tmp_path / "new") == [tmp_path / "new" / "a.txt", tmp_path / "new" / "b.txt"]
    with pytest.raises(BadOption, match="--out: cannot write"):
        save(two, tmp_path / "a.txt")


def test_a_report_is_the_same_bytes_each_time(run):
    summary = summarize(run)
    for report in (Terminal(Terminal.Options(width=90)), Json(), Csv()):
        assert report.render(summary, run) == report.render(summarize(run), run)
