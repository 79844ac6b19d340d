"""Study folders are foreign: whatever stands in them, what can be read is drafted, and nothing leads out of it."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
from tests.importers.folders import ITEM, finding, said_as, whole, written

from karat.errors import BadDataset, BadOption
from karat.importers import Draft, save
from karat.kinds.study.importers._humanstudy_arms import MAX_ITEMS
from karat.kinds.study.importers._humanstudy_files import MAX_BYTES
from karat.kinds.study.importers.humanstudy import HumanStudy
from karat.kinds.study.prompts import prompt_text
from karat.kinds.study.reading import read_study

ESCAPE = "\x1b]0;evil\x07\x1b[31m"
JUNK: list[Any] = [
    None, True, 0, -1, 1e300, 3.5, "", " ", "?", "null", "../../etc/passwd", "/etc/passwd", "{{ profile.age }}", "{{",
    "}}", ESCAPE + "red", "\ud83d", "🦀" * 100, "a: [b", "- x\n- y", "# no", "yes", "1:30", "t(78) = 2.97", "\u2028",
    "\x85", "\ufeff", "participant", "arm", "n", "t", [], {}, [[]], [{}], {"": {}}, ["x"] * 30, {"a": {"b": 1}}, [None],
    "x" * 60_000, "choice: A", "rating: 3", "<script>alert(1)</script>", "CON", "con\0", "NaN", "−5 %", "12,5",
    "t(78) = 1e999", "t(1e999) = 2, p < .01", "9" * 400 + " %", "r(10.5) = .3, p = .2", "F(1, 1e14) = 1e14, p = .05",
    "wilcoxon " * 5000, "1=" * 300, "t(" * 5000, "t = " * 5000, "M = " + "9" * 400, "n = " + "9" * 5000, "1 of " * 5000,
]  # fmt: skip


def drafted(folder: Path) -> Draft:
    (draft,) = HumanStudy(HumanStudy.Options()).drafts(folder)
    return draft


def named(folder: Path) -> set[str]:
    try:
        read_study(folder, sql=False)
    except BadDataset as bad:
        return {fault.place for fault in bad.faults}
    return set()


@pytest.mark.parametrize("name", ["metadata.json", "specification.json", "ground_truth.json", "materials/gain.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is missing"),
        ("{", "is not JSON: "),
        ("[]", "is not a JSON object"),
        ('"text"', "is not a JSON object"),
        ('{"a": NaN}', "holds NaN, which is not JSON"),
        (b"\xff\xfe{\0}\0", "is not UTF-8"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"a": ' + "9" * 10_000 + "}", "Exceeds the limit"),
        (" " * (MAX_BYTES + 1), "is larger than 2_000_000 bytes"),
    ],
    ids=["missing", "broken", "list", "text", "NaN", "UTF-16", "deep", "long number", "large"],
)
def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_drafted(tmp_path, name, content, message):
    files: dict[str, Any] = whole()
    del files[name]
    folder = written(tmp_path / "study", files if content is None else {**files, name: content})
    draft = drafted(folder)
    told = [(one.source.split(" ")[0], one.message) for one in draft.doubts if one.kind == "unreadable"]
    if content is None and name.startswith("materials/"):
        told = [(where, "is missing") for where, _ in told if where.startswith("metadata")]
        name = "metadata.json"  # which names it as a scenario
    assert any(where == name and said.startswith(message) for where, said in told), told
    save(draft, tmp_path / "out")
    assert {one.place for one in draft.open} <= named(tmp_path / "out")


def test_a_folder_that_gives_more_than_karat_reads_is_refused(tmp_path):
    files = whole()
    options = [f"{number}: {'x' * 49_000}" for number in range(26)]
    files["materials/gain.json"]["items"] = [{**ITEM, "type": "choice", "options": options}]
    with pytest.raises(BadDataset, match=r"larger than 1 MB; a draft of study\.yaml"):
        drafted(written(tmp_path / "study", files))


def test_items_beyond_a_limit_are_left_out_and_it_is_said(tmp_path):
    files = whole()
    files["materials/gain.json"]["items"] = [{**ITEM, "id": f"q{number}"} for number in range(MAX_ITEMS + 2)]
    draft = drafted(written(tmp_path / "study", files))
    assert [one.message for one in draft.doubts] == [f"2 items are beyond the first {MAX_ITEMS}"]
    assert f"q{MAX_ITEMS - 1}" in draft.files["materials/gain.md"]
    assert f"q{MAX_ITEMS}]" not in draft.files["materials/gain.md"]


@pytest.mark.parametrize("files", [{}, {"ground_truth.json": "{"}, {"materials/a.json": "[]"}, {"metadata.json": "{}"}])
def test_a_folder_without_anything_is_refused_with_every_reason(tmp_path, files):
    (tmp_path / "study").mkdir()
    with pytest.raises(BadDataset) as bad:
        drafted(written(tmp_path / "study", files))
    assert any(fault.place.startswith("ground_truth.json") for fault in bad.value.faults)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "nothing"):
        with pytest.raises(BadDataset, match="is not a folder"):
            HumanStudy(HumanStudy.Options()).drafts(path)


def test_names_lead_nowhere(tmp_path):
    files = whole()
    hostile = {"sub_study_id": "../../outside", "instructions": "x", "items": [{**ITEM, "id": "../../q"}]}
    files["materials/gain.json"] = hostile
    files["materials/loss.json"] = {**hostile, "sub_study_id": "/etc/passwd"}
    files["metadata.json"]["scenarios"] = []
    finding(files)["finding_id"] = "../../F1"
    draft = drafted(written(tmp_path / "study", files))
    assert sorted(draft.files) == [
        "DECISIONS.md", "README.md", "materials/etc_passwd.md", "materials/outside.md", "study.yaml"
    ]  # fmt: skip
    written_to = save(draft, tmp_path / "out" / "here")
    assert all(path.resolve().is_relative_to(tmp_path / "out" / "here") for path in written_to)


def test_a_link_that_leads_out_of_the_folder_is_not_read(tmp_path):
    (tmp_path / "secret.json").write_text('{"sub_study_id": "secret", "instructions": "secret"}')
    folder = written(tmp_path / "study", whole())
    (folder / "materials" / "link.json").symlink_to(tmp_path / "secret.json")
    draft = drafted(folder)
    assert [one.message for one in draft.doubts] == ["leads out of the folder"]
    assert "secret" not in "".join(draft.files.values())


def test_a_draft_is_not_written_over_files_nor_through_links(tmp_path):
    draft = drafted(written(tmp_path / "study", whole()))
    out = tmp_path / "out"
    save(draft, out)
    (out / "study.yaml").write_text("mine")
    with pytest.raises(BadOption, match=r"already holds DECISIONS\.md, README\.md, materials/gain\.md …; .* --force"):
        save(draft, out)
    assert (out / "study.yaml").read_text() == "mine"
    (tmp_path / "elsewhere").write_text("untouched")
    (out / "study.yaml").unlink()
    (out / "study.yaml").symlink_to(tmp_path / "elsewhere")
    save(draft, out, force=True)
    assert (tmp_path / "elsewhere").read_text() == "untouched"
    assert (out / "study.yaml").read_text() == draft.files["study.yaml"]


def test_a_folder_of_the_draft_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "materials").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadOption, match="leads to another folder"):
        save(drafted(written(tmp_path / "study", whole())), tmp_path / "out", force=True)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "/x", "a/b/c", "", ".", "a\\b", "c:x"])
def test_an_importer_that_names_a_file_elsewhere_is_refused(tmp_path, name):
    with pytest.raises(BadOption, match="it must be in the folder, or one folder below"):
        save(Draft(name="x", files={name: "text"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["Hello {{ profile.age }}!", "{{{ x }}}", "{{{{", "a }} b {{ c", "{{ left_braces }}"])
def test_what_looks_like_a_field_of_a_template_reaches_participants_as_it_is(tmp_path, text):
    files = whole()
    files["materials/gain.json"]["instructions"] = text
    draft = drafted(written(tmp_path / "study", files))
    save(draft, tmp_path / "out")
    study = read_study(tmp_path / "out")
    arm = study.arms["gain"]
    assert prompt_text(study, arm, arm.shown[0], {"age": 30}).startswith(text + "\n\nHow much would you pay?")
    assert [one.kind for one in draft.doubts] == ["changed"]


def test_a_line_of_the_source_that_looks_like_the_answers_form_is_none(tmp_path):
    files = whole()
    second = {**ITEM, "id": "second"}
    files["materials/gain.json"] |= {"instructions": "rating: 3\n> **rating**: 4", "items": [ITEM, second]}
    files["materials/loss.json"]["items"] = [ITEM, second]
    draft = drafted(written(tmp_path / "study", files))
    save(draft, tmp_path / "out")
    assert named(tmp_path / "out") == {one.place for one in draft.open}


def test_nothing_that_a_terminal_obeys_is_written(tmp_path):
    files = said_as(f"{ESCAPE}t(78) = 2.97{ESCAPE}")
    files["ground_truth.json"] |= {"title": f"{ESCAPE}Title", "authors": [f"{ESCAPE}A"]}
    files["metadata.json"] |= {"domain": f"{ESCAPE}social"}
    files["materials/gain.json"] |= {"sub_study_id": f"{ESCAPE}gain", "instructions": f"{ESCAPE}Read \ud83d this"}
    draft = drafted(written(tmp_path / "study", files))
    everything = "".join([*draft.files, *draft.files.values(), *map(str, draft.open), *map(str, draft.doubts)])
    assert not any(sign in everything for sign in "\x1b\x07\ud83d")
    save(draft, tmp_path / "out")


def test_nested_statistics_percent_strings_and_unicode_signs_are_read(tmp_path):
    files = said_as("t(78) = −2.97, p ＜ .01")
    finding(files)["original_data_points"]["data"] = {
        "one": {"consensus_f": 17.7, "two": {"t": "−2.66", "three": {"mean_r": 0.3, "rs": "0.34"}}},
        "shares": {"yes_percentage": "82 %", "no_percentage": "18 percent", "n": "1,000"},
        "strange": [1, "2", None, {"t": 1}],
    }
    draft = drafted(written(tmp_path / "study", files))
    assert draft.counts["met"] == draft.counts["parsed"] == 5
    assert draft.counts["in data"] == 4
    text = draft.files["DECISIONS.md"]
    assert "one: consensus\\_f = 17.7; one / two: t = -2.66" in text
    assert "shares: yes\\_percentage 82, no\\_percentage 18, n 1000" in text


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_put_anywhere_the_draft_is_read_or_says_what_is_open(tmp_path, seed):
    """Parts of a good folder are replaced by junk: nothing is raised but BadDataset, and `check` names what is open."""
    dice = random.Random(seed)
    files = whole()
    for _ in range(dice.randint(1, 4)):
        replace_somewhere(files[dice.choice(list(files))], dice)
    try:
        draft = drafted(written(tmp_path / "study", files))
    except BadDataset:
        return
    save(draft, tmp_path / "out")
    found, wanted = named(tmp_path / "out"), {one.place for one in draft.open}
    assert wanted <= found
    # A test that is read whole may be refused for what the source contradicts: nothing there is mended.
    assert {place for place in found - wanted if not place.startswith("findings.0.tests.0")} == set()


def replace_somewhere(value: Any, dice: random.Random) -> None:
    """Another value, or another key, somewhere below."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    if not keys:
        return
    key = dice.choice(keys)
    if isinstance(value[key], (dict, list)) and dice.random() < 0.8:
        replace_somewhere(value[key], dice)
    elif isinstance(value, dict) and dice.random() < 0.2:
        value[str(dice.choice(JUNK))[:100]] = value.pop(key)
    else:
        value[key] = copy.deepcopy(dice.choice(JUNK))


PLACES: list[tuple[str, tuple[str | int, ...]]] = [
    ("ground_truth.json", ("studies", 0, "findings", 0, "statistical_tests", 0, "reported_statistics")),
    ("ground_truth.json", ("studies", 0, "findings", 0, "statistical_tests", 0, "test_name")),
    ("ground_truth.json", ("studies", 0, "findings", 0, "statistical_tests", 0, "statistical_hypothesis")),
    ("ground_truth.json", ("studies", 0, "findings", 0, "original_data_points", "data", "gain", "n")),
    ("ground_truth.json", ("studies", 0, "findings", 0, "original_data_points", "description")),
    ("ground_truth.json", ("studies", 0, "findings", 0, "finding_id")),
    ("ground_truth.json", ("title",)),
    ("ground_truth.json", ("authors", 0)),
    ("specification.json", ("participants", "by_sub_study", "gain", "n")),
    ("specification.json", ("participants", "demographics", "age_range")),
    ("specification.json", ("participants", "demographics", "gender")),
    ("specification.json", ("participants", "population")),
    ("specification.json", ("design", "type")),
    ("materials/gain.json", ("sub_study_id",)),
    ("materials/gain.json", ("instructions",)),
    ("materials/gain.json", ("items", 0, "id")),
    ("materials/gain.json", ("items", 0, "options")),
    ("materials/gain.json", ("items", 0, "options", 0)),
    ("materials/gain.json", ("items", 0, "type")),
    ("materials/gain.json", ("items", 0, "question")),
]


@pytest.mark.quick(4)
@pytest.mark.parametrize(("file", "place"), PLACES, ids=[str(place[-1]) for _, place in PLACES])
def test_every_junk_in_the_places_that_are_read_most(tmp_path, file, place):
    for number, junk in enumerate(JUNK):
        files = whole()
        *above, last = place
        here: Any = files[file]
        for key in above:
            here = here[key]
        here[last] = copy.deepcopy(junk)
        draft = drafted(written(tmp_path / f"study{number}", files))
        save(draft, tmp_path / f"out{number}")
        found, wanted = named(tmp_path / f"out{number}"), {one.place for one in draft.open}
        assert wanted <= found, junk
        assert {one for one in found - wanted if not one.startswith("findings.0.tests.0")} == set(), junk
