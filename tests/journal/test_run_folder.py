"""What a run folder says of itself: what each resume added, what it keeps, and why it cannot be read."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from tests.analysis.journals import JUDGE, Script, resealed

from karat.errors import BadRun
from karat.journal import (
    CHECKSUMS_SINCE,
    FORMAT_VERSION,
    Horizon,
    KeptFile,
    PlanInfo,
    Resume,
    RunFolder,
    ServerInfo,
    create_run,
    verify,
)
from karat.journal.folder import server_changes, with_conditions_of
from karat.records import Answer, Reply, ServerEvent, WorkspaceChanges
from karat.redact import Redactor
from karat.tool_use import Offered

STUDY = b"schema: one\n"


def kept(name: str = "anchoring", data: bytes = STUDY, **changes: object) -> KeptFile:
    fields = {"file": f"{name}.yaml", "sha256": hashlib.sha256(data).hexdigest(), "digest": "d"}
    return KeptFile(name=name, **{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "run", format=CHECKSUMS_SINCE)


def test_a_plan_counts_one_trial_for_each_sample_condition_and_repetition():
    assert PlanInfo(samples=5, conditions=("a", "b", "c"), repetitions=2).trials == 30


def test_a_folder_of_results_that_is_a_file_is_named(tmp_path: Path):
    (tmp_path / "results").write_text("mine")
    with pytest.raises(BadRun, match="the folder of results cannot be made: "):
        create_run(
            tmp_path / "results" / "deep",
            Script(tmp_path / "run").end().info,
            experiment="",
            samples=[],
            redact=Redactor({}),
        )


@pytest.mark.parametrize("name", ["journal.jsonl", "run.json", "journal.jsonl.zst"])
def test_a_run_may_be_named_by_one_of_its_files(script: Script, name: str):
    run = script.end()
    assert RunFolder.open(run.path / name).path == run.path


@pytest.mark.parametrize("name", ["run.json", "journal.jsonl", "samples.jsonl"])
def test_a_folder_in_place_of_a_file_of_the_run_is_named(script: Script, name: str):
    run = script.end()
    (run.path / name).unlink()
    (run.path / name).mkdir()
    with pytest.raises(
        BadRun, match=f"{name} is a folder, not a regular file; replace it by a copy of the run's own file"
    ):
        list(RunFolder.open(run.path, look=False).samples())
        list(run.events())


def test_a_file_that_may_not_be_read_says_why(script: Script):
    run = script.end()
    (run.path / "samples.jsonl").unlink()
    (run.path / "samples.jsonl").symlink_to("samples.jsonl")
    with pytest.raises(BadRun, match=r"samples\.jsonl "):
        list(run.samples())


def test_a_run_without_its_samples_says_so(script: Script):
    run = script.end()
    (run.path / "samples.jsonl").unlink()
    with pytest.raises(BadRun, match=r"samples\.jsonl is missing"):
        list(run.samples())
    assert [damage.reason for damage in verify(run.path).damages] == ["it is missing"]


@pytest.mark.parametrize(("old", "new"), [(b"golden", b"Golden"), (b'"digest":"', b'"digest":1,"x":"')])
def test_a_damaged_line_of_samples_is_named_by_its_number(script: Script, old: bytes, new: bytes):
    run = script.end()
    first, second = (run.path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    changed = second.replace(old, new)
    if b'"x"' in changed:
        changed = resealed(changed)
    (run.path / "samples.jsonl").write_bytes(first + changed)
    with pytest.raises(BadRun, match=r"samples\.jsonl, line 2: .*; restore the file from a copy"):
        list(run.samples())


def test_only_the_wanted_samples_are_decoded(script: Script):
    run = script.end()
    first, second = (run.path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (run.path / "samples.jsonl").write_bytes(resealed(first.replace(b'"digest":"', b'"digest":1,"x":"')) + second)
    assert [sample.id for sample in run.samples(lines={1})] == ["1"]


def test_a_journal_that_is_not_there_has_no_events_and_no_last_line(script: Script):
    run = script.end()
    run.journal.unlink()
    assert (run.journal_size, list(run.events()), run.last_line(), run.status()) == (0, [], b"", "crashed")
    assert run.server_events() == ()


def test_a_damaged_last_line_is_named_by_its_number(script: Script):
    script.answer(0, "baseline")
    run = script.end()
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole.replace(b'"reason":"done"', b'"reason":"gone"'))
    with pytest.raises(BadRun, match=r"line 3 of the journal is damaged \(its checksum does not match\)"):
        run.status()


def test_a_damaged_line_is_named_by_its_number_wherever_reading_begins(script: Script):
    script.answer(0, "baseline")
    script.answer(1, "baseline")
    run = script.end()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:2], lines[2].replace(b"Answer 1", b"Answer 7"), lines[3]]))
    with pytest.raises(BadRun, match="line 3 of the journal is damaged"):
        list(run.lines(start=len(lines[0] + lines[1])))


def test_lines_are_read_from_a_byte_up_to_a_byte(script: Script):
    for row in range(2):
        script.answer(row, "baseline")
    run = script.end()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    start = len(lines[0])
    stop = start + len(lines[1] + lines[2])
    found = list(run.numbered_lines(start=start, stop=stop))
    assert found == [(1, start, lines[1][:-1]), (2, start + len(lines[1]), lines[2][:-1])]
    assert run.journal_size == sum(map(len, lines))


def test_what_servers_did_is_found_in_a_journal_that_grows(script: Script):
    changed = ServerEvent(server="docs", what="changed", added=("find",))
    script.write(changed)
    script.answer(0, "baseline")
    run = script.end()
    assert run.server_events() == run.server_events() == (changed,)
    renewed = ServerEvent(server="docs", what="renewed")
    with run.journal.open("ab") as journal:
        journal.write(resealed(msgspec.json.encode(renewed)))
    assert run.server_events() == (changed, renewed)


def test_what_a_server_did_is_not_read_from_a_damaged_line(script: Script):
    script.write(ServerEvent(server="docs", what="renewed"))
    run = script.end()
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole.replace(b'"docs"', b'"dogs"'))
    with pytest.raises(BadRun, match="line 2 of the journal is damaged"):
        run.server_events()
    run.journal.write_bytes(resealed(whole.replace(b'"renewed"', b'"gone"')))
    with pytest.raises(BadRun, match="line 2 of the journal is damaged"):
        run.server_events()


def test_a_resume_adds_conditions_scorers_and_servers_and_changes_none(script: Script):
    first = script.info
    harder = msgspec.structs.replace(JUDGE, scoring="77" * 16, rubric="harder")
    server = ServerInfo(name="docs", digest="9", tools=("find",))
    script.resume(
        plan=PlanInfo(samples=2, conditions=("with-docs", "new"), repetitions=3),
        conditions={"with-docs": "another", "new": "cc"},
        agents={"new": "bb"},
        prompts={"new": "22"},
        condition_servers={"new": ("docs",)},
        condition_offers={"new": (Offered(kind="skill", name="search"),)},
        servers=(server,),
    )
    script.resume(harder, JUDGE)
    run = script.end(command="score")
    assert run.plan() == PlanInfo(samples=2, conditions=("baseline", "with-docs", "new"), repetitions=3)
    info = run.widened_info()
    assert info.conditions == {**first.conditions, "new": "cc"}
    assert info.prompts["new"] == "22"
    assert info.condition_servers == {"new": ("docs",)}
    assert info.condition_offers == {"new": (Offered(kind="skill", name="search"),)}
    assert info.servers == run.changed_servers() == (server,)
    assert run.digests() == {
        **{name: (first.conditions[name], "aa" * 16) for name in first.conditions},
        "new": ("cc", "bb"),
    }
    assert run.scorers() == (harder, JUDGE), "the newest last"


def test_a_condition_whose_agent_is_not_recorded_has_no_digest_of_it(script: Script):
    script.resume(conditions={"new": "cc"})
    assert script.end().digests()["new"] == ("cc", "")


def test_a_server_is_that_of_the_first_part_that_has_it(script: Script):
    before, after = ServerInfo(name="docs", digest="1"), ServerInfo(name="docs", digest="2")
    other = ServerInfo(name="web", digest="3")
    first = msgspec.structs.replace(script.end().info, servers=(before,))
    assert with_conditions_of(first, Resume(at="", versions={}, host="", pid=1, servers=(after, other))).servers == (
        before,
        other,
    )


def test_scoring_does_not_change_the_status_of_a_run_that_was_resumed_and_killed(script: Script):
    script.pause("budget")
    script.resume()
    script.resume(JUDGE)
    assert script.end(command="score").status() == "crashed"


@pytest.mark.parametrize("reason", ["done", "interrupted", "max_failures", "budget", "no_workers"])
def test_the_status_is_why_the_last_part_of_the_run_ended(script: Script, reason: str):
    script.pause(reason)
    script.resume(JUDGE)
    assert script.end(command="score").status() == reason


OFFER = ServerInfo(name="docs", digest="1", tools_digest="t", protocol="2025-06-18")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, []),
        ({"name": "new"}, []),
        ({"tools_digest": None, "fault": "down"}, []),
        ({"tools_digest": "u"}, ["offered other tools when the run was resumed than at its start"]),
        ({"protocol": "2026-01-01"}, ["spoke protocol 2025-06-18 at the start, and then 2026-01-01"]),
        (
            {"protocol": "2026-01-01", "tools_digest": "u"},
            ["spoke protocol 2025-06-18 at the start, and then 2026-01-01"],
        ),
    ],
)
def test_a_change_of_a_server_is_one_sentence(changes: dict[str, str], says: list[str]):
    after = msgspec.structs.replace(OFFER, **changes)
    assert list(server_changes([OFFER], [after])) == [(after, f"MCP server 'docs' {text}") for text in says]


def test_a_server_that_did_not_answer_at_first_or_had_no_recorded_protocol_has_not_changed():
    down = msgspec.structs.replace(OFFER, tools_digest=None)
    old = msgspec.structs.replace(OFFER, protocol=None)
    assert list(server_changes([down], [OFFER])) == []
    assert list(server_changes([old], [OFFER])) == []
    other = msgspec.structs.replace(OFFER, tools_digest="u")
    assert [server for server, _ in server_changes([old], [other])] == [other]


def test_a_kept_file_is_the_one_that_was_run_last(script: Script):
    later = b"schema: two\n"
    script.resume(kept=(kept("framing"), kept(data=later)))
    run = script.end()
    run.write_kept({"anchoring.yaml": later, "framing.yaml": STUDY})
    assert run.kept() == (kept("framing"), kept(data=later))
    assert [run.kept_file(copy) for copy in run.kept()] == [STUDY, later]
    assert verify(run.path).ok
    (run.path / "studies" / "anchoring.yaml").write_bytes(STUDY)
    with pytest.raises(BadRun, match=r"studies/anchoring\.yaml is missing, or has changed since the run began"):
        run.kept_file(kept(data=later))
    (run.path / "studies" / "framing.yaml").unlink()
    assert [(damage.file, damage.line, damage.remedy) for damage in verify(run.path).damages] == [
        ("studies/framing.yaml", None, "restore it from a copy"),
        ("studies/anchoring.yaml", None, "restore it from a copy"),
    ]


@pytest.mark.parametrize("name", ["../secret.yaml", "/etc/passwd", "a.yml", "A.yaml", ".yaml", "a" * 81 + ".yaml"])
def test_a_kept_file_is_read_in_its_folder_only(script: Script, name: str):
    with pytest.raises(BadRun, match="is not the name of a file that karat keeps"):
        script.end().kept_file(kept(file=name))


def test_a_run_that_keeps_nothing_has_no_folder_for_it(script: Script):
    run = script.end()
    run.write_kept({})
    assert not (run.path / "studies").exists()


def answered_with(script: Script, changes: WorkspaceChanges) -> RunFolder:
    script.write(
        Answer(**script.place(0, "baseline", 0), replies=(Reply(text="a"),), started="", seconds=1, workspace=changes)
    )
    return script.end()


@pytest.mark.parametrize(
    ("file", "data", "reason"),
    [
        ("w.tar.gz", b"whole", None),
        ("w.tar.gz", b"other", "it has changed since the answer was given"),
        ("w.tar.gz", None, "it is missing"),
        ("../journal.jsonl", b"whole", "it is missing"),
    ],
)
def test_the_archive_of_a_workspace_is_verified(script: Script, file: str, data: bytes | None, reason: str | None):
    digest = hashlib.sha256(b"whole").hexdigest()
    run = answered_with(script, WorkspaceChanges(file=file, sha256=digest, base="", changed=1, removed=0, bytes=5))
    if data is not None:
        (run.path / "workspaces").mkdir()
        (run.path / "workspaces" / "w.tar.gz").write_bytes(data)
    found = [(damage.file, damage.reason) for damage in verify(run.path).damages]
    assert found == ([] if reason is None else [(f"workspaces/{file}", reason)])


def test_an_archive_of_a_workspace_that_is_a_folder_is_damage(script: Script):
    run = answered_with(script, WorkspaceChanges(file="w", sha256="0", base="", changed=1, removed=0, bytes=5))
    (run.path / "workspaces" / "w").mkdir(parents=True)
    (damage,) = verify(run.path).damages
    assert (damage.file, damage.reason.partition(";")[0]) == (
        "workspaces/w",
        "workspaces/w is a folder, not a regular file",
    )


def test_a_journal_of_another_run_is_damage_and_one_of_a_newer_format_is_no_finding(script: Script):
    run = script.end()
    whole = run.journal.read_bytes()
    run.journal.write_bytes(resealed(whole.replace(b"1234abcd", b"deadbeef", 1)))
    found = verify(run.path)
    assert (found.damages[0].line, found.damages[0].reason) == (1, "it is of run deadbeef")
    assert found.deletion is None, "without its first line it is no journal"
    run.journal.write_bytes(resealed(whole.replace(b'"format":2', b'"format":%d' % (FORMAT_VERSION + 1), 1)))
    with pytest.raises(BadRun, match="update karat"):
        verify(run.path)


def test_a_run_of_a_newer_karat_is_not_called_damaged(script: Script):
    run = script.end()
    file = run.path / "run.json"
    file.write_bytes(file.read_bytes().replace(b'"format":2', b'"format":9', 1))
    with pytest.raises(BadRun, match="update karat"):
        verify(run.path)


@pytest.mark.parametrize(("written", "read"), [(1, True), (2, False), (3, False)])
def test_only_a_run_json_from_before_checksums_may_lack_its_own(tmp_path: Path, written: int, read: bool):
    run = Script(tmp_path / "run", format=written).end()
    (run.path / "run.json").write_bytes(msgspec.json.encode(run.info))
    if read:
        assert RunFolder.open(run.path).info == run.info
    else:
        with pytest.raises(BadRun, match=r"run.json is damaged \(it has no checksum\); restore it from a copy"):
            RunFolder.open(run.path)


def test_a_folder_that_holds_no_run_is_not_verified(tmp_path: Path):
    with pytest.raises(BadRun, match="is not a run folder"):
        verify(tmp_path)


def test_of_a_run_whose_run_json_is_damaged_nothing_else_is_read(script: Script):
    run = script.end()
    (run.path / "run.json").write_bytes(b"{")
    found = verify(run.path)
    assert (found.run, found.lines, len(found.damages)) == (None, 0, 1)
    assert (found.ok, found.deletion) == (False, None)
    assert found.damages[0].remedy == "restore it from a copy; the journal cannot be read without it"


def test_lines_whose_loss_nothing_makes_good_are_not_deleted(script: Script):
    script.write(
        Horizon(
            questions=2, order="o", seed=1, repetitions=1, pairs=(), metric="m", scorer="s", scoring="0", alpha=0.05
        )
    )
    script.answer(0, "baseline")
    run = script.end()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"seed":1', b'"seed":2')
    lines[2] = lines[2].replace(b"Answer 0", b"Answer 7")
    run.journal.write_bytes(b"".join(lines))
    found = verify(run.path)
    assert [damage.remedy.partition(" ")[0] for damage in found.damages] == ["restore", "delete"]
    assert found.deletion is None


def test_two_lines_whose_newline_is_lost_are_not_deleted(script: Script):
    script.answer(0, "baseline")
    script.answer(1, "baseline")
    run = script.end()
    lines = run.journal.read_bytes().splitlines()
    run.journal.write_bytes(b"\n".join([lines[0], lines[1] + lines[2], lines[3], b""]))
    found = [damage for damage in verify(run.path).damages if damage.line is not None]
    assert [(damage.line, damage.remedy) for damage in found] == [
        (2, "restore the journal from a copy: the newline between two lines is lost")
    ]


def test_a_last_line_that_was_torn_and_lines_that_nothing_covers_yet_are_notes(script: Script):
    script.answer(0, "baseline")
    run = script.stop()
    run.journal.write_bytes(run.journal.read_bytes() + b'{"event":"ans')
    found = verify(run.path)
    assert found.ok
    covers, torn = found.notes
    assert covers == ("journal.jsonl: 2 lines at its end are not covered yet; the next resume or scoring covers them")
    assert torn.startswith("journal.jsonl: the last line is incomplete, as a killed run leaves it; a resume removes it")


def test_a_journal_that_is_no_file_is_damage_with_its_remedy(script: Script):
    run = script.end()
    run.journal.unlink()
    os.mkfifo(run.journal)
    found = verify(run.path).damages
    assert [damage.file for damage in found] == ["journal.jsonl"]
    assert found[0].remedy == "replace it by a copy of the run's own file"
