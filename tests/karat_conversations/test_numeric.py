"""Numbers turn by turn: what a row holds, where the answer comes from, and the published figures on real answers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from karat import Experiment, plugins
from karat.errors import JudgeFault
from karat.records import Answer, Reply, Sample, Turn
from karat.scorers import Verdict, as_verdicts
from karat_conversations.scorers.numeric import Numeric


def sample(*turns: Turn, **facts: Any) -> Sample:
    return Sample(id="c1", position=0, digest="00", turns=turns, **facts)


def turn(golden: str | None, program: str | None = None, **detail: Any) -> Turn:
    told = {"program": program, "operations": 0 if program is None else program.count("("), **detail}
    return Turn(question="how much?", golden=golden, detail=told)


def answer(*replies: Reply | str) -> Answer:
    made = tuple(Reply(text=one) if isinstance(one, str) else one for one in replies)
    return Answer(
        trial="t", sample="c1", condition="a", repetition=0, replies=made, started="2026-11-20T12:00:00Z", seconds=1.0
    )


def score(one: Sample, *replies: Reply | str, **options: Any) -> list[Verdict]:
    return list(Numeric(Numeric.Options(**options)).score(one, answer(*replies)))


def test_a_row_holds_every_match_and_where_the_answer_was_taken_from():
    text = 'It is 14.1 %. {"answer": 14.1, "unit": "percent"}'
    (row,) = score(sample(turn("0.14136", printed="14.1%", executed=0.14136)), text)
    assert row.turn == 0
    assert {name: row.values[name] for name in ("numerical", "unit_agnostic", "declared", "exact", "right")} == {
        "numerical": False,
        "unit_agnostic": True,
        "declared": True,
        "exact": False,
        "right": False,
    }
    assert row.labels == {"diagnosis": "scale"}
    assert row.detail == {
        "rules": "karat-numeric/2",
        "expected": "0.14136",
        "actual": "14.1",
        "extractor": "json",
        "span": [14, len(text)],
        "unit": "percent",
        "evidence": {"factor": 100.0},
    }


def test_what_the_agent_gives_apart_goes_before_its_text():
    (row,) = score(sample(turn("5")), Reply(text='{"answer": 7}', answer="5"))
    assert row.values["numerical"] is True
    assert (row.detail["actual"], row.detail["extractor"], row.detail["span"]) == ("5", "reply", None)
    assert row.labels == {}


@pytest.mark.parametrize(
    ("options", "text", "actual"),
    [
        ({}, "14.1%", "14.1%"),
        ({"extract": "last_number"}, "from 12 to 10.5 million.", "10.5 million"),
        ({"extract": "regex", "pattern": r"= (\S+)"}, "a = 3, b = 4", "4"),
    ],
)
def test_the_answer_is_taken_out_of_the_text(options, text, actual):
    (row,) = score(sample(turn("1")), text, **options)
    assert row.detail["actual"] == actual


def test_a_pattern_that_a_reply_makes_endless_is_a_fault_and_the_next_reply_is_scored():
    scorer = Numeric(Numeric.Options(extract="regex", pattern=r"(a+)+$", timeout_seconds=0.3))
    assert scorer.blocking
    with pytest.raises(JudgeFault, match="scorer_timeout"):
        scorer.score(sample(turn("4")), answer("a" * 40 + "!"))
    (verdict,) = scorer.score(sample(turn("4")), answer("aa"))
    assert verdict.detail["actual"] == "aa"
    scorer.close()


@pytest.mark.parametrize(
    "options",
    [{"extract": "regex"}, {"pattern": "a"}, {"extract": "regex", "pattern": "("}, {"extract": "words"}],
)
def test_a_pattern_belongs_to_regex_and_must_be_one(options):
    _, faults = plugins.check_options(Numeric, options, place="here")
    assert faults


def test_words_without_an_answer_are_unreadable_and_silence_is_unanswered():
    rows = score(sample(turn("1"), turn("1"), turn("1")), "I would rather not say.", "", '{"answer": null}')
    assert [row.labels["diagnosis"] for row in rows] == ["unreadable", "unanswered", "unanswered"]
    assert not any(row.values["right"] for row in rows)


def test_every_declared_turn_has_a_row_and_what_was_not_reached_is_wrong():
    one = sample(turn("1"), turn("2"), turn("3"))
    rows = score(one, "1", Reply(text="", answer="", stop_reason="not_recorded"))
    assert [row.turn for row in rows] == [0, 1, 2]
    assert [row.values["numerical"] for row in rows] == [True, False, False]
    assert ["unreached" in row.detail for row in rows] == [False, True, True]


def test_a_turn_without_a_golden_answer_has_no_values():
    (row,) = score(sample(turn(None)), "1")
    assert {value for name, value in row.values.items() if name != "golden_operations"} == {None}


def test_an_error_that_is_carried_on_is_proved():
    table = {"2008": {"sales": 10.0}, "2007": {"sales": 8.0}}
    one = sample(
        turn("10.0", "10"), turn("8.0", "8"), turn("2.0", "subtract(10, 8)"), detail={"table": table, "pre_text": ""}
    )
    rows = score(one, "12", "8", "4")
    assert rows[2].labels == {"diagnosis": "propagated"}
    proof = rows[2].detail["evidence"]["proof"]
    assert proof["substitutions"] == [{"turn": 0, "golden": 10.0, "answer": 12.0}]
    assert proof["result"] == 4.0


def test_reusing_an_earlier_answer_costs_nothing_in_the_reading_by_step():
    one = sample(
        turn("2.0", "subtract(10, 8)"),
        turn("0.25", "subtract(10, 8), divide(#0, 8)"),
    )
    rows = score(
        one,
        Reply(text="", answer="2", program="subtract(10, 8)"),
        Reply(text="", answer="0.25", program="divide(2, 8)"),
    )
    assert rows[1].values["logic_recall"] == 0.5
    assert rows[1].detail["reasoning"]["step"]["logic_recall"] == 1.0
    assert rows[0].values["program_match"] is True
    assert [row.values["golden_operations"] for row in rows] == [1, 2]


def test_without_a_program_there_is_no_reading_of_one():
    (row,) = score(sample(turn("2.0", "subtract(10, 8)")), "2")
    assert row.values["logic_recall"] is None
    assert "reasoning" not in row.detail


def test_a_program_that_cannot_be_read_is_not_available_and_labelled():
    one = sample(turn("2.0", "subtract(10, 8)"), turn("2.0", "subtract(10, 8)"))
    rows = score(one, *(Reply(text="", answer="2", program=text) for text in ("10 - 8", "ten less eight")))
    assert [row.values["logic_recall"] for row in rows] == [1.0, None]
    assert [row.values["execution_match"] for row in rows] == [True, None]
    assert [row.labels for row in rows] == [{}, {"program": "unreadable"}]


def test_no_text_of_an_agent_is_too_much():
    hostile = ["", "\x00", "\ud83d", "{" * 5_000, '{"answer": {"a": [1]}}', "1e999", "9" * 5_000, "subtract(" * 900]
    one = sample(*(turn("1.0", "divide(2, 2)") for _ in hostile))
    rows = score(one, *(Reply(text=text, program=text) for text in hostile))
    assert as_verdicts(rows, name="numeric")
    assert len(rows) == len(hostile)


# ── The real thing: a model's answers to all 1,490 turns. Figures: the contract's, to ± 0.1 points.


def recorded(data: Path, *, expected: str) -> list[tuple[Sample, Answer]]:
    rows: dict[str, dict[int, dict[str, Any]]] = {}
    for line in (data / "predictions_sonnet.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["record_id"], {})[row["turn_idx"]] = row
    kind = plugins.find("kinds", "conversation", allow_code=False)
    dataset = kind(kind.Options(expected=expected)).load(data / "dev.json")
    return [
        (
            one,
            answer(
                *(
                    Reply(
                        text="",
                        answer=rows[one.id][number]["predicted_answer"],
                        unit=rows[one.id][number]["predicted_unit"],
                    )
                    for number in range(len(one.turns))
                )
            ),
        )
        for one in dataset
    ]


@pytest.fixture
def convfinqa(shared_data: Path) -> Path:
    pytest.importorskip("karat_conversations.kinds.conversation", reason="the kind conversation is not installed")
    if not (shared_data / "convfinqa" / "dev.json").is_file():
        pytest.skip("no convfinqa/ in the shared data")
    return shared_data / "convfinqa"


def test_the_published_figures_on_real_answers(convfinqa):
    scorer = Numeric()
    rows = [row for one, said in recorded(convfinqa, expected="executed") for row in scorer.score(one, said)]
    assert len(rows) == 1490
    rates = {
        name: 100 * sum(bool(row.values[name]) for row in rows) / 1490
        for name in ("numerical", "unit_agnostic", "sign_agnostic", "exact", "declared")
    }
    wanted = {"numerical": 66.9, "unit_agnostic": 83.8, "sign_agnostic": 68.3, "exact": 59.5, "declared": 83.4}
    assert rates == pytest.approx(wanted, abs=0.1)
    labels = Counter(row.labels.get("diagnosis") for row in rows)
    wrong = 1490 - labels.pop(None)
    assert wrong == 489
    assert labels["other"] <= 0.15 * wrong
    assert abs(labels["propagated"] - 72) <= 3


def test_against_the_printed_answers(convfinqa):
    scorer = Numeric()
    rows = [row for one, said in recorded(convfinqa, expected="printed") for row in scorer.score(one, said)]
    assert 100 * sum(bool(row.values["numerical"]) for row in rows) / 1490 == pytest.approx(65.6, abs=0.1)


def test_a_constant_zero_is_right_almost_never(convfinqa):
    scorer = Numeric()
    samples = [one for one, _ in recorded(convfinqa, expected="executed")]
    rows = [row for one in samples for row in scorer.score(one, answer(*(Reply(text="0") for _ in one.turns)))]
    assert sum(bool(row.values["numerical"]) for row in rows) / len(rows) <= 0.005


# ── The default of its kind of dataset.


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({}, ["numeric"]),
        ({"judge": {"type": "overlap"}}, ["numeric", "overlap"]),
        ({"scorers": []}, []),
        ({"scorers": ["equals"]}, ["equals"]),
    ],
)
@pytest.mark.needs_kind("conversation")
def test_conversations_are_scored_by_it_where_the_file_names_no_scorer(tmp_path, keys, names):
    rows = [{"conversation_id": "c", "turn": 0, "question": "how much?", "answer": "5"}]
    path = tmp_path / "turns.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    experiment = Experiment(
        dataset={"path": str(path), "kind": "conversation"}, agent={"type": "floor"}, conditions={"a": {}}, **keys
    )
    assert [one.type for one in experiment.scorers] == names


@pytest.mark.parametrize(
    ("program", "attempted"),
    [
        ("add(1, 2), divide(#0, 4), multiply(#1, 100)", 3),
        ("110", 0),
        ('{"steps": [{"tool": "compute", "operation": "percentage_change", "operands": [1, 2]}]}', 2),
        ('{"steps": [{"tool": "compute", "operation": "percentage", "operands": [1, 2]}]}', 1),
        ("I added them up", None),
        (None, None),
    ],
)
def test_operations_are_the_golden_program_s_and_the_agent_s(program, attempted):
    asked = sample(turn("0.1", "subtract(110, 100), divide(#0, 100)"))
    (row,) = score(asked, Reply(text="", answer="0.1", program=program))
    assert (row.values["golden_operations"], row.values["agent_operations"]) == (2, attempted)


@pytest.mark.parametrize(
    ("golden", "said", "right", "labels"),
    [
        ("NOT_AVAILABLE", "I cannot determine this from the report.", True, {"abstention": "right"}),
        ("NOT_AVAILABLE", "N/A", True, {"abstention": "right"}),
        ("NOT_AVAILABLE", "NOT_AVAILABLE", True, {"abstention": "right"}),
        ("NOT_AVAILABLE", "not available", True, {"abstention": "right"}),
        ("NOT_AVAILABLE", '{"answer": null}', True, {"abstention": "right"}),
        ("NOT_AVAILABLE", "The answer is 5.", False, {"abstention": "unsupported"}),
        ("NOT_AVAILABLE", "5", False, {"abstention": "unsupported"}),
        ("NOT_AVAILABLE", "", False, {"abstention": "unsupported"}),
        ("5", "This is not disclosed.", False, {"abstention": "over_refusal", "diagnosis": "unanswered"}),
        ("5", "It rose from 4 to 6.", False, {"unreadable": "actual", "diagnosis": "unreadable"}),
    ],
)
def test_abstaining_is_right_where_the_golden_answer_is_that_it_cannot_be_known(golden, said, right, labels):
    declared = {"unanswerable": True} if golden == "NOT_AVAILABLE" else {}
    (row,) = score(sample(turn(golden, **declared)), said)
    assert (row.values["right"], row.labels) == (right, labels)


def test_prose_is_read_without_the_numbers_of_the_question_and_the_span_is_kept():
    asked = Turn(question="what were dividends per share in 2007?", golden="0.96")
    text = "The expected annual dividends per share in 2007 is 0.96."
    (row,) = score(sample(asked), text)
    assert (row.values["right"], row.detail["extractor"], row.detail["span"]) == (True, "final", [51, 55])


def test_the_unit_of_the_dataset_is_the_one_that_counts():
    (row,) = score(sample(turn("1577", unit="million")), '{"answer": 1.577, "unit": "billion"}')
    assert (row.values["declared"], row.values["numerical"]) == (True, False)


def test_thoughts_before_a_lone_closing_tag_are_no_part_of_the_answer():
    text = "It may be 7 or 8.\n</think>\n\nThe answer is 5."
    (row,) = score(sample(turn("5")), text)
    start, end = row.detail["span"]
    assert (row.values["right"], text[start:end]) == (True, "5")
