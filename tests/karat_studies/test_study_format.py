"""A study file: what it becomes, and that every fault is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from karat.errors import BadDataset
from karat_studies.kinds.study.format import Answered, Task
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study

from .studies import MATERIALS, STUDY, read, write


def test_a_study_becomes_arms_findings_and_texts(tmp_path: Path) -> None:
    study = read(tmp_path)
    assert (study.study, study.domain, study.design, study.order) == ("small", "cognition", "between", "fixed")
    assert {name: (arm.n, list(arm.answered)) for name, arm in study.arms.items()} == {
        "gain": (152, ["choice"]),
        "loss": (155, ["choice"]),
        "rating": (40, ["first", "second", "why"]),
    }
    assert study.arms["gain"].shown == (
        Task(prompt="materials/gain.md", fields={"choice": Answered(type="choice", options=["A", "B"])}),
    )
    assert study.attributes == ("age", "gender", "occupation")
    assert study.materials["materials/gain.md"] == MATERIALS["gain"]
    assert [(finding.id, test.id, test.kind) for finding, test in study.tests] == [
        ("F1", "T1", "contingency"), ("F2", "T1", "ttest_paired"), ("F2", "T2", "correlation")
    ]  # fmt: skip
    assert study.warnings == ()


def test_the_digest_covers_materials(tmp_path: Path) -> None:
    one = read(tmp_path / "one")
    same = read(tmp_path / "same")
    other = read(tmp_path / "other", materials={"gain": MATERIALS["gain"] + " Think."})
    assert one.sha256 == same.sha256 != other.sha256


def test_folder_and_file_are_the_same_study(tmp_path: Path) -> None:
    folder = write(tmp_path)
    assert read_study(folder) == read_study(folder / "study.yaml")


def test_every_shipped_study_is_found_by_its_name() -> None:
    assert {name: path.parent.name for name, path in shipped_studies().items()} == {
        name: name for name in shipped_studies()
    }


def test_a_prompt_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("A B", encoding="utf-8")
    with pytest.raises(BadDataset, match="is outside the study's folder"):
        read(tmp_path / "study", STUDY.replace("materials/gain.md", "../secret.md"), sql=False)


@pytest.mark.parametrize("call", ["random()", "uuid ()", "NOW()", '"random"()', "CURRENT_DATE", "ago(INTERVAL 1 DAY)"])
def test_derive_gives_the_same_numbers_each_time(tmp_path: Path, call: str) -> None:
    with pytest.raises(BadDataset, match="another value each time"):
        read(tmp_path, STUDY.replace("first - second AS apart", f"first - second AS apart, {call} AS other"))


def test_a_text_that_looks_like_a_call_is_none(tmp_path: Path) -> None:
    text = STUDY.replace("first - second AS apart", "first - second AS apart, 'random() or now()' AS other")
    assert read(tmp_path, text).study == "small"


def changed(*pairs: tuple[str, str], materials: dict[str, str] | None = None) -> tuple[str, dict[str, str]]:
    text = STUDY
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text, materials or {}


BAD_FIELDS = (
    "{choice: {type: choice, options: [A, a]}, age: {type: text, range: [1, 2]}, a-b: {type: number, options: [A, B]}, "
    "whole: {type: text, whole: true}, one: {type: rank, options: [A]}}"
)
EXCUSED = """\
        against: second
        expect: greater
        use: statistic
        reason: the mean is misprinted
        n_reason: one was ill
"""
BAD = {
    "no mapping": ("- a\n- b\n", {}),
    "not YAML": ("study: [a\n", {}),
    "nothing but a name": ("study: x\n", {}),
    "misspelt keys at every level": changed(
        ("title:", "titel:"),
        ("per_arm:", "per_arms:"),
        ("fields: {choice: {type: choice, options: [A, B]}}", "fields: {choice: {type: choise, option: [A, B]}}"),
        ("claim: Losses", "claims: Losses"),
        ("measure: risky", "measures: risky"),
        ("human: {loss:", "human: {los:"),
        ("mean: 0.84", "meen: 0.84"),
    ),
    "expect and kind": changed(
        ("        expect: greater\n        human: {loss", "        human: {loss"),
        ("kind: correlation", "kind: corelation"),
        ("expect: positive", "expect: up"),
    ),
    "arms": changed(
        ("  gain: {prompt: materials/gain.md, ", "  gain: {"),
        (", n: 155}", "}"),
        ("{type: likert, range: [1, 7]}}}", "{type: likert}}}"),
        ("second: {type: likert, range: [1, 7]}", "first: {type: number, range: [7, 1]}"),
    ),
    "fields": changed(
        ("{choice: {type: choice, options: [A, B]}}", BAD_FIELDS),
    ),
    "a column of two types": changed(("{choice: {type: choice, options: [C, D]}}", "{choice: {type: number}}")),
    "materials": changed(
        ("materials/gain.md", "materials/gian.md"),
        materials={"loss": "Which?", "first": "{{ profile.agee }}", "second": "Say it.\nsecond: a number"},
    ),
    "an empty material": changed(materials={"gain": "\n"}),
    "profile": changed(
        ("age: [18, 25]", "age: [25, 18]"),
        ("{female: 0.5, male: 0.5}", "{female: half}"),
        ("occupation: student", "a b: []"),
    ),
    "persons that are not there": changed(("per_arm: human", "given: people.csv")),
    "ids that stand twice": changed(("id: F2", "id: F1"), ("id: T2", "id: T1")),
    "groups that cannot exist": changed(
        ("levels: [loss, gain]", "levels: [los, gain]"),
        ("human: {loss:", "human: {los:"),
        ("kind: correlation", "kind: ttest_ind\n        groups: {column: gender, levels: [female, diverse]}"),
    ),
    "too many and too few levels": changed(("levels: [loss, gain]", "levels: [loss]"), ("gain: {k: 43, n: 152}, ", "")),
    "columns that derive does not give": changed(
        ("AS risky", "AS risk"),
        ("against: second", "against: secund"),
        ("measure: first\n", "measure: choice\n"),
    ),
    "SQL that is none": changed(("SELECT *, choice", "SELEC *, choice")),
    "SQL of a column that is not there": changed(("choice IN", "chioce IN")),
    "SQL that does more than select": changed(("SELECT *, choice", "COPY responses TO 'x.csv'; SELECT *, choice")),
    "needs": changed(("measure: risky", "measure: risky\n        needs: [choise]")),
    "use without a reason": changed(("measure: risky", "measure: risky\n        use: descriptives")),
    "a direction where there is none": changed(
        ("kind: contingency", "kind: contingency\n        outcomes: [A, B, C]"),
        ("{k: 121, n: 155}", "{counts: {A: 1, B: 2, C: 3}}"),
        ("{k: 43, n: 152}", "{counts: {A: 4, B: 5, D: 6}}"),
    ),
    "counts beyond n": changed(("k: 121", "k: 156")),
    "counts that are not printed": changed(("k: 121", "k: 101")),
    "the sign of expect": changed(("expect: greater\n        human: {loss", "expect: less\n        human: {loss")),
    "the sign of t": changed(("t: 2.66", "t: -2.66")),
    "a t that is not printed": changed(("t: 2.66,", "t: 2.77,")),
    "means that do not give t": changed(("mean: 0.84", "mean: 0.48")),
    "an r that is not printed": changed(("r: 0.53", "r: 0.35")),
    "an n that is not the arm's": changed(
        ("{k: 121, n: 155}", "{k: 121, n: 154}"), ("t: 2.66, n: 40", "t: 2.66, n: 41")
    ),
    "a string of another test": changed(("t(39) = 2.66, p = .011", "χ²(1) = 2.66")),
    "nothing that gives a statistic": changed(("t: 2.66, n: 40, mean: 0.84, sd: 2.0", "n: 40")),
    "sizes that are not known": changed(("{r: 0.53, n: 40", "{r: 0.53"), ("t: 2.66, n: 40", "t: 2.66")),
    "what a test compares": changed(
        ("        groups: {column: arm, levels: [loss, gain]}\n", ""),
        (
            "kind: ttest_paired\n        measure: first\n        against: second",
            "kind: ttest_paired\n        measure: first",
        ),
        (
            "kind: correlation\n        measure: first\n        against: second",
            "kind: correlation\n        measure: first",
        ),
    ),
    "levels that stand twice, and outcomes of what has none": changed(
        ("levels: [loss, gain]", "levels: [loss, loss]"),
        ("kind: ttest_paired", "kind: ttest_paired\n        outcomes: [A, B]"),
    ),
    "counts that are not there": changed(("{k: 121, n: 155}", "{n: 155}")),
    "counts of other outcomes": changed(
        ("kind: contingency", "kind: contingency\n        outcomes: [A, B, C]"),
        (
            "expect: greater\n        human: {loss: {k: 121, n: 155}",
            "expect: equal\n        human: {loss: {counts: {A: 1, B: 2, X: 3}}",
        ),
        ("{k: 43, n: 152}", "{counts: {A: 4, B: 5, C: 6}}"),
    ),
    "degrees of freedom that are not printed": changed(("t: 2.66, n: 40", "t: 2.66, df2: 38, n: 40")),
    "two ways to count the rows of a person": changed(
        ("kind: ttest_paired", "kind: ttest_paired\n        by: participant\n        cluster: participant")
    ),
    "a game with tasks": changed(
        ("    tasks:\n", "    rounds: {count: 2, group: 3, payoffs: {first: first}}\n    tasks:\n")
    ),
    "no mappings": changed(
        ("  profile: {age: [18, 25], gender: {female: 0.5, male: 0.5}, occupation: student}", "  profile: 7"),
        ("groups: {column: arm, levels: [loss, gain]}", "groups: arm"),
        ('human: {r: 0.53, n: 40, reported: "r(38) = .53, p < .001"}', "human: 0.53"),
    ),
    "a group called as a statistic": changed(
        ("  loss: {prompt", "  t: {prompt"), ("[loss, gain]", "[t, gain]"), ("{loss:", "{t:")
    ),
}


def test_what_is_said_of_every_bad_study(folder: Path, golden: Callable[[str, str], None]) -> None:
    said = []
    for number, (name, (text, materials)) in enumerate(BAD.items()):
        home = Path(f"s{number}")
        with pytest.raises(BadDataset) as caught:
            read(home, text, materials)
        said.append(f"{'=' * 20} {name}\n{str(caught.value).replace(f's{number}/', '')}\n")
    golden("faults/studies.txt", "\n".join(said))


def test_a_reason_excuses_what_does_not_fit(tmp_path: Path) -> None:
    text, _ = changed(
        ("t: 2.66, n: 40, mean: 0.84, sd: 2.0", "t: 2.66, n: 39, mean: 0.5, sd: 2.0"),
        ("        against: second\n        expect: greater\n", EXCUSED),
    )
    [warning] = read(tmp_path, text).warnings
    assert warning == (
        "F2 T1: means or counts give t = 1.561, but 't(39) = 2.66, p = .011' is printed; the file uses the statistic"
    )


@pytest.mark.parametrize(
    ("human", "reported"),
    [
        ("{k: 32, n: 39}", "chi2(1, N=78) = 27.2, p < .001"),
        ("{k: 32, n: 39}", "χ²(1, N = 78) = 24.89"),  # with Yates's correction
        ("{k: 32, n: 39}", "z = 5.22"),
        ("{k: 32, n: 39}", "82 % vs 23 %"),
        ("{k: 32, n: 39}", "23.1 % against 82.1 %"),
        ("{k: 32, n: 39}", "32 of 39 and 9 of 39"),
    ],
)
def test_counts_are_checked_against_each_way_to_print_them(tmp_path: Path, human: str, reported: str) -> None:
    text = STUDY.replace("n: 152}\n", "n: 39}\n").replace("n: 155}\n", "n: 39}\n")
    text = text.replace("loss: {k: 121, n: 155}, gain: {k: 43, n: 152}", f"loss: {human}, gain: {{k: 9, n: 39}}")
    good = text.replace("78 % vs 28 %", reported)
    assert read(tmp_path, good, sql=False).warnings == ()
    with pytest.raises(BadDataset, match="is printed"):
        read(tmp_path, good.replace("k: 9,", "k: 6,"), sql=False)


@pytest.mark.parametrize(
    ("kind", "human", "reported", "wrong"),
    [
        ("ttest_ind", "gain: {n: 30, mean: 3.1, sd: 1.2}, loss: {n: 30, mean: 2.2, sd: 1.1}", "t(58) = 3.03", "3.53"),
        ("ttest_ind", "gain: {n: 30, mean: 3.1, sd: 1.2}, loss: {n: 30, mean: 2.2, sd: 1.1}", "F(1, 58) = 9.17", "6.0"),
        ("welch", "gain: {n: 30, mean: 3.1, sd: 1.2}, loss: {n: 30, mean: 2.2, sd: 1.1}", "t(57.6) = 3.03", "2.53"),
        ("anova", "gain: {n: 30, mean: 3.1, sd: 1.2}, loss: {n: 30, mean: 2.2, sd: 1.1}", "F(1, 58) = 9.17", "6.0"),
        ("anova", "gain: {n: 30, mean: 3.1}, loss: {n: 30, mean: 2.2}, F: 9.17", "F(1, 58) = 9.17", "9.71"),
        ("mannwhitney", "gain: {n: 30}, loss: {n: 30}, U: 620", "U = 620, p = .01", "640"),
        ("mannwhitney", "gain: {n: 30}, loss: {n: 30}, U: 620", "U = 280", "270"),  # the other group's
    ],
)
def test_statistics_are_checked_within_rounding(
    tmp_path: Path, kind: str, human: str, reported: str, wrong: str
) -> None:
    text = (
        STUDY.replace("n: 152}\n", "n: 30}\n").replace("n: 155}\n", "n: 30}\n").replace("[loss, gain]", "[gain, loss]")
    )
    text = text.replace("kind: contingency", f"kind: {kind}")
    text = text.replace("loss: {k: 121, n: 155}, gain: {k: 43, n: 152}", human).replace("78 % vs 28 %", reported)
    assert read(tmp_path, text, sql=False).warnings == ()
    value = reported.rpartition("= ")[2] if "p" not in reported else "620"
    with pytest.raises(BadDataset, match="printed"):
        read(tmp_path, text.replace(f"= {value}", f"= {wrong}"), sql=False)


JUNK = [
    *(None, True, 0, -1, 1.5, 10**400, float("nan"), float("inf"), "", "x", "loss", "{{ a }}", "../x", "a\0b"),
    *([], {}, [1], {"a": 1}, {"n": 5}, "F(1, 2) = ", "t(39) = 2.66", "100 % vs 5 %", "2.1 (3) vs 4 (5)"),
]


def places(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below the top of a document."""
    for key, below in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield (*place, key)
        yield from places(below, (*place, key))


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_stands_in_a_study_it_is_read_or_its_faults_are_told(tmp_path: Path, data: st.DataObject) -> None:
    content = yaml.safe_load(STUDY)
    for _ in range(data.draw(st.integers(1, 3))):
        *above, last = data.draw(st.sampled_from(list(places(content))))
        here = content
        for key in above:
            here = here[key]
        here[last] = deepcopy(data.draw(st.sampled_from(JUNK)))  # its own: the next place may be inside it
    with suppress(BadDataset):
        read(tmp_path, yaml.safe_dump(content, allow_unicode=True), sql=False)


def test_degrees_of_freedom_fit_the_sizes_also_where_none_are_printed(tmp_path: Path) -> None:
    anova = (
        """{loss: {n: 155, mean: 5}, gain: {n: 152, mean: 4}, F: 9.1, df1: 1, df2: DF, sign: 1, reported: "F = 9.1"}"""
    )
    before = STUDY[: STUDY.index("      - id: T1")]
    test = """\
      - id: T1
        kind: anova
        groups: {column: arm, levels: [loss, gain]}
        measure: risky
        expect: greater
        human: """
    text = before + test + anova
    assert read(tmp_path / "right", text.replace("DF", "305")).tests[0][1].human.df2 == 305
    with pytest.raises(BadDataset, match="306 degrees of freedom do not fit the sizes, which give 305"):
        read(tmp_path / "wrong", text.replace("DF", "306"))
