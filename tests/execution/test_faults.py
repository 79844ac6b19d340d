"""The fault campaign: a short one, and that its checks see what they are there for."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
spec = importlib.util.spec_from_file_location("_fault_checks", BENCHMARKS / "_fault_checks.py")
assert spec is not None
assert spec.loader is not None
checks = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = checks  # its dataclasses look themselves up
spec.loader.exec_module(checks)

FAULTS = {
    "full disk": 343, "full temporary folder": 15, "read-only folder": 58, "clock going back": 49,
    "shards killed and merged": 59, "judge: garbage": 219, "python agent: os_exit": 498, "mcp tools/call: crash": 27,
}  # fmt: skip
"""One of each class of faults but those with tests of their own: kills and signals in test_crash, test_ends, test_ray
and cli/test_terminal, what an agent does in test_misbehaving and in the tests of each agent. The seed of each is that
of a quick run: a model as agent or judge takes thrice the time, and only two have one. Together they have all agents.
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_survives_each_class_of_faults(tmp_path: Path) -> None:
    chosen = [part for seed in FAULTS.values() for part in ("--seed", str(seed))]
    command = [sys.executable, str(BENCHMARKS / "faults.py"), *chosen, "--json", str(tmp_path / "table.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=850, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = json.loads((tmp_path / "table.json").read_text())
    not_here = {name for name in FAULTS if any(note.startswith(f"{name}: not on this") for note in table["notes"])}
    survived = {name: row for name, *row in table["rows"]}
    assert survived["all"] == [len(FAULTS) - len(not_here)] * 2
    assert survived.keys() >= {*FAULTS} - not_here


def line(**event: Any) -> bytes:
    body = json.dumps(event).encode()[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def answer(sample: str, text: str = "yes", dollars: float = 0.5) -> bytes:
    place = {"trial": f"t-{sample}", "sample": sample, "condition": "a", "repetition": 0}
    return line(event="answer", **place, replies=[{"text": text, "dollars": dollars}])


def entry(event: str, sample: str, phase: str = "first") -> dict[str, Any]:
    return {"phase": phase, "at": "agent", "key": f"{sample}|a|0|0", "event": event, "text": "yes", "dollars": 0.5}


HEAD = line(event="head", format=2, run="0")
SOUND = HEAD + answer("s0") + answer("s1")
LEDGER = [entry(event, sample) for sample in ("s0", "s1") for event in ("asked", "delivered")]


def complaints(data: bytes, ledger: list[dict[str, Any]], *, before: bytes = HEAD, phase: str = "first") -> str:
    """Everything that the checks say of a journal beside the ledger, and beside the sound one."""
    reading, sound = checks.read_journal(data, torn=False), checks.read_journal(SOUND, torn=False)
    earlier = checks.read_journal(before, torn=False)
    found = [*reading.complaints, *checks.appended_only(before, data), *checks.once(reading)]
    found += checks.acknowledged(sound.events, reading) + checks.as_delivered(reading, ledger)
    found += checks.not_again(ledger, earlier, reading, phase, turns=True)
    found += checks.not_too_often(ledger, reading, phase, killed=0)
    return "\n".join(found + checks.equal(checks.totals(reading), checks.totals(sound)))


def test_the_checks_have_nothing_to_say_of_a_sound_run() -> None:
    assert complaints(SOUND, LEDGER) == ""


@pytest.mark.parametrize(
    ("data", "ledger", "words"),
    [
        pytest.param(HEAD + answer("s0"), LEDGER, "t-s1 was shown and is not in the journal", id="lost"),
        pytest.param(SOUND + answer("s0"), LEDGER, "trial t-s0 has 2 answers", id="twice"),
        pytest.param(SOUND[:-1], LEDGER, "the journal's last line is cut off", id="torn"),
        pytest.param(SOUND.replace(b"yes", b"yea", 1), LEDGER, "line 2 of the journal has no right", id="changed"),
        pytest.param(HEAD + answer("s0", "no") + answer("s1"), LEDGER, "is not the one that was", id="other text"),
        pytest.param(SOUND, LEDGER[:2], "an answer to s1|a|0|0 that no server sent", id="made up"),
        pytest.param(SOUND, [*LEDGER, entry("asked", "s1")], "s1|a|0|0 was asked 2 times", id="asked twice"),
        pytest.param(HEAD + answer("s0", dollars=0.6) + answer("s1"), LEDGER, "instead of", id="other cost"),
    ],
)  # fmt: skip
def test_the_checks_complain_of_a_broken_run(data: bytes, ledger: list[dict[str, Any]], words: str) -> None:
    assert words in complaints(data, ledger)


def test_the_checks_complain_of_what_is_asked_again_and_of_a_journal_that_was_rewritten() -> None:
    again = [*LEDGER, entry("asked", "s0", phase="resumed")]
    assert "s0|a|0|0 was asked again" in complaints(SOUND, again, before=HEAD + answer("s0"), phase="resumed")
    assert "has changed" in complaints(HEAD + answer("s1") + answer("s0"), LEDGER, before=HEAD + answer("s0"))


def test_the_checks_complain_of_exit_codes_tracebacks_and_processes(tmp_path: Path) -> None:
    assert "exit code 70, expected 0" in checks.words(70, "", codes=(0,))[0]
    assert "Traceback" in checks.words(0, "Traceback (most recent call last):\n  x", codes=(0,))[0]
    with subprocess.Popen(
        ["sleep", "60"], env={"PATH": "/usr/bin:/bin", "KARAT_FAULTS": "marker-of-this-test"}
    ) as process:
        found = checks.processes(tmp_path, "marker-of-this-test")
        process.kill()
    assert [pid for pid, _ in found] == [process.pid]
