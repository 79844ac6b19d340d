"""Where it fails: the lowest questions with what was asked and answered, every question, claims."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from karat import summarize
from karat.analysis.model import LowCell, LowSample, SampleColumn, SampleTable, Summary
from karat.blocks import Fold, Low, LowTurn, Number, Share, Table, plain
from karat.document.failing import Claim, Claims, Texts, claims, every, failures, lowest


@pytest.fixture(scope="module")
def summary(journals, tmp_path_factory) -> Summary:
    scores = {"old": [[3.0], [4.0]], "new": [[4.0], [5.0]]}
    found = summarize(journals.table(tmp_path_factory.mktemp("run") / "run", scores))
    return structs.replace(found, metrics=(structs.replace(found.metrics[0], offline=False),))


def cell(condition: str, **fields: Any) -> LowCell:
    return LowCell(**{"mean": 1.5, "sd": 0.5, "n": 2, **fields}, condition=condition)


def sample(name: str = "q", *cells: LowCell, gap: float | None = None) -> LowSample:
    return LowSample(sample=name, position=0, question="Why?", metric="completeness", mean=1.5, gap=gap, cells=cells)


def texts(**fields: Any) -> Texts:
    none: dict[str, Any] = {"golden": {}, "questions": {}, "answers": {}, "claims": {}, "claimed": (), "different": 0}
    return Texts(**{**none, **fields})


def low(summary: Summary, found: Texts | None, *samples: LowSample, **options: Any) -> list[Low]:
    return list(lowest(structs.replace(summary, lowest=samples), found, **options))  # type: ignore[arg-type]  # lows


def test_a_low_question_has_its_mean_its_gap_and_its_scores(summary):
    first = sample("q", cell("old"), cell("new", n=1, sd=None), cell("old", n=0, mean=None), gap=2.5)
    (found,) = low(summary, None, first)
    assert found.score == "completeness 1.50 on average, 2.50 apart between conditions"
    assert [answer.score for answer in found.answers] == ["1.50 ± 0.50 (2 answers)", "1.50 (1 answer)", "no score"]
    assert [answer.color for answer in found.answers] == [0, 1, 0]
    assert (found.sample, found.question, found.golden, found.limit) == ("q", "Why?", None, 8_000)
    (alone,) = low(summary, None, sample("q"), limit=5)
    assert (alone.score, alone.limit) == ("completeness 1.50 on average", 5)
    ruled = structs.replace(summary, metrics=(structs.replace(summary.metrics[0], offline=True),))
    assert low(ruled, None, sample("q"))[0].score == "completeness (offline) 1.50 on average"


def test_only_so_many_low_questions_are_shown(summary):
    samples = [sample(str(at)) for at in range(7)]
    assert [found.sample for found in low(summary, None, *samples)] == [*"01234"]
    assert [found.sample for found in low(summary, None, *samples, most=2)] == [*"01"]


def test_the_whole_answer_is_quoted_where_it_is_known(summary):
    of_one = sample("q", cell("old", answer="begins", claims=tuple(map(str, range(11)))), cell("new", answer="so"))
    known = texts(
        golden={"q": ("right",)},
        questions={"q": ("Why?",)},
        answers={
            ("q", "old"): (
                "first",
                "the whole",
            )
        },
    )
    (found,) = low(summary, known, of_one)
    assert found.golden == "right"
    old, new = found.answers
    assert (old.answer, old.excerpt, new.answer, new.excerpt) == ("the whole", False, "so", True)
    assert old.claims == tuple(map(str, range(10)))
    (found,) = low(summary, texts(golden={"q": ("one", "two")}), of_one)
    assert (found.golden, found.answers[0].answer) == (None, "begins")


def test_each_of_several_turns_is_quoted(summary):
    known = texts(golden={"q": ("one",)}, questions={"q": ("A?", "B?")}, answers={("q", "old"): ("a",)})
    (found,) = low(summary, known, sample("q", cell("old", answer="begins")))
    (answer,) = found.answers
    assert answer.turns == (
        LowTurn(question="A?", golden="one", answer="a"),
        LowTurn(question="B?", golden=None, answer=None),
    )
    assert answer.answer is None


def of_means(summary: Summary, means: dict[str, list[float | None]], **fields: Any) -> Any:
    """What is shown of questions with these means."""
    many = len(next(iter(means.values()), [0]))
    empty: dict[str, Any] = {"sd": [None] * many, "n": [1] * many}
    names = {field.name for field in structs.fields(SampleColumn)}
    columns = tuple(
        SampleColumn(
            condition=name, metric="completeness", mean=values, **{k: v for k, v in empty.items() if k in names}
        )
        for name, values in means.items()
    )
    ids = [f"q{at}" for at in range(many)]
    table = SampleTable(ids=ids, positions=[*range(many)], digests=ids, columns=columns)
    info = structs.replace(summary.metrics[0], **fields)
    (fold,) = every(structs.replace(summary, metrics=(info,), table_of_samples=table))
    assert isinstance(fold, Fold)
    (shown,) = fold.blocks
    assert isinstance(shown, Table)
    assert shown.caption == fold.title
    return shown


def test_every_question_is_listed_the_lowest_first(summary):
    means = {"old": [3.0, 1.0, None, 2.0], "new": [4.0, 5.0, None, None]}
    table = of_means(summary, means)
    assert table.caption == "Every question: completeness"
    assert table.legend == "Means over repetitions of completeness, the lowest question first."
    assert [(row.name, *map(plain, row.cells)) for row in table.rows] == [
        ("q3", "2.00", "–"),
        ("q1", "1.00", "5.00"),
        ("q0", "3.00", "4.00"),
        ("q2", "–", "–"),
    ]
    assert {type(found) for row in table.rows for found in row.cells} == {Number}
    lower = of_means(summary, means, direction="lower")
    assert [row.name for row in lower.rows] == ["q0", "q1", "q3", "q2"]
    share = of_means(summary, {"old": [0.5], "new": [1.0]}, kind="share", low=0, high=1)
    assert {type(found) for row in share.rows for found in row.cells} == {Share}


def test_a_long_list_of_questions_is_cut(summary):
    table = of_means(summary, {"old": [float(at) for at in range(302)]})
    assert len(table.rows) == 300
    assert table.caption == "The 300 lowest questions"
    assert table.legend.endswith(" 2 further questions left out: `karat report --to json` has them.")
    assert of_means(summary, {"old": [float(at) for at in range(300)]}).caption.startswith("Every")
    assert [row.name for row in of_means(summary, {}).rows] == ["q0"]
    assert [*every(structs.replace(summary, table_of_samples=None))] == []
    assert [*every(structs.replace(summary, metrics=()))] == []


def test_nothing_failed_is_said():
    (note,) = failures(())
    assert (note.title, note.texts, note.tone) == ("Failures", ("No trial and no attempt failed.",), "quiet")


def test_claims_are_counted_by_condition_and_some_are_listed(summary):
    tallies = {"old": Claims(total=0, answers=0), "new": Claims(total=3, answers=2)}
    one = Claim(condition="new", sample="q", text="It also reads YAML.")
    counted, fold = claims(summary, texts(claims=tallies, claimed=(one,), different=3))
    assert [(row.name, row.color, *map(plain, row.cells)) for row in counted.rows] == [
        ("old", 0, "0", "0", "2"),
        ("new", 1, "3", "2", "2"),
    ]
    (listed,) = fold.blocks
    assert (fold.title, listed.caption) == ("1 different claim of 3",) * 2
    assert listed.legend == "2 further claims left out: they are in the journal."
    assert [(row.name, *map(plain, row.cells)) for row in listed.rows] == [("q", "new", "It also reads YAML.")]
    _, whole = claims(summary, texts(claims=tallies, claimed=(one, one), different=2))
    assert (whole.title, whole.blocks[0].legend) == ("2 different claims", "")
    assert [*claims(summary, texts(claims={"old": Claims(total=0, answers=0)}))] == []
    assert [*claims(summary, None)] == []
