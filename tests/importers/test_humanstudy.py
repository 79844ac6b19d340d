"""Study folders of HumanStudy-Bench become drafts: what is read, what stays open, and that `check` names just that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.importers.folders import finding, said_as, whole, written

from karat.errors import BadDataset
from karat.importers import Draft, save
from karat.kinds.study.importers.humanstudy import HumanStudy
from karat.kinds.study.reading import read_study


def drafted(folder: Path, **options: Any) -> Draft:
    (draft,) = HumanStudy(HumanStudy.Options(**options)).drafts(folder)
    return draft


def doubts(draft: Draft, kind: str) -> list[str]:
    return [one.message for one in draft.doubts if one.kind == kind]


def named(folder: Path) -> list[str]:
    """The places that `karat check` names."""
    try:
        read_study(folder)
    except BadDataset as bad:
        return [fault.place for fault in bad.faults]
    return []


def test_a_folder_that_says_everything_is_read_and_checks_clean(tmp_path):
    draft = drafted(written(tmp_path / "Mug study", whole()))
    assert (draft.name, draft.open, draft.doubts) == ("mug_study", (), ())
    save(draft, tmp_path / "out")
    study = read_study(tmp_path / "out")
    assert study.source == "A. Author & B. Writer (1999). Prices and frames"
    assert (study.title, study.domain, study.design) == ("Prices and frames", "cognition", "between")
    assert study.participants.profile == {
        "age": [18, 25],
        "gender": {"female": 0.75, "male": 0.25},
        "population": "Students",
    }
    arms = {name: (arm.n, arm.fields["rating"].type, arm.fields["rating"].range) for name, arm in study.arms.items()}
    assert arms == {"gain": (40, "likert", [0, 10]), "loss": (40, "likert", [0, 10])}
    assert yaml.safe_load(draft.files["study.yaml"])["findings"] == [
        {
            "id": "F1",
            "sub_study": "experiment_1",
            "claim": "Gains are worth more.",
            "tests": [
                {
                    "id": "T1",
                    "kind": "ttest_ind",
                    "groups": {"column": "arm", "levels": ["gain", "loss"]},
                    "measure": "rating",
                    "expect": "greater",
                    "human": {
                        "t": 2.97,
                        "df1": 78,
                        "reported": "t(78) = 2.97, p < .01",
                        "gain": {"n": 40, "mean": 5.2, "sd": 1.1},
                        "loss": {"n": 40, "mean": 4.4, "sd": 1.3},
                    },
                }
            ],
        }
    ]
    assert draft.files["materials/gain.md"] == (
        "You win a mug.\n\nHow much would you pay?\n0 (nothing), 10 (all)\n"
    )  # fmt: skip
    assert draft.counts == {
        "findings": 1, "tests": 1, "met": 1, "in data": 0, "parsed": 1, "described": 0, "unreadable": 0, "checked": 1,
        "contradictory": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        ("Mean(gain) > Mean(loss)", (["gain", "loss"], "greater")),
        ("loss < gain", (["gain", "loss"], "greater")),
        ("gain = loss", (["gain", "loss"], "equal")),
        ("loss > gain", (["loss", "gain"], None)),
        ("Gains are worth more", None),
        ("gain > loss > nothing", None),
        ("gain + loss > loss", None),
        ("", None),
    ],
)
def test_groups_and_direction_are_those_of_a_hypothesis_that_orders_two_arms(tmp_path, hypothesis, expected):
    files = whole()
    finding(files)["statistical_tests"][0] |= {"statistical_hypothesis": hypothesis, "expected_direction": "positive"}
    draft = drafted(written(tmp_path / "study", files))
    (test,) = yaml.safe_load(draft.files["study.yaml"])["findings"][0]["tests"]
    found = (test["groups"]["levels"], test["expect"])
    assert found == (expected or (None, None))
    save(draft, tmp_path / "out")
    assert sorted(named(tmp_path / "out")) == sorted(one.place for one in draft.open)
    assert bool(draft.open) == (found[1] is None)


@pytest.mark.parametrize(
    ("text", "kind", "human"),
    [
        ("t(78) = −2.97, p < .01", "ttest_ind", {"t": -2.97, "df1": 78}),
        ("t(60.3) = 2.97", None, {"t": 2.97, "df1": 60.3}),
        ("F(1, 78) = 8.82", "anova", {"F": 8.82, "df1": 1, "df2": 78}),
        ("χ²(1, N = 80) = 5.2, p < .05", "contingency", {"chi2": 5.2}),
        ("r(78) = .31, p < .01", "correlation", {"r": 0.31, "df1": 78}),
        ("rs = 0.34, n = 80", "spearman", {"r": 0.34, "n": 80}),
        ("U = 512, n.s.", "mannwhitney", {"U": 512}),
        ("z = 2.5, p = .012", None, {"z": 2.5}),
        ("82% vs 23%", "contingency", {}),
        ("41% warm vs 59% cold", None, {}),
        ("18 vs 3, n = 80", "contingency", {}),
    ],
)
def test_a_string_gives_its_numbers_and_its_kind_where_there_is_only_one(tmp_path, text, kind, human):
    files = said_as(text)
    finding(files)["statistical_tests"][0] |= {"test_name": "Student's t-test" if text[0] == "t" else "Comparison"}
    finding(files)["statistical_tests"][0]["statistical_hypothesis"] = "They differ"
    draft = drafted(written(tmp_path / "study", files))
    (test,) = yaml.safe_load(draft.files["study.yaml"])["findings"][0]["tests"]
    assert (test["kind"], test["human"]) == (kind, {**human, "reported": text})
    save(draft, tmp_path / "out")
    assert sorted(named(tmp_path / "out")) == sorted(one.place for one in draft.open)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("t(78) = 2.97, p < .01", []),
        ("t(78) = 2.97, p = .004", []),
        ("t(78) = 2.97, p = .01", ["the statistic gives p = 0.004, but printed is p = 0.01; 'p <' would hold"]),
        ("t(78) = 2.97, n.s.", ["the statistic gives p = 0.004, but printed is n.s."]),
        ("t(78) = 2.97, p = .002, one-tailed", []),
        ("t(80) = 2.97, p < .01", ["80 degrees of freedom fit none of the given numbers of people: 40, 80"]),
        ("t(78) = 3.97, p < .01", ["the data give t = 2.5 to 3.49"]),
        ("F(1, 78) = 8.82, p < .01", []),
        ("F(1, 78) = 18.82, p < .01", ["the data give F = 6.23 to 12.16"]),
        ("t(78) = 2.97, n = 79", ["n = 79 is not among the given numbers of people: 40, 80"]),
    ],
)
def test_what_contradicts_itself_is_listed_and_not_mended(tmp_path, text, wrong):
    draft = drafted(written(tmp_path / "study", said_as(text)))
    assert doubts(draft, "contradiction") == [f"'{text}': {one}" for one in wrong]
    assert text in draft.files["study.yaml"].replace("''", "'")
    assert draft.counts["contradictory"] == bool(wrong)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("p < .01", "gives a p but no statistic"),
        ("AD = 0.58, p = 0.66", "gives a p but no statistic"),
        ("r = 776, p = 0.1", "r must be between −1 and 1, got 776"),
        ("t(78, 2) = 3", "t has 1 degrees of freedom,"),
        ("Indistinguishable (Figs 1a, 1b, 1c)", "has no statistic, share, count or mean that can be read"),
        ("p = null, n = null", "has no statistic, share, count or mean that can be read"),
        ("F(0, 78) = 3", "degrees of freedom must be above 0"),
    ],
)
def test_what_cannot_be_read_is_quoted_with_the_reason_and_its_place(tmp_path, text, why):
    draft = drafted(written(tmp_path / "study", said_as(text)))
    (doubt,) = [one for one in draft.doubts if one.kind == "unreadable"]
    assert doubt.message.startswith(f"'{text}' {why}")
    assert doubt.source.startswith(
        "ground_truth.json line 1 (studies.0.findings.0.statistical_tests.0.reported_statistics"
    )
    assert draft.counts["unreadable"] == 1


def test_several_statistics_in_a_string_are_several_tests(tmp_path):
    text = "Frame F(1, 72) = 14.96; Price F(1, 72) = 4.13, p < .05"
    draft = drafted(written(tmp_path / "study", said_as(text)))
    tests = yaml.safe_load(draft.files["study.yaml"])["findings"][0]["tests"]
    assert [(one["id"], one["human"]["F"], one["human"]["reported"]) for one in tests] == [
        ("T1a", 14.96, "Frame F(1, 72) = 14.96"),
        ("T1b", 4.13, "Price F(1, 72) = 4.13, p < .05"),
    ]


def test_a_percentage_that_no_count_prints_as_is_a_contradiction(tmp_path):
    files = said_as("77% vs 30%")
    finding(files)["original_data_points"]["data"] = {
        "gain": {"percentage": "77 %", "n": 21}, "loss": {"share_of_losers": 30, "n": 20}
    }  # fmt: skip
    draft = drafted(written(tmp_path / "study", files))
    assert "gain: no count out of 21 rounds to 77 %" in doubts(draft, "contradiction")
    assert not any("loss" in message and "no count" in message for message in doubts(draft, "contradiction"))


def test_where_the_files_of_a_folder_differ_it_is_said(tmp_path):
    files = whole()
    files["metadata.json"] |= {"title": "Frames", "year": 2001, "authors": ["C. Other"]}
    files["specification.json"]["participants"] |= {"n": 90}
    files["specification.json"]["participants"]["by_sub_study"]["gain"]["n"] = 41
    draft = drafted(written(tmp_path / "study", files))
    assert doubts(draft, "contradiction") == [
        "n is 90, its parts add up to 81",
        "gain: n is 40, specification.json has 41",
        "title is 'Frames', but ground_truth.json says 'Prices and frames'",
        "authors differ from those in ground_truth.json",
        "year is '2001', but ground_truth.json says '1999'",
    ]


YES_NO = {"type": "choice", "options": ["Yes", "No"]}
LETTERS = {"type": "choice", "options": {"A": "sure", "B": "risky"}}
LONG = {"type": "choice", "options": {"A": "x" * 50, "B": "y"}}


@pytest.mark.parametrize(
    ("kind", "options", "scale", "answer"),
    [
        ("multiple_choice", ["Yes", "No"], None, YES_NO),
        ("multiple_choice", ["A. sure", "B) risky"], None, LETTERS),
        ("multiple_choice", ["x" * 50, "y"], None, LONG),
        ("multiple_choice", ["Yes", "yes"], None, None),
        ("multiple_choice", [], None, None),
        ("multiple_choice", ["$0 to $10"], None, {"type": "number", "range": [0, 10]}),
        ("likert", ["1 (low)", "2", "3"], None, {"type": "likert", "range": [1, 3]}),
        ("likert", None, "1 to 5 (1 = low, 5 = high)", {"type": "likert", "range": [1, 5]}),
        ("likert", None, "7-point scale (1 = low, 7 = high)", {"type": "likert", "range": [1, 7]}),
        ("likert", None, "7-point scale", None),
        ("estimation", None, None, {"type": "number"}),
        ("estimation", None, "0 to 100 or more", {"type": "number", "range": [0, None]}),
        ("estimation", None, "[0, 100]", {"type": "number", "range": [0, 100]}),
        ("ranking", ["a", "b", "c"], None, {"type": "rank", "options": ["a", "b", "c"]}),
        ("open_ended", None, None, None),
        ("free_text", None, None, {"type": "text"}),
        (None, None, None, None),
    ],
)
def test_a_field_is_typed_by_what_the_item_says_or_left_open(tmp_path, kind, options, scale, answer):
    files = whole()
    item = {"id": "q", "question": "Well?", "type": kind, "options": options, "metadata": {"original_scale": scale}}
    files["materials/gain.json"]["items"] = [item]
    draft = drafted(written(tmp_path / "study", files))
    fields = yaml.safe_load(draft.files["study.yaml"])["arms"]["gain"]["fields"]
    assert fields == {"q": answer or {"type": None}}
    assert [one.place for one in draft.open if one.place.startswith("arms.")] == (
        [] if answer else ["arms.gain.fields.q.type"]
    )
    save(draft, tmp_path / "out")
    assert sorted(named(tmp_path / "out")) == sorted(one.place for one in draft.open)


def test_an_item_that_asks_two_things_becomes_two_fields(tmp_path):
    files = whole()
    files["materials/gain.json"]["items"] = [
        {
            "id": "story",
            "question": "A man asks you to sign.",
            "options": ["Sign", "Refuse"],
            "type": "estimation_and_choice",
            "metadata": {"estimation_questions": ["What % would sign?", "What % would refuse?"], "traits": ["shy"]},
        }
    ]
    draft = drafted(written(tmp_path / "study", files))
    assert yaml.safe_load(draft.files["study.yaml"])["arms"]["gain"]["fields"] == {
        "story_choice": {"type": "choice", "options": ["Sign", "Refuse"]},
        "story_estimate_1": {"type": "number", "range": [0, 100]},
        "story_estimate_2": {"type": "number", "range": [0, 100]},
    }
    assert draft.files["materials/gain.md"].splitlines()[2:] == [
        "[story_choice] A man asks you to sign.", "- Sign", "- Refuse", "",
        "[story_estimate_1] What % would sign?", "", "[story_estimate_2] What % would refuse?",
    ]  # fmt: skip
    assert doubts(draft, "left out") == ["items also contain: traits"]


def test_rounds_make_a_game_whose_groups_are_open(tmp_path):
    files = whole()
    files["materials/gain.json"]["items"][0]["metadata"] = {"total_rounds": 4}
    draft = drafted(written(tmp_path / "study", files))
    assert yaml.safe_load(draft.files["study.yaml"])["arms"]["gain"]["rounds"] == {"count": 4, "group": "?"}
    assert next(one.place for one in draft.open) == "arms.gain.rounds.group"


def test_only_scenarios_that_the_study_names_become_arms_unless_asked_for(tmp_path):
    files = whole() | {"materials/other.json": {"sub_study_id": "other", "items": []}}
    folder = written(tmp_path / "study", files)
    draft = drafted(folder)
    assert list(yaml.safe_load(draft.files["study.yaml"])["arms"]) == ["gain", "loss"]
    assert [one.source for one in draft.doubts if one.kind == "left out"] == ["materials/other.json"]
    everything = drafted(folder, unlisted=True)
    assert list(yaml.safe_load(everything.files["study.yaml"])["arms"]) == ["gain", "loss", "other"]
    assert [one.place for one in everything.open] == ["arms.other.n", "arms.other.fields"]


def test_every_open_point_and_every_doubt_stands_in_the_list(tmp_path):
    files = said_as("AD = 0.58")
    files["metadata.json"]["domain"] = "social_psychology"
    draft = drafted(written(tmp_path / "study", files))
    assert draft.open
    text = draft.files["DECISIONS.md"]
    assert [one.place for one in draft.open if f"`{one.place}`" not in text] == []
    assert "AD = 0.58" in text
    assert "social\\_psychology" in text
    assert "own words" in draft.files["README.md"]
    assert "MIT" in draft.files["README.md"]


def test_what_stands_in_the_data_and_in_tables_is_shown_beside_the_decisions(tmp_path):
    files = whole()
    finding(files)["original_data_points"]["data"]["gain"]["note"] = "Also t(78) = 1.2, p = .23, in the appendix"
    rows = [["gain", 5.2], ["loss"], "none", [None, 1, 2]]
    tables = [{"table_name": "Prices | all", "headers": ["Frame", "M"], "rows": rows}, {"table_name": "Nothing"}]
    files["ground_truth.json"]["overall_original_results"] = {"data_tables": tables}
    draft = drafted(written(tmp_path / "study", files))
    assert (draft.counts["met"], draft.counts["in data"], draft.counts["contradictory"]) == (2, 1, 0)
    assert "Statistics in its data: Also t(78) = 1.2, p = .23, in the appendix" in draft.files["DECISIONS.md"]
    assert "gain: mean 5.2, sd 1.1, n 40, note 'Also t(78)" in draft.files["DECISIONS.md"]
    assert draft.files["TABLES.md"].splitlines()[2:] == [
        "## Prices \\| all",
        "",
        "In ground\\_truth.json line 1 (overall\\_original\\_results.data\\_tables.0).",
        "",
        "| Frame | M |  |",
        "| --- | --- | --- |",
        "| gain | 5.2 |  |",
        "| loss |  |  |",
        "|  |  |  |",
        "|  | 1 | 2 |",
    ]
    assert doubts(draft, "unreadable") == ["is not a list", "is not a table of headers and rows"]


def test_a_folder_of_several_studies_gives_several_drafts(tmp_path):
    for name in ("b", "a"):
        written(tmp_path / "all" / name, whole())
    (tmp_path / "all" / "notes").mkdir()
    found = HumanStudy(HumanStudy.Options()).drafts(tmp_path / "all")
    assert [draft.name for draft in found] == ["a", "b"]


def test_studies_that_keep_their_files_in_source_are_found_and_named_after_their_folder(tmp_path):
    """The benchmark's repository has `studies/study_001/source/ground_truth.json`."""
    for name in ("study_001", "study_002"):
        written(tmp_path / "studies" / name / "source", whole())
        (tmp_path / "studies" / name / "index.json").write_text("{}", encoding="utf-8")
    written(tmp_path / "studies" / "study_003", whole())
    (tmp_path / "studies" / "notes").mkdir()
    importer = HumanStudy(HumanStudy.Options())
    every = importer.drafts(tmp_path / "studies")
    assert [draft.name for draft in every] == ["study_001", "study_002", "study_003"]
    for path in ("study_001", "study_001/source"):
        (alone,) = importer.drafts(tmp_path / "studies" / path)
        assert (alone.name, alone.files) == ("study_001", every[0].files)


def test_more_studies_than_are_imported_at_once_are_refused_not_cut_off(tmp_path):
    for number in range(101):
        (tmp_path / f"study_{number:03}" / "materials").mkdir(parents=True)
    with pytest.raises(BadDataset) as caught:
        HumanStudy(HumanStudy.Options()).drafts(tmp_path)
    assert "holds 101 studies; at most 100" in str(caught.value)


@pytest.mark.parametrize("path", ["a" * 300, "a\0b", "loop"])
def test_a_path_that_cannot_be_looked_into_is_a_fault(tmp_path, path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(BadDataset):
        HumanStudy(HumanStudy.Options()).drafts(tmp_path / path)


def test_a_file_of_the_folder_that_leads_in_a_circle_is_a_doubt(tmp_path):
    folder = written(tmp_path / "study", whole())
    (folder / "metadata.json").unlink()
    (folder / "metadata.json").symlink_to("metadata.json")
    assert "unreadable" in {doubt.kind for doubt in drafted(folder).doubts if doubt.source == "metadata.json"}
