"""The grammar of reported tests."""

import pytest

from karat.replication import parse_reported

READ = [
    ("t(78) = 2.66, p < .01", "t", 2.66, (78,), None, "<", 0.01),
    ("t(38.6) = −1.20, ns", "t", -1.20, (38.6,), None, "ns", None),
    ("t(78) = 1.5, not significant", "t", 1.5, (78,), None, "ns", None),
    ("*t*(23)=4.1; *P*<0.001", "t", 4.1, (23,), None, "<", 0.001),
    ("t(19) = 2.1, p = .05 (one-tailed)", "t", 2.1, (19,), None, "=", 0.05),
    ("t(78) = 2.66, p < 1 × 10^-5", "t", 2.66, (78,), None, "<", 1e-5),
    ("t = 2.5", "t", 2.5, (), None, None, None),
    ("F(1, 78) = 12.8, p<.001", "F", 12.8, (1, 78), None, "<", 0.001),
    ("F(2,1497)=0.10, n.s.", "F", 0.10, (2, 1497), None, "ns", None),
    ("r(58) = –.42, p = .001", "r", -0.42, (58,), None, "=", 0.001),
    ("r = .35, N = 40, p > .05", "r", 0.35, (), 40, ">", 0.05),
    ("r_s = .3", "r", 0.3, (), None, None, None),
    ("χ²(1, N = 1,155) = 12.3, p = .0004", "chi2", 12.3, (1,), 1155, "=", 0.0004),
    ("X^2(1) = 4.5, p ≤ .05", "chi2", 4.5, (1,), None, "≤", 0.05),
    ("chi-square(2) = 3, p <= .2", "chi2", 3.0, (2,), None, "≤", 0.2),
    ("Z = -1.96", "z", -1.96, (), None, None, None),
    ("U = 120.5, p = 0.03, n1 = 20, n2 = 22", "U", 120.5, (), 20, "=", 0.03),
]


@pytest.mark.parametrize(("text", "kind", "statistic", "dfs", "n", "relation", "p"), READ, ids=[row[0] for row in READ])
def test_a_reported_test_is_read(text, kind, statistic, dfs, n, relation, p):
    found = parse_reported(text)
    assert (found.kind, found.statistic, found.dfs, found.n, found.relation, found.p) == (
        kind,
        statistic,
        dfs,
        n,
        relation,
        p,
    )
    assert found.text == text


def test_both_sizes_of_a_u_are_read():
    assert parse_reported("U = 120, n1 = 20, n2 = 22").n2 == 22


def test_the_degrees_of_freedom_have_names():
    found = parse_reported("F(2, 57) = 4.5")
    assert (found.df1, found.df2) == (2, 57)
    assert (parse_reported("z = 2").df1, parse_reported("t(9) = 2").df2) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no effect", "cannot read a statistic in 'no effect'"),
        ("p < .05", "write it as 't\\(78\\) = 2.66, p < .01'"),
        ("t(10) > 2", "cannot read a statistic"),
        ("F(3) = 2.1", "F has 2 degrees of freedom"),
        ("t(3, 4) = 2.1", "t has 1 degrees of freedom"),
        ("t(many) = 2.1", "cannot read degrees of freedom in '\\(many\\)'"),
        ("t(0) = 2.1", "degrees of freedom must be above 0"),
        ("r(40) = 1.2", "r must be between −1 and 1"),
        ("F(1, 20) = -3", "F must be at least 0"),
        ("t(20) = 3, p = 1.5", "p must be between 0 and 1"),
    ],
)
def test_what_cannot_be_read_says_what_is_wanted(text, message):
    with pytest.raises(ValueError, match=message):
        parse_reported(text)
