"""Evaluates with deepeval: `deepeval_run.py DATASET SECONDS CONCURRENT RESULTS`. It scores answers; we ask for them."""

import asyncio
import json
import sys

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

path, seconds, concurrent, results = sys.argv[1:]


async def ask_all(questions: list[str]) -> list[str]:
    slots = asyncio.Semaphore(int(concurrent))

    async def answer(question: str) -> str:
        async with slots:
            if float(seconds):
                await asyncio.sleep(float(seconds))
            return question.removeprefix("Say ")

    return await asyncio.gather(*map(answer, questions))


with open(path, encoding="utf-8") as file:
    rows = [json.loads(line) for line in file]
answers = asyncio.run(ask_all([row["question"] for row in rows]))
cases = [
    LLMTestCase(name=row["id"], input=row["question"], actual_output=answer, expected_output=row["answer"])
    for row, answer in zip(rows, answers, strict=True)
]
evaluation = evaluate(
    cases,
    [ExactMatchMetric()],
    async_config=AsyncConfig(max_concurrent=int(concurrent)),
    cache_config=CacheConfig(write_cache=False),  # else its time grows with the square of the cases
    display_config=DisplayConfig(
        results_folder=results, print_results=False, show_indicator=False, inspect_after_run=False
    ),
)
assert len(evaluation.test_results) == len(cases)
