"""Pages of runs over human studies: one study, its participants, a session, a game; and studies that are hostile."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import fmean
from textwrap import dedent

import pytest
from tests.analysis.journals import JUDGE, Script
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_pages import MARKS, SCRIPT, outline

from karat.formats import raw
from karat.records import NOT_ASKED, Answer, Reply, Sample, Turn
from karat_studies.kinds.study.views import filled_values

AGENT = """
    import re
    def query(user_query, system_prompt, mcp_servers):
        if "unwilling" in system_prompt:
            return "I cannot choose between them."
        asked = re.findall(r"^(\\w+): (\\w+) or \\w+$", user_query, re.MULTILINE) or [("number", "40")]
        return "Let me think." + "".join(f"\\n{name}: {first}" for name, first in asked)
"""
CONDITIONS = "{willing: {system_prompt: Be willing.}, unwilling: {system_prompt: Be unwilling.}}"
RUNS = {
    "framing": "{kind: study, path: framing, per_arm: 3}",
    "game": "{kind: study, path: beauty_contest, per_arm: 4, stop_after_unread: 1}",
    "chance": "{kind: study, path: beauty_contest, per_arm: 4}",
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    work, folder = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("results")
    (work / "agent.py").write_text(dedent(AGENT), encoding="utf-8")
    for name, dataset in RUNS.items():
        agent = "{type: floor}" if name == "chance" else '{type: python, target: "agent:query"}'
        told = f"name: {name}\ndataset: {dataset}\nagent: {agent}\nconditions: {CONDITIONS}\n"
        (work / f"{name}.yaml").write_text(f"{told}execution: {{num_repetitions: 2}}\n", encoding="utf-8")
        command = [sys.executable, "-m", "karat", "run", str(work / f"{name}.yaml"), "--quiet"]
        subprocess.run([*command, "--results", str(work / name)], check=True, capture_output=True)
        [run] = (work / name).glob("[!.]*")
        run.rename(folder / name)
    hostile(folder / "hostile")
    return folder


@pytest.fixture(scope="module")
def viewer(results):
    with Viewer(results) as running:
        yield running.enter()


def hostile(path) -> None:
    """Participants and groups whose every name and text wants to be more, and details that no study writes."""
    bad, fields = SCRIPT + MARKS, {SCRIPT: {"type": SCRIPT, "options": {SCRIPT: SCRIPT}, "range": [SCRIPT, None]}}
    turn = {"arm": bad, "task": f"materials/{bad}.md"}
    people = [{"participant": bad, "profile": {SCRIPT: {SCRIPT: [SCRIPT]}}}] * 2
    open_ = f"{bad} {{{{ last.x }}}} {{{{ no such }}}} {{{{ {SCRIPT} }}}}"
    samples = [
        Sample(id=bad, position=0, digest="0" * 32, turns=(Turn(question=bad, detail=turn), Turn(question=SCRIPT)),
               detail={"study": SCRIPT, "profile": {SCRIPT: SCRIPT, "list": [SCRIPT]}, "fields": [fields, 3]}),
        Sample(id=f"{bad}2", position=1, digest="1" * 32,
               detail={"study": SCRIPT, "members": people, "fields": [fields]},
               turns=(Turn(question=bad, detail={**turn, "round": 1, "member": 0}, seat=0),
                      Turn(question=open_, detail={**turn, "round": 2, "member": 7}, seat=1, open=True),
                      Turn(question=bad, detail={"arm": SCRIPT, "round": SCRIPT}, seat=99))),
        Sample(id="strange", position=2, digest="2" * 32, turns=(), detail={"study": ["no"], "members": SCRIPT}),
        Sample(id="stranger", position=3, digest="3" * 32, turns=(Turn(question="?", open=True),),
               detail={"members": [SCRIPT], "profile": 5, "fields": {"a": 1}, "stop_after_unread": SCRIPT}),
    ]  # fmt: skip
    script = Script(path, samples=samples, conditions=(SCRIPT, "b"), kind="study", run="cccc3333", name=SCRIPT)
    for row in range(4):
        script.answer(row, SCRIPT, replies=(Reply(text=f"{bad} {'x' * 50_000}"), Reply(text=SCRIPT), NOT_ASKED))
        script.score(row, SCRIPT, values={"parsed": False}, turn=0, rows=2, labels={SCRIPT: SCRIPT, "turn": SCRIPT},
                     detail={"answers": {SCRIPT: SCRIPT, "list": [SCRIPT, {SCRIPT: 1e300}]}})  # fmt: skip
        script.score(row, SCRIPT, values={"parsed": True}, turn=1, rows=2, detail={"answers": SCRIPT})
        script.failure(row, "b", message=bad, kind=SCRIPT)
    script.end()


def answered(viewer, path: str):
    while (heard := viewer.get(path)).status == 202:  # while the run is added up
        pass
    return heard


def shown(viewer, path: str):
    heard = answered(viewer, path)
    assert heard.status == 200, heard.text
    return outline(heard.text)


def ways(page, start: str) -> list[str]:
    return [one["href"] for one in page.all("a") if (one.get("href") or "").startswith(start)]


@pytest.mark.slow
def test_the_overview_has_the_parts_of_studies_and_leads_to_each(viewer):
    page = shown(viewer, "/runs/framing")
    for text in ("Agreement with people", "By study", "Findings, willing", "What could not be read", "All sessions"):
        assert text in page.said
    assert ways(page, "/runs/framing/studies/") == ["/runs/framing/studies/framing"]
    assert any(one["id"].startswith("chart-agreement") for one in page.all("figure"))


def test_a_study_has_its_claims_with_both_sides_its_arms_and_who_could_not_be_read(viewer):
    page = shown(viewer, "/runs/framing/studies/framing")
    for text in ("Tversky", "The same outcomes make people avoid risk", "121/155 vs 43/152", "3/3 vs 3/3",
                 "few answers: unwilling", "refused", "P(effect)", "repetition 2"):  # fmt: skip
        assert text in page.said
    refused = [way for way in ways(page, "/runs/framing/samples?") if "label=choice%3Drefused" in way]
    [who] = [way for way in refused if "arm=gain&" in way]
    told = shown(viewer, who)
    assert told.all("caption")
    assert "3 participants" in told.said
    assert len(ways(told, "/runs/framing/samples/")) == 3


def test_there_is_no_study_of_another_name(viewer):
    assert answered(viewer, "/runs/framing/studies/no-such").status == 404
    assert answered(viewer, "/runs/hostile/studies/x").status in (404, 409)  # its folder keeps no study


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 33),
        ("arm=gain", 3),
        ("study=framing&arm=loss", 3),
        ("study=no-such", 0),
        ("arm=no-such", 0),
        ("label=choice%3Drefused", 30),  # one arm has two fields of other names
        ("label=%3Drefused&condition=unwilling&arm=gain", 3),
        ("label=%3Drefused&condition=willing", 0),
        ("label=%3Dno-such", 0),
        ("text=002&arm=gain", 1),
        ("text=student+epidemic", 0),
        ("text=student+outbreak", 6),
        ("low=1&condition=willing", 33),
        ("low=1&condition=unwilling", 0),
    ],
)
def test_participants_are_found_by_arm_study_what_was_not_read_and_words(viewer, query, count):
    page = shown(viewer, f"/runs/framing/samples?{query}")
    assert f"{count} participant" in page.said
    for head in ("participant", "arm", "profile"):
        assert head in page.said
    if count:
        assert "occupation student" in page.said


def test_a_session_has_profile_task_replies_and_what_was_read_in_them(viewer):
    page = shown(viewer, "/runs/framing/samples/1?at=1")
    for text in ("gain-001", "occupation", "A country expects an outbreak", "choice: A / B",
                 "Let me think.\nchoice: A", "I cannot choose between them.", "refused"):  # fmt: skip
        assert text in page.said
    assert [one["aria-label"] for one in page.all("article") if one.get("class") == "reply"] == [
        f"{name}, repetition {repetition}" for repetition in (1, 2) for name in ("willing", "unwilling")
    ]
    assert "/runs/framing/samples/2?at=2" in ways(page, "/runs/framing/samples/2")


def test_who_is_asked_no_more_is_marked_in_the_game_and_in_their_session(viewer):
    game = shown(viewer, "/runs/game/samples/1")
    assert "groups" in shown(viewer, "/runs/game/samples").said
    # Four members, three rounds that unwilling ones never saw, two repetitions.
    assert game.said.count("not asked any more") == 4 * 3 * 2
    seats = ways(game, "/runs/game/samples/1?seat=")
    assert sorted(set(seats)) == [f"/runs/game/samples/1?seat={seat}" for seat in range(4)]
    one = shown(viewer, seats[-1])
    assert one.said.count("Not asked any more.") == 3 * 2
    for text in ("half-004", "Round 4", "you said 40", "occupation"):
        assert text in one.said


def test_a_game_shows_every_answer_and_what_each_member_saw(viewer, results):
    game = shown(viewer, "/runs/chance/samples/1").said
    words = "".join(game.splitlines())
    sample = json.loads((results / "chance" / "samples.jsonl").read_bytes().splitlines()[0])
    answers = [line for line in (results / "chance" / "journal.jsonl").read_bytes().splitlines() if b'"answer"' in line]
    said = [json.loads(line) for line in answers if line.startswith(b'{"event":"answer"')]
    own = [one for one in said if one["sample"] == sample["id"]]
    assert len(own) == 4
    for one in own:
        numbers = [float(reply["text"].partition(": ")[2]) for reply in one["replies"]]
        for at in range(4, 16):
            last, others = numbers[at - 4], [numbers[at // 4 * 4 - 4 + seat] for seat in range(4) if seat != at % 4]
            assert f"last.number {raw(_plain(last))}others.mean {raw(round(fmean(others), 2))}" in words


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


@pytest.mark.parametrize(
    "path",
    ["samples", "samples?label=%3Dx&arm=y", "samples/1", "samples/2", "samples/2?seat=0", "samples/2?seat=1",
     "samples/2?seat=9", "samples/3", "samples/4", "samples/4?seat=x"],
)  # fmt: skip
def test_hostile_studies_are_shown_and_nothing_of_them_is_an_element(viewer, path):
    heard = viewer.get(f"/runs/hostile/{path}")
    assert heard.status == 200, heard.text
    page = outline(heard.text)
    assert not page.all("img")
    assert "49" not in page.said.split()
    assert "\x1b" not in heard.text
    assert "\u202e" not in heard.text
    assert len(heard.body) < 2_000_000
    assert not [line for line in viewer.errors if "it works once" not in line]


@pytest.mark.slow
def test_a_run_that_goes_on_shows_whom_it_has_not_asked_yet(results, tmp_path):
    folder = tmp_path / "going"
    sample = json.loads((results / "framing" / "samples.jsonl").read_bytes().splitlines()[0])
    [turn] = sample["turns"]
    detail = {**sample["detail"], "fields": sample["detail"]["fields"] * 2}
    two = Sample(id="p1", position=0, digest="0" * 32, detail=detail, turns=(Turn(**turn), Turn(**turn)))
    script = Script(folder, samples=[two], conditions=("a", "b", "c"), kind="study")
    script.reply(0, "a", reply=Reply(text="choice: B"))
    script.write(Answer(**script.place(0, "b", 0), replies=(Reply(text="choice: A"), NOT_ASKED), started="", seconds=1))
    script.score(0, "b", values={"parsed": True}, turn=0, rows=2, detail={"answers": {"choice": "A"}}, scorer=JUDGE)
    script.failure(0, "c")
    script.stop()
    with Viewer(tmp_path) as running:
        page = shown(running.enter(), "/runs/going/samples/1")
    assert page.said.count("Not asked any more.") == 1
    assert page.said.count("Never reached.") == 2
    assert "crash" in page.said


def test_what_was_put_into_a_text_is_found_again_or_nothing_is():
    template = "{{ last.a }} then {{ others.b }} and {{ last.a }}"
    assert filled_values(template, "1 then 2 and 1") == [("last.a", "1"), ("others.b", "2")]
    assert filled_values(template, "something else") == []
    assert filled_values(template, None) == []
    assert filled_values("nothing is open", "nothing is open") == []
    assert filled_values("{{ a }}{{ b }}", "12") == []
    assert filled_values("{{ a", "1") == []
    assert filled_values("x {{ a }} y", "x  y") == [("a", "")]
