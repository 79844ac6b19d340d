"""What a person who writes a study down for the first time gets wrong, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.errors import BadDataset

from .studies import read

MATERIALS = {"x": "How much do you like {{ what }}?", "skill": "In which percentile are you?"}
RATED = """\
study: rated
title: Three drinks, rated by the same people
source: Nobody (2026)
domain: cognition
participants: {per_arm: human, profile: {age: [18, 30], gender: {female: 0.5, male: 0.5}}}
design: within
arms:
  tea: {prompt: materials/x.md, values: {what: tea}, fields: {liking: {type: likert, range: [1, 7]}}, n: 60}
  milk: {prompt: materials/x.md, values: {what: milk}, fields: {liking: {type: likert, range: [1, 7]}}, n: 60}
  rum: {prompt: materials/x.md, values: {what: rum}, fields: {liking: {type: likert, range: [1, 7]}}, n: 60}
findings:
  - id: F1
    claim: Liking differs.
    tests:
      - id: T1
        kind: anova
        groups: {column: arm, levels: [tea, milk, rum]}
        measure: liking
        expect: different
        reason: all drank all
        human: {F: 11.9, df1: 2, df2: 118, reported: "F(2, 118) = 11.90, p < .001"}
"""
SKILL = """\
study: skill
title: How good people think they are
source: Kruger & Dunning (1999)
domain: social
participants: {per_arm: human}
arms:
  all: {prompt: materials/skill.md, fields: {percentile: {type: number, range: [0, 99]}}, n: 65}
findings:
  - id: F1
    claim: Above average.
    tests:
      - id: T1
        kind: ttest_one
        measure: percentile
        against: 50
        expect: greater
        human: {mean: 66, t: 8.13, df1: 64, n: 65, reported: "t(64) = 8.13, p < .0001"}
"""
AGAIN = (
    "F1 T1: the same people are in each of its groups, and a {} treats their answers as those of different people; "
    "for pairs, use a column for each, with ttest_paired, wilcoxon or binomial (of those who changed)"
)


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(BadDataset) as caught:
        read(folder, text, MATERIALS)
    return [fault.message for fault in caught.value.faults]


def test_an_anova_of_repeated_measures_is_refused_also_with_a_reason(tmp_path: Path) -> None:
    wanted = (
        "2, 118 degrees of freedom are those of 60 people in all 3 groups; an anova compares groups of different "
        "people: pair them (ttest_paired), or test a contrast (ttest_one)"
    )
    assert faults(tmp_path, RATED) == [wanted]
    assert faults(tmp_path, changed(RATED, ', reported: "F(2, 118) = 11.90, p < .001"', "")) == [wanted]


def test_comparing_what_the_same_people_said_as_if_they_were_others_is_a_fault(tmp_path: Path) -> None:
    compared = changed(RATED, "[tea, milk, rum]", "[tea, rum]").replace("anova", "ttest_ind")
    human = "human: {tea: {mean: 5, sd: 1}, rum: {mean: 4, sd: 1}, reported: 'M = 5 and M = 4'}"
    compared = compared[: compared.index("human: {F")] + human
    [fault] = faults(tmp_path / "same", compared)
    assert fault.startswith("has one participant of arm 'tea' in both groups, and takes them for two")
    assert "ttest_paired" in fault
    clustered = changed(compared, "kind: ttest_ind", "kind: ttest_ind\n        cluster: participant")
    assert not any("different people" in text for text in read(tmp_path / "clustered", clustered, MATERIALS).warnings)
    spread = changed(compared, "kind: ttest_ind", "kind: variance_ratio")
    assert AGAIN.format("variance_ratio") in read(tmp_path / "spread", spread, MATERIALS).warnings
    apart = changed(compared, "design: within", "design: between")
    assert read(tmp_path / "others", apart, MATERIALS).warnings == ("arms.milk: no test looks at its participants",)


def test_one_sample_is_compared_with_nothing_only_if_that_is_said(tmp_path: Path) -> None:
    zero = changed(SKILL, "        against: 50\n", "")
    assert read(tmp_path / "unsaid", zero, MATERIALS).warnings == (
        "F1 T1: 'percentile' is compared with 0; `against` sets another number",
    )
    assert read(tmp_path / "said", changed(SKILL, "against: 50", "against: 0"), MATERIALS).warnings == ()


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            "mean: 66",
            "mean: 34",
            ["the sign of the statistic contradicts the means: positive is the mean above what it is compared with"],
        ),
        (
            "kind: ttest_one",
            "kind: binomial",
            ["no k of people was published, nor anything to compute it from"],
        ),
        ("t: 8.13,", "t: 8.31,", ["t = 8.31 is not what is printed: 't(64) = 8.13, p < .0001'"]),
        ('"t(64) = 8.13, p < .0001"', '"t(64) = 8,13"', None),
    ],
)
def test_numbers_that_contradict_each_other_are_told(
    tmp_path: Path, old: str, new: str, wanted: list[str] | None
) -> None:
    text = changed(SKILL, old, new)
    if wanted is None:  # what cannot be read is no contradiction, and is said
        assert read(tmp_path, text, MATERIALS).warnings == (
            "F1 T1: 't(64) = 8,13' has no statistic that could be checked",
        )
    else:
        assert faults(tmp_path, text) == wanted


@pytest.mark.parametrize(
    ("reported", "more", "wanted"),
    [
        ("t(64) = 8.13, p < .0001", "", ()),
        ("t(64) = 8.13, p = .01", "", ("F1 T1: 't(64) = 8.13, p = .01': the statistic gives p <0.001 (two-sided)",)),
        ("t(64) = 8.13, n.s.", "", ("F1 T1: 't(64) = 8.13, n.s.': the statistic gives p <0.001 (two-sided)",)),
        ("t(64) = 8.13, p = .01", "reason: as the paper has it", ()),
        ("t(64) = 8.13", "", ()),
    ],
)
def test_a_p_that_does_not_follow_is_warned_of(
    tmp_path: Path, reported: str, more: str, wanted: tuple[str, ...]
) -> None:
    text = changed(SKILL, "t(64) = 8.13, p < .0001", reported)
    text = changed(
        text, "        against: 50\n", f"        against: 50\n        {more}\n" if more else "        against: 50\n"
    )
    assert read(tmp_path, text, MATERIALS).warnings == wanted


def test_a_p_is_halved_where_the_test_is_one_sided(tmp_path: Path) -> None:
    text = changed(SKILL, "mean: 66, t: 8.13", "t: 1.8").replace("t(64) = 8.13, p < .0001", "t(64) = 1.80, p < .05")
    warned = read(tmp_path / "two", text, MATERIALS).warnings
    assert warned == ("F1 T1: 't(64) = 1.80, p < .05': the statistic gives p 0.077 (two-sided)",)
    greater = changed(text, "        against: 50\n", "        against: 50\n        alternative: greater\n")
    assert read(tmp_path / "one", greater, MATERIALS).warnings == ()


def test_an_impossible_statistic_is_called_so(tmp_path: Path) -> None:
    text = changed(RATED, "[tea, milk, rum]", "[tea, rum]").replace("anova", "mannwhitney").replace("within", "between")
    text = text[: text.index("human: {F")] + "human: {U: 4900}"
    text = changed(text, "expect: different", "expect: greater")
    assert faults(tmp_path, text) == ["u: must be at most n1·n2, got 4900"]


def test_a_chi_square_beside_a_share_is_compared_with_its_z(tmp_path: Path) -> None:
    text = changed(SKILL, "kind: ttest_one", "kind: binomial").replace("        against: 50\n", "")
    text = text[: text.index("human: {mean")] + "human: {k: 40, n: 65, reported: 'χ²(1) = 9.1, p < .07'}"
    text = changed(text, "measure: percentile", "measure: above")
    text = changed(text, "findings:\n", "derive: SELECT percentile > 50 AS above FROM responses\nfindings:\n")
    wanted = (
        "means or counts give z = 1.861 or 1.736, but 'χ²(1) = 9.1, p < .07' is printed; "
        "fix the numbers, or say which to use: `use:` with a `reason`"
    )
    assert faults(tmp_path / "wrong", text) == [wanted]
    assert read(tmp_path / "right", changed(text, "9.1", "3.46"), MATERIALS).warnings == ()


@pytest.mark.parametrize(("chi2", "wanted"), [("13.3", []), ("12", []), ("15.3", None)])
def test_a_chi_square_is_compared_with_the_counts(tmp_path: Path, chi2: str, wanted: list[str] | None) -> None:
    text = changed(RATED, "[tea, milk, rum]", "[tea, rum]").replace("anova", "contingency").replace("within", "between")
    text = changed(text, "measure: liking", "measure: likes").replace("        reason: all drank all\n", "")
    text = changed(text, "findings:\n", "derive: SELECT *, liking > 4 AS likes FROM responses\nfindings:\n")
    text = text[: text.index("human: {F")] + f"human: {{tea: {{k: 40}}, rum: {{k: 20}}, chi2: {chi2}}}"
    if wanted is None:
        said = (
            "the counts give chi2 = 13.333 or 13.592 or 12.033, but the file has 15.3; fix it, or say why in `reason`"
        )
        assert faults(tmp_path, text) == [said]
    else:
        assert read(tmp_path, text, MATERIALS).study == "rated"


def test_sizes_of_two_groups_are_compared_with_all_people(tmp_path: Path) -> None:
    text = changed(RATED, "[tea, milk, rum]", "[tea, rum]").replace("anova", "mannwhitney").replace("within", "between")
    text = text[: text.index("human: {F")] + "human: {U: 2400, reported: 'U = 2400, n1 = 60, n2 = 60'}"
    text = changed(text, "        reason: all drank all\n", "")
    assert read(tmp_path / "right", text, MATERIALS).study == "rated"
    found = faults(tmp_path / "wrong", changed(text, "n2 = 60", "n2 = 61"))
    assert found == ["N = 121 is printed, but the groups have 120; fix it, or say why in `reason`"]


@pytest.mark.parametrize(
    ("profile", "wanted"),
    [
        ("age: 18-30", "participants.profile.age: everybody has '18-30'; [lowest, highest] draws from a range"),
        ("age: 18 to 30", "participants.profile.age: everybody has '18 to 30'; [lowest, highest] draws from a range"),
        (
            "gender: {female: 0.5, male: 0.6}",
            "participants.profile.gender: the shares add up to 1.1; they are used as proportions",
        ),
        ("gender: {female: 50, male: 40}", None),  # counts
        ("gender: {female: 33.3, male: 66.6}", None),
        ("year: 2026-27x", None),
    ],
)
def test_a_profile_that_is_seldom_meant_is_warned_of(tmp_path: Path, profile: str, wanted: str | None) -> None:
    text = changed(SKILL, "{per_arm: human}", f"{{per_arm: human, profile: {{{profile}}}}}")
    assert read(tmp_path, text, MATERIALS).warnings == (() if wanted is None else (wanted,))


def test_an_arm_that_no_test_looks_at_is_warned_of(tmp_path: Path) -> None:
    compared = (
        changed(RATED, "[tea, milk, rum]", "[tea, rum]").replace("anova", "ttest_ind").replace("within", "between")
    )
    human = "human: {tea: {mean: 5, sd: 1}, rum: {mean: 4, sd: 1}, reported: 'M = 5 and M = 4'}"
    text = compared[: compared.index("human: {F")] + human
    assert read(tmp_path, text, MATERIALS).warnings == ("arms.milk: no test looks at its participants",)


def test_braces_that_are_not_closed_are_warned_of(tmp_path: Path) -> None:
    unclosed = {**MATERIALS, "skill": "You are {{ profile.age, and how good?"}
    warned = read(tmp_path, SKILL, unclosed).warnings
    assert warned == ("materials/skill.md: '{{' without a closing '}}' is shown unchanged",)


def test_yes_and_no_without_quotes_are_told_once(tmp_path: Path) -> None:
    text = changed(SKILL, "{type: number, range: [0, 99]}", "{type: choice, options: [yes, no]}")
    found = [one for one in faults(tmp_path, text) if "must be" in one]
    assert found == ["must be text, got true; put it in quotes", "must be text, got false; put it in quotes"]


@pytest.mark.parametrize(
    ("measure", "told"),
    [
        ("CASE WHEN percentile > 50 THEN 1 ELSE 0 END", "0"),
        ("coalesce(percentile, 50)", "50"),
        ("percentile", None),
        ("CASE WHEN percentile > 50 THEN 1 WHEN percentile <= 50 THEN 0 END", None),
    ],
)
def test_an_answer_that_could_not_be_read_must_not_count(tmp_path: Path, measure: str, told: str | None) -> None:
    derived = changed(SKILL, "findings:", f"derive: SELECT {measure} AS own FROM responses\nfindings:")
    warnings = read(tmp_path, changed(derived, "measure: percentile", "measure: own"), MATERIALS).warnings
    said = [one for one in warnings if "could not be read" in one]
    assert len(said) == (told is not None)
    assert all(f"F1 T1: an answer that could not be read counts as {told}" in one for one in said)


@pytest.mark.parametrize(
    ("reported", "fault"),
    [
        ("r = .71, t(64) = 8.13, p < .0001", None),
        ("t(64) = 2.10 for women; t(64) = 8.13, p < .0001 for all", None),
        ("F(1, 63) = 4.1, p = .047; t(64) = 8.13, p < .0001", None),
        ("r = .71, chi2(1, N = 65) = 8.13", "a ttest_one cannot be computed from r"),
        ("t(64) = 2.10; t(64) = 3.10", "t = 8.13 is not what is printed"),
    ],
)
def test_any_printed_statistic_that_fits_the_test_holds(tmp_path: Path, reported: str, fault: str | None) -> None:
    text = SKILL.replace("t(64) = 8.13, p < .0001", reported)
    if fault is None:
        assert read(tmp_path, text, MATERIALS).study == "skill"
        return
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, text, MATERIALS)
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ("66 (20) of 0", "the means are 66, but '66 (20) of 0' is printed"),
        ("2.33 (0.49) of 0", "the means are 66, but '2.33 (0.49) of 0' is printed"),
        ("t(64) = 8.13, p < 10^-99999999999999999999", "the statistic gives p <0.001"),
        ("t(64) = 8.13 x 10^-99999999999999999999", "t = 8.13 is not what is printed"),
        ("t(nan) = 8.13, p < .01", "has no statistic that could be checked"),
        (f"r({'9' * 400}) = .5, p < .01", "has no statistic that could be checked"),
        (f"t({'9' * 400}) = 8.13, p < .01", "has no statistic that could be checked"),
        (f"{'9' * 4400} of 65", "at most 2000 characters"),
        ("9" * 100_000, "at most 2000 characters"),
    ],
    ids=lambda text: text[:30],
)
def test_no_printed_string_breaks_the_check(tmp_path: Path, reported: str, wanted: str) -> None:
    text = SKILL.replace("t(64) = 8.13, p < .0001", reported)
    try:
        said = list(read(tmp_path, text, MATERIALS).warnings)
    except BadDataset as bad:
        said = [str(fault) for fault in bad.faults]
    assert [one for one in said if wanted in one]
