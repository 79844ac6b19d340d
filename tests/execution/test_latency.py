"""What the latency of an answer counts: the agent's time, and not what karat makes it wait for."""

from __future__ import annotations

from karat.analysis import summarize
from karat.journal import RunFolder

WAITS = """
import asyncio
from contextlib import asynccontextmanager
from karat.models.metering import waiting
from karat.records import Reply

class Session:
    async def ask(self, turn):
        with waiting():  # as for a rate limit, or after a refusal
            await asyncio.sleep(0.3)
        await asyncio.sleep(0.02)
        return Reply(text="a0")

class Agent:
    @asynccontextmanager
    async def session(self, condition, sample):
        await asyncio.sleep(0.3)  # as a server that starts slowly
        yield Session()

query = Agent()
"""


def test_imposed_waits_and_the_start_of_servers_are_no_latency(experiment, run):
    outcome = run(experiment(WAITS, questions=2, execution={"num_repetitions": 1}))
    latency = summarize(RunFolder.open(outcome.run.path)).total.latency
    assert latency.n == 4
    assert 0.02 <= latency.median < 0.25  # each answer took more than 0.6 seconds in all
