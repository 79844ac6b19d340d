"""The system prompts that a participant read: as the engine fills them, or why they are not known."""

from __future__ import annotations

from hashlib import sha256

import pytest
from tests.analysis.journals import Script
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_pages import MARKS, SCRIPT, outline

from karat.journal import Choice, RunInfo
from karat.records import Reply, Sample, Turn
from karat_studies.kinds.study.views import Prompt, prompts

TEMPLATES = {
    "said": "{{? profile.age }}You are {{ profile.age }}.\n{{? profile.job }}You are a {{ profile.job }}.",
    "plain": "Answer.",
    "again": "Answer.",
    "none": None,
    "masked": "The key is ${KEY}.",
    "unfit": "You are {{ profile.height }}.",
}


def sample(**detail) -> Sample:
    turn = Turn(question="Which?", detail={"arm": "one"})
    return Sample(
        id="p",
        position=0,
        digest="0" * 32,
        turns=(turn,),
        kind="study",
        detail={"study": "s", "fields": [{}], **detail},
    )


def info(tmp_path, templates=TEMPLATES, **more) -> RunInfo:
    digests = {name: sha256((text or "").encode()).hexdigest() for name, text in templates.items()} | {
        "masked": "ab" * 32
    }
    experiment = {
        f"conditions.{name}.system_prompt": Choice(value=text, source="file") for name, text in templates.items()
    }
    conditions = (*templates, "later")
    return Script(tmp_path / "run", conditions=conditions, experiment=experiment, prompts=digests, **more).stop().info


def test_prompts_are_filled_with_the_profile_and_what_is_not_known_is_said(tmp_path):
    found = prompts(info(tmp_path), sample(profile={"age": 30}), None)
    assert found == [
        Prompt(conditions=[(0, "said")], what="read", text="You are 30."),
        Prompt(conditions=[(1, "plain"), (2, "again")], what="read", text="Answer."),
        Prompt(conditions=[(3, "none")], what="none"),
        Prompt(conditions=[(4, "masked")], what="read", text="The key is ${KEY}.", other=True),
        Prompt(conditions=[(5, "unfit")], what="template", text="You are {{ profile.height }}."),
        Prompt(conditions=[(6, "later")], what="unknown"),
    ]


def test_a_member_of_a_group_reads_their_own(tmp_path):
    members = [{"participant": name, "profile": {"age": age}} for name, age in (("a", 30), ("b", 40))]
    assert [prompts(info(tmp_path), sample(members=members), seat)[0].text for seat in (0, 1)] == [
        "You are 30.",
        "You are 40.",
    ]


@pytest.mark.parametrize(
    ("template", "detail"),
    [
        ("{{ profile.age }}", {"profile": 5}),
        ("{{ profile.age }}", {"profile": [1]}),
        ("{{ profile.age }}", {}),
        ("{{ profile.age }}", {"profile": {"age": {"a": [1]}}}),
        ("{{ profile.age }}", {"profile": {"age": 5}, "members": "no"}),
        ("x" * 200_000, {"profile": {}}),
        ("{{ profile.a }}" * 5_000, {"profile": {"a": "x" * 1_000_000}}),  # five billion characters
        ("{{? a }}\n" * 10_000, {"profile": {str(n): n for n in range(20_000)}}),
    ],
)
def test_templates_and_profiles_that_do_not_fit_or_grow_are_left_as_they_are(tmp_path, template, detail):
    [one, later] = prompts(info(tmp_path, {"a": template}), sample(**detail), None)
    filled = detail.get("profile") == {"age": {"a": [1]}}
    assert (one.what, one.text) == (("read", '{"a": [1]}') if filled else ("template", template))
    assert later.what == "unknown"


def test_a_session_shows_them_and_nothing_of_them_is_an_element(tmp_path):
    bad = SCRIPT.replace("{{ 7*7 }}", "") + MARKS
    one = sample(profile={"age": bad})
    script = Script(
        tmp_path / "run", samples=[one], conditions=("a", SCRIPT), kind="study",
        experiment={"conditions.a.system_prompt": Choice(value=f"{{{{ profile.age }}}} {bad}", source="file"),
                    f"conditions.{SCRIPT}.system_prompt": Choice(value={"no": [SCRIPT]}, source="file")},
    )  # fmt: skip
    script.answer(0, "a", reply=Reply(text="B"))
    script.end()
    with Viewer(tmp_path) as viewer:
        text = viewer.enter().get("/runs/run/samples/1").text
    page = outline(text)
    assert not page.all("img")
    assert page.said.count("<script>alert(1)</script>") > 2
    assert "What was sent differs" in page.said
    assert ": not known" in page.said
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_templates_that_are_made_to_take_long_are_shown_as_they_stand(tmp_path):
    templates = {"blanks": "{{" + " " * 99_000, "fields": "{{" * 5_000, "closed": "}}" + "{{ " * 5_000}
    found = prompts(info(tmp_path, templates), sample(profile={"age": 30}), None)
    assert [one.text for one in found[:3]] == list(templates.values())
