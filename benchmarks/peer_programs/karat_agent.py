"""karat's agents: a text at once, and the same after 100 ms."""

import asyncio


async def instant(question: str) -> str:
    return question.removeprefix("Say ")


async def slow(question: str) -> str:
    await asyncio.sleep(0.1)
    return question.removeprefix("Say ")
