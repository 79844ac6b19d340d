"""The writer's promise (on disk when the await returns) and the reader's (never repair, never guess)."""

from __future__ import annotations

import asyncio
import base64
import errno
import fcntl
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.analysis.journals import Script

from karat.errors import BadRun, RunBusy
from karat.journal import (
    FORMAT_VERSION,
    Codec,
    DatasetInfo,
    End,
    Head,
    Journal,
    PlanInfo,
    Resume,
    RunFolder,
    RunInfo,
    create_run,
    slugged,
    with_checksum,
)
from karat.journal.lock import RunLock, open_own
from karat.journal.verify import verify
from karat.records import Answer, Reply, Sample, Score, ToolCall, Turn
from karat.redact import Redactor

SAMPLES = [Sample(id=str(n), position=n, digest=f"d{n}", turns=(Turn(question=f"q{n}", golden="g"),)) for n in range(3)]
PLAN = PlanInfo(samples=3, conditions=("a", "b"), repetitions=2)


def info(**changes: object) -> RunInfo:
    fields: dict[str, object] = {
        "format": FORMAT_VERSION,
        "run": "",
        "name": "Demo (1)",
        "version": "1",
        "created": "2026-01-01T00:00:00+00:00",
        "kind": "golden",
        "plan": PLAN,
        "dataset": DatasetInfo(kind="golden", path="q.jsonl", sha256="0" * 64, samples=3),
        "experiment": {},
        "conditions": {"a": "1", "b": "2"},
        "prompts": {},
        "agents": {},
        "agent_type": "replay",
    }
    return RunInfo(**{**fields, **changes})  # type: ignore[arg-type]


def new_run(tmp_path: Path, *, shared: bool = False) -> RunFolder:
    return create_run(
        tmp_path / "results", info(), experiment="name: demo\n", samples=SAMPLES, redact=Redactor({}), shared=shared
    )


def answer(text: str = "hi", *, trial: str = "t0") -> Answer:
    return Answer(
        trial=trial, sample="0", condition="a", repetition=0, replies=(Reply(text=text),), started="now", seconds=0.1
    )


def write(folder: Path, *events: object, redact: Redactor | None = None) -> None:
    async def go() -> None:
        async with Journal(folder, redact=redact) as journal:
            for event in events:
                await journal.append(event)  # type: ignore[arg-type]

    asyncio.run(go())


def test_an_event_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    run = new_run(tmp_path)

    async def go() -> None:
        async with Journal(run.path) as journal:
            await journal.append(Head(format=1, run="x"))
            assert run.journal.read_bytes() == b'{"event":"head","format":1,"run":"x","crc":"b17522cd"}\n'
            await journal.append(answer())
            assert [type(event) for event in run.events()] == [Head, Answer]

    asyncio.run(go())


def test_a_crowd_shares_its_syncs_and_keeps_the_order_of_each_writer(tmp_path: Path) -> None:
    run = new_run(tmp_path)

    async def go() -> None:
        async with Journal(run.path) as journal:

            async def one(name: int) -> None:
                for count in range(50):
                    await journal.append(answer(f"{name}/{count}", trial=f"{name}"))

            await asyncio.gather(*(one(name) for name in range(20)))

    asyncio.run(go())
    said = [event.text for event in run.events_of(Answer)]
    assert len(said) == 1000
    for name in range(20):
        assert [text for text in said if text.startswith(f"{name}/")] == [f"{name}/{count}" for count in range(50)]


def test_events_that_belong_together_stand_side_by_side(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    rows = [Score(trial="t0", scorer="s", scoring="x", values={"m": float(n)}, repeat=n, rows=3) for n in range(3)]

    async def go() -> None:
        async with Journal(run.path) as journal:
            await asyncio.gather(journal.append(*rows), journal.append(answer()), journal.append(*rows))

    asyncio.run(go())
    assert [type(event).__name__ for event in run.events()] == ["Score"] * 3 + ["Answer"] + ["Score"] * 3


@pytest.mark.parametrize("cut", [2, 5, 40])
def test_a_torn_last_line_is_not_there_yet_and_the_next_writer_cuts_it(tmp_path: Path, cut: int) -> None:
    run = new_run(tmp_path)
    write(run.path, Head(format=1, run="x"), answer("whole"), answer("torn"))
    whole = run.journal.read_bytes()
    run.journal.write_bytes(whole[:-cut])
    assert [event.text for event in run.events_of(Answer)] == ["whole"]
    assert run.journal.read_bytes() == whole[:-cut], "reading repairs nothing"
    write(run.path, answer("next"))
    assert [event.text for event in run.events_of(Answer)] == ["whole", "next"]


def test_a_journal_of_one_torn_line_longer_than_a_block_starts_anew(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.journal.write_bytes(b'{"event":"answer","text":"' + b"x" * 200_000)
    write(run.path, Head(format=1, run="x"))
    assert [type(event) for event in run.events()] == [Head]


def test_a_damaged_line_in_the_middle_is_named_not_skipped(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    head = Codec().line(Head(format=1, run="x"))
    run.journal.write_bytes(head + b'{"event":"ans\n' + head)
    with pytest.raises(BadRun, match="line 2 of the journal is damaged"):
        list(run.events())


def test_a_newer_format_is_refused_and_unknown_keys_are_not(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    file = run.path / "run.json"
    data = json.loads(file.read_text())
    del data["crc"]
    file.write_bytes(with_checksum(json.dumps({**data, "from_the_future": 1}, separators=(",", ":")).encode()))
    assert RunFolder.open(run.path).info.name == "Demo (1)"
    file.write_text(json.dumps({**data, "format": FORMAT_VERSION + 1, "plan": "another shape"}))
    with pytest.raises(BadRun, match="update karat"):
        RunFolder.open(run.path)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "there is no such folder"),
        (lambda path: path.mkdir(), "is not a run folder"),
        (lambda path: (path.mkdir(), (path / "run.json").write_text("{")), "run.json is damaged"),
    ],
)
def test_what_is_no_run_says_so(tmp_path: Path, make: object, says: str) -> None:
    make(tmp_path / "r")  # type: ignore[operator]
    with pytest.raises(BadRun, match=says):
        RunFolder.open(tmp_path / "r")


def test_a_second_writer_is_told_who_holds_the_run(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    hold = (
        "import asyncio,sys\nfrom pathlib import Path\nfrom karat.journal import Journal\n"
        "async def go():\n async with Journal(Path(sys.argv[1])):\n  print('held', flush=True); sys.stdin.read()\n"
        "asyncio.run(go())"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin, holder.stdout:
        assert holder.stdout.readline() == "held\n"
        assert run.status() == "running"
        with pytest.raises(RunBusy) as busy:
            write(run.path)
        assert busy.value.pid == holder.pid
        assert f"process {holder.pid} on " in str(busy.value)
        holder.kill()
        holder.wait()
    write(run.path, Head(format=1, run="x"))  # the lock died with its process
    assert run.status() == "crashed"


def test_status_is_the_last_end_event(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert run.status() == "crashed"
    write(run.path, Head(format=1, run="x"), End(at="now", reason="max_failures", seconds=1.0))
    assert run.status() == "max_failures"
    write(run.path, Resume(at="now", versions={}, host="h", pid=1))
    assert run.status() == "crashed"


def test_a_resumed_plan_is_the_union(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    wider = PlanInfo(samples=2, conditions=("b", "c"), repetitions=5)
    write(run.path, Head(format=1, run="x"), Resume(at="now", versions={}, host="h", pid=1, plan=wider))
    assert run.plan() == PlanInfo(samples=3, conditions=("a", "b", "c"), repetitions=5)


def test_a_full_disk_stops_the_writer_and_keeps_what_was_there(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    # A limit on the size of files is the kernel's own full disk.
    script = (
        "import asyncio,resource,signal,sys\nfrom pathlib import Path\n"
        "from karat.errors import BadRun\nfrom karat.journal import Head,Journal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE,(200,200))\n"
        "async def go():\n async with Journal(Path(sys.argv[1])) as journal:\n"
        "  await journal.append(Head(format=1, run='x'))\n"
        "  for _ in range(2):\n"
        "   try: await journal.append(Head(format=1, run='y'*500))\n"
        "   except BadRun as error: print(error)\n"
        "  journal.append(Head(format=1, run='z'))\n"  # nobody waits for it: nothing to warn of
        "asyncio.run(go())"
    )
    done = subprocess.run([sys.executable, "-c", script, str(run.path)], capture_output=True, text=True, check=True)
    assert done.stdout.count("--resume") == 2
    assert done.stderr == ""
    assert [event.run for event in run.events()] == ["x"]  # type: ignore[union-attr]
    assert run.journal.read_bytes().endswith(b"\n")


MAKES = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_journal import Head, Journal, new_run
async def go():
    async with Journal(new_run(Path(sys.argv[2])).path) as journal:
        await journal.append(Head(format=1, run="x"))
asyncio.run(go())
"""


def test_what_is_in_a_folder_is_durable_before_the_folder_has_its_name(tmp_path: Path) -> None:
    """Seen from outside: nothing of Python's tells of a sync."""
    tracer = shutil.which("strace")
    if tracer is None:
        pytest.skip("needs strace, to see what the operating system is asked for")
    calls = ["-f", "-y", "-e", "trace=fsync,fdatasync,rename,renameat,renameat2", "-o", str(tmp_path / "calls")]
    command = [tracer, *calls, sys.executable, "-c", MAKES, str(Path(__file__).parent), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if not (tmp_path / "calls").exists() or "ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == 0, done.stderr
    made = re.compile(rf"(fsync|fdatasync|rename)[a-z0-9]*\(.*?{re.escape(str(tmp_path))}/?([^>\"]*)")
    seen = [found.groups() for line in (tmp_path / "calls").read_text().splitlines() if (found := made.search(line))]
    (run,) = (tmp_path / "results").iterdir()
    final, part = f"results/{run.name}", f"results/.{run.name}.part"
    files = ["experiment.yaml", "samples.jsonl", "run.json"]
    written = [[("fsync", f"{part}/.{f}.part"), ("rename", f"{part}/.{f}.part"), ("fsync", part)] for f in files]
    assert seen == [
        ("fsync", ""),
        *[call for file in written for call in file],
        ("fsync", part),
        ("rename", part),
        ("fsync", "results"),
        ("fsync", final),  # the journal's name
        ("fdatasync", f"{final}/journal.jsonl"),
    ]


@pytest.mark.parametrize("error", [MemoryError("no room"), ValueError("odd"), SystemExit(3), KeyboardInterrupt()])
def test_a_writer_that_dies_of_anything_says_so_to_all_that_wait(tmp_path: Path, error: BaseException) -> None:
    run = new_run(tmp_path)
    syncs = []

    def sync(fd: int) -> None:
        syncs.append(fd)
        if len(syncs) > 1:
            raise error

    async def go() -> list[BaseException | None]:
        async with Journal(run.path, sync=sync) as journal:
            await journal.append(Head(format=1, run=run.info.run))
            over = End(at="now", reason="done", seconds=1.0)
            waiting = [journal.append(over) for _ in range(3)]
            found = await asyncio.gather(*waiting, return_exceptions=True)
            return [*found, *await asyncio.gather(journal.append(over), return_exceptions=True)]

    found = asyncio.run(asyncio.wait_for(go(), 20))
    assert all(isinstance(one, BadRun) for one in found)
    assert repr(error) in str(found[0])
    assert [type(event) for event in run.events()] == [Head], "what was not synced is cut off again"


def gated(path: Path, gates: list[threading.Event], begun: queue.SimpleQueue[int]) -> Callable[[int], None]:
    """A sync that reports how many lines it found, and waits for its gate."""
    left = iter(gates)

    def sync(fd: int) -> None:
        begun.put(path.read_bytes().count(b"\n"))
        assert next(left).wait(60)
        os.fdatasync(fd)

    return sync


def test_an_event_is_durable_only_after_a_sync_that_began_after_its_write(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    gates = [threading.Event() for _ in range(2)]
    begun: queue.SimpleQueue[int] = queue.SimpleQueue()

    async def go() -> None:
        async with Journal(run.path, sync=gated(run.journal, gates, begun)) as journal:
            first = journal.append(Head(format=1, run=run.info.run))
            assert await asyncio.to_thread(begun.get, timeout=60) == 1
            later = [journal.append(answer()) for _ in range(3)]
            await asyncio.to_thread(until_lines, run.journal, 4)  # written during the sync
            gates[0].set()
            await first
            assert await asyncio.to_thread(begun.get, timeout=60) == 4
            assert not any(future.done() for future in later)
            gates[1].set()
            await asyncio.gather(*later)

    asyncio.run(go())
    assert [type(event) for event in run.events()] == [Head, Answer, Answer, Answer]


def until_lines(path: Path, lines: int) -> None:
    for _ in range(6000):
        if path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.01)

    pytest.fail(f"{path} has fewer than {lines} lines")


NEVER_SYNCS = """
import asyncio, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_journal import Journal, answer
syncs = []
def sync(fd):
    syncs.append(fd)
    print("syncing", flush=True)
    threading.Event().wait()
async def go():
    async with Journal(Path(sys.argv[2]), sync=sync) as journal:
        journal.append(answer("before the sync"))
        while not syncs:
            await asyncio.sleep(0.01)
        for number in range(100):
            journal.append(answer(f"during the sync {number}"))
        await asyncio.Event().wait()
asyncio.run(go())
"""


def test_what_arrives_during_a_slow_sync_survives_kill_9(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    command = [sys.executable, "-c", NEVER_SYNCS, str(Path(__file__).parent), str(run.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"syncing\n"
            until_lines(run.journal, 101)
        finally:
            writer.kill()
    during = [f"during the sync {number}" for number in range(100)]
    assert [event.text for event in run.events_of(Answer)] == ["before the sync", *during]
    write(run.path, answer("resumed"))
    assert [event.text for event in run.events_of(Answer)] == ["before the sync", *during, "resumed"]


def test_a_failed_sync_fails_what_was_written_meanwhile_too(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    gate, begun, calls = threading.Event(), threading.Event(), []

    def sync(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 1:
            os.fdatasync(fd)
            return
        begun.set()
        assert gate.wait(60)
        raise OSError(errno.EIO, "the disk is gone")

    async def go() -> list[BaseException | None]:
        async with Journal(run.path, sync=sync) as journal:
            await journal.append(Head(format=1, run=run.info.run))
            waiting = [journal.append(answer())]
            await asyncio.to_thread(begun.wait, 60)
            waiting += [journal.append(answer()) for _ in range(3)]
            await asyncio.to_thread(until_lines, run.journal, 5)
            gate.set()
            found = await asyncio.gather(*waiting, return_exceptions=True)
            return [*found, *await asyncio.gather(journal.append(answer()), return_exceptions=True)]

    found = asyncio.run(go())
    assert [type(error) for error in found] == [BadRun] * 5
    assert all("the disk is gone" in str(error) for error in found)
    assert len(calls) == 2, "nothing is synced after a failed sync"
    assert [type(event) for event in run.events()] == [Head]


def test_what_fits_on_a_full_disk_counts_although_its_neighbour_does_not(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    # Of three events, the second does not fit any more.
    script = (
        "import asyncio,resource,signal,sys\nfrom pathlib import Path\n"
        "from karat.journal import Head,Journal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE,(300,300))\n"
        "async def go():\n async with Journal(Path(sys.argv[1])) as journal:\n"
        "  runs = ['a', 'b' * 500, 'c']\n"
        "  waiting = [journal.append(Head(format=1, run=run)) for run in runs]\n"
        "  found = await asyncio.gather(*waiting, return_exceptions=True)\n"
        "  print([type(one).__name__ for one in found])\n"
        "asyncio.run(go())"
    )
    done = subprocess.run([sys.executable, "-c", script, str(run.path)], capture_output=True, text=True, check=True)
    assert done.stdout == "['NoneType', 'BadRun', 'BadRun']\n"
    assert [event.run for event in run.events()] == ["a"]  # type: ignore[union-attr]


def test_nothing_of_a_run_folder_is_there_before_all_of_it_is(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    assert sorted(os.listdir(run.path)) == ["experiment.yaml", "run.json", "samples.jsonl"]
    assert os.listdir(tmp_path / "results") == [run.path.name]
    assert list(run.samples()) == [structs.replace(sample, kind="golden") for sample in SAMPLES]  # as run.json says
    assert RunFolder.open(run.path).info == run.info
    assert run.info.run == run.path.name[-8:]


@pytest.mark.parametrize(
    ("name", "slug"), [("Support KB", "support-kb"), ("../../etc", "etc"), ("…", "run"), ("A" * 100, "a" * 60)]
)
def test_a_slug_is_a_harmless_folder_name(name: str, slug: str) -> None:
    assert slugged(name) == slug


def test_nan_becomes_null_and_half_surrogates_are_mended() -> None:
    line = Codec().line(answer("broken \ud83d end"))
    assert json.loads(line)["replies"][0]["text"] == "broken \ufffd end"
    score = Score(trial="t", scorer="s", scoring="x", values={"m": float("nan")})
    assert json.loads(Codec().line(score))["values"] == {"m": None}


SECRET = 'p"ä/55+word=&x'


@pytest.mark.parametrize(
    "spelled",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        json.dumps({"body": json.dumps({"key": SECRET})}),
        quote(SECRET),
        quote(SECRET, safe=""),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"us:" + SECRET.encode() + b"tail").decode(),
    ],
)
def test_a_secret_leaves_in_no_spelling(spelled: str) -> None:
    codec = Codec(Redactor({"RAG_KEY": SECRET, "REPS": "3"}))
    call = ToolCall(tool="t", server="s", input={spelled: [spelled]}, result=f"<{spelled}>", error=spelled)
    line = codec.line(Answer(trial="t", sample="3", condition="a", repetition=3, started="3", seconds=3.0,
                             replies=(Reply(text=spelled, tool_calls=(call,)),)))  # fmt: skip
    text = line.decode()
    for form in (spelled, json.dumps(spelled)[1:-1], SECRET, json.dumps(SECRET)[1:-1]):
        assert form not in text
    assert "${RAG_KEY}" in text
    assert json.loads(line)["repetition"] == 3, "a short value is never masked"


@given(prefix=st.binary(max_size=9), suffix=st.binary(max_size=9), secret=st.text(min_size=12, max_size=40))
def test_a_secret_inside_base64_is_found_at_every_offset(prefix: bytes, suffix: bytes, secret: str) -> None:
    if any("\ud800" <= letter <= "\udfff" for letter in secret):
        return
    text = base64.b64encode(prefix + secret.encode() + suffix).decode()
    masked = Redactor({"S": secret})(text)
    assert masked != text


def test_a_secret_equal_to_a_name_of_the_experiment_does_not_tear_rows_apart() -> None:
    line = Codec(Redactor({"KEY": "baseline"})).line(
        Answer(
            trial="t",
            sample="s",
            condition="baseline",
            repetition=0,
            replies=(Reply(text="baseline"),),
            started="",
            seconds=0,
        )
    )
    event = json.loads(line)
    assert (event["condition"], event["replies"][0]["text"]) == ("baseline", "${KEY}")


def test_half_a_secret_is_masked_where_a_text_was_cut() -> None:
    redact = Redactor({"KEY": "s3cr3t-value-abcdefghijkl", "PEM": "k" * 30 + "".join(map(str, range(2000)))})
    assert redact("it is s3cr3t-va… and so on") == "it is ${KEY}… and so on"
    assert redact("it is s3cr3t-value-abcdef") == "it is ${KEY}"
    assert redact("the s3cr3t-val is not at an end") == "the ${KEY} is not at an end"
    assert redact("s3cr3") == "s3cr3", "so few characters are any text"
    assert redact("key: " + "k" * 30 + "".join(map(str, range(400)))) == "key: ${PEM}"
    line = Codec(redact).line(answer("it is s3cr3t-value-abc… and s3cr3t-value-abcdefg"))
    assert b"s3cr3t" not in line


def test_a_tools_own_keys_are_no_names_of_the_experiment() -> None:
    call = ToolCall(tool="t", server="s", input={"class": "s3cr3t-value", "condition": {"event": "s3cr3t-value"}})
    line = Codec(Redactor({"KEY": "s3cr3t-value"})).line(
        Answer(
            trial="t",
            sample="s",
            condition="a",
            repetition=0,
            replies=(Reply(text="", tool_calls=(call,)),),
            started="",
            seconds=0,
        )
    )
    assert b"s3cr3t" not in line
    sample = Sample(id="0", position=0, digest="d", turns=(), metadata={"class": "s3cr3t-value"})
    assert b"s3cr3t" not in Codec(Redactor({"KEY": "s3cr3t-value"})).line(sample)


@pytest.mark.parametrize("name", ["journal.jsonl", "journal.lock"])
def test_a_link_in_a_run_folder_is_not_written_through(tmp_path: Path, name: str) -> None:
    run = new_run(tmp_path)
    mine = tmp_path / "mine.txt"
    mine.write_text("precious, without a newline at its end")
    (run.path / name).symlink_to(mine)
    with pytest.raises(BadRun, match="is a link"):
        write(run.path, Head(format=1, run="x"))
    assert mine.read_text() == "precious, without a newline at its end"


def test_a_file_that_is_no_journal_is_not_truncated(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run.journal.write_text("dear diary")
    with pytest.raises(BadRun, match="is not a journal"):
        write(run.path, Head(format=1, run="x"))
    assert run.journal.read_text() == "dear diary"


def test_scoring_a_stopped_run_does_not_make_it_done(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    write(run.path, Head(format=1, run=run.info.run), End(at="now", reason="budget", seconds=1.0))
    write(run.path, Resume(at="now", versions={}, host="h", pid=1, command="score"))
    assert run.status() == "budget"
    write(run.path, End(at="now", reason="done", seconds=1.0, command="score"))
    assert run.status() == "budget"
    write(run.path, Resume(at="now", versions={}, host="h", pid=1), End(at="now", reason="done", seconds=1.0))
    assert run.status() == "done"


def test_a_journal_of_a_newer_format_or_of_another_run_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    write(run.path, Head(format=FORMAT_VERSION + 1, run=run.info.run))
    with pytest.raises(BadRun, match="update karat"):
        RunFolder.open(run.path)
    run.journal.unlink()
    write(run.path, Head(format=FORMAT_VERSION, run="other"))
    with pytest.raises(BadRun, match="is of run other"):
        RunFolder.open(run.path)


def test_a_run_whose_journal_an_older_karat_compressed_is_refused_and_not_read_as_empty(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    (run.path / "journal.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(BadRun, match="was written by a version of karat that could compress journals; `unzstd"):
        RunFolder.open(run.path)
    assert [damage.remedy for damage in verify(run.path).damages] == [
        "`unzstd journal.jsonl.zst` in its folder makes it plain again"
    ]
    write(run.path, Head(format=FORMAT_VERSION, run=run.info.run))
    assert RunFolder.open(run.path).status() == "crashed", "a journal beside it counts"


def test_a_child_that_an_agent_forks_does_not_keep_the_run_locked(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    script = (
        "import asyncio,os,sys,time\nfrom pathlib import Path\nfrom karat.journal import Journal\n"
        "async def go():\n async with Journal(Path(sys.argv[1])):\n"
        "  if os.fork() == 0:\n   time.sleep(20)\n   os._exit(0)\n  os._exit(1)\n"
        "asyncio.run(go())"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(run.path)], check=False)
    write(run.path, Head(format=1, run="x"))


def test_a_run_is_its_owners_alone_and_stays_as_open_as_its_folder_is_made(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        run = new_run(tmp_path)
        write(run.path, Head(format=2, run=run.info.run))
        assert run.path.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in run.path.iterdir()} == {0o600}
        run.path.chmod(0o750)
        run.write_samples(SAMPLES, redact=Redactor({}))
        assert (run.path / "samples.jsonl").stat().st_mode & 0o777 == 0o644
        shared = new_run(tmp_path, shared=True)
        assert shared.path.stat().st_mode & 0o777 == 0o750
        assert {file.stat().st_mode & 0o777 for file in shared.path.iterdir()} == {0o644}
    finally:
        os.umask(before)


def test_a_run_is_a_table_in_a_notebook_and_foreign_text_stays_text(tmp_path: Path) -> None:
    run = Script(tmp_path / "run", conditions=("<b>plain</b>", "docs"), repetitions=2).end()
    shown = run._repr_html_()
    assert "<th>planned</th><td>2 samples × 2 conditions × 2 repetitions</td>" in shown
    assert "<th>conditions</th><td>&lt;b&gt;plain&lt;/b&gt;, docs</td>" in shown
    assert "<th>run</th><td>support-kb 1234abcd (done)</td>" in shown
    assert repr(run) == f"RunFolder('{run.path}')"


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    (tmp_path / "journal.lock").mkdir()
    with pytest.raises(BadRun, match="Is a directory"):
        open_own(tmp_path / "journal.lock")


def test_a_lock_whose_holder_left_no_note_is_held_by_somebody(tmp_path: Path) -> None:
    with (tmp_path / "journal.lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(RunBusy) as busy:
            RunLock(tmp_path).acquire()
    assert (busy.value.pid, busy.value.host) == (None, None)
    lock = RunLock(tmp_path)
    lock.acquire()
    assert lock.held()
    lock.release(lines=3)
    assert (lock.held(), lock.lines_left()) == (False, 3)


def test_a_lock_that_is_no_file_of_the_run_is_named_and_not_taken(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    assert not lock.held(), "there is none yet"
    (tmp_path / "journal.lock").symlink_to(tmp_path / "elsewhere")
    for act in (lock.held, lock.acquire):
        with pytest.raises(BadRun, match=r"journal\.lock: is a (symbolic )?link"):
            act()
    (tmp_path / "journal.lock").unlink()
    os.mkfifo(tmp_path / "journal.lock")
    for act in (lock.held, lock.acquire):
        with pytest.raises(BadRun, match=r"journal\.lock: is .*not a regular file"):
            act()
    assert (lock.holder(), lock.lines_left()) == (None, None)


def test_a_lock_names_its_holder_until_it_is_released_in_order(tmp_path: Path) -> None:
    lock = RunLock(tmp_path)
    with lock:
        holder = RunLock(tmp_path).holder()
        assert holder is not None
        assert (holder.pid, holder.host) == (os.getpid(), socket.gethostname())
        assert lock.lines_left() is None
    assert (lock.holder(), lock.held(), lock.lines_left()) == (None, False, None)
    lock.release()
