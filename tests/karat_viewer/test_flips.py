"""All questions on which two sides differ: the comparison's own, in order, page by page, from the indexes."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from tests.analysis.journals import SCALE, sample, table
from tests.karat_viewer.serving import Viewer
from tests.karat_viewer.test_pages import MARKS, SCRIPT, outline

from karat.analysis import compare
from karat.formats import signed
from karat.records import Metric
from karat_viewer.queries import PAGE

MANY = 130
SECONDS = Metric(name="seconds", low=0, direction="lower")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    up = [[float(1 + row % 3), float(1 + row % 2)] for row in range(MANY)]
    down = [[float(1 + row % 5), float(5 - row % 4)] for row in range(MANY)]
    down[7] = [None, 2.0]
    down[8] = [None, None]
    table(folder / "one", {"a": up, "b": down}, run="aaaa1111", name="one")
    others = [sample(row, digest="ff" * 16 if row < 5 else None) for row in range(40, MANY)]
    others[:5] = [sample(row, digest="ff" * 16) for row in range(40, 45)]
    table(folder / "two", {"b": [[4.0, 3.0]] * 90}, samples=others, run="bbbb2222", name="two")
    bad = [sample(row, name=f"{SCRIPT}{MARKS} {row}") for row in range(2)]
    spoilt = {SCRIPT: [[1.0], [2.0]], 'b" onfocus="x': [[3.0], [1.0]]}
    table(
        folder / "hostile",
        spoilt,
        samples=bad,
        metric=Metric(name=SCRIPT, low=1, high=5, kind="ordinal"),
        run="dddd4444",
    )
    table(folder / "less", {"a": [[3.0], [2.0]], "b": [[1.0], [4.0]]}, metric=SECONDS, run="cccc3333", name="less")
    return folder


@pytest.fixture(scope="module")
def viewer(results):
    with Viewer(results) as running:
        yield running.enter()


def rows(viewer, query: str) -> list[tuple[str, float]]:
    """Id and difference of every row of every page."""
    found, page = [], 0
    while True:
        heard = viewer.get(f"/compare/flips?{query}&page={page}")
        assert heard.status == 200, heard.text
        told = outline(heard.text)
        lines = heard.text.split("<tbody>")[1].split("</tbody>")[0].split("<tr>")[1:] if "<tbody>" in heard.text else []
        for line in lines:
            one = outline_of(line)
            found.append(one)
        assert len(lines) <= PAGE
        if not any(one.get("rel") == "next" for one in told.all("a")):
            return found
        assert len(lines) == PAGE
        page += 1


def outline_of(line: str) -> tuple[str, float]:
    name = line.split('class="below"><bdi>')[1].split("<", maxsplit=1)[0]
    value = line.split('class="v">')[1].split("<", maxsplit=1)[0]
    return name, float(value.replace("−", "-"))


def of(run, a: str, b: str) -> dict[str, float]:
    """What the summary says of each question, of one run."""
    from karat.analysis import summarize

    summary = summarize(run)
    columns = {column.condition: column.mean for column in summary.table_of_samples.columns}
    both = zip(summary.table_of_samples.ids, columns[a], columns[b], strict=True)
    known = {name: two - one for name, one, two in both if one is not None and two is not None}
    return {name: change for name, change in known.items() if abs(change) > 1e-12}


def test_every_question_that_differs_is_listed_once_the_worst_first(viewer, results):
    from karat.journal import RunFolder

    run = RunFolder.open(results / "one")
    wanted = of(run, "a", "b")
    [pairing] = compare(run, run, condition_a="a", condition_b="b").pairings
    assert len(wanted) == pairing.better + pairing.worse > 2 * PAGE
    found = rows(viewer, "run=one&a=a&b=b&metric=completeness")
    assert {name: signed(change) for name, change in found} == {name: signed(change) for name, change in wanted.items()}
    assert len(found) == len(wanted)
    assert [change for _, change in found] == sorted(change for _, change in found)
    best = [change for _, change in rows(viewer, "run=one&a=a&b=b&metric=completeness&order=best")]
    assert best == sorted(best, reverse=True)
    largest = [abs(change) for _, change in rows(viewer, "run=one&a=a&b=b&metric=completeness&order=largest")]
    assert largest == sorted(largest, reverse=True)


def test_the_comparison_leads_to_all_of_them(viewer):
    page = outline(viewer.get("/compare?run=one&a=a&b=b").text)
    [path] = [one["href"] for one in page.all("a") if one.get("href", "").startswith("/compare/flips")]
    assert path == "/compare/flips?run=one&a=a&b=b&metric=completeness"
    told = " ".join(outline(viewer.get(path).text).said.split())
    assert f"{SCALE.name} Theme" in told
    paths = [one["href"] for one in outline(viewer.get(path).text).all("a") if "data-item" in one]
    assert len(paths) == PAGE
    assert all(one.startswith("/runs/one/samples/") for one in paths)


def test_two_runs_are_compared_where_id_and_content_are_the_same(viewer, results):
    from karat.journal import RunFolder

    one, two = (RunFolder.open(results / name) for name in ("one", "two"))
    found = compare(one, two)
    [pairing] = found.pairings
    assert (found.changed, found.only_a) == (5, 40)
    listed = rows(viewer, "run=one&run=two&a=b&b=b&metric=completeness")
    assert len(listed) == pairing.better + pairing.worse
    assert {flip.sample: signed(flip.difference) for flip in pairing.flips}.items() <= {
        name: signed(change) for name, change in listed
    }.items()
    page = outline(viewer.get("/compare/flips?run=one&run=two&a=b&b=b&metric=completeness").text)
    assert "in the second run" in page.said
    assert {"/runs/one/samples/46", "/runs/two/samples/6"} <= {one.get("href") for one in page.all("a")}
    [path] = [
        one["href"] for one in outline(viewer.get("/compare?run=one&run=two").text).all("a")
        if one.get("href", "").startswith("/compare/flips")
    ]  # fmt: skip
    assert path == "/compare/flips?run=one&run=two&a=b&b=b&metric=completeness"


def test_where_less_is_better_more_is_worse(viewer):
    assert rows(viewer, "run=less&a=a&b=b&metric=seconds") == [("1", 2.0), ("0", -2.0)]
    assert "1 gained, 1 lost" in viewer.get("/compare/flips?run=less&a=a&b=b&metric=seconds").text


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("", 400, "Select two runs"),
        ("run=one", 404, "no such condition or metric"),
        ("run=one&a=a&b=no-such&metric=completeness", 404, "no such condition or metric"),
        ("run=one&a=a&b=b&metric=no-such", 404, "no such condition or metric"),
        ("run=one&run=less&a=a&b=b&metric=completeness", 404, "no such condition or metric"),
        ("run=one&a=a&b=a&metric=completeness", 200, "No question differs."),
        ("run=one&a=a&b=b&metric=completeness&page=99", 200, "gained"),
        ("run=no-such&a=a&b=b&metric=completeness", 409, "cannot be shown"),
    ],
)
def test_what_cannot_be_compared_is_said(viewer, query, status, told):
    heard = viewer.get(f"/compare/flips?{query}")
    assert heard.status == status
    assert told in heard.text


def test_names_that_are_hostile_are_text(viewer):
    query = urlencode({"run": "hostile", "a": SCRIPT, "b": 'b" onfocus="x', "metric": SCRIPT})
    heard = viewer.get(f"/compare/flips?{query}")
    assert heard.status == 200, heard.text
    page = outline(heard.text)
    assert not page.all("img")
    assert page.said.count("<script>alert(1)</script>") > 3
    assert "\x1b" not in heard.text
    assert "\u202e" not in heard.text
    assert "1 gained, 1 lost" in page.said


@pytest.mark.slow
def test_means_are_written_as_means_and_shares_as_shares(tmp_path):
    share = Metric(name="right", low=0, high=1, kind="share")
    table(tmp_path / "run", {"a": [[0.0], [1.0]], "b": [[0.2], [1.0]]}, metric=share)
    with Viewer(tmp_path / "run") as viewer:
        text = viewer.enter().get("/compare/flips?run=run&a=a&b=b&metric=right").text
    assert "0.0 % → 20.0 %" in text
