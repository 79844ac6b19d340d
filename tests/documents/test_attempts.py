"""Failed rows that were asked again are attempts; where every question has as many rows, they are lost repetitions."""

import pytest

from karat.documents.attempts import Attempts


def counted(rows):
    """Which rows count: pairs of a group and whether it failed."""
    attempts = Attempts()
    for group, failed in rows:
        attempts.add(group, failed=failed)
    return [not (failed and attempts.was_repeated(group)) for group, failed in rows], attempts.sentence()


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        pytest.param([("a", False), ("b", True), ("b", False)], [True, False, True], id="asked again"),
        pytest.param([("a", False), ("b", True), ("b", True)], [True, False, True], id="never answered"),
        pytest.param(
            [("a", False), ("a", False), ("b", True), ("b", False), ("b", False)], [True, True, False, True, True],
            id="of two repetitions, one at the second try",
        ),
        pytest.param([("a", False), ("a", False), ("b", True), ("b", False)], [True] * 4, id="a lost repetition"),
        pytest.param([("a", True), ("a", False)], [True] * 2, id="no group without a failure to compare with"),
        pytest.param(
            [("a", False), ("b", False), ("b", False), ("c", True), ("c", False)], [True] * 5, id="uneven groups"
        ),
    ],
)  # fmt: skip
def test_rows_beyond_those_of_other_questions_are_attempts(rows, counts):
    found, sentence = counted(rows)
    assert found == counts
    assert (sentence is None) == all(counts)


def test_how_many_are_left_out_is_said():
    _, sentence = counted([("a", False), *[("b", True)] * 3, ("b", False)])
    assert sentence is not None
    assert sentence.startswith("3 rows with an error left out, since the question was asked again")


HEADER = "question,expected_answer,model_answer,error,correct"
ROWS = ["1+1?,2,,HTTP 429,", "1+1?,2,2,,1", "2+1?,3,3,,1", "3+1?,4,5,,0", "4+1?,5,,timeout,"]


@pytest.mark.needs_package("karat_imports")
@pytest.mark.parametrize(
    ("rows", "planned", "said"),
    [
        (ROWS, "4 questions × 1 condition × 1 repetition", True),
        # two rows a question: a failed one is a repetition that is lost
        ([*ROWS, "2+1?,3,4,,0", "3+1?,4,4,,1", "4+1?,5,5,,1"], "4 questions × 1 condition × 2 repetitions", False),
    ],
)
def test_both_doors_leave_attempts_out(tmp_path, karat, rows, planned, said):
    file = tmp_path / "asked.csv"
    file.write_text("\n".join([HEADER, *rows]), encoding="utf-8")
    shown = karat("score", str(file), "--scorer", "equals", "--results", str(tmp_path / "scored"))
    assert planned in shown.out
    assert ("1 row with an error left out, since the question was asked again" in " ".join(shown.out.split())) is said

    imported = karat("import", "csv", str(file), "--out", str(tmp_path / "imported"))
    assert ("row with an error, of a question that was asked again" in imported.err + imported.out) is said
    (run,) = (tmp_path / "imported").iterdir()
    assert planned in karat("report", str(run)).out
