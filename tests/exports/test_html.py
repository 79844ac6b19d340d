"""The page as a file: its parts, its size, what it says of what it left out."""

from __future__ import annotations

import base64
import hashlib
import re

import msgspec
import pytest
from tests.document import hostile
from tests.document.hostile import HOSTILE, hostile_run

from karat import formats
from karat.analysis import summarize
from karat.document.verdicts import verdicts
from karat.exports.html import LARGEST, Html
from karat.records import Metric, Reply, Sample, Turn

ORDER = ("scores", "differences", "variation", "failing", "cost", "origin")


def page(run, **options) -> str:
    return Html(Html.Options(**options)).render(summarize(run), run)["report.html"]


def small(folder, journals, **more):
    scores = {"baseline": [[1, 2], [2, 2], [3, 1], [1, 1], [2, 3], [1, 2]], "with-docs": [[4, 5]] * 5 + [[5, None]]}
    return journals.table(folder, scores, **more)


def plain(html: str) -> str:
    """The text of a page, without script and style."""
    import html as entities

    found = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(entities.unescape(re.sub(r"<[^>]+>", " ", found)).replace("\xa0", " ").split())


def test_the_answer_comes_first_then_the_parts_in_order(tmp_path, journals):
    run = small(tmp_path / "run", journals)
    html = page(run)
    places = [html.index(f'<section class="part" id="{name}"') for name in ORDER]
    assert places == sorted(places)
    assert html.index("<h1>") < places[0]
    lines = verdicts(summarize(run))
    assert lines[0] == "with-docs is better than baseline on completeness: +2.83 [2.20, 3.47]"
    assert all(line in plain(html) for line in lines)


def test_every_number_of_the_summary_is_there_without_script(tmp_path, journals):
    run = small(tmp_path / "run", journals)
    summary, text = summarize(run), plain(page(run))
    for one in summary.results:
        mean = one.mean
        assert formats.number(mean.value) in text
        assert formats.interval(mean.low, mean.high) in text
        assert formats.number(one.within_sd.value) in text
        assert formats.number(one.between_sd.value) in text
    for pair in summary.differences:
        assert formats.between(None, pair.estimate.low, pair.estimate.high)[1] in text
        assert formats.p_value(pair.p_adjusted) in text
        assert (f"{pair.verdict} than" if pair.winner else pair.verdict) in text
    for digest in (summary.provenance.sha256, *summary.provenance.scorers.values()):
        assert digest in text


def test_charts_stand_beside_a_table_of_their_numbers(tmp_path, journals):
    from karat.document.charts import charts

    run = small(tmp_path / "run", journals)
    html = page(run)
    text = plain(html)
    drawn_by_tables = ("means", "differences")
    for chart in charts(summarize(run)):
        if chart.name in drawn_by_tables:
            assert f'id="chart-{chart.name}"' not in html
            continue
        assert f'id="chart-{chart.name}"' in html
        assert chart.title in text
        assert all(" ".join(cell.split()) in text for row in chart.rows for cell in row)


def test_the_policy_names_exactly_the_script_and_style_of_the_page(tmp_path, journals):
    html = page(small(tmp_path / "run", journals))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    listed = set(re.findall(r"'sha256-([^']+)'", policy))
    run = re.findall(r"<script>(.*?)</script>", html, re.DOTALL) + re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert listed == {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run}
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert not re.search(r"<[^>]+\s(style|on\w+)=", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL))


def test_the_page_asks_nobody(tmp_path, journals):
    html = page(small(tmp_path / "run", journals), charts=False)
    assert not re.search(r'(src|href|action|data|poster)="(?!#|data:image/svg)', html)
    assert "url(" not in html
    assert "@import" not in html


def test_the_same_run_gives_the_same_page(tmp_path, journals):
    run = small(tmp_path / "run", journals)
    assert page(run) == page(run)


def test_answers_golden_answers_and_claims_are_quoted(tmp_path, journals):
    script = journals.Script(tmp_path / "run", conditions=("only",), repetitions=2)
    for repetition in range(2):
        script.answer(0, "only", repetition, reply=Reply(text=f"**Answer** number {repetition}"))
        script.score(0, "only", repetition, value=2 - repetition, claims=("It also reads YAML.",))
    run = script.end()
    html = page(run)
    assert "<strong>Answer</strong> number 1" in html, "the lowest of the two"
    assert "number 0" not in html
    text = plain(html)
    assert "Golden answer 0." in text
    assert "only 2 2 2" in text, "claims, answers with a claim, scored answers"
    assert "It also reads YAML." in text
    assert "Golden answer 0." not in plain(page(run, texts=False))


def test_the_experiment_file_is_on_the_page(tmp_path, journals):
    run = small(tmp_path / "run", journals)
    (run.path / "experiment.yaml").write_text("dataset: {path: <questions>.jsonl}\n", encoding="utf-8")
    assert "dataset: {path: <questions>.jsonl}" in plain(page(run))
    (run.path / "experiment.yaml").write_text("# much\n" * 50_000, encoding="utf-8")
    assert "The experiment file after its first 64,000 characters" in plain(page(run))


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_in_every_field_stays_text(tmp_path, journals, text):
    run = hostile_run(tmp_path / "run", journals, text=text)
    html = page(run, charts=False)
    html.encode()
    body = html[html.index("<body>") :]
    assert set(re.findall(r"<(script|style|iframe|img|base|meta|link|object|embed|form|input)\b", body)) <= {"script"}
    assert len(re.findall(r"<script", body)) == len(re.findall(r'<script type="application/json">', body)) + 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", body)
    assert not re.search(r"<[a-z][^>]*\s(?:on\w+|style)\s*=", re.sub(r'="[^"]*"', "=", body))


def test_a_page_of_450_trials_is_small(tmp_path, journals):
    scores = {name: [[1 + (row + shift) % 5] * 3 for row in range(50)] for shift, name in enumerate(("a", "b", "c"))}
    run = journals.table(tmp_path / "run", scores)
    assert len(page(run).encode()) < LARGEST


def test_a_page_that_would_be_too_large_says_what_it_left_out(tmp_path, journals):
    conditions = tuple(f"condition {at}" for at in range(40))
    script = journals.Script(tmp_path / "run", samples=6, conditions=conditions)
    for row in range(6):
        for condition in conditions:
            script.answer(row, condition, reply=Reply(text=f"{condition} " + "& much more " * 2_000))
            script.score(row, condition, value=1 + row % 3)
    html = page(script.end())
    assert len(html.encode()) < LARGEST
    assert "Answers after their first" in plain(html)


def test_five_megabytes_in_one_answer_do_not_make_a_large_page(tmp_path, journals):
    script = journals.Script(tmp_path / "run", conditions=("only",))
    for row in range(2):
        script.answer(row, "only", reply=Reply(text="x" * 5_000_000))
        script.score(row, "only", value=2, reasons={"completeness": "y" * 5_000_000})
    html = page(script.end(), charts=False)
    assert len(html.encode()) < 200_000
    assert re.search(r"[\d,]+ characters left out", plain(html))


def test_a_run_without_scores_and_one_without_answers_have_a_page(tmp_path, journals):
    script = journals.Script(tmp_path / "one", samples=3, scorers=())
    script.answer(0, "baseline")
    text = plain(page(script.end("interrupted")))
    assert "Nothing was scored yet." in text
    assert "the run is not complete" in text
    assert "Where it fails" in plain(page(journals.Script(tmp_path / "two").stop()))


def test_failures_stand_with_their_class_and_newest_message(tmp_path, journals):
    text = plain(page(small(tmp_path / "run", journals)))
    assert "crash agent 1 0 it fell over" in text
    assert "1 missing" not in text
    assert "agent's fault" in text


def test_a_metric_in_which_lower_is_better_and_one_in_percent(tmp_path, journals):
    fewer = Metric(name="errors", low=0, high=4, kind="ordinal", direction="lower")
    text = plain(page(journals.table(tmp_path / "one", {"a": [[1], [None]], "b": [[2], [3]]}, metric=fewer)))
    assert "lower is better" in text
    assert "0.50 … 2.50" in text
    right = Metric(name="right", low=0, high=1, kind="share")
    text = plain(page(journals.table(tmp_path / "two", {"a": [[True], [False]]}, metric=right)))
    assert "50.0 %" in text


@pytest.mark.needs_kind("conversation")
def test_a_run_over_conversations_shows_where_the_chain_breaks(tmp_path, journals):
    samples = [
        journals.asked(
            f"c{at}", at, [{"golden": "10", "program": "add(4, 6)"}, {"golden": "20", "program": "add(#0, 10)"}]
        )
        for at in range(4)
    ]
    said = {"only": [[[Reply(text="10"), Reply(text="20" if at else "7")]] for at in range(4)]}
    run = journals.conversations(tmp_path / "run", samples, said)
    html = page(run)
    text = plain(html)
    for words in ("Where the chain breaks", "Accuracy by turn", "Complexity ceiling", "Ladder of matches",
                  "Diagnoses of wrong turns", "Propagation of errors", "Cost of right answers"):  # fmt: skip
        assert words in text
    assert 'id="chart-accuracy-by-turn"' in html
    assert html.index('id="conversation"') < html.index('id="failing"')
    assert "87.5 %" in text


def test_judges_of_a_panel_stand_beside_each_other(tmp_path, journals):
    panel = msgspec.structs.replace(journals.JUDGE, offline=False, provenance={"judges": ["strict", "kind"]})
    script = journals.Script(tmp_path / "run", samples=3, conditions=("only",), scorers=(panel,))
    for row in range(3):
        script.answer(row, "only")
        for place, judge in enumerate(("strict", "kind")):
            script.score(row, "only", value=2 + row * place, scorer=panel, judge=judge, rows=2)
    text = plain(page(script.end()))
    assert "judge only completeness kind 3.00 3 answers strict 2.00 3 answers" in text
    assert "How far judges agree" in text
    assert "33.3 %" in text


@pytest.mark.needs_kind("conversation")
def test_a_hostile_conversation_stays_text(tmp_path, journals):
    text = hostile.written(hostile.ALL)
    turn = Turn(
        question=text, golden=text, detail={"executed": text, "printed": text, "program": text, "operations": 0}
    )
    number = msgspec.structs.replace(turn, golden="5", detail={**turn.detail, "executed": 5.0})  # has a diagnosis
    sample = Sample(id=text, position=0, digest="0" * 32, turns=(turn, number), metadata={text: text})
    reply = Reply(text=text, answer=text, program=text, unit=text)
    run = journals.conversations(tmp_path / "run", [sample], {text: [[[reply, reply]]], "broken": [[None]]})
    html = page(run, charts=False)
    body = html[html.index("<body>") :]
    assert set(re.findall(r"<(script|style|iframe|img|base|meta|link|object|embed|form|input)\b", body)) == {"script"}
    assert "Where the chain breaks" in plain(html)


@pytest.mark.quick(1)
@pytest.mark.parametrize("repetitions", [1, 2])
def test_a_run_over_studies_stands_beside_what_people_did(request, study_run, study_summary, repetitions):
    summary, run = request.getfixturevalue("repeated_study") if repetitions > 1 else (study_summary, study_run)
    html = Html().render(summary, run)["report.html"]
    text = plain(html)
    for words in ("Beside what people did", "Agreement with people", "By study", "Findings, like", "Findings, shy",
                  "Effects in the opposite direction", "What could not be read", "Auxiliary numbers"):  # fmt: skip
        assert words in text
    assert ("± between them" in text) is (repetitions > 1)
    for condition in summary.study.conditions:
        assert formats.number(condition.benchmark.pas.value, digits=3) in text
        assert formats.number(condition.benchmark.ecs.value, digits=3) in text
        assert all(" ".join(finding.claim.split()) in text for finding in condition.findings)
        for kind in ("agreement", "effects", "effect-differences", "participants"):
            assert f'id="chart-{kind}-{condition.condition}"' in html
    assert "Every question" not in text
    assert html.index('id="study"') < html.index('id="failing"')


def test_several_turns_of_a_low_conversation_stand_in_a_table(tmp_path, journals):
    sample = Sample(
        id="talk", position=0, digest="0" * 32,
        turns=(Turn(question="First?", golden="one"), Turn(question="Second?", golden="two")),
    )  # fmt: skip
    script = journals.Script(tmp_path / "run", samples=[sample], conditions=("only",))
    script.answer(0, "only", replies=(Reply(text="uno"), Reply(text="dos")))
    script.score(0, "only", value=2)
    assert "0 First? one uno 1 Second? two dos" in plain(page(script.end()))


def test_two_metrics_of_one_name_get_charts_of_their_own(tmp_path, journals):
    other = msgspec.structs.replace(journals.JUDGE, name="other", scoring="1a" * 16)
    script = journals.Script(tmp_path / "run", conditions=("only",), scorers=(journals.JUDGE, other))
    for row in range(2):
        script.answer(row, "only")
        script.score(row, "only", value=row + 1)
        script.score(row, "only", value=row + 2, scorer=other)
    ids = re.findall(r'id="([^"]+)"', page(script.end()))
    assert len(ids) == len(set(ids))


def test_means_say_how_many_questions_they_rest_on(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=5)
    for row in range(2):
        script.scored(row, "baseline", value=3 + row)
    script.scored(0, "with-docs", value=3)
    told = plain(page(script.end("interrupted")))
    assert "Mean over the questions that have a score, 1 to 2 of 5 questions;" in told


def test_a_run_that_has_ended_does_not_say_that_scores_will_come(tmp_path, journals):
    script = journals.Script(tmp_path / "run", samples=2)
    for row in range(2):
        script.failure(row, "baseline")
        script.failure(row, "with-docs")
    told = plain(page(script.end("max_failures")))
    assert "No answer has a score." in told
    assert "yet" not in told


def test_many_pairs_of_conditions_are_folded(tmp_path, journals):
    scores = {f"condition {at:02}": [[1 + (at + row) % 5] for row in range(6)] for at in range(33)}
    html = page(journals.table(tmp_path / "run", scores))
    assert re.search(r"<summary>(?:<bdi>)?Differences between conditions", html)
    assert html.count("condition 32 − condition 00") >= 1


def test_intervals_are_drawn_in_their_tables(tmp_path, journals):
    html = page(small(tmp_path / "run", journals), charts=False)
    means = html[html.index('id="scores"') : html.index('id="differences"')]
    assert means.count('<svg class="span') == 2
    assert means.count('class="reach"') == 2
