"""A printed p against its statistic."""

import pytest

from karat_studies.replication import parse_reported
from karat_studies.replication.printed_p import printed_p


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("t(78) = 2.66, p < .01", True),
        ("t(78) = 2.66, p = .009", True),
        ("t(78) = 2.66, p = .0095", True),
        ("t(78) = 2.66, p = .01", True),  # .0095 is printed so with two digits
        ("t(78) = 2.66, p = .011", False),
        ("t(78) = 2.66, p < .001", False),
        ("t(78) = 2.66, n.s.", False),
        ("t(78) = 1.20, n.s.", True),
        ("t(78) = 1.80, p < .05", False),
        ("t(78) = 1.80, p < .05 (one-tailed)", True),
        ("F(2, 57) = 4.21, p = .02", True),
        ("χ²(1) = 4.5, p < .05", True),
        ("χ²(1) = 4.5, p < .01", False),
        ("z = 1.96, p = .05", True),
        ("r = .39, N = 65, p = .001", True),
        ("r(63) = .39, p > .05", False),
        ("t(78) = 2.66, p < 1 %", True),
    ],
)
def test_p_follows_from_the_statistic_within_rounding(text: str, holds: bool) -> None:
    found = printed_p(parse_reported(text))
    assert found is not None
    assert found.holds is holds
    assert 0 <= found.low <= found.high <= 1


@pytest.mark.parametrize("text", ["t = 2.66, p < .01", "U = 120, p = .04", "t(78) = 2.66", "r = .39, p = .001"])
def test_where_one_of_the_two_is_not_known_nothing_is_compared(text: str) -> None:
    assert printed_p(parse_reported(text)) is None


@pytest.mark.parametrize(
    "said", ["Bonferroni-adjusted", "corrected", "Holm", "Greenhouse-Geisser", "ε = .8", "not p < .01"]
)
def test_of_corrected_numbers_nothing_is_said(said: str) -> None:
    assert printed_p(parse_reported(f"F(2, 57) = 4.21, p = .06 ({said})")) is None


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("t(78) = 1.80, p < .05 (onetailed)", True),
        ("t(78) = 1.80, p < .05, directional", True),
        ("t(78) = 1.80, p = .038 (one-tailed; two-tailed below)", True),
        ("t(78) = 1.80, p = .076 (one-tailed; two-tailed below)", True),
        ("t(78) = 1.80, p < .01 (one-tailed; two-tailed below)", False),
        ("t(78) = 1.80, p < .05, non-directional", False),
    ],
)
def test_one_and_two_sided_are_told_apart(text: str, holds: bool) -> None:
    found = printed_p(parse_reported(text))
    assert found is not None
    assert found.holds is holds
