"""`python` agents, sync and async, that answer by their question, and fail as `faults.json` says."""

from __future__ import annotations

import asyncio
import os
import time

import ledger

from karat import Reply, ToolCall, Usage


class Base(BaseException):
    """No `except Exception` catches it."""


async def answer_async(question, *, sample_id, condition, repetition, turn, workspace=None):
    """The answer, from the event loop."""
    key = f"{sample_id}|{condition}|{repetition}|{turn}"
    fault = ledger.asked("agent", key)
    await asyncio.sleep(0.02)
    if fault == "hang":
        await asyncio.sleep(3600)
    while fault == "stubborn":
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue
    return _answer(key, question, workspace, fault)


def answer(question, *, sample_id, condition, repetition, turn, workspace=None):
    """The answer, from a thread."""
    key = f"{sample_id}|{condition}|{repetition}|{turn}"
    fault = ledger.asked("agent", key)
    time.sleep(3600 if fault in ("hang", "stubborn") else 0.02)
    return _answer(key, question, workspace, fault)


def _answer(key, question, workspace, fault):
    reply = ledger.answer(key, question)
    text, dollars, calls = reply["text"], reply["dollars"], ()
    if workspace is not None:
        (workspace / "notes.txt").write_text(key)
    match fault:
        case "base":
            raise Base("away")
        case "exit":
            raise SystemExit(5)
        case "keyboard":
            raise KeyboardInterrupt
        case "os_exit":
            os._exit(77)
        case "fork":
            if os.fork() == 0:
                time.sleep(2)
                os._exit(0)
        case "stdout":
            print("printed by the agent")
            os.write(1, b"written by the agent\n" * 5000)
        case "huge":
            text = "x" * 100_000_000
        case "surrogates":
            text += " \ud83d"
        case "nan":
            dollars = float("nan")
        case "deep":
            value: object = 1
            for _ in range(100_000):
                value = [value]
            calls = (ToolCall(tool="t", input={"deep": value}),)
        case "odd":
            return object()
    result = Reply(text=text, dollars=dollars, usage=Usage(**reply["usage"]), tool_calls=calls)
    ledger.delivered("agent", key, reply["text"], reply["dollars"])
    return result
