"""Lines that vanish, come twice, move, change or come from another run are never silent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.analysis.journals import JUDGE, Script, resealed

import karat
from karat import api
from karat.errors import BadRun
from karat.journal import CHECKSUMS_SINCE, End, Journal, Resume, RunFolder, verify

Lines = list[bytes]
Change = Callable[[Lines, Lines, random.Random], Lines]  # of the lines of a run; another's lines

LATER = msgspec.structs.replace(JUDGE, scoring="1f" * 16)


def made(folder: Path, *, seed: int = 7, run: str = "1234abcd", killed: bool = False) -> RunFolder:
    """A run that was interrupted and resumed, and then scored again; `killed` as it was being scored."""
    dice, script = random.Random(seed), Script(folder, samples=12, format=CHECKSUMS_SINCE, run=run)
    places = [(row, name) for row in range(12) for name in script.conditions]
    for number, (row, name) in enumerate(places):
        script.scored(row, name, value=dice.randint(1, 5))
        if number == 10:
            script.pause("interrupted")
            script.resume()
    script.pause("done")
    script.resume(LATER)
    for row, name in places:
        script.score(row, name, value=dice.randint(1, 5), scorer=LATER)
    (folder / "experiment.yaml").write_text("name: support-kb\n")
    written = script.stop() if killed else script.end(command="score")
    events = list(written.events())
    written.journal.unlink()

    async def write() -> None:
        start = 0
        for stop in [place for place, event in enumerate(events) if isinstance(event, Resume)] + [len(events)]:
            async with Journal(folder) as journal:
                for event in events[start:stop]:
                    await journal.append(event)
            start = stop

    asyncio.run(write())
    return RunFolder.open(folder)


def figures(run: RunFolder) -> object:
    summary = karat.summarize(run)
    return summary.results, summary.differences, summary.total.ledger


def outcome(run: RunFolder) -> tuple[object, str]:
    """The numbers, and what the first lines of a report say of the journal."""
    try:
        summary = karat.summarize(RunFolder.open(run.path))
    except BadRun as error:
        return None, str(error)
    said = [text for text in summary.notices if "journal" in text]
    return figures(run), " ".join([*said, *([] if summary.status == "done" else [f"status: {summary.status}"])])


def scores_of(lines: Lines) -> list[int]:
    return [place for place, line in enumerate(lines) if line.startswith(b'{"event":"score"')]


def delete(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    gone = set(dice.sample(range(1, len(lines) - 1), dice.randint(1, 12)))
    return [line for place, line in enumerate(lines) if place not in gone]


def delete_scores(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    gone = set(dice.sample(scores_of(lines), 20))
    return [line for place, line in enumerate(lines) if place not in gone]


def delete_end(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    return lines[: -dice.randint(1, 5)]


def double(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    place = dice.randrange(1, len(lines))
    return [*lines[:place], lines[place], *lines[place:]]


def swap(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    one, two = dice.sample(range(1, len(lines)), 2)
    lines[one], lines[two] = lines[two], lines[one]
    return lines


def edit(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    """With a right checksum."""
    place = dice.choice(scores_of(lines))
    value = next(byte for byte in b"12345" if b'"completeness":%c' % byte in lines[place])
    other = dice.choice([byte for byte in b"12345" if byte != value])
    changed = lines[place].replace(b'"completeness":%c' % value, b'"completeness":%c' % other)
    return [*lines[:place], resealed(changed), *lines[place + 1 :]]


def truncate(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    whole = b"".join(lines)
    return [whole[: dice.randrange(len(lines[0]), len(whole) - 1)]]


def append(lines: Lines, others: Lines, dice: random.Random) -> Lines:
    start = dice.randrange(len(others) - 1)
    return [*lines, *others[start : start + dice.randint(1, 20)]]


def insert(lines: Lines, others: Lines, dice: random.Random) -> Lines:
    place = dice.randrange(1, len(lines) - 1)
    return [*lines[:place], dice.choice(others), *lines[place:]]


def replace(lines: Lines, others: Lines, dice: random.Random) -> Lines:
    place = dice.choice(scores_of(lines))
    return [*lines[:place], others[dice.choice(scores_of(others))], *lines[place + 1 :]]


def windows(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    some = dice.sample(range(len(lines)), dice.randint(1, len(lines)))
    return [line.replace(b"\n", b"\r\n") if place in some else line for place, line in enumerate(lines)]


def mark(lines: Lines, _: Lines, __: random.Random) -> Lines:
    return [b"\xef\xbb\xbf", *(line.replace(b"\n", b"\r\n") for line in lines)]


def blank(lines: Lines, _: Lines, dice: random.Random) -> Lines:
    for _number in range(5):
        lines.insert(dice.randrange(1, len(lines) + 1), dice.choice([b"\n", b"\r\n", b"\n\n"]))
    return lines


def unended(lines: Lines, _: Lines, __: random.Random) -> Lines:
    return [*lines[:-1], lines[-1].rstrip()]


SEEN = (delete, delete_scores, delete_end, double, swap, edit, truncate, append, insert, replace)
HARMLESS = (windows, mark, blank, unended)


def operated(folder: Path, change: Change, seed: int) -> tuple[RunFolder, object, bytes]:
    """A run whose journal was changed, its figures before, and its journal before."""
    run, other = made(folder / "run", seed=seed), made(folder / "other", seed=seed + 1, run="5678abcd")
    before, whole = figures(run), run.journal.read_bytes()
    lines, others = (one.journal.read_bytes().splitlines(keepends=True) for one in (run, other))
    run.journal.write_bytes(b"".join(change(lines, others, random.Random(seed))))
    return RunFolder.open(run.path, look=False), before, whole


@pytest.mark.parametrize("change", SEEN)
def test_what_happens_to_lines_is_said_above_every_number(tmp_path: Path, change: Change) -> None:
    run, _, _ = operated(tmp_path, change, seed=5)
    _, said = outcome(run)
    assert said, change.__name__


@pytest.mark.parametrize("change", HARMLESS)
def test_what_editors_do_to_line_ends_changes_nothing(tmp_path: Path, change: Change) -> None:
    run, before, _ = operated(tmp_path, change, seed=5)
    assert outcome(run) == (before, "")
    found = verify(run.path)
    assert found.ok, found

    async def resume() -> None:
        async with Journal(run.path) as journal:
            await journal.append(Resume(at="2026-11-20T14:00:00Z", versions={}, host="testhost", pid=1))
            await journal.append(End(at="2026-11-20T14:00:00Z", reason="done"))

    asyncio.run(resume())
    assert outcome(run) == (before, "")
    assert verify(run.path).ok


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1042))  # `benchmarks/vanished.py` runs as many as one likes
def test_operations_with_new_seeds_lose_nothing_silently(tmp_path: Path, seed: int) -> None:
    change = [*SEEN, *HARMLESS][seed % 14]
    run, before, whole = operated(tmp_path, change, seed=seed)
    after, said = outcome(run)
    if change in HARMLESS:
        assert (after, said) == (before, "")
    else:
        assert said, change.__name__
        found = verify(run.path)
        assert not found.ok or found.notes, change.__name__
    run.journal.write_bytes(whole)
    assert outcome(run) == (before, "")


def test_verify_names_the_stretch_and_what_to_do(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    assert verify(run.path).damages == ()
    assert verify(run.path).notes == ()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    gone = scores_of(lines)[15:35]  # 9 of them in the last stretch
    run.journal.write_bytes(b"".join(line for place, line in enumerate(lines) if place not in gone))
    found = [(damage.reason, damage.remedy.partition(",")[0]) for damage in verify(run.path).damages]
    assert found == [
        ("lines 25 to 42 of the journal: 9 lines are missing", "restore the journal from a copy"),
        ("lines 44 to 57 of the journal: 11 lines are missing", "restore the journal from a copy"),
    ]


@pytest.mark.parametrize("left", [0, 1, 30, None])
def test_a_journal_that_lost_its_end_is_not_taken_for_one_of_a_killed_run(tmp_path: Path, left: int | None) -> None:
    run = made(tmp_path / "run")
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join(lines[: left or 0]))
    if left is None:
        run.journal.unlink()
    missing = f": {len(lines) - (left or 0)} lines are missing"
    (damage,) = verify(run.path).damages
    assert damage.reason.endswith(missing)
    _, said = outcome(run)
    assert missing in said


def test_a_gate_refuses_a_run_whose_lines_are_missing(tmp_path: Path) -> None:
    run, other = made(tmp_path / "run"), made(tmp_path / "other", run="5678abcd")
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:4], *lines[6:]]))
    with pytest.raises(BadRun, match="2 lines are missing"):
        api.gate(run, min={"completeness": 1.0})
    assert "2 lines are missing" in karat.compare(RunFolder.open(run.path), other).headline


def test_a_killed_part_is_covered_from_its_resume_on(tmp_path: Path) -> None:
    run = made(tmp_path / "run", killed=True)
    assert verify(run.path).ok
    assert verify(run.path).notes == (
        "journal.jsonl: 24 lines at its end are not covered yet; the next resume or scoring covers them",
    )

    async def resume() -> None:
        async with Journal(run.path) as journal:
            await journal.append(Resume(at="2026-11-20T14:00:00Z", versions={}, host="testhost", pid=1))

    asyncio.run(resume())
    assert verify(run.path).notes == ()
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join([*lines[:-3], *lines[-2:]]))
    assert "1 line is missing" in verify(run.path).damages[0].reason


def test_a_run_that_was_killed_before_its_first_end_is_not_called_old(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=1, format=CHECKSUMS_SINCE)
    script.scored(0, "baseline", value=3)
    (note,) = verify(script.stop().path).notes
    assert note == "journal.jsonl: 3 lines at its end are not covered yet; the next resume or scoring covers them"


def test_a_journal_of_an_older_karat_is_read_and_said_to_have_no_cover(tmp_path: Path) -> None:
    script = Script(tmp_path / "run", samples=1, format=CHECKSUMS_SINCE)
    script.scored(0, "baseline", value=3)
    run = script.end()
    assert outcome(run)[1] == ""
    (note,) = verify(run.path).notes
    assert "with no running checksum: missing lines go unnoticed" in note


def test_a_last_line_without_an_end_is_not_read_whole(tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    with run.journal.open("ab") as file:
        file.write(b'{"event":"answer","trial":"')
        file.truncate(8 * 2**30)  # takes no room on the disk
    with pytest.raises(BadRun, match="longer than 64 MB"):
        karat.summarize(RunFolder.open(run.path, look=False))

    async def resume() -> None:
        async with Journal(run.path):
            pass

    with pytest.raises(BadRun, match="has no end within 64 MB"):
        asyncio.run(resume())
