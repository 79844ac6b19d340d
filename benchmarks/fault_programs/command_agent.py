"""A `command` agent that answers by its question, and fails as `faults.json` says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import ledger

MEGABYTE = b"x" * 2**20


def main() -> None:
    task = json.load(sys.stdin)
    key = "{sample}|{condition}|{repetition}|{turn}".format(**task)
    fault = ledger.asked("agent", key)
    time.sleep(0.02)
    reply = ledger.answer(key, task["question"])
    output = json.dumps(reply)
    if "workspace" in task:
        with open("notes.txt", "a") as notes:
            notes.write(key)
    match fault:
        case "crash":
            sys.exit("out of order")
        case "signal":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(3600)
        case "child":
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(3600)"])
        case "daemon":  # leaves its group, and ends by itself
            subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(2)"], start_new_session=True)
        case "flood":
            for _ in range(100):
                sys.stdout.buffer.write(MEGABYTE)
        case "stderr":
            for _ in range(50):
                sys.stderr.buffer.write(MEGABYTE)
        case "surrogates":
            output = json.dumps({**reply, "text": reply["text"] + " \ud83d"})
        case "nan":
            output = json.dumps({**reply, "dollars": float("nan")})
        case "deep":
            output = '{"text": "x", "tool_calls": ' + "[" * 200_000
        case "garbage":
            output = output[:-9]
        case "empty":
            output = ""
    sys.stdout.write(output)
    sys.stdout.flush()
    ledger.delivered("agent", key, reply["text"], reply["dollars"])


if __name__ == "__main__":
    main()
