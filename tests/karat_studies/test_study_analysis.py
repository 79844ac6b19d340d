"""Runs over human studies, from answers to PAS and ECS: what people answered must agree with people."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.analysis.journals import resealed
from tests.karat_studies.copied_runs import Say, copy_of, put_through, several, spoilt
from tests.karat_studies.study_oracle import NAMES

from karat.analysis import Summary, summarize
from karat.analysis.parts import from_json
from karat.errors import BadRun
from karat.execution import Selection
from karat.journal import RunFolder, with_checksum
from karat.records import Sample
from karat_studies.kinds.study.analysis.model import StudyCondition, StudySummary
from karat_studies.kinds.study.analysis.scores import unscored
from karat_studies.replication import pool_pas

NEAR = 0.02


def study_of(summary: Summary) -> StudySummary:
    assert summary.study is not None
    return summary.study


def only(summary: Summary) -> StudyCondition:
    (found,) = study_of(summary).conditions
    return found


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Every shipped study in one run, answered as people did."""
    folder = tmp_path_factory.mktemp("copies")
    studies = folder / "studies"
    studies.mkdir()
    return put_through(folder, studies, several(copy_of(studies, *NAMES)))


@pytest.fixture(scope="module")
def summary(copies: RunFolder) -> Summary:
    return summarize(copies)


def small(folder: Path, say: Say | None = None, *, spoil: int = 0, by: str = "", **more: Any) -> RunFolder:
    """A run over one small study; `spoil`: every so many participants say something else."""
    studies = folder / "studies"
    if not studies.exists():
        studies.mkdir(parents=True)
        copied = several(copy_of(studies, "side_effects"))
        say = say or copied
    assert say is not None
    if spoil:
        say = spoilt(say, every=spoil, by=by)
    return put_through(folder, studies / "side_effects", say, **more)


@pytest.mark.slow
def test_the_human_copies_of_all_studies_agree_with_people_in_every_finding(summary: Summary) -> None:
    found = only(summary)
    assert [one.study for one in found.studies] == NAMES
    for finding in found.findings:
        assert finding.pas.value is not None, (finding.study, finding.name, finding.reason)
        assert finding.ceiling is not None
        assert abs(finding.pas.value - finding.ceiling) <= NEAR, (finding.study, finding.name)
        assert finding.coverage == 1.0
        assert not finding.flagged
        assert not finding.opposed
        for test in finding.tests:
            assert test.same_direction is not False, (finding.study, finding.name, test.id)
    assert (
        found.benchmark.tests_used
        == found.benchmark.tests_planned
        == sum(one.score.tests_used for one in found.studies)
    )
    assert found.benchmark.ecs.value is not None
    assert found.benchmark.ecs.value > 0.99
    people = found.participants
    assert people.planned == people.asked == people.answered == people.parsed
    assert people.stopped == 0


@pytest.mark.slow
def test_levels_are_plain_means_of_what_is_below_them(summary: Summary) -> None:
    found = only(summary)

    def mean(values: Any) -> float:
        known = [one for one in values if one is not None]
        return math.fsum(known) / len(known)

    for study in found.studies:
        assert study.score.pas.value == pytest.approx(mean(one.pas.value for one in study.findings))
    by_domain: dict[str, list[float | None]] = {}
    part = study_of(summary)
    for study in found.studies:
        info = part.info(study.study)
        assert info is not None
        by_domain.setdefault(info.domain, []).append(study.score.pas.value)
    for domain in found.domains:
        assert domain.pas.value == pytest.approx(mean(by_domain[domain.name]))
    assert found.benchmark.pas.value == pytest.approx(mean(one.score.pas.value for one in found.studies))
    for finding in found.findings:
        rows = [test.repetitions[0] for test in finding.tests]
        pooled = pool_pas([row.pas.value for row in rows], [row.human.n_eff for row in rows])
        assert finding.pas.value == pytest.approx(pooled)


@pytest.mark.slow
def test_a_summary_of_studies_survives_json(summary: Summary) -> None:
    assert from_json(msgspec.json.encode(summary), Summary) == summary


@pytest.mark.slow
def test_the_same_run_gives_the_same_numbers(tmp_path: Path) -> None:
    run = small(tmp_path)
    assert msgspec.json.encode(summarize(run)) == msgspec.json.encode(summarize(run))


@pytest.mark.slow
def test_who_was_drawn_again_is_said_with_the_tests_whose_rows_are_of_too_few(summary: Summary) -> None:
    """Second players of the trust game are in eighteen arms by what they were sent."""
    assert study_of(summary).drawn == "participants, groups and the statistics of 10 tests"
    assert only(summary).benchmark.pas.method.endswith(
        "over participants and groups; 10 of 71 tests by their statistics"
    )


def test_an_agent_that_says_nothing_has_no_score(tmp_path: Path) -> None:
    summary = summarize(small(tmp_path, lambda *_: ""))
    found = only(summary)
    assert found.benchmark.pas.value is None
    assert found.benchmark.ecs.value is None
    assert found.benchmark.pas.reason is not None
    assert "coverage 0" in found.benchmark.pas.reason
    assert [one.pas.value for one in found.findings] == [None] * len(found.findings)
    assert found.benchmark.tests_used == 0
    assert found.participants.asked == found.participants.planned > 0
    assert found.participants.parsed == 0
    assert summary.headline.startswith("agent: no score: coverage 0")


@pytest.mark.slow
def test_an_agent_that_answers_half_is_not_scored_below_half_and_flagged_above(tmp_path: Path) -> None:
    half = only(summarize(small(tmp_path / "half", spoil=2)))
    assert half.benchmark.coverage == pytest.approx(0.5, abs=0.02)
    for finding in half.findings:
        assert finding.coverage is not None
        assert finding.flagged
        assert (finding.pas.value is None) == (finding.coverage < 0.5)
    third = summarize(small(tmp_path / "third", spoil=3))
    assert all(one.flagged and one.pas.value is not None for one in only(third).findings)
    assert any("fewer than 80 %" in warning for warning in third.warnings)
    fifth = only(summarize(small(tmp_path / "tenth", spoil=10)))
    assert not any(one.flagged for one in fifth.findings)


def test_every_way_of_not_answering_is_counted_by_field(tmp_path: Path) -> None:
    said = ["I cannot answer that.", "", "choice: 9000000", "one or two or both"]

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        del turn, condition, repetition
        return said[sample.position % len(said)]

    found = only(summarize(small(tmp_path, say)))
    kinds: dict[str, int] = {}
    for study in found.studies:
        for arm in study.arms:
            for counts in arm.unread.values():
                for kind, count in counts.items():
                    kinds[kind] = kinds.get(kind, 0) + count
            assert arm.answers == {}
    assert kinds["refused"] > 0
    assert kinds["missing"] > 0
    assert found.participants.parsed == 0


def test_a_missing_answer_is_never_another_option(tmp_path: Path) -> None:
    """Whoever refuses is in no table: the counts of the tests are those of the answers that were read."""
    found = only(summarize(small(tmp_path, spoil=5, by="I would rather not say.")))
    for finding in found.findings:
        for test in finding.tests:
            table = test.repetitions[0].agent.table
            if table is not None:
                assert sum(map(sum, table)) < found.participants.planned
    read = sum(sum(arm.answers.values()) for study in found.studies for arm in study.arms)
    assert 2 * found.participants.parsed == read  # two fields each
    assert found.participants.asked == found.participants.planned


def test_repetitions_are_experiments_of_their_own_and_scores_their_means(tmp_path: Path) -> None:
    answers = several(copy_of(studies_of(tmp_path), "side_effects"))

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        if repetition == 1 and int(sample.id.rpartition("-")[2]) % 4 == 0:
            return ""
        return answers(sample, turn, condition, repetition)

    found = only(summarize(small(tmp_path, say, repetitions=3)))
    whole = found.benchmark
    assert [one.repetition for one in whole.repetitions] == [0, 1, 2]
    scores = [one.pas for one in whole.repetitions]
    assert None not in scores
    assert whole.pas.value == pytest.approx(math.fsum(one or 0.0 for one in scores) / 3)
    assert whole.repetitions[0].pas == whole.repetitions[2].pas != whole.repetitions[1].pas
    assert whole.pas_sd is not None
    assert whole.pas_sd > 0
    assert whole.coverage == pytest.approx(0.75, abs=0.03)
    assert found.participants.planned == 3 * found.participants.planned // 3
    for finding in found.findings:
        assert [len(test.repetitions) for test in finding.tests] == [3] * len(finding.tests)


def studies_of(folder: Path) -> Path:
    studies = folder / "studies"
    studies.mkdir(parents=True)
    return studies


def test_repetitions_that_answer_alike_do_not_make_a_score_surer(tmp_path: Path) -> None:
    once = only(summarize(small(tmp_path / "once"))).benchmark.pas
    thrice = only(summarize(small(tmp_path / "thrice", repetitions=3))).benchmark.pas
    assert once.se is not None
    assert thrice.se is not None
    assert once.value == pytest.approx(thrice.value)
    assert thrice.se == pytest.approx(once.se, rel=0.3)


@pytest.mark.slow
def test_two_conditions_are_compared_with_the_same_participants(tmp_path: Path) -> None:
    answers = several(copy_of(studies_of(tmp_path), "side_effects"))

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        if condition == "still":
            fields = sample.detail["fields"][turn]
            return json.dumps({name: first_of(field) for name, field in fields.items()})
        return answers(sample, turn, condition, repetition)

    run = small(tmp_path, say, conditions=("human", "twin", "still"))
    shown = study_of(summarize(run))  # `human` is the baseline, and has the highest PAS
    assert [(one.a, one.b) for one in shown.differences] == [("human", "twin"), ("human", "still")]
    assert (shown.baseline, shown.left_out) == ("human", 1)
    other = study_of(summarize(run, baseline="still"))
    assert [(one.a, one.b) for one in other.differences] == [
        ("human", "twin"), ("human", "still"), ("twin", "still"),
    ]  # fmt: skip
    part = study_of(summarize(run, pairs="all"))
    assert (part.baseline, part.left_out) == (None, 0)
    assert part.differences == other.differences
    pairs = {(one.a, one.b): one for one in part.differences}
    assert set(pairs) == {("human", "twin"), ("human", "still"), ("twin", "still")}
    same = pairs["human", "twin"].pas
    assert (same.value, same.se) == (0.0, 0.0)  # paired by draw: nothing is left of the noise
    assert all(one.paired for one in part.differences)
    human, still = part.of("human"), part.of("still")
    assert human is not None
    assert still is not None
    apart = pairs["human", "still"].pas
    if apart.value is not None and human.benchmark.pas.value is not None and still.benchmark.tests_used:
        assert apart.n == still.benchmark.tests_used


def first_of(field: Mapping[str, Any]) -> Any:
    return next(iter(field["options"])) if "options" in field else (field.get("range") or [0, 1])[0]


def test_a_part_of_a_study_says_which_arms_were_not_run(tmp_path: Path) -> None:
    studies = studies_of(tmp_path)
    answers = several(copy_of(studies, "framing"))
    run = put_through(tmp_path, studies / "framing", answers, options={"arms": ["gain", "loss"]})
    found = only(summarize(run))
    scored = [one for one in found.findings if one.pas.value is not None]
    assert len(scored) == 1
    assert scored[0].coverage == 1.0
    without = [one for one in found.findings if one.pas.value is None]
    assert all(one.reason and "was not run" in one.reason for one in without)
    assert all(one.coverage is None and not one.flagged for one in without)
    assert found.benchmark.pas.value == scored[0].pas.value


def test_a_run_that_is_not_complete_counts_whoever_is_missing(tmp_path: Path) -> None:
    run = small(tmp_path, selection=Selection(limit=40))
    whole = only(summarize(run))
    assert whole.participants.planned == 40
    lines = run.journal.read_bytes().splitlines(keepends=True)
    ends = [at for at, line in enumerate(lines, 1) if line.startswith(b'{"event":"score"')]
    (run.path / "journal.jsonl").write_bytes(b"".join(lines[: ends[len(ends) // 2]]) + b'{"event":"ans')
    torn = summarize(run)
    people = only(torn).participants
    assert people.planned == 40
    assert 0 < people.asked < 40
    assert only(torn).studies[0].not_run == 40 - people.asked
    assert torn.status == "crashed"


def test_a_run_without_a_line_in_its_journal_has_no_score(tmp_path: Path) -> None:
    run = small(tmp_path)
    first = run.journal.read_bytes().splitlines(keepends=True)[0]
    run.journal.write_bytes(first)
    found = only(summarize(run))
    assert found.benchmark.pas.value is None
    assert found.participants.asked == 0
    assert found.participants.planned > 0


@pytest.mark.slow
def test_scores_of_a_scoring_that_was_cut_short_do_not_count(tmp_path: Path) -> None:
    """A participant of several turns of whom only the first has a row."""
    studies = studies_of(tmp_path)
    run = put_through(tmp_path, studies / "false_consensus", several(copy_of(studies, "false_consensus")))
    before = only(summarize(run)).participants.asked
    lines = run.journal.read_bytes().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    last = max(at for at, row in enumerate(rows) if row["event"] == "score" and row.get("turn") == 0)
    if rows[last].get("rows", 1) > 1:
        run.journal.write_bytes(b"".join(lines[: last + 1]))
        assert only(summarize(run)).participants.asked < before


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return small(tmp_path_factory.mktemp("asked"))


class TestHostileFolders:
    """What a run folder says is held against itself: it may come from anywhere."""

    @pytest.fixture
    def run(self, asked: RunFolder, tmp_path: Path) -> RunFolder:
        """A copy of the folder, to change."""
        return RunFolder.open(shutil.copytree(asked.path, tmp_path / asked.path.name))

    def test_a_changed_study_is_refused(self, run: RunFolder) -> None:
        (file,) = (run.path / "studies").iterdir()
        file.write_text(file.read_text().replace("n: ", "n: 1"), encoding="utf-8")
        with pytest.raises(BadRun, match="has changed since the run began"):
            summarize(run)

    def test_a_missing_study_is_refused(self, run: RunFolder) -> None:
        shutil.rmtree(run.path / "studies")
        with pytest.raises(BadRun, match="is missing"):
            summarize(run)

    @pytest.mark.parametrize("file", ["../run.json", "/etc/passwd", "..", "", "a/b.yaml", "x\x00.yaml"])
    def test_a_path_out_of_the_folder_is_refused(self, run: RunFolder, file: str) -> None:
        with pytest.raises(BadRun, match="is not the name of a file that karat keeps"):
            summarize(self.changed(run, file=file))

    def test_a_study_that_would_eat_memory_is_refused(self, run: RunFolder) -> None:
        from hashlib import sha256

        bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 9)}]\n" for at in range(9)
        )
        (file,) = (run.path / "studies").iterdir()
        file.write_text(bomb, encoding="utf-8")
        with pytest.raises(BadRun, match="is not a study"):
            summarize(self.changed(run, sha256=sha256(bomb.encode()).hexdigest()))

    def test_sql_that_reads_files_gives_no_score_and_says_why(self, run: RunFolder) -> None:
        from hashlib import sha256

        (file,) = (run.path / "studies").iterdir()
        text = file.read_text(encoding="utf-8")
        head, _, tail = text.partition("findings:")
        evil = (
            f"{head.partition('derive:')[0]}derive: SELECT *, content AS x FROM responses, read_text('/etc/passwd')\n"
        )
        evil += f"findings:{tail}"
        file.write_text(evil, encoding="utf-8")
        found = only(summarize(self.changed(run, sha256=sha256(evil.encode()).hexdigest())))
        assert found.benchmark.pas.value is None
        assert found.benchmark.reason is not None
        assert "may not reach files" in found.benchmark.reason

    @pytest.mark.parametrize(
        "change",
        [
            {"turns": [{"question": "?", "detail": {}}]},
            {"turns": [{"question": "?", "detail": {"arm": "nowhere"}}]},
            {"detail": {"study": "side_effects", "profile": {}, "fields": "x"}},
            {"detail": {"study": "side_effects", "members": 3, "fields": []}},
            {"detail": {"study": "side_effects"}},
        ],
    )
    def test_participants_that_no_study_made_are_refused(self, run: RunFolder, change: dict[str, Any]) -> None:
        lines = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        lines[0] = json.dumps(json.loads(lines[0]) | change, separators=(",", ":"))
        (run.path / "samples.jsonl").write_bytes(resealed("\n".join(lines).encode()))
        with pytest.raises(BadRun, match=r"samples\.jsonl is damaged"):
            summarize(run)

    def test_participants_of_other_studies_are_left_out_and_told(self, run: RunFolder) -> None:
        lines = (run.path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        other = json.loads(lines[0])
        other["detail"]["study"] = "another"
        lines[0] = json.dumps(other, separators=(",", ":"))
        (run.path / "samples.jsonl").write_bytes(resealed("\n".join(lines).encode()))
        summary = summarize(run)
        assert any("1 sample of studies that the run folder does not keep" in one for one in summary.warnings)

    @pytest.mark.parametrize("answers", [{"x": {"y": 1}}, ["A"], {"x": None}, "A"])
    def test_answers_that_no_scorer_gives_are_refused(self, run: RunFolder, answers: Any) -> None:
        lines = run.journal.read_text(encoding="utf-8").splitlines(keepends=True)
        at = next(at for at, line in enumerate(lines) if line.startswith('{"event":"score"'))
        row = json.loads(lines[at])
        row["detail"]["answers"] = answers
        lines[at] = json.dumps(row, separators=(",", ":")) + "\n"
        run.journal.write_bytes(resealed("".join(lines).encode()))
        with pytest.raises(BadRun, match="damaged"):
            summarize(run)

    def test_numbers_that_nobody_can_have_given_are_refused(self, run: RunFolder) -> None:
        lines = run.journal.read_text(encoding="utf-8").splitlines(keepends=True)
        for at, line in enumerate(lines):
            if line.startswith('{"event":"score"'):
                row = json.loads(line)
                row["detail"]["answers"] = dict.fromkeys(row["detail"]["answers"], 1e308)
                lines[at] = json.dumps(row, separators=(",", ":")) + "\n"
        run.journal.write_bytes(resealed("".join(lines).encode()))
        with pytest.raises(BadRun, match="nobody can have given"):
            summarize(run)

    def changed(self, run: RunFolder, **more: Any) -> RunFolder:
        (copy,) = run.info.kept
        info = msgspec.structs.replace(run.info, kept=(msgspec.structs.replace(copy, **more),))
        (run.path / "run.json").write_bytes(with_checksum(msgspec.json.encode(info)))
        return RunFolder.open(run.path)


@pytest.mark.slow
def test_the_run_keeps_its_study_whatever_becomes_of_the_folder(tmp_path: Path) -> None:
    run = small(tmp_path)
    before = msgspec.json.encode(summarize(RunFolder.open(run.path)))
    shutil.rmtree(tmp_path / "studies")
    assert msgspec.json.encode(summarize(RunFolder.open(run.path))) == before


@pytest.mark.slow
def test_persons_of_a_list_are_not_kept_but_their_columns_are(copies: RunFolder, summary: Summary) -> None:
    copy = next(one for one in copies.info.kept if one.name == "alcohol_norms")
    assert copy.columns == {"gender": "text"}
    assert copy.folder is None
    found = next(one for one in only(summary).studies if one.study == "alcohol_norms")
    assert found.score.pas.value is not None


def test_of_many_reasons_three_are_told_and_the_rest_counted() -> None:
    assert unscored(["a", None, "b", "b"]) == "b; a"
    assert unscored("abcd") == "a; b; c; and 1 more reason"
    assert unscored("abcde") == "a; b; c; and 2 more reasons"
    assert unscored([None]) is None
    assert unscored(["coverage 0; no d: not in ECS", "coverage 0"]) == "coverage 0"  # ECS is another matter
    assert unscored(["no d: not in ECS"]) == "no d: not in ECS"


def test_within_subjects_each_person_counts_once_and_once_in_each_arm(tmp_path: Path) -> None:
    folder = tmp_path / "rated"
    (folder / "materials").mkdir(parents=True)
    (folder / "materials" / "x.md").write_text("How much do you like {{ what }}?\n", encoding="utf-8")
    (folder / "study.yaml").write_text(RATED, encoding="utf-8")

    def say(sample: Sample, turn: int, condition: str, repetition: int) -> str:
        number = int(sample.id.rpartition("-")[2])
        if number == 12:
            return ""
        tea = sample.turns[turn].detail["arm"] == "tea"
        return "none" if number == 11 and tea else f"liking: {1 + (number + 2 * tea * (number % 3)) % 7}"

    found = only(summarize(put_through(tmp_path, folder, say)))
    people = found.studies[0].participants
    assert (people.planned, people.asked, people.answered, people.parsed) == (12, 12, 12, 10)
    assert found.participants == people
    assert {one.arm: one.participants.parsed for one in found.studies[0].arms} == {"tea": 10, "rum": 11}


RATED = """\
study: rated
title: Two drinks
source: Nobody (2026)
domain: cognition
participants: {per_arm: human}
design: within
arms:
  tea: {prompt: materials/x.md, values: {what: tea}, fields: {liking: {type: likert, range: [1, 7]}}, n: 12}
  rum: {prompt: materials/x.md, values: {what: rum}, fields: {liking: {type: likert, range: [1, 7]}}, n: 12}
derive: |
  SELECT participant, max(liking) FILTER (arm = 'tea') AS tea, max(liking) FILTER (arm = 'rum') AS rum
  FROM responses GROUP BY participant
findings:
  - id: F1
    claim: Tea is liked.
    tests:
      - {id: T1, kind: ttest_paired, measure: tea, against: rum, expect: greater, human: {t: 3.1, n: 12}}
"""
