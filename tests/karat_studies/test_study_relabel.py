"""Studies in other names and amounts: the same people, the same decision, other words and figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.karat_studies.studies import stated, write

from karat.documents.rows import read_rows
from karat.errors import BadDataset, BadOption
from karat_studies.kinds.study import Study
from karat_studies.kinds.study.experiments import Response, to_study_tests
from karat_studies.kinds.study.fields import read_answers as read_fields
from karat_studies.kinds.study.places import shipped_studies
from karat_studies.kinds.study.reading import read_study
from karat_studies.kinds.study.reading import read_study as read_form
from karat_studies.kinds.study.samples import question_of, read_reply, responses_of

RELABELLED = (
    "bargaining", "beauty_contest", "disjunction", "false_consensus", "framing", "representativeness", "side_effects",
    "trust",
)  # fmt: skip
each = pytest.mark.parametrize("name", RELABELLED)


def load(name: str, **options: object) -> list:
    return list(Study(Study.Options.model_validate(options)).load(shipped_studies()[name]))


def phrases(text: str) -> set[tuple[str, ...]]:
    """Five words on end, without how to answer."""
    words = re.findall(r"\w+", text.partition("End your answer")[0].lower())
    return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}


@each
def test_the_same_people_read_other_words(name: str) -> None:
    plain, other = load(name), load(name, relabel=True)
    assert [one.id for one in plain] == [one.id for one in other]
    assert [one.metadata for one in plain] == [one.metadata for one in other]
    for one, two in zip(plain, other, strict=True):
        assert [turn.detail for turn in one.turns] == [turn.detail for turn in two.turns]
        assert one.digest != two.digest
        for first, second in zip(one.turns, two.turns, strict=True):
            runs = phrases(first.question)
            assert len(runs & phrases(second.question)) <= len(runs) / 2, second.question


@each
def test_the_relabelled_form_takes_the_same_answers(name: str) -> None:
    for one, two in zip(load(name), load(name, relabel=True), strict=True):
        for before, after in zip(one.detail["fields"], two.detail["fields"], strict=True):
            assert list(before) == list(after)
            for field in before:
                assert before[field]["type"] == after[field]["type"]
                assert before[field].get("options") == after[field].get("options")


@each
def test_people_who_answer_alike_in_the_other_figures_give_the_same_tests(name: str) -> None:
    """The copy of people, with amounts as the relabelled form asks for them, through the relabelled parser."""
    path = shipped_studies()[name]
    plain, other = read_study(path), read_form(path, relabel=True)
    assert plain.findings == other.findings
    before, after = [], []
    for _, row in read_rows(path.parent / "copy.jsonl").rows:
        arm = other.arms[row["arm"]].answered
        said = {field: _shown(value, arm[field].scale) for field, value in row["answers"].items()}
        read = read_fields("\n".join(f"{field}: {value}" for field, value in said.items()), arm)
        assert read.kinds.keys() <= {field for field, one in arm.items() if one.optional}
        unscaled = {
            field: value / arm[field].scale if isinstance(value, float) else value
            for field, value in read.values.items()
        }
        profile = {attribute: row.get(attribute) for attribute in plain.attributes}
        facts = {"participant": str(row["participant"]), "arm": row["arm"], "profile": profile,
                 "group": row.get("group"), "round": row.get("round")}  # fmt: skip
        before.append(Response(**facts, values=row["answers"]))
        after.append(Response(**facts, values=unscaled))
    first, second = to_study_tests(plain, before), to_study_tests(other, after)
    assert [stated(one.human) for one in first] == [stated(one.human) for one in second]
    for one, two in zip(first, second, strict=True):
        assert (one.agent.table, one.agent.n1, one.agent.n2) == (two.agent.table, two.agent.n1, two.agent.n2) or (
            one.agent.table is None
        )
        assert two.agent.statistic == pytest.approx(one.agent.statistic, rel=1e-9, nan_ok=True)


def _shown(value: object, scale: float) -> object:
    return round(value * scale, 9) if isinstance(value, (int, float)) and scale != 1 else value


def test_each_readme_says_what_is_shown_and_why_people_can_still_be_compared() -> None:
    for name in RELABELLED:
        text = (shipped_studies()[name].parent / "README.md").read_text(encoding="utf-8")
        assert "## Relabelled" in text and "`relabel: true` shows" in text
        assert "ever given to people" in " ".join(text.partition("## Relabelled")[2].split())


def test_answers_are_counted_in_the_units_of_the_study() -> None:
    sample = load("bargaining", relabel=True)[0]
    assert "50 francs" in sample.turns[0].question and "from 0 to 50" in sample.turns[0].question
    read = read_reply(sample, 0, "offer: 25")
    assert read.values == {"offer": 25.0}  # as it was said
    (row,) = responses_of(sample, [read.values])
    assert row.values == {"offer": 2.5}
    assert read_reply(sample, 0, "offer: 51").kinds == {"offer": "out_of_range"}


def test_players_of_a_relabelled_game_see_the_numbers_that_were_said() -> None:
    group = load("beauty_contest", relabel=True)[0]
    members = len(group.detail["members"])
    replies = [f"number: {100 * at}" for at in range(members)]
    replies[1:] = [f"number: {min(1000, 60 * at)}" for at in range(1, members)]
    asked = question_of(group, members, replies)
    assert "you named 0." in asked
    mean = sum(min(1000, 60 * at) for at in range(1, members)) / (members - 1)
    assert f"a mean of {mean:g}" in asked
    rows = responses_of(group, [read_reply(group, at, text).values for at, text in enumerate(replies)])
    assert [row.values for row in rows[:3]] == [{"number": 0.0}, {"number": 6.0}, {"number": 12.0}]


def test_a_study_without_other_names_says_so() -> None:
    with pytest.raises(BadDataset, match=r"the study has no other names and amounts: no `relabel:`, no material such"):
        load("alcohol_norms", relabel=True)


@pytest.mark.slow
def test_of_several_studies_those_that_have_the_form_are_named(tmp_path: Path) -> None:
    shipped = shipped_studies()["framing"].parents[1]
    with pytest.raises(BadDataset) as caught:
        Study(Study.Options(relabel=True)).load(shipped)
    (fault,) = caught.value.faults
    assert str(fault) == (
        "relabel: no other names and amounts in 2 of 10 studies: alcohol_norms, impressions; "
        f"those that have some can be chosen: `studies: [{', '.join(RELABELLED)}]`"
    )
    assert len(Study(Study.Options(relabel=True, studies=list(RELABELLED))).load(shipped).parts) == len(RELABELLED)

    for name in ("one", "two"):
        folder = write(tmp_path / name)
        text = (folder / "study.yaml").read_text(encoding="utf-8")
        (folder / "study.yaml").write_text(text.replace("study: ", f"study: {name}_", 1), encoding="utf-8")
    material = next((tmp_path / "two").rglob("gain.md"))
    material.with_name("gain.plain.md").write_bytes(material.read_bytes())
    for wording, message in (
        ("plain", "no wording 'plain' in 1 of 2 studies: one; those that have some can be chosen: `studies: [two]`"),
        ("plian", "no wording 'plian' in any of the 2 studies (did you mean 'plain'?)"),
        ("strange", "no wording 'strange' in any of the 2 studies (known: plain)"),
    ):
        with pytest.raises(BadDataset) as lacking:
            Study(Study.Options(wording=wording)).load(tmp_path)
        assert [str(fault) for fault in lacking.value.faults] == [f"wording: {message}"]


def test_relabelling_and_a_wording_do_not_go_together() -> None:
    with pytest.raises(BadOption, match="has its own wording: leave out `wording`"):
        load("framing", relabel=True, wording="other")
    with pytest.raises(BadOption, match="'relabelled' goes with other amounts: use `relabel: true`"):
        load("framing", wording="relabelled")


def test_other_fields_must_be_those_that_derive_counts(tmp_path: Path) -> None:
    folder = write(tmp_path)
    file = folder / "study.yaml"
    text = file.read_text(encoding="utf-8")
    first = next(line for line in text.splitlines() if "gain" in line and "fields" in line)
    for change, message in (
        ("{fields: {chois: {type: text}}}", r"is not a field of this task \(did you mean 'choice'\?\)"),
        ("{fields: {choice: {type: choice, options: [A, C]}}}", r"must stay a choice with the same options"),
        ("{fields: {choice: {type: choice, options: [A, B], scale: 2}}}", r"scale.*: is for number; this is a choice"),
    ):
        other = first.replace("fields:", f"relabel: {change}, fields:", 1)
        file.write_text(text.replace(first, other), encoding="utf-8")
        with pytest.raises(BadDataset, match=message):
            read_study(file)
