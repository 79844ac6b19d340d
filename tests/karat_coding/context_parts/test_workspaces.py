"""Workspaces of single attempts, what was changed in them, and the same made again from the archive."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.context.archive import END, BadArchive, member, members
from karat.context.trees import Entry, copy_tree, read_tree
from karat.errors import BadOption
from karat.records import Answer
from karat.redact import Redactor
from karat_coding import changes
from karat_coding.changes import (
    _difference,
    apply_changes,
    read_stored,
    refuse_secrets,
    store_base,
    store_changes,
    unpack_base,
)
from karat_coding.workspace import (
    Base,
    Overlay,
    Workspace,
    _ways,
    open_workspace,
    overlay_for,
    refuse_instructions_above,
)

NOTHING_SECRET = Redactor({})


@pytest.fixture
def base(tmp_path: Path) -> Base:
    start = tmp_path / "start"
    (start / "kept").mkdir(parents=True)
    for name in ("edited", "removed", "turned", "kept/same", "kept/old"):
        (start / name).write_text(f"{name}\nsecond\n")
    for name in ("gone", "emptied", "to_file"):
        (start / name).mkdir()
        (start / name / "below").write_text(name)
    (start / "link").symlink_to("edited")
    return Base(start)


@pytest.fixture(params=["copy", "root", "user"])
def overlay(request: pytest.FixtureRequest, tmp_path: Path) -> Overlay | None:
    """How the workspace is made; skipped where the system does not let this user mount it."""
    if request.param == "copy":
        return None
    way = next((way for way in _ways() if ("--user" in way.enter) == (request.param == "user")), None)
    (probe := tmp_path / "probe").mkdir()
    if way is None or not overlay_for(probe).enter:
        pytest.skip(f"no overlay as {request.param} here")
    return way


def run(workspace: Workspace, script: str) -> str:
    done = subprocess.run(
        workspace.command(["sh", "-ec", script]), cwd=workspace.path, capture_output=True, text=True, check=True
    )
    return done.stdout


def stored(
    workspace: Workspace, base: Base, tmp_path: Path, answer: bytes | None = None, redact=NOTHING_SECRET, ignore=()
):
    kept = tmp_path / "run" / "workspaces"
    kept.mkdir(parents=True, exist_ok=True)
    store_base(kept, base)
    return store_changes(workspace, base, kept / "ab12-1.tar.gz", redact=redact, answer=answer, ignore=ignore)


EDITS = """
echo more >> edited; rm removed; chmod +x kept/same; touch kept/old
rm -r gone; rm emptied/below; rm -r to_file; echo f > to_file; rm turned; mkdir turned; echo in > turned/new
mkdir -p new/deep/empty; echo n > new/deep/n; ln -s ../edited new/l; ln -s "$PWD/edited" absolute; ln -sf kept link
printf '\\000\\001' > binary; mv kept/old kept/moved
"""


def test_a_workspace_made_again_is_what_the_trial_left(base, overlay, tmp_path):
    before = read_tree(base.path).digest
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, EDITS)
    run(workspace, f"rm -r emptied; mkdir emptied; echo o > emptied/other; cp -a . {tmp_path / 'seen'}")
    changes = stored(workspace, base, tmp_path)
    workspace.close()
    assert not workspace.path.parent.exists()
    assert read_tree(base.path).digest == before
    again = unpack_base(tmp_path / "run", changes.base, tmp_path / "unpacked")
    copy_tree(again.tree, again.path, tmp_path / "again")
    apply_changes(tmp_path / "run", changes, tmp_path / "again")
    (tmp_path / "seen" / "absolute").unlink()  # led to the attempt's own folder; kept as a link within
    (tmp_path / "seen" / "absolute").symlink_to("edited")
    assert read_tree(tmp_path / "again").digest == read_tree(tmp_path / "seen").digest
    assert changes.complete
    found, diff = read_stored(tmp_path / "run", changes.file)
    assert sorted(found.removed) == ["emptied/below", "gone", "kept/old", "removed", "to_file", "turned"]
    assert "--- a/edited\n+++ b/edited\n@@ -1,2 +1,3 @@\n edited\n second\n+more\n" in diff
    assert "Binary file binary: added\n" in diff
    assert (found.added_lines, found.removed_lines) == (7, 9)


def test_what_is_ignored_counts_as_not_changed(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, "mkdir -p .venv/bin below/.venv; ln -s /usr/bin/python3 .venv/bin/python; echo x > below/.venv/y")
    run(workspace, "echo a > a.log; echo b > b.txt; echo c >> edited; rm -r gone; rm kept/same; echo d > kept/new")
    changes = stored(workspace, base, tmp_path, ignore=(".venv", "*.log", "gone", "kept/same", "edited"))
    workspace.close()
    found, diff = read_stored(tmp_path / "run", changes.file)
    assert changes.complete
    assert found.removed == ()
    assert found.changed == 2
    assert re.findall(r"^\+\+\+ b/(.*)$", diff, re.MULTILINE) == ["b.txt", "kept/new"]


def test_an_untouched_workspace_has_no_changes(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, "cat edited > /dev/null; touch edited; chmod 644 edited; mv kept x; mv x kept")
    changes = stored(workspace, base, tmp_path)
    workspace.close()
    assert (changes.changed, changes.removed, changes.bytes, changes.complete) == (0, 0, 0, True)


def test_two_workspaces_share_nothing(base, overlay, tmp_path):
    first, second = (open_workspace(tmp_path / name, base, overlay) for name in ("1", "2"))
    run(first, "echo x > edited; echo x > made")
    assert (
        run(second, "cat edited; ls") == "edited\nsecond\nedited\nemptied\ngone\nkept\nlink\nremoved\nto_file\nturned\n"
    )
    for workspace in (first, second):
        workspace.close()


def test_processes_of_one_attempt_see_what_the_earlier_ones_left(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, "echo x > made; rm removed")
    assert run(workspace, "cat made; ls removed || true; pwd") == f"x\n{workspace.path}\n"
    workspace.close()


HOSTILE = """
mkfifo fifo; ln -s /etc/passwd out; ln -s ../../.. up; ln -s emptied/.. sly; mkdir closed; echo c > closed/c
chmod 0 closed; touch "new
line" "$(printf 'bad\\377')"; truncate -s 1T sparse; echo s > setuid; chmod 4755 setuid
echo u > unreadable; chmod 0 unreadable
i=0; while [ $i -lt 130 ]; do mkdir d && cd d; i=$((i+1)); done; echo deep > deep
"""


def test_what_a_hostile_agent_leaves_is_contained_and_said(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, HOSTILE)
    changes = stored(workspace, base, tmp_path)
    workspace.close()
    assert not workspace.path.parent.exists()
    assert not changes.complete
    left_out = dict(note.split(": ", 1) for note in read_stored(tmp_path / "run", changes.file)[0].left_out)
    assert left_out.pop("/".join(["d"] * 101)[:200]) == "a name that is not printable UTF-8, or too long"
    assert left_out == {
        "bad\\udcff": "a name that is not printable UTF-8, or too long",
        "fifo": "neither a file nor a folder nor a link",
        "new\\nline": "a name that is not printable UTF-8, or too long",
        "out": "a link that leads out of the workspace, to '/etc/passwd'",
        "sly": "a link that leads out of the workspace, to 'emptied/..'",
        "sparse": "1,099,511,627,776 bytes, which would make the changes more than 64,000,000",
        "up": "a link that leads out of the workspace, to '../../..'",
    }
    with tarfile.open(tmp_path / "run" / "workspaces" / changes.file) as archive:
        modes = {info.name: info.mode for info in archive if info.isreg()}
    assert {"files/closed/c", "files/setuid", "files/unreadable"} < modes.keys()
    assert modes["files/setuid"] == 0o755


BUILT = """
for name in .venv env; do mkdir -p $name/bin; touch $name/pyvenv.cfg; ln -s /usr/bin/python3 $name/bin/python3; done
mkdir -p node_modules/.bin __pycache__ below/node_modules; ln -s /usr/bin/env node_modules/.bin/x; touch below/kept
mkfifo pipe; touch a.py; mkdir kept/.venv; touch kept/.venv/x
mkdir tied; ln -s /nowhere tied/pyvenv.cfg
"""


def test_what_a_build_leaves_is_not_kept_and_hides_nothing_else(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, BUILT)
    changes = stored(workspace, base, tmp_path)
    workspace.close()
    found, _ = read_stored(tmp_path / "run", changes.file)
    built = [".venv", "__pycache__", "below/node_modules", "env", "kept/.venv", "node_modules", "tied"]
    assert sorted(found.built) == built
    assert changes.left_out == ("pipe: neither a file nor a folder nor a link",)
    copy_tree(base.tree, base.path, tmp_path / "again")
    apply_changes(tmp_path / "run", changes, tmp_path / "again")
    assert (tmp_path / "again/a.py").exists()
    assert (tmp_path / "again/below/kept").exists()
    assert not [name for name in built if (tmp_path / "again" / name).exists()]


@pytest.mark.slow
def test_too_many_files_are_cut_off_and_what_is_nearest_to_the_top_is_kept_first(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    run(workspace, "mkdir -p a/many z; (cd a/many; seq 20500 | xargs touch); touch z/result; truncate -s 63M a/many/0")
    changes = stored(workspace, base, tmp_path)
    workspace.close()
    assert changes.left_out[0] == "more than 20,000 changed files, or 500,000 in all"
    assert not workspace.path.parent.exists()
    (tmp_path / "again").mkdir()
    apply_changes(tmp_path / "run", changes, tmp_path / "again")
    assert (tmp_path / "again/z/result").exists()


def test_a_program_that_left_its_group_is_ended(base, overlay, tmp_path):
    if overlay is None:
        pytest.skip("a copy has no namespace of its own")
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    pid = int(run(workspace, "setsid sleep 100 > /dev/null 2>&1 & echo $!"))
    assert Path(f"/proc/{pid}").exists()
    workspace.close()
    assert not Path(f"/proc/{pid}/cwd").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_the_running_process_shows_the_workspace(base, overlay, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, overlay)
    command = workspace.command(["sh", "-c", "echo x > made; echo ready; read line"])
    process = subprocess.Popen(command, cwd=workspace.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    root = workspace.root(process.pid)
    assert (root / "made").read_text() == "x\n"
    assert (root / "edited").exists()
    process.communicate(b"\n")
    workspace.close()


def test_where_no_namespace_may_be_made_the_reason_is_said(tmp_path):
    code = (
        "from pathlib import Path; import sys; from karat_coding.workspace import overlay_for\n"
        "found = overlay_for(Path(sys.argv[1])); print(found.enter, found.shown)"
    )
    denied = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-all "$@"'
    program = ["unshare", "--user", "--map-root-user", "sh", "-ec", denied, "sh", sys.executable, "-c", code, tmp_path]
    done = subprocess.run(program, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no user namespace here in which to forbid them: {done.stderr}")
    refused = "unshare: unshare failed: Operation not permitted; unshare: unshare failed: No space left on device"
    assert done.stdout == f"() {refused}\n"


def test_without_the_programs_that_mount_there_are_copies(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert overlay_for(tmp_path) == Overlay(shown="there is no program `unshare`")


def test_instructions_above_a_workspace_are_refused(tmp_path):
    (tmp_path / "tmp").mkdir()
    refuse_instructions_above(tmp_path / "tmp")
    (tmp_path / "AGENTS.md").touch()
    with pytest.raises(BadOption, match=r"agents would also find '.*/AGENTS.md'; remove that, or set TMPDIR"):
        refuse_instructions_above(tmp_path / "tmp")


def test_a_secret_is_masked_and_makes_the_changes_incomplete(base, tmp_path):
    redact = Redactor({"KEY": "s3cr3t-value"})
    refuse_secrets(base, redact)
    workspace = open_workspace(tmp_path / "attempt", base, None)
    run(workspace, "echo s3cr3t-value > edited")
    changes = stored(workspace, base, tmp_path, redact=redact)
    assert changes.left_out == ("edited: a secret in it is masked",)
    assert b"s3cr3t" not in gzip.decompress((tmp_path / "run" / "workspaces" / changes.file).read_bytes())
    (base.path / "edited").write_text("s3cr3t-value")
    with pytest.raises(BadOption, match="its file 'edited' holds a secret of the experiment"):
        refuse_secrets(Base(base.path), redact)


def test_the_archive_holds_the_answer_that_is_yet_to_be_journalled(base, tmp_path):
    workspace = open_workspace(tmp_path / "attempt", base, None)
    line = b'{"event":"answer","trial":"ab12","sample":"1","condition":"a","repetition":0,"replies":[],"crc":"00"}\n'
    changes = stored(workspace, base, tmp_path, line)
    answer = Answer(trial="ab12", sample="1", condition="a", repetition=0, replies=())
    assert read_stored(tmp_path / "run", changes.file)[0].answer == answer


@pytest.mark.parametrize(
    "info",
    [
        pytest.param({"name": "../x"}, id="above"),
        pytest.param({"name": "/etc/x"}, id="absolute"),
        pytest.param({"name": "a\nb"}, id="control"),
        pytest.param({"name": "x", "type": tarfile.SYMTYPE, "linkname": "/etc"}, id="link out"),
        pytest.param({"name": "x", "type": tarfile.SYMTYPE, "linkname": "../x"}, id="link above"),
        pytest.param({"name": "x", "type": tarfile.LNKTYPE, "linkname": "y"}, id="hard link"),
        pytest.param({"name": "x", "type": tarfile.CHRTYPE}, id="device"),
        pytest.param({"name": "x", "type": tarfile.FIFOTYPE}, id="FIFO"),
        pytest.param({"name": "x", "size": 2**33}, id="size"),
    ],
)
def test_an_archive_of_a_stranger_is_refused(info):
    header = tarfile.TarInfo()
    for name, value in info.items():
        setattr(header, name, value)
    archive = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + END)
    with pytest.raises(BadArchive):
        list(members(io.BytesIO(archive), at_most=2**20))


def test_a_bomb_and_a_torn_archive_are_refused():
    whole = member(Entry("a"), bytes(2**20)) + END
    for archive in (gzip.compress(whole), gzip.compress(whole)[:-20], gzip.compress(whole[:-1024]), b"no"):
        with pytest.raises(BadArchive):
            list(members(io.BytesIO(archive), at_most=2**19 if archive[:2] == b"\x1f\x8b" else 2**21))
    assert [entry.path for entry, _ in members(io.BytesIO(gzip.compress(whole)), at_most=2**21)] == ["a"]


def test_a_long_name_survives_the_archive():
    name = "/".join(["ü" * 60] * 8)
    file = io.BytesIO(gzip.compress(member(Entry(name, executable=True), b"x") + member(Entry("l", link=name)) + END))
    assert [*members(file, at_most=10**6)] == [
        (Entry(name, executable=True, size=1), b"x"),
        (Entry("l", link=name), b""),
    ]


def patched(old: list[str], hunks: list[str]) -> list[str]:
    """What a patch makes of a text, read from the numbers in its hunks."""
    new, at = [], 0
    for line in hunks:
        if head := re.match(r"@@ -(\d+)(?:,(\d+))? \+", line):
            start = int(head[1]) - (head[2] != "0")
            new += old[at:start]
            at = start
        elif line[0] == "+":
            new.append(line[1:])
        else:
            assert old[at] == line[1:]
            new += [old[at]] * (line[0] == " ")
            at += 1
    return new + old[at:]


texts = st.lists(st.sampled_from("abcd"), max_size=40)


@given(texts, texts, texts, texts)
def test_a_difference_makes_the_new_text_of_the_old_one(head, old, new, tail):
    old, new = [*head, *old, *tail], [*head, *new, *tail]
    assert patched(old, _difference(old, new)) == new


@pytest.mark.parametrize(
    ("old", "new", "whole", "counts", "text"),
    [
        (None, b"a\nb\n", True, (2, 0), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,2 @@\n+a\n+b\n"),
        (b"a\n", None, True, (0, 1), "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
        (b"a\nb", b"a\nc", True, (1, 1), None),
        (b"a\n", b"\0", True, (0, 0), "Binary file f: changed\n"),
        (None, b"\xff", True, (0, 0), "Binary file f: added\n"),
        (b"\0long", None, False, (0, 0), "Long file f: removed\n"),
        (b"\0long", b"\0", False, (0, 0), "Long file f: changed\n"),
        (b"".join(b"%d\n" % n for n in range(20_000)), b"".join(b"%d.\n" % n for n in range(20_000)), False, (0, 0),
         "File f: changed, not compared\n"),
    ],
)  # fmt: skip
def test_the_difference_of_a_file_says_what_was_not_compared(old, new, whole, counts, text):
    diff = changes._Diff()
    diff.add("f", old, new)
    assert (diff.whole, (diff.added, diff.removed)) == (whole, counts)
    assert text is None or "".join(diff.parts) == text
