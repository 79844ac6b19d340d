"""Run folders whose structure is hostile: each page says clearly what is wrong, and the viewer stays up."""

from __future__ import annotations

import json

import pytest
from tests.analysis.journals import Script, resealed
from tests.karat_viewer.serving import Viewer

from karat.journal.events import PlanInfo


def plan(*conditions: str) -> PlanInfo:
    return PlanInfo(samples=2, conditions=conditions, repetitions=1)


def made(folder, **info):
    script = Script(folder, samples=2, **info)
    for row in range(2):
        for name in ("baseline", "with-docs"):
            script.scored(row, name, value=row + 1)
    script.end()


def rewritten(folder, file, change):
    path = folder / file
    path.write_bytes(resealed(change(path.read_text(encoding="utf-8")).encode()))


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    """Serves a sound run and odd ones."""
    root = tmp_path_factory.mktemp("odd")
    made(root / "sound")
    made(root / "no-conditions", plan=plan())
    made(root / "thousands", plan=plan(*(f"c{at}" for at in range(3000))))
    made(root / "endless-time")
    rewritten(root / "endless-time", "journal.jsonl", lambda text: text.replace('"seconds":1.0', '"seconds":1e308'))
    made(root / "endless-dollars")
    rewritten(root / "endless-dollars", "journal.jsonl", lambda text: text.replace('"dollars":0.0', '"dollars":1e300'))
    made(root / "endless-scores")
    rewritten(root / "endless-scores", "journal.jsonl", lambda text: text.replace('ness":1.0', 'ness":1e308'))
    made(root / "endless-scale")
    told = json.loads((root / "endless-scale" / "run.json").read_bytes())
    told["scorers"][0]["metrics"][0] |= {"low": -1e308, "high": 1e308}
    (root / "endless-scale" / "run.json").write_text(json.dumps(told), encoding="utf-8")
    with Viewer(root) as running:
        yield running.enter()


@pytest.mark.parametrize(
    ("name", "told"),
    [("no-conditions", "it names 0 conditions, expected 1 to 500"), ("thousands", "it names 3000 conditions")],
)
def test_a_plan_that_cannot_be_is_refused_with_a_reason(viewer, name, told):
    heard = viewer.get(f"/runs/{name}")
    assert heard.status == 409
    assert told in heard.text
    assert viewer.get(f"/compare?run={name}&run=sound&a=baseline&b=baseline").status < 500
    assert viewer.get("/runs/sound").status == 200


@pytest.mark.parametrize("name", ["endless-time", "endless-dollars", "endless-scores", "endless-scale"])
def test_numbers_without_measure_are_written_short_or_refused(viewer, name):
    for path in ("", "/samples", "/samples?sort=worst", "/samples/1", "/samples/2", "/reviews"):
        heard = viewer.get(f"/runs/{name}{path}")
        assert heard.status in (200, 409), heard.text
        assert "000,000,000,000,000,000,000" not in heard.text
    told = "".join(viewer.errors)
    assert "Traceback" not in told
    assert "Warning" not in told
