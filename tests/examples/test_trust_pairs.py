"""The example with a game in pairs: it runs as it stands, and receivers answer to what their own sender has sent."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

import karat
from karat.__main__ import main

pytestmark = pytest.mark.needs_kind("study")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "trust-pairs"


def test_the_copy_of_the_printed_pairs_gives_the_published_results(capsys):
    assert main(["check", str(FOLDER / "study"), "--json"]) == 0
    (study,) = json.loads(capsys.readouterr().out)["studies"]
    copies = [(one["layer"], one["tests"], one["apart"]) for one in study["copies"]]
    assert copies == [("statistic", 5, []), ("answers", 5, [])]
    rows = [json.loads(line) for line in (FOLDER / "study" / "copy.jsonl").read_text(encoding="utf-8").splitlines()]
    pairs: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        pairs[row["group"]] |= row["answers"]
    for arm, count, sent, back in (("none", 32, 5.16, 4.66), ("history", 28, 5.36, 6.46)):
        own = [pair for name, pair in pairs.items() if name.startswith(arm)]
        assert len(own) == count
        assert round(sum(pair["sent"] for pair in own) / count, 2) == sent
        assert round(sum(pair["back"] for pair in own) / count, 2) == back


@pytest.mark.slow
def test_receivers_are_asked_what_their_own_sender_sent(tmp_path):
    assert main(["run", str(FOLDER / "experiment.yaml"), "--results", str(tmp_path), "-q"]) == 0
    (folder,) = tmp_path.iterdir()
    summary = karat.summarize(folder)
    assert summary.study is not None
    fair, selfish = (summary.study.of(name) for name in ("fair", "selfish"))
    assert fair is not None
    assert selfish is not None
    assert [one.participants.parsed for one in (fair, selfish)] == [120, 120]
    lines = (folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [line for line in map(json.loads, lines) if line["event"] == "answer" and line["condition"] == "fair"]
    assert len(answers) == 60
    for answer in answers:
        sent, back = (float(re.findall(r"[\d.]+", reply["text"])[0]) for reply in answer["replies"])
        assert back == 1.5 * sent  # half of what has arrived
