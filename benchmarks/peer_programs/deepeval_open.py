"""Reads a finished test run of deepeval: `deepeval_open.py FILE COUNT`."""

import json
import sys

from deepeval.test_run.test_run import TestRun

path, count = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    run = TestRun.model_validate(json.load(file))
assert len(run.test_cases) == int(count)
