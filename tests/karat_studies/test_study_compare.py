"""Two runs over human studies, by participant and test: also the same study in other names and amounts."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.karat_studies.copied_runs import Say, copy_of, put_through, several
from tests.karat_studies.study_story import story

from karat.analysis import Comparison, compare, summarize
from karat.journal import RunFolder
from karat.journal.codec import with_checksum
from karat.records import Sample
from karat_studies.kinds.study.analysis.comparison import StudyComparison, StudyPairing
from karat_studies.kinds.study.samples import random_reply


def as_people(folder: Path, study: str) -> tuple[Path, Say]:
    """The study, and what people's copy says: amounts in whatever figures were shown."""
    studies = folder / "studies"
    studies.mkdir(parents=True)
    answers = several(copy_of(studies, study))

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        said = json.loads(answers(sample, turn, condition, repetition))
        fields = sample.detail["fields"][turn]
        return json.dumps({name: _shown(value, fields[name]) for name, value in said.items()})

    return studies / study, say


def _shown(value: Any, field: Mapping[str, Any]) -> Any:
    return round(value * field.get("scale", 1), 9) if isinstance(value, (int, float)) else value


def named(run: RunFolder, name: str) -> RunFolder:
    """With an id that does not change from test to test."""
    return RunFolder(run.path, msgspec.structs.replace(run.info, run=name, name="study"))


def read_by_other_rules(run: RunFolder) -> RunFolder:
    """The run as if an older karat had read its answers."""
    scoring = run.scorers()[0].scoring
    lines = [re.sub(rb',"crc":"\w+"}$', b"}", line) for line in run.journal.read_bytes().splitlines()]
    lines = [with_checksum(line.replace(scoring.encode(), b"0" * 16), end=b"\n") for line in lines]
    run.journal.write_bytes(b"".join(lines))
    scorers = [msgspec.structs.replace(info, scoring="0" * 16) for info in run.info.scorers]
    return RunFolder(run.path, msgspec.structs.replace(run.info, run="00000000", scorers=tuple(scorers)))


@pytest.mark.slow
def test_runs_whose_answers_were_read_by_other_rules_say_so(tmp_path: Path) -> None:
    path, say = as_people(tmp_path, "trust")
    runs = [put_through(tmp_path / name, path, say) for name in ("one", "two")]
    said = "answers were read by other rules in the two runs: read both alike with `karat score`"
    assert said not in compare(*runs).warnings
    assert said in compare(runs[0], read_by_other_rules(runs[1])).warnings


def only(found: Comparison) -> StudyPairing:
    assert found.study is not None
    (pairing,) = found.study.pairings
    return pairing


@pytest.mark.slow
@pytest.mark.parametrize("study", ["bargaining", "side_effects"])
def test_who_does_the_same_in_other_names_and_amounts_has_no_difference(tmp_path: Path, study: str) -> None:
    path, say = as_people(tmp_path, study)
    plain = put_through(tmp_path / "plain", path, say)
    other = put_through(tmp_path / "other", path, say, options={"relabel": True})
    found = only(compare(plain, other))
    assert (found.a.form, found.b.form) == ("as written", "relabelled")
    assert found.paired
    assert found.pas.value == pytest.approx(0, abs=1e-9)
    assert (found.pas.low, found.pas.high) == pytest.approx((0, 0), abs=1e-6)
    assert found.ecs.value == pytest.approx(0, abs=1e-9)
    assert [one.flipped for one in found.tests] == [False] * len(found.tests)
    for test in found.tests:
        assert test.change.value == pytest.approx(0, abs=1e-9)
        assert test.change.se == pytest.approx(0, abs=1e-6)


@pytest.mark.slow
def test_who_knows_the_paper_alone_is_found_out(tmp_path: Path, golden: Any) -> None:
    """In the original as people did; in other words the same answer to every story."""
    path, as_published = as_people(tmp_path, "side_effects")

    def without_memory(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        del turn, condition, repetition
        number = int(sample.id.rpartition("-")[2])
        calls = "yes" if "harm" not in sample.id and number % 4 else "no"
        return json.dumps({"blame": 3, "praise": 3 + number % 2, "intentional": calls})

    plain = named(put_through(tmp_path / "plain", path, as_published), "aaaaaaaa")
    other = named(put_through(tmp_path / "other", path, without_memory, options={"relabel": True}), "bbbbbbbb")
    compared = compare(plain, other)
    found = only(compared)
    assert found.ecs.high is not None and found.ecs.high < 0
    flips = [one.flipped for one in found.tests]
    assert flips == sorted(flips, reverse=True)
    assert sum(flips) >= 2
    moved = [abs(one.change.value or 0) for one in found.tests if one.flipped]
    assert moved == sorted(moved, reverse=True)
    assert "the other direction" in compared.headline
    golden("compare-study.txt", str(compared))


@pytest.mark.slow
def test_noise_around_nothing_changes_signs_and_flips_no_test(tmp_path: Path) -> None:
    path, _ = as_people(tmp_path, "side_effects")

    def at_random(seed: str) -> Say:
        return lambda sample, turn, *_: random_reply(sample, turn, random.Random(f"{seed}/{sample.id}/{turn}"))

    first, second = (put_through(tmp_path / seed, path, at_random(seed)) for seed in ("a", "b"))
    compared = compare(first, second)
    found = only(compared)
    for one in found.tests:
        assert one.d_a is not None and one.d_b is not None
        assert one.change.low is not None and one.change.high is not None
        assert one.sign_changed == (one.d_a * one.d_b < 0)
        assert one.flipped == (one.sign_changed and not one.change.low <= 0 <= one.change.high)
    assert any(one.sign_changed for one in found.tests)
    assert not any(one.flipped for one in found.tests)
    assert "direction" not in compared.headline
    assert "    (sign changed) side_effects/" in str(compared)
    assert "0 of 4 tests in the other direction" in str(compared)
    assert "holds 0 or is not known: it may be chance, and is not counted" in str(compared)


@pytest.mark.slow
def test_two_conditions_of_a_run_differ_as_its_own_report_says(tmp_path: Path) -> None:
    run = story(tmp_path)
    summary = summarize(run)
    assert summary.study is not None
    wanted = next(one for one in summary.study.differences if (one.a, one.b) == ("like", "shy"))
    found = only(compare(run, run, condition_a="like", condition_b="shy"))
    assert (found.pas, found.ecs, found.paired) == (wanted.pas, wanted.ecs, True)
    assert found.b.participants.parsed < found.a.participants.parsed
    assert {one.study for one in found.studies} == {"representativeness", "side_effects"}
    assert msgspec.json.decode(msgspec.json.encode(found), type=StudyPairing) == found


@pytest.mark.slow
def test_a_study_alone_and_among_others_has_the_same_participants(tmp_path: Path) -> None:
    path, say = as_people(tmp_path / "one", "side_effects")
    alone = put_through(tmp_path / "alone", path, say)
    among = story(tmp_path / "several")
    found = compare(alone, among, condition_a="agent", condition_b="like")
    assert found.study is not None
    assert (found.study.only_a, found.study.only_b) == ((), ("representativeness",))
    pairing = only(found)
    assert pairing.paired
    assert pairing.pas.value == pytest.approx(0, abs=1e-9)
    assert len(pairing.tests) == 4
    assert "only in the second: representativeness" in str(found)


@pytest.mark.slow
def test_other_persons_are_not_paired(tmp_path: Path) -> None:
    path, say = as_people(tmp_path, "side_effects")
    first = put_through(tmp_path / "first", path, say)
    second = put_through(tmp_path / "second", path, say, options={"seed": 7})
    found = compare(first, second)
    assert not only(found).paired
    assert only(found).pas.se is not None and only(found).pas.se > 0.01
    assert any("other participants, or other tests" in warning for warning in found.warnings)
    assert "other participants: drawn apart" in str(found)


@pytest.mark.slow
def test_of_unequal_repetitions_the_first_ones_are_compared(tmp_path: Path) -> None:
    path, say = as_people(tmp_path, "side_effects")
    once = put_through(tmp_path / "once", path, say)
    twice = put_through(tmp_path / "twice", path, say, repetitions=2)
    found = compare(once, twice)
    assert only(found).repetitions == 1
    assert any("the first 1 repetition of each" in warning for warning in found.warnings)


def test_what_nobody_answered_cannot_be_compared(tmp_path: Path) -> None:
    path, say = as_people(tmp_path, "side_effects")
    first = put_through(tmp_path / "first", path, say)
    silent = put_through(tmp_path / "silent", path, lambda *_: "")
    found = compare(first, silent)
    assert found.headline == "No test has a score on both sides: nothing can be compared"
    assert isinstance(found.study, StudyComparison)
    assert only(found).pas.value is None
    assert [one.change.reason for one in only(found).tests] == ["no effect on one side"] * 4
