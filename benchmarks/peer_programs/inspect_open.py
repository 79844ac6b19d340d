"""Reads a finished log of inspect-ai: `inspect_open.py header|sample|scores FILE COUNT`."""

import sys

from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

what, path, count = sys.argv[1:]
if what == "header":
    assert read_eval_log(path, header_only=True).status == "success"
elif what == "sample":
    assert read_eval_log_sample(path, "5").output.completion == "5"
else:
    assert len([sample.scores for sample in read_eval_log_sample_summaries(path)]) == int(count)
