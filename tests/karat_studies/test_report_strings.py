"""The grammar of reported tests."""

import pytest

from karat_studies.replication import parse_reported
from karat_studies.replication.report_strings import every_reported

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
    # typography
    ("t(78) = − 2.66, p &lt; .01", "t", -2.66, (78,), None, "<", 0.01),
    ("t(78) = 2·66, p = ·01", "t", 2.66, (78,), None, "=", 0.01),
    ("𝑡(78)＝2.66，𝑝 ≦ .01", "t", 2.66, (78,), None, "≤", 0.01),
    ("𝜒²(1, 𝑁 = 100) = 4.5", "chi2", 4.5, (1,), 100, None, None),
    ("<i>t</i><sub>78</sub> = 2.66, <i>p</i> < .01", "t", 2.66, (78,), None, "<", 0.01),
    (r"\textit{F}_{2, 57} = 4.21, $p \leq .02$", "F", 4.21, (2, 57), None, "≤", 0.02),
    (r"$\chi^{2}_{1} = 4.5$", "chi2", 4.5, (1,), None, None, None),
    ("chi^2(1) = 4.5", "chi2", 4.5, (1,), None, None, None),
    ("F₂,₅₇ = 4.21", "F", 4.21, (2, 57), None, None, None),
    ("rₛ(63) = .39", "r", 0.39, (63,), None, None, None),
    # degrees of freedom
    ("F(1, 1,234) = 4.21", "F", 4.21, (1, 1234), None, None, None),
    ("t(1,234) = 2.66", "t", 2.66, (1234,), None, None, None),
    ("t = 2.66, df = 78, p < .01", "t", 2.66, (78,), None, "<", 0.01),
    ("t = 2.66 with 78 degrees of freedom", "t", 2.66, (78,), None, None, None),
    ("F = 4.21 with 2 and 57 df", "F", 4.21, (2, 57), None, None, None),
    ("t = 2.66; F = 4.21, df = 2, 57", "t", 2.66, (), None, None, None),
    # n
    ("M = 4 (n = 40) vs. M = 3 (n = 38), t(76) = 2.66", "t", 2.66, (76,), None, None, None),
    ("t(78) = 2.66, n = 40 per group, N = 80", "t", 2.66, (78,), 80, None, None),
    # p
    ("t(78) = 2.66, p < 10^-5", "t", 2.66, (78,), None, "<", 1e-5),
    ("t(78) = 2.66, p < 10−5", "t", 2.66, (78,), None, "<", 1e-5),
    ("t(78) = 2.66, p < 1 %", "t", 2.66, (78,), None, "<", 0.01),
    ("t(78) = 2.66, p = < .01", "t", 2.66, (78,), None, "<", 0.01),
    ("t(78) = 2.66, p value < .01", "t", 2.66, (78,), None, "<", 0.01),
    ("t(78) = 2.66, p (two-tailed) = .01", "t", 2.66, (78,), None, "=", 0.01),
    ("t(78) = 2.66, prep = .95", "t", 2.66, (78,), None, None, None),
    # names of others
    ("Wilcoxon T = 23, z = 2.1, p = .04", "z", 2.1, (), None, "=", 0.04),
    ("f = .25, F(1, 98) = 6.7", "F", 6.7, (1, 98), None, None, None),
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


def test_the_digits_after_the_point_are_those_that_are_printed():
    printed = ["t(78) = –2.60", "χ²(1) = 12", "F(1, 78) = 1,234.50, p = .001", "r = .390**", "z = 1.5e-3, p = 5 %"]
    assert [parse_reported(text).decimals for text in printed] == [2, 0, 2, 3, 4]
    assert [parse_reported(text).p_decimals for text in printed] == [0, 0, 3, 0, 2]


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
        ("t(78) = 2,66", "there is a comma in the number 2,6… of 't\\(78\\) = 2,66'; write it with a point"),
        ("t(78) = 2.66, p = 0,01", "there is a comma in the number 0,0…"),
        ("t(98) = 1e400", "the number 1e400 of 't\\(98\\) = 1e400' is too large"),
        ("χ²(1, 100) = 4.5", "gives 2; write the number of people as N = 100"),
        ("Wilcoxon T = 23, p < .01", "cannot read a statistic"),
        ("an effect of f = .25", "cannot read a statistic"),
        ("t₁ = 5", "cannot read a statistic"),
    ],
)
def test_what_cannot_be_read_says_what_is_wanted(text, message):
    with pytest.raises(ValueError, match=message):
        parse_reported(text)


@pytest.mark.parametrize(
    ("text", "relation", "p"),
    [
        ("t(78) = 2.66, p < .01; t(78) = 1.20, p = .23", "<", 0.01),
        ("t(78) = 2.66; F(1, 78) = 9.1, p = .003", None, None),  # of the F alone
        ("p < .01, t(78) = 2.66", "<", 0.01),
    ],
)
def test_a_p_is_of_the_statistic_beside_it(text, relation, p):
    found = parse_reported(text)
    assert (found.relation, found.p) == (relation, p)


@pytest.mark.parametrize("text", ["t = 5%", "F = 1 to 3", "z = 2 - 3", "t = 3/4", "r = .3 or .4"])
def test_a_range_or_a_share_is_no_statistic(text):
    with pytest.raises(ValueError, match="cannot read a statistic"):
        parse_reported(text)


def test_every_statistic_of_a_string_can_be_had():
    found = every_reported("r = .59, chi2(1, N = 78) = 27.2, p < .001; t(2,66, 1) = 4")
    assert [(one.kind, one.p) for one in found] == [("r", None), ("chi2", 0.001)]
    assert every_reported("nothing") == []


def test_thousands_and_decimals_in_an_n():
    assert parse_reported("t(1153) = 2.6, N = 1 155").n == 1155
    assert parse_reported("t(78) = 2.6, n = 4.5").n is None
