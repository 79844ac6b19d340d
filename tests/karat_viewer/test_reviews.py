"""Reviews of turns: right or wrong in conversations, readings in studies; kept, shown beside karat's, compared."""

from __future__ import annotations

import hashlib
import json
import math
import re

import pytest
from tests.analysis.journals import JUDGE, Script, asked, conversations, table
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_pages import MARKS, SCRIPT, outline

from karat import formats
from karat.journal import Label, Labels, RunFolder, read_labels
from karat.kind_views import Reviews
from karat.records import Reply, Sample, Score, Turn
from karat.stats import cohen_kappa
from karat_conversations.kinds.conversation.views import form_of, verdicts
from karat_studies.kinds.study.views import checked_reading, reading_choices
from karat_viewer.agreement import WordPair, agreements_in_words

GOLDEN = [{"golden": "5", "program": "add(2, 3)"}, {"golden": "10", "program": "add(2, 3), multiply(#0, 2)"}]
RIGHT, WRONG = '{"answer": "5", "program": "add(2, 3)"}', '{"answer": "25", "program": "add(2, 3), multiply(#0, 5)"}'


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    said = [[Reply(text=RIGHT), Reply(text=WRONG)]]
    samples = [asked(f"c{n}", n, GOLDEN) for n in range(6)]
    conversations(folder / "talk", samples, {"look-up": [said] * 5 + [[None]]}, run="aaaa1111", name="talk")
    study(folder / "study")
    table(folder / "golden", {"baseline": [[3.0]]}, run="bbbb2222")
    return folder


FIELDS = {
    "choice": {"type": "choice", "options": ["A", "B"]},
    "sure": {"type": "likert", "range": [1, 5]},
    "number": {"type": "number", "range": [0, 100]},
    "why": {"type": "text", "optional": True},
}


def study(path) -> None:
    samples = [
        Sample(id=f"p{n}", position=n, digest=f"{n:032x}", turns=(Turn(question="Which?", detail={"arm": "one"}),),
               kind="study", detail={"study": "framing", "profile": {"age": 30}, "fields": [FIELDS]})
        for n in range(4)
    ]  # fmt: skip
    script = Script(path, samples=samples, conditions=("only",), kind="study", run="cccc3333", name="study")
    for row in range(4):
        script.answer(row, "only", reply=Reply(text="choice: A, I think. number: forty"))
        script.score(row, "only", values={"parsed": False}, turn=0, scorer=JUDGE, labels={"number": "invalid"},
                     detail={"answers": {"choice": "A", "sure": 4.0, "why": "I think."}})  # fmt: skip
    script.end()


@pytest.fixture
def copied(results, tmp_path):
    import shutil

    shutil.copytree(results, tmp_path / "results")
    with Viewer(tmp_path / "results") as running:
        yield running.enter(), tmp_path / "results"


def trial(row: int) -> str:
    return f"{row:08x}{0:08x}{0:08x}"


def post(viewer, run, **said):
    return viewer.post(f"/runs/{run}/labels", {"who": "ann", **said})


def words(viewer, path) -> str:
    return " ".join(outline(viewer.get(path).text).said.split())


def test_turns_are_judged_and_the_agreement_is_that_of_kappa_clustered_by_conversation(copied):
    viewer, folder = copied
    journal = hashlib.sha256((folder / "talk" / "journal.jsonl").read_bytes()).hexdigest()
    people = {
        (0, 0): "right", (0, 1): "wrong", (1, 0): "right", (1, 1): "right", (2, 0): "wrong", (2, 1): "wrong",
        (3, 0): "right", (3, 1): "cannot_tell", (4, 0): "right", (4, 1): "wrong",
    }  # fmt: skip
    for (row, turn), verdict in people.items():
        more = {"diagnosis": "wrong_operand" if row == 0 else "scale"} if verdict == "wrong" else {}
        heard = post(viewer, "talk", trial=trial(row), turn=turn, verdict=verdict, **more)
        assert heard.status == 201, heard.text
    both = [
        (row, person, "wrong" if turn else "right")
        for (row, turn), person in people.items()
        if person in ("right", "wrong")
    ]
    kappa = cohen_kappa(
        [person for _, person, _ in both], [karat for *_, karat in both], [row for row, *_ in both],
        categories=["right", "wrong"], weights="none",
    )  # fmt: skip
    told = words(viewer, "/runs/talk/reviews")
    estimate = formats.estimate(kappa.value, kappa.low, min(1.0, kappa.high))
    assert f"right or wrongann95 conversationscannot tell: 177.8 %{estimate}cohen's kappa, clustered, 95 %" in told
    # Karat calls three of those wrong that ann calls wrong: "wrong_operand" each time, as ann does once.
    assert "diagnosis, where both say wrongann33 conversations33.3 %" in told
    assert "10 reviews" in told
    assert "right (karat: wrong)" in told
    assert "cannot tell (karat: wrong)" in told
    assert hashlib.sha256((folder / "talk" / "journal.jsonl").read_bytes()).hexdigest() == journal


def test_a_verdict_stands_beside_karats_and_in_the_form_of_who_gave_it(copied):
    viewer, folder = copied
    assert post(viewer, "talk", trial=trial(0), turn=1, verdict="wrong", diagnosis="sign", note="hm").status == 201
    assert post(viewer, "talk", trial=trial(0), turn=0, verdict="wrong", who="bob").status == 201
    text = viewer.get("/runs/talk/samples/1").text
    page = outline(text)
    told = " ".join(page.said.split())
    assert "wrongann: wrong" in told
    assert "rightbob: wrong" in told
    assert "ann: sign" in told
    assert "ann on turn 2" in told
    forms = [one for one in page.all("form") if one.get("data-turn")]
    assert [one["data-turn"] for one in forms] == ["0", "1"]
    chosen = [one["value"] for one in page.all("input") if one.get("name") == "verdict" and "checked" in one]
    assert chosen == ["", "wrong"]
    assert [one["value"] for one in page.all("option") if "selected" in one] == ["sign"]
    lines = [json.loads(line) for line in (folder / "talk" / "labels.jsonl").read_bytes().splitlines()]
    kept = {name: value for name, value in lines[1].items() if name not in ("event", "at", "crc")}
    assert kept == {"who": "ann", "trial": trial(0), "turn": 1, "note": "hm", "verdict": "wrong", "diagnosis": "sign"}
    [path] = {
        one["href"] for one in outline(viewer.get("/runs/talk/reviews").text).all("a") if "#turn-2" in one["href"]
    }
    assert path == "/runs/talk/samples/1#turn-2"


@pytest.mark.parametrize(
    ("run", "said", "told"),
    [
        ("talk", {"turn": 2, "verdict": "right"}, "no such turn"),
        ("talk", {"turn": -1, "verdict": "right"}, "no such turn"),
        ("talk", {"turn": 0, "verdict": "perhaps"}, "a verdict is one of right, wrong, cannot_tell"),
        ("talk", {"verdict": "right"}, "say which"),
        ("talk", {"turn": 0, "diagnosis": "scale"}, "a diagnosis must be"),
        ("talk", {"turn": 0, "verdict": "right", "diagnosis": "scale"}, "a diagnosis must be"),
        ("talk", {"turn": 0, "verdict": "wrong", "diagnosis": SCRIPT}, "a diagnosis must be"),
        ("talk", {"turn": 0, "scores": {"right": 1}}, "scores and claims belong to a whole answer"),
        ("talk", {"turn": 0, "readings": {"0": {"value": "A"}}}, "no answers with fields"),
        ("talk", {"turn": 0, "trial": trial(5), "verdict": "right"}, "no answer for this trial"),
        ("study", {"turn": 0, "verdict": "right"}, "the turn needs a golden answer"),
        ("study", {"readings": {"0": {"value": "A"}}}, "say which"),
        ("study", {"turn": 0, "readings": {"9": {"value": "A"}}}, "one of the turn's fields"),
        ("study", {"turn": 0, "readings": {"x": {"value": "A"}}}, "one of the turn's fields"),
        ("study", {"turn": 0, "readings": {"0": {}}}, "one of the turn's fields"),
        ("study", {"turn": 0, "readings": {"0": {"value": "A", "kind": "refused"}}}, "one of the turn's fields"),
        ("study", {"turn": 0, "readings": {"0": {"value": "C"}}}, "choice: the study would not read that"),
        ("study", {"turn": 0, "readings": {"0": {"value": ""}}}, "(missing)"),
        ("study", {"turn": 0, "readings": {"2": {"value": "400"}}}, "(out of range)"),
        ("study", {"turn": 0, "readings": {"0": {"kind": "bored"}}}, "choice: expected refused, missing"),
        ("study", {"turn": 0, "readings": {"3": {"value": "x" * 10_000}}}, "at most 10,000 characters"),
        ("study", {"turn": 0, "readings": {"0": {"value": {"a": 1}}}}, "not a review"),
        ("golden", {"turn": 0, "readings": {"0": {"value": "A"}}}, "no answers with fields"),
        ("golden", {"turn": "0"}, "not a review"),
    ],
)  # fmt: skip
def test_what_cannot_be_said_of_a_turn_is_refused_and_nothing_is_written(viewer, results, run, said, told):
    heard = post(viewer, run, **{"trial": trial(0), **said})
    assert heard.status == 422
    assert told in heard.json()["problem"]
    assert not (results / run / "labels.jsonl").exists()


@pytest.fixture(scope="module")
def viewer(results):
    with Viewer(results) as running:
        yield running.enter()


def test_readings_are_confirmed_corrected_and_agreed_on_by_field(copied):
    viewer, folder = copied
    readings = [
        {"0": {"value": "A"}, "2": {"kind": "invalid"}, "3": {"value": "I think."}},
        {"0": {"value": "b"}, "2": {"value": "40"}},
        {"0": {"kind": "contradictory"}, "1": {"value": 4}},
        {"0": {"value": "A"}},
    ]
    for row, said in enumerate(readings):
        heard = post(viewer, "study", trial=trial(row), turn=0, readings=said)
        assert heard.status == 201, heard.text
    lines = [json.loads(line) for line in (folder / "study" / "labels.jsonl").read_bytes().splitlines()][1:]
    assert [(line.get("answers"), line.get("unread")) for line in lines] == [
        ({"choice": "A", "why": "I think."}, {"number": "invalid"}),
        ({"choice": "B", "number": 40.0}, None),
        ({"sure": 4.0}, {"choice": "contradictory"}),
        ({"choice": "A"}, None),
    ]
    told = words(viewer, "/runs/study/reviews")
    assert "every fieldann84 participants62.5 %–the fields share no words" in told
    assert "framing: choiceann44 participants50.0 %" in told
    assert "framing: sureann11 participant100.0 %" in told
    assert "choice: B (karat: A)" in told
    assert "number: 40 (karat: invalid)" in told
    session = outline(viewer.get("/runs/study/samples/2").text)
    said = " ".join(session.said.split())
    assert "choiceAann: B" in said
    assert "numberinvalidann: 40" in said
    chosen = [one["value"] for one in session.all("option") if "selected" in one]
    assert chosen == ['{"value": "B"}', "typed"]
    assert [one["value"] for one in session.all("input") if one.get("name") == "typed:2"] == ["40"]
    # Withdrawn: another empty form of this turn.
    assert post(viewer, "study", trial=trial(1), turn=0).status == 201
    assert "3 reviews" in words(viewer, "/runs/study/reviews")


def test_a_form_asks_of_each_field_what_can_be_answered_and_marks_what_karat_read():
    sample = Sample(
        id="p",
        position=0,
        digest="",
        turns=(Turn(question="?"),),
        kind="study",
        detail={"study": "s", "fields": [FIELDS]},
    )
    row = Score(trial="t", scorer="replication", scoring="s", values={}, turn=0, labels={"number": "invalid"},
                detail={"answers": {"choice": "A", "sure": 4.0, "why": "be\u202ecause"}})  # fmt: skip
    own = Label(at="", who="", trial="t", turn=0, unread={"choice": "refused"}, answers={"why": "another"})
    choice, sure, number, why = reading_choices(sample, 0, row, own)
    assert choice["choices"][:3] == [
        ('{"value": "A"}', "A, as karat read it"), ('{"value": "B"}', "B"), ('{"kind": "refused"}', "refused"),
    ]  # fmt: skip
    assert (choice["own"], choice["open"]) == ('{"kind": "refused"}', False)
    assert [name for _, name in sure["choices"][:5]] == ["1", "2", "3", "4, as karat read it", "5"]
    assert number["choices"][-1] == ('{"kind": "invalid"}', "invalid, as karat read it")
    assert number["open"]
    assert why["choices"][0][0] == '{"value": "be\\u202ecause"}'
    assert (why["own"], why["typed"]) == ("typed", "another")


def test_an_answer_that_karat_read_is_confirmed_as_it_stands_and_others_are_read_as_the_study_reads():
    sample = Sample(
        id="p",
        position=0,
        digest="",
        turns=(Turn(question="?"),),
        kind="study",
        detail={"study": "s", "fields": [FIELDS]},
    )
    row = Score(trial="t", scorer="x", scoring="s", values={}, turn=0, detail={"answers": {"why": "I cannot say."}})
    assert checked_reading(sample, 0, row, "3", ("I cannot say.", "")) == ("why", "I cannot say.", "")
    with pytest.raises(ValueError, match="refused"):
        checked_reading(sample, 0, None, "3", ("I cannot say.", ""))
    assert checked_reading(sample, 0, row, "0", (" (b) ", "")) == ("choice", "B", "")
    assert checked_reading(sample, 0, row, "2", ("3.5", "")) == ("number", 3.5, "")


def test_what_cannot_be_reckoned_is_a_dash_with_its_reason():
    one = WordPair(what="right or wrong", who="ann", person="right", karat="right", cluster=1)
    [row] = agreements_in_words([one])
    assert (row.exact, row.kappa) == ("100.0 %", "–")
    assert "no variation" in row.kappa_note
    [row] = agreements_in_words([WordPair(what="x", who="ann", person=None, karat="right", cluster=1)])
    assert (row.answers, row.undecided, row.exact, row.kappa) == (0, 1, "–", "–")
    mixed = [one, WordPair(what="right or wrong", who="ann", person="right", karat="wrong", cluster=1),
             WordPair(what="right or wrong", who="ann", person="wrong", karat="wrong", cluster=1)]  # fmt: skip
    [row] = agreements_in_words(mixed)
    assert (row.kappa, row.kappa_note) == ("0.40", "fewer than two clusters")
    assert not math.isnan(float(row.kappa))


def test_everyone_who_judged_a_turn_is_shown():
    labels = Labels(
        newest={"t": tuple(Label(at="", who=f"p{n}", trial="t", turn=0, verdict="right") for n in range(20))}
    )
    reviews = Reviews(labels=labels, reviewer="p19")
    assert [one["who"] for one in verdicts(reviews, "t", 0, None)] == [f"p{n}" for n in range(20)]
    assert form_of(reviews, "t", 0)["verdict"] == "right"


def test_labels_that_somebody_else_wrote_are_text_on_every_page(copied):
    viewer, folder = copied
    bad = SCRIPT + MARKS.replace("\x00", "")
    for run, samples in (("talk", "1111"), ("study", "3333")):
        head = {"event": "head", "format": 1, "run": {"talk": "aaaa", "study": "cccc"}[run] + samples}
        base = {"event": "label", "at": bad, "who": bad, "trial": trial(0), "note": bad}
        lines = [
            head,
            {**base, "turn": 0, "verdict": "wrong", "diagnosis": bad, "answers": {bad: bad, "choice": [bad]},
             "unread": {"number": bad}},
            {**base, "turn": 10**12, "verdict": "right"},
            {**base, "turn": -5, "verdict": "right", "scores": {bad: 1e308}},
            {**base, "trial": bad, "turn": 0, "answers": {"choice": 5}},
            {**base, "trial": trial(1), "turn": 10**30, "verdict": "right"},
        ]  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / run / "labels.jsonl").write_text(text, encoding="utf-8")
        for path in ("samples/1", "reviews"):
            heard = viewer.get(f"/runs/{run}/{path}")
            assert heard.status == 200, heard.text
            page = outline(heard.text)
            assert not page.all("img")
            assert "<script>alert(1)</script>" in page.said
            assert "\x1b" not in heard.text
            assert "\u202e" not in heard.text
    assert not [line for line in viewer.errors if "it works once" not in line]


def test_an_answer_that_is_too_long_to_be_sent_back_is_not_offered():
    sample = Sample(
        id="p",
        position=0,
        digest="",
        turns=(Turn(question="?"),),
        kind="study",
        detail={"study": "s", "fields": [FIELDS]},
    )
    row = Score(trial="t", scorer="x", scoring="s", values={}, turn=0, detail={"answers": {"why": "x" * 20_000}})
    *_, why = reading_choices(sample, 0, row, None)
    choices = why["choices"]
    assert isinstance(choices, list)
    assert all(re.fullmatch(r'\{"kind": "\w+"\}', value) for value, _ in choices)


def test_of_hundreds_of_different_answers_there_is_no_kappa():
    found = [WordPair(what="x", who="ann", person=("a", str(n)), karat=("b", str(n)), cluster=n) for n in range(5_000)]
    [row] = agreements_in_words(found)
    assert (row.answers, row.exact, row.kappa) == (5_000, "0.0 %", "–")
    assert row.kappa_note == "too many different answers for a kappa"


@pytest.mark.parametrize("ends", [[10**400, 10**400 + 2], [-(10**400), 1], [True, 5], [1e300, 1e300], [1e15, 1e15 + 2]])
def test_a_scale_whose_ends_nobody_would_write_is_an_open_field(ends):
    fields = {"choice": {"type": "likert", "range": ends}}
    sample = Sample(
        id="p",
        position=0,
        digest="",
        turns=(Turn(question="?"),),
        kind="study",
        detail={"study": "s", "fields": [fields]},
    )
    [choice] = reading_choices(sample, 0, None, None)
    assert choice["open"]


def test_the_form_of_who_looks_begins_with_what_they_said_however_many_came_after():
    labels = Labels(
        newest={"t": tuple(Label(at="", who=f"p{n}", trial="t", turn=0, verdict="right") for n in range(40_000))}
    )
    reviews = Reviews(labels=labels, reviewer="p3")
    assert form_of(reviews, "t", 0)["verdict"] == "right"
    assert all(reviews.by_reviewer("t", turn) is None for turn in range(1, 2_000))


def put(folder, run: str, labels: list[dict]) -> None:
    head = {"event": "head", "format": 1, "run": run}
    lines = [head, *({"event": "label", "at": "", "who": "ann", **one} for one in labels)]
    (folder / "labels.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.mark.slow
def test_tens_of_thousands_of_labels_on_one_trial_are_read(copied):
    viewer, folder = copied
    said = [{"trial": trial(0), "turn": 0, "verdict": "right", "who": f"p{n}"} for n in range(40_000)]
    put(folder / "talk", "aaaa1111", said)
    labels = read_labels(RunFolder.open(folder / "talk")).of(trial(0))
    assert [label.who for label in labels] == [one["who"] for one in said]
    assert viewer.get("/runs/talk/samples/1").status == 200


def test_scores_that_are_no_numbers_people_give_are_left_out_of_the_agreement(copied):
    viewer, folder = copied
    put(folder / "golden", "bbbb2222", [
        {"trial": trial(0), "scores": {"completeness": value}, "who": who}
        for who, value in (("ann", 1e308), ("bob", -1e308), ("cy", 3))
    ])  # fmt: skip
    told = words(viewer, "/runs/golden/reviews")
    assert "3 reviews" in told
    assert "completenesscy1" in told
    assert "completenessann1" not in told


@pytest.mark.slow
def test_a_diagnosis_counts_only_where_both_say_wrong(copied):
    viewer, folder = copied
    put(folder / "talk", "aaaa1111", [
        {"trial": trial(0), "turn": 0, "verdict": "wrong", "diagnosis": "scale"},  # karat: right
        {"trial": trial(1), "turn": 1, "verdict": "right", "diagnosis": "scale"},  # as nobody can save it
        {"trial": trial(2), "turn": 1, "verdict": "wrong", "diagnosis": "sign"},
    ])  # fmt: skip
    told = words(viewer, "/runs/talk/reviews")
    assert "diagnosis, where both say wrongann11 conversation" in told
    assert "scale" in told
