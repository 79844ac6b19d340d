"""Rubric files."""

import pytest

from karat import rubrics
from karat.errors import BadOption, BadRubric

SMALL = """
instructions: Judge it.
scale: {low: 1, high: 2}
metrics:
  tone: {description: "Is it kind?", levels: {1: Rude., 2: Kind.}}
"""


def faults(text):
    with pytest.raises(BadRubric) as caught:
        rubrics.parse(text.encode() if isinstance(text, str) else text, source="r.yaml")
    return [str(fault) for fault in caught.value.faults]


def test_the_default_rubric_has_three_metrics_of_five_levels_and_asks_for_claims():
    rubric = rubrics.load("default")
    assert [metric.name for metric in rubric.metrics] == [
        "factual_adherence",
        "completeness",
        "helpfulness_and_clarity",
    ]
    for metric in rubric.metrics:
        assert list(metric.levels) == [1, 2, 3, 4, 5]
        assert all(metric.levels.values())
    assert [(field.name, field.type) for field in rubric.extra_fields] == [("unverified_claims", "list")]
    assert "block" in rubric.instructions
    assert rubrics.names() == ["default", "v1", "v2"]


def test_earlier_default_rubrics_stay_and_keep_their_digests():
    # As run.json of earlier runs has them.
    digests = {name: rubrics.load(name).digest for name in rubrics.names()}
    assert digests["v1"] == "a50ba395e460fbe2a0bdd51506fbe598"
    assert digests["v2"] == "9f054ca20d16a0834301d3ffb2929569"
    assert len(set(digests.values())) == 3
    assert rubrics.load("rubrics/v1") == rubrics.load("v1")


def test_levels_of_factual_adherence_from_3_on_ask_for_the_golden_core():
    rubric = rubrics.load("default")
    adherence = rubric.metrics[0]
    assert all("The golden core is there" in adherence.levels[level] for level in (3, 4, 5))
    assert "abstains, is empty, or is true but beside the question has at most 2" in adherence.description
    assert "give the lower one unless the answer meets the whole text of the upper one" in " ".join(
        rubric.instructions.split()
    )
    assert "lenient" in rubric.instructions
    assert rubric.instructions.count("Agent's answer:") == 2
    assert rubric.of_empty_answers == {"factual_adherence": 2, "completeness": 1, "helpfulness_and_clarity": 1}


def test_the_default_rubric_counts_inventions_and_left_out_context_and_judges_wrong_answers_clarity_alone():
    adherence, completeness, helpfulness = rubrics.load("default").metrics
    assert "inventing commands, flags or options that do not exist" in adherence.description
    assert "invented command, flag or option" in adherence.levels[3]
    assert "important contextual facts that the golden answer states" in completeness.levels[3]
    assert "a wrong answer, or one that abstains, can be clear" in helpfulness.description
    assert not any(word in text for text in helpfulness.levels.values() for word in ("wrong", "golden core", "Right"))


def test_a_file_of_the_users_is_found_from_the_experiments_folder(tmp_path):
    (tmp_path / "mine.yaml").write_text(SMALL, encoding="utf-8")
    rubric = rubrics.load("mine.yaml", folder=tmp_path)
    assert (rubric.name, rubric.source) == ("mine", "mine.yaml")
    assert rubric.metrics[0].levels == {1: "Rude.", 2: "Kind."}


def test_the_digest_covers_what_the_judge_is_told_and_nothing_else():
    one = rubrics.parse(SMALL.encode(), source="a.yaml")
    layout = rubrics.parse(("# comment\nname: other\n" + SMALL).encode(), source="b.yaml")
    changed = rubrics.parse(SMALL.replace("Kind.", "Very kind.").encode(), source="a.yaml")
    assert one.digest == layout.digest != changed.digest
    assert len(one.digest) == 32


def test_every_fault_is_told_at_once_with_its_place():
    text = """
    format: 3
    metrcs: {}
    scale: {low: 1, high: 3}
    metrics:
      a b: {}
      tone: {description: "", levels: {1: bad, 3: yes, 9: more}, direction: up, empty: 4}
    extra_fields:
      tone: {type: words}
    """
    assert faults(text) == [
        "extra_fields.tone: is a metric too",
        "extra_fields.tone.description: is required",
        "extra_fields.tone.type: must be list, text, bool or number, got 'words'",
        "format: this karat reads formats 1 to 2, got 3",
        "instructions: is required",
        "metrcs: unknown key (did you mean 'metrics'?)",
        "metrics.a b: a name must be letters, digits and underscores",
        "metrics.tone.description: is required",
        "metrics.tone.direction: must be higher or lower, got 'up'",
        "metrics.tone.empty: is not a level: the scale goes from 1 to 3",
        "metrics.tone.levels.2: is missing",
        "metrics.tone.levels.3: must be a text, got true or false; put it in quotes to have a text",
        "metrics.tone.levels.9: is not a level: the scale goes from 1 to 3",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("", "file: must be a mapping, got nothing", id="empty"),
        pytest.param("[1]", "file: must be a mapping, got a list", id="list"),
        pytest.param("a: [", "file (line 2, column 1): not YAML: a value is missing", id="no YAML"),
        pytest.param("a: 1\na: 2", "a (line 2, column 1): the key 'a' appears twice, first in line 1", id="twice"),
        pytest.param("a: &x\n  b: *x", "a.b (line 2, column 6): the alias *x is inside what it refers to", id="alias"),
        pytest.param("[" * 150, "0 (line 1, column 101): is nested deeper than 100 levels", id="deep"),
        pytest.param("? [1]\n: 2", "file (line 1, column 3): a key must be text", id="list as key"),
        pytest.param(r'a: "\ud800"', "file", id="half a pair"),
        pytest.param("a: !!python/name:os.system 1", "a (line 1, column 4): the tag !!python", id="code"),
        pytest.param(b"\xff", "file (line 1): byte 0xff is not UTF-8", id="encoding"),
        pytest.param(b"x" * 1_000_001, "file: must be at most 1000000 bytes, has 1000001", id="large"),
    ],
)
def test_what_cannot_be_read_says_where(text, fault):
    (found,) = faults(text)
    assert found.startswith(fault)


def test_a_scale_is_needed_and_makes_sense():
    assert "metrics.tone.scale: is required: here, or for the whole rubric" in faults(
        SMALL.replace("scale: {low: 1, high: 2}", "")
    )
    assert "scale: high must be above low, by less than 101; got 5 to 1" in faults(
        SMALL.replace("low: 1, high: 2", "low: 5, high: 1")
    )


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path):
    with pytest.raises(
        BadOption, match=r"no rubric is called 'defualt', and no such file is there \(did you mean 'default'\?\)"
    ):
        rubrics.load("defualt", folder=tmp_path)
    with pytest.raises(BadOption, match=r"rubric: nowhere\.yaml cannot be read: No such file"):
        rubrics.load("nowhere.yaml", folder=tmp_path)


def test_instructions_without_a_text_are_a_fault():
    with pytest.raises(BadRubric, match="instructions: is required"):
        rubrics.parse(b"instructions:\nmetrics: {}\n", source="mine.yaml")
