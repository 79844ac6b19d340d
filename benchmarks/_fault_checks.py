"""What must hold after a fault, checked without karat: the journal by its bytes, processes by /proc, and questions by
the ledger of those that were asked. Each check returns complaints; none means that it passed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from zlib import crc32

Entry = Mapping[str, Any]
_CRC = re.compile(rb'(.*),"crc":"([0-9a-f]{8})"\}', re.DOTALL)
_HALVES = re.compile("[\ud800-\udfff]")
_PATIENCE_SECONDS = 15.0


@dataclass
class Reading:
    """A journal, read from its bytes."""

    events: list[dict[str, Any]] = field(default_factory=list)
    whole: bytes = b""  # up to the last newline
    complaints: list[str] = field(default_factory=list)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """The events of these kinds, in order."""
        return [event for event in self.events if event["event"] in kinds]


def read_journal(data: bytes, *, torn: bool) -> Reading:
    """Reads every line and checks its checksum. `torn`: whether the last may be incomplete, as after kill -9."""
    reading = Reading(whole=data[: data.rfind(b"\n") + 1])
    if len(reading.whole) < len(data) and not torn:
        reading.complaints.append("the journal's last line is cut off, and nothing was killed")
    for number, line in enumerate(reading.whole.split(b"\n")[:-1], start=1):
        parts = _CRC.fullmatch(line)
        if parts is None or int(parts[2], 16) != crc32(parts[1]):
            reading.complaints.append(f"line {number} of the journal has no right checksum: {line[:80]!r}")
            continue
        try:
            reading.events.append(json.loads(line, parse_float=Decimal))
        except (ValueError, RecursionError) as error:
            reading.complaints.append(f"line {number} of the journal is not JSON: {error}")
    if reading.events and reading.events[0]["event"] != "head":
        reading.complaints.append("the journal does not begin with its head")
    return reading


def answered(reading: Reading) -> dict[str, str]:
    """Question → text, for every answer in the journal."""
    return {
        f"{event['sample']}|{event['condition']}|{event['repetition']}|{turn}": reply["text"]
        for event in reading.of("answer")
        for turn, reply in enumerate(event["replies"])
        if reply.get("stop_reason") != "not_asked"
    }


def durable(reading: Reading, trials: Mapping[str, str]) -> set[str]:
    """The questions with replies in the journal, including trials without an answer. `trials`: id → question."""
    replies = {f"{trials[event['trial']]}|{event['turn']}" for event in reading.of("reply") if event["trial"] in trials}
    return replies | set(answered(reading))


def trials_of(reading: Reading) -> dict[str, str]:
    """Trial → sample|condition|repetition, for trials that ended."""
    return {
        event["trial"]: f"{event['sample']}|{event['condition']}|{event['repetition']}"
        for event in reading.of("answer", "failure")
        if event.get("sample") is not None
    }


def appended_only(before: bytes, after: bytes) -> list[str]:
    """Nothing that was in the journal may change or vanish."""
    complete = before[: before.rfind(b"\n") + 1]
    return [] if after.startswith(complete) else ["what was in the journal has changed"]


def acknowledged(events: Iterable[Entry], reading: Reading) -> list[str]:
    """Whatever karat reported as being on disk must be there. `events`: of `--events`."""
    kept = {
        (event["event"], event["trial"], event.get("scorer"), event.get("turn"))
        for event in reading.of("answer", "score")
    }
    return [
        f"{event['event']} of trial {event['trial']} was shown and is not in the journal"
        for event in events
        if event["event"] in ("answer", "score")
        and (event["event"], event["trial"], event.get("scorer"), event.get("turn")) not in kept
    ]


def as_delivered(reading: Reading, ledger: Sequence[Entry]) -> list[str]:
    """Every answer in the journal was delivered, to that question, word for word."""
    texts = defaultdict(set)
    for entry in ledger:
        if entry["event"] == "delivered" and entry["at"] in ("agent", "tool"):
            texts[entry["key"]].add(entry["text"])
    complaints = []
    for key, text in answered(reading).items():
        if key not in texts:
            complaints.append(f"the journal has an answer to {key} that no server sent")
        elif _HALVES.sub("\ufffd", text).rstrip("\ufffd ") not in texts[key]:
            complaints.append(f"the answer to {key} in the journal is not the one that was delivered: {text[:80]!r}")
    return complaints


def once(reading: Reading) -> list[str]:
    """One answer per trial; one score per trial, scorer, judge, repeat and turn."""
    answers = Counter(event["trial"] for event in reading.of("answer"))
    scores = Counter(
        tuple(event.get(name) for name in ("trial", "scorer", "scoring", "judge", "repeat", "turn"))
        for event in reading.of("score")
    )
    twice = [f"trial {trial} has {count} answers" for trial, count in answers.items() if count > 1]
    return twice + [f"score {row} is there {count} times" for row, count in scores.items() if count > 1]


def not_again(ledger: Sequence[Entry], before: Reading, after: Reading, phase: str, *, turns: bool) -> list[str]:
    """In `phase`, no question with an answer in the journal is asked, and no answer with a score is judged.

    `turns`: whether single replies count; a conversation with a workspace starts again.
    """
    trials = trials_of(after)
    known = durable(before, trials) if turns else set(answered(before))
    asked = {
        entry["key"]
        for entry in ledger
        if entry["phase"] == phase and entry["event"] == "asked" and entry["at"] == "agent"
    }
    complaints = [f"{key} was asked again although its answer was in the journal" for key in sorted(known & asked)]
    judged = {
        f"{trials[event['trial']]}|{event.get('turn', 0)}" for event in before.of("score") if event["scorer"] == "judge"
    }
    again = {
        entry["key"]
        for entry in ledger
        if entry["phase"] == phase and entry["event"] == "asked" and entry["at"] == "judge"
    }
    return complaints + [
        f"{key} was judged again although its score was in the journal" for key in sorted(judged & again)
    ]


def not_too_often(ledger: Sequence[Entry], reading: Reading, phase: str, *, killed: int) -> list[str]:
    """In `phase`, a question is asked once, plus once for each failed attempt and each killed process."""
    trials = trials_of(reading)
    failed = Counter(trials.get(event["trial"]) for event in reading.of("attempt") if event.get("stage") != "score")
    asked = Counter(
        entry["key"]
        for entry in ledger
        if entry["phase"] == phase and entry["event"] == "asked" and entry["at"] == "agent"
    )
    return [
        f"{key} was asked {count} times, with {failed[key.rpartition('|')[0]]} failed attempts and {killed} kills"
        for key, count in asked.items()
        if count > 1 + failed[key.rpartition("|")[0]] + killed
    ]


def totals(reading: Reading) -> dict[str, Any]:
    """Everything in a report, by question: scores, tokens, dollars. Equal for equal runs."""
    trials, rows = trials_of(reading), dict[str, Any]()
    for event in reading.of("answer"):
        kept = ("dollars", "usage")
        rows[trials[event["trial"]]] = [{name: reply.get(name) for name in kept} for reply in event["replies"]]
    for event in reading.of("score"):
        place = [trials.get(event["trial"]), *(event.get(name) for name in ("scorer", "judge", "repeat", "turn"))]
        asks = event.get("detail", {}).get("asks", 1)  # a judge that was asked twice has cost twice
        dollars = event.get("dollars") if asks < 2 else Decimal(0)
        rows[repr(place)] = {"values": event["values"], "dollars": None if asks > 1 else dollars, "asks": asks > 1}
    return rows


def equal(faulty: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """Compares the totals of a run with those of the same run without faults."""
    complaints = [f"{key}: not in the run" for key in reference.keys() - faulty.keys()]
    complaints += [f"{key}: only in the run with faults" for key in faulty.keys() - reference.keys()]
    for key in sorted(faulty.keys() & reference.keys()):
        ours, theirs = faulty[key], reference[key]
        if isinstance(ours, dict) and ours["asks"]:
            ours, theirs = ours["values"], theirs["values"]
        if ours != theirs:
            complaints.append(f"{key}: {ours} instead of {theirs}")
    return complaints


def paid_again(reading: Reading) -> bool:
    """Whether anything was paid for besides the answers: a failed attempt, or a judge that was asked again."""
    again = (event.get("detail", {}).get("asks", 1) > 1 for event in reading.of("score"))
    return bool(reading.of("attempt")) or any(again)


def archives(run: Path, reading: Reading) -> list[str]:
    """Each answer in a workspace must have the archive of its changes."""
    complaints = []
    for event in reading.of("answer"):
        changes = event.get("workspace")
        if changes is None:
            complaints.append(f"trial {event['trial']} has no archive of its workspace")
            continue
        file = run / "workspaces" / changes["file"]
        if not file.exists() or hashlib.sha256(file.read_bytes()).hexdigest() != changes["sha256"]:
            complaints.append(f"{changes['file']} is missing or is not as the journal says")
    return complaints


def spent(ledger: Sequence[Entry], at: tuple[str, ...]) -> float:
    """The cost of the delivered answers in dollars."""
    return sum(entry["dollars"] for entry in ledger if entry["event"] == "delivered" and entry["at"] in at)


def words(code: int, errors: str, *, codes: Sequence[int]) -> list[str]:
    """Checks how a command ended: its exit code, and what it must never print."""
    complaints = (
        [] if code in codes else [f"exit code {code}, expected {' or '.join(map(str, codes))}: {errors[-600:]}"]
    )
    for bad in (
        "Traceback (most recent call last)",
        "a bug in karat",
        "was never retrieved",
        "Exception ignored",
    ):
        shown = errors.replace("\\n", "\n")
        plain = "\n".join(line for line in shown.split("\n") if not line.startswith('{"event":'))
        if bad in plain:
            at = plain.index(bad)
            complaints.append(f"printed {bad!r}: {plain[max(0, at - 100) : at + 1500]}")
    return complaints


def leftovers(folder: Path, marker: str, *, connections: Any = None, temporary: bool = True) -> list[str]:
    """Leftover processes, mounts, connections and temporary files of a case; waits for those about to end.

    `temporary`: whether the temporary folder must be empty, as it is unless karat was killed.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := _left(folder, marker, connections, temporary)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _left(folder: Path, marker: str, connections: Any, temporary: bool) -> list[str]:
    left = [f"process {pid} is left: {line}" for pid, line in processes(folder, marker)]
    with open("/proc/self/mountinfo") as mounts:
        left += [f"mount is left: {line.strip()}" for line in mounts if f"{folder}/tmp/" in line]
    if connections is not None and connections():
        left.append(f"{connections()} connections are open")
    if temporary:
        left += [f"temporary file is left: {path.name}" for path in (folder / "tmp").iterdir()]
    return left


def processes(folder: Path, marker: str) -> list[tuple[int, str]]:
    """Processes that have the marker in their environment, or work in the folder or name it."""
    running = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        if int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read()
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read()
            here = os.readlink(f"/proc/{name}/cwd")
        except (OSError, ProcessLookupError):
            continue  # it has ended
        if marker.encode() in environment or str(folder).encode() in line or here.startswith(str(folder)):
            running.append((int(name), line.replace(b"\0", b" ").decode("utf-8", "replace")[:200]))
    return running
