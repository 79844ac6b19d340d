"""What people say of answers is appended, durable, and never mixed up between writers."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import msgspec
import pytest
from tests.analysis.journals import table

from karat.errors import BadRun
from karat.journal import Label, Labels, RunFolder, add_label, labels_path, read_labels, verify


@pytest.fixture
def run(tmp_path) -> RunFolder:
    return table(tmp_path / "run", {"baseline": [[3.0], [4.0]]})


def label(who: str = "ann", trial: str = "t1", **said) -> Label:
    return Label(at="2026-11-20T12:00:00+00:00", who=who, trial=trial, **said)


def test_a_run_that_nobody_reviewed_has_no_labels(run):
    assert read_labels(run) == Labels(newest={})
    assert not labels_path(run).exists()


def test_the_file_is_lines_of_json_with_a_head(run):
    add_label(run, label(scores={"completeness": 4.0}, claims={"it rains": "rejected"}, note="hm"))
    add_label(run, label(turn=2, note="a turn"))
    lines = [json.loads(line) for line in labels_path(run).read_bytes().splitlines()]
    for line in lines:
        del line["crc"]
    assert lines == [
        {"event": "head", "format": 2, "run": "1234abcd"},
        {
            "event": "label",
            "at": "2026-11-20T12:00:00+00:00",
            "who": "ann",
            "trial": "t1",
            "scores": {"completeness": 4.0},
            "claims": {"it rains": "rejected"},
            "note": "hm",
        },
        {"event": "label", "at": "2026-11-20T12:00:00+00:00", "who": "ann", "trial": "t1", "turn": 2, "note": "a turn"},
    ]


def test_what_is_said_of_turns_comes_back(run):
    said = [
        label(turn=0, verdict="wrong", diagnosis="scale", note="a hundred times too much"),
        label(turn=1, verdict="cannot_tell"),
        label(
            trial="t2", turn=0, answers={"choice": "A", "number": 40.5, "order": ["b", "a"]}, unread={"why": "refused"}
        ),
    ]
    for one in said:
        add_label(run, one)
    assert read_labels(run).newest == {"t1": tuple(said[:2]), "t2": (said[2],)}
    said = json.loads(labels_path(run).read_bytes().splitlines()[1])
    del said["crc"]
    assert said == {
        "event": "label", "at": "2026-11-20T12:00:00+00:00", "who": "ann", "trial": "t1", "turn": 0,
        "note": "a hundred times too much", "verdict": "wrong", "diagnosis": "scale",
    }  # fmt: skip


@pytest.mark.parametrize("said", [{"verdict": "right"}, {"answers": {"a": "B"}}, {"unread": {"a": "missing"}}])
def test_a_label_of_a_turn_is_withdrawn_by_an_empty_one_of_that_turn_alone(run, said):
    for one in (label(turn=0, **said), label(turn=1, **said), label(note="whole"), label(turn=0)):
        add_label(run, one)
    assert read_labels(run).of("t1") == (label(turn=1, **said), label(note="whole"))


FIRST_DAY = b"""{"event":"head","format":1,"run":"1234abcd"}
{"event":"label","at":"2026-11-20T12:00:00+00:00","who":"ann","trial":"t1","scores":{"completeness":4.0},"note":"long"}
"""
LATER = b"""{"event":"label","at":"2027-01-01T12:00:00+00:00","who":"bob","trial":"t1","turn":0,"verdict":"right","x":9}
{"event":"label","at":"2027-01-01T12:00:00+00:00","who":"bob","trial":"t1","turn":1,"mood":"fine"}
"""


def test_labels_of_an_older_karat_are_read_and_what_a_newer_one_adds_is_passed_over(run):
    labels_path(run).write_bytes(FIRST_DAY + LATER)
    found = read_labels(run)
    assert found.of("t1") == (
        label(scores={"completeness": 4.0}, note="long"),
        Label(at="2027-01-01T12:00:00+00:00", who="bob", trial="t1", turn=0, verdict="right"),
    )
    assert found.damaged == 0
    add_label(run, label("cat", note="more"))
    assert labels_path(run).read_bytes().startswith(FIRST_DAY + LATER)


def test_the_newest_label_of_a_person_counts_whole(run):
    for said in (label(scores={"a": 1.0}), label("bob", note="mine"), label(note="second thoughts"), label(trial="t2")):
        add_label(run, said)
    found = read_labels(run)
    assert found.newest == {"t1": (label("bob", note="mine"), label(note="second thoughts"))}
    assert found.of("t2") == ()
    add_label(run, label())  # withdrawn
    assert read_labels(run).of("t1") == (label("bob", note="mine"),)
    assert read_labels(run).lines == 6


def test_a_line_that_a_killed_writer_left_is_cut_off_by_the_next(run):
    add_label(run, label(note="whole"))
    path = labels_path(run)
    path.write_bytes(path.read_bytes() + b'{"event":"label","at":"x","who":"bo')
    assert read_labels(run) == Labels(newest={"t1": (label(note="whole"),)}, lines=2)
    add_label(run, label("bob", note="after"))
    assert read_labels(run).newest == {"t1": (label(note="whole"), label("bob", note="after"))}
    assert read_labels(run).damaged == 0


def test_only_a_head_that_was_torn_is_written_again(run):
    labels_path(run).write_bytes(b'{"event":"he')
    add_label(run, label(note="first"))
    assert labels_path(run).read_bytes().startswith(b'{"event":"head","format":2,"run":"1234abcd","crc":"a74f9b62"}\n')


WRITER = """
import sys
from karat.journal import Label, RunFolder, add_label
run = RunFolder.open(sys.argv[1])
for n in range(40):
    add_label(run, Label(at="", who=sys.argv[2], trial=str(n), note=sys.argv[2] * 500))
"""


def test_writers_of_several_processes_do_not_mix_their_lines(run):
    command = [sys.executable, "-c", WRITER, str(run.path)]
    writers = [subprocess.Popen([*command, who]) for who in "abc"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    found = read_labels(run)
    assert (found.lines, found.damaged) == (1 + 3 * 40, 0)
    assert {len(group) for group in found.newest.values()} == {3}


def test_lines_that_are_none_are_counted_and_left_alone(run):
    add_label(run, label(note="whole"))
    path = labels_path(run)
    path.write_bytes(path.read_bytes() + b'nonsense\n{"event":"label"}\n\xff\n' + b"[" * 100_000 + b"\n")
    found = read_labels(run)
    assert (found.damaged, found.of("t1")) == (4, (label(note="whole"),))
    add_label(run, label(note="more"))
    assert read_labels(run).damaged == 4


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ({"event": "head", "format": 3, "run": "1234abcd"}, "has format 3"),
        ({"event": "head", "format": 1, "run": "other"}, "labels of run other"),
    ],
)
def test_labels_of_a_newer_format_or_another_run_are_refused_and_not_written_to(run, head, told):
    whole = msgspec.json.encode(head) + b"\n"
    labels_path(run).write_bytes(whole)
    for act in (read_labels, lambda run: add_label(run, label(note="x"))):
        with pytest.raises(BadRun, match=f"^{labels_path(run)}:? .*{told}"):
            act(run)
    with pytest.raises(BadRun, match=told):
        add_label(run, label(note="x"))
    assert labels_path(run).read_bytes() == whole


def test_a_link_is_neither_read_nor_written_to(run, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    labels_path(run).symlink_to(target)
    for act in (lambda: read_labels(run), lambda: add_label(run, label(note="x"))):
        with pytest.raises(BadRun, match="link"):
            act()
    assert target.read_text() == "precious"


def test_a_folder_in_its_place_is_no_file_of_labels(run):
    labels_path(run).mkdir()
    with pytest.raises(BadRun):
        read_labels(run)


def test_half_a_surrogate_pair_is_mended(run):
    add_label(run, label(note="a \ud800 b"))
    assert read_labels(run).of("t1")[0].note == "a \ufffd b"


def test_a_changed_label_does_not_count_and_is_named_by_its_line(run):
    add_label(run, label(note="first"))
    add_label(run, label("bob", note="second"))
    path = labels_path(run)
    path.write_bytes(path.read_bytes().replace(b"first", b"other").replace(b"\n", b"\r\n\n", 1))
    found = read_labels(run)
    assert found.newest == {"t1": (label("bob", note="second"),)}
    assert found.damaged_lines == (3,)
    damages = verify(run.path).damages
    assert [(damage.line, damage.remedy.partition(":")[0]) for damage in damages] == [(3, "delete the line")]


def test_labels_of_another_run_are_damage(run):
    labels_path(run).write_bytes(b'{"event":"head","format":1,"run":"other"}\n')
    (damage,) = verify(run.path).damages
    assert (damage.file, damage.line, damage.remedy) == ("labels.jsonl", None, "restore it from a copy")


def test_a_label_that_does_not_fit_on_the_disk_leaves_the_others_as_they_were(run):
    add_label(run, label(note="whole"))
    before = labels_path(run).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 50, hard))  # the kernel's own full disk
    try:
        with pytest.raises(BadRun, match="the disk refused to write"):
            add_label(run, label("bob", note="long " * 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert labels_path(run).read_bytes() == before
