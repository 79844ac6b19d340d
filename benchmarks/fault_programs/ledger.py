"""What was asked and what was answered in one case of the fault campaign, written by those who were asked.

A case is a folder. `ledger.jsonl` in it gets a line when somebody is asked and another when the answer has been
delivered; `faults.json` says what is due: `{"phase": "…", "faults": [{"at", "do", "keys", "first", "times"}]}`.
A fault befalls the questions in `keys` (null: all), from the `first` time (0) that one is asked, so many `times`.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
_FORM = "End your answer with one line in this form:\n"


def asked(at: str, key: str, folder: Path = HERE) -> str | None:
    """Notes the question; the fault that is due, if any. `at`: agent, tool, judge, or a step of an MCP server."""
    plan = json.loads((folder / "faults.json").read_text())
    due = [fault for fault in plan["faults"] if fault["at"] == at and key in (fault["keys"] or [key])]
    count = 0
    if due:
        count = sum(
            entry["event"] == "asked" and (entry["at"], entry["key"], entry["phase"]) == (at, key, plan["phase"])
            for entry in entries(folder)
        )
    _append(folder, phase=plan["phase"], at=at, key=key, event="asked")
    for fault in due:
        if fault["first"] <= count < fault["first"] + fault["times"]:
            return fault["do"]
    return None


def delivered(at: str, key: str, text: str, dollars: float, folder: Path = HERE) -> None:
    """Notes that the answer is out of the hands of who gave it."""
    phase = json.loads((folder / "faults.json").read_text())["phase"]
    _append(folder, phase=phase, at=at, key=key, event="delivered", text=text, dollars=dollars)


def entries(folder: Path = HERE) -> list[dict]:
    """Every whole line."""
    try:
        data = (folder / "ledger.jsonl").read_bytes()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def answer(key: str, question: str) -> dict:
    """The answer to a question: the same whenever it is asked. `key`: sample|condition|repetition|turn."""
    number = zlib.crc32(key.encode())
    text = f"The limit is {number % 5} items ({key})."
    if _FORM in question:  # of a study
        field = question.partition(_FORM)[2].partition(":")[0]
        text = f"{field}: {number % 90 + 1}"
    usage = {"input_tokens": 10 + number % 7, "output_tokens": 3}
    return {"text": text, "dollars": (number % 7 + 1) / 100, "usage": usage}


def _append(folder: Path, **entry: object) -> None:
    file = os.open(folder / "ledger.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, json.dumps(entry).encode() + b"\n")
    os.close(file)
