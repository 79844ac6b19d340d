"""Reads finished results of lm-eval, which has no reader of its own: `lm_eval_open.py header|scores FILE COUNT`."""

import json
import sys

what, path, count = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    if what == "header":
        assert json.load(file)["results"]
    else:
        assert len([json.loads(line)["exact_match"] for line in file]) == int(count)
