"""Which repetition each row of recorded answers is."""

import pytest

from karat.documents.answers import Repetitions


@pytest.mark.parametrize(
    ("rows", "numbers"),
    [
        ([("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0, 1, 0, 1]),
        ([("a", 20), ("a", 10), ("b", 10)], [1, 0, 0]),
        ([("a", "first"), ("a", "second"), ("b", "first")], [0, 1, 0]),
        ([("a", 4711), ("a", 42), ("b", 7), ("b", 99)], [1, 0, 0, 1]),
        # seeds, of which one is that of two questions
        ([("a", 1), ("a", 5), ("a", 6), ("b", 1), ("b", 7)], [0, 1, 2, 1, 0]),
    ],
)
def test_repetitions_are_numbered_from_0(rows, numbers):
    repetitions = Repetitions()
    for sample, value in rows:
        repetitions.add(sample, None, value)
    assert [repetitions.number(sample, None, value) for sample, value in rows] == numbers
