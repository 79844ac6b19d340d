"""What the pages say, read from a real server: runs of each kind, going on, killed, hostile; and reviews."""

from __future__ import annotations

import html
import json
import re
import time
from html.parser import HTMLParser

import msgspec
import pytest
from tests.analysis.journals import JUDGE, Script, asked, conversations, table
from tests.karat_viewer.serving import Viewer

from karat.journal import RunLock
from karat.records import Metric, Reply, Sample, ToolCall, Turn, Usage

SCRIPT = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7*7 }}"
MARKS = "\x1b[31m\u202e\x00 javascript:alert(1)"


class Outline(HTMLParser):
    """What a page is made of: elements opened, their attributes, text."""

    VOID = {"meta", "link", "input", "br", "img", "hr"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open, f"</{tag}> ends nothing"
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.said += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def outline(text: str) -> Outline:
    """Read, and held to what every page keeps."""
    page = Outline(text)
    assert page.open == []
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert page.all("html")[0]["lang"] == "en"
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert page.all("a")[0] == {"class": "skip", "href": "#main"}
    named = {attributes["for"] for attributes in page.all("label") if "for" in attributes}
    assert named <= set(ids)
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for name in ("href", "src", "action"):
            assert not (attributes.get(name) or "").lower().lstrip().startswith(("javascript:", "//")), attributes
    assert all("src" in one or one.get("type") == "application/json" for one in page.all("script"))
    return page


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    golden_run(folder / "golden")
    turns = [{"golden": "5", "program": "add(2, 3)"}, {"golden": "10", "program": "add(2, 3), multiply(#0, 2)"}]
    said = [
        Reply(text='{"answer": "5", "program": "add(2, 3)"}'),
        Reply(text='{"answer": "25", "program": "add(2, 3), multiply(#0, 5)"}'),
    ]
    conversations(folder / "talk", [asked("c1", 0, turns)], {"look-up": [[said, None]]}, run="aaaa1111", name="talk")
    hostile(folder / "hostile")
    killed = Script(folder / "killed", run="dddd4444", name="killed")
    killed.scored(0, "baseline", value=3)
    killed.stop()
    with (folder / "killed" / "journal.jsonl").open("ab") as file:
        file.write(b'{"event":"answer","trial":"torn')
    (folder / "broken").mkdir()
    (folder / "broken" / "run.json").write_text('{"format": 1')
    (folder / "newer").mkdir()
    (folder / "newer" / "run.json").write_text('{"format": 99}')
    (folder / "no-run").mkdir()
    return folder


def golden_run(path) -> None:
    judge = msgspec.structs.replace(JUDGE, offline=False)
    script = Script(
        path, samples=3, repetitions=2, run="bbbb2222", name="golden run", scorers=(judge,), agent_model="m-1"
    )
    for row in range(3):
        for repetition in range(2):
            for at, condition in enumerate(script.conditions):
                calls = (
                    ToolCall(tool="search", server="docs", input={"q": "resume"}, result="found it", milliseconds=12.0),
                    ToolCall(tool="read", server="docs", error="no such page", milliseconds=3.0),
                )
                script.answer(
                    row, condition, repetition,
                    reply=Reply(
                        text=f"**Golden** answer {row}, said {condition} {repetition}.", tool_calls=calls if at else (),
                        usage=Usage(input_tokens=900, output_tokens=100), dollars=0.25, model="m-1",
                    ),
                )  # fmt: skip
                script.score(
                    row, condition, repetition, scorer=judge, value=3 + at, reasons={"completeness": "because it is"},
                    claims=("it never rains", "it is blue") if at else (), dollars=0.125,
                )  # fmt: skip
    script.end()


def hostile(path) -> None:
    metric = Metric(name=SCRIPT, low=1, high=5, kind="ordinal")
    scorer = msgspec.structs.replace(JUDGE, name=SCRIPT, metrics=(metric,))
    script = Script(
        path,
        samples=[
            Sample(
                id=SCRIPT + MARKS, position=0, digest="0" * 32,
                turns=(Turn(question=SCRIPT + MARKS, golden=f"# {SCRIPT} [x](javascript:alert(1)) ![p](http://evil.example/p)"),),
            )
        ],
        conditions=(SCRIPT, 'b" onfocus="x'),
        scorers=(scorer,),
        run="cccc3333", name=SCRIPT, agent_model=SCRIPT, host=SCRIPT,
    )  # fmt: skip
    call = ToolCall(tool=SCRIPT, server=SCRIPT, input={SCRIPT: SCRIPT}, result=SCRIPT + MARKS, error=SCRIPT)
    said = Reply(text=SCRIPT + MARKS + "x" * 50_000, tool_calls=(call,), reasoning=SCRIPT, model=SCRIPT)
    script.attempt(0, SCRIPT, message=SCRIPT, kind=SCRIPT)
    script.answer(0, SCRIPT, reply=said)
    script.score(
        0, SCRIPT, scorer=scorer, value=2, reasons={SCRIPT: SCRIPT}, claims=(SCRIPT, MARKS), labels={SCRIPT: SCRIPT}
    )
    script.failure(0, 'b" onfocus="x', message=SCRIPT + MARKS, kind=SCRIPT)
    script.end()


@pytest.fixture(scope="module")
def viewer(results):
    with Viewer(results) as running:
        yield running.enter()


def test_the_list_tells_runs_their_state_and_what_cannot_be_opened(viewer):
    page = outline(viewer.get("/").text)
    assert {one.get("href") for one in page.all("a")} >= {"/runs/golden", "/runs/talk", "/runs/hostile", "/runs/killed"}
    assert {one.get("value") for one in page.all("input") if one.get("name") == "run" and "disabled" in one} == {
        "broken",
        "newer",
    }
    assert "run.json is damaged" in page.said
    assert "has format 99" in page.said
    assert "no-run" not in page.said
    assert "crashed" in page.said


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=golden+RUN", {"golden"}),
        ("q=baseline+m-1", {"golden"}),
        ("q=nothing-like-it", set()),
        ("tag=conversation", {"talk"}),
        ("tag=crashed", {"killed"}),
        ("tag=with-docs", {"golden", "killed"}),
    ],
)
def test_runs_are_found_by_words_and_tags(viewer, query, names):
    page = outline(viewer.get(f"/?{query}").text)
    assert {
        one["href"].rpartition("/")[2] for one in page.all("a") if one.get("href", "").startswith("/runs/")
    } == names


@pytest.mark.parametrize("run", ["golden", "talk", "hostile", "killed"])
@pytest.mark.parametrize("path", ["", "/samples", "/samples?sort=worst", "/samples/1?at=1", "/samples/1?view=plain",
                                  "/samples/1?view=diff", "/reviews"])  # fmt: skip
def test_every_page_of_every_run_stands(viewer, run, path):
    heard = viewer.get(f"/runs/{run}{path}")
    assert heard.status == 200, heard.text
    page = outline(heard.text)
    assert "alert(1)" not in "".join(one.get("src") or "" for one in page.all("script"))
    assert not page.all("img")
    assert not [line for line in viewer.errors if "it works once" not in line]


PAGES = {
    "list": ["/", "/?sort=name", "/?sort=status&tag=crashed", "/history?run=golden", "/compare", "/runs/broken", "/no"],
    "compare": ["/compare?run=golden", "/compare?run=golden&a=baseline&b=with-docs", "/compare?run=golden&run=killed",
                "/compare?run=golden&run=talk", "/compare/flips?run=golden&a=baseline&b=with-docs"],
    "golden": ["", "/samples", "/samples?sort=gap", "/samples?condition=with-docs&sort=worst&q=2",
               "/samples?claims=any", "/samples/1?at=1", "/samples/2?at=2&sort=gap&view=diff", "/samples/9",
               "/reviews"],
    "killed": ["", "/samples", "/samples?failure=any", "/samples/1?view=plain", "/samples/2", "/reviews"],
    "talk": ["", "/samples", "/samples?failure=any&sort=worst", "/samples/1?at=1", "/reviews"],
}  # fmt: skip


@pytest.mark.needs_kind("conversation")
@pytest.mark.parametrize("name", PAGES)
def test_the_whole_text_of_pages(viewer, results, golden, name):
    told = []
    for path in PAGES[name]:
        address = path if name in ("list", "compare") else f"/runs/{name}{path}"
        heard = viewer.get(address)
        while heard.status == 503 or "being computed" in heard.text:
            time.sleep(0.1)
            heard = viewer.get(address)
        page = Outline(re.search("<main.*</main>", heard.text, re.DOTALL)[0])
        words = [" ".join(line.split()) for line in page.said.replace(str(results), "FOLDER").splitlines()]
        links = [f"-> {one['href']}" for one in page.all("a") if "href" in one]
        told += [f"== {address} {heard.status}", *filter(None, words), *links, ""]
    golden(f"viewer/{name}.txt", "\n".join(told))


def test_hostile_text_is_shown_and_nothing_of_it_is_an_element(viewer):
    text = viewer.get("/runs/hostile/samples/1?at=1").text
    page = outline(text)
    assert "<script>alert(1)</script>" in page.said
    assert "{{ 7*7 }}" in page.said
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "evil.example" in page.said
    assert "30," in page.said  # how much of the long answer is left out


def test_a_long_answer_is_cut_and_can_be_had_whole_as_plain_text(viewer):
    page = outline(viewer.get("/runs/hostile/samples/1").text)
    [path] = {one["href"] for one in page.all("a") if "/text/" in one.get("href", "")}
    heard = viewer.get(path)
    assert heard.headers["content-type"] == "text/plain; charset=utf-8"
    assert heard.headers["content-disposition"].startswith("attachment")
    assert heard.text == SCRIPT + MARKS + "x" * 50_000


def test_a_question_shows_everything_that_was_said_of_it(viewer):
    page = outline(viewer.get("/runs/golden/samples/2?at=2&sort=gap").text)
    told = " ".join(page.said.split())
    for words in (
        "Question 1?", "Golden answer 1.", "said baseline 0.", "said with-docs 1.", "because it is",
        "2 unverified claims", "it never rains", "2 tool calls, 1 failed",
        "no such page", '"q": "resume"', "found it", "12 ms",
        "agent $0.25 · judge $0.12 · 1,000 tokens · 1.0 s · m-1", "completeness4.00",
    ):  # fmt: skip
        assert words in told, words
    assert {one["rel"]: one["href"] for one in page.all("a") if one.get("rel") in ("prev", "next", "up")} == {
        "up": "/runs/golden/samples?sort=gap",
        "prev": "/runs/golden/samples/3?at=1&sort=gap",
        "next": "/runs/golden/samples/1?at=3&sort=gap",
    }


def test_answers_are_shown_rendered_plain_and_against_the_golden_one(viewer):
    rendered, plain, diff = (
        viewer.get(f"/runs/golden/samples/1?view={view}").text for view in ("rendered", "plain", "diff")
    )
    assert "<strong>Golden</strong> answer 0" in rendered
    assert "**Golden** answer 0" in html.unescape(plain)
    assert "<ins>" in diff
    assert "<del>" in diff


@pytest.mark.needs_kind("conversation")
def test_a_conversation_lays_programs_beside_each_other_and_proves_its_diagnosis(viewer):
    text = viewer.get("/runs/talk/samples/1").text
    told = " ".join(outline(text).said.split())
    for words in (
        "Turn 1",
        "Turn 2",
        "add(2, 3)",
        "multiply(#0, 2)",
        "multiply(#0, 5)",
        "wrong wrong operand",
        "not in the golden program",
        "right",
        "never reached",
    ):
        assert words in told, words
    [other] = re.findall(r'<li class="other"><code><bdi>(.*?)</bdi>', text)
    assert other == "multiply(#0, 5)"


def test_failures_are_told_where_they_are(viewer):
    told = " ".join(outline(viewer.get("/runs/talk/samples/1").text).said.split())
    assert "crash agent faultit fell over" in told
    listed = outline(viewer.get("/runs/talk/samples?failure=any").text)
    assert "1 failed" in listed.said


def test_the_overview_has_the_parts_of_the_report_and_ways_on(viewer):
    page = outline(viewer.get("/runs/golden").text)
    assert {"scores", "differences", "failing", "cost", "origin"} <= {one.get("id") for one in page.all("section")}
    paths = {one.get("href") for one in page.all("a")}
    assert {
        "/runs/golden/samples",
        "/runs/golden/samples?sort=gap",
        "/compare?run=golden",
        "/runs/golden/reviews",
    } <= paths


def test_a_comparison_opens_with_its_result_and_names_questions_by_their_text(viewer):
    page = outline(viewer.get("/compare?run=golden&a=baseline&b=with-docs").text)
    assert page.said.index("95 % interval") < page.said.index("Gained most") < page.said.index("Question 0?")
    assert "/runs/golden/find?id=0" in {one.get("href") for one in page.all("a")}
    heard = viewer.get("/runs/golden/find?id=0")
    assert (heard.status, heard.headers["location"]) == (303, "/runs/golden/samples/1")
    assert viewer.get("/runs/golden/find?id=none").status == 404


def test_two_runs_are_compared_and_what_cannot_be_is_said(viewer):
    assert "baseline" in outline(viewer.get("/compare?run=golden&run=killed").text).said
    told = outline(viewer.get("/compare?run=golden&run=talk").text).said
    assert "say which conditions to compare" in told or "share no metric" in told
    assert viewer.get("/compare").status == 400


def test_news_of_a_run_are_told_and_nothing_is_sent_twice(tmp_path):
    script = Script(tmp_path / "run", samples=2, conditions=("baseline",))
    script.scored(0, "baseline", value=3)
    script._file.flush()
    lock = RunLock(tmp_path / "run")
    lock.acquire()
    try:
        with Viewer(tmp_path) as viewer:
            first = viewer.enter().get("/runs/run/state")
            assert first.json()["going"] is True
            assert viewer.get("/runs/run/state", if_none_match=first.headers["etag"]).status == 304
            assert "1 of 2" in outline(viewer.get("/runs/run").text).said
            assert "running" in viewer.get("/").text
            script.scored(1, "baseline", value=5)
            script._file.flush()
            second = viewer.get("/runs/run/state", if_none_match=first.headers["etag"])
            assert second.status == 200
            assert second.headers["etag"] != first.headers["etag"]
            assert "2 of 2" in outline(viewer.get("/runs/run").text).said
            assert "5.00" in outline(viewer.get("/runs/run/samples").text).said
            lock.release()
            assert viewer.get("/runs/run/state").json()["going"] is False
    finally:
        lock.release()
        script.stop()


def test_a_viewer_of_one_run_knows_no_other(results):
    with Viewer(results / "golden") as viewer:
        viewer.enter()
        assert viewer.get("/").headers["location"] == "/runs/golden"
        assert viewer.get("/runs/golden").status == 200
        assert viewer.get("/runs/talk").status == 404


@pytest.fixture
def reviewed(tmp_path):
    table(tmp_path / "run", {"baseline": [[3.0], [4.0], [5.0]], "with-docs": [[4.0], [2.0], [5.0]]})
    with Viewer(tmp_path) as running:
        yield running.enter()


def trial(row: int, condition: int) -> str:
    return f"{row:08x}{condition:08x}{0:08x}"


def test_a_review_is_kept_shown_and_compared_with_the_judge(reviewed, tmp_path):
    for row, condition, value in [(0, 0, 3), (1, 0, 5), (2, 0, 5), (0, 1, 4), (1, 1, 4)]:
        said = {"trial": trial(row, condition), "who": "ann", "scores": {"completeness": value}, "note": f"note {row}"}
        assert reviewed.post("/runs/run/labels", said).status == 201
    assert reviewed.post("/runs/run/labels", {"trial": trial(2, 1), "who": "bob", "note": SCRIPT}).status == 201
    lines = [json.loads(line) for line in (tmp_path / "run" / "labels.jsonl").read_text().splitlines()]
    assert lines[0].pop("crc")
    assert lines[0] == {"event": "head", "format": 2, "run": "1234abcd"}
    assert {name: lines[1][name] for name in ("who", "trial", "scores")} == {
        "who": "ann", "trial": trial(0, 0), "scores": {"completeness": 3.0},
    }  # fmt: skip
    sample = outline(reviewed.get("/runs/run/samples/1").text)
    assert "note 0" in sample.said
    assert "ann" in sample.said
    named = [one for one in sample.all("input") if one.get("name") == "score:completeness"]
    assert [one["value"] for one in named if "checked" in one] == ["3", "4"]
    told = " ".join(outline(reviewed.get("/runs/run/reviews").text).said.split())
    assert "completenessann53 questions60.0 %80.0 %" in told
    assert "quadratic weights" in told
    assert "6 reviews" in told
    assert "reviewed" in reviewed.get("/").text
    # Withdrawn: nothing is left to be said.
    assert reviewed.post("/runs/run/labels", {"trial": trial(2, 1), "who": "bob"}).status == 201
    assert "5 reviews" in reviewed.get("/runs/run/reviews").text


def test_claims_are_confirmed_and_rejected_word_for_word(viewer, results):
    name = f"{0:08x}{1:08x}{0:08x}"
    said = {"trial": name, "who": "ann", "claims": {"0": "rejected", "1": "confirmed"}}
    assert viewer.post("/runs/golden/labels", said).status == 201
    [label] = [json.loads(line) for line in (results / "golden" / "labels.jsonl").read_text().splitlines()][1:]
    assert label["claims"] == {"it never rains": "rejected", "it is blue": "confirmed"}
    assert "rejected by ann" in " ".join(outline(viewer.get("/runs/golden/samples/1").text).said.split())
    assert "1 confirmed, 1 rejected" in viewer.get("/runs/golden/reviews").text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"nonsense", "not a review"),
        ({"who": "ann"}, "trial"),
        ({"trial": "x", "who": "ann", "evil": 1}, "evil"),
        ({"trial": "no-such", "who": "ann"}, "no answer for this trial"),
        ({"trial": trial(0, 0), "who": " "}, "enter your name"),
        ({"trial": trial(0, 0), "who": "x" * 61}, "enter your name"),
        ({"trial": trial(0, 0), "who": "ann", "note": "x" * 10_001}, "10,000"),
        ({"trial": trial(0, 0), "who": "ann", "scores": {"completeness": 6}}, "completeness: expected 1, 2, 3, 4, 5"),
        ({"trial": trial(0, 0), "who": "ann", "scores": {"completeness": 2.5}}, "completeness: expected 1, 2, 3, 4, 5"),
        ({"trial": trial(0, 0), "who": "ann", "scores": {"other": 1}}, "no metric"),
        ({"trial": trial(0, 0), "who": "ann", "claims": {"0": "confirmed"}}, "a claim must be"),
        ({"trial": trial(0, 0), "who": "ann", "claims": {"x": "perhaps"}}, "a claim must be"),
    ],
)
def test_a_review_that_makes_no_sense_is_refused_and_nothing_is_written(viewer, results, said, told):
    heard = viewer.post("/runs/killed/labels", said)
    assert heard.status == 422
    assert told in heard.json()["problem"]
    assert not (results / "killed" / "labels.jsonl").exists()


@pytest.mark.slow
def test_a_run_of_an_older_shape_stands(tmp_path):
    """Nothing but what the first version wrote, the rest at its defaults."""
    run = table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})
    info = json.loads((run.path / "run.json").read_text())
    for name in ("rehearsed", "host", "source", "condition_servers", "servers", "agent_model"):
        info.pop(name, None)
    (run.path / "run.json").write_text(json.dumps(info))
    with Viewer(tmp_path) as viewer:
        viewer.enter()
        for path in ("", "/samples", "/samples/1", "/reviews"):
            assert viewer.get(f"/runs/run{path}").status == 200


@pytest.mark.slow
def test_equal_repetitions_are_folded_into_one_and_the_list_of_runs_says_who_is_better(tmp_path):
    conditions = ("a", "b")
    script = Script(tmp_path / "run", samples=8, conditions=conditions, repetitions=3, run="eeee5555", name="run")
    for row in range(8):
        for at, condition in enumerate(conditions):
            for repetition in range(3):
                text = "The same." if condition == "a" else f"Another, {repetition}."
                script.answer(row, condition, repetition, reply=Reply(text=text))
                script.score(row, condition, repetition, values={"completeness": 1 + 2 * at + row % (2 + at)})
    script.end()
    with Viewer(tmp_path) as viewer:
        viewer.enter()
        page = viewer.get("/runs/run/samples/1").text
        assert page.count("3 of 3 repetitions the same") == page.count("repetitions the same") == 1
        assert page.count('<article class="trial"') == 6
        told = ""
        while "is better" not in told:
            told = outline(viewer.get("/").text).said
            assert "b is better than a on completeness" in told or "being computed" in told
